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
	return new(Mover).CopyFolder(ctx, from, to, kept...)
}

// CopyPaths copies single files and folders, by their paths with slashes below both folders.
func CopyPaths(ctx context.Context, from, to string, paths []string) error {
	return new(Mover).CopyNamed(ctx, from, to, paths)
}

// Move is a folder that moves: copies name New if what they are made of names Old.
type Move struct{ Old, New string }

// Mover copies folders, and changes the paths of Moves in the text files and links of the copies.
type Mover struct {
	Moves []Move
	// Held are the files and links that named an Old, with slashes; Binary counts the files that do
	// and stay as they are, since they are no text.
	Held   []string
	Binary int
}

// CopyFolder is [Copy] with the Moves.
func (m *Mover) CopyFolder(ctx context.Context, from, to string, kept ...string) error {
	return copyBetween(ctx, from, to, func(c *copier) error {
		c.mover, c.kept = m, kept
		return c.copyFolder(".")
	})
}

// maxMoved is how large a file is, in bytes, that is searched for paths.
const maxMoved = 16 << 20

// moveFile returns what a copy of an open file holds.
func (m *Mover) moveFile(path string, in *os.File, size int64) (io.Reader, error) {
	if same := io.LimitReader(in, size); len(m.Moves) == 0 || size > maxMoved { // it may grow
		return same, nil
	}
	text, err := io.ReadAll(io.LimitReader(in, size))
	if err != nil {
		return nil, err
	}
	moved := m.moveText(path, string(text))
	if moved == string(text) { // so that the copy can share its blocks
		_, err := in.Seek(0, io.SeekStart)
		return io.LimitReader(in, size), err
	}
	return strings.NewReader(moved), nil
}

func (m *Mover) moveText(path, text string) string {
	names := func(move Move) bool { return strings.Contains(text, move.Old) }
	switch {
	case !slices.ContainsFunc(m.Moves, names):
		return text
	case strings.Contains(text, "\x00"):
		if !strings.HasSuffix(path, ".pyc") { // Python reads the path of a module from elsewhere
			m.Binary++
		}
		return text
	}
	m.Held = append(m.Held, filepath.ToSlash(path))
	for _, move := range m.Moves {
		text = strings.ReplaceAll(text, move.Old, move.New)
	}
	return text
}

// CopyNamed is [CopyPaths] with the Moves.
func (m *Mover) CopyNamed(ctx context.Context, from, to string, paths []string) error {
	return copyBetween(ctx, from, to, func(c *copier) error {
		c.mover = m
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
	mover    *Mover
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
	c := &copier{mover: new(Mover), ctx: ctx, src: src, dst: dst, room: int64(min(st.Bavail*uint64(st.Bsize)/10*9, maxBytes))}
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
			err = c.dst.Symlink(c.mover.moveText(path, target), path)
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
	content, err := c.mover.moveFile(path, in, info.Size())
	if err == nil {
		_, err = io.Copy(out, content)
	}
	return errors.Join(err, out.Chmod(info.Mode().Perm()), out.Close(), c.dst.Chtimes(path, info.ModTime(), info.ModTime()))
}
