package forge

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
	"github.com/united-workforce/uwf/internal/forgetest"
	"github.com/united-workforce/uwf/internal/testmode"
	"golang.org/x/tools/txtar"
	"gopkg.in/yaml.v3"
)

// The files that a repository gets for uwf, by their paths there.
const (
	ciWorkflow = ".github/workflows/uwf.yml"
	ciConfig   = ".uwf/config.yaml"
	ciFlow     = ".uwf/workflows/solve-issue.yaml"
	ciScript   = ".uwf/mock.yaml"
)

// ci is a forge's scheduler of jobs: each event runs `uwf action` in a process of its
// own, with the environment, the empty workspace and the token of a real job, and what
// the job dispatches is run next.
type ci struct {
	*testing.T
	forge *forgetest.Server
	gitea bool
	dir   string

	// with are inputs beside those of the workflow file; env more variables.
	with  map[string]string
	env   []string
	perms forgetest.Permissions // of the jobs' tokens; nil: as the workflow file says

	remotes *clitest.Remotes // of jobs in this process

	mu     sync.Mutex
	runs   int64
	jobs   []*ciJob // in the order of their starts
	behind time.Duration
}

// ciJob is a job that has run.
type ciJob struct {
	c       *ci
	event   forgetest.Event
	name    string // in the workflow file
	brings  string // a folder whose files are in the workspace before
	needs   string // what became of the jobs before it, as toJSON(needs) has it; empty: nothing
	run     int64
	attempt int
	code    int // -1: a signal ended it
	killed  bool
	log     string
	outputs map[string]string
	summary string
	dir     string
}

func (j *ciJob) String() string {
	return fmt.Sprintf("run %d.%d (%s by %s): exit code %d, outputs %v\n%s", j.run, j.attempt, j.event.Name, j.event.Actor, j.code, j.outputs, j.log)
}

// ciOptions are what the tests of whole jobs differ in.
type ciOptions struct {
	gitea  bool
	script string // of the mock agent; empty: a thread without questions
	config string // instead of the one with the mock agent
	files  map[string]string
	// bare: the repository has none of uwf's files but those in files.
	bare  bool
	forge forgetest.Options
}

// newCI makes a private repository whose test fails, with uwf's three files in it.
func newCI(t *testing.T, o ciOptions) *ci {
	t.Helper()
	f := o.forge
	f.Gitea, f.Private = o.gitea, true
	c := &ci{T: t, gitea: o.gitea, dir: t.TempDir(), with: map[string]string{"sandbox": "off"}}
	// An agent may be another user, who has to get to its folder.
	c.check(os.Chmod(filepath.Dir(c.dir), 0o755)) //nolint:gosec // as a runner's
	c.check(os.Chmod(c.dir, 0o755))               //nolint:gosec // as a runner's
	c.forge = forgetest.Start(t, f)
	c.remotes = &clitest.Remotes{Served: map[string]string{c.forge.CloneURL(): c.forge.Dir()}}
	t.Cleanup(c.unlock)
	t.Cleanup(c.tellOnFailure)
	files := map[string]string{}
	if !o.bare {
		files = map[string]string{
			ciConfig: or(o.config, mockConfig), ciScript: or(o.script, plainScript),
			ciFlow: c.example("solve-issue.yaml"), ciWorkflow: c.example("github/uwf.yml"),
		}
	}
	for _, f := range txtar.Parse([]byte(c.example("demo/repo.txtar"))).Files {
		files[f.Name] = string(f.Data)
	}
	maps.Copy(files, o.files)
	c.forge.MustCommit(t, c.forge.Branch(), "A small blog", files)
	c.forge.SetPermission("alice", "write")
	return c
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func (c *ci) example(name string) string {
	c.Helper()
	return shippedFile(c.T, name)
}

func (c *ci) check(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// unlock lets the folders of agents that were killed be removed.
func (c *ci) unlock() {
	_ = filepath.WalkDir(c.dir, func(path string, d fs.DirEntry, err error) error { // removing says what failed
		if err == nil && d.IsDir() {
			return os.Chmod(path, 0o700) //nolint:gosec // a folder
		}
		return nil
	})
}

// tellOnFailure shows what the jobs said, once the test has failed.
func (c *ci) tellOnFailure() {
	if !c.Failed() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, j := range c.jobs {
		c.Log(j)
	}
	if log, err := c.forge.Git("log", "--format=%h %s", "uwf-state"); err == nil {
		c.Logf("the state branch:\n%s", log)
	}
	for _, call := range c.forge.Calls() {
		c.Logf("%s %s %s: %d", call.Method, call.Path, call.Query, call.Status)
	}
}

// mockConfig makes the mock agent play the script that the repository has.
const mockConfig = `state: {remote: origin}
agents:
  player: {command: uwf, args: [agent, mock, ` + ciScript + `]}
defaultAgent: player
` + quickCheck

// quickCheck has solve-issue's check compile nothing: in a HOME of its own that takes half a
// minute of processor time, and TestCopiedFiles does it once.
const quickCheck = "checks: {test: test -s slug/slug.go}\n"

// fixed is the file that the developer writes.
const fixed = `// Package slug turns titles into parts of URLs.
package slug

import "strings"

// MaxLen is the longest slug, in bytes.
const MaxLen = 40

// Make returns the slug of a title: lower-case letters and digits, the words
// joined by single dashes, at most MaxLen bytes.
func Make(title string) string {
	words := strings.FieldsFunc(strings.ToLower(title), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	slug := strings.Join(words, "-")
	return slug[:min(len(slug), MaxLen)]
}
`

// script plays the three roles of solve-issue; asks are how often the developer asks
// before he works.
func script(asks int) string {
	var b strings.Builder
	b.WriteString("steps:\n")
	say := func(role string, visit int, write, output string) {
		fmt.Fprintf(&b, "  - {role: %s, visit: %d, %soutput: %q, usage: {turns: 1, inputTokens: 900, outputTokens: 80, costUsd: 0.01}}\n", role, visit, write, output)
	}
	say("planner", 1, "", "---\n$status: ready\nplan: Write one dash between two words.\nfiles: [slug/slug.go]\n---\nDashes are doubled.\n")
	for n := 1; n <= asks; n++ {
		say("developer", n, "", "---\n$status: blocked\nquestion: Does MaxLen count bytes?\n---\nI must know.\n")
	}
	write := fmt.Sprintf("write: {slug/slug.go: %q}, ", fixed)
	say("developer", asks+1, write, "---\n$status: done\nsummary: Words are joined by single dashes.\ntests: go test ./... passes\n---\nDone.\n")
	say("reviewer", 1, "", "---\n$status: approved\nsummary: Slugs have single dashes.\n---\nI ran the tests.\n")
	return b.String()
}

var (
	plainScript  = script(0)
	askingScript = script(1)
)

// issue opens an issue with the text of the demo's.
func (c *ci) issue() int {
	c.Helper()
	return c.forge.OpenIssue("alice", "Slugs with punctuation look broken", c.example("demo/issue.md"))
}

// start runs the job of an event, as a new run.
func (c *ci) start(e forgetest.Event, env ...string) *ciJob {
	c.Helper()
	return c.exec(&ciJob{c: c, event: e, name: "step", run: c.runOf(e), attempt: 1}, env...)
}

// runOf is the id of an event's run.
func (c *ci) runOf(e forgetest.Event) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs++
	if e.Run != 0 {
		return e.Run
	}
	return 7000 + c.runs
}

// again re-runs a job.
func (c *ci) again(j *ciJob, env ...string) *ciJob {
	c.Helper()
	return c.exec(&ciJob{c: c, event: j.event, name: j.name, brings: j.brings, run: j.run, attempt: j.attempt + 1}, env...)
}

// settle runs what was dispatched, one job after the other, until nothing is left, and
// returns the jobs.
func (c *ci) settle(env ...string) []*ciJob {
	c.Helper()
	var all []*ciJob
	for {
		sent := c.forge.TakeDispatches()
		if len(sent) == 0 {
			return all
		}
		for _, d := range sent {
			all = append(all, c.start(c.forge.Dispatched(d), env...))
		}
		if len(all) > maxJobs {
			c.Fatalf("jobs start each other without end: %d", len(all))
		}
	}
}

// crowd runs events and what comes of them, several jobs at a time, until nothing is
// left.
func (c *ci) crowd(width int, events ...forgetest.Event) {
	c.Helper()
	var wg sync.WaitGroup
	slots := make(chan struct{}, width)
	ended := make(chan struct{}, 1)
	running := 0
	for {
		for _, d := range c.forge.TakeDispatches() {
			events = append(events, c.forge.Dispatched(d))
		}
		if len(events) == 0 && running == 0 {
			break
		}
		if len(events) == 0 || running == width {
			<-ended
			running--
			continue
		}
		e := events[0]
		events, running = events[1:], running+1
		slots <- struct{}{}
		wg.Go(func() {
			c.start(e)
			<-slots
			ended <- struct{}{}
		})
	}
	wg.Wait()
}

// exec runs a job's process to its end.
func (c *ci) exec(j *ciJob, env ...string) *ciJob {
	c.Helper()
	c.mu.Lock()
	n := len(c.jobs)
	c.jobs = append(c.jobs, j)
	c.mu.Unlock()
	j.dir = filepath.Join(c.dir, fmt.Sprintf("job-%03d", n))
	token := c.forge.JobToken(c.permissions(j.name))
	vars := c.environ(j, token)
	for _, e := range append(slices.Clone(c.env), env...) {
		name, value, _ := strings.Cut(e, "=")
		vars[name] = value
	}
	if vars[clitest.EnvKill] != "" || testmode.HasProcesses() {
		c.runProcess(j, vars)
	} else {
		c.runInside(j, vars)
	}
	c.forge.Revoke(token)
	c.mu.Lock()
	defer c.mu.Unlock()
	j.outputs = readOutputs(c.read(vars["GITHUB_OUTPUT"]))
	j.summary = c.read(vars["GITHUB_STEP_SUMMARY"])
	c.clean(j, token)
	return j
}

// runProcess runs a job in a process of its own, as a forge's runner does.
func (c *ci) runProcess(j *ciJob, vars map[string]string) {
	ctx, cancel := context.WithTimeout(c.Context(), jobDeadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, "uwf", "action")
	cmd.Dir, cmd.Env = filepath.Join(j.dir, "work"), assignments(vars)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	_ = cmd.Run() // the exit code says it
	j.log, j.code = log.String(), cmd.ProcessState.ExitCode()
	ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	j.killed = ok && ws.Signaled() && ws.Signal() == syscall.SIGKILL
}

// runInside runs a job in this process.
func (c *ci) runInside(j *ciJob, vars map[string]string) {
	ctx, cancel := context.WithTimeout(c.Context(), jobDeadline)
	defer cancel()
	console := clitest.Console{Remotes: c.remotes, Dir: filepath.Join(j.dir, "work"), Environ: assignments(vars)}
	res, err := console.RunJob(ctx, "action")
	if err != nil {
		c.Error(err)
	}
	j.log, j.code = res.Stdout, res.Code
}

func assignments(vars map[string]string) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		all = append(all, name+"="+vars[name])
	}
	return all
}

func (c *ci) read(file string) string {
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.Error(err)
	}
	return string(text)
}

// clean checks what must be true of every job: that no secret is in what can be
// read, and that it changed none of the files that following steps believe.
func (c *ci) clean(j *ciJob, token string) {
	for what, text := range map[string]string{"log": maskless(j.log), "summary": j.summary, "outputs": fmt.Sprint(j.outputs)} {
		for _, secret := range []string{token, aSecret, base64.StdEncoding.EncodeToString([]byte("x-access-token:" + token))} {
			if strings.Contains(text, secret) {
				c.Errorf("a secret is in the %s of %s", what, j)
			}
		}
	}
	for _, name := range []string{"env", "path", "state"} {
		if text := c.read(filepath.Join(j.dir, "commands", name)); text != "" {
			c.Errorf("the job wrote to the file of %s: %s", name, text)
		}
	}
}

var maskLine = regexp.MustCompile(`(?m)^::add-mask::.*$`)

// maskless is a log as people see it: the forge's runner takes the masks out.
func maskless(log string) string { return maskLine.ReplaceAllString(log, "") }

// environ is the environment of a job's process, as GitHub's runner and Gitea's make
// it for a container action.
func (c *ci) environ(j *ciJob, token string) map[string]string {
	c.Helper()
	for _, dir := range []string{"work", "home", "temp", "commands"} {
		c.check(os.MkdirAll(filepath.Join(j.dir, dir), 0o755)) //nolint:gosec // as a runner's
	}
	if j.brings != "" {
		c.check(os.CopyFS(filepath.Join(j.dir, "work"), os.DirFS(j.brings)))
	}
	payload := filepath.Join(j.dir, "event.json")
	c.check(os.WriteFile(payload, j.event.Payload, 0o600))
	env := map[string]string{
		"PATH": os.Getenv("PATH"), "HOME": filepath.Join(j.dir, "home"), "TMPDIR": filepath.Join(j.dir, "temp"), "LC_ALL": "C", "CI": "true",
		"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.DevNull,
		"GITHUB_ACTIONS": "true", "GITHUB_SERVER_URL": c.forge.URL, "GITHUB_API_URL": c.forge.APIURL,
		"GITHUB_REPOSITORY": c.forge.Repository(), "GITHUB_REPOSITORY_OWNER": "octo",
		"GITHUB_EVENT_NAME": j.event.Name, "GITHUB_EVENT_PATH": payload,
		"GITHUB_ACTOR": j.event.Actor, "GITHUB_TRIGGERING_ACTOR": j.event.Actor,
		"GITHUB_RUN_ID": strconv.FormatInt(j.run, 10), "GITHUB_RUN_NUMBER": "1", "GITHUB_RUN_ATTEMPT": strconv.Itoa(j.attempt),
		"GITHUB_JOB": j.name, "GITHUB_ACTION": "__united-workforce_uwf", "GITHUB_WORKFLOW": c.workflowName(),
		"GITHUB_WORKFLOW_REF": c.forge.Repository() + "/" + ciWorkflow + "@refs/heads/" + c.forge.Branch(),
		"GITHUB_REF":          "refs/heads/" + c.forge.Branch(), "GITHUB_REF_NAME": c.forge.Branch(),
		"GITHUB_WORKSPACE": filepath.Join(j.dir, "work"), "RUNNER_TEMP": filepath.Join(j.dir, "temp"),
		"RUNNER_OS": "Linux", "RUNNER_ARCH": "X64", "ACTIONS_RUNTIME_TOKEN": "runtime-token",
		clitest.EnvHost: fmt.Sprintf("runner-%d-%d", j.run, j.attempt),
	}
	if c.gitea { // its runner names no file
		env["GITEA_ACTIONS"] = "true"
		delete(env, "GITHUB_WORKFLOW_REF")
	}
	if c.behind > 0 {
		env[clitest.EnvAhead] = c.behind.String()
	}
	for name, file := range map[string]string{
		"GITHUB_OUTPUT": "output", "GITHUB_STEP_SUMMARY": "summary", "GITHUB_ENV": "env", "GITHUB_PATH": "path", "GITHUB_STATE": "state",
	} {
		env[name] = filepath.Join(j.dir, "commands", file)
		c.check(os.WriteFile(env[name], nil, 0o600))
	}
	for name, value := range c.inputs(j.name, token) {
		env["INPUT_"+strings.ToUpper(name)] = strings.ReplaceAll(value, "${{ toJSON(needs) }}", or(j.needs, "{}"))
	}
	return env
}

// workflowName is what the workflow file calls itself, which is what runners know of it.
func (c *ci) workflowName() string {
	c.Helper()
	text, err := c.forge.File(c.forge.Branch(), ciWorkflow)
	c.check(err)
	var w struct{ Name string }
	c.check(yaml.Unmarshal([]byte(text), &w))
	return w.Name
}

// inputs are the action's inputs: the defaults of action.yml, what the workflow file of
// the default branch gives, and what the test does.
func (c *ci) inputs(job, token string) map[string]string {
	c.Helper()
	all := map[string]string{}
	for name, value := range actionDefaults(c.T) {
		all[name] = strings.ReplaceAll(value, "${{ github.token }}", token)
	}
	text, err := c.forge.File(c.forge.Branch(), ciWorkflow)
	c.check(err)
	for name, value := range stepInputs(c.T, text, job) {
		all[name] = value
	}
	maps.Copy(all, c.with)
	return all
}

// provide makes a model the one that jobs reach, by its address
// alone: the key is the repository's secret.
func (c *ci) provide(m *chatModel) {
	c.with["base-url"] = m.url
}

// permissions are those that the workflow file gives the job's token.
func (c *ci) permissions(job string) forgetest.Permissions {
	c.Helper()
	if c.perms != nil {
		return c.perms
	}
	text, err := c.forge.File(c.forge.Branch(), ciWorkflow)
	c.check(err)
	var w struct {
		Jobs map[string]struct{ Permissions map[string]string }
	}
	c.check(yaml.Unmarshal([]byte(text), &w))
	all := forgetest.Permissions{}
	for name, level := range w.Jobs[job].Permissions {
		all[strings.ReplaceAll(name, "-", "_")] = level
	}
	return all
}

// actionDefaults reads the defaults of action.yml.
func actionDefaults(t *testing.T) map[string]string {
	t.Helper()
	raw, err := os.ReadFile("../../../../action.yml")
	if err != nil {
		t.Fatal(err)
	}
	var a struct {
		Inputs map[string]struct{ Default string }
	}
	if err := yaml.Unmarshal(raw, &a); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for name, in := range a.Inputs {
		all[name] = in.Default
	}
	return all
}

// aSecret is what every secret of the repository is.
const aSecret = "sk-test-0123456789abcdef"

// stepInputs reads what a workflow file gives to the step that uses uwf.
func stepInputs(t *testing.T, text, job string) map[string]string {
	t.Helper()
	var w struct {
		Jobs map[string]struct {
			Steps []struct {
				Uses string
				With map[string]string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(text), &w); err != nil {
		t.Fatal(err)
	}
	for _, s := range w.Jobs[job].Steps {
		if strings.HasPrefix(s.Uses, "united-workforce/uwf@") || strings.HasPrefix(s.Uses, "united-workforce/uwf/.github/actions/host@") {
			for name, value := range s.With {
				if strings.Contains(value, "${{ secrets.") {
					s.With[name] = aSecret
				}
			}
			return s.With
		}
	}
	t.Fatalf("no step of job %s uses uwf", job)
	return nil
}

// readOutputs reads the file behind GITHUB_OUTPUT.
func readOutputs(text string) map[string]string {
	all := map[string]string{}
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		if name, end, ok := strings.Cut(lines[i], "<<"); ok {
			var value []string
			for i++; i < len(lines) && lines[i] != end; i++ {
				value = append(value, lines[i])
			}
			all[name] = strings.Join(value, "\n")
		} else if name, value, ok := strings.Cut(lines[i], "="); ok {
			all[name] = value
		}
	}
	return all
}

// later lets time pass, for the forge and for the jobs to come.
func (c *ci) later(d time.Duration) {
	c.forge.Advance(d)
	c.mu.Lock()
	c.behind += d
	c.mu.Unlock()
}

// green and red check how jobs ended.
func (c *ci) green(jobs ...*ciJob) {
	c.Helper()
	for _, j := range jobs {
		if j.code != 0 {
			c.Errorf("a job should be green: %s", j)
		}
	}
}

func (c *ci) red(jobs ...*ciJob) {
	c.Helper()
	for _, j := range jobs {
		if j.code <= 0 {
			c.Errorf("a job should be red: %s", j)
		}
	}
}

// git runs git in the served repository.
func (c *ci) git(args ...string) string {
	c.Helper()
	out, err := c.forge.Git(args...)
	c.check(err)
	return out
}

// sticky is the one comment of uwf on an issue.
func (c *ci) sticky(n int) forgetest.Comment {
	c.Helper()
	var found []forgetest.Comment
	for _, m := range c.forge.Comments(n) {
		if strings.HasPrefix(m.Body, "<!-- uwf:thread=") {
			found = append(found, m)
		}
	}
	if len(found) != 1 {
		c.Fatalf("#%d has %d comments of a thread, want one: %+v", n, len(found), found)
	}
	return found[0]
}

// pull is the one pull request for an issue.
func (c *ci) pull(issue int) forgetest.Issue {
	c.Helper()
	var found []forgetest.Issue
	for _, p := range c.forge.Pulls() {
		if regexp.MustCompile(fmt.Sprintf(`(?m)^Fixes #%d\b`, issue)).MatchString(p.Body) {
			found = append(found, p)
		}
	}
	if len(found) != 1 {
		c.Fatalf("%d pull requests fix #%d, want one: %+v", len(found), issue, c.forge.Pulls())
	}
	return found[0]
}

// checkout clones a branch, and returns the folder.
func (c *ci) checkout(branch string) string {
	c.Helper()
	dir := filepath.Join(c.TempDir(), "checkout")
	cmd := exec.CommandContext(c.Context(), "git", "clone", "-q", "--branch", branch, c.forge.Dir(), dir)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull}
	if out, err := cmd.CombinedOutput(); err != nil {
		c.Fatalf("git clone: %v\n%s", err, out)
	}
	return dir
}

// tested is what go test said, by git's ids of the code: many tests end with the same.
var tested sync.Map

type verdict struct {
	out string
	err error
}

// goTest runs go test in a checkout of a branch, unless the same code was tested before.
func (c *ci) goTest(branch string) (string, error) {
	c.Helper()
	code := c.git("rev-parse", branch+":slug", branch+":go.mod")
	if v, ok := tested.Load(code); ok {
		return v.(verdict).out, v.(verdict).err //nolint:forcetypeassert // nothing else is kept there
	}
	cmd := exec.CommandContext(c.Context(), "go", "test", "./...")
	cmd.Dir = c.checkout(branch)
	cmd.Env = append(os.Environ(), "GOFLAGS=-trimpath", "GOPROXY=off", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	tested.Store(code, verdict{string(out), err})
	return string(out), err
}

// sound checks the state branch, as a reader of git log sees it: no claim is left,
// nothing is damaged, and each thread's commits form one line. It returns how many
// steps there are of each thread.
func (c *ci) sound() map[string]int {
	c.Helper()
	if left := c.git("for-each-ref", "--format=%(refname)", "refs/uwf/claims"); left != "" {
		c.Errorf("claims are left: %s", left)
	}
	if out := c.git("fsck", "--strict", "--no-dangling", "--no-progress"); out != "" {
		c.Errorf("git fsck: %s", out)
	}
	const format = "%(trailers:key=Uwf-Thread,valueonly,separator=)|%(trailers:key=Uwf-Result,valueonly,separator=)|" +
		"%(trailers:key=Uwf-Step,valueonly,separator=)|%(trailers:key=Uwf-Prev,valueonly,separator=)|%(trailers:key=Uwf-Head,valueonly,separator=)"
	steps, heads := map[string]int{}, map[string]string{}
	for line := range strings.Lines(c.git("log", "--reverse", "--first-parent", "--format="+format, "uwf-state")) {
		f := strings.Split(strings.TrimSpace(line), "|")
		if len(f) != 5 || slices.Contains(f, "") || f[1] == "failed" {
			continue // no step: a start, a failure, a person's word, an archive
		}
		n, err := strconv.Atoi(f[2])
		c.check(err)
		if n != steps[f[0]]+1 || n > 1 && f[3] != heads[f[0]] {
			c.Errorf("thread %s: step %d on %s came after step %d, %s", f[0], n, f[3], steps[f[0]], heads[f[0]])
		}
		steps[f[0]], heads[f[0]] = n, f[4]
	}
	return steps
}

// active are the threads that are on the state branch's threads.yaml.
func (c *ci) active() map[string]any {
	c.Helper()
	text, err := c.forge.File("uwf-state", "threads.yaml")
	if err != nil {
		return nil
	}
	var all map[string]any
	c.check(yaml.Unmarshal([]byte(text), &all))
	return all
}

// ended are the lines of the state branch's history.
func (c *ci) ended() []map[string]any {
	c.Helper()
	var all []map[string]any
	for file := range strings.Lines(c.git("ls-tree", "-r", "--name-only", "uwf-state", "history/")) {
		if !strings.HasSuffix(strings.TrimSpace(file), ".jsonl") {
			continue
		}
		for line := range strings.Lines(c.git("show", "uwf-state:"+strings.TrimSpace(file))) {
			var one map[string]any
			c.check(json.Unmarshal([]byte(line), &one))
			all = append(all, one)
		}
	}
	return all
}

func itoa(n int) string { return strconv.Itoa(n) }
