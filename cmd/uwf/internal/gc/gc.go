// Package gc is `uwf gc`: taking away what threads that are over have left, on the
// remote and below the storage root. It never touches branches, the history of the
// state branch or anything that a thread that is alive may need.
package gc

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/output"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/sweep"
)

// Options are what `uwf gc` works with.
type Options struct {
	Factory   *app.Factory
	OlderThan string
	DryRun    bool
}

// defaultAge is how long something must have been over: long enough for a person
// to look at what a job kept when its thread was cancelled.
const defaultAge = "7d"

// NewCmdGC makes `uwf gc`. A runF that is not nil replaces the run.
func NewCmdGC(f *app.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{Factory: f}
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Take away what ended threads have left",
		Long: `Take away what nobody needs any more, on the remote and on this machine:

  - claims of jobs that died, unless the next step still counts them
  - attempts of threads that have ended, were removed, or that this store doesn't know
  - attempts of threads that are alive, once nothing links them
  - what a uwf purge that was interrupted had sent
  - working folders of threads that have ended, and caches of folders that are gone
  - steps of such threads that were sealed on this machine and never pushed

Threads, their history and the work branches stay. A ref is deleted only if it is still
what it was when it was judged, so a job that runs meanwhile loses nothing. What stays,
and why, is listed too.`,
		Example: "  uwf gc --dry-run\n  uwf gc --older-than 30d\n  uwf gc --jq '.removed[].name'",
		Args:    cobra.NoArgs,
		RunE:    app.Run(o, runF, gcRun, func([]string) {}),
	}
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "list what would be taken away, and take nothing")
	cmd.Flags().StringVar(&o.OlderThan, "older-than", defaultAge, "keep what has been over for less than this `TIME`: 90m, 12h, 7d, 2w; 0d keeps nothing")
	return cmd
}

// result is what is printed.
type result struct {
	DryRun  bool   `json:"dryRun"`
	Removed []item `json:"removed"`
	Kept    []item `json:"kept"`
}

// item is one ref, folder or file.
type item struct {
	Kind   string          `json:"kind"` // claim, attempt, purge, ref, folder, sealed, cache
	Name   string          `json:"name"`
	Thread gitcas.ThreadID `json:"thread,omitempty"`
	Why    string          `json:"why"`

	paths []string // on this machine
}

func gcRun(ctx context.Context, o *Options) error {
	age, err := o.parseAge()
	if err != nil {
		return err
	}
	root, err := o.Factory.StorageRoot()
	if err != nil {
		return err
	}
	store, err := o.Factory.Store(ctx)
	if err != nil {
		return err
	}
	disk := &local{root: root, age: age, now: o.Factory.Now()}
	if err := disk.findLocal(); err != nil {
		return err
	}
	plan, err := sweep.Plan(ctx, store, sweep.Options{OlderThan: age, Alive: life.ClaimAlive}, disk.threadIDs()...)
	if err != nil {
		return err
	}
	refs := plan.Refs
	if !o.DryRun {
		if refs, err = sweep.Delete(ctx, store.Remote(), refs, plan.MostRefs); err != nil {
			return err
		}
	}
	res := result{DryRun: o.DryRun, Removed: []item{}, Kept: []item{}}
	for _, r := range refs {
		res.addItem(r.Delete, item{Kind: sweep.KindOf(r.Name), Name: r.Name, Thread: r.Thread, Why: r.Why})
	}
	disk.judgeAll(plan, &res)
	if !o.DryRun {
		err = res.removeLocal(ctx)
	}
	if perr := o.Factory.Printer().Print(res, res.writeText); perr != nil {
		return perr
	}
	return err
}

// parseAge reads --older-than.
func (o *Options) parseAge() (time.Duration, error) {
	now := o.Factory.Now()
	at, err := app.Moment("--older-than", o.OlderThan, now)
	switch {
	case err != nil:
		return 0, err
	case at.IsZero():
		return 0, app.Usagef("--older-than is empty: say for how long something must have been over, such as 7d")
	case at.After(now):
		return 0, app.Usagef("--older-than %s lies in the future", o.OlderThan)
	}
	return now.Sub(at), nil
}

func (r *result) addItem(remove bool, i item) {
	if remove {
		r.Removed = append(r.Removed, i)
	} else {
		r.Kept = append(r.Kept, i)
	}
}

func (r result) writeText(w *output.Writer) {
	done := "removed"
	if r.DryRun {
		done = "would remove"
	}
	if len(r.Removed) == 0 {
		w.Println("nothing to remove")
	}
	for _, i := range r.Removed {
		w.Good(done)
		w.Printf(" %s: %s\n", i.Name, i.Why)
	}
	for _, i := range r.Kept {
		w.Faint("kept")
		w.Printf(" %s: %s\n", i.Name, i.Why)
	}
}
