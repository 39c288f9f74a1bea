package prompt

import (
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/engine/workflow/shape"
	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/text"
)

// deliverableTitle is the first line of what writeDeliverable writes.
const deliverableTitle = "# Your deliverable"

// writeDeliverable says how an answer must look: fields, statuses, examples.
func writeDeliverable(in Input) string {
	var b strings.Builder
	schema := in.Definition.Roles[in.Role].Schema
	key := statusKeyOf(in)
	fmt.Fprintf(&b, deliverableTitle+"\n\n"+
		"You are %q in the workflow %q. Do the work, then end with one message of this form, without the lines of backquotes and with nothing before it:\n\n"+
		"```\n---\n<fields, as YAML>\n---\n\n<your report, as markdown>\n```\n\n"+
		"A program reads the fields between the two lines of three dashes and decides by them what happens next. "+
		"The report is for those who work after you. They see nothing else of what you did or thought.\n",
		in.Role, in.Definition.Name)
	fieldList(&b, in, schema, key)
	statusList(&b, in)
	conditionList(&b, in)
	writeSuspension(&b, in)
	writeExamples(&b, in, schema, key)
	b.WriteString("\nStay within your role: do what this deliverable asks for, and leave the work of other roles to them.\n")
	return b.String()
}

// fieldList names every field once, with what it must hold.
func fieldList(b *strings.Builder, in Input, schema any, key string) {
	// Where conditions decide, a status is a field like any other.
	apart := !in.Definition.Lists[in.Role]
	variants := shape.Variants(schema, key)
	all := fieldsOf(variants)
	if len(all) == 0 {
		b.WriteString("\nNo fields are asked for: leave the space between the dashes empty.\n")
		return
	}
	b.WriteString("\n## Fields\n\n")
	for _, f := range all {
		if f.Name == key && apart {
			continue // the statuses have a list of their own
		}
		fmt.Fprintf(b, "- `%s`: %s, %s", f.Name, describeSchema(f.Schema, 0), describeWhen(f, variants))
		if about := text.Line(textOf(f.Schema, "description")); about != "" {
			fmt.Fprintf(b, ". %s", about)
		}
		b.WriteByte('\n')
	}
	if statuses := shape.StatusesOf(schema, key); statuses.Declared && apart {
		need := "optional"
		if statuses.Required {
			need = "required"
		}
		fmt.Fprintf(b, "- `%s`: the outcome, %s; see below\n", key, need)
	}
}

// fieldsOf lists the fields of all variants, each once.
func fieldsOf(variants []shape.Variant) []shape.Field {
	var out []shape.Field
	for _, v := range variants {
		for _, f := range v.Fields {
			if !slices.ContainsFunc(out, func(g shape.Field) bool { return g.Name == f.Name }) {
				out = append(out, f)
			}
		}
	}
	return out
}

// describeWhen says in which outputs a field stands.
func describeWhen(f shape.Field, variants []shape.Variant) string {
	var needed, possible []string
	statuses, everywhere := 0, true
	for _, v := range variants {
		i := slices.IndexFunc(v.Fields, func(g shape.Field) bool { return g.Name == f.Name })
		required := i >= 0 && v.Fields[i].Required
		if v.Status == "" {
			everywhere = everywhere && required
			continue
		}
		statuses++
		if i >= 0 {
			possible = append(possible, "`"+v.Status+"`")
		}
		if required {
			needed = append(needed, "`"+v.Status+"`")
		}
	}
	switch {
	case statuses == 0 && everywhere, statuses > 0 && len(needed) == statuses:
		return "required"
	case statuses == 0 && len(variants) > 1:
		return "in some of the forms below"
	case len(needed) > 0 && len(needed) == len(possible):
		return "required with status " + strings.Join(needed, ", ") + ", else left out"
	case len(needed) > 0:
		return "required with status " + strings.Join(needed, ", ")
	case len(possible) < statuses:
		return "optional, only with status " + strings.Join(possible, ", ")
	}
	return "optional"
}

// statusList names the statuses that lead on, and where to.
func statusList(b *strings.Builder, in Input) {
	statuses := in.Definition.Statuses(in.Role)
	none := "left out"
	if asksForUnit(in) {
		none = "`" + workflow.Unit + "`"
	} else if len(statuses) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## Allowed values of `%s`\n\n", statusKeyOf(in))
	line := func(name, closed, to string) {
		does := describeTarget(to)
		if slices.Contains(in.Closed, closed) {
			does = "not now; only a person's approval opens it"
		}
		fmt.Fprintf(b, "- %s: %s\n", name, does)
	}
	edges := in.Definition.Graph[in.Role]
	for _, s := range statuses {
		for _, e := range edges {
			if e.When.Kind == workflow.OnStatus && e.When.Value == s {
				line("`"+s+"`", s, e.To)
			}
		}
	}
	for _, e := range edges {
		if e.When.Kind == workflow.Always {
			line(none, "", e.To)
		}
	}
	b.WriteString("\nAny other value is refused.\n")
}

// asksForUnit reports whether the role's schema has a name for the outcome that is none,
// where that leads on.
func asksForUnit(in Input) bool {
	statuses := shape.StatusesOf(in.Definition.Roles[in.Role].Schema, statusKeyOf(in))
	return slices.Contains(statuses.Names(), workflow.Unit) && !in.Definition.Lists[in.Role] && in.Definition.StatusOptional(in.Role)
}

// conditionList names the conditions that decide over the output, and where they
// lead to.
func conditionList(b *strings.Builder, in Input) {
	edges := in.Definition.Graph[in.Role]
	if !in.Definition.Lists[in.Role] || len(edges) < 2 {
		return
	}
	b.WriteString("\n## What happens next\n\nThe first of these that holds decides. They are JSONata over {start, steps}; your answer is steps[-1], its fields are steps[-1].output.\n\n")
	for _, e := range edges {
		if e.When.Kind != workflow.OnCondition {
			fmt.Fprintf(b, "- otherwise: %s\n", describeTarget(e.To))
			continue
		}
		c := in.Definition.Conditions[e.When.Value]
		fmt.Fprintf(b, "- %s", e.When.Value)
		if about := text.Line(c.Description); about != "" {
			fmt.Fprintf(b, " (%s)", about)
		}
		fmt.Fprintf(b, ", `%s`: %s\n", text.Line(c.Expression), describeTarget(e.To))
	}
}

// suspendConditions are the conditions that hand the thread to a person.
func suspendConditions(in Input) []string {
	var out []string
	for _, e := range in.Definition.Graph[in.Role] {
		if e.When.Kind == workflow.OnCondition && e.To == workflow.Suspend {
			out = append(out, e.When.Value)
		}
	}
	return out
}

func describeTarget(to string) string {
	switch to {
	case workflow.End:
		return "the workflow ends, the work is done"
	case workflow.Suspend:
		return "the workflow waits for a person"
	}
	return "goes to " + to
}

// writeSuspension says how to hand over to a person.
func writeSuspension(b *strings.Builder, in Input) {
	key := statusKeyOf(in)
	statuses := moderator.SuspendStatuses(in.Definition, in.Role)
	b.WriteString("\n## If you can't go on without a person\n\n")
	var how string
	switch conditions := suspendConditions(in); {
	case in.Definition.AgentSuspends:
		how = fmt.Sprintf("with `%s: %s` and a field `reason` with your question, instead of the fields above", workflow.StatusField, workflow.Suspend)
	case len(statuses) > 0:
		statuses = lists.Map(statuses, func(s string) string { return "`" + key + ": " + writeScalar(s) + "`" })
		how = "with " + strings.Join(statuses, " or ") + " and say exactly what you need to know"
	case len(conditions) > 0:
		how = "so that the condition " + strings.Join(conditions, " or ") + " holds, and say exactly what you need to know"
	default:
		b.WriteString("There is no way to ask from this role. Decide what you can yourself, and say in your report what you assumed.\n")
		return
	}
	fmt.Fprintf(b, "Answer %s. The workflow waits, and you continue with the answer. "+
		"Do this only for what you can't find out or decide yourself.\n", how)
}

// writeExamples shows one answer for each shape that the schema allows and the graph
// has an edge for.
func writeExamples(b *strings.Builder, in Input, schema any, key string) {
	allowed := in.Definition.Statuses(in.Role)
	if asksForUnit(in) {
		allowed = append(slices.Clone(allowed), workflow.Unit)
	}
	var shown []shape.Variant
	for _, v := range shape.Variants(schema, key) {
		closed := v.Status
		if closed == workflow.Unit {
			closed = "" // as the engine names it
		}
		if slices.Contains(in.Closed, closed) && len(allowed) > 0 {
			continue
		}
		if v.Status == "" || len(allowed) == 0 || slices.Contains(allowed, v.Status) {
			shown = append(shown, v)
		}
	}
	if len(shown) == 0 {
		return
	}
	b.WriteString("\n## Examples\n")
	for _, v := range shown {
		title := "An answer"
		if v.Status != "" {
			title += fmt.Sprintf(" with `%s: %s`", key, v.Status)
		}
		fmt.Fprintf(b, "\n%s:\n\n```\n---\n%s---\n\n<your report, as markdown>\n```\n", title, Example(v, key))
	}
}

// Example is the frontmatter of an answer of that shape, as YAML, without the
// dashes: every field with a value of its kind, optional ones marked.
func Example(v shape.Variant, key string) string {
	var b strings.Builder
	for _, f := range v.Fields {
		value := sampleValue(f.Schema, f.Name, 0)
		if f.Name == key && v.Status != "" {
			value = node{scalar: writeScalar(v.Status)}
		}
		lines := value.keyLines(yamlKey(f.Name))
		if !f.Required && f.Name != key {
			lines[0] += " # optional"
		}
		b.WriteString(strings.Join(lines, "\n"))
		b.WriteByte('\n')
	}
	return b.String()
}

// plainText is text that YAML reads as text without quotes, but for the words of its own.
var (
	plainText = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_-]*$`)
	yamlWords = lazyregexp.New(`(?i)^(true|false|yes|no|on|off|y|n|null)$`)
)

func yamlKey(name string) string {
	if plainText.MatchString(strings.TrimPrefix(name, "$")) {
		return name
	}
	return compactJSON(name)
}

// writeScalar writes a value so that YAML 1.1 and 1.2 both read the same.
func writeScalar(v any) string {
	s, ok := v.(string)
	if !ok {
		return compactJSON(v)
	}
	if plainText.MatchString(s) && !yamlWords.MatchString(s) {
		return s
	}
	return compactJSON(s)
}
