package extract

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/engine/workflow/shape"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/strictyaml"
	"github.com/united-workforce/uwf/internal/text"
)

// maxProblems is how many of the schema's complaints one message lists.
const maxProblems = 20

// Complaint is the message that asks an agent to write its answer again: what was
// wrong with it, the statuses that the workflow has an edge for, and a short
// example that fits the schema. schema may be any that Frontmatter was given,
// allowed may be empty.
func Complaint(err error, schema any, allowed []string) string {
	var b strings.Builder
	b.WriteString("Your answer could not be used: " + reasonOf(err) + ".\n")
	e := (*OutputError)(nil)
	if errors.As(err, &e) && len(e.Problems) > 0 {
		b.WriteString("\n- " + strings.Join(e.listProblems(), "\n- ") + "\n")
	}
	key := ""
	s, schemaErr := compileSchema(schema)
	if schemaErr == nil {
		key = s.statusKey()
	}
	if len(allowed) > 0 {
		fmt.Fprintf(&b, "\nAllowed values of %s: %s.\n", cmp.Or(key, workflow.StatusField), strings.Join(allowed, ", "))
	}
	b.WriteString(`
Write the whole answer again. It begins with a line that is --- alone, then the
fields as YAML (text with special characters in quotes), then again a line that
is --- alone, then your report in Markdown. No code fence around it.
`)
	if schemaErr == nil {
		b.WriteString("\nExample (put your own values):\n\n" + s.exampleAnswer(allowed))
	}
	return b.String()
}

func reasonOf(err error) string {
	if err == nil {
		return "it is not what was asked for"
	}
	e := (*OutputError)(nil)
	if !errors.As(err, &e) {
		return strings.TrimSuffix(text.Cut(err.Error(), 400), ".")
	}
	return e.describeReason()
}

// describeReason is everything but the schema's complaints.
func (e *OutputError) describeReason() string {
	reason := e.Reason.Error()
	if e.Line > 0 {
		reason += fmt.Sprintf(" (line %d)", e.Line)
	}
	if e.Detail != "" {
		reason += ": " + text.Cut(e.Detail, 400)
	}
	return reason
}

// listProblems are the schema's complaints, as many as one message lists.
func (e *OutputError) listProblems() []string {
	var out []string
	for i, p := range e.Problems {
		if i == maxProblems {
			return append(out, fmt.Sprintf("and %d more", len(e.Problems)-i))
		}
		out = append(out, problemText(p))
	}
	return out
}

// problemText is one complaint, with the field's name in place of a pointer.
func problemText(p node.Problem) string {
	name := strings.NewReplacer("~1", "/", "~0", "~").Replace(strings.TrimPrefix(p.Path, "/"))
	if name == "" {
		return text.Cut(p.Message, 200)
	}
	return text.Cut(name, 80) + ": " + text.Cut(p.Message, 200)
}

// exampleAnswer is a small answer that fits the schema, with the first allowed status.
func (s *outputSchema) exampleAnswer(allowed []string) string {
	of := &strictyaml.Node{Kind: strictyaml.Map}
	var lines []string
	key := s.statusKey()
	for _, name := range append([]string{key}, s.fields...) {
		if name == "" || of.Get(name) != nil || name != key && !isRequired(s.root, of, name) {
			continue
		}
		p, _ := partSchema(s.root, of, pickProperty(name))
		value := sampleValue(p, name, 0)
		if name == key {
			if len(allowed) > 0 {
				value = allowed[0]
			}
			status, _ := value.(string)
			of.Entries = []strictyaml.Entry{{Key: key, Val: &strictyaml.Node{Kind: strictyaml.Scalar, Text: status}}}
		}
		lines = append(lines, exampleLine(name, value))
	}
	return "---\n" + strings.Join(lines, "\n") + "\n---\nYour report in Markdown.\n"
}

func exampleLine(name string, value any) string {
	if plain, ok := value.(string); ok && plainText(plain) {
		return name + ": " + plain
	}
	b, err := text.EncodeJSON(value)
	if err != nil {
		b = []byte(`"…"`)
	}
	return name + ": " + string(b)
}

// plainText says whether a text may stand in YAML without quotes.
func plainText(text string) bool {
	it, fault := parseYAML("k: "+text, 0)
	return fault == nil && len(it.Entries) == 1 && it.Entries[0].Val.Scalar == any(text)
}

// sampleValue is a value that fits a schema, as far as its type and its list of values
// tell.
func sampleValue(s map[string]any, name string, depth int) any {
	if values, ok := enumValues(s); ok && len(values) > 0 {
		return values[0]
	}
	fits := allowedKinds(s)
	switch {
	case fits&kindString != 0:
		return "<" + name + ">"
	case fits&kindInteger != 0:
		return int64(1)
	case fits&kindNumber != 0:
		return 1.5
	case fits&kindBoolean != 0:
		return true
	case fits&kindArray != 0 && depth < 3:
		p, ok := partSchema(s, nil, pickItems)
		if !ok {
			return []any{}
		}
		return []any{sampleValue(p, name, depth+1)}
	case fits&kindObject != 0 && depth < 3:
		out := map[string]any{}
		for _, n := range shape.PropertyNames(s) {
			if p, ok := partSchema(s, nil, pickProperty(n)); ok && isRequired(s, nil, n) {
				out[n] = sampleValue(p, n, depth+1)
			}
		}
		return out
	}
	return nil
}
