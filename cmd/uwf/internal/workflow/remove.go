package workflow

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/definition"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/text"
)

// RemoveOptions are what `uwf workflow remove` works with.
type RemoveOptions struct {
	Factory *app.Factory
	Name    string
	Yes     bool
}

// NewCmdRemove makes `uwf workflow remove`. A runF that is not nil replaces the run.
func NewCmdRemove(f *app.Factory, runF func(context.Context, *RemoveOptions) error) *cobra.Command {
	o := &RemoveOptions{Factory: f}
	cmd := &cobra.Command{
		Use:     "remove NAME",
		Aliases: []string{"rm"},
		Short:   "Take a name out of the registry",
		Long: `Take a name, with its history, out of the registry. The workflows themselves stay in
the store, where their hashes find them: threads that were started with them go on.
Files of the same name are left alone.`,
		Example:           "  uwf workflow remove solve-issue --yes",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeRegistered(f),
		RunE:              app.Run(o, runF, removeRun, func(args []string) { o.Name = args[0] }),
	}
	cmd.Flags().BoolVarP(&o.Yes, "yes", "y", false, "don't ask")
	return cmd
}

// removed is what is printed.
type removed struct {
	Name string    `json:"name"`
	Hash node.Hash `json:"hash"`
	// Versions is how many versions the name had, Threads how many live threads
	// use one of them.
	Versions int  `json:"versions"`
	Threads  int  `json:"threads"`
	Removed  bool `json:"removed"`
}

func removeRun(ctx context.Context, o *RemoveOptions) error {
	r, err := findRegistered(ctx, o.Factory, o.Name)
	if errors.As(err, new(*app.UnknownError)) {
		if file, found := definition.New(o.Factory).Find(o.Name); found == nil && file != "" {
			return app.Usagef("%s is not in the registry; it is the file %s: delete that yourself", o.Name, file)
		}
	}
	if err != nil {
		return err
	}
	res := removed{Name: o.Name, Hash: r.Hash, Versions: len(r.listVersions()), Removed: true}
	for _, t := range r.view.Threads() {
		if slices.ContainsFunc(r.listVersions(), func(v gitcas.RegistryVersion) bool { return v.Hash == t.Workflow }) {
			res.Threads++
		}
	}
	question := fmt.Sprintf("Remove %s (%s) from the registry?%s", o.Name, text.Plural(res.Versions, "version"), res.describeThreads())
	if err := o.Factory.Confirm(question, o.Yes); errors.Is(err, app.ErrDeclined) {
		o.Factory.Notes().Println("nothing was removed")
		return nil
	} else if err != nil {
		return err
	}
	if _, err := r.changeTarget(ctx, "remove workflow "+o.Name, ""); err != nil {
		return fmt.Errorf("remove the workflow: %w", err)
	}
	return o.Factory.Printer().Print(res, res.writeText)
}

// describeThreads says what becomes of the threads.
func (r removed) describeThreads() string {
	if r.Threads == 0 {
		return ""
	}
	return fmt.Sprintf(" Live threads that use it: %d; each goes on with the version that it was started with.", r.Threads)
}

func (r removed) writeText(w *output.Writer) {
	w.Printf("removed %s from the registry.%s\n", r.Name, r.describeThreads())
	w.FaintLine("still found by its hash:  uwf thread start " + string(r.Hash) + ` -p "…"`)
}
