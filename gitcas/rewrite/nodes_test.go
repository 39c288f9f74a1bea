package rewrite

import (
	"cmp"
	"errors"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// grows is a Finder that makes each text that it finds long.
type grows struct{ from, to string }

func (g grows) Replace(s string, _ func(string) string) (string, int) {
	return strings.ReplaceAll(s, g.from, g.to), strings.Count(s, g.from)
}

// TestNodesRefused: a node is not rewritten where what it refers to can't be, nor to one
// that no store takes. The nodes are of a type that nobody knows, so that nothing else
// refuses them.
func TestNodesRefused(t *testing.T) {
	const inner, outer, other node.Hash = "AAAAAAAAAAAAA", "BBBBBBBBBBBBB", "0000000000000"
	for name, tc := range map[string]struct {
		outer node.Node
		find  Finder
		depth int // of the nodes that are being resolved
		want  string
	}{
		"by itself":         {node.Node{Type: other, Payload: "x"}, nil, maxChain, "refer to each other"},
		"its type":          {node.Node{Type: inner, Payload: "x"}, nil, maxChain - 1, "refer to each other"},
		"a text":            {node.Node{Type: other, Payload: string(inner)}, nil, maxChain - 1, "refer to each other"},
		"a list":            {node.Node{Type: other, Payload: []any{string(inner)}}, nil, maxChain - 1, "refer to each other"},
		"an object":         {node.Node{Type: other, Payload: map[string]any{"a": string(inner)}}, nil, maxChain - 1, "refer to each other"},
		"a large payload":   {node.Node{Type: other, Payload: "hunter"}, grows{"hunter", strings.Repeat("x", node.MaxSize+1)}, 0, "can't be rewritten"},
		"a large file":      {node.Node{Type: other, Payload: "hunter"}, grows{"hunter", strings.Repeat("\x01", node.MaxFile/6)}, 0, "can't be rewritten"},
		"nothing is wrong":  {node.Node{Type: other, Payload: []any{string(inner)}}, nil, 0, ""},
		"nothing but texts": {node.Node{Type: other, Payload: "hunter"}, grows{"hunter", "x"}, 0, ""},
	} {
		o := &Options{Find: cmp.Or[Finder](tc.find, findsNothing{})}
		n := newNodes(o, newReport(o), map[memoKey]wire.ID{})
		n.depth = tc.depth
		blob := wire.NewObject(plumbing.BlobObject, []byte(name))
		for h, x := range map[node.Hash]node.Node{inner: {Type: other, Payload: "y"}, outer: tc.outer} {
			i := nodeID{n.scopes.shared, h}
			n.pending[i] = &pendingNode{id: i, node: x, files: []file{{blob: blob}}, was: refDigests{}, now: refDigests{}}
		}
		_, err := n.resolveNode(nodeID{n.scopes.shared, outer}, &writer{made: map[wire.ID]bool{}})
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
		if tc.depth > 0 && !errors.Is(err, ErrUnreadable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestFirstStays: of two nodes that became one, the file that was there first stays, whatever
// their names were. It is the same in every later commit.
func TestFirstStays(t *testing.T) {
	const one, two, both node.Hash = "AAAAAAAAAAAAA", "BBBBBBBBBBBBB", "CCCCCCCCCCCCC"
	blob := wire.NewObject(plumbing.BlobObject, []byte("{}"))
	twin := wire.NewObject(plumbing.BlobObject, []byte("{ }"))
	tree := func(entries ...gitobj.Entry) wire.Object {
		data, err := gitobj.EncodeTree(entries)
		if err != nil {
			t.Fatal(err)
		}
		return wire.NewObject(plumbing.TreeObject, data)
	}
	file := func(h node.Hash, blob wire.Object) gitobj.Entry {
		return gitobj.Entry{Name: string(h) + ".json", Mode: filemode.Regular, ID: blob.ID}
	}
	for _, first := range []gitobj.Entry{file(one, blob), file(two, twin)} {
		before, after := tree(first), tree(file(one, blob), file(two, twin))
		r := newRun(t.Context(), wiretest.NewMemory(wiretest.MemoryOptions{}), &Options{Find: findsNothing{}})
		r.objs = wire.Objects{blob.ID: blob, twin.ID: twin, before.ID: before, after.ID: after}
		r.nodes.names[renamed{one, blob.ID}], r.nodes.names[renamed{two, twin.ID}] = both, both
		want := tree(file(both, wire.Object{ID: first.ID})).ID
		for _, cas := range []wire.Object{before, after} {
			if id, err := r.rebuildFolder(treeItem{kind: layout.CasFolder, id: cas.ID, name: "cas", in: r.nodes.scopes.shared}, 0); err != nil || id != want {
				t.Errorf("%s became %s, %v, want %s", cas.ID, id, err, want)
			}
		}
	}
}
