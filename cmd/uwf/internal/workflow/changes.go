package workflow

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/engine/workflow"
)

// remarks are what holds of all that could be said.
type remarks []string

func (r *remarks) addIf(holds bool, format string, args ...any) {
	if holds {
		*r = append(*r, fmt.Sprintf(format, args...))
	}
}

func (r remarks) String() string { return strings.Join(r, ", ") }

// describeChanges says in words what a definition has that the one before it had not: the
// whole first, then roles, then edges, then conditions.
func describeChanges(old, now *workflow.Definition) []string {
	var out remarks
	out.addIf(old.Name != now.Name, "renamed from %s", old.Name)
	out.addIf(old.Dialect != now.Dialect, "written in another dialect: %s, before %s", now.Dialect, old.Dialect)
	out.addIf(old.Description != now.Description, "description changed")
	out.addIf(!reflect.DeepEqual(old.Limits, now.Limits), "limits changed: %s, before %s", limitsText(now.Limits), limitsText(old.Limits))
	return slices.Concat(out, entryChanges("role", old.Roles, now.Roles, roleChange), edgeChanges(old, now), entryChanges("condition", old.Conditions, now.Conditions, conditionChange))
}

func limitsText(l *workflow.Limits) string {
	if l == nil || *l == (workflow.Limits{}) {
		return "none"
	}
	var out remarks
	out.addIf(l.MaxSteps > 0, "maxSteps %d", l.MaxSteps)
	out.addIf(l.MaxStepsPerRole > 0, "maxStepsPerRole %d", l.MaxStepsPerRole)
	out.addIf(l.Tokens > 0, "tokens %d", l.Tokens)
	out.addIf(l.CostUSD > 0, "costUsd %g", l.CostUSD)
	out.addIf(l.Wall > 0, "wall %s", l.Wall)
	return out.String()
}

// entryChanges says what became of the entries of a map, in alphabetical order; change says
// it of two with one name, and nothing where they are the same.
func entryChanges[V any](what string, old, now map[string]V, change func(a, b V) string) (out remarks) {
	names := slices.AppendSeq(slices.Collect(maps.Keys(now)), maps.Keys(old))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		a, before := old[name]
		b, after := now[name]
		said := change(a, b)
		out.addIf(!before, "%s %s added", what, name)
		out.addIf(!after, "%s %s removed", what, name)
		out.addIf(before && after && said != "", "%s %s: %s", what, name, said)
	}
	return out
}

// roleChange names what differs between two versions of a role.
func roleChange(a, b workflow.Role) string {
	var out remarks
	out.addIf(a.Description != b.Description, "description")
	out.addIf(a.Goal != b.Goal, "goal")
	out.addIf(!slices.Equal(a.Capabilities, b.Capabilities), "capabilities")
	out.addIf(a.Procedure != b.Procedure, "procedure")
	out.addIf(a.Output != b.Output, "output")
	out.addIf(!slices.Equal(a.Checks, b.Checks), "checks")
	out.addIf(a.SystemPrompt != b.SystemPrompt, "systemPrompt")
	out.addIf(!reflect.DeepEqual(a.Schema, b.Schema), "frontmatter")
	if len(out) == 0 {
		return ""
	}
	return out.String() + " changed"
}

func conditionChange(a, b workflow.Condition) string {
	switch {
	case a.Expression != b.Expression:
		return fmt.Sprintf("%s, before %s", output.Line(b.Expression, 80), output.Line(a.Expression, 80))
	case a != b:
		return "description changed"
	}
	return ""
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

func edgeChanges(old, now *workflow.Definition) (out remarks) {
	before, was := edgesByKey(old)
	after, order := edgesByKey(now)
	for _, k := range order {
		a, there := before[k]
		b := after[k]
		said := edgeChange(a, b)
		out.addIf(!there, "edge %s added", edgeText(k, b))
		out.addIf(there && said != "", "edge %s: %s", edgeText(k, b), said)
	}
	var gone remarks
	for k, e := range before {
		_, there := after[k]
		gone.addIf(!there, "edge %s removed", edgeText(k, e))
	}
	slices.Sort(gone)
	out = append(out, gone...)
	out.addIf(len(out) == 0 && !slices.Equal(was, order), "the order of edges changed")
	return out
}

// edgeChange says what differs between two versions of an edge.
func edgeChange(a, b workflow.Edge) string {
	var out remarks
	out.addIf(a.To != b.To, "leads there instead of to %s", a.To)
	out.addIf(a.Prompt != b.Prompt, "prompt changed")
	out.addIf(a.Location != b.Location, "location changed")
	out.addIf(a.Approval == nil && b.Approval != nil, "approval added")
	out.addIf(a.Approval != nil && b.Approval == nil, "approval removed")
	out.addIf(a.Approval != nil && b.Approval != nil && !slices.Equal(a.Approval.Not, b.Approval.Not), "approval changed")
	return out.String()
}

func edgeText(k edgeKey, e workflow.Edge) string {
	return fmt.Sprintf("%s → %s → %s", k.from, output.Line(k.when.String(), 60), e.To)
}
