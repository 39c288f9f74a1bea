// Package result is how a person takes what a thread made: `uwf thread diff`, `apply` and `pr`.
// It reads commits from where the store is, and so needs nothing of them in this checkout; it
// changes no thread.
package result

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/engine/patch"
	"github.com/united-workforce/uwf/engine/workbranch"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
)

// work is what a thread changed since the commit that it began from. What a person took along
// of their own is in that commit, and so no part of it.
type work struct {
	*lookup.Thread
	title     string
	base, tip wire.ID // zero: an empty folder
	changes   []workspace.Change
}

// readWork finds the work of the thread that an argument names: the tip of its branch, with what
// people added to it; where that is gone, the commit that is recorded.
func readWork(ctx context.Context, f *app.Factory, arg string) (*work, error) {
	t, err := lookup.Find(ctx, f.Store, arg)
	if err != nil {
		return nil, err
	}
	sum, err := t.View.ReadSummary(ctx, t.ID)
	if err != nil {
		return nil, err
	}
	w := &work{Thread: t, title: cmp.Or(t.Entry.Title, sum.Start.Title), base: plumbing.NewHash(sum.Start.Base)}
	ref := workbranch.Ref(t.Entry.Work.Branch)
	l, err := t.Store.Remote().List(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("look for the work of thread %s: %w", t.ID, err)
	}
	if w.tip = l.Refs[ref]; w.tip.IsZero() {
		w.tip = workbranch.CommitID(t.Entry.Work)
	}
	if w.tip.IsZero() {
		w.tip = w.base // nothing was changed
	}
	w.changes, err = workspace.OpenRemote(t.Store.Remote()).Compare(ctx, w.base, w.tip)
	if errors.Is(err, wire.ErrNotFound) {
		return nil, app.Usagef("the work of thread %s is not on %s any more: its branch %s was deleted, and so was what it held (uwf thread read %s has the words)",
			t.ID, t.Store.Remote().URL(), t.Entry.Work.Branch, t.ID)
	}
	return w, err
}

// fetchContents gets the contents of all files before and after.
func (w *work) fetchContents(ctx context.Context) (map[wire.ID][]byte, error) {
	var ids []wire.ID
	seen := map[wire.ID]bool{wire.ZeroID: true}
	for _, c := range w.changes {
		for _, id := range []wire.ID{c.Old, c.Blob} {
			if !seen[id] && !isSubmodule(c) {
				ids = append(ids, id)
			}
			seen[id] = true
		}
	}
	return workspace.FetchFiles(ctx, w.Store.Remote(), ids)
}

// collectFiles are the files with their contents, as a patch is made of them.
func (w *work) collectFiles(ctx context.Context) ([]patch.File, error) {
	return patch.CollectFiles(nil, w.changes, func(ids []wire.ID) (map[wire.ID][]byte, error) {
		return workspace.FetchFiles(ctx, w.Store.Remote(), ids)
	})
}

// describeEmpty says that there is nothing to take.
func (w *work) describeEmpty() string {
	return fmt.Sprintf("thread %s has changed no file", w.ID)
}
