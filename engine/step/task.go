package step

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/engine/prompt"
	"github.com/united-workforce/uwf/engine/step/conventions"
	"github.com/united-workforce/uwf/engine/step/visible"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
)

// prepareTask works out what the agent is asked to do.
func (r *agentRun) prepareTask() error {
	role := r.Def.Roles[r.plan.role]
	r.task = task.Task{
		Thread: r.ID, Role: r.plan.role, Agent: r.plan.agent, Step: r.StepNumber(),
		Start: r.Chain.StartHash, Workflow: r.Chain.Start.Workflow, WorkflowName: r.Def.Name,
		OutputSchema: role.Frontmatter, StatusKey: r.Def.StatusKeyOf(r.plan.role), Statuses: r.openStatuses(), Closed: r.approval.closed, ClosedWhy: r.approval.why,
		StatusOptional: r.Def.StatusOptional(r.plan.role) && !slices.Contains(r.approval.closed, ""),
		Suspends:       r.Def.AgentSuspends,
		EdgePrompt:     r.plan.prompt, StartPrompt: r.Chain.Start.Prompt, Cwd: r.WorkFolder(), Location: r.workLocation(),
		StartedAtMs: r.Lease.ServerTime().UnixMilli(), Model: r.e.Settings.Model(r.Def.Name, r.plan.role), Run: r.stepMaker(),
		Extract: r.e.Settings.ExtractModel(r.Def.Name, r.plan.role),
		Command: r.plan.command, Timeout: r.e.Settings.Timeout(), PreviousAttempts: r.tried.Failed, Entry: r.Entry, Definition: r.Def,
	}
	r.task.Budget = r.remainingBudget()
	if r.e.Folder != nil {
		r.task.Workspace = r.e.Folder.Dir()
	}
	r.task.Prev = r.LastStep()
	var err error
	r.task.Nodes, err = r.visibleNodes()
	return err
}

// Repository reads the commit that the work of a thread began from.
type Repository = conventions.Repository

// base is the commit that the thread's work began from; zero: it began from nothing.
func (r *agentRun) base() wire.ID { return plumbing.NewHash(r.Chain.Start.Base) }

// readRepository reads how the repository is worked on, and which files it has where they are
// shown.
func readRepository(ctx context.Context, r *agentRun, in *prompt.Input, withFiles bool) (err error) {
	if r.e.Repository == nil || r.base().IsZero() {
		return nil
	}
	in.Conventions, in.Files, err = conventions.Read(ctx, r.e.Repository, r.base(), withFiles)
	if errors.Is(err, wire.ErrNotFound) { // such as after a branch was rewritten
		r.emitNotice(fmt.Sprintf("the agent is not told the repository's conventions: commit %s, which the thread's work began from, is no longer on the remote", r.base()))
		return nil
	}
	return err
}

// assemblePrompt writes what the agent is told.
func (r *agentRun) assemblePrompt(ctx context.Context) error {
	now := r.plan.prompt
	if r.approval.note != "" {
		now = strings.TrimRight(now, "\n") + "\n\n" + r.approval.note
	}
	in := prompt.Input{
		Definition: r.Def, Role: r.plan.role, Task: r.Chain.Start.Prompt, Outside: r.Chain.Start.Trigger != nil,
		Steps: r.PromptSteps(), EdgePrompt: now, Limits: r.effectiveLimits(),
		Closed: r.approval.closed, LeftOut: workspace.DescribeLeftOut(r.leftOut), Counts: r.Chain.Counts,
	}
	if m := r.task.Model; m != nil {
		in.Window = m.Window
	}
	for need := prompt.Needs(in); need > len(in.Steps); need = prompt.Needs(in) {
		if err := r.readMore(ctx, need); err != nil {
			return err
		}
		in.Steps = r.PromptSteps()
	}
	commonFirst := r.e.CommonFirst != nil && r.e.CommonFirst(r.task.Agent)
	if err := readRepository(ctx, r, &in, commonFirst); err != nil {
		return err
	}
	if commonFirst {
		r.task.Prompt, r.task.CommonBytes = prompt.AssembleCommonFirst(in)
	} else {
		r.task.Prompt = prompt.Assemble(in)
	}
	return nil
}

// readMore reads so many of the thread's newest steps, which the agent may read, too.
func (r *agentRun) readMore(ctx context.Context, steps int) (err error) {
	if err = r.ReadTail(ctx, r.View, steps); err == nil {
		r.task.Nodes, err = r.visibleNodes()
	}
	return err
}

// visibleNodes are the nodes that the agent may read: of the thread's chain what was read of it, with
// outputs and bodies, the failed attempts at this step, the workflow, and the
// schemas of all of these.
func (r *agentRun) visibleNodes() (gitcas.Nodes, error) {
	v := visible.Begin(r.ID, r.Chain.Definition)
	shared := []node.Hash{node.MetaSchema, node.String, r.task.OutputSchema}
	for h := range r.Chain.Definition {
		shared = append(shared, r.Chain.Definition[h].Type)
	}
	v.AddNodes(gitcas.Place{}, r.Chain.Definition, shared...)
	v.AddRecord(r.In, r.Chain.StartHash)
	for _, s := range r.Chain.Steps {
		refs := []node.Hash{s.Output}
		for _, h := range []*node.Hash{s.Body, s.Answer} {
			if h != nil {
				refs = append(refs, *h)
			}
		}
		v.AddRecord(r.In, s.Hash, refs...)
	}
	if n := r.Entry.Next; n != nil && n.Answer != "" {
		own := gitcas.Place{Thread: r.ID, Of: n.Answer}
		v.AddNodes(own, r.In(own), n.Answer)
	}
	for _, h := range r.tried.Failed {
		step, err := r.tried.ReadStep(h)
		if err != nil {
			return nil, err
		}
		g, refs := r.In, []node.Hash{step.Output}
		if _, failed := r.tried.Nodes[gitcas.Place{Thread: r.ID}][h]; failed {
			g, refs = r.tried.Nodes.In, append(refs, step.Detail) // that of a step is not at hand
		}
		v.AddRecord(g, h, refs...)
	}
	return v.Nodes()
}

// workLocation is the folder of the work tree that the role works in: the edge's, else the
// thread's; empty: the top.
func (r *turn) workLocation() string {
	if cwd := r.WorkFolder(); r.plan.location == "" && cwd != "." {
		return cwd
	}
	return r.plan.location
}

// stepMaker is the job that made the step: this one, or the one whose step is brought in.
func (r *turn) stepMaker() record.Run {
	if r.brought != nil {
		return *r.brought.step.Run
	}
	return r.e.Who.RecordRun()
}

func (r *agentRun) emitNotice(text string) {
	r.e.Emit(thread.Event{Kind: "notice", Thread: r.ID, Step: r.StepNumber(), Role: r.task.Role, Text: text})
}
