package thread_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/engine/deadline"
	"github.com/united-workforce/uwf/engine/deliver"
	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/redact"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
	"github.com/united-workforce/uwf/internal/wiretest"
)

const testThread gitcas.ThreadID = "01JD0000000000000000000001"

// testWorkflow is a → b; b sends back or approves, a may ask a person.
var testWorkflow = map[string]any{
	"name": "two", "description": "d",
	"roles": map[string]any{"a": testRole("a"), "b": testRole("b")},
	"graph": map[string]any{
		"$START": map[string]any{"_": simEdge("a", "begin"), "resume": simEdge("b", "look again")},
		"a":      map[string]any{"done": map[string]any{"role": "b", "prompt": "check {{{note}}}", "location": "{{{where}}}"}, "ask": simEdge("$SUSPEND", "{{{note}}}")},
		"b":      map[string]any{"rejected": simEdge("a", "again: {{{note}}}"), "approved": simEdge("$END", "")},
	},
}

func testSchema(role string) map[string]any {
	s := simSchema(role)
	props, _ := s["properties"].(map[string]any)
	s["title"] = "two." + role
	props["code"] = map[string]any{"type": "string", "pattern": "^[0-9a-z]*$"}
	props["see"] = map[string]any{"type": "array", "items": map[string]any{"type": "string", "format": "ocas_ref"}}
	props["where"] = map[string]any{"type": "string"}
	return s
}

func testRole(role string) map[string]any {
	h, err := node.HashOf(node.MetaSchema, testSchema(role))
	if err != nil {
		return nil
	}
	return map[string]any{"description": role, "goal": "g", "capabilities": []any{}, "procedure": "p", "output": "o", "frontmatter": string(h)}
}

// fixture is a store in memory with the workflow above, and everything that an
// engine is given.
type fixture struct {
	model *task.Model
	*testing.T
	mem     *wiretest.Memory
	remote  *remote
	files   map[string]string // of the working folder
	limits  moderator.Limits
	month   moderator.MonthLimits
	redact  thread.Redactor
	agent   func(ctx context.Context, t task.Task, m *task.Meter) (task.Draft, error)
	hook    func(point string)
	host    string
	alive   func(pid int, started int64) bool
	timeout time.Duration
	noSubs  bool
	slow    func(ctx context.Context) error // what reading the folder takes; nil: nothing
	// noPrice says of which role nobody knows what it costs; nil: of none.
	noPrice func(role string) bool
	by      *story.Person   // whom people's deeds are done for
	thread  gitcas.ThreadID // the thread at hand, where it is another one
	disk    *memoryDisk     // where sealed steps are kept; nil: nowhere
	told    []string        // the notices so far
	// retryFor bounds lost races; 0: as always.
	retryFor time.Duration

	delivered int // how often somebody delivered the thread

	mu   sync.Mutex
	runs []task.Task // what agents were asked to do
}

// inBubble runs a test over a fresh fixture, in fake time.
func inBubble(t *testing.T, test func(f *fixture)) {
	t.Helper()
	bubble(t, true, test)
}

func bubble(t *testing.T, atomic bool, test func(f *fixture)) {
	t.Helper()
	bubbleOn(t, wiretest.MemoryOptions{Atomic: atomic}, test)
}

func bubbleOn(t *testing.T, o wiretest.MemoryOptions, test func(f *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		mem := wiretest.NewMemory(o)
		f := &fixture{T: t, mem: mem, remote: &remote{Remote: mem}, files: map[string]string{}, redact: noSecrets{}, host: "here"}
		f.agent = f.answer("done", "approved")
		test(f)
	})
}

func (f *fixture) ok(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// code checks an error's exit code and returns its text, with what can be done next.
func (f *fixture) code(err error, want life.Kind) string {
	f.Helper()
	if got := life.KindOf(err); got != want {
		f.Fatalf("exit code %d, want %d: %v", got, want, err)
	}
	if err == nil {
		return ""
	}
	said := err.Error()
	for _, v := range life.NextOf(err) {
		at := ""
		if v.Do == life.Fork {
			at = fmt.Sprintf(":%d", v.Steps)
		}
		said += fmt.Sprintf("\n%s: %s %s%s %s", v.For, v.Do, v.Thread, at, v.Needs)
	}
	return said
}

func (f *fixture) says(text string, want ...string) {
	f.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			f.Errorf("%q does not say %q", text, w)
		}
	}
}

// engine is that of one job.
func (f *fixture) engine(run string, attempt int) *engine {
	e := &step.Stepper{Agent: f, Folder: &testFolder{f: f}, Engine: &thread.Engine{
		Store:  gitcas.Open(f.remote, gitcas.Options{Now: time.Now, Jitter: func() float64 { return 0.5 }, Rand: zeroReader{}, RetryFor: f.retryFor}),
		Redact: f.redact, Settings: f, Clock: deadline.SystemClock{},
		Hook: f.hook, By: f.by,
		Who:   lease.Identity{Run: run, Attempt: attempt, Host: f.host, Boot: "boot", PIDNS: "pids", PID: 7, Started: 70, Alive: f.alive},
		Nonce: newNonce,
		Observe: func(e thread.Event) {
			if e.Kind == "notice" {
				f.told = append(f.told, e.Text)
			}
		},
	}}
	if f.disk != nil {
		e.Unpushed = f.disk
	}
	return &engine{e}
}

// engine does all that jobs and people do with threads.
type engine struct{ *step.Stepper }

func (e *engine) Deliver(ctx context.Context, req deliver.Request) (thread.Result, error) {
	return deliver.Run(ctx, e.Engine, req)
}

// newNonce is a random word.
func newNonce() string { return rand.Text() }

// Run implements Agent.
func (f *fixture) Run(ctx context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
	f.mu.Lock()
	f.runs = append(f.runs, t)
	f.mu.Unlock()
	return f.agent(ctx, t, m)
}

// paid checks how often agents ran.
func (f *fixture) paid(want int) {
	f.Helper()
	if len(f.runs) != want {
		f.Fatalf("agents ran %d times, want %d", len(f.runs), want)
	}
}

// Agent, Model, Limits and Timeout implement Settings.
func (f *fixture) Agent(_ *workflow.Definition, _, override string) (string, string, error) {
	if override == "none" {
		return "", "", errors.New("no such agent")
	}
	return "test", "test", nil
}
func (f *fixture) CheckPrices(_, role, _ string) error {
	if f.noPrice != nil && f.noPrice(role) {
		return errNoPrice
	}
	return nil
}
func (f *fixture) Model(string, string) *task.Model     { return f.model }
func (f *fixture) ExtractModel(_, _ string) *task.Model { return nil }
func (f *fixture) Limits(string) moderator.Limits       { return f.limits }
func (f *fixture) MonthLimits() moderator.MonthLimits   { return f.month }
func (f *fixture) Timeout() time.Duration               { return f.timeout }
func (f *fixture) draftOf(t task.Task) *draft           { return newDraft(f.T, t) }
func (f *fixture) store() *gitcas.Store                 { return f.engine("look", 1).Store }
func (f *fixture) at(id gitcas.ThreadID) step.Request   { return step.Request{Thread: id} }

// answer is an agent that gives role a the one status and role b the other.
func (f *fixture) answer(a, b string) func(context.Context, task.Task, *task.Meter) (task.Draft, error) {
	return func(_ context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
		m.Add(10, 1, 0.5)
		status := a
		if t.Role == "b" {
			status = b
		}
		return f.draftOf(t).output(map[string]any{"$status": status, "note": "what now?"}).done(), nil
	}
}

// fails is an agent that pays and gives up.
func (f *fixture) fails(_ context.Context, _ task.Task, m *task.Meter) (task.Draft, error) {
	m.Add(100, 10, 1)
	return task.Draft{Stderr: "no idea"}, &task.AgentError{Agent: "test", Reason: "gave up"}
}

func startRequest(id gitcas.ThreadID) thread.StartRequest {
	req := thread.StartRequest{ID: id, Nodes: map[node.Hash]node.Node{}, Prompt: "do it"}
	for _, n := range []struct {
		typ     node.Hash
		payload any
	}{{node.MetaSchema, testSchema("a")}, {node.MetaSchema, testSchema("b")}, {record.WorkflowSchema, testWorkflow}} {
		made, h, err := node.New(n.typ, n.payload, time.UnixMilli(0))
		if err == nil {
			req.Nodes[h], req.Workflow = made, h
		}
	}
	return req
}

// start starts the thread.
func (f *fixture) start() {
	f.Helper()
	_, err := f.engine("start", 1).Start(f.Context(), startRequest(testThread))
	f.ok(err)
}

// step is one job.
func (f *fixture) step(run string) (thread.Result, error) {
	return f.stepWith(run, 1, f.at(testThread))
}

func (f *fixture) stepWith(run string, attempt int, req step.Request) (thread.Result, error) {
	return f.engine(run, attempt).Step(f.Context(), req)
}

// steps runs jobs that must all go well.
func (f *fixture) steps(runs ...string) (last thread.Result) {
	f.Helper()
	for _, run := range runs {
		res, err := f.step(run)
		f.ok(err)
		last = res
	}
	return last
}

// view is the store as it is now.
func (f *fixture) view() *gitcas.View {
	f.Helper()
	v, err := gitcas.Open(f.mem, gitcas.Options{}).Load(f.Context(), testThread)
	f.ok(err)
	return v
}

func (f *fixture) entry() gitcas.Entry {
	f.Helper()
	e, ok := f.view().Entry(testThread)
	if !ok {
		f.Fatal("the thread is gone")
	}
	return e
}

func (f *fixture) chain() gitcas.Chain {
	f.Helper()
	c, err := f.view().ReadChain(f.Context(), testThread)
	f.ok(err)
	return c
}

func (f *fixture) get(h node.Hash) node.Node {
	f.Helper()
	v := f.view()
	found, err := gitcas.FindIn(f.Context(), v, testThread, h)
	if errors.Is(err, node.ErrNotFound) {
		found.Node, err = v.Get(f.Context(), h)
	}
	f.ok(err)
	return found.Node
}

// places finds the thread's nodes by their place.
func (f *fixture) places() func(gitcas.Place) node.Getter {
	v := f.view()
	return func(p gitcas.Place) node.Getter { return v.In(f.Context(), p) }
}

// attempt reads what was kept of a run.
func (f *fixture) attempt(run string, attempt int) gitcas.Attempt {
	f.Helper()
	a, err := f.store().ReadAttempt(f.Context(), f.view(), layout.AttemptRef(testThread, run, attempt))
	f.ok(err)
	return a
}

// edit changes the thread's entry behind the engine's back.
func (f *fixture) edit(change func(*gitcas.Entry)) {
	f.Helper()
	e := f.entry()
	change(&e)
	s := gitcas.Open(f.mem, gitcas.Options{})
	_, err := s.Push(f.Context(), f.view(), &gitcas.Change{Subject: "by hand", Threads: map[gitcas.ThreadID]*gitcas.Entry{testThread: &e}})
	f.ok(err)
}

// claimBy puts a claim on the thread.
func (f *fixture) claimBy(c gitcas.Claim) {
	f.Helper()
	v := f.view()
	var old *gitcas.Held
	if h, ok := v.FindClaim(testThread); ok {
		old = &h
	}
	upd, objs := view.ClaimUpdate(testThread, old, &c, time.Now())
	_, err := f.mem.Push(f.Context(), wire.PushRequest{Updates: []wire.RefUpdate{upd}, Objects: objs})
	f.ok(err)
}

// unclaimed checks that no claim is left.
func (f *fixture) unclaimed() {
	f.Helper()
	if c, ok := f.view().FindClaim(testThread); ok {
		f.Errorf("the claim of %s.%d is left", c.Run, c.Attempt)
	}
}

// nowhere checks that no object of the remote holds a text.
func (f *fixture) nowhere(secret string) {
	f.Helper()
	for name, tip := range f.mem.Refs() {
		seen := map[wire.ID]bool{}
		for todo := []wire.ID{tip}; len(todo) > 0; {
			id := todo[0]
			todo = todo[1:]
			o, ok := f.mem.Get(id)
			if seen[id] || !ok {
				continue
			}
			seen[id] = true
			if strings.Contains(string(o.Data), secret) {
				f.Errorf("%s: %s %s holds the secret:\n%s", name, o.Type, id, o.Data)
			}
			if c, err := gitobj.DecodeCommit(o.Data); err == nil {
				todo = append(append(todo, c.Tree), c.Parents...)
			} else if es, err := gitobj.DecodeTree(o.Data); err == nil {
				for _, e := range es {
					todo = append(todo, e.ID)
				}
			}
		}
	}
}

// draft puts together what an agent stages.
type draft struct {
	t    *testing.T
	d    task.Draft
	step record.Step
	task task.Task
}

func newDraft(t *testing.T, asked task.Task) *draft {
	d := &draft{t: t, d: task.Draft{Nodes: map[node.Hash]node.Node{}}, task: asked}
	d.step = record.Step{
		Start: asked.Start, Prev: asked.Prev, Role: asked.Role, Agent: asked.Agent,
		EdgePrompt: asked.EdgePrompt, StartedAtMs: asked.StartedAtMs, CompletedAtMs: asked.StartedAtMs, Cwd: asked.Cwd,
	}
	d.step.Detail = d.put(record.MockDetailSchema, map[string]any{"sessionId": "s", "role": asked.Role, "stepIndex": int64(asked.Step)})
	return d
}

// put stages a node.
func (d *draft) put(typ node.Hash, payload any) node.Hash {
	d.t.Helper()
	n, h, err := node.New(typ, payload, time.Now())
	if err != nil {
		d.t.Fatal(err)
	}
	d.d.Nodes[h] = n
	return h
}

func (d *draft) output(fields map[string]any) *draft {
	d.t.Helper()
	d.step.Output = d.put(d.task.OutputSchema, fields)
	return d
}

func (d *draft) body(text string) *draft {
	d.t.Helper()
	h := d.put(node.String, text)
	d.step.Body = &h
	return d
}

// with changes the StepNode.
func (d *draft) with(change func(*record.Step)) *draft {
	change(&d.step)
	return d
}

func (d *draft) done() task.Draft {
	d.t.Helper()
	n, h, err := d.step.Node(time.Now())
	if err != nil {
		d.t.Fatal(err)
	}
	d.d.Nodes[h], d.d.Handle = n, h
	return d.d
}

// testFolder is a flat folder of text files. It belongs to the fixture, as that of
// a machine belongs to all its jobs.
type testFolder struct{ f *fixture }

func (t *testFolder) Dir() string { return "/folder" }

func (t *testFolder) Sub(location string) (string, error) {
	if strings.HasPrefix(location, "..") || strings.HasPrefix(location, "/") || t.f.noSubs {
		return "", errors.New("it leads out of the workspace")
	}
	return "/folder/" + location, nil
}

func (t *testFolder) read(commit wire.ID) (map[string]string, error) {
	w := &world{mem: t.f.mem}
	files, _, err := w.filesOf(commit)
	return files, err
}

func (t *testFolder) ListLeftOut() []workspace.LeftOut { return nil }

func (t *testFolder) Restore(_ context.Context, commit, _ wire.ID) error {
	files, err := t.read(commit)
	t.f.files = files
	return err
}

func (t *testFolder) TakeSnapshot(ctx context.Context, req workspace.SnapshotRequest) (workspace.Snapshot, error) {
	if t.f.slow != nil {
		if err := t.f.slow(ctx); err != nil {
			return workspace.Snapshot{}, err
		}
	}
	if err := ctx.Err(); err != nil {
		return workspace.Snapshot{}, err
	}
	before := map[string]string{}
	if len(req.Parents) > 0 {
		var err error
		if before, err = t.read(req.Parents[0]); err != nil {
			return workspace.Snapshot{}, err
		}
	}
	files := maps.Clone(t.f.files)
	for _, name := range req.Without {
		if delete(files, name); before[name] != "" {
			files[name] = before[name]
		}
	}
	snap, err := commitFiles(files, req.Parents, req.Message)
	if err == nil && t.f.disk != nil { // as a workspace makes it, and what is on disk is made again
		snap.Objects = snap.Objects[:len(snap.Objects)-1]
		err = snap.AddCommit(req)
	}
	if err != nil {
		return snap, err
	}
	if maps.Equal(before, files) {
		snap = workspace.Snapshot{Tree: snap.Tree, Unchanged: true}
		if len(req.Parents) > 0 {
			snap.Commit = req.Parents[0]
		}
		return snap, nil
	}
	all := maps.Clone(before)
	maps.Copy(all, files)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		was, old := before[name]
		is, now := files[name]
		c := workspace.Change{Path: name, Kind: workspace.Modified}
		if old {
			c.Old, c.OldMode = wire.NewObject(plumbing.BlobObject, []byte(was)).ID, filemode.Regular
			c.Blob, c.Kind = c.Old, workspace.Deleted
		}
		if now {
			c.Blob, c.Mode, c.Kind = wire.NewObject(plumbing.BlobObject, []byte(is)).ID, filemode.Regular, workspace.Added
		}
		if old && now {
			c.Kind = workspace.Modified
		}
		if was != is || old != now {
			snap.Changes = append(snap.Changes, c)
		}
	}
	return snap, nil
}

// remote is the store's remote with hooks for what can go wrong. An error of
// before keeps the request from arriving, one of after is its lost reply.
type remote struct {
	wire.Remote
	before  atomic.Pointer[beforeRequest]
	after   func(op string, req wire.PushRequest) error
	torn    func(*wire.Listing) // changes what a listing shows
	pushes  atomic.Int64
	lists   atomic.Int64
	fetches atomic.Int64
	gone    []wire.ID // objects that it lost
}

type beforeRequest func(op string, req wire.PushRequest) error

// setBefore sets the hook, and returns the one that was set. A job at work may be asking.
func (r *remote) setBefore(hook beforeRequest) beforeRequest {
	if old := r.before.Swap(&hook); old != nil {
		return *old
	}
	return nil
}

func (r *remote) callBefore(op string, req wire.PushRequest) error {
	if hook := r.before.Load(); hook != nil && *hook != nil {
		return (*hook)(op, req)
	}
	return nil
}

func (r *remote) Fetch(ctx context.Context, req wire.FetchRequest) (wire.Objects, error) {
	if err := r.callBefore("fetch", wire.PushRequest{}); err != nil {
		return nil, err
	}
	r.fetches.Add(1)
	for _, id := range r.gone {
		if slices.Contains(req.Wants, id) {
			return nil, &wire.RemoteError{Op: "fetch", URL: "memory:", Kind: wire.ErrNotFound}
		}
	}
	return r.Remote.Fetch(ctx, req)
}

func (r *remote) List(ctx context.Context, prefixes ...string) (wire.Listing, error) {
	r.lists.Add(1)
	if err := r.callBefore("list", wire.PushRequest{}); err != nil {
		return wire.Listing{}, err
	}
	l, err := r.Remote.List(ctx, prefixes...)
	if err == nil && r.torn != nil {
		r.torn(&l)
	}
	return l, err
}

func (r *remote) Push(ctx context.Context, req wire.PushRequest) (time.Time, error) {
	r.pushes.Add(1)
	if err := r.callBefore("push", req); err != nil {
		return time.Time{}, err
	}
	at, err := r.Remote.Push(ctx, req)
	if err == nil && r.after != nil {
		err = r.after("push", req)
	}
	return at, err
}

func unreachable() error {
	return &wire.RemoteError{Op: "push", URL: "memory:", Kind: wire.ErrUnreachable, Detail: "cut"}
}

// touches reports whether a push updates a ref whose name contains part.
func touches(req wire.PushRequest, part string) bool {
	return slices.ContainsFunc(req.Updates, func(u wire.RefUpdate) bool { return strings.Contains(u.Name, part) })
}

// secrets is a Redactor that knows these values.
func (f *fixture) secrets(values ...string) {
	f.Helper()
	var o redact.Options
	for _, v := range values {
		o.Secrets = append(o.Secrets, redact.Secret{Name: "PLANTED", Value: v})
	}
	r, err := redact.New(o)
	f.ok(err)
	f.redact = r
}

// blobs writes all blobs below a tree.
func (f *fixture) blobs(b *strings.Builder, tree wire.ID) {
	f.Helper()
	o, ok := f.mem.Get(tree)
	if !ok {
		f.Fatalf("no object %s", tree)
	}
	if o.Type == plumbing.BlobObject {
		b.Write(o.Data)
		return
	}
	entries, err := gitobj.DecodeTree(o.Data)
	f.ok(err)
	for _, e := range entries {
		f.blobs(b, e.ID)
	}
}
