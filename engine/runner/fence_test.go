package runner

import (
	"bytes"
	"crypto/rand"
	"errors"
	"regexp"
	"strings"
	"testing"
)

// What an agent prints stands between two lines with a word that it can't know; each
// block has a word of its own.
func TestFence(t *testing.T) {
	var b bytes.Buffer
	f := NewFence(&b, rand.Reader)
	for _, s := range []string{"::error::mine\n", "##[set-env name=X]y", ""} {
		if _, err := f.Write([]byte(s)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(f.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	b.WriteString("::notice::ours\n")
	_, _ = f.Write([]byte("again\n"))
	_ = f.Close()
	block := regexp.MustCompile(`(?s)^::stop-commands::(uwf-[0-9a-f]{40})\n::error::mine\n##\[set-env name=X\]y\n::(uwf-[0-9a-f]{40})::\n::notice::ours\n::stop-commands::(uwf-[0-9a-f]{40})\nagain\n::(uwf-[0-9a-f]{40})::\n$`)
	m := block.FindStringSubmatch(b.String())
	if m == nil || m[1] != m[2] || m[3] != m[4] || m[1] == m[3] {
		t.Errorf("the log is %q", b.String())
	}
}

// Without a random word nothing is printed.
func TestFenceNeedsChance(t *testing.T) {
	var b bytes.Buffer
	if _, err := NewFence(&b, strings.NewReader("short")).Write([]byte("::error::x\n")); err == nil || b.Len() > 0 {
		t.Errorf("printed %q: %v", b.String(), err)
	}
}
