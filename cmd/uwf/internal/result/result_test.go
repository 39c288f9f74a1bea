package result

import (
	"strings"
	"testing"

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
