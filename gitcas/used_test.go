package gitcas

import (
	"strings"
	"testing"

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
	s := Open(wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true}), testOptions())
	id := threadID(1)
	threadWithSteps(t, s, id, 2)
	v := mustLoad(t, s, id)
	e := mustEntry(t, v, id)
	e.Used.Steps = 3
	mustPush(t, s, v, &Change{Subject: "lie", Threads: map[ThreadID]*Entry{id: &e}})
	r, err := s.Fsck(t.Context(), false)
	if err != nil || len(r.Problems) != 1 || !strings.Contains(r.Problems[0].Why, "says 3 steps") {
		t.Errorf("%+v, %v", r.Problems, err)
	}
}
