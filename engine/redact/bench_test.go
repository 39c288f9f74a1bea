package redact_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/redact"
)

// One pass over ordinary text: a log, source code, JSON with escapes.
func BenchmarkString(b *testing.B) {
	var known []redact.Secret
	for i := range 50 {
		known = append(known, redact.Secret{Name: fmt.Sprintf("TOKEN_%d", i), Value: fmt.Sprintf("%x-%dAz%x", i*7919, i, i*104729+1_000_003)})
	}
	r := newRedactor(b, redact.Options{Secrets: known})
	line := "2026-06-04T10:00:00Z INFO developer: edited internal/lock/lock.go (3 hunks), go test ./... ok 1.234s\n"
	quoted, err := json.Marshal(strings.Repeat(line, 1<<14))
	if err != nil {
		b.Fatal(err)
	}
	source := "\tif err := s.x.try(b[at:], &literals[n]); err != nil && n < 100 { // 12:34 or 0x1f, 100% of it\n\t\treturn fmt.Errorf(\"try %q: %w\", name, err)\n\t}\n"
	for name, text := range map[string]string{
		"log": strings.Repeat(line, 1<<14), "json": string(quoted), "oneline": strings.Repeat(line[:len(line)-1], 1<<14),
		"source": strings.Repeat(source, 1<<13), "diff": strings.Repeat("+"+strings.ReplaceAll(source, "\n\t", "\n-\t"), 1<<13),
		"dump": hex.Dump([]byte(strings.Repeat(line, 1<<12))), "binary": strings.Repeat("\x00\x01\x02\x7f\xff some\x00text\x00\x00\x00", 1<<16),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for range b.N {
				if _, n := r.String(text); n != 0 {
					b.Fatal("found something")
				}
			}
		})
	}
}

func BenchmarkWriter(b *testing.B) {
	r := newRedactor(b, redact.Options{Secrets: secretsOf(values())})
	line := []byte("2026-06-04T10:00:00Z INFO developer: edited internal/lock/lock.go (3 hunks), go test ./... ok 1.234s\n")
	w := r.NewWriter(io.Discard)
	b.SetBytes(int64(len(line)))
	for range b.N {
		if _, err := w.Write(line); err != nil {
			b.Fatal(err)
		}
	}
}
