package thread_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/united-workforce/uwf/engine/attempt"
	"github.com/united-workforce/uwf/engine/deadline"
	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/engine/workbranch"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// TestAlive: who of those that left a claim is to be taken for running.
func TestAlive(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	me := lease.Identity{
		Run: "r-2", CIRun: "r", Attempt: 2, Job: "step", Over: []string{"test"}, Killed: []string{"build"}, Ahead: "ours", Host: "here", Boot: "boot", PIDNS: "pids", PID: 1,
		Alive: func(pid int, started int64) bool { return pid == 5 && started == 50 },
	}
	ago := func(d time.Duration) int64 { return now.Add(-d).UnixMilli() }
	// made is a claim as others make it: of another run, elsewhere, for an hour.
	made := func(since time.Duration, change func(c *gitcas.Claim)) gitcas.Claim {
		c := gitcas.Claim{
			Nonce: "n", Run: "x", Attempt: 1, Job: "step", Host: "there", Boot: "other", PIDNS: "pids", PID: 6, Started: 60,
			Since: ago(since), Renewed: ago(since), Until: ago(since - time.Hour),
		}
		if change != nil {
			change(&c)
		}
		return c
	}
	here := func(c *gitcas.Claim) { c.Host, c.Boot, c.PID, c.Started = "here", "boot", 5, 50 }
	of := func(run string, attempt int, job string) func(*gitcas.Claim) {
		return func(c *gitcas.Claim) { c.Run, c.Attempt, c.Job = run, attempt, job }
	}
	renewed := func(d time.Duration) func(*gitcas.Claim) {
		return func(c *gitcas.Claim) { c.Renewed, c.Until = ago(d), c.Since+life.MaxClaim.Milliseconds() }
	}
	for name, c := range map[string]struct {
		claim gitcas.Claim
		want  bool
	}{
		"just made":                          {made(0, nil), true},
		"never renewed, before its time":     {made(time.Hour-time.Second, nil), true},
		"never renewed, its time is over":    {made(time.Hour, nil), false},
		"renewed 19 minutes ago":             {made(2*time.Hour, renewed(19*time.Minute)), true},
		"renewed 21 minutes ago":             {made(2*time.Hour, renewed(21*time.Minute)), false},
		"renewed, its time is over":          {made(time.Hour, func(c *gitcas.Claim) { c.Renewed = ago(time.Minute) }), false},
		"no time said, renewed just now":     {made(time.Hour, func(c *gitcas.Claim) { c.Until, c.Renewed = 0, ago(0) }), true},
		"no time said, made 19 minutes ago":  {made(19*time.Minute, func(c *gitcas.Claim) { c.Until = 0 }), true},
		"no time said, made 21 minutes ago":  {made(21*time.Minute, func(c *gitcas.Claim) { c.Until = 0 }), false},
		"no time at all":                     {gitcas.Claim{Run: "x"}, false},
		"for six hours":                      {made(0, func(c *gitcas.Claim) { c.Until = c.Since + life.MaxClaim.Milliseconds() }), true},
		"for longer than that":               {made(0, func(c *gitcas.Claim) { c.Until = c.Since + life.MaxClaim.Milliseconds() + 1 }), false},
		"for ever":                           {made(0, func(c *gitcas.Claim) { c.Until = 1<<63 - 1 }), false},
		"renewed for ever, no time said":     {made(7*time.Hour, func(c *gitcas.Claim) { c.Until, c.Renewed = 0, 1<<63-1 }), false},
		"renewed for ever":                   {made(2*time.Hour, func(c *gitcas.Claim) { c.Renewed = 1<<63 - 1 }), false},
		"a little ahead of the server":       {made(-3*time.Minute, nil), true},
		"made in the future":                 {made(-3*time.Minute-time.Second, nil), false},
		"made at the end of time":            {made(0, func(c *gitcas.Claim) { c.Since, c.Renewed, c.Until = 1<<63-1, 1<<63-1, 1<<63-1 }), false},
		"an earlier attempt of ours":         {made(0, of("r-2", 1, "step")), false},
		"its second claim":                   {made(0, of("r-3", 1, "step")), false},
		"its run's own name":                 {made(0, of("r", 1, "step")), false},
		"our attempt, in a matrix":           {made(0, of("r-2", 2, "step")), true},
		"a later attempt of our run":         {made(0, of("r-2", 3, "step")), true},
		"an earlier attempt of another job":  {made(0, of("r-9", 1, "build")), true},
		"an earlier attempt of others":       {made(0, of("x", 1, "step")), true},
		"a run whose name begins like ours":  {made(0, of("r2-1", 1, "step")), true},
		"a job that is over":                 {made(0, of("r-8", 2, "test")), false},
		"a job of that name, before":         {made(0, of("r-8", 1, "test")), true},
		"a job of that name, elsewhere":      {made(0, of("x-8", 2, "test")), true},
		"here, its process lives":            {made(0, here), true},
		"here, its process lives very long":  {made(9*time.Hour, here), true},
		"here, its process is gone":          {made(0, func(c *gitcas.Claim) { here(c); c.PID = 6 }), false},
		"here, its pid is another's":         {made(0, func(c *gitcas.Claim) { here(c); c.Started = 51 }), false},
		"here, nobody knows since when":      {made(0, func(c *gitcas.Claim) { here(c); c.PID, c.Started = 6, 0 }), true},
		"here before the last boot":          {made(0, func(c *gitcas.Claim) { here(c); c.Boot, c.PID = "old", 6 }), true},
		"a container with this host's name":  {made(0, func(c *gitcas.Claim) { here(c); c.PIDNS, c.PID = "more", 6 }), true},
		"that container, its time is over":   {made(time.Hour, func(c *gitcas.Claim) { here(c); c.PIDNS = "more" }), false},
		"a host of the same name":            {made(0, func(c *gitcas.Claim) { here(c); c.Boot, c.PID = "", 6 }), true},
		"ahead, its maker lives or not":      {made(0, func(c *gitcas.Claim) { here(c); c.Ahead, c.PID = true, 6 }), true},
		"ahead, its time is over":            {made(time.Hour, func(c *gitcas.Claim) { c.Ahead = true }), false},
		"ahead, by a job of ours":            {made(0, func(c *gitcas.Claim) { of("r-8", 2, "test")(c); c.Ahead = true }), true},
		"ahead, by one that was killed":      {made(0, func(c *gitcas.Claim) { of("r-8", 2, "build")(c); c.Ahead = true }), false},
		"ahead, by its attempt before":       {made(0, func(c *gitcas.Claim) { of("r-8", 1, "step")(c); c.Ahead = true }), true},
		"ahead, for this run":                {made(0, func(c *gitcas.Claim) { c.Ahead, c.Nonce = true, "ours" }), false},
		"a process of that number elsewhere": {made(0, func(c *gitcas.Claim) { here(c); c.Host, c.PID = "there", 6 }), true},
	} {
		if got := (&thread.Engine{Who: me}).Leases().IsAliveAt(c.claim, now, false); got != c.want {
			t.Errorf("%s: alive %v, want %v", name, got, c.want)
		}
	}
	mine := gitcas.Claim{Run: "x", Ahead: true, Nonce: "ours", Since: ago(0), Renewed: ago(0), Until: ago(-time.Hour)}
	if !(&thread.Engine{Who: lease.Identity{Run: "r", Ahead: "ours"}}).Leases().IsAliveAt(mine, now, false) {
		t.Error("a job takes its own run's claim for dead, of which no job is over")
	}
	blind := lease.Identity{Run: "r", Attempt: 2, Host: "here"}
	if !(&thread.Engine{Who: blind}).Leases().IsAliveAt(made(0, func(c *gitcas.Claim) { c.Host, c.Boot, c.PIDNS = "here", "", "" }), now, false) {
		t.Error("a job that can't ask for processes, on a machine without a boot id, takes over a live claim")
	}
	for ahead, want := range map[time.Duration]bool{time.Hour: true, life.MaxGuessed: true, life.MaxGuessed + time.Second: false, 365 * 24 * time.Hour: false} {
		if got := (&thread.Engine{Who: me}).Leases().IsAliveAt(made(-ahead, nil), now, true); got != want {
			t.Errorf("by a clock that may be wrong, made %s ahead: alive %t, want %t", ahead, got, want)
		}
	}
}

// other is a claim of another job, renewed some time ago.
func (f *fixture) other(ago time.Duration) gitcas.Claim {
	at := time.Now().Add(-ago).UnixMilli()
	return gitcas.Claim{Nonce: newNonce(), Run: "other", Attempt: 1, Host: "there", Head: f.entry().Head, Since: at, Renewed: at}
}

func TestClaimOfAnother(t *testing.T) {
	for name, c := range map[string]struct {
		ago  time.Duration
		head bool // on the thread's head
		code life.Kind
		died int
	}{
		"alive":                 {time.Minute, true, life.KindNotYours, 0},
		"dead":                  {21 * time.Minute, true, life.KindDone, 1},
		"alive on another head": {time.Minute, false, life.KindDone, 0},
		"dead on another head":  {21 * time.Minute, false, life.KindDone, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.start()
				claim := f.other(c.ago)
				if !c.head {
					claim.Head = "0000000000001"
				}
				f.claimBy(claim)
				res, err := f.step("r1")
				text := f.code(err, c.code)
				if c.code == life.KindNotYours {
					f.says(text, "run other (attempt 1) on there is working on it")
					f.paid(0)
					if res.Status != "running" {
						f.Errorf("status %q", res.Status)
					}
					if held, ok := f.view().FindClaim(testThread); !ok || held.Run != "other" {
						f.Error("the other's claim is gone")
					}
					return
				}
				f.unclaimed()
				if _, ok := f.mem.Refs()[layout.AttemptRef(testThread, "other", 1)]; ok != (c.died > 0) {
					f.Errorf("the dead claim is kept: %v", ok)
				}
			})
		})
	}
}

// TestTornListing: a listing that shows a claim before the commit that it was pushed with
// does not cost its job the claim. One that is still for another head at the second look is
// nobody's.
func TestTornListing(t *testing.T) {
	for _, meanwhile := range []bool{false, true} { // another claim comes between the two looks
		inBubble(t, func(f *fixture) {
			f.start()
			old := f.mem.Refs()
			f.steps("r1")
			f.claimBy(f.other(0))
			n, claims := 0, 0
			f.remote.torn = func(l *wire.Listing) {
				if n++; n > 1 {
					return
				}
				for _, ref := range []string{"refs/heads/uwf-state", "refs/uwf/store"} {
					l.Refs[ref] = old[ref]
				}
				if meanwhile {
					f.claimBy(f.other(0))
				}
			}
			f.remote.setBefore(func(op string, req wire.PushRequest) error {
				if op == "push" && touches(req, "claims") {
					claims++
				}
				return nil
			})
			f.runs = nil
			_, err := f.step("r2")
			f.says(f.code(err, life.KindNotYours), "it moved on")
			f.paid(0)
			if held, ok := f.view().FindClaim(testThread); claims != 0 || !ok || held.Run != "other" {
				f.Errorf("%d pushes touched the claim, which is %+v", claims, held)
			}
		})
	}
	inBubble(t, func(f *fixture) {
		f.start()
		stale := f.other(0)
		f.steps("r1")
		f.claimBy(stale)
		n := 0
		f.remote.torn = func(*wire.Listing) {
			if n++; n == 1 {
				f.claimBy(f.other(0)) // while it is looked at, somebody claims it
			}
		}
		_, err := f.step("r2")
		f.says(f.code(err, life.KindNotYours), "run other")
	})
}

// TestClaimByGuessedClock: where nobody knows the server's clock, a claim that seems dead is
// taken only after it has not moved for five minutes; what is known without a clock needs
// none.
func TestClaimByGuessedClock(t *testing.T) {
	for name, c := range map[string]struct {
		change func(c *gitcas.Claim)
		then   func(f *fixture) // a minute later
		code   life.Kind
		waits  time.Duration
	}{
		"dead":                       {nil, nil, life.KindDone, lease.Standstill},
		"made more than a day ahead": {func(c *gitcas.Claim) { c.Since += 26 * 3600_000; c.Renewed = c.Since }, nil, life.KindDone, lease.Standstill},
		"renewed meanwhile":          {nil, func(f *fixture) { f.claimBy(f.other(0)) }, life.KindNotYours, lease.Standstill},
		"another one, dead too":      {nil, func(f *fixture) { f.claimBy(f.other(time.Hour)) }, life.KindDone, 2 * lease.Standstill},
		"gone meanwhile":             {nil, func(f *fixture) { f.mem.SetRef(layout.ClaimRef(testThread), wire.ZeroID) }, life.KindDone, lease.Standstill},
		"done meanwhile":             {nil, func(f *fixture) { f.moves() }, life.KindNotYours, lease.Standstill},
		"of an earlier attempt":      {func(c *gitcas.Claim) { c.Run = "r1" }, nil, life.KindDone, 0},
		"made by a clock far away":   {func(c *gitcas.Claim) { c.Since += 24 * 3600_000; c.Renewed = c.Since }, nil, life.KindNotYours, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.start()
				f.remote.torn = func(l *wire.Listing) { l.TimeGuessed = true }
				claim := f.other(time.Hour)
				if c.change != nil {
					c.change(&claim)
				}
				f.claimBy(claim)
				if c.then != nil {
					time.AfterFunc(time.Minute, func() { c.then(f) })
				}
				began := time.Now()
				e := f.engine("r1", 2)
				told := 0
				e.Observe = func(ev thread.Event) {
					if strings.Contains(ev.Text, "5 minutes") {
						told++
					}
				}
				_, err := e.Step(f.Context(), f.at(testThread))
				f.code(err, c.code)
				if d := time.Since(began); d != c.waits || told != int(c.waits/lease.Standstill) {
					f.Errorf("it waited for %s, and said so %d times", d, told)
				}
			})
		})
	}
}

// TestClaimLeft: of a job with several claims a re-run knows each that the first attempt
// left, on whatever head. A job of the same run and name that works at the same time is
// another one: the jobs of a matrix differ in nothing.
func TestClaimLeft(t *testing.T) {
	for name, c := range map[string]struct {
		run     string
		attempt int
		head    node.Hash
		code    life.Kind
		died    int
	}{
		"the first attempt's claim":        {"r1", 1, "", life.KindDone, 1},
		"its second claim":                 {"r1-2", 1, "", life.KindDone, 1},
		"its claim on another head":        {"r1-2", 1, "0000000000001", life.KindDone, 0},
		"a job of the same matrix":         {"r1", 2, "", life.KindNotYours, 0},
		"one of it, with a second claim":   {"r1-2", 2, "", life.KindNotYours, 0},
		"another run, as it may be called": {"r11", 1, "", life.KindNotYours, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.start()
				left := f.other(time.Minute)
				left.Run, left.Attempt, left.Job = c.run, c.attempt, "step"
				left.Head = cmp.Or(c.head, left.Head)
				f.claimBy(left)
				e := f.engine("r1", 2)
				e.Who.CIRun, e.Who.Job = "r1", "step"
				var during gitcas.Held
				answer := f.agent
				f.agent = func(ctx context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
					during, _ = f.view().FindClaim(testThread)
					return answer(ctx, t, m)
				}
				_, err := e.Step(f.Context(), f.at(testThread))
				f.code(err, c.code)
				if c.code != life.KindDone {
					f.paid(0)
					return
				}
				if during.Nonce == "" || during.Nonce == left.Nonce || during.Run != "r1" || during.Job != "step" || during.Head != f.chain().StartHash {
					f.Errorf("worked under the claim %+v", during)
				}
				if len(during.Died) != c.died {
					f.Errorf("died: %v", during.Died)
				}
				f.unclaimed()
			})
		})
	}
}

// TestClaimDropped: a job that finds nothing to do deletes what its first attempt left,
// and no other claim. What had begun on the thread's head is an attempt, and counts with what
// it used.
func TestClaimDropped(t *testing.T) {
	for name, c := range map[string]struct {
		job   string
		claim func(c *gitcas.Claim)
		left  bool // the claim is
		tries int
	}{
		"a step":                   {"step", func(*gitcas.Claim) {}, false, 1},
		"one on another head":      {"step", func(c *gitcas.Claim) { c.Head = "0000000000001" }, false, 0},
		"what a person was to do":  {"step", func(c *gitcas.Claim) { c.For = "resume" }, false, 0},
		"a step of another job":    {"other", func(*gitcas.Claim) {}, true, 0},
		"one that found one dead":  {"step", func(c *gitcas.Claim) { c.Died = []string{"r9.1"} }, false, 2},
		"a step nobody may record": {"step", func(*gitcas.Claim) {}, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.start()
				f.steps("r0")
				used := f.totals().Tokens
				claim := f.other(0)
				claim.Run, claim.Job, claim.Tokens = "r1", c.job, 5
				c.claim(&claim)
				f.claimBy(claim)
				if name == "a step nobody may record" {
					f.protect()
				}
				e := f.engine("r1", 2)
				e.Who.Job = "step"
				req := f.at(testThread)
				req.ExpectHead.Hash = "0000000000001"
				_, err := e.Step(f.Context(), req)
				f.code(err, life.KindNotYours)
				f.remote.setBefore(nil)
				if _, ok := f.view().FindClaim(testThread); ok != c.left {
					f.Errorf("the claim is there: %v", ok)
				}
				entry := f.entry()
				if n := len(entry.Attempts); n != c.tries || life.CountAttempts(entry, testThread, nil) != n {
					f.Errorf("%d attempts are linked, want %d", n, c.tries)
				}
				if c.tries > 0 {
					used += 5
				}
				if got := f.totals().Tokens; got != used {
					f.Errorf("%d tokens were used, want %d", got, used)
				}
			})
		})
	}
}

// TestClaimSaysAll: a claim says who made it and for how long, and the agent is stopped in
// time for that.
func TestClaimSaysAll(t *testing.T) {
	for timeout, want := range map[time.Duration]struct{ life, agent time.Duration }{
		0:                {life.MaxClaim, life.MaxClaim - lease.SealingTime - time.Minute},
		10 * time.Minute: {10*time.Minute + lease.SealingTime + lease.ClaimSpare, 10 * time.Minute},
		9 * time.Hour:    {life.MaxClaim, life.MaxClaim - lease.SealingTime - time.Minute},
	} {
		inBubble(t, func(f *fixture) {
			f.start()
			f.timeout = timeout
			answer := f.agent
			var c gitcas.Held
			f.agent = func(ctx context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
				c, _ = f.view().FindClaim(testThread)
				return answer(ctx, t, m)
			}
			f.hook = func(point string) {
				if point == "workspace" {
					time.Sleep(time.Minute)
				}
			}
			began := time.Now()
			e := f.engine("r1", 1)
			e.Who.Job = "step"
			_, err := e.Step(f.Context(), f.at(testThread))
			f.ok(err)
			if c.Run != "r1" || c.Job != "step" || c.PIDNS != "pids" || c.PID != 7 || c.Started != 70 || c.Since != began.UnixMilli() || c.Renewed != c.Since {
				f.Errorf("%+v", c)
			}
			if life := time.UnixMilli(c.Until).Sub(began); life != want.life {
				f.Errorf("timeout %s: the claim lives for %s", timeout, life)
			}
			if got := f.runs[0].Timeout; got != want.agent {
				f.Errorf("timeout %s: the agent has %s", timeout, got)
			}
		})
	}
}

// TestClaimIsLetGo: whatever happens after the claim was pushed, it does not stay
// when the job is over.
func TestClaimIsLetGo(t *testing.T) {
	lost := func(f *fixture, then func()) {
		done := false
		f.remote.after = func(_ string, req wire.PushRequest) error {
			if done || !touches(req, "claims") {
				return nil
			}
			done = true
			then()
			return unreachable()
		}
	}
	for name, c := range map[string]struct {
		code life.Kind
		set  func(f *fixture, cancel context.CancelCauseFunc)
	}{
		"reply lost": {life.KindDone, func(f *fixture, _ context.CancelCauseFunc) { lost(f, func() {}) }},
		"reply lost, and the thread moved on": {life.KindNotYours, func(f *fixture, _ context.CancelCauseFunc) {
			lost(f, func() { f.moves() })
		}},
		"reply lost, and the thread changed": {life.KindNotYours, func(f *fixture, _ context.CancelCauseFunc) {
			lost(f, func() { f.edit(func(e *gitcas.Entry) { e.Limits = map[string]float64{"maxSteps": 9} }) })
		}},
		"reply lost, and its pull request became known": {life.KindDone, func(f *fixture, _ context.CancelCauseFunc) {
			lost(f, func() { f.edit(func(e *gitcas.Entry) { e.PR = 7 }) })
		}},
		"reply lost, and interrupted": {life.KindFailed, func(f *fixture, cancel context.CancelCauseFunc) {
			lost(f, func() { cancel(errors.New("SIGTERM")) })
		}},
		"reply lost, and then no answer": {life.KindDone, func(f *fixture, _ context.CancelCauseFunc) {
			lost(f, func() {
				silent := 1
				f.remote.setBefore(func(op string, _ wire.PushRequest) error {
					if op == "list" && silent > 0 {
						silent--
						return unreachable()
					}
					return nil
				})
			})
		}},
		"changed between claim and re-check": {life.KindNotYours, func(f *fixture, _ context.CancelCauseFunc) {
			f.hook = func(point string) {
				if point == "claim" {
					f.edit(func(e *gitcas.Entry) { e.Status = gitcas.StatusSuspended })
				}
			}
		}},
		"no answer to the re-check": {life.KindDamaged, func(f *fixture, _ context.CancelCauseFunc) {
			f.hook = func(point string) {
				f.remote.setBefore(func(op string, _ wire.PushRequest) error {
					if op == "list" {
						return unreachable()
					}
					return nil
				})
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.start()
				ctx, cancel := context.WithCancelCause(f.Context())
				c.set(f, cancel)
				_, err := f.engine("r1", 1).Step(ctx, f.at(testThread))
				f.code(err, c.code)
				if c.code != life.KindDone {
					f.paid(0)
				}
				f.unclaimed()
			})
		})
	}
}

// moves commits a step of another job behind the engine's back.
func (f *fixture) moves() {
	f.Helper()
	c, _ := f.view().FindClaim(testThread)
	other := &fixture{T: f.T, mem: f.mem, remote: &remote{Remote: f.mem}, files: map[string]string{}, redact: noSecrets{}, host: "there"}
	other.agent = other.answer("done", "approved")
	f.mem.SetRef(layout.ClaimRef(testThread), wire.ZeroID)
	other.steps("mover")
	if !c.ID.IsZero() {
		f.mem.SetRef(layout.ClaimRef(testThread), c.ID)
	}
}

// TestClaimRaces: a claim that is lost again and again is no damage.
func TestClaimRaces(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		f.remote.setBefore(func(op string, req wire.PushRequest) error {
			if op == "push" && touches(req, "claims") {
				return &wire.RemoteError{Op: "push", URL: "memory:", Kind: wire.ErrLostRace}
			}
			return nil
		})
		_, err := f.step("r1")
		f.says(f.code(err, life.KindNotYours), "again and again")
		f.paid(0)
	})
}

// waits is an agent that works for a while, unless it is stopped.
func (f *fixture) waits(d time.Duration, meanwhile func(after time.Duration)) {
	answer := f.agent
	f.agent = func(ctx context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
		m.Add(100, 1, 0)
		for at := time.Duration(0); at < d; at += 10 * time.Second {
			select {
			case <-ctx.Done():
				return task.Draft{}, &task.AgentError{Agent: "test", Reason: "stopped", Err: context.Cause(ctx)}
			case <-time.After(10 * time.Second):
			}
			meanwhile(at + 10*time.Second)
		}
		return answer(ctx, t, m)
	}
}

// TestRenewal: a claim is renewed every four minutes while its agent runs. In between the
// job only lists its refs: each 15 seconds, from the tenth minute on each 30.
func TestRenewal(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		began := time.Now()
		var seen []string
		var pushes, lists, fetches int64
		f.waits(14*time.Minute+50*time.Second, func(after time.Duration) {
			switch c, ok := f.view().FindClaim(testThread); {
			case after == 10*time.Second:
				pushes, lists, fetches = f.remote.pushes.Load(), f.remote.lists.Load(), f.remote.fetches.Load()
			case ok && after%(2*time.Minute) == time.Minute:
				seen = append(seen, fmt.Sprintf("%.0f:%.0f/%d", after.Minutes(), time.UnixMilli(c.Renewed).Sub(began).Minutes(), c.Tokens))
			}
		})
		f.hook = func(point string) {
			if point != "agent" {
				return
			}
			// Three renewals; 40 looks in ten minutes, 9 in the rest, three of which renew.
			if n := f.remote.pushes.Load() - pushes; n != 3 {
				f.Errorf("%d pushes while the agent ran", n)
			}
			if n := f.remote.lists.Load() - lists; n != 49 {
				f.Errorf("the refs were listed %d times while the agent ran", n)
			}
			if n := f.remote.fetches.Load() - fetches; n != 0 {
				f.Errorf("%d fetches while nothing moved", n)
			}
			pushes = f.remote.pushes.Load()
		}
		f.steps("r1")
		if got := strings.Join(seen, " "); got != "1:0/0 3:0/0 5:4/101 7:4/101 9:8/101 11:8/101 13:12/101" {
			f.Errorf("the claim was renewed %s", got)
		}
		if n := f.remote.pushes.Load() - pushes; n != 1 {
			f.Errorf("the commit took %d pushes: it did not know the renewed claim", n)
		}
		f.unclaimed()
	})
}

// TestRenewalByUsage: what an agent uses is in its claim before it has begun another tenth
// of what the thread may still use, and a job that dies is charged the one begun.
func TestRenewalByUsage(t *testing.T) {
	for name, c := range map[string]struct {
		limits moderator.Limits
		tokens []int64
		cost   []float64
	}{
		"tokens": {moderator.Limits{Tokens: 1000}, []int64{100, 100, 200, 200, 400, 1001, 1001}, []float64{0, 0, 0.202, 0.202, 0.606, 2.002, 2.002}},
		"cost":   {moderator.Limits{CostUSD: 2}, []int64{0, 0, 101, 101, 303, 1001, 1001}, []float64{0.2, 0.2, 0.4, 0.4, 0.8, 2.002, 2.002}},
		"none":   {moderator.Limits{}, []int64{0, 0, 0, 0, 0, 0, 0}, []float64{0, 0, 0, 0, 0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.start()
				f.limits = c.limits
				var tokens []int64
				var cost []float64
				f.agent = func(ctx context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
					for _, use := range []int64{0, 50, 51, 2, 200, 698, 200} {
						m.Add(use, 0, float64(use)/500)
						synctest.Wait()
						held, _ := f.view().FindClaim(testThread)
						tokens, cost = append(tokens, held.Tokens), append(cost, held.CostUSD)
					}
					return f.fails(ctx, t, m)
				}
				_, err := f.step("r1")
				f.code(err, life.KindFailed)
				if !slices.Equal(tokens, c.tokens) || !slices.Equal(cost, c.cost) {
					f.Errorf("the claims say %v tokens and $%v, want %v and %v", tokens, cost, c.tokens, c.cost)
				}
			})
		})
	}
	inBubble(t, func(f *fixture) {
		f.start()
		f.limits = moderator.Limits{Tokens: 1000}
		f.agent = func(_ context.Context, _ task.Task, m *task.Meter) (task.Draft, error) {
			m.Add(250, 0, 0)
			synctest.Wait()
			f.remote.setBefore(func(string, wire.PushRequest) error { return unreachable() })
			runtime.Goexit()
			return task.Draft{}, nil
		}
		f.killedAt("", func() { _, _ = f.step("r1") })
		time.Sleep(life.MaxClaim)
		f.agent = f.answer("done", "approved")
		f.steps("r2")
		f.used(311, 0.5)
	})
}

// TestRenewalStops: what a job finds out of its claim or thread stops the agent within 45
// seconds, at any time.
func TestRenewalStops(t *testing.T) {
	for name, change := range map[string]func(f *fixture){
		"taken over": func(f *fixture) { f.claimBy(f.other(0)) },
		"taken over by a job of the same matrix": func(f *fixture) {
			c := f.other(0)
			c.Run = "r1"
			f.claimBy(c)
		},
		"suspended without seeing the claim": func(f *fixture) {
			f.edit(func(e *gitcas.Entry) {
				e.Status, e.Suspended = gitcas.StatusSuspended, &gitcas.Suspended{Role: "a", Reason: "wait"}
			})
		},
		"suspended": func(f *fixture) { f.ok(f.engine("p", 1).Suspend(f.Context(), testThread, "wait")) },
		"cancelled": func(f *fixture) {
			_, err := f.engine("p", 1).Cancel(f.Context(), testThread, "no")
			f.ok(err)
		},
		"moved on": func(f *fixture) { f.moves() },
	} {
		for _, at := range []time.Duration{10 * time.Second, 70 * time.Second, 20*time.Minute + 10*time.Second} { // never as the job looks
			t.Run(fmt.Sprint(name, " after ", at), func(t *testing.T) {
				inBubble(t, func(f *fixture) {
					f.start()
					began := time.Now()
					f.waits(time.Hour, func(after time.Duration) {
						if after == at {
							change(f)
						}
					})
					_, err := f.step("r1")
					f.code(err, life.KindNotYours)
					var notYours *life.DeedError
					if !errors.As(err, &notYours) || notYours.Kept == "" {
						f.Errorf("nothing was kept: %v", err)
					}
					if d := time.Since(began) - at; d > 45*time.Second {
						f.Errorf("the agent was stopped %s later", d)
					}
					f.attempt("r1", 1)
					if c, ok := f.view().FindClaim(testThread); ok && c.Run == "r1" && c.Host == f.host {
						f.Errorf("the claim is left: %+v; %v", c, err)
					}
				})
			})
		}
	}
}

// TestRenewalGoesOn: what does not matter to the step does not stop it, nor does a
// remote that is away for a while.
func TestRenewalGoesOn(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		var away atomic.Bool
		f.remote.setBefore(func(string, wire.PushRequest) error {
			if away.Load() {
				return unreachable()
			}
			return nil
		})
		f.waits(200*time.Second, func(after time.Duration) {
			if after == 10*time.Second {
				f.edit(func(e *gitcas.Entry) { e.Comment, e.PR = 5, 6 })
			}
			away.Store(after >= 70*time.Second && after < 130*time.Second)
		})
		f.steps("r1")
		if e := f.entry(); e.Comment != 5 || e.PR != 6 {
			f.Errorf("the entry is %+v", e)
		}
	})
}

// TestInterrupt: seven seconds after a signal the attempt is on its ref and the
// claim is gone, even when the agent takes two of them to die and the state branch
// can't be pushed to.
func TestInterrupt(t *testing.T) {
	for name, c := range map[string]struct {
		dies   time.Duration
		fault  func(since time.Duration, req wire.PushRequest) error
		linked bool
		kept   bool
	}{
		"at once":      {0, nil, true, true},
		"a slow agent": {2 * time.Second, nil, true, true},
		"a state branch that is never free": {2 * time.Second, func(_ time.Duration, req wire.PushRequest) error {
			time.Sleep(100 * time.Millisecond)
			if touches(req, "refs/heads/uwf-state") {
				return &wire.RemoteError{Op: "push", URL: "memory:", Kind: wire.ErrLostRace}
			}
			return nil
		}, false, true},
		"a remote that is away for a moment": {3 * time.Second, func(since time.Duration, _ wire.PushRequest) error {
			if since < 3900*time.Millisecond { // who is in no hurry asks again at five seconds
				return unreachable()
			}
			return nil
		}, true, true},
		"a remote that hangs": {2 * time.Second, func(time.Duration, wire.PushRequest) error { return unreachable() }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.start()
				ctx, cancel := context.WithCancelCause(f.Context())
				var signal time.Time
				f.agent = func(ctx context.Context, _ task.Task, m *task.Meter) (task.Draft, error) {
					m.Add(10, 1, 0)
					f.files["half"] = "done\n"
					f.remote.setBefore(func(op string, req wire.PushRequest) error {
						if op == "push" && c.fault != nil {
							return c.fault(time.Since(signal), req)
						}
						return nil
					})
					signal = time.Now()
					cancel(errors.New("SIGTERM"))
					time.Sleep(c.dies)
					return task.Draft{}, &task.AgentError{Agent: "test", Reason: "stopped", Err: context.Cause(ctx)}
				}
				_, err := f.engine("r1", 1).Step(ctx, f.at(testThread))
				f.says(f.code(err, life.KindFailed), "SIGTERM")
				if d := time.Since(signal); d > 7*time.Second {
					f.Errorf("it took %s", d)
				}
				f.remote.setBefore(nil)
				ref := layout.AttemptRef(testThread, "r1", 1)
				if _, ok := f.mem.Refs()[ref]; ok != c.kept {
					f.Fatalf("kept: %v", ok)
				}
				if got := len(f.entry().Attempts) == 1; got != c.linked {
					f.Errorf("linked: %v", got)
				}
				time.Sleep(life.MaxClaim)
				if n := len(f.engine("s", 1).ListPending(f.all(), time.Minute)); (n == 0) != c.linked {
					f.Errorf("%d threads are pending", n)
				}
				if c.linked {
					tries, err := attempt.ReadAll(f.Context(), f.store(), f.view(), testThread, f.entry())
					if f.ok(err); len(tries) != 1 || tries[0].Phase != life.PhaseInterrupted {
						f.Errorf("the attempts are %+v", tries)
					}
				}
				if c.kept {
					f.unclaimed()
					if f.attempt("r1", 1).WorkTree.IsZero() {
						f.Error("the folder was not kept")
					}
				}
			})
		})
	}
}

// TestInterruptAfterTheAgent: a step that is done and paid for is committed.
func TestInterruptAfterTheAgent(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		ctx, cancel := context.WithCancelCause(f.Context())
		answer := f.agent
		f.agent = func(ctx context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
			f.files["made"] = "it\n"
			d, err := answer(ctx, t, m)
			cancel(errors.New("SIGTERM"))
			return d, err
		}
		res, err := f.engine("r1", 1).Step(ctx, f.at(testThread))
		f.ok(err)
		if res.Step != 1 || res.Work == nil || len(f.chain().Steps) != 1 {
			f.Errorf("%+v", res)
		}
		f.unclaimed()
	})
}

// TestHostileClaims: what a dead claim says of itself keeps nobody from working.
func TestHostileClaims(t *testing.T) {
	for name, change := range map[string]func(*gitcas.Claim){
		"a run that is no ref":  func(c *gitcas.Claim) { c.Run = "../../heads/main ~^:\n" },
		"a long run":            func(c *gitcas.Claim) { c.Run = strings.Repeat("r", 9000) },
		"a negative attempt":    func(c *gitcas.Claim) { c.Attempt = -5 },
		"deaths that are none":  func(c *gitcas.Claim) { c.Died = []string{"../x", "a b.1", "x", "", "x.-1", "gone.1"} },
		"very many deaths":      func(c *gitcas.Claim) { c.Died = slices.Repeat([]string{"gone.1"}, 5000) },
		"all that is countable": func(c *gitcas.Claim) { c.Tokens, c.Since = 1<<62, 0; c.Renewed = 1<<63 - 1 },
		"ended before it began": func(c *gitcas.Claim) { c.Since = 1 << 62 },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.start()
				c := f.other(21 * time.Minute)
				change(&c)
				f.claimBy(c)
				f.agent = f.fails
				for _, run := range []string{"f1", "f2"} { // until it is suspended
					_, err := f.step(run)
					if code := life.KindOf(err); code != life.KindFailed && code != life.KindSuspended {
						f.Fatalf("exit code %d: %v", code, err)
					}
				}
				if f.entry().Status == gitcas.StatusActive {
					_, err := f.step("f3")
					f.code(err, life.KindSuspended)
				}
				f.ok(f.engine("p", 1).Resume(f.Context(), thread.ResumeRequest{Thread: testThread, Text: ""}))
				f.agent = f.answer("done", "approved")
				f.steps("r2", "r3")
			})
		})
	}
}

// A person who stops a step at the terminal has not seen it fail: as often as they do, the
// thread is not suspended for it. What was paid is counted, and a step that really fails
// counts as before.
func TestStoppedByAPerson(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		works := f.agent
		stop := func(run string, cause error) error {
			ctx, cancel := context.WithCancelCause(f.Context())
			f.agent = func(ctx context.Context, _ task.Task, m *task.Meter) (task.Draft, error) {
				m.Add(100, 10, 1)
				cancel(cause)
				<-ctx.Done()
				return task.Draft{}, ctx.Err()
			}
			_, err := f.engine(run, 1).Step(ctx, f.at(testThread))
			return err
		}
		for i := range 4 {
			f.says(f.code(stop(fmt.Sprint("s", i), deadline.ErrStopped), life.KindFailed), "was stopped (role a)", ": step ")
			f.unclaimed()
		}
		if e := f.entry(); e.Status != gitcas.StatusActive || len(e.Attempts) != 4 || life.CountAttempts(e, testThread, nil) != 0 || e.Next.Role != "a" {
			f.Errorf("%+v %+v", e, e.Next)
		}
		f.used(440, 4)
		f.says(f.code(f.deed("retry"), life.KindNotYours), "no failed attempt")
		f.says(f.code(stop("t0", errors.New("SIGTERM")), life.KindFailed), "failed (role a, interrupted): interrupted: SIGTERM", "try again")
		f.code(stop("s4", deadline.ErrStopped), life.KindFailed)
		f.code(stop("t1", errors.New("SIGTERM")), life.KindFailed)
		f.says(f.code(stop("t2", errors.New("SIGTERM")), life.KindFailed), "failed 3 times")
		_, err := f.step("r1")
		f.says(f.code(err, life.KindSuspended), "3 attempts")
		f.ok(f.deed("retry"))
		f.agent = works
		f.steps("r2")
		if n := len(f.chain().Steps[0].PreviousAttempts); n != 8 {
			f.Errorf("%d attempts are linked", n)
		}
		f.sound()
	})
}

// A thread whose entry says nothing of its next step gets what it needs for that.
func TestStoppedOnAShortEntry(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		f.edit(func(e *gitcas.Entry) { e.Next = nil })
		ctx, cancel := context.WithCancelCause(f.Context())
		f.agent = func(ctx context.Context, _ task.Task, _ *task.Meter) (task.Draft, error) {
			cancel(deadline.ErrStopped)
			<-ctx.Done()
			return task.Draft{}, ctx.Err()
		}
		_, err := f.engine("s", 1).Step(ctx, f.at(testThread))
		f.code(err, life.KindFailed)
		if e := f.entry(); e.Next == nil || e.Next.Role != "a" || e.Next.Forgiven != 1 {
			f.Errorf("%+v", e.Next)
		}
		f.sound()
	})
}

// worksAndLags runs two steps that change files, the second with a status, on a remote
// without atomic pushes, and puts the work branch back by a commit: as it is where the job
// died after it had pushed the state branch. It returns the branch and what it lost.
func (f *fixture) worksAndLags(last string) (string, wire.ID) {
	f.Helper()
	f.agent = func(ctx context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
		f.files["by-"+t.Role] = "x\n"
		return f.answer("done", last)(ctx, t, m)
	}
	f.start()
	f.steps("r1")
	_, err := f.stepWith("r2", 1, step.Request{Thread: testThread, Deliver: true})
	f.ok(err)
	f.runs = nil
	branch := workbranch.Ref(layout.WorkBranch(testThread))
	tip := f.mem.Refs()[branch]
	parent, err := workCommit(f, tip)
	f.ok(err)
	for _, moves := range [][]wire.RefUpdate{{{Name: branch, Old: tip}, {Name: "refs/heads/keep", New: tip}}, {{Name: branch, New: parent}}} {
		_, err = f.mem.Push(f.Context(), wire.PushRequest{Updates: moves})
		f.ok(err)
	}
	return branch, tip
}

// TestRestingBranchIsBroughtUp: a thread that a person makes rest leaves a branch behind
// that has all its commits.
func TestRestingBranchIsBroughtUp(t *testing.T) {
	for _, deed := range []string{"suspend", "pause", "cancel"} {
		t.Run(deed, func(t *testing.T) {
			bubble(t, false, func(f *fixture) {
				branch, tip := f.worksAndLags("rejected")
				f.ok(f.deed(deed))
				if at := f.mem.Refs()[branch]; at != tip {
					f.Errorf("it is at %s, want %s", at, tip)
				}
			})
		})
	}
}

// TestClaimGoneWhileBranchIsBroughtUp: what a job reads after that push tells it that its
// claim is gone, so nothing is paid for and nothing done. Whoever took the claim over may
// have brought the branch up as well.
func TestClaimGoneWhileBranchIsBroughtUp(t *testing.T) {
	for _, both := range []bool{false, true} {
		lag := func(f *fixture, last string) {
			branch, tip := f.worksAndLags(last)
			f.remote.setBefore(func(op string, req wire.PushRequest) error {
				if op == "push" && touches(req, branch) {
					f.remote.setBefore(nil)
					f.claimBy(f.other(0))
					if both {
						_, err := f.mem.Push(f.Context(), wire.PushRequest{Updates: []wire.RefUpdate{{Name: branch, Old: f.mem.Refs()[branch], New: tip}}})
						f.ok(err)
					}
				}
				return nil
			})
		}
		t.Run(fmt.Sprint("step, both ", both), func(t *testing.T) {
			bubble(t, false, func(f *fixture) {
				lag(f, "rejected")
				_, err := f.step("r3")
				f.says(f.code(err, life.KindNotYours), "while its work branch was brought up")
				f.paid(0)
			})
		})
		t.Run(fmt.Sprint("delivery, both ", both), func(t *testing.T) {
			bubble(t, false, func(f *fixture) {
				lag(f, "approved")
				_, err := f.deliverWith("d1", nil)
				f.says(f.code(err, life.KindNotYours), "while its work branch was brought up")
			})
		})
	}
}
