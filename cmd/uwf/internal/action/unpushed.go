package action

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/united-workforce/uwf/cmd/uwf/internal/worker"
	"github.com/united-workforce/uwf/engine/runner/ci"
	"github.com/united-workforce/uwf/engine/step/unpushed"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/internal/removal"
)

// handedOver is the folder of the workspace in which a job leaves the steps that it sealed
// and could not push, as they are below UWF_HOME. The workflow uploads it, and the
// rescue job of the same run finds it there.
const handedOver = ".uwf-pending"

// keepUnpushed has the job hand over what it can't push. What lies there by then is no step
// of its own.
func (j *job) keepUnpushed(ctx context.Context, w *worker.Worker) {
	switch j.in.Command {
	case ci.CommandStep, ci.CommandRun, ci.CommandCommit:
		if err := clearHandedOver(ctx, j.env.Workspace); err != nil {
			j.log.Warning(fmt.Sprintf("%s in the workspace can't be removed: %v", handedOver, err))
		}
		j.kept = watchUnpushed(w)
	default:
		readHandedOver(w, j.env.Workspace)
	}
}

// keeper keeps sealed steps as its folder does, and knows which of them this job left.
type keeper struct {
	*unpushed.Folder
	left map[string]unpushed.Step // by path
}

// watchUnpushed has a worker's sealed steps noted by the job; nil: it keeps none.
func watchUnpushed(w *worker.Worker) *keeper {
	f, ok := w.Unpushed.(*unpushed.Folder)
	if !ok {
		return nil
	}
	k := &keeper{Folder: f, left: map[string]unpushed.Step{}}
	w.Unpushed = k
	return k
}

// Write keeps a step.
func (k *keeper) Write(s unpushed.Step) error {
	err := k.Folder.Write(s)
	if err == nil {
		k.left[k.Path(s.Store, s.Thread, s.Nonce)] = s
	}
	return err
}

// Remove deletes one.
func (k *keeper) Remove(store string, id gitcas.ThreadID, nonce string) error {
	delete(k.left, k.Path(store, id, nonce))
	return k.Folder.Remove(store, id, nonce)
}

// handOver copies the steps that this job left into the workspace, when no agent works
// there any more. Whatever was there by that name goes: an agent may have put it there.
// Who owns the workspace owns the copies once it is given back.
func (k *keeper) handOver(ctx context.Context, workspace string) error {
	err := clearHandedOver(ctx, workspace)
	for _, s := range k.left {
		if workspace != "" && err == nil {
			err = (&unpushed.Folder{Dir: filepath.Join(workspace, handedOver)}).Write(s)
		}
	}
	return err
}

// clearHandedOver removes what an earlier job, or an agent, left where steps are handed over.
func clearHandedOver(ctx context.Context, workspace string) error {
	if workspace == "" {
		return nil
	}
	return removal.Tree(ctx, filepath.Join(workspace, handedOver), 0)
}

// readHandedOver has a worker look for sealed steps where the other job of this run left them:
// what is there is read as hostile.
func readHandedOver(w *worker.Worker, workspace string) {
	if workspace != "" {
		w.Unpushed = &unpushed.Folder{Dir: filepath.Join(workspace, handedOver)}
	}
}

// giveBack makes what lies in a folder belong to the folder's owner again. In a
// container the action is root and the workspace somebody else's: what root left there
// would break the job's next steps, and later jobs on the same machine. Files with
// several names are left alone: one of them may lie elsewhere.
func giveBack(dir string) (err error) {
	info, err := os.Lstat(dir)
	if os.Geteuid() != 0 || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || owner.Uid == 0 || !info.IsDir() {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		has, ok := info.Sys().(*syscall.Stat_t)
		if !ok || has.Uid == owner.Uid || !d.IsDir() && has.Nlink > 1 {
			return nil
		}
		return root.Lchown(filepath.FromSlash(name), int(owner.Uid), int(owner.Gid))
	})
}

// isMine reports whether a folder belongs to this process's user.
func isMine(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() {
		return false
	}
	has, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(has.Uid) == os.Geteuid()
}
