package commands

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xeipuuv/gojsonschema"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/cli"
	"github.com/united-workforce/uwf/cmd/uwf/internal/schema"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
)

var updateSchemas = flag.Bool("update-schemas", false, "write the JSON Schemas of the commands, the list of commands and flags, and docs/packages.md anew; what schemas say in words is kept")

const schemaFolder = "../../internal/schema/files"

// textOnly are the commands that print no JSON, and what they print instead.
var textOnly = map[string]string{
	"uwf import":             "how to get uwf-import",
	"uwf agent acp":          "the handle that the step protocol asks for",
	"uwf agent claude-code":  "the handle that the step protocol asks for",
	"uwf agent codex":        "the handle that the step protocol asks for",
	"uwf agent copilot":      "the handle that the step protocol asks for",
	"uwf agent cursor":       "the handle that the step protocol asks for",
	"uwf agent gemini-acp":   "the handle that the step protocol asks for",
	"uwf agent gemini-cli":   "the handle that the step protocol asks for",
	"uwf agent goose":        "the handle that the step protocol asks for",
	"uwf agent hermes":       "the handle that the step protocol asks for",
	"uwf agent opencode":     "the handle that the step protocol asks for",
	"uwf agent opencode-acp": "the handle that the step protocol asks for",
	"uwf agent qwen-code":    "the handle that the step protocol asks for",
	"uwf demo":               "a story",
	"uwf action":             "a job's log; results are the job's outputs",
	"uwf config schema":      "a JSON Schema, as it is",
	"uwf workflow schema":    "a JSON Schema, as it is",
	"uwf agent mock":         "the handle that the step protocol asks for",
	"uwf agent builtin":      "the handle that the step protocol asks for",
	"uwf agent commit":       "the handle that the step protocol asks for",
	"uwf agent stage":        "a hash, for scripts",
	"uwf agent jq":           "what its expression gives",
	"uwf agent context":      "the context, which package thread describes",
}

// results are the types of the values that commands printed.
type results struct {
	agents sync.Mutex // held by who runs an agent in this process

	mu    sync.Mutex
	types map[string][]reflect.Type // by the file of their schema
}

// add takes what one command printed, and checks it against its schema.
func (r *results) add(t *testing.T, args []string, values []any, stdout string) {
	t.Helper()
	cmd, _, err := cli.NewRoot(app.NewAt(".", nil, app.IO{})).Find(args)
	if err != nil {
		return // the exit code tells of it
	}
	path := cmd.CommandPath()
	file := schema.File(path)
	r.mu.Lock()
	for _, v := range values {
		typ := reflect.TypeOf(v)
		if typ == nil {
			typ = reflect.TypeFor[any]()
		}
		if !slices.Contains(r.types[file], typ) {
			if r.types == nil {
				r.types = map[string][]reflect.Type{}
			}
			r.types[file] = append(r.types[file], typ)
		}
	}
	r.mu.Unlock()
	if len(values) == 0 || *updateSchemas {
		return
	}
	for _, v := range values {
		b, err := json.Marshal(v)
		if err != nil {
			t.Errorf("%s: %v", strings.Join(args, " "), err)
			return
		}
		checkSchema(t, path, strings.Join(args, " "), b)
	}
	if json.Valid([]byte(stdout)) && !slices.Contains(args, "--jq") {
		checkSchema(t, path, strings.Join(args, " "), []byte(stdout))
	}
}

// checkSchema checks what a command printed.
func checkSchema(t *testing.T, path, what string, doc []byte) {
	t.Helper()
	text, ok := schema.Of(path)
	if !ok {
		return // checkSchemas tells of it
	}
	res, err := gojsonschema.Validate(gojsonschema.NewBytesLoader(text), gojsonschema.NewBytesLoader(doc))
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	for _, e := range res.Errors() {
		t.Errorf("%s: what it prints does not fit %s: %s", what, schema.File(path), e)
	}
}

// checkSchemas compares the schemas with the Go types: no command without one, none
// without a command, no field that only one of the two knows, and words to each.
func (r *results) checkSchemas(t *testing.T) {
	t.Helper()
	used := map[string]bool{}
	for _, cmd := range allCommands(cli.NewRoot(app.NewAt(".", nil, app.IO{}))) {
		path := cmd.CommandPath()
		_, has := schema.Of(path)
		types := r.types[schema.File(path)]
		switch _, text := textOnly[path]; {
		case cmd.HasSubCommands():
			continue
		case text && (has || len(types) > 0):
			t.Errorf("%s is said to print text only, but has a schema or printed a result", path)
			continue
		case text:
			continue
		case len(types) == 0:
			t.Errorf("%s: no example of it printed a result: add one, or name it in textOnly", path)
			continue
		}
		used[schema.File(path)] = true
		if own := strings.ReplaceAll(strings.TrimPrefix(path, "uwf "), " ", ".") + ".json"; own == schema.File(path) {
			compareSchema(t, path, cmd.Short, types)
		}
	}
	entries, err := fs.ReadDir(os.DirFS(schemaFolder), ".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !used[e.Name()] {
			t.Errorf("%s/%s belongs to no command", schemaFolder, e.Name())
		}
	}
}

const updateHow = "write it anew with: go test ./cmd/uwf -run 'TestExamples$' -update-schemas"

func compareSchema(t *testing.T, path, short string, types []reflect.Type) {
	t.Helper()
	file := filepath.Join(schemaFolder, schema.File(path))
	b, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	have := object{}
	if err == nil {
		if have, err = parseObject(b); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	want := describe(types)
	want.annotate(have)
	want.set("title", path)
	if want.get("description") == nil {
		want.set("description", short+".")
	}
	want.set("$schema", "http://json-schema.org/draft-07/schema#")
	want.sort()
	for _, at := range want.undescribed("") {
		t.Errorf("%s: say in a description what %s is", file, at)
	}
	text := want.indented(t)
	if *updateSchemas {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(text, b) {
		t.Errorf("%s is not what %s prints; %s", file, path, updateHow)
	}
}

// object is a JSON object that keeps its order.
type object []member

type member struct {
	key   string
	value any // object, []any or a scalar
}

func (o object) get(key string) any {
	for _, m := range o {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

func (o *object) set(key string, value any) {
	for i, m := range *o {
		if m.key == key {
			(*o)[i].value = value
			return
		}
	}
	*o = append(*o, member{key, value})
}

// sort brings the words to the front.
func (o object) sort() {
	rank := func(key string) int {
		return slices.Index([]string{"$schema", "title", "description", "type", "format", "pattern", "enum"}, key)
	}
	slices.SortStableFunc(o, func(a, b member) int {
		x, y := rank(a.key), rank(b.key)
		if x < 0 {
			x = 100
		}
		if y < 0 {
			y = 100
		}
		return x - y
	})
}

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		k, err := json.Marshal(m.key)
		if err != nil {
			return nil, err
		}
		b.Write(k)
		b.WriteByte(':')
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(m.value); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func (o object) indented(t *testing.T) []byte {
	t.Helper()
	raw, err := o.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		t.Fatal(err)
	}
	b.WriteByte('\n')
	return b.Bytes()
}

func parseObject(b []byte) (object, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	v, err := parseValue(d)
	o, ok := v.(object)
	if err == nil && !ok {
		err = errors.New("no object")
	}
	return o, err
}

func parseValue(d *json.Decoder) (any, error) {
	tok, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch tok {
	case json.Delim('{'):
		out := object{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := parseValue(d)
			if err != nil {
				return nil, err
			}
			out = append(out, member{fmt.Sprint(key), v})
		}
		_, err = d.Token()
		return out, err
	case json.Delim('['):
		out := []any{}
		for d.More() {
			v, err := parseValue(d)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		_, err = d.Token()
		return out, err
	}
	return tok, nil
}

// structural are the keywords that the Go types give; all else is kept as people
// wrote it.
var structural = []string{"type", "properties", "required", "additionalProperties", "items", "anyOf"}

// annotate takes over what people wrote in a schema: words, patterns, enums; and
// all of it where the type says nothing.
func (o *object) annotate(have object) {
	anything := len(*o) == 0
	for _, m := range have {
		if anything || !slices.Contains(structural, m.key) {
			o.set(m.key, m.value)
		}
	}
	if anything {
		return
	}
	for i, m := range *o {
		switch mine := m.value.(type) {
		case object:
			theirs, _ := have.get(m.key).(object)
			if m.key == "properties" {
				for j, p := range mine {
					sub, _ := p.value.(object)
					other, _ := theirs.get(p.key).(object)
					sub.annotate(other)
					if sub.get("description") == nil && glossary[p.key] != "" {
						sub.set("description", glossary[p.key])
					}
					sub.sort()
					mine[j].value = sub
				}
				continue
			}
			mine.annotate(theirs)
			mine.sort()
			(*o)[i].value = mine
		case []any: // anyOf
			theirs, _ := have.get(m.key).([]any)
			for j := range mine {
				sub, ok := mine[j].(object)
				if !ok {
					continue
				}
				if j < len(theirs) {
					other, _ := theirs[j].(object)
					sub.annotate(other)
				} else {
					sub.annotate(object{})
				}
				sub.sort()
				mine[j] = sub
			}
		}
	}
}

// undescribed are the fields that no words are said of.
func (o object) undescribed(at string) []string {
	var out []string
	for _, m := range o {
		switch v := m.value.(type) {
		case object:
			if m.key != "properties" {
				out = append(out, v.undescribed(at)...)
				continue
			}
			for _, p := range v {
				sub, _ := p.value.(object)
				if s, _ := sub.get("description").(string); s == "" {
					out = append(out, at+"."+p.key)
				}
				out = append(out, sub.undescribed(at+"."+p.key)...)
			}
		case []any:
			for _, one := range v {
				if sub, ok := one.(object); ok {
					out = append(out, sub.undescribed(at)...)
				}
			}
		}
	}
	return out
}

// describe is the schema of a command's results, as their Go types say it.
func describe(types []reflect.Type) object {
	if slices.Contains(types, reflect.TypeFor[any]()) {
		return object{} // whatever there is
	}
	types = slices.Clone(types)
	slices.SortFunc(types, func(a, b reflect.Type) int { return strings.Compare(a.String(), b.String()) })
	if len(types) == 1 {
		return describeType(types[0])
	}
	var all []any
	for _, t := range types {
		all = append(all, describeType(t))
	}
	return object{{"anyOf", all}}
}

func describeType(t reflect.Type) object {
	if t.Kind() == reflect.Pointer {
		return describeType(t.Elem())
	}
	switch t {
	case reflect.TypeFor[time.Time]():
		return object{{"type", "string"}, {"format", "date-time"}}
	case reflect.TypeFor[node.Hash]():
		return object{{"type", "string"}, {"pattern", "^([0-9A-HJKMNP-TV-Z]{13})?$"}}
	case reflect.TypeFor[gitcas.ThreadID]():
		return object{{"type", "string"}, {"pattern", "^[0-7][0-9A-HJKMNP-TV-Z]{25}$"}}
	case reflect.TypeFor[json.RawMessage]():
		return object{}
	}
	if t.Implements(reflect.TypeFor[json.Marshaler]()) {
		if t.Kind() == reflect.Struct && slices.ContainsFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool { return f.Tag.Get("json") != "" }) {
			o := describeStruct(t) // and fields that others chose
			o.set("additionalProperties", true)
			return o
		}
		return object{}
	}
	if t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return object{{"type", "string"}}
	}
	switch t.Kind() {
	case reflect.Bool:
		return object{{"type", "boolean"}}
	case reflect.Float32, reflect.Float64:
		return object{{"type", "number"}}
	case reflect.String:
		return object{{"type", "string"}}
	case reflect.Slice, reflect.Array:
		return object{{"type", "array"}, {"items", describeType(t.Elem())}}
	case reflect.Map:
		return object{{"type", "object"}, {"additionalProperties", describeType(t.Elem())}}
	case reflect.Struct:
		return describeStruct(t)
	case reflect.Interface:
		return object{}
	}
	if t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64 {
		return object{{"type", "integer"}}
	}
	panic("what a command prints holds a " + t.String())
}

func describeStruct(t reflect.Type) object {
	var properties object
	required := []any{}
	var add func(reflect.Type, bool)
	add = func(t reflect.Type, there bool) {
		for i := range t.NumField() {
			f := t.Field(i)
			tag := f.Tag.Get("json")
			name, options, _ := strings.Cut(tag, ",")
			if f.Anonymous && name == "" {
				if f.Type.Kind() == reflect.Pointer {
					add(f.Type.Elem(), false)
				} else {
					add(f.Type, there)
				}
				continue
			}
			if !f.IsExported() || tag == "-" {
				continue
			}
			if name == "" {
				name = f.Name
			}
			left := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
			about := describeType(f.Type)
			if kind := about.get("type"); f.Type.Kind() == reflect.Pointer && !left && kind != nil {
				about.set("type", []any{kind, "null"})
			}
			properties.set(name, about)
			if there && !left && !slices.Contains(required, any(name)) {
				required = append(required, name)
			}
		}
	}
	add(t, true)
	out := object{{"type", "object"}, {"properties", properties}}
	if len(required) > 0 {
		out = append(out, member{"required", required})
	}
	return append(out, member{"additionalProperties", false})
}
