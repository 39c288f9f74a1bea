package workflow

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/annotation"
	"github.com/united-workforce/uwf/cmd/uwf/internal/definition"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/engine/workflow/source"
	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/text"
)

// ValidateOptions are what `uwf workflow validate` works with.
type ValidateOptions struct {
	Factory *app.Factory
	// Refs are files, folders, patterns, names and - for stdin; none: all
	// definitions in the repository's folders.
	Refs []string
	Name string // what stdin is called
}

// NewCmdValidate makes `uwf workflow validate`. A runF that is not nil replaces the
// run.
func NewCmdValidate(f *app.Factory, runF func(context.Context, *ValidateOptions) error) *cobra.Command {
	o := &ValidateOptions{Factory: f}
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
		RunE: app.Run(o, runF, validateRun, func(args []string) { o.Refs = args }),
	}
	cmd.Flags().StringVar(&o.Name, "name", "", "the `FILE` that stdin stands for: it is shown with problems, and includes are looked up beside it")
	return cmd
}

// verdict is the JSON of `uwf workflow validate`.
type verdict struct {
	Valid    bool      `json:"valid"`
	Errors   []string  `json:"errors"` // the problems that are no warnings, a line each
	Problems []problem `json:"problems"`

	usable []string // a line for each definition that can be used
	broken int      // definitions and arguments that can't be used
}

// problem is one finding, an annotation.Error or an annotation.Warning.
type problem struct {
	source.Problem
	Severity string `json:"severity"`
}

// formatLines is the problem for people.
func (p problem) formatLines() string {
	if p.Severity == annotation.Error {
		return p.Text()
	}
	// After the place, where the eye goes: the place must stay at the beginning.
	return strings.Replace(p.Text(), ": "+p.Message, ": warning: "+p.Message, 1)
}

func (v *verdict) addWarning(p source.Problem) {
	v.Problems = append(v.Problems, problem{p, annotation.Warning})
}

// addBroken adds what keeps a definition from being used, or an argument from leading to one.
func (v *verdict) addBroken(problems ...source.Problem) {
	v.Valid, v.broken = false, v.broken+1
	for _, p := range problems {
		v.Problems = append(v.Problems, problem{p, annotation.Error})
		v.Errors = append(v.Errors, p.Place()+": "+p.Message)
	}
}

func validateRun(ctx context.Context, o *ValidateOptions) error {
	v := &verdict{Valid: true, Errors: []string{}, Problems: []problem{}}
	r := definition.New(o.Factory)
	r.Invalid, r.Warn = nil, v.addWarning // each problem is reported here
	in, err := r.FindInputs(o.Refs)
	if err != nil {
		return err
	}
	for _, p := range in.Failed {
		v.addBroken(p)
	}
	for _, file := range in.Files {
		if err := v.checkFile(ctx, o, r, file); err != nil {
			return err
		}
	}
	if err := v.printVerdict(o.Factory); err != nil {
		return err
	}
	if !v.Valid {
		return &app.Exit{Code: app.CodeUsage}
	}
	return nil
}

// checkFile adds what is to be said about one file, or about stdin, which stands for a
// file. Only what is wrong with the store ends the command.
func (v *verdict) checkFile(ctx context.Context, o *ValidateOptions, r *definition.Resolver, file string) error {
	read := func() ([]byte, error) { return app.ReadRegular(r.Full(file), definition.MaxSize) }
	if file == definition.Stdin {
		file, read = cmp.Or(o.Name, "stdin"), func() ([]byte, error) { return o.Factory.ReadInput("-", definition.MaxSize) }
	}
	data, err := read()
	if err != nil {
		v.addUnreadable(file, r.Full(file), err)
		return nil
	}
	if isBinary(data) {
		v.addBroken(source.Problem{File: file, Message: "a binary file, not a definition", Fix: "name a YAML file"})
		return nil
	}
	w, err := r.Compile(ctx, file, data)
	var invalid *workflow.InvalidError
	switch {
	case errors.As(err, &invalid):
		v.addBroken(invalid.Problems...)
	case err != nil && app.ExitCodeOf(err) == app.CodeUsage:
		v.addUnreadable(file, r.Full(file), err)
	case err != nil:
		return err
	default:
		v.usable = append(v.usable, fmt.Sprintf("  %s  %s  %s\n", w.From, w.Definition.Name, w.Hash))
		if p, found := checkName(file, w.Definition.Name, data); found {
			v.addWarning(p)
		}
	}
	return nil
}

func (v *verdict) addUnreadable(file, full string, err error) {
	why := strings.TrimPrefix(definition.Reason(err).Error(), "read "+full+": ") // the file is said anyway
	v.addBroken(source.Problem{File: file, Message: "can't be read: " + why, Fix: "name a regular file that you may read"})
}

// isBinary tells a file that is no text, by its beginning.
func isBinary(data []byte) bool {
	head := data[:min(len(data), 8_000)]
	utf16 := bytes.HasPrefix(head, []byte{0xff, 0xfe}) || bytes.HasPrefix(head, []byte{0xfe, 0xff})
	return bytes.IndexByte(head, 0) >= 0 && !utf16
}

var nameKey = lazyregexp.New(`(?m)^name[ \t]*:[ \t]*["']?`)

// checkName warns of a definition that lies in a definitions folder under a name
// that is not its own: it is found by the one and shown by the other.
func checkName(file, name string, data []byte) (source.Problem, bool) {
	full := filepath.ToSlash(file)
	stem := strings.TrimSuffix(filepath.Base(full), filepath.Ext(full))
	folder := filepath.ToSlash(filepath.Dir(full))
	if stem == "index" {
		stem, folder = filepath.Base(folder), filepath.ToSlash(filepath.Dir(folder))
	}
	at := nameKey.FindIndex(data)
	inFolder := slices.ContainsFunc(workflow.Folders("."), func(dir string) bool { return strings.HasSuffix("/"+folder, "/"+dir) })
	if stem == name || at == nil || !inFolder {
		return source.Problem{}, false
	}
	p := source.Problem{
		File: full, Line: 1 + bytes.Count(data[:at[0]], []byte("\n")), Col: 1 + utf8.RuneCount(data[at[0]:at[1]]), Len: utf8.RuneCountInString(name),
		Message: fmt.Sprintf("the workflow is called %q, and its file %q: it is started by the file's name, and listed under its own", name, stem),
		Fix:     fmt.Sprintf("rename one of the two, e.g. `name: %s`", stem),
	}
	line, _, _ := bytes.Cut(data[at[0]:], []byte("\n"))
	p.Snippet = strings.TrimRight(string(line), "\r")
	return p, true
}

// printVerdict gives the verdict: as text all of it on stdout, else the problems there and
// a summary on stderr; inside a job annotations too, and the text on stderr.
func (v *verdict) printVerdict(f *app.Factory) error {
	p, notes, job, show := f.Printer(), f.Notes(), annotation.Of(f), func(s string) string { return s }
	if job != nil {
		show = annotation.Inert
		if p.Chosen() == output.JSON {
			p.Out = annotation.InertJSON{Out: p.Out}
		}
	}
	if err := p.Print(v, func(w *output.Writer) { v.writeText(w, show) }); err != nil {
		return err
	}
	switch {
	case p.Chosen() == output.Text:
	case job != nil:
		v.writeText(notes, show)
	default:
		notes.Println(v.summarizeVerdict())
	}
	if job != nil {
		for _, p := range v.Problems {
			job.Write(p.Severity, p.Problem)
		}
	}
	return notes.Flush()
}

func (v *verdict) writeText(w *output.Writer, show func(string) string) {
	for _, p := range v.Problems {
		w.Println(show(p.formatLines()))
	}
	for _, line := range v.usable {
		w.Good("ok")
		w.Printf("%s", show(line))
	}
	w.Println(v.summarizeVerdict())
}

// summarizeVerdict is the verdict in one line.
func (v *verdict) summarizeVerdict() string {
	s := text.Plural(len(v.usable)+v.broken, "definition") + " checked: "
	if v.broken == 0 {
		s += "all can be used"
	} else {
		s += fmt.Sprintf("%d can't be used, %s", v.broken, text.Plural(len(v.Errors), "problem"))
	}
	if warnings := len(v.Problems) - len(v.Errors); warnings > 0 {
		s += ", " + text.Plural(warnings, "warning")
	}
	return s
}
