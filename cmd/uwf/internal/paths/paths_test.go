package paths_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xeipuuv/gojsonschema"
	"gopkg.in/yaml.v3"

	"github.com/united-workforce/uwf/cmd/uwf/internal/paths"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/examples"
)

func load(t *testing.T, name string, change ...string) *workflow.Definition {
	t.Helper()
	data, err := examples.Files.ReadFile(name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	d, err := workflow.Parse(filepath.Base(name)+".yaml", []byte(strings.NewReplacer(change...).Replace(string(data))), workflow.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// What is made of a definition meets every status of every role, is read back as it was written,
// and holds.
func TestMake(t *testing.T) {
	for _, name := range examples.Workflows() {
		d := load(t, name)
		data, err := paths.Format(name, paths.Make(d))
		if err != nil {
			t.Fatal(err)
		}
		cases, err := paths.Parse("tests.yaml", data)
		if err != nil || len(cases) == 0 {
			t.Fatalf("%s: %v\n%s", name, err, data)
		}
		for _, c := range cases {
			if f := paths.Try(d, c); f != nil {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if left := paths.Untried(d, cases); len(left) > 0 {
			t.Errorf("%s: %q are not tried", name, left)
		}
	}
}

// Each change of a workflow that changes a path is found, by the path and the step.
func TestChanges(t *testing.T) {
	was := load(t, "solve-issue")
	cases := paths.Make(was)
	for _, c := range []struct {
		name   string
		change []string
		want   string
	}{
		{"nothing", nil, ""},
		{"a prompt", []string{"Read the task, find the cause, and write the plan.", "Read it."}, "step 1: planner is told\n    Read it.\nand not\n    Read the task"},
		{"a target", []string{"    rejected:\n      role: developer", "    rejected:\n      role: planner"}, "is of developer, and it is the turn of planner"},
		{"a field", []string{"required: [$status, plan, files]", "required: [$status, plan, files, risk]", "        plan:\n", "        risk: {type: string}\n        plan:\n"}, "risk"},
		{"the last words", []string{"    approved:\n      role: $END\n      prompt: \"{{summary}}\"", "    approved:\n      role: $END\n      prompt: Done."}, "it ends with the words\n    Done.\nand not\n"},
		{"the end", []string{"    blocked:\n      role: $SUSPEND", "    blocked:\n      role: $END"}, "it ends at $END, and not at $SUSPEND"},
	} {
		is := load(t, "solve-issue", c.change...)
		var found []string
		for _, one := range cases {
			if f := paths.Try(is, one); f != nil {
				found = append(found, f.Message)
			}
		}
		if all := strings.Join(found, "\n"); (c.want == "") != (all == "") || !strings.Contains(all, c.want) {
			t.Errorf("%s: found %q, want %q", c.name, all, c.want)
		}
	}
}

// A file that is none says where and why.
func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "0 cases",
		"cases: []":                 "0 cases",
		"cases: 3":                  "must be a list",
		"cases:\n  - {name: a}":     "tests.yaml:2:5: cases[0]: a case says where it ends",
		"cases:\n  - {ends: $ENDE}": "$END",
		"cases:\n  - {ends: $END, steps: [{role: a}]}": "a step needs a role and an output",
		"cases:\n  - {ends: $END, stepps: []}":         "steps",
		"\t":                                           "tests.yaml",
	} {
		if _, err := paths.Parse("tests.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	d := load(t, "triage")
	for _, c := range []struct {
		one  paths.Case
		want string
	}{
		{paths.Case{Ends: "$END"}, "after 0 steps it is the turn of"},
		{paths.Case{Ends: "$END", Steps: []paths.Step{{Role: "nobody", Output: "x", Line: 7}}}, "step 1 is of nobody, and it is the turn of"},
		{paths.Case{Ends: "$END", Steps: []paths.Step{{Role: paths.Make(d)[0].Steps[0].Role, Output: "no fields", Line: 7}}}, "read the answer"},
		{func() paths.Case { c := paths.Make(d)[0]; c.Steps = append(c.Steps, c.Steps[0]); return c }(), "and the case goes on with"},
	} {
		if f := paths.Try(d, c.one); f == nil || !strings.Contains(f.Message, c.want) {
			t.Errorf("%+v, want %q", f, c.want)
		}
	}
}

// The schema that is shipped for editors is the one of the table, and takes what the reader takes.
func TestSchema(t *testing.T) {
	var want bytes.Buffer
	e := json.NewEncoder(&want)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(paths.Schema()); err != nil {
		t.Fatal(err)
	}
	const file = "../../../../examples/paths.schema.json"
	if got, err := os.ReadFile(file); err != nil || string(got) != want.String() {
		t.Errorf("%s is not the schema of the table (%v): write it with go run ./cmd/uwf workflow schema --paths > examples/paths.schema.json", file, err)
	}
	schema, err := gojsonschema.NewSchema(gojsonschema.NewGoLoader(paths.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	for text, ok := range map[string]bool{
		"cases: [{name: a, ends: $END}]": true, "cases: [{ends: $SUSPEND, says: x, steps: [{role: a, prompt: b, output: c}]}]": true,
		"{}": false, "cases: {}": false, "cases: [x]": false, "cases: [{ands: $END}]": false, "cases: [{ends: done}]": false,
		"cases: [{ends: $END, steps: [{rule: a}]}]": false, "cases: [{ends: $END, steps: x}]": false,
	} {
		var v any
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		res, err := schema.Validate(gojsonschema.NewGoLoader(v))
		if err != nil || res.Valid() != ok {
			t.Errorf("schema on %q: %v, %v", text, err, res.Errors())
		}
		if _, err := paths.Parse("p", []byte(text)); (err == nil) != ok {
			t.Errorf("reader on %q: %v", text, err)
		}
	}
}
