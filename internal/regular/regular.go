// Package regular reads files in folders that others write to. What isn't a regular file is
// neither read nor waited for, as opening a named pipe would, and links are not followed.
package regular

import (
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Open opens a regular file.
func Open(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is %s, not a file", name, DescribeKind(info.Mode()))
	}
	if err != nil {
		_ = f.Close() // nothing was written to it
		return nil, nil, err
	}
	return f, info, nil
}

// Read reads a regular file of at most limit bytes.
func Read(root *os.Root, name string, limit int64) ([]byte, error) {
	f, _, err := Open(root, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read from
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("%s has more than %d bytes", name, limit)
	}
	return b, nil
}

// DescribeKind says what a thing is, for messages.
func DescribeKind(m fs.FileMode) string {
	for _, k := range []struct {
		bit  fs.FileMode
		name string
	}{
		{fs.ModeDir, "a folder"}, {fs.ModeSymlink, "a symlink"}, {fs.ModeNamedPipe, "a named pipe"},
		{fs.ModeSocket, "a socket"}, {fs.ModeDevice, "a device"}, {fs.ModeIrregular, "no regular file"},
	} {
		if m&k.bit != 0 {
			return k.name
		}
	}
	return "a file"
}
