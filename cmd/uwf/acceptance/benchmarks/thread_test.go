package benchmarks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/cli"
	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/gitserver"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/gitservertest"
)

// The benchmarks run whole processes on threads of 10, 100, 1,000 and 5,000 steps, over
// HTTP and over file://, beside native git on the same repository. The processor
// time is the steadier figure on a busy machine.
//
//	go test ./cmd/uwf/acceptance/benchmarks -run '^$' -bench Thread -benchtime 10x

// longSteps are the lengths of the benchmarks' threads.
func longSteps() []int {
	if testing.Short() {
		return []int{10}
	}
	return []int{10, 100, 1000, 5000}
}

const envMeasure = "UWF_TEST_MEASURE" // FILE: add what this process took, as a line of JSON

const envProfile = "UWF_TEST_PROFILE" // FOLDER: put a CPU profile of this process there

// measured is what one process took.
type measured struct {
	Self     time.Duration // processor time of its own
	Children time.Duration // and of the processes that it started
	RSS      int64         // bytes
}

// measuredMain is uwf, and says what it took.
func measuredMain() {
	file, folder := os.Getenv(envMeasure), os.Getenv(envProfile)
	if folder != "" {
		f, err := os.Create(filepath.Join(folder, fmt.Sprintf("%d.pprof", os.Getpid())))
		if err == nil {
			err = pprof.StartCPUProfile(f)
		}
		if err != nil {
			panic(err)
		}
	}
	code := cli.Main(app.New)
	pprof.StopCPUProfile()
	if file != "" {
		if err := measure(file); err != nil {
			panic(err)
		}
	}
	os.Exit(code)
}

func measure(file string) error {
	var self, children syscall.Rusage
	if err := errors.Join(syscall.Getrusage(syscall.RUSAGE_SELF, &self), syscall.Getrusage(syscall.RUSAGE_CHILDREN, &children)); err != nil {
		return err
	}
	took := func(u syscall.Rusage) time.Duration { return time.Duration(u.Utime.Nano() + u.Stime.Nano()) }
	line, err := json.Marshal(measured{Self: took(self), Children: took(children), RSS: peakRSS()})
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// peakRSS reads the process's own peak: rusage would count the parent's memory,
// which a new process shares until it is its own program.
func peakRSS() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		var kb int64
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kb); n == 1 {
			return kb << 10
		}
	}
	return 0
}

// longRole is one of its roles.
const longRole = `  %s:
    description: Works as %[1]s.
    goal: To bring the work on.
    capabilities: [writing, reading]
    procedure: |
      Read what the others did. Do your part. Say what you did.
    output: A summary, and the whole story under it.
    frontmatter:
      type: object
      properties:
        $status: {enum: [done, again]}
        summary: {type: string}
        files: {type: array, items: {type: string}}
      required: [$status, summary]
`

var longRoles = []string{"developer", "reviewer", "tester"}

// longWorkflow never ends by itself: by a map of statuses, or by conditions that look
// at all steps.
func longWorkflow(conditions bool) string {
	var b strings.Builder
	b.WriteString("name: long\ndescription: A loop of three roles.\nroles:\n")
	for _, r := range longRoles {
		fmt.Fprintf(&b, longRole, r)
	}
	if conditions {
		b.WriteString("conditions:\n  often: $count(steps[role = 'developer']) > 100000\n  again: $last('reviewer').summary = 'again'\ngraph:\n  $START: [{role: developer}]\n")
		for i, r := range longRoles {
			fmt.Fprintf(&b, "  %s:\n    - {role: $END, condition: often}\n    - {role: developer, condition: again}\n    - {role: %s, prompt: \"Go on after {{summary}}\"}\n", r, longRoles[(i+1)%len(longRoles)])
		}
		return b.String()
	}
	b.WriteString("graph:\n  $START: {_: {role: developer, prompt: Begin.}}\n")
	for i, r := range longRoles {
		next := longRoles[(i+1)%len(longRoles)]
		fmt.Fprintf(&b, "  %s:\n    done: {role: %s, prompt: \"Go on after {{summary}}\"}\n    again: {role: $END, prompt: Over.}\n", r, next)
	}
	return b.String()
}

// longThread is a repository with one long thread in it.
type longThread struct {
	*testing.B
	dir, repo, url string // the repository that holds the state branch
	clone, home    string // where uwf is called
	agent          string // command of the mock agent, which says how long it took
	took           string // file that it says it in
	id             string
	refs           string // as they were, for update-ref
	*traffic
}

// traffic counts a server's requests, and the bytes that it sent and got.
type traffic struct{ requests, down, up atomic.Int64 }

func (t *traffic) countTraffic(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.requests.Add(1)
		r.Body = &countedBody{r.Body, &t.up}
		h.ServeHTTP(&countedWriter{w, &t.down}, r)
	})
}

type countedBody struct {
	io.ReadCloser
	n *atomic.Int64
}

func (c *countedBody) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n.Add(int64(n))
	return n, err
}

type countedWriter struct {
	http.ResponseWriter
	n *atomic.Int64
}

func (c *countedWriter) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return c.ResponseWriter.Write(p)
}

func newLongThread(b *testing.B, overHTTP, conditions bool, steps int) *longThread {
	b.Helper()
	if err := gitserver.Available(""); err != nil {
		b.Skip(err)
	}
	l := &longThread{B: b, dir: b.TempDir(), traffic: &traffic{}}
	l.home = filepath.Join(l.dir, "home")
	l.repo = filepath.Join(l.dir, "server", "r.git")
	l.clone = filepath.Join(l.dir, "clone")
	l.check(errors.Join(os.MkdirAll(filepath.Dir(l.repo), 0o700), os.MkdirAll(l.home, 0o700), os.MkdirAll(filepath.Join(l.dir, "tmp"), 0o700)))
	config := "limits: {maxSteps: 1000000, maxStepsPerRole: 1000000}\n"
	if overHTTP {
		srv, err := gitservertest.Serve(filepath.Dir(l.repo), gitserver.Options{Config: map[string]string{"core.fsync": "none"}, Middleware: l.countTraffic})
		l.check(err)
		b.Cleanup(func() { l.check(srv.Close()) })
		l.url, err = srv.Init("r.git")
		l.check(err)
		l.git(l.dir, "clone", "-q", l.url, l.clone)
		config += "state: {remote: origin}\n"
	} else {
		l.git(l.dir, "init", "-q", "-b", "main", l.clone)
		l.repo, l.url = filepath.Join(l.clone, ".git"), "file://"+l.clone
		l.git(l.clone, "config", "core.fsync", "none")
	}
	l.write("clone/.uwf/config.yaml", config)
	l.write("clone/.uwf/workflows/long.yaml", longWorkflow(conditions))
	l.git(l.clone, "checkout", "-q", "-B", "main")
	l.git(l.clone, "add", "-A")
	l.git(l.clone, "commit", "-q", "-m", "Begin")
	if overHTTP {
		l.git(l.clone, "push", "-q", "origin", "main")
	}
	l.writeAgent()
	l.grow(steps)
	return l
}

func (l *longThread) check(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

func (l *longThread) write(name, text string) {
	l.Helper()
	name = filepath.Join(l.dir, name)
	l.check(errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o700)))
}

// writeAgent makes the mock agent's command: it adds how long the agent took, in
// nanoseconds, to a file.
func (l *longThread) writeAgent() {
	l.took = filepath.Join(l.dir, "took")
	l.write("script.yaml", "steps:\n  - output: |\n      ---\n      $status: done\n      summary: one more step\n      ---\n      What was done.\n    usage: {turns: 1, inputTokens: 1000, outputTokens: 100}\n")
	l.write("agent.sh", fmt.Sprintf("#!/bin/sh\nat=$(date +%%s%%N)\nuwf agent mock %s/script.yaml \"$@\"\ncode=$?\necho $(($(date +%%s%%N)-at)) >>%s\nexit $code\n", l.dir, l.took))
	l.agent = filepath.Join(l.dir, "agent.sh")
}

// stepArgs is the command of one step. The agent is not confined: it reads its script and
// writes its times outside of the workspace, and the sandbox has a benchmark in its package.
func (l *longThread) stepArgs(more ...string) []string {
	return append([]string{"thread", "step", l.id, "--agent", l.agent, "--sandbox", "off"}, more...)
}

func (l *longThread) environ() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + l.home, "UWF_HOME=" + l.home, "TMPDIR=" + filepath.Join(l.dir, "tmp"), "LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@example.com", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@example.com",
	}
}

func (l *longThread) git(dir string, args ...string) string {
	l.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = dir, l.environ()
	out, err := cmd.CombinedOutput()
	if err != nil {
		l.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// uwf runs one command and returns what it printed and took.
func (l *longThread) uwf(args ...string) (string, measured, time.Duration) {
	l.Helper()
	file := filepath.Join(l.dir, "measure")
	l.check(os.RemoveAll(file))
	cmd := exec.Command("uwf-measured", args...)
	cmd.Dir = l.clone
	cmd.Env = append(l.environ(), envMeasure+"="+file, envProfile+"="+os.Getenv(envProfile))
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	at := time.Now()
	err := cmd.Run()
	wall := time.Since(at)
	if err != nil {
		l.Fatalf("uwf %s: %v\n%s", strings.Join(args, " "), err, errs.String())
	}
	b, err := os.ReadFile(file)
	l.check(err)
	var m measured
	l.check(json.Unmarshal(b, &m))
	return out.String(), m, wall
}

// grow starts a thread as anybody would, and puts steps on it by git fast-import:
// each with an output of 500 bytes, a body of 2 KB, a page, and details of 8 KB.
func (l *longThread) grow(steps int) {
	l.Helper()
	out, _, _ := l.uwf("thread", "start", "long", "-p", "Make it good.", "--format", "json")
	var started struct {
		Thread gitcas.ThreadID `json:"thread"`
	}
	l.check(json.Unmarshal([]byte(out), &started))
	l.id = string(started.Thread)
	remote, err := wire.Dial("file://"+l.repo, wire.DialOptions{})
	l.check(err)
	store := gitcas.Open(remote, gitcas.Options{})
	v, err := store.Load(l.Context(), started.Thread)
	l.check(err)
	cmd := exec.Command("git", "fast-import", "--quiet", "--force", "--done")
	cmd.Dir, cmd.Env = l.repo, l.environ()
	var errs bytes.Buffer
	cmd.Stderr = &errs
	in, err := cmd.StdinPipe()
	l.check(err)
	l.check(cmd.Start())
	g := &grower{w: in, v: v, id: started.Thread, rnd: rand.New(rand.NewPCG(1, uint64(steps)))}
	err = g.grow(l.B, steps)
	if werr := errors.Join(in.Close(), cmd.Wait()); werr != nil || err != nil {
		l.Fatal(err, werr, errs.String())
	}
	l.git(l.repo, "repack", "-adfq") // deltas as a server has them
	l.git(l.repo, "pack-refs", "--all")
	l.refs = l.git(l.repo, "for-each-ref", "--format=update %(refname) %(objectname)")
}

// reset takes back what steps did.
func (l *longThread) reset() {
	l.Helper()
	var b strings.Builder
	for ref := range strings.FieldsSeq(l.git(l.repo, "for-each-ref", "--format=%(refname)", "refs/uwf", "refs/heads/uwf")) {
		if !strings.Contains(l.refs, " "+ref+" ") {
			fmt.Fprintf(&b, "delete %s\n", ref)
		}
	}
	cmd := exec.Command("git", "update-ref", "--stdin")
	cmd.Dir, cmd.Env, cmd.Stdin = l.repo, l.environ(), strings.NewReader(l.refs+"\n"+b.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		l.Fatalf("%v: %s", err, out)
	}
}

// grower writes a thread's steps as a fast-import stream.
type grower struct {
	w       io.Writer
	v       *gitcas.View
	id      gitcas.ThreadID
	rnd     *rand.Rand
	marks   int
	files   strings.Builder
	seen    map[string]bool
	schemas node.Schemas
	before  node.Digest // of the record that was written last
	started node.Digest // of the StartNode
	counts  record.Counts
	moved   int    // so many steps are with the older ones
	folder  string // where the step goes that is written: with a slash at its end
	err     error
}

func (g *grower) printf(format string, args ...any) {
	if g.err == nil {
		_, g.err = fmt.Fprintf(g.w, format, args...)
	}
}

func (g *grower) file(path string, data []byte) {
	if g.seen[path] {
		return
	}
	g.seen[path] = true
	g.marks++
	g.printf("blob\nmark :%d\ndata %d\n%s\n", g.marks, len(data), data)
	fmt.Fprintf(&g.files, "M 100644 :%d %s\n", g.marks, path)
}

// putFile writes a file of a thread's step, or a shared one.
func (g *grower) putFile(path string, data []byte) {
	if rest, ok := strings.CutPrefix(path, layout.ThreadPath(g.id)+"/"); ok {
		path = layout.ThreadPath(g.id) + "/" + g.folder + rest
	}
	g.file(path, data)
}

// node writes a node and returns its hash.
func (g *grower) node(at gitcas.Place, n node.Node, h node.Hash, err error) node.Hash {
	data, eerr := node.EncodeFile(n)
	if g.err = errors.Join(g.err, err, eerr); g.err == nil {
		g.putFile(at.Path(h), data)
	}
	return h
}

// words are enough of them that text compresses about as prose does.
func (g *grower) words(size int) string {
	var b strings.Builder
	for b.Len() < size {
		for range 2 + g.rnd.IntN(9) {
			b.WriteByte("etaoinshrdlucmfwypvbgkjqxz"[min(g.rnd.IntN(26), g.rnd.IntN(26))])
		}
		b.WriteByte(" \n"[min(g.rnd.IntN(2), g.rnd.IntN(2), g.rnd.IntN(2), g.rnd.IntN(2))])
	}
	return b.String()[:size]
}

func (g *grower) grow(b *testing.B, steps int) error {
	g.seen = map[string]bool{}
	chain, err := g.v.ReadChain(b.Context(), g.id)
	if err != nil {
		return err
	}
	def, err := g.v.Get(b.Context(), chain.Start.Workflow)
	if err != nil {
		return err
	}
	g.before, g.started = chain.Head, chain.Head
	g.moved = max(steps-layout.KeptSteps-steps%layout.KeptSteps, 0)
	entry, _ := g.v.Entry(g.id)
	for h, s := range record.Schemas() {
		g.node(gitcas.Place{}, s, h, nil)
	}
	var prev *node.Hash
	for i := range steps {
		role := longRoles[i%len(longRoles)]
		roles, _ := def.Payload.(map[string]any)["roles"].(map[string]any)
		schema, _ := roles[role].(map[string]any)["frontmatter"].(string)
		h := g.step(i, role, node.Hash(schema), chain.StartHash, prev)
		prev = &h
	}
	entry.Head = *prev
	entry.Used = statefile.Used{Head: *prev, Steps: steps, Tokens: int64(steps) * 22_000, CostUSD: float64(steps) / 10, DurationMs: int64(steps) * 30_000}
	entry.Next = &gitcas.Next{Role: longRoles[steps%len(longRoles)], Since: clitest.When.UnixMilli()}
	file, err := statefile.NewThreads().With(map[gitcas.ThreadID]*gitcas.Entry{g.id: &entry})
	if err != nil {
		return err
	}
	g.file("threads.yaml", file.Encode())
	ref := "refs/heads/" + gitcas.DefaultBranch
	g.printf("commit %s\ncommitter uwf <uwf@localhost> 1700000000 +0000\ndata 2\nm\nfrom %s^0\n%s\n", ref, ref, g.files.String())
	g.printf("reset %s\nfrom %s\n\ndone\n", layout.StoreRef, ref)
	return g.err
}

func (g *grower) step(i int, role string, schema, start node.Hash, prev *node.Hash) node.Hash {
	if g.folder = ""; i < g.moved {
		g.folder = layout.OlderSteps(i-i%layout.KeptSteps+1) + "/"
	}
	at := clitest.When.Add(time.Duration(i) * time.Minute)
	output := map[string]any{"$status": "done", "summary": g.words(420), "files": []any{"src/main.go", "src/main_test.go"}}
	body := g.words(2 << 10)
	nodes := node.Map{}
	made := func(typ node.Hash, payload any) node.Hash {
		n, h, err := node.New(typ, payload, at)
		g.err, nodes[h] = errors.Join(g.err, err), n
		return h
	}
	bodyHash, outputHash := made(node.String, body), made(schema, output)
	prompt := made(node.String, g.words(8<<10))
	detail := made(record.MockDetailSchema, map[string]any{"sessionId": fmt.Sprintf("mock-%d", i), "role": role, "stepIndex": i})
	s := record.Step{
		Start: start, Prev: prev, Role: role, Output: outputHash, Body: &bodyHash, Detail: detail, AssembledPrompt: &prompt,
		Agent: "mock", EdgePrompt: "Go on after " + g.words(100), Cwd: ".", StartedAtMs: at.UnixMilli(), CompletedAtMs: at.UnixMilli() + 30_000,
		Usage: &record.Usage{Turns: 10, InputTokens: 20_000, OutputTokens: 2_000, DurationMs: 30_000, CostUSD: 0.1},
		Run:   &record.Run{ID: strconv.Itoa(1_000_000 + i), Attempt: 1},
	}
	if os.Getenv(envFormer) == "" { // a uwf of an earlier commit doesn't know them
		g.counts = g.counts.After(s, nil)
		s.Counts = &g.counts
	}
	c := node.Closure{Schemas: &g.schemas, Getter: node.First{nodes, g.v.Getter(context.Background())}}
	err := s.SetDigests(func(r record.Ref) (node.Digest, error) {
		switch {
		case r.Field == "start":
			return g.started, nil
		case r.To == record.ToRecord:
			return g.before, nil
		}
		return c.ComputeDigest(r.Hash)
	})
	n, h, nerr := s.Node(at)
	g.node(gitcas.Place{Thread: g.id}, n, h, errors.Join(err, nerr))
	if g.before, err = n.Sum(); err != nil {
		g.err = errors.Join(g.err, err)
	}
	own := gitcas.Place{Thread: g.id, Of: h}
	g.node(own, nodes[bodyHash], bodyHash, nil)
	g.node(own, nodes[outputHash], outputHash, nil)
	own.Detail = true
	g.node(own, nodes[prompt], prompt, nil)
	g.node(own, nodes[detail], detail, nil)
	g.putFile(layout.PagePath(g.id, i+1, role), []byte("# "+role+"\n\n"+body))
	return h
}

// agentTook is how long the agent of the last step took.
func (l *longThread) agentTook() time.Duration {
	l.Helper()
	b, err := os.ReadFile(l.took)
	l.check(errors.Join(err, os.Remove(l.took)))
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	l.check(err)
	return time.Duration(n)
}

// native is what git takes to get the state branch and list the thread's commits.
func (l *longThread) native() time.Duration {
	l.Helper()
	dir := filepath.Join(l.dir, "native")
	at := time.Now()
	l.git(l.dir, "clone", "-q", "--bare", "--depth", "1", "--branch", gitcas.DefaultBranch, l.url, dir)
	l.git(dir, "log", "--format=%s", "--", "threads/"+l.id)
	took := time.Since(at)
	l.check(os.RemoveAll(dir))
	return took
}

// BenchmarkThread is what people and jobs do with a long thread. wall-ms is the
// whole process without the agent's, cpu-ms is its own processor time.
func BenchmarkThread(b *testing.B) {
	for _, over := range []string{"http", "file"} {
		for _, steps := range longSteps() {
			b.Run(fmt.Sprintf("%s/steps=%d", over, steps), func(b *testing.B) {
				l := newLongThread(b, over == "http", false, steps)
				for _, args := range [][]string{
					{"thread", "list"}, {"thread", "show", l.id}, {"thread", "steps", l.id}, {"thread", "read", l.id},
					l.stepArgs(), {"thread", "fork", l.id},
				} {
					b.Run(args[1], func(b *testing.B) { l.in(b).bench(args) })
				}
			})
		}
	}
}

// BenchmarkConditions is a step of a thread whose edges are chosen by conditions on
// all its steps.
func BenchmarkConditions(b *testing.B) {
	for _, steps := range longSteps() {
		b.Run(fmt.Sprintf("steps=%d", steps), func(b *testing.B) {
			l := newLongThread(b, true, true, steps)
			l.bench(l.stepArgs())
		})
	}
}

// in is the same for a benchmark inside the one that made it.
func (l *longThread) in(b *testing.B) *longThread {
	inner := *l
	inner.B = b
	return &inner
}

func (l *longThread) bench(args []string) {
	var walls, cpus, agents, natives []time.Duration
	var rss, requests, down, up int64
	for l.Loop() {
		l.requests.Store(0)
		l.down.Store(0)
		l.up.Store(0)
		_, m, wall := l.uwf(args...)
		requests, down, up = l.requests.Load(), l.down.Load(), l.up.Load()
		var agent time.Duration
		switch args[1] {
		case "step":
			agent = l.agentTook()
			l.reset()
		case "fork":
			l.reset()
		}
		walls, cpus, agents = append(walls, wall-agent), append(cpus, m.Self), append(agents, agent)
		rss = max(rss, m.RSS)
		natives = append(natives, l.native())
	}
	l.ReportMetric(0, "ns/op")
	l.ReportMetric(inMs(walls), "wall-ms")
	l.ReportMetric(float64(slices.Min(walls).Microseconds())/1000, "best-ms") // as on a machine with nothing else to do
	l.ReportMetric(inMs(cpus), "cpu-ms")
	l.ReportMetric(inMs(natives), "git-ms")
	l.ReportMetric(float64(rss)/(1<<20), "MB-rss")
	l.ReportMetric(float64(requests), "requests")
	l.ReportMetric(float64(down)/1000, "KB-down")
	l.ReportMetric(float64(up)/1000, "KB-up")
	if args[1] == "step" {
		l.ReportMetric(inMs(agents), "agent-ms")
	}
}

// inMs is the median.
func inMs(ds []time.Duration) float64 {
	slices.Sort(ds)
	return float64(ds[len(ds)/2].Microseconds()) / 1000
}
