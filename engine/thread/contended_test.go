package thread_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/attempt"
	"github.com/united-workforce/uwf/engine/deadline"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// TestContendedStepsArePaidOnce has twelve writers on one state branch, each with a thread of two
// steps and a bound of one second for lost races. Whoever loses too many types the command
// again: no agent runs twice for a step, and nothing is counted twice.
func TestContendedStepsArePaidOnce(t *testing.T) {
	inBubble(t, func(f *fixture) {
		const writers = 12
		var gaveUp atomic.Int64
		var done sync.WaitGroup
		all := make([]*fixture, writers)
		for i := range all {
			w := &fixture{T: f.T, mem: f.mem, remote: &remote{Remote: f.mem}, files: map[string]string{}, redact: noSecrets{}, host: "here"}
			w.agent, w.disk, w.retryFor = w.answer("done", "approved"), &memoryDisk{}, time.Second
			w.alive = func(int, int64) bool { return false }
			w.thread = gitcas.ThreadID(fmt.Sprintf("01JD00000000000000000000%02d", i+10))
			_, err := w.engine("start", 1).Start(f.Context(), startRequest(w.thread))
			f.ok(err)
			w.remote.setBefore(func(string, wire.PushRequest) error {
				time.Sleep(time.Duration(100+i) * time.Millisecond)
				return nil
			})
			all[i] = w
		}
		for i, w := range all {
			done.Go(func() {
				for n := 0; ; n++ {
					res, err := w.stepWith(fmt.Sprintf("w%d-%d", i, n), 1, step.Request{Thread: w.thread, Deliver: true})
					switch {
					case err == nil && res.Done:
						return
					case err == nil:
					case !errors.Is(err, wire.ErrLostRace) || !strings.Contains(err.Error(), "is finished"):
						f.Errorf("writer %d: %v", i, err)
						return
					default:
						gaveUp.Add(1)
					}
				}
			})
		}
		done.Wait()
		for i, w := range all {
			v, err := w.store().Load(f.Context(), w.thread)
			f.ok(err)
			c, err := v.ReadChain(f.Context(), w.thread)
			f.ok(err)
			_, total, err := attempt.CountThread(f.Context(), w.store(), v, w.thread)
			f.ok(err)
			if len(w.runs) != 2 || len(c.Steps) != 2 || total.Tokens != 22 {
				f.Errorf("writer %d: agents ran %d times for %d steps, and %d tokens are counted", i, len(w.runs), len(c.Steps), total.Tokens)
			}
		}
		if gaveUp.Load() == 0 {
			f.Error("nobody lost so many races that it gave up")
		}
	})
}

// TestLostRaces: what becomes of a sealed step whose commit loses every race, by what happens
// meanwhile.
func TestLostRaces(t *testing.T) {
	for name, c := range map[string]struct {
		seen      bool // whether a process is over can be told
		full      bool // the disk
		meanwhile func(f *fixture, stop context.CancelCauseFunc)
		code      life.Kind
		says      string
		attempt   bool // it became one
	}{
		"nothing":               {seen: true, code: life.KindFailed, says: "brings it in on this machine, without asking the agent again"},
		"processes are unknown": {code: life.KindFailed, says: "brings it in on this machine, without asking the agent again"},
		"told to end": {
			seen: true, code: life.KindFailed, says: "brings it in",
			meanwhile: func(_ *fixture, stop context.CancelCauseFunc) { stop(context.Canceled) },
		},
		"stopped by a person": {
			seen: true, code: life.KindFailed, says: "brings it in",
			meanwhile: func(_ *fixture, stop context.CancelCauseFunc) { stop(deadline.ErrStopped) },
		},
		"the claim was taken": {
			seen: true, code: life.KindNotYours, says: "the claim is no longer ours", attempt: true,
			meanwhile: func(f *fixture, _ context.CancelCauseFunc) { f.claimBy(f.other(0)) },
		},
		"suspended": {
			seen: true, code: life.KindNotYours, says: "changed while the agent worked", attempt: true,
			meanwhile: func(f *fixture, _ context.CancelCauseFunc) {
				f.ok(f.engine("p", 1).Suspend(f.Context(), testThread, "wait"))
			},
		},
		"nowhere to keep it": {seen: true, full: true, code: life.KindFailed, says: "try again", attempt: true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.disk = &memoryDisk{full: c.full}
				if c.seen {
					f.alive = func(int, int64) bool { return false }
				}
				f.start()
				ctx, stop := context.WithCancelCause(f.Context())
				defer stop(nil)
				ours := f.remote
				f.hook = func(point string) {
					if point != "on-disk" && point != "agent" {
						return
					}
					ours.setBefore(loseCommits(f, ours, func() {
						if c.meanwhile != nil {
							c.meanwhile(f, stop)
						}
					}))
				}
				_, err := f.engine("r1", 1).Step(ctx, f.at(testThread))
				f.hook = nil
				ours.setBefore(nil)
				f.says(f.code(err, c.code), c.says)
				if _, kept := f.mem.Refs()["refs/uwf/attempts/"+string(testThread)+"/r1.1"]; kept != c.attempt {
					f.Errorf("an attempt: %t, want %t: %v", kept, c.attempt, f.mem.Refs())
				}
				if c.attempt {
					f.kept()
					return
				}

				f.kept("")
				if _, claimed := f.view().FindClaim(testThread); claimed != c.seen || len(f.entry().Attempts) > 0 {
					f.Errorf("claimed: %t, want %t; entry %+v", claimed, c.seen, f.entry())
				}
				f.steps("r2")
				f.paid(1)
				f.kept()
				f.unclaimed()
				s := f.chain().Steps[0]
				if s.Run.ID != "r1" || len(s.PreviousAttempts) > 0 || f.totals().Tokens != 11 {
					f.Errorf("%+v; %+v", s.Step, f.totals())
				}
			})
		})
	}
}

// loseCommits has each commit of a step lose the race; before the last of them, as it is
// bounded, something happens once.
func loseCommits(f *fixture, ours *remote, meanwhile func()) beforeRequest {
	began, happened := time.Now(), false
	return func(op string, req wire.PushRequest) error {
		if op != "push" || !commits(req) || !touches(req, "claims") {
			return nil
		}
		if !happened && time.Since(began) > gitcas.DefaultRetryFor/2 {
			happened = true
			lose := ours.setBefore(nil) // somebody else's pushes go through
			meanwhile()
			ours.setBefore(lose)
		}
		return &wire.RemoteError{Op: op, URL: "memory:", Kind: wire.ErrLostRace, Detail: fmt.Sprintf("failed to lock at %s", time.Now())}
	}
}
