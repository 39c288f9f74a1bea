package processes

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/united-workforce/uwf/internal/testmode"
)

// scribe is a fake provider that speaks OpenAI's chat and Anthropic's messages: it
// checks the key and gives one text after the other.
type scribe struct {
	*testing.T
	key string

	mu    sync.Mutex
	texts []string
	asked []scribed
}

// scribed is a request as far as both APIs have it in common.
type scribed struct {
	path, body     string
	Model          string
	System         string
	ResponseFormat *struct{ Type string } `json:"response_format"`
	Messages       []struct{ Role, Content string }
}

func (s *scribe) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	got := scribed{path: r.URL.Path}
	b, err := io.ReadAll(r.Body)
	if err == nil {
		got.body = string(b)
		err = json.Unmarshal(b, &got)
	}
	key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ") + r.Header.Get("X-Api-Key")
	if err != nil || key != s.key {
		s.Errorf("the provider got %q with key %q: %v", b, key, err)
	}
	s.asked = append(s.asked, got)
	if len(s.texts) == 0 {
		http.Error(w, `{"error":{"message":"the scribe has no more to say"}}`, http.StatusBadRequest)
		return
	}
	text := s.texts[0]
	s.texts = s.texts[1:]
	w.Header().Set("Content-Type", "application/json")
	reply := completion(`"content":`+quoted(text), "stop")
	if got.path == "/v1/messages" {
		reply = `{"id":"m","type":"message","role":"assistant","model":"x","content":[{"type":"text","text":` + quoted(text) +
			`}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":5}}`
	}
	_, _ = io.WriteString(w, reply)
}

// writes is what the provider will say.
func (s *scribe) writes(texts ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.texts, s.asked = texts, nil
}

// exampleAgent is one of examples/agents with an API that it speaks.
type exampleAgent struct{ file, needs, api string }

var (
	shell           = exampleAgent{"agent.sh", "curl", "openai"}
	python          = exampleAgent{"agent.py", "python3", "openai"}
	pythonAnthropic = exampleAgent{"agent.py", "python3", "anthropic"}
)

// forExampleAgents runs a test for the first of some agents, or for all of them where
// UWF_TEST asks for processes. One that this machine can't run is skipped by name.
func forExampleAgents(t *testing.T, test func(t *testing.T, file, api string), list ...exampleAgent) {
	t.Helper()
	for _, a := range testmode.Some(len(list), list...) {
		t.Run(a.file+" "+a.api, func(t *testing.T) {
			if _, err := exec.LookPath(a.needs); err != nil {
				t.Skipf("NOT TESTED: examples/agents/%s needs %s, which is not installed; TestAgentInAnotherLanguage has the protocol alone", a.file, a.needs)
			}
			test(t, a.file, a.api)
		})
	}
}

func examplePath(t *testing.T, name string) string {
	t.Helper()
	file, err := filepath.Abs(filepath.Join("..", "..", "..", "..", "examples", "agents", name))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

const exampleConfig = `providers:
  fake: {baseUrl: URL, kind: KIND, apiKey: KEY}
models:
  big: {provider: fake, name: big-1, price: {input: 1, output: 2}}
  extract: {provider: fake, name: small-1}
defaultModel: big
`

// TestExampleAgents runs the agents of examples/agents as people would, with a
// provider of each API: a first answer that can't be used, its correction, the
// turns that are kept, and the same again from the recording.
func TestExampleAgents(t *testing.T) {
	forExampleAgents(t, testExampleAgent, shell, python, pythonAnthropic)
}

// scholar is a machine whose configured models are a scribe's.
type scholar struct {
	*machine
	scribe *scribe
	agent  string
	env    []string
}

// without takes programs off the machine's PATH, by leaving only those on it that
// the agents need.
func (s *scholar) without(program string) {
	s.Helper()
	bin := s.path("bin")
	s.check(os.MkdirAll(bin, 0o700))
	for _, name := range []string{"sh", "env", "git", "curl", "jq", "cat", "mktemp", "mv", "rm"} {
		if file, err := exec.LookPath(name); err == nil && name != program {
			s.check(os.Symlink(file, filepath.Join(bin, name)))
		}
	}
	s.env = []string{"PATH=" + bin}
}

func newScholar(t *testing.T, file, api string) *scholar {
	t.Helper()
	s := &scholar{machine: newLab(t, leak, "steps: []", nil).machine("a"), scribe: &scribe{T: t, key: "k" + "ey-of-the-test-1"}, agent: examplePath(t, file)}
	s.inside = true
	server := httptest.NewServer(s.scribe)
	t.Cleanup(server.Close)
	url := server.URL
	if api == "openai" {
		url += "/v1"
	}
	s.write(filepath.Join(s.home, "config.yaml"), strings.NewReplacer("URL", url, "KIND", api, "KEY", s.scribe.key).Replace(exampleConfig))
	return s
}

func (s *scholar) step(code int, id string, more ...string) *job {
	s.Helper()
	return s.start(s.env, append([]string{"thread", "step", id, "--agent", "'" + s.agent + "'"}, more...)...).ends(code)
}

func testExampleAgent(t *testing.T, file, api string) {
	s := newScholar(t, file, api)
	quiet := "It is \"done\": all's well, café, 100% – and a tab\t."
	s.scribe.writes(quiet, "---\n$status: more\nnote: mind the gap\n---\n"+quiet)
	id := s.startThread()
	cassette := s.path("cassette.jsonl")
	s.step(0, id, "--record", cassette)
	path := map[string]string{"openai": "/v1/chat/completions", "anthropic": "/v1/messages"}[api]
	if len(s.scribe.asked) != 2 {
		t.Fatalf("the provider was asked %d times", len(s.scribe.asked))
	}
	first, second := s.scribe.asked[0], s.scribe.asked[1]
	if first.path != path || first.Model != "big-1" {
		t.Errorf("asked %s for %s", first.path, first.Model)
	}
	if last := second.Messages[len(second.Messages)-1]; last.Role != "user" || !strings.HasPrefix(last.Content, "Your answer could not be used") || !strings.Contains(last.Content, "more, ask, done") {
		t.Errorf("the complaint was given as %+v", last)
	}
	if told := second.Messages[len(second.Messages)-2]; told.Role != "assistant" || told.Content != quiet {
		t.Errorf("the first answer was given back as %+v", told)
	}
	s.check1(id, 1, quiet)

	// The same from the recording, without the provider.
	s.scribe.writes()
	if file == "agent.sh" { // and without what a machine may lack: uwf is not on PATH either
		s.without("jq")
	}
	again := s.startThread()
	s.step(0, again, "--replay", cassette)
	s.check1(again, 1, quiet)
	if len(s.scribe.asked) > 0 {
		t.Errorf("the provider was asked in a replay")
	}
	// What is not in it fails the step, with the reason.
	if j := s.step(1, again, "--replay", cassette); !strings.Contains(j.errs.String(), "the cassette has nothing for this step") {
		t.Errorf("%s", j)
	}
	// So does a provider's error.
	if j := s.step(1, id); !strings.Contains(j.errs.String(), "the scribe has no more to say") {
		t.Errorf("%s", j)
	}
}

// check1 looks at the step that both answers made.
func (s *scholar) check1(id string, n int, body string) {
	s.Helper()
	steps := s.steps(id)
	if len(steps) != n || steps[n-1].Body != body || steps[n-1].Output["note"] != "mind the gap" {
		s.Fatalf("steps %+v", steps)
	}
	var details struct {
		TurnCount int
		Turns     []any
		Usage     struct{ Turns, InputTokens, OutputTokens int }
	}
	j := s.start(nil, "thread", "step-details", id+":1", "--format", "json").ends(0)
	j.json(&details)
	if u := details.Usage; u.Turns != 2 || u.InputTokens != 20 || u.OutputTokens != 10 {
		s.Errorf("usage %+v", u)
	}
	if n := len(details.Turns); n == 0 || details.TurnCount != n {
		s.Errorf("%d turns are shown, and %d are said to be kept", n, details.TurnCount)
	}
	if !strings.Contains(j.out.String(), "all's well, café") || strings.Contains(j.out.String(), s.scribe.key) {
		s.Errorf("the turns were not kept: %s", j)
	}
}

// TestExampleAgentsAreRead has answers without any frontmatter: the third is read
// by the model that is set for that.
func TestExampleAgentsAreRead(t *testing.T) {
	forExampleAgents(t, func(t *testing.T, file, api string) {
		s := newScholar(t, file, api)
		prose := "I looked at everything. More is to be done: see the gap. $status: done"
		s.scribe.writes(prose, prose, prose, `{"fields": {"$status": "more", "note": "see the gap"}, "problem": null}`)
		id, cassette := s.startThread(), s.path("cassette.jsonl")
		s.step(0, id, "--record", cassette)
		if n := len(s.scribe.asked); n != 4 || s.scribe.asked[3].Model != "small-1" || s.scribe.asked[3].path != "/v1/chat/completions" {
			t.Fatalf("asked %d times: %+v", n, s.scribe.asked)
		}
		s.scribe.writes()
		again := s.startThread()
		s.step(0, again, "--replay", cassette)
		for _, id := range []string{id, again} {
			steps := s.steps(id)
			if len(steps) != 1 || steps[0].Output["note"] != "see the gap" || steps[0].Body != prose {
				t.Errorf("steps %+v", steps)
			}
		}
		if b, err := os.ReadFile(cassette); err != nil || !strings.Contains(string(b), "see the gap") {
			t.Errorf("cassette: %v", err)
		}
	}, pythonAnthropic, shell)
}

// TestExtractForAnAgentWithItsOwnModel: the gateway is there for reading the answer
// alone, and does not get into the way of what the agent brings itself.
func TestExtractForAnAgentWithItsOwnModel(t *testing.T) {
	s := newScholar(t, "agent.sh", "openai")
	config := filepath.Join(s.home, "config.yaml")
	b, err := os.ReadFile(config)
	s.check(err)
	text, _, _ := strings.Cut(string(b), "defaultModel:")
	s.write(config, text) // of two models, none is the default
	s.agent = s.path("own.sh")
	s.write(s.agent, `#!/bin/sh
test -z "${OPENAI_BASE_URL:-}${ANTHROPIC_BASE_URL:-}${OPENAI_API_KEY:-}" || { echo "a model was forced on me" >&2; exit 7; }
test "$("$UWF_BIN" agent context --field extract.name)" = small-1 || exit 8
echo "Go on: see the gap." | "$UWF_BIN" agent commit --extract always --usage '{"turns": 9, "inputTokens": 900, "outputTokens": 90, "costUsd": 0.5}'
`)
	s.check(os.Chmod(s.agent, 0o700)) //nolint:gosec // a program
	s.scribe.writes(`{"fields": {"$status": "more", "note": "see the gap"}, "problem": null}`)
	id := s.startThread()
	var res struct {
		Usage struct {
			Turns, InputTokens, OutputTokens int
			CostUSD                          float64
		}
	}
	s.step(0, id).json(&res)
	if u := res.Usage; u.Turns != 10 || u.InputTokens != 910 || u.OutputTokens != 95 || u.CostUSD != 0.5 {
		t.Errorf("usage %+v", u)
	}
	// Switched off, the same answer is refused.
	s.write(config, text+"modelOverrides: {extract: off}\n")
	s.write(s.agent, "#!/bin/sh\necho 'Go on: see the gap.' | \"$UWF_BIN\" agent commit --extract always\n")
	if j := s.step(1, id); !strings.Contains(j.errs.String(), "Your answer could not be used") || len(s.scribe.asked) != 1 {
		t.Errorf("asked %d times: %s", len(s.scribe.asked), j)
	}
}

// TestWhatAgentsAskFor: an agent gets neither a search that it asks its model's provider
// for, nor more of this machine's memory than is set; both are told, the first once in the
// log. What its model costs is unknown here, and nowhere told as nothing.
func TestWhatAgentsAskFor(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("NOT TESTED: the agent of this test needs curl, which is not installed; the gateway's own tests have the same in parts")
	}
	s := newScholar(t, "agent.sh", "openai")
	config := filepath.Join(s.home, "config.yaml")
	b, err := os.ReadFile(config)
	s.check(err)
	text := strings.Replace(string(b), ", price: {input: 1, output: 2}", "", 1)
	s.write(config, text)
	s.agent = s.path("asks.sh")
	s.write(s.agent, `#!/bin/sh
ask() {
  printf 'header = "Authorization: Bearer %s"\n' "$OPENAI_API_KEY" | curl --config - -sS --noproxy '*' -o answer -w '%{http_code} ' \
    -H 'Content-Type: application/json' --data-binary "$1" "$OPENAI_BASE_URL/chat/completions"
}
{ printf '{"model": "big", "user": "'; head -c 9000000 /dev/zero | tr '\0' x; printf '"}'; } >large
search='{"model": "big", "messages": [], "web_search_options": {}, "plugins": [{"id": "web"}], "temperature": 0}'
got=$(ask "$search"; ask "$search"; ask @large)
why=$(tr -d '"{}' <answer | cut -c 1-150)
printf -- '---\n$status: more\nnote: "%s"\n---\n%s\n' "$got" "$why" | "$UWF_BIN" agent commit
`)
	s.check(os.Chmod(s.agent, 0o700)) //nolint:gosec // a program
	s.scribe.writes("a", "b", "c")
	id := s.startThread()
	s.step(0, id)
	step := s.steps(id)[0]
	if step.Output["note"] != "200 200 413 " || !strings.Contains(step.Body, "more than the 8388608 that are taken: shorten the conversation") {
		t.Errorf("it was answered %q, %s", step.Output["note"], step.Body)
	}
	for _, asked := range s.scribe.asked {
		if asked.body != `{"model":"big-1","messages":[],"temperature":0}` { // in the order that the agent wrote
			t.Errorf("the provider got %s", asked.body)
		}
	}
	log := s.start(nil, "log", "--debug", "--format", "json").ends(0).out.String()
	if n := strings.Count(log, "DR0PPEDF"); n != 1 || !strings.Contains(log, "plugins, web_search_options") {
		t.Errorf("the log says %d times what was dropped:\n%s", n, log)
	}
	if shown := s.start(nil, "thread", "show", id, "--format", "text").ends(0).out.String(); !strings.Contains(shown, "30 tokens, cost unknown") {
		t.Errorf("%s", shown)
	}
	s.write(config, text+"gateway: {maxBody: 16000000}\n")
	s.step(0, id)
	if note := s.steps(id)[1].Output["note"]; note != "200 400 400 " { // the scribe has one more text
		t.Errorf("with more room it was answered %q", note)
	}
}
