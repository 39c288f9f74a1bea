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
	return dialect.Answer{Text: text, Calls: calls, Finish: dialect.FinishStop,
		Usage: dialect.Usage{In: 10, Out: 2, HasIn: true, HasOut: true}}
}

// body is a plain answer as a provider sends it.
func body(a dialect.Answer) []byte { return dialect.Reply{Answer: a, ID: "1"}.Body(dialect.Chat) }

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
	if err := r.Finish(r.Begin(), Exchange{Request: req, Status: 200, Answer: a, Raw: body(a)}); err != nil {
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

func TestRecordingHasALineForEachExchange(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sub", "c.jsonl")
	recordTwoTurns(t, file, 3, "developer", "ok \tpkg\t0.012s\nFAIL <here>\n")
	lines := strings.Split(read(t, file), "\n")
	for i, want := range []string{
		`{"step":3,"role":"developer","request":{"post":"/v1/chat/completions","model":"m","tools":["run_command"],` +
			`"messages":[{"role":"system","text":"be kind"},{"role":"user","text":"in /tmp/uwf-1234/ws"}]},"answer":{"status":200,"body":"{\"choices\":`,
		`{"step":3,"role":"developer","request":{"post":"/v1/chat/completions","model":"m","tools":["run_command"],"repeats":2,` +
			`"messages":[{"role":"assistant","text":"I test","calls":[{"id":"other","name":"run_command","args":{"command":"go test"}}]},` +
			`{"role":"tool","text":"ok \tpkg\t0.012s\nFAIL <here>\n"}]},"answer":{"status":200,"body":"`,
		"",
	} {
		if !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d is\n%s\ninstead of\n%s", i+1, lines[i], want)
		}
	}
	if len(lines) != 3 || !strings.HasSuffix(lines[0], `"usage":{"in":10,"out":2}}}`) {
		t.Errorf("%q", lines)
	}
}

func TestReplayOfARecording(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.jsonl")
	recordTwoTurns(t, file, 3, "developer", "ok \tpkg\t0.012s\nFAIL at 2026-01-02T03:04:05Z\n")
	c, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	play := func(result string) (string, error) {
		p := c.NewPlayer(PlayerOptions{Step: 3, Role: "developer"})
		first := []dialect.Message{msg("system", "be kind"), msg("user", "in /tmp/uwf-99/other")}
		a, turn, err := p.Play(chat(first...))
		if err != nil || turn != 1 || a.Body != string(body(reply("I test", call))) || len(p.Unused()) != 1 {
			t.Fatalf("%+v, %d, %v, %q", a, turn, err, p.Unused())
		}
		second := append(slices.Clone(first), dialect.Message{Role: "assistant", Text: "I test", Calls: []dialect.Call{call}}, msg("tool", result))
		a, _, err = p.Play(chat(second...))
		return a.Body, err
	}
	// Times, dates and temporary folders may differ.
	if got, err := play("ok \tpkg\t(cached)\nFAIL at 2027-11-12T13:14:15Z"); err != nil || got != string(body(reply("done"))) {
		t.Errorf("%q, %v", got, err)
	}
	_, err = play("ok \tpkg\t1.7s\nPASS at 2026-01-02\n")
	var m *MismatchError
	if !errors.As(err, &m) {
		t.Fatalf("error %v", err)
	}
	const says = `replay: request 2 of 2 of step 3 (developer) does not fit ` + "%s" + `:2: message 4 of 4 (tool) differs in line 2
  - recorded: "FAIL at <date>"
  + now:      "PASS at <date>"`
	if got := m.Error(); got != fmt.Sprintf(says, file) {
		t.Errorf("it says\n%s\ninstead of\n%s", got, fmt.Sprintf(says, file))
	}
}

func TestRecordingKeepsWhatItDoesNotReplace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.jsonl")
	const first, last = `{"note":"the planner", "step":1, "role":"planner", "answer":{"text":"plan"}}`, `{"step":9,"role":"reviewer","answer":{"text":"fine"}}`
	const old = `{"step":3,"role":"developer","answer":{"text":"old"}}`
	before := strings.Join([]string{first, "", old, old, last}, "\n") // without a newline at its end
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
	if !strings.HasPrefix(text, first+"\n") || !strings.HasSuffix(text, "\n"+last+"\n") {
		t.Errorf("lines of other steps are changed:\n%s", text)
	}
	if strings.Contains(text, "old") || strings.Contains(text, `"text":"x"`) || !strings.Contains(text, `"text":"z"`) {
		t.Errorf("an old recording stays:\n%s", text)
	}
}

func TestRepeatsOfAShorterRequest(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.jsonl")
	r := open(t, file, 1, "r", keep)
	requests := []*dialect.Request{
		chat(msg("system", "s"), msg("user", "1")),
		chat(msg("system", "s"), msg("user", "1"), msg("assistant", "a"), msg("user", "2")),
		chat(msg("system", "s"), msg("user", "summary")), // the client has shortened it
		chat(msg("user", "3")),
	}
	for _, req := range requests {
		finish(t, r, req, reply("a"))
	}
	closeRecorder(t, r)
	c, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	p := c.NewPlayer(PlayerOptions{Step: 1, Role: "r"})
	for i, want := range []int{0, 2, 1, 0} {
		if got := c.Entries[i].Request.Repeats; got != want {
			t.Errorf("request %d repeats %d messages instead of %d", i+1, got, want)
		}
		if _, _, err := p.Play(requests[i]); err != nil {
			t.Error(err)
		}
	}
	c.Entries[0].Request.Repeats = 1
	if _, _, err := c.NewPlayer(PlayerOptions{Step: 1, Role: "r"}).Play(requests[0]); err == nil || !strings.Contains(err.Error(), "repeats 1 messages of a request that has 0") {
		t.Errorf("%v", err)
	}
}

func TestNothingSecretIsRecorded(t *testing.T) {
	secret := "sk-" + strings.Repeat("Zz9", 9)
	file := filepath.Join(t.TempDir(), "c.jsonl")
	r, args := open(t, file, 1, "r", hide(secret)), dialect.Args(`{"k":"`+secret+`"}`)
	x := Exchange{Status: 200}
	x.Request = chat(msg("user", "my key is "+secret), dialect.Message{Role: "assistant", Calls: []dialect.Call{{Name: "f", Args: args}}})
	x.Answer = reply("you said "+secret, dialect.Call{Name: "f", Args: args})
	x.Raw = body(x.Answer)
	if err := r.Finish(r.Begin(), x); err != nil {
		t.Fatal(err)
	}
	// As it came, in pieces: no event has the secret, all of them together do.
	x.Request = chat(msg("user", "stream"))
	x.Request.Stream = true
	x.Answer, x.Raw = reply("it is "+secret, dialect.Call{Name: "f", Args: args}), nil
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
	x.Request.Tools, x.Raw = []string{"tool_" + secret}, nil // the last look finds it
	if err := r.Finish(r.Begin(), x); err != nil {
		t.Fatal(err)
	}
	closeRecorder(t, r)
	text := read(t, file)
	if strings.Contains(text, secret) || strings.Contains(text, secret[7:11]) {
		t.Errorf("the secret is in\n%s", text)
	}
	if n := strings.Count(text, "[redacted]"); n != 8 {
		t.Errorf("%d places instead of 8:\n%s", n, text)
	}
}

// Events of two calls take turns, so that no place of their JSON has the secret whole.
func TestNothingSecretIsRecordedOfCallsThatTakeTurns(t *testing.T) {
	const secret = "SECRETVALUE12345"
	file := filepath.Join(t.TempDir(), "c.jsonl")
	r := open(t, file, 1, "r", hide(secret))
	x := Exchange{Status: 200, Request: chat(msg("user", "hi"))}
	x.Request.Stream = true
	x.Answer = reply("", dialect.Call{Name: "a", Args: `{"x":"` + secret + `"}`}, dialect.Call{Name: "b", Args: `{"y":"z"}`})
	for _, part := range []struct {
		index int
		args  string
	}{{0, `{"x":"SECRET`}, {1, `{"y":"z`}, {0, `VALUE12345"}`}, {1, `"}`}} {
		x.Raw = fmt.Appendf(x.Raw, "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":%d,\"function\":{\"arguments\":%q}}]}}]}\n\n", part.index, part.args)
	}
	if err := r.Finish(r.Begin(), x); err != nil {
		t.Fatal(err)
	}
	closeRecorder(t, r)
	if text := read(t, file); strings.Contains(text, "VALUE12345") || !strings.Contains(text, "[redacted]") {
		t.Errorf("the cassette is\n%s", text)
	}
}

func TestRecordingFailsClosed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.jsonl")
	if _, err := NewRecorder(file, RecorderOptions{Step: 1, Role: "r"}); err == nil {
		t.Error("a recorder without a redactor")
	}
	broken := errors.New("too deep")
	for name, redact := range map[string]Redactor{
		"redactor fails": func(string) (string, error) { return "", broken },
		"redactor fails at the end": func(s string) (string, error) {
			if strings.HasPrefix(s, `{"step":`) {
				return "", broken
			}
			return s, nil
		},
		"redactor breaks the file": func(s string) (string, error) { return strings.ReplaceAll(s, "},", "&"), nil },
		"redactor drops an entry":  func(s string) (string, error) { return strings.ReplaceAll(s, `"role":"r"`, `"role":"x"`), nil },
	} {
		r := open(t, file, 1, "r", redact)
		finishErr := r.Finish(r.Begin(), Exchange{Request: chat(msg("user", "hi")), Status: 200, Answer: reply("a"), Raw: body(reply("a"))})
		if err := errors.Join(finishErr, r.Close()); err == nil {
			t.Errorf("%s: no error", name)
		}
		if b, err := os.ReadFile(file); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: written:\n%s", name, b)
		}
	}
}

func TestRecorderRefusesABrokenFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.jsonl")
	if err := os.WriteFile(file, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var p *ParseError
	if _, err := NewRecorder(file, RecorderOptions{Step: 1, Role: "r", Redact: keep}); !errors.As(err, &p) {
		t.Errorf("error %v", err)
	}
}

func TestRawAnswersAndErrorsReplay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.jsonl")
	r := open(t, file, 1, "r", keep)
	thoughts := `{"choices":[{"message":{"content":"a","reasoning_content":"hm"},"finish_reason":"stop"}]}`
	add := func(x Exchange) {
		t.Helper()
		if err := r.Finish(r.Begin(), x); err != nil {
			t.Fatal(err)
		}
	}
	add(Exchange{Request: chat(msg("user", "1")), Status: 200, Raw: []byte(thoughts), Answer: reply("a")})
	r.Begin() // a request that never got an answer
	add(Exchange{Request: chat(msg("user", "1"), msg("assistant", "a"), msg("user", "2")), Status: 429, Raw: []byte(`{"error":{"message":"slow down"}}`)})
	add(Exchange{Request: chat(msg("user", "3")), Status: 502, Raw: []byte("<html>")})
	add(Exchange{Request: chat(msg("user", "3")), Status: 503})
	closeRecorder(t, r)
	if err := r.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
	c, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	p := c.NewPlayer(PlayerOptions{Step: 1, Role: "r"})
	for i, want := range []Answer{{Status: 200, Body: thoughts}, {Status: 429, Body: `{"error":{"message":"slow down"}}`}, {Status: 502, Body: "<html>"}, {Status: 503, Error: "HTTP 503"}} {
		req := chat(msg("user", "3"))
		switch i {
		case 0:
			req = chat(msg("user", "1"))
		case 1:
			req = chat(msg("user", "1"), msg("assistant", "a"), msg("user", "2"))
		}
		got, _, err := p.Play(req)
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
	file := filepath.Join(t.TempDir(), "c.jsonl")
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
		if e.Step != i/2+1 || e.Request.Repeats != i%2*2 {
			t.Errorf("entry %d is of step %d and repeats %d messages", i, e.Step, e.Request.Repeats)
		}
	}
}
