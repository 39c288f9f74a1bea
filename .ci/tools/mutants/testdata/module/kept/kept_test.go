package kept

import (
	"os"
	"testing"
)

func TestRead(t *testing.T) {
	for _, s := range []string{"", "-1", "101"} {
		if _, err := Read(s); err == nil {
			t.Errorf("%q was read", s)
		}
	}
}

// TestReached reaches a refusal and does not look.
func TestReached(t *testing.T) {
	_, _ = Read("13")
	if os.Getenv("MUTANTS_TEST_FAILS") != "" {
		t.Error("as asked")
	}
}

func TestWord(t *testing.T) {
	for s, want := range map[string]string{"": "empty", "-": "empty", "none": "nothing", "two": "unknown", "12345678901": "long"} {
		if _, err := Word(s); err == nil || err.Error() != want {
			t.Errorf("%q: %v", s, err)
		}
	}
}

func TestSmall(t *testing.T) {
	for n, want := range map[int]string{1: "odd", 3: "small", 7: "odd", 12: "big"} {
		if _, err := Small(n); err == nil || err.Error() != want {
			t.Errorf("%d: %v", n, err)
		}
	}
}

func TestLetters(t *testing.T) {
	for _, s := range []string{"", "12345", "a!"} {
		var r reader
		if r.read(s); r.problems == nil {
			t.Errorf("%q was read", s)
		}
	}
}

func TestLong(t *testing.T) {
	if Long(3) == nil {
		t.Error("no end")
	}
}
