package node

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"
	"unicode/utf8"
)

// FuzzJSON: what is read can be written, read again and hashed, always to the
// same; and the parser takes nothing that encoding/json refuses.
func FuzzJSON(f *testing.F) {
	for _, v := range vectors(f) {
		f.Add([]byte(v.Payload))
	}
	for _, s := range []string{`"\ud800\udc00\ud800"`, `[1.0,-0,1e20,9007199254740992]`, `{"a":{"b":[]}}`, `{"a":1,"a":2}`, "\"\u202e\x7f\"", `[1e-7,1e21,5e-324]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := ParseJSON(b)
		if err != nil {
			return
		}
		var other any
		if err := json.Unmarshal(b, &other); err != nil {
			t.Fatalf("encoding/json refuses what was read as %#v: %v", v, err)
		}
		if viaGo, err := Normalize(other); err != nil || !reflect.DeepEqual(viaGo, v) {
			t.Fatalf("encoding/json reads %#v, %v; not %#v", viaGo, err, v)
		}
		n, h, err := New(String, v, time.UnixMilli(0))
		if err != nil {
			t.Fatal(err)
		}
		file, err := EncodeFile(n)
		if err != nil {
			t.Fatal(err)
		}
		if !utf8.Valid(file) || bytes.ContainsAny(file, "\x1b\x7f") {
			t.Fatalf("a file that is not safe to print: %q", file)
		}
		again, err := DecodeFile(file)
		if err != nil {
			t.Fatalf("can't read what was written: %v\n%s", err, file)
		}
		if err := Verify(h, again); err != nil {
			t.Fatal(err)
		}
		if second, err := EncodeFile(again); err != nil || !bytes.Equal(second, file) {
			t.Fatalf("written twice, differently:\n%s\n%s", file, second)
		}
		line, err := EncodeLine(h, h, n)
		if err != nil || bytes.IndexByte(line, '\n') != len(line)-1 {
			t.Fatalf("not one line: %q, %v", line, err)
		}
		if name, of, again, err := DecodeLine(line); err != nil || name != h || of != h || Verify(h, again) != nil {
			t.Fatalf("%s became %s, %v: %s", h, name, err, line)
		}
	})
}

// FuzzCBOR: decode → encode → decode is a fixed point.
func FuzzCBOR(f *testing.F) {
	for _, v := range vectors(f) {
		if p, err := ParseJSON(v.Payload); err == nil {
			if b, err := EncodeCBOR(p); err == nil {
				f.Add(b)
			}
		}
	}
	f.Add([]byte{0xf9, 0x3c, 0x00})             // 1.0 as half a float
	f.Add([]byte{0x1b, 0, 0, 0, 0, 0, 0, 0, 1}) // 1 in eight bytes
	f.Add([]byte{0xa2, 0x62, 'b', 'b', 1, 0x61, 'a', 2})
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := DecodeCBOR(b)
		if err != nil {
			return
		}
		c, err := EncodeCBOR(v)
		if err != nil {
			t.Fatalf("can't encode %#v: %v", v, err)
		}
		w, err := DecodeCBOR(c)
		if err != nil || !reflect.DeepEqual(v, w) {
			t.Fatalf("%#v, %v; was %#v", w, err, v)
		}
		if again, err := EncodeCBOR(w); err != nil || !bytes.Equal(again, c) {
			t.Fatalf("encoded twice, differently: %x and %x", c, again)
		}
	})
}

// FuzzSchema: any text is accepted or refused as a schema, and an accepted one
// can be compiled and used on any payload.
func FuzzSchema(f *testing.F) {
	for _, v := range vectors(f) {
		if v.Type == string(MetaSchema) {
			f.Add(string(v.Payload), `{"a":1}`)
		}
	}
	for _, s := range []string{
		`{"$ref":"#"}`,
		`{"$ref":""}`,
		`{"properties":{"a":{"$ref":"#/properties/a"}}}`,
		`{"allOf":[{"$ref":"#/allOf/1"},{"$ref":"#/allOf/0"}]}`,
		`{"definitions":{"a":{"$ref":"#/definitions/a"}},"$ref":"#/definitions/a"}`,
		`{"$id":"http://example.com/s","items":{"$ref":"http://example.com/s"}}`,
		`{"$ref":"http://127.0.0.1:1/x"}`,
		`{"$ref":"file:///etc/hostname"}`,
		`{"default":{"$ref":"#"},"examples":[{"$id":"#"}],"const":{"$ref":"#"},"enum":[{"$ref":"#"}]}`,
		`{"properties":{"$ref":{"$ref":"#"}}}`,
		`{"not":{"not":{"not":{}}},"if":{},"then":{},"else":{}}`,
		`{"enum":[1e308,5e-324,-0],"multipleOf":5e-324}`,
		`{"pattern":"(a{1000}){1000}"}`,
		`{"patternProperties":{"^(a|b)*$":{"format":"ocas_ref"}},"additionalProperties":{"format":"cas_ref"}}`,
		`{"maxLength":9007199254740991,"minItems":9007199254740991,"uniqueItems":true}`,
	} {
		f.Add(s, `{"a":[1,2.5,"x",null,true,{"b":"AAAAAAAAAAAAA"}]}`)
		f.Add(s, `"AAAAAAAAAAAAA"`)
	}
	f.Fuzz(func(t *testing.T, schema, payload string) {
		p, err := ParseJSON([]byte(schema))
		if err != nil {
			return
		}
		before := Text(p)
		err = CheckSchema(p)
		s, cerr := Compile(p)
		if (err == nil) != (cerr == nil) {
			t.Fatalf("CheckSchema says %v, Compile %v", err, cerr)
		}
		if Text(p) != before {
			t.Fatalf("the schema was changed from %s to %s", before, Text(p))
		}
		if err != nil {
			return
		}
		v, err := ParseJSON([]byte(payload))
		if err != nil {
			return
		}
		first, second := s.Validate(v), s.Validate(v)
		if (first == nil) != (second == nil) || first != nil && first.Error() != second.Error() {
			t.Fatalf("two answers:\n%v\n%v", first, second)
		}
		for _, h := range s.Refs(v) {
			if !h.Valid() {
				t.Fatalf("%q as a reference", h)
			}
		}
	})
}

// FuzzNormalize: any bytes as a Go string become valid text, once and for all.
func FuzzNormalize(f *testing.F) {
	f.Add("a\xed\xa0\x80\xed\xb0\x80\xff")
	f.Fuzz(func(t *testing.T, s string) {
		v, err := Normalize(s)
		if err != nil {
			t.Skip()
		}
		got, ok := v.(string)
		if !ok || !utf8.ValidString(got) || utf8.ValidString(s) && got != s {
			t.Fatalf("Normalize(%q) = %#v", s, v)
		}
		if again, err := Normalize(got); err != nil || again != got {
			t.Fatalf("not a fixed point: %q, %q", got, again)
		}
	})
}
