package thread

import (
	"context"
	"fmt"

	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/prompt"
	"github.com/united-workforce/uwf/engine/thread/seal"
	"github.com/united-workforce/uwf/gitcas/node"
)

// prepareTask works out what the agent is asked to do.
func (r *stepRun) prepareTask(ctx context.Context) error {
	role := r.def.Roles[r.plan.role]
	r.task = Task{
		Thread: r.id, Role: r.plan.role, Agent: r.plan.agent, Step: r.stepNo(),
		Start: r.chain.StartHash, Workflow: r.chain.Start.Workflow, WorkflowName: r.def.Name,
		OutputSchema: role.Frontmatter, StatusKey: r.def.StatusKeyOf(r.plan.role), Statuses: r.def.Statuses(r.plan.role),
		StatusOptional: r.def.StatusOptional(r.plan.role),
		Suspends:       r.def.AgentSuspends,
		EdgePrompt:     r.plan.prompt, StartPrompt: r.startPrompt(), Cwd: ".", Location: r.plan.location,
		StartedAtMs: r.hold.serverNow().UnixMilli(), Model: r.e.Settings.Model(r.def.Name, r.plan.role), Run: r.e.run(),
		Extract: r.e.Settings.ExtractModel(r.def.Name, r.plan.role),
		Command: r.plan.command, Timeout: r.e.Settings.Timeout(), PreviousAttempts: r.failedBefore, Entry: r.entry, Definition: r.def,
	}
	r.task.Budget = r.budget()
	if r.e.Folder != nil {
		r.task.Workspace = r.e.Folder.Dir()
	}
	r.task.Prev = r.lastStep()
	r.task.Prompt = r.assemble()
	var err error
	r.task.Nodes, err = r.visible(ctx)
	return err
}

func (r *stepRun) assemble() string {
	in := prompt.Input{
		Definition: r.def, Role: r.plan.role, Task: r.startPrompt(), Outside: r.chain.Start.Trigger != nil,
		Fence: r.e.Fence(), Steps: r.history(), EdgePrompt: r.plan.prompt, Limits: r.limits(),
	}
	if m := r.task.Model; m != nil {
		in.Window = m.Window
	}
	return prompt.Assemble(in)
}

func (r *stepRun) history() []prompt.Step {
	out := make([]prompt.Step, len(r.past))
	for i, p := range r.past {
		out[i] = prompt.Step{Role: p.Role, Status: moderator.StatusOf(r.def, p), Output: p.Output, Body: p.Body}
	}
	return out
}

// visible are the nodes that the agent may read: the thread's chain with
// outputs and bodies, the failed attempts at this step, the workflow, and the
// schemas of all of these.
func (r *stepRun) visible(ctx context.Context) (map[node.Hash]node.Node, error) {
	hashes := []node.Hash{r.chain.StartHash, r.chain.Start.Workflow, node.MetaSchema, node.String, r.task.OutputSchema}
	for _, s := range r.chain.Steps {
		hashes = append(hashes, s.Hash, s.Output)
		if s.Body != nil {
			hashes = append(hashes, *s.Body)
		}
	}
	for _, h := range r.failedBefore {
		step, err := r.earlier(h)
		if err != nil {
			return nil, err
		}
		hashes = append(hashes, h, step.Output)
		if _, failed := r.attemptNodes[h]; failed {
			hashes = append(hashes, step.Detail) // that of a step is not at hand
		}
	}
	g := seal.Overlay{First: r.attemptNodes, Then: r.v.Getter(ctx)}
	out := make(map[node.Hash]node.Node, 2*len(hashes))
	for i := 0; i < len(hashes); i++ {
		h := hashes[i]
		if _, ok := out[h]; ok {
			continue
		}
		n, err := g.Get(h)
		if err != nil {
			return nil, fmt.Errorf("read node %s of thread %s: %w", h, r.id, err)
		}
		out[h] = n
		hashes = append(hashes, n.Type)
	}
	return out, nil
}

// budget is what the limits leave for the next step. The limits were checked
// before, so what is left is more than nothing.
func (r *stepRun) budget() Budget {
	l := r.limits()
	var b Budget
	if l.Tokens > 0 {
		b.Tokens = max(l.Tokens-r.used.Tokens, 1)
	}
	if l.CostUSD > 0 {
		b.CostUSD = l.CostUSD - r.used.CostUSD
	}
	return b
}
