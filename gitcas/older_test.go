package gitcas

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// TestOlderSteps: a thread's folder keeps its newest steps, and what was moved out of it is found, is
// what it was, and was not removed. The newest steps are the end of the chain.
func TestOlderSteps(t *testing.T) {
	mem := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})
	s := Open(mem, testOptions())
	id := threadID(1)
	v := mustPush(t, s, mustInit(t, s), startChange(t, id, "p"))
	for n := 1; n <= 5*layout.KeptSteps+3; n++ {
		c := stepChange(t, v, id, []string{"developer", "reviewer"}[n%2], fmt.Sprint("note ", n))
		c.Readable = map[string][]byte{layout.PagePath(id, n, "developer"): []byte("# page\n"), layout.IndexPath(id): []byte("# index\n")}
		v = mustPush(t, s, v, c)

		fresh := mustLoad(t, Open(mem, testOptions()), id)
		d, err := fresh.ThreadFolder(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		records, want := 0, n
		if n >= 2*layout.KeptSteps {
			want = layout.KeptSteps + n%layout.KeptSteps
		}
		for _, e := range d.Entries() {
			if of, _, isNode := layout.ParseNodeFile(e.Name); isNode && of == "" {
				records++
			}
		}
		if records != want+1 {
			t.Fatalf("after step %d the folder has %d records, want %d and the StartNode", n, records, want)
		}

		tail, err := fresh.ReadTail(t.Context(), id, 0)
		if err != nil || len(tail.Steps) != want || tail.Skipped() != n-want {
			t.Fatalf("after step %d: %d steps are read, %d left out: %v", n, len(tail.Steps), tail.Skipped(), err)
		}
		all, err := fresh.ReadChain(t.Context(), id)
		if err != nil || len(all.Steps) != n || !reflect.DeepEqual(all.Steps[n-want:], tail.Steps) || !tail.Counts.Equal(all.Counts) || tail.Start.Prompt != all.Start.Prompt {
			t.Fatalf("after step %d the whole chain has %d steps: %v", n, len(all.Steps), err)
		}

		if u, _ := mustEntry(t, fresh, id).Known(); u != all.Used() {
			t.Errorf("after step %d the entry says %+v, and the chain %+v", n, u, all.Used())
		}
		first := all.Steps[0]
		if _, err := below(t.Context(), fresh, id, first.Hash, first.Detail); err != nil {
			t.Errorf("after step %d: the first step's detail: %v", n, err)
		}
	}
	mustSound(t, s)

	more, err := mustLoad(t, Open(mem, testOptions()), id).ReadTail(t.Context(), id, 20)
	if err != nil || len(more.Steps) < 20 || len(more.Steps) >= 20+layout.KeptSteps {
		t.Errorf("of at least 20 steps %d are read: %v", len(more.Steps), err)
	}

	fork := threadID(2)
	v = mustPush(t, s, v, &Change{Subject: "fork", Forks: map[ThreadID]ThreadID{fork: id}, Threads: map[ThreadID]*Entry{fork: {Head: more.Steps[0].Hash}}})
	c, err := v.ReadChain(t.Context(), fork)
	if err != nil || len(c.Steps) != more.Skipped()+1 {
		t.Errorf("the fork has %d steps: %v", len(c.Steps), err)
	}
	mustPush(t, s, v, stepChange(t, v, fork, "developer", "other"))
	mustSound(t, s)

	mustPush(t, s, mustLoad(t, s, id), endChange(t, mustLoad(t, s, id), id, "the end"))
	mustSound(t, s)
}

// TestWrongCounts: whoever reads the chain finds counts that are not those of its steps, and so does
// fsck.
func TestWrongCounts(t *testing.T) {
	for name, lie := range map[string]func(c *record.Counts){
		"steps":  func(c *record.Counts) { c.Done.Steps-- },
		"tokens": func(c *record.Counts) { c.Done.Tokens++ },
		"tries":  func(c *record.Counts) { c.Tries.Steps++ },
		"role":   func(c *record.Counts) { c.Roles[0].Steps++ },
		"last":   func(c *record.Counts) { c.Roles[0].Last-- },
		"nobody": func(c *record.Counts) { c.Roles = append(c.Roles, record.RoleCount{Role: "z"}) },
	} {
		s := Open(wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true}), testOptions())
		id := threadID(1)
		threadWithSteps(t, s, id, 2)

		v := mustLoad(t, s, id)
		c := stepChange(t, v, id, "developer", "more")
		e := *c.Threads[id]
		for i, n := range c.Nodes {
			if n.Hash != e.Head {
				continue
			}
			step, err := record.ParseStep(n.Node)
			if err != nil {
				t.Fatal(err)
			}
			lie(step.Counts)
			node, h, err := step.Node(time.UnixMilli(1))
			if err != nil {
				t.Fatal(err)
			}
			for k := range c.Nodes {
				if c.Nodes[k].Place.Of == e.Head {
					c.Nodes[k].Place.Of = h
				}
			}
			c.Nodes[i].Node, c.Nodes[i].Hash, e.Head = node, h, h
		}
		c.Threads[id] = &e

		v = mustPush(t, s, v, c)
		if _, err := v.ReadChain(t.Context(), id); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "its counts are not those") {
			t.Errorf("%s: %v", name, err)
		}
		r, err := s.Fsck(t.Context(), false)
		if err != nil || len(r.Problems) != 1 || r.Problems[0].Path != (Place{Thread: id}).Path(e.Head) {
			t.Errorf("%s: fsck: %+v, %v", name, r.Problems, err)
		}
	}
}

// TestHistoryFindsMovedSteps: a commit that takes a step out of a thread's folder, and does not put
// it with the older ones as it was, is damage.
func TestHistoryFindsMovedSteps(t *testing.T) {
	mem := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})
	s := Open(mem, testOptions())
	id := threadID(1)
	v := mustPush(t, s, mustInit(t, s), startChange(t, id, "p"))
	pushLong(t, s, v, id, 2*layout.KeptSteps)
	x := &vandal{t: t, mem: mem, s: s, v: mustLoad(t, s, id)}
	c, err := x.v.ReadChain(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	x.edit(layout.ThreadPath(id)+"/"+layout.OlderSteps(1)+"/"+layout.FileOf(c.Steps[2].Hash), gone)
	r, err := s.Fsck(t.Context(), true)
	if err != nil || !strings.Contains(fmt.Sprint(r.Problems), "it removes "+layout.ThreadPath(id)+"/"+layout.OlderSteps(1)) {
		t.Errorf("%+v, %v", r.Problems, err)
	}
}
