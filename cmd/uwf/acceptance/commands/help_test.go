package commands

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/shlex"
	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/cli"
	"github.com/united-workforce/uwf/gitcas"
)

// The examples of a command are run in a copy of the fixture, in which their
// thread, 01JY0000000000000000000000, is in the state that is named here; active
// where none is.
var exampleStates = map[string]string{
	"uwf ps":            stateRunning,
	"uwf thread list":   stateRunning,
	"uwf thread pr":     statePublished,
	"uwf thread resume": stateSuspended,
	"uwf thread retry":  stateFailed,
	"uwf thread rm":     stateEnded,
	"uwf thread wait":   stateEnded,
	"uwf thread watch":  stateEnded,
}

// exampleCodes are the exit codes of examples that don't end with 0.
var exampleCodes = map[string]int{
	// The fixture has no workflow file of a forge.
	"uwf doctor --offline": 1,
	`uwf doctor --offline --jq '.findings[] | select(.state != "ok") | .fix'`: 1,
}

// notRun are the commands whose examples can't be run here, and why.
var notRun = map[string]string{
	"uwf demo":          "it takes seconds and needs go: demo.txtar runs it",
	"uwf action":        "it is a job of a forge: TestActionAlone and many more run it",
	"uwf agent":         "its commands work inside of a step only",
	"uwf agent context": "it works inside of a step only: agent-shell.txtar runs it",
	"uwf agent commit":  "it works inside of a step only: agent-shell.txtar runs it",
	"uwf agent stage":   "it works inside of a step only: agent-shell.txtar runs it",
	"uwf agent mock":    "it works inside of a step only: every script runs it",
	"uwf agent builtin": "it works inside of a step only: demo.txtar runs it",
}

// exampleTime ends an example that waits for something.
const exampleTime = time.Minute

// moreRuns are run as well, for what they print in other states.
var moreRuns = []struct {
	state, line string
	code        int
}{
	{stateActive, "uwf thread show " + exampleThread, 0},
	{stateRunning, "uwf thread show " + exampleThread, 0},
	{stateSuspended, "uwf thread show " + exampleThread, 0},
	{stateFailed, "uwf thread show " + exampleThread, 0},
	{stateEnded, "uwf thread show " + exampleThread, 0},
	{stateCancelled, "uwf thread show " + exampleThread, 0},
	{stateRunning, "uwf thread list --all", 0},
	{stateSuspended, "uwf thread read " + exampleThread + " --quota 1", 0},
	{stateMended, "uwf thread steps " + exampleThread, 0},
	{stateMended, "uwf thread step-details " + exampleThread + ":1", 0},
	{stateSuspended, "uwf thread wait " + exampleThread, 3},
	{stateCancelled, "uwf thread wait " + exampleThread, 4},
	{stateEnded, "uwf thread step " + exampleThread + " --dry-run", 4},
	{stateSuspended, "uwf thread step " + exampleThread, 3},
	{stateEnded, "uwf log --full " + exampleThread, 0},
	{stateEnded, "uwf fsck --history", 0},
}

const exampleThread = "01JY0000000000000000000000"

// TestExamples runs every line of every Example, as a person would who copies it.
func TestExamples(t *testing.T) {
	fixture := newFixture(t)
	results := &results{}
	t.Run("commands", func(t *testing.T) {
		for _, cmd := range allCommands(cli.NewRoot(app.NewAt(".", nil, app.IO{}))) {
			t.Run(strings.ReplaceAll(cmd.CommandPath(), " ", "_"), func(t *testing.T) {
				t.Parallel()
				if why, ok := notRun[cmd.CommandPath()]; ok {
					t.Skip(why)
				}
				lines := exampleLines(cmd.Example)
				if len(lines) == 0 {
					t.Fatal("its help has no Example")
				}
				state := exampleStates[cmd.CommandPath()]
				if state == "" {
					state = stateActive
				}
				for _, line := range lines {
					runExample(t, fixture(t), state, line, exampleCodes[line], results)
				}
			})
		}
		for _, more := range moreRuns {
			t.Run(more.state+"_"+strings.ReplaceAll(more.line, " ", "_"), func(t *testing.T) {
				t.Parallel()
				runExample(t, fixture(t), more.state, more.line, more.code, results)
			})
		}
	})
	results.checkSchemas(t)
	for path := range maps.Keys(notRun) {
		if find(cli.NewRoot(app.NewAt(".", nil, app.IO{})), path) == nil {
			t.Errorf("notRun names %s, which is no command", path)
		}
	}
}

// allCommands are all commands that a person can run, groups too, but for cobra's
// own.
func allCommands(root *cobra.Command) []*cobra.Command {
	var out []*cobra.Command
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Name() == "help" || c.Name() == "completion" {
			return
		}
		out = append(out, c)
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
	return out
}

func find(root *cobra.Command, path string) *cobra.Command {
	i := slices.IndexFunc(allCommands(root), func(c *cobra.Command) bool { return c.CommandPath() == path })
	if i < 0 {
		return nil
	}
	return allCommands(root)[i]
}

// exampleLines are the lines of an Example that are to be run: comments and empty
// ones are not, and a backslash at its end continues a line.
func exampleLines(example string) []string {
	var out []string
	for line := range strings.Lines(strings.ReplaceAll(example, "\\\n", " ")) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return out
}

// runExample runs one line: in this process where it is a command of uwf alone, in
// a shell where it is more.
func runExample(t *testing.T, f *fixture, state, line string, want int, seen *results) {
	t.Helper()
	if state == stateRunning {
		f.claim(t, gitcas.ThreadID(f.threads[state]), "77", "runner-1")
	}
	id := f.threads[state]
	if state == statePublished {
		s := f.publish(t, false)
		f.git(t, "push", "-q", s.Dir(), "uwf/"+id)
	}
	text := strings.ReplaceAll(line, exampleThread, id)
	var code int
	var stdout, stderr string
	words, plain := plainWords(text)
	if plain {
		// Another command's example that can't be run.
		if other, _, err := cli.NewRoot(app.NewAt(".", nil, app.IO{})).Find(words[1:]); err == nil && notRun[other.CommandPath()] != "" {
			return
		}
	}
	if plain {
		fa, out, errs := f.factory(t)
		var values []any
		fa.Printed = func(v any) { values = append(values, v) }
		ctx, cancel := context.WithTimeout(t.Context(), exampleTime)
		defer cancel()
		if strings.Contains(line, " step ") || strings.Contains(line, " exec ") || strings.Contains(line, " run ") {
			// A process runs one agent at a time: when it ends, it kills what is left
			// of its children.
			seen.agents.Lock()
			defer seen.agents.Unlock()
		}
		code = cli.Execute(ctx, fa, words[1:])
		stdout, stderr = out.String(), errs.String()
		seen.add(t, words[1:], values, stdout)
	} else {
		code, stdout, stderr = f.shell(t, text)
	}
	if code != want {
		t.Errorf("%s: exit code %d, want %d\n%s%s", line, code, want, stdout, stderr)
	}
	if strings.ContainsRune(stdout+stderr, '\x1b') {
		t.Errorf("%s: it prints escapes to what is no terminal: %q", line, stdout+stderr)
	}
}

// plainWords splits a line that needs no shell.
func plainWords(line string) ([]string, bool) {
	words, err := shlex.Split(line)
	if err != nil || len(words) == 0 || words[0] != "uwf" || len(words) > 2 && words[1] == "agent" && words[2] != "list" && words[2] != "check" {
		return nil, false // agents look at the process's own folder
	}
	// What the shell would take for itself outside of quotes.
	bare := strings.Builder{}
	quote := rune(0)
	for _, r := range line {
		switch {
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case r == quote:
			quote = 0
		case quote == 0, quote == '"' && (r == '$' || r == '`'):
			bare.WriteRune(r)
		}
	}
	return words, !strings.ContainsAny(bare.String(), "|&;<>$`*?(){}")
}

func (f *fixture) shell(t *testing.T, line string) (int, string, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), exampleTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir, cmd.Env = f.repo(), f.environ()
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run() // its exit code says it
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// notScripted are the commands that no script tries, or tries wrongly, and why.
var notScripted = map[string]string{
	"uwf agent stage": "it works inside of a step only: the agents of examples/agents use it, which agents_test.go runs",
}

// TestEveryCommandIsScripted looks for every command in the scripts: once as it is
// meant, and once mistaken.
func TestEveryCommandIsScripted(t *testing.T) {
	files, err := filepath.Glob("../*/testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^(?:\[[^\]]*\] )?(exits [0-6]|exec|! exec) uwf( .*)?$`)
	root := cli.NewRoot(app.NewAt(".", nil, app.IO{}))
	well, wrong := map[string]bool{}, map[string]bool{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, cmd := range allCommands(root) {
			well[cmd.CommandPath()] = well[cmd.CommandPath()] || strings.Contains(string(b), cmd.CommandPath()+" ")
		}
		for _, m := range line.FindAllStringSubmatch(string(b), -1) {
			cmd, _, err := root.Find(strings.Fields(m[2]))
			if err != nil {
				continue
			}
			if m[1] == "exec" || m[1] == "exits 0" {
				well[cmd.CommandPath()] = true
			} else {
				wrong[cmd.CommandPath()] = true
			}
		}
	}
	for _, cmd := range allCommands(root) {
		path := cmd.CommandPath()
		if cmd.HasSubCommands() || notScripted[path] != "" {
			continue
		}
		if !well[path] {
			t.Errorf("no script runs %s", path)
		}
		if !wrong[path] {
			t.Errorf("no script has a mistaken or hostile use of %s", path)
		}
	}
}
