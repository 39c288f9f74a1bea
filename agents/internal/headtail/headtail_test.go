package headtail

import (
	"errors"
	"strings"
	"testing"
)

func TestBuffer(t *testing.T) {
	for _, tt := range []struct {
		writes []string
		want   string
	}{
		{nil, ""},
		{[]string{"abc"}, "abc\n"},
		{[]string{"abc\n", "de"}, "abc\nde\n"},
		{[]string{"abcd", "efgh"}, "abcdefgh\n"},
		{[]string{"abcd", "X", "efgh\n"}, "abcd\n[… 2 bytes left out …]\nfgh\n"},
		{[]string{"ab", "cdXXXXef", "gh"}, "abcd\n[… 4 bytes left out …]\nefgh\n"},
		{[]string{"a\xffb\x00"}, "a\uFFFDb\uFFFD\n"},
	} {
		b := &Buffer{Half: 4}
		for _, w := range tt.writes {
			if n, err := b.Write([]byte(w)); n != len(w) || err != nil {
				t.Errorf("%q: %d, %v", tt.writes, n, err)
			}
		}
		if got := b.String(); got != tt.want {
			t.Errorf("%q became %q, want %q", tt.writes, got, tt.want)
		}
	}
	b, line := &Buffer{Half: 4}, []byte(strings.Repeat("x", MaxPrinted/64))
	for range 64 {
		if _, err := b.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Write(line[:1]); !errors.Is(err, ErrTooMuch) {
		t.Errorf("past the bound: %v", err)
	}
}

func TestTail(t *testing.T) {
	e := &Tail{Keep: 8}
	for range 100 {
		_, _ = e.Write([]byte("0123456789"))
	}
	if e.String() != "23456789" || len(e.end) > 32 {
		t.Errorf("%q of %d bytes", e, len(e.end))
	}
	e = &Tail{Keep: 100}
	_, _ = e.Write([]byte("\n\x1b[2Jgone\xff\n\n"))
	if said := e.String(); strings.ContainsRune(said, 0x1b) || strings.ToValidUTF8(said, "") != said || !strings.HasSuffix(said, "gone") {
		t.Errorf("%q", said)
	}
}
