// Package template renders the prompts and locations on a workflow's edges from
// an agent's output. The language is mustache, unescaped, without partials. It
// never reads files, the environment or a clock.
package template

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/cbroglie/mustache"

	"github.com/united-workforce/uwf/engine/workflow/source"
)

// Limits of a template. They keep a nested section over a long list from
// growing without end: what passes them is an error, never cut off silently.
const (
	// MaxOutput is the largest rendered text, in bytes.
	MaxOutput = 1 << 20
	// maxWrites bounds the work of sections that render to nothing.
	maxWrites = 200_000
	// maxNesting is how deep sections may lie in one another.
	maxNesting = 32
)

// ErrTooLong is wrapped by the error for a rendered text over MaxOutput, or for
// sections that repeat without end.
var ErrTooLong = errors.New("the rendered text is too long")

// SyntaxError says why a text is no template. The library knows the line: it is of that.
type SyntaxError = source.SyntaxError

// Kind is what a tag does.
type Kind uint8

// The kinds of tags.
const (
	Variable Kind = iota // {{name}}
	Section              // {{#name}}…{{/name}}
	Inverted             // {{^name}}…{{/name}}
)

// Tag is one use of a name in a template. Name is as written, without the
// braces: it may be dotted, or ".", or hold what the language doesn't know.
type Tag struct {
	Kind Kind
	Name string
	Tags []Tag // what lies inside a section
}

// Template is a parsed template. It is safe for concurrent use.
type Template struct {
	compiled *mustache.Template
	tags     []Tag
}

// Parse reads a template. The error is a *SyntaxError.
func Parse(text string) (*Template, error) {
	// A provider without entries instead of none: without one the library reads
	// partials from files.
	compiled, err := mustache.ParseStringPartialsRaw(text, &mustache.StaticProvider{}, true)
	if err != nil {
		return nil, syntaxError(text, err)
	}
	tags, bad := convertTags(compiled.Tags(), 1)
	if bad != nil {
		return nil, placeError(text, 1, bad)
	}
	return &Template{compiled: compiled, tags: tags}, nil
}

// Tags lists the names that the template uses, in order, sections with their
// content.
func (t *Template) Tags() []Tag { return t.tags }

// Render fills the template in with data as NormalData takes it. An unknown name renders
// as nothing, a list or map as JSON.
func (t *Template) Render(data map[string]any) (string, error) {
	root, err := NormalData(data)
	if err != nil {
		return "", err
	}
	var out limited
	err = t.compiled.FRender(&out, mustacheForm(root))
	if err := cmp.Or(out.err, err); err != nil { // the library drops the write errors of variables
		return "", fmt.Errorf("rendering a template: %w", err)
	}
	return out.text.String(), nil
}

// limited collects text up to MaxOutput.
type limited struct {
	text   strings.Builder
	writes int
	err    error
}

func (l *limited) Write(p []byte) (int, error) {
	l.writes++
	switch {
	case l.err != nil:
	case l.text.Len()+len(p) > MaxOutput:
		l.err = fmt.Errorf("%w: more than %d bytes", ErrTooLong, MaxOutput)
	case l.writes > maxWrites:
		l.err = fmt.Errorf("%w: its sections repeat more than %d times", ErrTooLong, maxWrites)
	default:
		return l.text.Write(p)
	}
	return 0, l.err
}

func convertTags(tags []mustache.Tag, depth int) ([]Tag, *SyntaxError) {
	if depth > maxNesting {
		return nil, &SyntaxError{Message: fmt.Sprintf("sections nest deeper than %d levels", maxNesting), Fix: "flatten the template"}
	}
	out := make([]Tag, 0, len(tags))
	for _, t := range tags {
		tag := Tag{Name: t.Name()}
		switch t.Type() {
		case mustache.Section, mustache.InvertedSection:
			tag.Kind = Section
			if t.Type() == mustache.InvertedSection {
				tag.Kind = Inverted
			}
			inner, err := convertTags(t.Tags(), depth+1)
			if err != nil {
				return nil, err
			}
			tag.Tags = inner
		case mustache.Partial:
			return nil, &SyntaxError{Message: fmt.Sprintf("partial %q: templates can't include others", t.Name()),
				Fix: "write the text here, or use !include for the whole prompt"}
		default:
			tag.Kind = Variable
		}
		out = append(out, tag)
	}
	return out, nil
}

// placeError says of which line (from 1) of a text an error is.
func placeError(text string, line int, e *SyntaxError) *SyntaxError {
	for ; line > 1; line-- {
		e.Offset += strings.IndexByte(text[e.Offset:], '\n') + 1
	}
	whole, _, _ := strings.Cut(text[e.Offset:], "\n")
	trimmed := strings.TrimLeft(whole, " ")
	e.Offset, e.Length = e.Offset+len(whole)-len(trimmed), max(len(trimmed), 1)
	return e
}

func syntaxError(text string, err error) *SyntaxError {
	out := &SyntaxError{Message: err.Error(), Fix: "see the mustache manual for the syntax"}
	var parse mustache.ParseError
	errors.As(err, &parse)
	switch parse.Code {
	case mustache.ErrUnmatchedOpenTag:
		out.Message, out.Fix = "a {{ is never closed", "close it with }}"
	case mustache.ErrEmptyTag:
		out.Message, out.Fix = "empty tag {{}}", "write a field's name between the braces"
	case mustache.ErrSectionNoClosingTag:
		out.Message = fmt.Sprintf("section {{#%s}} is never closed", parse.Reason)
		out.Fix = fmt.Sprintf("close it with {{/%s}}", parse.Reason)
	case mustache.ErrInterleavedClosingTag:
		out.Message = fmt.Sprintf("{{/%s}} closes a section that is not the innermost open one", parse.Reason)
		out.Fix = "close sections in the reverse order of opening"
	case mustache.ErrUnmatchedCloseTag:
		out.Message, out.Fix = "a section is closed that was never opened", "open it with {{#name}}, or remove the closing tag"
	case mustache.ErrNestingTooDeep:
		out.Message, out.Fix = "sections nest too deep", "flatten the template"
	}
	return placeError(text, parse.Line, out)
}
