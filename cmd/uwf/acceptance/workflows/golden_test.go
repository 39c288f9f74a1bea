package workflows

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
)

var updateGolden = flag.Bool("update", false, "write the golden files of testdata/golden")

// TestGoldenWorkflows runs each workflow of testdata/golden to its end with the mock
// agent, as a person would: the path taken, the prompts given, what was asked and
// answered, and the files that are left stand in want.golden. Beside workflow.yaml
// and what it includes there are script.yaml for the agent, and, where they are
// needed, prompt.txt, repo/ with what the repository holds, and drive.txt with what
// the person does: start: FLAGS, answer: TEXT, raise: FLAGS, reopen: TEXT.
func TestGoldenWorkflows(t *testing.T) {
	folders, err := filepath.Glob("testdata/golden/*")
	if err != nil || len(folders) < 12 {
		t.Fatal(folders, err)
	}
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			t.Parallel()
			g := newGoldenRun(t, folder)
			got := g.run()
			file := filepath.Join(folder, "want.golden")
			if *updateGolden {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil || got != string(want) {
				t.Errorf("%v; got:\n%s\nwant:\n%s", err, got, want)
			}
		})
	}
}

// goldenRun is one workflow on its way.
type goldenRun struct {
	*testing.T
	folder, repo string
	console      clitest.Console
	drive        []string // what the person does, in order
	thread       string
	story        strings.Builder
	steps        int
}

func newGoldenRun(t *testing.T, folder string) *goldenRun {
	t.Helper()
	dir := t.TempDir()
	abs, err := filepath.Abs(folder)
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(dir, "home")
	g := &goldenRun{T: t, folder: abs, repo: filepath.Join(dir, "repo")}
	g.console = clitest.Console{Remotes: &clitest.Remotes{}, Dir: g.repo, Environ: []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GIT_CONFIG_NOSYSTEM=1", "TMPDIR=" + os.TempDir(),
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
	}}
	into := filepath.Join(g.repo, ".uwf/workflows", filepath.Base(folder))
	err = errors.Join(os.MkdirAll(home, 0o700), os.MkdirAll(into, 0o700), os.CopyFS(into, os.DirFS(folder)))
	for _, own := range []string{"script.yaml", "drive.txt", "prompt.txt", "want.golden", "repo"} {
		err = errors.Join(err, os.RemoveAll(filepath.Join(into, own)))
	}
	err = errors.Join(err, os.Rename(filepath.Join(into, "workflow.yaml"), filepath.Join(into, "index.yaml")))
	if _, missing := os.Stat(filepath.Join(folder, "repo")); missing == nil {
		err = errors.Join(err, os.CopyFS(g.repo, os.DirFS(filepath.Join(folder, "repo"))))
	}
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(g.read("drive.txt")) {
		g.drive = append(g.drive, strings.TrimSpace(line))
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"commit", "-q", "-m", "first"}} {
		g.git(args...)
	}
	return g
}

// read is a file of the folder; empty where it isn't there.
func (g *goldenRun) read(name string) string {
	g.Helper()
	b, err := os.ReadFile(filepath.Join(g.folder, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		g.Fatal(err)
	}
	return string(b)
}

// git runs git in the repository and returns what it prints.
func (g *goldenRun) git(args ...string) string {
	g.Helper()
	cmd := exec.CommandContext(g.Context(), "git", args...)
	cmd.Dir, cmd.Env = g.repo, g.console.Environ
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		g.Fatalf("git %q: %v\n%s%s", args, err, out, stderr.String())
	}
	return string(out)
}

// uwf runs one command whose JSON goes to v.
func (g *goldenRun) uwf(v any, args ...string) int {
	g.Helper()
	res := g.console.Run(g.Context(), args...)
	if res.Code == 1 || res.Code == 2 || res.Code == 5 {
		g.Fatalf("uwf %q: exit code %d\n%s%s", args, res.Code, res.Stdout, res.Stderr)
	}
	if v != nil {
		if err := json.Unmarshal([]byte(res.Stdout), v); err != nil {
			g.Fatalf("uwf %q: %v: %s", args, err, res.Stdout)
		}
	}
	return res.Code
}

// next is what the person does now, where the next line of drive.txt is of that
// kind.
func (g *goldenRun) next(kind string) (string, bool) {
	if len(g.drive) == 0 {
		return "", false
	}
	text, ok := strings.CutPrefix(g.drive[0], kind+": ")
	if !ok {
		return "", false
	}
	g.drive = g.drive[1:]
	return text, true
}

// run plays the whole story and returns it.
func (g *goldenRun) run() string {
	g.Helper()
	name := filepath.Base(g.folder)
	g.uwf(nil, "workflow", "validate", name)
	prompt := g.read("prompt.txt")
	if prompt == "" {
		prompt = "Do it."
	}
	flags, _ := g.next("start")
	var started struct{ Thread string }
	g.uwf(&started, append([]string{"thread", "start", name, "-p", prompt}, strings.Fields(flags)...)...)
	g.thread = started.Thread
	for g.step() {
	}
	if len(g.drive) > 0 {
		g.Errorf("the thread ended before the person did all of %q", g.drive)
	}
	g.files()
	g.uwf(nil, "fsck", "--history")
	return g.withPrompts()
}

// step does one step and what the person does then, and reports whether there is
// more to do.
func (g *goldenRun) step() bool {
	g.Helper()
	var res struct {
		Role, Result, NextRole, Status string
		Done                           bool
		Suspended                      *struct{ Role, Reason string }
	}
	if g.steps++; g.steps > 40 {
		g.Fatalf("it doesn't end:\n%s", g.story.String())
	}
	code := g.uwf(&res, "thread", "step", g.thread, "--agent", "uwf agent mock '"+filepath.Join(g.folder, "script.yaml")+"'")
	if code != 6 {
		fmt.Fprintf(&g.story, "step  %s → %s\nPROMPT\n", res.Role, strings.TrimPrefix(res.Result, "→ "))
	}
	switch {
	case code == 6:
		fmt.Fprintf(&g.story, "limit  next: %s\n", res.NextRole)
		flags, ok := g.next("raise")
		if !ok {
			g.Fatalf("a limit:\n%s", g.story.String())
		}
		fmt.Fprintf(&g.story, "raised  %s\n", flags)
		g.uwf(nil, append([]string{"thread", "resume", g.thread}, strings.Fields(flags)...)...)
	case res.Suspended != nil:
		fmt.Fprintf(&g.story, "asks  %s: %s\n", res.Suspended.Role, strings.TrimSpace(res.Suspended.Reason))
		answer, ok := g.next("answer")
		if !ok {
			g.Fatalf("nobody answers:\n%s", g.story.String())
		}
		fmt.Fprintf(&g.story, "answer  %s\n", answer)
		g.uwf(nil, "thread", "resume", g.thread, "-p", answer)
	case res.Done:
		fmt.Fprintf(&g.story, "end  %s\n", res.Status)
		text, ok := g.next("reopen")
		if ok {
			fmt.Fprintf(&g.story, "reopen  %s\n", text)
			g.uwf(nil, "thread", "resume", g.thread, "-p", text)
		}
		return ok
	}
	return true
}

// files adds what the agents left.
func (g *goldenRun) files() {
	g.Helper()
	before := g.git("ls-tree", "-r", "--name-only", "main")
	branch := g.git("for-each-ref", "--format=%(refname)", "refs/heads/uwf/"+g.thread)
	if branch = strings.TrimSpace(branch); branch == "" {
		return
	}
	after := g.git("ls-tree", "-r", "--name-only", branch)
	for _, file := range strings.Fields(after) {
		if !slices.Contains(strings.Fields(before), file) {
			text := g.git("show", branch+":"+file)
			fmt.Fprintf(&g.story, "file  %s\n%s", file, indented(text))
		}
	}
}

// withPrompts puts each step's prompt into the story.
func (g *goldenRun) withPrompts() string {
	g.Helper()
	var list struct{ Steps []struct{ EdgePrompt string } }
	g.uwf(&list, "thread", "steps", g.thread)
	story := g.story.String()
	for _, s := range list.Steps[1:] {
		story = strings.Replace(story, "PROMPT\n", indented(s.EdgePrompt), 1)
	}
	if strings.Contains(story, "PROMPT\n") {
		g.Errorf("the thread has %d steps, and the story more", len(list.Steps)-1)
	}
	return story
}

func indented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		b.WriteString("    " + strings.TrimRight(strings.TrimSuffix(line, "\n"), " ") + "\n")
	}
	return b.String()
}
