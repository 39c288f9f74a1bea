package definition

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/examples"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// tornWorkflow puts a workflow without its role's schema.
func tornWorkflow(t *testing.T, store *gitcas.Store, view *gitcas.View) (node.Hash, *gitcas.View) {
	t.Helper()
	d, err := workflow.Parse("flow.yaml", []byte(flow("torn")), workflow.Options{})
	if err != nil {
		t.Fatal(err)
	}
	hash, nodes, err := workflow.Materialize(d, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(nodes, func(n node.Node) bool { return workflow.IsWorkflow(n.Type) })
	if view, err = store.Update(t.Context(), view, func(*gitcas.View) (*gitcas.Change, error) {
		return &gitcas.Change{Subject: "add a workflow", Nodes: []gitcas.PlacedNode{{Hash: hash, Node: nodes[i]}}}, nil
	}); err != nil {
		t.Fatal(err)
	}
	return hash, view
}

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

// writeLoop makes a symbolic link to itself, which nobody can read, root neither.
func writeLoop(t *testing.T, file string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Base(file), file); err != nil {
		t.Fatal(err)
	}
}

// writeUnreadable makes the folder folder, whose definitions can't be listed, the
// folder file, in which one definition can't be looked at, and an empty one.
func writeUnreadable(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	writeLoop(t, filepath.Join(root, "folder/.workflows"))
	writeLoop(t, filepath.Join(root, "file/.workflows/other.yaml"))
	if err := os.Mkdir(filepath.Join(root, "empty"), 0o750); err != nil {
		t.Fatal(err)
	}
	return root
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

// What can't be read is never taken for something that is not there.
func TestResolveRefuses(t *testing.T) {
	root := writeUnreadable(t)
	write(t, filepath.Join(root, "empty/bad.yaml"), "name: 1\n")
	var usage *app.UsageError
	var unknown *app.UnknownError
	var invalid *workflow.InvalidError
	find := func(r *Resolver) error { _, err := r.Find("flow"); return err }
	places := func(r *Resolver) error { _, err := r.Places(); return err }
	files := func(r *Resolver) error { _, err := r.Files(); return err }
	file := func(r *Resolver) error { _, err := r.File(t.Context(), "flow"); return err }
	resolve := func(ref string) func(*Resolver) error {
		return func(r *Resolver) error { _, err := r.Resolve(t.Context(), ref); return err }
	}
	compile := func(r *Resolver) error {
		_, err := r.Compile(t.Context(), ".workflows/flow.yaml", []byte(flow("d")))
		return err
	}
	for _, tt := range []struct {
		name, dir string
		do        func(*Resolver) error
		says      string
		as        any // nil: ELOOP
	}{
		{"find", "folder", find, "look for the workflow flow: ", nil},
		{"list a folder", "folder", places, "list workflows: open ", nil},
		{"list a file", "file", places, "list workflows: stat ", nil},
		{"list names", "folder", files, "list workflows: ", nil},
		{"resolve", "folder", resolve("flow"), "look for the workflow flow: ", nil},
		{"resolve what is nowhere", "file", resolve("flow"), "list workflows: ", nil},
		{"find a file", "folder", file, "look for the workflow flow: ", nil},
		{"find a file that is nowhere", "file", file, "list workflows: ", nil},
		{"no file of this name", "empty", file, `no workflow file "flow"`, &unknown},
		{"no such path", "empty", resolve("./none.yaml"), "read the workflow ./none.yaml: stat ", &usage},
		{"no definition", "empty", resolve("./bad.yaml"), "bad.yaml", &invalid},
		{"below what can't be read", "folder", compile, "read the workflow .workflows/flow.yaml: ", &usage},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := resolver(root, tt.dir)
			r.Root = r.Dir
			var told *workflow.InvalidError
			r.Invalid = func(e *workflow.InvalidError) { told = e }
			err := tt.do(r)
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("error %v, want %q", err, tt.says)
			}
			if tt.as == nil && !errors.Is(err, syscall.ELOOP) || tt.as != nil && !errors.As(err, tt.as) {
				t.Errorf("error %v (%T)", err, err)
			}
			if (tt.as == &invalid) != (told != nil) {
				t.Errorf("invalid is %v", told)
			}
		})
	}
}

// What the store has not, or has and is no workflow.
func TestStoreRefuses(t *testing.T) {
	note, hash, err := node.New(node.String, "a note", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	store := gitcas.Open(wiretest.NewMemory(wiretest.MemoryOptions{}), gitcas.Options{Now: time.Now})
	view, err := store.Init(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if view, err = store.Update(t.Context(), view, func(*gitcas.View) (*gitcas.Change, error) {
		return &gitcas.Change{Subject: "add a note", Nodes: []gitcas.PlacedNode{{Hash: hash, Node: note}}}, nil
	}); err != nil {
		t.Fatal(err)
	}
	torn, view := tornWorkflow(t, store, view)
	const none = node.Hash("0000000000000")
	broken := errors.New("broken")
	var usage *app.UsageError
	var unknown *app.UnknownError
	for _, tt := range []struct {
		name string
		view error // in its place
		do   func(*Resolver) error
		is   error
		as   any
		says string
	}{
		{"no workflow", nil, func(r *Resolver) error { _, err := r.Resolve(t.Context(), string(hash)); return err },
			workflow.ErrNoWorkflow, &usage, "reading workflow " + string(hash)},
		{"no such hash", nil, func(r *Resolver) error { _, err := r.Resolve(t.Context(), string(none)); return err },
			nil, &unknown, `no workflow "0000000000000"`},
		{"registered, and not there", nil, func(r *Resolver) error { _, err := r.readStored(t.Context(), none, FromRegistry); return err },
			node.ErrNotFound, nil, "workflow 0000000000000 of the registry: "},
		{"registered, and not whole", nil, func(r *Resolver) error { _, err := r.readStored(t.Context(), torn, FromRegistry); return err },
			node.ErrNotFound, nil, "workflow " + string(torn) + " of the registry: "},
		{"name, no view", broken, func(r *Resolver) error { _, err := r.Resolve(t.Context(), "flow"); return err }, broken, nil, "broken"},
		{"schema, no view", broken, func(r *Resolver) error { _, err := storeGetter{t.Context(), r}.Get(none); return err }, broken, nil, "broken"},
		{"schema, no store", gitcas.ErrNoStore, func(r *Resolver) error { _, err := storeGetter{t.Context(), r}.Get(none); return err },
			node.ErrNotFound, nil, "0000000000000"},
	} {
		r := resolver(t.TempDir(), ".")
		r.View = func(context.Context) (*gitcas.View, error) { return view, tt.view }
		err := tt.do(r)
		if err == nil || !strings.Contains(err.Error(), tt.says) || tt.is != nil && !errors.Is(err, tt.is) || tt.as != nil && !errors.As(err, tt.as) {
			t.Errorf("%s: %v (%T), want %q", tt.name, err, err, tt.says)
		}
	}
	home := t.TempDir()
	if _, err := New(app.NewAt(home, []string{"HOME=" + home}, app.IO{})).View(t.Context()); !errors.Is(err, gitcas.ErrNoStore) {
		t.Errorf("where no store is: %v", err)
	}
}

// A name that is none is answered with one that may be meant; a task, with how it is said.
func TestUnknownName(t *testing.T) {
	dir := t.TempDir()
	r := resolver(dir, ".")
	r.View = func(context.Context) (*gitcas.View, error) { return nil, gitcas.ErrNoStore }
	write(t, filepath.Join(dir, ".uwf/workflows/flow.yaml"), flow("here"))
	for _, want := range []app.UnknownError{
		{What: "workflow", ID: "quite-other", See: "uwf workflow list"},
		{What: "workflow", ID: "flwo", Near: []string{"flow"}, See: "uwf workflow list"},
		{What: "workflow", ID: "solve-isue", Near: []string{"solve-issue"}, See: "uwf workflow list"},
		{What: "workflow", ID: "fix the bug", Hint: "what is to be done is said with -p: uwf run -p \"…\""},
	} {
		var got *app.UnknownError
		if _, err := r.Resolve(t.Context(), want.ID); !errors.As(err, &got) || len(got.Near)+len(want.Near) > 0 && !slices.Equal(got.Near, want.Near) || got.See != want.See || got.Hint != want.Hint {
			t.Errorf("%+v (%v), want %+v", got, err, want)
		}
	}
}

// What uwf has with it is found last; without a name the only workflow there is, or the usual one.
func TestPresets(t *testing.T) {
	dir := t.TempDir()
	r := resolver(dir, ".")
	r.View = func(context.Context) (*gitcas.View, error) { return nil, gitcas.ErrNoStore }
	for _, name := range examples.Workflows() {
		if res, err := r.Resolve(t.Context(), name); err != nil || res.From != FromUWF || res.Definition.Name != name {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
	for _, c := range []struct{ file, want, others string }{
		{"", "solve-issue", ""},
		{".workflow/flow.yaml", "flow", ""},
		{".workflow/other.yaml", "solve-issue", "flow other"},
		{".workflows/solve-issue.yaml", "solve-issue", "flow other"},
	} {
		if c.file != "" {
			write(t, filepath.Join(dir, c.file), flow("here"))
		}
		if name, others, err := r.Usual(t.Context()); err != nil || name != c.want || strings.Join(others, " ") != c.others {
			t.Errorf("with %s: %q besides %q, %v", c.file, name, others, err)
		}
	}
	if res, err := r.Resolve(t.Context(), "solve-issue"); err != nil || res.From != filepath.Join(".workflows", "solve-issue.yaml") {
		t.Errorf("the repository's own goes first: %+v, %v", res, err)
	}
}

func TestIncludesRefused(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "large"), "")
	if err := errors.Join(os.Truncate(filepath.Join(dir, "large"), MaxSize+1), os.Mkdir(filepath.Join(dir, "folder"), 0o750)); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	for name, says := range map[string]string{"none": "no such file", "folder": "not a regular file", "large": "larger than 1048576 bytes"} {
		if _, err := readIn(root, name); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", name, err, says)
		}
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
		got, err := expandGlob(root, pattern)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %v, %v; want %s", pattern, got, err, want)
		}
		abs, err := expandGlob("/elsewhere", filepath.Join(root, pattern))
		if err != nil || len(abs) != len(got) || !slices.IsSorted(abs) {
			t.Errorf("%s below %s: %v, %v", pattern, root, abs, err)
		}
	}
	for _, pattern := range []string{"[", "a/[b/c", `x\`} {
		if got, err := expandGlob(root, pattern); err == nil {
			t.Errorf("%s: %v", pattern, got)
		}
	}
}

// A pattern ends at its bounds, wherever it is when it gets there.
func TestGlobBounds(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "a.yaml"), "")
	full := func() *globber { return &globber{matches: make([]string, maxMatches)} }
	for _, tt := range []struct {
		name  string
		g     *globber
		parts []string
	}{
		{"matches", full(), []string{"a.yaml"}},
		{"matches in a folder", full(), []string{"*"}},
		{"matches below **", full(), []string{"**", "a.yaml"}},
		{"entries", &globber{seen: maxSeen}, []string{"*"}},
	} {
		if err := tt.g.matchParts(root, tt.parts); !errors.Is(err, errTooMany) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	// Each ** that may stand for the folder finds its files again.
	for i := range maxMatches/10 + 1 {
		write(t, filepath.Join(root, "sub", fmt.Sprintf("%d.yaml", i)), "")
	}
	if got, err := expandGlob(root, strings.Repeat("**/", 10)+"*.yaml"); !errors.Is(err, errTooMany) {
		t.Errorf("%d files, %v", len(got), err)
	}
}
