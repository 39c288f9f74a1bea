package thread

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas"
)

// What is done about claims, and when.
const (
	// RenewEvery is how long an agent runs between two renewals of its claim.
	RenewEvery = 4 * time.Minute
	// WatchEvery is how often a job looks whether its claim and thread are still there;
	// half as often from the time on that is watchClosely.
	WatchEvery   = 15 * time.Second
	watchClosely = 10 * time.Minute

	// claimSpare is what a claim lives longer than its job should need it.
	claimSpare = 20 * time.Minute
	// sealingTime is what is left of a claim when its agent is stopped.
	sealingTime = sealTimeout + 2*time.Minute
	// queueTime is how long each of two jobs that share a claim may wait for its runner.
	queueTime = 30 * time.Minute
	// deliveryTime is how long a delivery should take.
	deliveryTime = 20 * time.Minute
	// deedTime is how long what a person does should take.
	deedTime = time.Minute
	// standstill is how long a claim must not have moved that is dead by a guessed clock.
	standstill = 5 * time.Minute
)

// counts reports whether a claim that v shows keeps others out: it is on the thread's
// present head and alive.
func (e *Engine) counts(v *gitcas.View, c gitcas.Claim, entry gitcas.Entry) bool {
	return c.Head == entry.Head && e.alive(v, c)
}

// alive reports whether the job of a claim that v shows is to be taken for running. What
// this machine, or this run, knows for certain goes before what the claim says of itself.
func (e *Engine) alive(v *gitcas.View, c gitcas.Claim) bool {
	return e.aliveAt(c, v.Time(), v.TimeGuessed())
}

func (e *Engine) aliveAt(c gitcas.Claim, now time.Time, guessed bool) bool {
	if alive, known := e.known(c); known {
		return alive
	}
	return life.AliveAt(c, now, guessed)
}

// surelyDead reports whether a claim's job is dead by more than a guessed clock: then it need
// not stand for a while before it is taken away.
func (e *Engine) surelyDead(v *gitcas.View, c gitcas.Claim) bool {
	if alive, known := e.known(c); known {
		return !alive
	}
	return !v.TimeGuessed() && !e.alive(v, c)
}

// known reports whether a claim's job is running, where that is known without a clock.
func (e *Engine) known(c gitcas.Claim) (alive, known bool) {
	if e.knownOver(c) {
		return false, true
	}
	if w := e.Who; w.Alive != nil && !c.Ahead && c.Host == w.Host && c.Boot != "" && c.Boot == w.Boot && c.PIDNS != "" && c.PIDNS == w.PIDNS && c.Started > 0 {
		return w.Alive(c.PID, c.Started), true
	}
	return false, false
}

// knownOver reports whether a claim is one that this engine has let go, of an earlier
// attempt of this job, or of a job of this run that is known to be over. One that was made
// ahead is over with the jobs that it was made for, or where its maker was killed, that may
// never have started them.
func (e *Engine) knownOver(c gitcas.Claim) bool {
	if _, over := e.letGo.Load(c.Nonce); over && c.Nonce != "" {
		return true
	}
	if c.Ahead && c.Nonce != "" && c.Nonce == e.Who.Ahead {
		return len(e.Who.Over) > 0
	}
	if !e.sameRun(c) {
		return false
	}
	if c.Ahead {
		return c.Attempt == e.Who.Attempt && slices.Contains(e.Who.Killed, c.Job)
	}
	return c.Job == e.Who.Job && c.Attempt < e.Who.Attempt || c.Attempt == e.Who.Attempt && slices.Contains(e.Who.Over, c.Job)
}

// sameRun reports whether a claim's job belongs to this job's CI run.
func (e *Engine) sameRun(c gitcas.Claim) bool {
	run := cmp.Or(e.Who.CIRun, e.Who.Run)
	return c.Run == run || e.Who.CIRun != "" && strings.HasPrefix(c.Run, run+"-")
}

// leftBehind reports whether a claim is one of this job whose process ended before it
// could let it go.
func (e *Engine) leftBehind(v *gitcas.View, c gitcas.Claim) bool {
	return e.sameRun(c) && c.Job == e.Who.Job && !e.alive(v, c)
}

// terms are what a thread is claimed for.
type terms struct {
	purpose string        // what the claim is for; empty: a step
	work    time.Duration // how long its agent, or whoever else works, may take; 0: as long as a claim may live
	budget  task.Budget   // what its agent may use
	ahead   bool          // it is for jobs that are yet to be started
	// take, where it is not nil, takes whatever claim there is, on a person's word, which is
	// put here.
	take *gitcas.Held
}

// until is when a claim on these terms is over that is made at a time.
func (t terms) until(since time.Time) time.Time {
	stage := t.work + sealingTime + claimSpare
	if t.ahead {
		stage += 2 * queueTime
	}
	if t.work == 0 || stage > life.MaxClaim {
		stage = life.MaxClaim
	}
	return since.Add(stage)
}

// agentTime is how long the agent may run whose timeout is t (0: none), so that what it
// did is sealed and committed while the claim lives.
func (h *hold) agentTime(t time.Duration) time.Duration {
	held, _ := h.current()
	left := time.UnixMilli(held.Until).Add(-sealingTime).Sub(h.serverNow())
	if h.handsOver {
		left -= queueTime
	}
	left = max(left, time.Second)
	if t == 0 {
		return left
	}
	return min(t, left)
}
