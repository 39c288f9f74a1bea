package extract_test

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/extract"
	"github.com/united-workforce/uwf/gitcas/node"
)

const reviewSchema = `{
  "type": "object",
  "properties": {
    "$status": {"enum": ["approved", "rejected", "needs_review"]},
    "summary": {"type": "string"},
    "count": {"type": "integer"},
    "score": {"type": "number"},
    "ok": {"type": "boolean"},
    "files": {"type": "array", "items": {"type": "string"}},
    "pr": {"type": ["integer", "null"]},
    "free": {},
    "either": {"type": ["string", "integer"]},
    "meta": {"type": "object", "properties": {"owner": {"type": "string"}, "id": {"type": "string"}}},
    "labels": {"type": "object", "additionalProperties": {"type": "string"}}
  },
  "required": ["$status"]
}`

const issuesSchema = `{"properties":{"status":{"enum":["ok"]},"issues":{"type":"array","items":{"type":"object","properties":{"file":{"type":"string"},"line":{"type":"integer"},"note":{"type":"string"}}}}},"required":["status"]}`

const variantSchema = `{
  "type": "object",
  "oneOf": [
    {"properties": {"$status": {"const": "done"}, "branch": {"type": "string"}}, "required": ["$status", "branch"], "additionalProperties": false},
    {"properties": {"$status": {"const": "failed"}, "error": {"type": "string"}}, "required": ["$status", "error"], "additionalProperties": false}
  ]
}`

func schemaOf(t testing.TB, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// shape is one way in which a model writes its answer.
type shape struct {
	name   string
	text   string
	schema string         // default: reviewSchema
	want   map[string]any // nil: an error
	body   string
	err    error
	in     string // part of the error's text
}

func out(kv ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i < len(kv); i += 2 {
		m[kv[i].(string)] = kv[i+1]
	}
	return m
}

var approved = out("$status", "approved")

func shapes() []shape {
	return []shape{
		{name: "plain", text: "---\n$status: approved\nsummary: fine\n---\n# Report\n\ntext\n", want: out("$status", "approved", "summary", "fine"), body: "# Report\n\ntext"},
		{name: "list items with backquotes", text: "---\n$status: approved\nfiles:\n- `a.go`: new\n- b.go\n---\n", want: out("$status", "approved", "files", []any{"`a.go`: new", "b.go"})},
		{name: "indented list items with colons", text: "---\n$status: approved\nfiles:\n  - fix: a: b\n  - c\nsummary: x: y\n---\n", want: out("$status", "approved", "files", []any{"fix: a: b", "c"}, "summary", "x: y")},
		{name: "a colon in a nested field", text: "---\n$status: approved\nmeta:\n  owner: use x: y\n  id: 7\n---\n", want: out("$status", "approved", "meta", out("owner", "use x: y", "id", "7"))},
		{name: "a colon in a list of maps", schema: issuesSchema, text: "---\nstatus: ok\nissues:\n- file: a.go\n  line: 12\n  note: use x: y\n- note: \"`b`\"\n---\n",
			want: out("status", "ok", "issues", []any{out("file", "a.go", "line", int64(12), "note", "use x: y"), out("note", "`b`")})},
		{name: "the number of an issue in a list", text: "---\n$status: approved\nfiles:\n- fixes #12\n- b # and more\n---\n", want: out("$status", "approved", "files", []any{"fixes #12", "b"})},
		{name: "words in quotes", text: "---\n$status: approved\nsummary: \"Foo\" is now \"Bar\"\n---\n", want: out("$status", "approved", "summary", `"Foo" is now "Bar"`)},
		{name: "a word in quotes, then text", text: "---\n$status: approved\nsummary: \"Foo\" is now Bar\n---\n", want: out("$status", "approved", "summary", `"Foo" is now Bar`)},
		{name: "an expression in quotes", text: "---\n$status: approved\nsummary: \"Matches \\d+\\.\\w only\"\n---\n", want: out("$status", "approved", "summary", `Matches \d+\.\w only`)},
		{name: "an expression with an escape that YAML knows", text: "---\n$status: approved\nsummary: \"\\bMatches \\d+\"\n---\n", err: extract.ErrSyntax},
		{name: "quotes within quotes", text: "---\n$status: approved\nsummary: \"He said \"hi\" to me\"\n---\n", err: extract.ErrSyntax},
		{name: "text between braces that would be lost", text: "---\n{$status: approved, summary: parses a, b and c}\n---\n", err: extract.ErrSyntax, in: `(line 2): "b and c" belongs to no field`},
		{name: "text between braces in a field", text: "---\n$status: approved\nmeta: {owner: a, b and c}\n---\n", err: extract.ErrSyntax, in: `(line 3): "b and c" belongs to no field`},
		{name: "text between braces below prose", text: "Here it is:\n\n---\n$status: approved\nmeta: {owner: a, b and c}\n---\n", err: extract.ErrSyntax, in: `(line 5): "b and c" belongs to no field`},
		{name: "a block is no map", text: "---\n$status: approved\nsummary: |\n  meta:\n    owner: a: b\n---\n", want: out("$status", "approved", "summary", "meta:\n  owner: a: b")},
		{name: "no body", text: "---\n$status: approved\n---", want: approved},
		{name: "byte order mark", text: "\ufeff---\n$status: approved\n---\nx", want: approved, body: "x"},
		{name: "blank lines first", text: "\n \n\t\n---\n$status: approved\n---\nx", want: approved, body: "x"},
		{name: "prose first", text: "Here is my review:\n\n---\n$status: approved\n---\nx", want: approved, body: "x"},
		{name: "prose first and nothing under it", text: "I looked at it all.\n\n---\n$status: approved\n---\n", want: approved, body: "I looked at it all."},
		{name: "rule in the prose before", text: "Done.\n\n---\n\nNote: all well\n\n---\n$status: approved\n---\nx", want: approved, body: "x"},
		{name: "rules in the body", text: "---\n$status: approved\n---\na\n\n---\n\nb\n---\n$status: rejected\n---\n", want: approved, body: "a\n\n---\n\nb\n---\n$status: rejected\n---"},
		{name: "CRLF", text: "---\r\n$status: approved\r\nsummary: a\r\n---\r\nx\r\ny\r\n", want: out("$status", "approved", "summary", "a"), body: "x\ny"},
		{name: "space behind the fences", text: "---  \n$status: approved\n---\t\nx", want: approved, body: "x"},
		{name: "four dashes are no fence", text: "---\n$status: approved\nsummary: |\n  a\n----\n---\nx", err: extract.ErrSyntax},
		{name: "four dashes open nothing", text: "----\n$status: approved\n----\nx", err: extract.ErrMissing},
		{name: "dashes in a block scalar", text: "---\nsummary: |\n  a\n  ---\n  b\n$status: approved\n---\nx", want: out("$status", "approved", "summary", "a\n---\nb\n"), body: "x"},
		{name: "folded block", text: "---\n$status: approved\nsummary: >-\n  one\n  two\n---\n", want: out("$status", "approved", "summary", "one two")},
		{name: "indented as a whole", text: "  ---\n  $status: approved\n  ---\n  x", want: approved, body: "  x"},
		{name: "blank lines and comments inside", text: "---\n\n# the verdict\n$status: approved # yes\n\n---\nx", want: approved, body: "x"},
		{name: "quoted keys and values", text: "---\n\"$status\": 'approved'\n---\n", want: approved},
		{name: "other fields are dropped", text: "---\n$status: approved\nconfidence: high\nmeta: {owner: a, more: 1}\n---\n", want: out("$status", "approved", "meta", out("owner", "a"))},
		{name: "yes is text", text: "---\n$status: approved\nfree: yes\nsummary: no\n---\n", want: out("$status", "approved", "free", "yes", "summary", "no")},
		{name: "on and off are text", text: "---\n$status: approved\nfree: [on, off, y, n]\n---\n", want: out("$status", "approved", "free", []any{"on", "off", "y", "n"})},
		{name: "yes where only a boolean fits", text: "---\n$status: approved\nok: yes\n---\n", want: out("$status", "approved", "ok", true)},
		{name: "dates are text", text: "---\n$status: approved\nfree: 2026-06-04\nsummary: 2026-06-04T10:00:00Z\n---\n", want: out("$status", "approved", "free", "2026-06-04", "summary", "2026-06-04T10:00:00Z")},
		{name: "no octal", text: "---\n$status: approved\ncount: 0777\nfree: 0o17\nsummary: 0777\n---\n", want: out("$status", "approved", "count", int64(777), "free", int64(15), "summary", "0777")},
		{name: "sexagesimal is text", text: "---\n$status: approved\nfree: 12:30:45\n---\n", want: out("$status", "approved", "free", "12:30:45")},
		{name: "number where text fits", text: "---\n$status: approved\nsummary: 1.10\n---\n", want: out("$status", "approved", "summary", "1.10")},
		{name: "boolean where text fits", text: "---\n$status: approved\nsummary: true\n---\n", want: out("$status", "approved", "summary", "true")},
		{name: "text where a number fits", text: "---\n$status: approved\ncount: \"3\"\nscore: '0.5'\n---\n", want: out("$status", "approved", "count", int64(3), "score", 0.5)},
		{name: "whole float where an integer fits", text: "---\n$status: approved\ncount: 3.0\n---\n", want: out("$status", "approved", "count", int64(3))},
		{name: "words where a number fits", text: "---\n$status: approved\ncount: three\n---\n", err: extract.ErrInvalid, in: "count"},
		{name: "two readings stay as written", text: "---\n$status: approved\neither: 3\n---\n", want: out("$status", "approved", "either", int64(3))},
		{name: "two readings, quoted", text: "---\n$status: approved\neither: \"3\"\n---\n", want: out("$status", "approved", "either", "3")},
		{name: "long id", text: "---\n$status: approved\neither: 12345678901234567890\n---\n", want: out("$status", "approved", "either", "12345678901234567890")},
		{name: "infinity is text", text: "---\n$status: approved\nfree: .inf\n---\n", want: out("$status", "approved", "free", ".inf")},
		{name: "null in a field that may be missing", text: "---\n$status: approved\nsummary: null\nfiles:\ncount: ~\n---\n", want: approved},
		{name: "null where null fits", text: "---\n$status: approved\npr: null\n---\n", want: out("$status", "approved", "pr", nil)},
		{name: "list", text: "---\n$status: approved\nfiles:\n- a.go\n- 7\n---\n", want: out("$status", "approved", "files", []any{"a.go", "7"})},
		{name: "one name for a list", text: "---\n$status: approved\nfiles: a.go\n---\n", want: out("$status", "approved", "files", []any{"a.go"})},
		{name: "several names for a list", text: "---\n$status: approved\nfiles: a.go, b.go\n---\n", err: extract.ErrInvalid, in: "files"},
		{name: "a list in quotes", text: "---\n$status: approved\nfiles: '[\"a\", \"b\"]'\n---\n", want: out("$status", "approved", "files", []any{"a", "b"})},
		{name: "free keys of a typed map", text: "---\n$status: approved\nlabels: {a: 1, b: x}\n---\n", want: out("$status", "approved", "labels", out("a", "1", "b", "x"))},
		{name: "status in another case", text: "---\n$status: Approved\n---\n", want: approved},
		{name: "unknown status", text: "---\n$status: lgtm\n---\n", err: extract.ErrInvalid, in: "approved"},
		{name: "status missing", text: "---\nsummary: fine\n---\n", err: extract.ErrInvalid, in: "$status is missing"},
		{name: "status of two", text: "---\n$status: approved | rejected\n---\n", err: extract.ErrInvalid},
		{name: "duplicate key", text: "---\n$status: approved\n$status: rejected\n---\n", err: extract.ErrSyntax, in: "duplicate key"},
		{name: "duplicate key further in", text: "---\n$status: approved\nmeta:\n  owner: a\n  owner: b\n---\n", err: extract.ErrSyntax, in: "duplicate key"},
		{name: "duplicate key in JSON", text: `{"$status": "approved", "$status": "rejected"}`, err: extract.ErrSyntax, in: "duplicate key"},
		{name: "anchors", text: "---\n$status: approved\nfiles: &a [x]\nfree: *a\n---\n", err: extract.ErrSyntax, in: "the anchor &a is not read here"},
		{name: "merge key", text: "---\n$status: approved\nmeta:\n  <<: {owner: a}\n---\n", err: extract.ErrSyntax},
		{name: "colon in text", text: "---\n$status: approved\nsummary: Fixed: the lock\n---\n", want: out("$status", "approved", "summary", "Fixed: the lock")},
		{name: "Markdown in text", text: "---\n$status: approved\nsummary: **very** slow\n---\n", want: out("$status", "approved", "summary", "**very** slow")},
		{name: "code in text", text: "---\n$status: approved\nsummary: `x` was nil\n---\n", want: out("$status", "approved", "summary", "`x` was nil")},
		{name: "bracket in text", text: "---\n$status: approved\nsummary: [WIP] it's half done\n---\n", want: out("$status", "approved", "summary", "[WIP] it's half done")},
		{name: "tabs", text: "---\n$status: approved\nmeta:\n\towner: a\n---\n", err: extract.ErrSyntax},
		{name: "not closed", text: "---\n$status: approved\nsummary: fine\n\nAnd then", err: extract.ErrUnclosed},
		{name: "not opened", text: "$status: approved\n---\nx", err: extract.ErrMissing},
		{name: "empty", text: "", err: extract.ErrMissing},
		{name: "prose alone", text: "It is all fine, I approve.", err: extract.ErrMissing},
		{name: "empty block", text: "---\n---\nx", err: extract.ErrMissing},
		{name: "list in the block", text: "---\n- approved\n---\nx", err: extract.ErrMissing},
		{name: "JSON inside the fences", text: "---\n{\"$status\": \"approved\", \"count\": 2}\n---\nx", want: out("$status", "approved", "count", int64(2)), body: "x"},
		{name: "JSON with escapes", text: "---\n{\"$status\": \"approved\", \"summary\": \"a\\/b \\ud83d\\ude00\"}\n---\nx", want: out("$status", "approved", "summary", "a/b 😀"), body: "x"},
		{name: "JSON alone", text: "\n{\n  \"$status\": \"approved\",\n\t\"files\": [\"a\"]\n}\n", want: out("$status", "approved", "files", []any{"a"})},
		{name: "JSON and a body", text: "{\"$status\": \"approved\"}\n\n# Report", want: approved, body: "# Report"},
		{name: "JSON cut off", text: "{\"$status\": \"approved\", \"summary\": \"a", err: extract.ErrSyntax, in: "cut off"},
		{name: "JSON with two values", text: "---\n{\"$status\": \"approved\"} {\"$status\": \"rejected\"}\n---\n", err: extract.ErrSyntax},
		{name: "all in a code fence", text: "```markdown\n---\n$status: approved\n---\n# Report\n\n```go\nx\n```\n\nend\n```\n", want: approved, body: "# Report\n\n```go\nx\n```\n\nend"},
		{name: "frontmatter in a code fence", text: "```yaml\n---\n$status: approved\n---\n```\n\nreport", want: approved, body: "report"},
		{name: "code fence for frontmatter", text: "```yaml\n$status: approved\nsummary: a\n```\n\nreport", want: out("$status", "approved", "summary", "a"), body: "report"},
		{name: "JSON code fence", text: "Here:\n\n```json\n{\"$status\": \"approved\"}\n```\n", want: approved, body: "Here:"},
		{name: "code fence inside the fences", text: "---\n```yaml\n$status: approved\n```\n---\nx", want: approved, body: "x"},
		{name: "example before the answer", text: "I write:\n```yaml\n---\n$status: approved\n---\n```\nSo:\n\n---\n$status: rejected\n---\nx", want: out("$status", "rejected"), body: "x"},
		{name: "two code fences that differ", text: "a\n```yaml\n$status: approved\n```\nb\n```yaml\n$status: rejected\n```\n", err: extract.ErrSyntax, in: "differ"},
		{name: "broken block, valid one later", text: "---\n$status: [rejected\n---\n\n---\n$status: approved\n---\n", err: extract.ErrInvalid},
		{name: "thinking aloud", text: "<think>\n---\n$status: rejected\n---\n</think>\n---\n$status: approved\n---\nx", want: approved, body: "x"},
		{name: "invalid UTF-8", text: "---\n$status: approved\nsummary: a\xffb\n---\n", want: out("$status", "approved", "summary", "a\ufffdb")},
		{name: "variant", schema: variantSchema, text: "---\n$status: done\nbranch: fix/1\nerror: none\n---\n", want: out("$status", "done", "branch", "fix/1")},
		{name: "field of the variant missing", schema: variantSchema, text: "---\n$status: failed\nbranch: fix/1\n---\n", err: extract.ErrInvalid, in: "error"},
		{name: "empty text that must be there", schema: variantSchema, text: "---\n$status: failed\nerror:\n---\n", want: out("$status", "failed", "error", "")},
		{name: "null text that must be there", schema: variantSchema, text: "---\n$status: failed\nerror: null\n---\n", err: extract.ErrInvalid},
		{name: "schema without properties", schema: `{"type":"object"}`, text: "---\na: 1\nb: [x]\n---\n", want: out("a", int64(1), "b", []any{"x"})},
		{name: "status without a dollar", schema: `{"properties":{"status":{"type":"string"}}}`, text: "---\nstatus: 1\n---\n", want: out("status", "1")},
		{name: "code fence with a key twice", text: "a\n```yaml\n$status: approved\n$status: rejected\n```\n", err: extract.ErrSyntax, in: "duplicate key"},
		{name: "broken block, an indented one before", text: "        ---\n        $Status: approved\n        ---\n---\n$status: approved\n$status: rejected\n---\nx", err: extract.ErrSyntax, in: "duplicate key"},
		{name: "name in another case twice", text: "---\n$Status: a\n$Status: b\n---\nx", err: extract.ErrSyntax, in: "duplicate key"},
		{name: "duplicate key in a field for text", text: "---\n$status: approved\nsummary: {a: 1, a: 2}\n---\nx", err: extract.ErrSyntax, in: "duplicate key"},
		{name: "JSON without a comma", text: "{\"$status\": \"approved\" \"summary\": \"x\"}\nx", err: extract.ErrSyntax, in: "invalid character"},
		{name: "two lines of JSON that differ", text: "a\n{\"$status\": \"approved\"}\nb\n{\"$status\": \"rejected\"}\n", err: extract.ErrSyntax, in: "two JSON objects hold fields, and they differ"},
		{name: "too large a JSON object", text: "{\"$status\": \"approved\", \"summary\": \"" + strings.Repeat("a", extract.MaxBlock) + "\"}", err: extract.ErrTooLarge, in: "the JSON object has"},
		{name: "too large a JSON object with a comma too many", text: "{\"$status\": \"approved\", \"summary\": \"" + strings.Repeat("a", extract.MaxBlock) + "\",}", err: extract.ErrSyntax, in: "invalid character '}'"},
		{name: "too large a block", text: "---\n$status: approved\nsummary: " + strings.Repeat("a", extract.MaxBlock) + "\n---\n", err: extract.ErrTooLarge},
		{name: "too large a text", text: strings.Repeat("a", extract.MaxText+1), err: extract.ErrTooLarge},
		{name: "deep nesting", text: "---\n$status: approved\nfree: " + strings.Repeat("[", 200) + strings.Repeat("]", 200) + "\n---\n", err: extract.ErrSyntax, in: "deep"},
	}
}

func TestShapes(t *testing.T) {
	for _, c := range append(shapes(), modelShapes()...) {
		t.Run(c.name, func(t *testing.T) {
			schema := c.schema
			if schema == "" {
				schema = reviewSchema
			}
			got, err := extract.Frontmatter(c.text, schemaOf(t, schema))
			if c.want == nil {
				if !errors.Is(err, c.err) {
					t.Fatalf("error is %v, want %v; output %v", err, c.err, got.Output)
				}
				if !strings.Contains(err.Error(), c.in) {
					t.Fatalf("error %q doesn't name %q", err, c.in)
				}
				if typ := reflect.TypeOf(err); typ != reflect.TypeFor[*extract.OutputError]() {
					t.Fatalf("the error is a %v", typ)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !equal(t, got.Output, c.want) {
				t.Errorf("output\n%#v\nwant\n%#v", got.Output, c.want)
			}
			if got.Body != c.body {
				t.Errorf("body %q, want %q", got.Body, c.body)
			}
		})
	}
}

func equal(t *testing.T, got, want map[string]any) bool {
	t.Helper()
	normal, err := node.Normalize(got)
	return err == nil && reflect.DeepEqual(normal, any(want))
}

func TestStatus(t *testing.T) {
	cases := []struct{ schema, text, want string }{
		{reviewSchema, "---\n$status: rejected\n---\n", "rejected"},
		{`{"properties":{"status":{"type":"string"}}}`, "---\nstatus: 1\n---\n", "1"},
		{`{"properties":{"done":{"type":"boolean"}}}`, "---\ndone: true\n---\n", ""},
		{`{"type":"object"}`, "---\nstatus: a\n---\n", "a"},
		{`{"properties":{"$status":{"enum":["_","done"]}}}`, "---\n$status: _\n---\n", ""},
	}
	for _, c := range cases {
		got, err := extract.Frontmatter(c.text, schemaOf(t, c.schema))
		if err != nil || got.Status != c.want {
			t.Errorf("%s: status %q, %v; want %q", c.text, got.Status, err, c.want)
		}
	}
	if err := extract.CheckStatus("lgtm", []string{"approved"}); !errors.Is(err, extract.ErrStatus) {
		t.Errorf("a status without an edge: %v", err)
	}
	if err := extract.CheckStatus("approved", []string{"approved"}); err != nil {
		t.Errorf("a status with an edge: %v", err)
	}
}

func TestUnusableSchema(t *testing.T) {
	for _, tt := range []struct {
		schema any
		says   string
	}{
		{"text", "must be an object"}, {map[string]any{"type": "string"}, "must be an object"}, {nil, "must be an object"},
		{map[string]any{"$ref": "#"}, "not an allowed schema"}, {map[string]any{"const": math.NaN()}, "not a JSON value"},
	} {
		if _, err := extract.Frontmatter("---\na: 1\n---\n", tt.schema); !errors.Is(err, extract.ErrSchema) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("schema %v: %v, want %s", tt.schema, err, tt.says)
		}
	}
}

func TestLineOfError(t *testing.T) {
	_, err := extract.Frontmatter("\n\nprose\n---\n$status: approved\ncount: [1\n---\n", schemaOf(t, reviewSchema))
	var e *extract.OutputError
	if !errors.As(err, &e) || e.Line < 5 || e.Line > 7 {
		t.Fatalf("line of %v", err)
	}
}

// The example of a complaint must itself be an answer that is accepted.
func TestComplaint(t *testing.T) {
	schemas := map[string][]string{
		reviewSchema:  {"approved", "rejected"},
		variantSchema: {"failed", "done"},
		`{"properties":{"status":{"type":"string"},"n":{"type":"integer","minimum":1},"on":{"type":"boolean"},"l":{"type":"array","items":{"type":"object","properties":{"a":{"type":"number"}},"required":["a"]}}},"required":["status","n","on","l"]}`: {"yes"},
	}
	for schema, allowed := range schemas {
		s := schemaOf(t, schema)
		_, err := extract.Frontmatter("---\n$status: lgtm\nstatus: [x]\n---\n", s)
		text := extract.Complaint(err, s, allowed)
		for _, want := range append(allowed, "could not be used") {
			if !strings.Contains(text, want) {
				t.Errorf("complaint doesn't name %q:\n%s", want, text)
			}
		}
		_, example, _ := strings.Cut(text, "Example (put your own values):")
		got, err := extract.Frontmatter(example, s)
		if err != nil || got.Status != allowed[0] {
			t.Errorf("the example isn't accepted: %v, status %q\n%s", err, got.Status, example)
		}
	}
	for _, err := range []error{nil, errors.New("the tool said no"), extract.CheckStatus("x", nil)} {
		if text := extract.Complaint(err, nil, nil); !strings.Contains(text, "---") {
			t.Errorf("complaint about %v:\n%s", err, text)
		}
	}
}

func FuzzFrontmatter(f *testing.F) {
	for _, c := range append(shapes(), modelShapes()...) {
		if len(c.text) < 10_000 {
			f.Add(c.text, c.schema == variantSchema)
		}
	}
	plain, variants := schemaOf(f, reviewSchema), schemaOf(f, variantSchema)
	f.Fuzz(func(t *testing.T, text string, second bool) {
		schema := plain
		if second {
			schema = variants
		}
		got, err := extract.Frontmatter(text, schema)
		if err != nil {
			var e *extract.OutputError
			if !errors.As(err, &e) || errors.Is(err, extract.ErrSchema) {
				t.Fatalf("error of another kind: %v", err)
			}
			if extract.Complaint(err, schema, []string{"done"}) == "" {
				t.Fatal("no complaint")
			}
			return
		}
		compiled, err := node.Compile(schema)
		if err != nil {
			t.Fatal(err)
		}
		if err := compiled.Validate(got.Output); err != nil {
			t.Fatalf("accepted, but %v", err)
		}
		if got.Status == "" {
			t.Fatalf("no status in %v", got.Output)
		}
	})
}
