package sandbox

import (
	"errors"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Probe looks at what this machine can enforce. It changes nothing.
func Probe() Report {
	r := Report{System: "linux", Seccomp: hasFilters()}
	abi, err := landlockVersion()
	switch {
	case errors.Is(err, unix.ENOSYS):
		r.Why = "this kernel has no Landlock, or the container hides it"
	case errors.Is(err, unix.EOPNOTSUPP):
		r.Why = "Landlock is switched off; lsm= of the kernel's command line must name it"
	case err != nil:
		r.Why = "Landlock: " + err.Error()
	default:
		r.Landlock = abi
	}
	r.UID, r.GID, r.User = agentUser()
	r.Root = os.Geteuid() == 0 && canChangeUser() && isMapped("/proc/self/uid_map", r.UID) && isMapped("/proc/self/gid_map", r.GID)
	return r
}

// agentUser is whom agents run as.
func agentUser() (uid, gid int, name string) {
	u, err := user.Lookup(AgentName)
	if err != nil {
		return AgentID, AgentID, ""
	}
	uid, uerr := strconv.Atoi(u.Uid)
	gid, gerr := strconv.Atoi(u.Gid)
	if uerr != nil || gerr != nil || uid <= 0 || gid <= 0 {
		return AgentID, AgentID, ""
	}
	return uid, gid, AgentName
}

// canChangeUser says whether this process may do what running others as another user
// takes: become them, give them files, end them, and read what they left.
func canChangeUser() bool {
	return hasCapabilities(unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_SETPCAP, unix.CAP_CHOWN, unix.CAP_FOWNER, unix.CAP_KILL, unix.CAP_DAC_OVERRIDE)
}

// hasCapabilities says whether this process has all of these.
func hasCapabilities(wanted ...uint) bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false
	}
	return !slices.ContainsFunc(wanted, func(c uint) bool { return data[0].Effective&(1<<c) == 0 })
}

// isMapped says whether a number exists in this process's user namespace.
func isMapped(file string, id int) bool {
	b, err := os.ReadFile(file)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) != 3 {
			continue
		}
		first, err := strconv.Atoi(f[0])
		count, cerr := strconv.Atoi(f[2])
		if err == nil && cerr == nil && id >= first && id-first < count {
			return true
		}
	}
	return false
}

// hasFilters says whether the kernel takes filters that answer with an error.
func hasFilters() bool {
	if auditArch == 0 {
		return false
	}
	action := uint32(unix.SECCOMP_RET_ERRNO)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	return errno == 0
}
