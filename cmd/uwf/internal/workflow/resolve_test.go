package workflow

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
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
)

// definition is one whose description says where it lies.
func definition(where string) string {
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
				write(t, filepath.Join(root, file), definition(file))
			}
		}
	}
	// These are never meant: above the repository, beside the way up, of another kind.
	for _, file := range []string{"../.workflows/flow.yaml", "other/.workflows/flow.yaml", ".workflows/flow.json", ".workflows/flow/other.yaml"} {
		write(t, filepath.Join(root, file), definition(file))
	}
	for _, want := range files {
		r := resolver(root, "sub/deep")
		w, err := r.Resolve(t.Context(), "flow")
		if err != nil {
			t.Fatalf("%s: %v", want, err)
		}
		if w.Definition.Description != want || r.full(w.From) != filepath.Join(root, want) {
			t.Fatalf("flow is %s (%s), want %s", w.Definition.Description, w.From, want)
		}
		list, err := r.places()
		if err != nil || list[0].file != w.From {
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
	write(t, filepath.Join(root, "sub/flow.yaml"), definition("a path"))
	write(t, filepath.Join(root, ".workflows/flow.yaml"), definition("a name"))
	write(t, filepath.Join(root, ".workflows", hash+".yaml"), definition("looks like a hash"))
	write(t, filepath.Join(root, "flow"), definition("no extension"))
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
	if _, err := resolver(root, ".").places(); err != nil {
		t.Error(err)
	}
}

// Outside of a repository only the folders of the working directory count.
func TestResolveOutsideOfARepository(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, ".workflows/flow.yaml"), definition("above"))
	r := resolver(root, "sub")
	r.Root = ""
	if file, err := r.find("flow"); err != nil || file != "" {
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

func TestBinaryAndMisnamed(t *testing.T) {
	for data, want := range map[string]bool{"": false, "a: b": false, "a\x00b": true, "\xff\xfea\x00": false, strings.Repeat("x", 9000) + "\x00": false} {
		if got := binary([]byte(data)) != ""; got != want {
			t.Errorf("binary(%.10q) = %v", data, got)
		}
	}
	for file, want := range map[string]bool{
		".workflows/flow.yaml": false, ".workflows/flow/index.yml": false, "x/.uwf/workflows/other.yaml": true, ".workflow/other/index.yaml": true,
		"other.yaml": false, "workflows/other.yaml": false, "stdin": false,
	} {
		p, got := misnamed(file, "flow", []byte("# a\nname:  \"flow\"\n"))
		if got != want || got && (p.Line != 2 || p.Column != 9 || p.Length != 4) {
			t.Errorf("%s: %v %+v", file, got, p)
		}
	}
}

func TestAnnotationsAreEscaped(t *testing.T) {
	var b strings.Builder
	j := &job{out: &b, dir: "/repo/sub", top: "/repo"}
	j.annotate(problem{File: "a,b:c%.yaml", Line: 3, Column: 2, Length: 4, Message: "100%\r\n::set-env::x\x1b[31m", Fix: "##[error]x", Severity: SeverityError})
	j.annotate(problem{File: "../../out.yaml", Line: 1, Column: 1, Length: 1, Message: "m", Severity: SeverityWarning})
	want := `::error file=sub/a%2Cb%3Ac%25.yaml,line=3,col=2,endColumn=6,title=uwf workflow::100%25%0A::set-env::x\x1b[31m%0A## [error]x` + "\n" +
		"::warning file=../../out.yaml,line=1,col=1,endColumn=2,title=uwf workflow::m\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
	for text, want := range map[string]string{"a\n ::b\n::c": "a\n|  ::b\n| ::c", "x ##[y]": "x ## [y]", "a ::b": "a ::b"} {
		if got := inert(text); got != want {
			t.Errorf("inert(%q) = %q, want %q", text, got, want)
		}
	}
}

// Every kind of change has words.
func TestChanges(t *testing.T) {
	edge := func(kind workflow.Kind, value, to, prompt string) workflow.Edge {
		return workflow.Edge{When: workflow.When{Kind: kind, Value: value}, To: to, Prompt: prompt}
	}
	old := &workflow.Definition{
		Name: "a", Dialect: workflow.StatusMap, Description: "d", Limits: &workflow.Limits{MaxSteps: 3},
		Roles:      map[string]workflow.Role{"x": {Goal: "g"}, "gone": {}},
		Graph:      map[string][]workflow.Edge{"x": {edge(workflow.OnCondition, "c", "y", "p"), edge(workflow.OnCondition, "c", "z", "p"), edge(workflow.Always, "", "y", "p")}},
		Conditions: map[string]workflow.Condition{"c": {Expression: "1"}, "old": {Expression: "2"}, "d": {Description: "x"}},
	}
	now := &workflow.Definition{
		Name: "b", Dialect: workflow.Liquid, Description: "e",
		Roles:      map[string]workflow.Role{"x": {Goal: "h", Output: "o"}, "come": {}},
		Graph:      map[string][]workflow.Edge{"x": {edge(workflow.OnCondition, "c", "q", "p"), edge(workflow.Always, "", "y", "r")}},
		Resume:     &workflow.Edge{To: "x"},
		Conditions: map[string]workflow.Condition{"c": {Expression: "3"}, "new": {}, "d": {Description: "y"}},
	}
	want := `renamed from a
written in another dialect: liquid, before status-map
description changed
limits changed: none, before maxSteps 3
role come added
role gone removed
role x: goal, output changed
edge x → c → q: leads there instead of to y
edge x → _ → y: prompt changed
edge $START → resume → x added
edge x → c → z removed
condition c: 3, before 1
condition d: description changed
condition new added
condition old removed`
	if got := strings.Join(changes(old, now), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	swapped := *old
	swapped.Graph = map[string][]workflow.Edge{"x": {old.Graph["x"][2], old.Graph["x"][0], old.Graph["x"][1]}}
	if got := changes(old, &swapped); len(got) != 1 || got[0] != "the order of edges changed" {
		t.Errorf("%q", got)
	}
	if got := changes(old, old); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

func TestVersionMeant(t *testing.T) {
	e := gitcas.RegistryEntry{Hash: "AAAA000000000", History: []gitcas.RegistryVersion{
		{Hash: "AAAA000000000"}, {Hash: "BBBB100000000"}, {Hash: "BBBB200000000"}, {Hash: "BBBB100000000"}}}
	for prefix, want := range map[string]string{
		"": "BBBB100000000", "BBBB1": "BBBB100000000", "bbbb2": "BBBB200000000", "AAAA": "AAAA000000000",
		"BBBB": "!2 versions", "BBB": "!at least", "CCCC": "!no version", "BBBB1000000000": "!no version",
	} {
		got, err := versionMeant("x", e, prefix)
		if why, fails := strings.CutPrefix(want, "!"); fails && (err == nil || !strings.Contains(err.Error(), why)) || !fails && string(got) != want {
			t.Errorf("%q: %s, %v; want %s", prefix, got, err, want)
		}
	}
	if _, err := versionMeant("x", gitcas.RegistryEntry{Hash: "AAAA000000000"}, ""); err == nil {
		t.Error("a first version has one before it")
	}
}
