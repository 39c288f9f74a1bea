package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/internal/lists"
)

// shmFolder is where the C library puts semaphores and shared memory.
const shmFolder = "/dev/shm"

// separateMounts separates this process's mounts from the machine's if that is allowed, which most
// containers don't do: an empty shmFolder, and p.Users as the list of users. It sets p.Shm if
// shmFolder may be open.
func (p *policy) separateMounts() error {
	if !canMount() {
		_, open := listShm(p.UID)
		p.Shm = p.UID > 0 && !open
		return nil
	}
	if p.UID == keep || unix.Unshare(unix.CLONE_NEWNS) != nil || unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, "") != nil {
		return nil //nolint:nilerr // then it has the machine's mounts
	}
	inShm := func(place string) bool { return isWithin(resolvePath(place), shmFolder) }
	if slices.ContainsFunc(slices.Concat(p.Read, p.Write), inShm) {
		p.Shm = false // a mount would hide these places
	} else if unix.Mount("tmpfs", shmFolder, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777") == nil {
		p.Shm = true
	}
	if p.Users != "" {
		_ = unix.Mount(p.Users, usersFile, "", unix.MS_BIND, "") // without it the user has no name
	}
	return nil
}

// canMount says whether this process may mount, if nothing but capabilities keeps it from that.
func canMount() bool { return hasCapabilities(unix.CAP_SYS_ADMIN) }

// listShm returns the names in shmFolder that belong to a user, and whether everybody may use
// a name of another user.
func listShm(uid int) (names []string, open bool) {
	entries, err := os.ReadDir(shmFolder)
	open = err != nil
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue // removed meanwhile
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		switch {
		case ok && int(st.Uid) == uid:
			names = append(names, e.Name())
		case info.Mode().Perm()&0o007 != 0:
			open = true
		}
	}
	return names, open
}

// emptyShm removes what a user left in the machine's shmFolder, so that the next run doesn't
// find it.
func emptyShm(uid int) error {
	if canMount() {
		return nil // runs have one each
	}
	names, _ := listShm(uid)
	return errors.Join(lists.Map(names, func(name string) error { return os.RemoveAll(filepath.Join(shmFolder, name)) })...)
}
