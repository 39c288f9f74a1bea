package advice_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/workflow/advice"
	"github.com/united-workforce/uwf/engine/workflow/source"
	"github.com/united-workforce/uwf/gitcas/node"
)

func TestKey(t *testing.T) {
	edge := []string{"role", "prompt", "location", "condition", "approval"}
	role := []string{"description", "goal", "procedure", "output", "frontmatter", "systemPrompt", "outputSchema", "capabilities"}
	for _, tt := range []struct {
		key   string
		known []string
		want  string
	}{
		{"to", edge, "role"}, {"message", edge, "prompt"}, {"cwd", edge, "location"}, {"when", edge, "condition"}, {"promt", edge, "prompt"}, {"Role", edge, "role"},
		{"approve", edge, "approval"}, {"requires_approval", edge, "approval"}, {"except", []string{"not"}, "not"},
		{"prompt", role, "systemPrompt"}, {"system_prompt", role, "systemPrompt"}, {"schema", role, "frontmatter"}, {"objective", role, "goal"},
		{"model", role, ""}, {"next", role, ""}, {"xyzzy", role, ""}, {"", role, ""}, {strings.Repeat("x", 1000), role, ""},
	} {
		if got := advice.Key(tt.key, tt.known); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.key, got, tt.want)
		}
	}
	if advice.AdviseMisplacedKey("model") == "" || advice.AdviseMisplacedKey("next") == "" || advice.AdviseMisplacedKey("goal") != "" {
		t.Error("what belongs elsewhere")
	}
}

// A mistyped key counts as the one that it means only where that is missing.
func TestAdopt(t *testing.T) {
	v := source.Read(&source.Problems{}, "x", []byte("to: a\nnext: b\nif: c\n"), nil)
	for i := range v.Entries {
		e := &v.Entries[i]
		advice.Adopt(v, e, advice.Key(e.Key, []string{"role", "condition"}))
	}
	var keys []string
	for _, e := range v.Entries {
		keys = append(keys, e.Key)
	}
	if got := strings.Join(keys, " "); got != "role next if" {
		t.Errorf("the keys are %s", got)
	}
}

// Whatever a schema is refused for, there is something to do about it.
func TestSchema(t *testing.T) {
	for _, tt := range []struct {
		schema any
		want   string
	}{
		{map[string]any{"plan": "string"}, "properties: {plan: {type: string}}"},
		{map[string]any{"$status": "done | failed"}, "enum: [done, failed]"},
		{map[string]any{"type": "str"}, "type: string"},
		{map[string]any{"type": "strng"}, "did you mean `string`?"},
		{map[string]any{"type": int64(5)}, "write one of them"},
		{map[string]any{"required": "x"}, "list of field names"},
		{map[string]any{"properties": map[string]any{"a": map[string]any{"required": true}}}, "required: [a]"},
		{map[string]any{"properties": map[string]any{"a": "string"}}, "a: {type: string}"},
		{map[string]any{"properties": map[string]any{"a/b": map[string]any{"enum": "x"}}}, "enum: [x]"},
		{map[string]any{"items": []any{}}, "one schema"},
		{map[string]any{"format": "uri"}, "pattern"},
		{map[string]any{"enum": []any{"a", "a"}}, "remove one of the two"},
		{map[string]any{"$ref": "#/x"}, "!include"},
		{map[string]any{"nullable": true}, "type: [string, null]"},
		{map[string]any{"patern": "x"}, "did you mean `pattern`?"},
		{map[string]any{"zzz": int64(1)}, "remove it"},
		{map[string]any{"pattern": "(?=x)"}, "RE2"},
		{map[string]any{"minLength": int64(-1)}, "json-schema.org"},
	} {
		var bad *node.SchemaError
		if err := node.CheckSchema(tt.schema); !errors.As(err, &bad) {
			t.Errorf("%v is no broken schema: %v", tt.schema, err)
			continue
		}
		for _, p := range bad.Problems {
			if got := advice.Schema(tt.schema, p); !strings.Contains(got, tt.want) {
				t.Errorf("%v: %s: %q, want %q", tt.schema, p, got, tt.want)
			}
		}
	}
}
