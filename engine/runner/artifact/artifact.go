// Package artifact carries one step of a thread from the job that runs the agent to
// the job that commits it, in a folder. The first job has the model's key and a
// token that can't write; the second can write and runs no agent. So whatever is in
// the folder is hostile to the second job, and nothing secret may be in it.
package artifact

import (
	"context"
	"errors"

	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// Artifact is what an agent did, or why it failed.
type Artifact struct {
	Thread gitcas.ThreadID
	Head   node.Hash // the thread's head that the agent worked on
	Role   string
	Agent  string
	Step   int
	// Base is the commit that the agent's folder was restored to; zero: none.
	Base wire.ID
	// Draft are the nodes, sealed, and the handle of the StepNode among them.
	Draft thread.Draft
	// Failure is why there is no step; nil: there is one.
	Failure *Failure
	Files   []File
}

// Failure is why an agent gave no step.
type Failure struct{ Reason, Detail string }

// File is one file that the agent changed.
type File struct {
	Path string
	Mode string  // 100644, 100755 or 120000; empty for a deleted file
	Old  wire.ID // the content that the agent found; zero: none
	Data []byte  // a symlink's target
}

// ErrNone says that a folder holds no artifact: the first job had nothing to run.
var ErrNone = errors.New("there is no step in it")

// Write makes the folder of an artifact. What was there before is removed.
func Write(dir string, a Artifact) error { return errors.New("not written yet") }

// Read reads a folder that anyone may have written. ErrNone: nothing is there.
func Read(dir string) (Artifact, error) { return Artifact{}, ErrNone }

// Agent hands over what an artifact holds, to an engine whose folder that is. A step
// that the artifact is not of is refused.
func Agent(a Artifact, folder thread.Folder) thread.Agent { return nil }

// Captured is an engine's agent whose work goes to an artifact folder.
type Captured struct{}

// Capture makes an engine write what its agent does to dir, in addition to what the
// engine does with it. The engine should work on a Mirror.
func Capture(e *thread.Engine, dir string) *Captured { return &Captured{} }

// Written reports whether there is an artifact: of a step, or of a failed agent.
func (c *Captured) Written() bool { return false }

// Mirror is a private copy of a remote: it reads through to the remote, and keeps
// whatever is pushed to itself.
func Mirror(from wire.Remote) wire.Remote { return from }

var _ = context.Background
var _ record.Usage
