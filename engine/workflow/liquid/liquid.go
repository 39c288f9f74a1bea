package liquid

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/osteele/liquid/parser"
	"github.com/osteele/liquid/render"

	"github.com/united-workforce/uwf/engine/workflow/source"
	"github.com/united-workforce/uwf/engine/workflow/template"
	"github.com/united-workforce/uwf/internal/lazyregexp"
)

// What bounds the reading of a template, in bytes. A stored one was not read from a
// file, whose size is bounded.
const (
	maxTemplate = 256 << 10
	maxTag      = 2 << 10 // one {{ }} or {% %}: the library takes the square of it
)

// SyntaxError says why a text is no template.
type SyntaxError = source.SyntaxError

// Template is a parsed template. It is safe for concurrent use.
type Template struct {
	text  string
	items []Item
	now   func() time.Time
}

// Parse reads a template. The error is a *SyntaxError.
func Parse(text string) (t *Template, err error) {
	if len(text) > maxTemplate {
		return nil, &SyntaxError{Length: 1, Message: fmt.Sprintf("the template has %d bytes; the limit is %d", len(text), maxTemplate), Fix: "shorten it"}
	}
	p := &reader{tokens: parser.Scan(text, parser.SourceLoc{LineNo: 1}, nil)}
	items, bad := p.readItems()
	if bad != nil {
		return nil, bad
	}
	// The library has the last word: what it can't compile is no template.
	if _, err := compileTemplate(text, &budget{}); err != nil {
		return nil, &SyntaxError{Offset: -1, Length: 1, Message: errorReason(err), Fix: "see the Liquid manual for the syntax"}
	}
	return &Template{text: text, items: items, now: time.Now}, nil
}

// Items are the tags that use names or set them, in order.
func (t *Template) Items() []Item { return t.items }

// Render fills the template in with data as template.NormalData takes it. A name without a value is written as nothing, a map as JSON.
func (t *Template) Render(data map[string]any) (out string, err error) {
	b := newBudget(t.now)
	w := &limited{budget: b}
	defer func() {
		if p := recover(); p != nil {
			out, err = "", fmt.Errorf("rendering a template: %s", errorReason(fmt.Errorf("%v", p)))
		}
		if b.err != nil {
			out, err = "", fmt.Errorf("rendering a template: %w", b.err)
		}
	}()
	normal, err := template.NormalData(data)
	if err != nil {
		return "", err
	}
	vars, _ := liquidForm(normal).(object)
	cfg := newConfig(b)
	rewritten, texts := rewriteText(t.text)
	if vars == nil {
		vars = object{}
	}
	maps.Copy(vars, texts)
	root, bad := cfg.Compile(rewritten, parser.SourceLoc{LineNo: 1})
	if bad != nil {
		return "", fmt.Errorf("rendering a template: %s", errorReason(bad))
	}
	if bad := render.Render(root, w, vars, cfg); bad != nil {
		return "", fmt.Errorf("rendering a template: %s", errorReason(bad))
	}
	return w.text.String(), nil
}

// compileTemplate turns the library's panics into errors.
func compileTemplate(text string, b *budget) (root render.Node, err error) {
	defer func() {
		if p := recover(); p != nil {
			root, err = nil, fmt.Errorf("%v", p)
		}
	}()
	root, bad := newConfig(b).Compile(text, parser.SourceLoc{LineNo: 1})
	if bad != nil {
		return nil, bad
	}
	return root, nil
}

var (
	wrapping = lazyregexp.New(`^Liquid error(?: \(line (\d+)\))?: `)
	trace    = lazyregexp.New(`(?s)\nOriginal stacktrace:.*`)
)

// errorReason is the library's error in one short line.
func errorReason(err error) string {
	text := trace.ReplaceAllString(err.Error(), "")
	text = wrapping.ReplaceAllStringFunc(text, func(m string) string {
		if n := wrapping.FindStringSubmatch(m)[1]; n != "" {
			return "line " + n + ": "
		}
		return ""
	})
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > 300 {
		text = strings.ToValidUTF8(text[:300], "") + "…"
	}
	return text
}

// limited collects text up to template.MaxOutput.
type limited struct {
	text   strings.Builder
	budget *budget
}

func (l *limited) Write(p []byte) (int, error) {
	if l.text.Len()+len(p) > template.MaxOutput {
		l.budget.failWith(fmt.Errorf("%w: more than %d bytes", template.ErrTooLong, template.MaxOutput))
	}
	if err := l.budget.useTurn(0); err != nil {
		return 0, err
	}
	return l.text.Write(p)
}

// errBreak and errContinue leave a loop's body.
var (
	errBreak    = errors.New("break outside a loop")
	errContinue = errors.New("continue outside a loop")
)
