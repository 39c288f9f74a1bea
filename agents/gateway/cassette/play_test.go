package cassette

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/agents/gateway/dialect"
)

func mustParse(t *testing.T, text string) *Cassette {
	t.Helper()
	c, err := Parse("f.jsonl", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestEntriesOfAStepGoBeforeThoseOfARole(t *testing.T) {
	c := mustParse(t, `{"role":"developer","answer":{"text":"any"}}
{"step":4,"role":"developer","answer":{"text":"fourth"}}
`)
	for step, want := range map[int]string{1: "any", 4: "fourth"} {
		p := c.NewPlayer(PlayerOptions{Step: step, Role: "developer"})
		a, _, err := p.Play(&dialect.Request{Dialect: dialect.Messages, Model: "whatever"})
		if err != nil || a.Text != want || len(p.Unused()) != 0 {
			t.Errorf("step %d answers %q, %v", step, a.Text, err)
		}
	}
}

func TestLooseMatch(t *testing.T) {
	c := mustParse(t, `{"role":"r","match":{"contains":["--- FAIL: TestPop (0.00s)","stack"],"tools":["edit_file"],"model":"m"},"answer":{"text":"ok"}}
`)
	base := func() *dialect.Request {
		r := chat(msg("user", "fix it"), msg("assistant", "running"), msg("tool", "stack\n--- FAIL: TestPop (0.31s)"))
		r.Tools = []string{"edit_file", "read_file"}
		return r
	}
	if _, _, err := c.NewPlayer(PlayerOptions{Step: 1, Role: "r"}).Play(base()); err != nil {
		t.Errorf("what fits is refused: %v", err)
	}
	for says, change := range map[string]func(*dialect.Request){
		"another model":           func(r *dialect.Request) { r.Model = "n" },
		"edit_file is not":        func(r *dialect.Request) { r.Tools = []string{"read_file"} },
		"text 1 of":               func(r *dialect.Request) { r.Messages[2].Text = "ok stack" },
		"text 2 of":               func(r *dialect.Request) { r.Messages[2].Text = "--- FAIL: TestPop (1.00s)" },
		"text 1 of match.contain": func(r *dialect.Request) { r.Messages = append(r.Messages, msg("assistant", "x"), msg("user", "stack")) },
	} {
		r := base()
		change(r)
		_, _, err := c.NewPlayer(PlayerOptions{Step: 1, Role: "r"}).Play(r)
		var m *MismatchError
		if !errors.As(err, &m) || !strings.Contains(m.What, says) {
			t.Errorf("%q: %v", says, err)
		}
	}
}

func TestStrictMismatches(t *testing.T) {
	c := mustParse(t, `{"role":"r","request":{"post":"/v1/chat/completions","model":"m","tools":["run_command"],"messages":[{"role":"user","text":"hello"},{"role":"assistant","text":"I look","calls":[{"name":"run_command","args":{"command":"ls"}}]}]},"answer":{"text":"ok"}}
`)
	base := func() *dialect.Request {
		return chat(msg("user", "hello"), dialect.Message{Role: "assistant", Text: "I look", Calls: []dialect.Call{{Name: "run_command", Args: `{"command": "ls"}`}}})
	}
	if _, _, err := c.NewPlayer(PlayerOptions{Step: 7, Role: "r"}).Play(base()); err != nil {
		t.Errorf("what fits is refused: %v", err)
	}
	for says, change := range map[string]func(*dialect.Request){
		"another path":                  func(r *dialect.Request) { r.Dialect = dialect.Messages },
		"another model":                 func(r *dialect.Request) { r.Model = "n" },
		"other tools":                   func(r *dialect.Request) { r.Tools = nil },
		"stream differs":                func(r *dialect.Request) { r.Stream = true },
		"message 1 of 2 (system) has":   func(r *dialect.Request) { r.Messages[0].Role = "system" },
		"message 1 of 2 (user) differs": func(r *dialect.Request) { r.Messages[0].Text = "hallo" },
		"message 2 of 2 (assistant), calls, differs in line 1": func(r *dialect.Request) { r.Messages[1].Calls[0].Args = `{"command":"rm"}` },
		"message 2 is missing":                                 func(r *dialect.Request) { r.Messages = r.Messages[:1] },
		"message 3 is one too many":                            func(r *dialect.Request) { r.Messages = append(r.Messages, msg("user", "more")) },
	} {
		r := base()
		change(r)
		_, _, err := c.NewPlayer(PlayerOptions{Step: 7, Role: "r"}).Play(r)
		var m *MismatchError
		if !errors.As(err, &m) || !strings.HasPrefix(m.What, says) {
			t.Errorf("%q: %v", says, err)
		}
	}
}

// A recording whose list of tools is ["*"] fits whatever tools are offered; one that names
// a tool does not, even beside it.
func TestAnyTools(t *testing.T) {
	for tools, fits := range map[string]bool{`["*"]`: true, `["run_command"]`: true, `["*","run_command"]`: false, `["other"]`: false, `[]`: false} {
		c := mustParse(t, `{"role":"r","request":{"post":"/v1/chat/completions","model":"m","tools":`+tools+`,"messages":[{"role":"user","text":"hello"}]},"answer":{"text":"ok"}}
`)
		_, _, err := c.NewPlayer(PlayerOptions{Step: 1, Role: "r"}).Play(chat(msg("user", "hello")))
		if (err == nil) != fits {
			t.Errorf("%s: %v", tools, err)
		}
	}
}

// What is recorded as it came fits only a request for the same kind of answer.
func TestAnswersAsTheyCame(t *testing.T) {
	for _, tt := range []struct {
		answer       string
		stream, fits bool
	}{
		{`{"events":"data: x\n\n"}`, true, true},
		{`{"events":"data: x\n\n"}`, false, false},
		{`{"body":"{}"}`, false, true},
		{`{"body":"{}"}`, true, false},
		{`{"body":"{}","status":500}`, true, true}, // errors are not streamed
	} {
		r := chat(msg("user", "x"))
		r.Stream = tt.stream
		_, _, err := mustParse(t, `{"role":"r","answer":`+tt.answer+`}`).NewPlayer(PlayerOptions{Step: 1, Role: "r"}).Play(r)
		if tt.fits != (err == nil) || err != nil && !strings.Contains(err.Error(), fmt.Sprintf("as it came, for a request with stream: %v", !tt.stream)) {
			t.Errorf("%s for a request with stream: %v: %v", tt.answer, tt.stream, err)
		}
	}
}

func TestMismatchStaysAndEndsAreNamed(t *testing.T) {
	c := mustParse(t, `{"role":"r","step":2,"answer":{"text":"one"}}`)
	p := c.NewPlayer(PlayerOptions{Step: 2, Role: "r"})
	if _, _, err := p.Play(chat(msg("user", "a"))); err != nil {
		t.Fatal(err)
	}
	_, _, first := p.Play(chat(msg("user", "what now?")))
	if first == nil || !strings.Contains(first.Error(), "request 2 of 1 of step 2 (r)") || !strings.Contains(first.Error(), "ends after 1") || !strings.Contains(first.Error(), "what now?") {
		t.Errorf("%v", first)
	}
	if _, _, again := p.Play(chat(msg("user", "b"))); !errors.Is(again, first) {
		t.Errorf("%v instead of the first mismatch", again)
	}
	_, _, err := c.NewPlayer(PlayerOptions{Step: 3, Role: "x"}).Play(chat())
	if err == nil || !strings.Contains(err.Error(), "nothing for this step and role (it has: step 2 (r))") {
		t.Errorf("%v", err)
	}
}

func TestReplayRedactsTheLiveRequest(t *testing.T) {
	secret := "tok" + strings.Repeat("4711", 4)
	c := mustParse(t, `{"role":"r","request":{"post":"/v1/chat/completions","tools":["run_command"],"messages":[{"role":"user","text":"use [redacted]"}]},"answer":{"text":"ok"}}
`)
	if _, _, err := c.NewPlayer(PlayerOptions{Step: 1, Role: "r", Redact: hide(secret)}).Play(chat(msg("user", "use "+secret))); err != nil {
		t.Error(err)
	}
	_, _, err := c.NewPlayer(PlayerOptions{Step: 1, Role: "r", Redact: hide(secret)}).Play(chat(msg("user", "not "+secret)))
	if err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("the message of a mismatch holds a secret: %v", err)
	}
}

func TestNormalising(t *testing.T) {
	n := newNormaliser()
	for in, want := range map[string]string{
		"thread 01J9Z3N4T5V6W7X8Y9ZABCDEFG and 3F2504E0-4F89":                      "thread <thread> and 3F2504E0-4F89",
		"node 44P8EP6N3NXZ5, BROKENPIPELINE":                                       "node <hash>, BROKENPIPELINE",
		"commit " + strings.Repeat("0123456789", 4):                                "commit <commit>",
		"/home/ci/ws/a.go:12 and /tmp/go-build123/b001/x.test":                     "/home/ci/ws/a.go:12 and <tmp>",
		"/private/var/folders/xy/T/uwf1: gone":                                     "<tmp>: gone",
		"memory in /data/runner/uwf-agent-1234/home/.claude/projects/-ws/memory/.": "memory in <tmp>",
		"ok  \tpkg\t0.012s\nok  \tpkg\t(cached)":                                   "ok  \tpkg\t<time>\nok  \tpkg\t<time>",
		"--- FAIL: TestA (0.00s)":                                                  "--- FAIL: TestA (<time>)",
		"took 1m3.5s, 12ms":                                                        "took <time>, <time>",
		"listening on 127.0.0.1:43211, localhost:80":                               "listening on 127.0.0.1:<port>, localhost:<port>",
		"2026-01-02T03:04:05.678Z, 2026-01-02, 03:04:05, 2026-01-02 03:04 +0100":   "<date>, <date>, <clock>, <date>",
		"goroutine 17 [running]: 0xc000012345":                                     "goroutine <n> [running]: <address>",
		"123e4567-e89b-12d3-a456-426614174000":                                     "<uuid>",
		"Chunk ID: 226a51\nWall time: 0.0000 seconds\nExit":                        "Chunk ID: <id>\nWall time: <time>\nExit", // codex 0.169
		"Process Group PGID: 16241":                                                "Process Group PGID: <n>",                 // qwen 0.24
		"Chunk ID: of 5, Wall time: 3":                                             "Chunk ID: of 5, Wall time: 3",
		"a \r\nb\t\n\n":                                                            "a\nb",
		"5 apples, 12 monkeys, v1.2.3, 10 s":                                       "5 apples, 12 monkeys, v1.2.3, 10 s",
	} {
		if got := n.normaliseText(in); got != want {
			t.Errorf("%q becomes %q instead of %q", in, got, want)
		}
		if got := n.normaliseText(n.normaliseText(in)); got != want {
			t.Errorf("%q is changed again: %q", want, got)
		}
	}
}

func TestExcerptShowsTheDifference(t *testing.T) {
	long := strings.Repeat("ä", 400)
	p := &Player{}
	d := p.compareText("x", long+"1"+long, long+"2"+long)
	if d == nil || !strings.Contains(d.Want, "1") || !strings.Contains(d.Got, "2") || len(d.Want) > 3*excerptLen || !strings.HasPrefix(d.Want, `"…`) {
		t.Errorf("%+v", d)
	}
	if d = p.compareText("x", "a\nb", "a"); d == nil || d.Got != "(no such line)" || d.Want != `"b"` {
		t.Errorf("%+v", d)
	}
}

// Where a recording is played, its models need not be configured.
func TestAnyModel(t *testing.T) {
	c := mustParse(t, `{"role":"written","match":{"model":"m"},"answer":{"text":"ok"}}
{"step":1,"role":"r","request":{"post":"/v1/messages","model":"big","messages":[{"role":"user","text":"in a fence 0123456789abcdef01"}]},"answer":{"text":"ok"}}
`)
	ask := func(model, any string) error {
		p := c.NewPlayer(PlayerOptions{Step: 1, Role: "r", AnyModel: any})
		_, _, err := p.Play(&dialect.Request{Dialect: dialect.Messages, Model: model, Messages: []dialect.Message{msg("user", "in a fence fedcba987654321000")}})
		return err
	}
	for _, tt := range []struct {
		model, any string
		ok         bool
	}{{"big", "", true}, {"", "", false}, {"small", "", false}, {"replayed", "replayed", true}, {"small", "replayed", false}, {"big", "replayed", true}} {
		if err := ask(tt.model, tt.any); (err == nil) != tt.ok {
			t.Errorf("%q asked for where %q is any: %v", tt.model, tt.any, err)
		}
	}
	p := c.NewPlayer(PlayerOptions{Step: 1, Role: "written", AnyModel: "any"})
	r := chat(msg("user", "x"))
	r.Model = "any"
	if _, _, err := p.Play(r); err != nil {
		t.Errorf("a match: %v", err)
	}
	if m, d, ok := c.Asked("r"); m != "big" || d != dialect.Messages || !ok {
		t.Errorf("asked %q %v %v", m, d, ok)
	}
	if _, _, ok := c.Asked("written"); ok {
		t.Error("something was recorded for what was written by hand")
	}
}
