package agentcheck_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/agents/sandbox"
	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/cli"
	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
)

// TestMain puts uwf on PATH. Called with fake-claude as its first word the test binary is that.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "fake-claude" {
		os.Exit(beClaude(os.Args[2]))
	}
	clitest.Main(m, nil)
}

// beClaude prints what Claude Code 2.1.330 printed with --output-format stream-json, in short.
func beClaude(mode string) int {
	text, failed, code := "---\n$status: done\n---\n", false, 0
	switch mode {
	case "works":
		text = askModel()
	case "fails": // as seen with a provider that answered 400: the subtype is success all the same
		text, failed, code = "API Error: 400 the model is \x1b[31mout of paper\x1b[0m", true, 1
		fmt.Fprint(os.Stderr, "\x1b]0;mine\a[claude-code:unrecognized_model] {}\n")
	}
	out := json.NewEncoder(os.Stdout)
	for _, line := range []map[string]any{
		{"type": "system", "subtype": "init", "session_id": "s", "cwd": "/"},
		{"type": "assistant", "session_id": "s", "message": map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}}},
		{"type": "result", "subtype": "success", "is_error": failed, "num_turns": 1, "session_id": "s", "result": text},
	} {
		if out.Encode(line) != nil {
			return 1
		}
	}
	return code
}

// askModel asks the model at the address in the environment.
func askModel() string {
	body := fmt.Sprintf(`{"model": %q, "max_tokens": 10, "messages": [{"role": "user", "content": "hello"}]}`, os.Getenv("ANTHROPIC_MODEL"))
	req, err := http.NewRequest(http.MethodPost, os.Getenv("ANTHROPIC_BASE_URL")+"/v1/messages", strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	req.Header.Set("x-api-key", os.Getenv("ANTHROPIC_API_KEY"))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err.Error()
	}
	b, err := io.ReadAll(res.Body)
	var answer struct{ Content []struct{ Text string } }
	if err != nil || res.Body.Close() != nil || json.Unmarshal(b, &answer) != nil || len(answer.Content) != 1 {
		return fmt.Sprintf("%v %s", err, b)
	}
	return answer.Content[0].Text
}

// machine is one with a home, and programs on PATH.
type machine struct {
	t              *testing.T
	home, bin, dir string
	environ        []string
	tty            bool
	code           int
	out, errs      bytes.Buffer
}

func newMachine(t *testing.T, settings string) *machine {
	t.Helper()
	top := t.TempDir()
	m := &machine{t: t, home: filepath.Join(top, "home"), bin: filepath.Join(top, "bin"), dir: filepath.Join(top, "dir")}
	for _, dir := range []string{m.bin, m.dir, filepath.Join(m.home, ".uwf")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	m.put(filepath.Join(m.home, ".uwf", "config.yaml"), settings, 0o600)
	m.put(filepath.Join(m.home, "marker"), "", 0o600)
	m.environ = []string{"HOME=" + m.home, "PATH=" + m.bin + ":/usr/bin:/bin", "UWF_LOG=off"}
	return m
}

func (m *machine) put(file, text string, mode os.FileMode) {
	m.t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		m.t.Fatal(err)
	}
}

// addClaude puts a claude on PATH that prints a version, and works in a mode.
func (m *machine) addClaude(version, mode string) {
	m.t.Helper()
	self, err := os.Executable()
	if err != nil {
		m.t.Fatal(err)
	}
	m.put(filepath.Join(m.bin, "claude"), fmt.Sprintf("#!/bin/sh\nif [ \"$1\" = --version ]; then printf '%s\\n'; exit; fi\nexec %s fake-claude %s \"$@\"\n", version, self, mode), 0o755)
}

func (m *machine) run(words ...string) {
	m.t.Helper()
	uwf, err := exec.LookPath("uwf")
	if err != nil {
		m.t.Fatal(err)
	}
	m.out.Reset()
	m.errs.Reset()
	f := app.NewAt(m.dir, m.environ, app.IO{In: strings.NewReader(""), Out: &m.out, Err: &m.errs, OutTTY: m.tty})
	f.SelfCommand = []string{uwf}
	m.code = cli.Execute(m.t.Context(), f, append([]string{"agent"}, words...))
	if strings.ContainsAny(m.out.String()+m.errs.String(), "\x1b\a") && !m.tty {
		m.t.Errorf("%v: what a program says reaches the terminal: %q", words, m.out.String()+m.errs.String())
	}
}

// finding is what a check found, in short: its state, detail and fix.
func (m *machine) finding(agent, check string) string {
	m.t.Helper()
	var r struct {
		Agents []struct {
			Agent    string
			Findings []struct{ Check, State, Detail, Fix string }
		}
	}
	if err := json.Unmarshal(m.out.Bytes(), &r); err != nil {
		m.t.Fatalf("%v: %s%s", err, m.out.String(), m.errs.String())
	}
	for _, a := range r.Agents {
		for _, f := range a.Findings {
			if a.Agent == agent && f.Check == check {
				return strings.TrimSpace(f.State + ": " + f.Detail + " → " + f.Fix)
			}
		}
	}
	return ""
}

// providers and models of the settings; no key is set.
const models = `
providers:
  anthropic: {kind: anthropic, baseUrl: "https://api.anthropic.com", apiKeyEnv: ANTHROPIC_API_KEY}
  openai: {kind: openai, baseUrl: "https://api.openai.com/v1", apiKeyEnv: OPENAI_API_KEY}
models: {m: {provider: anthropic, name: a}, o: {provider: openai, name: a}}
`

const (
	anthropic = models + "defaultModel: m\n"
	openAI    = models + "defaultModel: o\n"
)

// TestCheckBuiltinWire: the check names the wire by which uwf's own agent asks its model.
func TestCheckBuiltinWire(t *testing.T) {
	for wires, want := range map[string]string{
		"messages": "ok: o: provider openai speaks messages, and the agent messages", "responses": "ok: o: provider openai speaks responses, and the agent responses",
		"chat, responses": "ok: o: provider openai speaks chat, responses, and the agent chat", "gemini": "missing: o: provider openai speaks gemini, and the agent chat",
	} {
		m := newMachine(t, "sandbox: off\n"+strings.Replace(openAI, "OPENAI_API_KEY", "OPENAI_API_KEY, wires: ["+wires+"]", 1))
		m.run("check", "builtin")
		if got := m.finding("builtin", "wire"); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", wires, got, want)
		}
	}
}

func TestCheck(t *testing.T) {
	const off = "sandbox: off\n"
	install := "npm install -g @anthropic-ai/claude-code@"
	for _, tt := range []struct {
		name, settings, version, mode string // without a version there is no program
		code                          int
		want                          map[string]string // by check, what its finding has
	}{
		{"all is well", off + anthropic, "2.1.330 (Claude Code)", "works", 0, map[string]string{
			"program": "ok: /", "version": "ok: 2.1.330", "sandbox": "ok: not confined (sandbox: off)", "wire": "ok: m: provider anthropic speaks messages, chat, and the agent messages", "probe": "with 1 request to a model that is part of uwf",
		}},
		{"missing", off + anthropic, "", "", 1, map[string]string{"program": "→ " + install, "wire": "ok: m", "probe": ""}},
		{"old", off + anthropic, "2.0.1", "works", 0, map[string]string{"version": "unknown: 2.0.1; tried with uwf: 2.1.197–", "probe": "ok: gave a step"}},
		{"old, the command", off, "2.0.1", "works", 0, map[string]string{"version": "→ " + install}},
		{"no version", off, "no idea", "works", 0, map[string]string{"version": "unknown: it says no version"}},
		{"hostile version", off, `\033]0;mine\007\033[2J2.1.330\033[31m`, "works", 0, map[string]string{"version": "ok: 2.1.330 →"}},
		{"no model", off, "2.1.330", "works", 0, map[string]string{"wire": "unknown: no model is configured → uwf setup", "probe": "ok: gave a step"}},
		{"translated", off + openAI, "2.1.330", "works", 0, map[string]string{"wire": "ok: o: provider openai speaks chat, responses, and the agent messages, which the gateway translates; lost or refused: what the model thought before, "}},
		{"wrong wire", off + strings.Replace(openAI, "OPENAI_API_KEY", "OPENAI_API_KEY, wires: [responses]", 1), "2.1.330", "works", 1, map[string]string{"wire": "missing: o: provider openai speaks responses, and the agent messages; the gateway"}},
		{"wire of one role", off + anthropic + "agentOverrides: {solve: {dev: claude-code}}\nmodelOverrides: {solve: {dev: o}}\n", "2.1.330", "works", 0, map[string]string{"wire": "ok: o: provider openai"}},
		{"small window", off + strings.Replace(anthropic, "name: a}, o", "name: a, window: 16000}, o", 1), "2.1.330", "works", 1, map[string]string{"wire": "missing: claude fills a window of 16000 tokens before it has done any work: it needs 32000; set models.m.window"}},
		{"least window", off + strings.Replace(anthropic, "name: a}, o", "name: a, window: 32000}, o", 1), "2.1.330", "works", 0, map[string]string{"wire": "ok: m"}},
		{"probe fails", off + anthropic, "2.1.330", "fails", 1, map[string]string{"probe": "API Error: 400 the model is"}},
		{"model is not asked", off + anthropic, "2.1.330", "silent", 1, map[string]string{"probe": "missing: it gave a step and never asked the model"}},
		{"own login", off + "agents: {claude-code: {login: own}}\n", "2.1.330", "works", 0, map[string]string{"login": "unknown: login: own: uwf counts", "wire": "", "probe": "ok: gave a step"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newMachine(t, tt.settings)
			if tt.version != "" {
				m.addClaude(tt.version, tt.mode)
			}
			m.run("check", "claude-code")
			if m.code != tt.code {
				t.Errorf("exit code %d, want %d: %s%s", m.code, tt.code, m.out.String(), m.errs.String())
			}
			for check, want := range tt.want {
				if got := m.finding("claude-code", check); !strings.Contains(got, want) || want == "" && got != "" {
					t.Errorf("%s: %q, want %q", check, got, want)
				}
			}
			if tt.version != "" { // what nobody asked for is not required
				if m.run("check"); m.code != 0 {
					t.Errorf("without a name: exit code %d: %s", m.code, m.out.String())
				}
			}
		})
	}
}

// A program in a folder that is closed to the agents' user is no agent's, and the fix says so.
func TestClosedFolder(t *testing.T) {
	if report := sandbox.Probe(); !report.Root || !report.Usable() {
		t.Skip("agents are no other user here")
	}
	m := newMachine(t, "sandbox: require\n"+anthropic)
	m.addClaude("2.1.330", "silent")
	top := filepath.Dir(m.dir)
	setMode := func(dir string, mode os.FileMode) {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
	}
	setMode(top, 0o755) // the workspace is open to that user
	setMode(filepath.Dir(top), 0o755)
	m.run("check", "claude-code")
	if got := m.finding("claude-code", "sandbox"); !strings.HasPrefix(got, "ok: works confined") {
		t.Errorf("in an open folder: %s", got)
	}
	setMode(m.bin, 0o700)
	m.run("check", "claude-code")
	if got := m.finding("claude-code", "sandbox"); m.code != 1 || !strings.HasPrefix(got, "missing: ") || !strings.Contains(got, "install it where every user can read it") {
		t.Errorf("exit code %d: %s%s", m.code, m.out.String(), m.errs.String())
	}
	if got := m.finding("claude-code", "probe"); !strings.Contains(got, "not tried: it can't be run") {
		t.Error(got)
	}
}

func TestMistakes(t *testing.T) {
	m := newMachine(t, "agents: {mine: {command: no-such-program}}\ndefaultAgent: mine\n")
	m.put(filepath.Join(m.bin, "cursor-agent"), "#!/bin/sh\n", 0o755)
	for _, tt := range []struct {
		words []string
		code  int
		says  string
	}{
		{[]string{"check", "cursor"}, 1, "set agents.cursor.login: own"},
		{[]string{"check", "acp"}, 2, "no agent"},
		{[]string{"check", "claude-cod"}, 2, "did you mean claude-code?"},
		{[]string{"check", "a", "b"}, 2, "2 arguments are too many"},
		{[]string{"list", "a"}, 2, "it takes no argument"},
		{[]string{"check", "\x1b[31m"}, 2, "no agent"},
		{[]string{"check"}, 1, `no program \"no-such-program\" on PATH`}, // it is in use
	} {
		if m.run(tt.words...); m.code != tt.code || !strings.Contains(m.out.String()+m.errs.String(), tt.says) {
			t.Errorf("%q: exit code %d, want %d and %q: %s%s", tt.words, m.code, tt.code, tt.says, m.out.String(), m.errs.String())
		}
	}
}

// row is an agent in the list.
type row struct {
	Name, Kind, Program, RealPath, Install, Why, Version, Login string
	Installed, Tested, InUse                                    bool
}

func (m *machine) list() map[string]row {
	m.t.Helper()
	m.run("list")
	var rows []row
	if err := json.Unmarshal(m.out.Bytes(), &rows); err != nil || m.code != 0 {
		m.t.Fatalf("%v %d %s%s", err, m.code, m.out.String(), m.errs.String())
	}
	out := map[string]row{}
	for _, r := range rows {
		out[r.Name] = r
	}
	return out
}

func TestList(t *testing.T) {
	m := newMachine(t, "agents: {reviewer: {command: uwf-claude-code, login: own}, mine: {command: mine}}\ndefaultAgent: mine\n")
	// Asked for its version it finds neither the person's HOME nor a secret.
	m.environ = append(m.environ, "OPENAI_API_KEY=sk-not-for-agents")
	m.put(filepath.Join(m.bin, "claude"), "#!/bin/sh\nif [ -e \"$HOME/marker\" ] || [ -n \"$OPENAI_API_KEY\" ] || [ -n \"$(ls)\" ]; then echo 9.9.9; exit; fi\necho '2.1.330 (Claude Code)'\n", 0o755)
	m.put(filepath.Join(m.bin, "mine"), "#!/bin/sh\n", 0o755)
	// A package says its version; what it says is not trusted.
	pkg := filepath.Join(m.home, "node_modules", "@openai", "codex")
	m.put(filepath.Join(pkg, "codex.js"), "#!/bin/sh\nexit 1\n", 0o755)
	m.put(filepath.Join(pkg, "package.json"), `{"version": "0.1.0\u001b[2J\u202e`+strings.Repeat("x", 200)+`"}`, 0o644)
	if err := os.Symlink(filepath.Join(pkg, "codex.js"), filepath.Join(m.bin, "codex")); err != nil {
		t.Fatal(err)
	}
	rows := m.list()
	codex := rows["codex"]
	if codex.RealPath != filepath.Join(pkg, "codex.js") || codex.Program != filepath.Join(m.bin, "codex") || codex.Tested || len(codex.Version) > 60 || strings.ContainsAny(codex.Version, "\x1b\u202e") {
		t.Errorf("%+v", codex)
	}
	for _, want := range []row{
		{Name: "builtin", Kind: "own", Installed: true, Tested: true},
		{Name: "mock", Kind: "own", Installed: true, Tested: true},
		{Name: "claude-code", Kind: "foreign", Program: filepath.Join(m.bin, "claude"), RealPath: filepath.Join(m.bin, "claude"), Installed: true, Tested: true, Version: "2.1.330"},
		{Name: "reviewer", Kind: "foreign", Program: filepath.Join(m.bin, "claude"), RealPath: filepath.Join(m.bin, "claude"), Installed: true, Tested: true, Version: "2.1.330", Login: "own"},
		{Name: "mine", Kind: "command", Program: filepath.Join(m.bin, "mine"), RealPath: filepath.Join(m.bin, "mine"), Installed: true, InUse: true},
	} {
		if got := rows[want.Name]; got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	if r := rows["qwen-code"]; r.Installed || !strings.HasPrefix(r.Install, "npm install -g @qwen-code/qwen-code@") {
		t.Errorf("%+v", r)
	}
	m.tty = true
	m.run("list")
	if s := m.out.String(); strings.Contains(s, "\x1b[2J") || strings.Contains(s, "\u202e") || !strings.Contains(s, "not tried with this version") || !strings.Contains(s, "in use") || !strings.Contains(s, "login: own") || !strings.Contains(s, "untested; see ") {
		t.Errorf("%q", s)
	}
	if !slices.Contains(strings.Fields(m.out.String()), "qwen-code") {
		t.Error("an agent that is not installed is not listed")
	}
}
