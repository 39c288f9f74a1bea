// Package agentclitest has agent CLIs for tests that cannot install the real ones: programs
// that take the flags of Claude Code, Codex, Copilot, opencode, Qwen Code and Gemini CLI, ask a
// model over HTTP as they do, run its commands, keep sessions in HOME, print the same lines, end
// with the same codes, and obey what a workspace plants for them where nothing holds them back.
// They do not try again where the model refuses, for which some of the real ones take minutes.
// What they answer was seen in runs of the real ones, which are kept below agents/cli/testdata
// and compared with the fakes' in the tests of agents/cli. Nothing that ships imports it.
package agentclitest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// fakes are what Install installs, by the program's name.
var fakes = map[string]struct {
	pkg, file, version string
	run                func()
}{
	"claude":   {"@anthropic-ai/claude-code", "bin/claude.exe", claudeVersion, runClaude},
	"codex":    {"@openai/codex", "bin/codex.js", codexVersion, runCodex},
	"copilot":  {"@github/copilot", "npm-loader.js", copilotVersion, runCopilot},
	"opencode": {"opencode-ai", "bin/opencode", openCodeVersion, runOpenCode},
	"qwen":     {"@qwen-code/qwen-code", "cli.js", qwenVersion, runQwen},
	"gemini":   {"@google/gemini-cli", "bundle/gemini.js", geminiVersion, runGemini},
}

// Programs are what a package's TestMain gives to testscript.Main, or clitest.Main, for
// Install to work.
func Programs() map[string]func() {
	all := map[string]func(){}
	for name, f := range fakes {
		all["fake-"+name] = f.run
	}
	return all
}

// Install makes a folder as npm would, and returns its node_modules/.bin.
func Install(t testing.TB, dir string) string {
	t.Helper()
	bin := filepath.Join(dir, "node_modules/.bin")
	if err := os.MkdirAll(bin, 0o755); err != nil { //nolint:gosec // other users run it
		t.Fatal(err)
	}
	for name, f := range fakes {
		program, err := exec.LookPath("fake-" + name)
		if err != nil {
			t.Fatalf("%v: TestMain has to run Programs", err)
		}
		pkg := filepath.Join(dir, "node_modules", filepath.FromSlash(f.pkg))
		for file, text := range map[string]string{
			filepath.Join(pkg, "package.json"): fmt.Sprintf("{\"name\":%q,\"version\":%q}\n", f.pkg, f.version),
			filepath.Join(pkg, f.file):         fmt.Sprintf("#!/bin/sh\nexec '%s' \"$@\"\n", program),
		} {
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // as above
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o755); err != nil { //nolint:gosec // a program
				t.Fatal(err)
			}
		}
		if err := os.Symlink(filepath.Join(pkg, f.file), filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	return bin
}
