package runner

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/runner/ci"
	"github.com/united-workforce/uwf/engine/runner/report"
	"github.com/united-workforce/uwf/engine/step/unpushed"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas"
)

// stickyOf is the one comment that an issue has.
func (w *world) stickyOf(n int) string {
	w.Helper()
	w.forge.mu.Lock()
	defer w.forge.mu.Unlock()
	if all := w.forge.comments[n]; len(all) != 1 {
		w.Fatalf("issue %d has %d comments, want 1", n, len(all))
	}
	body := w.forge.comments[n][0].Body
	if _, ok := report.FindMarker(body); !ok {
		w.Fatalf("issue %d has another comment: %.300q", n, body)
	}
	return body
}

// nextMonth sets the clock to the beginning of the next month, so that none turns meanwhile.
func (w *world) nextMonth() {
	now := time.Now().UTC()
	w.later(moderator.MonthStart(now).AddDate(0, 1, 0).Add(time.Hour).Sub(now))
}

// TestMonthStorm: somebody labels fifty issues, whose jobs run one after the other. Agents work
// until the month has nothing left, and not once more; each issue has one comment that says
// how it stands; no job is started for a thread that waits, by nobody; and when the month
// has turned, a person's word lets one go on.
func TestMonthStorm(t *testing.T) {
	const issues, steps = 50, 20
	w := newWorld(t)
	w.nextMonth()
	w.month.CostUSD = 0.01 * steps // what so many steps take
	limited := 0
	for n := range issues {
		_, err := w.run(aJob{ev: labeled(n + 1)})
		switch life.KindOf(err) {
		case life.KindDone:
		case life.KindLimit:
			limited++
		default:
			t.Fatal(err)
		}
	}
	w.drain()
	if len(w.ran) != steps {
		t.Errorf("agents ran %d times, want %d", len(w.ran), steps)
	}
	over, waiting := 0, 0
	threads := w.view().Threads()
	for n := range issues {
		said := w.stickyOf(n + 1)
		switch {
		case strings.Contains(said, "pull request #"):
			over++
		case strings.Contains(said, "the limit on a month's cost is reached") && strings.Contains(said, "all threads together have used $0.20 of $0.20"):
			waiting++
		default:
			t.Errorf("issue %d: %.400s", n+1, said)
		}
	}
	if over+waiting != issues || waiting != len(threads) || limited == 0 || waiting == 0 {
		t.Errorf("%d ended, %d wait, %d threads are alive, %d jobs were red", over, waiting, len(threads), limited)
	}
	for id, e := range threads {
		if e.Status != gitcas.StatusSuspended || !strings.HasPrefix(life.WaitReason(e), "limit month.costUsd reached: ") {
			t.Errorf("thread %s: %+v", id, e)
		}
	}
	calls := w.forge.Calls()
	for range 5 {
		w.later(time.Hour)
		w.sweepRun()
	}
	if len(w.forge.sent) != 0 || w.forge.Calls() != calls+5 { // the issues with the label are listed
		t.Errorf("jobs were started for threads that wait: %v", w.forge.sent)
	}

	last := w.stickyOf(issues)
	if _, err := w.run(aJob{ev: w.says(issues, "owner", "/uwf resume")}); life.KindOf(err) != life.KindLimit {
		t.Errorf("resumed at the limit: %v", err)
	}
	w.drain()
	if len(w.ran) != steps || !strings.Contains(w.stickies(issues)[0], "the limit on a month's cost is reached") {
		t.Errorf("%d steps; %.300s", len(w.ran), w.stickies(issues)[0])
	}
	w.later(31 * 24 * time.Hour)
	w.command(issues, "/uwf resume")
	w.drain()
	if got := w.stickies(issues); len(w.ran) != steps+2 || len(got) != 1 || !strings.Contains(got[0], "pull request #") {
		t.Errorf("%d steps; %.300s\nbefore: %.300s", len(w.ran), got, last)
	}
}

// TestMonthStormAtOnce: the same, with all jobs at the same time, so that what is left of the
// month is reserved by those that came first. What is not to be done now goes on by itself.
func TestMonthStormAtOnce(t *testing.T) {
	const issues = 24
	w := newWorld(t)
	w.nextMonth()
	w.month.CostUSD, w.limits.CostUSD = 0.2, 0.05
	gate := make(chan struct{}) // the first step of all waits for the others' jobs
	var mu sync.Mutex
	first := true
	w.say = func(t task.Task) (map[string]any, map[string]string, error) {
		mu.Lock()
		mine := first
		first = false
		mu.Unlock()
		if mine {
			<-gate
		}
		return map[string]any{"$status": map[string]string{"a": "done", "b": "approved"}[t.Role], "note": "n"}, nil, nil
	}
	kinds := map[life.Kind]int{}
	var wg, others sync.WaitGroup
	jobs := make(chan aJob, issues)
	for n := range issues {
		jobs <- aJob{ev: labeled(n + 1)}
	}
	close(jobs)
	others.Add(issues - 1)
	for range 10 { // so many runners
		wg.Go(func() {
			for a := range jobs {
				_, err := w.run(a)
				mu.Lock()
				kinds[life.KindOf(err)]++
				done := kinds[life.KindDone] + kinds[life.KindLimit]
				mu.Unlock()
				if done < issues {
					others.Done()
				}
			}
		})
	}
	others.Wait()
	close(gate)
	wg.Wait()
	if kinds[life.KindDone]+kinds[life.KindLimit] != issues {
		t.Errorf("%v", kinds)
	}
	held := 0
	for n := range issues {
		if said := w.stickyOf(n + 1); strings.Contains(said, "goes on by itself when steps of other threads are done") {
			held++
		}
	}
	for range 60 { // what goes on by itself does by the schedule
		w.drain()
		w.later(10 * time.Minute)
		w.sweepRun()
	}
	w.drain()
	if spent := 0.01 * float64(len(w.ran)); spent > w.month.CostUSD+1e-9 || spent < w.month.CostUSD-1e-9 {
		t.Errorf("%d steps took $%.2f of $%.2f", len(w.ran), spent, w.month.CostUSD)
	}
	for n := range issues {
		if said := w.stickyOf(n + 1); !strings.Contains(said, "✅ Done") && !strings.Contains(said, "the limit on a month's cost is reached") {
			t.Errorf("issue %d: %.400s", n+1, said)
		}
	}
	if held == 0 {
		t.Error("no job met another one's reservation: they did not run at the same time")
	}
}

// TestMonthHeld: a thread that is not to go on now is not dispatched by the job that finds so,
// which starts no other one either; the comment says why, and the next look takes it up.
func TestMonthHeld(t *testing.T) {
	w := newWorld(t)
	w.nextMonth()
	w.month.CostUSD, w.limits.CostUSD = 5, 3
	_, err := w.run(aJob{ev: labeled(3)})
	w.ok(err)
	w.forge.sent = nil // its next job got lost
	w.later(10 * time.Minute)
	var inner string
	w.say = func(tk task.Task) (map[string]any, map[string]string, error) {
		if tk.Role == "a" && inner == "" {
			inner = "ran"
			out := &heard{}
			o, err := w.run(aJob{ev: labeled(2), out: out})
			w.ok(err)
			if o.Status != "active" || len(w.forge.sent) != 0 {
				t.Errorf("%+v, sent %v", o, w.forge.sent)
			}
			inner = w.stickyOf(2)
		}
		return map[string]any{"$status": map[string]string{"a": "done", "b": "approved"}[tk.Role], "note": "n"}, nil, nil
	}
	_, err = w.run(aJob{ev: labeled(1), in: ci.Inputs{StepsPerJob: 2}})
	w.ok(err)
	for _, want := range []string{"is next, with step 1, and goes on by itself", "limits.month.costUsd ($5.00 a month) leaves nothing for it now: $0.01 was used, and 1 step at work may use $3.00"} {
		if !strings.Contains(inner, want) {
			t.Errorf("the comment does not say %q: %.500s", want, inner)
		}
	}
	w.later(10 * time.Minute)
	w.sweepRun()
	w.drain()
	if said := w.stickyOf(2); !strings.Contains(said, "✅ Done") {
		t.Errorf("%.400s", said)
	}
	if len(w.ended()) != 3 || len(w.ran) != 6 {
		t.Errorf("%d ended after the steps %v", len(w.ended()), w.ran)
	}
}

// TestMonthHeldOfTwoJobs: what kept the job that runs agents from running one may be over when the
// job that writes looks. That is no failure of the step's: the thread is taken up again.
func TestMonthHeldOfTwoJobs(t *testing.T) {
	for name, c := range map[string]struct {
		before, between func(w *world)
	}{
		"steps at work, which then end": {
			func(w *world) { // its claim comes first
				w.month.CostUSD, w.limits.CostUSD = 5, 3
				_, err := w.twice("40", labeled(8))
				w.ok(err)
				w.forge.sent = nil
			},
			func(w *world) {
				_, err := w.twice("44", w.says(8, "owner", "/uwf cancel"))
				w.ok(err)
			},
		},
		"a limit, which then is raised": {
			func(w *world) {
				w.month.CostUSD = 0.01
				_, err := w.run(aJob{ev: labeled(8)})
				w.ok(err)
				w.forge.sent = nil
			},
			func(w *world) { w.month.CostUSD = 5 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.disk = true
			w.nextMonth()
			c.before(w)
			_, err := w.twice("42", labeled(7))
			w.ok(err)
			d, _ := w.forge.take()
			ran := len(w.ran)
			dir, err := w.agentJob("43", manual(d))
			w.ok(err)
			c.between(w)
			w.forge.sent = nil
			_, err = w.run(aJob{run: "43-commit", ev: manual(d), in: ci.Inputs{Command: ci.CommandCommit, Artifact: dir}})
			w.ok(err)
			id := gitcas.ThreadID(d.inputs["thread"])
			if e, _ := w.view(id).Entry(id); e.Status != gitcas.StatusActive || len(e.Attempts) > 0 || w.claimOf(id) != nil || len(w.forge.sent) > 0 || len(w.ran) != ran {
				t.Errorf("%+v, the claim is %+v, sent %v, ran as %v", e, w.claimOf(id), w.forge.sent, w.ran)
			}
			if said := w.stickyOf(7); !strings.Contains(said, "goes on by itself") || !strings.Contains(said, "had none to run when it looked") {
				t.Errorf("%.500s", said)
			}
			w.later(10 * time.Minute)
			w.sweepRun()
			w.settleTwice()
			if said := w.stickyOf(7); !strings.Contains(said, "✅ Done") {
				t.Errorf("%.400s", said)
			}
		})
	}
}

// TestTwoJobsIdleBefore: that a job before had no agent to run, in the same folder, hides nothing of
// one whose step got lost.
func TestTwoJobsIdleBefore(t *testing.T) {
	w := newWorld(t)
	w.disk = true
	w.nextMonth()
	w.month.CostUSD = 0.01
	_, err := w.run(aJob{ev: labeled(8)})
	w.ok(err)
	_, err = w.twice("42", labeled(7))
	w.ok(err)
	d, _ := w.forge.take()
	dir, err := w.agentJob("43", manual(d))
	w.ok(err)
	w.month.CostUSD = 5
	w.wrap = WithoutPushes
	_, err = w.run(aJob{run: "44", ev: manual(d), in: ci.Inputs{Command: ci.CommandRun, Artifact: dir}})
	w.ok(err)
	w.wrap = nil
	f := &unpushed.Folder{Dir: dir}
	w.ok(f.Clear(w.view().StoreID()))
	_, err = w.run(aJob{run: "44-commit", ev: manual(d), in: ci.Inputs{Command: ci.CommandCommit, Artifact: dir}})
	if err == nil || !strings.Contains(err.Error(), "the job that runs agents left no step") {
		t.Errorf("%v", err)
	}
}
