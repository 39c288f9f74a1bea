package workspace

import (
	"io/fs"
	"syscall"
)

// openFlags keep the opening of a FIFO that took a file's place from waiting.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOFOLLOW

func statOf(info fs.FileInfo) stat {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return stat{links: 1}
	}
	return stat{
		stamp: stamp{size: s.Size, mtime: s.Mtimespec.Nano(), ctime: s.Ctimespec.Nano(), ino: s.Ino, mode: uint32(s.Mode)},
		links: uint64(s.Nlink),
		owner: s.Uid,
		group: s.Gid,
		dev:   uint64(s.Dev), //nolint:gosec // an opaque number
	}
}
