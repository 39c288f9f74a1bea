package commands

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/cli"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/gitserver"
	"github.com/united-workforce/uwf/internal/gitservertest"
)

// hostile is what a terminal would act on: a title, a cleared screen, a link, the
// clipboard, a return to the line's beginning, C1 controls, and marks that reorder
// or hide text.
const hostile = "\x1b]0;owned\x07\x1b[2J\x1b]8;;http://evil.example\x07\x1b]52;c;b3duZWQ=\x07\rhidden\b\u009b31m\u0085\u202etxt\u2066\u200f\u061c\ufeff"

// inYAML is the same, inside of double quotes of YAML.
var inYAML = strings.NewReplacer("\x1b", `\e`, "\x07", `\a`, "\r", `\r`, "\b", `\b`, "\u009b", `\x9b`, "\u0085", `\x85`,
	"\u202e", `\u202e`, "\u2066", `\u2066`, "\u200f", `\u200f`, "\u061c", `\u061c`, "\ufeff", `\ufeff`).Replace(hostile)

// poison puts it into every text of a file.
func poison(file, text string) string {
	twice := strings.ReplaceAll(inYAML, `\`, `\\`) // YAML in a string of YAML
	switch {
	case file == "" || strings.HasSuffix(file, ".md"):
		return text + hostile
	case file == "../home/.uwf/config.yaml":
		return text + "  evil: {command: uwf, args: [\"" + inYAML + "\"]}\n"
	case !strings.HasSuffix(file, ".yaml"):
		return text
	}
	text = regexp.MustCompile(`(?m)^(\s*(?:description|goal|procedure|output): )([^"{\[\n]+)$`).ReplaceAllString(text, `${1}"${2}`+inYAML+`"`)
	text = regexp.MustCompile(`(prompt: )(\w[^"}]*)\}`).ReplaceAllString(text, `${1}"${2}`+inYAML+`"}`)
	text = regexp.MustCompile(`note: ([^\\{}]+)\\n`).ReplaceAllString(text, `note: \"${1}`+twice+`\"\n`)
	text = regexp.MustCompile(`---\\n(\w[^\\]*)\\n"`).ReplaceAllString(text, `---\n${1}`+inYAML+`\n"`)
	return regexp.MustCompile(`stderr: "`).ReplaceAllString(text, `stderr: "`+inYAML)
}

// obeyed finds the first character that a terminal would act on.
func obeyed(s string) string {
	i := strings.IndexFunc(s, func(r rune) bool {
		return r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r <= 0x9f || r == 0xfeff || r == 0x061c ||
			r == 0x200e || r == 0x200f || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069
	})
	if i < 0 {
		return ""
	}
	return s[max(0, i-40):min(len(s), i+40)]
}

// showHostile are commands that print texts of agents and people: what they print
// must hold the text, made harmless.
var showHostile = []string{
	"uwf thread show", "uwf thread list", "uwf thread read", "uwf thread steps", "uwf thread step-details",
	"uwf step list", "uwf step show", "uwf step read", "uwf ps", "uwf log", "uwf workflow show", "uwf config show",
}

// showTimes are commands that print times: each is marked as UTC.
var showTimes = []string{
	"uwf thread show", "uwf thread list", "uwf thread read", "uwf step read", "uwf ps", "uwf log",
	"uwf workflow history",
}

var (
	aTime      = regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?(\.\d+)?`)
	markedTime = regexp.MustCompile(aTime.String() + "(Z| UTC)")
)

// TestEscapes runs every command on texts that are made to be obeyed by terminals,
// in every format, and with such a text as its argument. What it prints says of each time
// that it is UTC.
func TestEscapes(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs every command several times")
	}
	fixture := newFixtureOf(t, poison)
	var agents, shown sync.Mutex
	seen, timed := map[string]bool{}, map[string]bool{}
	t.Run("commands", func(t *testing.T) {
		for _, cmd := range allCommands(cli.NewRoot(app.NewAt(".", nil, app.IO{}))) {
			path := cmd.CommandPath()
			if notRun[path] != "" || strings.HasPrefix(path, "uwf agent") || path == "uwf" {
				continue // what agents' own commands print is for the protocol
			}
			t.Run(strings.ReplaceAll(path, " ", "_"), func(t *testing.T) {
				t.Parallel()
				f := fixture(t)
				for _, args := range hostileRuns(f, cmd) {
					if strings.Contains(path, " step") || path == "uwf run" || path == "uwf thread" {
						agents.Lock() // see results
					}
					code, out, errs := f.hostileRun(t, path, args)
					if strings.Contains(path, " step") || path == "uwf run" || path == "uwf thread" {
						agents.Unlock()
					}
					if at := obeyed(out + errs); at != "" {
						t.Errorf("%q (exit code %d) prints what a terminal obeys: …%q…", args, code, at)
					}
					if times := aTime.FindAllString(out+errs, -1); len(times) != len(markedTime.FindAllString(out+errs, -1)) {
						t.Errorf("%q: not all of the times are marked as UTC: %q", args, times)
					}
					shown.Lock()
					timed[path] = timed[path] || strings.Contains(out, " UTC")
					seen[path] = seen[path] || strings.Contains(out, "]0;owned")
					shown.Unlock()
				}
			})
		}
	})
	for _, path := range showHostile {
		if !seen[path] {
			t.Errorf("%s did not show the text at all: nothing was tested", path)
		}
	}
	for _, path := range showTimes {
		if !timed[path] {
			t.Errorf("%s did not show a time with UTC: nothing was tested", path)
		}
	}
}

// hostileRuns are the command lines that a command is tried with: its examples in
// several formats, and such a text as its argument and as the value of each flag.
func hostileRuns(f *fixture, cmd *cobra.Command) [][]string {
	path := cmd.CommandPath()
	state := exampleStates[path]
	if state == "" {
		state = stateActive
	}
	words := strings.Fields(path)[1:]
	runs := [][]string{append(slices.Clone(words), hostile, "--format", "text"), append(slices.Clone(words), hostile)}
	for i, line := range exampleLines(cmd.Example) {
		args, plain := plainWords(strings.ReplaceAll(line, exampleThread, f.threads[state]))
		if !plain || args[1] == "demo" || args[1] == "agent" {
			continue
		}
		args = args[1:]
		runs = append(runs, args)
		if strings.Contains(line, "--jq") || strings.Contains(line, "--format") {
			continue
		}
		runs = append(runs, append(slices.Clone(args), "--format", "text"))
		if i > 0 {
			continue
		}
		runs = append(runs, append(slices.Clone(args), "--format", "yaml"))
		cmd.Flags().VisitAll(func(flag *pflag.Flag) {
			if flag.Value.Type() == "string" {
				runs = append(runs, append(slices.Clone(args), "--format", "text", "--"+flag.Name, hostile))
			}
		})
	}
	return runs
}

func (f *fixture) hostileRun(t *testing.T, path string, args []string) (int, string, string) {
	t.Helper()
	if path == "uwf ps" || path == "uwf thread list" {
		id := gitcas.ThreadID(f.threads[stateActive])
		f.claimOnce.Do(func() { f.claim(t, id, "run"+hostile, "host"+hostile) })
	}
	fa, out, errs := f.factory(t)
	ctx, cancel := context.WithTimeout(t.Context(), exampleTime)
	defer cancel()
	code := cli.Execute(ctx, fa, args)
	return code, out.String(), errs.String()
}

// TestServerMessages has a server refuse a push with words that are made to be
// obeyed.
func TestServerMessages(t *testing.T) {
	if err := gitserver.Available(""); err != nil {
		t.Skip(err)
	}
	root := t.TempDir()
	srv, err := gitservertest.Serve(root, gitserver.Options{Hooks: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close() })
	url, err := srv.Init("r.git")
	if err != nil {
		t.Fatal(err)
	}
	hook := "#!/bin/sh\nprintf '%s\\n' 'no: " + hostile + "' >&2\nexit 1\n"
	if err := os.MkdirAll(filepath.Join(root, "r.git", "hooks"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "r.git", "hooks", "pre-receive"), []byte(hook), 0o700); err != nil { //nolint:gosec // a hook
		t.Fatal(err)
	}
	f := newFixture(t)(t)
	f.git(t, "update-ref", "-d", "refs/heads/uwf-state")
	f.write(t, "repo/.uwf/config.yaml", "state: {remote: \""+url+"\"}\n")
	f.consent(t)
	for _, args := range [][]string{{"workflow", "put", "solve-issue.yaml"}, {"thread", "start", "./review.yaml", "-p", "x", "--format", "text"}} {
		code, out, errs := f.uwf(t, args...)
		if code == 0 || !strings.Contains(errs, "]0;owned") {
			t.Errorf("%v: exit code %d: %q", args, code, errs)
		}
		if at := obeyed(out + errs); at != "" {
			t.Errorf("%v prints what a terminal obeys: …%q…", args, at)
		}
	}
}
