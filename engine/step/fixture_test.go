package step_test

import (
	"context"
	"crypto/rand"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/deadline"
	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/redact"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/engine/step/unpushed"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/gitserver"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
	"github.com/united-workforce/uwf/internal/gitservertest"
	"github.com/united-workforce/uwf/internal/wiretest"
)

const testThread gitcas.ThreadID = "01JD0000000000000000000001"

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// forge is one repository, in memory or on a git server, which counts what is asked
// of it.
type forge struct {
	testing.TB
	dial     func() wire.Remote
	pushes   atomic.Int64 // requests to git-receive-pack
	requests atomic.Int64
	sent     atomic.Int64 // bytes of answers
	base     wire.ID
}

func newForge(t testing.TB, files map[string]string) *forge {
	t.Helper()
	m := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})
	f := &forge{TB: t, dial: func() wire.Remote { return m }}
	f.base = f.push(files, "refs/heads/main", wire.ZeroID)
	return f
}

func newServer(t testing.TB, files map[string]string) *forge {
	t.Helper()
	if err := gitserver.Available(""); err != nil {
		t.Skip(err)
	}
	f := &forge{TB: t}
	s, err := gitservertest.Serve(t.TempDir(), gitserver.Options{Middleware: f.count})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	url, err := s.Init("r.git")
	must(t, err)
	f.dial = func() wire.Remote {
		r, err := wire.Dial(url, wire.DialOptions{})
		must(t, err)
		return r
	}
	f.base = f.push(files, "refs/heads/main", wire.ZeroID)
	return f
}

func (f *forge) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.requests.Add(1)
		if strings.Contains(r.URL.String(), "git-receive-pack") {
			f.pushes.Add(1)
		}
		next.ServeHTTP(&counting{w, &f.sent}, r)
	})
}

type counting struct {
	http.ResponseWriter
	n *atomic.Int64
}

func (c *counting) Write(b []byte) (int, error) {
	c.n.Add(int64(len(b)))
	return c.ResponseWriter.Write(b)
}

// push makes a commit of files and pushes it to a ref.
func (f *forge) push(files map[string]string, ref string, parent wire.ID) wire.ID {
	f.Helper()
	dir, r := f.TempDir(), f.dial()
	w, err := workspace.Open(dir, r)
	must(f, err)
	req := workspace.SnapshotRequest{Message: "by a person\n", When: time.Unix(1, 0)}
	if !parent.IsZero() {
		req.Parents = []wire.ID{parent}
		must(f, w.Restore(f.ctx(), parent))
	}
	put(f, dir, files)
	s, err := w.TakeSnapshot(f.ctx(), req)
	must(f, err)
	_, err = r.Push(f.ctx(), wire.PushRequest{Updates: []wire.RefUpdate{{Name: ref, Old: parent, New: s.Commit}}, Objects: s.Objects})
	must(f, err)
	return s.Commit
}

func (f *forge) ctx() context.Context { return context.Background() }

// refs are all refs of the repository.
func (f *forge) refs() map[string]wire.ID {
	f.Helper()
	l, err := f.dial().List(f.ctx(), "refs/")
	must(f, err)
	return l.Refs
}

// put writes files: "-> x" makes a link, "+x" an executable, "" deletes.
func put(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, data := range files {
		path := filepath.Join(dir, name)
		must(t, os.RemoveAll(path))
		if data == "" {
			continue
		}
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		if target, ok := strings.CutPrefix(data, "-> "); ok {
			must(t, os.Symlink(target, path))
			continue
		}
		mode := os.FileMode(0o644)
		if strings.HasPrefix(data, "+") {
			mode = 0o755
		}
		must(t, os.WriteFile(path, []byte(data), mode))
	}
}

// contents is what a commit of the repository holds.
func (f *forge) contents(commit wire.ID) map[string]string {
	f.Helper()
	dir := f.TempDir()
	w, err := workspace.Open(dir, f.dial())
	must(f, err)
	must(f, w.Restore(f.ctx(), commit))
	out := map[string]string{}
	must(f, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		if d.Type()&os.ModeSymlink != 0 {
			target, err := os.Readlink(path)
			out[name] = "-> " + target
			return err
		}
		b, err := os.ReadFile(path)
		out[name] = string(b)
		return err
	}))
	return out
}

// job is the engine of one process, with a working folder of its own.
type job struct {
	*step.Stepper
	folder *folder
}

func (f *forge) job(run string, r wire.Remote, agent task.Agent, secrets ...redact.Secret) *job {
	f.Helper()
	dir := f.TempDir()
	w, err := workspace.Open(dir, r)
	must(f, err)
	red, err := redact.New(redact.Options{Secrets: secrets})
	must(f, err)
	fo := &folder{Workspace: w, dir: dir}
	return &job{folder: fo, Stepper: &step.Stepper{Agent: agent, Folder: fo, Engine: &thread.Engine{
		Store: gitcas.Open(r, gitcas.Options{}), Redact: red, Settings: settings{}, Clock: deadline.SystemClock{},
		Nonce: rand.Text,
		Who:   lease.Identity{Run: run, Attempt: 1, Host: run, Boot: "boot", PID: 7},
	}}}
}

type folder struct {
	*workspace.Workspace
	dir string
}

func (f *folder) Restore(ctx context.Context, commit, _ wire.ID) error {
	return f.Workspace.Restore(ctx, commit)
}

func (f *folder) Dir() string                         { return f.dir }
func (f *folder) Sub(location string) (string, error) { return filepath.Join(f.dir, location), nil }

type settings struct{}

func (settings) Agent(_ *workflow.Definition, _, override string) (string, string, error) {
	if override != "" {
		return override, override, nil
	}
	return "test", "test", nil
}
func (settings) Model(string, string) *task.Model     { return nil }
func (settings) ExtractModel(_, _ string) *task.Model { return nil }
func (settings) CheckPrices(_, _, _ string) error     { return nil }
func (settings) MonthLimits() moderator.MonthLimits   { return moderator.MonthLimits{} }
func (settings) Limits(string) moderator.Limits       { return moderator.Limits{} }
func (settings) Timeout() time.Duration               { return 0 }

// start starts the thread, of two roles: a, which has checks and may ask a person, then b.
func (f *forge) start(checks ...any) node.Hash {
	f.Helper()
	req := thread.StartRequest{ID: testThread, Nodes: map[node.Hash]node.Node{}, Prompt: "do it", Base: f.base.String()}
	add := func(typ node.Hash, payload any) node.Hash {
		n, h, err := node.New(typ, payload, time.UnixMilli(0))
		must(f, err)
		req.Nodes[h] = n
		return h
	}
	role := func(name string) map[string]any {
		h := add(node.MetaSchema, map[string]any{
			"type": "object", "title": "two." + name, "required": []any{"$status"},
			"properties": map[string]any{"$status": map[string]any{"enum": []any{"done", "ask"}}, "note": map[string]any{"type": "string"}},
		})
		return map[string]any{"description": name, "goal": "g", "capabilities": []any{}, "procedure": "p", "output": "o", "frontmatter": string(h)}
	}
	a, b := role("a"), role("b")
	edge := func(to string) map[string]any { return map[string]any{"role": to, "prompt": "go", "location": nil} }
	typ, flow := record.WorkflowSchema, map[string]any{
		"name": "two", "description": "d", "roles": map[string]any{"a": a, "b": b},
		"graph": map[string]any{
			"$START": map[string]any{"_": edge("a")}, "a": map[string]any{"done": edge("b"), "ask": edge("$SUSPEND")}, "b": map[string]any{"done": edge("$END"), "ask": edge("$SUSPEND")},
		},
	}
	if len(checks) > 0 {
		typ, flow["dialect"], a["checks"] = record.OwnWorkflowSchema, "status-map", checks
	}
	req.Workflow = add(typ, flow)
	s, err := f.job("start", f.dial(), nil).Start(f.ctx(), req)
	must(f, err)
	return s.Head
}

// agentFunc is an agent for tests.
type agentFunc func(ctx context.Context, t task.Task, m *task.Meter) (task.Draft, error)

func (a agentFunc) Run(ctx context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
	return a(ctx, t, m)
}

// works is an agent that changes files and says a note.
func works(tb testing.TB, note string, files map[string]string) agentFunc {
	return func(_ context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
		m.Add(100, 20, 0.5)
		put(tb, t.Workspace, files)
		return draftOf(tb, t, note), nil
	}
}

func draftOf(tb testing.TB, t task.Task, note string) task.Draft {
	tb.Helper()
	return draftWith(tb, t, "done", note)
}

func draftWith(tb testing.TB, t task.Task, status, note string) task.Draft {
	tb.Helper()
	d := task.Draft{Nodes: map[node.Hash]node.Node{}}
	add := func(typ node.Hash, payload any) node.Hash {
		n, h, err := node.New(typ, payload, time.UnixMilli(1))
		must(tb, err)
		d.Nodes[h] = n
		return h
	}
	body := add(node.String, "body: "+note)
	step := record.Step{
		Start: t.Start, Prev: t.Prev, Role: t.Role, Agent: t.Agent, StartedAtMs: t.StartedAtMs, CompletedAtMs: t.StartedAtMs, Cwd: t.Cwd, Body: &body,
		Output: add(t.OutputSchema, map[string]any{"$status": status, "note": note}),
		Detail: add(record.MockDetailSchema, map[string]any{"sessionId": note, "role": t.Role, "stepIndex": int64(t.Step)}),
	}
	n, h, err := step.Node(time.UnixMilli(1))
	must(tb, err)
	d.Nodes[h], d.Handle = n, h
	return d
}

// blind is a remote to which nothing can be pushed.
type blind struct{ wire.Remote }

func (b blind) Push(context.Context, wire.PushRequest) (time.Time, error) {
	return time.Time{}, &wire.RemoteError{Op: "push", Kind: wire.ErrDenied}
}

// prepares is a preparer for tests.
type prepares func(req step.PrepareRequest) (string, error)

func (p prepares) Prepare(_ context.Context, req step.PrepareRequest) (string, error) { return p(req) }

// prints is a preparer that succeeds.
func preparesPrinting(output string) prepares {
	return func(step.PrepareRequest) (string, error) { return output, nil }
}

// firstJobPrepared is firstJob with a preparer, and an agent that changes nothing.
func (f *forge) firstJobPrepared(head node.Hash, output string) (string, error) {
	f.Helper()
	j := f.job("one", blind{f.dial()}, works(f, "x", nil))
	dir := filepath.Join(f.TempDir(), "artifact")
	j.Unpushed, j.Preparer = &unpushed.Folder{Dir: dir}, preparesPrinting(output)
	_, err := j.Step(f.ctx(), step.Request{Thread: testThread, ExpectHead: node.Pin{Hash: head}, HandsOver: true})
	return dir, err
}

// firstJob runs an agent with nothing that it could write to, and leaves what it did in a folder.
func (f *forge) firstJob(head node.Hash, agent task.Agent, secrets ...redact.Secret) (string, error) {
	f.Helper()
	return f.firstJobIn(f.ctx(), head, agent, secrets...)
}

func (f *forge) firstJobIn(ctx context.Context, head node.Hash, agent task.Agent, secrets ...redact.Secret) (string, error) {
	f.Helper()
	j := f.job("one", blind{f.dial()}, agent, secrets...)
	dir := filepath.Join(f.TempDir(), "artifact")
	j.Unpushed = &unpushed.Folder{Dir: dir}
	_, err := j.Step(ctx, step.Request{Thread: testThread, ExpectHead: node.Pin{Hash: head}, Deliver: true, HandsOver: true})
	return dir, err
}

// readLeft is what lies in the folder.
func (f *forge) readLeft(dir string) unpushed.Step {
	f.Helper()
	_, v, _ := f.view()
	u, err := (&unpushed.Folder{Dir: dir}).Read(v.StoreID(), testThread)
	must(f, err)
	return u
}

// secondJob commits what is in the folder.
func (f *forge) secondJob(dir string, secrets ...redact.Secret) (thread.Result, error) {
	f.Helper()
	return f.takeOver((&unpushed.Folder{Dir: dir}).Read, secrets...)
}

// commitLeft commits a step that was left.
func (f *forge) commitLeft(u unpushed.Step, secrets ...redact.Secret) (thread.Result, error) {
	f.Helper()
	return f.takeOver(func(string, gitcas.ThreadID) (unpushed.Step, error) { return u, nil }, secrets...)
}

var runs atomic.Int64

func (f *forge) takeOver(read func(string, gitcas.ThreadID) (unpushed.Step, error), secrets ...redact.Secret) (thread.Result, error) {
	f.Helper()
	j := f.job("two-"+string(rune('a'+runs.Add(1)%26)), f.dial(), nil, secrets...)
	return j.Step(f.ctx(), step.Request{Thread: testThread, Deliver: true, TakesOver: read})
}

// withChangedRecord is a step whose StepNode was changed.
func withChangedRecord(t testing.TB, u unpushed.Step, change func(s *record.Step)) unpushed.Step {
	t.Helper()
	s, err := u.Record()
	must(t, err)
	change(&s)
	n, h, err := s.Node(time.UnixMilli(1))
	must(t, err)
	u.Nodes = maps.Clone(u.Nodes)
	delete(u.Nodes, u.Handle)
	u.Nodes[h], u.Handle = n, h
	return u
}

// view is the store as it is now.
func (f *forge) view() (*gitcas.Store, *gitcas.View, gitcas.Entry) {
	f.Helper()
	s := gitcas.Open(f.dial(), gitcas.Options{})
	v, err := s.Load(f.ctx(), testThread)
	must(f, err)
	e, ok := v.Entry(testThread)
	if !ok {
		f.Fatal("the thread is gone")
	}
	return s, v, e
}

// attempt is the only attempt that the thread's entry names.
func (f *forge) attempt() gitcas.Attempt {
	f.Helper()
	s, v, e := f.view()
	if len(e.Attempts) != 1 {
		f.Fatalf("attempts: %q", e.Attempts)
	}
	a, err := s.ReadAttempt(f.ctx(), v, e.Attempts[0])
	must(f, err)
	return a
}

// everything is all bytes below a folder.
func everything(t testing.TB, dir string) string {
	t.Helper()
	var b strings.Builder
	must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		b.WriteString(path + "\n")
		if err == nil && d.Type().IsRegular() {
			raw, err := os.ReadFile(path)
			b.Write(raw)
			return err
		}
		return err
	}))
	return b.String()
}
