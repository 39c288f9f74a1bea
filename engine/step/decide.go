package step

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas/record"
)

// plan is what the moderator makes of the thread's last output.
type plan struct {
	result   string // what that output decided
	role     string
	prompt   string
	location string
	agent    string // its name, and the command that runs it
	command  string
	end      bool
	suspend  string // the reason
	limit    error
}

// runsAgent reports whether an agent is to run.
func (p plan) runsAgent() bool { return p.role != "" && p.suspend == "" && p.limit == nil }

// decideRole asks the moderator whose turn it is, and checks the limits before
// anything costs money.
func (r *turn) decideRole(ctx context.Context) error {
	if r.Entry.Pause != nil {
		r.plan = plan{role: life.WaitingRole(r.Entry), suspend: r.Entry.Pause.Reason}
		return nil
	}
	d, err := r.DecideNext()
	if err != nil {
		return err
	}
	r.plan = planOf(d)
	if r.plan.role == "" {
		return nil
	}
	if err := r.noteApproval(); err != nil {
		return err
	}
	r.plan.agent, r.plan.command, err = r.e.Settings.Agent(r.Def, r.plan.role, r.req.Agent)
	if err != nil {
		return life.Usagef("thread %s, role %s: %v", r.ID, r.plan.role, err)
	}
	if err := thread.CheckPrice(r.e.Settings, r.Def.Name, r.plan.role, r.req.Agent, r.effectiveLimits().CostUSD); err != nil {
		return err
	}
	return r.countUsed(ctx, nil)
}

func planOf(d moderator.Decision) plan {
	p := plan{result: d.Result(), prompt: d.Prompt, end: d.Kind == moderator.End}
	switch d.Kind {
	case moderator.Run:
		p.role, p.location = d.Role, d.Location
	case moderator.Suspend:
		p.suspend = d.Reason
	}
	return p
}

// nextAfter puts the new output before the moderator, before it is committed: a status
// without an edge would leave the thread stuck.
func (r *agentRun) nextAfter(s *sealed) (plan, error) {
	last := moderator.Output{Role: r.task.Role, Output: s.Output, Body: s.Body}
	if len(r.Def.Conditions) > 0 {
		// What the commit adds to the node (work commit, earlier attempts) is not
		// known yet.
		n, _, err := s.step.Node(r.Lease.ServerTime())
		if err != nil {
			return plan{}, fmt.Errorf("step node: %w", err)
		}
		last.Node, _ = n.Payload.(map[string]any)
	}
	t, err := r.ModeratorThread(last)
	if err != nil {
		return plan{}, err
	}
	d, err := moderator.Next(r.Def, t)
	if err == nil {
		err = r.checkApproval(d)
	}
	if err == nil && len(d.Prompt) > reading.MaxPrompt {
		err = fmt.Errorf("the output fills the prompt of role %s with %d bytes; at most %d are passed on: write long texts to files", d.Role, len(d.Prompt), reading.MaxPrompt)
	}
	return planOf(d), err
}

func (r *turn) waitingRole() string {
	if r.plan.role != "" {
		return r.plan.role
	}
	if n := len(r.Chain.Steps); n > 0 {
		return r.Chain.Steps[n-1].Role
	}
	return ""
}

// A job that does several steps of a thread pushes each step together with its claim for
// the next one: pushes are scarce. n steps so take n+1 of them.

// planNext decides, before a step is committed, whether this job takes the next one at
// once: whoever asked for this step says so, and the limits leave something for it.
func (r *run) planNext(next plan, usage *record.Usage) (*lease.Lease, error) {
	if r.req.Next == nil || next.role == "" {
		return nil, nil
	}
	after := newTurn(r.e, r.req)
	after.Entry, after.Def, after.used, after.plan = r.Entry, r.Def, r.used, next
	after.used.Add(r.task.Role, usage)
	if limit := after.effectiveLimits().Check(after.used, next.role); limit != nil {
		return nil, nil //nolint:nilerr // the next job finds it, and says so
	}
	who, goesOn := r.req.Next()
	if !goesOn {
		return nil, nil
	}
	t := after.claimTerms()
	t.Ahead = r.req.Ahead
	return r.e.Leases().NewLease(r.ID, who, t)
}

// describeThread describes the thread as this run last saw it.
func (r *turn) describeThread() thread.Result {
	res := r.ThreadResult()
	res.NextRole = r.plan.role
	return res
}

// approval is what the want of one means to the role whose turn it is.
type approval struct {
	closed []string // statuses, "" for none, that only an approval opens, and there is none
	why    string
	note   string // what the role is told of that
}

// openStatuses are the statuses that the role may put out now.
func (r *turn) openStatuses() []string {
	return slices.DeleteFunc(r.Def.Statuses(r.plan.role), func(s string) bool { return slices.Contains(r.approval.closed, s) })
}

// noteApproval works out which edges are closed to the role whose turn it is, for want of
// an approval, and what it is told of that.
func (r *turn) noteApproval() error {
	guarded := r.Def.Guarded(r.plan.role)
	if len(guarded) == 0 {
		return nil
	}
	a, err := r.GatherApproval(r.plan.role)
	if err != nil {
		return err
	}
	var note, why []string
	for _, e := range guarded {
		no := a.Refusal(e.Approval.Not)
		if no == "" {
			note = append(note, describeGuardedEdge(e)+" is open: who said this may approve, and if it says yes, it is an approval.")
			continue
		}
		note = append(note, describeGuardedEdge(e)+" is refused: there is no approval, as "+no+".")
		why = append(why, no)
		if e.When.Kind != workflow.OnCondition {
			r.approval.closed = append(r.approval.closed, e.When.Value)
		}
	}
	r.approval.why = strings.Join(slices.Compact(why), "; ")
	r.approval.note = strings.Join(note, "\n")
	return nil
}

// describeGuardedEdge is an edge that needs an approval, as its role knows it.
func describeGuardedEdge(e workflow.Edge) string {
	switch e.When.Kind {
	case workflow.OnCondition:
		return "An output for which " + e.When.Value + " holds"
	case workflow.Always:
		return "An output without a status"
	}
	return "`" + e.When.Value + "`"
}

// checkApproval checks that the new output takes no edge that it has no approval for.
func (r *turn) checkApproval(d moderator.Decision) error {
	if d.Edge.Approval == nil {
		return nil
	}
	a, err := r.GatherApproval(r.plan.role)
	if err != nil {
		return err
	}
	return moderator.Approve(d, a)
}
