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
