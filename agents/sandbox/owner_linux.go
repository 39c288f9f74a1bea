package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// ownershipLoan is a folder that belongs to another user for a while, with all that is in
// it. A nil loan is of nothing.
//
// Both ways are walked with open folders, one name at a time, so that no symlink
// is ever followed and nothing outside is touched, even while somebody moves
// things about. What a file belonged to is asked of the opened file itself. Other
// file systems that are mounted below are left alone.
type ownershipLoan struct {
	dir             string
	from, fromGroup int // whom it belongs to
	to, toGroup     int
	alsoFrom        int // this process's user, whose files go to from as well
	keeps           bool
}

// maxLevels bounds how deep folders may lie: each level holds a file open.
const maxLevels = 512

var errTooDeep = fmt.Errorf("folders lie more than %d levels deep", maxLevels)

// borrowFolder gives a folder and what is in it to a user, as far as it belonged to the
// folder's owner or to this process's user. Files with several names are left:
// another name may lie outside, and stand for a file that only looks like ours.
//
// With keeps, the folder's content belongs to the borrower from then on, whoever owned it before: only
// the folder itself is given back.
func borrowFolder(dir string, uid, gid int, keeps bool) (*ownershipLoan, error) {
	from, group, err := ownerOf(dir, uid)
	if err != nil {
		return nil, err
	}
	l := &ownershipLoan{dir: dir, from: from, fromGroup: group, to: uid, toGroup: gid, alsoFrom: os.Geteuid(), keeps: keeps}
	if from == uid && l.alsoFrom == uid && !keeps {
		return nil, nil // it is theirs already
	}
	return l, l.walkLoan(uid, gid, func(st *unix.Stat_t) bool {
		ours := keeps || int(st.Uid) == l.from || int(st.Uid) == l.alsoFrom
		return int(st.Uid) != uid && ours && !hasSeveralNames(st)
	})
}

// giveBack gives everything that belongs to the borrower to the owner: also what
// is new, and what this process's user had put there.
func (l *ownershipLoan) giveBack() error {
	switch {
	case l == nil || l.from == l.to:
		return nil
	case l.keeps:
		return l.closeFolder()
	}
	return l.walkLoan(l.from, l.fromGroup, func(st *unix.Stat_t) bool {
		mayBeOutside := l.to == l.alsoFrom && hasSeveralNames(st)
		return int(st.Uid) == l.to && !mayBeOutside
	})
}

// closeFolder gives the folder itself to its owner and closes it to all others, so that no other
// process of the borrower reaches its content.
func (l *ownershipLoan) closeFolder() error {
	fd, err := unix.Open(l.dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: l.dir, Err: err}
	}
	defer func() { _ = unix.Close(fd) }()
	// In this order: the borrower may change the mode as long as the folder is its own.
	if err = changeOwner(fd, l.from, l.fromGroup); err == nil {
		err = unix.Fchmod(fd, 0o700)
	}
	if err != nil {
		return &os.PathError{Op: "close", Path: l.dir, Err: err}
	}
	return nil
}

// hasSeveralNames says whether a file has more than one name.
func hasSeveralNames(st *unix.Stat_t) bool {
	return st.Mode&unix.S_IFMT != unix.S_IFDIR && st.Nlink > 1
}

// ownerOf is whom a folder belongs to. One that still belongs to the borrower, as
// after a job that was killed, is its parent's owner's.
func ownerOf(dir string, borrower int) (uid, gid int, err error) {
	for {
		var st unix.Stat_t
		if err := unix.Lstat(dir, &st); err != nil {
			return 0, 0, &os.PathError{Op: "lstat", Path: dir, Err: err}
		}
		if int(st.Uid) != borrower || borrower == 0 || dir == "/" {
			return int(st.Uid), int(st.Gid), nil
		}
		dir = filepath.Dir(dir)
	}
}

// changeOwner changes the owner of what is open, be it a symlink. The kernel takes the
// setuid and setgid bits of files away with it.
func changeOwner(fd, uid, gid int) error {
	err := unix.Fchownat(fd, "", uid, gid, unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return nil // removed meanwhile
	}
	return err
}

// walkLoan gives the folder and everything in it that goes to a user. It goes on after an error.
func (l *ownershipLoan) walkLoan(uid, gid int, goes func(st *unix.Stat_t) bool) error {
	w := walk{uid: uid, gid: gid, goes: goes, few: l.keeps}
	w.walkEntry(unix.AT_FDCWD, l.dir, 0)
	return errors.Join(w.errs...)
}

type walk struct {
	device   uint64
	uid, gid int
	goes     func(st *unix.Stat_t) bool
	few      bool // most of it stays whose it is
	errs     []error
}

// maxWalkErrors bounds what is told of a folder where nothing works.
const maxWalkErrors = 5

func (w *walk) noteError(err error) {
	if err != nil && len(w.errs) < maxWalkErrors {
		w.errs = append(w.errs, err)
	}
}

// walkFolder visits what is in an open folder, and closes it.
func (w *walk) walkFolder(dir *os.File, level int) {
	defer func() { _ = dir.Close() }()
	if level > maxLevels {
		w.noteError(&os.PathError{Op: "walk", Path: filepath.Base(dir.Name()), Err: errTooDeep})
		return
	}
	for {
		names, err := dir.Readdirnames(1024)
		for _, name := range names {
			w.walkEntry(int(dir.Fd()), name, level)
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				w.noteError(err)
			}
			return
		}
	}
}

// walkEntry gives a file or folder, if it goes and has one name; the loan's folder is at level 0. Nothing is
// opened for reading, so that a FIFO or a device does nothing.
func (w *walk) walkEntry(at int, name string, level int) {
	var st unix.Stat_t
	if w.few && unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR && !w.goes(&st) {
		return
	}
	fd, err := unix.Openat(at, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		if level == 0 || !errors.Is(err, unix.ENOENT) {
			w.noteError(&os.PathError{Op: "open", Path: name, Err: err})
		}
		return
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.Fstat(fd, &st); err != nil {
		w.noteError(&os.PathError{Op: "fstat", Path: name, Err: err})
		return
	}
	isFolder := st.Mode&unix.S_IFMT == unix.S_IFDIR
	switch {
	case level == 0 && !isFolder:
		w.noteError(&os.PathError{Op: "open", Path: name, Err: unix.ENOTDIR})
		return
	case level == 0:
		w.device = st.Dev
	case st.Dev != w.device:
		return
	}
	if w.goes(&st) {
		if err := changeOwner(fd, w.uid, w.gid); err != nil {
			w.noteError(&os.PathError{Op: "chown", Path: name, Err: err})
		}
	}
	if !isFolder {
		return
	}
	// The folder that was visited, whatever has that name now.
	sub, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		w.noteError(&os.PathError{Op: "open", Path: name, Err: err})
		return
	}
	w.walkFolder(os.NewFile(uintptr(sub), name), level+1)
}

// engineSockets are where container engines listen. Whoever talks to one is root.
var engineSockets = [...]string{"/run/docker.sock", "/var/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock"}

// canUseContainerEngine says whether a user may talk to a container engine.
func canUseContainerEngine(environ []string, uid, gid int) bool {
	places := engineSockets[:]
	if path, ok := strings.CutPrefix(Getenv(environ, "DOCKER_HOST"), "unix://"); ok {
		places = append(slices.Clone(places), path)
	}
	for _, path := range places {
		var st unix.Stat_t
		if unix.Stat(path, &st) == nil && st.Mode&allowedBits(&st, uid, gid, 0o002) != 0 {
			return true
		}
	}
	return false
}

// allowedBits is a right as it stands in a file's mode for a user: bits are those for
// everybody.
func allowedBits(st *unix.Stat_t, uid, gid int, bits uint32) uint32 {
	switch {
	case int(st.Uid) == uid:
		return bits << 6
	case int(st.Gid) == gid:
		return bits << 3
	}
	return bits
}

// closedAncestor is the first folder on the way to a path that a user can't go
// through, or empty.
func closedAncestor(path string, uid, gid int) string {
	for dir := filepath.Dir(resolvePath(path)); ; dir = filepath.Dir(dir) {
		var st unix.Stat_t
		if err := unix.Stat(dir, &st); err != nil {
			return dir
		}
		if st.Mode&allowedBits(&st, uid, gid, 0o001) == 0 {
			return dir
		}
		if dir == "/" {
			return ""
		}
	}
}
