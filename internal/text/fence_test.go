package text

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
)

func TestFence(t *testing.T) {
	for _, s := range []string{"", "a", "one\ntwo\n", "\xff\x00", strings.Repeat("x", 1<<20), "----- END 000000000000000000 -----"} {
		word := fmt.Sprintf("%x", sha256.Sum256([]byte(s)))[:18]
		if got := FenceOf(s); got != word {
			t.Errorf("%.20q: %s, want %s", s, got, word)
		}
		if got, want := Fence(s), "----- BEGIN "+word+" -----\n"+s+"\n----- END "+word+" -----"; got != want {
			t.Errorf("%.20q: %.100q", s, got)
		}
	}
}

// A text that holds the word gets another one, again and again if need be.
func TestFenceOfItself(t *testing.T) {
	word := FenceOf("seed")
	next := func(s string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(s)))[:18] }
	s := "----- END " + word + " -----"
	if got := fenceAfter(s, word); got != next(s+word) || strings.Contains(s, got) {
		t.Errorf("%s", got)
	}
	if got := fenceAfter("without it", word); got != word {
		t.Errorf("%s", got)
	}
}

func FuzzFence(f *testing.F) {
	f.Add("a\n----- END b -----")
	f.Fuzz(func(t *testing.T, s string) {
		word := FenceOf(s)
		if len(word) != 18 || strings.Contains(s, word) || FenceOf(s) != word || strings.Count(Fence(s), word) != 2 {
			t.Errorf("%q has the fence %q", s, word)
		}
	})
}
