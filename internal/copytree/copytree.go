// Package copytree copies folders that somebody else has filled: files, folders and symbolic
// links as they are, and nothing else. It follows no link.
package copytree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Copy copies what is in a folder into another one, which is made where it is not there, with
// modes and times. What is there already under the same name is replaced. Devices, pipes and
// sockets are left out. Where the file systems can, files share their blocks.
func Copy(ctx context.Context, from, to string) error {
	return between(from, to, func(src, dst *os.Root) error { return copyFolder(ctx, src, dst, ".") })
}

// CopyPaths copies single files and folders, by their paths with slashes below both folders.
func CopyPaths(ctx context.Context, from, to string, paths []string) error {
	return between(from, to, func(src, dst *os.Root) error {
		for _, p := range paths {
			p = filepath.FromSlash(p)
			info, err := src.Lstat(p)
			if err == nil {
				err = dst.MkdirAll(filepath.Dir(p), 0o755)
			}
			if err == nil {
				err = copyEntry(ctx, src, dst, p, info)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// between opens both folders for a copy. Nothing outside of them is touched.
func between(from, to string, do func(src, dst *os.Root) error) (err error) {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	src, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	dst, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	if err := do(src, dst); err != nil {
		return fmt.Errorf("copy %s to %s: %w", from, to, err)
	}
	return nil
}

func copyFolder(ctx context.Context, src, dst *os.Root, path string) error {
	dir, err := src.Open(path)
	if err != nil {
		return err
	}
	entries, err := dir.ReadDir(-1)
	if err = errors.Join(err, dir.Close()); err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // gone meanwhile
		}
		if err == nil {
			err = copyEntry(ctx, src, dst, strings.TrimPrefix(path+"/"+e.Name(), "./"), info)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func copyEntry(ctx context.Context, src, dst *os.Root, path string, info fs.FileInfo) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	switch info.Mode().Type() {
	case 0:
		return copyFile(src, dst, path, info)
	case fs.ModeSymlink:
		target, err := src.Readlink(path)
		if err == nil {
			err = replace(dst, path, func() error { return dst.Symlink(target, path) })
		}
		return err
	case fs.ModeDir:
		err := dst.Mkdir(path, 0o700)
		if errors.Is(err, fs.ErrExist) {
			if old, lerr := dst.Lstat(path); lerr == nil && old.IsDir() {
				err = nil
			} else {
				err = errors.Join(lerr, replace(dst, path, func() error { return dst.Mkdir(path, 0o700) }))
			}
		}
		if err == nil {
			err = copyFolder(ctx, src, dst, path)
		}
		// Only now: a folder may be closed to writing.
		return errors.Join(err, dst.Chmod(path, info.Mode().Perm()|0o700), dst.Chtimes(path, info.ModTime(), info.ModTime()))
	}
	return nil
}

func copyFile(src, dst *os.Root, path string, info fs.FileInfo) (err error) {
	in, err := src.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	if now, err := in.Stat(); err != nil || !now.Mode().IsRegular() {
		return err // something else has taken its place
	}
	var out *os.File
	err = replace(dst, path, func() (err error) {
		out, err = dst.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		return err
	})
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Chmod(info.Mode().Perm()), out.Close(), dst.Chtimes(path, info.ModTime(), info.ModTime()))
}

// replace makes something under a name, in place of what may be there.
func replace(dst *os.Root, path string, make func() error) error {
	err := make()
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := dst.RemoveAll(path); err != nil {
		return err
	}
	return make()
}
