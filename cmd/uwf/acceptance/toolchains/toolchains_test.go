// Package toolchains tries projects of many languages as people have them: a command installs
// what they need before the agent works, and a confined check runs their tests. One test of each
// listens on loopback, and one uses a pool of processes or threads.
package toolchains

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
	"github.com/united-workforce/uwf/internal/removal"
	"golang.org/x/tools/txtar"
)

// variable asks for the table; installing takes minutes, and the network.
const variable = "UWF_TOOLCHAINS"

func TestMain(m *testing.M) { clitest.Main(m, nil) }

// folders are variables by which people move what their tools keep. Agents can't write it.
var folders = [...]string{
	"BUNDLE_PATH", "BUN_INSTALL", "CARGO_HOME", "COMPOSER_HOME", "COREPACK_HOME", "DENO_DIR", "GEM_HOME", "GOMODCACHE", "GOPATH", "GRADLE_USER_HOME", "HEX_HOME",
	"MIX_HOME", "PIP_CACHE_DIR", "PNPM_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "YARN_CACHE_FOLDER", "npm_config_cache",
}

const flow = `name: one
description: A developer, whose work is tested.
roles:
  dev: {description: d, goal: g, capabilities: [], procedure: p, output: o, checks: [test], frontmatter: {type: object, properties: {$status: {const: done}}, required: [$status]}}
graph:
  $START: {_: {role: dev, prompt: begin}}
  dev: {done: {role: $END, prompt: bye}}
`

const script = `steps:
  - role: dev
    write: {made-by-the-agent.txt: "done\n"}
    output: "---\n$status: done\n---\n"
`

// TestToolchains runs each project of testdata. The first line of its comment names the programs
// that it needs, and other files by their absolute paths.
func TestToolchains(t *testing.T) {
	if os.Getenv(variable) == "" {
		t.Skip("on demand: .ci/run toolchains")
	}
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("there are no projects", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		project, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			needs, _, _ := strings.Cut(string(project.Comment), "\n")
			for need := range strings.FieldsSeq(needs) {
				if !isThere(need) {
					t.Skipf("not checked: %s is not here, or where the agents' user can't go", need)
				}
			}
			runProject(t, project)
		})
	}
}

// isThere reports whether a file is there, or PATH has a program that agents can run. For root they
// are another user, who can't enter every folder, and a shell passes over those that it can't enter.
func isThere(program string) bool {
	if filepath.IsAbs(program) {
		_, err := os.Stat(program)
		return err == nil
	}
	return slices.ContainsFunc(filepath.SplitList(os.Getenv("PATH")), func(dir string) bool {
		if _, err := exec.LookPath(filepath.Join(dir, program)); err != nil {
			return false
		}
		for at := dir; at != "/" && os.Geteuid() == 0; at = filepath.Dir(at) {
			if info, err := os.Stat(at); err != nil || info.Mode().Perm()&0o001 == 0 {
				return false
			}
		}
		return true
	})
}

// runProject makes a repository of a project's files, but for settings.yaml, which is the
// person's, and runs a thread in it.
func runProject(t *testing.T, project *txtar.Archive) {
	t.Helper()
	// Not in /dev/shm, where tests' folders lie and people's repositories don't.
	dir, err := os.MkdirTemp("/var/tmp", "uwf-toolchain-*") //nolint:usetesting // for that reason
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = removal.Tree(context.WithoutCancel(t.Context()), dir, 0) })
	repo, home := filepath.Join(dir, "repo"), filepath.Join(dir, "uwf")
	files := append(project.Files, txtar.File{Name: "../flow.yaml", Data: []byte(flow)}, txtar.File{Name: "../script.yaml", Data: []byte(script)})
	for _, f := range files {
		path := filepath.Join(repo, filepath.FromSlash(f.Name))
		data := f.Data
		if f.Name == "settings.yaml" {
			path = filepath.Join(home, "config.yaml")
			data = append([]byte("sandbox: require\nconfine: {network: gateway}\n"), data...)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil { // agents are another user
		t.Fatal(err)
	}
	git(t, repo, "init", "-q", "-b", "main")
	git(t, repo, "add", "-A")
	git(t, repo, "-c", "user.name=Pat", "-c", "user.email=pat@example.com", "commit", "-q", "-m", "first")

	cmd := exec.CommandContext(t.Context(), "uwf", "run", filepath.Join(dir, "flow.yaml"), "-p", "x", "--agent", "uwf agent mock "+filepath.Join(dir, "script.yaml"), "--jq", `.steps[0].checks[]? | "\(.name) \(.status) \(.output // "")"`)
	cmd.Dir, cmd.Env = repo, append(os.Environ(), "UWF_HOME="+home, "TMPDIR="+dir)
	for _, name := range folders {
		moved := filepath.Join(dir, "person", name)
		if err := os.MkdirAll(moved, 0o755); err != nil {
			t.Fatal(err)
		}
		cmd.Env = append(cmd.Env, name+"="+moved)
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if got := strings.TrimSpace(string(out)); err != nil || !strings.HasPrefix(got, "test passed") {
		t.Errorf("%v: %s\nwant a check that passed\n%s", err, got, said.String())
	}
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}
