package node

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestNumbersHaveOneEncoding(t *testing.T) {
	for _, tt := range []struct{ text, cbor string }{
		{"0", "00"},
		{"-0", "00"},
		{"-0.0", "00"},
		{"0e5", "00"},
		{"1", "01"},
		{"1.0", "01"},
		{"1e0", "01"},
		{"100e-2", "01"},
		{"-1", "20"},
		{"1.5", "fb3ff8000000000000"},
		{"0.1", "fb3fb999999999999a"},
		{"9007199254740991", "1b001fffffffffffff"},
		{"-9007199254740991", "3b001ffffffffffffe"},
		{"9007199254740992", "fb4340000000000000"},
		{"9007199254740993", "fb4340000000000000"},
		{"-9007199254740992", "fbc340000000000000"},
		{"1e20", "fb4415af1d78b58c40"},
		{"100000000000000000000", "fb4415af1d78b58c40"},
		{"5e-324", "fb0000000000000001"},
		{"1e-400", "00"},
	} {
		p, err := ParseJSON([]byte(tt.text))
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		b, err := EncodeCBOR(p)
		if err != nil || hex.EncodeToString(b) != tt.cbor {
			t.Errorf("%s: CBOR %x, %v; want %s", tt.text, b, err, tt.cbor)
		}
		viaGo, err := EncodeCBOR(json.Number(tt.text))
		if err != nil || hex.EncodeToString(viaGo) != tt.cbor {
			t.Errorf("json.Number(%s): CBOR %x, %v; want %s", tt.text, viaGo, err, tt.cbor)
		}
		file, err := FormatJSON(p)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseJSON(file)
		if err != nil || !reflect.DeepEqual(again, p) {
			t.Errorf("%s: written as %s, read as %v, %v", tt.text, file, again, err)
		}
	}
}

func TestTextIsValidUTF8(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{`"\ud800"`, "\uFFFD"},
		{`"\ud800\ud800"`, "\uFFFD\uFFFD"},
		{`"\udc00\ud800"`, "\uFFFD\uFFFD"},
		{`"\ud800x"`, "\uFFFDx"},
		{`"\ud83d\ude00"`, "😀"},
		{`"\uD83D\uDE00!"`, "😀!"},
		{`"\ud83d\n"`, "\uFFFD\n"},
		{`"e\u0301"`, "e\u0301"}, // not normalised
		{`"\"\\\/\b\f\n\r\t"`, "\"\\/\b\f\n\r\t"},
		{`"\u0000"`, "\x00"},
		{`"\ufffd"`, "\uFFFD"},
	} {
		got, err := ParseJSON([]byte(tt.text))
		if err != nil || got != tt.want {
			t.Errorf("%s = %q, %v; want %q", tt.text, got, err, tt.want)
		}
	}
	for _, tt := range []struct{ text, want string }{
		{"\xed\xa0\x80", "\uFFFD"},                       // a surrogate, encoded by itself
		{"a\xed\xa0\x80\xed\xb0\x80b", "a\uFFFD\uFFFDb"}, // a pair, each by itself
		{"a\xffb\xfe", "a\uFFFDb\uFFFD"},
		{"\xc3", "\uFFFD"},
		{"ok", "ok"},
	} {
		got, err := Normalize(tt.text)
		if err != nil || got != tt.want {
			t.Errorf("Normalize(%q) = %q, %v; want %q", tt.text, got, err, tt.want)
		}
	}
}

func TestParseJSONRefuses(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", "line 1, column 1: the text ends"},
		{"blank", "  \n ", "line 2, column 2: the text ends"},
		{"two values", "{} {}", "column 4: text after the value"},
		{"duplicate key", `{"a":1,` + "\n" + `"a":2}`, `line 2, column 1: the key "a" stands twice`},
		{"duplicate key by escape", `{"a":1,"\u0061":2}`, `"a" stands twice`},
		{"duplicate key by surrogates", `{"\ud800":1,"\ud801":2}`, "stands twice"},
		{"duplicate key below", `[{"x":{"b":0,"b":0}}]`, `"b" stands twice`},
		{"trailing comma in list", "[1,]", "column 4: invalid character ']' looking for beginning of value"},
		{"trailing comma in object", `{"a":1,}`, "column 8: invalid character '}' looking for beginning of object key"},
		{"leading comma", "[,1]", "invalid character ',' looking"},
		{"no comma", "[1 2]", "after array element"},
		{"no colon", `{"a" 1}`, "after object key"},
		{"key without quotes", `{a:1}`, "beginning of object key"},
		{"single quotes", `'a'`, "beginning of value"},
		{"comment", "// x\n1", "beginning of value"},
		{"open list", "[1", "the text ends"},
		{"open object", `{"a":1`, "the text ends"},
		{"open string", `"abc`, "the text ends"},
		{"open key", `{"a`, "the text ends"},
		{"open escape", `"abc\`, "the text ends"},
		{"short unicode escape", `"\u12"`, "in \\u hexadecimal character escape"},
		{"signed unicode escape", `"\u+123"`, "in \\u hexadecimal character escape"},
		{"unknown escape", `"\x41"`, "in string escape code"},
		{"newline in string", "\"a\nb\"", "in string literal"},
		{"control after escape", "\"\\n\x01\"", "in string literal"},
		{"invalid UTF-8", "\"\xff\"", "not valid UTF-8"},
		{"invalid UTF-8 after escape", "\"\\n\xed\xa0\x80\"", "not valid UTF-8"},
		{"byte order mark", "\ufeff1", "beginning of value"},
		{"leading zero", "01", "text after"},
		{"plus", "+1", "beginning of value"},
		{"bare point", ".5", "beginning of value"},
		{"point at the end", "1.", "the text ends"},
		{"empty exponent", "1e", "the text ends"},
		{"hex", "0x10", "text after"},
		{"infinity", "1e400", "beyond the range"},
		{"NaN", "NaN", "beginning of value"},
		{"capital", "True", "beginning of value"},
		{"cut word", "tru", "the text ends"},
		{"too deep", strings.Repeat("[", MaxDepth+2), "nested deeper"},
		{"too many values", "[" + strings.Repeat("0,", MaxValues) + "0]", "more than 100000 values"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, err := ParseJSON([]byte(tt.text))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("= %v, %v; want an error with %q", v, err, tt.want)
			}
		})
	}
	if _, err := ParseJSON(make([]byte, MaxFile+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a text beyond MaxFile: %v", err)
	}
	if _, err := ParseJSON([]byte(`"` + strings.Repeat("a", MaxSize+1) + `"`)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a string beyond MaxSize: %v", err)
	}
	// Escapes count as what they stand for, or a node could be written and not read.
	if _, err := ParseJSON([]byte(`"` + strings.Repeat(`\n`, MaxSize) + `"`)); err != nil {
		t.Errorf("MaxSize escaped newlines: %v", err)
	}
	if _, err := ParseJSON([]byte(strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth))); err != nil {
		t.Errorf("MaxDepth levels: %v", err)
	}
}

// TestDecodeJSONRefuses: what ParseJSON refuses, and fields that are not known.
func TestDecodeJSONRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":1,"a":2}`: `"a" stands twice`, `{"a":1} x`: "text after the value", `{"b":1}`: "unknown field", `{"a":"x"}`: "cannot unmarshal",
	} {
		var into struct{ A int }
		if err := DecodeJSON([]byte(text), &into); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestNormalizeGoValues(t *testing.T) {
	h := String
	for _, tt := range []struct {
		name     string
		in, want any
	}{
		{"int", 7, int64(7)},
		{"uint8", uint8(7), int64(7)},
		{"large uint64", uint64(1 << 60), float64(1 << 60)},
		{"large int64", int64(-1 << 60), float64(-1 << 60)},
		{"float32", float32(1), int64(1)},
		{"minus zero", math.Copysign(0, -1), int64(0)},
		{"hash", h, string(h)},
		{"hash pointer", &h, string(h)},
		{"nil pointer", (*Hash)(nil), nil},
		{"hashes", []Hash{h}, []any{string(h)}},
		{"nil slice", []string(nil), []any{}},
		{"nil list", []any(nil), []any{}},
		{"nil object", map[string]any(nil), map[string]any{}},
		{"typed map", map[Hash]int{h: 1}, map[string]any{string(h): int64(1)}},
		{"nested", map[string]any{"a": []any{1, "x", nil, true, 0.5}}, map[string]any{"a": []any{int64(1), "x", nil, true, 0.5}}},
		{"bad key", map[string]any{"\xff": 1}, map[string]any{"\uFFFD": int64(1)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Normalize(tt.in)
			if err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("= %#v, %v; want %#v", got, err, tt.want)
			}
		})
	}
	cyclic := map[string]any{}
	cyclic["self"] = cyclic
	for name, in := range map[string]any{
		"NaN": math.NaN(), "infinity": math.Inf(-1), "bytes": []byte("x"), "struct": struct{ A int }{1},
		"func": func() {}, "channel": make(chan int), "map by int": map[int]string{1: "a"}, "time": time.Time{},
		"keys beyond MaxSize": map[string]any{strings.Repeat("k", MaxSize+1): 1},
		"two keys become one": map[string]any{"\xff": 1, "\xfe": 2},
		"key becomes another": map[string]any{"\uFFFD": 1, "\xfe": 2}, "a cycle": cyclic,
	} {
		if got, err := Normalize(in); err == nil {
			t.Errorf("%s: accepted as %#v", name, got)
		}
	}
}

func TestNumbersRefused(t *testing.T) {
	for _, s := range []string{"", "-", "+1", "0x1", "01", ".5", "1.", "e5", "1e", "1e+", "1 ", "NaN"} {
		if got, err := Normalize(json.Number(s)); !errors.Is(err, ErrPayload) || !strings.Contains(err.Error(), `number "`+s+`"`) {
			t.Errorf("%q is %v, %v", s, got, err)
		}
	}
}

func TestNormalizeChangesNothing(t *testing.T) {
	in := map[string]any{"a": []any{1.0, "\xff"}, "b": "x", "\xff": map[string]any{"n": 2.0}}
	want := map[string]any{"a": []any{1.0, "\xff"}, "b": "x", "\xff": map[string]any{"n": 2.0}}
	if _, err := Normalize(in); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(in, want) {
		t.Errorf("the argument was changed to %#v", in)
	}
	normal := map[string]any{"a": []any{int64(1), "x"}}
	allocs := testing.AllocsPerRun(100, func() {
		if _, err := Normalize(normal); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > 2 { // the iterator of the map may be one
		t.Errorf("%v allocations for a value in normal form", allocs)
	}
}

func TestParseHash(t *testing.T) {
	for _, s := range []string{"CTS5P6RD8HMCS", "0000000000000", "ZZZZZZZZZZZZZ"} {
		if h, err := ParseHash(s); err != nil || h.String() != s {
			t.Errorf("%s = %s, %v", s, h, err)
		}
	}
	for _, s := range []string{"", "cts5p6rd8hmcs", "CTS5P6RD8HMC", "CTS5P6RD8HMCSS", "ITS5P6RD8HMCS", "LTS5P6RD8HMCS", "OTS5P6RD8HMCS", "UTS5P6RD8HMCS", "../../../etc/", "CTS5P6RD8HM S", "CTS5P6RD8HMC\n"} {
		if _, err := ParseHash(s); !errors.Is(err, ErrInvalidHash) {
			t.Errorf("%q: %v", s, err)
		}
	}
}

func TestFileRoundTrip(t *testing.T) {
	payload := map[string]any{
		"zz": 1, "b": []any{}, "a": map[string]any{}, "long": "line\nnext \x1b[31m \u009b \u202e \u2028 é 😀 \x7f",
		"list": []any{nil, true, 1e21, 1e-7, 0.1, map[string]any{"k": "v"}},
	}
	n, h, err := New(MetaSchema, payload, time.UnixMilli(1234))
	if err != nil {
		t.Fatal(err)
	}
	b, err := EncodeFile(n)
	if err != nil {
		t.Fatal(err)
	}
	want := `{
  "type": "CTS5P6RD8HMCS",
  "payload": {
    "a": {},
    "b": [],
    "zz": 1,
    "list": [
      null,
      true,
      1e+21,
      1e-7,
      0.1,
      {
        "k": "v"
      }
    ],
    "long": "line\nnext \u001b[31m \u009b \u202e \u2028 é 😀 \u007f"
  },
  "timestamp": 1234
}
`
	if string(b) != want {
		t.Errorf("file:\n%s\nwant:\n%s", b, want)
	}
	again, err := DecodeFile(b)
	if err != nil || !reflect.DeepEqual(again, n) {
		t.Fatalf("read back: %#v, %v", again, err)
	}
	if err := Verify(h, again); err != nil {
		t.Error(err)
	}
	if err := Verify(String, again); !errors.Is(err, ErrWrongHash) {
		t.Errorf("a wrong hash: %v", err)
	}
}

func TestDecodeFileRefuses(t *testing.T) {
	const typ = `"type":"CTS5P6RD8HMCS"`
	for _, tt := range []struct{ text, want string }{
		{``, "line 1, column 1: the text ends"}, {`[]`, "an object is expected"}, {`null`, "an object is expected"},
		{`{}`, "type: not a node's hash"}, {`{"type":"x","payload":1,"timestamp":1}`, "type: not a node's hash"}, {`{"type":1,"payload":1,"timestamp":1}`, "type: not a node's hash"},
		{`{` + typ + `,"payload":1}`, "timestamp must be"}, {`{` + typ + `,"payload":1,"timestamp":-1}`, "timestamp must be"}, {`{` + typ + `,"payload":1,"timestamp":1.5}`, "timestamp must be"},
		{`{` + typ + `,"payload":1,"timestamp":"1"}`, "timestamp must be"}, {`{` + typ + `,"payload":1,"timestamp":1e300}`, "timestamp must be"},
		{`{` + typ + `,"timestamp":1}`, "payload is missing"}, {`{` + typ + `,"timestamp":1,"x":1}`, "payload is missing"},
		{`{` + typ + `,"payload":1,"timestamp":1,"x":1}`, "other keys"}, {`{` + typ + `,` + typ + `,"payload":1,"timestamp":1}`, "stands twice"},
	} {
		if n, err := DecodeFile([]byte(tt.text)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: read as %#v, %v; want %s", tt.text, n, err, tt.want)
		}
	}
	for _, tt := range []struct{ text, want string }{
		{``, "line 1, column 1: the text ends"}, {`[]`, "an object is expected"}, {`{"hash":"CTS5P6RD8HMCS"}`, "type: not a node's hash"},
		{`{` + typ + `,"payload":1,"timestamp":1}`, "hash: not a node's hash"}, {`{"hash":"x",` + typ + `,"payload":1,"timestamp":1}`, "hash: not a node's hash"},
	} {
		if h, _, n, err := DecodeLine([]byte(tt.text)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: read as %s, %#v, %v; want %s", tt.text, h, n, err, tt.want)
		}
	}
	for _, n := range []Node{{Type: "x"}, {Type: String, Timestamp: -1}, {Type: String, Timestamp: 1 << 53}, {Type: String, Payload: math.NaN()}} {
		if b, err := EncodeFile(n); err == nil {
			t.Errorf("%#v: written as %s", n, b)
		}
		if b, err := EncodeLine(String, "", n); err == nil {
			t.Errorf("%#v: written as %s", n, b)
		}
	}
	// Six bytes for each character: a payload of an allowed size, a file that is not.
	large := Node{Type: String, Payload: strings.Repeat("\x01", MaxFile/6)}
	if _, err := EncodeFile(large); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a file beyond MaxFile: %v", err)
	}
	if _, err := EncodeLine(String, "", large); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a line beyond MaxFile: %v", err)
	}
	if _, err := EncodeLine(String, "x", Node{Type: String}); !errors.Is(err, ErrInvalidHash) {
		t.Errorf("of a record without a hash: %v", err)
	}
	if _, _, _, err := DecodeLine([]byte(`{"hash":"7VQ43ZSJTEWA7","of":"x","type":"7VQ43ZSJTEWA7","payload":"x","timestamp":1}`)); !errors.Is(err, ErrInvalidHash) {
		t.Errorf("of a record without a hash is read: %v", err)
	}
	if _, err := EncodeLine("x", "", Node{Type: String}); !errors.Is(err, ErrInvalidHash) {
		t.Errorf("a line of no hash: %v", err)
	}
}

// TestNoPayload: what no payload can hold is nowhere taken for null.
func TestNoPayload(t *testing.T) {
	for name, do := range map[string]func(any) error{
		"CBOR":       func(v any) error { _, err := EncodeCBOR(v); return err },
		"JSON":       func(v any) error { _, err := FormatJSON(v); return err },
		"hash":       func(v any) error { _, err := HashOf(String, v); return err },
		"own type":   func(v any) error { _, err := SelfHash(v); return err },
		"sum":        func(v any) error { _, err := Node{Type: String, Payload: v}.Sum(); return err },
		"new":        func(v any) error { _, _, err := New(String, v, time.UnixMilli(1)); return err },
		"node":       func(v any) error { return Verify(String, Node{Type: String, Payload: v}) },
		"new schema": func(v any) error { _, err := Node{Type: MetaSchema, Payload: v}.ComputeHash(); return err },
	} {
		if err := do(math.NaN()); !errors.Is(err, ErrPayload) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := HashOf("x", nil); !errors.Is(err, ErrInvalidHash) {
		t.Errorf("a hash under no type: %v", err)
	}
	if _, _, err := New("x", nil, time.UnixMilli(1)); !errors.Is(err, ErrInvalidHash) {
		t.Errorf("a node of no type: %v", err)
	}
}

func TestText(t *testing.T) {
	for _, tt := range []struct {
		in   any
		want string
	}{
		{"a b", "a b"}, {nil, "null"}, {1.0, "1"}, {[]any{1, "x"}, `[1,"x"]`},
		{map[string]any{"bb": 1, "c": []any{}}, `{"c":[],"bb":1}`},
	} {
		if got := Text(tt.in); got != tt.want {
			t.Errorf("Text(%v) = %s, want %s", tt.in, got, tt.want)
		}
	}
}

func TestDecodeCBORRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ hex, want string }{
		"nothing": {"", "EOF"}, "two items": {"0101", "more than one item"}, "cut off": {"6261", "unexpected EOF"}, "byte string": {"4161", "a Go []uint8"},
		"tag": {"c001", "tag"}, "key that is no text": {"a10102", "cannot unmarshal"}, "duplicate key": {"a2616101616102", "duplicate map key"},
		"invalid UTF-8": {"61ff", "invalid UTF-8"}, "NaN": {"fb7ff8000000000000", "NaN"}, "half infinity": {"f97c00", "infinity"},
		"integer beyond 64 bits": {"1bffffffffffffffff", "cannot unmarshal"}, "undefined": {"f7", "simple value"}, "simple value": {"f0", "simple value"},
		"break": {"ff", "break"}, "indefinite list": {"9f01ff", "indefinite"}, "too deep": {strings.Repeat("81", MaxDepth+1) + "00", "nested"},
	} {
		b, err := hex.DecodeString(tt.hex)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := DecodeCBOR(b); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: read as %#v, %v; want %s", name, v, err, tt.want)
		}
	}
	if _, err := DecodeCBOR(make([]byte, MaxFile+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("beyond MaxFile: %v", err)
	}
}
