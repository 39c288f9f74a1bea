package agents_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/sandbox"
)

// newForeignWorld is one whose agent "environ" runs a program "tool", which lies in a package of
// npm below a folder that agents see nothing of otherwise.
func newForeignWorld(t *testing.T) (w *world, home string) {
	t.Helper()
	w = newWorld(t)
	home = t.TempDir()
	pkg := filepath.Join(home, "lib/node_modules/tool")
	bin := filepath.Join(home, ".local/bin")
	if err := errors.Join(
		os.MkdirAll(pkg, 0o755), os.MkdirAll(bin, 0o755),
		os.WriteFile(filepath.Join(pkg, "cli.sh"), []byte("#!/bin/sh\n. \"$(dirname \"$(readlink -f \"$0\")\")/part.sh\"\n"), 0o755),
		os.WriteFile(filepath.Join(pkg, "part.sh"), []byte("echo the tool runs >&2\n"), 0o644),
		os.WriteFile(filepath.Join(pkg, "package.json"), []byte(`{"version":"1.2.3"}`), 0o644),
		os.Symlink("../../lib/node_modules/tool/cli.sh", filepath.Join(bin, "tool")),
		os.Chmod(home, 0o755),
	); err != nil {
		t.Fatal(err)
	}
	w.options.Environ = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + home, "XDG_CONFIG_HOME=" + home + "/.config", "USER=somebody"}
	w.options.Foreign = func(name string, _ []string) (agents.Foreign, bool) {
		return agents.Foreign{Program: "tool", Install: "get tool", Credential: ".tool/login.json"}, name == "environ" || name == "tool"
	}
	w.options.Own = append(w.options.Own, "tool")
	w.task.Agent, w.task.Command = "environ", "environ"
	return w, home
}

func (w *world) environment() map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(w.stderr.String()) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			out[name] = value
		}
	}
	return out
}

// TestForeignHome: a program of somebody else's finds a HOME of its own, with a sandbox and
// without, whatever the configuration says.
func TestForeignHome(t *testing.T) {
	for _, confined := range []bool{false, true} {
		w, home := newForeignWorld(t)
		if confined {
			w.options.Sandbox = newSandboxOrSkip(t, w)
		}
		w.options.Aliases = map[string]agents.Command{"environ": {Env: map[string]string{"HOME": home, "XDG_DATA_HOME": home, "EXTRA": "1"}}}
		_, _ = w.run(t.Context()) // it gives no step
		env := w.environment()
		for _, name := range []string{"HOME", "TMPDIR"} {
			if !strings.HasPrefix(env[name], w.options.TempDir) {
				t.Errorf("confined %v: %s is %q", confined, name, env[name])
			}
		}
		for _, name := range []string{"XDG_CONFIG_HOME", "XDG_DATA_HOME"} {
			if env[name] != "" {
				t.Errorf("confined %v: %s is %q", confined, name, env[name])
			}
		}
		if env[agents.EnvProgram] != filepath.Join(home, ".local/bin/tool") || env["EXTRA"] != "1" {
			t.Errorf("confined %v: %v", confined, env)
		}
	}
}

func newSandboxOrSkip(t *testing.T, w *world) *sandbox.Sandbox {
	t.Helper()
	s := sandbox.New(sandbox.Options{Mode: sandbox.Auto, Self: w.options.Self, Environ: w.options.Environ})
	if err := s.Check(); err != nil {
		t.Skip(err)
	}
	return s
}

// TestForeignIsReachable: a confined agent reads the package of its program, and nothing else
// of the folder that it lies in.
func TestForeignIsReachable(t *testing.T) {
	w, home := newForeignWorld(t)
	w.options.Sandbox = newSandboxOrSkip(t, w)
	secret := filepath.Join(home, "lib/secret.txt")
	if err := os.WriteFile(secret, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	part := filepath.Join(home, "lib/node_modules/tool/part.sh")
	if err := os.WriteFile(part, []byte("echo the tool runs >&2; cat "+secret+" >&2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	w.task.Agent, w.task.Command = "tool", "tool"
	_, _ = w.run(t.Context())
	if said := w.stderr.String(); !strings.Contains(said, "the tool runs") || !strings.Contains(said, "Permission denied") || strings.Contains(said, "secret\n") {
		t.Error(said)
	}
}

// TestForeignProgramIsMissing: it says how to get it, before anything is run.
func TestForeignProgramIsMissing(t *testing.T) {
	w, home := newForeignWorld(t)
	if err := os.Remove(filepath.Join(home, ".local/bin/tool")); err != nil {
		t.Fatal(err)
	}
	if err := agents.NewSpawner(w.options).Check("environ"); err == nil || !strings.Contains(err.Error(), `no program "tool" on PATH; install it: get tool`) {
		t.Error(err)
	}
	if err := agents.NewSpawner(w.options).Check("mock"); err != nil {
		t.Error(err)
	}
}

// TestForeignVersion: what runs is found without running it.
func TestForeignVersion(t *testing.T) {
	w, home := newForeignWorld(t)
	w.options.Aliases = map[string]agents.Command{"parted": {Command: "uwf", Args: []string{"agent", "environ"}}, "other": {Command: "/bin/sh", Args: []string{"agent", "environ"}}}
	for line, foreign := range map[string]bool{
		"environ": true, "uwf agent environ": true, "uwf-environ": true, "parted": true, "mock": false, "/bin/sh": false, "other": false, "uwf agent": false,
	} {
		f, p, ok, err := agents.NewSpawner(w.options).FindForeign(line)
		if err != nil || ok != foreign || ok && (f.Program != "tool" || p.Version != "1.2.3" || p.Path != filepath.Join(home, ".local/bin/tool")) {
			t.Errorf("%s: %+v %+v %v %v", line, f, p, ok, err)
		}
	}
}

// TestSeed: what a program unpacks is made once for a version, without anything of a workspace,
// and every run finds it where it would be, to read.
func TestSeed(t *testing.T) {
	for _, confined := range []bool{false, true} {
		w, home := newForeignWorld(t)
		if confined {
			w.options.Sandbox = newSandboxOrSkip(t, w)
		}
		storage := t.TempDir()
		if err := os.Chmod(storage, 0o755); err != nil {
			t.Fatal(err)
		}
		w.options.SeedDir = filepath.Join(storage, "seeds")
		w.options.Foreign = func(name string, _ []string) (agents.Foreign, bool) {
			return agents.Foreign{Program: "tool", Seed: &agents.Seed{Args: []string{"--version"}, Folder: ".cache/tool/big"}}, name == "tool"
		}
		part := filepath.Join(home, "lib/node_modules/tool/part.sh")
		text := `if [ "$1" = --version ]; then mkdir -p "$HOME/.cache/tool/big"; echo "unpacked in $(ls -A | wc -l)" > "$HOME/.cache/tool/big/f"; exit; fi
cat "$HOME/.cache/tool/big/f" >&2; touch "$HOME/.cache/tool/own" && echo own >&2; touch "$HOME/.cache/tool/big/more" 2>/dev/null && echo CHANGED >&2; exit 0
`
		if err := os.WriteFile(part, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		w.task.Agent, w.task.Command = "tool", "tool"
		for range 2 {
			_, _ = w.run(t.Context()) // it gives no step
		}
		said := w.stderr.String()
		if strings.Count(said, "unpacked in 0\n") != 2 || strings.Count(said, "own\n") != 2 || confined && strings.Contains(said, "CHANGED") {
			t.Errorf("confined %v: %s", confined, said)
		}
		if entries, err := os.ReadDir(w.options.SeedDir); err != nil || len(entries) != 1 || !strings.HasPrefix(entries[0].Name(), "tool-1.2.3-") {
			t.Errorf("seeds: %v %v", entries, err)
		}
		if err := os.WriteFile(part, []byte("echo broken >&2; exit 3\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(w.options.SeedDir); err != nil {
			t.Fatal(err)
		}
		if _, err := w.run(t.Context()); err == nil || !strings.Contains(err.Error(), "run tool for the first time: exit code 3: broken") {
			t.Error(err)
		}
	}
}

// TestOwnLogin: the one file is lent, and what the program wrote in its place is kept.
func TestOwnLogin(t *testing.T) {
	w, home := newForeignWorld(t)
	w.options.Aliases = map[string]agents.Command{"environ": {Command: "uwf-renew", OwnLogin: true}}
	w.options.Own = append(w.options.Own, "renew")
	w.options.Foreign = func(string, []string) (agents.Foreign, bool) {
		return agents.Foreign{Program: "tool", Credential: ".tool/login.json"}, true
	}
	_, err := w.run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "tool is not logged in here") {
		t.Errorf("without a login: %v", err)
	}
	login := filepath.Join(home, ".tool/login.json")
	if err := errors.Join(os.Mkdir(filepath.Dir(login), 0o700), os.WriteFile(login, []byte("old"), 0o600)); err != nil {
		t.Fatal(err)
	}
	_, _ = w.run(t.Context())
	if !strings.Contains(w.stderr.String(), `found "old"`) {
		t.Errorf("it did not find its login: %s", w.stderr)
	}
	if b, err := os.ReadFile(login); err != nil || string(b) != "renewed" {
		t.Errorf("the login is %q, %v", b, err)
	}
	w.options.Foreign = func(string, []string) (agents.Foreign, bool) { return agents.Foreign{Program: "tool"}, true }
	if _, err := w.run(t.Context()); err == nil || !strings.Contains(err.Error(), "no file with a login") {
		t.Errorf("without a file to lend: %v", err)
	}
}
