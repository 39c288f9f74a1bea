package seal_test

import (
	"errors"
	"math"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/step/seal"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/gitcastest/collide"
)

// redactor is what becomes of a value that holds "secret".
type redactor func(v any) (any, int, error)

func (r redactor) Value(v any) (any, int, error) {
	raw, err := node.EncodeCBOR(v)
	switch {
	case err != nil:
		return nil, 0, errors.New("this is nothing to look into")
	case strings.Contains(string(raw), "secret"):
		return r(v)
	}
	return v, 0, nil
}

// stage is what an agent staged and a store knows, and the Sealer over both.
type stage struct {
	*testing.T
	drafts  node.Map
	visible gitcas.Nodes
	redact  redactor
	s       *seal.Sealer
}

func newStage(t *testing.T) *stage {
	st := &stage{T: t, drafts: node.Map{}, visible: gitcas.Nodes{{}: {}}}
	st.s = seal.New(st.drafts, st.visible, redactor(func(v any) (any, int, error) { return st.redact(v) }), time.UnixMilli(0))
	return st
}

// put stages a node under its hash.
func (st *stage) put(typ node.Hash, payload any) node.Hash {
	st.Helper()
	n, h, err := node.New(typ, payload, time.UnixMilli(0))
	if err != nil {
		st.Fatal(err)
	}
	st.drafts[h] = n
	return h
}

// fill adds nodes until so many bytes are left to the step.
func (st *stage) fill(left int) {
	st.Helper()
	size := func(text string) int {
		file, err := node.EncodeFile(node.Node{Type: node.String, Payload: text})
		if err != nil {
			st.Fatal(err)
		}
		return len(file)
	}
	for n, room := 0, seal.MaxStep-left; room > 0; n++ {
		last := string(rune('a' + n))
		text := strings.Repeat("x", min(6<<20, room-size(last))) + last
		if rest := room - size(text); rest > 0 && rest < size(last)+1 {
			text = text[rest+2*size(last):] // so that one more has room
		}
		if _, err := st.s.AddUpTo(8<<20, node.String, text, false); err != nil {
			st.Fatal(err)
		}
		room -= size(text)
	}
}

const (
	other  = node.Hash("0000000000001")
	secret = "it is secret"
)

func TestSealerRefuses(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(16 << 20)) // a node that refers to itself must not fill the memory first
	failing := func(any) (any, int, error) { return nil, 0, errors.New("the list of secrets is gone") }
	swapped := func(by any) redactor { return func(any) (any, int, error) { return by, 1, nil } }
	seeing := map[string]any{"type": "object", "properties": map[string]any{"see": map[string]any{"type": "string", "format": "ocas_ref"}}}
	sealed := func(st *stage, h node.Hash) error {
		_, err := st.s.Node(h, false)
		return err
	}
	added := func(st *stage, typ node.Hash, payload any) error {
		_, err := st.s.Add(typ, payload, false)
		return err
	}
	for name, tt := range map[string]struct {
		do   func(st *stage) error
		want string
	}{
		"a node that is nowhere": {func(st *stage) error { return sealed(st, other) }, "node 0000000000001 is neither staged nor part of the thread"},
		"a circle": {func(st *stage) error {
			st.drafts[other] = node.Node{Type: st.put(node.MetaSchema, seeing), Payload: map[string]any{"see": string(other)}}
			return sealed(st, other)
		}, "node 0000000000001 refers to itself"},
		"a step":  {func(st *stage) error { return sealed(st, st.put(record.StepSchema, map[string]any{})) }, "is a step or start of a thread; only the handle may be a StepNode"},
		"a start": {func(st *stage) error { return sealed(st, st.put(record.StartSchema, map[string]any{})) }, "is a step or start of a thread; only the handle may be a StepNode"},
		"an unknown type": {func(st *stage) error { return sealed(st, st.put(other, "x")) },
			"its type 0000000000001: no schema that this store knows, and none was staged"},
		"a reference to nothing": {func(st *stage) error {
			return sealed(st, st.put(st.put(node.MetaSchema, seeing), map[string]any{"see": string(other)}))
		}, "node 0000000000001 is neither staged nor part of the thread"},
		"a payload that does not fit": {func(st *stage) error { return sealed(st, st.put(node.String, int64(1))) }, "does not fit its schema"},

		"a text that is nowhere": {func(st *stage) error { _, err := st.s.Text(other); return err }, "node 0000000000001 is neither staged nor part of the thread"},
		"a text that is none":    {func(st *stage) error { _, err := st.s.Text(st.put(node.MetaSchema, seeing)); return err }, "is no string node"},

		"large": {func(st *stage) error { return added(st, node.String, strings.Repeat("x", seal.MaxNode)) }, "1048581 bytes; at most 1048576 are stored in one node"},
		"large without its secret": {func(st *stage) error {
			st.redact = swapped(strings.Repeat("x", seal.MaxNode))
			return added(st, node.String, secret)
		}, "1048581 bytes; at most 1048576 are stored in one node"},
		"no value": {func(st *stage) error { return added(st, node.String, func() {}) }, "not a JSON value: a Go func()"},
		"secrets that can't be looked for": {func(st *stage) error {
			st.redact = failing
			return added(st, node.String, secret)
		}, "check for secrets: the list of secrets is gone"},
		"no value without its secret": {func(st *stage) error {
			st.redact = swapped(math.NaN())
			return added(st, node.String, secret)
		}, "make a node of type"},
		"too deep to be read again": {func(st *stage) error {
			var deep any = "x"
			for range node.MaxDepth {
				deep = []any{deep}
			}
			return added(st, st.put(node.MetaSchema, map[string]any{"type": "array"}), deep)
		}, "nested deeper than 100 levels"},
		"no schema":             {func(st *stage) error { return added(st, node.MetaSchema, map[string]any{"$ref": "#"}) }, "not an allowed schema"},
		"added of unknown type": {func(st *stage) error { return added(st, other, "x") }, "its type 0000000000001: no schema that this store knows"},
		"a full step": {func(st *stage) error {
			st.fill(0)
			return added(st, node.String, "x")
		}, "the files of the step's nodes are larger than 33554432 bytes together"},
		"a step that is full with the schema": {func(st *stage) error {
			st.fill(100) // the node would fit, its schema doesn't
			return sealed(st, st.put(st.put(node.MetaSchema, seeing), map[string]any{}))
		}, "the files of the step's nodes are larger than 33554432 bytes together"},
		"a text whose secrets can't be looked for": {func(st *stage) error {
			st.redact = failing
			_, err := st.s.Clean(secret)
			return err
		}, "check for secrets: the list of secrets is gone"},

		"a type that is no schema": {func(st *stage) error {
			st.visible[gitcas.Place{}][other] = node.Node{Type: node.String, Payload: map[string]any{}}
			return added(st, other, "x")
		}, "its type 0000000000001: it is no schema"},
		"a known schema that is not allowed": {func(st *stage) error {
			st.visible[gitcas.Place{}][other] = node.Node{Type: node.MetaSchema, Payload: map[string]any{"$ref": "#"}}
			return added(st, other, "x")
		}, "its type 0000000000001: not an allowed schema"},
		"a large schema": {func(st *stage) error {
			return added(st, st.put(node.MetaSchema, map[string]any{"title": strings.Repeat("x", seal.MaxNode)}), "x")
		}, "1048588 bytes; at most 1048576 are stored in one node"},
		"a schema under another name": {func(st *stage) error {
			h := st.put(node.MetaSchema, seeing)
			st.drafts[other] = st.drafts[h]
			return added(st, other, "x")
		}, "what was staged under this name hashes to "},
		"a schema whose secrets can't be looked for": {func(st *stage) error {
			st.redact = failing
			return added(st, st.put(node.MetaSchema, map[string]any{"title": secret}), "x")
		}, "check for secrets: the list of secrets is gone"},
		"a schema with a secret": {func(st *stage) error {
			st.redact = swapped(map[string]any{"title": "it is …"})
			return added(st, st.put(node.MetaSchema, map[string]any{"title": secret}), "x")
		}, "the schema holds a secret"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tt.do(newStage(t)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
}

// TestTakes: what an agent names and did not stage comes from the thread, whole, and is
// stored with the step.
func TestTakes(t *testing.T) {
	made := func(typ node.Hash, payload any) (node.Node, node.Hash) {
		n, h, err := node.New(typ, payload, time.UnixMilli(0))
		if err != nil {
			t.Fatal(err)
		}
		return n, h
	}
	leaf, leafHash := made(node.String, "leaf")
	schema, schemaHash := made(node.MetaSchema, map[string]any{"type": "object", "properties": map[string]any{"see": map[string]any{"type": "string", "format": "ocas_ref"}}})
	root, rootHash := made(schemaHash, map[string]any{"see": string(leafHash)})
	one, two := gitcas.Place{Thread: "t", Of: "0000000000001"}, gitcas.Place{Thread: "t", Of: "0000000000002"}
	whole := node.Map{leafHash: leaf, schemaHash: schema, rootHash: root}
	places := func(st *stage) map[node.Hash]bool {
		out := map[node.Hash]bool{}
		for _, n := range st.s.Nodes() {
			out[n.Hash] = n.Place.Detail
		}
		return out
	}

	st := newStage(t)
	st.visible[one] = whole
	if _, err := st.s.Node(rootHash, true); err != nil {
		t.Fatal(err)
	}
	if got := places(st); len(got) != 3 || !got[rootHash] || !got[leafHash] || !got[schemaHash] {
		t.Errorf("taken for the details: %v", got)
	}
	for name, c := range map[string]struct {
		visible gitcas.Nodes
		want    string
	}{
		"two nodes of one hash": {gitcas.Nodes{one: whole, two: {rootHash: {Type: node.String, Payload: "another"}}}, "names several nodes of the thread"},
		"not whole":             {gitcas.Nodes{one: {rootHash: root, schemaHash: schema}}, "is not whole here"},
	} {
		st := newStage(t)
		for p, nodes := range c.visible {
			st.visible[p] = nodes
		}
		if _, err := st.s.Node(rootHash, false); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	// Several steps that refer to the same node are no difficulty.
	st = newStage(t)
	st.visible[one], st.visible[two] = whole, whole
	if _, err := st.s.Node(rootHash, false); err != nil {
		t.Error(err)
	}
	// What is shared is found without storing it again, and nothing takes its place.
	st = newStage(t)
	st.visible[gitcas.Place{}] = node.Map{leafHash: leaf}
	if _, err := st.s.Node(leafHash, false); err != nil || len(st.s.Nodes()) != 0 {
		t.Errorf("%v, %v", st.s.Nodes(), err)
	}
	st.visible[gitcas.Place{}] = node.Map{leafHash: {Type: node.String, Payload: "another"}}
	if _, err := st.s.Add(node.String, "leaf", false); !errors.Is(err, seal.ErrTwice) {
		t.Errorf("in the place of what is shared: %v", err)
	}
}

// TestTwoOfOneHash: within a step a hash names one node, wherever it comes from.
func TestTwoOfOneHash(t *testing.T) {
	n, h, err := node.New(node.String, "the one", time.UnixMilli(0))
	if err != nil {
		t.Fatal(err)
	}
	other, err := collide.Node(h, node.String, func(s string) any { return "the other " + s })
	if err != nil {
		t.Fatal(err)
	}
	for name, second := range map[string]func(st *stage) error{
		"added": func(st *stage) error { _, err := st.s.Add(node.String, other.Payload, true); return err },
		"taken": func(st *stage) error {
			st.visible[gitcas.Place{Thread: "t", Of: "0000000000001"}] = node.Map{h: other}
			_, err := st.s.Node(h, false)
			return err
		},
	} {
		st := newStage(t)
		if _, err := st.s.Add(node.String, n.Payload, false); err != nil {
			t.Fatal(err)
		}
		if err := second(st); !errors.Is(err, seal.ErrTwice) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
