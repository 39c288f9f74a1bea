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
	"time"

	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/workspace"
)

// Artifact is what an agent did, or why it failed: artifact.json, with the contents of the
// files beside it.
type Artifact struct {
	Format int             `json:"format"`
	Thread gitcas.ThreadID `json:"thread"`
	// Head is the thread's head that the agent worked on.
	Head  node.Hash `json:"head"`
	Step  int       `json:"step"` // the step's number, from 1
	Role  string    `json:"role"`
	Agent string    `json:"agent"` // the name that is recorded
	// Answer is what people had said to the thread when the agent began; empty: nothing.
	Answer node.Hash `json:"answer,omitempty"`
	// Nodes are the agent's, sealed as the engine seals them, and Handle the StepNode among
	// them; Usage is what the run used, and Stderr its last lines.
	Nodes  map[node.Hash]node.Node `json:"-"`
	Handle node.Hash               `json:"handle,omitempty"`
	Usage  record.Usage            `json:"usage"`
	Stderr string                  `json:"stderr,omitempty"`
	// Failure is why there is no step; nil: there is one.
	Failure *Failure `json:"failure,omitempty"`
	// Files are what the agent changed, in the order of their paths; Listed is the same as
	// it is written.
	Files  []workspace.Edit `json:"-"`
	Listed []listedFile     `json:"files,omitempty"`
}

// Failure is why an agent gave no step.
type Failure struct {
	Reason string `json:"reason"`           // one sentence
	Detail string `json:"detail,omitempty"` // the last lines of stderr, or the offending output
}

// listedFile is a changed file. The content of the n-th one, counted from 1, is files/n; a
// deleted one has none.
type listedFile struct {
	Path string `json:"path"`
	Mode string `json:"mode"` // 100644, 100755, 120000 or deleted
	Old  string `json:"old,omitempty"`
}

// asDraft is the agent's, as the engine takes it.
func (a Artifact) asDraft() task.Draft {
	return task.Draft{Handle: a.Handle, Nodes: a.Nodes, Usage: a.Usage, Stderr: a.Stderr, Took: time.Duration(a.Usage.DurationMs) * time.Millisecond}
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
