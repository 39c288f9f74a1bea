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
	// Model is the name of the model that the agent was to ask, not what the agent says; empty: none,
	// or nobody noted which.
	Model string `json:"model,omitempty"`
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
	Workflow node.Hash      `payload:"workflow"`
	Prompt   string         `payload:"prompt"`
	Cwd      string         `payload:"cwd"`
	Trigger  map[string]any `payload:"trigger,own"` // what started the thread; nil when a person did
	Base     string         `payload:"base,own"`    // the commit that the work began from; may be empty
	Title    string         `payload:"title,own"`   // what it is about, on one line; may be empty
	By       *By            `payload:"by,own"`      // who started it; nil: nobody, or nobody knows
	Digests  *StartDigests  `payload:"digests,own"` // nil: a node of the peers, which has none
}

// Check is the result of one of the checks that a role has.
type Check struct {
	Name       string `payload:"name" json:"name"`
	Status     string `payload:"status" json:"status" oneof:"passed failed skipped"`
	ExitCode   int    `payload:"exitCode,lenient" json:"exitCode"`
	DurationMs int64  `payload:"durationMs,lenient" json:"durationMs"`
	Note       string `payload:"note,optional" json:"note,omitempty"` // what a reader of the result has to know; may be empty
	// Output is the end of what it printed, redacted; empty if it printed nothing, did not run, or
	// is of a step that was written before outputs were kept.
	Output string `payload:"output,optional" json:"output,omitempty"`
}

// Step is one moderator → agent → extract cycle. Prev is nil for the first step.
type Step struct {
	Start            node.Hash   `payload:"start"`
	Prev             *node.Hash  `payload:"prev,null"`
	Role             string      `payload:"role"`
	Output           node.Hash   `payload:"output"`
	Detail           node.Hash   `payload:"detail"`
	Agent            string      `payload:"agent"`
	EdgePrompt       string      `payload:"edgePrompt,lenient"`
	StartedAtMs      int64       `payload:"startedAtMs"`
	CompletedAtMs    int64       `payload:"completedAtMs"`
	Cwd              string      `payload:"cwd"`
	AssembledPrompt  *node.Hash  `payload:"assembledPrompt,optional,null"`
	Body             *node.Hash  `payload:"body,own"`
	Usage            *Usage      `payload:"usage,own"`
	Work             *Work       `payload:"work,own"`
	PreviousAttempts []node.Hash `payload:"previousAttempts,own"`
	Run              *Run        `payload:"run,own"`
	// By is who let the step happen, by the last thing that a person did to the thread
	// since the step before; nil: nobody had to. Answer is what was said then.
	By     *By        `payload:"by,own"`
	Answer *node.Hash `payload:"answer,own"`
	// Patch, below the details, is what the step changed on the work branch.
	Patch *node.Hash `payload:"patch,own"`
	// Prepare, a string node below the details, is what was printed when the step's workspace
	// was prepared.
	Prepare *node.Hash   `payload:"prepare,own"`
	Checks  []Check      `payload:"checks,own"`
	Notes   []string     `payload:"notes,own"`   // what its agent's folder did not have, and what was not kept of it
	Counts  *Counts      `payload:"counts,own"`  // of the chain up to this step; nil: nobody has counted
	Digests *StepDigests `payload:"digests,own"` // nil: a node of the peers, which has none
}
