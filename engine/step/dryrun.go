package step

import (
	"cmp"
	"context"

	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
)

// DryRunPlan is what the next step of a thread would do.
type DryRunPlan struct {
	Workflow  node.Hash             `json:"workflow"`
	Name      string                `json:"name"` // the workflow's
	Thread    gitcas.ThreadID       `json:"thread"`
	Step      int                   `json:"step"` // the number that it would have
	Role      string                `json:"role,omitempty"`
	Agent     string                `json:"agent,omitempty"`
	Command   string                `json:"command,omitempty"`
	Model     *task.Model           `json:"model,omitempty"`
	Prompt    string                `json:"prompt,omitempty"` // assembled, whole
	Location  string                `json:"location,omitempty"`
	Done      bool                  `json:"done"` // it has ended, or would end without a step
	Suspended *thread.SuspendedInfo `json:"suspended,omitempty"`
	Limits    moderator.Limits      `json:"limits"`
	Used      moderator.Totals      `json:"used"`
}

// PlanStep works out what Step would do, by the same code. Nothing is claimed, written
// or paid. The error is the one that Step would end with before an agent runs: the
// thread waits, has ended, is worked on by somebody else, or a limit is reached. The
// DryRunPlan is filled in as far as things went, also beside an error.
func (e *Stepper) PlanStep(ctx context.Context, req Request) (DryRunPlan, error) {
	r := &agentRun{turn: newTurn(e, req)}
	err := r.dryRun(ctx)
	if err != nil {
		err = thread.CleanError(e.Redact, err)
	}
	return r.describePlan(), err
}

func (r *agentRun) dryRun(ctx context.Context) error {
	if err := r.Load(ctx); err != nil {
		return err
	}
	if _, alive := r.View.Entry(r.ID); !alive {
		_, err := r.e.Judge(ctx, r.View, r.ID, life.Step)
		r.plan.end = life.KindOf(err) == life.KindNotYours
		return err
	}
	done, _, err := r.CheckUnclaimed(ctx)
	if err != nil || done {
		return err
	}
	lacking := r.decideRole(ctx)
	if lacking != nil && (r.plan.role == "" || r.plan.agent != "") {
		return lacking
	}
	if lacking != nil {
		if err := r.countUsed(ctx, nil); err != nil {
			return err
		}
	}
	held, claimed := r.View.FindClaim(r.ID)
	if claimed && r.e.Leases().Counts(r.View, held.Claim, r.Entry) {
		return life.RefuseClaimed(life.Step, r.ID, held.Claim)
	}
	r.Lease = r.e.Leases().NewUnclaimedLease(r.View, r.ID, r.Entry)
	// The prompt does not depend on the agent's program.
	return cmp.Or(r.dryRunClaimed(ctx, held, claimed), lacking)
}

// dryRunClaimed is actOnPlan, as far as it costs nothing.
func (r *agentRun) dryRunClaimed(ctx context.Context, held gitcas.Held, claimed bool) error {
	var died []string
	if claimed && held.Head == r.Entry.Head {
		_, died = lease.RecordDeadClaim(r.View, r.ID, held, "")
		if err := r.countClaim(ctx, held.Claim, died); err != nil {
			return err
		}
	}
	n := life.CountAttempts(r.Entry, r.ID, died)
	if err := r.holdMonth(ctx, n); err != nil {
		return err
	}
	switch {
	case r.plan.limit != nil:
		return life.NewLimitError(r.ID, r.plan.limit)
	case r.plan.end:
		return nil
	case r.plan.suspend == "" && n >= life.MaxAttempts:
		r.plan.suspend = describeTooMany(n)
	}
	if r.plan.suspend != "" {
		entry := r.Entry
		life.LinkAttempts(&entry, r.ID, died)
		life.MakeWait(&entry, r.waitingRole(), r.plan.suspend, nil)
		if r.Entry.Pause != nil { // it is taken back before it holds
			entry.Suspended.Reason = life.PausedByPerson
		}
		err := life.NewWaitingError(r.ID, entry)
		err.Reason = r.plan.suspend
		return err
	}
	if err := r.prepareTask(); err != nil {
		return err
	}
	return r.assemblePrompt(ctx)
}

// countClaim adds a job that died to what was used. No attempt's ref tells of it yet.
func (r *turn) countClaim(ctx context.Context, c gitcas.Claim, died []string) error {
	if len(died) == 0 || r.plan.role == "" || r.plan.suspend != "" {
		return nil
	}
	err := r.countUsed(ctx, died)
	if err == nil && c.For == "" {
		r.used.Add(r.plan.role, life.ClaimUsage(life.ClampClaim(c)))
		r.plan.limit = r.effectiveLimits().Check(r.used, r.plan.role)
	}
	return err
}

func (r *agentRun) describePlan() DryRunPlan {
	p := DryRunPlan{
		Thread: r.ID, Step: r.StepNumber(), Role: r.plan.role, Agent: r.plan.agent, Command: r.plan.command, Location: r.workLocation(),
		Model: r.task.Model, Prompt: r.task.Prompt, Used: r.used,
		Done: r.plan.end || r.Entry.Status == gitcas.StatusEnded,
	}
	if r.Def != nil {
		p.Workflow, p.Name, p.Limits = r.Chain.Start.Workflow, r.Def.Name, r.effectiveLimits()
	}
	switch s := r.Entry.Suspended; {
	case r.Entry.Status == gitcas.StatusSuspended && s != nil:
		p.Suspended = &thread.SuspendedInfo{Role: s.Role, Reason: s.Reason}
	case r.plan.suspend != "":
		p.Suspended = &thread.SuspendedInfo{Role: r.waitingRole(), Reason: r.plan.suspend}
	}
	return p
}
