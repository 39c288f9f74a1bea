package workflow

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/definition"
	"github.com/united-workforce/uwf/cmd/uwf/internal/output"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/text"
)

// RemoveOptions are what `uwf workflow remove` works with.
type RemoveOptions struct {
	Printer  output.Printer
	Notes    *output.Writer
	Store    func(context.Context) (*gitcas.Store, error)
	Resolver *definition.Resolver
	Name     string
	Yes      bool
	// Ask is where an answer can be read from; nil: there is nobody to ask.
	Ask io.Reader
}

// NewCmdRemove makes `uwf workflow remove`. A runF that is not nil replaces the run.
func NewCmdRemove(f *app.Factory, runF func(context.Context, *RemoveOptions) error) *cobra.Command {
	o := &RemoveOptions{Store: f.Store}
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
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name, o.Printer, o.Notes, o.Resolver = args[0], f.Printer(), f.Notes(), definition.New(f)
			if f.IO.InTTY && f.IO.ErrTTY {
				o.Ask = f.IO.In
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return removeRun(cmd.Context(), o)
		},
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
	store, err := o.Store(ctx)
	if err != nil {
		return err
	}
	v, err := store.Load(ctx)
	if err != nil {
		return err
	}
	e, err := findRegistered(v.Registry(), o.Name)
	if err != nil {
		return o.onlyFile(err)
	}
	res := removed{Name: o.Name, Hash: e.Hash, Versions: 1 + len(e.History), Threads: countUsers(v, e)}
	if yes, err := o.confirmRemoval(res); err != nil || !yes {
		return err
	}
	_, err = store.Update(ctx, v, func(v *gitcas.View) (*gitcas.Change, error) {
		now, there := v.Registry()[o.Name]
		switch {
		case !there: // done, perhaps by us: a reply may have been lost
			res.Removed = true
			return nil, nil
		case now.Hash != e.Hash:
			return nil, &app.UsageError{Err: newMovedError(o.Name, e.Hash, now.Hash)}
		}
		res.Removed = true
		return &gitcas.Change{
			Subject:  "remove workflow " + o.Name,
			Trailers: []gitcas.Trailer{{Key: "Uwf-Workflow", Value: string(e.Hash)}},
			Registry: map[string]*gitcas.RegistryEntry{o.Name: nil},
		}, nil
	})
	if err != nil {
		return fmt.Errorf("remove the workflow: %w", err)
	}
	return o.Printer.Print(res, res.writeText)
}

// onlyFile explains a name that is a file's and no registered one.
func (o *RemoveOptions) onlyFile(err error) error {
	if file, found := o.Resolver.Find(o.Name); found == nil && file != "" {
		return app.Usagef("%s is not in the registry; it is the file %s: delete that yourself", o.Name, file)
	}
	return err
}

// countUsers counts the live threads that use a version of a name.
func countUsers(v *gitcas.View, e gitcas.RegistryEntry) int {
	versions := []node.Hash{e.Hash}
	for _, h := range e.History {
		versions = append(versions, h.Hash)
	}
	n := 0
	for _, t := range v.Threads() {
		if slices.Contains(versions, t.Workflow) {
			n++
		}
	}
	return n
}

func (o *RemoveOptions) confirmRemoval(r removed) (bool, error) {
	if o.Yes {
		return true, nil
	}
	if o.Ask == nil {
		return false, app.Usagef("removing %s from the registry can't be undone by uwf: say --yes if it is meant", o.Name)
	}
	o.Notes.Printf("Remove %s (%s) from the registry?%s [y/N] ", o.Name, text.Plural(r.Versions, "version"), r.describeThreads())
	line, err := bufio.NewReader(o.Ask).ReadString('\n')
	if err != nil && line == "" {
		o.Notes.Println()
		return false, nil
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return true, nil
	}
	o.Notes.Printf("nothing was removed\n")
	return false, nil
}

// describeThreads says what becomes of the threads.
func (r removed) describeThreads() string {
	switch r.Threads {
	case 0:
		return ""
	case 1:
		return " 1 live thread uses it and goes on: it keeps the version that it was started with."
	}
	return fmt.Sprintf(" %d live threads use it and go on: they keep the version that they were started with.", r.Threads)
}

func (r removed) writeText(w *output.Writer) {
	w.Printf("removed %s from the registry.%s\n", r.Name, r.describeThreads())
	w.Faint("still found by its hash:  uwf thread start " + string(r.Hash) + ` -p "…"`)
	w.Println()
}
