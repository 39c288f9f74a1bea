package thread_test

import (
	"context"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// inTheWay runs a test on a remote that refuses what is pushed to work branches while
// something is in the way.
func inTheWay(t *testing.T, test func(f *fixture, put func(kind error))) {
	t.Helper()
	for _, kind := range []error{wire.ErrUnsigned, wire.ErrTooLarge, wire.ErrProtected, wire.ErrInTheWay} {
		t.Run(kind.Error(), func(t *testing.T) {
			var refusal error
			refuse := func(u wire.RefUpdate) error {
				if refusal == nil || !strings.HasPrefix(u.Name, "refs/heads/uwf/") {
					return nil
				}
				return &wire.RemoteError{Kind: refusal, Detail: "the rule says no"}
			}
			bubbleOn(t, wiretest.MemoryOptions{Atomic: true, Refuse: refuse}, func(f *fixture) {
				works := f.changes(map[string]string{"a.txt": "1\n"})
				f.agent = func(ctx context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
					m.Add(10, 1, 0.5)
					return works(ctx, t, m)
				}
				test(f, func(there error) {
					if refusal = there; there != nil {
						refusal = kind
					}
				})
			})
		})
	}
}

// TestObstacleStartsNothing: what would refuse a step is found before there is a thread, and no
// ref of it is left.
func TestObstacleStartsNothing(t *testing.T) {
	inTheWay(t, func(f *fixture, put func(error)) {
		put(wire.ErrProtected)
		_, err := f.engine("r1", 1).Start(f.Context(), startRequest(testThread))
		if err == nil || !strings.Contains(err.Error(), "the rule says no") {
			t.Fatal(err)
		}
		if all := f.view().Threads(); len(all) != 0 {
			t.Errorf("there are %v", all)
		}
		put(nil)
		f.start()
		f.steps("r2")
		f.paid(1)
	})
}

// TestObstaclePaidOnce: something comes in the way of a step whose agent was paid. The step stays on
// this machine, and is brought in when that is mended, a retry or not.
func TestObstaclePaidOnce(t *testing.T) {
	for _, retry := range []bool{false, true} {
		inTheWay(t, func(f *fixture, put func(error)) {
			f.disk = &memoryDisk{}
			f.start()
			f.hook = func(point string) {
				if point == "agent" {
					put(wire.ErrProtected)
				}
			}
			for _, run := range []string{"r1", "r2"} {
				_, err := f.step(run)
				f.says(f.code(err, life.KindFailed), "the rule says no")
				f.paid(1)
				f.unclaimed()
			}
			if retry {
				f.ok(f.engine("p", 1).Retry(f.Context(), testThread))
			}
			put(nil)
			f.steps("r3")
			f.paid(1)
			if s := f.chain().Steps[0]; len(s.PreviousAttempts) != 0 || f.totals().Tokens != 11 {
				t.Errorf("counted twice: %+v, %+v", s.Step, f.totals())
			}
			f.kept()
		})
	}
}

// TestObstacleBeforeRetry: where the step can't be brought in, as in a job on another machine, no
// agent is paid until nothing is in the way.
func TestObstacleBeforeRetry(t *testing.T) {
	inTheWay(t, func(f *fixture, put func(error)) {
		f.start()
		f.hook = func(point string) {
			if point == "agent" {
				put(wire.ErrProtected)
			}
		}
		_, err := f.step("r1")
		f.code(err, life.KindFailed)
		f.hook = nil
		f.ok(f.engine("p", 1).Retry(f.Context(), testThread))
		for _, run := range []string{"r2", "r3"} {
			_, err := f.step(run)
			f.says(f.code(err, life.KindFailed), "the rule says no", "no agent runs until")
			f.paid(1)
			f.unclaimed()
		}
		put(nil)
		f.steps("r4")
		f.paid(2)
	})
}
