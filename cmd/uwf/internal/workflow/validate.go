package workflow

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/output"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/engine/workflow/source"
	"github.com/united-workforce/uwf/gitcas/node"
)

// ValidateOptions are what `uwf workflow validate` works with.
type ValidateOptions struct {
	Printer  output.Printer
	Resolver *Resolver
	Refs     []string // none: all definitions in the repository's folders
}

// NewCmdValidate makes `uwf workflow validate`. A runF that is not nil replaces the
// run.
func NewCmdValidate(f *app.Factory, runF func(context.Context, *ValidateOptions) error) *cobra.Command {
	o := &ValidateOptions{}
	return &cobra.Command{
		Use:   "validate [FILE|NAME]...",
		Short: "Check definitions, and say what is wrong and how to mend it",
		Long: `Check definitions: every problem with its place and a fix. Without arguments, all
definitions in the repository's folders. Nothing is stored. Exit code 2 if any of
them can't be used.`,
		Example: "  uwf workflow validate solve-issue.yaml\n  uwf workflow validate",
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Refs, o.Printer, o.Resolver = args, f.Printer(), NewResolver(f)
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return validateRun(cmd.Context(), o)
		},
	}
}

// validated is the verdict on one definition.
type validated struct {
	File     string           `json:"file"`
	OK       bool             `json:"ok"`
	Name     string           `json:"name,omitempty"`
	Hash     node.Hash        `json:"hash,omitempty"`
	Problems []source.Problem `json:"problems"`
	text     string
}

func validateRun(ctx context.Context, o *ValidateOptions) error {
	refs := o.Refs
	if len(refs) == 0 {
		files, err := o.Resolver.Files()
		if err != nil {
			return err
		}
		if refs = slices.Sorted(maps.Values(files)); len(refs) == 0 {
			return app.Usagef("no definitions in .uwf/workflows, .workflow or .workflows: name the files to check")
		}
	}
	list, allOK := make([]validated, len(refs)), true
	for i, ref := range refs {
		var err error
		if list[i], err = o.Resolver.validate(ctx, ref); err != nil {
			return err
		}
		allOK = allOK && list[i].OK
	}
	err := o.Printer.Print(list, func(w *output.Writer) {
		for _, v := range list {
			if v.OK {
				w.Good("ok")
				w.Printf("  %s  %s  %s\n", v.File, v.Name, v.Hash)
			} else {
				w.Printf("%s\n", v.text)
			}
		}
	})
	if err == nil && !allOK {
		return &app.Exit{Code: int(thread.CodeUsage)}
	}
	return err
}

func (r *Resolver) validate(ctx context.Context, ref string) (validated, error) {
	v := validated{File: ref, Problems: []source.Problem{}}
	w, err := r.File(ctx, ref)
	var invalid *workflow.InvalidError
	switch {
	case errors.As(err, &invalid):
		v.File, v.Problems, v.text = invalid.Name, invalid.Problems, invalid.Text()
	case err != nil:
		return v, err
	default:
		v.File, v.OK, v.Name, v.Hash = w.From, true, w.Definition.Name, w.Hash
	}
	return v, nil
}
