package node

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// linked is a type whose nodes refer to others.
func linked(t *testing.T) (Map, Hash) {
	t.Helper()
	m := Map{}
	schema := add(t, m, MetaSchema, map[string]any{"type": "object", "properties": map[string]any{
		"see": map[string]any{"type": "array", "items": map[string]any{"type": "string", "format": "ocas_ref"}},
	}})
	return m, schema
}

func add(t *testing.T, m Map, typ Hash, payload any) Hash {
	t.Helper()
	h, err := HashOf(typ, payload)
	if err != nil {
		t.Fatal(err)
	}
	m[h] = Node{Type: typ, Payload: payload}
	return h
}

func digestOf(t *testing.T, m Map, h Hash) Digest {
	t.Helper()
	c := Closure{Schemas: &Schemas{}, Getter: m}
	d, err := c.ComputeDigest(h)
	if err != nil || !d.Valid() {
		t.Fatalf("%q, %v", d, err)
	}
	return d
}

// Whatever is exchanged below a node, its digest is another one, though all hashes stay.
func TestDigestSeesEverything(t *testing.T) {
	m, schema := linked(t)
	leaf := add(t, m, String, "leaf")
	middle := add(t, m, schema, map[string]any{"see": []any{string(leaf)}})
	root := add(t, m, schema, map[string]any{"see": []any{string(middle), string(leaf)}})
	before := digestOf(t, m, root)
	if again := digestOf(t, m, root); again != before {
		t.Errorf("%s, then %s", before, again)
	}
	sum, err := m[leaf].Sum()
	if err != nil || digestOf(t, m, leaf) != sum {
		t.Errorf("a text's digest is not its Sum: %v", err)
	}
	// The stand-ins have other content under the same names: the check of hashes is
	// what package collide passes, and is left out here.
	seen := map[Digest]string{before: "nothing"}
	for name, change := range map[string]func(m Map){
		"leaf":   func(m Map) { m[leaf] = Node{Type: String, Payload: "another"} },
		"schema": func(m Map) { m[schema] = Node{Type: MetaSchema, Payload: map[string]any{}} },
	} {
		other := Map{}
		for h, n := range m {
			other[h] = n
		}
		change(other)
		own, err := other[root].Sum()
		if err != nil {
			t.Fatal(err)
		}
		refs := []Hash{middle, leaf}
		d, err := other[root].Closed(own, refs, func(h Hash) (Digest, error) {
			if h == middle {
				sum, err := other[middle].Sum()
				if err != nil {
					return "", err
				}
				return other[middle].Closed(sum, []Hash{leaf}, func(h Hash) (Digest, error) { return other[h].Sum() })
			}
			return other[h].Sum()
		})
		if err != nil || seen[d] != "" {
			t.Errorf("%s exchanged: the digest is that of %s, %v", name, seen[d], err)
		}
		seen[d] = name
	}
	// A node that counts alone is not followed.
	c := Closure{Schemas: &Schemas{}, Getter: m, Alone: func(typ Hash) bool { return typ == schema }}
	sum, err = m[root].Sum()
	if d, derr := c.ComputeDigest(root); err != nil || derr != nil || d != sum || len(c.Nodes) != 1 {
		t.Errorf("%s, %v: %d nodes", d, derr, len(c.Nodes))
	}
}

func TestDigestRefuses(t *testing.T) {
	broken := errors.New("broken")
	for name, tt := range map[string]struct {
		root func(t *testing.T, m Map, schema Hash) Hash
		want error
		says string
	}{
		"nothing there": {func(*testing.T, Map, Hash) Hash { return "0000000000000" }, ErrNotFound, "0000000000000"},
		"a reference to nothing": {func(t *testing.T, m Map, schema Hash) Hash {
			return add(t, m, schema, map[string]any{"see": []any{"0000000000000"}})
		}, ErrNotFound, "referred to by "},
		"under another's name": {func(t *testing.T, m Map, _ Hash) Hash {
			h := add(t, m, String, "one")
			m[h] = Node{Type: String, Payload: "two"}
			return h
		}, ErrWrongHash, "it is stored as"},
		"no node of its type": {func(t *testing.T, m Map, schema Hash) Hash {
			return add(t, m, schema, map[string]any{"see": int64(1)})
		}, nil, "does not fit its schema"},
		"of a type that is nowhere": {func(t *testing.T, m Map, _ Hash) Hash { return add(t, m, "0000000000001", "x") }, ErrNotFound, "fetch the schema 0000000000001"},
		"of a type that is none":    {func(t *testing.T, m Map, _ Hash) Hash { return add(t, m, add(t, m, String, "x"), "x") }, ErrNotSchema, ""},
		"too deep": {func(t *testing.T, m Map, schema Hash) Hash {
			h := add(t, m, String, "leaf")
			for range maxDeep {
				h = add(t, m, schema, map[string]any{"see": []any{string(h)}})
			}
			return h
		}, ErrCircle, "or deeper than 10000"},
	} {
		t.Run(name, func(t *testing.T) {
			m, schema := linked(t)
			c := Closure{Schemas: &Schemas{}, Getter: m}
			_, err := c.ComputeDigest(tt.root(t, m, schema))
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v", err)
			}
		})
	}
	// Hashes can be made so that nodes refer to one another in a circle.
	m, schema := linked(t)
	h := add(t, m, schema, map[string]any{})
	c := Closure{Schemas: &Schemas{}, Getter: m, busy: map[Hash]bool{h: true}, digests: map[Hash]Digest{}}
	if _, err := c.ComputeDigest(h); !errors.Is(err, ErrCircle) {
		t.Errorf("a circle: %v", err)
	}
	if _, err := (Node{Type: String}).Closed("", []Hash{"0000000000000"}, func(Hash) (Digest, error) { return "", broken }); !errors.Is(err, broken) {
		t.Errorf("a digest that is not known: %v", err)
	}
	for _, n := range []Node{{Type: "x"}, {Type: String, Payload: func() {}}} {
		if _, err := n.Sum(); err == nil {
			t.Errorf("%v has a Sum", n)
		}
	}
}

// The name of a type is not the type: two places may have two under one.
func TestSchemasOfOneHash(t *testing.T) {
	var c Schemas
	m, _ := linked(t)
	typ := add(t, m, MetaSchema, map[string]any{"type": "string"})
	n := Node{Type: typ, Payload: "x"}
	if err := c.CheckNode(m, n); err != nil {
		t.Fatal(err)
	}
	other := add(t, m, MetaSchema, map[string]any{"type": "string", "title": "x"})
	strict := add(t, m, MetaSchema, map[string]any{"type": "string", "maxLength": int64(0)})
	c.m[other] = append(c.m[other], c.m[typ]...) // what another place has under that name
	if s := c.findSchema(other, m[other].Payload); s != nil {
		t.Error("the schema of another place was taken")
	}
	if err := c.CheckNode(m, Node{Type: strict, Payload: "x"}); err == nil {
		t.Error("a text that is too long fits")
	}
	// Nothing stands for what is built in.
	if err := c.CheckNode(Map{String: {Type: MetaSchema, Payload: map[string]any{}}}, Node{Type: String, Payload: int64(1)}); err == nil {
		t.Error("the schema of texts was replaced")
	}
}

func TestPin(t *testing.T) {
	digest := Digest(strings.Repeat("0a", 32))
	for _, p := range []Pin{{Hash: String}, {Hash: String, Digest: digest}} {
		if got, err := ParsePin(p.String()); err != nil || got != p {
			t.Errorf("%s is read as %v, %v", p, got, err)
		}
	}
	for text, want := range map[string]error{
		"": ErrInvalidHash, "x": ErrInvalidHash, "x@sha256:" + string(digest): ErrInvalidHash,
		string(String) + "@sha256:":                                       ErrInvalidPin,
		string(String) + "@sha256:" + strings.ToUpper(string(digest)):     ErrInvalidPin,
		string(String) + "@sha256:" + string(digest[1:]):                  ErrInvalidPin,
		string(String) + "@sha256:" + string(digest[1:]) + "g":            ErrInvalidPin,
		fmt.Sprintf("%s@sha256:%s@sha256:%s", String, digest, digest):     ErrInvalidPin,
		string(String) + "@md5:" + string(digest):                         ErrInvalidHash,
		string(String) + " ":                                              ErrInvalidHash,
		string(String) + "@sha256:" + strings.Repeat("0", 64) + "\n":      ErrInvalidPin,
		string(String) + "@sha256:/" + strings.Repeat("0", digestLen-1):   ErrInvalidPin,
		string(String) + "@sha256:" + strings.Repeat("0", digestLen) + "": nil,
	} {
		if _, err := ParsePin(text); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", text, err, want)
		}
	}
}

// TestWrittenCanBeRead: what is stored at the limits is read again, in a file and in a
// line, and is the same.
func TestWrittenCanBeRead(t *testing.T) {
	nested := func(levels int, inner any) any {
		for range levels {
			inner = []any{inner}
		}
		return inner
	}
	numbers := func(n int) any {
		list := make([]any, n)
		for i := range list {
			list[i] = int64(i)
		}
		return list
	}
	written := 0
	for name, payloads := range map[string]func(int) any{
		"nested":  func(i int) any { return nested(MaxDepth-5+i, "x") },
		"numbers": func(i int) any { return numbers(MaxValues - 10 + i) },
		"texts":   func(i int) any { return strings.Repeat("x", MaxSize-100+10*i) },
		"objects": func(i int) any { return nested(MaxDepth-6+i, map[string]any{"a": "x"}) },
	} {
		for i := range 12 {
			n := Node{Type: String, Payload: payloads(i)}
			h, err := n.ComputeHash()
			if err != nil {
				continue // too large by itself
			}
			file, err := EncodeFile(n)
			line, lerr := EncodeLine(h, h, n)
			if (err == nil) != (lerr == nil) {
				t.Errorf("%s %d: %v, %v", name, i, err, lerr)
			}
			if err != nil {
				continue
			}
			written++
			again, err := DecodeFile(file)
			if err == nil {
				err = Verify(h, again)
			}
			_, _, again, lerr = DecodeLine(line)
			if lerr == nil {
				lerr = Verify(h, again)
			}
			if err != nil || lerr != nil {
				t.Errorf("%s %d was written and can't be read: %v, %v", name, i, err, lerr)
			}
		}
	}
	if written < 12 {
		t.Errorf("only %d were written", written)
	}
}
