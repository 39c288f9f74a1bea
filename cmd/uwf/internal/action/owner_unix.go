//go:build unix

package action

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

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
