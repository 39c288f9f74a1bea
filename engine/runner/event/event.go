// Package event reads what started a CI job: the payload file of the forge and, in
// comments, the /uwf command of a person. It believes nothing in it but what the
// forge itself says (who, where), and does no I/O.
package event

// Kind is what an event means to uwf.
type Kind string

// The kinds of events.
const (
	None     Kind = "none"     // nothing to do; Event.Why says why
	Labeled  Kind = "labeled"  // labels were put on an issue or a pull request
	Assigned Kind = "assigned" // an issue or a pull request was assigned to somebody
	Comment  Kind = "comment"  // a comment that holds a /uwf command
	Schedule Kind = "schedule"
	Manual   Kind = "manual"   // workflow_dispatch
	Dispatch Kind = "dispatch" // repository_dispatch
	Plain    Kind = "plain"    // any other event: only what the inputs say counts
)

// Event is what started the job.
type Event struct {
	Name   string // GITHUB_EVENT_NAME
	Action string // of repository_dispatch: the event's type
	Kind   Kind
	Why    string // one line; for None

	Repo   Repo
	Sender User
	// Subject is the issue or pull request that it is about; nil: none.
	Subject *Subject
	// Added are the labels that this event put on; Assignee the user it was assigned to.
	Added    []string
	Assignee string
	// Command is the comment's command, for Comment.
	Command *Command
	// CommentID, CommentAuthor and CommentURL are the comment's.
	CommentID     int64
	CommentAuthor User
	CommentURL    string
	// CommentBody is what was written, whole.
	CommentBody string
	// Review: the comment is one on a line of a pull request, and CommentID is the id of
	// such a one, not of an issue's comment.
	Review bool

	// Inputs are those of workflow_dispatch, or the texts in client_payload.
	Inputs map[string]string
}

// Repo is the repository that the event is from.
type Repo struct {
	FullName      string // owner/name
	DefaultBranch string
	PageURL       string // where people see it
	// Owner is whose it is. Organisation: the payload says that this is no person. Gitea
	// doesn't say; but there, as anywhere, an organisation never does anything itself.
	Owner        User
	Organisation bool
}

// User is somebody on the forge. Bot is true for apps and for the job's own token.
type User struct {
	Login string
	// ID stays where the login is renamed or taken by somebody else. It is 0 where the
	// payload doesn't tell it, and for the accounts that Gitea has built in.
	ID  int64
	Bot bool
}

// Subject is an issue or a pull request as the payload has it.
type Subject struct {
	Number int
	Pull   bool
	Title  string
	Body   string
	Author string
	// AuthorID is as in User.
	AuthorID int64
	Labels   []string
	Open     bool
	// Quiet: the payload says that nobody has commented on it yet.
	Quiet bool
	URL   string
}

// Command is one /uwf line of a comment and the text below it.
type Command struct {
	// Verb is start, resume, status, cancel, retry, fork or help.
	Verb string
	// Args are the words of the line, options as --name=value included.
	Args []string
	// Text is what the person says with it: below the line and, for the verbs that
	// take no words (resume, retry, cancel, status), the rest of the line before it.
	Text string
}
