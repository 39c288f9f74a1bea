package agents_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/sandbox"
	"github.com/united-workforce/uwf/engine/task"
)

// confine has a world's agents confined. Its folders are where other users get to,
// and the workspace belongs to somebody, so that it shows who has it.
func (w *world) confine(mode sandbox.Mode) {
	w.t.Helper()
	report := sandbox.Probe()
	if !report.Usable() {
		w.t.Skipf("NOT TESTED: no agent can be confined here: %s", report)
	}
	dir, err := os.MkdirTemp("", "uwf-confined-")
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = os.RemoveAll(dir) })
	w.task.Workspace, w.options.TempDir, w.call = filepath.Join(dir, "workspace"), filepath.Join(dir, "runs"), filepath.Join(dir, "call")
	w.options.Dir = w.call
	for _, d := range []string{dir, w.task.Workspace, w.options.TempDir, w.call} {
		if err := errors.Join(os.MkdirAll(d, 0o755), os.Chmod(d, 0o755)); err != nil {
			w.t.Fatal(err)
		}
	}
	if report.Root {
		if err := os.Chown(w.task.Workspace, workspaceOwner, workspaceOwner); err != nil {
			w.t.Fatal(err)
		}
	}
	w.options.Sandbox = sandbox.New(sandbox.Options{Mode: mode, Self: w.options.Self, Environ: w.options.Environ, Report: &report})
}

const workspaceOwner = 1001

// givenBack checks that everything in the workspace is its owner's.
func (w *world) givenBack() {
	w.t.Helper()
	if !sandbox.Probe().Root {
		return
	}
	err := filepath.WalkDir(w.task.Workspace, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		if st, ok := info.Sys().(*syscall.Stat_t); !ok || st.Uid != workspaceOwner || st.Gid != workspaceOwner {
			w.t.Errorf("%s was not given back: %+v", path, info.Sys())
		}
		return nil
	})
	if err != nil {
		w.t.Error(err)
	}
}

// uwf's own agents work in a sandbox as they do without: task, stage, commands,
// files, and the script that their command line names.
func TestConfinedAgentTakesAStep(t *testing.T) {
	w := newWorld(t)
	w.confine(sandbox.Auto)
	w.script(done + `    write: {src/new.txt: "content\n"}` + "\n    commands: [\"cat src/new.txt > copy.txt; test -n \\\"$HOME\\\" && touch $HOME/x; (cat /etc/shadow; ls $OLDPWD/..) 2>/dev/null >&2; id -u\"]\n")
	d, err := w.run(t.Context())
	if err != nil {
		t.Fatal(err, w.stderr)
	}
	if got := d.Nodes[*w.step(d).Body].Payload; got != "# What I did\n\nThings." {
		t.Errorf("body %q", got)
	}
	if b, err := os.ReadFile(filepath.Join(w.task.Workspace, "copy.txt")); err != nil || string(b) != "content\n" {
		t.Errorf("the command's file: %q, %v", b, err)
	}
	w.givenBack()
}

// The environment names places that the agent can use, and no others.
func TestConfinedEnvironment(t *testing.T) {
	w := newWorld(t)
	w.options.Environ = append(w.options.Environ, "HOME="+t.TempDir(), "XDG_CONFIG_HOME=/somewhere", "GITHUB_TOKEN=x")
	w.confine(sandbox.Auto)
	w.task.Command = "uwf agent environ"
	_, err := w.run(t.Context())
	if !errors.Is(err, agents.ErrNothingPrinted) {
		t.Fatalf("%v", err)
	}
	env := strings.Split(w.stderr.String(), "\n")
	for name, below := range map[string]string{
		"HOME": w.options.TempDir, "TMPDIR": w.options.TempDir, agents.EnvStage: w.options.TempDir, agents.EnvContext: w.options.TempDir, agents.EnvBin: "/",
	} {
		if got := sandbox.Getenv(env, name); !strings.HasPrefix(got, below) {
			t.Errorf("%s=%s, want a place below %s", name, got, below)
		}
	}
	for _, name := range []string{"XDG_CONFIG_HOME", "GITHUB_TOKEN", "UWF_SANDBOX_POLICY"} {
		if got := sandbox.Getenv(env, name); got != "" {
			t.Errorf("%s=%s", name, got)
		}
	}
}

// What a failing agent was denied of the user's home is named with the setting that opens it.
func TestConfinedAgentIsDenied(t *testing.T) {
	w := newWorld(t)
	w.confine(sandbox.Auto)
	home := filepath.Dir(w.call)
	report := sandbox.Probe()
	w.options.Environ = append(w.options.Environ, "HOME="+home)
	w.options.Sandbox = sandbox.New(sandbox.Options{Mode: sandbox.Auto, Self: w.options.Self, Environ: []string{"HOME=" + filepath.Dir(home)}, Report: &report})
	closed := filepath.Join(home, ".foo")
	if err := os.WriteFile(closed, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.task.Command = "/bin/sh -c 'cat " + closed + "; echo $" + sandbox.EnvClosedHome + " >&2; exit 1'"
	_, err := w.run(t.Context())
	var failed *task.AgentError
	if !errors.As(err, &failed) || !strings.Contains(failed.Detail, filepath.Dir(home)+"\n[the sandbox closes "+closed+": confine.read: ["+closed+"] in ~/.uwf/config.yaml opens it]") {
		t.Errorf("%v", err)
	}
}

// However a run ends, the workspace is its owner's afterwards.
func TestConfinedWorkspaceComesBack(t *testing.T) {
	for name, command := range map[string]string{
		"failure":   "/bin/sh -c 'mkdir made; echo x > made/x; exit 3'",
		"interrupt": "/bin/sh -c 'mkdir made; echo x > made/x; echo ready >&2; sleep 600'",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.confine(sandbox.Auto)
			w.task.Command = command
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			w.options.Stderr = writer(func(p []byte) { cancel() })
			d, err := w.run(ctx)
			if err == nil {
				t.Fatalf("it gave a step: %+v", d)
			}
			if _, err := os.Stat(filepath.Join(w.task.Workspace, "made/x")); err != nil {
				t.Error(err)
			}
			w.givenBack()
		})
	}
}

type writer func([]byte)

func (w writer) Write(p []byte) (int, error) { w(p); return len(p), nil }

// An agent whose sandbox can't be had is not run, and the gaps of one that can are
// told.
func TestConfinedRefusal(t *testing.T) {
	w := newWorld(t)
	w.script(done)
	none := sandbox.Report{System: "linux", Why: "there is none"}
	w.options.Sandbox = sandbox.New(sandbox.Options{Mode: sandbox.Auto, Self: w.options.Self, Report: &none})
	var refused *sandbox.RefusedError
	if err := agents.NewSpawner(w.options).Check("uwf agent mock script.yaml"); !errors.As(err, &refused) {
		t.Errorf("Check: %v", err)
	}
	if _, err := w.run(t.Context()); !errors.As(err, &refused) {
		t.Errorf("Run: %v", err)
	}
	w.options.Sandbox = sandbox.New(sandbox.Options{Mode: sandbox.Auto, Optional: true, Self: w.options.Self, Report: &none})
	if err := agents.NewSpawner(w.options).Check("uwf agent mock script.yaml"); err != nil {
		t.Errorf("nobody asked, Check: %v", err)
	}
	if _, err := w.run(t.Context()); err != nil {
		t.Errorf("nobody asked, Run: %v", err)
	}
	w = newWorld(t)
	w.confine(sandbox.Auto)
	report := sandbox.Probe()
	if !report.Root {
		t.Skip("NOT TESTED: an older kernel is enough only for root")
	}
	report.Landlock = 5
	w.options.Sandbox = sandbox.New(sandbox.Options{Mode: sandbox.Auto, Self: w.options.Self, Environ: w.options.Environ, Report: &report})
	var told []string
	w.options.Gaps = func(gaps []string) { told = append(told, gaps...) }
	w.script(done)
	if _, err := w.run(t.Context()); err != nil || len(told) != 1 || !strings.Contains(told[0], "abstract unix sockets") {
		t.Errorf("%v; told %q", err, told)
	}
	// Another user is all that there is, and it doesn't get there.
	report.Landlock, told = 0, nil
	if err := os.Chmod(w.options.TempDir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, optional := range []bool{false, true} {
		w.options.Sandbox = sandbox.New(sandbox.Options{Mode: sandbox.Auto, Optional: optional, Self: w.options.Self, Environ: w.options.Environ, Report: &report})
		if _, err := w.run(t.Context()); errors.As(err, &refused) == optional {
			t.Errorf("closed to the agents' user, optional %t: %v", optional, err)
		}
	}
	if len(told) != 1 || !strings.HasPrefix(told[0], "this agent runs unconfined: ") || !strings.Contains(told[0], "chmod o+x") {
		t.Errorf("told %q", told)
	}
}

// The port of the agent's model is found in what the gateway gives, so that it can
// be reached where nothing else can.
func TestConfinedAgentReachesItsModel(t *testing.T) {
	w := newWorld(t)
	w.confine(sandbox.Auto)
	report := sandbox.Probe()
	w.options.Sandbox = sandbox.New(sandbox.Options{Mode: sandbox.Auto, Network: sandbox.GatewayOnly, Self: w.options.Self, Environ: w.options.Environ, Report: &report})
	l := listen(t)
	w.options.Gateway = func(context.Context, task.Task, *task.Meter) ([]string, func(error) error, error) {
		return []string{"OPENAI_BASE_URL=http://" + l + "/v1", "OPENAI_API_KEY=one-time"}, func(error) error { return nil }, nil
	}
	for address, want := range map[string]string{l: "connected", listen(t): "refused"} {
		w.task.Command = fmt.Sprintf("/bin/bash -c 'if (exec 3<>/dev/tcp/%s); then echo connected >&2; else echo refused >&2; fi'", strings.Replace(address, ":", "/", 1))
		w.stderr = &syncBuffer{}
		w.options.Stderr = w.stderr
		_, err := w.run(t.Context())
		if report.Landlock < 4 && want == "refused" {
			t.Logf("NOT TESTED: %s", report)
			continue
		}
		if !errors.Is(err, agents.ErrNothingPrinted) || !strings.Contains(w.stderr.String(), want) {
			t.Errorf("%s, want %s: %v: %s", address, want, err, w.stderr)
		}
	}
}

// listen serves a port of this machine and returns its address.
func listen(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { _ = l.Close(); <-done })
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	return l.Addr().String()
}
