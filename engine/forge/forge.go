// Package forge is what a job asks of GitHub, GitHub Enterprise Server or Gitea:
// comments, labels, pull requests, permissions and dispatches, as one small
// interface. It never reads or writes git, and decides nothing.
package forge

import (
	"context"
	"time"
)

// Flavour is the kind of forge.
type Flavour string

// The flavours that are known.
const (
	GitHub Flavour = "github" // and GitHub Enterprise Server
	Gitea  Flavour = "gitea"  // and Forgejo
)

// Forge is one repository on a forge. Errors are *CallError values; match their kind
// with errors.Is and the Err… sentinels. All methods are safe for concurrent use.
type Forge interface {
	ForgeFlavour() Flavour
	// ReadRepository says what can change between two jobs, such as the default branch.
	ReadRepository(ctx context.Context) (Repository, error)
	// ReadPermission is what a user may do here. Unknown means that this token can't
	// find out; that is no error.
	ReadPermission(ctx context.Context, login string) (Permission, error)
	// ReadTokenOwner is whose token this is. ErrForbidden: the forge doesn't tell, as GitHub does
	// not where it is a job's own. ErrAuth: there is no token, or it has ended.
	ReadTokenOwner(ctx context.Context) (User, error)

	// ReadIssue is an issue or a pull request by its number. ErrNotFound with the status 410:
	// somebody deleted it.
	ReadIssue(ctx context.Context, number int) (Issue, error)
	// ListIssues are the open issues with a label that changed last, at most a page of them; no pull
	// requests.
	ListIssues(ctx context.Context, label string) ([]Issue, error)
	// ListComments gives all comments of an issue or pull request, the oldest first.
	ListComments(ctx context.Context, number int) ([]Comment, error)
	// ReadComment is a comment by its id; ErrNotFound when somebody deleted it.
	ReadComment(ctx context.Context, id int64) (Comment, error)
	// ReadLineComment is a comment on a line of a pull request by its id, which is no id
	// for the calls around it; ErrNotFound as above, and always on Gitea.
	ReadLineComment(ctx context.Context, id int64) (Comment, error)
	// CreateComment writes a comment, once: if an answer got lost, it looks, and writes it again only
	// if it is not there. So do the other calls that make something.
	CreateComment(ctx context.Context, number int, body string) (Comment, error)
	// UpdateComment replaces a comment's body; ErrNotFound when somebody deleted it.
	UpdateComment(ctx context.Context, id int64, body string) error
	// DeleteComment is no error where the comment is gone.
	DeleteComment(ctx context.Context, id int64) error

	// EnsureLabel makes a label where it is missing.
	EnsureLabel(ctx context.Context, l Label) error
	// AddLabel puts a label on an issue, and makes it where the repository has none.
	AddLabel(ctx context.Context, number int, l Label) error
	// RemoveLabel is no error where the label is not there.
	RemoveLabel(ctx context.Context, number int, name string) error

	ReadPull(ctx context.Context, number int) (Pull, error)
	// FindPull finds the pull request of a branch of this repository: the open one,
	// else the newest.
	FindPull(ctx context.Context, branch string) (Pull, bool, error)
	// CreatePull opens a pull request. ErrExists: there is one for that branch.
	// ErrForbidden: the token may not open any. ErrNoChanges: nothing to merge.
	CreatePull(ctx context.Context, p NewPull) (Pull, error)
	// UpdatePull replaces title and body.
	UpdatePull(ctx context.Context, number int, title, body string) error

	// DispatchWorkflow starts a workflow file (its base name) on a branch.
	DispatchWorkflow(ctx context.Context, workflow, ref string, inputs map[string]string) error
	// DispatchRepository sends a repository_dispatch event.
	DispatchRepository(ctx context.Context, eventType string, payload map[string]string) error

	// ListJobNotes are what the forge itself noted at the jobs of a run's attempt, such as who
	// cancelled it. Gitea notes nothing.
	ListJobNotes(ctx context.Context, run string, attempt int) ([]string, error)

	// WasRunCancelled reports whether a run was cancelled. Known is false if this token can't read it.
	WasRunCancelled(ctx context.Context, run string) (was, known bool, err error)

	// ListWorkflows gives the workflow files of the default branch that the forge runs.
	ListWorkflows(ctx context.Context) ([]Workflow, error)
	// MayCreatePulls reports the setting that lets jobs open pull requests. Known is
	// false where this token can't read it.
	MayCreatePulls(ctx context.Context) (may, known bool, err error)
	// ListBranchRules are the rules that a push to a branch must meet; known as above.
	ListBranchRules(ctx context.Context, branch string) (rules []string, known bool, err error)
}

// Repository is the repository itself.
type Repository struct {
	FullName      string `json:"full_name"` // owner/name
	DefaultBranch string `json:"default_branch"`
	Empty         bool   `json:"empty"` // as far as the forge says so
	URL           string `json:"html_url"`
}

// Permission is what a user may do, in ascending order. The zero value is Unknown.
type Permission int

// The permissions.
const (
	Unknown Permission = iota
	None
	Read
	Write // or more: maintain, admin
)

// User is an account. ID stays where the login is renamed or taken by somebody else; it
// is 0 for those that Gitea has built in, and where the forge doesn't tell. All ids of
// authors are such.
type User struct {
	Login string
	ID    int64
	Bot   bool // no person's
}

// Issue is an issue or a pull request.
type Issue struct {
	Number      int
	Title, Body string
	Author      string
	AuthorID    int64
	Labels      []string
	Open        bool
	Updated     time.Time
	// ClosedAt and ClosedBy tell of one that is closed, as far as the forge does.
	ClosedAt time.Time
	ClosedBy string
	// Moved is its address in another repository, to which somebody moved it; empty: it is here.
	Moved string
}

// Comment is a comment on an issue or a pull request.
type Comment struct {
	ID       int64
	Body     string
	Author   string
	AuthorID int64
	URL      string
	// Number is that of the issue or pull request that it is on; 0: the forge doesn't say.
	Number int
	// Created is when it was written; later edits don't change it.
	Created time.Time
}

// Label is a label of the repository. Color is six hexadecimal digits.
type Label struct{ Name, Color, Description string }

// Pull is a pull request.
type Pull struct {
	Number       int
	Title, Body  string
	Author       string
	AuthorID     int64
	Open, Merged bool
	ClosedAt     time.Time
	Head, Base   Branch
	URL          string
}

// Branch is one side of a pull request. Repo is owner/name, empty when it was deleted.
type Branch struct{ Repo, Name, SHA string }

// NewPull is a pull request to open; both branches are this repository's.
type NewPull struct {
	Title, Body, Head, Base string
	Draft                   bool
}

// Workflow is a workflow file. Active is false for one that somebody disabled.
type Workflow struct {
	Path   string
	Active bool
}
