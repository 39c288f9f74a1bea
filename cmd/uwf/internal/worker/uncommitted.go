package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/checkout"
	"github.com/united-workforce/uwf/engine/step/screen"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
	"github.com/united-workforce/uwf/internal/lists"
)

// CommitUncommitted makes a commit on base of files as git add would store them from the person's
// checkout, for a thread that is to begin from it. It is not on the remote yet. What a commit of an
// agent's must not hold, this one must not either: a secret that uwf knows, the shape of a token.
// The checkout and its index stay as they are, and no hook is run.
func CommitUncommitted(ctx context.Context, w *Worker, id gitcas.ThreadID, base string, files []string) (workspace.Snapshot, error) {
	fail := func(err error) (workspace.Snapshot, error) {
		return workspace.Snapshot{}, fmt.Errorf("take uncommitted changes along: %w", err)
	}
	request := workspace.SnapshotRequest{
		Parents: []wire.ID{plumbing.NewHash(base)}, When: w.f.Now(), Message: "What was not committed when the thread began\n\nUwf-Thread: " + string(id) + "\n",
	}
	snap, err := w.storeFiles(ctx, request.Parents, files)
	if err != nil {
		return fail(err)
	}
	if snap.Unchanged = len(snap.Changes) == 0; snap.Unchanged {
		return snap, nil
	}
	if err := snap.AddCommit(request); err != nil {
		return fail(err)
	}
	var found *screen.FoundError
	if err := screen.Search(ctx, snap, w.redact, w.ReadBlobs); errors.As(err, &found) {
		lines := lists.Map(found.Findings, screen.Finding.Describe)
		return fail(app.Usagef("%s\nnothing was started: take it out, or leave --include-uncommitted out; what is no secret can be named in redact.allow of ~/.uwf/config.yaml", strings.Join(lines, "\n")))
	} else if err != nil {
		return fail(err)
	}
	return snap, nil
}

// storeFiles has git make a tree of a commit's and of files of the checkout.
func (w *Worker) storeFiles(ctx context.Context, base []wire.ID, files []string) (snap workspace.Snapshot, err error) {
	scratch, err := checkout.Open(ctx, w.f, w.f.RepoRoot())
	if err != nil {
		return snap, err
	}
	defer func() { err = errors.Join(err, scratch.Close()) }()
	staged, refused, err := scratch.Stage(ctx, files, func(string, bool) bool { return true })
	if err != nil {
		return snap, err
	}
	for _, path := range files {
		if why := refused[path]; why != "" {
			return snap, app.Usagef("%s: %s", path, why)
		}
	}
	tree, err := scratch.EditTree(ctx, base[0].String(), staged)
	if err != nil {
		return snap, err
	}
	filters, err := scratch.Filters(ctx, files)
	if err != nil {
		return snap, err
	}
	for _, path := range files {
		if filters[path] == "lfs" && staged[path] != (checkout.Entry{}) {
			return snap, app.Usagef("%s is stored by Git LFS, and its content would stay in .git/lfs of this checkout: commit and push it, or leave it out", path)
		}
	}

	objects, err := scratch.ReadNew(ctx, base[0].String(), tree)
	if err != nil {
		return snap, err
	}
	snap, err = workspace.RebuildStaged(ctx, w.Store.Remote(), base, tree, objects)
	if err != nil && ctx.Err() == nil {
		err = &app.UsageError{Err: err}
	}
	return snap, err
}
