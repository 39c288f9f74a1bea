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
		stamp: stamp{size: s.Size, mtime: s.Mtim.Nano(), ctime: s.Ctim.Nano(), ino: s.Ino, mode: s.Mode},
		links: uint64(s.Nlink), //nolint:unconvert // 32 bits on some systems
		owner: s.Uid,
		group: s.Gid,
		dev:   s.Dev,
	}
}
