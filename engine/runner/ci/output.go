package ci

import (
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
)

// Output is where the job tells people and later steps of it. Messages are plain
// text: the implementation escapes them for the runner.
type Output interface {
	Notice(msg string)
	Warning(msg string)
	Error(a Annotation)
	// Summary is the job's summary, in Markdown. Called again, it replaces.
	Summary(markdown string)
}

// Annotation is an error at a place in a file. Line and Col are from 1; 0: not known.
type Annotation struct {
	File      string
	Line, Col int
	Title     string
	Message   string
}

// Outcome is what the job did: the action's outputs.
type Outcome struct {
	Thread      gitcas.ThreadID
	Head        node.Hash
	Status      string // the thread's: active, running, suspended, ended, cancelled, failed
	Result      string // the step's status
	Role        string
	NextRole    string
	Step        int
	Done        bool
	PullRequest int
	// Notice is one line on why a green job did nothing, or nothing more.
	Notice string
}
