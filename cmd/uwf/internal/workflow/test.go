package workflow

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/definition"
	"github.com/united-workforce/uwf/cmd/uwf/internal/paths"
	"github.com/united-workforce/uwf/internal/text"
)

// TestOptions are what `uwf workflow test` works with.
type TestOptions struct {
	Factory *app.Factory
	Ref     string
	Paths   string
	Init    bool
}

// NewCmdTest makes `uwf workflow test`. A runF that is not nil replaces the run.
func NewCmdTest(f *app.Factory, runF func(context.Context, *TestOptions) error) *cobra.Command {
	o := &TestOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "test WORKFLOW",
		Short: "Try the paths of a workflow, for nothing",
		Long: `Try the paths of a workflow with answers that are written down: who is next after which
answer, what each role is told, and where it ends. Answers are read and checked as those of
agents are. No model is asked, no command of the repository is run, nothing is stored.

The answers are in .uwf/tests/NAME.yaml of the repository, or in the file of --paths. --init
writes them from the definition: for each edge of each role a path that takes it, with what
each role is told today. For a condition it tries values of the role's schema. The edges that
no path takes are listed. Where a change of the workflow is to change nothing else, the same
command says what else it changed.

Exit code 1 if a path is otherwise, 2 if the file or the definition can't be read.`,
		Example: "  uwf workflow test solve-issue --init\n  uwf workflow test solve-issue.yaml --init --paths my-paths.yaml",
		Args:    cobra.ExactArgs(1),
		RunE:    app.Run(o, runF, testRun, func(args []string) { o.Ref = args[0] }),
	}
	cmd.Flags().StringVar(&o.Paths, "paths", "", "the `FILE` with the answers")
	cmd.Flags().BoolVar(&o.Init, "init", false, "write that file, from the definition")
	return cmd
}

// tested is what is printed.
type tested struct {
	Name     string    `json:"name"`
	File     string    `json:"file"` // with the answers
	Cases    int       `json:"cases"`
	Failures []failure `json:"failures"`
	Untried  []string  `json:"untried"` // the edges that no case takes
}

type failure struct {
	Case    string `json:"case"`
	File    string `json:"file"`
	Line    int    `json:"line"`
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"`
}

func testRun(ctx context.Context, o *TestOptions) error {
	r := definition.New(o.Factory)
	w, err := r.Resolve(ctx, o.Ref)
	if err != nil {
		return err
	}
	d := w.Definition
	top := filepath.Dir(r.Full(o.Paths)) // a file that was named may lie anywhere
	if o.Paths == "" {
		top = cmp.Or(o.Factory.RepoRoot(), o.Factory.Dir)
		o.Paths = filepath.Join(top, ".uwf", "tests", d.Name+".yaml")
		if rel, err := filepath.Rel(o.Factory.Dir, o.Paths); err == nil {
			o.Paths = rel
		}
	}
	if o.Init {
		data, err := paths.Format(d.Name, paths.Make(d))
		if err == nil {
			err = writeNew(top, r.Full(o.Paths), data)
		}
		if err != nil {
			return err
		}
		o.Factory.Notes().Printf("wrote %s\n", o.Paths)
	}
	data, err := app.ReadRegular(r.Full(o.Paths), definition.MaxSize)
	if err != nil {
		return &app.UsageError{Err: fmt.Errorf("read the answers: %w; --init writes them from the definition", err)}
	}
	cases, err := paths.Parse(o.Paths, data)
	if err != nil {
		return &app.UsageError{Err: err}
	}
	out := tested{Name: d.Name, File: o.Paths, Cases: len(cases), Failures: []failure{}, Untried: paths.Untried(d, cases)}
	for _, c := range cases {
		if f := paths.Try(d, c); f != nil {
			out.Failures = append(out.Failures, failure{Case: f.Case, File: o.Paths, Line: f.Line, Message: f.Message, Fix: f.Fix})
		}
	}
	if out.Untried == nil {
		out.Untried = []string{}
	}
	if err := o.Factory.Printer().Print(out, out.writeText); err != nil {
		return err
	}
	if len(out.Failures) > 0 {
		return &app.Exit{Code: app.CodeFailed}
	}
	return nil
}

func (t tested) writeText(w *output.Writer) {
	for _, f := range t.Failures {
		w.Bad(fmt.Sprintf("%s:%d", f.File, f.Line))
		w.Printf(" %s: %s\n", f.Case, f.Message)
		if f.Fix != "" {
			w.FaintLine("  " + f.Fix)
		}
	}
	passed := t.Cases - len(t.Failures)
	line := fmt.Sprintf("%s of %s: %d as they are written down", text.Plural(t.Cases, "path"), t.Name, passed)
	if len(t.Failures) > 0 {
		w.Warn(fmt.Sprintf("%s, %d not\n", line, len(t.Failures)))
	} else {
		w.Good(line + "\n")
	}
	if len(t.Untried) > 0 {
		w.Printf("not tried: %s\n", strings.Join(t.Untried, ", "))
	}
}
