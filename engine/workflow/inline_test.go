package workflow_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/workflow"
)

// parseIncluded parses smallDefinition with the schema in a file of its own, and returns the
// role's schema as JSON, the warnings and the error.
func parseIncluded(schema string) (stored, warned string, err error) {
	text := strings.Replace(smallDefinition, "{type: object}", "!include s.json", 1)
	var warnings []string
	d, err := workflow.Parse("x.yaml", []byte(strings.Replace(text, "_: {role: $END}", "done: {role: $END}", 1)), workflow.Options{
		Include: func(name string) ([]byte, error) {
			if name != "s.json" {
				return nil, fs.ErrNotExist
			}
			return []byte(schema), nil
		},
		Warn: func(p workflow.Problem) { warnings = append(warnings, p.String()) },
	})
	if err != nil {
		return "", "", err
	}
	plain, err := json.Marshal(d.Roles["a"].Schema)
	return string(plain), strings.Join(warnings, "; "), err
}

// TestIncludedSchemas: a schema as other tools write it is stored without references and
// notes, and one warning lists what was left out.
func TestIncludedSchemas(t *testing.T) {
	const status = `"$status":{"const":"done"}`
	for name, tt := range map[string]struct{ schema, want, warning string }{
		"references": {
			`{"type":"object","properties":{` + status + `,"f":{"items":{"$ref":"#/$defs/F"},"type":"array"}},"$defs":{"F":{"type":"object","properties":{"s":{"$ref":"#/$defs/S"}}},"S":{"enum":["low","high"]}}}`,
			`{"properties":{` + status + `,"f":{"items":{"properties":{"s":{"enum":["low","high"]}},"type":"object"},"type":"array"}},"type":"object"}`, "",
		},
		"a reference at the top, with a note beside another": {
			`{"$ref":"#/definitions/R","definitions":{"R":{"type":"object","properties":{` + status + `,"x":{"$ref":"#/definitions/X","description":"here"}}},"X":{"type":"string","description":"there"}}}`,
			`{"properties":{` + status + `,"x":{"description":"here","type":"string"}},"type":"object"}`, "",
		},
		"more than notes beside a reference": {
			`{"type":"object","properties":{` + status + `,"x":{"$ref":"#/$defs/X","minLength":2}},"$defs":{"X":{"type":"string"}}}`,
			`{"properties":{` + status + `,"x":{"allOf":[{"type":"string"}],"minLength":2}},"type":"object"}`, "",
		},
		"names that look like keywords": {
			`{"type":"object","properties":{` + status + `,"$ref":{"type":"string"},"format":{"const":{"$ref":"#/x"}},"id":{"type":"string"}}}`,
			`{"properties":{"$ref":{"type":"string"},` + status + `,"format":{"const":{"$ref":"#/x"}},"id":{"type":"string"}},"type":"object"}`, "",
		},
		"notes": {
			`{"$schema":"http://json-schema.org/draft-07/schema#","$id":"x","type":"object","properties":{` + status + `,"u":{"type":"string","format":"uri"},"h":{"type":"string","format":"ocas_ref"},"v":{"type":"string","format":"date"}}}`,
			`{"properties":{` + status + `,"h":{"format":"ocas_ref","type":"string"},"u":{"type":"string"},"v":{"type":"string"}},"type":"object"}`,
			"x.yaml:4:40: the schema of role \"a\" is stored without $id, $schema, format (2 times); no format is checked: use `pattern` where one must hold (remove them from s.json)",
		},
		"nullable": {
			`{"type":"object","properties":{` + status + `,"x":{"type":"string","nullable":true},"y":{"type":"string","nullable":false}}}`,
			`{"properties":{` + status + `,"x":{"type":["string","null"]},"y":{"type":"string"}},"type":"object"}`, "",
		},
		"a wrapper": {
			`{"name":"review","strict":true,"schema":{"type":"object","properties":{` + status + `,"x":{"$ref":"#/$defs/X"}},"$defs":{"X":{"type":"string"}}}}`,
			`{"properties":{` + status + `,"x":{"type":"string"}},"type":"object"}`, "",
		},
		"a discriminator": {
			`{"oneOf":[{"properties":{` + status + `}}],"discriminator":{"propertyName":"$status"}}`,
			`{"oneOf":[{"properties":{` + status + `}}]}`, `x.yaml:4:40: the schema of role "a" is stored without discriminator (remove them from s.json)`,
		},
	} {
		got, warned, err := parseIncluded(tt.schema)
		if err != nil || got != tt.want || warned != tt.warning {
			t.Errorf("%s: %v\ngot  %s\nwant %s\nwarned %s\nwant   %s", name, err, got, tt.want, warned, tt.warning)
		}
	}
}

// TestIncludedSchemasRefused: what can't be stored is named with its place and a fix that
// helps.
func TestIncludedSchemasRefused(t *testing.T) {
	const head = `{"type":"object","properties":{"$status":{"const":"done"},"x":`
	var bomb strings.Builder
	for i := range 40 {
		fmt.Fprintf(&bomb, `"D%d":{"anyOf":[{"$ref":"#/$defs/D%d"},{"$ref":"#/$defs/D%d"}]},`, i, i+1, i+1)
	}
	for schema, want := range map[string]string{
		head + `{"$ref":"#/$defs/A"}},"$defs":{"A":{"items":{"$ref":"#/$defs/B"}},"B":{"not":{"$ref":"#/$defs/A"}}}}`: "a schema has no end: #/$defs/A → #/$defs/B → #/$defs/A",
		head + `{"$ref":"#"}}}`:                                                  "a schema has no end: #",
		head + `{"$ref":"#/properties/x"}}}`:                                     "a schema has no end: #/properties/x → #/properties/x",
		head + `{"$ref":"#/$defs/Y"}}}`:                                          `s.json:1:71: "#/$defs/Y" names nothing in the file`,
		head + `{"$ref":"other.json#/a"}}}`:                                      `"other.json#/a" refers to another file`,
		head + `{"$ref":"#/$defs/D0"}},"$defs":{` + bomb.String() + `"D40":{}}}`: "the references make more than 20000 schemas of it",
		head + `{"type":"string","pattern":"^(?!main$)"}}}`:                      "RE2 has no look-around",
		head + `{"type":"string","pattern":"^.{1,2000}$"}}}`:                     "write the length as minLength and maxLength",
		head + `{}},"dependentRequired":{"a":["b"]}}`:                            "write it as if: {required: [a]}, then: {required: [b]}",
		head + `{}},"unevaluatedProperties":false}`:                              "write `additionalProperties: false` in each object",
	} {
		if _, _, err := parseIncluded(schema); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.200s: %v, want %s", schema, err, want)
		}
	}
	// Inside of the workflow's own file the fix names the way that works.
	for schema, want := range map[string]string{
		"{name: n, strict: true, schema: {type: object}}": "take what is under `schema`",
		"{oneOf: [{}], discriminator: {propertyName: x}}": "remove it: the constants in the alternatives tell them apart",
		"{properties: {x: {$ref: '#/$defs/X'}}}":          "put it into a JSON file and !include that",
	} {
		_, err := workflow.Parse("x.yaml", []byte(strings.Replace(smallDefinition, "{type: object}", schema, 1)), workflow.Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", schema, err, want)
		}
	}
}
