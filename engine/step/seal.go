package step

import (
	"errors"
	"fmt"

	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/step/seal"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/view"
)

// sealed is a step whose nodes are checked, redacted and hashed anew. Only the
// StepNode itself is still open: the commit adds the work commit and the earlier
// attempts to it.
type sealed struct {
	story.Told
	step  record.Step
	nodes []gitcas.PlacedNode // their places say no more than Sealer.Nodes does
}

func (r *agentRun) newSealer(drafts map[node.Hash]node.Node) *seal.Sealer {
	return seal.New(drafts, r.task.Nodes, r.e.Redact, r.Lease.ServerTime())
}

// sealDraft checks what the agent staged against what it was asked to do and makes
// the final nodes of it. What another job sealed holds nodes of the engine's besides: how many
// there may be was checked when it was read.
func (r *agentRun) sealDraft(d task.Draft) (*sealed, error) {
	byOther := r.brought != nil || r.req.TakesOver != nil
	if !byOther && len(d.Nodes) > seal.MaxDrafts {
		return nil, fmt.Errorf("the agent staged %d nodes; at most %d are taken", len(d.Nodes), seal.MaxDrafts)
	}
	child, err := r.draftStep(d)
	if err != nil {
		return nil, err
	}
	s := r.newSealer(d.Nodes)
	out := &sealed{step: r.baseStep(d, child)}
	if out.step.Output, err = s.Node(child.Output, false); err != nil {
		return nil, fmt.Errorf("output: %w", err)
	}
	if n, err := s.Get(out.step.Output); err != nil {
		return nil, fmt.Errorf("output: %w", err)
	} else if err := r.checkOutput(n); err != nil {
		return nil, err
	}
	if child.Body != nil {
		h, err := s.Text(*child.Body)
		if err != nil {
			return nil, fmt.Errorf("body: %w", err)
		}
		out.step.Body = &h
	}
	if out.step.Detail, err = s.Node(child.Detail, true); err != nil {
		return nil, fmt.Errorf("detail: %w", err)
	}
	prompt, err := s.AddUpTo(seal.MaxPrompt, node.String, r.task.Prompt, true)
	if err != nil {
		return nil, fmt.Errorf("prompt: %w", err)
	}
	out.step.AssembledPrompt = &prompt
	if err := r.sealPrepared(s, out); err != nil {
		return nil, fmt.Errorf("what prepared the workspace: %w", err)
	}
	if out.step.EdgePrompt, err = s.Clean(out.step.EdgePrompt); err != nil {
		return nil, fmt.Errorf("edge prompt: %w", err)
	}
	out.nodes = s.Nodes()
	if err := r.sealAnswer(out); err != nil {
		return nil, err
	}
	return out, out.readBack(s)
}

// sealAnswer gives the step what people said before it.
func (r *agentRun) sealAnswer(o *sealed) error {
	next := r.Entry.Next
	if next == nil || next.Answer == "" {
		return nil
	}
	n, err := r.In(gitcas.Place{Thread: r.ID, Of: next.Answer}).Get(next.Answer)
	if err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	if o.Words, err = r.PendingWords(); err != nil {
		return err
	}
	o.step.Answer = &next.Answer
	o.nodes = append(o.nodes, gitcas.PlacedNode{Hash: next.Answer, Node: n, Place: view.NextPlace(false)})
	return nil
}

// readBack reads output and body back from the final nodes.
func (o *sealed) readBack(g node.Getter) error {
	n, err := g.Get(o.step.Output)
	if err != nil {
		return fmt.Errorf("output: %w", err)
	}
	var ok bool
	if o.Output, ok = n.Payload.(map[string]any); !ok {
		return errors.New("the output is not an object")
	}
	if o.step.Body != nil {
		if n, err = g.Get(*o.step.Body); err != nil {
			return fmt.Errorf("body: %w", err)
		}
		o.Body, _ = n.Payload.(string)
	}
	return nil
}

// draftStep finds the StepNode that the handle names and checks that it answers
// this task and no other.
func (r *agentRun) draftStep(d task.Draft) (record.Step, error) {
	n, ok := d.Nodes[d.Handle]
	if !ok {
		return record.Step{}, fmt.Errorf("the agent printed %q, which is not among the %d nodes it staged", d.Handle, len(d.Nodes))
	}
	step, err := record.ParseStep(n)
	if err != nil {
		return record.Step{}, fmt.Errorf("the agent's handle %s is no StepNode: %w", d.Handle, err)
	}
	switch {
	case step.Start != r.task.Start:
		return step, fmt.Errorf("the agent's step belongs to another thread (start %s, wanted %s)", step.Start, r.task.Start)
	case !reading.SameHash(step.Prev, r.task.Prev):
		return step, fmt.Errorf("the agent's step does not follow the thread's head (prev %s, wanted %s)", story.FormatRef(step.Prev), story.FormatRef(r.task.Prev))
	case step.Role != r.task.Role:
		return step, fmt.Errorf("the agent's step is of role %q, wanted %q", step.Role, r.task.Role)
	case step.Agent != r.task.Agent:
		return step, fmt.Errorf("the agent's step names agent %q, wanted %q", step.Agent, r.task.Agent)
	}
	return step, nil
}

// checkOutput makes sure that an output is of the type that the role is to give.
func (r *agentRun) checkOutput(o node.Node) error {
	asks := r.task.Suspends && o.Type == record.SuspendOutputSchema
	if o.Type != r.task.OutputSchema && !asks {
		return fmt.Errorf("the agent's output is of type %s, but role %q needs %s", o.Type, r.task.Role, r.task.OutputSchema)
	}
	return nil
}

// baseStep takes nothing from the child but what only it can know.
func (r *agentRun) baseStep(d task.Draft, child record.Step) record.Step {
	if r.brought != nil {
		return r.baseOfBrought()
	}
	now := r.Lease.ServerTime().UnixMilli()
	usage := r.meter.Usage()
	if usage.Turns == 0 || r.task.Model == nil && r.task.Extract != nil {
		// An agent that did not go through the gateway, or only to have its answer
		// read: what it says of itself holds both.
		usage = mostUsage(usage, addUsage(r.spent, reportedUsage(d.Usage, child.Usage)))
	}
	usage.DurationMs = max(now-r.task.StartedAtMs, 0) + max(d.Took.Milliseconds(), 0)
	usage.Model = story.ModelOf(r.task, &usage)
	run := r.stepMaker()
	var by *record.By
	if next := r.Entry.Next; next != nil {
		by = next.By
	}
	return record.Step{
		Start: r.task.Start, Prev: r.task.Prev, Role: r.task.Role, Agent: r.task.Agent,
		EdgePrompt: r.task.EdgePrompt, StartedAtMs: r.task.StartedAtMs, CompletedAtMs: max(now, r.task.StartedAtMs),
		Cwd: r.task.Cwd, Usage: &usage, Run: &run, By: by, Checks: r.checks,
	}
}

// reportedUsage is what an agent says of itself: with its handle, else in its step.
// What is less than nothing would give it room within the thread's limits.
func reportedUsage(handle record.Usage, step *record.Usage) record.Usage {
	handle.DurationMs = 0 // always measured, so it tells nothing
	if handle == (record.Usage{}) && step != nil {
		handle = *step
	}
	return record.Usage{
		Turns: max(handle.Turns, 0), InputTokens: max(handle.InputTokens, 0), OutputTokens: max(handle.OutputTokens, 0),
		CostUSD: max(handle.CostUSD, 0), Unpriced: handle.Unpriced,
	}
}

func addUsage(a, b record.Usage) record.Usage {
	return record.Usage{
		Turns: a.Turns + b.Turns, InputTokens: a.InputTokens + b.InputTokens, OutputTokens: a.OutputTokens + b.OutputTokens,
		CostUSD: a.CostUSD + b.CostUSD, Unpriced: a.Unpriced || b.Unpriced,
	}
}

func mostUsage(a, b record.Usage) record.Usage {
	return record.Usage{
		Turns: max(a.Turns, b.Turns), InputTokens: max(a.InputTokens, b.InputTokens),
		OutputTokens: max(a.OutputTokens, b.OutputTokens), CostUSD: max(a.CostUSD, b.CostUSD),
		Unpriced: a.Unpriced || b.Unpriced,
	}
}
