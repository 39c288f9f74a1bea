package node

import (
	"strings"
	"testing"
	"time"
)

// benchNode is a node like a turn of an agent: 8 KB of text and a few fields.
func benchNode(b *testing.B) (Map, Node, Hash) {
	b.Helper()
	g := Map{}
	schema := mustJSON(b, `{"type":"object","required":["role","content","n"],"properties":{
		"role":{"type":"string"},"content":{"type":"string"},"n":{"type":"integer"},
		"prev":{"anyOf":[{"type":"string","format":"ocas_ref"},{"type":"null"}]}},"additionalProperties":false}`)
	typ := put(b, g, MetaSchema, schema)
	p := map[string]any{"role": "assistant", "content": strings.Repeat("some text, \"quoted\"\n", 400), "n": 7, "prev": string(typ)}
	n, h, err := New(typ, p, time.UnixMilli(1))
	if err != nil {
		b.Fatal(err)
	}
	return g, n, h
}

func BenchmarkDecodeAndVerify(b *testing.B) {
	_, n, h := benchNode(b)
	file, err := EncodeFile(n)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	for b.Loop() {
		n, err := DecodeFile(file)
		if err != nil {
			b.Fatal(err)
		}
		if err := Verify(h, n); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeFile(b *testing.B) {
	_, n, _ := benchNode(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := EncodeFile(n); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	g, n, _ := benchNode(b)
	var c Schemas
	b.ReportAllocs()
	for b.Loop() {
		if err := c.CheckNode(g, n); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	g, n, _ := benchNode(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Compile(g[n.Type].Payload); err != nil {
			b.Fatal(err)
		}
	}
}
