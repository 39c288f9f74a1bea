package workflow_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/workflow"
)

var update = flag.Bool("update", false, "write the golden files")

// includeFrom reads includes from a folder, as the caller of Parse does.
func includeFrom(t *testing.T, dir string) func(string) ([]byte, error) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := root.Close(); err != nil {
			t.Error(err)
		}
	})
	return root.ReadFile
}

func parseFile(t *testing.T, file string) (*workflow.Definition, error) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return workflow.Parse(filepath.Base(file), data, workflow.Options{Include: includeFrom(t, filepath.Dir(file))})
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (write it with: go test -update)", err)
	}
	if got != string(want) {
		t.Errorf("%s differs; got:\n%s\nwant:\n%s", file, got, want)
	}
}

// Each file of testdata/broken has all its mistakes, as a person sees them, in
// the golden file beside it.
func TestBroken(t *testing.T) {
	files, err := filepath.Glob("testdata/broken/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			d, err := parseFile(t, file)
			var invalid *workflow.InvalidError
			if !errors.As(err, &invalid) {
				t.Fatalf("Parse = %v, %v; want an InvalidError", d, err)
			}
			for _, p := range invalid.Problems {
				if p.Fix == "" {
					t.Errorf("no fix for %s", p)
				}
			}
			golden(t, strings.TrimSuffix(file, ".yaml")+".golden", invalid.Text())
		})
	}
}

func TestExamplesAreValid(t *testing.T) {
	files, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	workflows := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(data), "\ngraph:") {
			continue // a script or a configuration
		}
		workflows++
		warn := func(p workflow.Problem) { t.Error(p) }
		if _, err := workflow.Parse(file, data, workflow.Options{Include: includeFrom(t, filepath.Dir(file)), Warn: warn}); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	if workflows == 0 {
		t.Error("no example is a workflow")
	}
}

// The work that a definition of the largest size can cause is bounded.
func TestHostileDefinitionsEnd(t *testing.T) {
	const role = ": {description: d, goal: g, capabilities: [], procedure: p, output: o, frontmatter: {type: object, properties: {x: {type: string}}}}\n"
	head := "name: x\ndescription: d\nroles:\n"
	fill := func(unit string, n int) string { return strings.Repeat(unit, n/len(unit)) }
	many := func(line string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, line, i)
		}
		return b.String()
	}
	const size = 500_000
	var roles, edges strings.Builder
	for i := range 200 {
		fmt.Fprintf(&roles, "  some-role-with-a-long-name-%d%s", i, role)
		fmt.Fprintf(&edges, "  some-role-with-a-long-nam-%d: {", i)
		for j := range 8 {
			fmt.Fprintf(&edges, "s%d: {role: some-role-with-a-lng-name-%d%d, prompt: p}, ", j, i, j)
		}
		edges.WriteString("}\n")
	}
	for name, text := range map[string]string{
		"conditions": head + "  a" + role + "conditions:\n" + many("  c%d: \""+strings.Repeat("(a[b = 'cdef'] ", 120)+"\"\n", 200) + "graph:\n  $START: {_: {role: a, prompt: p}}\n  a: {_: {role: $END, prompt: p}}\n",
		"liquid":     "version: 1\n" + head + "  a" + role + "graph:\n  $START: {_: {role: a, prompt: p}}\n  a: {_: {role: $END, prompt: \"" + fill("{{y | upcase}}", size) + "\"}}\n",
		"blocks":     "version: 1\n" + head + "  a" + role + "graph:\n  $START: {_: {role: a, prompt: p}}\n  a: {_: {role: $END, prompt: \"" + fill("{% if x %}", size) + "\"}}\n",
		"filters":    "version: 1\n" + head + "  a" + role + "graph:\n  $START: {_: {role: a, prompt: p}}\n  a: {_: {role: $END, prompt: \"{{ x" + fill(" | upcase", size) + " | nope }}\"}}\n",
		"variables":  head + "  a" + role + "graph:\n  $START: {_: {role: a, prompt: p}}\n  a: {_: {role: $END, prompt: \"" + fill("{{y}}", size) + "\"}}\n",
		"lines":      head + "  a" + role + "graph:\n  $START: {_: {role: a, prompt: p}}\n  a:\n    _:\n      role: $END\n      prompt: |\n" + fill("        {{y}}\n", size),
		"typos":      head + roles.String() + "graph:\n  $START: {_: {role: a, prompt: p}}\n" + edges.String(),
		"duplicates": fill("a: b\n", size),
		"keys":       "roles: {" + fill("a, ", size) + "}",
		"flow":       fill("[", size),
		"indents":    fill("- ", size),
		"aliases":    "a: &a [x]\nb: [" + fill("*a,", size) + "]",
		"bomb":       "a: &a [x,x,x,x]\nb: &b [*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b]\nd: [*c,*c,*c,*c]",
		"statuses":   head + "  a: {description: d, goal: g, capabilities: [], procedure: p, output: o, frontmatter: {type: object, properties: {$status: {enum: [" + fill("s, ", size/2) + "]}}}}\ngraph:\n  $START: {_: {role: a, prompt: p}}\n  a: {_: {role: $END, prompt: p}}\n",
	} {
		_, err := workflow.Parse("x.yaml", []byte(text), workflow.Options{})
		var invalid *workflow.InvalidError
		if !errors.As(err, &invalid) {
			t.Errorf("%s: %v", name, err)
		}
		_ = invalid.Text()
	}
}

func TestCRLFAndBOMReadTheSame(t *testing.T) {
	data, err := os.ReadFile("testdata/good/seed.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := hashOf(t, mustParse(t, string(data)))
	for name, text := range map[string]string{
		"crlf": strings.ReplaceAll(string(data), "\n", "\r\n"),
		"bom":  "\ufeff" + string(data),
		"json": jsonSeed,
	} {
		if got := hashOf(t, mustParse(t, text)); got != want {
			t.Errorf("%s: hash %s, want %s", name, got, want)
		}
	}
}

// jsonSeed is seed.yaml as JSON, which is YAML too.
const jsonSeed = `{"name": "demo", "description": "d", "roles": {"reviewer": {"description": "r", "goal": "g",
  "capabilities": ["code-review"], "procedure": "p", "output": "o", "frontmatter": {"type": "object", "properties":
  {"$status": {"enum": ["approved", "rejected"]}, "comments": {"type": "string"}}, "required": ["$status"]}}},
  "graph": {"$START": {"_": {"role": "reviewer", "prompt": "go"}}, "reviewer": {
  "approved": {"role": "$END", "prompt": "done"}, "rejected": {"role": "reviewer", "prompt": "again: {{comments}}"}}}}`

func mustParse(t *testing.T, text string) *workflow.Definition {
	t.Helper()
	d, err := workflow.Parse("test.yaml", []byte(text), workflow.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestIncludesAndScalars(t *testing.T) {
	d, err := parseFile(t, "testdata/good/includes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	a := d.Roles["a"]
	for what, got := range map[string][2]string{
		"description": {d.Description, "An included text.\n"},
		"goal":        {a.Goal, "no"},
		"procedure":   {a.Procedure, "Do it.\n"},
		"output":      {a.Output, "2026-06-04"},
		"start":       {d.Graph[workflow.Start][0].Prompt, "5"},
		"prompt":      {d.Graph["a"][1].Prompt, "{{x}}\n{{#list}}{{.}}{{/list}}\n"},
		"0777":        {d.Graph["a"][2].Prompt, "0777"},
		"statuses":    {strings.Join(d.Statuses("a"), " "), "done yes 2026-06-04"},
	} {
		if got[0] != got[1] {
			t.Errorf("%s = %q, want %q", what, got[0], got[1])
		}
	}
}

// Problems inside included files name those files.
func TestProblemsInIncludedFiles(t *testing.T) {
	files := map[string]string{
		"p/graph.yaml": "$START: {_: {role: a, prompt: p}}\na:\n  done: {role: $END, prompt: !include prompt.md}\n  typo: {role: $END, prompt: p}\n",
		"p/prompt.md":  "Hello\n  {{#x}}{{/x}} {{z}}\n",
		"p/bad.md":     "one\n\n  two {{#x}}\n",
		"schema.json":  "{\n  \"properties\": {\"$status\": {\"enum\": [\"done\",\r\n     \"föx\", \"lost\"]}, \"x\": {}}\n}\n",
		"broken.json":  "{\"a\": [1, 2,]}",
		"two.json":     "{} {}",
	}
	include := func(name string) ([]byte, error) {
		if text, ok := files[name]; ok {
			return []byte(text), nil
		}
		return nil, fs.ErrNotExist
	}
	text := func(schema, graph string) string {
		return "name: x\ndescription: d\nroles:\n  a: {description: d, goal: g, capabilities: [], procedure: p, output: o, frontmatter: !include " + schema + "}\ngraph: " + graph + "\n"
	}
	for _, tt := range []struct{ schema, graph, want string }{
		{"schema.json", "!include p/graph.yaml", "dir/p/graph.yaml:4:3 dir/p/prompt.md:2:16 dir/schema.json:3:6 dir/schema.json:3:13"},
		{"broken.json", "{}", "dir/x.yaml:4:3 dir/x.yaml:5:1 dir/broken.json:1:13"},
		{"two.json", "{}", "dir/x.yaml:4:3 dir/x.yaml:5:1 dir/two.json:1:4"},
		{"schema.json", "{$START: {_: {role: a, prompt: p}}, a: {done: {role: $END, prompt: !include p/bad.md}, föx: {role: $END, prompt: p}, lost: {role: $END, prompt: p}}}", "dir/p/bad.md:3:3"},
	} {
		_, err := workflow.Parse("dir/x.yaml", []byte(text(tt.schema, tt.graph)), workflow.Options{Include: include})
		var invalid *workflow.InvalidError
		if !errors.As(err, &invalid) {
			t.Errorf("%s %s: %v", tt.schema, tt.graph, err)
			continue
		}
		var got []string
		for _, p := range invalid.Problems {
			got = append(got, fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col))
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s %s: problems at %s, want %s\n%s", tt.schema, tt.graph, got, tt.want, invalid.Text())
		}
	}
}

func TestCaps(t *testing.T) {
	chain := func(name string) ([]byte, error) { return []byte("a: !include y" + name + "\n"), nil }
	many := "name: x\ndescription: d\nroles: {}\ngraph: {}\nx: [" + strings.Repeat("!include a.txt, ", 101) + "]"
	roles := strings.Builder{}
	for i := range 201 {
		fmt.Fprintf(&roles, "  r%d: {}\n", i)
	}
	for name, tt := range map[string]struct {
		text, want string
		include    func(string) ([]byte, error)
	}{
		"file":     {strings.Repeat("#", 1<<20+1), "the limit is", nil},
		"included": {"a: !include b.txt", "the limit is", func(string) ([]byte, error) { return make([]byte, 1<<20+1), nil }},
		"total": {"[" + strings.Repeat("!include b.txt, ", 10) + "]", "together", func(string) ([]byte, error) {
			return []byte(strings.Repeat("x", 1<<20)), nil
		}},
		"depth":    {strings.Repeat("[", 100) + strings.Repeat("]", 100), "nest deeper", nil},
		"values":   {"[" + strings.Repeat("1,", 100_001) + "]", "more than 100000 values", nil},
		"chain":    {"a: !include y.yaml", "nests deeper than 8 files", chain},
		"includes": {many, "more than 100 files", func(string) ([]byte, error) { return nil, nil }},
		"none":     {"a: !include y.yaml", "no folder to include from", nil},
		"roles":    {"roles:\n" + roles.String(), "201 roles; the limit is 200", nil},
		"problems": {"a: [" + strings.Repeat("!x y, ", 1000) + "]", "the tag !x is not allowed", nil},
	} {
		_, err := workflow.Parse("x.yaml", []byte(tt.text), workflow.Options{Include: tt.include})
		var invalid *workflow.InvalidError
		if !errors.As(err, &invalid) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %.300v, want %q", name, err, tt.want)
		}
		if invalid != nil && len(invalid.Problems) > 100 {
			t.Errorf("%s: %d problems", name, len(invalid.Problems))
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/broken/*.yaml", "testdata/good/*.yaml", "../../examples/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		include := func(name string) ([]byte, error) {
			if name == "self.yaml" || name == "self.json" || name == "self.md" {
				return data, nil
			}
			return nil, fs.ErrNotExist
		}
		d, err := workflow.Parse("f.yaml", data, workflow.Options{Include: include})
		var invalid *workflow.InvalidError
		if (err != nil) == (d != nil) || (err != nil && (!errors.As(err, &invalid) || len(invalid.Problems) == 0)) {
			t.Fatalf("Parse = %v, %v", d, err)
		}
		if err != nil {
			_ = invalid.Text()
			return
		}
		// What parses can be stored, and comes back the same.
		h, nodes, err := workflow.Materialize(d, time.UnixMilli(0))
		if err != nil {
			t.Fatal(err)
		}
		back, err := workflow.FromNode(storeOf(t, nodes), h)
		if err != nil {
			t.Fatal(err)
		}
		if again := hashOf(t, back); again != h {
			t.Fatalf("hash %s, stored again %s", h, again)
		}
		if parsed := withoutHashes(d, d); !reflect.DeepEqual(parsed, withoutHashes(back, d)) {
			t.Fatalf("parsed\n%+v\nread back\n%+v", parsed, back)
		}
	})
}
