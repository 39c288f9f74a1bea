package gitcas

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// suite is what every kind of remote must pass; only names some of its tests,
// none stands for all.
func suite(t *testing.T, remote func(t *testing.T) wire.Remote, only ...string) {
	for _, tc := range []struct {
		name string
		run  func(t *testing.T, s *Store)
	}{
		{"init twice", testInit}, {"thread", testThread}, {"details", testDetails}, {"end", testEnd},
		{"fork", testFork}, {"lives", testLives}, {"claims", testClaims}, {"attempts", testAttempts}, {"registry", testRegistry},
		{"union", testUnion}, {"lost race", testLostRace}, {"log", testLog}, {"find", testFind}, {"refused", testRefused},
		{"unanswered", testUnanswered}, {"dead branch", testBranchGone}, {"set back", testSetBack},
	} {
		if len(only) == 0 || slices.Contains(only, tc.name) {
			t.Run(tc.name, func(t *testing.T) { tc.run(t, Open(remote(t), testOptions())) })
		}
	}
}

func testInit(t *testing.T, s *Store) {
	_, err := s.Load(t.Context())
	wantErr(t, err, ErrNoStore)
	v := mustInit(t, s)
	if v.StoreID() == "" || len(v.Threads()) != 0 || len(v.Registry()) != 0 {
		t.Fatalf("a new store has id %q, threads %v, registry %v", v.StoreID(), v.Threads(), v.Registry())
	}
	if again := mustInit(t, s); again.Tip() != v.Tip() || again.StoreID() != v.StoreID() {
		t.Fatal("the second Init made another store")
	}
	if mark, ok := v.Ref(layout.StoreRef); !ok || mark != v.Tip() {
		t.Fatalf("%s is %s, the tip %s", layout.StoreRef, mark, v.Tip())
	}
	mustSound(t, s)
}

// threadWithSteps makes a thread with n steps.
func threadWithSteps(t testing.TB, s *Store, id ThreadID, n int) *View {
	t.Helper()
	v := mustInit(t, s)
	v = mustPush(t, s, v, startChange(t, id, "prompt of "+string(id)))
	for i := range n {
		v = mustPush(t, s, v, stepChange(t, v, id, "developer", fmt.Sprintf("%s step %d", id, i+1)))
	}
	return v
}

func testThread(t *testing.T, s *Store) {
	id := threadID(1)
	pushed := threadWithSteps(t, s, id, 3)
	for name, v := range map[string]*View{"after the push": pushed, "loaded": mustLoad(t, s, id)} {
		c, err := v.ReadChain(t.Context(), id)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if c.Start.Prompt != "prompt of "+string(id) || len(c.Steps) != 3 {
			t.Fatalf("%s: start %q, %d steps", name, c.Start.Prompt, len(c.Steps))
		}
		e, _ := v.Entry(id)
		if e.Head != c.Steps[2].Hash || e.Key != "test/prompt of "+string(id) || e.Status != StatusActive {
			t.Fatalf("%s: entry %+v", name, e)
		}
		own := func(i int) node.Getter { return v.In(t.Context(), Place{Thread: id, Of: c.Steps[i].Hash}) }
		n, err := own(1).Get(*c.Steps[1].Body)
		if err != nil || n.Payload != "body of "+string(id)+" step 2" {
			t.Fatalf("%s: body %v, %v", name, n.Payload, err)
		}
		if _, err = own(0).Get(*c.Steps[1].Body); !errors.Is(err, node.ErrNotFound) {
			t.Fatalf("%s: a step's folder has what another one refers to: %v", name, err)
		}
		if _, err = own(0).Get(c.Steps[0].Detail); !errors.Is(err, node.ErrNotFound) {
			t.Fatalf("%s: details are found without asking for them: %v", name, err)
		}
	}
	if a, b := pushed.Tip(), mustLoad(t, s, id).Tip(); a != b {
		t.Fatalf("the view after the push is at %s, the branch at %s", a, b)
	}
	if r := mustSound(t, s); r.Threads != 1 || r.Commits != 5 {
		t.Fatalf("fsck saw %+v", r)
	}
}

func testDetails(t *testing.T, s *Store) {
	id := threadID(1)
	threadWithSteps(t, s, id, 3)
	v := mustLoad(t, s, id)
	c, err := v.ReadChain(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for i, step := range c.Steps {
		n, err := below(t.Context(), v, id, step.Hash, step.Detail)
		if want := fmt.Sprintf("detail of %s step %d", id, i+1); err != nil || n.Payload != want {
			t.Fatalf("detail of step %d: %v, %v", i+1, n.Payload, err)
		}
	}
	if n, err := below(t.Context(), v, id, c.Steps[0].Hash, *c.Steps[0].Body); err != nil || n.Payload == nil {
		t.Fatalf("a node beside the details: %v", err)
	}
	if _, err = below(t.Context(), v, id, c.Steps[0].Hash, "0000000000000"); !errors.Is(err, node.ErrNotFound) {
		t.Fatalf("a missing detail: %v", err)
	}
}

func endChange(t testing.TB, v *View, id ThreadID, note string) *Change {
	t.Helper()
	c := stepChange(t, v, id, "reviewer", note)
	e := c.Threads[id]
	e.Status = StatusEnded
	c.Archive = []Ended{{Thread: id, Workflow: e.Workflow, Head: e.Head, Reason: "ended", CompletedAt: 1_700_000_000_000, Key: e.Key}}
	return c
}

func testEnd(t *testing.T, s *Store) {
	first, second := threadID(1), threadID(2)
	threadWithSteps(t, s, first, 2)
	threadWithSteps(t, s, second, 1)
	v := mustLoad(t, s, first, second)
	before, _ := v.ReadChain(t.Context(), first)

	// Ended, but not at this head: nothing is archived.
	stale := endChange(t, v, first, "last")
	stale.Archive[0].Head = before.StartHash
	_, err := s.Push(t.Context(), v, stale)
	wantErr(t, err, ErrStale)

	v = mustPush(t, s, v, endChange(t, v, first, "last"))
	if _, alive := v.Entry(first); alive {
		t.Fatal("the ended thread is still in threads.yaml")
	}
	cancel := &Change{Subject: "cancelled", Archive: []Ended{{Thread: second, Head: mustEntry(t, v, second).Head, Reason: "cancelled", Note: "no longer needed", CompletedAt: 1_800_000_000_000}}}
	mustPush(t, s, v, cancel)

	v = mustLoad(t, s)
	var got []string
	err = v.History(t.Context(), time.Time{}, func(e Ended) error {
		got = append(got, fmt.Sprintf("%s %s %d", e.Thread, e.Reason, len(e.Steps)))
		return nil
	})
	want := []string{string(second) + " cancelled 1", string(first) + " ended 3"}
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("history %q, %v; want %q", got, err, want)
	}
	e, ok, err := v.FindEnded(t.Context(), first)
	if err != nil || !ok {
		t.Fatalf("find the ended thread: %v, %v", ok, err)
	}
	past, err := v.LoadEnded(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	c, err := past.ReadChain(t.Context(), first)
	if err != nil || len(c.Steps) != 3 {
		t.Fatalf("the ended chain has %d steps, %v", len(c.Steps), err)
	}
	if _, err := below(t.Context(), past, first, c.Steps[2].Hash, c.Steps[2].Detail); err != nil {
		t.Fatal(err)
	}
	_, err = s.Push(t.Context(), past, cancel)
	wantErr(t, err, ErrInvalid)
	if _, ok, err := v.FindEnded(t.Context(), threadID(77)); ok || err != nil {
		t.Fatalf("a thread that never was: %v, %v", ok, err)
	}
	if r := mustSound(t, s); r.Ended != 2 || r.Threads != 0 {
		t.Fatalf("fsck saw %+v", r)
	}
}

func mustEntry(t testing.TB, v *View, id ThreadID) Entry {
	t.Helper()
	e, ok := v.Entry(id)
	if !ok {
		t.Fatalf("thread %s has no entry", id)
	}
	return e
}

func testFork(t *testing.T, s *Store) {
	from, to, late := threadID(1), threadID(2), threadID(3)
	threadWithSteps(t, s, from, 3)
	v := mustLoad(t, s, from)
	c, _ := v.ReadChain(t.Context(), from)
	fork := func(id ThreadID) *Change {
		return &Change{
			Subject: "forked", Forks: map[ThreadID]ThreadID{id: from},
			Threads: map[ThreadID]*Entry{id: {Head: c.Steps[1].Hash, Workflow: c.Start.Workflow}},
		}
	}
	mustPush(t, s, v, fork(to))
	v = mustLoad(t, s, to)
	got, err := v.ReadChain(t.Context(), to)
	if err != nil || len(got.Steps) != 2 || got.Steps[1].Hash != c.Steps[1].Hash {
		t.Fatalf("the fork's chain: %+v, %v", got, err)
	}
	if _, err := below(t.Context(), v, to, c.Steps[0].Hash, c.Steps[0].Detail); err != nil {
		t.Fatal(err)
	}
	names := folderNames(t, v, to)
	for name, shared := range map[string]bool{
		layout.FileOf(c.Steps[1].Hash): true, layout.FileOf(c.Steps[2].Hash): false,
		Place{Thread: to, Of: c.Steps[1].Hash}.File(c.Steps[1].Output): true, Place{Thread: to, Of: c.Steps[2].Hash}.File(c.Steps[2].Output): false,
		"detail/" + string(c.Steps[1].Hash): true, "detail/" + string(c.Steps[2].Hash): false,
		"pages/02-developer.md": true, "pages/03-developer.md": false,
	} {
		if slices.Contains(names, name) != shared {
			t.Fatalf("the fork's folder holds %q: %s should be %v", names, name, shared)
		}
	}
	v = mustPush(t, s, v, stepChange(t, v, to, "reviewer", "the fork's own"))

	// Of a thread that has ended too.
	v, err = s.Reload(t.Context(), v, from)
	if err != nil {
		t.Fatal(err)
	}
	mustPush(t, s, v, endChange(t, v, from, "over"))
	mustPush(t, s, mustLoad(t, s), fork(late))
	if got, err := mustLoad(t, s, late).ReadChain(t.Context(), late); err != nil || len(got.Steps) != 2 {
		t.Fatalf("the late fork's chain: %+v, %v", got, err)
	}
	_, err = s.Push(t.Context(), mustLoad(t, s), fork(to))
	wantErr(t, err, ErrInvalid)
	mustSound(t, s)
}

func folderNames(t testing.TB, v *View, id ThreadID) []string {
	t.Helper()
	d, err := v.ThreadFolder(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range d.Entries() {
		out = append(out, e.Name)
		if !e.IsDir() {
			continue
		}
		below, err := v.Reader.Below(t.Context(), d, e.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range below.Entries() {
			out = append(out, e.Name+"/"+x.Name)
		}
	}
	return out
}

func testClaims(t *testing.T, s *Store) {
	id := threadID(1)
	v := threadWithSteps(t, s, id, 1)
	c := Claim{Run: "run-1", Attempt: 1, Host: "h", PID: 7, Head: mustEntry(t, v, id).Head, Since: 5, Renewed: 5}
	u, objs := view.ClaimUpdate(id, nil, &c, v.Time())
	held := mustPush(t, s, v, &Change{Refs: []wire.RefUpdate{u}, Objects: objs})
	got, ok := held.FindClaim(id)
	if !ok || got.Run != "run-1" || got.ID != u.New {
		t.Fatalf("the claim after the push: %+v", got)
	}
	if got, ok := mustLoad(t, s, id).FindClaim(id); !ok || got.Renewed != 5 || got.Head != c.Head {
		t.Fatalf("the claim as loaded: %+v", got)
	}
	if got, ok := mustLoad(t, s).FindClaim(id); !ok || got.PID != 7 {
		t.Fatalf("the claim in a view of all: %+v", got)
	}
	_, err := s.Push(t.Context(), v, &Change{Refs: []wire.RefUpdate{u}, Objects: objs})
	wantErr(t, err, ErrLostRace)

	c.Renewed = 9
	u, objs = view.ClaimUpdate(id, &got, &c, held.Time())
	renewed := mustPush(t, s, held, &Change{Refs: []wire.RefUpdate{u}, Objects: objs})
	// The step's commit deletes the claim in the same push.
	last, _ := renewed.FindClaim(id)
	step := stepChange(t, renewed, id, "developer", "with a claim")
	del, _ := view.ClaimUpdate(id, &last, nil, renewed.Time())
	step.Refs = append(step.Refs, del)
	done := mustPush(t, s, renewed, step)
	if _, ok := done.FindClaim(id); ok {
		t.Fatal("the claim is still there")
	}
	if _, ok := mustLoad(t, s, id).FindClaim(id); ok {
		t.Fatal("the claim is still on the remote")
	}
	// A step whose claim is gone changes nothing.
	fresh := mustLoad(t, s, id)
	step = stepChange(t, fresh, id, "developer", "without a claim")
	step.Refs = append(step.Refs, del)
	_, err = s.Push(t.Context(), fresh, step)
	if s.Atomic(fresh) {
		wantErr(t, err, ErrLostRace)
		if after := mustLoad(t, s); after.Tip() != fresh.Tip() {
			t.Fatal("the refused push moved the branch")
		}
	} else if err != nil {
		t.Fatal(err)
	}
}

func testAttempts(t *testing.T, s *Store) {
	id := threadID(1)
	v := threadWithSteps(t, s, id, 1)
	c, _ := v.ReadChain(t.Context(), id)
	_, nodes := nextStep(t, c, id, "developer", "in vain")
	file := wire.NewObject(3, []byte("package main\n"))
	work := oneFile("main.go", file.ID)
	a := Attempt{Thread: id, Run: "run 9/x", Attempt: 2, Nodes: nodes, WorkTree: work.Object.ID, Error: "it failed\x1b[31m", At: v.Time()}
	u, objs, err := BuildAttempt(a)
	if err != nil {
		t.Fatal(err)
	}
	objs = append(objs, wire.PackObject{Object: file}, wire.PackObject{Object: work.Object})
	e := mustEntry(t, v, id)
	e.Attempts = []string{u.Name}
	mustPush(t, s, v, &Change{Subject: "failed", Threads: map[ThreadID]*Entry{id: &e}, Refs: []wire.RefUpdate{u}, Objects: objs})
	v = mustLoad(t, s, id)
	if at, ok := v.Ref(u.Name); !ok || at != u.New {
		t.Fatalf("the attempt's ref is %s", at)
	}
	got, err := s.ReadAttempt(t.Context(), v, u.Name)
	if err != nil {
		t.Fatal(err)
	}
	if got.Run != "run-9-x" || got.Attempt != 2 || got.Thread != id || got.Error != a.Error || got.WorkTree != a.WorkTree || len(got.Nodes) != len(nodes) {
		t.Fatalf("read %+v", got)
	}
	places := map[node.Hash]Place{}
	for _, n := range nodes {
		places[n.Hash] = n.Place
	}
	for _, n := range got.Nodes {
		if places[n.Hash] != n.Place {
			t.Errorf("node %s: place %+v, want %+v", n.Hash, n.Place, places[n.Hash])
		}
	}
	if _, err = s.ReadAttempt(t.Context(), v, layout.AttemptRef(id, "other", 1)); !errors.Is(err, wire.ErrNotFound) {
		t.Fatalf("a missing attempt: %v", err)
	}
	// A dead claim kept as an attempt.
	cu, cobjs := view.ClaimUpdate(id, nil, &Claim{Run: "r", Attempt: 1, Head: e.Head}, v.Time())
	cu.Name = layout.AttemptRef(id, "r", 1)
	v = mustPush(t, s, v, &Change{Refs: []wire.RefUpdate{cu}, Objects: cobjs})
	if got, err := s.ReadAttempt(t.Context(), v, cu.Name); err != nil || got.Claim == nil || got.Claim.Run != "r" {
		t.Fatalf("a dead claim's attempt: %+v, %v", got, err)
	}
	// One that could not be linked.
	a.Run, a.Unlinked = "r2", e.Head
	left, objs, err := BuildAttempt(a)
	if err != nil {
		t.Fatal(err)
	}
	v = mustPush(t, s, v, &Change{Refs: []wire.RefUpdate{left}, Objects: append(objs, wire.PackObject{Object: file}, wire.PackObject{Object: work.Object})})
	if got, err := s.ReadAttempt(t.Context(), v, left.Name); err != nil || got.Unlinked != e.Head || got.Error != a.Error || len(got.Nodes) != len(nodes) {
		t.Fatalf("one that is not linked: %+v, %v", got, err)
	}
	found, err := s.Unlinked(t.Context(), v, []string{u.Name, layout.AttemptRef(id, "other", 1), cu.Name, left.Name})
	if err != nil || !slices.Equal(found, []string{left.Name}) {
		t.Fatalf("not linked are %q, %v", found, err)
	}
	if found, err := s.Unlinked(t.Context(), v, nil); err != nil || len(found) > 0 {
		t.Fatalf("%q, %v", found, err)
	}
	mustPush(t, s, v, &Change{Refs: []wire.RefUpdate{{Name: left.Name, Old: left.New}}})
	if found, err := s.Unlinked(t.Context(), v, []string{left.Name}); err != nil && !errors.Is(err, wire.ErrUnreachable) {
		t.Fatalf("of one that was deleted: %q, %v", found, err)
	}
}

func testRegistry(t *testing.T, s *Store) {
	wf := workflowNode(t)
	v := mustInit(t, s)
	v = mustPush(t, s, v, &Change{Subject: "put a", Nodes: []PlacedNode{wf}, Registry: map[string]*RegistryEntry{
		"a": {Hash: wf.Hash, Timestamp: 5, History: []RegistryVersion{{Hash: "0000000000000", Timestamp: 1}}}, "yes": {Hash: wf.Hash},
	}})
	mustPush(t, s, v, &Change{Subject: "put b", Registry: map[string]*RegistryEntry{"b c": {Hash: wf.Hash}, "yes": nil}})
	got := mustLoad(t, s).Registry()
	if len(got) != 2 || got["a"].History[0].Timestamp != 1 || got["b c"].Hash != wf.Hash {
		t.Fatalf("registry %+v", got)
	}
}

// testUnion: two jobs put the same shared node at different times; another payload
// under a known hash is refused.
func testUnion(t *testing.T, s *Store) {
	v := mustInit(t, s)
	wf := workflowNode(t)
	mustPush(t, s, v, &Change{Subject: "first", Nodes: []PlacedNode{wf}})
	later := wf
	later.Node.Timestamp += 1000
	v = mustPush(t, s, mustLoad(t, s), &Change{Subject: "second", Nodes: []PlacedNode{later}})
	n, err := v.Get(t.Context(), wf.Hash)
	if err != nil || n.Timestamp != wf.Node.Timestamp {
		t.Fatalf("the node that was there first was replaced: %v, %v", n.Timestamp, err)
	}
	forged := wf
	forged.Node.Payload = "something else"
	_, err = s.Push(t.Context(), v, &Change{Subject: "forged", Nodes: []PlacedNode{forged}})
	wantErr(t, err, ErrInvalid)
}

func testLostRace(t *testing.T, s *Store) {
	first, second := threadID(1), threadID(2)
	threadWithSteps(t, s, first, 1)
	threadWithSteps(t, s, second, 1)
	a, b := mustLoad(t, s, first), mustLoad(t, s, second)
	mustPush(t, s, a, stepChange(t, a, first, "developer", "first in"))
	_, err := s.Push(t.Context(), b, stepChange(t, b, second, "developer", "too late"))
	wantErr(t, err, ErrLostRace)
	tries := 0
	v, err := s.Update(t.Context(), b, func(v *View) (*Change, error) {
		tries++
		return stepChange(t, v, second, "developer", "rebuilt"), nil
	}, second)
	if err != nil || tries != 2 {
		t.Fatalf("%d tries, %v", tries, err)
	}
	if c, err := v.ReadChain(t.Context(), second); err != nil || len(c.Steps) != 2 {
		t.Fatalf("%d steps, %v", len(c.Steps), err)
	}
	v = mustLoad(t, s, first, second)
	for _, id := range []ThreadID{first, second} {
		if c, err := v.ReadChain(t.Context(), id); err != nil || len(c.Steps) != 2 {
			t.Fatalf("thread %s: %d steps, %v", id, len(c.Steps), err)
		}
	}
	mustSound(t, s)
}

func testLog(t *testing.T, s *Store) {
	first, second := threadID(1), threadID(2)
	threadWithSteps(t, s, first, 2)
	threadWithSteps(t, s, second, 2)
	v := mustLoad(t, s, first)
	mustPush(t, s, v, stepChange(t, v, first, "developer", "with\n\nUwf-Thread: forged\n\nlines"))
	check := func(id ThreadID, want ...string) {
		t.Helper()
		var got []string
		err := mustLoad(t, s).Log(t.Context(), id, func(e view.LogEntry) error {
			got = append(got, e.Subject)
			for _, tr := range e.Trailers {
				if tr.Value == "forged" {
					t.Error("the body of a commit forms a trailer")
				}
			}
			return nil
		})
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("log of %s: %q, %v; want %q", id, got, err, want)
		}
	}
	started := "started · prompt of "
	check(first, "developer → done", "developer → done", "developer → done", started+string(first))
	check(second, "developer → done", "developer → done", started+string(second))
	v = mustLoad(t, s, second)
	mustPush(t, s, v, endChange(t, v, second, "over"))
	check(second, "reviewer → done", "developer → done", "developer → done", started+string(second))
	err := mustLoad(t, s).Log(t.Context(), threadID(9), func(view.LogEntry) error { return nil })
	wantErr(t, err, ErrUnknownThread)
}

func testFind(t *testing.T, s *Store) {
	alive, ended := threadID(1), threadID(2)
	threadWithSteps(t, s, alive, 2)
	v := threadWithSteps(t, s, ended, 2)
	gone, _ := mustLoad(t, s, ended).ReadChain(t.Context(), ended)
	mustPush(t, s, v, endChange(t, v, ended, "over"))
	c, _ := mustLoad(t, s, alive).ReadChain(t.Context(), alive)
	v = mustLoad(t, s)
	wf := workflowNode(t)
	for _, tc := range []struct {
		h    node.Hash
		want Place
		past bool
	}{{wf.Hash, Place{}, false}, {node.String, Place{}, false}, {c.Steps[0].Hash, Place{Thread: alive}, false}, {gone.Steps[0].Hash, Place{Thread: ended}, true}} {
		f, err := Find(t.Context(), v, tc.h)
		if err != nil || f.Place != tc.want || (f.Ended != nil) != tc.past || f.Node.Type == "" {
			t.Errorf("find %s: %+v, %v", tc.h, f, err)
		}
	}
	_, err := Find(t.Context(), v, "0000000000000")
	wantErr(t, err, node.ErrNotFound)
	_, err = Find(t.Context(), v, "nonsense")
	wantErr(t, err, ErrInvalid)
}

// testRefused: changes that must never reach the branch.
func testRefused(t *testing.T, s *Store) {
	id := threadID(1)
	v := threadWithSteps(t, s, id, 1)
	head := mustEntry(t, v, id).Head
	wrongType := placed(t, Place{Thread: id, Of: head}, outputSchema(t).Hash, map[string]any{"$status": "no such status"})
	hidden := stepChange(t, v, id, "developer", "its body lies among the details")
	for i, n := range hidden.Nodes {
		if text, _ := n.Node.Payload.(string); strings.HasPrefix(text, "body of") {
			hidden.Nodes[i].Place.Detail = true
		}
	}
	for name, c := range map[string]*Change{
		"hidden body":       hidden,
		"wrong hash":        {Nodes: []PlacedNode{{Hash: "0000000000000", Node: workflowNode(t).Node}}},
		"schema":            {Nodes: []PlacedNode{wrongType}},
		"head not there":    {Threads: map[ThreadID]*Entry{id: {Head: "0000000000000"}}},
		"bad id":            {Threads: map[ThreadID]*Entry{"../x": {Head: head}}},
		"nil entry":         {Threads: map[ThreadID]*Entry{id: nil}},
		"bad status":        {Threads: map[ThreadID]*Entry{id: {Head: head, Status: "strange"}}},
		"page path":         {Readable: map[string][]byte{"threads/" + string(id) + "/../../VERSION": nil}},
		"page elsewhere":    {Readable: map[string][]byte{"VERSION": nil}},
		"foreign branch":    {Threads: map[ThreadID]*Entry{id: {Head: head, Work: Work{Branch: "../x"}}}},
		"no such ended":     {Archive: []Ended{{Thread: threadID(5), Head: head, Reason: "ended"}}},
		"not ended":         {Archive: []Ended{{Thread: id, Head: head, Reason: "ended"}}},
		"strange reason":    {Archive: []Ended{{Thread: id, Head: head, Reason: "tired"}}},
		"bad name":          {Registry: map[string]*RegistryEntry{"a\nb": {Hash: head}}},
		"detail of no":      {Nodes: []PlacedNode{placed(t, Place{Detail: true}, node.String, "x")}},
		"thread without":    {Nodes: []PlacedNode{placed(t, Place{Thread: threadID(8), Of: head}, node.String, "x")}},
		"no record":         {Nodes: []PlacedNode{placed(t, Place{Thread: id}, node.String, "x")}},
		"folder of no hash": {Nodes: []PlacedNode{placed(t, Place{Thread: id, Of: "../../cas"}, node.String, "x")}},
		"record of none":    {Nodes: []PlacedNode{placed(t, Place{Of: head}, node.String, "x")}},
		"trailer":           {Nodes: []PlacedNode{workflowNode(t)}, Trailers: []Trailer{{Key: "a b", Value: "c"}}},
		"fork of nothing":   {Forks: map[ThreadID]ThreadID{threadID(6): threadID(7)}, Threads: map[ThreadID]*Entry{threadID(6): {Head: head}}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.Subject = "refused"; name == "no subject" {
				c.Subject = ""
			}
			_, err := s.Push(t.Context(), v, c)
			if !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrStale) && !errors.Is(err, ErrUnknownThread) {
				t.Fatalf("error %v", err)
			}
		})
	}
	if got := mustLoad(t, s); got.Tip() != v.Tip() {
		t.Fatal("the branch moved")
	}
}

func setRef(t testing.TB, s *Store, name string, old, now wire.ID) {
	t.Helper()
	if _, err := s.source.Remote.Push(t.Context(), wire.PushRequest{Updates: []wire.RefUpdate{{Name: name, Old: old, New: now}}}); err != nil {
		t.Fatal(err)
	}
}

func testBranchGone(t *testing.T, s *Store) {
	v := threadWithSteps(t, s, threadID(1), 2)
	setRef(t, s, s.source.Branch, v.Tip(), wire.ZeroID)
	_, err := s.Load(t.Context())
	wantErr(t, err, ErrBranchGone)
	var d *DamagedError
	if !errors.As(err, &d) || d.LastKnown != v.Tip() || !strings.Contains(d.Restore, v.Tip().String()) {
		t.Fatalf("%+v", d)
	}
	_, err = s.Init(t.Context())
	wantErr(t, err, ErrDamaged)
	// What was there last can be read, and nothing be built on it.
	known, err := s.LoadKnown(t.Context(), d.LastKnown, threadID(1))
	if err != nil {
		t.Fatal(err)
	}
	if c, err := known.ReadChain(t.Context(), threadID(1)); err != nil || len(c.Steps) != 2 {
		t.Fatalf("%d steps, %v", len(c.Steps), err)
	}
	if _, err := s.Push(t.Context(), known, stepChange(t, known, threadID(1), "developer", "no")); err == nil {
		t.Fatal("a step was put on a commit that is no tip")
	}
	_, err = s.LoadKnown(t.Context(), wire.ID{1, 2, 3})
	wantErr(t, err, wire.ErrNotFound)
	// What the message says restores it.
	setRef(t, s, s.source.Branch, wire.ZeroID, d.LastKnown)
	mustSound(t, s)
	// Without the ref the store works, and the next push makes it again.
	setRef(t, s, layout.StoreRef, v.Tip(), wire.ZeroID)
	v = mustLoad(t, s, threadID(1))
	v = mustPush(t, s, v, stepChange(t, v, threadID(1), "developer", "again"))
	if mark, ok := mustLoad(t, s).Ref(layout.StoreRef); !ok || mark != v.Tip() {
		t.Fatal("the ref was not made again")
	}
}

func testSetBack(t *testing.T, s *Store) {
	id := threadID(1)
	v1 := threadWithSteps(t, s, id, 1)
	v2 := mustPush(t, s, v1, stepChange(t, v1, id, "developer", "lost by a force push"))
	setRef(t, s, s.source.Branch, v2.Tip(), v1.Tip())
	_, err := s.Load(t.Context())
	wantErr(t, err, ErrRewritten)
	var d *DamagedError
	if !errors.As(err, &d) || d.LastKnown != v2.Tip() {
		t.Fatalf("%+v", d)
	}
	// A ref that lags behind is no damage, however far.
	setRef(t, s, s.source.Branch, v1.Tip(), v2.Tip())
	setRef(t, s, layout.StoreRef, v2.Tip(), v1.Tip())
	v3 := mustLoad(t, s, id)
	for i := range 3 {
		mark, _ := v3.Ref(layout.StoreRef)
		v3 = mustPush(t, s, v3, stepChange(t, v3, id, "developer", fmt.Sprintf("more %d", i)))
		setRef(t, s, layout.StoreRef, v3.Tip(), mark)
		v3 = mustLoad(t, s, id)
	}
	mustPush(t, s, v3, stepChange(t, v3, id, "developer", "the last"))
	if v := mustLoad(t, s); v.Refs()[layout.StoreRef] != v.Tip() {
		t.Fatal("the ref was not brought up")
	}
}

func TestMemory(t *testing.T) {
	at := newClock()
	suite(t, func(*testing.T) wire.Remote {
		return wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true, Now: at.now})
	})
}

func TestMemoryWithoutAtomic(t *testing.T) {
	suite(t, func(*testing.T) wire.Remote { return wiretest.NewMemory(wiretest.MemoryOptions{}) })
}

// TestMemoryOfFewRefs: a remote that takes so few refs a push that changes go in parts.
func TestMemoryOfFewRefs(t *testing.T) {
	for most := 1; most < StepRefs; most++ {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			suite(t, func(*testing.T) wire.Remote {
				return wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true, MostRefs: most})
			})
		})
	}
}

func TestMemoryWithoutFilter(t *testing.T) {
	suite(t, func(*testing.T) wire.Remote {
		return wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true, NoFilter: true})
	})
}
