package forge

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
	"github.com/united-workforce/uwf/internal/testmode"
	"golang.org/x/tools/txtar"
)

// project is a repository as people have it, and what they read of a thread in it.
type project struct {
	name string // of the golden file
	from string // the archive with its files, in testdata/projects
	// prepare is a command of workspace.prepare; empty: nothing prepares.
	prepare string
	// before adds the archive's files whose tests fail whatever an agent does.
	before bool
	// commands are what the developer runs, in place of the archive's own.
	commands string
	// fails: the developer's step does.
	fails bool
}

var projects = []project{
	{name: "pnpm", from: "pnpm"},
	{name: "pytest", from: "pytest"},
	{name: "npm-workspaces", from: "npm-workspaces"},
	{name: "go", from: "go"},
	{name: "mixed", from: "mixed"},
	{name: "go-fails-before", from: "go", before: true},
	{name: "pnpm-prepared", from: "pnpm", prepare: "pnpm install --frozen-lockfile --ignore-scripts"},
	{name: "pytest-prepared", from: "pytest", prepare: "python3 -m venv .venv && echo '*' > .venv/.gitignore && .venv/bin/pip install --only-binary :all: -r requirements.txt"},
	{name: "npm-workspaces-prepared", from: "npm-workspaces", prepare: "npm ci --ignore-scripts"},
	{name: "mixed-skipped", from: "mixed", commands: "mkdir -p vendor/lib && echo '/* mended */' >vendor/lib/menu.c"},
	{name: "mixed-picture", from: "mixed", commands: "head -c 2000 /dev/zero >art/logo.png", fails: true},
}

// TestProjects runs a thread in repositories of each kind, on a laptop and in jobs. What a person
// reads of it is a golden text: the run, the comment and the pull request. The tools that a machine
// may lack are scripts, which say what the real ones say.
func TestProjects(t *testing.T) {
	t.Parallel()
	for _, p := range testmode.Some(4, projects...) {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			newTold(t, p).tell(p.name)
		})
	}
}

// archived is what the archive of a project has.
type archived struct {
	title, commands string
	// repo are its files, before those whose tests fail, crlf those with CRLF in the commit, write what
	// the developer writes, tools are programs.
	repo, before, crlf, write, tools map[string]string
}

func readArchive(t *testing.T, name string) *archived {
	t.Helper()
	file, err := txtar.ParseFile(filepath.Join("testdata", "projects", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	a := &archived{repo: map[string]string{}, before: map[string]string{}, crlf: map[string]string{}, write: map[string]string{}, tools: map[string]string{}}
	parts := map[string]map[string]string{"repo": a.repo, "before": a.before, "crlf": a.crlf, "write": a.write, "tools": a.tools}
	for _, f := range file.Files {
		part, name, _ := strings.Cut(f.Name, "/")
		switch text := string(f.Data); part {
		case "title":
			a.title = strings.TrimSpace(text)
		case "commands":
			a.commands = strings.TrimSpace(text)
		case "crlf":
			a.crlf[name] = strings.ReplaceAll(text, "\n", "\r\n")
		default:
			parts[part][name] = text
		}
	}
	return a
}

// projectConfig has no checks: the files of a project stand for them.
const projectConfig = `state: {remote: origin}
agents:
  player: {command: uwf, args: [agent, mock, ` + ciScript + `]}
defaultAgent: player
`

// projectScript has the developer write files and run commands, as the mock agent plays it.
func projectScript(write map[string]string, commands string) string {
	var b strings.Builder
	b.WriteString("steps:\n  - role: planner\n    output: \"---\\n$status: ready\\nplan: Mend it.\\nfiles: [README.md]\\n---\\nThe cause is plain.\\n\"\n")
	b.WriteString("  - role: developer\n    write:\n")
	for name, text := range write {
		fmt.Fprintf(&b, "      %s: %q\n", name, text)
	}
	if commands != "" {
		fmt.Fprintf(&b, "    commands: [%q]\n", commands)
	}
	b.WriteString("    output: \"---\\n$status: done\\nsummary: It is mended.\\ntests: not run\\n---\\nDone.\\n\"\n")
	b.WriteString("  - role: reviewer\n    output: \"---\\n$status: approved\\nsummary: It works.\\n---\\nRead.\\n\"\n")
	return b.String()
}

// told is what a person reads of a thread in a project.
type told struct {
	*ci
	title string
	path  string // PATH with the project's tools
	fails bool
	text  strings.Builder
}

// newTold makes a project's repository, and its tools.
func newTold(t *testing.T, p project) *told {
	t.Helper()
	a := readArchive(t, p.from)
	files := map[string]string{ciConfig: projectConfig}
	for _, f := range txtar.Parse([]byte(shippedFile(t, "demo/repo.txtar"))).Files {
		files[f.Name] = "" // the demo's own files are none of this project's
	}
	maps.Copy(files, a.repo)
	maps.Copy(files, a.crlf)
	if p.before {
		maps.Copy(files, a.before)
	}
	if p.prepare != "" {
		files[ciConfig] += fmt.Sprintf("workspace: {prepare: [%q]}\n", p.prepare)
	}
	w := &told{title: a.title, fails: p.fails}
	w.ci = newCI(t, ciOptions{script: projectScript(a.write, cmp.Or(p.commands, a.commands)), files: files})
	if files[".gitmodules"] != "" {
		w.addSubmodule("vendor/lib")
	}
	w.path = w.addTools(a.tools) + string(os.PathListSeparator) + os.Getenv("PATH")
	w.env = append(w.env, "PATH="+w.path)
	return w
}

// addSubmodule adds a commit of another repository, which nobody has here.
func (w *told) addSubmodule(path string) {
	w.Helper()
	dir := w.checkout(w.forge.Branch())
	w.gitIn(dir, "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("5", 40)+","+path)
	w.gitIn(dir, "commit", "-q", "-m", "Use a library")
	w.gitIn(dir, "push", "-q", "origin", "HEAD")
	w.check(os.RemoveAll(dir))
}

// addTools writes programs, and go with the cache of this test: compiling the standard library takes
// half a minute.
func (w *told) addTools(tools map[string]string) string {
	w.Helper()
	bin := filepath.Join(w.dir, "bin")
	program, err := exec.LookPath("go")
	w.check(err)
	cache, err := exec.CommandContext(w.Context(), program, "env", "GOCACHE").Output()
	w.check(errors.Join(err, os.MkdirAll(bin, 0o755))) //nolint:gosec // as programs are
	tools["go"] = fmt.Sprintf("#!/bin/sh\nGOCACHE='%s' GOPROXY=off GOWORK=off GOFLAGS=-trimpath exec %s \"$@\"\n", strings.TrimSpace(string(cache)), program)
	for name, text := range tools {
		w.check(os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755)) //nolint:gosec // as programs are
	}
	return bin
}

// tell runs the project's thread at both places, and compares what is read with the golden file.
func (w *told) tell(name string) {
	w.Helper()
	w.runHere()
	w.runJobs()
	got := w.text.String()
	file := filepath.Join("testdata", "projects", name+".golden")
	if *update {
		w.check(os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	if err != nil || got != string(want) {
		w.Errorf("%s differs (-update writes it): %v; got:\n%s\nwant:\n%s", file, err, got, want)
	}
}

// runHere runs a thread in a clone, as a person does who is asked for consent first: for what the
// settings want, and for the checks.
func (w *told) runHere() {
	w.Helper()
	place := w.TempDir()
	w.gitIn(place, "clone", "-q", "--bare", w.forge.Dir(), "origin.git")
	w.gitIn(place, "clone", "-q", "origin.git", "shop")
	env := append(w.person(), "PATH="+w.path, "HOME="+place, "TMPDIR="+os.TempDir())
	console := clitest.Console{Remotes: &clitest.Remotes{}, Dir: filepath.Join(place, "shop"), Environ: env}
	args := []string{"run", "--format", "text", "-p", w.title}
	res := console.Run(w.Context(), args...)
	for range 2 {
		digest := consentTo.FindStringSubmatch(res.Stderr)
		if digest == nil {
			break
		}
		w.add("uwf run, which asks", res.Stdout+res.Stderr)
		res = console.Run(w.Context(), append(args, "--trust", digest[1])...)
	}
	w.add("uwf run", res.Stderr)
	w.add("uwf run, at the end", res.Stdout)
	if (res.Code != 0) != w.fails {
		w.Errorf("uwf run: exit code %d", res.Code)
	}
}

var consentTo = regexp.MustCompile(`--trust ([0-9a-f]+) to consent`)

// person is the environment of somebody at their own machine.
func (w *told) person() []string {
	return []string{
		"LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=Ann", "GIT_AUTHOR_EMAIL=ann@example.com", "GIT_COMMITTER_NAME=Ann", "GIT_COMMITTER_EMAIL=ann@example.com",
	}
}

func (w *told) gitIn(dir string, args ...string) {
	w.Helper()
	cmd := exec.CommandContext(w.Context(), "git", args...)
	cmd.Dir, cmd.Env = dir, append(w.person(), "PATH="+os.Getenv("PATH"), "HOME="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.Fatalf("git %q: %v\n%s", args, err, out)
	}
}

// runJobs runs a thread by the label of an issue.
func (w *told) runJobs() {
	w.Helper()
	n := w.forge.OpenIssue("alice", w.title, "See the tests.")
	w.green(w.start(w.forge.PutLabel("alice", n, "uwf")))
	jobs := w.settle()
	if w.fails {
		w.red(jobs...)
	} else {
		w.green(jobs...)
	}
	w.add("the comment", w.sticky(n).Body)
	for _, p := range w.forge.Pulls() {
		w.add("the pull request", "# "+p.Title+"\n\n"+p.Body)
		w.add("its changes", w.git("diff", "--no-prefix", "-U1", w.forge.Branch()+"..."+p.Pull.Head))
	}
}

// varying differs from run to run; the golden files have the other text.
var varying = []struct {
	text *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`\b01[0-9A-HJKMNP-TV-Z]{24}\b`), "01JY5XK8Q2V7M3N9T4R6W8Z0AB"},
	{regexp.MustCompile(`\b[0-9a-f]{40,64}\b`), "ba5eba11"},
	{regexp.MustCompile("`[0-9a-f]{7}`"), "`ba5eba1`"},
	{regexp.MustCompile(`\b(local|step)-[0-9a-f]{6,}\b`), "$1-5eed"},
	{regexp.MustCompile(`http://127\.0\.0\.1:\d+`), "https://github.example"},
	{regexp.MustCompile(`(/[\w.-]+)+/(uwf-[a-z]+-)[\w-]+`), "/tmp/${2}1"},
	{regexp.MustCompile(`\b(\d+m ?)?\d+(\.\d+)?m?s\b|\(cached\)`), "2s"},
	{regexp.MustCompile(`(passed|exit code \d+), 2s`), "$1"}, // a fast check has no time
}

// add adds what a person reads.
func (w *told) add(title, text string) {
	text = strings.ReplaceAll(strings.ReplaceAll(text, w.dir, "/srv"), "\r", "␍")
	for _, v := range varying {
		text = v.text.ReplaceAllString(text, v.with)
	}
	fmt.Fprintf(&w.text, "======== %s\n%s\n", title, strings.TrimRight(text, "\n"))
}
