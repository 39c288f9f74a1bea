package runner

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/runner/ci"
	"github.com/united-workforce/uwf/engine/runner/event"
	"github.com/united-workforce/uwf/gitcas/wire"
)

func scheduled() event.Event { return event.Event{Name: "schedule", Kind: event.Schedule} }

// Twenty threads whose next job got lost: a job of another thread starts a few, a
// scheduled one more, none twice in one job, and all come to their end.
func TestSweepBounds(t *testing.T) {
	w := newWorld(t)
	for n := range 20 {
		_, err := w.run(aJob{ev: labeled(n + 1)})
		w.ok(err)
	}
	if len(w.forge.sent) != 20 {
		t.Fatalf("%d dispatches for 20 threads whose jobs just ended", len(w.forge.sent))
	}
	w.forge.sent = nil
	w.sweepRun()
	if len(w.forge.sent) != 0 {
		t.Errorf("threads were swept that moved just now: %v", w.forge.sent)
	}
	w.later(10 * time.Minute)
	before := w.forge.Calls()
	_, err := w.run(aJob{ev: event.Event{Kind: event.Plain}})
	w.ok(err)
	if n := len(w.forge.sent); n != sweepMax {
		t.Errorf("a job dispatched %d threads, at most %d may be", n, sweepMax)
	}
	if calls := w.forge.Calls() - before; calls != sweepMax {
		t.Errorf("it made %d calls", calls)
	}
	w.forge.sent = nil
	w.sweepRun()
	seen := map[string]bool{}
	for _, d := range w.forge.sent {
		seen[d.inputs["thread"]] = true
		if d.inputs["store"] == "" || d.inputs["head"] == "" || d.inputs["comment"] == "true" {
			t.Errorf("dispatched %v", d.inputs)
		}
	}
	if len(seen) != sweepMaxSchedule || len(w.forge.sent) != sweepMaxSchedule {
		t.Errorf("a scheduled job dispatched %v", w.forge.sent)
	}
	jobs := 0
	for range 20 {
		w.later(10 * time.Minute)
		w.sweepRun()
		jobs += w.drain()
	}
	if jobs > 150 {
		t.Errorf("%d jobs for the last steps of 20 threads", jobs)
	}
	if got := len(w.ended()); got != 20 || len(w.forge.pulls) != 20 {
		t.Errorf("%d threads ended, with %d pull requests", got, len(w.forge.pulls))
	}
}

// counted counts what is asked of a remote.
type counted struct {
	wire.Remote
	lists, fetches, pushes int
}

func (c *counted) List(ctx context.Context, prefixes ...string) (wire.Listing, error) {
	c.lists++
	return c.Remote.List(ctx, prefixes...)
}

func (c *counted) Fetch(ctx context.Context, req wire.FetchRequest) (wire.Objects, error) {
	c.fetches++
	return c.Remote.Fetch(ctx, req)
}

func (c *counted) Push(ctx context.Context, req wire.PushRequest) (time.Time, error) {
	c.pushes++
	return c.Remote.Push(ctx, req)
}

// Fifty threads are due: a schedule starts five jobs, and reads what it reads for none.
func TestSweepReadsTheListingAlone(t *testing.T) {
	w := newWorld(t)
	var seen []counted
	for _, threads := range []int{1, 50} {
		for n := range threads {
			_, err := w.run(aJob{ev: labeled(threads + n)})
			w.ok(err)
		}
		w.forge.sent = nil
		w.later(time.Hour)
		before := w.forge.Calls()
		c := counted{}
		w.wrap = func(r wire.Remote) wire.Remote { c.Remote = r; return &c }
		w.sweepRun()
		w.wrap, c.Remote = nil, nil
		seen = append(seen, c)
		if sent := min(threads, sweepMaxSchedule); len(w.forge.sent) != sent || w.forge.Calls()-before != sent+1 || sent > 5 { // and issues
			t.Errorf("of %d threads %d were dispatched, with %d calls", threads, len(w.forge.sent), w.forge.Calls()-before)
		}
	}
	if seen[0] != seen[1] || seen[1].pushes != 0 || seen[1].lists > 2 {
		t.Errorf("asked of the remote: %+v for one thread, %+v for 51", seen[0], seen[1])
	}
}

// A job never sweeps the thread whose next job it started itself, however long ago its
// step was committed by then.
func TestSweepLeavesItsOwn(t *testing.T) {
	w := newWorld(t)
	w.hook = func(p string) {
		if p == "commit" {
			w.later(time.Hour)
		}
	}
	_, err := w.run(aJob{ev: labeled(7)})
	w.ok(err)
	if len(w.forge.sent) != 1 {
		t.Errorf("dispatched %v", w.forge.sent)
	}
}

// What failed, waits or is worked on is left alone; so is everything where dispatch is
// off, and where the forge says no the job stops asking, and stays green.
func TestSweepLeavesAlone(t *testing.T) {
	w := newWorld(t)
	for n := range 5 {
		_, err := w.run(aJob{ev: labeled(n + 1)})
		w.ok(err)
	}
	w.forge.sent = nil
	w.later(10 * time.Minute)
	_, err := w.run(aJob{ev: scheduled(), in: ci.Inputs{Dispatch: ci.DispatchOff}})
	w.ok(err)
	asked := 0
	w.forge.before = func(op string) error {
		if op == "dispatch" {
			asked++
			return &forge.CallError{Do: op, Kind: forge.ErrForbidden}
		}
		return nil
	}
	a := aJob{ev: scheduled(), out: &heard{}}
	_, err = w.run(a)
	w.ok(err)
	if asked != 1 || len(a.out.warnings) != 1 || len(w.forge.sent) != 0 {
		t.Errorf("%d dispatches, warnings %q, sent %v", asked, a.out.warnings, w.forge.sent)
	}
}

// A stale hop does nothing, is green, and says so.
func TestStaleHop(t *testing.T) {
	w := newWorld(t)
	_, err := w.run(aJob{ev: labeled(7)})
	w.ok(err)
	d := w.forge.sent[0]
	w.drain()
	w.delivered(7, 2)
	calls := w.forge.Calls()
	out, err := w.hop(d)
	w.ok(err)
	if out.Notice == "" || len(w.ran) != 2 || w.forge.Calls() != calls {
		t.Errorf("a stale job did something: %+v, %v", out, w.forge.log[calls:])
	}
}

// Several steps in one job, within its time.
func TestStepsPerJob(t *testing.T) {
	for name, c := range map[string]struct {
		deadline time.Duration
		steps    int
	}{"time enough": {time.Hour, 2}, "no time for another": {25 * time.Minute, 1}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.hook = func(p string) {
				if p == "agent" {
					w.later(10 * time.Minute)
				}
			}
			_, err := w.run(aJob{ev: labeled(7), in: ci.Inputs{StepsPerJob: 5}, job: ci.Job{Deadline: w.now().Add(c.deadline)}})
			w.ok(err)
			if len(w.ran) != c.steps {
				t.Errorf("the job did %d steps, want %d", len(w.ran), c.steps)
			}
			w.drain()
			w.delivered(7, 2)
		})
	}
}

func TestDispatchModes(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		file string
		want string
		code int
	}{
		"auto": {"", "uwf.yml", "uwf.yml", 0}, "file": {"other.yml", "uwf.yml", "other.yml", 0},
		"event": {ci.DispatchRepository, "uwf.yml", "", 0}, "off": {ci.DispatchOff, "uwf.yml", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			_, err := w.run(aJob{ev: labeled(7), in: ci.Inputs{Dispatch: c.in}, job: ci.Job{WorkflowFile: c.file}})
			if codeOf(err) != c.code {
				t.Fatal(err)
			}
			if c.in == ci.DispatchOff {
				if len(w.forge.sent) != 0 {
					t.Errorf("dispatched %v", w.forge.sent)
				}
				return
			}
			if len(w.forge.sent) != 1 || w.forge.sent[0].file != c.want {
				t.Fatalf("dispatched %v", w.forge.sent)
			}
			d, _ := w.forge.take()
			ev := manual(d)
			if c.in == ci.DispatchRepository {
				ev.Kind, ev.Action = event.Dispatch, ci.DispatchType
			}
			_, err = w.run(aJob{ev: ev, in: ci.Inputs{Dispatch: c.in}})
			w.ok(err)
			w.delivered(7, 2)
		})
	}
}

func TestNoWorkflowFile(t *testing.T) {
	w := newWorld(t)
	a := aJob{ev: labeled(7)}
	r := w.runner(&a)
	r.Job.WorkflowFile = ""
	_, err := r.Run(t.Context(), a.ev)
	if codeOf(err) == 0 || !strings.Contains(fmt.Sprint(err), "input dispatch") {
		t.Errorf("the job ended with %v", err)
	}
}
