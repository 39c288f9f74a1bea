// Package task is what an agent is given to do, and what it gives back: all that agents need
// to know of the engine.
package task

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/workspace"
)

// Task is what one agent is asked to do: the content of context.json, and what
// the parent process needs to run it.
type Task struct {
	Thread           gitcas.ThreadID `json:"thread"`
	Role             string          `json:"role"`
	Agent            string          `json:"agent"` // the name recorded in the StepNode
	Step             int             `json:"step"`  // 1 for the thread's first step
	Start            node.Hash       `json:"start"`
	Prev             *node.Hash      `json:"prev"`
	Workflow         node.Hash       `json:"workflow"`
	WorkflowName     string          `json:"workflowName"`
	OutputSchema     node.Hash       `json:"outputSchema"`
	StatusKey        string          `json:"statusKey"`        // "$status" or "status"
	Statuses         []string        `json:"statuses"`         // those that the graph has an edge for
	Closed           []string        `json:"closed,omitempty"` // those, "" for none, that only a person's approval opens, and there is none
	ClosedWhy        string          `json:"closedWhy,omitempty"`
	StatusOptional   bool            `json:"statusOptional,omitempty"` // there is an edge for no status too
	Suspends         bool            `json:"suspends"`                 // it may answer `$status: $SUSPEND` with a reason instead
	Prompt           string          `json:"prompt"`                   // assembled, whole
	CommonBytes      int             `json:"commonBytes,omitempty"`    // so much of the prompt's beginning is the same for all roles of the thread
	EdgePrompt       string          `json:"edgePrompt"`
	StartPrompt      string          `json:"startPrompt"`
	Cwd              string          `json:"cwd"`
	Location         string          `json:"location,omitempty"`
	PreviousAttempts []node.Hash     `json:"previousAttempts,omitempty"`
	StartedAtMs      int64           `json:"startedAtMs"`
	Model            *Model          `json:"model,omitempty"`
	Extract          *Model          `json:"extract,omitempty"` // reads what the agent could not put into form; nil: off
	Run              record.Run      `json:"run"`
	// LeftOut is what of the repository is not in the folder.
	LeftOut   []workspace.LeftOut `json:"leftOut,omitempty"`
	Corrected *Corrected          `json:"corrected,omitempty"` // set in a correction after checks

	// Nodes are the nodes that the agent may read: the thread's chain, its
	// outputs and bodies, the workflow and all schemas of these.
	Nodes gitcas.Nodes `json:"-"`
	// Entry is the thread's, as it was claimed; Definition is its workflow.
	Entry      gitcas.Entry         `json:"-"`
	Definition *workflow.Definition `json:"-"`
	Workspace  string               `json:"-"` // the folder to work in
	Command    string               `json:"-"` // command line or alias; empty: Agent
	Timeout    time.Duration        `json:"-"` // 0: none
	// Budget is what the run may use: what the thread's limits leave.
	Budget Budget `json:"-"`
}

// Corrected says where a correction begins, and what the run that it corrects has left among the
// nodes: an agent that keeps its conversation may go on in it.
type Corrected struct {
	Of     node.Hash `json:"of"`     // the StepNode of that run
	Detail node.Hash `json:"detail"` // what its agent kept
	From   int       `json:"from"`   // the prompt before this byte is what that run was asked
}

// Model is what an agent may know of the model it is to use.
type Model struct {
	Alias    string `json:"alias"`
	Name     string `json:"name"`
	Provider string `json:"provider"`
	API      string `json:"api,omitempty"` // how it is spoken to: "openai", "anthropic" or "gemini"
	// Wires are what it can be asked by: "chat", "responses", "messages". Reasoning: it thinks
	// before it answers.
	Wires     []string `json:"wires,omitempty"`
	Reasoning bool     `json:"reasoning,omitempty"`
	Window    int      `json:"window"`    // tokens; 0: unknown
	MaxOutput int      `json:"maxOutput"` // tokens; 0: unknown
}

// Draft is what an agent's process left behind: nodes as the child staged them,
// not yet checked, and the handle of its StepNode among them.
type Draft struct {
	Handle node.Hash
	Nodes  map[node.Hash]node.Node
	Usage  record.Usage // as the agent itself reports it; the Meter goes before
	Stderr string       // the last lines, for messages
	// Took is how long the agent worked in another job, before this one; it is added
	// to what is measured here.
	Took time.Duration
}

// Agent runs one task to its end. When it fails, the error is an *AgentError and
// the Draft holds what was staged until then. It returns only when no process of
// the agent is left; when ctx ends it does so within five seconds.
type Agent interface {
	Run(ctx context.Context, t Task, m *Meter) (Draft, error)
}

// AgentError says why an agent's run gave no step.
type AgentError struct {
	Agent  string
	Reason string // one sentence
	Detail string // the last lines of stderr, or the offending output
	Err    error  // the cause; may be nil
}

func (e *AgentError) Error() string {
	s := fmt.Sprintf("agent %s: %s", e.Agent, e.Reason)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	if e.Detail != "" {
		s += "\n" + e.Detail
	}
	return s
}

func (e *AgentError) Unwrap() error { return e.Err }

// Budget bounds what one agent run may use; 0: no bound.
type Budget struct {
	Tokens  int64
	CostUSD float64
}

// TenthsBegun is how many tenths of the budget a usage has begun.
func (b Budget) TenthsBegun(tokens int64, costUSD float64) int {
	return countTenths(float64(tokens), float64(b.Tokens)) + countTenths(costUSD, b.CostUSD)
}

// Charge is what a job is charged for a usage as long as it may grow unseen: the tenths of
// the budget that were begun, each whole.
func (b Budget) Charge(tokens int64, costUSD float64) (int64, float64) {
	whole := func(used, budget float64) float64 { return max(used, float64(countTenths(used, budget))*budget/10) }
	return max(tokens, int64(math.Ceil(whole(float64(tokens), float64(b.Tokens))))), whole(costUSD, b.CostUSD)
}

// countTenths is how many tenths of a budget are begun; none where there is no budget.
func countTenths(used, budget float64) int {
	if budget <= 0 {
		return 0
	}
	return int(min(math.Floor(max(used, 0)/budget*10)+1, 10))
}
