package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/united-workforce/uwf/agents"
)

const claudeMeta = `{"claudeCode":{"options":{"settingSources":["user"],"strictMcpConfig":true}}}`

const (
	firstAnswer  = "---\n$status: done\nsummary: Wrote hello.txt (answer 1)\n---\nI wrote hello.txt.\n"
	secondAnswer = "---\n$status: done\nsummary: Wrote hello.txt (answer 2)\n---\nI wrote hello.txt.\n"
)

// What real servers said, first answer, correction, permission and failure.
func TestRecordedServers(t *testing.T) {
	for _, tt := range []struct {
		name, mode, meta string
		prompts          []string
		answers          []string
		fails            string // in the error of the last prompt
	}{
		{"claude", "bypassPermissions", claudeMeta, []string{"Write hello.txt", "The answer does not fit: correct it"}, []string{firstAnswer, secondAnswer}, ""},
		{"copilot", "", "", []string{"Write hello.txt", "The answer does not fit: correct it"}, []string{firstAnswer, secondAnswer}, ""},
		{"gemini", "yolo", "", []string{"Write hello.txt", "The answer does not fit: correct it"}, []string{firstAnswer, secondAnswer}, ""},
		{"opencode", "", "", []string{"Write hello.txt", "The answer does not fit: correct it"}, []string{firstAnswer, secondAnswer}, ""},
		{"qwen", "yolo", "", []string{"Write hello.txt", "The answer does not fit: correct it"}, []string{firstAnswer, secondAnswer}, ""},
		{"claude-ask", "", claudeMeta, []string{"Write hello.txt"}, []string{firstAnswer}, ""},
		{"copilot-ask", "", "", []string{"Write hello.txt"}, []string{firstAnswer}, ""},
		{"gemini-ask", "", "", []string{"Write hello.txt"}, []string{firstAnswer}, ""},
		{"opencode-ask", "", "", []string{"Write hello.txt"}, []string{firstAnswer}, ""},
		{"qwen-ask", "", "", []string{"Write hello.txt"}, []string{firstAnswer}, ""},
		{"claude-err", "bypassPermissions", claudeMeta, []string{"Do [[err400]]"}, nil, "session/prompt: error -32603: Internal error: API Error: 400 fake failure 400"},
		{"gemini-err", "yolo", "", []string{"Do [[err400]]"}, nil, `session/prompt: error 400: {"error":{"code":400,"message":"fake failure 400"`},
		{"qwen-err", "yolo", "", []string{"Do [[err400]]"}, nil, `session/prompt: error -32603: Internal error {"details":"400 fake failure 400"}`},
		// It tells a failure of its model as if it were an answer: the kit asks again.
		{"copilot-err", "", "", []string{"Do [[err400]]"}, []string{"Error: 400 fake failure 400"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var told []string
			c := startServer(t, replay(readRecording(t, tt.name)))
			c.Progress = func(line string) { told = append(told, line) }
			if err := begin(t.Context(), c, tt.mode, tt.meta); err != nil {
				t.Fatal(err)
			}
			for i, prompt := range tt.prompts {
				got, err := c.Prompt(t.Context(), prompt)
				switch {
				case tt.fails != "":
					if err == nil || !strings.Contains(err.Error(), tt.fails) {
						t.Errorf("error %v, want %s", err, tt.fails)
					}
				case err != nil || got != tt.answers[i]:
					t.Errorf("answer %d: %q, %v", i+1, got, err)
				}
			}
			if tt.fails == "" && tt.name != "copilot-err" && len(told) == 0 {
				t.Error("the tool call was not told")
			}
		})
	}
}

// The server is told to cancel, and its answer to that is waited for.
func TestCancelRecorded(t *testing.T) {
	for name, mode := range map[string]string{"claude-cancel": "bypassPermissions", "gemini-cancel": "yolo"} {
		t.Run(name, func(t *testing.T) {
			meta := ""
			if name == "claude-cancel" {
				meta = claudeMeta
			}
			c := startServer(t, replay(readRecording(t, name)))
			if err := begin(t.Context(), c, mode, meta); err != nil {
				t.Fatal(err)
			}
			stopped := errors.New("enough")
			ctx, stop := context.WithCancelCause(t.Context())
			c.Progress = func(line string) {
				if strings.Contains(line, "tail -f") {
					stop(stopped)
				}
			}
			if _, err := c.Prompt(ctx, "Do [[sleep]]"); !errors.Is(err, stopped) {
				t.Errorf("error %v", err)
			}
		})
	}
}

const (
	hello   = `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"authMethods":[{"id":"a","name":"Log in"}]}}`
	session = `{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s","modes":{"availableModes":[{"id":"ask"},{"id":"yolo"}]}}}`
	ended   = `{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}`
)

func say(words string) string {
	b, err := json.Marshal(words)
	if err != nil {
		panic(err)
	}
	return `{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":` + string(b) + `}}}}`
}

// printAll answers the first requests with the lines given, without reading them.
func printAll(lines ...string) func(*server) error {
	return func(s *server) error {
		go func() { _, _ = io.Copy(io.Discard, s.in) }()
		s.print(lines...)
		return nil
	}
}

func TestHostileServers(t *testing.T) {
	tool := `{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","title":"x"}}}`
	for _, tt := range []struct {
		name  string
		serve func(*server) error
		want  string // the answer
		fails string // in the error
	}{
		{"good", printAll(hello, session, say("fine"), ended), "fine", ""},
		{"nothing", printAll(), "", "initialize: it ended, or closed its output"},
		{"no server", printAll("Usage: prog [options]", "  --help"), "", `initialize: it ended, or closed its output; among what it printed is no message of the protocol: "Usage: prog [options]"`},
		{"a line without end", printAll(strings.Repeat("x", maxLine+1)), "", "initialize: it printed a line of more than 8388608 bytes"},
		{"lines without end", printAll(strings.Repeat("\n", maxLines+1)), "", "initialize: it printed more than 1048576 lines"},
		{"garbage without end", printAll(strings.Repeat("garbage\n", maxStray+2)), "", `lines that are no messages of the protocol, the first is "garbage"; is this the command of an ACP server?`},
		{"garbage between", printAll("warning: \x1b[31mold", hello, "[]", "{", `"x"`, "null", session, "7", say("fine"), ended), "fine", ""},
		{"nested without end", printAll(strings.Repeat("[", 100_000), hello, session, say("fine"), ended), "fine", ""},
		{"answers to nobody", printAll(`{"id":7,"result":{}}`, `{"id":"1","result":{"protocolVersion":9}}`, `{"id":null,"result":{}}`, hello, `{"id":1,"result":{}}`, session, say("fine"), ended), "fine", ""},
		{"answers to nobody without end", printAll(strings.Repeat(`{"id":9,"result":{}}`+"\n", maxStray+2)), "", "is this the command of an ACP server?"},
		{"an id of a megabyte", printAll(hello, session, `{"id":"`+strings.Repeat("x", 1<<20)+`","method":"fs/read_text_file"}`, say("fine"), ended), "fine", ""},
		{"neither result nor error", printAll(`{"id":1}`), "", "initialize: its answer can't be read"},
		{"a result of another kind", printAll(`{"id":1,"result":[1]}`), "", "initialize: its answer can't be read"},
		{"result and error", printAll(`{"id":1,"result":{"protocolVersion":1},"error":{"code":-1,"message":"a\u001b[2Jb"}}`), "", "initialize: error -1: a\uFFFD[2Jb"},
		{"another version", printAll(`{"id":1,"result":{"protocolVersion":2}}`), "", "it speaks version 2 of the Agent Client Protocol, uwf version 1"},
		{"no version", printAll(`{"id":1,"result":null}`), "", "it speaks version 0"},
		{"a login", printAll(hello, `{"id":2,"error":{"code":-32000,"message":"Authentication required"}}`), "", "session/new: it wants a login (error -32000: Authentication required; it offers: Log in): "},
		{"no session", printAll(hello, `{"id":2,"result":{}}`), "", "session/new: its answer names no session"},
		{"an end in the prompt", printAll(hello, session, say("almost")), "", "session/prompt: it ended, or closed its output"},
		{"no words", printAll(hello, session, say(" \n"), ended), "", "it ended its turn without an answer"},
		{"words before a tool alone", printAll(hello, session, say("I will."), tool, ended), "", "it ended its turn without an answer"},
		{"words before a tool", printAll(hello, session, say("I will."), tool, say("Did"), say(" it."), ended), "Did it.", ""},
		{"words of another session", printAll(hello, session, strings.Replace(say("no"), `"s"`, `"t"`, 1), say("fine"), ended), "fine", ""},
		{"updates of other kinds", printAll(hello, session, `{"method":"session/update"}`, `{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}}}`,
			`{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"image","data":"x"}}}}`,
			`{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":[]}}}`,
			`{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"usage_update","used":-1}}}`, `{"method":"_x/y","params":7}`, say("fine"), ended), "fine", ""},
		{"messages after each other", printAll(hello, session,
			`{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","messageId":"1","content":{"type":"text","text":"Note: old."}}}}`,
			`{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","messageId":"2","content":{"type":"text","text":"---\na: b\n---\n"}}}}`, ended), "---\na: b\n---\n", ""},
		{"cut off", printAll(hello, session, say("x"), `{"id":3,"result":{"stopReason":"max_tokens"}}`), "", "raise maxOutput of the model"},
		{"too many requests", printAll(hello, session, say("x"), `{"id":3,"result":{"stopReason":"max_turn_requests"}}`), "", "give the role less to do"},
		{"a refusal", printAll(hello, session, say("x"), `{"id":3,"result":{"stopReason":"refusal"}}`), "", "the model refused"},
		{"cancelled by itself", printAll(hello, session, say("x"), `{"id":3,"result":{"stopReason":"cancelled"}}`), "", "though uwf did not ask for it"},
		{"an unknown reason", printAll(hello, session, say("x"), `{"id":3,"result":{"stopReason":"a\u001bb"}}`), "", "it stopped with \"a\uFFFDb\": uwf knows no such reason"},
		{"no reason", printAll(hello, session, say("x"), `{"id":3,"result":{}}`), "", `it stopped with ""`},
		{"reads nothing", func(s *server) error {
			s.print(strings.Repeat(`{"id":1,"method":"fs/read_text_file"}`+"\n", maxQueued+3))
			return nil
		}, "", "it has not read the last 64 messages"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := startServer(t, tt.serve)
			err := begin(t.Context(), c, "", "")
			got := ""
			if err == nil {
				got, err = c.Prompt(t.Context(), "Do it")
			}
			if tt.fails == "" && (err != nil || got != tt.want) || tt.fails != "" && (err == nil || !strings.Contains(err.Error(), tt.fails)) {
				t.Errorf("answer %q, error %v; want %q, %q", got, err, tt.want, tt.fails)
			}
		})
	}
}

// Words without end are dropped once they are more than an answer may have.
func TestEndlessAnswer(t *testing.T) {
	lines := []string{hello, session}
	for range 20 {
		lines = append(lines, say(strings.Repeat("é", 50_000)))
	}
	c := startServer(t, printAll(append(lines, ended)...))
	if err := begin(t.Context(), c, "", ""); err != nil {
		t.Fatal(err)
	}
	got, err := c.Prompt(t.Context(), "Do it")
	if err != nil || len(got) <= agents.MaxAnswer || len(got) > agents.MaxAnswer+8 || !utf8.ValidString(got) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestModes(t *testing.T) {
	for _, tt := range []struct{ mode, answer, fails string }{
		{"yolo", `{"id":3,"result":null}`, ""},
		{"yolo", `{"id":3,"error":{"code":-32602,"message":"no"}}`, "session/set_mode: error -32602: no"},
		{"auto", "", `it has no mode "auto": it has ask, yolo`},
	} {
		c := startServer(t, printAll(hello, session, tt.answer))
		if err := begin(t.Context(), c, tt.mode, ""); tt.fails == "" && err != nil || tt.fails != "" && (err == nil || !strings.Contains(err.Error(), tt.fails)) {
			t.Errorf("%s: %v", tt.mode, err)
		}
	}
}

// What a server asks for is answered by the policy, or as unknown.
func TestServerRequests(t *testing.T) {
	const (
		options  = `"options":[{"optionId":"n","kind":"reject_once"},{"optionId":"always","kind":"allow_always"},{"optionId":"once","kind":"allow_once"}]`
		selected = `{"outcome":{"optionId":"%","outcome":"selected"}}`
		refused  = `{"outcome":{"outcome":"cancelled"}}`
		unknown  = "error -32601"
	)
	ask := func(params string) string {
		return `{"id":0,"method":"session/request_permission","params":` + params + `}`
	}
	for _, tt := range []struct {
		name, line string
		policy     Policy
		want       string
	}{
		{"allowed", ask(`{"sessionId":"s",` + options + `}`), "", strings.Replace(selected, "%", "once", 1)},
		{"allowed for good", ask(`{"sessionId":"s","options":[{"optionId":"always","kind":"allow_always"}]}`), AllowTools, strings.Replace(selected, "%", "always", 1)},
		{"rejected", ask(`{"sessionId":"s",` + options + `}`), RejectTools, strings.Replace(selected, "%", "n", 1)},
		{"nothing to allow", ask(`{"sessionId":"s","options":[{"optionId":"n","kind":"reject_once"},{"optionId":"allow","kind":"sudo"}]}`), AllowTools, refused},
		{"nothing to reject", ask(`{"sessionId":"s","options":[{"optionId":"once","kind":"allow_once"}]}`), RejectTools, refused},
		{"another session", ask(`{"sessionId":"t",` + options + `}`), AllowTools, refused},
		{"no options", ask(`{"sessionId":"s"}`), AllowTools, refused},
		{"no parameters", ask(`7`), AllowTools, refused},
		{"a file", `{"id":"x","method":"fs/read_text_file","params":{"sessionId":"s","path":"/etc/passwd"}}`, AllowTools, unknown},
		{"a terminal", `{"id":{"a":1},"method":"terminal/create"}`, AllowTools, unknown},
		{"an extension", `{"id":0,"method":"craft/drainMidTurnQueue"}`, AllowTools, unknown},
		{"an update that wants an answer", `{"id":0,"method":"session/update"}`, AllowTools, unknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			answered := make(chan string, 1)
			c := startServer(t, func(s *server) error {
				for _, line := range []string{hello, session, ""} {
					if _, err := s.next(); err != nil {
						return err
					}
					s.print(line)
				}
				s.print(tt.line)
				m, err := s.next()
				if m.Error != nil {
					m.Result = json.RawMessage(strings.SplitN(m.Error.Error(), ":", 2)[0])
				}
				answered <- string(m.ID) + string(m.Result)
				s.print(say("fine"), ended)
				return err
			})
			c.Policy = tt.policy
			if err := begin(t.Context(), c, "", ""); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Prompt(t.Context(), "Do it"); err != nil {
				t.Fatal(err)
			}
			var asked received
			if err := json.Unmarshal([]byte(tt.line), &asked); err != nil {
				t.Fatal(err)
			}
			if got := <-answered; got != string(asked.ID)+tt.want {
				t.Errorf("answered %s", got)
			}
		})
	}
}

// Who asks for permission while the turn is being cancelled is told so, and a server that
// does not heed the cancelling is not waited for.
func TestCancelUnheeded(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	answered := make(chan string, 1)
	c := startServer(t, func(s *server) error {
		for _, line := range []string{hello, session, ""} {
			if _, err := s.next(); err != nil {
				return err
			}
			s.print(line)
		}
		stop()
		if m, err := s.next(); err != nil || m.Method != "session/cancel" {
			return errors.New("session/cancel did not come: " + m.Method)
		}
		s.print(`{"id":0,"method":"session/request_permission","params":{"sessionId":"s","options":[{"optionId":"once","kind":"allow_once"}]}}`)
		m, err := s.next()
		answered <- string(m.Result)
		if err != nil {
			return err
		}
		_, err = s.next() // nothing comes: it is left
		return err
	})
	if err := begin(t.Context(), c, "", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Prompt(ctx, "Do it"); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if got := <-answered; got != `{"outcome":{"outcome":"cancelled"}}` {
		t.Errorf("answered %s", got)
	}
}

func TestCutPreamble(t *testing.T) {
	for said, want := range map[string]string{
		"---\na: b\n---\nx": "---\na: b\n---\nx",
		"Model metadata for `m` not found\n---\na: b\n---\n": "---\na: b\n---\n",
		"[MODE_UPDATE] yolo---\n$status: done\n---\nx":       "---\n$status: done\n---\nx",
		"Config warning: old.---\r\n\"a\": b\r\n---\r\n":     "---\r\n\"a\": b\r\n---\r\n",
		"ü---\na: b\n---\n":                                  "---\na: b\n---\n",
		"words\n--- \n{\"a\": 1}\n---\n":                     "--- \n{\"a\": 1}\n---\n",
		"| a |\n|---\n| b: c |\n":                            "| a |\n|---\n| b: c |\n",
		"-----\na: b\n":                                      "-----\na: b\n",
		"no fields":                                          "no fields",
		"and ---\nso: on":                                    "and ---\nso: on",
		"```yaml\n---\na: b\n---\n```\n":                     "```yaml\n---\na: b\n---\n```\n",
		"<think>\n---\n</think>\n---\na: b\n---\n":           "<think>\n---\n</think>\n---\na: b\n---\n",
		"": "",
	} {
		if got := cutPreamble(said); got != want {
			t.Errorf("%q became %q", said, got)
		}
	}
}

// lockedBuffer is what the client wrote.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// Whatever a server prints, the client ends with it, says nothing that is no message, and
// takes no more than an answer may have.
func FuzzServer(f *testing.F) {
	for _, name := range []string{"claude", "copilot-ask", "gemini", "opencode-ask", "qwen"} {
		var said []string
		for _, line := range readRecording(f, name) {
			if line, ok := strings.CutPrefix(line, "< "); ok {
				said = append(said, line)
			}
		}
		f.Add([]byte(strings.Join(said, "\n")))
	}
	f.Add([]byte(hello + "\n" + session + "\n" + say("---\na: b") + "\n" + ended))
	f.Fuzz(func(t *testing.T, printed []byte) {
		told := &lockedBuffer{}
		c := NewClient(bytes.NewReader(printed), told)
		err := begin(t.Context(), c, "yolo", "")
		for err == nil {
			var got string
			if got, err = c.Prompt(t.Context(), "Do it"); len(got) > agents.MaxAnswer+8 || !utf8.ValidString(got) || err == nil && strings.TrimSpace(got) == "" {
				t.Errorf("answer %q", got)
			}
		}
		c.Close()
		told.mu.Lock()
		defer told.mu.Unlock()
		for line := range bytes.Lines(told.b.Bytes()) {
			if !json.Valid(line) {
				t.Errorf("it said %q", line)
			}
		}
	})
}

// A login that reads variables which the server has is done once; no other is.
func TestLoginByVariable(t *testing.T) {
	const (
		offers  = `{"id":1,"result":{"protocolVersion":1,"authMethods":[{"id":"chatgpt","name":"ChatGPT"},{"type":"env_var","id":"codex","name":"Codex","vars":[{"name":"CODEX_API_KEY"}]},{"type":"env_var","id":"openai","name":"OpenAI","vars":[{"name":"OPENAI_API_KEY"},{"name":"OPENAI_ORG","optional":true}]}]}}`
		opens   = `{"id":%,"method":"session/new","params":{"cwd":"/workspace","mcpServers":[]}}`
		refuses = `{"id":%,"error":{"code":-32000,"message":"Authentication required"}}`
	)
	id := func(line, n string) string { return strings.Replace(line, "%", n, 1) }
	begun := []string{`> {"id":1,"method":"initialize"}`, "< " + offers, "> " + id(opens, "2"), "< " + id(refuses, "2")}
	login := `> {"id":3,"method":"authenticate","params":{"methodId":"openai"}}`
	for name, tt := range map[string]struct {
		environ []string
		lines   []string
		fails   string
	}{
		"a variable is set": {[]string{"OPENAI_API_KEY=k"}, []string{login, `< {"id":3,"result":{}}`, "> " + id(opens, "4"), `< {"id":4,"result":{"sessionId":"s"}}`}, ""},
		"none is set":       {[]string{"OPENAI_ORG=o", "CODEX_API_KEY="}, nil, "session/new: it wants a login (error -32000: Authentication required; it offers: ChatGPT, Codex, OpenAI)"},
		"it fails":          {[]string{"OPENAI_API_KEY=k"}, []string{login, `< {"id":3,"error":{"code":-32603,"message":"bad key"}}`}, "authenticate: error -32603: bad key"},
		"it does not help":  {[]string{"OPENAI_API_KEY=k"}, []string{login, `< {"id":3,"result":{}}`, "> " + id(opens, "4"), "< " + id(refuses, "4")}, "session/new: it wants a login"},
	} {
		t.Run(name, func(t *testing.T) {
			c := startServer(t, replay(append(slices.Clone(begun), tt.lines...)))
			c.Environ = tt.environ
			err := begin(t.Context(), c, "", "")
			if tt.fails == "" && err != nil || tt.fails != "" && (err == nil || !strings.Contains(err.Error(), tt.fails)) {
				t.Errorf("%v, want %q", err, tt.fails)
			}
		})
	}
}
