package processes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/gitcas/gitserver"
	"github.com/united-workforce/uwf/internal/gitservertest"
	"github.com/united-workforce/uwf/internal/testmode"
)

// jobDeadline ends a process that hangs, and so the test.
const jobDeadline = 5 * time.Minute

// lab is a remote repository, served over loopback HTTP by git itself.
type lab struct {
	*testing.T
	dir    string
	server *gitservertest.Server
	url    string
	script string // of the mock agent

	// inside: its jobs run in this process unless all are to be processes, or one is to
	// be killed. What a test proves of messages and records needs none. They read the
	// repository without the server.
	inside  bool
	remotes *clitest.Remotes

	ahead atomic.Int64 // how far the server's clock is ahead, in nanoseconds
	wrap  atomic.Pointer[func(http.Handler) http.Handler]
}

// newLab serves a repository with a workflow on its default branch, and has a
// script ready for the mock agent.
func newLab(t *testing.T, workflow, script string, config map[string]string) *lab {
	t.Helper()
	if err := gitserver.Available(""); err != nil {
		t.Skip(err)
	}
	l := &lab{T: t, dir: t.TempDir()}
	t.Cleanup(l.unlock)
	l.script = filepath.Join(l.dir, "script.yaml")
	l.write(l.script, script)
	// The server is never killed: that it waits for the disk would only take time.
	settings := map[string]string{"core.fsync": "none"}
	maps.Copy(settings, config)
	var err error
	l.server, err = gitservertest.Serve(l.path("server"), gitserver.Options{Config: settings, Middleware: l.middleware})
	l.check(err)
	t.Cleanup(func() { l.check(l.server.Close()) })
	l.check(os.MkdirAll(l.path("server"), 0o700))
	l.url, err = l.server.Init("r.git")
	l.check(err)
	seed := l.path("seed")
	l.write(filepath.Join(seed, ".uwf/workflows/flow.yaml"), workflow)
	l.write(filepath.Join(seed, ".uwf/config.yaml"), "state: {remote: origin}\nlimits: {maxSteps: 1000, maxStepsPerRole: 1000}\n")
	l.write(filepath.Join(seed, "kept.txt"), "no agent touches this\n")
	l.write(filepath.Join(seed, "draft.txt"), "to be worked on\n")
	l.git(seed, "init", "-q", "-b", "main")
	l.git(seed, "add", "-A")
	l.git(seed, "commit", "-q", "-m", "Begin")
	l.git(seed, "push", "-q", l.url, "main")
	l.remotes = &clitest.Remotes{Served: map[string]string{l.url: l.server.Dir("r.git")}}
	return l
}

// unlock lets the folders of agents that were killed be removed.
func (l *lab) unlock() {
	_ = filepath.WalkDir(l.dir, func(path string, d fs.DirEntry, err error) error { // removing says what failed
		if err == nil && d.IsDir() {
			return os.Chmod(path, 0o700) //nolint:gosec // a folder
		}
		return nil
	})
}

func (l *lab) middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := time.Now().Add(time.Duration(l.ahead.Load()))
		w.Header().Set("Date", at.UTC().Format(http.TimeFormat))
		h := next
		if wrap := l.wrap.Load(); wrap != nil {
			h = (*wrap)(next)
		}
		h.ServeHTTP(w, r)
	})
}

// outlive moves the server's clock until every claim of now is dead.
func (l *lab) outlive() { l.ahead.Add(int64(life.MaxClaim + time.Minute)) }

// isPush tells pushes from other requests.
func isPush(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/git-receive-pack")
}

func (l *lab) path(name string) string { return filepath.Join(l.dir, name) }

func (l *lab) check(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

func (l *lab) write(name, text string) {
	l.Helper()
	l.check(os.MkdirAll(filepath.Dir(name), 0o700))
	l.check(os.WriteFile(name, []byte(text), 0o600))
}

// lines counts the lines of a file that may not be there.
func (l *lab) lines(name string) int {
	l.Helper()
	b, err := os.ReadFile(name)
	if !errors.Is(err, fs.ErrNotExist) {
		l.check(err)
	}
	return bytes.Count(b, []byte("\n"))
}

// baseEnv is the environment of every process here: nothing of this machine's
// user.
func (l *lab) baseEnv() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + l.path("home"), "TMPDIR=" + l.path("tmp"), "LC_ALL=C",
		"GIT_TEMPLATE_DIR=", // no examples of hooks
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=someone", "GIT_AUTHOR_EMAIL=someone@example.com",
		"GIT_COMMITTER_NAME=someone", "GIT_COMMITTER_EMAIL=someone@example.com",
	}
}

// git runs git and returns what it prints.
func (l *lab) git(dir string, args ...string) string {
	l.Helper()
	cmd := exec.CommandContext(l.Context(), "git", args...)
	cmd.Dir, cmd.Env = dir, l.baseEnv()
	out, err := cmd.CombinedOutput()
	if err != nil {
		l.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// bare runs git in the served repository itself.
func (l *lab) bare(args ...string) string {
	l.Helper()
	return l.git(l.server.Dir("r.git"), args...)
}

// refs lists the remote's refs below a prefix.
func (l *lab) refs(prefix string) []string {
	l.Helper()
	return strings.Fields(l.bare("for-each-ref", "--format=%(refname)", prefix))
}

// machine is a computer with a clone of the repository and a home of its own.
type machine struct {
	*lab
	name, clone, home string
}

func (l *lab) machine(name string) *machine {
	l.Helper()
	m := &machine{lab: l, name: name, clone: l.path("clone-" + name), home: l.path("home-" + name)}
	l.check(os.MkdirAll(l.path("tmp"), 0o700))
	l.git(l.dir, "clone", "-q", l.url, m.clone)
	return m
}

// job is a running uwf.
type job struct {
	m         *machine
	args      []string
	unset     []string // variables that it does not get
	cmd       *exec.Cmd
	out, errs bytes.Buffer
	done      chan struct{}
	code      int // -1: a signal ended it
}

func (m *machine) newJob(args []string) (*job, context.Context) {
	ctx, cancel := context.WithTimeout(m.Context(), jobDeadline)
	m.Cleanup(cancel)
	return &job{m: m, args: args, done: make(chan struct{})}, ctx
}

// startInside starts a command in this process, which a test begins or looks with: it proves
// nothing of processes. Where all are to be processes it is one too.
func (m *machine) startInside(args ...string) *job {
	m.Helper()
	if testmode.HasProcesses() {
		return m.start(nil, args...)
	}
	j, ctx := m.newJob(args)
	j.runInside(ctx, nil)
	return j
}

// start starts uwf with more variables in its environment.
func (m *machine) start(env []string, args ...string) *job {
	m.Helper()
	j, ctx := m.newJob(args)
	if m.inside && !testmode.HasProcesses() && !slices.ContainsFunc(env, isKill) {
		j.runInside(ctx, env)
		return j
	}
	j.runProcess(ctx, env, nil)
	return j
}

// startAt starts uwf at a terminal: it reads and writes there but for its results, and
// what is typed there asks it to end.
func (m *machine) startAt(tty *os.File, args ...string) *job {
	m.Helper()
	j, ctx := m.newJob(args)
	j.runProcess(ctx, nil, tty)
	return j
}

// runProcess runs uwf in a process, at a terminal where it gets one.
func (j *job) runProcess(ctx context.Context, env []string, tty *os.File) {
	m, args := j.m, j.args
	m.Helper()
	j.cmd = exec.CommandContext(ctx, "uwf", args...)
	j.cmd.Dir = m.clone
	j.cmd.Env = append(m.baseEnv(), "UWF_HOME="+m.home, clitest.EnvHost+"="+m.name)
	j.cmd.Env = slices.DeleteFunc(j.cmd.Env, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(j.unset, name)
	})
	j.cmd.Env = append(j.cmd.Env, env...)
	j.cmd.Stdout, j.cmd.Stderr = &j.out, &j.errs
	if tty != nil {
		j.cmd.Stdin = tty
		j.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	}
	m.check(j.cmd.Start())
	go func() {
		defer close(j.done)
		_ = j.cmd.Wait() // the exit code says it
		j.code = j.cmd.ProcessState.ExitCode()
		if ctx.Err() != nil {
			fmt.Fprintf(&j.errs, "\n(ended by the test: %v)", ctx.Err())
		}
	}()
}

func isKill(variable string) bool { return strings.HasPrefix(variable, clitest.EnvKill+"=") }

// runInside runs uwf in this process.
func (j *job) runInside(ctx context.Context, env []string) {
	m := j.m
	c := clitest.Console{Remotes: m.remotes, Dir: m.clone, Environ: append(append(m.baseEnv(), "UWF_HOME="+m.home, clitest.EnvHost+"="+m.name), env...)}
	go func() {
		defer close(j.done)
		res, err := c.RunFaulty(ctx, j.args...)
		j.code = res.Code
		j.out.WriteString(res.Stdout)
		j.errs.WriteString(res.Stderr)
		if err != nil {
			j.code = -1
			fmt.Fprint(&j.errs, err)
		}
	}()
}

// step starts `uwf thread step` with the mock agent.
func (m *machine) step(env []string, id string, more ...string) *job {
	m.Helper()
	return m.start(env, append([]string{"thread", "step", id, "--agent", "uwf agent mock '" + m.script + "'"}, more...)...)
}

// ends waits for the job's end, which must have that exit code.
func (j *job) ends(want int) *job {
	j.m.Helper()
	<-j.done
	if j.code != want {
		j.m.Fatalf("%s: exit code %d, want %d", j, j.code, want)
	}
	return j
}

// succeeds waits for the job's end and reports whether it was a good one.
func (j *job) succeeds() bool {
	<-j.done
	return j.code == 0
}

// dies waits for the SIGKILL that the test is about.
func (j *job) dies() {
	j.m.Helper()
	<-j.done
	if !j.killed() {
		j.m.Fatalf("%s: exit code %d; it should have been killed", j, j.code)
	}
}

func (j *job) killed() bool {
	if j.cmd == nil {
		return false
	}
	ws, ok := j.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && ws.Signaled() && ws.Signal() == syscall.SIGKILL
}

// json decodes what the job printed.
func (j *job) json(into any) {
	j.m.Helper()
	if err := json.Unmarshal(j.out.Bytes(), into); err != nil {
		j.m.Fatalf("%s: %v", j, err)
	}
}

func (j *job) String() string {
	return fmt.Sprintf("uwf %s on machine %s\nstdout: %s\nstderr: %s", strings.Join(j.args, " "), j.m.name, &j.out, &j.errs)
}

// startThread starts a thread of the lab's workflow and returns its id.
func (m *machine) startThread() string {
	m.Helper()
	var s struct{ Thread string }
	m.startInside("thread", "start", "flow", "-p", "Work.").ends(0).json(&s)
	return s.Thread
}

// shownStep is one line of `uwf thread steps`.
type shownStep struct {
	Step   int            `json:"step"`
	Role   string         `json:"role"`
	Output map[string]any `json:"output"`
	Body   string         `json:"body"`
	Work   struct{ Branch, Commit string }
}

// steps is the thread's chain.
func (m *machine) steps(id string) []shownStep {
	m.Helper()
	var list struct{ Steps []shownStep }
	m.startInside("thread", "steps", id).ends(0).json(&list)
	return list.Steps[1:] // after the start
}

// status is the thread's status as `uwf thread show` says it.
func (m *machine) status(id string) string {
	m.Helper()
	var s struct{ Status string }
	m.start(nil, "thread", "show", id).ends(0).json(&s)
	return s.Status
}

// sound checks the store with uwf and with git: that everything is there, that
// no claim is left, and that the commits of each thread form one line.
func (m *machine) sound() {
	m.Helper()
	m.startInside("fsck", "--history").ends(0)
	if out := m.bare("fsck", "--strict", "--no-dangling", "--no-progress"); out != "" {
		m.Errorf("git fsck: %s", out)
	}
	if left := m.refs("refs/uwf/claims"); len(left) > 0 {
		m.Errorf("claims are left: %v", left)
	}
	m.linear()
}

// linear reads the state branch without uwf: each step's commit must go on from
// the step before it.
func (m *machine) linear() {
	m.Helper()
	const format = "%(trailers:key=Uwf-Thread,valueonly,separator=) %(trailers:key=Uwf-Result,valueonly,separator=) " +
		"%(trailers:key=Uwf-Step,valueonly,separator=) %(trailers:key=Uwf-Prev,valueonly,separator=) %(trailers:key=Uwf-Head,valueonly,separator=)"
	type at struct {
		step int
		head string
	}
	last := map[string]at{}
	for line := range strings.Lines(m.bare("log", "--reverse", "--first-parent", "--format="+format, "uwf-state")) {
		f := strings.Fields(line)
		if len(f) != 5 || f[1] == "failed" || f[1] == "stopped" {
			continue // no step: a start, a failure, a person's word, an archive
		}
		n, err := strconv.Atoi(f[2])
		m.check(err)
		was := last[f[0]]
		if n != was.step+1 || was.step > 0 && f[3] != was.head {
			m.Errorf("thread %s: step %d on %s came after step %d, %s", f[0], n, f[3], was.step, was.head)
		}
		last[f[0]] = at{n, f[4]}
	}
	if len(last) == 0 {
		m.Error("no step is on the state branch")
	}
}

// gate is where an agent waits until the test lets it through.
type gate struct {
	*lab
	file string
}

func (l *lab) gate(name string) gate {
	l.Helper()
	g := gate{lab: l, file: l.path(name)}
	l.check(syscall.Mkfifo(g.file, 0o600))
	return g
}

// await returns once an agent of one of the jobs stands at the gate. The returned
// function lets it through. Jobs that all end before fail the test.
func (g gate) await(jobs ...*job) (open func()) {
	g.Helper()
	came, ended := make(chan *os.File, 1), make(chan struct{})
	go func() {
		defer close(came)
		if f, err := os.OpenFile(g.file, os.O_WRONLY, 0); err == nil { // waits for a reader
			came <- f
		}
	}()
	go func() {
		defer close(ended)
		for _, j := range jobs {
			<-j.done
		}
	}()
	select {
	case f := <-came:
		// Held until the test ends: a writer that the garbage collector closes would
		// let the next agent through.
		g.Cleanup(func() { _ = f.Close() })
		return func() {
			g.Helper()
			_, err := f.WriteString("go\n")
			g.check(errors.Join(err, f.Close()))
		}
	case <-ended:
		if f, err := os.OpenFile(g.file, os.O_RDWR, 0); err == nil {
			_ = f.Close() // only to let the other one go
		}
		g.Fatalf("no agent came to the gate: %v", jobs)
		return nil
	}
}

// empty reports that no process stands at the gate.
func (g gate) empty() bool {
	f, err := os.OpenFile(g.file, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err == nil {
		_ = f.Close()
	}
	return errors.Is(err, syscall.ENXIO)
}
