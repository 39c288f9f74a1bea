package cas

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// TestFormerHashes: a hash that a node had where it was imported from leads to the node, and
// that is said; where it leads to several, or to what is gone, too.
func TestFormerHashes(t *testing.T) {
	store := gitcas.Open(wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true}), gitcas.Options{})
	if _, err := store.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	v, err := store.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text := func(s string) gitcas.PlacedNode {
		n, h, err := node.New(node.String, s, time.UnixMilli(1))
		if err != nil {
			t.Fatal(err)
		}
		return gitcas.PlacedNode{Hash: h, Node: n}
	}
	one, two := text("one"), text("two")
	const both, alone, lost, known = "0000000000000", "0000000000001", "0000000000002", "0000000000003"
	c := &gitcas.Change{Subject: "import", Nodes: []gitcas.PlacedNode{one, two}, Former: map[string][]gitcas.Former{
		layout.FormerName(one.Hash):                                      {{Former: both, Hash: one.Hash}, {Former: alone, Hash: one.Hash}, {Former: known, Hash: node.String}},
		layout.FormerName(two.Hash):                                      {{Former: both, Hash: two.Hash}, {Former: alone, Hash: one.Hash}},
		layout.FormerName(gitcas.ThreadID("01KN0000000000000000000001")): {{Former: lost, Hash: "1111111111111"}},
	}}
	if v, err = store.Push(t.Context(), v, c); err != nil {
		t.Fatal(err)
	}
	for h, want := range map[node.Hash]struct {
		payload any
		err     error
		says    string
	}{
		alone:           {"one", nil, alone + " is called " + string(one.Hash) + " here\n"},
		known:           {map[string]any{"type": "string"}, nil, known + " is called " + string(node.String) + " here\n"},
		one.Hash:        {"one", nil, ""},
		lost:            {nil, node.ErrNotFound, ""},
		"ZZZZZZZZZZZZZ": {nil, node.ErrNotFound, ""},
	} {
		var said bytes.Buffer
		l := &nodes{ctx: t.Context(), notes: output.Printer{Out: &said}.Text(), store: store, tip: v}
		f, err := l.findNode(h)
		if !errors.Is(err, want.err) || node.Text(f.Node.Payload) != node.Text(want.payload) || said.String() != want.says {
			t.Errorf("%s: %v, %v, %q", h, f.Node, err, said.String())
		}
	}
	l := &nodes{ctx: t.Context(), notes: output.Printer{Out: &bytes.Buffer{}}.Text(), store: store, tip: v}
	var usage *app.UsageError
	if _, err := l.findNode(both); !errors.As(err, &usage) || !strings.Contains(err.Error(), string(one.Hash)) || !strings.Contains(err.Error(), string(two.Hash)) {
		t.Errorf("%v", err)
	}
}
