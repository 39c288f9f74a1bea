package sandbox

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The system calls of Landlock are made here, for this thread alone: the library
// for it (go-landlock) applies them to every thread, which a process that is about
// to exec has no use for, and takes less than was asked for where the kernel is old.

// The rights on files: what reading takes, and what writing takes besides.
const (
	readRights  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	writeRights = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_DIR |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	// fileRights are those that a rule for a file may hold.
	fileRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// devices can be read and written by everybody.
var devices = [...]string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// terminals are where pseudo terminals are made. Those of others have owners.
var terminals = [...]string{"/dev/ptmx", "/dev/pts", "/dev/tty"}

// handledRights is everything that a version of Landlock can refuse.
func (p policy) handledRights() unix.LandlockRulesetAttr {
	var a unix.LandlockRulesetAttr
	a.Handled_access_fs = 1<<13 - 1 // everything up to links
	if p.ABI >= 2 {
		a.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if p.ABI >= 3 {
		a.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if p.ABI >= 4 && p.Gateway && !p.Asks {
		a.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if p.ABI >= 5 {
		a.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if p.ABI >= 6 {
		a.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	if p.ABI >= 9 {
		a.Handled_access_fs |= resolveUnix
	}
	return a
}

// restrictThread confines the calling thread by Landlock. no_new_privs must be set.
func (p policy) restrictThread() (err error) {
	attr := p.handledRights()
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return fmt.Errorf("make a Landlock ruleset: %w", errno)
	}
	ruleset := int(fd)
	defer func() { err = errors.Join(err, unix.Close(ruleset)) }()
	for _, rule := range []struct {
		holds  bool
		places []string
		rights uint64
	}{
		{true, p.Read, readRights},
		{true, p.Write, readRights | writeRights},
		{true, devices[:], unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE},
		{p.Shm, []string{shmFolder}, readRights | writeRights},
		{p.Terminals, terminals[:], unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV},
	} {
		for _, place := range rule.places {
			if !rule.holds {
				continue
			}
			if err := permitPlace(ruleset, place, rule.rights&attr.Handled_access_fs); err != nil {
				return err
			}
		}
	}
	if attr.Handled_access_net != 0 {
		for _, port := range p.Ports {
			rule := netPort{access: unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, port: uint64(port)}
			if err := addRule(ruleset, netPortRule, unsafe.Pointer(&rule)); err != nil {
				return fmt.Errorf("allow port %d: %w", port, err)
			}
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(ruleset), 0, 0); errno != 0 {
		return fmt.Errorf("apply the Landlock ruleset: %w", errno)
	}
	return nil
}

// permitPlace adds a place and what is below it. One that isn't there needs no right.
func permitPlace(ruleset int, place string, rights uint64) error {
	fd, err := unix.Open(place, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EACCES) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("allow %s: %w", place, err)
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("allow %s: %w", place, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= fileRights
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	if err := addRule(ruleset, unix.LANDLOCK_RULE_PATH_BENEATH, unsafe.Pointer(&rule)); err != nil {
		return fmt.Errorf("allow %s: %w", place, err)
	}
	return nil
}

// What golang.org/x/sys doesn't have of linux/landlock.h.
const (
	resolveUnix = 1 << 16 // connect to a unix socket by its path
	netPortRule = 2
)

type netPort struct{ access, port uint64 }

func addRule(ruleset int, kind uintptr, rule unsafe.Pointer) error {
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), kind, uintptr(rule), 0, 0, 0)
	runtime.KeepAlive(rule)
	if errno != 0 {
		return errno
	}
	return nil
}

// landlockVersion is the version of the ABI that the kernel speaks.
func landlockVersion() (int, error) {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0, errno
	}
	return int(v), nil
}
