package thread_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/obstacle"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// TestFewRefs: a step that is refused because it pushes too many refs is not lost: it is
// pushed in parts, and its agent paid once.
func TestFewRefs(t *testing.T) {
	for most := 1; most <= gitcas.StepRefs; most++ {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			bubbleOn(t, wiretest.MemoryOptions{Atomic: true, MostRefs: most}, func(f *fixture) {
				f.disk = &memoryDisk{}
				answer := f.answer("done", "rejected")
				f.agent = func(ctx context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
					f.files["made"] += t.Role + "\n"
					return answer(ctx, t, m)
				}
				refused := 0
				f.remote.setBefore(func(_ string, req wire.PushRequest) error {
					if len(req.Updates) > most {
						refused++
					}
					return nil
				})
				f.start()
				refused = 0
				// The first job that pushes more learns it; the others know. The start asks first.
				want := 0
				if most >= obstacle.TriedRefs && most < gitcas.StepRefs {
					want = 1
				}
				for n, run := range []string{"r1", "r2", "r3"} {
					f.steps(run)
					f.paid(n + 1)
					f.unclaimed()
					v, work := f.view(), f.entry().Work
					if tip := f.base(); tip.String() != work.Commit || len(v.Lagging) > 0 {
						f.Errorf("step %d: the work branch is at %s, want %s", n+1, tip, work.Commit)
					}
					if mark, _ := v.Ref(layout.StoreRef); mark != v.Tip() {
						f.Errorf("step %d: %s is at %s, the branch at %s", n+1, layout.StoreRef, mark, v.Tip())
					}
					if s := f.store(); most < gitcas.StepRefs && s.MostRefs(v) != most {
						f.Errorf("step %d: VERSION says %d refs a push", n+1, s.MostRefs(v))
					}
				}
				// So does one that goes on: its next claim goes with the last part.
				_, err := f.goesOn("j", 3, func(thread.Result) {
					if c, ok := f.view().FindClaim(testThread); !ok || c.Head != f.entry().Head {
						f.Errorf("between two steps the claim is %+v", c)
					}
				})
				f.ok(err)
				f.paid(6)
				f.unclaimed()
				if refused != want {
					f.Errorf("%d pushes were refused, want %d", refused, want)
				}
			})
		})
	}
}
