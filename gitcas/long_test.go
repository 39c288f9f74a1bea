package gitcas

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// longSteps is a length at which a thread's folder lacks most of its steps.
const longSteps = 64

// longChange puts that many steps on a started thread at once.
func longChange(t *testing.T, v *View, id ThreadID, steps int) *Change {
	t.Helper()
	c, err := v.ReadChain(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	out := &Change{Subject: "many", Readable: map[string][]byte{}}
	e := mustEntry(t, v, id)
	for n := 1; n <= steps; n++ {
		step, nodes := nextStep(t, c, id, "developer", fmt.Sprint("note ", n))
		s, err := record.ParseStep(step.Node)
		if err != nil {
			t.Fatal(err)
		}
		c.Steps, c.Counts = append(c.Steps, ChainStep{Hash: step.Hash, Timestamp: step.Node.Timestamp, Step: s}), *s.Counts
		if c.Head, err = step.Node.Sum(); err != nil {
			t.Fatal(err)
		}
		out.Nodes = append(out.Nodes, nodes...)
		out.Readable[layout.PagePath(id, n, "developer")] = []byte("# page\n")
		e.Head = step.Hash
	}
	out.Threads = map[ThreadID]*Entry{id: &e}
	return out
}

// pushLong puts that many steps on a started thread, the last one by itself: then those before the
// newest are with the older ones.
func pushLong(t *testing.T, s *Store, v *View, id ThreadID, steps int) *View {
	t.Helper()
	v = mustPush(t, s, v, longChange(t, v, id, steps-1))
	return mustPush(t, s, v, stepChange(t, v, id, "developer", "the last"))
}

// TestLongThread: where a long thread stands costs the same whatever its length,
// and its chain one request more.
func TestLongThread(t *testing.T) {
	mem := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})
	s := Open(mem, testOptions())
	short, long := threadID(1), threadID(2)
	v := mustInit(t, s)
	for id, steps := range map[ThreadID]int{short: 2*layout.KeptSteps - 1, long: 5 * longSteps} {
		v = mustPush(t, s, v, startChange(t, id, "prompt of "+string(id)))
		v = pushLong(t, s, v, id, steps)
	}
	for id, want := range map[ThreadID]struct{ steps, load, summary, chain int }{
		short: {2*layout.KeptSteps - 1, 2, 0, 0}, long: {5 * longSteps, 2, 0, 1},
	} {
		requests, objects := 0, 0
		o := testOptions()
		watched := Open(&wrapped{Remote: mem, fetch: func(req wire.FetchRequest) error {
			objs, err := mem.Fetch(t.Context(), req)
			requests, objects = requests+1, objects+len(objs)
			return err
		}}, o)
		took := func() int {
			defer func() { requests = 0 }()
			return requests
		}
		v := mustLoad(t, watched, id)
		if n := took(); n != want.load {
			t.Errorf("%s: %d requests to load it, want %d", id, n, want.load)
		}
		sum, err := v.ReadSummary(t.Context(), id)
		if n := took(); err != nil || n != want.summary {
			t.Errorf("%s: %d requests to sum it up, want %d; %v", id, n, want.summary, err)
		}
		if id == long && objects > 60 {
			t.Errorf("%d objects were read", objects)
		}
		c, err := v.ReadChain(t.Context(), id)
		if n := took(); err != nil || n != want.chain {
			t.Errorf("%s: %d requests for its chain, want %d; %v", id, n, want.chain, err)
		}
		for _, st := range c.Steps {
			if _, err := v.In(t.Context(), Place{Thread: id, Of: st.Hash}).Get(st.Output); err != nil {
				t.Fatal(err)
			}
		}
		if n := took(); n != 0 {
			t.Errorf("%s: %d requests for outputs", id, n)
		}
		if sum.Used != c.Used() || sum.Used.Steps != want.steps || sum.StartHash != c.StartHash || sum.Start.Prompt != "prompt of "+string(id) {
			t.Errorf("%s: %+v", id, sum)
		}
	}
	mustSound(t, s)
}

// TestLongThreadNodes: who walks over the nodes of a long thread makes one request,
// not one for each.
func TestLongThreadNodes(t *testing.T) {
	mem := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})
	s := Open(mem, testOptions())
	id := threadID(1)
	v := mustPush(t, s, mustInit(t, s), startChange(t, id, "p"))
	pushLong(t, s, v, id, longSteps)
	requests := 0
	s = Open(&wrapped{Remote: mem, fetch: func(wire.FetchRequest) error { requests++; return nil }}, testOptions())
	v, requests = mustLoad(t, s, id), 0
	e := mustEntry(t, v, id)
	c, err := v.ReadChain(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range c.Steps {
		if _, err := v.In(t.Context(), Place{Thread: id, Of: st.Hash}).Get(st.Output); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.Steps) < longSteps || c.Steps[len(c.Steps)-1].Hash != e.Head || requests != 1 {
		t.Errorf("%d steps in %d requests", len(c.Steps), requests)
	}
}

// TestLongThreadDamage: what is shown of a long thread is checked, and its chain
// where that is used.
func TestLongThreadDamage(t *testing.T) {
	mem := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})
	s := Open(mem, testOptions())
	id := threadID(1)
	v := mustPush(t, s, mustInit(t, s), startChange(t, id, "p"))
	v = pushLong(t, s, v, id, longSteps)
	sound, err := v.ReadChain(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	tip, err := gitobj.DecodeCommit(mustObject(t, mem, v.Tip()))
	if err != nil {
		t.Fatal(err)
	}
	good := files(t, mem, tip.Tree, "")
	for name, tc := range map[string]struct {
		file          string
		summary, rest bool // whether Summary and Chain see it
	}{
		"head":   {"/" + layout.FileOf(sound.Steps[longSteps-1].Hash), true, true},
		"start":  {"/" + layout.FileOf(sound.StartHash), true, true},
		"middle": {"/" + layout.FileOf(sound.Steps[longSteps/2].Hash), false, true},
		"output": {"." + layout.FileOf(sound.Steps[longSteps/2].Output), false, true},
	} {
		for _, how := range []string{"gone", "other", "broken"} {
			list := slices.Clone(good)
			at := slices.IndexFunc(list, func(f txtar.File) bool { return strings.HasSuffix(f.Name, tc.file) })
			switch how {
			case "gone":
				list = slices.Delete(list, at, at+1)
			case "other":
				list[at].Data = []byte(strings.Replace(string(list[at].Data), `"payload": `, `"payload":  "x", "was": `, 1))
			case "broken":
				list[at].Data = []byte("{")
			}
			tip := commitFiles(t, mem, list)
			mem.SetRef(s.source.Branch, tip)
			mem.SetRef(layout.StoreRef, tip)
			v, err := s.Load(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := v.ReadSummary(t.Context(), id); errors.Is(err, ErrDamaged) != (tc.summary && (name != "output" || how == "gone")) {
				t.Errorf("%s %s: summary: %v", name, how, err)
			}
			if _, err := v.ReadChain(t.Context(), id); errors.Is(err, ErrDamaged) != (tc.rest && (name != "output" || how == "gone")) {
				t.Errorf("%s %s: chain: %v", name, how, err)
			}
		}
	}
}

// TestLyingLength: nobody believes an entry that calls a short thread long, or a thread without
// steps.
func TestLyingLength(t *testing.T) {
	mem := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})
	s := Open(mem, testOptions())
	id, empty := threadID(1), threadID(2)
	threadWithSteps(t, s, id, 2)
	v := mustPush(t, s, mustLoad(t, s), startChange(t, empty, "p"))
	for _, id := range []ThreadID{id, empty} {
		e := mustEntry(t, v, id)
		e.Used = Used{Head: e.Head, Steps: 1 << 30}
		v = mustPush(t, s, v, &Change{Subject: "lie", Threads: map[ThreadID]*Entry{id: &e}})
	}
	v = mustLoad(t, s, id, empty)
	if sum, err := v.ReadSummary(t.Context(), id); err != nil || sum.StartHash == "" {
		t.Errorf("%+v, %v", sum, err)
	}
	if sum, err := v.ReadSummary(t.Context(), empty); err != nil || sum.Used.Steps != 0 {
		t.Errorf("a thread without steps: %+v, %v", sum, err)
	}
	// A head that names something else as its start.
	x := newVandal(t)
	c, err := x.v.ReadChain(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	x.forgedStep(c, map[string]any{"start": string(c.Steps[0].Hash)})
	x.v = mustLoadTip(x)
	x.replace(layout.ThreadsName, func([]byte) []byte {
		head := mustEntry(t, x.v, id).Head
		return fmt.Appendf(nil, "%s: {head: %s, used: {head: %s, steps: %d}}\n", id, head, head, longSteps)
	})
	if _, err := mustLoad(t, x.s, id).ReadSummary(t.Context(), id); !errors.Is(err, ErrDamaged) {
		t.Errorf("a start that is none: %v", err)
	}
	// The next step sets it right.
	v = mustPush(t, s, v, stepChange(t, v, id, "developer", "more"))
	if u, _ := mustEntry(t, v, id).Known(); u.Steps != 3 {
		t.Errorf("%+v", u)
	}
}

// TestForkLong: a fork of a long thread, alive or ended, takes a fixed number of
// requests.
func TestForkLong(t *testing.T) {
	for _, ended := range []bool{false, true} {
		mem := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})
		s := Open(mem, testOptions())
		id, fork := threadID(1), threadID(2)
		v := mustPush(t, s, mustInit(t, s), startChange(t, id, "p"))
		v = pushLong(t, s, v, id, 2*longSteps)
		c, err := v.ReadChain(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if ended {
			mustPush(t, s, v, endChange(t, v, id, "the end"))
		}
		requests := 0
		s = Open(&wrapped{Remote: mem, fetch: func(wire.FetchRequest) error { requests++; return nil }}, testOptions())
		v = mustLoad(t, s)
		v = mustPush(t, s, v, &Change{Subject: "fork", Forks: map[ThreadID]ThreadID{fork: id}, Threads: map[ThreadID]*Entry{fork: {Head: c.Steps[longSteps].Hash}}})
		if requests > 10 {
			t.Errorf("ended %t: %d requests", ended, requests)
		}
		if u, known := mustEntry(t, v, fork).Known(); !known || u.Steps != longSteps+1 {
			t.Errorf("ended %t: %+v", ended, u)
		}
	}
}

// TestPrefetch: any number of shared nodes takes one request.
func TestPrefetch(t *testing.T) {
	mem := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})
	s := Open(mem, testOptions())
	c := &Change{Subject: "many"}
	hs := []node.Hash{"0000000000000"}
	for n := range 2 * maxSmallCas {
		p := placed(t, Place{}, node.String, fmt.Sprint("shared ", n))
		c.Nodes, hs = append(c.Nodes, p), append(hs, p.Hash)
	}
	mustPush(t, s, mustInit(t, s), c)
	requests := 0
	v := mustLoad(t, Open(&wrapped{Remote: mem, fetch: func(wire.FetchRequest) error { requests++; return nil }}, testOptions()))
	requests = 0
	if err := v.Prefetch(t.Context(), hs...); err != nil {
		t.Fatal(err)
	}
	for _, h := range hs[1:] {
		if _, err := v.Get(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
	if requests != 1 {
		t.Errorf("%d requests", requests)
	}
}

// TestLargeCas: however many roles a workflow has, and however many nodes others have
// put into cas/, what a thread needs of it comes in two requests.
func TestLargeCas(t *testing.T) {
	mem := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})
	s := Open(mem, testOptions())
	c := &Change{Subject: "many", Nodes: []PlacedNode{{Hash: record.WorkflowSchema, Node: record.Schemas()[record.WorkflowSchema]}}}
	for n := range 2 * maxSmallCas {
		c.Nodes = append(c.Nodes, placed(t, Place{}, node.String, fmt.Sprint("shared ", n)))
	}
	roles := map[string]any{}
	for n := range 20 {
		p := placed(t, Place{}, node.MetaSchema, map[string]any{"type": "object", "title": fmt.Sprint(n)})
		c.Nodes = append(c.Nodes, p)
		roles[fmt.Sprint("role", n)] = map[string]any{"description": "d", "goal": "g", "capabilities": []any{}, "procedure": "p", "output": "o", "frontmatter": string(p.Hash)}
	}
	flow := placed(t, Place{}, record.WorkflowSchema, map[string]any{"name": "n", "description": "d", "roles": roles, "graph": map[string]any{}})
	id := threadID(1)
	n, h, err := record.Start{Workflow: flow.Hash, Prompt: "p", Cwd: "."}.Node(time.UnixMilli(1))
	if err != nil {
		t.Fatal(err)
	}
	c.Nodes = append(c.Nodes, flow, PlacedNode{Hash: h, Node: n, Place: Place{Thread: id}})
	c.Threads = map[ThreadID]*Entry{id: {Head: h}}
	mustPush(t, s, mustInit(t, s), c)
	requests := 0
	v := mustLoad(t, Open(&wrapped{Remote: mem, fetch: func(wire.FetchRequest) error { requests++; return nil }}, testOptions()), id)
	if err := node.Walk(v.Getter(t.Context()), flow.Hash, func(node.Hash, node.Node) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if requests != 4 {
		t.Errorf("%d requests, want 4: tip, folder, workflow, roles", requests)
	}
}

// TestKnownNodes: a push of nodes that every uwf knows, and the store has, reads none
// of them.
func TestKnownNodes(t *testing.T) {
	mem := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})
	s := Open(mem, testOptions())
	c := &Change{Subject: "schemas"}
	for h, n := range record.Schemas() {
		c.Nodes = append(c.Nodes, PlacedNode{Hash: h, Node: n})
	}
	mustPush(t, s, mustInit(t, s), c)
	requests := 0
	s = Open(&wrapped{Remote: mem, fetch: func(wire.FetchRequest) error { requests++; return nil }}, testOptions())
	v := mustLoad(t, s)
	requests = 0
	c.Nodes = append(c.Nodes, placed(t, Place{}, node.String, "new"))
	mustPush(t, s, v, c)
	if requests != 0 {
		t.Errorf("%d requests", requests)
	}
	bad := record.Schemas()[record.StepSchema]
	bad.Payload = map[string]any{"type": "object"}
	_, err := s.Push(t.Context(), v, &Change{Subject: "bad", Nodes: []PlacedNode{{Hash: record.StepSchema, Node: bad}}})
	wantErr(t, err, ErrInvalid)
}
