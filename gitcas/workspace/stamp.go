package workspace

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// openFlags keep the opening of a FIFO that took a file's place from waiting.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOFOLLOW

// stamp is what the system tells of a file without reading it. Two equal stamps
// of one path mean equal content, if the first was taken when the file system's
// clock had moved past the file's times: a later change then shows in ctime,
// which no program can set. The zero stamp equals nothing.
type stamp struct {
	size         int64
	mtime, ctime int64 // nanoseconds
	ino          uint64
	mode         uint32
}

func (s stamp) isKnown() bool { return s != stamp{} }

// ifSettled is the stamp if a change after the moment clock (by the file system's
// clock) would show in it, else the zero stamp.
func (s stamp) ifSettled(clock int64) stamp {
	if s.mtime < clock && s.ctime < clock {
		return s
	}
	return stamp{}
}

// stat is what is used of a system's file status.
type stat struct {
	stamp stamp
	links uint64 // hard links
	owner uint32
	group uint32
}

// statOf takes what Lstat says on Linux and macOS.
func statOf(info fs.FileInfo) stat {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return stat{links: 1}
	}
	return stat{
		stamp: stamp{size: s.Size, mtime: info.ModTime().UnixNano(), ctime: changedAt(s), ino: s.Ino, mode: uint32(s.Mode)}, //nolint:unconvert // 16 bits on macOS
		links: uint64(s.Nlink),                                                                                              //nolint:unconvert // 32 or 16 bits on some systems
		owner: s.Uid,
		group: s.Gid,
	}
}

// fsClock reads the clock of the file system at root by making a file. It also
// reports whether that file system ignores case.
func fsClock(root *os.Root) (clock int64, foldsCase bool, err error) {
	name := TempPrefix + "clock"
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, false, err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, false, err
	}
	info, err := f.Stat()
	if err == nil {
		clock = statOf(info).stamp.mtime
		_, foldErr := root.Lstat(strings.ToUpper(name))
		foldsCase = foldErr == nil
	}
	return clock, foldsCase, errors.Join(err, f.Close(), root.Remove(name))
}
