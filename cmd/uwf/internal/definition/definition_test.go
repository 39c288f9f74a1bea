package definition

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/gitcas"
)

// flow is a definition whose description says where it lies.
func flow(where string) string {
	return fmt.Sprintf(`name: flow
description: %q
roles:
  dev: {description: d, goal: g, capabilities: [], procedure: p, output: o, frontmatter: {type: object, properties: {x: {type: string}}}}
graph:
  $START: {_: {role: dev, prompt: go}}
  dev: {_: {role: $END, prompt: bye}}
`, where)
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func resolver(root, dir string) *Resolver {
	return &Resolver{
		Root: root, Dir: filepath.Join(root, dir), Now: time.Now,
		View: func(context.Context) (*gitcas.View, error) { return nil, gitcas.ErrNoStore },
	}
}

// A name means the first of all places where it may lie; without that one, the
// next, and so on.
func TestResolutionOrder(t *testing.T) {
	root := t.TempDir()
	var files []string
	for _, dir := range []string{"sub/deep", "sub", "."} {
		for _, folder := range []string{".uwf/workflows", ".workflow", ".workflows"} {
			for _, layout := range []string{"flow.yaml", "flow.yml", "flow/index.yaml", "flow/index.yml"} {
				file := filepath.Join(dir, folder, layout)
				files = append(files, file)
				write(t, filepath.Join(root, file), flow(file))
			}
		}
	}
	// These are never meant: above the repository, beside the way up, of another kind.
	for _, file := range []string{"../.workflows/flow.yaml", "other/.workflows/flow.yaml", ".workflows/flow.json", ".workflows/flow/other.yaml"} {
		write(t, filepath.Join(root, file), flow(file))
	}
	for _, want := range files {
		r := resolver(root, "sub/deep")
		w, err := r.Resolve(t.Context(), "flow")
		if err != nil {
			t.Fatalf("%s: %v", want, err)
		}
		if w.Definition.Description != want || r.Full(w.From) != filepath.Join(root, want) {
			t.Fatalf("flow is %s (%s), want %s", w.Definition.Description, w.From, want)
		}
		list, err := r.Places()
		if err != nil || list[0].File != w.From {
			t.Fatalf("the first place is %v, %v; want %s", list, err, w.From)
		}
		if names, err := r.Files(); err != nil || len(names) != 1 || names["flow"] != w.From {
			t.Fatalf("Files = %v, %v", names, err)
		}
		if err := os.Remove(filepath.Join(root, want)); err != nil {
			t.Fatal(err)
		}
	}
	var unknown *app.UnknownError
	if w, err := resolver(root, "sub/deep").Resolve(t.Context(), "flow"); !errors.As(err, &unknown) {
		t.Errorf("flow is %v, %v", w, err)
	}
}

func TestResolveByPathAndHash(t *testing.T) {
	root := t.TempDir()
	const hash = "DCESF5T9N2XA2"
	write(t, filepath.Join(root, "sub/flow.yaml"), flow("a path"))
	write(t, filepath.Join(root, ".workflows/flow.yaml"), flow("a name"))
	write(t, filepath.Join(root, ".workflows", hash+".yaml"), flow("looks like a hash"))
	write(t, filepath.Join(root, "flow"), flow("no extension"))
	for ref, want := range map[string]string{
		"sub/flow.yaml": "a path", "./sub/flow.yaml": "a path", "sub/../sub/flow.yaml": "a path", filepath.Join(root, "sub/flow.yaml"): "a path",
		"flow": "a name", "./flow": "no extension", hash + ".yaml": "", hash: "",
	} {
		w, err := resolver(root, ".").Resolve(t.Context(), ref)
		got := ""
		if err == nil {
			got = w.Definition.Description
		}
		if got != want {
			t.Errorf("%s: %q, %v; want %q", ref, got, err, want)
		}
	}
	// Things that lie where definitions do and are none.
	write(t, filepath.Join(root, ".workflow"), "a file where a folder is looked for")
	if err := os.MkdirAll(filepath.Join(root, ".uwf/workflows/flow.yaml"), 0o750); err != nil {
		t.Fatal(err)
	}
	if w, err := resolver(root, ".").Resolve(t.Context(), "flow"); err != nil || w.Definition.Description != "a name" {
		t.Errorf("beside a folder of its name: %v, %v", w, err)
	}
	if _, err := resolver(root, ".").Places(); err != nil {
		t.Error(err)
	}
}

// Outside of a repository only the folders of the working directory count.
func TestResolveOutsideOfARepository(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, ".workflows/flow.yaml"), flow("above"))
	r := resolver(root, "sub")
	r.Root = ""
	if file, err := r.Find("flow"); err != nil || file != "" {
		t.Errorf("found %s, %v", file, err)
	}
}

func TestGlob(t *testing.T) {
	root := t.TempDir()
	for _, f := range []string{"a.yaml", "b.yml", "c.txt", "x/a.yaml", "x/y/a.yaml", "x/y/z/b.yaml", ".git/a.yaml", ".uwf/workflows/a.yaml", ".hid/a.yaml", "x/.hid.yaml", "[lit].yaml"} {
		write(t, filepath.Join(root, f), "")
	}
	if err := os.Symlink(root, filepath.Join(root, "x/up")); err != nil {
		t.Fatal(err)
	}
	for pattern, want := range map[string]string{
		"*.yaml":         "[lit].yaml a.yaml",
		"**/a.yaml":      ".uwf/workflows/a.yaml a.yaml x/a.yaml x/y/a.yaml",
		"x/**":           "x/a.yaml x/y/a.yaml x/y/z/b.yaml",
		"x/**/*.yaml":    "x/a.yaml x/y/a.yaml x/y/z/b.yaml",
		"**/y/**/b.yaml": "x/y/z/b.yaml",
		"**/**/b.y*ml":   "b.yml x/y/z/b.yaml",
		"x/*/a.yaml":     "x/up/a.yaml x/y/a.yaml",
		"./[ab].y?ml":    "a.yaml",
		"[ab].y*ml":      "a.yaml b.yml",
		".hid/*":         ".hid/a.yaml",
		"x/.h*":          "x/.hid.yaml",
		"x/y/../*.yaml":  "x/a.yaml",
		"nothing/*":      "",
		"a.yaml/*":       "",
	} {
		got, err := glob(root, pattern)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %v, %v; want %s", pattern, got, err, want)
		}
		abs, err := glob("/elsewhere", filepath.Join(root, pattern))
		if err != nil || len(abs) != len(got) || !slices.IsSorted(abs) {
			t.Errorf("%s below %s: %v, %v", pattern, root, abs, err)
		}
	}
	for _, pattern := range []string{"[", "a/[b/c", `x\`} {
		if got, err := glob(root, pattern); err == nil {
			t.Errorf("%s: %v", pattern, got)
		}
	}
}
