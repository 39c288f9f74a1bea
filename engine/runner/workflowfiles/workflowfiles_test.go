package workflowfiles

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
		"new":        {func(t *testing.T, dir string) { write(t, dir, folder+"/new.yml", "on: push") }, "new.yml"},
		"changed":    {func(t *testing.T, dir string) { write(t, dir, folder+"/ci.yml", "changed") }, "ci.yml"},
		"removed":    {func(t *testing.T, dir string) { must(t, os.RemoveAll(filepath.Join(dir, ".github"))) }, "ci.yml"},
		"link out": {func(t *testing.T, dir string) {
			must(t, os.Symlink(secret, filepath.Join(dir, folder, "link.yml")))
		}, "link.yml"},
		"folder is a link": {func(t *testing.T, dir string) {
			must(t, os.RemoveAll(filepath.Join(dir, ".github")))
			must(t, os.Symlink(outside, filepath.Join(dir, ".github")))
		}, folder},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, folder+"/ci.yml", "as it was")
			watch := Look(dir)
			c.change(t, dir)
			err := watch.Check("x")
			if c.paths == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var changed *ChangedError
			if !errors.As(err, &changed) || !strings.Contains(strings.Join(changed.Paths, " "), c.paths) || strings.Contains(err.Error(), "precious") {
				t.Fatalf("the error is %v", err)
			}
			if b, err := os.ReadFile(secret); err != nil || string(b) != "precious" {
				t.Errorf("a file outside is %q now: %v", b, err)
			}
			if name == "folder is a link" {
				return // it can't be put back; the push is not tried
			}
			if now, err := read(dir); err != nil || len(now) != 1 || now[folder+"/ci.yml"] != "as it was" {
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
