package rewrite

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/gitobj"
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
		"a large payload":   {node.Node{Type: other, Payload: "hunter"}, grows{"hunter", strings.Repeat("x", node.MaxSize+1)}, 0, "too large"},
		"a large file":      {node.Node{Type: other, Payload: "hunter"}, grows{"hunter", strings.Repeat("\x01", node.MaxFile/6)}, 0, "can't be rewritten"},
		"nothing is wrong":  {node.Node{Type: other, Payload: []any{string(inner)}}, nil, 0, ""},
		"nothing but texts": {node.Node{Type: other, Payload: "hunter"}, grows{"hunter", "x"}, 0, ""},
	} {
		o := &Options{Find: tc.find}
		n := newNodes(o, newReport(o), map[memoKey]wire.ID{})
		n.depth = tc.depth
		blob := wire.NewObject(plumbing.BlobObject, []byte(name))
		for h, x := range map[node.Hash]node.Node{inner: {Type: other, Payload: "y"}, outer: tc.outer} {
			i := nodeID{n.scopes.shared, h}
			n.fresh[i] = &fresh{id: i, node: x, files: []file{{blob: blob}}, was: kin{}, now: kin{}}
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

// TestJoinedNodes: two nodes that became one can't be joined where the folder that was
// before can't be read.
func TestJoinedNodes(t *testing.T) {
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
	missing := plumbing.NewHash(strings.Repeat("1", 40))
	cas := tree(file(one, blob), file(two, twin))
	before := tree(gitobj.Entry{Name: "cas", Mode: filemode.Dir, ID: missing})
	for name, prev := range map[string]wire.ID{"its root": missing, "itself": before.ID} {
		o := &Options{}
		r := newRun(t.Context(), wiretest.NewMemory(wiretest.MemoryOptions{}), o)
		r.objs = wire.Objects{blob.ID: blob, twin.ID: twin, cas.ID: cas, before.ID: before}
		r.nodes.names[renamed{one, blob.ID}], r.nodes.names[renamed{two, twin.ID}] = both, both
		r.prev = prev
		folder := at{kind: casFolder, id: cas.ID, name: "cas", in: r.nodes.scopes.shared}
		if _, err := r.rebuildFolder(folder, 0); !errors.Is(err, wire.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
		r.prev = wire.ZeroID
		if _, err := r.rebuildFolder(folder, 0); err != nil {
			t.Errorf("with nothing before: %v", err)
		}
	}
}
