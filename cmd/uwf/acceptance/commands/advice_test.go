package commands

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/shlex"

	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/internal/testmode"
)

// advised is a fixture with more states, and how to type into it. Everything that it
// prints about one of its threads is followed.
type advised struct {
	*fixture
	workflow string // that of the thread at hand
}

// adviceStates bring a thread into a state, by what people type.
var adviceStates = []struct {
	name string
	make func(t *testing.T, a *advised) string
}{
	{"failed", func(_ *testing.T, a *advised) string { return a.threads[stateFailed] }},
	{"failed thrice", func(t *testing.T, a *advised) string {
		id := a.threads[stateFailed]
		a.fail(t, id)
		a.fail(t, id)
		return id
	}},
	{"failed thrice, waits", func(t *testing.T, a *advised) string {
		id := a.threads[stateFailed]
		a.fail(t, id)
		a.fail(t, id)
		a.run(t, 3, "thread", "step", id, "--agent", a.mock("script.yaml"))
		return id
	}},
	{"failed, then paused", func(t *testing.T, a *advised) string {
		id := a.threads[stateFailed]
		a.run(t, 0, "thread", "pause", id, "-m", "lunch")
		return id
	}},
	{"failed, then mended", func(_ *testing.T, a *advised) string { return a.threads[stateMended] }},
	{"new", func(t *testing.T, a *advised) string { return a.start(t, "solve-issue") }},
	{"active", func(_ *testing.T, a *advised) string { return a.threads[stateActive] }},
	{"asks", func(_ *testing.T, a *advised) string { return a.threads[stateSuspended] }},
	{"running", func(t *testing.T, a *advised) string { return a.work(t, a.threads[stateRunning]) }},
	{"running, to pause", func(t *testing.T, a *advised) string {
		id := a.work(t, a.threads[stateRunning])
		a.run(t, 0, "thread", "pause", id)
		return id
	}},
	{"paused", func(t *testing.T, a *advised) string {
		id := a.threads[stateActive]
		a.run(t, 0, "thread", "pause", id)
		return id
	}},
	{"poked", func(t *testing.T, a *advised) string {
		id := a.threads[stateActive]
		a.run(t, 0, "thread", "poke", id, "-p", "again")
		return id
	}},
	{"poked, then paused", func(t *testing.T, a *advised) string {
		id := a.threads[stateActive]
		a.run(t, 0, "thread", "poke", id, "-p", "again")
		a.run(t, 0, "thread", "pause", id)
		return id
	}},
	{"at a limit", func(t *testing.T, a *advised) string {
		id := a.start(t, "solve-issue", "--max-steps", "1")
		a.run(t, 0, "thread", "step", id, "--agent", a.mock("script.yaml"))
		a.run(t, 6, "thread", "step", id, "--agent", a.mock("script.yaml"))
		return id
	}},
	{"before a limit", func(t *testing.T, a *advised) string {
		id := a.start(t, "solve-issue", "--max-steps", "1")
		a.run(t, 0, "thread", "step", id, "--agent", a.mock("script.yaml"))
		return id
	}},
	{"ended", func(_ *testing.T, a *advised) string { return a.threads[stateEnded] }},
	{"ended, may go on", func(t *testing.T, a *advised) string {
		a.workflow = "again"
		id := a.start(t, "again")
		a.run(t, 0, "thread", "step", id, "-c", "9", "--agent", a.mock("script.yaml"))
		return id
	}},
	{"cancelled", func(_ *testing.T, a *advised) string { return a.threads[stateCancelled] }},
	{"removed", func(t *testing.T, a *advised) string {
		a.run(t, 0, "thread", "rm", a.threads[stateEnded], "--yes")
		return a.threads[stateEnded]
	}},
}

// adviceDeeds are what a person does to a thread, fit or not.
var adviceDeeds = [][]string{
	{"thread", "show", "ID"}, {"thread", "steps", "ID"}, {"thread", "read", "ID", "--quota", "60"}, {"thread", "step-details", "ID:1"},
	{"thread", "step", "ID"}, {"thread", "step", "ID", "--dry-run"}, {"thread", "step", "ID", "-c", "3"},
	{"thread", "step", "ID", "--agent", "uwf agent mock fails.yaml"},
	{"thread", "resume", "ID"}, {"thread", "resume", "ID", "-p", "go on"}, {"thread", "retry", "ID"}, {"thread", "poke", "ID"}, {"thread", "poke", "ID", "-p", "again"},
	{"thread", "pause", "ID"}, {"thread", "cancel", "ID"}, {"thread", "rm", "ID", "--yes"},
	{"thread", "fork", "ID"}, {"thread", "fork", "ID:0"}, {"thread", "fork", "ID:9"}, {"thread", "fork", "ID", "--from-role", "nobody"},
	{"thread", "wait", "ID", "--timeout", "1ms"}, {"thread", "start", "WORKFLOW", "-p", "x", "--key", "KEY"}, {"run", "WORKFLOW", "-p", "x", "--key", "KEY"},
}

// TestAdvice types what uwf advises, in the state in which it did: a thread in each state,
// each deed to it, each command that the answer names. None of them is refused.
func TestAdvice(t *testing.T) {
	fixture := newFixtureOf(t, func(_, text string) string { return text })
	var agents, memo sync.Mutex
	known := map[string]bool{}
	for _, state := range adviceStates {
		made := &advised{fixture: fixture(t), workflow: "solve-issue"}
		made.write(t, "repo/.uwf/workflows/again.yaml", strings.NewReplacer("name: solve-issue", "name: again", "{_: {role: developer, prompt: Begin.}}",
			"{_: {role: developer, prompt: Begin.}, resume: {role: developer, prompt: Again.}}").Replace(made.read(t, "repo/.uwf/workflows/solve-issue.yaml")))
		id := state.make(t, made)
		t.Run(state.name, func(t *testing.T) {
			t.Parallel()
			for _, deed := range testmode.Some(3, adviceDeeds...) {
				args := []string{}
				for _, word := range deed {
					args = append(args, strings.NewReplacer("ID", id, "WORKFLOW", made.workflow, "KEY", state.name).Replace(word))
				}
				agents.Lock()
				a := made.copy(t)
				code, out := a.types(t, args)
				agents.Unlock()
				commands := commandsIn(out)
				for i, command := range commands {
					// A refused deed changed nothing: what it advises is tried once.
					memo.Lock()
					seen := code != 0 && known[state.name+command]
					known[state.name+command] = code != 0 || known[state.name+command]
					memo.Unlock()
					if seen {
						continue
					}
					agents.Lock()
					b := a.copy(t)
					if i > 0 && strings.HasPrefix(command, "then ") {
						b.follow(t, commands[i-1])
					}
					got, said := b.follow(t, command)
					agents.Unlock()
					if !adviceWorks(command, got) {
						t.Errorf("uwf %s (exit code %d) says\n%s\n%s then has exit code %d:\n%s", strings.Join(args, " "), code, out, command, got, said)
					}
				}
			}
		})
	}
}

// adviceWorks reports whether a command that was advised did what it is for.
func adviceWorks(command string, code int) bool {
	switch {
	case code == 0:
		return true
	case strings.HasPrefix(command, "uwf thread wait "):
		return code == 1 || code == 3 // its time is over; it waits for a person
	}
	return false
}

var (
	// What comes after "then" is for the state that the command before it leads to.
	uwfAdvice = regexp.MustCompile(`(?:then go on: +)?\buwf (?:thread|step|run|init|setup|doctor|workflow|cas|fsck|gc|purge|log|config|ps|import|schema)\b(?: [^\n\x60]*)?`)
	gitAdvice = regexp.MustCompile(`\bgit (?:-C|fetch|log|show|init|push)\b[^\n\x60]*`)
	// adviceWord is a word of a command that stands in a sentence.
	adviceWord = regexp.MustCompile(`^(?:[a-z][a-z-]*|--?[a-z-]+|@latest|"…"|…|N|DOLLARS|TIME|WORKFLOW|THREAD|[0-9A-Z]{13}|[0-9A-Z]{26}(?::[0-9]+)?|[0-9]+|\.[a-z]+)$`)
)

// commandsIn are the commands that a text advises.
func commandsIn(text string) []string {
	var out []string
	for _, found := range uwfAdvice.FindAllString(text, -1) {
		at := strings.Index(found, "uwf ")
		prefix, line := found[:at], found[at:]
		var words []string
		for _, word := range strings.Fields(line) {
			bare := strings.TrimRight(word, ";,)")
			if !adviceWord.MatchString(bare) || len(words) > 3 && !strings.ContainsAny(bare, `-"…0123456789`) && bare == strings.ToLower(bare) {
				break
			}
			if words = append(words, bare); bare != word {
				break
			}
		}
		out = append(out, prefix+strings.Join(words, " "))
	}
	return append(out, gitAdvice.FindAllString(text, -1)...)
}

func (a *advised) copy(t *testing.T) *advised {
	t.Helper()
	b := &advised{fixture: &fixture{dir: t.TempDir(), threads: a.threads}, workflow: a.workflow}
	if err := os.CopyFS(b.dir, os.DirFS(a.dir)); err != nil {
		t.Fatal(err)
	}
	return b
}

func (a *advised) mock(script string) string { return "uwf agent mock " + script }

func (a *advised) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(a.dir, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// type_ types a command that must end with that exit code.
func (a *advised) run(t *testing.T, want int, args ...string) string {
	t.Helper()
	code, out, errs := a.uwf(t, args...)
	if code != want {
		t.Fatalf("uwf %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), code, want, out, errs)
	}
	return out
}

func (a *advised) fail(t *testing.T, id string) {
	t.Helper()
	a.run(t, 1, "thread", "step", id, "--agent", a.mock("fails.yaml"))
}

func (a *advised) start(t *testing.T, workflow string, more ...string) string {
	t.Helper()
	return strings.TrimSpace(a.run(t, 0, append([]string{"thread", "start", workflow, "-p", "Do it", "--jq", ".thread"}, more...)...))
}

func (a *advised) work(t *testing.T, id string) string {
	t.Helper()
	a.claim(t, gitcas.ThreadID(id), "77", "runner-1")
	return id
}

// types types a command as a person at a terminal, and returns all that it says.
func (a *advised) types(t *testing.T, args []string) (int, string) {
	t.Helper()
	args = slices.Clone(args)
	works := len(args) > 1 && args[0] == "thread" && args[1] == "step" || args[0] == "run"
	if works && !slices.Contains(args, "--agent") {
		args = append(args, "--agent", a.mock("script.yaml"))
	}
	if !slices.Contains(args, "--jq") {
		args = append(args, "--format", "text")
	}
	code, out, errs := a.uwf(t, args...)
	return code, out + errs
}

// follow types a command that was advised. Words for values are replaced.
func (a *advised) follow(t *testing.T, command string) (int, string) {
	t.Helper()
	if at := strings.Index(command, "uwf "); at > 0 && !strings.HasPrefix(command, "git ") {
		command = command[at:]
	}
	if strings.HasPrefix(command, "git ") {
		code, out, errs := a.shell(t, command)
		return code, out + errs
	}
	words, err := shlex.Split(command)
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	for i, word := range words {
		if value := map[string]string{"…": "an answer", "N": "99", "DOLLARS": "99", "TIME": "9h", "WORKFLOW": a.workflow, "THREAD": "@latest"}[word]; value != "" {
			words[i] = value
		}
	}
	switch fmt.Sprint(words[1:min(3, len(words))]) {
	case "[thread rm]", "[thread apply]":
		words = append(words, "--yes")
	case "[thread wait]":
		words = append(words, "--timeout", "1ms")
	}
	return a.types(t, words[1:])
}
