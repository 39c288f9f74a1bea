package shape_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/workflow/shape"
	"github.com/united-workforce/uwf/gitcas/node"
)

func schemaOf(t *testing.T, text string) any {
	t.Helper()
	v, err := node.ParseJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestStatusesOf(t *testing.T) {
	for _, tt := range []struct{ schema, want string }{
		{`{}`, "undeclared"},
		{`{"properties":{"x":{}}}`, "undeclared"},
		{`{"properties":{"$status":{"const":"a"}}}`, "a /properties/$status/const"},
		{`{"properties":{"$status":{"type":"string"}},"required":["$status"]}`, "required open"},
		{`{"properties":{"$status":{"enum":["b","a",1]}},"required":["$status"]}`, "required b /properties/$status/enum/0 a /properties/$status/enum/1"},
		{`{"properties":{"$status":{"anyOf":[{"const":"a"},{"enum":["b"]}]}}}`, "a /properties/$status/anyOf/0/const b /properties/$status/anyOf/1/enum/0"},
		{`{"oneOf":[{"properties":{"$status":{"const":"a"}},"required":["$status"]},{"properties":{"$status":{"const":"b"}},"required":["$status"]}]}`,
			"required a /oneOf/0/properties/$status/const b /oneOf/1/properties/$status/const"},
		{`{"oneOf":[{"properties":{"$status":{"const":"a"}},"required":["$status"]},{"properties":{"$status":{"const":"b"}}}]}`,
			"a /oneOf/0/properties/$status/const b /oneOf/1/properties/$status/const"},
		{`{"properties":{"$status":{"enum":["a","b"]}},"required":["$status"],"oneOf":[{"properties":{"$status":{"const":"a"}}},{"properties":{"$status":{"const":"c"}}}]}`,
			"required a /oneOf/0/properties/$status/const"},
		{`{"properties":{"$status":{"type":"string"}},"allOf":[{"properties":{"$status":{"enum":["a","b"]}}},{"properties":{"$status":{"enum":["b","c"]}}},{"required":["$status"]}]}`,
			"required b /allOf/1/properties/$status/enum/0"},
		{`{"if":{},"then":{"properties":{"$status":{"const":"a"}}},"else":{"properties":{"$status":{"const":"b"}}}}`,
			"a /then/properties/$status/const b /else/properties/$status/const"},
	} {
		s := shape.StatusesOf(schemaOf(t, tt.schema), "$status")
		var got []string
		if !s.Declared {
			got = append(got, "undeclared")
		}
		if s.Required {
			got = append(got, "required")
		}
		if s.Open {
			got = append(got, "open")
		}
		for _, v := range s.Values {
			got = append(got, v.Name, v.Path)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.schema, strings.Join(got, " "), tt.want)
		}
	}
}

func TestVariants(t *testing.T) {
	for _, tt := range []struct{ schema, want string }{
		{`{}`, "()"},
		{`{"properties":{"b":{},"a":{},"$status":{"enum":["x","y"]}},"required":["$status","b"]}`, "x($status! b! a) y($status! b! a)"},
		{`{"properties":{"b":{}},"required":["b"],"oneOf":[{"properties":{"$status":{"const":"x"},"c":{}},"required":["$status","c"]},{"properties":{"$status":{"const":"y"}},"required":["$status"]}]}`,
			"x($status! b! c!) y($status! b!)"},
		{`{"anyOf":[{"properties":{"a":{}},"required":["a"]},{"properties":{"b":{}}}]}`, "(a!) (b)"},
		{`{"oneOf":[{"properties":{"$status":{"const":"x"},"a":{}},"required":["a"]},{"properties":{"$status":{"const":"x"},"b":{}}}]}`, "x($status a b)"},
	} {
		var got []string
		for _, v := range shape.Variants(schemaOf(t, tt.schema), "$status") {
			var fields []string
			for _, f := range v.Fields {
				name := f.Name
				if f.Required {
					name += "!"
				}
				fields = append(fields, name)
			}
			got = append(got, fmt.Sprintf("%s(%s)", v.Status, strings.Join(fields, " ")))
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.schema, strings.Join(got, " "), tt.want)
		}
	}
}

func TestUnlistedOf(t *testing.T) {
	const status = `"$status":{"const":"a"}`
	for _, tt := range []struct{ schema, want string }{
		{`{}`, ""},
		{`{"properties":{"x":{}},"required":["x"]}`, ""},
		{`{"required":["x"]}`, "x /required/0"},
		{`{"properties":{"x":{}},"required":["x","y"]}`, "y /required/1"},
		{`{"type":["object","null"],"required":["y"]}`, "y /required/0"},
		{`{"type":"string","required":["y"]}`, ""},
		{`{"type":["null","array"],"required":["y"]}`, ""},
		// What says of any name what its field is lists it; what lets it in does not.
		{`{"additionalProperties":{"type":"string"},"required":["y"]}`, ""},
		{`{"patternProperties":{"^y":{}},"required":["y"]}`, ""},
		{`{"additionalProperties":true,"required":["y"]}`, "y /required/0"},
		{`{"properties":{"x":{}},"additionalProperties":false,"required":["x","y"]}`, "y! /required/1"},
		{`{"patternProperties":{"^y":{}},"additionalProperties":false,"required":["y"]}`, ""},
		// Branches and what is around them describe one object.
		{`{"properties":{` + status + `},"oneOf":[{"properties":{"x":{}},"required":["$status","x"]},{"required":["y"]}]}`, "y /oneOf/1/required/0"},
		{`{"required":["$status"],"oneOf":[{"properties":{` + status + `}},{"properties":{` + status + `}}]}`, ""},
		{`{"required":["x"],"oneOf":[{"properties":{"x":{}}},{"type":"null"}]}`, ""},
		{`{"required":["x"],"oneOf":[{"properties":{"x":{}}},{}]}`, "x? /required/0"},
		{`{"required":["x"],"oneOf":[{"properties":{"x":{}}},true]}`, ""},
		{`{"required":["x"],"anyOf":[{"properties":{"x":{}}},{}]}`, ""},
		{`{"required":["x"],"anyOf":[{},{}]}`, "x /required/0"},
		{`{"required":["x"],"allOf":[{},{"allOf":[{"properties":{"x":{}}}]}]}`, ""},
		{`{"allOf":[{"required":["x"]},{"properties":{"x":{}}}]}`, ""},
		{`{"oneOf":[{"properties":{"x":{}}},{"required":["x"]}]}`, "x? /oneOf/1/required/0"},
		{`{"properties":{"x":{}},"if":{"required":["z"]},"then":{"required":["x","y"]},"else":{"required":["y"]}}`, "y /then/required/1 y /else/required/0"},
		{`{"if":{"properties":{"x":{}}},"then":{"required":["x"]}}`, ""},
		{`{"required":["x"],"then":{"properties":{"x":{}}}}`, ""},
		{`{"not":{"required":["y"]},"propertyNames":{"required":["y"]}}`, ""},
		// A closed schema refuses what only another part lists.
		{`{"properties":{` + status + `},"additionalProperties":false,"oneOf":[{"properties":{"x":{}},"required":["x"]}]}`, "x!? /oneOf/0/required/0"},
		{`{"properties":{` + status + `},"required":["$status"],"oneOf":[{"properties":{"x":{}},"additionalProperties":false}]}`, "$status!? /required/0"},
		{`{"properties":{"x":{}},"required":["x"],"allOf":[{"allOf":[{"additionalProperties":false}]}]}`, "x!? /required/0"},
		// Objects in objects stand for themselves.
		{`{"properties":{"x":{},"o":{"required":["x"]},"a/b":{"required":["y"]}}}`, "y /properties/a~1b/required/0 x /properties/o/required/0"},
		{`{"items":{"required":["x"]},"contains":{"required":["x"]},"additionalProperties":{"required":["x"]},"patternProperties":{"p":{"required":["x"]}}}`,
			"x /patternProperties/p/required/0 x /additionalProperties/required/0 x /items/required/0 x /contains/required/0"},
	} {
		var got []string
		found, _ := shape.UnlistedOf(schemaOf(t, tt.schema))
		for _, u := range found {
			name := u.Name
			if u.Forbidden {
				name += "!"
			}
			if u.Partly {
				name += "?"
			}
			got = append(got, name, u.Path)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.schema, strings.Join(got, " "), tt.want)
		}
	}
	if got, _ := shape.UnlistedOf(schemaOf(t, `{"required":["x"],"properties":{"b":{}},"anyOf":[{"properties":{"a":{}}}]}`)); fmt.Sprint(got[0].Known) != "[a b]" {
		t.Errorf("known are %q", got[0].Known)
	}
	many := `{"required":["x` + strings.Join(strings.Fields(strings.Repeat("x ", 500)), `","x`) + `"]}`
	if got, _ := shape.UnlistedOf(schemaOf(t, many)); len(got) != 200 {
		t.Errorf("%d of 500 were found", len(got))
	}
}

// Nothing fits where each way to an object is closed, not where only one of them is.
func TestNothingFits(t *testing.T) {
	const closed = `{"type":"object","required":["y"],"additionalProperties":false}`
	for schema, want := range map[string]bool{
		`{"required":["y"]}`:            false,
		closed:                          true,
		`{"anyOf":[` + closed + `,{}]}`: false,
		`{"oneOf":[{"properties":{"x":{}}},` + closed + `]}`:                                    false,
		`{"anyOf":[` + closed + `,{"type":"null"}]}`:                                            true,
		`{"oneOf":[` + closed + `,false]}`:                                                      true,
		`{"allOf":[{},` + closed + `]}`:                                                         true,
		`{"allOf":[{"anyOf":[` + closed + `,` + closed + `]}]}`:                                 true,
		`{"if":{},"then":` + closed + `,"else":{}}`:                                             false,
		`{"required":["x"],"oneOf":[{"properties":{"x":{}}},{"additionalProperties":false}]}`:   false,
		`{"required":["x"],"oneOf":[{"properties":{"x":{}},"additionalProperties":false},{}]}`:  false,
		`{"required":["x"],"properties":{"x":{}},"allOf":[{"additionalProperties":false}]}`:     true,
		`{"properties":{"o":` + closed + `}}`:                                                   false,
		`{"properties":{"o":` + closed + `},"required":["o"]}`:                                  true,
		`{"required":["o"],"allOf":[{"properties":{"o":` + closed + `}}]}`:                      true,
		`{"properties":{"o":{"anyOf":[` + closed + `,{"type":"object"}]}},"required":["o"]}`:    false,
		`{"properties":{"o":{"required":["y"],"additionalProperties":false}},"required":["o"]}`: false, // text fits
		`{"properties":{"l":{"type":"array","items":` + closed + `}},"required":["l"]}`:         false,
	} {
		if _, got := shape.UnlistedOf(schemaOf(t, schema)); got != want {
			t.Errorf("%s: nothing fits: %v, want %v", schema, got, want)
		}
	}
}

func TestOptional(t *testing.T) {
	const fields = `"properties":{"$status":{"enum":["a","b"]},"x":{}}`
	for _, tt := range []struct {
		schema, status string
		want           bool
	}{
		{`true`, "", true},
		{`{` + fields + `}`, "a", true},
		{`{` + fields + `,"required":["x"]}`, "a", false},
		{`{` + fields + `,"allOf":[{},{"required":["x"]}]}`, "a", false},
		{`{` + fields + `,"not":{"required":["x"]}}`, "a", true},
		{`{` + fields + `,"if":{"required":["x"]},"then":{"required":["y"]}}`, "a", true},
		{`{` + fields + `,"if":{},"then":{"required":["x"]}}`, "a", false},
		{`{` + fields + `,"if":{},"else":{"required":["x"]}}`, "a", false},
		// The branches that an output with the status can take.
		{`{"oneOf":[{"properties":{"$status":{"const":"a"}},"required":["x"]},{"properties":{"$status":{"const":"b"}}}]}`, "a", false},
		{`{"oneOf":[{"properties":{"$status":{"const":"a"}},"required":["x"]},{"properties":{"$status":{"const":"b"}}}]}`, "b", true},
		{`{"oneOf":[{"properties":{"$status":{"const":"a"}},"required":["x"]},{"properties":{"$status":{"const":"b"}}}]}`, "", false},
		{`{` + fields + `,"anyOf":[{"required":["x"]},{"required":["y"]}]}`, "a", true},
		{`{` + fields + `,"anyOf":[{"required":["x"]},{"required":["x","y"]}]}`, "a", false},
		{`{` + fields + `,"oneOf":[{"properties":{"$status":{"const":"b"}}}]}`, "a", true},
	} {
		if got := shape.Optional(schemaOf(t, tt.schema), "$status", tt.status, "x"); got != tt.want {
			t.Errorf("%s with status %q: %v, want %v", tt.schema, tt.status, got, tt.want)
		}
	}
}

// A schema that nests without end in its branches must not cost without end.
func FuzzVariants(f *testing.F) {
	f.Add([]byte(`{"oneOf":[{"properties":{"$status":{"const":"a"}}}]}`))
	f.Add([]byte(`{"allOf":[{"anyOf":[{"oneOf":[{"if":{},"then":{"properties":{"$status":{"anyOf":[{"const":"a"}]}}}}]}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var v any
		if json.Unmarshal(data, &v) != nil {
			return
		}
		shape.UnlistedOf(v)
		shape.Optional(v, "$status", "a", "x")
		for _, variant := range shape.Variants(v, "$status") {
			for _, field := range variant.Fields {
				if field.Name == "" && len(data) < 3 {
					t.Fatal("a field out of nothing")
				}
			}
		}
	})
}
