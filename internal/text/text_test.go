package text

import (
	"math"
	"testing"
	"time"
)

func TestCut(t *testing.T) {
	for _, c := range []struct {
		in   string
		n    int
		want string
	}{
		{"abcdef", 6, "abcdef"}, {"abcdefg", 6, "abc…"}, {"üüü", 6, "üüü"}, {"üüüü", 6, "ü…"}, {"abcd", 3, "…"}, {"", 3, ""}, {"\xff\xff\xff\xff", 3, "…"},
	} {
		if got := Cut(c.in, c.n); got != c.want {
			t.Errorf("%q to %d bytes: %q, want %q", c.in, c.n, got, c.want)
		}
	}
}

func TestDollars(t *testing.T) {
	for _, c := range []struct {
		usd      float64
		unpriced bool
		want     string
	}{
		{0, false, "$0.00"}, {0, true, "cost unknown"}, {0.01234, false, "$0.0123"}, {0.01234, true, "at least $0.0123"},
		{0.00001, false, "$0.0001"}, {0.00001, true, "at least $0.0001"}, {1234.5, false, "$1234.5000"},
		{-1, false, "$0.00"}, {-1, true, "cost unknown"}, {math.NaN(), false, "$0.00"}, {math.NaN(), true, "cost unknown"},
	} {
		if got := Dollars(c.usd, c.unpriced); got != c.want {
			t.Errorf("%v, %v: %q, want %q", c.usd, c.unpriced, got, c.want)
		}
	}
}

func TestTime(t *testing.T) {
	east := time.Date(2026, time.June, 4, 1, 2, 3, 999, time.FixedZone("", 2*60*60))
	if got := Time(east); got != "2026-06-03 23:02:03 UTC" {
		t.Errorf("%v is %q", east, got)
	}
}

func TestPlural(t *testing.T) {
	for n, want := range map[int]string{0: "0 steps", 1: "1 step", 2: "2 steps"} {
		if got := Plural(n, "step"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestShellWord(t *testing.T) {
	for in, want := range map[string]string{
		"": "''", "a/b.git": "a/b.git", "https://h:1/a@b": "https://h:1/a@b", "a b": "'a b'", "it's": `'it'\''s'`, "$(id)": "'$(id)'", "~x": "'~x'", "a\nb": "'a\nb'",
	} {
		if got := ShellWord(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

func TestTook(t *testing.T) {
	for ms, want := range map[int64]string{0: "0s", 1_249: "1.2s", 7_200_000: "2h0m0s"} {
		if got := Took(ms); got != want {
			t.Errorf("%d ms are %q, want %q", ms, got, want)
		}
	}
}
