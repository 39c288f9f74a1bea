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

// A schema that nests without end in its branches must not cost without end.
func FuzzVariants(f *testing.F) {
	f.Add([]byte(`{"oneOf":[{"properties":{"$status":{"const":"a"}}}]}`))
	f.Add([]byte(`{"allOf":[{"anyOf":[{"oneOf":[{"if":{},"then":{"properties":{"$status":{"anyOf":[{"const":"a"}]}}}}]}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var v any
		if json.Unmarshal(data, &v) != nil {
			return
		}
		for _, variant := range shape.Variants(v, "$status") {
			for _, field := range variant.Fields {
				if field.Name == "" && len(data) < 3 {
					t.Fatal("a field out of nothing")
				}
			}
		}
	})
}
