// Package artifact carries one step of a thread from the job that runs the agent to
// the job that commits it, in a folder. The first job has the model's key and a
// token that can't write; the second can write and runs no agent. So everything in
// the folder is hostile to the second job, and nothing that the first job knows to
// be a secret goes into it.
//
// The first job opens its store on a [Mirror] and steps it with an engine that was
// given to [Capture]; then it calls [Write]. The second calls [Read], and steps the real store with [Agent]
// as the engine's agent, by the ordinary protocol.
package artifact

import (
	"errors"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
)

// Artifact is what an agent did, or why it failed.
type Artifact struct {
	Thread gitcas.ThreadID
	// Head is the thread's head that the agent worked on.
	Head  node.Hash
	Step  int // the step's number, from 1
	Role  string
	Agent string // the name that is recorded
	// Answer is what people had said to the thread when the agent began; empty: nothing.
	Answer node.Hash
	// Base is the commit that the agent's folder was restored to; zero: none.
	Base wire.ID
	// Draft are the agent's nodes, sealed as the engine seals them; the handle of
	// the StepNode among them; what the run used; and its last lines of stderr.
	Draft task.Draft
	// Failure is why there is no step; nil: there is one.
	Failure *Failure
	// Files are what the agent changed, in the order of their paths.
	Files []workspace.Edit
}

// Failure is why an agent gave no step.
type Failure struct {
	Reason string // one sentence
	Detail string // the last lines of stderr, or the offending output
}

// ErrNone says that there is no artifact: the first job had nothing to run.
var ErrNone = errors.New("there is no step in it")

// Format is the version of the folder's layout. Both jobs run the same uwf, so
// others are refused.
const Format = 1

// Bounds of an artifact. Those of the nodes are the engine's own.
const (
	maxFiles    = 20_000
	maxManifest = 16 << 20
	maxText     = 64 << 10 // of a failure, and of stderr
	maxName     = 1000
	maxStep     = 1_000_000
	maxTokens   = 1e12
	maxTookMs   = 35 * 24 * 3_600_000 // no run of a workflow lasts longer
	maxCostUSD  = 1e9
)

// modes are the file modes that an artifact can hold, as they are written.
var modes = map[string]filemode.FileMode{
	"deleted": 0, "100644": filemode.Regular, "100755": filemode.Executable, "120000": filemode.Symlink,
}

func modeName(m filemode.FileMode) (string, error) {
	for name, mode := range modes {
		if mode == m {
			return name, nil
		}
	}
	return "", fmt.Errorf("no file of an artifact has mode %s", m)
}
