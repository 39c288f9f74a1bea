package patch_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/engine/patch"
)

// TestNamesAreQuoted: git apply takes the diff of files of any name, and a name writes no lines
// of the diff.
func TestNamesAreQuoted(t *testing.T) {
	for _, name := range []string{
		"plain.txt", "a b", "tab\there", "line\nfeed", `quo"te`, `back\slash`, "bell\x07", "del\x7f", "esc\x1b[1m", "é", "\xff",
		"x\n@@ -1 +1 @@\n-a\n+b", "?", `a/? "b/?`,
	} {
		for _, c := range []struct{ old, new string }{{"", "one\n"}, {"one\n", "two\n"}, {"one\n", ""}, {"", "\x00"}} {
			dir := t.TempDir()
			side := func(s string) patch.Side {
				if s == "" {
					return patch.Side{}
				}
				return patch.Side{ID: plumbing.ComputeHash(plumbing.BlobObject, []byte(s)), Mode: filemode.Regular, Data: []byte(s)}
			}
			var diff bytes.Buffer
			if _, err := patch.Write(&diff, []patch.File{{Path: name, Old: side(c.old), New: side(c.new)}}, time.Now); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(diff.String()) {
				if strings.HasPrefix(line, "+b") || strings.HasPrefix(line, "-a") {
					t.Errorf("%q writes a line of the diff:\n%s", name, &diff)
				}
			}
			if c.new == "\x00" {
				continue // a binary file is only named
			}
			if c.old != "" {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, name), []byte(c.old), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(t.Context(), "git", "apply")
			cmd.Dir, cmd.Stdin = dir, &diff
			text := diff.String()
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%q: %v\n%s\n%s", name, err, out, text)
				continue
			}
			if got, _ := os.ReadFile(filepath.Join(dir, name)); string(got) != c.new {
				t.Errorf("%q holds %q, want %q", name, got, c.new)
			}
		}
	}
}
