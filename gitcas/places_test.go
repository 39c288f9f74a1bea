package gitcas

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// someDigest is that of nothing in particular.
var someDigest = node.Digest(strings.Repeat("0a", 32))

// onTop puts a record on top of a vandal's thread, whatever it says, and makes it the head.
func (x *vandal) onTop(n node.Node) node.Hash {
	x.t.Helper()
	h, err := n.ComputeHash()
	if err != nil {
		x.t.Fatal(err)
	}
	x.putNode(layout.ThreadPath(threadID(1)), n, h)
	x.v = mustLoadTip(x)
	x.replace(layout.ThreadsName, func([]byte) []byte { return []byte(string(threadID(1)) + ": " + string(h) + "\n") })
	return h
}

// TestForgedRecords: a record on the branch that uwf did not write, in all ways in which
// its digests can be wrong, and what it refers to.
func TestForgedRecords(t *testing.T) {
	probe := newVandal(t)
	c, err := probe.v.ReadChain(t.Context(), threadID(1))
	if err != nil {
		t.Fatal(err)
	}
	last := c.Steps[1]
	// next is a step as it should be, with what the last one refers to.
	next := func(change func(*record.Step)) node.Node {
		s := record.Step{
			Start: c.StartHash, Prev: &last.Hash, Role: "r", Agent: "a", Cwd: ".", Output: last.Output, Detail: last.Detail,
			Digests: &record.StepDigests{Prev: c.Head, Output: last.Digests.Output, Detail: last.Digests.Detail},
		}
		change(&s)
		n, _, err := s.Node(time.UnixMilli(1))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	start := func(s record.Start) PlacedNode {
		n, h, err := s.Node(time.UnixMilli(1))
		if err != nil {
			t.Fatal(err)
		}
		return PlacedNode{Hash: h, Node: n}
	}
	first := func(s record.Step) node.Node {
		s.Role, s.Agent, s.Cwd, s.Output, s.Detail = "r", "a", ".", last.Output, last.Detail
		n, _, err := s.Node(time.UnixMilli(1))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	another := start(record.Start{Workflow: c.Start.Workflow, Prompt: "another", Digests: c.Start.Digests})
	plain := start(record.Start{Workflow: c.Start.Workflow, Prompt: "plain"})
	lost := start(record.Start{Workflow: "0000000000000", Prompt: "lost"})
	wrong := start(record.Start{Workflow: c.Start.Workflow, Prompt: "wrong", Digests: &record.StartDigests{Workflow: someDigest}})
	none := node.Hash("0000000000000")
	for name, tt := range map[string]struct {
		head node.Node
		more []PlacedNode // records beside it
		says string
	}{
		"another step before it":     {next(func(s *record.Step) { s.Digests.Prev = someDigest }), nil, "it is not what was stored as the step before"},
		"without digests, after one": {next(func(s *record.Step) { s.Digests = nil }), nil, "it has no digests, and what comes before it in the chain has"},
		"an attempt that is not there": {next(func(s *record.Step) {
			s.PreviousAttempts, s.Digests.PreviousAttempts = []node.Hash{none}, []node.Digest{someDigest}
		}), nil, "the chain needs it, and it is missing"},
		"another attempt": {next(func(s *record.Step) {
			s.PreviousAttempts, s.Digests.PreviousAttempts = []node.Hash{last.Hash}, []node.Digest{someDigest}
		}), nil, "it is not what was stored as an earlier attempt"},
		"an attempt that is none": {next(func(s *record.Step) {
			s.PreviousAttempts, s.Digests.PreviousAttempts = []node.Hash{c.StartHash}, []node.Digest{sumOf(t, probe, c.StartHash)}
		}), nil, "no StepNode"},
		"digests of too little":          {badDigests(t, next(func(*record.Step) {})), nil, "prev of a StepNode's digests must be a SHA-256"},
		"a first step of another start":  {first(record.Step{Start: another.Hash, Digests: &record.StepDigests{Start: someDigest, Output: someDigest, Detail: someDigest}}), []PlacedNode{another}, "it is not what was stored as the start of the thread"},
		"a first step without digests":   {first(record.Step{Start: another.Hash}), []PlacedNode{another}, "it has no digests, and what comes before it in the chain has"},
		"a workflow that is not there":   {lost.Node, nil, "it is the thread's workflow, and it is not whole: node not found"},
		"another workflow":               {wrong.Node, nil, "it is not what was stored as the workflow, with its role schemas, of thread"},
		"a start that is a step":         {first(record.Step{Start: last.Hash}), nil, "no StartNode"},
		"neither a start nor a step":     {node.Node{Type: node.String, Payload: "x"}, nil, "no StepNode"},
		"an output that is not in place": {first(record.Step{Start: plain.Hash}), []PlacedNode{plain}, "it is the output of step"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newVandal(t)
			for _, n := range tt.more {
				x.putNode(layout.ThreadPath(threadID(1)), n.Node, n.Hash)
				x.v = mustLoadTip(x)
			}
			head := x.onTop(tt.head)
			v, err := Open(x.mem, testOptions()).Load(t.Context(), threadID(1))
			if err == nil {
				_, err = v.ReadChain(t.Context(), threadID(1))
			}
			if !errors.Is(err, ErrContent) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("the chain: %v", err)
			}
			// What refers to it can't be read either.
			if _, err := v.In(t.Context(), Place{Thread: threadID(1), Of: head}).Get(none); err == nil {
				t.Error("something was found below it")
			}
			r, err := x.s.Fsck(t.Context(), false)
			if err != nil || r.OK() {
				t.Errorf("fsck: %+v, %v", r.Problems, err)
			}
		})
	}
}

// badDigests is a step without the digest of the one before.
func badDigests(t *testing.T, n node.Node) node.Node {
	t.Helper()
	p, _ := n.Payload.(map[string]any)
	d, _ := p["digests"].(map[string]any)
	delete(d, "prev")
	return n
}

func sumOf(t *testing.T, x *vandal, h node.Hash) node.Digest {
	t.Helper()
	n, err := x.v.In(t.Context(), Place{Thread: threadID(1)}).Get(h)
	if err != nil {
		t.Fatal(err)
	}
	d, err := n.Sum()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestInRefuses: what is not in a place is not found there.
func TestInRefuses(t *testing.T) {
	x := newVandal(t)
	id := threadID(1)
	c, err := x.v.ReadChain(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	step := c.Steps[0]
	records, own := Place{Thread: id}, Place{Thread: id, Of: step.Hash}
	for name, tt := range map[string]struct {
		at   Place
		h    node.Hash
		want error
	}{
		"a record of another thread":       {Place{Thread: threadID(9)}, step.Hash, node.ErrNotFound},
		"an output among the records":      {records, step.Output, node.ErrNotFound},
		"a record below itself":            {own, step.Hash, node.ErrNotFound},
		"a detail without details":         {own, step.Detail, node.ErrNotFound},
		"an output among the shared":       {Place{}, step.Output, node.ErrNotFound},
		"an output of another step":        {Place{Thread: id, Of: c.Steps[1].Hash, Detail: true}, step.Output, node.ErrNotFound},
		"below the start":                  {Place{Thread: id, Of: c.StartHash, Detail: true}, step.Output, node.ErrNotFound},
		"below nothing":                    {Place{Thread: id, Of: "0000000000000"}, step.Output, ErrContent},
		"below nothing, among its details": {Place{Thread: id, Of: "0000000000000", Detail: true}, step.Output, node.ErrNotFound},
	} {
		if n, err := x.v.In(t.Context(), tt.at).Get(tt.h); !errors.Is(err, tt.want) {
			t.Errorf("%s: %+v, %v", name, n, err)
		}
	}
	for _, p := range []Place{{}, records, own} {
		if n, err := x.v.In(t.Context(), p).Get(node.String); err != nil || n.Type != node.MetaSchema {
			t.Errorf("what is built in, in %s: %v", p, err)
		}
	}
	// A text in the place of a record is none.
	text := placed(t, records, node.String, "no record")
	x.putNode(layout.ThreadPath(id), text.Node, text.Hash)
	v := mustLoad(t, Open(x.mem, testOptions()), id)
	if _, err := v.In(t.Context(), records).Get(text.Hash); !errors.Is(err, ErrContent) || !strings.Contains(err.Error(), "neither a StartNode nor a StepNode") {
		t.Errorf("a text among the records: %v", err)
	}
}

// TestCompleteRefuses: a step that could not be read is not made.
func TestCompleteRefuses(t *testing.T) {
	x := newVandal(t)
	id := threadID(1)
	c, err := x.v.ReadChain(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	out := placed(t, view.NextPlace(false), node.String, "out")
	none := node.Hash("0000000000000")
	last := c.Steps[1].Hash
	for name, change := range map[string]func(*record.Step){
		"of no thread":               func(s *record.Step) { s.Start = none },
		"after nothing":              func(s *record.Step) { s.Prev = &none },
		"with an output of nobody":   func(s *record.Step) { s.Output = none },
		"after attempts of nobody":   func(s *record.Step) { s.PreviousAttempts = []node.Hash{none} },
		"with another step's output": func(s *record.Step) { s.Body = c.Steps[0].Body },
	} {
		s := record.Step{Start: c.StartHash, Prev: &last, Role: "r", Agent: "a", Cwd: ".", Output: out.Hash, Detail: out.Hash}
		change(&s)
		if _, nodes, err := x.v.Complete(t.Context(), id, s, time.UnixMilli(1), []PlacedNode{out}, nil); err == nil {
			t.Errorf("%s: %d nodes", name, len(nodes))
		}
	}
}

// TestWalkRefuses: what is missing ends a walk, and says who refers to it.
func TestWalkRefuses(t *testing.T) {
	x := newVandal(t)
	id := threadID(1)
	c, err := x.v.ReadChain(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	visit := func(Place, node.Hash, node.Node) error { return nil }
	if err := x.v.Walk(t.Context(), Place{Thread: id}, "0000000000000", visit); !errors.Is(err, node.ErrNotFound) || strings.Contains(err.Error(), "referred to") {
		t.Errorf("from nothing: %v", err)
	}
	stop := errors.New("enough")
	if err := x.v.Walk(t.Context(), Place{Thread: id}, c.StartHash, func(Place, node.Hash, node.Node) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("an error of who is told: %v", err)
	}
	seen := []node.Hash{}
	skip := func(_ Place, h node.Hash, _ node.Node) error { seen = append(seen, h); return node.ErrSkip }
	if err := x.v.Walk(t.Context(), Place{Thread: id}, c.Steps[1].Hash, skip); err != nil || !slices.Equal(seen, []node.Hash{c.Steps[1].Hash}) {
		t.Errorf("a walk that goes nowhere: %v, %v", seen, err)
	}
	own := Place{Thread: id, Of: c.Steps[0].Hash}
	x.edit(own.Path(c.Steps[0].Output), gone)
	v := mustLoad(t, Open(x.mem, testOptions()))
	err = v.Walk(t.Context(), Place{Thread: id}, c.Steps[1].Hash, visit)
	if !errors.Is(err, ErrContent) || !strings.Contains(err.Error(), "referred to by "+string(c.Steps[0].Hash)) {
		t.Errorf("to what is gone: %v", err)
	}
}

// TestSaidByNobody: a folder of its own hash, without what it should hold.
func TestSaidByNobody(t *testing.T) {
	x := newVandal(t)
	answer := placed(t, Place{}, node.String, "yes")
	other := placed(t, Place{}, node.String, "no")
	at := Place{Thread: threadID(1), Of: answer.Hash}
	data, err := node.EncodeFile(other.Node)
	if err != nil {
		t.Fatal(err)
	}
	x.replace(at.Path(other.Hash), func([]byte) []byte { return data })
	v := mustLoad(t, Open(x.mem, testOptions()), threadID(1))
	for _, h := range []node.Hash{answer.Hash, other.Hash} {
		if _, err := v.In(t.Context(), at).Get(h); !errors.Is(err, ErrContent) {
			t.Errorf("%s: %v", h, err)
		}
	}
	if d, err := v.Reader.Below(t.Context(), nil, layout.DetailDir, "0000000000000"); d != nil || err != nil {
		t.Errorf("%v, %v", d, err)
	}
}

// TestSameFolderTwice: a fork has the same folders at other paths. Whoever reads both at
// once finds both.
func TestSameFolderTwice(t *testing.T) {
	mem := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})
	s := Open(mem, testOptions())
	from, to := threadID(1), threadID(2)
	v := threadWithSteps(t, s, from, 4)
	c, err := v.ReadChain(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	mustPush(t, s, v, &Change{Subject: "forked", Forks: map[ThreadID]ThreadID{to: from}, Threads: map[ThreadID]*Entry{to: {Head: c.Steps[3].Hash, Workflow: c.Start.Workflow}}})
	for range 20 {
		v := mustLoad(t, s, from, to)
		var wg sync.WaitGroup
		for _, id := range []ThreadID{from, to, from, to} {
			wg.Go(func() {
				for _, step := range c.Steps {
					if _, err := v.In(t.Context(), Place{Thread: id, Of: step.Hash, Detail: true}).Get(step.Detail); err != nil {
						t.Errorf("thread %s: %v", id, err)
					}
				}
			})
		}
		wg.Wait()
	}
}
