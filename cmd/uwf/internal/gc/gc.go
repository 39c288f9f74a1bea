// Package gc is `uwf gc`: taking away what threads that are over have left, on the
// remote and below the storage root. It never touches branches, the history of the
// state branch or anything that a thread that is alive may need.
package gc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/worker"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/step/unpushed"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/sweep"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/removal"
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
	Kind   string          `json:"kind"` // claim, attempt, ref, folder, sealed, cache
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
		res.addItem(r.Delete, item{Kind: string(r.Kind), Name: r.Name, Thread: r.Thread, Why: r.Why})
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
	now := app.LocalNow(o.Factory)
	at, err := app.ParseTime("--older-than", o.OlderThan, now)
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

// local is what lies below the storage root. Several stores share it, so what
// this store doesn't know is left alone.
type local struct {
	root    string
	age     time.Duration
	now     time.Time
	folders map[gitcas.ThreadID]string
	caches  []string // of folders that are gone
	sealed  []sealed
}

// sealed is a file of a step that was sealed here, of what could not be brought in, or of
// what was half written.
type sealed struct {
	path, store string
	thread      gitcas.ThreadID
}

// cacheAge is how old a cache must be when nobody knows which folder it is for:
// it may be one that was named with --workspace.
const cacheAge = 30 * 24 * time.Hour

// findLocal finds working folders, caches, and steps that were sealed here and not pushed.
func (l *local) findLocal() error {
	l.folders = map[gitcas.ThreadID]string{}
	used := map[string]bool{}
	err := visitFolder(worker.WorkRoot(l.root), func(dir string, e fs.DirEntry) error {
		if id := gitcas.ThreadID(e.Name()); id.Valid() && e.IsDir() {
			l.folders[id], used[worker.CacheFile(l.root, dir)] = dir, true
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = visitFolder(worker.CacheRoot(l.root), func(path string, e fs.DirEntry) error {
		if !used[path] && l.isStale(e) {
			l.caches = append(l.caches, path)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := l.findImages(); err != nil {
		return err
	}
	return visitFolder(worker.UnpushedRoot(l.root), func(dir string, store fs.DirEntry) error {
		if !store.IsDir() {
			return nil
		}
		return visitFolder(dir, func(path string, e fs.DirEntry) error {
			if id := unpushed.ThreadOf(e.Name()); id != "" && e.Type().IsRegular() {
				l.sealed = append(l.sealed, sealed{path, store.Name(), id})
			}
			return nil
		})
	})
}

// findImages finds what was prepared for workspaces or unpacked by coding agents, and is long
// unused: images of a store, and those of single threads, which go with their threads where
// these end here; seeds of all stores.
func (l *local) findImages() error {
	stale := func(path string, e fs.DirEntry) error {
		if info, err := e.Info(); err == nil && e.IsDir() && e.Name() != worker.ThreadImages && l.now.Sub(info.ModTime()) >= max(cacheAge, l.age) {
			l.caches = append(l.caches, path)
		}
		return nil
	}
	return errors.Join(visitFolder(worker.SeedRoot(l.root), stale), visitFolder(worker.ImageRoot(l.root), func(store string, _ fs.DirEntry) error {
		return errors.Join(visitFolder(store, stale), visitFolder(filepath.Join(store, worker.ThreadImages), stale))
	}))
}

// threadIDs are those that something here is for.
func (l *local) threadIDs() []gitcas.ThreadID {
	ids := slices.Collect(maps.Keys(l.folders))
	ids = append(ids, lists.Map(l.sealed, func(s sealed) gitcas.ThreadID { return s.thread })...)
	slices.Sort(ids)
	return slices.Compact(ids)
}

// isStale reports whether a file among the caches is one that is long unused. What a
// step left in a folder that was named (.left) stays: without it the next step would
// refuse the folder.
func (l *local) isStale(e fs.DirEntry) bool {
	info, err := e.Info()
	return err == nil && info.Mode().IsRegular() && strings.Contains(e.Name(), ".stat") && !strings.HasSuffix(e.Name(), ".left") &&
		l.now.Sub(info.ModTime()) >= max(cacheAge, l.age)
}

// visitFolder visits what lies in a folder; one that is not there is empty.
func visitFolder(dir string, visit func(path string, e fs.DirEntry) error) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		err = errors.Join(err, visit(filepath.Join(dir, e.Name()), e))
	}
	return err
}

// judgeAll says what is to become of each folder, sealed step and cache.
func (l *local) judgeAll(p sweep.Result, res *result) {
	for _, id := range slices.Sorted(maps.Keys(l.folders)) {
		dir := l.folders[id]
		remove, why := l.isOver(p, id)
		res.addItem(remove, item{Kind: "folder", Name: dir, Thread: id, Why: why, paths: []string{dir, worker.CacheFile(l.root, dir)}})
	}
	for _, s := range l.sealed {
		remove, why := false, "another store's thread made it"
		if s.store == p.Store {
			remove, why = l.isOver(p, s.thread)
		}
		res.addItem(remove, item{Kind: "sealed", Name: s.path, Thread: s.thread, Why: why, paths: []string{s.path}})
	}
	for _, path := range l.caches {
		res.addItem(true, item{Kind: "cache", Name: path, Why: "it has not been used for long", paths: []string{path}})
	}
}

// isOver reports whether a thread has been over for long enough for what it left here to go,
// and why.
func (l *local) isOver(p sweep.Result, id gitcas.ThreadID) (bool, string) {
	t := p.Threads[id]
	switch {
	case t.State == sweep.Living:
		return false, "its thread is alive"
	case t.State != sweep.Over:
		return false, "this store doesn't know its thread; another one may"
	case p.Now.Sub(t.Since) < l.age:
		return false, "its thread has not been over for long enough"
	}
	return true, "its thread is over"
}

// removeLocal removes what lies on this machine. What can't be removed is listed as kept.
func (r *result) removeLocal(ctx context.Context) error {
	var errs []error
	r.Removed = slices.DeleteFunc(r.Removed, func(i item) bool {
		for _, path := range i.paths {
			if i.Kind == "cache" {
				path = worker.RetireImage(path)
			}
			if err := removal.Tree(ctx, path, 0); err != nil {
				errs = append(errs, fmt.Errorf("remove %s: %w", path, err))
				i.Why = "it could not be removed: " + err.Error()
				r.Kept = append(r.Kept, i)
				return true
			}
		}
		return false
	})
	return errors.Join(errs...)
}
