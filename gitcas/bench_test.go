package gitcas

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/gitserver"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/gitservertest"
	"github.com/united-workforce/uwf/internal/testmem"
	"github.com/united-workforce/uwf/internal/testmode"
)

// The benchmarks compare one job's whole use of the store, as one fresh process
// (load, claim, re-check, commit with release), with what native git needs for the
// same commit (init, a blobless fetch of depth 1, fast-import, one atomic push),
// on the same server. They build their repositories with git fast-import.
//
//	go test -run '^$' -bench . ./gitcas

// benchChild is the environment variable that makes the test binary play the job.
const benchChild = "GITCAS_BENCH_CHILD"

func TestMain(m *testing.M) {
	if job := os.Getenv(benchChild); job != "" {
		if err := benchJob(job); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(testmem.Spend(m).Run())
}

// The stepped thread, as the table in the README says.
const (
	benchSteps    = 50
	benchTurns    = 40
	benchTurnSize = 8 << 10
)

// job is what the child is told.
type job struct {
	URL    string
	Thread ThreadID
	End    bool
	Seed   uint64
}

// done is what the child says.
type done struct {
	RSS int64 // the most memory that was resident, in bytes; 0 where unknown
}

func benchJob(text string) error {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return err
	}
	ctx := context.Background()
	remote, err := wire.Dial(j.URL, wire.DialOptions{})
	if err != nil {
		return err
	}
	s := Open(remote, Options{})
	v, err := s.Load(ctx, j.Thread)
	if err != nil {
		return err
	}
	chain, err := v.ReadChain(ctx, j.Thread)
	if err != nil {
		return err
	}
	for _, st := range chain.Steps { // as the prompt's history needs them
		if _, err := v.In(ctx, Place{Thread: j.Thread, Of: st.Hash}).Get(st.Output); err != nil {
			return err
		}
	}
	entry, _ := v.Entry(j.Thread)
	claim := Claim{Run: "bench", Attempt: 1, Host: "h", PID: 1, Head: entry.Head, Since: 1, Renewed: 1}
	u, objs := view.ClaimUpdate(j.Thread, nil, &claim, v.Time())
	if v, err = s.Push(ctx, v, &Change{Refs: []wire.RefUpdate{u}, Objects: objs}); err != nil {
		return err
	}
	if v, err = s.Reload(ctx, v, j.Thread); err != nil {
		return err
	}
	c, err := benchChange(v, j, chain)
	if err != nil {
		return err
	}
	if _, err = s.Push(ctx, v, c); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(done{RSS: peakRSS()})
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

// benchChange is the step's commit with the work branch and the claim's release.
func benchChange(v *View, j job, chain Chain) (*Change, error) {
	rnd := rand.New(rand.NewPCG(j.Seed, 1))
	nodes, head, page, err := newDictionary().step(rnd, j.Thread, chain.Start.Workflow, chain.StartHash, lastHash(chain), chain.Head, len(chain.Steps), benchTurns)
	if err != nil {
		return nil, err
	}
	e, _ := v.Entry(j.Thread)
	e.Head = head
	held, _ := v.FindClaim(j.Thread)
	release, _ := view.ClaimUpdate(j.Thread, &held, nil, v.Time())
	branch := layout.Heads + layout.WorkBranch(j.Thread)
	tip, _ := v.Ref(branch)
	work, objs := benchWork(tip, j.Seed)
	e.Work = Work{Branch: layout.WorkBranch(j.Thread), Commit: work.String()}
	c := &Change{
		Subject: "developer → done", Body: page, Nodes: nodes,
		Readable: map[string][]byte{layout.PagePath(j.Thread, len(chain.Steps)+1, "developer"): []byte(page)},
		Threads:  map[ThreadID]*Entry{j.Thread: &e},
		Refs:     []wire.RefUpdate{release, {Name: branch, Old: tip, New: work}}, Objects: objs,
	}
	if j.End {
		e.Status, e.Next = StatusEnded, nil
		c.Archive = []Ended{{Thread: j.Thread, Workflow: e.Workflow, Head: head, Reason: "ended", CompletedAt: benchDay.UnixMilli()}}
	}
	return c, nil
}

// ownBytes is the size of a step's own files as they go into a pack.
func (x *bench) ownBytes(seed uint64) int64 {
	nodes, _, page, err := newDictionary().step(rand.New(rand.NewPCG(seed, 1)), benchThreadID(0), node.String, node.String, nil, unsaid, benchSteps, benchTurns)
	if err != nil {
		x.b.Fatal(err)
	}
	own := deflated([]byte(page))
	for _, n := range nodes {
		data, err := node.EncodeFile(n.Node)
		if err != nil {
			x.b.Fatal(err)
		}
		own += deflated(data)
	}
	return int64(own)
}

// benchDay is when the benchmarks' threads end.
var benchDay = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func deflated(b []byte) int {
	var out bytes.Buffer
	z := zlib.NewWriter(&out)
	_, _ = z.Write(b)
	_ = z.Close()
	return out.Len()
}

func lastHash(c Chain) *node.Hash {
	if n := len(c.Steps); n > 0 {
		return &c.Steps[n-1].Hash
	}
	return nil
}

// benchWork is a commit on the work branch with one small file.
func benchWork(parent wire.ID, seed uint64) (wire.ID, []wire.PackObject) {
	blob := wire.NewObject(plumbing.BlobObject, fmt.Appendf(nil, "work %d\n", seed))
	tree := oneFile("f", blob.ID)
	var parents []wire.ID
	if !parent.IsZero() {
		parents = append(parents, parent)
	}
	sig := gitobj.Signature{Name: "a", Email: "b", When: time.Unix(1_700_000_000, 0)}
	data, _ := gitobj.EncodeCommit(gitobj.Commit{Tree: tree.Object.ID, Parents: parents, Author: sig, Committer: sig, Message: "work\n"})
	commit := wire.NewObject(plumbing.CommitObject, data)
	return commit.ID, []wire.PackObject{{Object: blob}, {Object: tree.Object}, {Object: commit}}
}

// unsaid is a digest of nothing.
var unsaid = node.Digest(strings.Repeat("0", 64))

// dictionary are made-up words; text of them compresses about as prose does.
type dictionary []string

func newDictionary() dictionary {
	rnd := rand.New(rand.NewPCG(1, 2))
	d := make(dictionary, 4096)
	for i := range d {
		b := make([]byte, 2+rnd.IntN(9))
		for j := range b {
			b[j] = "etaoinshrdlucmfwypvbgkjqxz"[min(rnd.IntN(26), rnd.IntN(26))]
		}
		d[i] = string(b)
	}
	return d
}

func (d dictionary) text(rnd *rand.Rand, size int) string {
	var b strings.Builder
	b.Grow(size + 12)
	for b.Len() < size {
		b.WriteString(d[rnd.IntN(len(d))])
		b.WriteByte(' ')
	}
	return b.String()[:size]
}

// step makes a step: output, StepNode, and turns in its detail.
func (d dictionary) step(rnd *rand.Rand, id ThreadID, workflow, start node.Hash, prev *node.Hash, before node.Digest, n, turns int) ([]PlacedNode, node.Hash, string, error) {
	at := time.UnixMilli(1_700_000_000_000 + int64(n)*60_000)
	var nodes []PlacedNode
	add := func(p Place, typ node.Hash, payload any) (node.Hash, error) {
		n, h, err := node.New(typ, payload, at)
		nodes = append(nodes, PlacedNode{Hash: h, Node: n, Place: p})
		return h, err
	}
	here, below := Place{Thread: id, Of: view.NextPlace(false).Of}, Place{Thread: id, Of: view.NextPlace(false).Of, Detail: true}
	text := d.text(rnd, 30)
	out, err := add(here, node.String, text)
	if err != nil {
		return nil, "", "", err
	}
	detail, err := add(below, node.String, d.text(rnd, 80))
	if err != nil {
		return nil, "", "", err
	}
	for range turns {
		if _, err := add(below, node.String, d.text(rnd, benchTurnSize)); err != nil {
			return nil, "", "", err
		}
	}
	step := record.Step{
		Start: start, Prev: prev, Role: "developer", Output: out, Detail: detail, Agent: "builtin", EdgePrompt: "Do the next part.", Cwd: ".",
		StartedAtMs: at.UnixMilli(), CompletedAtMs: at.UnixMilli() + 30_000,
		Usage: &record.Usage{Turns: 40, InputTokens: 100_000, OutputTokens: 5_000, DurationMs: 30_000}, Run: &record.Run{ID: "1234567890", Attempt: 1},
	}
	own := node.Closure{Schemas: &node.Schemas{}, Getter: node.Map{out: nodes[0].Node, detail: nodes[1].Node}}
	if err := step.SetDigests(func(r record.Ref) (node.Digest, error) {
		if r.To == record.ToRecord {
			return before, nil
		}
		return own.ComputeDigest(r.Hash)
	}); err != nil {
		return nil, "", "", err
	}
	sn, head, err := step.Node(at)
	if err != nil {
		return nil, "", "", err
	}
	for i := range nodes {
		nodes[i].Place.Of = head
	}
	nodes = append(nodes, PlacedNode{Hash: head, Node: sn, Place: Place{Thread: id}})
	return nodes, head, "# developer → done\n\n" + text + "\n", nil
}

// importer writes a fast-import stream of one state commit.
type importer struct {
	w     io.Writer
	words dictionary
	marks int
	files []string
	err   error
}

func (m *importer) printf(format string, args ...any) {
	if m.err == nil {
		_, m.err = fmt.Fprintf(m.w, format, args...)
	}
}

func (m *importer) blob(data []byte) int {
	m.marks++
	m.printf("blob\nmark :%d\ndata %d\n%s\n", m.marks, len(data), data)
	return m.marks
}

func (m *importer) file(path string, data []byte) {
	m.files = append(m.files, fmt.Sprintf("M 100644 :%d %s\n", m.blob(data), path))
}

func (m *importer) node(n PlacedNode) {
	data, err := node.EncodeFile(n.Node)
	if err != nil {
		m.err = err
		return
	}
	m.file(n.Place.Path(n.Hash), data)
}

// shape says what a benchmark's store holds.
type shape struct {
	threads int // each of 101 nodes; the first has the details
	ended   int
	refs    int // other refs, as a repository with many pull requests has
}

func benchThreadID(n int) ThreadID {
	rnd := rand.New(rand.NewPCG(uint64(n), 7))
	b := []byte("01KN" + fmt.Sprintf("%06d", n))
	for len(b) < 26 {
		b = append(b, "0123456789ABCDEFGHJKMNPQRSTVWXYZ"[rnd.IntN(32)])
	}
	return ThreadID(b)
}

// fill writes the store.
func (m *importer) fill(sh shape) {
	version, err := statefile.EncodeVersion(statefile.Version{Store: strings.Repeat("0", 32), Atomic: true})
	if err != nil {
		m.err = err
	}
	m.file(layout.ReadmeName, []byte(readmeText))
	m.file(layout.VersionName, version)
	m.file(layout.RegistryName, []byte("{}\n"))
	for h, n := range record.Schemas() {
		m.node(PlacedNode{Hash: h, Node: n})
	}
	wf, wfHash, err := node.New(node.String, "a workflow", time.UnixMilli(1))
	if err != nil {
		m.err = err
	}
	m.node(PlacedNode{Hash: wfHash, Node: wf})
	flow, err := wf.Sum()
	if err != nil {
		m.err = err
	}
	set := map[ThreadID]*Entry{}
	for i := range sh.threads {
		id := benchThreadID(i)
		head := m.thread(i, id, wfHash, flow)
		set[id] = &Entry{
			Head: head, Workflow: wfHash, Next: &Next{Role: "developer", Since: 1_700_000_000_000 + int64(i)*977},
			Used: Used{Head: head, Steps: benchSteps, Tokens: benchSteps * 105_000, DurationMs: benchSteps * 30_000},
		}
	}
	file, err := statefile.NewThreads().With(set)
	if err != nil {
		m.err = err
		return
	}
	m.file(layout.ThreadsName, file.Encode())
	m.history(sh.ended, wfHash)
	m.printf("commit refs/heads/%s\ncommitter uwf <uwf@localhost> 1700000000 +0000\ndata 2\nm\n%s\n", DefaultBranch, strings.Join(m.files, ""))
	m.printf("reset %s\nfrom refs/heads/%s\n\ndone\n", layout.StoreRef, DefaultBranch)
}

func (m *importer) thread(i int, id ThreadID, wf node.Hash, flow node.Digest) node.Hash {
	rnd := rand.New(rand.NewPCG(uint64(i), 3))
	start, head, err := record.Start{Workflow: wf, Prompt: m.words.text(rnd, 200), Cwd: ".", Digests: &record.StartDigests{Workflow: flow}}.Node(time.UnixMilli(1_700_000_000_000))
	if err != nil {
		m.err = err
		return ""
	}
	m.node(PlacedNode{Hash: head, Node: start, Place: Place{Thread: id}})
	startHash := head
	turns := 0
	if i == 0 {
		turns = benchTurns
	}
	var prev *node.Hash
	before, err := start.Sum()
	if err != nil {
		m.err = err
	}
	for n := range benchSteps {
		nodes, h, text, err := m.words.step(rnd, id, wf, startHash, prev, before, n, turns)
		if err != nil {
			m.err = err
			return ""
		}
		for _, x := range nodes {
			if i == 0 || !x.Place.Detail { // the others' details are never looked at
				m.node(x)
			}
		}
		m.file(layout.PagePath(id, n+1, "developer"), []byte(text))
		head, prev = h, &h
		if before, err = nodes[len(nodes)-1].Node.Sum(); err != nil {
			m.err = err
		}
	}
	return head
}

// history writes ended threads, 20 a day.
func (m *importer) history(n int, wf node.Hash) {
	steps := make([]node.Hash, benchSteps)
	for i := range steps {
		_, steps[i], _ = node.New(node.String, fmt.Sprint("step ", i), time.UnixMilli(1))
	}
	days := map[string][]byte{}
	for i := range n {
		at := benchDay.Add(-24 * time.Hour * time.Duration(i/20))
		line, err := statefile.EncodeEnded(Ended{Thread: benchThreadID(1_000_00 + i), Workflow: wf, Head: steps[0], CompletedAt: at.UnixMilli(), Reason: "ended", Commit: strings.Repeat("a", 40), Steps: steps})
		if err != nil {
			m.err = err
			return
		}
		year, day := layout.HistoryFile(at)
		path := layout.HistoryDir + "/" + year + "/" + day
		days[path] = append(days[path], line...)
	}
	for path, data := range days {
		m.file(path, data)
	}
}

// benchRepo builds the repository of a shape and packs it as a server would.
func benchRepo(b *testing.B, sh shape) string {
	b.Helper()
	dir := bareRepo(b, "gc.auto", "0", "receive.autogc", "false")
	cmd := exec.Command("git", "fast-import", "--quiet", "--done")
	cmd.Dir = dir
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	m := &importer{w: in, words: newDictionary()}
	m.fill(sh)
	if err := in.Close(); err != nil {
		b.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || m.err != nil {
		b.Fatal(err, m.err)
	}
	if sh.refs > 0 {
		tip := strings.TrimSpace(runGit(b, dir, "rev-parse", "refs/heads/"+DefaultBranch))
		var refs bytes.Buffer
		for i := range sh.refs {
			fmt.Fprintf(&refs, "create refs/pull/%d/head %s\n", i+1, tip)
		}
		cmd := exec.Command("git", "update-ref", "--stdin")
		cmd.Dir, cmd.Stdin = dir, &refs
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
	}
	runGit(b, dir, "repack", "-adfq") // deltas as a server finds them, not as fast-import left them
	runGit(b, dir, "pack-refs", "--all")
	return dir
}

// traffic counts what goes over the wire, headers included.
type traffic struct{ up, down, requests atomic.Int64 }

func (c *traffic) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.requests.Add(1)
		c.up.Add(int64(len(r.Method)+len(r.RequestURI)+12) + headerSize(r.Header))
		r.Body = &countingBody{r.Body, &c.up}
		cw := &countingWriter{w, &c.down, false}
		next.ServeHTTP(cw, r)
	})
}

func headerSize(h http.Header) int64 {
	n := 0
	for k, vs := range h {
		for _, v := range vs {
			n += len(k) + len(v) + 4
		}
	}
	return int64(n)
}

type countingBody struct {
	io.ReadCloser
	n *atomic.Int64
}

func (c *countingBody) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n.Add(int64(n))
	return n, err
}

type countingWriter struct {
	http.ResponseWriter
	n      *atomic.Int64
	headed bool
}

func (c *countingWriter) Write(p []byte) (int, error) {
	if !c.headed {
		c.headed = true
		c.n.Add(17 + headerSize(c.Header()))
	}
	c.n.Add(int64(len(p)))
	return c.ResponseWriter.Write(p)
}

// Unwrap lets the server flush through.
func (c *countingWriter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// bench is one running comparison.
type bench struct {
	b       *testing.B
	srv     *gitservertest.Server
	count   traffic
	pristin string
	runs    int
}

func newBench(b *testing.B, sh shape) *bench {
	b.Helper()
	if testing.Short() {
		sh = shape{threads: min(sh.threads, 1), ended: min(sh.ended, 1), refs: min(sh.refs, 2)}
	}

	x := &bench{b: b, pristin: benchRepo(b, sh)}
	testmode.NeedGit(b)
	if err := gitserver.Available(""); err != nil {
		b.Skip(err)
	}
	srv, err := gitservertest.Serve(b.TempDir(), gitserver.Options{Middleware: x.count.wrap, Config: forgeConfig()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = srv.Close() })
	x.srv = srv
	return x
}

// forgeConfig is how forges keep pull requests' refs from making each push slow:
// they are hidden from pushes ("deny updating a hidden ref"). It is the same for
// both sides of every comparison.
func forgeConfig() map[string]string { return map[string]string{"receive.hideRefs": "refs/pull"} }

// fresh serves a copy of the repository (its packs as links) and returns its URL.
func (x *bench) fresh() string {
	x.b.Helper()
	x.runs++
	name := fmt.Sprintf("run%d.git", x.runs)
	if out, err := exec.Command("cp", "-al", x.pristin, x.srv.Dir(name)).CombinedOutput(); err != nil {
		x.b.Fatalf("%v: %s", err, out)
	}
	return x.srv.URL + "/" + name
}

// childrenCPU is the processor time of all processes that this one started and
// waited for: the jobs' and, because the server starts them, git's own.
func childrenCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// cost is what one run took.
type cost struct {
	wall            time.Duration
	rss             int64 // bytes
	up, down, nodes int64
	requests        int64
}

// ours runs the job as a fresh process of this binary.
func (x *bench) ours(end bool) cost {
	x.b.Helper()
	j, err := json.Marshal(job{URL: x.fresh(), Thread: benchThreadID(0), End: end, Seed: uint64(x.runs)})
	if err != nil {
		x.b.Fatal(err)
	}
	x.count.up.Store(0)
	x.count.down.Store(0)
	x.count.requests.Store(0)
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{benchChild + "=" + string(j), "PATH=" + os.Getenv("PATH"), "HOME=/nonexistent"}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	at := time.Now()
	err = cmd.Run()
	c := cost{wall: time.Since(at)}
	if err != nil {
		x.b.Fatalf("%v: %s", err, errs.Bytes())
	}
	var d done
	if err := json.Unmarshal(out.Bytes(), &d); err != nil {
		x.b.Fatal(err)
	}
	c.up, c.down, c.requests = x.count.up.Load(), x.count.down.Load(), x.count.requests.Load()
	c.rss, c.nodes = d.RSS, x.ownBytes(uint64(x.runs))
	return c
}

// native does with git what a job without uwf would do for the same commit.
func (x *bench) native() time.Duration {
	x.b.Helper()
	url := x.fresh()
	id := benchThreadID(0)
	dir := filepath.Join(x.b.TempDir(), "clone")
	stream := x.nativeStream(id)
	at := time.Now()
	runGit(x.b, "", "init", "-q", dir)
	runGit(x.b, dir, "fetch", "-q", "--depth", "1", "--filter=blob:none", url, "refs/heads/"+DefaultBranch+":refs/heads/s")
	cmd := exec.Command("git", "fast-import", "--quiet", "--force")
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(stream)
	if out, err := cmd.CombinedOutput(); err != nil {
		x.b.Fatalf("%v: %s", err, out)
	}
	runGit(x.b, dir, "push", "-q", "--atomic", url, "refs/heads/s:refs/heads/"+DefaultBranch, "refs/heads/s:"+layout.StoreRef, "refs/heads/w:refs/heads/"+layout.WorkBranch(id))
	return time.Since(at)
}

func (x *bench) nativeStream(id ThreadID) []byte {
	rnd := rand.New(rand.NewPCG(uint64(x.runs), 9))
	nodes, _, page, err := newDictionary().step(rnd, id, node.String, node.String, nil, unsaid, benchSteps, benchTurns)
	if err != nil {
		x.b.Fatal(err)
	}
	threads := runGit(x.b, x.pristin, "show", DefaultBranch+":"+layout.ThreadsName)
	var out bytes.Buffer
	m := &importer{w: &out}
	for _, n := range nodes {
		m.node(n)
	}
	m.file(layout.PagePath(id, benchSteps+1, "developer"), []byte(page))
	m.file(layout.ThreadsName, []byte(strings.Replace(threads, "developer", "reviewer", 1)))
	m.printf("commit refs/heads/s\ncommitter uwf <uwf@localhost> 1700000001 +0000\ndata 2\nm\nfrom refs/heads/s^0\n%s\n", strings.Join(m.files, ""))
	m.files = nil
	m.file("f", []byte("work\n"))
	m.printf("commit refs/heads/w\ncommitter uwf <uwf@localhost> 1700000001 +0000\ndata 2\nm\n%s\n", strings.Join(m.files, ""))
	if m.err != nil {
		x.b.Fatal(m.err)
	}
	return out.Bytes()
}

func median(ds []time.Duration) time.Duration {
	slices.Sort(ds)
	return ds[len(ds)/2]
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// compare reports ours against native.
func (x *bench) compare(end bool) {
	var ours, native, oursCPU, nativeCPU []time.Duration
	var last cost
	for x.b.Loop() {
		at := childrenCPU()
		last = x.ours(end)
		ours = append(ours, last.wall)
		mid := childrenCPU()
		native = append(native, x.native())
		oursCPU, nativeCPU = append(oursCPU, mid-at), append(nativeCPU, childrenCPU()-mid)
	}
	o, n := median(ours), median(native)
	x.b.ReportMetric(float64(median(oursCPU))/float64(median(nativeCPU)), "cpu-ours/native")
	x.b.ReportMetric(ms(o), "ours-ms")
	x.b.ReportMetric(ms(n), "native-ms")
	x.b.ReportMetric(float64(o)/float64(n), "ours/native")
	x.report(last)
}

func (x *bench) report(c cost) {
	x.b.ReportMetric(float64(c.rss)/(1<<20), "MB-rss")
	x.b.ReportMetric(float64(c.up-c.nodes)/1000, "KB-up")
	x.b.ReportMetric(float64(c.down)/1000, "KB-down")
	x.b.ReportMetric(float64(c.requests), "requests")
}

// BenchmarkStep is one step at 1,000, 10,000 and 100,000 live nodes.
func BenchmarkStep(b *testing.B) {
	for _, threads := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("nodes=%d", threads*(2*benchSteps)), func(b *testing.B) { newBench(b, shape{threads: threads}).compare(false) })
	}
}

// BenchmarkEndingStep is the step that ends its thread: with the archive commit.
func BenchmarkEndingStep(b *testing.B) {
	newBench(b, shape{threads: 100, ended: 20}).compare(true)
}

// BenchmarkEnded is a step after 1 and after 5,000 ended threads.
func BenchmarkEnded(b *testing.B) {
	for _, end := range []bool{false, true} {
		b.Run(fmt.Sprintf("ending=%t", end), func(b *testing.B) {
			against(b, shape{threads: 100, ended: 1}, shape{threads: 100, ended: 5000}, end)
		})
	}
}

// BenchmarkOtherRefs is a step beside no other refs and beside 50,000.
func BenchmarkOtherRefs(b *testing.B) {
	against(b, shape{threads: 100}, shape{threads: 100, refs: 50_000}, false)
}

func TestBenchmarksStart(t *testing.T) {
	testmode.StartBenchmarks(t, "Step/nodes=1000$|Ended|OtherRefs")
}

// against reports how much more the second shape costs than the first.
func against(b *testing.B, small, large shape, end bool) {
	x, y := newBench(b, small), newBench(b, large)
	var xs, ys []time.Duration
	var last cost
	for b.Loop() {
		xs = append(xs, x.ours(end).wall)
		last = y.ours(end)
		ys = append(ys, last.wall)
	}
	s, l := median(xs), median(ys)
	b.ReportMetric(ms(s), "small-ms")
	b.ReportMetric(ms(l), "large-ms")
	b.ReportMetric(float64(l)/float64(s), "large/small")
	y.report(last)
}
