package thread

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/wire"
)

func TestAlive(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	me := Identity{Run: "r", Attempt: 2, Host: "here", Boot: "boot", PID: 1, Alive: func(pid int) bool { return pid == 5 }}
	ago := func(d time.Duration) int64 { return now.Add(-d).UnixMilli() }
	for name, c := range map[string]struct {
		claim gitcas.Claim
		want  bool
	}{
		"just renewed":                  {gitcas.Claim{Run: "x", Renewed: ago(0)}, true},
		"renewed 2:59 ago":              {gitcas.Claim{Run: "x", Renewed: ago(ClaimLife - time.Second)}, true},
		"renewed 3:00 ago":              {gitcas.Claim{Run: "x", Renewed: ago(ClaimLife)}, false},
		"long ago":                      {gitcas.Claim{Run: "x"}, false},
		"a little ahead of the server":  {gitcas.Claim{Run: "x", Renewed: ago(-2 * time.Second)}, true},
		"far in the future":             {gitcas.Claim{Run: "x", Renewed: ago(-24 * time.Hour)}, false},
		"at the end of time":            {gitcas.Claim{Run: "x", Renewed: 1<<63 - 1}, false},
		"an earlier attempt of ours":    {gitcas.Claim{Run: "r", Attempt: 1, Renewed: ago(0)}, false},
		"a later attempt of our run":    {gitcas.Claim{Run: "r", Attempt: 3, Renewed: ago(0)}, true},
		"a dead one of a later attempt": {gitcas.Claim{Run: "r", Attempt: 3, Renewed: ago(time.Hour)}, false},
		"an earlier attempt of others":  {gitcas.Claim{Run: "x", Attempt: 1, Renewed: ago(0)}, true},
		"here, its process lives":       {gitcas.Claim{Run: "x", Host: "here", Boot: "boot", PID: 5, Renewed: ago(0)}, true},
		"here, its process is gone":     {gitcas.Claim{Run: "x", Host: "here", Boot: "boot", PID: 6, Renewed: ago(0)}, false},
		"here before the last boot":     {gitcas.Claim{Run: "x", Host: "here", Boot: "old", PID: 6, Renewed: ago(0)}, true},
		"a host of the same name":       {gitcas.Claim{Run: "x", Host: "here", PID: 6, Renewed: ago(0)}, true},
		"elsewhere":                     {gitcas.Claim{Run: "x", Host: "there", Boot: "boot", PID: 6, Renewed: ago(0)}, true},
	} {
		if got := (&Engine{Who: me}).alive(c.claim, now); got != c.want {
			t.Errorf("%s: alive %v, want %v", name, got, c.want)
		}
	}
	blind := Identity{Run: "r", Attempt: 2, Host: "here"}
	if !(&Engine{Who: blind}).alive(gitcas.Claim{Run: "x", Host: "here", PID: 6, Renewed: ago(0)}, now) {
		t.Error("a job that can't ask for processes, on a machine without a boot id, takes over a live claim")
	}
}

// other is a claim of another job, renewed some time ago.
func (f *fixture) other(ago time.Duration) gitcas.Claim {
	at := time.Now().Add(-ago).UnixMilli()
	return gitcas.Claim{Run: "other", Attempt: 1, Host: "there", Head: f.entry().Head, Since: at, Renewed: at}
}

func TestClaimOfAnother(t *testing.T) {
	for name, c := range map[string]struct {
		ago  time.Duration
		head bool // on the thread's head
		code Code
		died int
	}{
		"alive":                 {time.Minute, true, CodeNotYours, 0},
		"dead":                  {4 * time.Minute, true, CodeOK, 1},
		"alive on another head": {time.Minute, false, CodeOK, 0},
		"dead on another head":  {4 * time.Minute, false, CodeOK, 0},
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
				if c.code == CodeNotYours {
					f.says(text, "run other (attempt 1) on there is working on it")
					f.paid(0)
					if res.Status != "running" {
						f.Errorf("status %q", res.Status)
					}
					if held, ok := f.view().Claim(testThread); !ok || held.Run != "other" {
						f.Error("the other's claim is gone")
					}
					return
				}
				f.unclaimed()
				if _, ok := f.mem.Refs()[gitcas.AttemptRef(testThread, "other", 1)]; ok != (c.died > 0) {
					f.Errorf("the dead claim is kept: %v", ok)
				}
			})
		})
	}
}

// TestClaimLeft: a claim that the same run and attempt left behind is its own, on
// whatever head it was made.
func TestClaimLeft(t *testing.T) {
	for _, head := range []string{"", "0000000000001"} {
		inBubble(t, func(f *fixture) {
			f.start()
			c := f.other(time.Minute)
			c.Run = "r1"
			if head != "" {
				c.Head = "0000000000001"
			}
			f.claimBy(c)
			var during gitcas.Held
			answer := f.agent
			f.agent = func(ctx context.Context, t Task, m *Meter) (Draft, error) {
				during, _ = f.view().Claim(testThread)
				return answer(ctx, t, m)
			}
			f.steps("r1")
			if during.Run != "r1" || during.Head != f.chain().StartHash {
				f.Errorf("worked under the claim %+v", during)
			}
			f.unclaimed()
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
		code Code
		set  func(f *fixture, cancel context.CancelCauseFunc)
	}{
		"reply lost": {CodeOK, func(f *fixture, _ context.CancelCauseFunc) { lost(f, func() {}) }},
		"reply lost, and the thread moved on": {CodeNotYours, func(f *fixture, _ context.CancelCauseFunc) {
			lost(f, func() { f.moves() })
		}},
		"reply lost, and the thread changed": {CodeNotYours, func(f *fixture, _ context.CancelCauseFunc) {
			lost(f, func() { f.edit(func(e *gitcas.Entry) { e.Limits = map[string]float64{"maxSteps": 9} }) })
		}},
		"reply lost, and its pull request became known": {CodeOK, func(f *fixture, _ context.CancelCauseFunc) {
			lost(f, func() { f.edit(func(e *gitcas.Entry) { e.PR = 7 }) })
		}},
		"reply lost, and interrupted": {CodeFailed, func(f *fixture, cancel context.CancelCauseFunc) {
			lost(f, func() { cancel(errors.New("SIGTERM")) })
		}},
		"reply lost, and then no answer": {CodeOK, func(f *fixture, _ context.CancelCauseFunc) {
			lost(f, func() {
				silent := 1
				f.remote.before = func(op string, _ wire.PushRequest) error {
					if op == "list" && silent > 0 {
						silent--
						return unreachable()
					}
					return nil
				}
			})
		}},
		"changed between claim and re-check": {CodeNotYours, func(f *fixture, _ context.CancelCauseFunc) {
			f.hook = func(point string) {
				if point == "claim" {
					f.edit(func(e *gitcas.Entry) { e.Status = gitcas.StatusSuspended })
				}
			}
		}},
		"no answer to the re-check": {CodeDamaged, func(f *fixture, _ context.CancelCauseFunc) {
			f.hook = func(point string) {
				f.remote.before = func(op string, _ wire.PushRequest) error {
					if op == "list" {
						return unreachable()
					}
					return nil
				}
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
				if c.code != CodeOK {
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
	c, _ := f.view().Claim(testThread)
	other := &fixture{T: f.T, mem: f.mem, remote: &remote{Remote: f.mem}, files: map[string]string{}, redact: noSecrets{}, host: "there"}
	other.agent = other.answer("done", "approved")
	f.mem.SetRef(gitcas.ClaimRef(testThread), wire.ZeroID)
	other.steps("mover")
	if !c.ID.IsZero() {
		f.mem.SetRef(gitcas.ClaimRef(testThread), c.ID)
	}
}

// TestClaimRaces: a claim that is lost again and again is no damage.
func TestClaimRaces(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		f.remote.before = func(op string, req wire.PushRequest) error {
			if op == "push" && touches(req, "claims") {
				return &wire.Error{Op: "push", URL: "memory:", Kind: wire.ErrLostRace}
			}
			return nil
		}
		_, err := f.step("r1")
		f.says(f.code(err, CodeNotYours), "again and again")
		f.paid(0)
	})
}

// waits is an agent that works for a while, unless it is stopped.
func (f *fixture) waits(d time.Duration, meanwhile func(after time.Duration)) {
	answer := f.agent
	f.agent = func(ctx context.Context, t Task, m *Meter) (Draft, error) {
		m.Add(100, 1, 0)
		for at := time.Duration(0); at < d; at += 10 * time.Second {
			select {
			case <-ctx.Done():
				return Draft{}, &AgentError{Agent: "test", Reason: "stopped", Err: context.Cause(ctx)}
			case <-time.After(10 * time.Second):
			}
			meanwhile(at + 10*time.Second)
		}
		return answer(ctx, t, m)
	}
}

func TestRenewal(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		began := time.Now()
		var seen []string
		f.waits(150*time.Second, func(after time.Duration) {
			if c, ok := f.view().Claim(testThread); ok && after%(30*time.Second) == 0 {
				seen = append(seen, fmt.Sprintf("%.0f:%.0f/%d", after.Seconds(), time.UnixMilli(c.Renewed).Sub(began).Seconds(), c.Tokens))
			}
		})
		var pushes int64
		f.hook = func(point string) {
			if point == "agent" {
				pushes = f.remote.pushes.Load()
			}
		}
		f.steps("r1")
		// At a minute's end renewal and agent go on at the same time.
		if got := strings.Join(seen, " "); !strings.Contains(got, "30:0/0") || !strings.Contains(got, "90:60/101") || !strings.Contains(got, "150:120/101") {
			f.Errorf("the claim was renewed %s", got)
		}
		if n := f.remote.pushes.Load() - pushes; n != 1 {
			f.Errorf("the commit took %d pushes: it did not know the renewed claim", n)
		}
		f.unclaimed()
	})
}

// TestRenewalStops: what a renewal finds out stops the agent within a minute.
func TestRenewalStops(t *testing.T) {
	for name, change := range map[string]func(f *fixture){
		"taken over": func(f *fixture) { f.claimBy(f.other(0)) },
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
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.start()
				began := time.Now()
				f.waits(time.Hour, func(after time.Duration) {
					if after == 70*time.Second {
						change(f)
					}
				})
				_, err := f.step("r1")
				f.code(err, CodeNotYours)
				var notYours *NotYoursError
				if !errors.As(err, &notYours) || notYours.Kept == "" {
					f.Errorf("nothing was kept: %v", err)
				}
				if d := time.Since(began); d > 2*time.Minute+time.Second {
					f.Errorf("the agent was stopped after %s", d)
				}
				f.attempt("r1", 1)
				if c, ok := f.view().Claim(testThread); ok && c.Run == "r1" {
					f.Error("the claim is left")
				}
			})
		})
	}
}

// TestRenewalGoesOn: what does not matter to the step does not stop it, nor does a
// remote that is away for a while.
func TestRenewalGoesOn(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		var away atomic.Bool
		f.remote.before = func(string, wire.PushRequest) error {
			if away.Load() {
				return unreachable()
			}
			return nil
		}
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
		fault  func(f *fixture, req wire.PushRequest) error
		linked bool
		kept   bool
	}{
		"at once":      {0, nil, true, true},
		"a slow agent": {2 * time.Second, nil, true, true},
		"a state branch that is never free": {2 * time.Second, func(_ *fixture, req wire.PushRequest) error {
			time.Sleep(100 * time.Millisecond)
			if touches(req, "refs/heads/uwf-state") {
				return &wire.Error{Op: "push", URL: "memory:", Kind: wire.ErrLostRace}
			}
			return nil
		}, false, true},
		"a remote that hangs": {2 * time.Second, func(f *fixture, _ wire.PushRequest) error { return unreachable() }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.start()
				ctx, cancel := context.WithCancelCause(f.Context())
				var signal time.Time
				f.agent = func(ctx context.Context, _ Task, m *Meter) (Draft, error) {
					m.Add(10, 1, 0)
					f.files["half"] = "done\n"
					f.remote.before = func(op string, req wire.PushRequest) error {
						if op == "push" && c.fault != nil {
							return c.fault(f, req)
						}
						return nil
					}
					signal = time.Now()
					cancel(errors.New("SIGTERM"))
					time.Sleep(c.dies)
					return Draft{}, &AgentError{Agent: "test", Reason: "stopped", Err: context.Cause(ctx)}
				}
				_, err := f.engine("r1", 1).Step(ctx, f.at(testThread))
				f.says(f.code(err, CodeFailed), "SIGTERM")
				if d := time.Since(signal); d > 7*time.Second {
					f.Errorf("it took %s", d)
				}
				f.remote.before = nil
				ref := gitcas.AttemptRef(testThread, "r1", 1)
				if _, ok := f.mem.Refs()[ref]; ok != c.kept {
					f.Fatalf("kept: %v", ok)
				}
				if got := len(f.entry().Attempts) == 1; got != c.linked {
					f.Errorf("linked: %v", got)
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
		f.agent = func(ctx context.Context, t Task, m *Meter) (Draft, error) {
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
				c := f.other(10 * time.Minute)
				change(&c)
				f.claimBy(c)
				f.agent = f.fails
				for _, run := range []string{"f1", "f2"} { // until it is suspended
					_, err := f.step(run)
					if code := CodeOf(err); code != CodeFailed && code != CodeSuspended {
						f.Fatalf("exit code %d: %v", code, err)
					}
				}
				if f.entry().Status == gitcas.StatusActive {
					_, err := f.step("f3")
					f.code(err, CodeSuspended)
				}
				f.ok(f.engine("p", 1).Resume(f.Context(), ResumeRequest{Thread: testThread, Text: ""}))
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
			f.agent = func(ctx context.Context, _ Task, m *Meter) (Draft, error) {
				m.Add(100, 10, 1)
				cancel(cause)
				<-ctx.Done()
				return Draft{}, ctx.Err()
			}
			_, err := f.engine(run, 1).Step(ctx, f.at(testThread))
			return err
		}
		for i := range 4 {
			f.says(f.code(stop(fmt.Sprint("s", i), ErrStopped), CodeFailed), "was stopped (role a)", "uwf thread step")
			f.unclaimed()
		}
		if e := f.entry(); e.Status != gitcas.StatusActive || len(e.Attempts) != 4 || attemptsOn(e, testThread, nil) != 0 || e.Next.Role != "a" {
			f.Errorf("%+v %+v", e, e.Next)
		}
		f.used(440, 4)
		f.says(f.code(f.deed("retry"), CodeNotYours), "no failed attempt")
		f.says(f.code(stop("t0", errors.New("SIGTERM")), CodeFailed), "failed (role a, agent): interrupted: SIGTERM", "try again")
		f.code(stop("s4", ErrStopped), CodeFailed)
		f.code(stop("t1", errors.New("SIGTERM")), CodeFailed)
		f.says(f.code(stop("t2", errors.New("SIGTERM")), CodeFailed), "failed 3 times")
		_, err := f.step("r1")
		f.says(f.code(err, CodeSuspended), "3 attempts")
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
		f.agent = func(ctx context.Context, _ Task, _ *Meter) (Draft, error) {
			cancel(ErrStopped)
			<-ctx.Done()
			return Draft{}, ctx.Err()
		}
		_, err := f.engine("s", 1).Step(ctx, f.at(testThread))
		f.code(err, CodeFailed)
		if e := f.entry(); e.Next == nil || e.Next.Role != "a" || e.Next.Forgiven != 1 {
			f.Errorf("%+v", e.Next)
		}
		f.sound()
	})
}
