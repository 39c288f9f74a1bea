package thread

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/workbranch"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/wire"
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
	v, err := r.e.Store.Load(ctx, r.ID)
	if err != nil {
		return fmt.Errorf("read thread %s: %w", r.ID, err)
	}
	r.View = v
	r.LookIn(ctx, v)
	r.Entry, _ = v.Entry(r.ID)
	return nil
}

// beforeClaim settles what needs no claim: threads that are gone, suspended or
// already stepped by this very run.
func (r *stepRun) beforeClaim(ctx context.Context) (bool, Result, error) {
	entry, alive := r.View.Entry(r.ID)
	if !alive {
		return r.afterTheEnd(ctx)
	}
	if err := r.ReadChain(ctx, r.View); err != nil {
		return false, r.result(), err
	}
	if expect := r.req.ExpectHead; expect.Hash != "" && entry.Head != expect.Hash {
		if r.SteppedBy(r.e.Who.Run) {
			return true, r.report(r.result()), nil
		}
		return false, r.result(), &life.NotYoursError{Thread: r.ID, Reason: fmt.Sprintf("its head is %s, not %s", entry.Head, expect.Hash)}
	}
	if err := r.sameHead(); err != nil {
		return false, r.result(), err
	}
	switch entry.Status {
	case gitcas.StatusSuspended:
		err := &life.SuspendedError{Thread: r.ID}
		if entry.Suspended != nil {
			err.Role, err.Reason = entry.Suspended.Role, entry.Suspended.Reason
		}
		return false, r.result(), err
	case gitcas.StatusEnded:
		return false, r.result(), &life.NotYoursError{Thread: r.ID, Reason: "it has ended"}
	}
	return false, Result{}, nil
}

// sameHead makes sure that the head is the one that the caller was told, and not another
// node of its hash. All before the head it vouches for itself, by the digests in it.
func (r *stepRun) sameHead() error {
	want := r.req.ExpectHead.Digest
	if want == "" || want == r.Chain.Head {
		return nil
	}
	return &gitcas.DamagedError{
		What: gitcas.Place{Thread: r.ID}.Path(r.Entry.Head), Kind: gitcas.ErrContent, Err: gitcas.ErrExchanged,
		Why:     fmt.Sprintf("it is not the head that this job was told to go on from: its SHA-256 is %s, not %s; somebody exchanged it on the branch", r.Chain.Head, want),
		Restore: "see what was changed, and by whom: uwf fsck --history",
	}
}

// afterTheEnd answers for a thread that is no longer on the tip.
func (r *stepRun) afterTheEnd(ctx context.Context) (bool, Result, error) {
	res := r.result()
	ended, ok, err := r.e.Store.FindEnded(ctx, r.View, r.ID)
	if err != nil {
		return false, res, fmt.Errorf("look for thread %s among the ended ones: %w", r.ID, err)
	}
	if !ok {
		return false, res, life.NewUnknownThreadError(r.View, r.ID)
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
	return false, res, &life.NotYoursError{Thread: r.ID, Reason: life.DescribeEnd(ended)}
}

// tidy does, as well as it can, what a job left undone that was killed: in the
// middle of a push without atomicity, so that the work branch lags behind the end,
// or with a claim, which nobody else would delete on a thread that has ended.
func (r *stepRun) tidy(ctx context.Context, ended gitcas.Ended) {
	if workbranch.Tip(r.View, ended.Work).IsZero() {
		r.firstWork(ctx, ended)
	}
	r.e.branches().CatchUp(ctx, r.View, r.ID, ended.Work)
	if held, claimed := r.View.Claim(r.ID); claimed && !r.e.leases().IsAlive(r.View, held.Claim) {
		drop, _ := gitcas.ClaimUpdate(r.ID, &held, nil, r.View.Time())
		_ = r.e.Store.PushRef(ctx, drop, nil) // it harms nobody
	}
}

// firstWork makes the work branch of a thread that has ended with edits, where the
// push that should have was not atomic and never came.
func (r *stepRun) firstWork(ctx context.Context, ended gitcas.Ended) {
	if r.e.Store.Atomic(r.View) || ended.Work.Commit == "" {
		return
	}
	past, err := r.e.Store.LoadEnded(ctx, r.View, ended)
	if err != nil {
		return
	}
	if chain, err := past.Chain(ctx, r.ID); err != nil || chain.Start.Base == ended.Work.Commit {
		return
	}
	first := wire.RefUpdate{Name: workbranch.Ref(ended.Work.Branch), New: plumbing.NewHash(ended.Work.Commit)}
	_ = r.e.Store.PushRef(ctx, first, nil) // the attempt ref still has it
}

// endedByUs reports whether the last step of an ended thread is this run's.
func (r *stepRun) endedByUs(ctx context.Context, ended gitcas.Ended) (bool, error) {
	past, err := r.e.Store.LoadEnded(ctx, r.View, ended)
	if err != nil {
		return false, fmt.Errorf("read the ended thread %s: %w", r.ID, err)
	}
	r.LookIn(ctx, past)
	err = r.ReadChain(ctx, past)
	return err == nil && r.SteppedBy(r.e.Who.Run), err
}

// report completes the result of a job that has done its step before: a re-run
// says what the first attempt said, for the effects that are still pending.
func (r *stepRun) report(res Result) Result {
	last := r.Chain.Steps[len(r.Chain.Steps)-1]
	res.Workflow, res.Name = r.Chain.Start.Workflow, r.Def.Name
	res.Role, res.Usage, res.Work = last.Role, last.Usage, last.Work
	res.Result = cmp.Or(moderator.StatusOf(r.Def, r.Past[len(r.Past)-1]), workflow.Unit)
	res.Again = true
	res.Done = res.Done || r.Entry.Status != gitcas.StatusActive && r.Entry.Status != gitcas.StatusSuspended
	if r.Entry.Status == gitcas.StatusActive && r.Entry.Next != nil {
		res.NextRole = r.Entry.Next.Role
	}
	return res
}

// decide asks the moderator whose turn it is, and checks the limits before
// anything costs money.
func (r *stepRun) decide(ctx context.Context) error {
	if r.Entry.Pause != nil {
		r.plan = plan{role: life.WaitingRole(r.Entry), suspend: r.Entry.Pause.Reason}
		return nil
	}
	d, err := r.DecideNext()
	var stuck *life.StuckError
	switch {
	case errors.As(err, &stuck):
		return err
	case err != nil:
		return fmt.Errorf("thread %s: %w", r.ID, err)
	}
	r.plan = planOf(d)
	if r.plan.role != "" {
		if err := r.noteApproval(); err != nil {
			return err
		}
		r.plan.agent, r.plan.command, err = r.e.Settings.Agent(r.Def.Name, r.plan.role, r.req.Agent)
		if err != nil {
			return &life.UsageError{Msg: fmt.Sprintf("thread %s, role %s: %v", r.ID, r.plan.role, err)}
		}
		if err := r.e.checkPrice(r.Def.Name, r.plan.role, r.req.Agent, r.limits().CostUSD); err != nil {
			return err
		}
		if r.used, err = r.countUsed(ctx, r.Entry.Attempts); err != nil {
			return err
		}
		r.plan.limit = r.limits().Check(r.used, r.plan.role)
	}
	return nil
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
	last := moderator.Output{Role: r.task.Role, Output: s.Output, Body: s.Body}
	if len(r.Def.Conditions) > 0 {
		// What the commit adds to the node (work commit, earlier attempts) is not
		// known yet.
		n, _, err := s.step.Node(r.lease.ServerTime())
		if err != nil {
			return verdict{}, fmt.Errorf("step node: %w", err)
		}
		last.Node, _ = n.Payload.(map[string]any)
	}
	t, err := r.ModeratorThread(last)
	if err != nil {
		return verdict{}, err
	}
	d, err := moderator.Next(r.Def, t)
	if err != nil {
		return verdict{}, err
	}
	if err := r.checkApproval(d); err != nil {
		return verdict{}, err
	}
	status := cmp.Or(d.Status, workflow.Unit)
	if len(d.Prompt) > reading.MaxPrompt {
		return verdict{}, fmt.Errorf("the output fills the prompt of role %s with %d bytes; at most %d are passed on: write long texts to files", d.Role, len(d.Prompt), reading.MaxPrompt)
	}
	return verdict{status: status, plan: planOf(d)}, nil
}

func (r *stepRun) startPrompt() string { return r.Chain.Start.Prompt }
