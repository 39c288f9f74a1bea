package workflow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/united-workforce/uwf/cmd/uwf/internal/annotation"
	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/definition"
	"github.com/united-workforce/uwf/cmd/uwf/internal/output"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/engine/workflow/source"
	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/text"
)

// ValidateOptions are what `uwf workflow validate` works with.
type ValidateOptions struct {
	Printer  output.Printer
	Notes    *output.Writer
	Resolver *definition.Resolver
	// Refs are files, folders, patterns, names and - for stdin; none: all
	// definitions in the repository's folders.
	Refs []string
	Name string          // what stdin is called
	job  *annotation.Job // nil: outside of one
}

// NewCmdValidate makes `uwf workflow validate`. A runF that is not nil replaces the
// run.
func NewCmdValidate(f *app.Factory, runF func(context.Context, *ValidateOptions) error) *cobra.Command {
	o := &ValidateOptions{}
	cmd := &cobra.Command{
		Use:     "validate [FILE|FOLDER|PATTERN|NAME|-]...",
		Aliases: []string{"check", "lint"},
		Short:   "Check definitions, and say what is wrong and how to mend it",
		Long: `Check definitions: every problem as file:line:column, with the line and a fix.
Nothing is stored; workflow put and thread start make the same checks.

An argument is a file, a folder (its definitions), a pattern (** stands for any
number of folders; quote it where the shell would expand it), a name in the
repository's folders, or - for stdin. Without arguments, all definitions in the
repository's folders are checked.

The JSON is {valid, errors, problems}: whether all can be used, what keeps them from it
on a line each, and the list of {file, line, column, length, message, fix, severity} of
all files, warnings too. Lines and columns count from 1, columns in characters; a problem
of a whole file has none. Inside a workflow run (GITHUB_ACTIONS=true) each problem becomes
an annotation too.

Exit code 2 if a definition can't be used, or an argument leads to none. Warnings
alone don't fail.`,
		Example: `  uwf workflow validate
  uwf workflow validate solve-issue.yaml
  uwf workflow validate '.uwf/workflows/**/*.yaml' --format json
  uwf workflow validate - --name .uwf/workflows/draft.yaml < solve-issue.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Refs, o.Printer, o.Notes, o.Resolver, o.job = args, f.Printer(), f.Notes(), definition.New(f), annotation.Of(f)
			o.Resolver.Invalid, o.Resolver.Warn = nil, nil // each problem is reported here
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return validateRun(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.Name, "name", "", "the `FILE` that stdin stands for: it is shown with problems, and includes are looked up beside it")
	return cmd
}

// Severities of problems.
const (
	SeverityError   = "error"
	SeverityWarning = "warning"
)

// problem is one finding. Line is 0 where it is about a file as a whole.
type problem struct {
	File     string `json:"file"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	Length   int    `json:"length,omitempty"`
	Message  string `json:"message"`
	Fix      string `json:"fix,omitempty"`
	Severity string `json:"severity"`

	text string // with the line and a caret
}

func problemOf(p source.Problem) problem {
	return problem{p.File, p.Line, p.Col, p.Len, p.Message, p.Fix, SeverityError, p.Text()}
}

func warningOf(p source.Problem) problem {
	out := problemOf(p)
	out.Severity = SeverityWarning
	return out
}

func (p problem) asAnnotation() annotation.Annotation {
	return annotation.Annotation{
		File: p.File, Line: p.Line, Column: p.Column, Length: p.Length, Message: p.Message, Fix: p.Fix, Warning: p.Severity == SeverityWarning,
	}
}

// formatLine is the problem in a sentence, with its place.
func (p problem) formatLine() string {
	switch {
	case p.Line == 0:
		return p.File + ": " + p.Message
	case p.Column == 0:
		return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Message)
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
}

// formatLines is the problem for people.
func (p problem) formatLines() string {
	s := p.text
	if s == "" {
		s = fmt.Sprintf("%s: %s\n", p.File, p.Message)
		if p.Fix != "" {
			s += fmt.Sprintf("      = %s\n", p.Fix)
		}
	}
	if p.Severity == SeverityWarning {
		// After the place, where the eye goes: the place must stay at the beginning.
		s = strings.Replace(s, ": "+p.Message, ": warning: "+p.Message, 1)
	}
	return s
}

// validated is the verdict on all inputs.
type validated struct {
	problems []problem
	ok       []string // a line for each definition that can be used
	broken   int      // definitions and arguments that can't be used
}

// verdict is the JSON of `uwf workflow validate`.
type verdict struct {
	Valid    bool      `json:"valid"`
	Errors   []string  `json:"errors"`
	Problems []problem `json:"problems"`
}

func (v *validated) makeVerdict() verdict {
	out := verdict{Valid: v.broken == 0, Errors: []string{}, Problems: v.problems}
	for _, p := range v.problems {
		if p.Severity == SeverityError {
			out.Errors = append(out.Errors, p.formatLine())
		}
	}
	return out
}

func validateRun(ctx context.Context, o *ValidateOptions) error {
	in, err := o.Resolver.Inputs(o.Refs)
	if err != nil {
		return err
	}
	v := validated{problems: []problem{}}
	for _, f := range in.Failed {
		v.broken++
		v.problems = append(v.problems, problem{File: f.File, Message: f.Message, Fix: f.Fix, Severity: SeverityError})
	}
	for _, file := range in.Files {
		if err := v.checkFile(ctx, o, file); err != nil {
			return err
		}
	}
	if err := v.printVerdict(o); err != nil {
		return err
	}
	if v.broken > 0 {
		return &app.Exit{Code: app.CodeUsage}
	}
	return nil
}

// checkFile adds what is to be said about one file. Only what is wrong with the store
// ends the command.
func (v *validated) checkFile(ctx context.Context, o *ValidateOptions, file string) error {
	name := file
	data, err := o.readInput(&name)
	if err != nil {
		v.addFailure(name, o.Resolver.Full(name), err)
		return nil
	}
	if kind := describeBinary(data); kind != "" {
		v.broken++
		v.problems = append(v.problems, problem{File: name, Message: kind + ", not a definition", Fix: "name a YAML file", Severity: SeverityError})
		return nil
	}
	o.Resolver.Warn = func(p workflow.Problem) { v.problems = append(v.problems, warningOf(p)) }
	w, err := o.Resolver.Compile(ctx, name, data)
	var invalid *workflow.InvalidError
	switch {
	case errors.As(err, &invalid):
		v.broken++
		for _, p := range invalid.Problems {
			v.problems = append(v.problems, problemOf(p))
		}
	case err != nil && app.ExitCode(err) == app.CodeUsage:
		v.addFailure(name, o.Resolver.Full(name), err)
	case err != nil:
		return err
	default:
		v.ok = append(v.ok, fmt.Sprintf("  %s  %s  %s\n", w.From, w.Definition.Name, w.Hash))
		if warning, is := checkName(name, w.Definition.Name, data); is {
			v.problems = append(v.problems, warning)
		}
	}
	return nil
}

func (v *validated) addFailure(file, full string, err error) {
	v.broken++
	why := strings.TrimPrefix(definition.Reason(err).Error(), "read "+full+": ") // the file is said anyway
	v.problems = append(v.problems, problem{File: file, Message: "can't be read: " + why, Fix: "name a regular file that you may read", Severity: SeverityError})
}

// readInput reads one input, and says what it is called.
func (o *ValidateOptions) readInput(name *string) ([]byte, error) {
	if *name != definition.Stdin {
		return app.ReadRegular(o.Resolver.Full(*name), definition.MaxSize)
	}
	if *name = o.Name; *name == "" {
		*name = "stdin"
	}
	return o.Resolver.Stdin(definition.MaxSize)
}

// describeBinary says what a file is that is no text; empty: it may be text.
func describeBinary(data []byte) string {
	head := data[:min(len(data), 8_000)]
	utf16 := bytes.HasPrefix(head, []byte{0xff, 0xfe}) || bytes.HasPrefix(head, []byte{0xfe, 0xff})
	if bytes.IndexByte(head, 0) >= 0 && !utf16 {
		return "a binary file"
	}
	return ""
}

var nameKey = lazyregexp.New(`(?m)^name[ \t]*:[ \t]*["']?`)

// checkName warns of a definition that lies in a definitions folder under a name
// that is not its own: it is found by the one and shown by the other.
func checkName(file, name string, data []byte) (problem, bool) {
	full := filepath.ToSlash(file)
	stem := strings.TrimSuffix(filepath.Base(full), filepath.Ext(full))
	folder := filepath.ToSlash(filepath.Dir(full))
	if stem == "index" {
		stem, folder = filepath.Base(folder), filepath.ToSlash(filepath.Dir(folder))
	}
	at := nameKey.FindIndex(data)
	inFolder := strings.HasSuffix("/"+folder, "/.uwf/workflows") || strings.HasSuffix("/"+folder, "/.workflow") || strings.HasSuffix("/"+folder, "/.workflows")
	if stem == name || at == nil || !inFolder {
		return problem{}, false
	}
	p := source.Problem{
		File: full, Line: 1 + bytes.Count(data[:at[0]], []byte("\n")), Col: 1 + utf8.RuneCount(data[at[0]:at[1]]), Len: utf8.RuneCountInString(name),
		Message: fmt.Sprintf("the workflow is called %q, and its file %q: it is started by the file's name, and listed under its own", name, stem),
		Fix:     fmt.Sprintf("rename one of the two, e.g. `name: %s`", stem),
	}
	line, _, _ := bytes.Cut(data[at[0]:], []byte("\n"))
	p.Snippet = strings.TrimRight(string(line), "\r")
	return warningOf(p), true
}

// printVerdict gives the verdict: as text all of it on stdout, else the problems there and
// a summary on stderr; inside a job annotations too, and the text on stderr.
func (v *validated) printVerdict(o *ValidateOptions) error {
	p, show := o.Printer, func(s string) string { return s }
	asText := p.Chosen() == output.Text
	if o.job != nil {
		show = annotation.Inert
		if p.Chosen() == output.JSON {
			p.Out = annotation.InertJSON{Out: p.Out}
		}
	}
	if err := p.Print(v.makeVerdict(), func(w *output.Writer) { v.writeText(w, show) }); err != nil {
		return err
	}
	switch {
	case o.job != nil && !asText:
		v.writeText(o.Notes, show)
	case !asText:
		o.Notes.Printf("%s\n", v.summarizeVerdict())
	}
	if o.job != nil {
		for _, p := range v.problems {
			o.job.Write(p.asAnnotation())
		}
	}
	return o.Notes.Flush()
}

func (v *validated) writeText(w *output.Writer, show func(string) string) {
	for _, p := range v.problems {
		w.Printf("%s\n", show(p.formatLines()))
	}
	for _, line := range v.ok {
		w.Good("ok")
		w.Printf("%s", show(line))
	}
	w.Printf("%s\n", v.summarizeVerdict())
}

// summarizeVerdict is the verdict in one line.
func (v *validated) summarizeVerdict() string {
	all := len(v.ok) + v.broken
	warnings := 0
	for _, p := range v.problems {
		if p.Severity == SeverityWarning {
			warnings++
		}
	}
	s := fmt.Sprintf("%s checked: ", text.Plural(all, "definition"))
	if v.broken == 0 {
		s += "all can be used"
	} else {
		s += fmt.Sprintf("%d can't be used, %s", v.broken, text.Plural(len(v.problems)-warnings, "problem"))
	}
	if warnings > 0 {
		s += ", " + text.Plural(warnings, "warning")
	}
	return s
}
