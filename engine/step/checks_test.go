package step_test

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/united-workforce/uwf/engine/checks"
	"github.com/united-workforce/uwf/engine/deadline"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/redact"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/engine/step/unpushed"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
	"github.com/united-workforce/uwf/internal/text"
)

// checker says one set of results after the other, and the last one from then on.
type checker struct {
	results [][]step.CheckResult
	err     error
	during  func()
	asked   []step.CheckRequest
}

func (c *checker) RunChecks(_ context.Context, req step.CheckRequest) ([]step.CheckResult, error) {
	c.asked = append(c.asked, req)
	if c.during != nil {
		c.during()
	}
	if c.err != nil {
		return nil, c.err
	}
	return c.results[min(len(c.asked), len(c.results))-1], nil
}

func (c *checker) Protects(path string) bool { return strings.Contains(path, "_test.") }

func results(r ...step.CheckResult) []step.CheckResult { return r }

func passedCheck(name string) step.CheckResult {
	return step.CheckResult{Check: record.Check{Name: name, Status: record.CheckPassed, DurationMs: 1200}}
}

func failedCheck(name, output string) step.CheckResult {
	return step.CheckResult{Check: record.Check{Name: name, Status: record.CheckFailed, ExitCode: 1, Output: output}, Enforced: true}
}

// worker is an agent that does one thing after the other, and the last one from then on. It
// says that each run took 10 tokens in and 5 out.
type worker struct {
	tb    testing.TB
	does  []func(t task.Task) task.Draft
	tasks []task.Task
}

func (w *worker) Run(_ context.Context, t task.Task, _ *task.Meter) (task.Draft, error) {
	w.tasks = append(w.tasks, t)
	d := w.does[min(len(w.tasks), len(w.does))-1](t)
	d.Usage = record.Usage{Turns: 1, InputTokens: 10, OutputTokens: 5, CostUSD: 0.25}
	return d, nil
}

// writes is an agent that writes files, each run those of one, and says that it is done.
func writes(tb testing.TB, files ...map[string]string) *worker {
	w := &worker{tb: tb}
	for i := range files {
		w.does = append(w.does, func(t task.Task) task.Draft {
			put(tb, t.Workspace, files[i])
			return draftOf(tb, t, "x")
		})
	}
	return w
}

// saysInStep moves what an agent says of its usage into its StepNode.
func saysInStep(tb testing.TB, d task.Draft, usage record.Usage) task.Draft {
	tb.Helper()
	s, err := record.ParseStep(d.Nodes[d.Handle])
	must(tb, err)
	s.Usage = &usage
	n, h, err := s.Node(time.UnixMilli(1))
	must(tb, err)
	d.Nodes[h], d.Handle, d.Usage = n, h, record.Usage{}
	return d
}

// checkedJob is one whose role's work is checked.
func (f *forge) checkedJob(agent task.Agent, c step.Checker, secrets ...redact.Secret) (j *job, told *[]thread.Event) {
	f.Helper()
	told = &[]thread.Event{}
	j = f.job("checked", f.dial(), agent, secrets...)
	j.Checker = c
	j.Observe = func(e thread.Event) { *told = append(*told, e) }
	return j, told
}

func said(told []thread.Event, kind string) (out []string) {
	for _, e := range told {
		if e.Kind == kind {
			out = append(out, e.Text)
		}
	}
	return out
}

// steps are those of the thread, which is sound.
func (f *forge) steps() []record.Step {
	f.Helper()
	s, v, _ := f.view()
	r, err := s.Fsck(f.ctx(), true)
	must(f, err)
	if len(r.Problems) > 0 {
		f.Errorf("the store has problems: %v", r.Problems)
	}
	chain, err := v.ReadChain(f.ctx(), testThread)
	must(f, err)
	var out []record.Step
	for _, st := range chain.Steps {
		out = append(out, st.Step)
	}
	return out
}

func checksOf(t testing.TB, steps []record.Step, want ...record.Check) {
	t.Helper()
	if len(steps) != 1 || !slices.Equal(steps[0].Checks, want) {
		t.Errorf("got %+v, want %+v", steps, want)
	}
}

// errorStep is the record of a failed attempt.
func (f *forge) errorStep() record.Step {
	f.Helper()
	for _, n := range f.attempt().Nodes {
		if s, err := record.ParseStep(n.Node); err == nil && s.Usage != nil {
			return s
		}
	}
	f.Fatal("the attempt has no record")
	return record.Step{}
}

// TestChecksPass: the results stand in the step, of what the agent left and no more.
func TestChecksPass(t *testing.T) {
	f := newForge(t, map[string]string{"a": "1", "x_test.go": "func TestA(\nfunc TestB(\n"})
	skipped := step.CheckResult{Check: record.Check{Name: "lint", Status: record.CheckSkipped, Note: "no command"}}
	c := &checker{results: [][]step.CheckResult{results(passedCheck("test"), skipped)}}
	agent := writes(t, map[string]string{"a": "2"})
	j, told := f.checkedJob(agent, c)
	head := f.start("test", "lint")
	res, err := j.Step(f.ctx(), step.Request{Thread: testThread, ExpectHead: node.Pin{Hash: head}})
	must(t, err)
	checksOf(t, f.steps(), passedCheck("test").Check, skipped.Check)
	if !slices.Equal(res.Checks, f.steps()[0].Checks) || len(agent.tasks) != 1 || f.steps()[0].Usage.InputTokens != 10 {
		t.Errorf("%+v, %d runs", res, len(agent.tasks))
	}
	if got := said(*told, "check"); !slices.Equal(got, []string{"test passed, 1.2s", "lint skipped: no command"}) {
		t.Errorf("told: %q", got)
	}
	if len(c.asked) != 1 || !slices.Equal(c.asked[0].Names, []string{"test", "lint"}) || c.asked[0].Base != f.base || c.asked[0].Time <= time.Minute || c.asked[0].Location != "" {
		t.Errorf("asked: %+v", c.asked)
	}

	// The next role has none.
	_, err = j.Step(f.ctx(), step.Request{Thread: testThread, Deliver: true})
	must(t, err)
	if s := f.steps(); len(s) != 2 || s[1].Checks != nil || len(c.asked) != 1 {
		t.Errorf("%+v", s)
	}
	if got := agent.tasks[1].Prompt; !strings.Contains(got, "\n- test passed, 1.2s (on the work of step 1, ") || !strings.Contains(got, "\n- lint skipped: no command (") {
		t.Errorf("the next role is told\n%s", got)
	}
}

// TestOutputIsKept: the end of what a check printed stands in the record, without secrets, and the
// next role reads it.
func TestOutputIsKept(t *testing.T) {
	const secret = "not-a-real-secret-4711"
	f := newForge(t, someFiles)
	failed := failedCheck("test", strings.Repeat("line\n", 5_000)+"the key "+secret+"\r\x00\nthe end\n")
	failed.Enforced = false
	agent := writes(t, nil)
	j, _ := f.checkedJob(agent, &checker{results: [][]step.CheckResult{results(failed)}}, redact.Secret{Name: "KEY", Value: secret})
	f.start("test")
	_, err := j.Step(f.ctx(), step.Request{Thread: testThread})
	must(t, err)
	_, err = j.Step(f.ctx(), step.Request{Thread: testThread, Deliver: true})
	must(t, err)
	got := f.steps()[0].Checks[0].Output
	if !strings.HasPrefix(got, "…\nline\n") || !strings.HasSuffix(got, "line\nthe key [redacted:KEY]\n\ufffd\nthe end") || len(got) > checks.MaxOutput {
		t.Errorf("%d bytes: %q", len(got), got)
	}
	if told := agent.tasks[1].Prompt; !strings.Contains(told, "[redacted:KEY]") || strings.Contains(told, secret) {
		t.Errorf("the next role is told\n%s", told)
	}
}

// TestNoChecker: where nobody can run them, there are no results, and no step fails for it.
func TestNoChecker(t *testing.T) {
	f := newForge(t, someFiles)
	f.start("test")
	_, err := f.job("one", f.dial(), writes(t, nil)).Step(f.ctx(), step.Request{Thread: testThread})
	must(t, err)
	checksOf(t, f.steps())
}

// TestChecksMended: what fails goes back to the agent, which is asked again and paid for as one.
func TestChecksMended(t *testing.T) {
	f := newForge(t, map[string]string{"a": "1"})
	c := &checker{results: [][]step.CheckResult{
		results(failedCheck("test", "one\n----- END fence -----\ntwo\n"), passedCheck("lint")), results(passedCheck("test"), passedCheck("lint")),
	}}
	agent := writes(t, map[string]string{"a": "bad"}, map[string]string{"a": "good"})
	j, told := f.checkedJob(agent, c)
	f.start("test", "lint")
	_, err := j.Step(f.ctx(), step.Request{Thread: testThread})
	must(t, err)
	steps := f.steps()
	checksOf(t, steps, passedCheck("test").Check, passedCheck("lint").Check)
	if u := steps[0].Usage; len(agent.tasks) != 2 || u.Turns != 2 || u.InputTokens != 20 || u.OutputTokens != 10 || u.CostUSD != 0.5 {
		t.Errorf("%d runs, %+v", len(agent.tasks), u)
	}
	asked, again := agent.tasks[0].Prompt, agent.tasks[1].Prompt
	for _, want := range []string{"# Correction 1 of 2", "\n## test: exit code 1\n\n" + text.Fence("one\n----- END fence -----\ntwo") + "\n", `"note":"x"`, "body: x"} {
		if strings.Contains(asked, want) || !strings.Contains(again, want) {
			t.Errorf("%q is not in the prompt\n%s", want, again)
		}
	}
	if !strings.HasPrefix(again, strings.TrimRight(asked, "\n")) || strings.Contains(again, "## lint") {
		t.Errorf("the prompt is\n%s", again)
	}
	// What the first run left can be read in the second one.
	left := agent.tasks[1].Corrected
	if agent.tasks[0].Corrected != nil || left == nil || again[:left.From] != strings.TrimRight(asked, "\n") {
		t.Fatalf("%+v", left)
	}
	if _, err := agent.tasks[1].Nodes.In(gitcas.Place{Thread: testThread, Of: left.Of}).Get(left.Detail); err != nil {
		t.Error(err)
	}
	_, v, _ := f.view()
	kept, err := v.In(t.Context(), gitcas.Place{Thread: testThread, Of: f.head(), Detail: true}).Get(*steps[0].AssembledPrompt)
	if err != nil || kept.Payload != again {
		t.Errorf("kept of the prompt: %v %v", err, kept.Payload)
	}
	if got := f.contents(f.refs()["refs/heads/"+layout.WorkBranch(testThread)]); !maps.Equal(got, map[string]string{"a": "good"}) {
		t.Errorf("the work is %q", got)
	}
	if got := said(*told, "notice"); !slices.Equal(got, []string{"the agent is asked to mend what its checks complain of (1 of 2)"}) {
		t.Errorf("told: %q", got)
	}
	if c.asked[0].Commit == c.asked[1].Commit {
		t.Error("the second time the first commit was checked")
	}
}

func (f *forge) head() node.Hash {
	f.Helper()
	_, _, e := f.view()
	return e.Head
}

// TestChecksFail: after three runs the step fails with the output's end, and what there is of
// it is kept and paid.
func TestChecksFail(t *testing.T) {
	for name, c := range map[string]struct{ output, end string }{
		"short":      {"the end\n", "the check test fails on the agent's work: exit code 1\nthe end"},
		"long lines": {strings.Repeat("ü line\n", 2_000) + "the end\n\n", "\nü line\nthe end"},
		"one line":   {strings.Repeat("ü", 5_000) + "the end", "üüthe end"},
		"nothing":    {"", "exit code 1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newForge(t, map[string]string{"a": "1"})
			head := f.start("test")
			agent := writes(t, map[string]string{"a": "bad"})
			ch := &checker{results: [][]step.CheckResult{results(failedCheck("test", c.output))}}
			j, _ := f.checkedJob(agent, ch)
			_, err := j.Step(f.ctx(), step.Request{Thread: testThread})
			var failed *life.FailedError
			var by *step.CheckError
			if !errors.As(err, &failed) || failed.Phase != "checks" || !errors.As(err, &by) || by.Failed[0].Name != "test" {
				t.Fatalf("%v", err)
			}
			if msg := by.Error(); !strings.Contains(msg, c.end) || !utf8.ValidString(msg) || len(msg) > 4<<10+100 {
				t.Errorf("%d bytes: %.300s … %s", len(msg), msg, msg[max(len(msg)-100, 0):])
			}
			if len(agent.tasks) != 3 || len(ch.asked) != 3 || !strings.Contains(agent.tasks[2].Prompt, "# Correction 2 of 2") || strings.Count(agent.tasks[2].Prompt, "# Correction") != 1 {
				t.Errorf("%d runs", len(agent.tasks))
			}
			if _, _, e := f.view(); e.Head != head {
				t.Error("the thread moved")
			}
			kept := f.errorStep()
			if kept.Usage.InputTokens != 30 || kept.Usage.Turns != 3 || len(kept.Checks) != 1 || kept.Checks[0].Status != record.CheckFailed {
				t.Errorf("kept: %+v %+v", kept.Usage, kept.Checks)
			}
			if tree := f.treeOf(f.refs()[f.attemptRef()]); !strings.Contains(tree, "a") {
				t.Errorf("the work is not kept: %q", tree)
			}
		})
	}
}

// TestEveryRunCounts: what each run took counts, wherever its agent says so.
func TestEveryRunCounts(t *testing.T) {
	for _, runs := range []int{2, 3} {
		f := newForge(t, someFiles)
		f.start("test")
		c := &checker{results: [][]step.CheckResult{results(failedCheck("test", "x")), results(passedCheck("test"))}}
		if runs == 3 {
			c.results = c.results[:1]
		}
		n := 0
		j, _ := f.checkedJob(agentFunc(func(_ context.Context, k task.Task, _ *task.Meter) (task.Draft, error) {
			n++
			return saysInStep(t, draftOf(t, k, "x"), record.Usage{Turns: 1, InputTokens: 10}), nil
		}), c)
		_, err := j.Step(f.ctx(), step.Request{Thread: testThread})
		var usage record.Usage
		if runs == 3 {
			usage = *f.errorStep().Usage
		} else {
			must(t, err)
			usage = *f.steps()[0].Usage
		}
		if usage.InputTokens != int64(10*runs) || usage.Turns != runs {
			t.Errorf("%d runs took %+v", runs, usage)
		}
	}
}

// TestChecksNotEnforced: what fails and is not enforced is on record, and takes no run.
func TestChecksNotEnforced(t *testing.T) {
	f := newForge(t, someFiles)
	f.start("test")
	known := failedCheck("test", "x")
	known.Enforced, known.Note = false, "on main, too"
	agent := writes(t, map[string]string{"a": "2"})
	j, _ := f.checkedJob(agent, &checker{results: [][]step.CheckResult{results(known)}})
	_, err := j.Step(f.ctx(), step.Request{Thread: testThread})
	must(t, err)
	checksOf(t, f.steps(), known.Check)
	if len(agent.tasks) != 1 {
		t.Errorf("%d runs", len(agent.tasks))
	}
}

// TestCheckerFails: that they could not be run is the step's failure, and no agent's.
func TestCheckerFails(t *testing.T) {
	f := newForge(t, someFiles)
	f.start("test")
	agent := writes(t, map[string]string{"a": "2"})
	j, _ := f.checkedJob(agent, &checker{err: errors.New("the disk is full")})
	_, err := j.Step(f.ctx(), step.Request{Thread: testThread})
	var failed *life.FailedError
	if !errors.As(err, &failed) || failed.Phase != "checks" || !strings.Contains(err.Error(), "run the checks: the disk is full") || len(agent.tasks) != 1 {
		t.Errorf("%d runs: %v", len(agent.tasks), err)
	}
	if s := f.errorStep(); s.Checks != nil || s.Usage.InputTokens != 10 {
		t.Errorf("%+v", s)
	}
}

// TestAgentOfCheckedRoleFails: no check runs on what an agent left that failed, and all that it
// took counts.
func TestAgentOfCheckedRoleFails(t *testing.T) {
	for before := range 2 {
		f := newForge(t, someFiles)
		f.start("test")
		agent := writes(t, map[string]string{"a": "bad"})
		n := 0
		c := &checker{results: [][]step.CheckResult{results(failedCheck("test", "x"))}}
		j, _ := f.checkedJob(agentFunc(func(ctx context.Context, k task.Task, m *task.Meter) (task.Draft, error) {
			d, err := agent.Run(ctx, k, m)
			if n++; n > before {
				err = &task.AgentError{Agent: "test", Reason: "it crashed"}
			}
			return d, err
		}), c)
		_, err := j.Step(f.ctx(), step.Request{Thread: testThread})
		var failed *life.FailedError
		if !errors.As(err, &failed) || failed.Phase != "agent" || !strings.Contains(err.Error(), "it crashed") || len(c.asked) != before {
			t.Errorf("checked %d times: %v", len(c.asked), err)
		}
		if s := f.errorStep(); s.Usage.InputTokens != int64(10*(before+1)) || len(s.Checks) != before {
			t.Errorf("%+v %+v", s.Usage, s.Checks)
		}
	}
}

// fullFolder is one of which no picture can be taken.
type fullFolder struct{ *folder }

func (fullFolder) TakeSnapshot(context.Context, workspace.SnapshotRequest) (workspace.Snapshot, error) {
	return workspace.Snapshot{}, errors.New("no picture")
}

// TestFolderOfCheckedRole: what keeps the folder from being read is its own failure, not the checks'.
func TestFolderOfCheckedRole(t *testing.T) {
	f := newForge(t, someFiles)
	f.start("test")
	c := &checker{results: [][]step.CheckResult{results(passedCheck("test"))}}
	j, _ := f.checkedJob(writes(t, nil), c)
	j.Folder = fullFolder{j.folder}
	_, err := j.Step(f.ctx(), step.Request{Thread: testThread})
	var failed *life.FailedError
	if !errors.As(err, &failed) || failed.Phase != "workspace" || !strings.Contains(err.Error(), "no picture") || len(c.asked) != 0 {
		t.Errorf("checked %d times: %v", len(c.asked), err)
	}
}

// TestNotChecked: an answer that asks a person, or can't be taken anyway, is not checked.
func TestNotChecked(t *testing.T) {
	for name, c := range map[string]struct {
		does         func(task.Task) task.Draft
		phase        string
		suspends     bool
		afterFailure bool
	}{
		"asks": {does: func(k task.Task) task.Draft { return draftWith(t, k, "ask", "x") }, suspends: true},
		"no step": {does: func(k task.Task) task.Draft {
			d := draftOf(t, k, "x")
			d.Handle = ""
			return d
		}, phase: "seal"},
		"no status": {does: func(k task.Task) task.Draft { return draftWith(t, k, "else", "x") }, phase: "seal"},
	} {
		for _, before := range []int{0, 1} {
			f := newForge(t, someFiles)
			f.start("test")
			agent := writes(t, map[string]string{"a": "bad"})
			agent.does = append(agent.does[:before], func(k task.Task) task.Draft {
				put(t, k.Workspace, map[string]string{"a": "other"})
				return c.does(k)
			})
			ch := &checker{results: [][]step.CheckResult{results(failedCheck("test", "x"))}}
			j, _ := f.checkedJob(agent, ch)
			_, err := j.Step(f.ctx(), step.Request{Thread: testThread})
			if len(ch.asked) != before || len(agent.tasks) != before+1 {
				t.Errorf("%s: checked %d times in %d runs", name, len(ch.asked), len(agent.tasks))
			}
			if c.suspends {
				must(t, err)
				checksOf(t, f.steps()) // those of the run before are of other work
				continue
			}
			var failed *life.FailedError
			if !errors.As(err, &failed) || failed.Phase != c.phase {
				t.Errorf("%s: %v", name, err)
			}
			if s := f.errorStep(); s.Checks != nil || s.Usage.InputTokens != int64(10*(before+1)) {
				t.Errorf("%s: %+v %+v", name, s.Checks, s.Usage)
			}
		}
	}
}

// movedClock is one that can be moved on.
type movedClock struct {
	deadline.SystemClock
	on atomic.Int64
}

func (c *movedClock) Now() time.Time { return c.SystemClock.Now().Add(time.Duration(c.on.Load())) }

type hasty struct{ settings }

func (hasty) Timeout() time.Duration { return 10 * time.Minute }

// TestChecksTakeTheTime: a correction has what is left of the agent's time; where nothing is,
// there is none.
func TestChecksTakeTheTime(t *testing.T) {
	for took, runs := range map[time.Duration]int{11 * time.Minute: 1, 6 * time.Minute: 2, time.Second: 3} {
		f := newForge(t, someFiles)
		f.start("test")
		agent := writes(t, map[string]string{"a": "bad"})
		clock := &movedClock{}
		j, _ := f.checkedJob(agent, &checker{results: [][]step.CheckResult{results(failedCheck("test", "x"))}, during: func() { clock.on.Add(int64(took)) }})
		j.Clock, j.Settings = clock, hasty{}
		_, err := j.Step(f.ctx(), step.Request{Thread: testThread})
		if !errors.As(err, new(*step.CheckError)) || len(agent.tasks) != runs {
			t.Errorf("%s: %d runs: %v", took, len(agent.tasks), err)
		}
		for i, k := range agent.tasks {
			if most := 10*time.Minute - time.Duration(i)*took; k.Timeout > most || k.Timeout < most-time.Minute {
				t.Errorf("%s: run %d has %s", took, i, k.Timeout)
			}
		}
	}
}

// TestChangedAfterChecks: what is committed is what was checked.
func TestChangedAfterChecks(t *testing.T) {
	f := newForge(t, someFiles)
	f.start("test")
	var dir string
	agent := &worker{tb: t, does: []func(task.Task) task.Draft{func(k task.Task) task.Draft {
		dir = k.Workspace
		put(t, dir, map[string]string{"a": "good"})
		return draftOf(t, k, "x")
	}}}
	j, _ := f.checkedJob(agent, &checker{results: [][]step.CheckResult{results(passedCheck("test"))}, during: func() { put(t, dir, map[string]string{"a": "evil"}) }})
	_, err := j.Step(f.ctx(), step.Request{Thread: testThread})
	var failed *life.FailedError
	if !errors.As(err, &failed) || failed.Phase != "workspace" || !strings.Contains(err.Error(), "changed after its checks") {
		t.Errorf("%v", err)
	}
	// Nothing that the agent left: unchanged is unchanged.
	f = newForge(t, someFiles)
	f.start("test")
	j, _ = f.checkedJob(writes(t, nil), &checker{results: [][]step.CheckResult{results(passedCheck("test"))}})
	_, err = j.Step(f.ctx(), step.Request{Thread: testThread})
	must(t, err)
	checksOf(t, f.steps(), passedCheck("test").Check)
}

// TestFlaggedChanges: what a role did to what its checks go by stands beside their results.
func TestFlaggedChanges(t *testing.T) {
	const two, one = "func TestA(\nfunc TestB(\n", "func TestA(\n"
	before := map[string]string{"a_test.go": two, "b_test.go": two, "c": "1", "lib.rs": "#[test]\n#[test]\n", "e_test.go": "func TestE(\nfunc TestF(\n"}
	for name, c := range map[string]struct {
		files map[string]string
		note  string
	}{
		"nothing":         {map[string]string{"c": "2"}, ""},
		"more tests":      {map[string]string{"a_test.go": two + "func TestC(\n"}, "it changed a_test.go"},
		"a new file":      {map[string]string{"n_test.go": one}, "it changed n_test.go"},
		"fewer":           {map[string]string{"a_test.go": one}, "it changed a_test.go; 1 test fewer than before"},
		"two files alike": {map[string]string{"a_test.go": "", "b_test.go": ""}, "it changed a_test.go, b_test.go; 4 tests fewer than before"},
		"moved":           {map[string]string{"a_test.go": "", "n_test.go": two}, "it changed a_test.go, n_test.go"},
		"moved away":      {map[string]string{"a_test.go": "", "a_test.txt": two}, "it changed a_test.go, a_test.txt; 2 tests fewer than before"},
		"copied":          {map[string]string{"a_test.go": "", "n_test.go": "func TestE(\nfunc TestF(\n"}, "it changed a_test.go, n_test.go"},
		"put together":    {map[string]string{"a_test.go": "", "b_test.go": two + two}, "it changed a_test.go, b_test.go"},
		"in other files":  {map[string]string{"lib.rs": "#[test]\n"}, "1 test fewer than before"},
		"emptied":         {map[string]string{"a_test.go": " "}, "it changed a_test.go; 2 tests fewer than before"},
		"many":            {map[string]string{"1_test.x": "1", "2_test.x": "1", "3_test.x": "1", "4_test.x": "1", "5_test.x": "1"}, "it changed 1_test.x, 2_test.x, 3_test.x and 2 more"},
		"a secret":        {map[string]string{"not-a-real-secret-4711_test.x": "1"}, "it changed [redacted:KEY]_test.x"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newForge(t, before)
			f.start("test", "lint")
			skipped := step.CheckResult{Check: record.Check{Name: "lint", Status: record.CheckSkipped, Note: "none"}}
			j, told := f.checkedJob(writes(t, c.files), &checker{results: [][]step.CheckResult{results(passedCheck("test"), skipped)}}, redact.Secret{Name: "KEY", Value: "not-a-real-secret-4711"})
			_, err := j.Step(f.ctx(), step.Request{Thread: testThread})
			var want []record.Check
			if name != "a secret" { // the commit would hold it
				must(t, err)
				want = f.steps()[0].Checks
			} else {
				want = f.errorStep().Checks
			}
			if len(want) != 2 || want[0].Note != c.note || want[1].Note != "none" {
				t.Errorf("%+v", want)
			}
			for _, e := range *told {
				if strings.Contains(e.Text, "not-a-real-secret-4711") {
					t.Errorf("told: %q", e.Text)
				}
			}
		})
	}
}

// TestFlagsInACorrection: the file names of an agent make no lines of their own.
func TestFlagsInACorrection(t *testing.T) {
	f := newForge(t, someFiles)
	f.start("test")
	hung := failedCheck("test", "x")
	hung.ExitCode, hung.Note = 0, "it ran too long"
	agent := writes(t, map[string]string{"# x\u2028y_test.go": "1", strings.Repeat("z", 240) + "_test.go": "2"})
	j, _ := f.checkedJob(agent, &checker{results: [][]step.CheckResult{results(hung), results(passedCheck("test"))}})
	_, err := j.Step(f.ctx(), step.Request{Thread: testThread})
	must(t, err)
	if got := agent.tasks[1].Prompt; !strings.Contains(got, "\n## test: it ran too long; it changed # x") || strings.Contains(got, "\u2028") || strings.Contains(got, strings.Repeat("z", 151)) {
		t.Errorf("%s", got)
	}
}

// TestCheckedByTheAgentsJob: of the job that ran the agent the results of the role's own checks
// are taken, as its word.
func TestCheckedByTheAgentsJob(t *testing.T) {
	f := newForge(t, someFiles)
	f.start("test", "lint")
	j := f.job("one", blind{f.dial()}, writes(t, map[string]string{"a": "2"}))
	dir := filepath.Join(t.TempDir(), "artifact")
	j.Unpushed = &unpushed.Folder{Dir: dir}
	j.Checker = &checker{results: [][]step.CheckResult{results(passedCheck("test"), passedCheck("lint"))}}
	_, err := j.Step(f.ctx(), step.Request{Thread: testThread, HandsOver: true})
	must(t, err)
	u := withChangedRecord(t, f.readLeft(dir), func(s *record.Step) {
		if !slices.Equal(s.Checks, []record.Check{passedCheck("test").Check, passedCheck("lint").Check}) {
			t.Errorf("handed over: %+v", s.Checks)
		}
		s.Checks = []record.Check{
			{Name: "forged", Status: record.CheckPassed},
			{Name: "test", Status: record.CheckPassed, DurationMs: 1200, Note: "ok\n# not-a-real-secret-4711 " + strings.Repeat("x", 5_000), Output: strings.Repeat("x\n", 5_000) + "not-a-real-secret-4711"},
			{Name: "test", Status: record.CheckFailed},
		}
	})
	_, err = f.commitLeft(u, redact.Secret{Name: "KEY", Value: "not-a-real-secret-4711"})
	must(t, err)
	steps := f.steps()
	if len(steps) != 1 || len(steps[0].Checks) != 2 {
		t.Fatalf("%+v", steps)
	}
	got := steps[0].Checks
	if got[0].Status != record.CheckPassed || got[0].DurationMs != 1200 || !strings.HasPrefix(got[0].Note, "reported by the agents' job; ok # [redacted:KEY] xxx") || len(got[0].Note) > 1_000 {
		t.Errorf("%+v", got[0])
	}
	if out := got[0].Output; !strings.HasSuffix(out, "x\n[redacted:KEY]") || len(out) > checks.MaxOutput {
		t.Errorf("%q", out)
	}
	if got[1] != (record.Check{Name: "lint", Status: record.CheckSkipped, Note: "the agents' job says nothing of it"}) {
		t.Errorf("%+v", got[1])
	}
}

// TestQuestionHandedOver: an answer that asks a person has no results, in whatever job it was given.
func TestQuestionHandedOver(t *testing.T) {
	f := newForge(t, someFiles)
	dir, err := f.firstJob(f.start("test"), &worker{tb: t, does: []func(task.Task) task.Draft{func(k task.Task) task.Draft { return draftWith(t, k, "ask", "x") }}})
	must(t, err)
	_, err = f.secondJob(dir)
	must(t, err)
	checksOf(t, f.steps())
}

// TestChecksHandedOverFailed: that the checks failed there is what the step failed of.
func TestChecksHandedOverFailed(t *testing.T) {
	f := newForge(t, someFiles)
	f.start("test")
	j := f.job("one", blind{f.dial()}, writes(t, map[string]string{"a": "2"}))
	dir := filepath.Join(t.TempDir(), "artifact")
	j.Unpushed = &unpushed.Folder{Dir: dir}
	j.Checker = &checker{results: [][]step.CheckResult{results(failedCheck("test", "the end"))}}
	_, err := j.Step(f.ctx(), step.Request{Thread: testThread, HandsOver: true})
	if !errors.As(err, new(*step.CheckError)) {
		t.Fatalf("%v", err)
	}
	_, err = f.secondJob(dir)
	var failed *life.FailedError
	if !errors.As(err, &failed) || failed.Phase != "checks" || !strings.Contains(err.Error(), "the check test fails on the agent's work: exit code 1\nthe end") {
		t.Errorf("%v", err)
	}
	if s := f.errorStep(); s.Usage.InputTokens != 30 {
		t.Errorf("%+v", s.Usage)
	}
}

// lame is a remote that takes nothing once it is broken.
type lame struct {
	wire.Remote
	broken bool
}

func (l *lame) Push(ctx context.Context, req wire.PushRequest) (time.Time, error) {
	if l.broken {
		return time.Time{}, &wire.RemoteError{Op: "push", Kind: wire.ErrDenied}
	}
	return l.Remote.Push(ctx, req)
}

// TestChecksBroughtIn: a step that is brought in later keeps the results that it was sealed with.
func TestChecksBroughtIn(t *testing.T) {
	f := newForge(t, someFiles)
	f.start("test")
	remote := &lame{Remote: f.dial()}
	disk := &unpushed.Folder{Dir: filepath.Join(t.TempDir(), "unpushed")}
	agent := writes(t, map[string]string{"a": "2"})
	j := f.job("one", remote, agent)
	j.Unpushed, j.Checker = disk, &checker{results: [][]step.CheckResult{results(passedCheck("test"))}}
	j.Hook = func(point string) { remote.broken = remote.broken || point == "on-disk" }
	_, err := j.Step(f.ctx(), step.Request{Thread: testThread})
	if err == nil {
		t.Fatal("it was pushed")
	}
	next := f.job("one", f.dial(), agent)
	ch := &checker{}
	next.Unpushed, next.Checker, next.Who.Attempt = disk, ch, 2
	_, err = next.Step(f.ctx(), step.Request{Thread: testThread})
	must(t, err)
	want := passedCheck("test").Check
	want.Note = "reported by the job that ran them"
	checksOf(t, f.steps(), want)
	if len(agent.tasks) != 1 || len(ch.asked) != 0 {
		t.Errorf("%d runs, checked %d times", len(agent.tasks), len(ch.asked))
	}
}
