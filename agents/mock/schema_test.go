package mock

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/xeipuuv/gojsonschema"
	"gopkg.in/yaml.v3"
)

// The schema that is shipped for editors is the one of the table, and takes what the reader takes.
func TestSchema(t *testing.T) {
	var want bytes.Buffer
	e := json.NewEncoder(&want)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(Schema()); err != nil {
		t.Fatal(err)
	}
	const file = "../../examples/mock.schema.json"
	if got, err := os.ReadFile(file); err != nil || string(got) != want.String() {
		t.Errorf("%s is not the schema of the table (%v): write it with go run ./cmd/uwf agent mock --schema > examples/mock.schema.json", file, err)
	}
	schema, err := gojsonschema.NewSchema(gojsonschema.NewGoLoader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	for script, ok := range map[string]bool{
		"steps: [{output: x}]": true, "steps: [{output: [x, 1, true]}]": true, "steps: [{output: 7}]": true, "steps: [{exit: 0}]": true,
		"steps: [{hang: true}]": true, "steps: [{kill: true, role: a, step: 1}]": true, "steps: [{output: x, write: {a: b}, usage: {turns: 1}}]": true,
		"steps: [{output: x, as: {role: b}}]": true,
		"{}":                                  false, "steps: []": false, "steps: {}": false, "steps: [x]": false, "steps: [{}]": false, "steps: [~]": false, "steps: [{role: a}]": false,
		"steps: [{outptu: x}]": false, "steps: [{output: {a: b}}]": false, "steps: [{output: [{a: b}]}]": false, "steps: [{output: x, step: 0}]": false,
		"steps: [{exit: 256}]": false, "steps: [{output: x, delay: 3}]": false, "steps: [{output: x, hang: maybe}]": false,
		"steps: [{output: x, as: {rule: b}}]": false, "steps: [{output: x, usage: {turns: few}}]": false, "stepps: []": false,
	} {
		var v any
		if err := yaml.Unmarshal([]byte(script), &v); err != nil {
			t.Fatal(err)
		}
		res, err := schema.Validate(gojsonschema.NewGoLoader(v))
		if err != nil || res.Valid() != ok {
			t.Errorf("schema on %q: %v, %v", script, err, res.Errors())
		}
		if _, err := Parse("s", []byte(script)); (err == nil) != ok {
			t.Errorf("reader on %q: %v", script, err)
		}
	}
}

// Each key has words to it, stands in the example, and in the page for people.
func TestKeysAreShown(t *testing.T) {
	example, err := os.ReadFile("../../examples/mock.yaml")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/mock.md")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Parse("mock.yaml", example); err != nil {
		t.Fatal(err)
	}
	var script struct{ Steps []map[string]any }
	if err := yaml.Unmarshal(example, &script); err != nil {
		t.Fatal(err)
	}
	var shown []string
	for _, step := range script.Steps {
		for key, v := range step {
			shown = append(shown, key)
			if below, ok := v.(map[string]any); ok && (key == "usage" || key == "as") {
				for key := range below {
					shown = append(shown, key)
				}
			}
		}
	}
	for _, f := range (&Entry{}).settings().Fields {
		for _, f := range append(f.Fields, f) {
			if f.Doc == "" || !slices.Contains(shown, f.Name) || !strings.Contains(string(page), "`"+f.Name+"`") {
				t.Errorf("%s: described as %q; it has to stand in examples/mock.yaml and in docs/mock.md", f.Name, f.Doc)
			}
		}
	}
}
