package cli

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/agenttest"
	"github.com/united-workforce/uwf/agents/gateway"
	"github.com/united-workforce/uwf/agents/gateway/mcp"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/agentclitest"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) { testscript.Main(leakFree{m}, agentclitest.Programs()) }

// leakFree fails a run of the tests that leaves goroutines behind.
type leakFree struct{ *testing.M }

func (m leakFree) Run() int {
	code := m.M.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// usual is a call with everything set.
func usual() call {
	return call{
		Session: "11111111-2222-4333-8444-555555555555", Model: "m", Window: 200_000, Output: 8_192, URL: "http://127.0.0.1:4000", Key: "once",
		Home: "/run/home", Temp: "/run/tmp", MCP: []mcp.Address{{Name: "docs", URL: "http://127.0.0.1:4000/mcp/docs"}}, Root: true,
	}
}

// TestCommandLines: what each CLI is called with, first and for a correction, and with a login of
// its own, is written down.
func TestCommandLines(t *testing.T) {
	var b strings.Builder
	for _, c := range All() {
		first := usual()
		again, own := first, first
		again.Resume = true
		own.URL, own.Key, own.Model, own.MCP, own.Root = "", "", "", nil, false
		for _, way := range []struct {
			name string
			call call
		}{{"first", first}, {"correction", again}, {"own login", own}} {
			fmt.Fprintf(&b, "== %s, %s\n%s %s\n", c.Name, way.name, c.Program, agents.CommandLine(c.argv(way.call)...))
			for _, kv := range c.environ(way.call) {
				fmt.Fprintf(&b, "  %s\n", kv)
			}
			if c.files == nil {
				continue
			}
			files := c.files(way.call)
			for _, name := range slices.Sorted(maps.Keys(files)) {
				fmt.Fprintf(&b, "  ~/%s: %s\n", name, files[name])
			}
		}
	}
	compareGolden(t, "testdata/command-lines.golden", b.String())
}

func compareGolden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != got {
		t.Errorf("%s: %v; with -update it becomes\n%s", file, err, got)
	}
}

// TestEnvironment: a CLI finds neither the step's folders nor another client's key, and what the
// person gave to the agent.
func TestEnvironment(t *testing.T) {
	for _, c := range All() {
		a := Agent{CLI: c, call: usual()}
		env := a.environ(&agents.Session{Environ: []string{
			"PATH=/bin", "HOME=/run/home", "EXTRA=1", "UWF_STAGE=/s", "UWF_CONTEXT=/c", "UWF_GATEWAY_KEY=once", "ANTHROPIC_API_KEY=theirs", "OPENAI_BASE_URL=theirs",
		}})
		for _, want := range []string{"PATH=/bin", "EXTRA=1", "CI=1", "NO_COLOR=1", "TERM=dumb"} {
			if !slices.Contains(env, want) {
				t.Errorf("%s: %s is missing in %q", c.Name, want, env)
			}
		}
		for _, kv := range env {
			if strings.HasPrefix(kv, "UWF_") || strings.HasSuffix(kv, "=theirs") {
				t.Errorf("%s: it finds %s", c.Name, kv)
			}
		}
	}
}

// TestRecorded: of what real runs printed each parser takes the session, the answer, or why there
// is none.
func TestRecorded(t *testing.T) {
	for _, c := range All() {
		dirs, err := filepath.Glob(filepath.Join("testdata", c.Program, "*"))
		if err != nil || len(dirs) == 0 {
			t.Errorf("nothing is recorded of %s (%v)", c.Program, err)
		}
		for _, dir := range dirs {
			var b strings.Builder
			outs, err := filepath.Glob(filepath.Join(dir, "*.stdout"))
			if err != nil {
				t.Fatal(err)
			}
			for _, out := range outs {
				fmt.Fprintf(&b, "== %s\n%s", strings.TrimSuffix(filepath.Base(out), ".stdout"), describeReport(readReport(t, c, out)))
			}
			compareGolden(t, filepath.Join(dir, "read.golden"), b.String())
		}
	}
}

// readReport reads what a run printed as its adapter would.
func readReport(t *testing.T, c CLI, file string) *report {
	t.Helper()
	out, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r := &report{}
	l := &lines{whole: c.whole, most: maxOutput, take: func(line []byte) { c.read(r, line) }}
	for part := range slices.Chunk(out, 1000) { // lines come in parts
		if _, err := l.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	l.endLines()
	if c.finish != nil {
		stderr, err := os.ReadFile(strings.TrimSuffix(file, ".stdout") + ".stderr")
		if err != nil {
			t.Fatal(err)
		}
		temp := t.TempDir()
		if last, err := os.ReadFile(strings.TrimSuffix(file, ".stdout") + ".last"); err == nil {
			if err := os.WriteFile(call{Temp: temp}.answerFile(), last, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		c.finish(r, call{Temp: temp}, string(stderr))
	}
	return r
}

func describeReport(r *report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "session %q, answer %q, failure %q, broken %d\n", r.Session, r.Text, r.Failure, r.Broken)
	for _, turn := range r.Turns {
		fmt.Fprintf(&b, "  %s %q %q\n", turn.Role, turn.Text, turn.Calls)
	}
	return b.String()
}

// script is a program that plays a CLI: it gets a line of shell for its first run and one for a
// correction.
func script(t *testing.T, first, again string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "claude")
	text := "#!/bin/sh\ncat > \"$HOME/message\"\ncase \"$*\" in\n*--resume*) " + again + " ;;\n*) " + first + " ;;\nesac\n"
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

func result(text string) string {
	return `printf '%s\n' '{"type":"result","is_error":false,"session_id":"s-1","result":"` + text + `"}'`
}

const good = `---\n$status: done\nnote: fine\n---\n# Done\n`

// runScript runs the adapter of Claude Code with a program in its place.
func runScript(t *testing.T, program string, endings ...gateway.Ending) (*agenttest.Process, task.Task, error) {
	t.Helper()
	return runAgent(t, Agent{CLI: newClaudeCode()}, program, endings)
}

func runAgent(t *testing.T, a Agent, program string, endings []gateway.Ending) (*agenttest.Process, task.Task, error) {
	t.Helper()
	asked := agenttest.Task(t)
	asked.Model = &task.Model{Alias: "m", Name: "m"}
	p := agenttest.NewProcess(t, asked, "HOME="+t.TempDir(), "TMPDIR="+t.TempDir(), agents.EnvProgram+"="+program, envURL+"=http://127.0.0.1:1", envKey+"=once")
	p.Endings = endings
	return p, asked, agents.RunAdapter(t.Context(), &a, p.Process)
}

// TestBackgroundCommand: a CLI that gave its answer and stays, as one does for a command in the
// background, is ended, with all that it started.
func TestBackgroundCommand(t *testing.T) {
	a := Agent{CLI: newClaudeCode(), Linger: time.Millisecond}
	p, _, err := runAgent(t, a, script(t, result(good)+`; sleep 3600 & wait`, "exit 9"), nil)
	if err != nil {
		t.Fatal(err, p.Err)
	}
	if body := p.Nodes(t)[*p.Step(t).Body].Payload; body != "# Done" || !strings.Contains(p.Err.String(), "command in the background: it was ended") {
		t.Errorf("body %q; it tells %q", body, p.Err)
	}
}

// TestAnswerStands: once an answer that fits was given, what is said or fails after it changes
// nothing.
func TestAnswerStands(t *testing.T) {
	notified := strings.Replace(result("Noted, all done."), `"session_id"`, `"origin":{"kind":"task-notification"},"session_id"`, 1)
	for name, after := range map[string]string{
		"another result":  notified,
		"a failed result": `echo '{"type":"result","is_error":true,"result":"API Error: 400 no"}'; exit 1`,
		"an exit code":    "exit 7",
		"a signal":        "kill -KILL $$",
		"another turn":    `echo '{"type":"assistant","message":{"content":"One moment."}}'; kill -KILL $$`,
	} {
		p, _, err := runScript(t, script(t, result(good)+"; "+after, "exit 9"))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if body := p.Nodes(t)[*p.Step(t).Body].Payload; body != "# Done" {
			t.Errorf("%s: body %q", name, body)
		}
	}
	// A later answer that fits is the better one.
	p, _, err := runScript(t, script(t, result(good)+"; "+result(strings.Replace(good, "# Done", "# Better", 1)), "exit 9"))
	if err != nil {
		t.Fatal(err)
	}
	if body := p.Nodes(t)[*p.Step(t).Body].Payload; body != "# Better" {
		t.Errorf("body %q", body)
	}
}

// TestLateAnswer: an answer that was given when the step's time is over is no less an answer.
func TestLateAnswer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	asked := agenttest.Task(t)
	asked.Model = &task.Model{Alias: "m", Name: "m"}
	p := agenttest.NewProcess(t, asked, "HOME="+t.TempDir(), "TMPDIR="+t.TempDir(), agents.EnvProgram+"="+script(t, result(good)+
		`; echo '{"type":"assistant","message":{"content":[{"type":"tool_use","name":"now","input":{}}]}}'; sleep 3600`, "exit 9"), envURL+"=http://127.0.0.1:1", envKey+"=once")
	p.Process.Stderr = writerFunc(func(line []byte) (int, error) {
		if strings.Contains(string(line), "now") {
			cancel()
		}
		return p.Err.Write(line)
	})
	if err := agents.RunAdapter(ctx, &Agent{CLI: newClaudeCode()}, p.Process); err != nil {
		t.Fatal(err, p.Err)
	}
	p.Step(t)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestCutAnswer: an answer in two is put together, where no tool was called in between, and a
// cut one is asked for again, whatever its fields say.
func TestCutAnswer(t *testing.T) {
	half := func(text string) string {
		return `printf '%s\n' '{"type":"assistant","message":{"content":[{"type":"text","text":"` + text + `"}]}}'`
	}
	first, rest := `---\n$status: done\n---\n# Do`, `ne\nAll of it.\n`
	p, _, err := runScript(t, script(t, half(first)+"; "+half(rest)+"; "+result(rest), "exit 9"))
	if err != nil {
		t.Fatal(err, p.Err)
	}
	if body := p.Nodes(t)[*p.Step(t).Body].Payload; body != "# Done\nAll of it." {
		t.Errorf("body %q", body)
	}
	tool := `echo '{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Bash","input":{}}]}}'`
	if _, _, err := runScript(t, script(t, half(first)+"; "+tool+"; "+half(rest)+"; "+result(rest), "exit 9")); err == nil {
		t.Error("what was said before a tool's call became a part of the answer")
	}
	cut := gateway.Ending{Finish: "length", Limit: 8192}
	p, asked, err := runScript(t, script(t, result(good), `cp "$HOME/message" message.txt; `+result(good)), cut)
	if err != nil {
		t.Fatal(err, p.Err)
	}
	if message, err := os.ReadFile(filepath.Join(asked.Workspace, "message.txt")); err != nil || !strings.Contains(string(message), "cut off at the output limit of 8192 tokens") {
		t.Errorf("it was told %q (%v)", message, err)
	}
	if _, _, err = runScript(t, script(t, result(good), result(good)), cut, cut, cut); err == nil || !strings.Contains(err.Error(), "cut off at the output limit of 8192 tokens: raise maxOutput") {
		t.Errorf("three cut answers: %v", err)
	}
	failing := `echo '{"type":"result","is_error":true,"session_id":"s-1","result":"cut"}'; exit 1`
	if _, _, err := runScript(t, script(t, failing, result(good)), cut); err != nil {
		t.Errorf("after a cut that the program calls a failure: %v", err)
	}
	if _, _, err = runScript(t, script(t, failing, failing), cut, cut, cut); err == nil || !strings.Contains(err.Error(), "claude failed: cut") {
		t.Errorf("three such failures: %v", err)
	}
	filtered := gateway.Ending{Finish: "filter"}
	if _, _, err = runScript(t, script(t, result(good), result(good)), filtered, filtered, filtered); err == nil || !strings.Contains(err.Error(), "filter") {
		t.Errorf("three filtered answers: %v", err)
	}
}

func TestAnswerIsTaken(t *testing.T) {
	p, _, err := runScript(t, script(t, `echo '{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Bash","input":{"command":"ls"}}]}}'; `+result(good), "exit 9"))
	if err != nil {
		t.Fatal(err, p.Err)
	}
	step := p.Step(t)
	nodes := p.Nodes(t)
	if body := nodes[*step.Body].Payload; body != "# Done" {
		t.Errorf("body %q", body)
	}
	detail := nodes[step.Detail]
	if detail.Type != record.BuiltinDetailSchema || detail.Payload.(map[string]any)["sessionId"] != "s-1" {
		t.Errorf("detail %+v", detail)
	}
	if said := p.Err.String(); !strings.Contains(said, `claude-code: Bash {"command":"ls"}`) {
		t.Errorf("it tells %q", said)
	}
}

// TestCorrection: the same session goes on, and settings that the first run wrote into the
// workspace take no effect on it, but stay.
func TestCorrection(t *testing.T) {
	p, asked, err := runScript(t, script(t,
		`mkdir -p .claude sub && echo hook > .claude/settings.json && echo X=1 > sub/.env; `+result("All done."),
		`ls -A . sub > "$HOME/seen"; cp "$HOME/seen" seen.txt; cp "$HOME/message" message.txt; case "$*" in *"--resume s-1"*) `+result(good)+` ;; esac`))
	if err != nil {
		t.Fatal(err, p.Err)
	}
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(asked.Workspace, name))
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	if seen := read("seen.txt"); strings.Contains(seen, ".claude") || strings.Contains(seen, ".env") {
		t.Errorf("the correction saw %q", seen)
	}
	if message := read("message.txt"); !strings.Contains(message, "$status") {
		t.Errorf("it was told %q", message)
	}
	if read(".claude/settings.json") != "hook\n" || read("sub/.env") != "X=1\n" {
		t.Error("what it wrote is not what is there")
	}
}

// TestFailures: whatever a CLI does that is no answer is said in words, and no step comes of it.
func TestFailures(t *testing.T) {
	for name, c := range map[string]struct {
		first string
		says  []string
	}{
		"its own failure, exit 0":  {`echo '{"type":"result","subtype":"success","is_error":true,"result":"API Error: 400 no"}'`, []string{"claude failed: API Error: 400 no"}},
		"its own failure, exit 1":  {`echo '{"type":"result","subtype":"success","is_error":true,"result":"API Error: 401"}'; exit 1`, []string{"claude failed: API Error: 401"}},
		"failure without a reason": {`echo '{"type":"result","subtype":"error_max_turns","is_error":true,"errors":["too many"]}'; exit 1`, []string{"claude failed: error_max_turns", "too many"}},
		"the output limit":         {`echo '{"type":"result","is_error":true,"result":"To configure this behavior, set the CLAUDE_CODE_MAX_OUTPUT_TOKENS environment variable."}'`, []string{"set models.NAME.maxOutput of the model."}},
		"exit code":                {`echo out of luck >&2; exit 3`, []string{"claude ended with exit code 3", "out of luck"}},
		"signal":                   {`kill -SEGV $$`, []string{"claude ended by signal 11"}},
		"killed":                   {`kill -KILL $$`, []string{"claude was killed", "memory"}},
		"garbage":                  {`echo 'not { json'; echo more`, []string{"printed 2 lines that are not what version", "uwf agent check claude-code"}},
		"nothing":                  {`exit 0`, []string{"its last message was empty"}},
		"an empty answer":          {result("  "), []string{"its last message was empty"}},
		"a broken end":             {`printf '{"type":"result","is_er'`, []string{"printed 1 lines"}},
		"terminal escapes":         {`printf '\033[2Jgone\n' >&2; exit 4`, []string{"exit code 4", "gone"}},
	} {
		t.Run(name, func(t *testing.T) {
			p, _, err := runScript(t, script(t, c.first, "exit 9"))
			if err == nil {
				t.Fatal("it gave a step")
			}
			for _, want := range c.says {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in %q", want, err)
				}
			}
			if strings.ContainsRune(err.Error(), 0x1b) || p.Out.Len() > 0 {
				t.Errorf("%q, printed %q", err, p.Out)
			}
		})
	}
}

// TestRefusals: what can't work is refused before anything runs.
func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		environ []string
		model   *task.Model
		says    string
	}{
		"no program": {[]string{"HOME=/h", "TMPDIR=/t"}, nil, agents.EnvProgram + " is not set"},
		"no home":    {[]string{agents.EnvProgram + "=/bin/false", "HOME=", "TMPDIR="}, nil, "HOME or TMPDIR is not set"},
		"no model":   {[]string{agents.EnvProgram + "=/bin/false", "HOME=/h", "TMPDIR=/t", envURL + "=http://127.0.0.1:1"}, nil, "needs a model"},
	} {
		asked := agenttest.Task(t)
		p := agenttest.NewProcess(t, asked, c.environ...)
		if err := agents.RunAdapter(t.Context(), &Agent{CLI: newCodex()}, p.Process); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLargeOutput: a line, or all of it, has a bound.
func TestLargeOutput(t *testing.T) {
	l := &lines{most: 100, take: func([]byte) {}}
	if _, err := l.Write(make([]byte, 60)); err != nil {
		t.Error(err)
	}
	if _, err := l.Write(make([]byte, 60)); err == nil || !strings.Contains(err.Error(), "more than 100 bytes") {
		t.Error(err)
	}
	long := strings.Repeat("é", maxTurn)
	if got := clipTurn(long); len(got) > maxTurn+100 || !strings.Contains(got, "bytes left out") {
		t.Errorf("%d bytes", len(got))
	}
}

// FuzzRead: no output makes a parser fail, and none gives an answer with a failure's text.
func FuzzRead(f *testing.F) {
	f.Add(0, []byte(`{"type":"result","is_error":false,"result":"x"}`))
	f.Add(1, []byte(`{"type":"item.completed","item":{"type":"agent_message","text":"x"}}`))
	f.Add(2, []byte(`{"type":"assistant.message","data":{"content":"x","toolRequests":[]}}`))
	f.Add(3, []byte(`{"type":"text","part":{"text":"x"}}`))
	f.Add(4, []byte(`[{"type":"result","result":"x"}]`))
	f.Add(5, []byte(`{"response":"x","error":{"message":"y"}}`))
	f.Fuzz(func(t *testing.T, which int, out []byte) {
		all := All()
		c := all[uint(which)%uint(len(all))]
		r := &report{}
		l := &lines{whole: c.whole, most: maxOutput, take: func(line []byte) { c.read(r, line) }}
		_, _ = l.Write(out)
		l.endLines()
		for _, one := range r.Turns {
			if one.Role != "assistant" && one.Role != "tool" {
				t.Errorf("role %q", one.Role)
			}
			one.writePayload()
		}
	})
}
