package record

import "github.com/united-workforce/uwf/gitcas/node"

// Usage is what an agent's run cost. DurationMs is wall time in milliseconds,
// CostUSD is in US dollars, as providers say or by the configured prices.
type Usage struct {
	Turns        int     `json:"turns"`
	InputTokens  int64   `json:"inputTokens"`
	OutputTokens int64   `json:"outputTokens"`
	DurationMs   int64   `json:"durationMs"`
	CostUSD      float64 `json:"costUsd"`
	// Unpriced: there are tokens among these whose price nobody knows, so that it cost
	// CostUSD at least.
	Unpriced bool `json:"unpriced,omitempty"`
}

// Reported is a usage as an agent writes it, who may say nothing of the cost.
type Reported struct {
	Usage
	CostUSD *float64 `json:"costUsd"`
}

// Known is what an agent said; tokens without a cost are unpriced.
func (r Reported) Known() Usage {
	u := r.Usage
	if r.CostUSD != nil {
		u.CostUSD = *r.CostUSD
	} else {
		u.Unpriced = u.Unpriced || u.InputTokens+u.OutputTokens > 0
	}
	return u
}

// Work is the branch with the agents' edits and its commit after the step.
type Work struct {
	Branch string `json:"branch"`
	Commit string `json:"commit"`
}

// Run names the job that made a step: a CI run's id and attempt, or a random id
// on a laptop.
type Run struct {
	ID      string `json:"id"`
	Attempt int    `json:"attempt"`
}

// Start is the first node of a thread.
type Start struct {
	Workflow node.Hash
	Prompt   string
	Cwd      string
	Trigger  map[string]any // what started the thread; nil when a person did
	Base     string         // the commit that the work began from; may be empty
	Title    string         // what it is about, on one line; may be empty
	By       *By            // who started it; nil: nobody, or nobody knows
	Digests  *StartDigests  // nil: a node of the peers, which has none
}

// Check is the result of one of the checks that a role has.
type Check struct {
	Name       string
	Status     string // passed, failed or skipped
	ExitCode   int
	DurationMs int64
}

// Step is one moderator → agent → extract cycle. Prev is nil for the first step.
type Step struct {
	Start            node.Hash
	Prev             *node.Hash
	Role             string
	Output           node.Hash
	Detail           node.Hash
	Agent            string
	EdgePrompt       string
	StartedAtMs      int64
	CompletedAtMs    int64
	Cwd              string
	AssembledPrompt  *node.Hash
	Body             *node.Hash
	Usage            *Usage
	Work             *Work
	PreviousAttempts []node.Hash
	Run              *Run
	// By is who let the step happen, by the last thing that a person did to the thread
	// since the step before; nil: nobody had to. Answer is what was said then.
	By     *By
	Answer *node.Hash
	// Patch, below the details, is what the step changed on the work branch.
	Patch   *node.Hash
	Checks  []Check
	Digests *StepDigests // nil: a node of the peers, which has none
}
