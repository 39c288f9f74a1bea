package thread_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/redact"
	"github.com/united-workforce/uwf/engine/step"
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
)

// simWorkflow is a → b, b sends back or approves, a may ask; after the end a begins
// again.
var simWorkflow = map[string]any{
	"name": "sim", "description": "d",
	"roles": map[string]any{"a": simRole("a"), "b": simRole("b")},
	"graph": map[string]any{
		"$START": map[string]any{"_": simEdge("a", "begin"), "resume": simEdge("a", "once more")},
		"a":      map[string]any{"done": simEdge("b", "check"), "ask": simEdge("$SUSPEND", "what now?")},
		"b":      map[string]any{"rejected": simEdge("a", "again"), "approved": simEdge("$END", "")},
	},
}

func simEdge(role, prompt string) map[string]any {
	return map[string]any{"role": role, "prompt": prompt, "location": nil}
}

func simSchema(role string) map[string]any {
	statuses := map[string][]any{"a": {"done", "ask"}, "b": {"rejected", "approved"}}[role]
	return map[string]any{
		"type": "object", "title": "sim." + role, "required": []any{"$status"},
		"properties": map[string]any{"$status": map[string]any{"enum": statuses}, "note": map[string]any{"type": "string"}},
	}
}

func simRole(role string) map[string]any {
	h, err := node.HashOf(node.MetaSchema, simSchema(role))
	if err != nil {
		return nil
	}
	return map[string]any{"description": role, "goal": "g", "capabilities": []any{}, "procedure": "p", "output": "o", "frontmatter": string(h)}
}

func simStart(id gitcas.ThreadID) thread.StartRequest {
	nodes := map[node.Hash]node.Node{}
	add := func(typ node.Hash, payload any) node.Hash {
		n, h, err := node.New(typ, payload, time.UnixMilli(0))
		if err != nil {
			return ""
		}
		nodes[h] = n
		return h
	}
	add(node.MetaSchema, simSchema("a"))
	add(node.MetaSchema, simSchema("b"))
	wf := record.Schemas()[record.WorkflowSchema]
	nodes[record.WorkflowSchema] = wf
	h := add(record.WorkflowSchema, simWorkflow)
	return thread.StartRequest{ID: id, Workflow: h, Nodes: nodes, Prompt: "do it for " + string(id)}
}

// engine is an actor's engine.
func (w *world) engine(a *actor) *engine {
	folder := &simFolder{w: w, a: a, files: map[string]string{}}
	return &engine{&step.Stepper{Agent: &simAgent{w: w, a: a, folder: folder}, Folder: folder, Unpushed: &simDisk{w: w, a: a}, Engine: &thread.Engine{
		Store: w.store(a), Redact: noSecrets{}, Settings: simSettings{w.timeout}, Clock: simClock{a: a},
		Nonce: func() string { a.claims++; return fmt.Sprintf("p%d-%d", a.pid, a.claims) },
		Who:   w.identity(a),
		Observe: func(e thread.Event) {
			if e.Kind == "notice" && !a.crashed {
				w.say("%s: notice: %s", a.name, e.Text)
				if strings.Contains(e.Text, "can't be brought in") {
					w.problem("%s puts a sealed step aside that an honest job wrote: %s", a.name, e.Text)
				}
			}
		},
	}}}
}

type noSecrets struct{}

func (noSecrets) Value(v any) (any, int, error)         { return v, 0, nil }
func (noSecrets) Find([]byte) ([]redact.Finding, error) { return nil, nil }
func (noSecrets) AllowsFile(string) bool                { return false }

type simSettings struct{ timeout time.Duration }

func (simSettings) Agent(*workflow.Definition, string, string) (string, string, error) {
	return "sim", "sim", nil
}
func (simSettings) Model(string, string) *task.Model        { return nil }
func (simSettings) ExtractModel(string, string) *task.Model { return nil }
func (simSettings) CheckPrices(_, _, _ string) error        { return nil }
func (simSettings) MonthLimits() moderator.MonthLimits      { return moderator.MonthLimits{} }
func (simSettings) Limits(string) moderator.Limits {
	return moderator.Limits{MaxSteps: 1 << 20, MaxStepsPerRole: 1 << 20}
}
func (s simSettings) Timeout() time.Duration { return s.timeout }

// simAgent waits at gates for a while, edits the folder and answers; or fails.
type simAgent struct {
	w      *world
	a      *actor
	folder *simFolder
}

func (g *simAgent) Run(ctx context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
	g.w.agentStarts(g.a, t)
	g.w.setWorking(g.a, &t)
	defer g.w.setWorking(g.a, nil)
	for range 1 + g.a.rng.IntN(3) {
		g.w.waitIn(ctx, g.a, "agent "+t.Role)
		m.Add(10, 1, 0)
		if g.a.rng.IntN(4) == 0 {
			tick := time.NewTimer(time.Duration(g.a.rng.IntN(200)) * g.w.timeout / 600)
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
			tick.Stop()
		}
		if ctx.Err() != nil {
			return task.Draft{}, &task.AgentError{Agent: "sim", Reason: "stopped", Err: context.Cause(ctx)}
		}
	}
	file := fmt.Sprintf("step-%02d-%s-%s", t.Step, g.a.run, t.Role)
	g.folder.files[file] = g.a.name + "\n"
	if g.a.rng.IntN(4) == 0 {
		g.folder.files["shared"] += g.a.name + "\n"
	}
	if g.w.chaos.Load() && g.a.rng.IntN(12) == 0 {
		return task.Draft{}, &task.AgentError{Agent: "sim", Reason: "gave up"}
	}
	d, err := g.draft(t, g.status(t.Role))
	if err == nil {
		g.w.agentDone(g.a, t)
	}
	return d, err
}

func (w *world) setWorking(a *actor, t *task.Task) {
	w.mu.Lock()
	a.working, a.lost = t, time.Time{}
	w.mu.Unlock()
}

func (g *simAgent) status(role string) string {
	n := g.a.rng.IntN(10)
	switch {
	case role == "a" && g.w.chaos.Load() && n == 0:
		return "ask"
	case role == "a":
		return "done"
	case g.w.chaos.Load() && n < 5:
		return "rejected"
	}
	return "approved"
}

func (g *simAgent) draft(t task.Task, status string) (task.Draft, error) {
	d := task.Draft{Nodes: map[node.Hash]node.Node{}}
	add := func(typ node.Hash, payload any) (node.Hash, error) {
		n, h, err := node.New(typ, payload, time.Now())
		d.Nodes[h] = n
		return h, err
	}
	out, err := add(t.OutputSchema, map[string]any{"$status": status, "note": g.a.name})
	if err != nil {
		return d, err
	}
	detail, err := add(record.MockDetailSchema, map[string]any{"sessionId": g.a.name, "role": t.Role, "stepIndex": int64(t.Step)})
	if err != nil {
		return d, err
	}
	n, h, err := record.Step{
		Start: t.Start, Prev: t.Prev, Role: t.Role, Output: out, Detail: detail, Agent: t.Agent,
		EdgePrompt: t.EdgePrompt, StartedAtMs: t.StartedAtMs, CompletedAtMs: time.Now().UnixMilli(), Cwd: t.Cwd,
	}.Node(time.Now())
	d.Nodes[h], d.Handle = n, h
	return d, err
}

// simFolder is a flat folder of text files.
type simFolder struct {
	w     *world
	a     *actor
	files map[string]string
	tree  wire.ID
}

func (f *simFolder) Dir() string { return "/nowhere" }

func (f *simFolder) Sub(string) (string, error) { return "", errSim }

func (f *simFolder) ListLeftOut() []workspace.LeftOut { return nil }

func (f *simFolder) Restore(ctx context.Context, commit, _ wire.ID) error {
	if _, err := f.a.eng.Store.Remote().Fetch(ctx, wire.FetchRequest{Wants: []wire.ID{commit}, Depth: 1}); err != nil {
		return err
	}
	files, tree, err := f.w.filesOf(commit)
	f.files, f.tree = files, tree
	return err
}

func (f *simFolder) TakeSnapshot(_ context.Context, req workspace.SnapshotRequest) (workspace.Snapshot, error) {
	snap, err := commitFiles(f.files, req.Parents, req.Message)
	snap.Unchanged = snap.Tree == f.tree
	return snap, err
}

// commitFiles makes the objects of a commit that holds the files.
func commitFiles(files map[string]string, parents []wire.ID, message string) (workspace.Snapshot, error) {
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
	who := gitobj.Signature{Name: "sim", Email: "sim@localhost", When: time.Now()}
	data, err = gitobj.EncodeCommit(gitobj.Commit{Tree: tree.ID, Parents: parents, Author: who, Committer: who, Message: message})
	if err != nil {
		return snap, err
	}
	commit := wire.NewObject(plumbing.CommitObject, data)
	snap.Objects = append(snap.Objects, wire.PackObject{Object: tree}, wire.PackObject{Object: commit})
	snap.Commit, snap.Tree = commit.ID, tree.ID
	return snap, nil
}

// filesOf reads a commit's files from the remote, without a gate.
func (w *world) filesOf(commit wire.ID) (map[string]string, wire.ID, error) {
	c, err := w.commitOf(commit)
	if err != nil {
		return nil, wire.ZeroID, err
	}
	t, ok := w.mem.Get(c.Tree)
	if !ok {
		return nil, wire.ZeroID, errors.New("no tree " + c.Tree.String())
	}
	entries, err := gitobj.DecodeTree(t.Data)
	files := map[string]string{}
	for _, e := range entries {
		b, _ := w.mem.Get(e.ID)
		files[e.Name] = string(b.Data)
	}
	return files, c.Tree, err
}

func (w *world) commitOf(id wire.ID) (gitobj.Commit, error) {
	o, ok := w.mem.Get(id)
	if !ok {
		return gitobj.Commit{}, fmt.Errorf("no commit %s", id)
	}
	return gitobj.DecodeCommit(o.Data)
}

// personPushes puts a commit of a person on the work branch, if there is one.
func (w *world) personPushes(name string) {
	ref := "refs/heads/" + layout.WorkBranch(w.main)
	tip, ok := w.mem.Refs()[ref]
	if !ok {
		return
	}
	files, _, err := w.filesOf(tip)
	if err != nil {
		w.fail("read the work branch: %v", err)
	}
	files["from-"+name] = "by hand\n"
	if w.rng.IntN(6) == 0 {
		files["shared"] += name + "\n"
	}
	w.pushFiles(ref, tip, files, name)
}

func (w *world) pushFiles(ref string, tip wire.ID, files map[string]string, name string) {
	snap, err := commitFiles(files, []wire.ID{tip}, "by "+name)
	if err != nil {
		w.fail("%v", err)
	}
	_, err = w.mem.Push(context.Background(), wire.PushRequest{
		Updates: []wire.RefUpdate{{Name: ref, Old: tip, New: snap.Commit}}, Objects: snap.Objects,
	})
	if err != nil {
		w.fail("a person's push: %v", err)
	}
	w.model.byHand[snap.Commit] = true
}

// mendBranch does what the message of a diverged branch asks a person to do:
// a merge commit that contains both sides.
func (w *world) mendBranch() {
	entry, ok := w.entry(w.main)
	if !ok || entry.Suspended == nil || !strings.Contains(entry.Suspended.Reason, "branch ") {
		return
	}
	ref := "refs/heads/" + entry.Work.Branch
	tip, there := w.mem.Refs()[ref]
	recorded := plumbing.NewHash(entry.Work.Commit)
	if !there || recorded.IsZero() || w.reaches(tip, recorded) {
		return
	}
	files, _, err := w.filesOf(tip)
	if err != nil {
		w.fail("%v", err)
	}
	theirs, _, err := w.filesOf(recorded)
	if err != nil {
		w.fail("%v", err)
	}
	maps.Copy(files, theirs)
	snap, err := commitFiles(files, []wire.ID{tip, recorded}, "merge by hand")
	if err != nil {
		w.fail("%v", err)
	}
	if _, err := w.mem.Push(context.Background(), wire.PushRequest{Updates: []wire.RefUpdate{{Name: ref, Old: tip, New: snap.Commit}}, Objects: snap.Objects}); err != nil {
		w.fail("merge by hand: %v", err)
	}
	w.model.mended = true
}
