package thread

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/workbranch"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/lazyregexp"
)

// plan is what the moderator wants for the next step.
type plan struct {
	role     string
	prompt   string
	location string
	agent    string // its name, and the command that runs it
	command  string
	end      bool
	suspend  string // the reason
	limit    error
}

// verdict is what the moderator makes of the new output.
type verdict struct {
	status string
	plan
}

// load reads the thread.
func (r *stepRun) load(ctx context.Context) error {
	v, err := r.e.Store.Load(ctx, r.id)
	if err != nil {
		return fmt.Errorf("read thread %s: %w", r.id, err)
	}
	r.v = v
	r.look(ctx, v)
	r.entry, _ = v.Entry(r.id)
	return nil
}

// look makes the thread's nodes findable, as a view has them.
func (r *Thread) look(ctx context.Context, v *gitcas.View) {
	r.in = func(p gitcas.Place) node.Getter { return v.In(ctx, p) }
}

// beforeClaim settles what needs no claim: threads that are gone, suspended or
// already stepped by this very run.
func (r *stepRun) beforeClaim(ctx context.Context) (bool, Result, error) {
	entry, alive := r.v.Entry(r.id)
	if !alive {
		return r.afterTheEnd(ctx)
	}
	if err := r.readChain(ctx, r.v); err != nil {
		return false, r.result(), err
	}
	if expect := r.req.ExpectHead; expect.Hash != "" && entry.Head != expect.Hash {
		if r.steppedByUs(r.e.Who.Run) {
			return true, r.report(r.result()), nil
		}
		return false, r.result(), &life.NotYoursError{Thread: r.id, Reason: fmt.Sprintf("its head is %s, not %s", entry.Head, expect.Hash)}
	}
	if err := r.sameHead(); err != nil {
		return false, r.result(), err
	}
	switch entry.Status {
	case gitcas.StatusSuspended:
		err := &life.SuspendedError{Thread: r.id}
		if entry.Suspended != nil {
			err.Role, err.Reason = entry.Suspended.Role, entry.Suspended.Reason
		}
		return false, r.result(), err
	case gitcas.StatusEnded:
		return false, r.result(), &life.NotYoursError{Thread: r.id, Reason: "it has ended"}
	}
	return false, Result{}, nil
}

// sameHead makes sure that the head is the one that the caller was told, and not another
// node of its hash. All before the head it vouches for itself, by the digests in it.
func (r *stepRun) sameHead() error {
	want := r.req.ExpectHead.Digest
	if want == "" || want == r.chain.Head {
		return nil
	}
	return &gitcas.DamagedError{
		What: gitcas.Place{Thread: r.id}.Path(r.entry.Head), Kind: gitcas.ErrContent, Err: gitcas.ErrExchanged,
		Why:     fmt.Sprintf("it is not the head that this job was told to go on from: its SHA-256 is %s, not %s; somebody exchanged it on the branch", r.chain.Head, want),
		Restore: "see what was changed, and by whom: uwf fsck --history",
	}
}

// afterTheEnd answers for a thread that is no longer on the tip.
func (r *stepRun) afterTheEnd(ctx context.Context) (bool, Result, error) {
	res := r.result()
	ended, ok, err := r.e.Store.FindEnded(ctx, r.v, r.id)
	if err != nil {
		return false, res, fmt.Errorf("look for thread %s among the ended ones: %w", r.id, err)
	}
	if !ok {
		return false, res, life.NewUnknownThreadError(r.v, r.id)
	}
	res.Head, res.Status, res.Step, res.PR = ended.Head, ended.Reason, len(ended.Steps), ended.PR
	res.Done = true
	r.tidy(ctx, ended)
	if expect := r.req.ExpectHead.Hash; expect != "" && ended.Head != expect && ended.Reason == gitcas.ReasonEnded {
		mine, err := r.endedByUs(ctx, ended)
		if err != nil {
			return false, res, err
		}
		if mine {
			return true, r.report(res), nil
		}
	}
	return false, res, &life.NotYoursError{Thread: r.id, Reason: life.DescribeEnd(ended)}
}

// tidy does, as well as it can, what a job left undone that was killed: in the
// middle of a push without atomicity, so that the work branch lags behind the end,
// or with a claim, which nobody else would delete on a thread that has ended.
func (r *stepRun) tidy(ctx context.Context, ended gitcas.Ended) {
	if workbranch.Tip(r.v, ended.Work).IsZero() {
		r.firstWork(ctx, ended)
	}
	r.e.branches().CatchUp(ctx, r.v, r.id, ended.Work)
	if held, claimed := r.v.Claim(r.id); claimed && !r.e.leases().IsAlive(r.v, held.Claim) {
		drop, _ := gitcas.ClaimUpdate(r.id, &held, nil, r.v.Time())
		_ = r.e.Store.PushRef(ctx, drop, nil) // it harms nobody
	}
}

// firstWork makes the work branch of a thread that has ended with edits, where the
// push that should have was not atomic and never came.
func (r *stepRun) firstWork(ctx context.Context, ended gitcas.Ended) {
	if r.e.Store.Atomic(r.v) || ended.Work.Commit == "" {
		return
	}
	past, err := r.e.Store.LoadEnded(ctx, r.v, ended)
	if err != nil {
		return
	}
	if chain, err := past.Chain(ctx, r.id); err != nil || chain.Start.Base == ended.Work.Commit {
		return
	}
	first := wire.RefUpdate{Name: workbranch.Ref(ended.Work.Branch), New: plumbing.NewHash(ended.Work.Commit)}
	_ = r.e.Store.PushRef(ctx, first, nil) // the attempt ref still has it
}

// endedByUs reports whether the last step of an ended thread is this run's.
func (r *stepRun) endedByUs(ctx context.Context, ended gitcas.Ended) (bool, error) {
	past, err := r.e.Store.LoadEnded(ctx, r.v, ended)
	if err != nil {
		return false, fmt.Errorf("read the ended thread %s: %w", r.id, err)
	}
	r.look(ctx, past)
	err = r.readChain(ctx, past)
	return err == nil && r.steppedByUs(r.e.Who.Run), err
}

// furtherStep is what the runs of a job's second, third … step have behind its first one's.
var furtherStep = lazyregexp.New(`^(-[0-9]{1,9})?$`)

// steppedByUs reports whether the last step is one of this job's, in whatever attempt.
func (r *Thread) steppedByUs(run string) bool {
	n := len(r.chain.Steps)
	if n == 0 || r.chain.Steps[n-1].Run == nil {
		return false
	}
	further, ours := strings.CutPrefix(r.chain.Steps[n-1].Run.ID, run)
	return ours && furtherStep.MatchString(further)
}

// report completes the result of a job that has done its step before: a re-run
// says what the first attempt said, for the effects that are still pending.
func (r *stepRun) report(res Result) Result {
	last := r.chain.Steps[len(r.chain.Steps)-1]
	res.Workflow, res.Name = r.chain.Start.Workflow, r.def.Name
	res.Role, res.Usage, res.Work = last.Role, last.Usage, last.Work
	res.Result = cmp.Or(moderator.StatusOf(r.def, r.past[len(r.past)-1]), workflow.Unit)
	res.Again = true
	res.Done = res.Done || r.entry.Status != gitcas.StatusActive && r.entry.Status != gitcas.StatusSuspended
	if r.entry.Status == gitcas.StatusActive && r.entry.Next != nil {
		res.NextRole = r.entry.Next.Role
	}
	return res
}

// readChain reads workflow, steps and outputs of the thread in v.
func (r *Thread) readChain(ctx context.Context, v *gitcas.View) error {
	chain, err := v.Chain(ctx, r.id)
	if err != nil {
		return err
	}
	r.chain = chain
	if r.def, err = workflow.FromNode(chain.Definition, chain.Start.Workflow); err != nil {
		return fmt.Errorf("workflow of thread %s: %w", r.id, err)
	}
	r.past, err = outputs(r.in, r.id, chain, len(r.def.Conditions) > 0)
	return err
}

// outputs are the steps as the moderator wants them. Only conditions look at the
// StepNodes themselves.
func outputs(in func(gitcas.Place) node.Getter, id gitcas.ThreadID, chain gitcas.Chain, withNodes bool) ([]moderator.Output, error) {
	out := make([]moderator.Output, 0, len(chain.Steps))
	for _, s := range chain.Steps {
		g := in(gitcas.Place{Thread: id, Of: s.Hash})
		n, err := g.Get(s.Output)
		if err != nil {
			return nil, fmt.Errorf("output of step %s: %w", s.Hash, err)
		}
		m, _ := n.Payload.(map[string]any)
		o := moderator.Output{Role: s.Role, Output: m}
		if s.Body != nil {
			b, err := g.Get(*s.Body)
			if err != nil {
				return nil, fmt.Errorf("body of step %s: %w", s.Hash, err)
			}
			o.Body, _ = b.Payload.(string)
		}
		if withNodes {
			step, err := in(gitcas.Place{Thread: id}).Get(s.Hash)
			if err != nil {
				return nil, fmt.Errorf("step %s: %w", s.Hash, err)
			}
			o.Node, _ = step.Payload.(map[string]any)
		}
		out = append(out, o)
	}
	return out, nil
}

// thread is what the moderator decides on: the steps so far, and further ones.
func (r *Thread) thread(more ...moderator.Output) (moderator.Thread, error) {
	t := moderator.Thread{Steps: append(slices.Clone(r.past), more...)}
	if len(r.def.Conditions) == 0 {
		return t, nil
	}
	n, err := r.in(gitcas.Place{Thread: r.id}).Get(r.chain.StartHash)
	if err != nil {
		return t, fmt.Errorf("start of the thread: %w", err)
	}
	t.Start, _ = n.Payload.(map[string]any)
	return t, nil
}

// decide asks the moderator whose turn it is, and checks the limits before
// anything costs money.
func (r *stepRun) decide(ctx context.Context) error {
	if r.entry.Pause != nil {
		r.plan = plan{role: life.WaitingRole(r.entry), suspend: r.entry.Pause.Reason}
		return nil
	}
	d, err := r.next()
	var stuck *life.StuckError
	switch {
	case errors.As(err, &stuck):
		return err
	case err != nil:
		return fmt.Errorf("thread %s: %w", r.id, err)
	}
	r.plan = planOf(d)
	if r.plan.role != "" {
		if err := r.noteApproval(); err != nil {
			return err
		}
		r.plan.agent, r.plan.command, err = r.e.Settings.Agent(r.def.Name, r.plan.role, r.req.Agent)
		if err != nil {
			return &life.UsageError{Msg: fmt.Sprintf("thread %s, role %s: %v", r.id, r.plan.role, err)}
		}
		if err := r.e.checkPrice(r.def.Name, r.plan.role, r.req.Agent, r.limits().CostUSD); err != nil {
			return err
		}
		if r.used, err = r.countUsed(ctx, r.entry.Attempts); err != nil {
			return err
		}
		r.plan.limit = r.limits().Check(r.used, r.plan.role)
	}
	return nil
}

// next asks the moderator; after a resume or a poke, with what the person said.
func (r *Thread) next() (moderator.Decision, error) {
	t, err := r.thread()
	if err != nil {
		return moderator.Decision{}, err
	}
	if r.entry.Next == nil || r.entry.Next.Answer == "" {
		return r.orStuck(moderator.Next(r.def, t))
	}
	words, err := readPendingWords(r.in, r.id, r.entry)
	if err != nil {
		return moderator.Decision{}, err
	}
	if r.entry.Next.Poked != "" {
		return r.again(t, words)
	}
	d, err := moderator.Next(r.def, t)
	if err == nil && d.Kind == moderator.End && r.def.Resume != nil && r.entry.Next.Role == r.def.Resume.To {
		return r.orStuck(moderator.Reopen(r.def, t, r.quoteWords(words)))
	}
	return r.orStuck(moderator.Resume(r.def, t, r.quoteWords(words)))
}

// orStuck makes the moderator's errors ones of the thread: what it decides on is
// stored, so that asking it again doesn't help.
func (r *Thread) orStuck(d moderator.Decision, err error) (moderator.Decision, error) {
	if err != nil {
		err = &life.StuckError{Thread: r.id, Steps: len(r.chain.Steps), Err: err}
	}
	return d, err
}

func planOf(d moderator.Decision) plan {
	switch d.Kind {
	case moderator.End:
		return plan{end: true, prompt: d.Prompt}
	case moderator.Suspend:
		return plan{suspend: d.Reason}
	}
	return plan{role: d.Role, prompt: d.Prompt, location: d.Location}
}

// ask puts the new output before the moderator, before it is committed: a status
// without an edge would leave the thread stuck.
func (r *stepRun) ask(s *sealed) (verdict, error) {
	last := moderator.Output{Role: r.task.Role, Output: s.output, Body: s.body}
	if len(r.def.Conditions) > 0 {
		// What the commit adds to the node (work commit, earlier attempts) is not
		// known yet.
		n, _, err := s.step.Node(r.lease.ServerTime())
		if err != nil {
			return verdict{}, fmt.Errorf("step node: %w", err)
		}
		last.Node, _ = n.Payload.(map[string]any)
	}
	t, err := r.thread(last)
	if err != nil {
		return verdict{}, err
	}
	d, err := moderator.Next(r.def, t)
	if err != nil {
		return verdict{}, err
	}
	if err := r.checkApproval(d); err != nil {
		return verdict{}, err
	}
	status := cmp.Or(d.Status, workflow.Unit)
	if len(d.Prompt) > maxEdgePrompt {
		return verdict{}, fmt.Errorf("the output fills the prompt of role %s with %d bytes; at most %d are passed on: write long texts to files", d.Role, len(d.Prompt), maxEdgePrompt)
	}
	return verdict{status: status, plan: planOf(d)}, nil
}

func (r *stepRun) startPrompt() string { return r.chain.Start.Prompt }
