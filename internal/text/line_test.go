package text

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestLine(t *testing.T) {
	for in, want := range map[string]string{
		"":                          "",
		" a \t b\r\nc\rd ":          "a b c d",
		"a\u00a0\u3000b":            "a b",
		"\x1b[31mred\a":             "\uFFFD[31mred\uFFFD",
		"c1 \u009b31m, nel \u0085x": "c1 \uFFFD31m, nel \uFFFDx",
		"\u202eevil\u2066\u200f":    "\uFFFDevil\uFFFD\uFFFD",
		"a\u2028b\u2029c":           "a\uFFFDb\uFFFDc",
		"\ufeffbom \xff byte":       "\uFFFDbom \uFFFD byte",
		"del \x7f, nul \x00":        "del \uFFFD, nul \uFFFD",
		"👩\u200d💻 ü नि":             "👩\u200d💻 ü नि", // joiners are seen
	} {
		if got := Line(in); got != want || !IsLine(got) {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
	if got, want := Lines("a\r\n\tb\rc\x1b"), "a\n\tb\nc\uFFFD"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, s := range []string{"a\n", "\t", "\xff", "\u061c"} {
		if IsLine(s) {
			t.Errorf("%q can't stand on a line as it is", s)
		}
	}
}

// Whatever a terminal may act on is unsafe, and nothing that is printed is.
func TestIsUnsafe(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		unsafe := unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control) || r == 0xfeff
		if IsUnsafe(r) != unsafe || unsafe && unicode.IsPrint(r) {
			t.Errorf("%U: %v", r, IsUnsafe(r))
		}
	}
}

func FuzzLine(f *testing.F) {
	f.Add("a\r\n\u202e\x9b\xff b")
	f.Fuzz(func(t *testing.T, s string) {
		got := Line(s)
		if !IsLine(got) || Line(got) != got || Line(Lines(s)) != got || strings.Count(Lines(s), "\n") > strings.Count(s, "\n")+strings.Count(s, "\r") || !utf8.ValidString(Lines(s)) {
			t.Errorf("%q becomes %q", s, got)
		}
	})
}
