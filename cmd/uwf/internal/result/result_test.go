package result

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/workspace"
)

func TestObeyed(t *testing.T) {
	for name, want := range map[string]bool{
		".envrc": true, "sub/.envrc": true, ".vscode/tasks.json": true, "app/.VSCode/Tasks.json": true, ".github/workflows/ci.yml": true,
		".uwf/config.yaml": true, "CLAUDE.md": true, "x/AGENTS.md": true, ".cargo/config.toml": true, ".gitattributes": true, "build.rs": true,
		"main.go": false, "vscode/tasks.json": false, "docs/envrc": false, "my.envrc.md": false, "src/build.rs.txt": false, ".github/ISSUE.md": false,
	} {
		if got := isObeyed(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	got := findObeyed([]workspace.Change{{Path: "a/package.json"}, {Path: ".envrc", Kind: workspace.Deleted}, {Path: "x.go"}, {Path: ".npmrc"}})
	if strings.Join(got, " ") != "a/package.json .npmrc" {
		t.Errorf("%q", got)
	}
}

// A folder that can't be written: it is said, and what could be done is kept.
func TestReadOnly(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("nothing is read-only for root")
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "locked"), 0o500); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	p := &plan{}
	p.setFile("a", here{filemode.Regular, []byte("a")})
	p.setFile("locked/b", here{filemode.Regular, []byte("b")})
	if err := p.carryOut(root); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Error(err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "a")); err != nil || string(b) != "a" {
		t.Errorf("%q, %v", b, err)
	}
}
