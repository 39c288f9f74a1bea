package thread_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
)

// seeds is how many stories TestSimulation tells: UWF_SIM_SEEDS, else few enough
// for an ordinary test run. UWF_SIM_SEED replays one.
func seeds(t *testing.T) (from, to uint64) {
	if s := os.Getenv("UWF_SIM_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("UWF_SIM_SEED: %v", err)
		}
		return n, n + 1
	}
	if s := os.Getenv("UWF_SIM_SEEDS"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("UWF_SIM_SEEDS: %v", err)
		}
		return 1, n + 1
	}
	return 1, 101
}

// TestSimulation interleaves three jobs of one thread, another thread's commits
// and people, with everything going wrong that can; the design's invariants are
// checked after every event, and that the thread can be finished at the end.
func TestSimulation(t *testing.T) {
	from, to := seeds(t)
	var next atomic.Uint64
	next.Store(from)
	for i := range 2 { // two at a time: one for each core of a small runner
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			for seed := next.Add(1) - 1; seed < to; seed = next.Add(1) - 1 {
				simulate(t, seed)
				if t.Failed() {
					return
				}
			}
		})
	}
}

func simulate(t *testing.T, seed uint64) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, seed)
		w.begin()
		if w.delivers && w.rng.IntN(3) == 0 {
			w.toTheEnd()
		}
		for range 40 + w.rng.IntN(80) {
			w.event()
		}
		w.drain()
		w.conclude()
		w.reap()
	})
}

// begin starts the two threads, without faults.
func (w *world) begin() {
	for _, id := range []gitcas.ThreadID{w.main, w.other} {
		a := w.spawn("start", "start", 1, id, func(a *actor) {
			_, a.err = a.eng.Start(a.ctx, simStart(id))
		})
		w.openAll(a)
		if a.err != nil {
			w.fail("start: %v", a.err)
		}
	}
	w.check()
}

// openAll opens every gate for one actor until it is done.
func (w *world) openAll(a *actor) { w.openUntil(a, func() bool { return a.finished }) }

// openUntil opens every gate for one actor until something is so.
func (w *world) openUntil(a *actor, done func() bool) {
	for range 10_000 {
		if done() {
			return
		}
		opened := false
		for _, q := range w.pending() {
			if q.actor == a {
				w.open(q, proceed)
				opened = true
				break
			}
		}
		if !opened {
			w.pass(time.Second)
		}
		w.check()
	}
	w.fail("%s does not come to an end", a.name)
}

// pass lets time go by; timers that are due fire.
func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// event is one thing that happens.
func (w *world) event() {
	switch n := w.rng.IntN(100); {
	case n < 63:
		w.openOne()
	case n < 64:
		w.contend()
	case n < 66:
		w.takeAway()
	case n < 69:
		w.landLate()
	case n < 71:
		w.rescue()
	case n < 73 && w.pairEvent():
	case n < 80:
		w.startJob()
	case n < 86:
		w.pass(time.Duration(1+w.rng.IntN(50)) * time.Second)
	case n < 89:
		d := time.Duration(60+w.rng.IntN(240)) * time.Second
		w.say("%s pass", d)
		w.pass(d)
	case n == 89 && w.timeout > time.Hour && w.rng.IntN(2) == 0:
		w.calm()
	case n < 90:
		d := time.Duration(20+w.rng.IntN(40)) * time.Minute // dead claims run out
		w.say("%s pass", d)
		w.pass(d)
	case n < 92:
		w.signal()
	default:
		w.person()
	}
	w.killOverdue()
	w.check()
}

// calm is half an hour in which agents work and nobody waits for the remote, so that claims
// are renewed; then somebody comes by.
func (w *world) calm() {
	w.say("-- half an hour of calm")
	for range 2 * 30 {
		w.pass(30 * time.Second)
		for n := 0; n < 100; n++ {
			qs := slices.DeleteFunc(w.pending(), func(q *request) bool { return q.agent })
			if len(qs) == 0 {
				break
			}
			w.open(qs[0], proceed)
			w.check()
		}
	}
	w.runs++
	w.openAll(w.job(fmt.Sprintf("R%d", w.runs), 1, w.main))
}

// killOverdue kills what was told to end and has not in ten seconds.
func (w *world) killOverdue() {
	for _, a := range w.live(true) {
		if !a.killAt.IsZero() && time.Now().After(a.killAt) {
			w.say("%s: SIGKILL", a.name)
			w.kill(a)
			synctest.Wait()
		}
	}
}

// openOne opens one gate at random.
func (w *world) openOne() {
	qs := w.pending()
	if len(qs) == 0 {
		w.pass(time.Second)
		return
	}
	q := qs[w.rng.IntN(len(qs))]
	if q.finishes() && w.rng.IntN(4) == 0 {
		w.overtake(q.actor)
		return
	}
	f := proceed
	switch n := w.rng.IntN(100); {
	case n < 4:
		f = loseReply
	case n < 7:
		f = drop
	case n < 9:
		f = crash
	case n < 11:
		f = crashNow
	case n < 14 && strings.HasPrefix(q.what, "push "):
		f = late
	case n < 20 && q.what == "list":
		f = tear
	}
	w.open(q, f)
}

// startJob starts a job of the main thread, at most three at a time: a new run,
// or a re-run of one that lives or died; now and then one of the other thread.
func (w *world) startJob() {
	var mine, others int
	for _, a := range w.live(true) {
		if a.thread == w.main {
			mine++
		} else {
			others++
		}
	}
	switch {
	case others == 0 && w.rng.IntN(3) == 0:
		w.runs++
		ids := append([]gitcas.ThreadID{w.other}, w.forks...)
		w.job(fmt.Sprintf("O%d", w.runs), 1, ids[w.rng.IntN(len(ids))])
	case mine < 3 && w.rng.IntN(4) == 0 && w.runs > 0:
		w.rerun()
	case mine < 3 && w.rng.IntN(5) == 0 && w.runs > 0:
		w.sibling()
	case mine < 3:
		w.runs++
		if w.rng.IntN(4) == 0 && w.inPairs {
			w.dispatcher()
			return
		}
		if w.rng.IntN(5) == 0 {
			w.sweeper(fmt.Sprintf("S%d", w.runs))
			return
		}
		w.job(fmt.Sprintf("R%d", w.runs), 1, w.main)
	}
}

func (w *world) rerun() {
	var last *actor
	for _, a := range w.actors {
		if a.isJob && a.thread == w.main && (last == nil || a.ci != last.ci || a.attempt > last.attempt) && w.rng.IntN(2) == 0 {
			last = a
		}
	}
	if last == nil {
		return
	}
	w.job(last.ci, w.attempts(last.ci)+1, w.main)
}

// sibling starts another job of a run's matrix: equal to the first in all but its nonces.
func (w *world) sibling() {
	var jobs []*actor
	for _, a := range w.live(true) {
		if a.thread == w.main && a.job == jobStep && !strings.HasPrefix(a.ci, "S") {
			jobs = append(jobs, a)
		}
	}
	if len(jobs) == 0 {
		return
	}
	a := jobs[w.rng.IntN(len(jobs))]
	w.siblings++
	w.jobAs(fmt.Sprintf("%s+%d", a.name, w.siblings), a.ci, a.attempt, w.main)
}

// attempts is how often a run was run.
func (w *world) attempts(run string) int {
	n := 0
	for _, a := range w.actors {
		if a.isJob && a.ci == run {
			n = max(n, a.attempt)
		}
	}
	return n
}

// finishes: a job is about to push what it did, and its claim away with that.
func (q *request) finishes() bool {
	return q.actor.isJob && strings.Contains(q.what, "claims/") && strings.Contains(q.what, " heads/"+gitcas.DefaultBranch)
}

// overtake gives the claim of a job that is about to finish to a re-run, and only then
// lets the job go on: what it was to push must not happen any more.
func (w *world) overtake(late *actor) {
	a := w.job(late.ci, w.attempts(late.ci)+1, late.thread)
	w.openUntil(a, func() bool { return a.finished || w.claims(a) })
	w.openAll(late)
}

func (w *world) job(run string, attempt int, th gitcas.ThreadID) *actor {
	return w.jobAs(fmt.Sprintf("%s.%d", run, attempt), run, attempt, th)
}

func (w *world) jobAs(name, run string, attempt int, th gitcas.ThreadID) *actor {
	steps := max(1, w.rng.IntN(6)-2)
	w.say("%s starts, for %d steps", name, steps)
	return w.spawn(name, run, attempt, th, func(a *actor) {
		a.isJob = true
		w.hop(a, steps, w.dispatched(a))
	})
}

// dispatched is the head that a job is told to step, the same in all its attempts; none for
// some jobs.
func (w *world) dispatched(a *actor) node.Pin {
	if head, ok := w.told[a.ci]; ok {
		return node.Pin{Hash: head}
	}
	var head node.Hash
	if a.chance.IntN(2) == 0 {
		head = w.model.heads[a.thread]
	}
	w.told[a.ci] = head
	return node.Pin{Hash: head}
}

// hop is a job that does up to so many steps, as those that the product has do: each under
// a run of its own, with the claim that the step before has left for it.
func (w *world) hop(a *actor, steps int, expect node.Pin) {
	var held *lease.Lease
	for n := 1; ; n++ {
		var next *lease.Identity
		goOn := func() (lease.Identity, bool) {
			if n >= steps || a.ctx.Err() != nil {
				return lease.Identity{}, false
			}
			who := w.identity(a)
			who.Run = fmt.Sprintf("%s-%d", a.ci, n+1)
			next = &who
			return who, true
		}
		a.expect, a.ran = expect.Hash, false
		a.res, a.err = a.eng.Step(a.ctx, step.Request{
			Thread: a.thread, ExpectHead: expect, Deliver: w.delivers, Next: goOn, Held: held,
			Effects: func() life.Effects { return life.Effects{Comment: simComment} },
		})
		w.stepped(a)
		code := life.KindOf(a.err)
		switch {
		case a.crashed:
			return
		case a.res.Deliver && (code == life.KindNotYours || code == life.KindDone && a.rng.IntN(2) == 0):
			w.deliver(a, "")
			return
		case a.err != nil || a.res.Done || a.res.Suspended != nil:
			return
		}
		w.waitIn(a.ctx, a, "between two steps")
		if next == nil {
			goOn()
		}
		if a.crashed {
			return
		}
		if next == nil || a.ctx.Err() != nil {
			a.res.Held.Release(a.ctx)
			w.released(a)
			return
		}
		a.eng.Who, held, expect = *next, a.res.Held, a.res.Pin()
		a.run, a.made, a.kept = next.Run, nil, false
	}
}

// signal interrupts a job, as a cancelled CI job is.
func (w *world) signal() {
	jobs := w.live(true)
	if len(jobs) == 0 {
		return
	}
	a := jobs[w.rng.IntN(len(jobs))]
	w.say("%s: SIGTERM", a.name)
	if a.signaled.IsZero() {
		a.signaled = time.Now()
	}
	if w.rng.IntN(2) == 0 {
		a.killAt = time.Now().Add(10 * time.Second)
	}
	a.stop(errors.New("SIGTERM"))
	synctest.Wait()
}

// person does something to the main thread.
func (w *world) person() {
	w.people++
	name := fmt.Sprintf("person%d", w.people)
	if len(w.live(false))-len(w.live(true)) >= 2 {
		return
	}
	do := func(what string, deed func(a *actor) error) {
		w.say("%s: %s", name, what)
		w.spawn(name, name, 1, w.main, func(a *actor) {
			a.alone = what == "pause" || what == "retry" || what == "poke"
			a.err = deed(a)
		})
	}
	n := w.rng.IntN(30)
	_, claimed := w.mem.Refs()[layout.ClaimRef(w.main)]
	_, ended := w.model.ended[w.main]
	switch favour := w.rng.IntN(3) == 0; {
	case favour && ended:
		n = 20 // resume it
	case favour && !claimed && len(w.model.chains[w.main]) > 0:
		n = 10 // poke it
	}
	switch {
	case n == 29 && w.rng.IntN(2) == 0:
		do("a comment is noted", func(a *actor) error { return a.eng.Record(a.ctx, w.main, life.Effects{Comment: simComment}) })
	case n == 28 && w.rng.IntN(2) == 0:
		head := w.model.heads[w.main]
		do("the next job is refused", func(a *actor) error {
			a.heeds = true
			_, err := a.eng.SuspendAt(a.ctx, w.main, head, "refused, says "+name)
			return err
		})
	case n == 27 && w.rng.IntN(2) == 0:
		w.say("%s: takes the thread", name)
		w.spawn(name, name, 1, w.main, func(a *actor) {
			a.alone, a.takes = true, true
			a.err = a.eng.Take(a.ctx, w.main)
		})
	case n == 26 && w.rng.IntN(2) == 0:
		w.forge()
	case n == 0:
		do("cancel", func(a *actor) error { _, err := a.eng.Cancel(a.ctx, w.main, "enough"); return err })
	case n < 3:
		do("suspend", func(a *actor) error { return a.eng.Suspend(a.ctx, w.main, "wait, says "+name) })
	case n < 6:
		do("pause", func(a *actor) error { return a.eng.Pause(a.ctx, w.main, "pause, says "+name) })
	case n < 8:
		do("retry", func(a *actor) error { return a.eng.Retry(a.ctx, w.main) })
	case n < 13:
		do("poke", func(a *actor) error { return a.eng.Poke(a.ctx, w.main, "poke of "+name) })
	case n < 15:
		w.fork(name)
	case n < 16 && len(w.forks) > 0:
		id := w.forks[w.rng.IntN(len(w.forks))]
		do("cancel, then remove "+string(id), func(a *actor) error {
			_, _ = a.eng.Cancel(a.ctx, id, "not needed")
			return a.eng.Remove(a.ctx, id)
		})
	case n < 17:
		do("resume without a word", func(a *actor) error { return a.eng.Resume(a.ctx, thread.ResumeRequest{Thread: w.main}) })
	case n < 25:
		do("resume", func(a *actor) error {
			return a.eng.Resume(a.ctx, thread.ResumeRequest{Thread: w.main, Text: "answer of " + name})
		})
	default:
		w.say("%s pushes to the work branch", name)
		w.personPushes(name)
	}
}

// fork begins another thread with some steps of the main one.
func (w *world) fork(name string) {
	if len(w.forks) == 3 {
		return
	}
	id := gitcas.ThreadID(fmt.Sprintf("01JD00000000000000000001%02d", len(w.forks)))
	w.forks = append(w.forks, id)
	steps := w.rng.IntN(len(w.model.chains[w.main]) + 1)
	w.say("%s forks at step %d", name, steps)
	w.spawn(name, name, 1, w.main, func(a *actor) {
		_, a.err = a.eng.Fork(a.ctx, thread.ForkRequest{ID: id, From: w.main, Steps: steps})
	})
}

// drain lets everything that runs come to its end, without new faults.
func (w *world) drain() {
	w.chaos.Store(false)
	w.say("-- the faults end")
	for range 20_000 {
		if len(w.live(false)) == 0 {
			w.latePushes = nil // they never arrive
			return
		}
		if len(w.latePushes) > 0 && w.rng.IntN(20) == 0 {
			w.landLate()
		}
		if qs := w.pending(); len(qs) == 0 {
			w.pass(time.Second)
		} else if q := qs[w.rng.IntN(len(qs))]; q.finishes() && w.rng.IntN(8) == 0 {
			w.overtake(q.actor)
		} else {
			w.open(q, proceed)
		}
		w.check()
	}
	w.fail("the jobs do not come to an end")
}

// conclude shows that the thread is not stuck: with no more faults it ends.
func (w *world) conclude() {
	again := w.rng.IntN(3) == 0
	for i := range 40 {
		entry, alive := w.entry(w.main)
		if !alive && again && w.model.ended[w.main].Reason == gitcas.ReasonEnded {
			again = false
			a := w.spawn("reopen", "reopen", 1, w.main, func(a *actor) {
				a.err = a.eng.Resume(a.ctx, thread.ResumeRequest{Thread: w.main, Text: "once more"})
			})
			if w.openAll(a); a.err != nil {
				w.fail("it does not go on after its end: %v", a.err)
			}
			continue
		}
		if !alive {
			w.bringInLast()
			w.final()
			return
		}
		w.passClaim()
		var a *actor
		if entry.Status == gitcas.StatusSuspended {
			w.mendBranch()
			a = w.spawn(fmt.Sprintf("helper%d", i), fmt.Sprintf("helper%d", i), 1, w.main, func(a *actor) {
				a.err = a.eng.Resume(a.ctx, thread.ResumeRequest{Thread: w.main, Text: "go on"})
			})
		} else {
			a = w.job(fmt.Sprintf("Z%d", i), 1, w.main)
		}
		w.openAll(a)
		if errors.As(a.err, new(*life.ClaimedError)) {
			w.fail("%s is kept out by a claim that is over: %v", a.name, a.err)
		}
	}
	w.fail("the thread is stuck: %+v", w.lastErrors())
}

// passClaim lets the time pass until the claim that is left is over, and a little more: a
// guessed clock may be far behind.
func (w *world) passClaim() {
	id, ok := w.mem.Refs()[layout.ClaimRef(w.main)]
	if !ok {
		return
	}
	w.pass(time.Until(diesAt(w.claimOf(id), time.Now(), w.guesses)) + time.Second)
	if w.guesses {
		w.pass(20 * time.Minute)
	}
}

// bringInLast brings in what is still on the machines that last.
func (w *world) bringInLast() {
	for _, m := range w.machines {
		if len(w.onDiskOf(m, w.main)) == 0 {
			continue
		}
		name := "last on " + m.name
		a := w.spawnAs(&actor{name: name, ci: "last", run: "last", attempt: 1, job: jobStep, on: m, thread: w.main}, func(a *actor) {
			_, _, a.err = a.eng.BringIn(a.ctx, step.Request{Thread: w.main})
		})
		if w.openAll(a); a.err != nil {
			w.fail("%s: %v", name, a.err)
		}
	}
}

func (w *world) lastErrors() []string {
	var out []string
	for _, a := range w.actors[max(0, len(w.actors)-4):] {
		out = append(out, fmt.Sprintf("%s: %v", a.name, a.err))
	}
	return out
}
