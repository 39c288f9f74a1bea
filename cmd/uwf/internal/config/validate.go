package config

import (
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	engine "github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/redact"
	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/lists"
)

// ValidateOptions are what `uwf config validate` works with.
type ValidateOptions struct{ Factory *app.Factory }

// NewCmdValidate makes `uwf config validate`. A runF that is not nil replaces the run.
func NewCmdValidate(f *app.Factory, runF func(context.Context, *ValidateOptions) error) *cobra.Command {
	o := &ValidateOptions{f}
	return &cobra.Command{
		Use:   "validate",
		Short: "Check the settings and say everything that is wrong",
		Long: `Check the repository's file, the user's file and the environment, each by itself and
together, and say everything that is wrong with its line. The exit code is 2 if anything is.`,
		Example: "  uwf config validate\n  uwf config validate --format json",
		Args:    cobra.NoArgs,
		RunE:    app.Run(o, runF, validateRun, func([]string) {}),
	}
}

// verdict is the result of `uwf config validate`.
type verdict struct {
	OK       bool         `json:"ok"`
	Files    []sourceFile `json:"files"`
	Problems []problem    `json:"problems"`
	Warnings []string     `json:"warnings"`
}

type problem struct {
	File    string `json:"file"` // or the variable
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"`

	short, source, caret string
}

func validateRun(_ context.Context, o *ValidateOptions) error {
	v := verdict{Files: sourceFiles(o.Factory), Problems: []problem{}, Warnings: []string{}}
	c, err := engine.Load(o.Factory.ConfigSources())
	var invalid *engine.InvalidError
	switch {
	case errors.As(err, &invalid):
		v.Problems = lists.Map(invalid.Problems, o.newProblem)
	case err != nil:
		return err
	default:
		v.OK, v.Warnings = true, append(v.Warnings, allWarnings(o.Factory, c)...)
	}
	return app.ExitAfter(o.Factory.Printer().Print(v, v.writeText), v.OK, app.CodeUsage)
}

func (o *ValidateOptions) newProblem(p engine.Problem) problem {
	clean := o.Factory.CleanMessage
	out := problem{File: p.File, Line: p.Line, Column: p.Col, Path: p.Path, Message: clean(p.Message), Fix: clean(p.Fix), short: app.ShortenPath(o.Factory, p.File)}
	if p.Line > 0 {
		if data, err := o.Factory.ConfigSources().ReadFile(p.File); err == nil {
			out.source, out.caret = quoteLine(string(data), p.Line, p.Col, clean)
		}
	}
	return out
}

func (v verdict) writeText(w *output.Writer) {
	for _, p := range v.Problems {
		w.Printf("%s\n", engine.Problem{File: p.short, Line: p.Line, Col: p.Column, Path: p.Path, Message: p.Message, Fix: p.Fix})
		if p.source != "" {
			w.Faint("    " + p.source + "\n")
			w.Warn("    " + p.caret + "\n")
		}
	}
	writeWarnings(w, v.Warnings)
	if v.OK {
		w.Good("valid\n")
	}
}

// maxExcerpt is how much of a line is shown, in characters.
const maxExcerpt = 120

// quoteLine is a line of a file and a caret below a column, without anything that
// may be a key: the line is shown because something is wrong with it, and a key in
// the wrong place is one of the things that can be wrong.
func quoteLine(text string, line, col int, clean func(string) string) (source, caret string) {
	lines := strings.Split(text, "\n")
	if line < 1 || line > len(lines) {
		return "", ""
	}
	source = strings.TrimRight(strings.ReplaceAll(lines[line-1], "\t", " "), "\r")
	hidden := hideValues(source)
	if hidden == source {
		hidden = clean(source)
	}
	if hidden != source {
		// What was taken out may stand before the column: the caret goes to the
		// beginning of what is left.
		return shortLine(hidden), strings.Repeat(" ", len(hidden)-len(strings.TrimLeft(hidden, " "))) + "^"
	}
	if col < 1 || col > utf8.RuneCountInString(source)+1 || col > maxExcerpt {
		return shortLine(source), ""
	}
	return shortLine(source), strings.Repeat(" ", col-1) + "^"
}

func shortLine(s string) string {
	if r := []rune(s); len(r) > maxExcerpt {
		return string(r[:maxExcerpt]) + "…"
	}
	return s
}

var (
	keyValue = lazyregexp.New(`([A-Za-z_][A-Za-z0-9_-]*)["']?\s*:\s*("[^"]*"?|'[^']*'?|[^\s,{}\[\]#][^,}\]#]*)`)
	longWord = lazyregexp.New(`[A-Za-z0-9_+/=.~-]{20,}`)
)

// hideValues hides what stands after names that mean a secret, and long words of
// letters and digits, which keys are.
func hideValues(line string) string {
	line = keyValue.ReplaceAllStringFunc(line, func(s string) string {
		m := keyValue.FindStringSubmatch(s)
		if strings.HasPrefix(strings.ToLower(m[1]), "apikey") || redact.SecretName(m[1]) {
			return strings.TrimSuffix(s, m[2]) + "…"
		}
		return s
	})
	return longWord.ReplaceAllStringFunc(line, func(s string) string {
		if strings.ContainsAny(s, "0123456789") && strings.ContainsAny(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz") && !strings.HasPrefix(s, "//") {
			return "…"
		}
		return s
	})
}
