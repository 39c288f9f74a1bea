package thread_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/internal/gitcastest"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// TestGolden: what any version has written this one reads, checks, forks and
// continues. See testdata/golden/README.md.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/golden/*.txtar")
	if err != nil || len(files) < 6 {
		t.Fatalf("%d golden files, %v", len(files), err)
	}
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(goldenName(file), func(t *testing.T) {
			want := section(t, a, "facts.json")
			t.Run("reads", func(t *testing.T) {
				inGolden(t, a, func(g *golden) {
					g.sound()
					if got := g.text(g.read()); !bytes.Equal(got, want) {
						t.Errorf("it says\n%s\nand said\n%s", got, want)
					}
				})
			})
			var f facts
			if err := json.Unmarshal(want, &f); err != nil {
				t.Fatal(err)
			}
			for _, id := range f.ids() {
				t.Run("goes on "+string(id), func(t *testing.T) { inGolden(t, a, func(g *golden) { g.goOn(id, f[id]) }) })
				t.Run("forks "+string(id), func(t *testing.T) { inGolden(t, a, func(g *golden) { g.forks(id, f[id]) }) })
			}
		})
	}
}

func section(t *testing.T, a *txtar.Archive, name string) []byte {
	t.Helper()
	for _, f := range a.Files {
		if f.Name == name {
			return f.Data
		}
	}
	t.Fatalf("no section %s", name)
	return nil
}

// inGolden runs a test over a golden store, years after it was written.
func inGolden(t *testing.T, a *txtar.Archive, test func(g *golden)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2036, 1, 1, 0, 0, 0, 0, time.UTC)))
		mem, err := gitcastest.Import(section(t, a, "store"), wiretest.MemoryOptions{Atomic: true})
		if err != nil {
			t.Fatal(err)
		}
		var said answers
		if err := json.Unmarshal(section(t, a, "answers.json"), &said); err != nil {
			t.Fatal(err)
		}
		test(newGolden(t, mem, said))
	})
}

// goOn continues a thread: a live one by steps, a suspended one with an answer, an
// ended one by its workflow's resume edge where there is one, a cancelled one never.
func (g *golden) goOn(id gitcas.ThreadID, f threadFacts) {
	g.Helper()
	if f.Deliver {
		g.delivers(id, f)
		f.Status = "ended"
	}
	if f.Status != "active" {
		err := g.engine().Resume(g.Context(), thread.ResumeRequest{Thread: id, Text: "Here is the answer.", Limits: map[string]float64{"maxSteps": 50}})
		if f.Status == "cancelled" || f.Status == "ended" && !f.Resumes {
			if life.KindOf(err) == life.KindDone {
				g.Errorf("a thread that was %s goes on", f.Status)
			}
			return
		}
		g.ok(err)
	}
	plan, err := g.engine().PlanStep(g.Context(), g.at(id))
	if life.KindOf(err) != life.KindSuspended {
		g.ok(err)
	}
	if f.Next != "" && plan.Role != f.Next || plan.Step != len(f.Steps)+1 || plan.Prompt == "" && plan.Suspended == nil {
		g.Errorf("next is role %s at step %d; the store said %s after %d steps", plan.Role, plan.Step, f.Next, len(f.Steps))
	}
	g.steps(id, len(f.Steps))
}

// delivers brings a thread that has ended off the tip.
func (g *golden) delivers(id gitcas.ThreadID, f threadFacts) {
	g.Helper()
	if f.Status == "suspended" {
		g.ok(g.engine().Resume(g.Context(), thread.ResumeRequest{Thread: id}))
	}
	res, err := g.deliver(id, life.Effects{PR: 77}, nil)
	g.ok(err)
	if now := g.read()[id]; now.Status != "ended" || now.PR != 77 || now.Head != f.Head || res.Step != len(f.Steps) {
		g.Errorf("delivered: %+v, %+v", now, res)
	}
	g.sound()
}

// steps works on a thread until it ends or waits, at most five steps, and checks
// that nothing of what was there has changed.
func (g *golden) steps(id gitcas.ThreadID, before int) {
	g.Helper()
	for n := 1; n <= 5; n++ {
		res, err := g.step(id)
		if n == 1 && life.KindOf(err) == life.KindSuspended { // the step before asks a person
			g.ok(g.engine().Resume(g.Context(), thread.ResumeRequest{Thread: id, Text: "Here is the answer."}))
			res, err = g.step(id)
		}
		g.ok(err)
		if res.Step != before+n || res.Role == "" {
			g.Fatalf("step %d after %d: %+v", n, before, res)
		}
		if res.Done || res.Suspended != nil {
			break
		}
	}
	g.sound()
}

// forks makes a thread of the first step of one, or of none, and works on it.
func (g *golden) forks(id gitcas.ThreadID, f threadFacts) {
	g.Helper()
	share := min(1, len(f.Steps))
	fork := gitcas.ThreadID("01ZZ9000000000000000000000")
	_, err := g.engine().Fork(g.Context(), thread.ForkRequest{ID: fork, From: id, Steps: share})
	if life.KindOf(err) == life.KindNotYours && share == 1 { // nothing is left to do after it
		share = 0
		_, err = g.engine().Fork(g.Context(), thread.ForkRequest{ID: fork, From: id})
	}
	g.ok(err)
	g.steps(fork, share)
	now := g.read()
	if share == 1 && now[fork].Steps[0].Hash != f.Steps[0].Hash || len(now[fork].Steps) <= share {
		g.Errorf("the fork is %+v", now[fork])
	}
	was, is := g.text(f), g.text(now[id])
	if !bytes.Equal(was, is) {
		g.Errorf("the forked thread has become\n%s\nit was\n%s", is, was)
	}
}
