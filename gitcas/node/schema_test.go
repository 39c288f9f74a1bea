package node

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
)

func mustJSON(t testing.TB, s string) any {
	t.Helper()
	v, err := ParseJSON([]byte(s))
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return v
}

func TestCheckSchema(t *testing.T) {
	for _, tt := range []struct{ schema, want string }{
		{`{}`, ""},
		{`{"type":"object","properties":{"$ref":{"type":"string"},"$id":{},"const":{"const":1}},"required":["$ref"]}`, ""},
		{`{"type":["string","null"],"description":"d","title":"t","$comment":"c","default":{"$ref":"#"},"examples":[{"$id":"x"}],"readOnly":true,"writeOnly":false,"deprecated":true}`, ""},
		{`{"if":{"minimum":1},"then":{"maximum":2.5},"else":{"multipleOf":0.1},"not":{"exclusiveMinimum":-1,"exclusiveMaximum":5}}`, ""},
		{`{"items":{"pattern":"^a+$","minLength":1,"maxLength":9},"minItems":0,"maxItems":3,"uniqueItems":true,"contains":{"const":null}}`, ""},
		{`{"patternProperties":{"^x-":{}},"propertyNames":{"maxLength":3},"minProperties":0,"maxProperties":9,"additionalProperties":{"format":"cas_ref"}}`, ""},
		{`{"enum":[1,"1",null,true,[1],{"a":1}]}`, ""},
		{`true`, "a schema must be an object, not a boolean"},
		{`[]`, "a schema must be an object, not a list"},
		{`{"$ref":"#"}`, `/$ref: schemas can't refer`},
		{`{"properties":{"a":{"$ref":"#/properties/b"},"b":{"$ref":"#/properties/a"}}}`, `/properties/a/$ref: schemas can't refer`},
		{`{"allOf":[{"$ref":"http://example.com/x"}]}`, `/allOf/0/$ref`},
		{`{"$defs":{}}`, "/$defs"},
		{`{"definitions":{}}`, "/definitions"},
		{`{"$id":"x"}`, "/$id"},
		{`{"$schema":"http://json-schema.org/draft-07/schema#"}`, "/$schema: leave this key out"},
		{`{"prefixItems":[]}`, "/prefixItems: lists have one schema"},
		{`{"dependencies":{}}`, `/dependencies: unknown keyword "dependencies"`},
		{`{"propertys":{}}`, `unknown keyword "propertys"`},
		{`{"type":"text"}`, "/type: must be one of string"},
		{`{"type":[]}`, "/type: must name at least one"},
		{`{"type":["string","string"]}`, "/type/1: \"string\" stands twice"},
		{`{"type":[["string"]]}`, "/type: must be one of"},
		{`{"type":[{"a":1},{"a":1}]}`, "/type: must be one of"},
		{`{"type":null}`, "/type: must be one of"},
		{`{"anyOf":[]}`, "/anyOf: must be a list with at least one"},
		{`{"oneOf":{}}`, "/oneOf: must be a list with at least one"},
		{`{"allOf":[1]}`, "/allOf/0: a schema must be an object"},
		{`{"enum":[]}`, "/enum: must be a list with at least one"},
		{`{"enum":{}}`, "/enum: must be a list with at least one"},
		{`{"enum":[{"a":1.0},{"a":1}]}`, "/enum/1"},
		{`{"required":["a","a"]}`, `/required/1: "a" stands twice`},
		{`{"required":[1]}`, "/required/0: must be a string"},
		{`{"required":"a"}`, "/required: must be a list"},
		{`{"format":"date"}`, "/format: the only format"},
		{`{"format":["ocas_ref"]}`, "/format: the only format"},
		{`{"pattern":"(?=x)"}`, "/pattern: not an RE2"},
		{`{"pattern":"^[a-z]{10,5000}$"}`, "/pattern: a repeat count in the expression is larger than RE2 takes, at most 1000: {10,5000}"},
		{`{"pattern":"(a"}`, "/pattern: not an RE2"},
		{`{"pattern":1}`, "/pattern: must be a string"},
		{`{"patternProperties":{"(":{}}}`, "/patternProperties/(: not an RE2"},
		{`{"properties":{"a/b~c":1}}`, "/properties/a~1b~0c: a schema must be"},
		{`{"properties":[]}`, "/properties: must be an object of schemas"},
		{`{"items":[{}]}`, "/items: a schema must be an object, not a list"},
		{`{"items":true}`, "/items: a schema must be an object"},
		{`{"additionalProperties":null}`, "/additionalProperties: a schema must be"},
		{`{"minLength":-1}`, "/minLength: must be a whole number"},
		{`{"minLength":1.5}`, "/minLength: must be a whole number"},
		{`{"minLength":1e300}`, "/minLength: must be a whole number"},
		{`{"multipleOf":0}`, "/multipleOf: must be a number above 0"},
		{`{"minimum":"1"}`, "/minimum: must be a number, not a string"},
		{`{"exclusiveMinimum":true}`, "/exclusiveMinimum: must be a number, not a boolean"},
		{`{"uniqueItems":1}`, "/uniqueItems: must be a boolean"},
		{`{"title":1,"$comment":null,"examples":{}}`, "/title: must be a string, not a number; /$comment: must be a string, not null; /examples: must be a list"},
		{`{"pattern":"` + strings.Repeat("a", maxPattern+1) + `"}`, "longer than"},
		{`{"enum":[` + strings.Repeat("[],", MaxSchemaValues) + `1]}`, "more than 10000 values"},
	} {
		p := mustJSON(t, tt.schema)
		err := CheckSchema(p)
		_, cerr := Compile(p)
		if (err == nil) != (cerr == nil) {
			t.Errorf("%.80s: CheckSchema says %v, Compile %v", tt.schema, err, cerr)
		}
		if tt.want == "" {
			if err != nil {
				t.Errorf("%.80s: %v", tt.schema, err)
			}
			continue
		}
		var se *SchemaError
		if !errors.As(err, &se) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.80s: %v, want %q", tt.schema, err, tt.want)
		}
	}
}

// TestSchemaRefused: what is no payload is neither a schema nor what fits one, and a
// schema that contradicts itself is not compiled.
func TestSchemaRefused(t *testing.T) {
	s, err := Compile(map[string]any{})
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		do   func(any) error
		with any
		want string
	}{
		"check":      {CheckSchema, math.NaN(), "check a schema: not a JSON value"},
		"compile":    {func(v any) error { _, err := Compile(v); return err }, math.NaN(), "compile a schema: not a JSON value"},
		"library":    {func(v any) error { _, err := Compile(v); return err }, map[string]any{"minLength": 2, "maxLength": 1}, "not an allowed schema: minLength cannot be greater than maxLength"},
		"validation": {s.Validate, math.NaN(), "check a payload: not a JSON value"},
	} {
		if err := tt.do(tt.with); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
}

func TestCheckSchemaListsAtMostFifty(t *testing.T) {
	m := map[string]any{}
	for i := range 200 {
		m[fmt.Sprintf("x%d", i)] = 1
	}
	var se *SchemaError
	if err := CheckSchema(m); !errors.As(err, &se) || len(se.Problems) != maxProblems {
		t.Errorf("%v", err)
	}
}

func TestEveryVectorFitsItsSchema(t *testing.T) {
	g := Map{}
	for _, v := range vectors(t) {
		typ := Hash(v.Type)
		if v.Type == "SELF" {
			typ = MetaSchema
		}
		g[v.Hash] = Node{Type: typ, Payload: mustJSON(t, string(v.Payload))}
	}
	var c Schemas
	for h, n := range g {
		if err := c.CheckNode(g, n); err != nil {
			t.Errorf("%s: %v", h, err)
		}
		if err := Verify(h, n); err != nil {
			t.Error(err)
		}
	}
}

func TestValidate(t *testing.T) {
	const step = `{"type":"object","required":["a","$status"],"properties":{
		"a":{"type":"integer","minimum":1},"$status":{"enum":["ok","bad"]},
		"ref":{"anyOf":[{"type":"string","format":"ocas_ref"},{"type":"null"}]},
		"own":{"type":"string","format":"ocas_ref","pattern":"^C"},
		"a/b":{"type":"array","items":{"const":1.5}}},"additionalProperties":false}`
	s, err := Compile(mustJSON(t, step))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ payload, want string }{
		{`{"a":1,"$status":"ok"}`, ""},
		{`{"a":1.0,"$status":"ok","ref":"CTS5P6RD8HMCS","own":"CTS5P6RD8HMCS"}`, ""},
		{`{"a":1,"$status":"ok","ref":null,"a/b":[1.5,15e-1]}`, ""},
		{`{"a":1}`, "$status is missing"},
		{`{"a":1.5,"$status":"ok"}`, "/a: must be integer, not number"},
		{`{"a":0,"$status":"ok"}`, "/a: Must be greater than or equal to 1"},
		{`{"a":1,"$status":"fine"}`, `/$status: must be one of "ok", "bad"`},
		{`{"a":1,"$status":"ok","b":1}`, "b is not allowed"},
		{`{"a":1,"$status":"ok","ref":"cts5p6rd8hmcs"}`, "/ref: must be a node's hash"},
		{`{"a":1,"$status":"ok","own":"7VQ43ZSJTEWA7"}`, "/own: Does not match pattern '^C'"},
		{`{"a":1,"$status":"ok","own":"Cx"}`, "/own: must be a node's hash"},
		{`{"a":1,"$status":"ok","a/b":[1.5,2]}`, "/a~1b/1: must be 1.5"},
		{`[]`, "must be object, not array"},
		{`null`, "must be object, not null"},
	} {
		err := s.Validate(mustJSON(t, tt.payload))
		if tt.want == "" {
			if err != nil {
				t.Errorf("%s: %v", tt.payload, err)
			}
			continue
		}
		var ve *ValidationError
		if !errors.As(err, &ve) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.payload, err, tt.want)
		}
	}
}

func TestValidateListsProblemsInOneOrder(t *testing.T) {
	s, err := Compile(mustJSON(t, `{"additionalProperties":{"type":"string"}}`))
	if err != nil {
		t.Fatal(err)
	}
	p := map[string]any{}
	for i := range 200 {
		p[fmt.Sprintf("k%03d", i)] = i
	}
	want := ""
	for range 5 {
		var ve *ValidationError
		if err := s.Validate(p); !errors.As(err, &ve) || len(ve.Problems) != maxProblems {
			t.Fatalf("%v", err)
		}
		if want == "" {
			want = ve.Error()
		}
		if ve.Error() != want {
			t.Fatalf("two orders:\n%s\n%s", want, ve)
		}
	}
}

func TestValidateBoundsItsWork(t *testing.T) {
	props := map[string]any{}
	for i := range 900 {
		props[fmt.Sprint("p", i)] = map[string]any{"type": "string"}
	}
	s, err := Compile(map[string]any{"items": map[string]any{"properties": props}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(make([]any, MaxValues-1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("%v", err)
	}
	if err := s.Validate(make([]any, 100)); err != nil {
		t.Errorf("%v", err)
	}
}

func TestCompileLeavesItsArgumentAlone(t *testing.T) {
	const text = `{"default":{"$ref":"#/x","$id":"http://a/b"},"const":{"$ref":"#"},"properties":{"n":{"minimum":1,"format":"ocas_ref","allOf":[{}]}}}`
	p := mustJSON(t, text)
	before := Text(p)
	if _, err := Compile(p); err != nil {
		t.Fatal(err)
	}
	if after := Text(p); after != before {
		t.Errorf("changed to %s", after)
	}
}

func TestRefs(t *testing.T) {
	const (
		a = "AAAAAAAAAAAAA"
		b = "BBBBBBBBBBBBB"
		c = "CCCCCCCCCCCCC"
		d = "DDDDDDDDDDDDD"
	)
	const ref = `{"type":"string","format":"ocas_ref"}`
	for _, tt := range []struct{ name, schema, payload, want string }{
		{"none", `{"properties":{"x":{"type":"string"}}}`, `{"x":"` + a + `"}`, ""},
		{"self", ref, `"` + a + `"`, a},
		{"old name", `{"format":"cas_ref"}`, `"` + a + `"`, a},
		{"no hash", ref, `"hello"`, ""},
		{"property", `{"properties":{"x":` + ref + `,"aa":` + ref + `}}`, `{"aa":"` + b + `","x":"` + a + `","y":"` + c + `"}`, a + " " + b},
		{"items", `{"items":` + ref + `}`, `["` + b + `","` + a + `","` + b + `"]`, b + " " + a},
		{"additional", `{"properties":{"x":{}},"patternProperties":{"^y":{}},"additionalProperties":` + ref + `}`,
			`{"x":"` + a + `","y1":"` + b + `","z":"` + c + `","w":"` + d + `"}`, d + " " + c},
		{"pattern", `{"patternProperties":{"^y":` + ref + `}}`, `{"x":"` + a + `","y1":"` + b + `"}`, b},
		{"anyOf", `{"anyOf":[` + ref + `,{"type":"null"}]}`, `"` + a + `"`, a},
		{"anyOf null", `{"anyOf":[` + ref + `,{"type":"null"}]}`, `null`, ""},
		{"oneOf allOf", `{"oneOf":[{"allOf":[{"properties":{"x":` + ref + `}}]}]}`, `{"x":"` + a + `"}`, a},
		{"conditions", `{"if":{"properties":{"x":` + ref + `}},"then":{"properties":{"y":` + ref + `}},"else":{"properties":{"z":` + ref + `}}}`,
			`{"x":"` + a + `","y":"` + b + `","z":"` + c + `"}`, a + " " + b + " " + c},
		{"roles", `{"properties":{"roles":{"additionalProperties":{"properties":{"frontmatter":` + ref + `}}}}}`,
			`{"roles":{"r":{"frontmatter":"` + b + `"},"a":{"frontmatter":"` + a + `"}}}`, a + " " + b},
		{"other kinds", `{"properties":{"x":` + ref + `},"items":` + ref + `}`, `{"x":[1,{"x":"` + a + `"}]}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Compile(mustJSON(t, tt.schema))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, h := range s.Refs(mustJSON(t, tt.payload)) {
				got = append(got, h.String())
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("= %v, want %s", got, tt.want)
			}
		})
	}
}

func TestSchemasCacheIsShared(t *testing.T) {
	g := Map{}
	s := put(t, g, MetaSchema, map[string]any{"type": "integer"})
	var c Schemas
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := c.CheckNode(g, Node{Type: s, Payload: int64(1)}); err != nil {
				t.Error(err)
			}
			if err := c.CheckNode(Map{}, Node{Type: s, Payload: "x"}); err == nil {
				t.Error("a string passed as an integer")
			}
		})
		if _, err := c.LoadSchema(g, s); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
	// A getter that lies must not get its lie into the cache.
	liar := Map{"AAAAAAAAAAAAA": g[s]}
	if _, err := c.LoadSchema(liar, "AAAAAAAAAAAAA"); !errors.Is(err, ErrWrongHash) {
		t.Errorf("a schema under another's hash: %v", err)
	}
	data := put(t, g, s, 1)
	if _, err := c.LoadSchema(g, data); !errors.Is(err, ErrNotSchema) {
		t.Errorf("data as a schema: %v", err)
	}
	if _, err := c.LoadSchema(g, "ZZZZZZZZZZZZZ"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a missing schema: %v", err)
	}
	if err := c.CheckNode(g, Node{Type: "ZZZZZZZZZZZZZ"}); !errors.Is(err, ErrNotFound) {
		t.Errorf("a node whose schema is missing: %v", err)
	}
	if _, err := c.Refs(g, Node{Type: "ZZZZZZZZZZZZZ"}); !errors.Is(err, ErrNotFound) {
		t.Errorf("the references of a node whose schema is missing: %v", err)
	}
	no := put(t, g, MetaSchema, map[string]any{"$ref": "#"})
	var refused *SchemaError
	if _, err := c.LoadSchema(g, no); !errors.As(err, &refused) || !strings.Contains(err.Error(), string(no)) {
		t.Errorf("a schema that is not allowed: %v", err)
	}
	for i := range 2 * maxCached {
		h := put(t, g, MetaSchema, map[string]any{"minimum": i})
		if _, err := c.LoadSchema(g, h); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.m) > maxCached {
		t.Errorf("the cache holds %d schemas", len(c.m))
	}
}
