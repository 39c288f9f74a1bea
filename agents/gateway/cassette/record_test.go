package cassette

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/united-workforce/uwf/agents/gateway/dialect"
)

func keep(s string) (string, error) { return s, nil }

func hide(secret string) Redactor {
	return func(s string) (string, error) { return strings.ReplaceAll(s, secret, "[redacted]"), nil }
}

func chat(messages ...dialect.Message) *dialect.Request {
	return &dialect.Request{Dialect: dialect.Chat, Model: "m", Tools: []string{"run_command"}, Messages: messages}
}

func msg(role, text string) dialect.Message { return dialect.Message{Role: role, Text: text} }

func reply(text string, calls ...dialect.Call) dialect.Answer {
	return dialect.Answer{Text: text, Calls: calls, Finish: dialect.FinishStop, Whole: true,
		Usage: dialect.Usage{In: 10, Out: 2, HasIn: true, HasOut: true}}
}

func open(t *testing.T, file string, step int, role string, redact Redactor) *Recorder {
	t.Helper()
	r, err := NewRecorder(file, RecorderOptions{Step: step, Role: role, Redact: redact})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func finish(t *testing.T, r *Recorder, req *dialect.Request, a dialect.Answer) {
	t.Helper()
	if err := r.Finish(r.Begin(), Exchange{Path: "/v1/chat/completions", Request: req, Status: 200, Answer: a, Raw: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
}

func closeRecorder(t *testing.T, r *Recorder) {
	t.Helper()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var call = dialect.Call{ID: "c1", Name: "run_command", Args: `{"command":"go test"}`}

// recordTwoTurns records a conversation of two turns.
func recordTwoTurns(t *testing.T, file string, step int, role, result string) {
	t.Helper()
	r := open(t, file, step, role, keep)
	first := []dialect.Message{msg("system", "be kind"), msg("user", "in /tmp/uwf-1234/ws")}
	finish(t, r, chat(first...), reply("I test", call))
	second := append(append([]dialect.Message{}, first...),
		dialect.Message{Role: "assistant", Text: "I test", Calls: []dialect.Call{{ID: "other", Name: "run_command", Args: `{ "command": "go test" }`}}},
		msg("tool", result))
	finish(t, r, chat(second...), reply("done"))
	closeRecorder(t, r)
}

func TestRecordingIsShortAndReadable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sub", "c.yaml")
	recordTwoTurns(t, file, 3, "developer", "ok \tpkg\t0.012s\nFAIL\n")
	const want = `version: 1
entries:
  - step: 3
    role: developer
    turn: 1
    request:
      post: /v1/chat/completions
      model: m
      tools: [run_command]
      messages:
        - role: system
          text: be kind
        - role: user
          text: in /tmp/uwf-1234/ws
    answer:
      text: I test
      calls:
        - id: c1
          name: run_command
          args:
            command: go test
      finish: stop
      usage: {in: 10, out: 2}
  - step: 3
    role: developer
    turn: 2
    request:
      post: /v1/chat/completions
      model: m
      tools: [run_command]
      continues: true
      messages:
        - role: tool
          text: |
`
	got := read(t, file)
	if !strings.HasPrefix(got, want) || !strings.Contains(got, "\n      text: done\n") {
		t.Errorf("recorded\n%s\ninstead of\n%s", got, want)
	}
}

func TestReplayOfARecording(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	recordTwoTurns(t, file, 3, "developer", "ok \tpkg\t0.012s\nFAIL at 2026-01-02T03:04:05Z\n")
	c, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	play := func(result string) (string, error) {
		p := c.Player(PlayerOptions{Step: 3, Role: "developer"})
		first := []dialect.Message{msg("system", "be kind"), msg("user", "in /tmp/uwf-99/other")}
		a, turn, err := p.Play("/v1/chat/completions", chat(first...))
		if err != nil || turn != 1 || a.Text != "I test" || len(p.Unused()) != 1 {
			t.Fatalf("%+v, %d, %v, %q", a, turn, err, p.Unused())
		}
		second := append(slices.Clone(first), dialect.Message{Role: "assistant", Text: "I test", Calls: []dialect.Call{call}}, msg("tool", result))
		a, _, err = p.Play("/v1/chat/completions", chat(second...))
		return a.Text, err
	}
	// Times, dates and temporary folders may differ.
	if text, err := play("ok \tpkg\t(cached)\nFAIL at 2027-11-12T13:14:15Z"); err != nil || text != "done" {
		t.Errorf("%q, %v", text, err)
	}
	_, err = play("ok \tpkg\t1.7s\nPASS at 2026-01-02\n")
	var m *MismatchError
	if !errors.As(err, &m) {
		t.Fatalf("error %v", err)
	}
	const says = `replay: request 2 of 2 of step 3 (developer) does not fit ` + "%s" + `:24: message 4 of 4 (tool) differs in line 2
  - recorded: "FAIL at <date>"
  + now:      "PASS at <date>"`
	if got := m.Error(); got != fmt.Sprintf(says, file) {
		t.Errorf("it says\n%s\ninstead of\n%s", got, fmt.Sprintf(says, file))
	}
}

func TestRecordingKeepsWhatItDoesNotReplace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	const before = `# written by us
version: 1
note: a note
entries:
  # the planner
  - step: 1
    role: planner
    answer: {text: plan} # short
  - step: 3
    role: developer
    answer: {text: old}
  - step: 3
    role: developer
    answer: {text: older}
  - step: 9
    role: reviewer
    answer: {text: fine}
`
	if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	recordTwoTurns(t, file, 3, "developer", "x")
	recordTwoTurns(t, file, 2, "developer", "y")
	recordTwoTurns(t, file, 3, "developer", "z")
	c, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.describeContents(); got != "step 1 (planner), step 2 (developer), step 3 (developer), step 9 (reviewer)" || len(c.Entries) != 6 {
		t.Errorf("%d entries: %s", len(c.Entries), got)
	}
	text := read(t, file)
	for _, s := range []string{"# written by us\n", "  # the planner\n", "# short\n", "text: z"} {
		if !strings.Contains(text, s) {
			t.Errorf("%q is gone:\n%s", s, text)
		}
	}
	if strings.Contains(text, "old") || strings.Contains(text, "text: x") {
		t.Errorf("an old recording stays:\n%s", text)
	}
}

func TestNothingSecretIsRecorded(t *testing.T) {
	secret := "sk-" + strings.Repeat("Zz9", 9)
	file := filepath.Join(t.TempDir(), "c.yaml")
	r := open(t, file, 1, "r", hide(secret))
	x := Exchange{Path: "/v1/chat/completions", Status: 200}
	x.Request = chat(msg("user", "my key is "+secret), dialect.Message{Role: "assistant", Calls: []dialect.Call{{Name: "f", Args: `{"k":"` + secret + `"}`}}})
	x.Answer = reply("you said "+secret, dialect.Call{Name: "f", Args: `{"k":"` + secret + `"}`})
	if err := r.Finish(r.Begin(), x); err != nil {
		t.Fatal(err)
	}
	// As it came, in pieces: no event has the secret, all of them together do.
	x.Request = chat(msg("user", "stream"))
	x.Request.Stream = true
	x.Answer = dialect.Answer{Text: "it is " + secret}
	for _, part := range []string{"it is " + secret[:7], secret[7:11], secret[11:]} {
		x.Raw = fmt.Appendf(x.Raw, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q,\"reasoning\":\"hm\"}}]}\n\n", part)
	}
	if err := r.Finish(r.Begin(), x); err != nil {
		t.Fatal(err)
	}
	x.Status, x.Raw = 400, []byte(`{"error":{"message":"bad `+secret+`"}}`)
	if err := r.Finish(r.Begin(), x); err != nil {
		t.Fatal(err)
	}
	closeRecorder(t, r)
	text := read(t, file)
	if strings.Contains(text, secret) || strings.Contains(text, secret[7:11]) {
		t.Errorf("the secret is in\n%s", text)
	}
	if n := strings.Count(text, "[redacted]"); n != 6 {
		t.Errorf("%d places instead of 6:\n%s", n, text)
	}
}

func TestRecordingFailsClosed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	if _, err := NewRecorder(file, RecorderOptions{Step: 1, Role: "r"}); err == nil {
		t.Error("a recorder without a redactor")
	}
	broken := errors.New("too deep")
	for name, redact := range map[string]Redactor{
		"redactor fails": func(string) (string, error) { return "", broken },
		"redactor fails at the end": func(s string) (string, error) {
			if strings.HasPrefix(s, "version:") {
				return "", broken
			}
			return s, nil
		},
		"redactor breaks the file": func(s string) (string, error) { return strings.ReplaceAll(s, "entries:", "&"), nil },
		"redactor drops an entry":  func(s string) (string, error) { return strings.ReplaceAll(s, "role: r", "role: x"), nil },
	} {
		r := open(t, file, 1, "r", redact)
		finishErr := r.Finish(r.Begin(), Exchange{Path: "/v1/chat/completions", Request: chat(msg("user", "hi")), Status: 200, Answer: reply("a")})
		if err := errors.Join(finishErr, r.Close()); err == nil {
			t.Errorf("%s: no error", name)
		}
		if b, err := os.ReadFile(file); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: written:\n%s", name, b)
		}
	}
}

func TestRecorderRefusesABrokenFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte("version: 9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var p *ParseError
	if _, err := NewRecorder(file, RecorderOptions{Step: 1, Role: "r", Redact: keep}); !errors.As(err, &p) {
		t.Errorf("error %v", err)
	}
}

func TestRawAnswersAndErrorsReplay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	r := open(t, file, 1, "r", keep)
	thoughts := `{"choices":[{"message":{"content":"a","reasoning_content":"hm"},"finish_reason":"stop"}]}`
	add := func(x Exchange) {
		t.Helper()
		x.Path = "/chat/completions"
		if err := r.Finish(r.Begin(), x); err != nil {
			t.Fatal(err)
		}
	}
	add(Exchange{Request: chat(msg("user", "1")), Status: 200, Raw: []byte(thoughts), Answer: dialect.Answer{Text: "a"}})
	r.Begin() // a request that never got an answer
	add(Exchange{Request: chat(msg("user", "1"), msg("assistant", "a"), msg("user", "2")), Status: 429, Raw: []byte(`{"error":{"message":"slow down"}}`)})
	add(Exchange{Request: chat(msg("user", "3")), Status: 502, Raw: []byte("<html>")})
	closeRecorder(t, r)
	if err := r.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
	c, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if !c.Entries[1].Request.Continues || c.Entries[2].Request.Continues {
		t.Errorf("continues is wrong:\n%s", read(t, file))
	}
	p := c.Player(PlayerOptions{Step: 1, Role: "r"})
	for i, want := range []Answer{{Status: 200, Body: thoughts}, {Status: 429, Error: "slow down"}, {Status: 502, Body: "<html>"}} {
		req := chat(msg("user", "3"))
		switch i {
		case 0:
			req = chat(msg("user", "1"))
		case 1:
			req = chat(msg("user", "1"), msg("assistant", "a"), msg("user", "2"))
		}
		got, _, err := p.Play("/v1/chat/completions", req)
		if err != nil || got.Status != want.Status || got.Body != want.Body || got.Error != want.Error {
			t.Errorf("answer %d is %+v, %v", i+1, got, err)
		}
	}
}

// TestManyProcessesRecordOneCassette starts real processes that record into one
// file at the same time: no step may get lost.
func TestManyProcessesRecordOneCassette(t *testing.T) {
	if file := os.Getenv("CASSETTE_TEST_FILE"); file != "" {
		var step int
		if _, err := fmt.Sscan(os.Getenv("CASSETTE_TEST_STEP"), &step); err != nil {
			t.Fatal(err)
		}
		recordTwoTurns(t, file, step, "r", "x")
		return
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "c.yaml")
	const steps = 12
	var wg sync.WaitGroup
	for step := 1; step <= steps; step++ {
		wg.Go(func() {
			cmd := exec.Command(exe, "-test.run", "^TestManyProcessesRecordOneCassette$")
			cmd.Env = append(os.Environ(), "CASSETTE_TEST_FILE="+file, fmt.Sprintf("CASSETTE_TEST_STEP=%d", step))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("step %d: %v\n%s", step, err, out)
			}
		})
	}
	wg.Wait()
	c, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Entries) != 2*steps {
		t.Fatalf("%d entries instead of %d", len(c.Entries), 2*steps)
	}
	for i, e := range c.Entries {
		if e.Step != i/2+1 || e.Turn != i%2+1 {
			t.Errorf("entry %d is step %d, turn %d", i, e.Step, e.Turn)
		}
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(file), ".cassette-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}
