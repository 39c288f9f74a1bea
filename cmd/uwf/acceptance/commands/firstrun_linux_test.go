package commands

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/united-workforce/uwf/agents/sandbox"
	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
	"github.com/united-workforce/uwf/internal/removal"
	"github.com/united-workforce/uwf/internal/testmode"
	"github.com/united-workforce/uwf/internal/testpty"
)

// scriptedModel is a provider of one model on loopback, which speaks chat completions and says
// what a test gave each role to say, one after the other. Who asks without a role (as `uwf
// setup` does) gets a word.
type scriptedModel struct {
	key string

	mu    sync.Mutex
	lines map[string][]line // by role
}

// line is what the model says once: text, or the call of a tool.
type line struct {
	text, tool string
	args       map[string]any
	// hold is closed when the model may answer.
	hold chan struct{}
}

var roleAsked = regexp.MustCompile(`# Your role: (\w+)`)

func (m *scriptedModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	reply := func(status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		// Who doesn't listen any more has what he wanted.
		_ = json.NewEncoder(w).Encode(v)
	}
	body, err := io.ReadAll(r.Body)
	switch {
	case err != nil:
		return
	case r.Header.Get("Authorization") != "Bearer "+m.key:
		reply(http.StatusUnauthorized, map[string]any{"error": map[string]any{"message": "Incorrect API key provided", "code": "invalid_api_key"}})
		return
	case strings.HasSuffix(r.URL.Path, "/models"):
		reply(http.StatusOK, map[string]any{"data": []any{map[string]any{"id": "small-1"}}})
		return
	case !strings.HasSuffix(r.URL.Path, "/chat/completions"):
		reply(http.StatusNotFound, map[string]any{"error": map[string]any{"message": "Not Found"}})
		return
	}
	said := line{text: "ok"}
	if role := roleAsked.FindSubmatch(body); role != nil {
		said = m.nextLine(string(role[1]))
	}
	if said.hold != nil {
		select {
		case <-said.hold:
		case <-r.Context().Done():
			return
		}
	}
	message, end := map[string]any{"role": "assistant", "content": said.text}, "stop"
	if said.tool != "" {
		args, _ := json.Marshal(said.args) //nolint:errchkjson // plain values
		message["tool_calls"] = []any{map[string]any{"id": "call_1", "type": "function", "function": map[string]any{"name": said.tool, "arguments": string(args)}}}
		end = "tool_calls"
	}
	reply(http.StatusOK, map[string]any{"id": "c", "object": "chat.completion", "model": "small-1",
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": end}},
		"usage":   map[string]any{"prompt_tokens": 2000, "completion_tokens": 100, "total_tokens": 2100}})
}

func (m *scriptedModel) nextLine(role string) line {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.lines[role]) == 0 {
		return line{text: "nothing is left to say for " + role}
	}
	said := m.lines[role][0]
	m.lines[role] = m.lines[role][1:]
	return said
}

// The repository that the model mends: Parse panics on an empty file.
const (
	configBroken = `// Package config reads settings.
package config

import "strings"

// Parse reads lines of the form name=value.
func Parse(file string) map[string]string {
	settings := map[string]string{}
	lines := strings.Split(strings.TrimSpace(file), "\n")
	for _, line := range lines {
		name, value := cut(line)
		settings[name] = value
	}
	return settings
}

func cut(line string) (name, value string) {
	at := strings.IndexByte(line, '=')
	return line[:at], line[at+1:]
}
`
	configTest = `package config

import "testing"

func TestParse(t *testing.T) {
	if got := Parse("a=1\nb=2\n")["b"]; got != "2" {
		t.Errorf("b is %q", got)
	}
}
`
	emptyTest = `
func TestParseEmpty(t *testing.T) {
	if got := Parse(""); len(got) != 0 {
		t.Errorf("an empty file has %v", got)
	}
}
`
	splitAll    = `	lines := strings.Split(strings.TrimSpace(file), "\n")` + "\n"
	splitFields = `	lines := strings.Fields(file)` + "\n"
)

// newFirstModel plays the roles of solve-issue. hold is closed to let the developer answer after
// it has run the tests.
func newFirstModel(hold chan struct{}) *scriptedModel {
	return &scriptedModel{key: "sk-first-run-0123456789", lines: map[string][]line{
		"planner": {
			{tool: "read_file", args: map[string]any{"path": "config.go"}},
			{text: "---\n$status: ready\nplan: |\n  1. Test Parse with an empty file.\n  2. Let it find no lines there.\nfiles: [config.go, config_test.go]\n---\nTrimSpace leaves one empty line, and cut takes its first -1 bytes.\n"},
		},
		"developer": {
			{text: "---\n$status: blocked\nquestion: What is an empty file to be?\nchoices: [no settings, an error]\n---\nThe issue does not say.\n"},
			{tool: "edit_file", args: map[string]any{"path": "config_test.go", "old_text": configTest, "new_text": configTest + emptyTest}},
			{tool: "edit_file", args: map[string]any{"path": "config.go", "old_text": splitAll, "new_text": splitFields}},
			{tool: "run_command", args: map[string]any{"command": "go test ./..."}},
			{hold: hold, text: "---\n$status: done\nsummary: An empty file has no settings, and no longer panics.\ntests: go test ./... passes.\n---\n"},
		},
		"reviewer": {
			{tool: "read_file", args: map[string]any{"path": "config.go"}},
			{text: "---\n$status: approved\nsummary: Parse takes an empty file for one without settings.\n---\n"},
		},
	}}
}

// readBlock are the commands of the README's code block behind <!-- test:NAME -->, without what
// is said about them.
func readBlock(t *testing.T, name string) []string {
	t.Helper()
	page, err := os.ReadFile("../../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)<!-- test:" + name + " -->\n```sh\n(.*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatalf("README.md has no commands behind <!-- test:%s -->", name)
	}
	var out []string
	for command := range strings.Lines(string(block[1])) {
		command, _, _ = strings.Cut(command, "  #")
		if command = strings.TrimSpace(command); command != "" {
			out = append(out, command)
		}
	}
	return out
}

// firstRun is a person at a terminal of 80 columns and 24 lines, on a machine that knows nothing
// of uwf, who types what the README says.
type firstRun struct {
	*testing.T
	p    *testpty.Terminal
	home string
}

// freshPrompt is the shell's, with nothing typed behind it.
var freshPrompt = "$ " + strings.Repeat(" ", 78)

// types enters a command of the README, which has to stand there, on an empty screen.
func (r *firstRun) types(block []string, begins string) {
	r.Helper()
	at := slices.IndexFunc(block, func(c string) bool { return strings.HasPrefix(c, begins) })
	if at < 0 {
		r.Fatalf("the README doesn't say %q: %q", begins, block)
	}
	r.p.Sees(freshPrompt, "")
	r.p.Clear()
	r.p.Sees("", block[at]+"\n")
	r.p.Sees("$ "+block[at], "")
}

// shows compares the screen with a golden one, once a text is on it.
func (r *firstRun) shows(name, text string) {
	r.Helper()
	r.p.Sees(text, "")
	file := filepath.Join("testdata", "screens", name+".txt")
	if *updateScreens {
		if err := os.WriteFile(file, []byte(steady(r.p.Painted())), 0o600); err != nil {
			r.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		r.Fatal(err)
	}
	// What is drawn anew each second is now and then half drawn.
	got := steady(r.p.Until(func(screen string) bool { return steady(screen) == string(want) }))
	if got != string(want) {
		r.Errorf("%s differs (with -update-screens it is written anew); got:\n%s\nwant:\n%s", file, got, want)
	}
	if strings.Contains(got, r.home) {
		r.Errorf("%s shows the path of the home:\n%s", name, got)
	}
}

// changing are what differs from run to run, and what stands in the golden screens for it.
var changing = []struct {
	text *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`\b01[0-9A-HJKMNP-TV-Z]{24}\b`), "01KB3W8S5VQZ6M0X2Y7TJ4NDRC"},
	{regexp.MustCompile(`agents: confined \([a-z, ]+\)`), "agents: confined (files, processes, syscalls)"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "127.0.0.1:11434"},
	{regexp.MustCompile(`\b(\d+m)?\d+(\.\d+)?m?s\b`), "2s"},
}

// steady is a screen without what differs from run to run.
func steady(screen string) string {
	for _, c := range changing {
		screen = c.text.ReplaceAllString(screen, c.with)
	}
	return screen
}

var updateScreens = flag.Bool("update-screens", false, "write the golden screens anew")

// TestInstallLine: what the README has people install is this module's program, and nothing in
// go.mod keeps `go install …@latest` from it. The program itself is the one under test.
func TestInstallLine(t *testing.T) {
	t.Parallel()
	mod, err := os.ReadFile("../../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	module := regexp.MustCompile(`(?m)^module (\S+)$`).FindSubmatch(mod)
	if module == nil || regexp.MustCompile(`(?m)^(replace|exclude)\b`).Match(mod) {
		t.Errorf("a module with replacements can't be installed by its name:\n%s", mod)
	}
	if _, err := os.Stat("../../../../cmd/uwf/main.go"); err != nil {
		t.Error(err)
	}
	if want := "go install " + string(module[1]) + "/cmd/uwf@latest"; !slices.Contains(readBlock(t, "init"), want) {
		t.Errorf("the README doesn't say %q", want)
	}
}

// TestFirstRun types the README's commands in a terminal: from one binary to a change that was
// reviewed and taken.
func TestFirstRun(t *testing.T) {
	t.Parallel()
	if !testmode.HasProcesses() {
		t.Skip("NOT TESTED: " + testmode.Variable + "=processes types the README's commands in a terminal")
	}
	if gaps := sandbox.Probe().Gaps(sandbox.Open); len(gaps) > 0 {
		t.Skipf("NOT TESTED: the screens don't say what this machine can't confine: %q", gaps)
	}
	hold := make(chan struct{})
	m := newFirstModel(hold)
	srv := httptest.NewServer(m)
	t.Cleanup(srv.Close)
	r := newFirstRun(t)
	p := r.p

	init := readBlock(t, "init")
	r.types(init, "cd ")
	r.types(init, "uwf init")
	p.Sees("Which agent works?", "\r")
	p.Sees("Empty: gpt", "\r")
	p.Sees("Empty: OPENAI_API_KEY", "\r")
	r.shows("init", freshPrompt)
	r.types(init, "git add")
	p.Sees("main -> main", "")

	laptop := readBlock(t, "laptop")
	r.types(laptop, "uwf setup")
	r.shows("setup", "enter select")
	p.Sees("Which provider", "\x1b[A\r")
	p.Sees("What is its address", srv.URL+"/v1\r")
	p.Sees("Which model", "small-1\r")
	p.Sees("here is the key", "\x1b[B\r")
	p.Sees("The key", m.key+"\r")
	p.Sees("Which agent", "\r")
	p.Sees("For whom are these settings?", "\r")
	p.Sees("rite it down", "\r")
	r.shows("setup-done", freshPrompt)
	r.types(laptop, "uwf run")
	p.Sees("May agents run commands?", "y\n")
	r.shows("run-asked", "Do you consent?")
	p.Sees("", "y\n")
	r.shows("run-question", "Your answer")
	p.Sees("", "1\n")
	p.Sees("run_command go test", "")
	r.shows("run-working", "12600 tokens")
	close(hold)
	r.shows("run", "\n"+freshPrompt)

	result := readBlock(t, "result")
	r.types(result, "uwf thread diff")
	r.shows("diff", freshPrompt)
	r.types(result, "uwf thread apply")
	r.p.Sees("[y/N]", "y\n")
	r.shows("apply", freshPrompt)
	if strings.Contains(p.Shown(), m.key) {
		t.Error("the terminal has shown the key")
	}
	taken, err := os.ReadFile(filepath.Join(r.home, "your-repository", "config.go"))
	if err != nil || !strings.Contains(string(taken), splitFields) {
		t.Errorf("the change was not taken: %v\n%s", err, taken)
	}
}

// newFirstRun makes the machine: a home with a repository that has a remote, and a shell in it.
func newFirstRun(t *testing.T) *firstRun {
	t.Helper()
	// Open to the user that agents are where root runs them.
	home, err := os.MkdirTemp("/tmp", "uwf-first-run-") //nolint:usetesting // see above
	if err == nil {
		err = os.Chmod(home, 0o755) //nolint:gosec // see above
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := removal.Tree(context.Background(), home, 1_000_000); err != nil {
			t.Error(err)
		}
	})
	repo := filepath.Join(home, "your-repository")
	for name, text := range map[string]string{"go.mod": "module example.com/config\n\ngo 1.24\n", "config.go": configBroken, "config_test.go": configTest} {
		if err := errors.Join(os.MkdirAll(repo, 0o700), os.WriteFile(filepath.Join(repo, name), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TERM=xterm-256color", "GIT_CONFIG_NOSYSTEM=1", "PS1=$ ", "GOTOOLCHAIN=local", clitest.EnvCells + "=1"}
	for _, args := range [][]string{
		{"git", "config", "--global", "user.name", "Ann"},
		{"git", "config", "--global", "user.email", "ann@example.com"},
		{"git", "config", "--global", "init.defaultBranch", "main"},
		{"git", "init", "-q", "--bare", "../origin.git"},
		{"git", "init", "-q"},
		{"git", "remote", "add", "origin", "../origin.git"},
		{"git", "add", "."},
		{"git", "commit", "-q", "-m", "Read settings"},
		{"git", "push", "-q", "-u", "origin", "main"},
		{"go", "test", "./..."}, // as its people do: what Go has compiled is copied for agents
	} {
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Dir, cmd.Env = repo, env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
	p := testpty.NewTerminal(t)
	shell := exec.CommandContext(p.Context, "sh", "-i")
	shell.Dir, shell.Env = home, env
	shell.Stdin, shell.Stdout, shell.Stderr = p.TTY, p.TTY, p.TTY
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shell.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = shell.Wait() // killed
	})
	return &firstRun{T: t, p: p, home: home}
}
