package acp

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/agenttest"
	"github.com/united-workforce/uwf/agents/cli"
	"github.com/united-workforce/uwf/agents/gateway"
	"github.com/united-workforce/uwf/agents/gateway/mcp"
	"github.com/united-workforce/uwf/agents/program"
	"github.com/united-workforce/uwf/engine/task"
)

const gatewayURL, gatewayKey = "http://127.0.0.1:7", "k3y"

// newProcess is the process of an agent whose program is this test binary, or another.
func newProcess(t *testing.T, binary string, environ ...string) *agenttest.Process {
	t.Helper()
	if binary == "" {
		var err error
		if binary, err = os.Executable(); err != nil {
			t.Fatal(err)
		}
	}
	asked := agenttest.Task(t)
	asked.Model = &task.Model{Alias: "m", Name: "model-of-m", Window: 1000, MaxOutput: 100}
	return agenttest.NewProcess(t, asked, append([]string{
		agents.EnvProgram + "=" + binary, "HOME=" + t.TempDir(), "TMPDIR=" + t.TempDir(),
		gateway.EnvURL + "=" + gatewayURL, gateway.EnvKey + "=" + gatewayKey, "OPENAI_API_KEY=" + gatewayKey, "OPENAI_MODEL=m",
	}, environ...)...)
}

// runAgent runs a server of the tests as an agent.
func runAgent(ctx context.Context, p *agenttest.Process, s Server, name string) error {
	s.Name, s.Program = "tested", "prog"
	s.Env = append(s.Env, envServer+"="+name)
	a := &Agent{Server: s}
	return errors.Join(agents.RunAdapter(ctx, a, p.Process), a.Close())
}

// A correction goes to the same session, and what the agent has written for tools like itself
// is out of its way then, and back at the end.
func TestAgentCorrects(t *testing.T) {
	p := newProcess(t, "")
	if err := runAgent(t.Context(), p, Server{}, "correct"); err != nil {
		t.Fatal(err, p.Err)
	}
	output := p.Nodes(t)[p.Step(t).Output].Payload
	if got := output.(map[string]any)["note"]; got != "planted: false" {
		t.Errorf("note %v", got)
	}
	if _, err := os.Stat(filepath.Join(p.Dir, planted)); err != nil {
		t.Error(err)
	}
}

func TestAgentEnvironment(t *testing.T) {
	body := func(s Server, environ ...string) string {
		t.Helper()
		p := newProcess(t, "", environ...)
		if err := runAgent(t.Context(), p, s, "environ"); err != nil {
			t.Fatal(err, p.Err)
		}
		return "\n" + p.Nodes(t)[*p.Step(t).Body].Payload.(string)
	}
	got := body(Server{Env: []string{"A=$UWF_GATEWAY_URL/v1", "B=${UWF_GATEWAY_KEY}", "C=$UWF_MODEL"}}, "EXTRA=1")
	for _, want := range []string{"A=" + gatewayURL + "/v1", "B=" + gatewayKey, "C=m", "CI=1", "EXTRA=1", "OPENAI_MODEL=m", "NO_COLOR=1"} {
		if !strings.Contains(got, "\n"+want+"\n") {
			t.Errorf("%s is missing in %s", want, got)
		}
	}
	if strings.Contains(got, "\nUWF_CONTEXT=") || strings.Contains(got, "\nUWF_STAGE=") || !strings.Contains(got, `"text":"Do it.\n"`) {
		t.Errorf("%s", got)
	}
	// One of the list finds its own variables alone.
	got = body(Server{Install: "x", Versions: program.Range{Min: "1.0.0", Tested: "1.0.0"}})
	if strings.Contains(got, "OPENAI_") {
		t.Errorf("%s", got)
	}
}

func TestAgentFails(t *testing.T) {
	notProgram := filepath.Join(t.TempDir(), "prog")
	if err := os.WriteFile(notProgram, []byte("no program"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, serves string
		server       Server
		binary       string
		environ      []string
		fails        []string
	}{
		{"an end before the first answer", "exit", Server{}, "", nil, []string{"prog: initialize: it ended with exit code 1\nserver: unknown option --acp \uFFFD[2J"}},
		{"an end that is known", "exit", Server{hint: "use another"}, "", nil, []string{"prog: initialize: it ended with exit code 1; use another\nserver: "}},
		{"another program", "help", Server{}, "", nil, []string{`prog: initialize: it ended with exit code 0; among what it printed is no message of the protocol: "Usage: prog [prompt]"`}},
		{"a login", "login", Server{}, "", nil, []string{"prog: session/new: it wants a login (error -32000: Authentication required; it offers: Log in)", "login: own"}},
		{"a death in the prompt", "die", Server{}, "", nil, []string{"prog: session/prompt: it was killed; the system does that when memory runs out\nabout to die"}},
		{"an empty answer", "empty", Server{}, "", nil, []string{"prog: it ended its turn without an answer"}},
		{"a mode that there is not", "empty", Server{Mode: "auto"}, "", nil, []string{`prog: it has no mode "auto": it has ask, yolo`}},
		{"no program", "", Server{}, filepath.Join(t.TempDir(), "none"), nil, []string{"prog: initialize: starting ", "no such file"}},
		{"what is no program", "", Server{}, notProgram, nil, []string{"prog: initialize: starting ", "exec format error"}},
		{"no program named", "", Server{}, "", []string{agents.EnvProgram + "="}, []string{"UWF_PROGRAM is not set"}},
		{"no HOME", "", Server{}, "", []string{"HOME="}, []string{"HOME or TMPDIR is not set"}},
		{"its makers' servers alone", "", Server{OwnServers: true}, "", nil, []string{"prog talks to the servers of its makers alone", "set agents.tested.login to own in ~/.uwf/config.yaml"}},
		{"an unknown value", "", Server{Env: []string{"A=$HOME"}}, "", nil, []string{`variable "A=$HOME": $HOME can't be filled in, only $UWF_GATEWAY_URL, $UWF_GATEWAY_KEY and $UWF_MODEL`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := runAgent(t.Context(), newProcess(t, tt.binary, tt.environ...), tt.server, tt.serves)
			for _, want := range tt.fails {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %q", err, want)
				}
			}
		})
	}
	p := newProcess(t, "")
	s, err := agents.OpenSession(p.Process)
	if err != nil {
		t.Fatal(err)
	}
	a := &Agent{Server: Server{Name: "tested"}}
	if _, err := a.Continue(t.Context(), s, "again"); err == nil || !strings.Contains(err.Error(), "there is no session to continue") {
		t.Errorf("error %v", err)
	}
	if err := errors.Join(a.Close(), s.Close()); err != nil {
		t.Error(err)
	}
}

// stopAt ends a context once a word is written.
type stopAt struct {
	word string
	stop context.CancelCauseFunc
	err  error
}

func (w *stopAt) Write(p []byte) (int, error) {
	if strings.Contains(string(p), w.word) {
		w.stop(w.err)
	}
	return len(p), nil
}

// Who is stopped leaves nothing, not even what heeds no signal in a session of its own.
func TestAgentStopped(t *testing.T) {
	stopped := errors.New("enough")
	ctx, stop := context.WithCancelCause(t.Context())
	p := newProcess(t, "")
	p.Stderr = &stopAt{word: "tested: started", stop: stop, err: stopped}
	if err := runAgent(ctx, p, Server{}, "stubborn"); !errors.Is(err, stopped) {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(p.Dir, "child.pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d is still there: %v", pid, err)
	}
}

// What each server of the list finds, as its documentation or its runs have it.
func TestServers(t *testing.T) {
	wants := map[string]struct {
		environ []string
		file    string // below HOME
		holds   string
	}{
		"opencode-acp": {[]string{"OPENCODE_DISABLE_PROJECT_CONFIG=1", `OPENCODE_CONFIG_CONTENT={"autoupdate":false`}, "", ""},
		"gemini-acp":   {[]string{"GEMINI_MODEL=m", "GEMINI_API_KEY=" + gatewayKey, "GOOGLE_GEMINI_BASE_URL=" + gatewayURL}, ".gemini/settings.json", `"selectedType":"gemini-api-key"`},
		"goose":        {[]string{"GOOSE_PROVIDER=openai", "GOOSE_MODEL=m", "OPENAI_HOST=" + gatewayURL, "OPENAI_API_KEY=" + gatewayKey}, "", ""},
		"hermes":       {nil, ".hermes/config.yaml", `{"model":{"api_key":"k3y","base_url":"http://127.0.0.1:7/v1","default":"m","provider":"custom"}}`},
		"cursor":       {nil, "", ""},
	}
	all := All()
	if len(all) != len(wants) {
		t.Errorf("%d servers", len(all))
	}
	for _, s := range all {
		want := wants[s.Name]
		session, err := agents.OpenSession(newProcess(t, "").Process)
		if err != nil {
			t.Fatal(err)
		}
		env, err := s.environ(session, readValues(session))
		if err != nil {
			t.Fatal(s.Name, err)
		}
		joined := "\n" + strings.Join(env, "\n") + "\n"
		for _, kv := range want.environ {
			if !strings.Contains(joined, "\n"+kv) {
				t.Errorf("%s: %s is missing in %s", s.Name, kv, joined)
			}
		}
		if strings.Contains(joined, "\nOPENAI_MODEL=") || strings.Contains(joined, "\nUWF_") {
			t.Errorf("%s: %s", s.Name, joined)
		}
		if want.file != "" {
			b, err := os.ReadFile(filepath.Join(session.Getenv("HOME"), want.file))
			if err != nil || !strings.Contains(string(b), want.holds) {
				t.Errorf("%s: %s, %v", s.Name, b, err)
			}
		}
		if f := s.Foreign(); f.Program == "" || f.Install == "" {
			t.Errorf("%s: %+v", s.Name, f)
		}
		if _, both := cli.Find(s.Name); both {
			t.Errorf("%s is a CLI's name, too", s.Name)
		}
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	}
	if s, ok := Find("goose"); !ok || !s.Untested() {
		t.Errorf("goose: %+v", s)
	}
	if _, ok := Find("geese"); ok {
		t.Error("geese were found")
	}
}

// MCP servers are given to who takes them over HTTP, with the gateway's key.
func TestMCPServers(t *testing.T) {
	for capable, want := range map[string]string{
		`{"http":true}`: `[{"headers":[{"name":"Authorization","value":"Bearer k"}],"name":"docs","type":"http","url":"http://127.0.0.1:7/mcp/docs"}]`,
		`{"sse":true}`:  `[]`,
	} {
		got := make(chan string, 1)
		c := startServer(t, func(s *server) error {
			if _, err := s.next(); err != nil {
				return err
			}
			s.print(`{"id":1,"result":{"protocolVersion":1,"agentCapabilities":{"mcpCapabilities":` + capable + `}}}`)
			m, err := s.next()
			got <- string(m.Params)
			s.print(session)
			return err
		})
		err := c.Initialize(t.Context())
		if err == nil {
			err = c.StartSession(t.Context(), "/workspace", []mcp.Address{{Name: "docs", URL: "http://127.0.0.1:7/mcp/docs"}}, "k", nil)
		}
		if params := <-got; err != nil || !strings.Contains(params, `"mcpServers":`+want) {
			t.Errorf("%s: %s, %v", capable, params, err)
		}
	}
}
