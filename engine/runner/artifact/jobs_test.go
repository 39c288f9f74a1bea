package artifact

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/redact"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/engine/step/screen"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
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
	a, err := Read(dir)
	must(t, err)
	a.Usage.DurationMs = 3_600_000
	if res, err = f.commit(a); err != nil || !res.Done || res.Usage.DurationMs < 3_600_000 {
		t.Fatalf("%+v %v", res, err)
	}
	_, v, e := f.view()
	chain, err := v.Chain(t.Context(), testThread)
	must(t, err)
	if len(chain.Steps) != 2 || e.Status != gitcas.StatusEnded {
		t.Errorf("%d steps, %s", len(chain.Steps), e.Status)
	}
	for i, s := range chain.Steps {
		body, err := v.In(t.Context(), gitcas.Place{Thread: testThread, Of: s.Hash}).Get(*s.Body)
		must(t, err)
		if want := []string{"body: first", "body: second"}[i]; body.Payload != want || s.Agent != "test" || s.Usage.DurationMs < 0 {
			t.Errorf("step %d: %v, %+v", i, body.Payload, s.Usage)
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

// TestOfAnotherStep: an artifact counts for one step of one thread alone.
func TestOfAnotherStep(t *testing.T) {
	f := newForge(t, someFiles)
	head := f.start()
	dir, err := f.firstJob(head, works(t, "x", map[string]string{"a": "2"}))
	must(t, err)
	good, err := Read(dir)
	must(t, err)
	for what, change := range map[string]func(a *Artifact){
		"thread": func(a *Artifact) { a.Thread = "01JD0000000000000000000002" },
		"head":   func(a *Artifact) { a.Head = a.Handle },
		"step":   func(a *Artifact) { a.Step++ },
		"role":   func(a *Artifact) { a.Role = "b" },
		"agent":  func(a *Artifact) { a.Agent = "other" },
	} {
		a := good
		change(&a)
		to := t.TempDir()
		put(t, to, map[string]string{"a": "1"})
		asked := task.Task{Thread: testThread, Start: head, Step: 1, Role: "a", Agent: "test", Workspace: to}
		d, err := Agent(a, &folder{dir: to}).Run(t.Context(), asked, &task.Meter{})
		var agent *task.AgentError
		if !errors.As(err, &agent) || !strings.Contains(err.Error(), "its "+what+" is") || len(d.Nodes) > 0 {
			t.Errorf("%s: %v, %d nodes", what, err, len(d.Nodes))
		}
		if b, err := os.ReadFile(filepath.Join(to, "a")); err != nil || string(b) != "1" {
			t.Errorf("%s: the folder was changed: %q %v", what, b, err)
		}
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
	if !errors.As(err, &failed) || failed.Phase != "agent" || !strings.Contains(err.Error(), "gave up: why") || !strings.Contains(err.Error(), "here") {
		t.Fatalf("%v", err)
	}
	a := f.attempt()
	if !strings.Contains(a.Error, "gave up") {
		t.Errorf("%q", a.Error)
	}
	bodies := 0
	for _, n := range a.Nodes {
		if n.Node.Payload == "body: half" {
			bodies++
		}
		if s, err := record.ParseStep(n.Node); err == nil && s.Usage.InputTokens != 7 {
			t.Errorf("usage %+v", s.Usage)
		}
	}
	if bodies != 1 {
		t.Errorf("what the agent staged was not kept: %d nodes", len(a.Nodes))
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
			a, err := Read(dir)
			must(t, err)
			if len(a.Files) > 0 || a.Failure == nil || !strings.Contains(a.Failure.Reason, "wrote a secret (MODEL_KEY)") {
				t.Errorf("%d files, %+v", len(a.Files), a.Failure)
			}
			if _, err := f.secondJob(dir); err == nil {
				t.Error("it was committed")
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
		a, err := Read(dir)
		must(t, err)
		if len(a.Files) != 1 || a.Files[0].Path != "other" || a.Failure == nil || !strings.Contains(a.Failure.Reason, "what looks like a token (github-token) into x:2") {
			t.Errorf("%+v, %+v", a.Files, a.Failure)
		}
		if _, err := f.secondJob(dir); err == nil {
			t.Error("it was committed")
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
		var failed *life.FailedError
		if !errors.As(err, &failed) || !strings.Contains(err.Error(), "(a, new)") {
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
	other := f.job("other", f.dial(), agentFunc(func(_ context.Context, task task.Task, _ *task.Meter) (task.Draft, error) {
		j := f.job("one", Mirror(f.dial()), works(t, "x", nil))
		c := Capture(j.Stepper)
		_, err := j.Step(f.ctx(), step.Request{Thread: testThread, ExpectHead: node.Pin{Hash: head}})
		if _, ran := c.Artifact(); ran || life.KindOf(err) != life.KindNotYours {
			t.Errorf("the agent ran beside another: %v", err)
		}
		return draftOf(t, task, "x"), nil
	}))
	_, err := other.Step(f.ctx(), step.Request{Thread: testThread})
	must(t, err)
	j := f.job("late", Mirror(f.dial()), works(t, "x", nil))
	c := Capture(j.Stepper)
	_, err = j.Step(f.ctx(), step.Request{Thread: testThread, ExpectHead: node.Pin{Hash: head}})
	if _, ran := c.Artifact(); ran || life.KindOf(err) != life.KindNotYours {
		t.Errorf("a step was done twice: %v", err)
	}
}

// TestInterrupted: an agent that is killed leaves what it did.
func TestInterrupted(t *testing.T) {
	f := newForge(t, someFiles)
	f.start()
	ctx, stop := context.WithCancelCause(context.Background())
	j := f.job("one", Mirror(f.dial()), agentFunc(func(ctx context.Context, asked task.Task, m *task.Meter) (task.Draft, error) {
		put(t, asked.Workspace, map[string]string{"half": "done"})
		stop(errors.New("SIGTERM"))
		<-ctx.Done()
		return task.Draft{}, &task.AgentError{Agent: "test", Reason: "it was stopped"}
	}))
	c := Capture(j.Stepper)
	if _, err := j.Step(ctx, step.Request{Thread: testThread}); err == nil {
		t.Error("no error")
	}
	a, ok := c.Artifact()
	if !ok || a.Failure == nil || len(a.Files) != 1 || a.Files[0].Path != "half" {
		t.Errorf("%v %+v", ok, a)
	}
}

// TestWriteAgain: a folder with anything else in it is left alone.
func TestWriteAgain(t *testing.T) {
	f := newForge(t, someFiles)
	dir, err := f.firstJob(f.start(), works(t, "x", map[string]string{"a": "2", "b": "3"}))
	must(t, err)
	a, err := Read(dir)
	must(t, err)
	a.Files = a.Files[:1]
	must(t, Write(dir, a))
	again, err := Read(dir)
	must(t, err)
	if len(again.Files) != 1 || string(again.Files[0].Data) != "2" || len(again.Nodes) != len(a.Nodes) {
		t.Errorf("%+v", again)
	}
	must(t, os.WriteFile(filepath.Join(dir, "mine"), []byte("x"), 0o644))
	if err := Write(dir, a); err == nil || !strings.Contains(err.Error(), `"mine"`) {
		t.Errorf("%v", err)
	}
	if err := Write(filepath.Join(dir, "mine"), a); err == nil {
		t.Error("a file was taken for a folder")
	}
}
