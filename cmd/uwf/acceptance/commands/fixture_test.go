package commands

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/cli"
	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/forgetest"
	"github.com/united-workforce/uwf/internal/testmode"
)

// The states that a fixture's threads are in.
const (
	stateActive    = "active"    // two steps done, the third to be done
	stateSuspended = "suspended" // the developer asks a question
	stateFailed    = "failed"    // the first try at the first step failed
	stateMended    = "mended"    // its first step was done at the second try
	stateEnded     = "ended"     // four steps
	stateCancelled = "cancelled"
	stateRunning   = "running"   // as active, and a job on another machine works on it
	statePublished = "published" // ended, in a repository on a forge, which has its branch
)

// fixture is a repository with the files of testdata/examples.txtar and a thread in
// each state. Each test gets a copy of its own: nothing that one does is seen by
// another.
type fixture struct {
	dir     string
	threads map[string]string // state → id
	env     []string          // besides

	remotes   clitest.Remotes
	claimOnce sync.Once
}

// newFixture makes the fixture that is copied, once for all tests.
func newFixture(t *testing.T) func(t *testing.T) *fixture {
	t.Helper()
	return newFixtureOf(t, func(_, text string) string { return text })
}

// newFixtureOf is newFixture with files and texts that are not as they should be.
func newFixtureOf(t *testing.T, edit func(file, text string) string) func(t *testing.T) *fixture {
	t.Helper()
	testmode.NeedGit(t)
	from := makeFixture(t, t.TempDir(), edit)
	return func(t *testing.T) *fixture {
		t.Helper()
		f := &fixture{dir: t.TempDir(), threads: from.threads}
		if err := os.CopyFS(f.dir, os.DirFS(from.dir)); err != nil {
			t.Fatal(err)
		}
		return f
	}
}

func makeFixture(t *testing.T, root string, edit func(file, text string) string) *fixture {
	t.Helper()
	f := &fixture{dir: root, threads: map[string]string{}}
	raw, err := os.ReadFile("testdata/examples.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range txtar.Parse(raw).Files {
		f.write(t, "repo/"+file.Name, edit(file.Name, strings.ReplaceAll(string(file.Data), "$WORK", f.repo())))
	}
	f.write(t, "home/.gitconfig", "[user]\n\tname = someone\n\temail = someone@example.com\n[init]\n\tdefaultBranch = main\n")
	for _, args := range [][]string{
		{"init", "-q", "--template=", "-b", "main"}, {"add", "-A"}, {"commit", "-q", "-m", "Begin"}, {"branch", "release-2"},
	} {
		f.git(t, args...)
	}
	mock := func(script string) string { return "uwf agent mock " + filepath.Join(f.repo(), script) }
	start := func() string {
		var started struct{ Thread string }
		f.must(t, &started, "thread", "start", "solve-issue", "-p", edit("", "The parser panics on an empty file"))
		return started.Thread
	}
	for _, version := range []string{"solve-issue.yaml", ".uwf/workflows/solve-issue.yaml"} {
		f.must(t, nil, "workflow", "put", version)
	}
	f.must(t, nil, "cas", "put", "schema", "my-schema.json")
	f.must(t, nil, "cas", "put", "FRBAB1BF0ZBCS", "alice.json")

	f.threads[stateEnded] = start()
	f.must(t, nil, "thread", "step", f.threads[stateEnded], "-c", "9", "--agent", mock("script.yaml"))
	f.threads[statePublished] = f.threads[stateEnded]
	f.threads[stateCancelled] = start()
	f.must(t, nil, "thread", "cancel", f.threads[stateCancelled], "-m", edit("", "solved by hand"))
	for _, state := range []string{stateFailed, stateMended} {
		f.threads[state] = start()
		if code, _, _ := f.uwf(t, "thread", "step", f.threads[state], "--agent", mock("fails.yaml")); code != 1 {
			t.Fatalf("a step that has to fail has exit code %d", code)
		}
	}
	f.must(t, nil, "thread", "step", f.threads[stateMended], "--agent", mock("script.yaml"))
	f.threads[stateSuspended] = start()
	f.must(t, nil, "thread", "step", f.threads[stateSuspended], "--agent", mock("asks.yaml"))
	f.threads[stateActive] = start() // the last one: @latest
	f.must(t, nil, "thread", "step", f.threads[stateActive], "-c", "2", "--agent", mock("script.yaml"))
	f.threads[stateRunning] = f.threads[stateActive]
	f.git(t, "repack", "-a", "-d", "-q") // few files are copied faster
	f.git(t, "pack-refs", "--all")
	return f
}

func (f *fixture) repo() string { return filepath.Join(f.dir, "repo") }

func (f *fixture) write(t *testing.T, name, text string) {
	t.Helper()
	name = filepath.Join(f.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) environ() []string {
	return append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(f.dir, "home"), "TMPDIR=" + os.TempDir(), "LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
	}, f.env...)
}

// publish puts the repository on a forge, without the branches of threads.
func (f *fixture) publish(t *testing.T, gitea bool) *forgetest.Server {
	t.Helper()
	s := forgetest.Start(t, forgetest.Options{Gitea: gitea})
	s.SetPermission("alice", "write")
	f.git(t, "push", "-q", s.Dir(), "+main")
	f.git(t, "remote", "add", "origin", s.CloneURL())
	f.env = []string{"GITHUB_SERVER_URL=" + s.URL, "GITHUB_API_URL=" + s.APIURL, "GITHUB_TOKEN=" + s.UserToken("alice")}
	return s
}

func (f *fixture) git(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = f.repo(), f.environ()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// factory makes the Factory of a command in the fixture, and what it prints.
func (f *fixture) factory(t *testing.T) (fa *app.Factory, out, errs *clitest.Printed) {
	t.Helper()
	console := clitest.Console{Remotes: &f.remotes, Dir: f.repo(), Environ: f.environ()}
	fa, out, errs = console.Factory()
	return fa, out, errs
}

// uwf runs a command in this process; its agents are processes of their own.
func (f *fixture) uwf(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	fa, out, errs := f.factory(t)
	code = cli.Execute(t.Context(), fa, args)
	return code, out.String(), errs.String()
}

// must runs a command that must succeed, and decodes what it prints.
func (f *fixture) must(t *testing.T, into any, args ...string) {
	t.Helper()
	code, out, errs := f.uwf(t, args...)
	if code != 0 {
		t.Fatalf("uwf %s: exit code %d\n%s%s", strings.Join(args, " "), code, out, errs)
	}
	if into != nil {
		if err := json.Unmarshal([]byte(out), into); err != nil {
			t.Fatalf("uwf %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// claim has a job on another machine work on a thread.
func (f *fixture) claim(t *testing.T, id gitcas.ThreadID, run, host string) {
	t.Helper()
	remote, err := wire.Dial(filepath.Join(f.repo(), ".git"), wire.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	store := gitcas.Open(remote, gitcas.Options{})
	v, err := store.Load(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	e, _ := v.Entry(id)
	now := time.Now()
	upd, objs := view.ClaimUpdate(id, nil, &gitcas.Claim{
		Run: run, Attempt: 1, Host: host, PID: 1, Head: e.Head, Tokens: 12, Since: now.UnixMilli(), Renewed: now.UnixMilli(),
	}, now)
	if _, err := store.Push(t.Context(), v, &gitcas.Change{Refs: []wire.RefUpdate{upd}, Objects: objs}); err != nil {
		t.Fatal(err)
	}
}
