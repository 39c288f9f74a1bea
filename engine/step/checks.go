package step

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/engine/checks"
	"github.com/united-workforce/uwf/engine/prompt"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/text"
)

// Checker runs the checks that roles have.
type Checker interface {
	// RunChecks runs checks on throw-away copies of a commit, each to its end. An error says
	// that they could not be run; that one failed stands in its result.
	RunChecks(ctx context.Context, req CheckRequest) ([]CheckResult, error)
	// Protects reports whether a file decides what checks say.
	Protects(path string) bool
}

// CheckRequest says which checks are to run, and on what.
type CheckRequest struct {
	Names []string
	// Commit is of the folder as the agent left it. It is on no server.
	Commit wire.ID
	// Base is what the thread's work began from: what fails there as well is not the work of
	// this role. Zero: it began from nothing.
	Base wire.ID
	// Location is the folder that the role works in, from the top; empty: the top.
	Location string
	// Time is what all of them may take together.
	Time time.Duration
}

// CheckResult is how one check ended.
type CheckResult struct {
	record.Check
	// Enforced: where it failed, the answer is not taken.
	Enforced bool
}

// CheckError says that an agent's work does not pass its role's checks, after all its tries.
type CheckError struct{ Failed []CheckResult }

func (e *CheckError) Error() string {
	var b strings.Builder
	for i, f := range e.Failed {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "the check %s fails on the agent's work: %s\n%s", f.Name, f.DescribeEnd(), f.Output)
	}
	return b.String()
}

// maxCorrections is how often an agent's work goes back to it with what its checks say.
const maxCorrections = 2

// runChecked runs the agent, and again with what its role's checks complain of, until they
// pass or its tries are used up. All of it is one run for the limits.
func (r *agentRun) runChecked(ctx context.Context) (task.Draft, error) {
	if err := r.prepareWorkspace(ctx); err != nil {
		return task.Draft{}, err
	}
	r.task.Timeout = r.Lease.AgentTime(r.task.Timeout) // that took some
	asked, timeout, began := r.task.Prompt, r.task.Timeout, r.e.Clock.Now()
	var last task.Draft
	for n := 1; ; n++ {
		draft, err := r.e.Agent.Run(ctx, withLeft(r.task, last), &r.meter)
		last = draft
		if err != nil || len(r.Def.Roles[r.task.Role].Checks) == 0 || r.e.Checker == nil {
			return draft, err
		}
		failed, answer, err := r.checkWork(ctx, draft)
		child, childErr := r.draftStep(draft)
		if childErr == nil && len(failed) > 0 {
			draft.Usage = reportedUsage(draft.Usage, child.Usage) // its step leads nowhere
		}
		left := timeout - r.e.Clock.Now().Sub(began)
		switch {
		case err != nil:
			return draft, err
		case len(failed) == 0:
			return draft, nil
		case n > maxCorrections || left <= 0:
			return draft, &leftError{"checks", &CheckError{failed}}
		}
		r.spent = addUsage(r.spent, draft.Usage)
		complaints := lists.Map(failed, func(f CheckResult) prompt.Complaint {
			return prompt.Complaint{Check: f.Name, End: f.DescribeEnd(), Output: f.Output}
		})
		r.emitNotice(fmt.Sprintf("the agent is asked to mend what its checks complain of (%d of %d)", n, maxCorrections))
		r.task.Prompt = prompt.Correct(asked, answer, complaints, n, maxCorrections)
		if childErr == nil {
			r.task.Corrected = &task.Corrected{Of: draft.Handle, Detail: child.Detail, From: len(strings.TrimRight(asked, "\n"))}
		}
		r.task.Timeout = r.Lease.AgentTime(left)
	}
}

// withLeft is a task whose agent may read what its last run has left, if it is a correction. The
// step's own task lacks these nodes, since no step has stored them.
func withLeft(t task.Task, last task.Draft) task.Task {
	if t.Corrected != nil {
		t.Nodes = maps.Clone(t.Nodes)
		t.Nodes[gitcas.Place{Thread: t.Thread, Of: last.Handle}] = last.Nodes
	}
	return t
}

// checkWork runs the role's checks on the folder as the agent left it. failed are those that
// keep its answer from being taken. An answer that can't be taken anyway, and one that asks a
// person, are not checked.
func (r *agentRun) checkWork(ctx context.Context, d task.Draft) (failed []CheckResult, answer string, err error) {
	r.checks, r.checked = nil, wire.ZeroID // of another tree
	s, err := r.sealDraft(d)
	var next plan
	if err == nil {
		next, err = r.nextAfter(s)
	}
	if err != nil || next.suspend != "" {
		return nil, "", nil //nolint:nilerr // sealing it says so
	}
	snap, err := r.e.Folder.TakeSnapshot(ctx, workspace.SnapshotRequest{Parents: r.workParents(), Message: "check", When: r.Lease.ServerTime()})
	if err != nil {
		return nil, "", &leftError{"workspace", err}
	}
	r.checked = snap.Tree
	results, err := r.e.Checker.RunChecks(ctx, CheckRequest{
		Names: r.Def.Roles[r.task.Role].Checks, Commit: snap.Commit, Base: plumbing.NewHash(r.Chain.Start.Base),
		Location: r.task.Location, Time: r.Lease.AgentTime(0),
	})
	if err != nil {
		return nil, "", &leftError{"checks", fmt.Errorf("run the checks: %w", err)}
	}
	flags := flagChanges(ctx, r, &snap)
	for _, res := range results {
		if res.Status != record.CheckSkipped {
			res.Note = checks.JoinNotes(res.Note, flags)
		}
		res.Note, res.Output = r.cleanLine(res.Note), r.cleanOutput(res.Output)
		r.checks = append(r.checks, res.Check)
		r.e.Emit(thread.Event{Kind: "check", Thread: r.ID, Step: r.StepNumber(), Role: r.task.Role, Status: res.Status, Text: res.Describe()})
		if res.Enforced && res.Status == record.CheckFailed {
			failed = append(failed, res)
		}
	}
	said, err := text.EncodeJSON(s.Output)
	return failed, string(said) + "\n\n" + s.Body, err
}

// flagChanges says which files that decide what checks say the role changed, and whether
// there are fewer tests than before; empty: neither.
func flagChanges(ctx context.Context, r *agentRun, snap *workspace.Snapshot) string {
	data := map[wire.ID][]byte{}
	for _, o := range snap.Objects {
		data[o.ID] = o.Data
	}
	var changed []string
	var counted []workspace.Change
	wanted := map[wire.ID]bool{}
	for _, c := range snap.Changes {
		if r.e.Checker.Protects(c.Path) {
			changed = append(changed, c.Path)
		}
		if !checks.CanHoldTests(c.Path) {
			continue
		}
		counted = append(counted, c)
		if c.Kind != workspace.Added {
			wanted[c.Old] = true
		}
		if _, made := data[c.Blob]; !made { // a file that was moved
			wanted[c.Blob] = true
		}
	}
	note := ""
	if len(changed) > 0 {
		note = "it changed " + checks.NameSome(changed)
	}
	old, err := r.e.ReadBlobs(ctx, slices.Collect(maps.Keys(wanted)))
	if err != nil {
		return checks.JoinNotes(note, "its tests could not be counted")
	}
	maps.Copy(data, old)
	lost := 0
	for _, c := range counted {
		if c.Kind != workspace.Added {
			lost += checks.CountTests(c.Path, data[c.Old])
		}
		if c.Kind != workspace.Deleted {
			lost -= checks.CountTests(c.Path, data[c.Blob])
		}
	}
	if lost > 0 {
		note = checks.JoinNotes(note, text.Plural(lost, "test")+" fewer than before")
	}
	return note
}

// reportedChecks are the checks that another job says it has run: only those that the role
// has, and marked as its word.
func (r *agentRun) reportedChecks(said []record.Check, who string) []record.Check {
	var out []record.Check
	for _, name := range r.Def.Roles[r.task.Role].Checks {
		i := slices.IndexFunc(said, func(c record.Check) bool { return c.Name == name })
		if i < 0 {
			out = append(out, record.Check{Name: name, Status: record.CheckSkipped, Note: who + " says nothing of it"})
			continue
		}
		c := said[i]
		c.Note, c.Output = r.cleanLine(checks.JoinNotes("reported by "+who, c.Note)), r.cleanOutput(c.Output)
		out = append(out, c)
	}
	return out
}

// cleanOutput makes the end of an output fit to be shown and kept. Secrets are taken out before
// the cut, so that it leaves no part of one.
func (r *agentRun) cleanOutput(s string) string {
	clean, err := thread.CleanText(r.e.Redact, "output", s)
	if err != nil {
		return "" // what can't be checked for secrets is not kept
	}
	return checks.CutHead(text.Lines(clean), checks.MaxOutput)
}

// checkUnchanged makes sure that what is committed is what was checked.
func checkUnchanged(r *agentRun, snap *workspace.Snapshot) error {
	if r.checks != nil && !r.checked.IsZero() && snap.Tree != r.checked {
		return fmt.Errorf("%s changed after its checks: something that the agent started goes on in it", r.e.Folder.Dir())
	}
	return nil
}
