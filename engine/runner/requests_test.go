package runner

import (
	"errors"
	"fmt"
	"testing"

	"github.com/united-workforce/uwf/engine/runner/ci"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// TestRequests: what a job asks of a forge is scarce there. These are the numbers of
// docs/costs.md; more than they say is a mistake, less is to be said there.
func TestRequests(t *testing.T) {
	w := newWorld(t)
	w.disk = true
	failed := false
	w.say = func(task task.Task) (map[string]any, map[string]string, error) {
		if failed = task.Step == 3 && !failed; failed {
			return nil, nil, errors.New("out of memory")
		}
		status := map[string]string{"a": "done", "b": "rejected"}[task.Role]
		if task.Step == 4 {
			status = "approved"
		}
		return map[string]any{"$status": status}, map[string]string{"work": fmt.Sprintf("step %d\n", task.Step)}, nil
	}
	type requests struct{ pushes, reads, lists, calls int }
	type row struct {
		name string
		run  func() (ci.Outcome, error)
		want requests
	}
	var last dispatched
	next := func() (ci.Outcome, error) {
		var ok bool
		if last, ok = w.forge.take(); !ok {
			t.Fatal("no job was dispatched")
		}
		return w.hop(last)
	}
	_, err := w.run(aJob{ev: labeled(8)}) // it makes the store
	w.ok(err)
	w.forge.sent = nil
	for _, c := range []row{
		{"start and first step", func() (ci.Outcome, error) { return w.run(aJob{ev: labeled(7)}) }, requests{4, 5, 4, 5}},
		{"step", next, requests{2, 3, 2, 4}},
		{"step that fails", next, requests{2, 3, 3, 5}},
		{"step after a rejection and a failure", func() (ci.Outcome, error) { return w.hop(last) }, requests{3, 5, 2, 4}},
		{"last step and delivery", next, requests{4, 4, 4, 6}},
	} {
		seen := counted{}
		w.wrap = func(r wire.Remote) wire.Remote { seen.Remote = r; return &seen }
		before := w.forge.Calls()
		if _, err := c.run(); (err != nil) != failed {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := (requests{seen.pushes, seen.fetches, seen.lists, w.forge.Calls() - before}); got != c.want {
			t.Errorf("%s: %+v, want %+v: %v", c.name, got, c.want, w.forge.log[before:])
		}
	}
	if left := w.view().Threads(); len(left) != 1 || len(w.ended()) != 1 {
		t.Errorf("%d threads are alive, %d ended", len(left), len(w.ended()))
	}
}
