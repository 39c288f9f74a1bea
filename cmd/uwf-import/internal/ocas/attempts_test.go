package ocas_test

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/cmd/uwf-import/internal/ocas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/ocastest"
)

// TestAttempts: the earlier attempts that a step names come over with it, each once, with
// those that they name, or the thread doesn't.
func TestAttempts(t *testing.T) {
	for name, tc := range map[string]struct {
		// names are those of the last step's attempts, of which each is the payload of a node
		// of that type; put stores one and gives its hash.
		names func(put func(typ node.Hash, payload map[string]any) any, step map[string]any) []any
		want  int
		says  string
	}{
		"none": {func(func(node.Hash, map[string]any) any, map[string]any) []any { return nil }, 0, ""},
		"two, one of which is named twice": {func(put func(node.Hash, map[string]any) any, step map[string]any) []any {
			a := put(record.AttemptsStepSchema, with(step, "role", "first"))
			b := put(record.AttemptsStepSchema, with(with(step, "role", "second"), "previousAttempts", []any{a}))
			return []any{b, a}
		}, 2, ""},
		"one that is missing": {func(func(node.Hash, map[string]any) any, map[string]any) []any {
			return []any{"0000000000000"}
		}, 0, "0000000000000.bin is not there"},
		"one that is no step": {func(_ func(node.Hash, map[string]any) any, step map[string]any) []any {
			return []any{step["start"]}
		}, 0, "is no StepNode"},
		"one of another thread": {func(put func(node.Hash, map[string]any) any, step map[string]any) []any {
			other := put(record.StartSchema, map[string]any{"workflow": string(sample(t).Workflow), "prompt": "another", "cwd": "."})
			return []any{put(record.StepSchema, with(with(step, "start", other), "prev", nil))}
		}, 0, "belongs to another thread"},
		"one whose output is missing": {func(put func(node.Hash, map[string]any) any, step map[string]any) []any {
			return []any{put(record.StepSchema, with(step, "output", "0000000000000"))}
		}, 0, "0000000000000.bin is not there"},
	} {
		s := sample(t)
		put := func(typ node.Hash, payload map[string]any) any {
			n, h, err := node.New(typ, payload, time.UnixMilli(1))
			if err != nil {
				t.Fatal(err)
			}
			s.Nodes[h] = n
			return string(h)
		}
		step := s.Nodes[s.Heads[ocastest.Ended]].Payload.(map[string]any)
		head := node.Hash(fmt.Sprint(put(record.AttemptsStepSchema, with(step, "previousAttempts", tc.names(put, step)))))
		b, err := s.Bundle()
		if err != nil {
			t.Fatal(err)
		}
		src := ocas.New(known())
		src.AddBundle("bundle.tar", bytes.NewReader(b))
		chain, err := src.ReadChain(head)
		if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v, want %q", name, err, tc.says)
			continue
		}
		if err != nil {
			continue
		}
		found := chain.Parts[len(chain.Parts)-1].Attempts
		if len(found) != tc.want {
			t.Errorf("%s: %d attempts, want %d", name, len(found), tc.want)
		}
		for _, a := range found {
			if last := a.Nodes[len(a.Nodes)-1]; last.Hash != a.Head || last.To != record.ToRecord || len(a.Nodes) < 3 {
				t.Errorf("%s: %+v", name, a)
			}
		}
	}
}

// with is a payload with another value in a field.
func with(p map[string]any, field string, v any) map[string]any {
	p = maps.Clone(p)
	p[field] = v
	return p
}
