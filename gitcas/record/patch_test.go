package record

import (
	"reflect"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/gitcas/node"
)

func TestPatch(t *testing.T) {
	for name, p := range map[string]Patch{
		"with a diff": {Base: "abc", Diff: "diff --git a/x b/x\n", Files: []PatchFile{
			{Path: "x", Change: FileModified, Counted: true, Added: 2, Removed: 1}, {Path: "bin", Change: FileAdded}, {Path: "gone", Change: FileDeleted, Counted: true, Removed: 3},
		}},
		"with lines": {More: 7, Files: []PatchFile{{Path: "x", Change: FileAdded, Counted: true, Added: 1, Lines: []string{"0123456789abcdef"}}}},
	} {
		n := made(t, PatchSchema)(node.New(PatchSchema, p.Payload(), at))
		if got, err := ParsePatch(n); err != nil || !reflect.DeepEqual(got, p) {
			t.Errorf("%s: read back as %+v, %v", name, got, err)
		}
	}
}

// What the schema refuses, the parser refuses too: anybody may have written it.
func TestParsePatchRefuses(t *testing.T) {
	file := func() map[string]any { return map[string]any{"path": "x", "change": "added"} }
	with := func(key string, value any) map[string]any {
		f := file()
		f[key] = value
		return map[string]any{"base": "", "files": []any{f}}
	}
	for name, c := range map[string]struct {
		payload map[string]any
		want    string
	}{
		"no files":         {map[string]any{"base": ""}, "files of a Patch must be a list"},
		"files no list":    {map[string]any{"base": "", "files": "x"}, "files of a Patch must be a list"},
		"base no text":     {map[string]any{"base": int64(1), "files": []any{}}, "base of a Patch must be a string"},
		"more no number":   {map[string]any{"base": "", "files": []any{}, "more": "7"}, "more of a Patch must be a whole number"},
		"diff no text":     {map[string]any{"base": "", "files": []any{}, "diff": nil}, "diff of a Patch must be a string"},
		"unknown field":    {map[string]any{"base": "", "files": []any{}, "x": "y"}, "unknown fields"},
		"file no object":   {map[string]any{"base": "", "files": []any{"x"}}, "files of a Patch must be a list of objects"},
		"another change":   {with("change", "renamed"), "change of a file of a Patch must be added, modified or deleted"},
		"added alone":      {with("added", "1"), "added of a file of a Patch must be a whole number"},
		"lines no list":    {with("lines", "x"), "lines of a file of a Patch must be a list"},
		"lines no texts":   {with("lines", []any{int64(1)}), "lines of a file of a Patch must be a string"},
		"unknown in files": {with("x", "y"), "unknown fields"},
	} {
		n := node.Node{Type: PatchSchema, Payload: c.payload}
		if _, err := ParsePatch(n); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
		if err := node.Check(node.Map(Schemas()), n); err == nil {
			t.Errorf("%s: the schema accepts it", name)
		}
	}
	alone := node.Node{Type: PatchSchema, Payload: with("added", int64(1))}
	if _, err := ParsePatch(alone); err == nil || !strings.Contains(err.Error(), "does not say which") {
		t.Errorf("lines added, and none said to be removed: %v", err)
	}
	if _, err := ParsePatch(node.Node{Type: node.String, Payload: "x"}); err == nil {
		t.Error("a string is no patch")
	}
}
