package step

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/engine/prompt"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/gitcas/wire"
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

// Repository reads the commit that the work of a thread began from. Agents are told of that
// one alone: the work branch is what agents wrote.
type Repository interface {
	// ReadFile reads a regular file of a commit, of at most limit bytes. Nil: the commit has
	// no such file, or it is larger.
	ReadFile(ctx context.Context, commit wire.ID, path string, limit int64) ([]byte, error)
	// ListFiles lists the regular files of a commit by their paths, sorted.
	ListFiles(ctx context.Context, commit wire.ID) ([]string, error)
	// Expect has what is needed of a commit come along with what is fetched next.
	Expect(commit wire.ID)
}

// maxConvention bounds a file with the repository's conventions, in bytes.
const maxConvention = 1 << 20

// base is the commit that the thread's work began from; zero: it began from nothing.
func (r *agentRun) base() wire.ID { return plumbing.NewHash(r.Chain.Start.Base) }

// readRepository reads how the repository is worked on, and which files it has where they are
// shown.
func (r *agentRun) readRepository(ctx context.Context, in *prompt.Input, withFiles bool) (err error) {
	base := r.base()
	if r.e.Repository == nil || base.IsZero() {
		return nil
	}
	in.Conventions, err = prompt.PickConventions(func(name string) ([]byte, error) {
		return r.e.Repository.ReadFile(ctx, base, name, maxConvention)
	})
	if err == nil && withFiles {
		in.Files, err = r.e.Repository.ListFiles(ctx, base)
	}
	if errors.Is(err, wire.ErrNotFound) { // such as after a branch was rewritten
		r.emitNotice(fmt.Sprintf("the agent is not told the repository's conventions: commit %s, which the thread's work began from, is no longer on the remote", base))
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the repository's conventions: %w", err)
	}
	return nil
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
		Closed: r.approval.closed,
	}
	if m := r.task.Model; m != nil {
		in.Window = m.Window
	}
	commonFirst := r.e.CommonFirst != nil && r.e.CommonFirst(r.task.Agent)
	if err := r.readRepository(ctx, &in, commonFirst); err != nil {
		return err
	}
	if commonFirst {
		r.task.Prompt, r.task.CommonBytes = prompt.AssembleCommonFirst(in)
	} else {
		r.task.Prompt = prompt.Assemble(in)
	}
	return nil
}

// visibleNodes are the nodes that the agent may read: the thread's chain with
// outputs and bodies, the failed attempts at this step, the workflow, and the
// schemas of all of these.
func (r *agentRun) visibleNodes() (gitcas.Nodes, error) {
	v := &visible{id: r.ID, nodes: gitcas.Nodes{{}: maps.Clone(r.Chain.Definition)}}
	shared := []node.Hash{node.MetaSchema, node.String, r.task.OutputSchema}
	for h := range r.Chain.Definition {
		shared = append(shared, r.Chain.Definition[h].Type)
	}
	v.addNodes(gitcas.Place{}, r.Chain.Definition, shared...)
	v.addRecord(r.In, r.Chain.StartHash)
	for _, s := range r.Chain.Steps {
		refs := []node.Hash{s.Output}
		for _, h := range []*node.Hash{s.Body, s.Answer} {
			if h != nil {
				refs = append(refs, *h)
			}
		}
		v.addRecord(r.In, s.Hash, refs...)
	}
	if n := r.Entry.Next; n != nil && n.Answer != "" {
		own := gitcas.Place{Thread: r.ID, Of: n.Answer}
		v.addNodes(own, r.In(own), n.Answer)
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
		v.addRecord(g, h, refs...)
	}
	return v.nodes, v.err
}

// visible are nodes that an agent may read, with their schemas; err is the first error.
type visible struct {
	id    gitcas.ThreadID
	nodes gitcas.Nodes
	err   error
}

func (v *visible) addNodes(at gitcas.Place, g node.Getter, hashes ...node.Hash) {
	for i := 0; i < len(hashes) && v.err == nil; i++ {
		h := hashes[i]
		n, shared := view.Known(h)
		if shared {
			v.nodes.Add(gitcas.Place{}, h, n)
			continue
		}
		if _, there := v.nodes[gitcas.Place{}][h]; there {
			continue
		}
		n, err := g.Get(h)
		if err != nil {
			v.err = fmt.Errorf("read node %s of thread %s: %w", h, v.id, err)
			return
		}
		v.nodes.Add(at, h, n)
		hashes = append(hashes, n.Type)
	}
}

// addRecord adds a StartNode or a StepNode, with some nodes that it refers to.
func (v *visible) addRecord(g func(gitcas.Place) node.Getter, h node.Hash, refs ...node.Hash) {
	records, own := gitcas.Place{Thread: v.id}, gitcas.Place{Thread: v.id, Of: h}
	v.addNodes(records, g(records), h)
	v.addNodes(own, g(own), refs...)
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
