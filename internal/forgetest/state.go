package forgetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// state is everything that the forge remembers beside git.
type state struct {
	branch   string
	last     int64 // the last id that was given out
	number   int   // the last number of an issue or pull request
	users    map[string]string
	ids      map[string]int64 // of users
	tokens   map[string]*token
	issues   map[int]*Issue
	gone     map[int]bool // the issues that were deleted
	comments []*Comment   // oldest first
	lines    []*Comment   // those on lines of pull requests
	labels   []*Label
	sent     []Dispatch
	taken    int // how many of sent were taken
	disabled map[string]bool
	rules    []rule
	noPulls  bool
	jobs     []job
}

func newState(o Options) state {
	s := state{
		branch: o.Branch, last: 1000,
		users: map[string]string{o.Owner: "admin"}, ids: map[string]int64{}, tokens: map[string]*token{},
		issues: map[int]*Issue{}, gone: map[int]bool{}, disabled: map[string]bool{},
	}
	return s
}

// Issue is an issue or a pull request.
type Issue struct {
	Number              int
	Title, Body, Author string
	Labels              []string
	Assignees           []string
	Open                bool
	Pull                *Pull // nil: an issue
	created, closed     time.Time
	labeled             time.Time // when a person put a label on last
	id                  int64
}

// Pull is what only a pull request has.
type Pull struct {
	Head, Base string
	// Fork is the owner/name of the repository that the head is from; empty: this one.
	Fork   string
	Draft  bool
	Merged bool
	// SHA is the head's commit of a fork; of this repository's branches git is asked.
	SHA string
}

// Comment is a comment on an issue or pull request.
type Comment struct {
	ID           int64
	Issue        int
	Body, Author string
	// Bodies are all that it ever said, oldest first.
	Bodies  []string
	created time.Time
}

// Label is a label of the repository.
type Label struct {
	ID                       int64
	Name, Color, Description string
}

// id gives out the next id.
func (s *Server) id() int64 {
	s.state.last++
	return s.state.last
}

// know remembers a user. What they may do stays as it is.
func (s *Server) know(login string) {
	if _, ok := s.state.users[login]; !ok {
		s.state.users[login] = ""
	}
	if s.state.ids[login] == 0 {
		s.state.ids[login] = s.id()
	}
}

// SetPermission says what somebody may do: admin, maintain, write, triage, read, or
// "" for a user who is no collaborator.
func (s *Server) SetPermission(login, role string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.know(login)
	s.state.users[login] = role
}

// SetDefaultBranch says which branch the forge takes for the default one; git's HEAD
// stays as it is.
func (s *Server) SetDefaultBranch(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.branch = name
}

// SetPullsAllowed is the setting "Allow GitHub Actions to create and approve pull
// requests", which is on at the start.
func (s *Server) SetPullsAllowed(yes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.noPulls = !yes
}

// DisableWorkflow disables a workflow file by its base name, or enables it again.
func (s *Server) DisableWorkflow(file string, disabled bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.disabled[file] = disabled
}

// OpenIssue opens an issue and returns its number.
func (s *Server) OpenIssue(by, title, body string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addIssue(by, title, body).Number
}

func (s *Server) addIssue(by, title, body string) *Issue {
	s.know(by)
	s.state.number++
	i := &Issue{Number: s.state.number, Title: title, Body: body, Author: by, Open: true, created: s.now(), id: s.id()}
	s.state.issues[i.Number] = i
	return i
}

// OpenPull opens a pull request as a person does, and returns its number. Where Fork
// is set, SHA must be.
func (s *Server) OpenPull(by, title, body string, p Pull) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.addIssue(by, title, body)
	p.Base = or(p.Base, s.state.branch)
	i.Pull = &p
	return i.Number
}

// CloseIssue closes an issue or pull request.
func (s *Server) CloseIssue(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.mustIssue(n)
	i.Open, i.closed = false, s.now()
}

// ReopenIssue opens it again.
func (s *Server) ReopenIssue(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mustIssue(n).Open = true
}

// DeleteIssue deletes an issue with its comments, as GitHub's admins and Gitea's can.
func (s *Server) DeleteIssue(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mustIssue(n)
	delete(s.state.issues, n)
	s.state.gone[n] = true
	s.state.comments = slices.DeleteFunc(s.state.comments, func(c *Comment) bool { return c.Issue == n })
}

// DeleteComment removes a comment as a person does, also one on a line.
func (s *Server) DeleteComment(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := func(c *Comment) bool { return c.ID == id }
	s.state.comments = slices.DeleteFunc(s.state.comments, gone)
	s.state.lines = slices.DeleteFunc(s.state.lines, gone)
}

// mustIssue is for methods of tests: a number that is not there is the test's mistake.
func (s *Server) mustIssue(n int) *Issue {
	i := s.state.issues[n]
	if i == nil {
		panic(fmt.Sprintf("forgetest: there is no issue #%d", n))
	}
	return i
}

// FindIssue is an issue or pull request as it stands; the zero value where there is none.
func (s *Server) FindIssue(n int) Issue {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.state.issues[n]; i != nil {
		return i.clone()
	}
	return Issue{}
}

func (i *Issue) clone() Issue {
	c := *i
	c.Labels, c.Assignees = slices.Clone(i.Labels), slices.Clone(i.Assignees)
	if i.Pull != nil {
		p := *i.Pull
		c.Pull = &p
	}
	return c
}

// Pulls are all pull requests, oldest first.
func (s *Server) Pulls() []Issue {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Issue
	for _, n := range slices.Sorted(maps.Keys(s.state.issues)) {
		if i := s.state.issues[n]; i.Pull != nil {
			list = append(list, i.clone())
		}
	}
	return list
}

// Comments are those of an issue or pull request, oldest first; of all with 0.
func (s *Server) Comments(n int) []Comment {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Comment
	for _, c := range s.state.comments {
		if n == 0 || c.Issue == n {
			clone := *c
			clone.Bodies = slices.Clone(c.Bodies)
			list = append(list, clone)
		}
	}
	return list
}

// Labels are those of the repository, oldest first.
func (s *Server) Labels() []Label {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Label
	for _, l := range s.state.labels {
		list = append(list, *l)
	}
	return list
}

// label finds a label by its name, as forges do without regard to case.
func (s *Server) label(name string) *Label {
	for _, l := range s.state.labels {
		if strings.EqualFold(l.Name, name) {
			return l
		}
	}
	return nil
}

func (s *Server) addLabel(name, color, description string) *Label {
	l := &Label{ID: s.id(), Name: name, Color: strings.TrimPrefix(color, "#"), Description: description}
	s.state.labels = append(s.state.labels, l)
	return l
}

// put puts a label on an issue where it isn't there yet.
func (i *Issue) put(name string) {
	if !slices.ContainsFunc(i.Labels, func(l string) bool { return strings.EqualFold(l, name) }) {
		i.Labels = append(i.Labels, name)
	}
}

func (s *Server) addComment(by string, issue int, body string) *Comment {
	c := s.newComment(by, issue, body)
	s.state.comments = append(s.state.comments, c)
	return c
}

func (s *Server) newComment(by string, issue int, body string) *Comment {
	s.know(by)
	return &Comment{ID: s.id(), Issue: issue, Body: body, Author: by, Bodies: []string{body}, created: s.now()}
}

func (s *Server) comment(id int64) *Comment {
	for _, c := range s.state.comments {
		if c.ID == id {
			return c
		}
	}
	return nil
}
