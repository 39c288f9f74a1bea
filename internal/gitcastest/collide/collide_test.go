package collide

import (
	"errors"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/gitcas/node"
)

// Any hash can be had, for any payload that ends with some text.
func TestNode(t *testing.T) {
	object := node.Hash("944RT37WX1PQ5")
	for name, build := range map[string]func(text string) any{
		"a text":            func(s string) any { return s },
		"a long text":       func(s string) any { return strings.Repeat("long ", 50) + s },
		"text before more":  func(s string) any { return map[string]any{"note": s, "$status": "done"} },
		"text far from it":  func(s string) any { return map[string]any{"a": s, "b": strings.Repeat("x", 20)} },
		"text in the depth": func(s string) any { return map[string]any{"list": []any{map[string]any{"x": s}}} },
	} {
		t.Run(name, func(t *testing.T) {
			for _, target := range []node.Hash{"0000000000000", "FZZZZZZZZZZZZ", node.MetaSchema, "7VQ43ZSJTEWA7"} {
				typ := object
				if strings.HasSuffix(name, "text") {
					typ = node.String
				}
				n, err := Node(target, typ, build)
				if err != nil {
					t.Fatal(err)
				}
				if h, err := n.ComputeHash(); err != nil || h != target {
					t.Errorf("%s, %v; want %s", h, err, target)
				}
			}
		})
	}
}

func TestNone(t *testing.T) {
	for name, build := range map[string]func(text string) any{
		"too far from the end": func(s string) any { return map[string]any{"a": s, "b": strings.Repeat("x", 60)} },
		"no text":              func(string) any { return "always the same" },
	} {
		if _, err := Text("0000000000000", node.String, build); !errors.Is(err, ErrNone) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Text("Z000000000000", node.String, func(s string) any { return s }); !errors.Is(err, node.ErrInvalidHash) {
		t.Errorf("a hash that no payload has: %v", err)
	}
}
