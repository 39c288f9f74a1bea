package thread_test

import (
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// TestTake: on a person's word the claim of whoever holds a thread is taken, dead or not,
// and that is on record. A job that held it counts as one that died.
func TestTake(t *testing.T) {
	hold := func(purpose string) func(f *fixture) {
		return func(f *fixture) {
			c := f.other(0)
			c.For = purpose
			f.claimBy(c)
		}
	}
	for name, c := range map[string]struct {
		before func(f *fixture)
		died   int
		says   string // why it is refused
		taken  bool
	}{
		"a job's":          {hold(""), 1, "", true},
		"a dead job's":     {func(f *fixture) { f.claimBy(f.other(time.Hour)) }, 1, "", true},
		"a person's":       {hold("poke"), 0, "", true},
		"on another head":  {func(f *fixture) { f.claimBy(f.other(0)); f.moves() }, 0, "", true},
		"nobody's":         {func(*fixture) {}, 0, "no failed attempt", false},
		"nobody's, failed": {func(f *fixture) { f.agent = f.fails; _, _ = f.step("f"); f.agent = f.answer("done", "approved") }, 1, "", false},
		"of one that asks": {func(f *fixture) {
			f.agent = f.answer("ask", "")
			f.steps("r1")
			f.agent = f.answer("done", "approved")
			f.claimBy(f.other(0))
		}, 0, "it waits for a person (what now?)", false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.start()
				c.before(f)
				err := f.as(bob).Take(f.Context(), testThread)
				if c.says != "" {
					f.says(f.code(err, life.KindNotYours), c.says)
					return
				}
				f.ok(err)
				f.unclaimed()
				f.did("bob", story.NoAddress, bobs)
				tip, _, _ := f.tip()
				if got := strings.Contains(tip.Message, "the claim of run other (attempt 1) on there was taken"); got != c.taken {
					f.Errorf("the commit says so: %v\n%s", got, tip.Message)
				}
				if e := f.entry(); len(e.Attempts) != c.died || life.CountAttempts(e, testThread, nil) != 0 || e.Status != gitcas.StatusActive {
					f.Errorf("%+v", e)
				}
				f.steps("r9")
			})
		})
	}
}

// TestTakeStops: a job that lives after all is stopped, and what it has is kept.
func TestTakeStops(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		f.waits(time.Hour, func(after time.Duration) {
			if after == 5*time.Minute {
				f.says(f.code(f.as(bob).Retry(f.Context(), testThread), life.KindNotYours), "take "+string(testThread))
				f.ok(f.as(bob).Take(f.Context(), testThread))
			}
		})
		began := time.Now()
		_, err := f.step("r1")
		f.says(f.code(err, life.KindNotYours), "this job's work was kept")
		if d := time.Since(began) - 5*time.Minute; d > 45*time.Second {
			f.Errorf("it was stopped %s later", d)
		}
		f.unclaimed()
		if e := f.entry(); len(e.Attempts) != 1 || life.CountAttempts(e, testThread, nil) != 0 {
			f.Errorf("%+v", e)
		}
		f.sound()
	})
}

// TestTakeRaces: a claim that is renewed while it is taken is taken all the same.
func TestTakeRaces(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		f.claimBy(f.other(0))
		n := 0
		f.remote.setBefore(func(op string, req wire.PushRequest) error {
			if op == "push" && touches(req, "claims") && n < 2 {
				n++
				time.Sleep(time.Second)
				f.claimBy(f.other(0))
			}
			return nil
		})
		f.ok(f.as(bob).Take(f.Context(), testThread))
		f.unclaimed()
	})
	inBubble(t, func(f *fixture) { // of a delivery
		f.end()
		c := f.other(0)
		c.For = life.ForDelivery
		f.claimBy(c)
		f.code(f.as(bob).Retry(f.Context(), testThread), life.KindNotYours)
		f.ok(f.as(bob).Take(f.Context(), testThread))
		f.did("bob", story.NoAddress, bobs)
		_, err := f.deliver("d1")
		f.ok(err)
	})
}
