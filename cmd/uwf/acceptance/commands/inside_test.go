package commands

import (
	"slices"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/cli"
)

// insideWrites are commands that write files where an agent may write them anyway.
var insideWrites = []string{"uwf workflow new", "uwf workflow test", "uwf thread export"}

// TestInsideAgents: inside of an agent no command changes threads, settings or this machine; those
// that would are refused by name, and the others work as they do elsewhere.
func TestInsideAgents(t *testing.T) {
	fixture := newFixtureOf(t, func(_, text string) string { return text })
	for _, cmd := range allCommands(cli.NewRoot(app.NewAt(".", nil, app.IO{}))) {
		path := cmd.CommandPath()
		lines := exampleLines(cmd.Example)
		if strings.HasPrefix(path, "uwf agent") || len(lines) == 0 || cmd.HasSubCommands() {
			continue // agents and their protocol work inside of agents only
		}
		t.Run(strings.ReplaceAll(path, " ", "_"), func(t *testing.T) {
			t.Parallel()
			args, plain := plainWords(strings.ReplaceAll(lines[0], exampleThread, fixtureThread(t, fixture, path)))
			if !plain {
				t.Skip("the example is no plain command")
			}
			f := fixture(t)
			f.env = []string{agents.EnvMark + "=outer"}
			before := f.state(t)
			code, out, errs := f.uwf(t, args[1:]...)
			if after := f.state(t); before != after && !slices.Contains(insideWrites, path) {
				t.Errorf("it changed\n%s\nto\n%s", before, after)
			}
			refused := strings.Contains(errs, "an agent cannot start or change threads: uwf ")
			if refused && (code != 2 || out != "") {
				t.Errorf("refused with exit code %d: %s", code, out)
			}
			if changes := slices.Contains(refusedInside, path); refused != changes && (changes || code != exampleCodes[lines[0]]) {
				t.Errorf("exit code %d: %s", code, errs)
			}
		})
	}
}

// refusedInside are commands that start or change threads, workflows, nodes or settings.
var refusedInside = []string{
	"uwf run", "uwf demo", "uwf action", "uwf init", "uwf setup", "uwf gc", "uwf purge",
	"uwf thread start", "uwf thread step", "uwf thread fork", "uwf step fork", "uwf thread cancel", "uwf thread pause", "uwf thread resume",
	"uwf thread retry", "uwf thread poke", "uwf thread rm", "uwf thread apply", "uwf thread pr",
	"uwf workflow put", "uwf workflow remove", "uwf workflow rollback", "uwf cas put",
	"uwf config set", "uwf config unset", "uwf trust revoke",
}

// state is what a fixture's repository has.
func (f *fixture) state(t *testing.T) string {
	t.Helper()
	return f.git(t, "for-each-ref") + f.git(t, "status", "--porcelain", "--untracked-files=all")
}
