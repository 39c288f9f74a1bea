package processes

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
	"github.com/united-workforce/uwf/internal/testmode"
)

// leak is a workflow whose one role says anything.
const leak = `name: flow
description: Says things.
roles:
  worker:
    description: works
    goal: Work.
    capabilities: []
    procedure: Work.
    output: What was done.
    frontmatter:
      type: object
      properties: {$status: {enum: [more, ask, done]}, note: {type: string}, list: {type: array, items: {type: string}}}
      required: [$status, note]
graph:
  $START: {_: {role: worker, prompt: Begin.}}
  worker:
    more: {role: worker, prompt: "Go on from {{note}}."}
    ask: {role: $SUSPEND, prompt: "{{note}}"}
    done: {role: $END, prompt: Done.}
`

// secret is a value that must not be seen, and the variable that holds it.
type secret struct{ name, value string }

// secrets are what a job has: a provider's key, the forge's token, a password with
// everything that escapes change, and one that only ~/.uwf/.env knows. None looks
// like a secret of a known kind: they are found by their values.
func secrets() (key, token, password, home secret) {
	join := func(parts ...string) string { return strings.Join(parts, "") }
	return secret{"OPENAI_API_KEY", join("Kq7vN2", "xWm4Rt", "9bYs3Hd6")},
		secret{"GITHUB_TOKEN", join("Tz5cJ8", "fLp1Qg", "7nVw2Xk4")},
		secret{"DEPLOY_TOKEN", join(`Pw"9r\`, `Gd/3+h`, `=4&8%m<ü>'s`)},
		secret{"EXTRA_SECRET", join("Hm6yB3", "sKe0Zu", "5tDa8Ri1")}
}

// forms are a value as programs print it.
func forms(value string) []string {
	j, err := json.Marshal(value)
	if err != nil {
		panic(err) // a string always marshals
	}
	out := []string{value, string(j[1 : len(j)-1]), url.QueryEscape(value), url.PathEscape(value)}
	for _, before := range []string{"", "x", "xy"} { // base64 at each of its three alignments
		for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			text := enc.EncodeToString([]byte(before + value))
			// Without the characters that are shared with what stands beside it.
			out = append(out, text[(8*len(before)+5)/6:8*(len(before)+len(value))/6])
		}
	}
	var pairs, entities []string
	for i := range len(value) {
		pairs = append(pairs, fmt.Sprintf("%02x", value[i]))
	}
	for _, c := range value {
		entities = append(entities, fmt.Sprintf("&#x%x;", c))
	}
	out = append(out, strings.Join(pairs, ""), strings.Join(pairs, " "), strings.Join(pairs, ":"), strings.Join(entities, ""))
	slices.Sort(out)
	return slices.Compact(out)
}

// said is text in which a value stands in every form.
func said(s secret) string {
	var b strings.Builder
	for i, f := range forms(s.value) {
		fmt.Fprintf(&b, "form %d: %s\n", i, f)
	}
	fmt.Fprintf(&b, "basic: %s\n", base64.StdEncoding.EncodeToString([]byte("x-access-token:"+s.value)))
	return b.String()
}

// leaks says which secrets are in a text, and around what.
func leaks(text []byte, all []secret) []string {
	var out []string
	for _, s := range all {
		for _, f := range forms(s.value) {
			if at := bytes.Index(text, []byte(f)); at >= 0 {
				out = append(out, fmt.Sprintf("%s as %q, after %q", s.name, f, text[max(0, at-60):at]))
			}
		}
	}
	return out
}

func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string always marshals
	}
	return string(b)
}

// model is a fake OpenAI server: it checks the key and gives one answer after the
// other.
type model struct {
	*testing.T
	key string

	mu      sync.Mutex
	answers []string // bodies
	asked   []string // the requests
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, err := io.ReadAll(r.Body)
	if err != nil || r.Header.Get("Authorization") != "Bearer "+m.key {
		m.Errorf("the provider got %q, %v", r.Header.Get("Authorization"), err)
	}
	m.asked = append(m.asked, string(b))
	w.Header().Set("Content-Type", "application/json")
	if len(m.answers) == 0 {
		// As real ones do, it repeats what it was given.
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error":{"message":`+quoted("Incorrect API key provided: "+m.key)+`,"code":"invalid_api_key"}}`)
		return
	}
	_, _ = io.WriteString(w, m.answers[0])
	m.answers = m.answers[1:]
}

// saying is an answer in words; calling one that calls a tool.
func saying(text string) string { return completion(`"content":`+quoted(text), "stop") }

func calling(tool, args string) string {
	return completion(`"content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"`+tool+`","arguments":`+quoted(args)+`}}]`, "tool_calls")
}

func completion(message, finish string) string {
	return `{"id":"x","object":"chat.completion","model":"gpt","choices":[{"index":0,"message":{"role":"assistant",` + message +
		`},"finish_reason":"` + finish + `"}],"usage":{"prompt_tokens":10,"completion_tokens":5}}`
}

// house is a lab with secrets in it, and everything that its jobs printed.
type house struct {
	*machine
	all   []secret
	env   []string
	model *model
	heard bytes.Buffer
}

func newHouse(t *testing.T) *house {
	t.Helper()
	key, token, password, home := secrets()
	h := &house{machine: newLab(t, leak, "steps: []", nil).machine("a"), all: []secret{key, token, password, home}}
	h.model = &model{T: t, key: key.value}
	provider := httptest.NewServer(h.model)
	t.Cleanup(provider.Close)
	h.env = []string{
		key.name + "=" + key.value, "OPENAI_BASE_URL=" + provider.URL + "/v1",
		token.name + "=" + token.value, "GITHUB_SERVER_URL=" + h.server.URL, password.name + "=" + password.value,
	}
	h.write(filepath.Join(h.home, ".env"), home.name+"="+home.value+"\n")
	return h
}

// uwf runs one command and keeps what it prints.
func (h *house) uwf(code int, args ...string) *job {
	h.Helper()
	j := h.start(h.env, args...).ends(code)
	h.heard.Write(j.out.Bytes())
	h.heard.Write(j.errs.Bytes())
	return j
}

// everything is said of all secrets in every form.
func (h *house) everything() string {
	var b strings.Builder
	for _, s := range h.all {
		b.WriteString(said(s))
	}
	return b.String()
}

// TestSecretsLeaveNoTrace runs a thread whose prompt, tools, answers, errors and
// people say every secret in every form, and then looks into everything that is
// left of it.
func TestSecretsLeaveNoTrace(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.inside = true
	everything := h.everything()
	outside := h.path("outside.txt") // a file of the machine that agents can read
	h.write(outside, everything)
	h.write(h.path("task.md"), "Deploy.\n"+everything)
	answer := func(status string) string {
		return "---\n$status: " + status + "\nnote: " + quoted(everything) + "\nlist: [" + quoted(h.all[2].value) + "]\n---\n" + everything
	}
	mock := func(name, entry string) string {
		h.write(h.path(name), "steps: [{stderr: "+quoted(everything)+", "+entry+"}]")
		return "uwf agent mock '" + h.path(name) + "'"
	}

	var s struct{ Thread string }
	h.uwf(0, "thread", "start", "flow", "-p", "@"+h.path("task.md")).json(&s)
	id := s.Thread
	h.uwf(2, "thread", "start", "flow", "-p", "x", "--key", "deploy/"+h.all[2].value).says("the key holds a secret (DEPLOY_TOKEN)")

	// A model that is asked by the builtin agent, and recorded.
	h.model.answers = []string{
		calling("run_command", `{"command":`+quoted("cat '"+outside+"'; env; cat '"+outside+"' >&2")+`}`),
		calling("write_file", `{"path":"notes/a.txt","content":"nothing to hide\n"}`),
		calling("read_file", `{"path":`+quoted("no such file "+h.all[2].value)+`}`),
		saying("Let me think about " + everything), saying(answer("more")),
	}
	cassette := h.path("cassette.jsonl")
	h.uwf(0, "thread", "step", id, "--allow-shell", "--record", cassette)
	if n := len(h.model.asked); n != 5 {
		t.Errorf("the model was asked %d times", n)
	}
	// The provider refuses, and repeats the key.
	h.uwf(1, "thread", "step", id, "--record", cassette)
	// Agents that fail, with words on stderr and an answer that can't be taken.
	h.uwf(1, "thread", "step", id, "--agent", mock("fails.yaml", "exit: 1"))
	h.uwf(0, "thread", "step", id, "--agent", mock("asks.yaml", "output: "+quoted(answer("ask"))))
	h.uwf(3, "thread", "step", id, "--agent", "uwf agent mock x")
	h.uwf(0, "thread", "resume", id, "-p", everything)
	h.uwf(1, "thread", "step", id, "--agent", mock("wrong.yaml", "stdout: "+quoted(everything)+", handle: "+quoted(h.all[2].value)+", output: "+quoted(answer("more"))))
	h.uwf(1, "thread", "step", id, "--agent", mock("garbage.yaml", "output: "+quoted(answer(h.all[0].value))))
	h.uwf(0, "thread", "step", id, "--agent", mock("goes.yaml", "output: "+quoted(answer("more"))))
	h.uwf(2, "thread", "step", id, "--agent", "no-such-program "+h.all[2].value)
	for _, args := range [][]string{
		{"thread", "show", id}, {"thread", "read", id}, {"thread", "steps", id}, {"thread", "step-details", id + ":1"}, {"log", id, "--full"},
		{"thread", "show", id, "--format", "text"}, {"thread", "read", id, "--format", "text"}, {"thread", "step-details", id + ":1", "--format", "text"},
		{"thread", "list"},
	} {
		h.uwf(0, args...)
	}
	h.uwf(0, "thread", "cancel", id, "-m", everything)
	// What is stored as it is, or not at all.
	leaky := h.path("leaky.yaml")
	h.write(leaky, strings.Replace(leak, "goal: Work.", "goal: "+quoted("Work with "+h.all[2].value), 1))
	h.uwf(2, "workflow", "put", leaky).says("leaky.yaml holds a secret (DEPLOY_TOKEN)")
	h.uwf(2, "thread", "start", leaky, "-p", "x").says("holds a secret (DEPLOY_TOKEN)")
	h.uwf(2, "run", leaky, "-p", "x", "--agent", mock("fine.yaml", "output: "+quoted(answer("more")))).says("holds a secret (DEPLOY_TOKEN)")
	h.write(h.path("payload.json"), quoted(everything))
	h.uwf(2, "cas", "put", "string", h.path("payload.json")).says("the payload holds a secret")
	h.uwf(2, "cas", "put", "string", quoted(everything)).says("the payload holds a secret")
	h.uwf(2, "cas", "put", "string", "{"+everything).says("the payload is no JSON")
	h.uwf(2, "run", "flow", "-p", "x", "--agent", "no-such-program "+h.all[2].value).says("no-such-program [redacted:DEPLOY_TOKEN]")
	h.uwf(2, "workflow", "show", h.all[0].value)
	h.uwf(2, "thread", "show", id, "--"+h.all[0].value)
	// In one process, too.
	h.uwf(3, "run", "flow", "-p", "@"+h.path("task.md"), "--agent", mock("asks.yaml", "output: "+quoted(answer("ask"))), "--format", "text")
	h.uwf(1, "run", "flow", "-p", "@"+h.path("task.md"), "--agent", mock("fails.yaml", "exit: 1"))

	h.sound()
	h.searched(cassette)
	recorded, err := os.ReadFile(cassette)
	h.check(err)
	if n := bytes.Count(recorded, []byte("[redacted:")); n < 20 {
		t.Errorf("the cassette has %d places where a secret was; was it recorded at all?\n%s", n, recorded)
	}
}

// searched looks for secrets in all that jobs leave behind: the objects and refs
// of the remote, what was printed, the cassettes, and the folders of the user.
func (h *house) searched(files ...string) {
	h.Helper()
	bad := func(where string, text []byte) {
		h.Helper()
		for _, l := range leaks(text, h.all) {
			h.Errorf("%s holds %s", where, l)
		}
	}
	bad("what was printed", h.heard.Bytes())
	bad("the list of refs", []byte(h.bare("for-each-ref")))
	objects := h.bare("cat-file", "--batch-all-objects", "--batch=%(objecttype) %(objectname)")
	bad("an object", []byte(objects))
	if n := len(regexp.MustCompile(`(?m)^(blob|tree|commit) [0-9a-f]{40}$`).FindAllString(objects, -1)); n < 50 {
		h.Errorf("the remote has only %d objects", n)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		h.check(err)
		bad(f, b)
	}
	for _, dir := range []string{h.home, h.path("tmp"), h.path("home"), h.clone} {
		h.check(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if path == filepath.Join(h.home, "work") {
				return filepath.SkipDir // what agents wrote is theirs; it is not pushed
			}
			if err != nil || !d.Type().IsRegular() || path == filepath.Join(h.home, ".env") {
				return ignoreMissing(err)
			}
			b, err := os.ReadFile(path)
			bad(path, b)
			return err
		}))
	}
}

func ignoreMissing(err error) error {
	if os.IsNotExist(err) {
		return nil
	}
	return err
}

// TestSecretInFile: a file that an agent changed and that holds a secret stops the
// step; nothing of the folder is pushed, not even as an attempt.
func TestSecretInFile(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.inside = true
	for _, s := range h.all {
		texts := []string{s.value}
		if s.name == "DEPLOY_TOKEN" { // the one whose forms differ
			texts = testmode.Some(4, forms(s.value)...)
		}
		for _, form := range texts {
			h.write(h.script, `steps: [{write: {harmless.txt: "a marker\n", conf/app.ini: `+quoted("password = "+form+"\n")+`}, output: "---\n$status: more\nnote: n\n---\n"}]`)
			var started struct{ Thread, Head string }
			h.uwf(0, "thread", "start", "flow", "-p", "x").json(&started)
			f := failing{h.machine, started.Thread, started.Head}
			j := h.start(h.env, "thread", "step", f.id, "--agent", "uwf agent mock '"+h.script+"'")
			<-j.done
			f.fails(j, "the agent wrote a secret ("+s.name+") into conf/app.ini", "nothing of the folder was pushed")
			h.heard.Write(j.out.Bytes())
			h.heard.Write(j.errs.Bytes())
			if kept := h.bare("ls-tree", "-r", "--name-only", f.refs("refs/uwf/attempts/" + f.id)[0]); strings.Contains(kept, "harmless.txt") || strings.Contains(kept, "app.ini") {
				t.Errorf("the attempt holds the folder: %s", kept)
			}
		}
	}
	h.searched()
	if out := h.bare("rev-list", "--all", "--objects"); strings.Contains(out, "harmless.txt") {
		t.Error("a file of the folder was pushed")
	}
}

// TestAgentFindsNoSecret runs an agent that looks for secrets wherever a process
// can: its environment, its folders, and /proc of every process above it.
func TestAgentFindsNoSecret(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	found := h.path("found")
	spy := h.path("spy.sh")
	h.write(spy, `exec >'`+found+`' 2>&1
env
printf '%s\n' "$0" "$@"
pid=$$
while [ "$pid" -gt 1 ] && [ "$pid" != `+fmt.Sprint(os.Getpid())+` ]; do
	echo "process $pid"
	tr '\0' '\n' <"/proc/$pid/cmdline"
	tr '\0' '\n' <"/proc/$pid/environ"
	pid=$(sed -n 's/^PPid:[[:space:]]*//p' "/proc/$pid/status")
done
find . "$UWF_CONTEXT" "$UWF_STAGE" "$TMPDIR" -type f -exec cat {} +
echo the end
exit 1
`)
	var s struct{ Thread string }
	h.uwf(0, "thread", "start", "flow", "-p", h.everything()).json(&s)
	look := func(args ...string) string {
		h.Helper()
		h.uwf(1, append([]string{"thread", "step", s.Thread}, args...)...)
		b, err := os.ReadFile(found)
		h.check(err)
		h.check(os.Remove(found))
		for _, l := range leaks(b, h.all) {
			t.Errorf("%v: the agent finds %s", args, l)
		}
		if !bytes.Contains(b, []byte("the end")) || !bytes.Contains(b, []byte("UWF_CONTEXT=")) || !regexp.MustCompile(`(?s)process.*process`).Match(b) && onLinux() {
			t.Errorf("%v: the agent did not look: %s", args, b)
		}
		return string(b)
	}
	look("--agent", "sh '"+spy+"'")
	// A command of the builtin agent's model stands below two processes of ours.
	h.model.answers = []string{calling("run_command", `{"command":`+quoted("sh '"+spy+"'")+`}`)}
	h.uwf(1, "thread", "step", s.Thread, "--allow-shell")
	b, err := os.ReadFile(found)
	h.check(err)
	for _, l := range leaks(b, h.all) {
		t.Errorf("a command of the model finds %s", l)
	}
	h.searched()
}

// TestPasswordOfRemote: a remote's password that only the URL or git's helper knows is a secret
// like those of the environment.
func TestPasswordOfRemote(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.inside = true
	var s struct{ Thread string }
	h.uwf(0, "thread", "start", "flow", "-p", "x").json(&s)
	pass := h.all[3].value[2:] + "x1"
	h.all = append(h.all, secret{"git-password", pass})
	h.write(h.script, `steps: [{output: `+quoted("---\n$status: more\nnote: "+quoted(h.everything())+"\n---\n")+`}]`)
	for _, set := range []func(){
		func() {
			h.git(h.clone, "remote", "set-url", "origin", strings.Replace(h.url, "://", "://someone:"+pass+"@", 1))
		},
		func() { // of the user: a repository's own is not asked
			h.write(h.path("home/.gitconfig"), "[credential]\n\thelper = \"!printf 'username=u\\npassword="+pass+"\\n' #\"\n")
		},
	} {
		set()
		h.env = slices.DeleteFunc(h.env, func(kv string) bool { return strings.HasPrefix(kv, "GITHUB_TOKEN=") })
		j := h.uwf(0, "thread", "step", s.Thread, "--agent", "uwf agent mock '"+h.script+"'")
		h.heard.Write(j.out.Bytes())
		h.git(h.clone, "remote", "set-url", "origin", h.url)
	}
	h.all = h.all[:1]
	h.all[0] = secret{"git-password", pass}
	h.check(os.Remove(h.path("home/.gitconfig")))
	h.searched()
}

// TestExposedEnvironment: where agents could read what is in the environment, none
// is started with a secret in it, unless the user says so.
func TestExposedEnvironment(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.inside = true
	var s struct{ Thread string }
	h.uwf(0, "thread", "start", "flow", "-p", "x").json(&s)
	h.write(h.script, `steps: [{output: "---\n$status: more\nnote: n\n---\n"}]`)
	step := []string{"thread", "step", s.Thread, "--agent", "uwf agent mock '" + h.script + "'"}
	bared := append(slices.Clone(h.env), clitest.EnvBared+"=1")
	for _, args := range [][]string{step, {"run", "flow", "-p", "x", "--agent", "uwf agent mock '" + h.script + "'"}} {
		h.start(bared, args...).ends(2).says("agents could read", "out of the environment", "~/.uwf/.env")
	}
	h.start(bared, "thread", "show", s.Thread).ends(0)
	h.start([]string{clitest.EnvBared + "=1"}, step...).ends(0) // nothing to be read
	h.write(filepath.Join(h.home, "config.yaml"), "sandbox: off\n")
	h.start(bared, step...).ends(0)
}

func onLinux() bool {
	_, err := os.Stat("/proc/self/environ")
	return err == nil
}
