package format_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xeipuuv/gojsonschema"

	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/engine/workflow/format"
	"github.com/united-workforce/uwf/engine/workflow/source"
)

var update = flag.Bool("update", false, "write the schema and the list of what it refuses")

const shipped = "../../../examples/workflow.schema.json"

// The shipped file is what the code says.
func TestShippedSchema(t *testing.T) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(format.Schema()); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(shipped, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(shipped)
	if err != nil || !bytes.Equal(got, b.Bytes()) {
		t.Errorf("%s is not what the code says (%v); write it with: go test ./engine/workflow/format -update", shipped, err)
	}
}

func schema(t *testing.T) *gojsonschema.Schema {
	t.Helper()
	s, err := gojsonschema.NewSchema(gojsonschema.NewGoLoader(format.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// read reads a definition without looking at its sense. Nil: it is no YAML that a
// definition may be.
func read(t *testing.T, file string) any {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	ps := &source.Problems{}
	v := source.Read(ps, filepath.Base(file), data, root.ReadFile)
	if v == nil || !ps.Empty() {
		return nil
	}
	return v.Plain()
}

func refused(t *testing.T, s *gojsonschema.Schema, v any) []string {
	t.Helper()
	res, err := s.Validate(gojsonschema.NewGoLoader(v))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range res.Errors() {
		out = append(out, e.String())
	}
	return out
}

func files(t *testing.T, patterns ...string) []string {
	t.Helper()
	var out []string
	for _, p := range patterns {
		found, err := filepath.Glob(p)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, found...)
	}
	if len(out) == 0 {
		t.Fatalf("no files for %s", patterns)
	}
	return out
}

// Every definition that can be used fits the schema.
func TestGoodDefinitionsFit(t *testing.T) {
	s := schema(t)
	for _, file := range files(t, "../testdata/good/*.yaml", "../../../examples/*.yaml", "../../../cmd/uwf/testdata/golden/*/workflow.yaml") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(data), "\ngraph:") {
			continue // an example of something else
		}
		if errs := refused(t, s, read(t, file)); errs != nil {
			t.Errorf("%s: %s", file, strings.Join(errs, "\n"))
		}
	}
}

// Of the broken definitions the schema refuses those whose shape is wrong, and
// lets those pass whose sense is: which is which stands in a file beside them.
func TestBrokenDefinitions(t *testing.T) {
	const list = "../testdata/broken/structural.txt"
	s := schema(t)
	var got []string
	for _, file := range files(t, "../testdata/broken/*.yaml") {
		if v := read(t, file); v != nil && refused(t, s, v) != nil {
			got = append(got, filepath.Base(file))
		}
	}
	text := strings.Join(got, "\n") + "\n"
	if *update {
		if err := os.WriteFile(list, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(list)
	if err != nil || string(want) != text {
		t.Errorf("the schema refuses\n%swant (%v)\n%s", text, err, want)
	}
}

// The schema knows exactly the keys that the compiler knows: an unknown key in each
// kind of map makes it list them.
func TestKeysAreThoseOfTheCompiler(t *testing.T) {
	const role = "  a: {description: d, goal: g, capabilities: [], procedure: p, output: o, frontmatter: {type: object}ROLE}\n"
	text := "name: x\ndescription: d\nunknown-key: 1\nroles:\n" + strings.Replace(role, "ROLE", ", unknown-key: 1", 1) +
		"conditions: {c: {expression: 'true', unknown-key: 1}}\nlimits: {unknown-key: 1}\n" +
		"graph:\n  $START: [{role: a, condition: c}]\n  a: [{role: $END, unknown-key: 1}]\n"
	_, err := workflow.Parse("x.yaml", []byte(text), workflow.Options{})
	var invalid *workflow.InvalidError
	if !errors.As(err, &invalid) {
		t.Fatal(err)
	}
	known := map[string][]string{}
	for _, p := range invalid.Problems {
		if keys, is := strings.CutPrefix(p.Fix, "known are: "); is {
			known[strings.Fields(p.Message)[0]+" "+strings.Fields(p.Message)[1]] = strings.Split(keys, ", ")
		}
	}
	definitions := format.Schema()["definitions"].(map[string]any)
	properties := func(part any) []string {
		return slices.Sorted(maps.Keys(part.(map[string]any)["properties"].(map[string]any)))
	}
	object := definitions["condition"].(map[string]any)["anyOf"].([]any)[1]
	for what, keys := range map[string][]string{
		"the definition": properties(format.Schema()), `role "a"`: properties(definitions["role"]), `condition "c"`: properties(object),
		"`limits` has": properties(definitions["limits"]), "edge a": properties(definitions["listEdge"]),
	} {
		slices.Sort(known[what])
		if !slices.Equal(known[what], keys) {
			t.Errorf("%s: the compiler knows %v, the schema %v", what, known[what], keys)
		}
	}
	for _, other := range []string{"edge", "startEdge"} {
		if !slices.Equal(properties(definitions[other]), properties(definitions["listEdge"])) {
			t.Errorf("%s has other keys than listEdge", other)
		}
	}
}

// Every key is explained, for people who hover over it.
func TestEveryKeyIsExplained(t *testing.T) {
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			if props, ok := v["properties"].(map[string]any); ok && v["additionalProperties"] != nil {
				for key, p := range props {
					if m, ok := p.(map[string]any); !ok || m["description"] == nil {
						t.Errorf("%s/%s has no description", path, key)
					}
				}
			}
			for k, sub := range v {
				walk(path+"/"+k, sub)
			}
		case []any:
			for _, sub := range v {
				walk(path+"/…", sub)
			}
		}
	}
	walk("", format.Schema())
}
