package result

import (
	"path"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/gitcas/workspace"
)

// obeyedFiles are files that a shell, an editor, git, a package manager, an agent or CI obeys
// without being told to, by name or by the end of a path; a folder ends in a slash. Sources:
// the programs' own documentation.
func obeyedFiles() []string {
	return []string{
		".envrc", ".mise.toml", "mise.toml", ".tool-versions", // direnv, mise, asdf: at cd
		".vscode/", ".idea/", ".zed/", ".nvim.lua", ".exrc", ".dir-locals.el", ".devcontainer/", ".devcontainer.json", ".editorconfig", // editors: when the folder is opened
		".gitattributes", ".gitmodules", ".husky/", ".githooks/", "lefthook.yml", ".pre-commit-config.yaml", // git: at the next commit or checkout
		".npmrc", ".yarnrc.yml", ".pnpmfile.cjs", ".cargo/config.toml", "build.rs", "go.work", "conftest.py", "sitecustomize.py", ".bazelrc", // tools: at the next build
		".claude/", ".codex/", ".cursor/", ".gemini/", ".qwen/", ".opencode/", ".mcp.json", "CLAUDE.md", "AGENTS.md", "GEMINI.md", // agents
		".github/workflows/", ".github/actions/", ".gitea/workflows/", ".forgejo/workflows/", ".gitlab-ci.yml", ".uwf/", ".workflow/", ".workflows/", // jobs: after a push
	}
}

// isObeyed says whether something obeys the file at a path by itself.
func isObeyed(name string) bool {
	lower := "/" + strings.ToLower(name)
	return slices.ContainsFunc(obeyedFiles(), func(o string) bool {
		o = "/" + strings.ToLower(o)
		return strings.HasSuffix(o, "/") && strings.Contains(lower, o) || strings.HasSuffix(lower, o)
	})
}

// findObeyed are the changed files that run by themselves, or say what runs. A script that is
// in package.json is one as soon as it has a name that npm calls by itself; so the file counts.
func findObeyed(changes []workspace.Change) (out []string) {
	for _, c := range changes {
		if c.Kind != workspace.Deleted && (isObeyed(c.Path) || path.Base(c.Path) == "package.json") {
			out = append(out, c.Path)
		}
	}
	return out
}
