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
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/internal/regular"
)

// Copy adds what is in a folder to another one, which is made where it is not there, with modes
// and times. What is there already under the same name stays as it is, and so does a folder
// among the paths of kept, with all in it. Devices, pipes and sockets are left out. Where the file
// systems can, files share their blocks.
func Copy(ctx context.Context, from, to string, kept ...string) error {
	return copyBetween(ctx, from, to, func(c *copier) error {
		c.kept = kept
		return c.copyFolder(".")
	})
}

// CopyPaths copies single files and folders, by their paths with slashes below both folders.
func CopyPaths(ctx context.Context, from, to string, paths []string) error {
	return copyBetween(ctx, from, to, func(c *copier) error {
		for _, p := range paths {
			p = filepath.FromSlash(p)
			info, err := c.src.Lstat(p)
			if err == nil {
				err = c.dst.MkdirAll(filepath.Dir(p), 0o755)
			}
			if err == nil {
				err = c.copyEntry(p, info)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// maxBytes and maxDepth bound a copy: what its files say that they hold, where less than nine tenths of what
// is free on the disk, and of how deep folders lie in one another.
const maxBytes, maxDepth = 16 << 30, 200

// Why a copy ends early. What was copied until then stays.
var (
	ErrSize  = errors.New("it holds more than 16 GiB, or than nine tenths of what is free on the disk")
	ErrDepth = errors.New("folders lie more than 200 deep in one another")
)

// copier copies between two folders.
type copier struct {
	ctx      context.Context //nolint:containedctx // it lives as long as one copy
	src, dst *os.Root
	room     int64    // bytes that may still be copied: files can say that they are far larger than what they take
	kept     []string // folders that stay wholly
}

// copyBetween opens both folders for a copy. Nothing outside of them is touched.
func copyBetween(ctx context.Context, from, to string, do func(c *copier) error) (err error) {
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
	var st unix.Statfs_t
	if err := unix.Statfs(to, &st); err != nil {
		return fmt.Errorf("find out how much of the disk is free for %s: %w", to, err)
	}
	c := &copier{ctx: ctx, src: src, dst: dst, room: int64(min(st.Bavail*uint64(st.Bsize)/10*9, maxBytes))}
	if err := do(c); err != nil {
		return fmt.Errorf("copy %s to %s: %w", from, to, err)
	}
	return nil
}

func (c *copier) copyFolder(path string) error {
	if strings.Count(path, "/") >= maxDepth {
		return ErrDepth
	}
	dir, err := c.src.Open(path)
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
			err = c.copyEntry(strings.TrimPrefix(path+"/"+e.Name(), "./"), info)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *copier) copyEntry(path string, info fs.FileInfo) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	if old, err := c.dst.Lstat(path); err == nil && !(info.IsDir() && old.IsDir() && !slices.Contains(c.kept, path)) {
		return nil
	}
	switch info.Mode().Type() {
	case 0:
		return c.copyFile(path, info)
	case fs.ModeSymlink:
		target, err := c.src.Readlink(path)
		if err == nil {
			err = c.dst.Symlink(target, path)
		}
		return err
	case fs.ModeDir:
		err := c.dst.Mkdir(path, 0o700)
		if errors.Is(err, fs.ErrExist) {
			return c.copyFolder(path)
		}
		if err != nil {
			return err
		}
		// The mode only then: a folder may be closed to writing.
		return errors.Join(c.copyFolder(path), c.dst.Chmod(path, info.Mode().Perm()|0o700), c.dst.Chtimes(path, info.ModTime(), info.ModTime()))
	}
	return nil
}

func (c *copier) copyFile(path string, info fs.FileInfo) (err error) {
	if c.room -= info.Size(); c.room < 0 {
		return ErrSize
	}
	in, _, err := regular.Open(c.src, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // gone meanwhile
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := c.dst.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.LimitReader(in, info.Size())) // it may grow
	return errors.Join(err, out.Chmod(info.Mode().Perm()), out.Close(), c.dst.Chtimes(path, info.ModTime(), info.ModTime()))
}
