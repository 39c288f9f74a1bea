package runner

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/united-workforce/uwf/engine/deadline"
	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/redact"
	"github.com/united-workforce/uwf/engine/runner/ci"
	"github.com/united-workforce/uwf/engine/runner/event"
	"github.com/united-workforce/uwf/engine/runner/report"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/engine/step/unpushed"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// world is a repository in memory, its forge, and all jobs that run there.
type world struct {
	*testing.T
	mem    *wiretest.Memory
	remote wire.Remote
	forge  *fakeForge
	redact thread.Redactor

	mu     sync.Mutex
	ahead  time.Duration // of the real clock
	runs   int
	ran    []string // roles that agents worked as
	limits moderator.Limits
	month  moderator.MonthLimits
	prices error // why a limit on cost can't be kept; nil: it can

	// say is what the agent of a role answers; nil: done, then approved.
	say func(t task.Task) (fields map[string]any, files map[string]string, err error)
	// hook is called at each point of the job and of the engine.
	hook func(point string)
	// resolve is what Definitions says instead.
	resolve error
	use     error // what Worker.PrepareFolder says
	disk    bool  // agents work in folders on disk
	wrap    func(wire.Remote) wire.Remote
	pending string // the folder of sealed steps that all jobs share; empty: none keeps any
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, forge: newFakeForge(), redact: noSecrets{}}
	w.mem = wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true, Now: w.now})
	w.remote = w.mem
	w.branch("main", map[string]string{"README": "hello\n"})
	w.mem.SetHead("refs/heads/main")
	return w
}

// branch makes a branch with files.
func (w *world) branch(name string, files map[string]string) wire.ID {
	w.Helper()
	snap, err := commitFiles(files, nil, "first", w.now())
	w.ok(err)
	_, err = w.mem.Push(w.Context(), wire.PushRequest{Updates: []wire.RefUpdate{{Name: "refs/heads/" + name, New: snap.Commit}}, Objects: snap.Objects})
	w.ok(err)
	return snap.Commit
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.ahead)
}

// later lets time pass.
func (w *world) later(d time.Duration) {
	w.mu.Lock()
	w.ahead += d
	w.mu.Unlock()
}

// sleep lets time pass for who waits.
func (w *world) sleep(ctx context.Context, d time.Duration) error {
	w.later(d)
	return ctx.Err()
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// job is one job. The zero value is a first attempt of a new run.
type aJob struct {
	run     string
	attempt int
	ev      event.Event
	in      ci.Inputs
	job     ci.Job
	out     *heard
}

// start runs a job that must not panic.
func (w *world) run(a aJob) (ci.Outcome, error) {
	w.Helper()
	return w.runner(&a).Run(w.Context(), a.ev)
}

func (w *world) runner(a *aJob) *Runner {
	w.mu.Lock()
	w.runs++
	if a.run == "" {
		a.run = fmt.Sprint(1000 + w.runs)
	}
	w.mu.Unlock()
	a.attempt = max(a.attempt, 1)
	if a.out == nil {
		a.out = &heard{}
	}
	job := a.job
	job.Run, job.Name, job.Attempt = a.run, "step", a.attempt
	if len(a.in.Needs) > 0 {
		job.Name = "after"
	}
	job.ServerURL, job.Repository, job.StateBranch = "https://forge.example", "o/r", "uwf-state"
	if job.WorkflowFile == "" {
		job.WorkflowFile = "uwf.yml"
	}
	remote := w.remote
	if w.wrap != nil {
		remote = w.wrap(remote)
	}
	store := gitcas.Open(remote, gitcas.Options{Now: w.now, Sleep: w.sleep, Jitter: func() float64 { return 0 }, ExpectStore: a.ev.Inputs["store"]})
	var folder step.Folder = &memFolder{w: w, dir: w.TempDir()}
	if w.disk {
		folder = newDiskFolder(w, remote)
	}
	hook := func(point string) {
		if w.hook != nil {
			w.hook(point)
		}
	}
	e := &step.Stepper{Agent: &scripted{w: w, folder: folder}, Folder: folder, Repository: repositoryOf(folder), Engine: &thread.Engine{
		Store: store, Redact: w.redact, Settings: settings{w}, Clock: clock{w},
		Nonce: rand.Text, Who: lease.Identity{Run: a.run, CIRun: a.run, Job: job.Name, Attempt: a.attempt, Host: "h" + a.run, PID: 1}, Hook: hook,
	}}
	if w.pending != "" {
		e.Unpushed = &unpushed.Folder{Dir: w.pending}
	}
	return &Runner{
		Engine: e, Forge: w.forge, Work: &worker{w: w, e: e}, Definitions: definitions{w}, Base: w.tip, Inputs: a.in, Job: job, Out: a.out,
		Now: w.now, Rand: rand.Reader, Hook: hook,
	}
}

func (w *world) tip(_ context.Context, branch string) (string, error) {
	id, ok := w.mem.Refs()["refs/heads/"+branch]
	if !ok {
		return "", fmt.Errorf("no branch %s", branch)
	}
	return id.String(), nil
}

// drain runs the jobs that were dispatched, until there are no more, and gives how
// many there were.
func (w *world) drain() int {
	w.Helper()
	for n := 0; ; n++ {
		d, ok := w.forge.take()
		if !ok {
			return n
		}
		if n > 200 {
			w.Fatal("jobs go on for ever")
		}
		w.hop(d)
	}
}

// hop runs a job that was dispatched.
func (w *world) hop(d dispatched) (ci.Outcome, error) {
	w.Helper()
	return w.run(aJob{ev: manual(d)})
}

func manual(d dispatched) event.Event {
	return event.Event{Name: "workflow_dispatch", Kind: event.Manual, Sender: event.User{Login: "github-actions[bot]", Bot: true}, Inputs: d.inputs}
}

func issue(n int, labels ...string) *event.Subject {
	return &event.Subject{Number: n, Title: "It breaks", Body: "Please mend it.<!-- hidden -->", Author: "stranger", AuthorID: userID("stranger"), Open: true, Quiet: true, URL: fmt.Sprintf("https://forge.example/o/r/issues/%d", n), Labels: labels}
}

func labeled(n int) event.Event {
	return event.Event{Name: "issues", Action: "labeled", Kind: event.Labeled, Sender: event.User{Login: "owner", ID: userID("owner")}, Subject: issue(n, "uwf"), Added: []string{"uwf"}}
}

// says is a comment with a command.
func (w *world) says(n int, login, body string) event.Event {
	w.Helper()
	c, err := event.ParseCommand(body)
	w.ok(err)
	who := event.User{Login: login, ID: userID(login)}
	w.mu.Lock()
	w.runs++
	id := int64(5000 + w.runs)
	w.mu.Unlock()
	url := fmt.Sprintf("https://forge.example/o/r/issues/%d#issuecomment-%d", n, id)
	w.forge.mu.Lock()
	w.forge.said = append(w.forge.said, forge.Comment{ID: id, Body: body, Author: login, AuthorID: who.ID, URL: url, Number: n, Created: w.now()})
	w.forge.mu.Unlock()
	s := issue(n, "uwf")
	s.Labels, s.Quiet = append(s.Labels, w.forge.issue(n).Labels...), false
	return event.Event{Name: "issue_comment", Action: "created", Kind: event.Comment, Sender: who, CommentAuthor: who, CommentID: id, CommentURL: url, CommentBody: body, Subject: s, Command: c}
}

// view is the store as it is now.
func (w *world) view(ids ...gitcas.ThreadID) *gitcas.View {
	w.Helper()
	v, err := gitcas.Open(w.mem, gitcas.Options{Now: w.now, Sleep: w.sleep}).Load(w.Context(), ids...)
	w.ok(err)
	return v
}

// ended are the threads that are over.
func (w *world) ended() []gitcas.Ended {
	w.Helper()
	s := gitcas.Open(w.mem, gitcas.Options{Now: w.now, Sleep: w.sleep})
	v, err := s.Load(w.Context())
	w.ok(err)
	var out []gitcas.Ended
	w.ok(v.History(w.Context(), time.Time{}, func(e gitcas.Ended) error { out = append(out, e); return nil }))
	return out
}

// only is the one thread that is alive.
func (w *world) only() (gitcas.ThreadID, gitcas.Entry) {
	w.Helper()
	all := w.view().Threads()
	if len(all) != 1 {
		w.Fatalf("%d threads are alive, want 1: %v", len(all), all)
	}
	id := slices.Collect(maps.Keys(all))[0]
	return id, all[id]
}

// sticky is the comments with a thread's marker on an issue.
func (w *world) stickies(n int) []string {
	var out []string
	for _, c := range w.forge.comments[n] {
		if _, ok := report.FindMarker(c.Body); ok {
			out = append(out, c.Body)
		}
	}
	return out
}

// delivered checks the one end that everything has to come to.
func (w *world) delivered(n int, steps int) gitcas.Ended {
	w.Helper()
	ended := w.ended()
	if len(w.view().Threads()) != 0 || len(ended) != 1 {
		w.Fatalf("alive: %v, ended: %v", w.view().Threads(), ended)
	}
	e := ended[0]
	if e.Reason != gitcas.ReasonEnded || len(e.Steps) != steps {
		w.Errorf("the thread is %s after %d steps, want ended after %d", e.Reason, len(e.Steps), steps)
	}
	if len(w.forge.pulls) != 1 || e.PR != w.forge.pulls[0].Number {
		w.Errorf("%d pull requests; history has %d", len(w.forge.pulls), e.PR)
	}
	if got := w.stickies(n); len(got) != 1 || !strings.Contains(got[0], fmt.Sprintf("#%d", e.PR)) {
		w.Errorf("the comments are %q", got)
	}
	for ref := range w.mem.Refs() {
		if strings.HasPrefix(ref, "refs/uwf/claims/") {
			w.Errorf("%s is left", ref)
		}
	}
	return e
}

// heard is an Output that remembers.
type heard struct {
	mu                sync.Mutex
	notices, warnings []string
	errors            []ci.Annotation
	summary           string
}

func (h *heard) Notice(m string) { h.mu.Lock(); defer h.mu.Unlock(); h.notices = append(h.notices, m) }
func (h *heard) Warning(m string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.warnings = append(h.warnings, m)
}
func (h *heard) Error(a ci.Annotation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.errors = append(h.errors, a)
}
func (h *heard) Summary(m string) { h.mu.Lock(); defer h.mu.Unlock(); h.summary = m }

type noSecrets struct{}

func (noSecrets) Value(v any) (any, int, error)         { return v, 0, nil }
func (noSecrets) Find([]byte) ([]redact.Finding, error) { return nil, nil }
func (noSecrets) AllowsFile(string) bool                { return false }

type settings struct{ w *world }

func (settings) Agent(*workflow.Definition, string, string) (string, string, error) {
	return "scripted", "x", nil
}
func (settings) Model(string, string) *task.Model        { return nil }
func (settings) ExtractModel(string, string) *task.Model { return nil }
func (s settings) CheckPrices(_, _, _ string) error      { return s.w.prices }
func (s settings) Limits(string) moderator.Limits        { return s.w.limits }
func (s settings) MonthLimits() moderator.MonthLimits    { return s.w.month }
func (settings) Timeout() time.Duration                  { return 0 }

type clock struct{ w *world }

func (c clock) Now() time.Time { return c.w.now() }
func (c clock) After(d time.Duration) (<-chan time.Time, func()) {
	return deadline.SystemClock{}.After(d)
}

type worker struct {
	w *world
	e *step.Stepper
	n int
}

func (k *worker) PrepareFolder(context.Context, gitcas.ThreadID) error { return k.w.use }
func (k *worker) RememberFolder(context.Context)                       {}
func (k *worker) RemoveFolder(context.Context, gitcas.ThreadID) error  { return nil }
func (k *worker) NextIdentity() (lease.Identity, error) {
	k.n++
	who := k.e.Who
	who.Run = fmt.Sprintf("%s-%d", strings.SplitN(who.Run, "-", 2)[0], k.n+1)
	return who, nil
}

// definitions has one workflow: a, which may ask, then b, which approves.
type definitions struct{ w *world }

func schemaOf(role string) map[string]any {
	statuses := map[string][]any{"a": {"done", "ask"}, "b": {"rejected", "approved"}}[role]
	return map[string]any{
		"type": "object", "title": "two." + role, "required": []any{"$status"},
		"properties": map[string]any{"$status": map[string]any{"enum": statuses}, "note": map[string]any{"type": "string"}},
	}
}

func edge(role, prompt string) map[string]any {
	return map[string]any{"role": role, "prompt": prompt, "location": nil}
}

func (d definitions) Resolve(context.Context, string) (Definition, error) {
	if d.w.resolve != nil {
		return Definition{}, d.w.resolve
	}
	nodes := map[node.Hash]node.Node{}
	add := func(typ node.Hash, payload any) node.Hash {
		n, h, err := node.New(typ, payload, time.UnixMilli(0))
		d.w.ok(err)
		nodes[h] = n
		return h
	}
	role := func(name string) map[string]any {
		return map[string]any{"description": name, "goal": "g", "capabilities": []any{}, "procedure": "p", "output": "o", "frontmatter": string(add(node.MetaSchema, schemaOf(name)))}
	}
	h := add(record.WorkflowSchema, map[string]any{
		"name": "two", "description": "d", "roles": map[string]any{"a": role("a"), "b": role("b")},
		"graph": map[string]any{
			"$START": map[string]any{"_": edge("a", "begin"), "resume": edge("b", "look again")},
			"a":      map[string]any{"done": edge("b", "check"), "ask": edge("$SUSPEND", "{{{note}}}")},
			"b":      map[string]any{"rejected": edge("a", "again"), "approved": edge("$END", "")},
		},
	})
	all := maps.Clone(nodes)
	maps.Copy(all, record.Schemas())
	def, err := workflow.FromNode(node.Map(all), h)
	return Definition{Hash: h, Nodes: nodes, Definition: def}, err
}

// scripted is the agent.
type scripted struct {
	w      *world
	folder step.Folder
}

func (s *scripted) Run(_ context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
	m.Add(100, 10, 0.01)
	s.w.mu.Lock()
	s.w.ran = append(s.w.ran, t.Role)
	say := s.w.say
	s.w.mu.Unlock()
	status := map[string]string{"a": "done", "b": "approved"}[t.Role]
	fields, files := map[string]any{"$status": status, "note": "a note"}, map[string]string{}
	if t.Role == "a" {
		files["work"] = fmt.Sprintf("step %d\n", t.Step)
	}
	if say != nil {
		var err error
		if fields, files, err = say(t); err != nil {
			return task.Draft{}, err
		}
	}
	if mem, ok := s.folder.(*memFolder); ok {
		maps.Copy(mem.files, files)
	} else {
		for name, text := range files {
			path := filepath.Join(s.folder.Dir(), name)
			s.w.ok(os.MkdirAll(filepath.Dir(path), 0o750))
			s.w.ok(os.WriteFile(path, []byte(text), 0o600))
		}
	}
	nodes := map[node.Hash]node.Node{}
	add := func(typ node.Hash, payload any) node.Hash {
		n, h, err := node.New(typ, payload, s.w.now())
		s.w.ok(err)
		nodes[h] = n
		return h
	}
	step := record.Step{
		Start: t.Start, Prev: t.Prev, Role: t.Role, Agent: t.Agent, EdgePrompt: t.EdgePrompt, StartedAtMs: t.StartedAtMs, CompletedAtMs: t.StartedAtMs, Cwd: t.Cwd,
		Output: add(t.OutputSchema, fields),
		Detail: add(record.MockDetailSchema, map[string]any{"sessionId": "s", "role": t.Role, "stepIndex": int64(t.Step)}),
	}
	n, h, err := step.Node(s.w.now())
	s.w.ok(err)
	nodes[h] = n
	return task.Draft{Handle: h, Nodes: nodes}, nil
}

// repositoryOf is what a folder reads commits from; nil: only those on disk can.
func repositoryOf(f step.Folder) step.Repository {
	r, _ := f.(step.Repository)
	return r
}

// diskFolder is a folder as the action has it.
type diskFolder struct {
	*workspace.Workspace
	dir string
}

func (d *diskFolder) Restore(ctx context.Context, commit, _ wire.ID) error {
	return d.Workspace.Restore(ctx, commit)
}

func newDiskFolder(w *world, remote wire.Remote) *diskFolder {
	dir := w.TempDir()
	ws, err := workspace.Open(dir, remote)
	w.ok(err)
	return &diskFolder{ws, dir}
}

func (d *diskFolder) Dir() string                         { return d.dir }
func (d *diskFolder) Sub(location string) (string, error) { return filepath.Join(d.dir, location), nil }

// memFolder is a flat folder of text files. On the disk it is empty.
type memFolder struct {
	w     *world
	dir   string
	files map[string]string
}

func (m *memFolder) Dir() string                         { return m.dir }
func (m *memFolder) Sub(location string) (string, error) { return filepath.Join(m.dir, location), nil }

func (m *memFolder) ListLeftOut() []workspace.LeftOut { return nil }

func (m *memFolder) Restore(_ context.Context, commit, _ wire.ID) error {
	files, err := m.read(commit)
	m.files = files
	return err
}

func (m *memFolder) read(commit wire.ID) (map[string]string, error) {
	o, ok := m.w.mem.Get(commit)
	if !ok {
		return nil, fmt.Errorf("no commit %s", commit)
	}
	c, err := gitobj.DecodeCommit(o.Data)
	if err != nil {
		return nil, err
	}
	tree, _ := m.w.mem.Get(c.Tree)
	entries, err := gitobj.DecodeTree(tree.Data)
	files := map[string]string{}
	for _, e := range entries {
		b, _ := m.w.mem.Get(e.ID)
		files[e.Name] = string(b.Data)
	}
	return files, err
}

func (m *memFolder) TakeSnapshot(_ context.Context, req workspace.SnapshotRequest) (workspace.Snapshot, error) {
	before := map[string]string{}
	if len(req.Parents) > 0 {
		var err error
		if before, err = m.read(req.Parents[0]); err != nil {
			return workspace.Snapshot{}, err
		}
	}
	snap, err := commitFiles(m.files, req.Parents, req.Message, req.When)
	if err == nil && maps.Equal(before, m.files) {
		snap = workspace.Snapshot{Tree: snap.Tree, Unchanged: true}
		if len(req.Parents) > 0 {
			snap.Commit = req.Parents[0]
		}
	}
	return snap, err
}

func commitFiles(files map[string]string, parents []wire.ID, message string, at time.Time) (workspace.Snapshot, error) {
	var snap workspace.Snapshot
	var entries []gitobj.Entry
	for _, name := range slices.Sorted(maps.Keys(files)) {
		o := wire.NewObject(plumbing.BlobObject, []byte(files[name]))
		entries = append(entries, gitobj.Entry{Name: name, Mode: filemode.Regular, ID: o.ID})
		snap.Objects = append(snap.Objects, wire.PackObject{Object: o})
	}
	data, err := gitobj.EncodeTree(entries)
	if err != nil {
		return snap, err
	}
	tree := wire.NewObject(plumbing.TreeObject, data)
	who := gitobj.Signature{Name: "t", Email: "t@localhost", When: at}
	data, err = gitobj.EncodeCommit(gitobj.Commit{Tree: tree.ID, Parents: parents, Author: who, Committer: who, Message: message})
	if err != nil {
		return snap, err
	}
	commit := wire.NewObject(plumbing.CommitObject, data)
	snap.Objects = append(snap.Objects, wire.PackObject{Object: tree}, wire.PackObject{Object: commit})
	snap.Commit, snap.Tree = commit.ID, tree.ID
	return snap, nil
}

func gitcasWork(id gitcas.ThreadID) string { return layout.WorkBranch(id) }

// prompt is what an ended thread began with.
func (w *world) prompt(e gitcas.Ended) string {
	w.Helper()
	s := gitcas.Open(w.mem, gitcas.Options{Now: w.now, Sleep: w.sleep})
	v, err := s.Load(w.Context())
	w.ok(err)
	past, err := v.LoadEnded(w.Context(), e)
	w.ok(err)
	c, err := past.ReadChain(w.Context(), e.Thread)
	w.ok(err)
	return c.Start.Prompt
}

// codeOf is the exit code that a command gives a job which ended with err: 0 for a green one.
func codeOf(err error) int {
	if kind := life.KindOf(err); err == nil || kind != life.KindDone {
		return int(kind)
	}
	return int(life.KindFailed)
}
