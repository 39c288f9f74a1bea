// Package variables checks the names that the templates on a workflow's edges use
// against the schema of the output that fills them in. It is pure, and renders
// nothing.
package variables

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/workflow/shape"
	"github.com/united-workforce/uwf/engine/workflow/source"
	"github.com/united-workforce/uwf/internal/strictyaml"
)

// Body is the name of the markdown under an output's frontmatter.
const Body = "_body"

// Template is a template to check, and all that is needed to say what is wrong
// with it.
type Template struct {
	Problems *source.Problems
	What     string           // the template, for messages: "prompt of edge a → done"
	Text     *strictyaml.Node // a text
	// Output is what fills the template in; nil: nothing does, as on the edges of $START.
	Output *Output
	// Warnings takes the names that come out empty, since nothing fills them in, and those
	// that may, since an output fits without them.
	Warnings *source.Problems
	// Unknown says that nothing can be said of the output: only the syntax is looked at.
	Unknown bool
	// Suggest returns the name that a mistyped one most likely means; "" for none.
	Suggest func(name string, known []string) string
}

// Output is a role's output with one status; empty: with any.
type Output struct {
	Role   string
	Schema any
	Key    string // the field with the status
	Status string
	// Conditional says that more than the status decides whether the template is used: what
	// the schema leaves open may be there for certain.
	Conditional bool
}

// warnUnfilled warns of a name in a template that nothing fills.
func (t *Template) warnUnfilled(at strictyaml.Pos, length int, name string) {
	t.Warnings.Add(at, length, "leave it out; the thread's own prompt is given to every role", "%s: {{%s}} comes out empty: nothing has run that could fill it in", t.What, name)
}

// warnOptional warns of a name that an output may lack. Path is the field that is meant, or
// the one around it; around is what asks whether a field is there.
func (t *Template) warnOptional(at strictyaml.Pos, length int, name, path, around string) {
	of := fmt.Sprintf("the output of %s", t.Output.Role)
	if t.Output.Status != "" {
		of += fmt.Sprintf(" with status %q", t.Output.Status)
	}
	t.Warnings.Add(at, length, fmt.Sprintf("write %s around what needs it, or add %q to the `required` of its object", around, path[strings.LastIndex(path, ".")+1:]),
		"%s: {{%s}} may come out empty: %s fits without %q", t.What, name, of, path)
}

func (t *Template) plainText() string {
	s, _ := t.Text.Scalar.(string)
	return s
}

// unknownField explains a name that a role's output doesn't have.
func (t *Template) unknownField(name string, levels []level) (wrong, fix string) {
	o := t.Output
	for _, other := range shape.StatusesOf(o.Schema, o.Key).Names() {
		if other == o.Status || o.Status == "" {
			continue
		}
		if slices.ContainsFunc(shape.FieldsFor(o.Schema, o.Key, other), func(f shape.Field) bool { return f.Name == name }) {
			return fmt.Sprintf("an output of %s with status %q has no such field, only one with status %q", o.Role, o.Status, other),
				"use a field of this status, or add it to the schema"
		}
	}
	var known []string
	for _, l := range levels {
		known = append(known, levelNames(l)...)
	}
	return fmt.Sprintf("the output of %s has no such field", o.Role), t.suggestField(name, known)
}

// suggestField is the fix for a field that is not known.
func (t *Template) suggestField(name string, known []string) string {
	if meant := t.Suggest(name, known); meant != "" {
		return fmt.Sprintf("did you mean %q?", meant)
	}
	if len(known) == 0 {
		return "add the field to the schema"
	}
	slices.Sort(known)
	return "known are: " + strings.Join(slices.Compact(known), ", ")
}

func levelNames(l level) []string { return slices.Sorted(maps.Keys(l.fields)) }
