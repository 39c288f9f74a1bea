package workflow

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cmd/uwf/internal/output"
	"github.com/united-workforce/uwf/engine/workflow"
)

// describeChanges says in words what a definition has that the one before it had not: the
// whole first, then roles, then edges, then conditions.
func describeChanges(old, now *workflow.Definition) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if old.Name != now.Name {
		say("renamed from %s", old.Name)
	}
	if old.Dialect != now.Dialect {
		say("written in another dialect: %s, before %s", now.Dialect, old.Dialect)
	}
	if old.Description != now.Description {
		say("description changed")
	}
	if !reflect.DeepEqual(old.Limits, now.Limits) {
		say("limits changed: %s, before %s", limitsText(now.Limits), limitsText(old.Limits))
	}
	out = append(out, roleChanges(old, now)...)
	out = append(out, edgeChanges(old, now)...)
	return append(out, conditionChanges(old, now)...)
}

func limitsText(l *workflow.Limits) string {
	if l == nil || *l == (workflow.Limits{}) {
		return "none"
	}
	var parts []string
	for _, p := range []struct {
		set  bool
		text string
	}{
		{l.MaxSteps > 0, fmt.Sprintf("maxSteps %d", l.MaxSteps)}, {l.MaxStepsPerRole > 0, fmt.Sprintf("maxStepsPerRole %d", l.MaxStepsPerRole)},
		{l.Tokens > 0, fmt.Sprintf("tokens %d", l.Tokens)}, {l.CostUSD > 0, fmt.Sprintf("costUsd %g", l.CostUSD)}, {l.Wall > 0, fmt.Sprintf("wall %s", l.Wall)},
	} {
		if p.set {
			parts = append(parts, p.text)
		}
	}
	return strings.Join(parts, ", ")
}

// unionKeys are the keys of both maps in alphabetical order.
func unionKeys[V any](a, b map[string]V) []string {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]V{}
	}
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

func roleChanges(old, now *workflow.Definition) []string {
	var out []string
	for _, name := range unionKeys(old.Roles, now.Roles) {
		a, before := old.Roles[name]
		b, after := now.Roles[name]
		switch {
		case !before:
			out = append(out, "role "+name+" added")
		case !after:
			out = append(out, "role "+name+" removed")
		default:
			if fields := changedFields(a, b); len(fields) > 0 {
				out = append(out, fmt.Sprintf("role %s: %s changed", name, strings.Join(fields, ", ")))
			}
		}
	}
	return out
}

// changedFields names what differs between two versions of a role.
func changedFields(a, b workflow.Role) []string {
	var out []string
	for _, f := range []struct {
		name string
		same bool
	}{
		{"description", a.Description == b.Description}, {"goal", a.Goal == b.Goal},
		{"capabilities", slices.Equal(a.Capabilities, b.Capabilities)}, {"procedure", a.Procedure == b.Procedure},
		{"output", a.Output == b.Output}, {"systemPrompt", a.SystemPrompt == b.SystemPrompt}, {"frontmatter", reflect.DeepEqual(a.Schema, b.Schema)},
	} {
		if !f.same {
			out = append(out, f.name)
		}
	}
	return out
}

// edgeKey tells the edges of a workflow apart: those of a list, which may share a
// condition, by their number among their like.
type edgeKey struct {
	from string
	when workflow.When
	nth  int
}

func edgesByKey(d *workflow.Definition) (map[edgeKey]workflow.Edge, []edgeKey) {
	out, order := map[edgeKey]workflow.Edge{}, []edgeKey{}
	add := func(k edgeKey, e workflow.Edge) {
		for _, there := out[k]; there; _, there = out[k] {
			k.nth++
		}
		out[k], order = e, append(order, k)
	}
	for _, from := range slices.Sorted(maps.Keys(d.Graph)) {
		for _, e := range d.Graph[from] {
			add(edgeKey{from: from, when: e.When}, e)
		}
	}
	if d.Resume != nil {
		add(edgeKey{from: workflow.Start, when: workflow.When{Kind: workflow.OnStatus, Value: "resume"}}, *d.Resume)
	}
	return out, order
}

func edgeChanges(old, now *workflow.Definition) []string {
	before, _ := edgesByKey(old)
	after, order := edgesByKey(now)
	var out []string
	for _, k := range order {
		a, there := before[k]
		b := after[k]
		if !there {
			out = append(out, fmt.Sprintf("edge %s added", edgeText(k, b)))
			continue
		}
		var what []string
		if a.To != b.To {
			what = append(what, "leads there instead of to "+a.To)
		}
		if a.Prompt != b.Prompt {
			what = append(what, "prompt changed")
		}
		if a.Location != b.Location {
			what = append(what, "location changed")
		}
		if !reflect.DeepEqual(a.Approval, b.Approval) {
			what = append(what, "approval "+approvalChange(a.Approval, b.Approval))
		}
		if len(what) > 0 {
			out = append(out, fmt.Sprintf("edge %s: %s", edgeText(k, b), strings.Join(what, ", ")))
		}
	}
	var gone []string
	for k, e := range before {
		if _, there := after[k]; !there {
			gone = append(gone, fmt.Sprintf("edge %s removed", edgeText(k, e)))
		}
	}
	slices.Sort(gone)
	out = append(out, gone...)
	if len(out) == 0 && !sameOrder(old, now) {
		out = append(out, "the order of edges changed")
	}
	return out
}

func approvalChange(old, now *workflow.Approval) string {
	switch {
	case old == nil:
		return "added"
	case now == nil:
		return "removed"
	}
	return "changed"
}

// sameOrder compares the edges where their order matters.
func sameOrder(old, now *workflow.Definition) bool {
	for from, edges := range now.Graph {
		if !slices.EqualFunc(edges, old.Graph[from], func(a, b workflow.Edge) bool { return reflect.DeepEqual(a, b) }) {
			return false
		}
	}
	return true
}

func edgeText(k edgeKey, e workflow.Edge) string {
	return fmt.Sprintf("%s → %s → %s", k.from, output.Line(k.when.String(), 60), e.To)
}

func conditionChanges(old, now *workflow.Definition) []string {
	var out []string
	for _, name := range unionKeys(old.Conditions, now.Conditions) {
		a, before := old.Conditions[name]
		b, after := now.Conditions[name]
		switch {
		case !before:
			out = append(out, "condition "+name+" added")
		case !after:
			out = append(out, "condition "+name+" removed")
		case a.Expression != b.Expression:
			out = append(out, fmt.Sprintf("condition %s: %s, before %s", name, output.Line(b.Expression, 80), output.Line(a.Expression, 80)))
		case a != b:
			out = append(out, "condition "+name+": description changed")
		}
	}
	return out
}
