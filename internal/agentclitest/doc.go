// Package agentclitest has agent CLIs for tests that cannot install the real ones: programs
// that take the flags of Claude Code and Codex, ask a model over HTTP as they do, run its
// commands, keep sessions in HOME, print the same lines, end with the same codes, and obey
// what a workspace plants for them where nothing holds them back. What they answer was seen
// in runs of the real ones, which are kept below agents/cli/testdata. Nothing that ships
// imports it.
package agentclitest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// fakes are what Install installs, by the program's name.
var fakes = map[string]struct{ pkg, file, version string }{
	"claude": {"@anthropic-ai/claude-code", "bin/claude.exe", claudeVersion},
	"codex":  {"@openai/codex", "bin/codex.js", codexVersion},
}

// Programs are what a package's TestMain gives to testscript.Main, or clitest.Main, for
// Install to work.
func Programs() map[string]func() {
	return map[string]func(){"fake-claude": runClaude, "fake-codex": runCodex}
}

// Install makes a folder as npm would, and returns its node_modules/.bin. A version other
// than "" is what the packages say that they are of.
func Install(t testing.TB, dir, version string) string {
	t.Helper()
	bin := filepath.Join(dir, "node_modules/.bin")
	for name, f := range fakes {
		program, err := exec.LookPath("fake-" + name)
		if err != nil {
			t.Fatalf("%v: TestMain has to run Programs", err)
		}
		pkg := filepath.Join(dir, "node_modules", filepath.FromSlash(f.pkg))
		if version == "" {
			version = f.version
		}
		for file, text := range map[string]string{
			filepath.Join(pkg, "package.json"): fmt.Sprintf("{\"name\":%q,\"version\":%q}\n", f.pkg, version),
			filepath.Join(pkg, f.file):         fmt.Sprintf("#!/bin/sh\nexec '%s' \"$@\"\n", program),
		} {
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // other users run it
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o755); err != nil { //nolint:gosec // a program
				t.Fatal(err)
			}
		}
		if err := os.MkdirAll(bin, 0o755); err != nil { //nolint:gosec // as above
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(pkg, f.file), filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
		version = ""
	}
	return bin
}
