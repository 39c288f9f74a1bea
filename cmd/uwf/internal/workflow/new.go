package workflow

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/definition"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/examples"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/text"
)

// NewOptions are what `uwf workflow new` works with.
type NewOptions struct {
	Factory *app.Factory
	Name    string
	From    string
}

// NewCmdNew makes `uwf workflow new`. A runF that is not nil replaces the run.
func NewCmdNew(f *app.Factory, runF func(context.Context, *NewOptions) error) *cobra.Command {
	o := &NewOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "new [NAME]",
		Short: "Write a workflow that uwf has with it, to be changed",
		Long: `Write one of the workflows that uwf has with it into .uwf/workflows/NAME.yaml of this
repository (of this folder, outside of one), and check it. From then on the name means that
file, for jobs too once it is on the default branch. A file that is there is never
overwritten.

Without NAME it keeps its own.`,
		Example: "  uwf workflow new fix-bugs\n  uwf workflow new sort-issues --from triage",
		Args:    cobra.MaximumNArgs(1),
		RunE: app.Run(o, runF, newRun, func(args []string) {
			if len(args) > 0 {
				o.Name = args[0]
			}
		}),
	}
	cmd.Flags().StringVar(&o.From, "from", definition.UsualWorkflow, "begin with this `WORKFLOW`: "+strings.Join(examples.Workflows(), ", "))
	app.CompleteFlag(cmd, "from", examples.Workflows()...)
	return cmd
}

// newResult is what is printed.
type newResult struct {
	Name string    `json:"name"`
	File string    `json:"file"`
	From string    `json:"from"`
	Hash node.Hash `json:"hash"`
}

func newRun(ctx context.Context, o *NewOptions) error {
	data, ok := definition.PresetText(o.From)
	if !ok {
		return &app.UnknownError{What: "workflow of uwf itself", ID: o.From, Near: app.SuggestNames(o.From, examples.Workflows()), Hint: "there are " + strings.Join(examples.Workflows(), ", ")}
	}
	o.Name = cmp.Or(o.Name, o.From)
	if wrong := workflow.CheckName(o.Name); wrong != "" {
		return app.Usagef("the name %q %s: write one such as fix-bugs", text.Cut(o.Name, 80), wrong)
	}
	top := cmp.Or(o.Factory.RepoRoot(), o.Factory.Dir)
	file := filepath.Join(top, ".uwf", "workflows", o.Name+".yaml")
	if rel, err := filepath.Rel(o.Factory.Dir, file); err == nil {
		file = rel
	}
	r := definition.New(o.Factory)
	if there, err := r.Find(o.Name); err != nil {
		return err
	} else if there != "" {
		return app.Usagef("the workflow %s is there already, in %s: change that file, or choose another name", o.Name, there)
	}
	data = bytes.Replace(data, []byte("\nname: "+o.From+"\n"), []byte("\nname: "+o.Name+"\n"), 1)
	w, err := r.Compile(ctx, file, data)
	if err != nil {
		return err
	}
	if err := writeNew(top, r.Full(file), data); err != nil {
		return err
	}
	return o.Factory.Printer().Print(newResult{Name: o.Name, File: file, From: o.From, Hash: w.Hash}, func(p *output.Writer) {
		p.Good("wrote " + file + "\n")
		p.FaintLine("change it, then check it:  uwf workflow validate " + text.ShellWord(file))
		p.FaintLine("run it:  uwf run " + o.Name + " -p \"what is to be done\"")
	})
}

// writeNew writes a file below a folder, whole or not at all, where none is yet, and the folders on
// its way. No link leads out: a checkout may come from anybody, and must not choose where.
func writeNew(top, file string, data []byte) (err error) {
	root, err := os.OpenRoot(top)
	if err != nil {
		return &app.UsageError{Err: fmt.Errorf("write %s: %w", file, err)}
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	rel, err := filepath.Rel(top, file)
	if err != nil {
		return err
	}
	tmp := rel + ".tmp"
	if err = root.MkdirAll(filepath.Dir(rel), 0o755); err == nil {
		err = root.WriteFile(tmp, data, 0o644)
	}
	if err == nil {
		err = errors.Join(root.Link(tmp, rel), root.Remove(tmp)) // unlike a rename it replaces nothing
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return app.Usagef("%s is there already: change that file, or choose another name", rel)
	case errors.Is(err, fs.ErrPermission):
		return app.Usagef("write %s: %w; let this user write in %s", rel, err, top)
	case err != nil:
		return &app.UsageError{Err: fmt.Errorf("write %s: %w", rel, err)}
	}
	return nil
}
