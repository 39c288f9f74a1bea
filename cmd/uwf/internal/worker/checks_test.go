package worker

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/command"
	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/engine/checks"
	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// TestMain makes the test binary what uwf is for a command.
func TestMain(m *testing.M) {
	if code, ours := agents.RunHelper(os.Args, os.Environ()); ours {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// checkedRepo is a repository below a home, with files that are committed.
type checkedRepo struct {
	*testing.T
	home, dir string
	ws        *workspace.Workspace
	remote    wire.Remote
	screen    *bytes.Buffer
}

func newCheckedRepo(t *testing.T) *checkedRepo {
	t.Helper()
	r := &checkedRepo{T: t, home: t.TempDir()}
	r.dir = filepath.Join(r.home, "repo")
	if err := os.MkdirAll(filepath.Join(r.dir, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.dir, ".git/HEAD"), []byte("ref: refs/heads/main\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.remote = wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})
	ws, err := workspace.Open(r.dir, r.remote)
	if err != nil {
		t.Fatal(err)
	}
	r.ws = ws
	return r
}

func (r *checkedRepo) commit(files map[string]string) wire.ID {
	r.Helper()
	for name, text := range files {
		path := filepath.Join(r.dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			r.Fatal(err)
		}
	}
	s, err := r.ws.TakeSnapshot(r.Context(), workspace.SnapshotRequest{Message: "x", When: time.Unix(1, 0)})
	if err == nil {
		_, err = r.remote.Push(r.Context(), wire.PushRequest{Updates: []wire.RefUpdate{{Name: "refs/heads/" + s.Commit.String(), New: s.Commit}}, Objects: s.Objects})
	}
	if err != nil {
		r.Fatal(err)
	}
	return s.Commit
}

// worker is one of the next process, and of a person who types answers; empty: nobody is there.
func (r *checkedRepo) worker(c config.Config, answers string) *Worker {
	r.screen = &bytes.Buffer{}
	there := answers != ""
	f := &app.Factory{
		IO:      app.IO{In: strings.NewReader(answers), Out: &bytes.Buffer{}, Err: r.screen, InTTY: there, ErrTTY: there},
		Environ: []string{"HOME=" + r.home, "PATH=" + os.Getenv("PATH")}, Dir: r.dir, Now: time.Now,
	}
	return &Worker{Stepper: &step.Stepper{}, f: f, config: &c, folder: &folder{dir: r.dir, ws: r.ws}}
}

func checkerOf(t testing.TB, w *Worker, self ...string) (*checker, error) {
	t.Helper()
	err := w.useCommands(t.Context(), self)
	c, _ := w.Checker.(*checker)
	return c, err
}

var tester = &workflow.Definition{Roles: map[string]workflow.Role{"a": {Checks: []string{"test", "lint"}}, "b": {Checks: []string{"test"}}, "c": {}}}

// plan is what runs for each check, or why nothing does.
func (r *checkedRepo) plan(w *Worker, req step.CheckRequest) map[string]string {
	r.Helper()
	c, err := checkerOf(r, w)
	if err != nil {
		r.Fatal(err)
	}
	if req.Names == nil {
		req.Names = []string{"test", "lint"}
	}
	plan, out, err := c.planChecks(r.Context(), req)
	if err != nil {
		r.Fatal(err)
	}
	for _, p := range plan {
		out[p.name] = "$ " + p.Line + " in /" + p.Place
	}
	return out
}

const script = `{"scripts": {"test": "node t.js"}}`

// TestSettleChecks: what a repository's files stand for runs where the person said so, who is
// asked once, and again where the script says something else.
func TestSettleChecks(t *testing.T) {
	const (
		runs    = "$ npm run test in /"
		nobody  = `nobody consented to "npm run test", which package.json stands for: set checks.test in .uwf/config.yaml`
		no      = "there is no command for it: set checks.lint in .uwf/config.yaml"
		asks    = "Do you consent?"
		shows   = `checks.test: npm run test, which runs: node t.js (a check of what agents made; there is a package.json)`
		goesOut = "It goes without them."
	)
	for name, answer := range map[string]string{"yes": "y\n", "no": "n\n", "nothing": "\n"} {
		t.Run(name, func(t *testing.T) {
			r := newCheckedRepo(t)
			base := r.commit(map[string]string{"package.json": script})
			want := map[string]string{"test": nobody, "lint": no}
			if name == "yes" {
				want["test"] = runs
			}
			w := r.worker(config.Config{}, answer)
			for range 2 {
				if err := w.settleChecks(tester); err != nil {
					t.Fatal(err)
				}
			}
			screen := r.screen.String()
			if strings.Count(screen, asks) != 1 || !strings.Contains(screen, shows) || strings.Contains(screen, goesOut) == (name == "yes") {
				t.Errorf("on the screen:\n%s", screen)
			}
			if got := r.plan(w, step.CheckRequest{Base: base, Commit: base}); got["test"] != want["test"] || got["lint"] != want["lint"] {
				t.Errorf("%q", got)
			}

			// The next process, of the same person and without them.
			w = r.worker(config.Config{}, "n\n")
			if err := w.settleChecks(tester); err != nil || strings.Contains(r.screen.String(), asks) == (name == "yes") {
				t.Errorf("%v, on the screen:\n%s", err, r.screen)
			}
			w = r.worker(config.Config{}, "")
			if err := w.settleChecks(tester); (err == nil) != (name == "yes") || err != nil && !strings.Contains(err.Error(), "--trust") {
				t.Errorf("%v", err)
			}

			// Another script.
			other := r.commit(map[string]string{"package.json": strings.Replace(script, "t.js", "u.js", 1)})
			if got := r.plan(w, step.CheckRequest{Base: other, Commit: other}); got["test"] != nobody {
				t.Errorf("%q", got)
			}
			w = r.worker(config.Config{}, "n\n")
			if err := w.settleChecks(tester); err != nil || !strings.Contains(r.screen.String(), asks) || !strings.Contains(r.screen.String(), "node u.js") {
				t.Errorf("%v, on the screen:\n%s", err, r.screen)
			}
		})
	}
}

// TestDemandOf: a script is shown as it is, and one of several lines as JSON, which shows where they
// end: behind a comment the next one would look like a part of it.
func TestDemandOf(t *testing.T) {
	for script, want := range map[string]string{
		"":                          "checks.test: npm run test (",
		"node t.js":                 "checks.test: npm run test, which runs: node t.js (",
		"node t.js # fast\nrm -r x": `checks.test: {"command":"npm run test","file":"package.json","script":"node t.js # fast\nrm -r x"} (`,
		"node t.js\x1b[2K":          `checks.test: {"command":"npm run test","file":"package.json","script":"node t.js`,
	} {
		d := demandOf("test", checks.Found{Command: "npm run test", File: "package.json", Script: script})
		if got := d.Line(); !strings.HasPrefix(got, want) {
			t.Errorf("%q: %s", script, got)
		}
	}
}

// TestSettleChecksOfAnotherWorkflow: a process that works on threads of several workflows asks of
// the checks of each; and where nobody is there, it asks no less the second time.
func TestSettleChecksOfAnotherWorkflow(t *testing.T) {
	r := newCheckedRepo(t)
	r.commit(map[string]string{"package.json": `{"scripts": {"test": "node t.js", "types": "tsc"}}`})
	w := r.worker(config.Config{}, "y\ny\n")
	other := &workflow.Definition{Roles: map[string]workflow.Role{"a": {Checks: []string{"test", "types"}}}}
	for _, def := range []*workflow.Definition{tester, other, tester, other} {
		if err := w.settleChecks(def); err != nil {
			t.Fatal(err)
		}
	}
	if screen := r.screen.String(); strings.Count(screen, "Do you consent?") != 2 || strings.Count(screen, "checks.types:") != 1 {
		t.Errorf("on the screen:\n%s", screen)
	}
	r = newCheckedRepo(t)
	r.commit(map[string]string{"package.json": script})
	w = r.worker(config.Config{}, "")
	for range 2 {
		if err := w.settleChecks(tester); err == nil || !strings.Contains(err.Error(), "--trust") {
			t.Errorf("%v", err)
		}
	}
}

// TestSettleChecksAsksNobody: where there is nothing to ask of, or nobody whose machine it is.
func TestSettleChecksAsksNobody(t *testing.T) {
	for name, c := range map[string]struct {
		files  map[string]string
		config config.Checks
		change func(w *Worker)
		def    *workflow.Definition
	}{
		"nothing is found":   {files: map[string]string{"a": "1"}},
		"all are configured": {files: map[string]string{"package.json": script}, config: config.Checks{Commands: map[string]string{"test": "x", "lint": "x"}}},
		"no role has checks": {files: map[string]string{"package.json": script}, def: &workflow.Definition{Roles: map[string]workflow.Role{"c": {}}}},
		"a job":              {files: map[string]string{"package.json": script}, change: func(w *Worker) { w.f.Job = &app.Job{Root: w.f.Dir} }},
		"of another job":     {files: map[string]string{"package.json": script}, change: func(w *Worker) { w.o.Elsewhere = true }},
		"below another file": {files: map[string]string{"package.json/x": script}},
	} {
		r := newCheckedRepo(t)
		r.commit(c.files)
		w := r.worker(config.Config{Checks: c.config}, "")
		if c.change != nil {
			c.change(w)
		}
		if c.def == nil {
			c.def = tester
		}
		if err := w.settleChecks(c.def); err != nil || r.screen.Len() > 0 {
			t.Errorf("%s: %v %s", name, err, r.screen)
		}
	}
}

// TestPlanChecks: the settings' command goes before what is found; what is found is of the
// commit that the work began from, never what an agent wrote; and each has its part of the time.
func TestPlanChecks(t *testing.T) {
	r := newCheckedRepo(t)
	base := r.commit(map[string]string{"package.json": `{}`, "web/package.json": `{"scripts": {"lint": "eslint"}}`})
	work := r.commit(map[string]string{"package.json": script, "go.mod": "module x\n"})
	w := r.worker(config.Config{Checks: config.Checks{Commands: map[string]string{"test": "make check"}}}, "")
	if got := r.plan(w, step.CheckRequest{Base: base, Commit: work}); got["test"] != "$ make check in /" || !strings.HasPrefix(got["lint"], "there is no command") {
		t.Errorf("%q", got)
	}
	if got := r.plan(w, step.CheckRequest{Base: base, Commit: work, Location: "web"}); got["test"] != "$ make check in /" || !strings.HasPrefix(got["lint"], `nobody consented to "npm run lint"`) {
		t.Errorf("%q", got)
	}
	w.f.Job = &app.Job{Root: w.f.Dir} // whose repository is trusted as it is
	if got := r.plan(w, step.CheckRequest{Base: base, Commit: work, Location: "web"}); got["lint"] != "$ npm run lint in /web" {
		t.Errorf("%q", got)
	}
	w.config.Checks.Commands = nil
	if got := r.plan(w, step.CheckRequest{Base: base, Commit: work}); strings.HasPrefix(got["test"], "$") || strings.HasPrefix(got["lint"], "$") {
		t.Errorf("what an agent wrote chose the command: %q", got)
	}

	net := r.commit(map[string]string{"web/My.sln": "", "web/sub/Other.sln": ""})
	if got := r.plan(w, step.CheckRequest{Base: net, Commit: work, Location: "web/"}); !strings.HasPrefix(got["test"], "$ dotnet test My.sln in /web") {
		t.Errorf("%q", got)
	}
	if got := r.plan(w, step.CheckRequest{Base: net, Commit: work, Location: "we"}); strings.HasPrefix(got["test"], "$") {
		t.Errorf("a solution of another folder: %q", got)
	}

	if got := r.plan(w, step.CheckRequest{Commit: work}); strings.HasPrefix(got["test"], "$") || strings.HasPrefix(got["lint"], "$") {
		t.Errorf("of a thread that began from nothing an agent chose the command: %q", got)
	}

	for _, c := range []struct{ configured, left, want time.Duration }{
		{0, time.Hour, config.DefaultCheckTime}, {time.Minute, time.Hour, time.Minute}, {time.Hour, 4 * time.Minute, 2 * time.Minute}, {time.Hour, 0, time.Second},
	} {
		w.config.Checks = config.Checks{Commands: map[string]string{"test": "x", "lint": "y"}, Time: c.configured}
		ch, err := checkerOf(t, w)
		if err != nil {
			t.Fatal(err)
		}
		plan, _, err := ch.planChecks(t.Context(), step.CheckRequest{Names: []string{"test", "lint"}, Base: base, Commit: work, Time: c.left})
		if err != nil || len(plan) != 2 || plan[0].Timeout != c.want || plan[1].Timeout != c.want {
			t.Errorf("%+v: %+v %v", c, plan, err)
		}
	}
	// A commit that is nowhere decides nothing.
	ch, _ := checkerOf(t, r.worker(config.Config{}, ""))
	if _, err := ch.RunChecks(t.Context(), step.CheckRequest{Names: []string{"test"}, Base: wire.ID{1}, Commit: work}); err == nil {
		t.Error("the base can't be read, and nobody says so")
	}
}

// TestRunChecks: each check runs on a copy; what fails on the base, too, is not enforced.
func TestRunChecks(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := newCheckedRepo(t)
	base := r.commit(map[string]string{"old": "bad", "new": "good"})
	work := r.commit(map[string]string{"old": "bad", "new": "bad"})
	all := map[string]string{"old": "echo x > made; grep -q good old", "new": "test ! -e made || echo the folder is shared; cat new; grep -q good new", "fine": "true"}
	for name, c := range map[string]struct {
		base     wire.ID
		strict   bool
		enforced string
	}{
		"as usual":     {base, false, "new"},
		"strict":       {base, true, "new old"},
		"from nothing": {wire.ZeroID, false, "new old"},
		"nothing done": {work, false, "new old"},
	} {
		w := r.worker(config.Config{Checks: config.Checks{Commands: all, Strict: c.strict}}, "")
		ch, err := checkerOf(t, w, self)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ch.RunChecks(t.Context(), step.CheckRequest{Names: []string{"new", "old", "fine", "none"}, Base: c.base, Commit: work, Time: time.Hour})
		if err != nil || len(got) != 4 {
			t.Fatalf("%s: %+v %v", name, got, err)
		}
		var enforced []string
		for _, res := range got {
			if res.Enforced {
				enforced = append(enforced, res.Name)
			}
		}
		told := strings.Contains(got[1].Note, "it fails on the commit that the thread began from, too")
		if strings.Join(enforced, " ") != c.enforced || told != (name == "as usual") || got[0].ExitCode != 1 || got[0].Output != "bad\n" || got[2].Status != record.CheckPassed || got[3].Status != record.CheckSkipped {
			t.Errorf("%s: %+v", name, got)
		}
		if _, err := os.Stat(filepath.Join(r.dir, "made")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: a check wrote into the workspace: %v", name, err)
		}
	}
	// Nothing was there, and nothing was made.
	ch, _ := checkerOf(t, r.worker(config.Config{Checks: config.Checks{Commands: map[string]string{"new": "ls -A; test -z \"$(ls -A)\""}}}, ""), self)
	if got, err := ch.RunChecks(t.Context(), step.CheckRequest{Names: []string{"new"}, Time: time.Hour}); err != nil || got[0].Status != record.CheckPassed {
		t.Errorf("%+v %v", got, err)
	}
	// What fails here has to be tried on the base, which nobody has any more.
	ch, _ = checkerOf(t, r.worker(config.Config{Checks: config.Checks{Commands: all}}, ""), self)
	if got, err := ch.RunChecks(t.Context(), step.CheckRequest{Names: []string{"new"}, Base: wire.ID{1}, Commit: work, Time: time.Hour}); err == nil || !strings.Contains(err.Error(), "on the commit that the thread began from") {
		t.Errorf("%+v %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ch, _ = checkerOf(t, r.worker(config.Config{Checks: config.Checks{Commands: all}}, ""))
	if got, err := ch.RunChecks(ctx, step.CheckRequest{Names: []string{"fine"}, Commit: work, Time: time.Hour}); err == nil {
		t.Errorf("an interrupted check has a result: %+v", got)
	}
}

// TestChecksWithoutTheirProgram: a check whose program this machine lacks is skipped. It fails if only
// the role's work lacks the program.
func TestChecksWithoutTheirProgram(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := newCheckedRepo(t)
	base := r.commit(map[string]string{"line": "true", "says": "echo"})
	work := r.commit(map[string]string{"line": "no-such-program", "says": "echo"})

	for name, c := range map[string]struct {
		line    string
		base    wire.ID
		strict  bool
		skipped bool
	}{
		"before, too":            {"echo first; no-such-program --all", base, false, true},
		"nothing done":           {"no-such-program", work, false, true},
		"a program of packages":  {"sh -c no-such-program || { echo npm error; exit 127; }", base, false, true},
		"strict":                 {"no-such-program", base, true, false},
		"by the role's work":     {"sh ./line", base, false, false},
		"another failure before": {"test $(cat line) = true && { echo no-such-program: not found; exit 1; }; no-such-program", base, false, false},
		"an exit code alone":     {"exit 127", base, false, false},
		"a text alone":           {"echo no-such-program: not found; exit 1", work, false, false},
	} {
		w := r.worker(config.Config{Checks: config.Checks{Commands: map[string]string{"test": c.line}, Strict: c.strict}}, "")
		ch, err := checkerOf(t, w, self)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ch.RunChecks(t.Context(), step.CheckRequest{Names: []string{"test"}, Base: c.base, Commit: work, Time: time.Hour})
		if err != nil || len(got) != 1 {
			t.Fatalf("%s: %+v %v", name, got, err)
		}

		skipped := got[0].Status == record.CheckSkipped && !got[0].Enforced && strings.HasPrefix(got[0].Note, "could not run: needs no-such-program")
		if skipped != c.skipped || !skipped && got[0].Status != record.CheckFailed {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestResultOf: how a check ended by how its command did.
func TestResultOf(t *testing.T) {
	for name, c := range map[string]struct {
		res      command.Result
		status   string
		code     int
		note     string
		enforced bool
	}{
		"passed":                       {command.Result{Duration: 1500 * time.Millisecond}, record.CheckPassed, 0, "", false},
		"failed":                       {command.Result{Code: 3, Output: "x"}, record.CheckFailed, 3, "", true},
		"a signal":                     {command.Result{Code: -1, Signal: syscall.SIGKILL}, record.CheckFailed, 0, "a signal ended it: killed", true},
		"stopped":                      {command.Result{Code: -1, Signal: syscall.SIGTERM, Stopped: command.ErrTimeout}, record.CheckFailed, 0, command.ErrTimeout.Error(), true},
		"stopped, and says it is fine": {command.Result{Stopped: command.ErrOutput}, record.CheckFailed, 0, command.ErrOutput.Error(), true},
	} {
		got := resultOf("test", c.res)
		if got.Name != "test" || got.Status != c.status || got.ExitCode != c.code || got.Note != c.note || got.Enforced != c.enforced || got.Output != c.res.Output || got.DurationMs != c.res.Duration.Milliseconds() {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestProtectPatterns: patterns that can't be used are a mistake of the settings.
func TestProtectPatterns(t *testing.T) {
	r := newCheckedRepo(t)
	ch, err := checkerOf(t, r.worker(config.Config{Checks: config.Checks{Protect: []string{"e2e/"}}}, ""))
	if err != nil || !ch.Protects("e2e/a") || !ch.Protects("a_test.go") || ch.Protects("a.go") {
		t.Errorf("%v", err)
	}
	var usage *app.UsageError
	if _, err := checkerOf(t, r.worker(config.Config{Checks: config.Checks{Protect: []string{strings.Repeat("x", 100_000_001)}}}, "")); !errors.As(err, &usage) || !strings.Contains(err.Error(), "checks.protect") {
		t.Errorf("%v", err)
	}
}

// TestSettleDotnet: the person is asked for consent to `dotnet test`, too.
func TestSettleDotnet(t *testing.T) {
	r := newCheckedRepo(t)
	r.commit(map[string]string{"My.sln": ""})
	if err := r.worker(config.Config{}, "y\n").settleChecks(tester); err != nil || !strings.Contains(r.screen.String(), "checks.test: dotnet test My.sln (a check of what agents made; there is a My.sln)") {
		t.Errorf("%v %s", err, r.screen)
	}
}
