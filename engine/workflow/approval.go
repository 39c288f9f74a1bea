package workflow

import (
	"fmt"
	"slices"

	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/strictyaml"
)

// approvalNames are who `not` of an approval may name, in the order in which they
// are stored.
func approvalNames() []string { return []string{ApprovalStarter, ApprovalAuthor} }

// orderNames is who of approvalNames is among names, each once, in the one order.
func orderNames(names []string) []string {
	return lists.Filter(approvalNames(), func(name string) bool { return slices.Contains(names, name) })
}

// readApproval reads whether a person must approve before an edge is taken.
func (c *compiler) readApproval(from string, e *edgeAt, v *strictyaml.Node) {
	at := v.Get("approval")
	if at == nil || at.Val.Kind == strictyaml.Bad {
		return
	}
	what := "`approval` of " + e.describeEdge(from)
	switch {
	case at.Val.Kind == strictyaml.Map:
		e.approval, e.Approval = at, &Approval{Not: c.readExcluded(what, at)}
	case at.Val.Scalar == true && c.stored == "":
		e.approval, e.Approval = at, &Approval{}
	case at.Val.Scalar == false:
		c.reportKey(at, "leave it out", "%s is false", what)
	default:
		// An empty value isn't read as none: a guard that was meant would be lost.
		c.reportKey(at, "write `approval: true`, or {not: [starter, author]} for another person than these",
			"%s must be true or a map, this is %s", what, showScalar(at.Val))
	}
}

// readExcluded reads who the person must not be.
func (c *compiler) readExcluded(what string, approval *strictyaml.Entry) []string {
	c.reportUnknownKeys(approval.Val, what, "not")
	at := approval.Val.Get("not")
	if at == nil {
		if len(approval.Val.Entries) == 0 && !approval.Val.Broken && c.stored == "" {
			c.reportKey(approval, "write `approval: true`, or say who it must not be: {not: [starter]}", "%s is an empty map", what)
		}
		return nil
	}
	what = "`not` of " + what
	switch {
	case at.Val.Kind == strictyaml.Bad:
	case at.Val.Kind != strictyaml.List:
		c.reportKey(at, "write a list: [starter], [author] or [starter, author]", "%s must be a list, this is %s", what, showScalar(at.Val))
	case len(at.Val.Items) == 0:
		c.reportKey(at, "write `approval: true`, or say who it must not be: [starter]", "%s is empty", what)
	}
	var names []string
	for _, item := range at.Val.Items {
		name, _ := item.Scalar.(string)
		switch {
		case item.Kind == strictyaml.Bad:
		case !slices.Contains(approvalNames(), name):
			c.reportValue(item, suggestName(name, approvalNames()), "%s names %s, which is not known", what, showScalar(item))
		case slices.Contains(names, name):
			c.reportValue(item, "remove one of the two", "%s names %q twice", what, name)
		default:
			names = append(names, name)
		}
	}
	return orderNames(names)
}

// checkApproval refuses approvals where there is nothing that a person could have
// approved.
func (c *compiler) checkApproval(from string, e *edgeAt) {
	switch {
	case e.approval == nil:
	case from == Start:
		c.reportKey(e.approval, "leave it out, or put it on an edge of a role that asks a person",
			"%s can't need an approval: nobody has asked anything there", e.describeEdge(from))
	case e.To == Suspend:
		c.reportKey(e.approval, "put it on the edges that the approval opens", "%s can't need an approval: it is what asks for one", e.describeEdge(from))
	}
}

// checkAsks finds roles whose edges need an approval, and that never ask for one:
// once, at the first of the edges.
func (c checker) checkAsks(f fromAt) {
	needs := slices.IndexFunc(f.edges, func(e edgeAt) bool { return e.approval != nil })
	if needs < 0 || c.def.AgentSuspends || f.broken || c.findRole(f.name) == nil || slices.ContainsFunc(f.edges, c.asksPerson) {
		return
	}
	e := f.edges[needs]
	c.reportKey(e.approval,
		fmt.Sprintf("add an edge of %s with `role: $SUSPEND`, whose prompt is the question, or write `new:` in place of `_:` under $START: then every role may suspend", f.name),
		"%s can't be approved: role %q never asks a person", e.describeEdge(f.name), f.name)
}

// asksPerson reports whether an edge leads to a person, or is mistyped and meant to, which
// was reported.
func (c checker) asksPerson(e edgeAt) bool {
	return e.To == Suspend || c.findRole(e.To) == nil && Suggest(e.To, []string{Suspend}) != ""
}

// toPayload is the approval as a workflow node has it.
func (a *Approval) toPayload() map[string]any {
	out := map[string]any{}
	not := lists.Map(orderNames(a.Not), func(name string) any { return name })
	if len(not) > 0 {
		out["not"] = not
	}
	return out
}
