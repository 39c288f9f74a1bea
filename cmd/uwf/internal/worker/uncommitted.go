package worker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/engine/step/screen"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
	"github.com/united-workforce/uwf/internal/lists"
)

// maxUncommitted is the largest uncommitted file that is taken along, in bytes.
const maxUncommitted = 64 << 20

// CommitUncommitted makes a commit on base of files as they are in the person's checkout, for
// a thread that is to begin from it. It is not on the remote yet. What a commit of an agent's
// must not hold, this one must not either: a secret that uwf knows, the shape of a token. The
// checkout and its index stay as they are, and none of its filters and hooks is run.
func CommitUncommitted(ctx context.Context, w *Worker, id gitcas.ThreadID, base string, files []string) (workspace.Snapshot, error) {
	fail := func(err error) (workspace.Snapshot, error) {
		return workspace.Snapshot{}, fmt.Errorf("take uncommitted changes along: %w", err)
	}
	if err := w.PrepareFolder(ctx, id); err != nil {
		return fail(err)
	}
	parent := plumbing.NewHash(base)
	if err := w.folder.ws.Restore(ctx, parent); err != nil {
		return fail(err)
	}
	if err := copyFiles(w.f.RepoRoot(), w.folder.dir, files); err != nil {
		return fail(err)
	}
	snap, err := w.folder.ws.TakeSnapshot(ctx, workspace.SnapshotRequest{
		Parents: []wire.ID{parent}, When: w.f.Now(), Message: "What was not committed when the thread began\n\nUwf-Thread: " + string(id) + "\n",
	})
	if err != nil {
		return fail(err)
	}
	for _, s := range snap.Skipped {
		if slices.Contains(files, s.Path) {
			return fail(app.Usagef("%s: %s", s.Path, s.Why))
		}
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

// copyFiles makes files of one folder what they are in another; those that are not there are
// removed.
func copyFiles(from, to string, files []string) (err error) {
	source, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	target, err := os.OpenRoot(to)
	if err != nil {
		return errors.Join(err, source.Close())
	}
	defer func() { err = errors.Join(err, source.Close(), target.Close()) }()
	var edits []workspace.Edit
	for _, name := range files {
		path := filepath.FromSlash(name)
		e := workspace.Edit{Path: name, Mode: filemode.Regular}
		info, err := source.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if err := target.RemoveAll(path); err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		case info.Mode().Type() == fs.ModeSymlink:
			link, err := source.Readlink(path)
			if err != nil {
				return err
			}
			e.Mode, e.Data = filemode.Symlink, []byte(link)
		default:
			if info.Mode()&0o100 != 0 {
				e.Mode = filemode.Executable
			}
			if e.Data, err = app.ReadRegularBy(source.Stat, source.Open, path, maxUncommitted); err != nil {
				return &app.UsageError{Err: err}
			}
		}
		edits = append(edits, e)
	}
	return workspace.Apply(to, edits)
}
