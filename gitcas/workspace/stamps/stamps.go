// Package stamps tells whether a file still has the content with which it was read, from what
// the system says of it, and keeps that from one process to the next.
package stamps

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// Stamp is what the system tells of a file without reading it. Two equal stamps
// of one path mean equal content, if the first was taken when the file system's
// clock had moved past the file's times: a later change then shows in ctime,
// which no program can set. The zero stamp equals nothing.
type Stamp struct {
	_            struct{} `cbor:",toarray"`
	Size         int64
	MTime, CTime int64 // nanoseconds
	Inode        uint64
	Mode         uint32
}

// IsKnown reports whether a stamp is not the zero stamp.
func (s Stamp) IsKnown() bool { return s != Stamp{} }

// IfSettled is the stamp if a change after the moment clock (by the file system's
// clock) would show in it, otherwise the zero stamp.
func (s Stamp) IfSettled(clock int64) Stamp {
	if s.MTime < clock && s.CTime < clock {
		return s
	}
	return Stamp{}
}

// Stat is what is used of a system's file status.
type Stat struct {
	Stamp Stamp
	Links uint64 // hard links
	Owner uint32
	Group uint32
}

// StatOf takes what Lstat says on Linux and macOS.
func StatOf(info fs.FileInfo) Stat {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return Stat{Links: 1}
	}
	return Stat{
		Stamp: Stamp{Size: s.Size, MTime: info.ModTime().UnixNano(), CTime: changedAt(s), Inode: s.Ino, Mode: uint32(s.Mode)}, //nolint:unconvert // 16 bits on macOS
		Links: uint64(s.Nlink),                                                                                                //nolint:unconvert // 32 or 16 bits on some systems
		Owner: s.Uid,
		Group: s.Gid,
	}
}

// Clock reads the clock of the file system at root by making a file of that name. It also
// reports whether that file system ignores case.
func Clock(root *os.Root, name string) (clock int64, foldsCase bool, err error) {
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, false, err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, false, err
	}
	info, err := f.Stat()
	if err == nil {
		clock = StatOf(info).Stamp.MTime
		_, foldErr := root.Lstat(strings.ToUpper(name))
		foldsCase = foldErr == nil
	}
	return clock, foldsCase, errors.Join(err, f.Close(), root.Remove(name))
}
