package gitcas

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// TestUsed: an entry says what its chain says, whoever sets it.
func TestUsed(t *testing.T) {
	s := Open(wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true}), testOptions())
	id, fork := threadID(1), threadID(2)
	mustPush(t, s, mustInit(t, s), startChange(t, id, "p"))
	v := mustLoad(t, s, id)
	if u, known := mustEntry(t, v, id).Known(); known {
		t.Errorf("a thread without steps used %+v", u)
	}
	for n := 1; n <= 3; n++ {
		v = mustPush(t, s, v, stepChange(t, v, id, "developer", strings.Repeat("x", n)))
		if u, known := mustEntry(t, v, id).Known(); !known || u.Steps != n {
			t.Errorf("after step %d: %+v, %t", n, u, known)
		}
	}
	// A fork counts what it shares, and going back takes steps off again.
	e := mustEntry(t, v, id)
	first := e
	c, err := v.ReadChain(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	first.Head = c.Steps[0].Hash
	v = mustPush(t, s, v, &Change{Subject: "fork", Forks: map[ThreadID]ThreadID{fork: id}, Threads: map[ThreadID]*Entry{fork: {Head: c.Steps[1].Hash}, id: &first}})
	for id, want := range map[ThreadID]int{id: 1, fork: 2} {
		if u, known := mustEntry(t, v, id).Known(); !known || u.Steps != want {
			t.Errorf("%s: %+v, %t", id, u, known)
		}
	}
	// Who has not read the chain says nothing.
	v = mustLoad(t, s)
	e = mustEntry(t, v, id)
	e.Head = c.Steps[2].Hash
	v = mustPush(t, s, v, &Change{Subject: "blind", Threads: map[ThreadID]*Entry{id: &e}})
	if u, known := mustEntry(t, v, id).Known(); known {
		t.Errorf("not counted, and yet %+v", u)
	}
	mustSound(t, s)
}

// TestFsckUsed: an entry that lies about its chain.
func TestFsckUsed(t *testing.T) {
	for says, lie := range map[string]func(u *Used){
		"says 3 steps":                  func(u *Used) { u.Steps = 3 },
		"steps, 1 tokens, ":             func(u *Used) { u.Tokens++ },
		" and 1 ms; its":                func(u *Used) { u.DurationMs++ },
		"tokens, cost unknown and 0":    func(u *Used) { u.Unpriced = true },
		"tokens, $0.5000 and 0 ms; its": func(u *Used) { u.CostUSD += 0.5 },
	} {
		s := Open(wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true}), testOptions())
		id := threadID(1)
		threadWithSteps(t, s, id, 2)
		v := mustLoad(t, s, id)
		e := mustEntry(t, v, id)
		lie(&e.Used)
		mustPush(t, s, v, &Change{Subject: "lie", Threads: map[ThreadID]*Entry{id: &e}})
		r, err := s.Fsck(t.Context(), false)
		if err != nil || len(r.Problems) != 1 || !strings.Contains(r.Problems[0].Why, says) {
			t.Errorf("%s: %+v, %v", says, r.Problems, err)
		}
	}
}

// TestTotalCostRefuses: what can't be read of a failed attempt can't be added up.
func TestTotalCostRefuses(t *testing.T) {
	const failed, before node.Hash = "0000000000001", "0000000000002"
	step, _, err := record.Step{Role: "r", PreviousAttempts: []node.Hash{before}}.Node(time.UnixMilli(1))
	if err != nil {
		t.Fatal(err)
	}
	last, _, err := record.Step{Role: "r"}.Node(time.UnixMilli(1))
	if err != nil {
		t.Fatal(err)
	}
	c := Chain{Steps: []ChainStep{{Step: record.Step{PreviousAttempts: []node.Hash{failed}}}}}
	away := errors.New("away")
	for name, get := range map[string]func(node.Hash) (node.Node, error){
		"missing":               node.Map{}.Get,
		"away":                  func(node.Hash) (node.Node, error) { return last, away },
		"no step":               node.Map{failed: {Type: node.String, Payload: "x"}}.Get,
		"one before it is gone": node.Map{failed: step}.Get,
	} {
		if cost, err := c.Count("", get); err == nil {
			t.Errorf("%s: %+v", name, cost)
		}
	}
}
