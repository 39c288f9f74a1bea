package agents

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/united-workforce/uwf/agents/cli"
	"github.com/united-workforce/uwf/internal/agentclitest"
	"github.com/united-workforce/uwf/internal/modeltest"
)

// deadline ends what hangs, and so the test.
const deadline = 5 * time.Minute

// providerKey is what the model wants to see, and no agent may have.
const providerKey = "provider-key-that-no-agent-has"

const flow = `name: flow
description: One role.
roles:
  worker:
    description: Works.
    goal: Work.
    capabilities: [work]
    procedure: Work.
    output: What you did.
    frontmatter:
      type: object
      properties: {$status: {const: done}, summary: {type: string}}
      required: [$status, summary]
graph:
  $START: {_: {role: worker, prompt: Begin.}}
  worker: {done: {role: $END, prompt: Done.}}
`

// house is a repository, a home with a configuration, and a model, for one CLI.
type house struct {
	*testing.T
	agent            cli.CLI
	dir, clone, home string
	bin              string
	model            *modeltest.Server
	url              string
	acp              bool // it asks for titles and more besides
	ranControl       bool // so that the key is where the CLI puts it
}

func newHouse(t *testing.T, agent cli.CLI, files map[string]string) *house {
	t.Helper()
	dir, err := os.MkdirTemp("", "uwf-agents-") //nolint:usetesting // no other user gets to those of t.TempDir
	h := &house{T: t, agent: agent, dir: dir, clone: filepath.Join(dir, "clone"), home: filepath.Join(dir, "uwf-home"), bin: os.Getenv("UWF_AGENTS_BIN"), model: &modeltest.Server{Key: providerKey}}
	h.check(err)
	t.Cleanup(h.remove)
	h.check(os.Chmod(dir, 0o755)) //nolint:gosec // confined agents are another user
	if h.bin == "" {
		h.bin = agentclitest.Install(t, filepath.Join(dir, "npm"))
	}
	s := httptest.NewServer(h.model)
	t.Cleanup(s.Close)
	t.Cleanup(s.CloseClientConnections)
	h.url = s.URL
	h.write("uwf-home/config.yaml", h.config("", ""))
	h.write("clone/.uwf/workflows/flow.yaml", flow)
	h.write("clone/kept.txt", "no agent touches this\n")
	for name, text := range files {
		h.write("clone/"+name, strings.ReplaceAll(text, "WORK", h.dir))
	}
	h.git("init", "-q", "-b", "main")
	h.git("add", "-A", "-f")
	h.git("commit", "-q", "-m", "Begin")
	return h
}

// remove removes what agents made, who may have been another user.
func (h *house) remove() {
	_ = filepath.Walk(h.dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.IsDir() {
			return os.Chmod(path, 0o700) //nolint:gosec // a folder
		}
		return nil
	})
	_ = os.RemoveAll(h.dir)
}

// config is the person's configuration.
func (h *house) config(sandbox, more string) string {
	kind, path := "openai", "/v1"
	switch h.agent.Wires[0] {
	case "messages":
		kind = "anthropic"
	case "gemini":
		kind, path = "gemini", "/v1beta"
	}
	if sandbox == "" {
		sandbox = "off"
	}
	return fmt.Sprintf("providers: {fake: {kind: %s, baseUrl: %s%s, apiKey: %s}}\nmodels: {m: {provider: fake, name: fake-model, window: 200000, maxOutput: 8192}}\n"+
		"defaultModel: m\ndefaultAgent: %s\nsandbox: %s\nallowShell: true\n%s", kind, h.url, path, providerKey, h.agent.Name, sandbox, more)
}

func (h *house) check(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

func (h *house) write(name, text string) {
	h.Helper()
	file := filepath.Join(h.dir, name)
	h.check(os.MkdirAll(filepath.Dir(file), 0o755))  //nolint:gosec // as above
	h.check(os.WriteFile(file, []byte(text), 0o644)) //nolint:gosec // as above
}

func (h *house) environ() []string {
	path := os.Getenv("PATH")
	if h.bin != "" {
		path = h.bin + ":" + path
	}
	return []string{
		"PATH=" + path, "HOME=" + filepath.Join(h.dir, "home"), "TMPDIR=" + h.dir, "UWF_HOME=" + h.home, "LC_ALL=C",
		"GIT_TEMPLATE_DIR=", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=someone", "GIT_AUTHOR_EMAIL=someone@example.com", "GIT_COMMITTER_NAME=someone", "GIT_COMMITTER_EMAIL=someone@example.com",
	}
}

func (h *house) git(args ...string) string {
	h.Helper()
	cmd := exec.CommandContext(h.Context(), "git", args...)
	cmd.Dir, cmd.Env = h.clone, h.environ()
	out, err := cmd.CombinedOutput()
	if err != nil {
		h.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// job is a uwf that runs.
type job struct {
	h         *house
	cmd       *exec.Cmd
	out, errs bytes.Buffer
}

func (h *house) start(args ...string) *job {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.Context(), deadline)
	h.Cleanup(cancel)
	j := &job{h: h, cmd: exec.CommandContext(ctx, "uwf", args...)}
	j.cmd.Dir, j.cmd.Env, j.cmd.Stdout, j.cmd.Stderr = h.clone, h.environ(), &j.out, &j.errs
	h.check(j.cmd.Start())
	return j
}

// ends waits for the end with one of these exit codes.
func (j *job) ends(codes ...int) *job {
	j.h.Helper()
	_ = j.cmd.Wait() // the exit code says it
	if code := j.cmd.ProcessState.ExitCode(); !slices.Contains(codes, code) {
		j.h.Fatalf("%s: exit code %d, want one of %v", j, code, codes)
	}
	return j
}

// says checks that it printed each of these, in small letters.
func (j *job) says(parts ...string) *job {
	j.h.Helper()
	said := strings.ToLower(j.out.String() + j.errs.String())
	for _, part := range parts {
		if !strings.Contains(said, strings.ToLower(part)) {
			j.h.Errorf("%s: says nothing of %q", j, part)
		}
	}
	return j
}

func (j *job) String() string {
	return fmt.Sprintf("uwf %s\nstdout: %s\nstderr: %s", strings.Join(j.cmd.Args[1:], " "), &j.out, &j.errs)
}

// thread starts a thread and returns its id.
func (h *house) thread(prompt string) string {
	h.Helper()
	var s struct{ Thread string }
	j := h.start("thread", "start", "flow", "-p", prompt).ends(0)
	h.check(json.Unmarshal(j.out.Bytes(), &s))
	return s.Thread
}

// step starts the one step of a new thread.
func (h *house) step(prompt string, more ...string) *job {
	h.Helper()
	return h.start(append([]string{"thread", "step", h.thread(prompt)}, more...)...)
}

// asked are the requests for answers.
func (h *house) asked() (asked []modeltest.Request) {
	for _, r := range h.model.Requests() {
		if r.Wire != "" && r.Method == "POST" {
			asked = append(asked, r)
		}
	}
	return asked
}

// keepsNoKey checks that the provider's key is in the person's settings alone: in no other file
// and in no object of a repository.
func (h *house) keepsNoKey() {
	h.Helper()
	h.check(filepath.WalkDir(h.dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || path == filepath.Join(h.home, "config.yaml"):
			return err
		case d.Name() == "HEAD" && isRepository(filepath.Dir(path)):
			if strings.Contains(h.git("--git-dir", filepath.Dir(path), "cat-file", "--batch-all-objects", "--batch"), providerKey) {
				h.Errorf("the key is in an object of %s", filepath.Dir(path))
			}
		case d.Type().IsRegular():
			text, err := os.ReadFile(path)
			if bytes.Contains(text, []byte(providerKey)) {
				h.Errorf("the key is in %s", path)
			}
			return err
		}
		return nil
	}))
}

func isRepository(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, "objects"))
	return err == nil && info.IsDir()
}

// control runs the CLI by itself in the workspace, as a person may who trusts it.
func (h *house) control() string {
	h.Helper()
	h.keepsNoKey()
	h.ranControl = true
	c, known := controls[h.agent.Program]
	if !known {
		h.Fatalf("no control for %s", h.agent.Program)
	}
	ctx, cancel := context.WithTimeout(h.Context(), deadline)
	defer cancel()
	env := h.environ()
	home := filepath.Join(h.dir, "home")
	h.check(os.MkdirAll(filepath.Join(home, ".codex"), 0o700))
	for name, text := range c.files {
		h.write("home/"+name, text)
	}
	for _, kv := range append(c.env, "IS_SANDBOX=1") {
		env = append(env, strings.ReplaceAll(strings.ReplaceAll(kv, "ADDRESS", h.url), "SECRET", providerKey))
	}
	argv := slices.Clone(c.argv)
	for i := range argv {
		argv[i] = strings.ReplaceAll(argv[i], "ADDRESS", h.url)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(h.bin, h.agent.Program), argv...) //nolint:gosec // the test's program
	cmd.Dir, cmd.Env, cmd.Stdin = h.clone, env, strings.NewReader("Do it.")
	cmd.WaitDelay = 5 * time.Second
	out, _ := cmd.CombinedOutput() // it may fail: what it did is looked at
	return string(out)
}

// word is one that is on no other command line.
func (h *house) word() string {
	return fmt.Sprintf("3600.%d%06d", os.Getpid(), time.Now().Nanosecond()%1_000_000)
}

// left counts the processes whose command line holds a word.
func left(t *testing.T, word string) (n int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(files) == 0 {
		t.Skip("the process table is read from /proc")
	}
	for _, file := range files {
		if b, err := os.ReadFile(file); err == nil && bytes.Contains(b, []byte(word)) {
			n++
		}
	}
	return n
}

// awaitNone waits until no process has a word on its command line.
func (h *house) awaitNone(word string) {
	h.Helper()
	for end := time.Now().Add(deadline); left(h.T, word) > 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			h.Fatal("processes live on")
		}
	}
}

// await waits for a file that the CLI's tool makes.
func (h *house) await(file string, j *job) {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.Context(), deadline)
	defer cancel()
	for {
		if _, err := os.Stat(file); err == nil {
			return
		}
		select {
		case <-ctx.Done():
			h.Fatalf("%s: %s did not appear", j, file)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// terminate sends SIGTERM to uwf.
func (j *job) terminate() { _ = j.cmd.Process.Signal(syscall.SIGTERM) }
