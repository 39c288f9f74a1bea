package thread

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/united-workforce/uwf/engine/attempt"
	"github.com/united-workforce/uwf/engine/deadline"
	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/workbranch"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
	"github.com/united-workforce/uwf/internal/text"
)

// StepRequest names the thread to step.
type StepRequest struct {
	Thread gitcas.ThreadID
	// ExpectHead is the head that the caller was told to step; zero: any.
	ExpectHead node.Pin
	// Agent overrides the configured agent: an alias or a command line.
	Agent string
	// Deliver leaves an ended thread on the tip, for a job that delivers it.
	Deliver bool
	// Next is asked before the step is committed, and where another one follows, whether the
	// caller takes that at once, and as which job: the thread is claimed for it in the same
	// push then, see Result.Held. Nil: it doesn't.
	Next func() (lease.Identity, bool)
	// Held is the claim that the step before has left for this one; nil: there is none. It
	// is released whatever comes of the step.
	Held *lease.Lease
	// Ahead: the next step is that of jobs which the caller starts, see ClaimAhead.
	Ahead bool
	// Nonce is that of the claim which was made ahead for this step; empty: none. Where it is
	// not on the thread, and no other one, the thread is claimed as usual.
	Nonce string
	// HandsOver: what the agent leaves another job commits, so that the agent is stopped in
	// time for that.
	HandsOver bool
	// Effects is asked for what is known of the thread's comment and pull request
	// whenever its entry is written; may be nil. It may be asked more than once.
	Effects func() life.Effects
}

// Result is what a step did: the JSON of `uwf thread step`.
type Result struct {
	Workflow node.Hash       `json:"workflow"`
	Name     string          `json:"name"` // the workflow's
	Thread   gitcas.ThreadID `json:"thread"`
	Head     node.Hash       `json:"head"`
	// HeadDigest is the SHA-256 of the head; empty where it was not read.
	HeadDigest node.Digest    `json:"headDigest,omitempty"`
	Done       bool           `json:"done"`
	Status     string         `json:"status"`           // active, running, suspended, ended, cancelled, failed
	Result     string         `json:"result,omitempty"` // the step's status
	Role       string         `json:"role,omitempty"`
	NextRole   string         `json:"nextRole,omitempty"`
	Step       int            `json:"step"`
	Usage      *record.Usage  `json:"usage,omitempty"` // what the step took; of one that failed, what its attempt did
	Suspended  *SuspendedInfo `json:"suspended,omitempty"`
	Error      *StepError     `json:"error,omitempty"`
	// Work is the work branch after the step.
	Work *record.Work `json:"work,omitempty"`
	// PutBack is what the agent changed of what git obeys in its workspace (settings, hooks,
	// attributes), and was put back: a line each.
	PutBack []string `json:"putBack,omitempty"`

	// Again: this run (one of its attempts) had done it before, and did nothing now
	// but tell. What follows from it may still be to do.
	Again bool `json:"-"`
	// Deliver: the thread has ended and waits to be delivered.
	Deliver bool `json:"-"`
	// Held is this job's claim for the next step, see StepRequest.Next; nil: there is none.
	Held *lease.Lease `json:"-"`
	// Comment and PR are the thread's, as far as its entry tells; 0: not known.
	Comment int64 `json:"-"`
	PR      int   `json:"-"`
}

// Pin is the head with its digest.
func (res Result) Pin() node.Pin { return node.Pin{Hash: res.Head, Digest: res.HeadDigest} }

// StepError says why a step is not the thread's next one.
type StepError struct {
	Message string `json:"message"`
	// StepHash is the StepNode that tells of the attempt; empty: nothing of it was kept.
	StepHash node.Hash `json:"stepHash,omitempty"`
}

// stepErrorOf is an error as a Result has it; nil for none.
func stepErrorOf(err error) *StepError {
	if err == nil {
		return nil
	}
	out := &StepError{Message: err.Error()}
	var failed *life.FailedError
	if errors.As(err, &failed) {
		out.StepHash = failed.Step
	}
	return out
}

// SuspendedInfo says which role waits for a person, and why.
type SuspendedInfo struct {
	Role   string `json:"role"`
	Reason string `json:"reason"`
}

// stepRun is one run of the protocol.
type stepRun struct {
	reading.Thread // its entry as read after the claim
	e              *Engine
	req            StepRequest
	plan           plan
	used           moderator.Totals
	lease          *lease.Lease

	task     task.Task
	meter    task.Meter
	from     wire.ID // the commit that the folder was restored to
	restored bool
	snap     *workspace.Snapshot
	// unreadable: no picture of the folder can be taken. To try again takes as long.
	unreadable   bool
	putBack      []string // what the agent changed in a .git
	tried        *attempt.Ledger
	delivering   bool     // not a step: the thread's end is delivered
	closed       []string // statuses, "" for none, that only an approval opens, and there is none
	closedWhy    string
	approvalNote string             // what the role is told of that
	keptAs       map[wire.ID]string // values that this run gave its attempt ref, and what they hold
	brought      *brought           // the sealed step of another job; nil: it is this one's own
	onDisk       bool               // the sealed step is kept on this machine
	made         *record.Step       // the sealed step, from when it is pushed; another job may bring it in

	lost  *record.Usage // what this run took and led to no step
	tries int           // failed attempts at the step that count, with this run's

	stopRenewal func()
}

// Step runs one cycle of a thread. The error, if any, is one of this package's
// types, or the Store's; CodeOf gives the exit code for it. The Result is filled
// in as far as things went, also beside an error.
func (e *Engine) Step(ctx context.Context, req StepRequest) (Result, error) {
	r := newRun(e, req)
	ctx, stop := deadline.WatchInterrupt(ctx, e.Clock)
	defer stop()
	res, err := r.step(ctx)
	if err != nil {
		err = e.cleanError(err)
		res.Error = stepErrorOf(err)
		if res.Usage == nil {
			res.Usage = r.lost
		}
	}
	if e.RemoveLeftovers != nil {
		ctx, cancel := deadline.Outlive(ctx, 0, deadline.CleanupGrace)
		defer cancel()
		if lerr := e.RemoveLeftovers(ctx); lerr != nil {
			e.observe(Event{Kind: "notice", Thread: r.ID, Step: r.StepNumber(), Role: r.task.Role, Text: e.cleanError(lerr).Error()})
		}
	}
	return res, err
}

func newRun(e *Engine, req StepRequest) *stepRun {
	r := &stepRun{Thread: reading.Thread{ID: req.Thread}, e: e, req: req, keptAs: map[wire.ID]string{}}
	r.tried = attempt.NewLedger(e.Store, &r.Thread, "")
	return r
}

func (r *stepRun) step(ctx context.Context) (Result, error) {
	if r.req.Held != nil {
		r.lease = r.req.Held
		defer r.lease.Release(ctx)
	}
	if err := r.load(ctx); err != nil {
		return r.result(), err
	}
	if r.req.Held == nil { // else the step before has looked
		if res, in, err := r.bringIn(ctx); in && !res.Again || err != nil {
			return res, err
		}
	}
	if done, res, err := r.beforeClaim(ctx); done || err != nil {
		r.e.dropClaim(ctx, r.View, r.ID)
		return res, err
	}
	if err := r.decide(ctx); err != nil {
		r.e.dropClaim(ctx, r.View, r.ID)
		return r.result(), err
	}
	if !(r.req.Held != nil && r.lease.TakeUp(r.View, r.Entry, r.terms().Budget)) && !r.takeAhead() {
		v, h, err := r.e.claim(ctx, r.View, r.ID, r.terms())
		if err != nil {
			return r.refused(err), err
		}
		r.View, r.lease = v, h
		r.Entry, _ = v.Entry(r.ID)
	}
	defer r.lease.Release(ctx)
	r.lease.HandsOver = r.req.HandsOver
	r.e.observe(Event{Kind: "claimed", Thread: r.ID, Step: r.StepNumber(), Role: r.plan.role})
	return r.act(ctx)
}

// terms are those of a claim for what was decided.
func (r *stepRun) terms() lease.Terms {
	t := lease.Terms{Work: r.e.Settings.Timeout()}
	if r.plan.role != "" && r.plan.suspend == "" && r.plan.limit == nil {
		t.Budget = r.budget()
	}
	return t
}

// act does what was decided, with the claim in hand.
func (r *stepRun) act(ctx context.Context) (Result, error) {
	if err := r.countDead(ctx); err != nil {
		return r.result(), err
	}
	switch {
	case r.plan.limit != nil:
		if err := r.suspend(ctx, r.plan.limit.Error()); err != nil {
			return r.result(), err
		}
		return r.result(), &life.LimitError{Thread: r.ID, Err: r.plan.limit}
	case r.plan.end:
		return r.finish(ctx)
	case r.plan.suspend != "":
		return r.suspended(ctx, r.plan.suspend)
	}
	held, _ := r.lease.Current()
	if n := life.CountAttempts(r.Entry, r.ID, held.Died); n >= life.MaxAttempts {
		return r.suspended(ctx, tooMany(r.ID, n))
	}
	return r.work(ctx)
}

// tooMany is why a thread waits whose step failed again and again.
func tooMany(id gitcas.ThreadID, n int) string {
	return fmt.Sprintf("%d attempts at this step failed: see uwf thread show %s; try again with: %s", n, id, life.RetryCommand(id))
}

// work runs the agent and commits what it did.
func (r *stepRun) work(ctx context.Context) (Result, error) {
	if err := r.prepareTask(); err != nil {
		return r.result(), r.failed(ctx, "prepare", task.Draft{}, err)
	}
	var div *workbranch.DivergedError
	switch err := r.restore(ctx); {
	case errors.As(err, &div):
		return r.suspended(ctx, div.Error())
	case errors.As(err, new(*life.NotYoursError)):
		return r.result(), err
	case err != nil:
		return r.result(), r.failed(ctx, "workspace", task.Draft{}, err)
	}
	if err := r.enter(); err != nil {
		return r.result(), r.failed(ctx, "workspace", task.Draft{}, err)
	}
	r.e.reached("workspace")
	draft, err := r.runAgent(ctx)
	if err != nil {
		return r.result(), err
	}
	r.e.reached("agent")
	// The work is done and paid for: an interrupt no longer cuts it off at once.
	ctx, cancel := deadline.Outlive(ctx, deadline.SealTimeout, deadline.CommitGrace)
	defer cancel()
	step, err := r.seal(draft)
	if err != nil {
		return r.result(), r.failed(ctx, "seal", draft, err)
	}
	next, err := r.ask(step)
	if err != nil {
		return r.result(), r.failed(ctx, "extract", draft, err)
	}
	r.e.observe(Event{Kind: "sealed", Thread: r.ID, Step: r.StepNumber(), Role: r.task.Role, Status: next.status, Usage: *step.step.Usage})
	if r.snap, err = r.takeSnapshot(ctx, next.status, step); err != nil {
		return r.result(), r.failed(ctx, "workspace", draft, err)
	}
	r.keepOnDisk(step)
	r.sealPatch(ctx, step)
	return r.commit(ctx, draft, step, next)
}

// runAgent runs the agent while the claim is renewed beside it. Its error is the
// step's: the attempt has been kept by then.
func (r *stepRun) runAgent(ctx context.Context) (task.Draft, error) {
	agentCtx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r.lease.Budget = r.task.Budget
	r.startRenewal(ctx, stop)
	defer r.stopRenewal()

	r.e.observe(Event{Kind: "agent", Thread: r.ID, Step: r.StepNumber(), Role: r.task.Role, Agent: r.task.Agent, Text: r.task.EdgePrompt})
	r.task.Timeout = r.lease.AgentTime(r.task.Timeout)
	draft, err := r.e.Agent.Run(agentCtx, r.task, &r.meter)
	r.stopRenewal()
	r.tellPutBack(draft.PutBack)
	switch {
	case errors.Is(context.Cause(agentCtx), lease.ErrLost):
		return draft, r.yielded(ctx, "agent", draft, "it was taken over, suspended or cancelled while the agent ran")
	case err != nil && ctx.Err() != nil:
		return draft, r.failed(ctx, "agent", draft, fmt.Errorf("interrupted: %w", context.Cause(ctx)))
	case err != nil:
		return draft, r.failed(ctx, "agent", draft, err)
	}
	return draft, nil
}

// maxPutBack bounds a line of what was put back, in bytes.
const maxPutBack = 1_000

// tellPutBack tells what the agent changed of what git obeys. It may have put a secret
// even into the name of a setting.
func (r *stepRun) tellPutBack(lines []string) {
	for _, line := range lines {
		clean, _, err := r.e.Redact.Value(line)
		said, ok := clean.(string)
		if err != nil || !ok {
			said = "something that could not be checked for secrets"
		}
		said = text.Cut(text.Line(said), maxPutBack)
		r.putBack = append(r.putBack, said)
		r.e.observe(Event{Kind: "notice", Thread: r.ID, Step: r.StepNumber(), Role: r.task.Role, Text: "what git obeys in the workspace was changed by the agent, and put back: " + said})
	}
}

// startRenewal watches and renews the claim in the background until stopRenewal, which
// waits for the last renewal to be over: after it, nothing but the commit touches the
// claim.
func (r *stepRun) startRenewal(ctx context.Context, stop func(error)) {
	renewCtx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	bell := r.meter.Listen() // before the agent uses anything
	wg.Go(func() { r.lease.Watch(renewCtx, &r.meter, bell, stop) })
	r.stopRenewal = func() {
		cancel()
		wg.Wait()
		r.View = r.lease.Latest
	}
}

// refused is the result of a job that did not get the thread.
func (r *stepRun) refused(err error) Result {
	res := r.result()
	var claimed *life.ClaimedError
	if errors.As(err, &claimed) && claimed.For == "" {
		res.Status = "running"
	}
	return res
}

// result describes the thread as this run last saw it.
func (r *stepRun) result() Result {
	res := Result{PutBack: r.putBack, Thread: r.ID, Head: r.Entry.Head, Status: string(r.Entry.Status), Step: len(r.Chain.Steps), NextRole: r.plan.role}
	if r.Def != nil {
		res.Workflow, res.Name = r.Chain.Start.Workflow, r.Def.Name
	}
	if reading.HeadOf(r.Chain) == r.Entry.Head {
		res.HeadDigest = r.Chain.Head
	}
	res.tell(r.Entry)
	return res
}

// tell fills in what an entry says besides the status.
func (res *Result) tell(entry gitcas.Entry) {
	res.Comment, res.PR = entry.Comment, entry.PR
	res.Deliver = entry.Deliver && entry.Status == gitcas.StatusEnded
	res.Suspended = nil
	if s := entry.Suspended; s != nil {
		res.Suspended = &SuspendedInfo{Role: s.Role, Reason: s.Reason}
	}
}
