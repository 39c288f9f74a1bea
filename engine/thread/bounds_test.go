package thread_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/deadline"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas/workspace"
)

// TestEndlessFolder: a folder that takes for ever to read fails the step in time, and is
// not read again for the attempt, which is kept without it.
func TestEndlessFolder(t *testing.T) {
	for _, c := range []struct {
		name, phase string
		agent       func(*fixture) func(context.Context, task.Task, *task.Meter) (task.Draft, error)
		within      time.Duration
	}{
		{"after a step", "workspace", func(f *fixture) func(context.Context, task.Task, *task.Meter) (task.Draft, error) {
			return f.answer("done", "approved")
		}, deadline.SealTimeout},
		{"after a failure", "agent", func(f *fixture) func(context.Context, task.Task, *task.Meter) (task.Draft, error) { return f.fails }, deadline.SalvageTimeout},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.start()
				f.agent = c.agent(f)
				looks := 0
				f.slow = func(ctx context.Context) error {
					looks++
					<-ctx.Done()
					return ctx.Err()
				}
				began := time.Now()
				_, err := f.step("j1")
				text := f.code(err, life.KindFailed)
				var failed *life.FailedError
				if !errors.As(err, &failed) || failed.Phase != c.phase || looks != 1 || time.Since(began) != c.within {
					t.Errorf("after %s and %d looks: %v", time.Since(began), looks, err)
				}
				if c.phase == "workspace" {
					f.says(text, "/folder takes too long to read", ".gitignore")
				}
				if a := f.attempt("j1", 1); !a.WorkTree.IsZero() || len(a.Nodes) == 0 {
					t.Errorf("attempt %+v", a)
				}
				f.unclaimed()

				// The next one has the folder anew.
				f.agent, f.slow = f.answer("done", "approved"), nil
				f.steps("j2")
			})
		})
	}
}

// TestOverLimit: where a folder can't be kept, it is said where what is in it is.
func TestOverLimit(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		f.slow = func(context.Context) error {
			return &workspace.FolderError{Op: "snapshot", Path: ".gitignore", Kind: workspace.ErrLimit, Err: errors.New("so many patterns")}
		}
		_, err := f.step("j1")
		f.says(f.code(err, life.KindFailed), `snapshot ".gitignore": over a limit: so many patterns`, "what the agent left is in /folder until the next try")
		if a := f.attempt("j1", 1); len(a.Nodes) == 0 {
			t.Errorf("attempt %+v", a)
		}
	})
}

// TestLeftoversAreRemovedLast: what an agent left on the machine is removed when its step
// is committed or its attempt kept, and the claim let go; that it can't be is no failure.
func TestLeftoversAreRemovedLast(t *testing.T) {
	for _, fail := range []bool{false, true} {
		inBubble(t, func(f *fixture) {
			f.start()
			f.slow = nil
			if fail {
				f.agent = f.fails
			}
			e := f.engine("j1", 1)
			var points, notices []string
			e.Hook = func(point string) { points = append(points, point) }
			e.Observe = func(ev thread.Event) {
				if ev.Kind == "notice" {
					notices = append(notices, ev.Text)
				}
			}
			e.RemoveLeftovers = func(context.Context) error {
				points = append(points, "leftovers")
				f.unclaimed()
				return errors.New("it can't be removed")
			}
			_, err := e.Step(f.Context(), f.at(testThread))
			last := "commit"
			if fail {
				last = "attempt"
				f.code(err, life.KindFailed)
			} else {
				f.ok(err)
			}
			if i := slices.Index(points, last); i < 0 || slices.Index(points, "leftovers") < i || points[len(points)-1] != "leftovers" {
				t.Errorf("%v", points)
			}
			if !strings.Contains(strings.Join(notices, "\n"), "it can't be removed") {
				t.Errorf("%q", notices)
			}
		})
	}
}

// TestLeftoversOfAnInterrupt: a job that is told to end still removes what its agent left,
// within the time that it has.
func TestLeftoversOfAnInterrupt(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		ctx, stop := context.WithCancel(f.Context())
		f.agent = func(actx context.Context, _ task.Task, _ *task.Meter) (task.Draft, error) {
			stop()
			<-actx.Done()
			return task.Draft{}, &task.AgentError{Agent: "test", Reason: "stopped"}
		}
		e := f.engine("j1", 1)
		began, called := time.Now(), false
		e.RemoveLeftovers = func(ctx context.Context) error {
			called = true
			if err := ctx.Err(); err != nil {
				t.Error(err)
			}
			<-ctx.Done()
			return nil
		}
		_, err := e.Step(ctx, f.at(testThread))
		f.code(err, life.KindFailed)
		if !called || time.Since(began) != deadline.CleanupGrace {
			t.Errorf("called: %v; it took %s", called, time.Since(began))
		}
	})
}
