package thread

import (
	"context"
	"errors"
	"strings"

	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
)

// Plan is what the next step of a thread would do.
type Plan struct {
	Workflow  node.Hash        `json:"workflow"`
	Name      string           `json:"name"` // the workflow's
	Thread    gitcas.ThreadID  `json:"thread"`
	Step      int              `json:"step"` // the number that it would have
	Role      string           `json:"role,omitempty"`
	Agent     string           `json:"agent,omitempty"`
	Command   string           `json:"command,omitempty"`
	Model     *task.Model      `json:"model,omitempty"`
	Prompt    string           `json:"prompt,omitempty"` // assembled, whole
	Location  string           `json:"location,omitempty"`
	Done      bool             `json:"done"` // it has ended, or would end without a step
	Suspended *SuspendedInfo   `json:"suspended,omitempty"`
	Limits    moderator.Limits `json:"limits"`
	Used      moderator.Totals `json:"used"`
}

// Plan works out what Step would do, by the same code. Nothing is claimed, written
// or paid. The error is the one that Step would end with before an agent runs: the
// thread waits, has ended, is worked on by somebody else, or a limit is reached. The
// Plan is filled in as far as things went, also beside an error.
func (e *Engine) Plan(ctx context.Context, req StepRequest) (Plan, error) {
	r := newRun(e, req)
	err := r.foresee(ctx)
	if err != nil {
		err = e.cleanError(err)
	}
	return r.planned(), err
}

func (r *stepRun) foresee(ctx context.Context) error {
	if err := r.load(ctx); err != nil {
		return err
	}
	if _, alive := r.v.Entry(r.id); !alive {
		err := r.e.gone(ctx, r.v, r.id)
		r.plan.end = errors.As(err, new(*life.NotYoursError))
		return err
	}
	done, _, err := r.beforeClaim(ctx)
	if err != nil || done {
		return err
	}
	if err := r.decide(ctx); err != nil {
		return err
	}
	held, claimed := r.v.Claim(r.id)
	if claimed && r.e.leases().Counts(r.v, held.Claim, r.entry) {
		cause := &life.ClaimedError{Claim: held.Claim}
		return &life.NotYoursError{Thread: r.id, Reason: cause.Error(), Cause: cause}
	}
	r.lease = r.e.leases().Observe(r.v, r.id, r.entry)
	return r.foreseeAct(ctx, held, claimed)
}

// foreseeAct is act, as far as it costs nothing.
func (r *stepRun) foreseeAct(ctx context.Context, held gitcas.Held, claimed bool) error {
	var died []string
	if claimed && held.Head == r.entry.Head {
		_, died = lease.RecordDeadClaim(r.v, r.id, held, "")
		if err := r.countClaim(ctx, held.Claim, died); err != nil {
			return err
		}
	}
	switch n := life.CountAttempts(r.entry, r.id, died); {
	case r.plan.limit != nil:
		return &life.LimitError{Thread: r.id, Err: r.plan.limit, Ahead: true}
	case r.plan.end:
		return nil
	case r.plan.suspend == "" && n >= life.MaxAttempts:
		r.plan.suspend = tooMany(r.id, n)
	}
	if r.plan.suspend != "" {
		return &life.SuspendedError{Thread: r.id, Role: r.waitingRole(), Reason: r.plan.suspend, Way: r.wayAhead()}
	}
	return r.prepareTask()
}

// wayAhead is what a person does about a thread whose next step would only make it wait.
func (r *stepRun) wayAhead() string {
	name, command := life.WayOn(r.id, r.plan.suspend)
	switch {
	case r.entry.Pause != nil: // taken back before it holds
		return "let it go on with: uwf thread resume " + string(r.id)
	case strings.HasSuffix(command, life.RetryCommand(r.id)):
		return ""
	}
	return life.AdviseWait(r.id) + name + " with: " + command
}

// countClaim adds a job that died to what was used. No attempt's ref tells of it yet.
func (r *stepRun) countClaim(ctx context.Context, c gitcas.Claim, died []string) error {
	if len(died) == 0 || r.plan.role == "" || r.plan.suspend != "" {
		return nil
	}
	known := died
	if c.For == "" {
		known = died[:len(died)-1] // the last one is this claim
	}
	var err error
	if r.used, err = r.countUsed(ctx, life.AppendAttempts(r.entry.Attempts, life.DeadRefs(r.id, known)...)); err != nil {
		return err
	}
	if c.For == "" {
		r.used.Add(r.plan.role, life.ClaimUsage(life.ClampClaim(c)))
	}
	r.plan.limit = r.limits().Check(r.used, r.plan.role)
	return nil
}

func (r *stepRun) planned() Plan {
	p := Plan{
		Thread: r.id, Step: r.stepNo(), Role: r.plan.role, Agent: r.plan.agent, Command: r.plan.command, Location: r.location(),
		Model: r.task.Model, Prompt: r.task.Prompt, Used: r.used,
		Done: r.plan.end || r.entry.Status == gitcas.StatusEnded,
	}
	if r.def != nil {
		p.Workflow, p.Name, p.Limits = r.chain.Start.Workflow, r.def.Name, r.limits()
	}
	switch s := r.entry.Suspended; {
	case r.entry.Status == gitcas.StatusSuspended && s != nil:
		p.Suspended = &SuspendedInfo{Role: s.Role, Reason: s.Reason}
	case r.plan.suspend != "":
		p.Suspended = &SuspendedInfo{Role: r.waitingRole(), Reason: r.plan.suspend}
	}
	return p
}
