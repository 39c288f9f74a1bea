package thread_test

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/united-workforce/uwf/engine/redact"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/rewrite"
)

// purgeEvery is how many words of a golden store share one test; UWF_PURGE_ALL=1
// takes out every one of them.
const purgeEvery = 40

var goldenWord = regexp.MustCompile(`[A-Za-z]{6,}`)

// TestGoldenPurge: whatever word is taken out of a store's history, every thread
// of it still reads, goes on and forks. It takes the words of all golden stores, in
// turn.
func TestGoldenPurge(t *testing.T) {
	files, err := filepath.Glob("testdata/golden/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d golden files, %v", len(files), err)
	}
	every := purgeEvery
	if os.Getenv("UWF_PURGE_ALL") != "" {
		every = 1
	}
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		words := map[string]bool{}
		for _, w := range goldenWord.FindAllString(string(section(t, a, "store")), -1) {
			words[w] = true
		}
		ran, purged := 0, 0
		for i, word := range slices.Sorted(maps.Keys(words)) {
			if needle, _, err := redact.NewNeedle([]string{word}); err == nil && (i%every == 0 || purged == 0) {
				t.Run(goldenName(file)+"/"+word, func(t *testing.T) {
					ran++
					purged += purgeWord(t, a, needle)
				})
			}
		}
		if ran > 0 && purged == 0 {
			t.Errorf("%s: no word was purged", file)
		}
	}
}

func purgeWord(t *testing.T, a *txtar.Archive, needle *redact.Needle) (changed int) {
	var f facts
	if err := json.Unmarshal(section(t, a, "facts.json"), &f); err != nil {
		t.Fatal(err)
	}
	inGolden(t, a, func(g *golden) {
		o := rewrite.Options{
			Branch: g.store().Branch(), Store: layout.StoreRef, Attempts: layout.Attempts,
			Atomic: true, Find: needle, Verify: stillWorkflow,
		}
		_, err := rewrite.New(g.mem, o).MakePlan(g.Context())
		if fixed := new(rewrite.FixedError); err != nil && !errors.As(err, &fixed) {
			g.Fatal(err)
		}
		o.LeaveNames = true
		r := rewrite.New(g.mem, o)
		plan, err := r.MakePlan(g.Context())
		g.ok(err)
		_, err = r.Execute(g.Context())
		g.ok(err)
		changed = plan.Changed
		g.sound()
		now := g.read()
		for id, was := range f {
			if is := now[id]; is.Status != was.Status || len(is.Steps) != len(was.Steps) || is.Next != was.Next {
				g.Errorf("thread %s: status %s next %s after %d steps, was %s, %s, %d", id, is.Status, is.Next, len(is.Steps), was.Status, was.Next, len(was.Steps))
			}
		}
		for _, id := range f.ids() {
			g.goOn(id, now[id])
		}
	})
	return changed
}

func stillWorkflow(g node.Getter, h node.Hash, n node.Node) error {
	if !record.IsWorkflow(n.Type) {
		return nil
	}
	_, err := workflow.FromNode(both{g, h, n}, h)
	return err
}

// both is a Getter that knows one node more.
type both struct {
	node.Getter
	h node.Hash
	n node.Node
}

func (b both) Get(h node.Hash) (node.Node, error) {
	if h == b.h {
		return b.n, nil
	}
	return b.Getter.Get(h)
}
