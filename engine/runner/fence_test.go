package runner

import (
	"bytes"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/thread"
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

// Changes of workflow files are found and taken back, whatever the agent made there.
func TestWorkflowFiles(t *testing.T) {
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(t *testing.T, dir string)
		paths  string // empty: nothing that matters
	}{
		"nothing":    {func(*testing.T, string) {}, ""},
		"other file": {func(t *testing.T, dir string) { write(t, dir, "src.go", "x") }, ""},
		"new":        {func(t *testing.T, dir string) { write(t, dir, workflowFolder+"/new.yml", "on: push") }, "new.yml"},
		"changed":    {func(t *testing.T, dir string) { write(t, dir, workflowFolder+"/ci.yml", "changed") }, "ci.yml"},
		"removed":    {func(t *testing.T, dir string) { must(t, os.RemoveAll(filepath.Join(dir, ".github"))) }, "ci.yml"},
		"link out": {func(t *testing.T, dir string) {
			must(t, os.Symlink(secret, filepath.Join(dir, workflowFolder, "link.yml")))
		}, "link.yml"},
		"folder is a link": {func(t *testing.T, dir string) {
			must(t, os.RemoveAll(filepath.Join(dir, ".github")))
			must(t, os.Symlink(outside, filepath.Join(dir, ".github")))
		}, workflowFolder},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, workflowFolder+"/ci.yml", "as it was")
			watch := watchWorkflows(dir)
			c.change(t, dir)
			err := watch.check(thread.Task{Agent: "x"})
			if c.paths == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var changed *WorkflowFilesError
			if !errors.As(err, &changed) || !strings.Contains(strings.Join(changed.Paths, " "), c.paths) || strings.Contains(err.Error(), "precious") {
				t.Fatalf("the error is %v", err)
			}
			if b, err := os.ReadFile(secret); err != nil || string(b) != "precious" {
				t.Errorf("a file outside is %q now: %v", b, err)
			}
			if name == "folder is a link" {
				return // it can't be put back; the push is not tried
			}
			if now, err := readWorkflows(dir); err != nil || len(now) != 1 || now[workflowFolder+"/ci.yml"] != "as it was" {
				t.Errorf("the files are %v now: %v", now, err)
			}
		})
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
