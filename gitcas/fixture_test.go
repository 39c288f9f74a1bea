package gitcas

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/tree"
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// maxSmallCas is a bound of package view, which the number of requests shows.
const maxSmallCas = 64

// clock is a clock that moves a second each time it is read.
type clock struct{ at time.Time }

func newClock() *clock { return &clock{time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.at = c.at.Add(time.Second)
	return c.at
}

func noSleep(ctx context.Context, _ time.Duration) error { return ctx.Err() }

// testOptions never wait.
// testOptions let a writer try as often as a busy machine makes it.
func testOptions() Options {
	return Options{Sleep: noSleep, RetryFor: time.Hour, Rand: bytes.NewReader(make([]byte, 1<<10))}
}

func threadID(n int) ThreadID { return ThreadID(fmt.Sprintf("01KN%022d", n)) }

// outputSchema is a schema that the built-in ones don't have.
func outputSchema(t testing.TB) PlacedNode {
	t.Helper()
	return placed(t, Place{}, node.MetaSchema, map[string]any{
		"type": "object", "required": []any{"$status"}, "additionalProperties": false,
		"properties": map[string]any{"$status": map[string]any{"enum": []any{"done", "rejected"}}, "note": map[string]any{"type": "string"}},
	})
}

func workflowNode(t testing.TB) PlacedNode {
	t.Helper()
	return placed(t, Place{}, node.String, "a workflow, as far as these tests need one")
}

func placed(t testing.TB, at Place, typ node.Hash, payload any) PlacedNode {
	t.Helper()
	n, h, err := node.New(typ, payload, time.UnixMilli(1_700_000_000_000))
	if err != nil {
		t.Fatal(err)
	}
	return PlacedNode{Hash: h, Node: n, Place: at}
}

// startChange starts a thread.
func startChange(t testing.TB, id ThreadID, prompt string) *Change {
	t.Helper()
	wf := workflowNode(t)
	sum, err := wf.Node.Sum()
	if err != nil {
		t.Fatal(err)
	}
	n, h, err := record.Start{Workflow: wf.Hash, Prompt: prompt, Cwd: ".", Digests: &record.StartDigests{Workflow: sum}}.Node(time.UnixMilli(1_700_000_000_000))
	if err != nil {
		t.Fatal(err)
	}
	start := PlacedNode{Hash: h, Node: n, Place: Place{Thread: id}}
	return &Change{
		Subject: "started · " + prompt, Trailers: []Trailer{{Key: "Uwf-Thread", Value: string(id)}},
		Nodes:   []PlacedNode{wf, outputSchema(t), start},
		Threads: map[ThreadID]*Entry{id: {Head: h, Workflow: wf.Hash, Key: "test/" + prompt}},
	}
}

// stepChange adds a step with a body and two details.
func stepChange(t testing.TB, v *View, id ThreadID, role, note string) *Change {
	t.Helper()
	c, err := v.ReadChain(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	e, _ := v.Entry(id)
	step, n := nextStep(t, c, id, role, note)
	e.Head = step.Hash
	path := fmt.Sprintf("threads/%s/pages/%02d-%s.md", id, len(c.Steps)+1, role)
	return &Change{
		Subject: role + " → done", Body: note,
		Nodes: n, Readable: map[string][]byte{path: []byte("# " + note + "\n")},
		Threads: map[ThreadID]*Entry{id: &e},
	}
}

func nextStep(t testing.TB, c Chain, id ThreadID, role, note string) (PlacedNode, []PlacedNode) {
	t.Helper()
	schema := outputSchema(t)
	flow := workflowNode(t)
	out := placed(t, Place{}, schema.Hash, map[string]any{"$status": "done", "note": note})
	body := placed(t, Place{}, node.String, "body of "+note)
	turn := placed(t, Place{}, node.String, "turn of "+note)
	detail := placed(t, Place{}, node.String, "detail of "+note)
	s := record.Step{
		Start: c.StartHash, Role: role, Output: out.Hash, Detail: detail.Hash, Agent: "mock", Cwd: ".",
		StartedAtMs: 1_700_000_000_000, CompletedAtMs: 1_700_000_001_000 + int64(len(c.Steps)), Body: &body.Hash,
	}
	if n := len(c.Steps); n > 0 {
		s.Prev = &c.Steps[n-1].Hash
	}
	if c.Counts.Done.Steps == len(c.Steps) {
		counts := c.Counts.After(s, nil)
		s.Counts = &counts
	}
	own := node.Map{flow.Hash: flow.Node, schema.Hash: schema.Node, out.Hash: out.Node, body.Hash: body.Node, detail.Hash: detail.Node}
	closure := node.Closure{Schemas: &node.Schemas{}, Getter: own}
	err := s.SetDigests(func(r record.Ref) (node.Digest, error) {
		switch {
		case r.Field == "start":
			n, _, err := c.Start.Node(time.UnixMilli(1))
			if err != nil {
				return "", err
			}
			return n.Sum()
		case r.To == record.ToRecord:
			return c.Head, nil
		}
		return closure.ComputeDigest(r.Hash)
	})
	if err != nil {
		t.Fatal(err)
	}
	n, h, err := s.Node(time.UnixMilli(1_700_000_002_000))
	if err != nil {
		t.Fatal(err)
	}
	out.Place = Place{Thread: id, Of: h}
	body.Place, schema.Place = out.Place, out.Place // the tests' workflow names no schema
	turn.Place = Place{Thread: id, Of: h, Detail: true}
	detail.Place = turn.Place
	step := PlacedNode{Hash: h, Node: n, Place: Place{Thread: id}}
	nodes := []PlacedNode{schema, out, body, turn, detail, step}
	if s, ok := record.Schemas()[n.Type]; ok {
		nodes = append(nodes, PlacedNode{Hash: n.Type, Node: s})
	}
	return step, nodes
}

// below finds what a step refers to, with its details.
func below(ctx context.Context, v *View, id ThreadID, step, h node.Hash) (node.Node, error) {
	return v.In(ctx, Place{Thread: id, Of: step, Detail: true}).Get(h)
}

func mustInit(t testing.TB, s *Store) *View {
	t.Helper()
	v, err := s.Init(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func mustLoad(t testing.TB, s *Store, ids ...ThreadID) *View {
	t.Helper()
	v, err := s.Reload(t.Context(), nil, ids...) // as another process reads it
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func mustPush(t testing.TB, s *Store, v *View, c *Change) *View {
	t.Helper()
	v, err := s.Push(t.Context(), v, c)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// mustSound fails unless fsck finds nothing.
func mustSound(t testing.TB, s *Store) view.Report {
	t.Helper()
	r, err := s.Fsck(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range r.Problems {
		t.Errorf("fsck: %s: %s", p.Path, p.Why)
	}
	return r
}

func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
}

// wrapped is a remote that a test looks into or gets in the way of.
type wrapped struct {
	wire.Remote
	list  func(l *wire.Listing, err error) error
	fetch func(req wire.FetchRequest) error
	push  func(req wire.PushRequest, push func() (time.Time, error)) (time.Time, error)
}

func (w *wrapped) List(ctx context.Context, prefixes ...string) (wire.Listing, error) {
	l, err := w.Remote.List(ctx, prefixes...)
	if w.list != nil {
		err = w.list(&l, err)
	}
	return l, err
}

func (w *wrapped) Fetch(ctx context.Context, req wire.FetchRequest) (wire.Objects, error) {
	if w.fetch != nil {
		if err := w.fetch(req); err != nil {
			return nil, err
		}
	}
	return w.Remote.Fetch(ctx, req)
}

func (w *wrapped) Push(ctx context.Context, req wire.PushRequest) (time.Time, error) {
	push := func() (time.Time, error) { return w.Remote.Push(ctx, req) }
	if w.push != nil {
		return w.push(req, push)
	}
	return push()
}

// oneFile is a work tree with a file.
func oneFile(name string, id wire.ID) *tree.Dir {
	edit := &tree.Edit{}
	edit.SetFile(name, id)
	d, err := edit.Write(context.Background(), nil, "", layout.WorkFolder, nil, nil, func(_, _, _ *tree.Dir) {})
	if err != nil {
		panic(err)
	}
	return d
}
