package step_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/redact"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/engine/step/screen"
	"github.com/united-workforce/uwf/engine/step/seal"
	"github.com/united-workforce/uwf/engine/step/unpushed"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
)

var someFiles = map[string]string{"a": "1", "dir/b": "2", "dir/c": "3", "run": "4", "link": "-> a", "gone": "5"}

// TestTwoJobs does both steps of a thread, each in two jobs that share nothing but
// the repository and the folder between them.
func TestTwoJobs(t *testing.T) {
	f := newServer(t, someFiles)
	head := f.start()
	before, pushes := f.refs(), f.pushes.Load()
	dir, err := f.firstJob(head, works(t, "first", map[string]string{
		"a": "new", "gone": "", "dir": "now a file", "run": "+4", "link": "-> run", "copy": "1", "deep/er/x": "6", "with space ü": "7",
	}))
	must(t, err)
	if f.pushes.Load() != pushes || !maps.Equal(f.refs(), before) {
		t.Error("the first job wrote to the repository")
	}
	res, err := f.secondJob(dir)
	must(t, err)
	if res.Result != "done" || res.NextRole != "b" || res.Role != "a" || res.Usage.InputTokens != 100 || res.Usage.Turns != 1 || res.Usage.CostUSD != 0.5 {
		t.Errorf("%+v, usage %+v", res, res.Usage)
	}
	want := map[string]string{"a": "new", "dir": "now a file", "run": "+4", "link": "-> run", "copy": "1", "deep/er/x": "6", "with space ü": "7"}
	refs := f.refs()
	if got := f.contents(refs["refs/heads/"+layout.WorkBranch(testThread)]); !maps.Equal(got, want) {
		t.Errorf("the work branch holds %q", got)
	}
	if _, claimed := refs[layout.ClaimRef(testThread)]; claimed {
		t.Error("a claim is left")
	}

	dir, err = f.firstJob(res.Head, works(t, "second", map[string]string{"a": "newer"}))
	must(t, err)
	long := withChangedRecord(t, f.readLeft(dir), func(s *record.Step) { s.Usage.DurationMs = 3_600_000 })
	if res, err = f.commitLeft(long); err != nil || !res.Done || res.Usage.DurationMs < 3_600_000 {
		t.Fatalf("%+v %v", res, err)
	}
	_, v, e := f.view()
	chain, err := v.ReadChain(t.Context(), testThread)
	must(t, err)
	if len(chain.Steps) != 2 || e.Status != gitcas.StatusEnded {
		t.Errorf("%d steps, %s", len(chain.Steps), e.Status)
	}
	for i, s := range chain.Steps {
		body, err := v.In(t.Context(), gitcas.Place{Thread: testThread, Of: s.Hash}).Get(*s.Body)
		must(t, err)
		if want := []string{"body: first", "body: second"}[i]; body.Payload != want || s.Agent != "test" || s.Usage.DurationMs < 0 || !strings.HasPrefix(s.Run.ID, "two-") {
			t.Errorf("step %d: %v, %+v by %+v", i, body.Payload, s.Usage, s.Run)
		}
	}
}

// TestTwiceCommitted: the same artifact makes one step, however often it is brought.
func TestTwiceCommitted(t *testing.T) {
	f := newForge(t, someFiles)
	dir, err := f.firstJob(f.start(), works(t, "x", map[string]string{"a": "2"}))
	must(t, err)
	_, err = f.secondJob(dir)
	must(t, err)
	_, _, before := f.view()
	_, err = f.secondJob(dir)
	var failed *life.FailedError
	if !errors.As(err, &failed) || !strings.Contains(err.Error(), "another step") {
		t.Errorf("%v", err)
	}
	_, _, after := f.view()
	if after.Head != before.Head || after.Work != before.Work {
		t.Errorf("%+v became %+v", before, after)
	}
}

// TestOfAnotherStep: what a job left counts for one step of one thread alone, and makes the
// step fail otherwise. What is of this step, and can't be committed, is kept and charged all the
// same.
func TestOfAnotherStep(t *testing.T) {
	const none, nodes, all = "", "100 tokens", "100 tokens, the work"
	for name, c := range map[string]struct {
		change            func(u unpushed.Step) unpushed.Step
		phase, says, kept string
	}{
		"head":   {func(u unpushed.Step) unpushed.Step { u.Entry.Head = u.Handle; return u }, "agent", "another step", none},
		"status": {func(u unpushed.Step) unpushed.Step { u.Entry.Status = gitcas.StatusSuspended; return u }, "agent", "people have said something else to the thread since the agent began, or changed it", all},
		"words": {func(u unpushed.Step) unpushed.Step {
			u.Entry.Next = &gitcas.Next{Role: "a", Answer: u.Handle}
			return u
		}, "agent", "people have said something else to the thread since the agent began, or changed it", all},
		"agent": {func(u unpushed.Step) unpushed.Step {
			return withChangedRecord(t, u, func(s *record.Step) { s.Agent = "other" })
		}, "agent", "give the inputs agent and config alike", all},
		"role": {func(u unpushed.Step) unpushed.Step {
			return withChangedRecord(t, u, func(s *record.Step) { s.Role = "b" })
		}, "seal", `role "b"`, all},
		"start": {func(u unpushed.Step) unpushed.Step {
			return withChangedRecord(t, u, func(s *record.Step) { s.Start = s.Output })
		}, "seal", "another thread", all},
		"former": {func(u unpushed.Step) unpushed.Step {
			return withChangedRecord(t, u, func(s *record.Step) { s.Prev = &s.Output })
		}, "seal", "does not follow", all},
		"no step": {func(u unpushed.Step) unpushed.Step { u.Handle = "0000000000000"; return u }, "agent", "left no step", none},
		"output of another role": {func(u unpushed.Step) unpushed.Step {
			return withChangedRecord(t, u, func(s *record.Step) { s.Output = s.Detail })
		}, "seal", "output is of type", all},
		"an output that isn't there": {func(u unpushed.Step) unpushed.Step {
			return withChangedRecord(t, u, func(s *record.Step) { s.Output = "0000000000000" })
		}, "seal", "output", all},
		"a commit that isn't there": {func(u unpushed.Step) unpushed.Step { u.Work.From = u.Work.Commit; return u }, "workspace", u404, nodes},
		"no base":                   {func(u unpushed.Step) unpushed.Step { u.Work.From = wire.ZeroID; return u }, "workspace", "not among the objects at hand", nodes},
		"no commit":                 {func(u unpushed.Step) unpushed.Step { u.Work.Commit = u.Work.From; return u }, "workspace", "tree", nodes},
	} {
		t.Run(name, func(t *testing.T) {
			f := newForge(t, someFiles)
			head := f.start()
			dir, err := f.firstJob(head, works(t, "x", map[string]string{"new": "2"}))
			must(t, err)
			_, err = f.commitLeft(c.change(f.readLeft(dir)))
			var failed *life.FailedError
			if !errors.As(err, &failed) || failed.Phase != c.phase || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
			if _, _, e := f.view(); e.Head != head || len(e.Attempts) != 1 {
				t.Errorf("the entry is %+v", e)
			}
			if got := f.keptOf(f.attempt()); got != c.kept {
				t.Errorf("of it there was kept %q, want %q", got, c.kept)
			}
		})
	}
}

// keptOf tells what an attempt was charged with, and whether the file "new" is in it.
func (f *forge) keptOf(a gitcas.Attempt) string {
	f.Helper()
	var kept []string
	for _, n := range a.Nodes {
		if s, err := record.ParseStep(n.Node); err == nil && s.Usage.InputTokens > 0 {
			kept = append(kept, fmt.Sprintf("%d tokens", s.Usage.InputTokens))
		}
	}
	if strings.Contains(f.treeOf(f.refs()[f.attemptRef()]), "new") {
		kept = append(kept, "the work")
	}
	return strings.Join(kept, ", ")
}

// u404 is what the remote says of a commit that it doesn't have.
const u404 = "not found"

// TestForeignBase: the agent began at a commit of the repository that is not the thread's.
func TestForeignBase(t *testing.T) {
	f := newForge(t, someFiles)
	dir, err := f.firstJob(f.start(), works(t, "x", nil))
	must(t, err)
	u := f.readLeft(dir)
	u.Work.From = f.push(map[string]string{"evil": "x"}, "refs/heads/elsewhere", wire.ZeroID)
	_, err = f.commitLeft(u)
	var failed *life.FailedError
	if !errors.As(err, &failed) || failed.Phase != "workspace" || !strings.Contains(err.Error(), "not the thread's") {
		t.Errorf("%v", err)
	}
}

// TestPhases: a job can say in which phase its step failed, but neither that a person stopped it
// nor that it was interrupted: those attempts are forgiven.
func TestPhases(t *testing.T) {
	for phase, want := range map[string]string{"seal": "seal", "extract": "extract", "workspace": "workspace", "prepare": "prepare", "agent": "agent", life.PhaseStopped: "agent", life.PhaseInterrupted: "agent", "a\nb": "agent"} {
		f := newForge(t, someFiles)
		dir, err := f.firstJob(f.start(), works(t, "x", nil))
		must(t, err)
		u := f.readLeft(dir)
		out, h, err := node.New(record.ErrorOutputSchema, map[string]any{"$status": "error", "error": "it says so", "phase": phase}, time.UnixMilli(1))
		must(t, err)
		u.Nodes[h] = out
		_, err = f.commitLeft(withChangedRecord(t, u, func(s *record.Step) { s.Output = h }))
		var failed *life.FailedError
		if !errors.As(err, &failed) || failed.Phase != want || !strings.Contains(err.Error(), "it says so") {
			t.Errorf("%s: %v", phase, err)
		}
		if _, _, e := f.view(); len(e.Attempts) != 1 || e.Next.Forgiven != 0 {
			t.Errorf("%s: %+v", phase, e)
		}
	}
}

// TestChecksChanges: files that the job which commits can't push are no part of its step.
func TestChecksChanges(t *testing.T) {
	f := newForge(t, someFiles)
	dir, err := f.firstJob(f.start(), works(t, "x", map[string]string{"a": "2", "gone": ""}))
	must(t, err)
	var asked []string
	j := f.job("two", f.dial(), nil)
	_, err = j.Step(f.ctx(), step.Request{Thread: testThread, TakesOver: (&unpushed.Folder{Dir: dir}).Read, CheckChanges: func(changes []workspace.Change) error {
		for _, c := range changes {
			asked = append(asked, c.Path)
		}
		return errors.New("it may not")
	}})
	var failed *life.FailedError
	if !errors.As(err, &failed) || failed.Phase != "workspace" || !strings.Contains(err.Error(), "it may not") || !slices.Equal(asked, []string{"a", "gone"}) {
		t.Errorf("%q: %v", asked, err)
	}
	if got := f.treeOf(f.refs()[f.attemptRef()]); strings.Contains(got, "gone") {
		t.Errorf("the attempt holds %q", got)
	}
}

// TestNotHandedOver: a job that can't leave its step has failed, before its agent is paid for
// where that shows by then.
func TestNotHandedOver(t *testing.T) {
	for _, before := range []bool{true, false} {
		f := newForge(t, someFiles)
		f.start()
		file, ran := filepath.Join(t.TempDir(), "file"), false
		block := func() { must(t, os.WriteFile(file, nil, 0o600)) }
		if before {
			block()
		}
		j := f.job("one", blind{f.dial()}, agentFunc(func(ctx context.Context, task task.Task, m *task.Meter) (task.Draft, error) {
			ran = true
			block()
			return works(t, "x", nil)(ctx, task, m)
		}))
		j.Unpushed = &unpushed.Folder{Dir: file}
		res, err := j.Step(f.ctx(), step.Request{Thread: testThread, HandsOver: true})
		if res.Result != "" || err == nil || ran == before {
			t.Fatalf("%+v: %v", res, err)
		}
		var failed *life.FailedError
		switch says := err.Error(); {
		case before && !strings.Contains(says, "remove what earlier jobs left in "+file):
			t.Error(says)
		case !before && (!errors.As(err, &failed) || failed.Attempt != "" || !strings.Contains(says, "keep the sealed step in "+file)):
			t.Error(says)
		}
	}
}

// TestLeftOver: what lies in the folder of an earlier step is not taken for this one's, whether
// the job that runs agents comes to its end or is killed.
func TestLeftOver(t *testing.T) {
	f := newForge(t, someFiles)
	dir, err := f.firstJob(f.start(), works(t, "first", nil))
	must(t, err)
	old := f.readLeft(dir)
	res, err := f.secondJob(dir)
	must(t, err)
	j := f.job("killed", blind{f.dial()}, agentFunc(func(context.Context, task.Task, *task.Meter) (task.Draft, error) {
		if (&unpushed.Folder{Dir: dir}).Holds(testThread) {
			t.Error("the agent runs beside what the one before left")
		}
		panic("killed")
	}))
	j.Unpushed = &unpushed.Folder{Dir: dir}
	func() {
		defer func() { _ = recover() }()
		_, _ = j.Step(f.ctx(), step.Request{Thread: testThread, ExpectHead: node.Pin{Hash: res.Head}, HandsOver: true})
	}()
	must(t, (&unpushed.Folder{Dir: dir}).Write(old)) // as if the job had not come that far
	j = f.job("one", blind{f.dial()}, works(t, "second", nil))
	j.Unpushed = &unpushed.Folder{Dir: dir}
	_, err = j.Step(f.ctx(), step.Request{Thread: testThread, ExpectHead: node.Pin{Hash: res.Head}, Deliver: true, HandsOver: true})
	must(t, err)
	if u := f.readLeft(dir); u.Entry.Head != res.Head || u.Handle == old.Handle {
		t.Errorf("the folder holds a step on %s", u.Entry.Head)
	}
	res, err = f.secondJob(dir)
	if err != nil || !res.Done {
		t.Errorf("%+v: %v", res, err)
	}
}

// TestTwoSecondJobs: of two jobs that commit the same step at once one does, and the other one
// leaves no trace.
func TestTwoSecondJobs(t *testing.T) {
	f := newForge(t, someFiles)
	dir, err := f.firstJob(f.start(), works(t, "x", map[string]string{"a": "2"}))
	must(t, err)
	read := (&unpushed.Folder{Dir: dir}).Read
	var within error
	_, err = f.takeOver(func(store string, id gitcas.ThreadID) (unpushed.Step, error) {
		_, within = f.takeOver(read)
		return read(store, id)
	})
	must(t, err)
	if life.KindOf(within) != life.KindNotYours {
		t.Errorf("the other one: %v", within)
	}
	_, v, e := f.view()
	chain, err := v.ReadChain(t.Context(), testThread)
	must(t, err)
	if len(chain.Steps) != 1 || len(e.Attempts) != 0 {
		t.Errorf("%d steps, %+v", len(chain.Steps), e)
	}
}

// TestManyNodes: the engine's own nodes are no agent's: as many as an agent may stage come over.
func TestManyNodes(t *testing.T) {
	f := newForge(t, someFiles)
	dir, err := f.firstJob(f.start(), agentFunc(func(_ context.Context, asked task.Task, m *task.Meter) (task.Draft, error) {
		m.Add(100, 20, 0.5)
		return fullDraft(t, asked), nil
	}))
	must(t, err)
	if n := len(f.readLeft(dir).Nodes); n <= seal.MaxDrafts {
		t.Fatalf("%d nodes were left: the test is of no use", n)
	}
	_, err = f.secondJob(dir)
	must(t, err)
}

// fullDraft is a draft of as many nodes as an agent may stage, all of which its step needs.
func fullDraft(t *testing.T, asked task.Task) task.Draft {
	t.Helper()
	d := draftOf(t, asked, "full")
	add := func(typ node.Hash, payload any) node.Hash {
		n, h, err := node.New(typ, payload, time.UnixMilli(1))
		must(t, err)
		d.Nodes[h] = n
		return h
	}
	s, err := record.ParseStep(d.Nodes[d.Handle])
	must(t, err)
	delete(d.Nodes, d.Handle)
	delete(d.Nodes, s.Detail)
	list := add(node.MetaSchema, map[string]any{"type": "array", "title": "list", "items": map[string]any{"type": "string", "format": "ocas_ref"}})
	var parts []any
	for n := 0; len(d.Nodes) < seal.MaxDrafts-2; n++ {
		parts = append(parts, string(add(node.String, fmt.Sprintf("part %d", n))))
	}
	s.Detail = add(list, parts)
	n, h, err := s.Node(time.UnixMilli(1))
	must(t, err)
	d.Nodes[h], d.Handle = n, h
	return d
}

// TestNothingLeft: a job that left nothing has failed its step.
func TestNothingLeft(t *testing.T) {
	f := newForge(t, someFiles)
	f.start()
	_, err := f.secondJob(filepath.Join(t.TempDir(), "none"))
	var failed *life.FailedError
	if !errors.As(err, &failed) || failed.Phase != "agent" || failed.Attempt == "" || !strings.Contains(err.Error(), "the job that runs agents left no step; its log says why") {
		t.Errorf("%v", err)
	}
}

// noRedactor can't check anything for secrets.
type noRedactor struct{ thread.Redactor }

func (noRedactor) Value(any) (any, int, error) { return nil, 0, errors.New("no redactor") }

// TestNothingToTell: what can't be checked for secrets leaves no job, not even as a failure.
func TestNothingToTell(t *testing.T) {
	f := newForge(t, someFiles)
	f.start()
	j := f.job("one", blind{f.dial()}, works(t, "x", nil))
	dir := filepath.Join(t.TempDir(), "artifact")
	j.Unpushed, j.Redact = &unpushed.Folder{Dir: dir}, noRedactor{j.Redact}
	_, err := j.Step(f.ctx(), step.Request{Thread: testThread, HandsOver: true})
	if _, serr := os.Stat(dir); err == nil || !errors.Is(serr, fs.ErrNotExist) {
		t.Errorf("%v, %v", err, serr)
	}
}

// TestFailureArrives: an agent that failed in the first job leaves what it did with an
// attempt, as any other.
func TestFailureArrives(t *testing.T) {
	f := newForge(t, someFiles)
	head := f.start()
	dir, err := f.firstJob(head, agentFunc(func(_ context.Context, asked task.Task, m *task.Meter) (task.Draft, error) {
		m.Add(7, 3, 0.25)
		put(t, asked.Workspace, map[string]string{"half": "done"})
		d := draftOf(t, asked, "half")
		d.Handle, d.Stderr = "", "no idea"
		return d, &task.AgentError{Agent: "test", Reason: "gave up", Detail: "here", Err: errors.New("why")}
	}))
	if err == nil {
		t.Fatal("the first job says nothing")
	}
	_, err = f.secondJob(dir)
	var failed *life.FailedError
	if !errors.As(err, &failed) || failed.Phase != "agent" || failed.Err.Error() != "agent test: gave up: why\nhere" {
		t.Fatalf("%v", err)
	}
	a := f.attempt()
	if !strings.Contains(a.Error, "gave up") {
		t.Errorf("%q", a.Error)
	}
	bodies, last := 0, ""
	for _, n := range a.Nodes {
		if n.Node.Payload == "no idea" {
			last = "no idea"
		}
		if n.Node.Payload == "body: half" {
			bodies++
		}
		if s, err := record.ParseStep(n.Node); err == nil && s.Usage.InputTokens != 7 {
			t.Errorf("usage %+v", s.Usage)
		}
	}
	if bodies != 1 || last == "" {
		t.Errorf("what the agent staged, or said last, was not kept: %d nodes", len(a.Nodes))
	}
	_, _, e := f.view()
	if e.Head != head {
		t.Error("the head moved")
	}
	tip := f.refs()[e.Attempts[0]]
	if got := f.treeOf(tip); !strings.Contains(got, "half") {
		t.Errorf("the attempt's tree holds:\n%s", got)
	}
}

// treeOf lists the names in a commit, and in the work that an attempt keeps.
func (f *forge) treeOf(commit wire.ID) string {
	f.Helper()
	objs, err := f.dial().Fetch(f.ctx(), wire.FetchRequest{Wants: []wire.ID{commit}, Depth: 1})
	must(f, err)
	var b strings.Builder
	for _, o := range objs {
		b.Write(o.Data)
	}
	return b.String()
}

// TestInvalidOutput: what the engine refuses is refused in the job that can keep it.
func TestInvalidOutput(t *testing.T) {
	f := newForge(t, someFiles)
	dir, err := f.firstJob(f.start(), agentFunc(func(_ context.Context, task task.Task, _ *task.Meter) (task.Draft, error) {
		d := draftOf(t, task, "x")
		delete(d.Nodes, d.Handle)
		return d, nil
	}))
	if err == nil {
		t.Fatal("no error")
	}
	_, err = f.secondJob(dir)
	if err == nil || !strings.Contains(err.Error(), "not among the 3 nodes") {
		t.Errorf("%v", err)
	}
	if f.attempt().Error == "" {
		t.Error("nothing was kept")
	}
}

// TestSecrets: what the first job knows to be a secret does not leave it; what the
// second knows stops the step.
func TestSecrets(t *testing.T) {
	const key = "model-key-0123456789abcdef"
	modelKey := redact.Secret{Name: "MODEL_KEY", Value: key}
	t.Run("in the output", func(t *testing.T) {
		f := newForge(t, someFiles)
		dir, err := f.firstJob(f.start(), works(t, "the key is "+key, map[string]string{"x": "fine"}), modelKey)
		must(t, err)
		if all := everything(t, dir); strings.Contains(all, key) || !strings.Contains(all, "redacted:MODEL_KEY") {
			t.Error("the key is in the artifact")
		}
		_, err = f.secondJob(dir)
		must(t, err)
	})
	t.Run("in an error", func(t *testing.T) {
		f := newForge(t, someFiles)
		dir, err := f.firstJob(f.start(), agentFunc(func(context.Context, task.Task, *task.Meter) (task.Draft, error) {
			return task.Draft{Stderr: "stderr " + key}, &task.AgentError{Agent: "test", Reason: "with " + key, Detail: key, Err: fmt.Errorf("and %s", key)}
		}), modelKey)
		if err == nil || strings.Contains(everything(t, dir), key) {
			t.Error("the key is in the artifact", err)
		}
	})
	for what, file := range map[string]map[string]string{"in a file": {"x": "y " + key}, "in a name": {"x-" + key: "y"}, "in a link": {"x": "-> " + key}} {
		t.Run(what, func(t *testing.T) {
			f := newForge(t, someFiles)
			files := map[string]string{"other": "z"}
			maps.Copy(files, file)
			dir, err := f.firstJob(f.start(), works(t, "x", files), modelKey)
			if err == nil || strings.Contains(everything(t, dir), key) {
				t.Error("the key is in the artifact", err)
			}
			if u := f.readLeft(dir); len(u.Work.Objects) > 0 {
				t.Errorf("%d objects were left", len(u.Work.Objects))
			}
			if _, err := f.secondJob(dir); err == nil || !strings.Contains(err.Error(), "wrote a secret (MODEL_KEY)") {
				t.Errorf("it was committed, or %v", err)
			}
		})
	}
	t.Run("what looks like a token", func(t *testing.T) {
		f := newForge(t, someFiles)
		token := "gh" + "p_" + "aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0cD3fG6"
		dir, err := f.firstJob(f.start(), works(t, "x", map[string]string{"x": "y\n" + token, "other": "z"}), modelKey)
		if err == nil || strings.Contains(everything(t, dir), token) {
			t.Error("the token is in the artifact", err)
		}
		if _, err := f.secondJob(dir); err == nil || !strings.Contains(err.Error(), "what looks like a token (github-token) into x:2") {
			t.Errorf("it was committed, or %v", err)
		}
		if got := f.treeOf(f.refs()[f.attemptRef()]); !strings.Contains(got, "other") {
			t.Error("the other file was not kept")
		}
	})
	t.Run("of the second job", func(t *testing.T) {
		f := newForge(t, someFiles)
		const token = "push-token-0123456789abcdef"
		dir, err := f.firstJob(f.start(), works(t, "x", map[string]string{"x": token}))
		must(t, err)
		_, err = f.secondJob(dir, redact.Secret{Name: "TOKEN", Value: token})
		var found *screen.FoundError
		if !errors.As(err, &found) || !slices.Equal(found.Paths(), []string{"x"}) {
			t.Errorf("%v", err)
		}
		if strings.Contains(f.treeOf(f.refs()[f.attemptRef()]), token) {
			t.Error("the token was pushed")
		}
	})
}

func (f *forge) attemptRef() string {
	_, _, e := f.view()
	return e.Attempts[0]
}

// TestPeopleMeanwhile: between the jobs somebody pushes to the work branch.
func TestPeopleMeanwhile(t *testing.T) {
	branch := "refs/heads/" + layout.WorkBranch(testThread)
	begin := func(t *testing.T, files map[string]string) (*forge, string, wire.ID) {
		f := newForge(t, someFiles)
		dir, err := f.firstJob(f.start(), works(t, "x", map[string]string{"x": "0"}))
		must(t, err)
		res, err := f.secondJob(dir)
		must(t, err)
		dir, err = f.firstJob(res.Head, works(t, "y", map[string]string{"a": "ours", "new": "ours", "gone": ""}))
		must(t, err)
		return f, dir, f.push(files, branch, f.refs()[branch])
	}
	t.Run("other files", func(t *testing.T) {
		f, dir, _ := begin(t, map[string]string{"run": "theirs", "new2": "theirs"})
		_, err := f.secondJob(dir)
		must(t, err)
		got := f.contents(f.refs()[branch])
		if got["run"] != "theirs" || got["new2"] != "theirs" || got["a"] != "ours" || got["new"] != "ours" || got["gone"] != "" {
			t.Errorf("%q", got)
		}
	})
	t.Run("the same files", func(t *testing.T) {
		f, dir, tip := begin(t, map[string]string{"a": "theirs", "new": "theirs", "run": "theirs"})
		_, err := f.secondJob(dir)
		if life.KindOf(err) != life.KindSuspended || !strings.Contains(err.Error(), "(a, new)") {
			t.Errorf("%v", err)
		}
		if f.refs()[branch] != tip {
			t.Error("the branch moved")
		}
		if got := f.treeOf(f.refs()[f.attemptRef()]); !strings.Contains(got, "ours") {
			t.Error("the agent's version was not kept")
		}
	})
}

// TestStoppedMeanwhile: no agent is started in the first job while another job has the
// thread, or when the step was done there.
func TestStoppedMeanwhile(t *testing.T) {
	f := newForge(t, someFiles)
	head := f.start()
	first := func(when string) {
		dir, err := f.firstJob(head, agentFunc(func(context.Context, task.Task, *task.Meter) (task.Draft, error) {
			t.Errorf("the agent ran %s", when)
			return task.Draft{}, nil
		}))
		if _, serr := os.Stat(dir); life.KindOf(err) != life.KindNotYours || !errors.Is(serr, fs.ErrNotExist) {
			t.Errorf("%s: %v, %v", when, err, serr)
		}
	}
	other := f.job("other", f.dial(), agentFunc(func(_ context.Context, task task.Task, _ *task.Meter) (task.Draft, error) {
		first("beside another")
		return draftOf(t, task, "x"), nil
	}))
	_, err := other.Step(f.ctx(), step.Request{Thread: testThread})
	must(t, err)
	first("for a step that was done")
}

// TestInterrupted: an agent that is killed leaves what it did, and so does its job.
func TestInterrupted(t *testing.T) {
	f := newForge(t, someFiles)
	head := f.start()
	ctx, stop := context.WithCancelCause(context.Background())
	dir, err := f.firstJobIn(ctx, head, agentFunc(func(ctx context.Context, asked task.Task, _ *task.Meter) (task.Draft, error) {
		put(t, asked.Workspace, map[string]string{"half": "done"})
		stop(errors.New("SIGTERM"))
		<-ctx.Done()
		return task.Draft{}, &task.AgentError{Agent: "test", Reason: "it was stopped"}
	}))
	if err == nil {
		t.Error("no error")
	}
	if _, err = f.secondJob(dir); err == nil || !strings.Contains(f.treeOf(f.refs()[f.attemptRef()]), "half") {
		t.Errorf("what it did is not kept: %v", err)
	}
}
