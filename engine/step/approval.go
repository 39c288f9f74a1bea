package step

import (
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/workflow"
)

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
			note = append(note, wayOf(e)+" is open: who said this may approve, and if it says yes, it is an approval.")
			continue
		}
		note = append(note, wayOf(e)+" is refused: there is no approval, as "+no+".")
		why = append(why, no)
		if e.When.Kind != workflow.OnCondition {
			r.approval.closed = append(r.approval.closed, e.When.Value)
		}
	}
	r.approval.why = strings.Join(slices.Compact(why), "; ")
	r.approval.note = strings.Join(note, "\n")
	return nil
}

// wayOf is an edge as its role knows it.
func wayOf(e workflow.Edge) string {
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
