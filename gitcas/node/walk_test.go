package node

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// put adds a node to g and returns its hash.
func put(t testing.TB, g Map, typ Hash, payload any) Hash {
	t.Helper()
	n, h, err := New(typ, payload, time.UnixMilli(0))
	if err != nil {
		t.Fatal(err)
	}
	g[h] = n
	return h
}

func TestWalk(t *testing.T) {
	g := Map{}
	link := put(t, g, MetaSchema, map[string]any{"type": "object", "properties": map[string]any{
		"prev": map[string]any{"type": "string", "format": "ocas_ref"},
		"also": map[string]any{"type": "string", "format": "ocas_ref"}}})
	text := put(t, g, String, "leaf")
	first := put(t, g, link, map[string]any{"also": text})
	second := put(t, g, link, map[string]any{"prev": first, "also": text})

	var order []Hash
	err := Walk(g, second, func(h Hash, n Node) error {
		if err := Verify(h, n); err != nil {
			return err
		}
		order = append(order, h)
		return nil
	})
	want := []Hash{second, link, MetaSchema, text, String, first}
	if err != nil || !slices.Equal(order, want) {
		t.Errorf("visited %v, %v; want %v", order, err, want)
	}

	order = nil
	err = Walk(g, second, func(h Hash, _ Node) error {
		order = append(order, h)
		return ErrSkip
	})
	if err != nil || !slices.Equal(order, []Hash{second}) {
		t.Errorf("with ErrSkip: %v, %v", order, err)
	}

	stop := errors.New("stop")
	if err := Walk(g, second, func(Hash, Node) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("with an error: %v", err)
	}

	delete(g, text)
	err = Walk(g, second, func(Hash, Node) error { return nil })
	if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "referred to by "+string(second)) {
		t.Errorf("with a missing node: %v", err)
	}
	odd := put(t, g, first, "of a type that is no schema")
	err = Walk(g, odd, func(Hash, Node) error { return nil })
	if !errors.Is(err, ErrNotSchema) || !strings.Contains(err.Error(), "node "+string(odd)) {
		t.Errorf("with a type that is no schema: %v", err)
	}
}

// A chain of any length must not be walked by recursion.
func TestWalkLongChain(t *testing.T) {
	g := Map{}
	link := put(t, g, MetaSchema, map[string]any{"items": map[string]any{"format": "ocas_ref"}})
	head := put(t, g, link, []any{})
	const length = 20_000
	for i := range length {
		head = put(t, g, link, []any{head, i})
	}
	n := 0
	if err := Walk(g, head, func(Hash, Node) error { n++; return nil }); err != nil || n != length+3 {
		t.Errorf("%d nodes, %v", n, err)
	}
}

func TestBuiltin(t *testing.T) {
	b := Builtin()
	if len(b) != 8 {
		t.Fatalf("%d built-in nodes", len(b))
	}
	for h, n := range b {
		if err := Verify(h, n); err != nil {
			t.Error(err)
		}
		if err := Check(Map{}, n); err != nil {
			t.Errorf("%s: %v", h, err)
		}
	}
	if _, ok := b[String]; !ok {
		t.Error("the schema of strings is missing")
	}
	delete(b, String)
	if err := Check(Map{}, Node{Type: String, Payload: "text"}); err != nil {
		t.Errorf("a caller could take a built-in schema away: %v", err)
	}
}
