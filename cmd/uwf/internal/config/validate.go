package config

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/output"
	engine "github.com/united-workforce/uwf/engine/config"
)

// ValidateOptions are what `uwf config validate` works with.
type ValidateOptions struct {
	Printer output.Printer
	Sources engine.Sources
	Files   []sourceFile
	Clean   func(string) string
	Shorten func(file string) string
}

// NewCmdValidate makes `uwf config validate`. A runF that is not nil replaces the run.
func NewCmdValidate(f *app.Factory, runF func(context.Context, *ValidateOptions) error) *cobra.Command {
	return &cobra.Command{
		Use:   "validate",
		Short: "Check the settings and say everything that is wrong",
		Long: `Check the repository's file, the user's file and the environment, each by itself and
together, and say everything that is wrong with its line. The exit code is 2 if anything is.`,
		Example: "  uwf config validate\n  uwf config validate --format json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := &ValidateOptions{Printer: f.Printer(), Sources: f.ConfigSources(), Files: sourceFiles(f),
				Clean: f.CleanMessage, Shorten: func(file string) string { return shortenPath(f, file) }}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return validateRun(cmd.Context(), o)
		},
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
	v := verdict{Files: o.Files, Problems: []problem{}, Warnings: []string{}}
	c, err := engine.Load(o.Sources)
	var invalid *engine.InvalidError
	switch {
	case errors.As(err, &invalid):
		for _, p := range invalid.Problems {
			v.Problems = append(v.Problems, o.newProblem(p))
		}
	case err != nil:
		return err
	default:
		v.OK = true
		for _, w := range allWarnings(c) {
			v.Warnings = append(v.Warnings, o.Clean(w))
		}
	}
	if err := o.Printer.Print(v, v.writeText); err != nil || v.OK {
		return err
	}
	return &app.Exit{Code: app.CodeUsage}
}

func (o *ValidateOptions) newProblem(p engine.Problem) problem {
	out := problem{File: p.File, Line: p.Line, Column: p.Col, Path: p.Path, Message: o.Clean(p.Message), Fix: o.Clean(p.Fix), short: o.Shorten(p.File)}
	if p.Line > 0 {
		if data, err := o.Sources.ReadFile(p.File); err == nil {
			out.source, out.caret = quoteLine(string(data), p.Line, p.Col, o.Clean)
		}
	}
	return out
}

func (v verdict) writeText(w *output.Writer) {
	for _, p := range v.Problems {
		p.File = p.short
		w.Printf("%s\n", engine.Problem{File: p.File, Line: p.Line, Col: p.Column, Path: p.Path, Message: p.Message, Fix: p.Fix})
		if p.source != "" {
			w.Faint("    " + p.source + "\n")
			w.Warn("    " + p.caret + "\n")
		}
	}
	for _, text := range v.Warnings {
		w.Warn("warning: " + strings.TrimRight(text, "\n") + "\n")
	}
	if v.OK {
		w.Good("valid\n")
	}
}
