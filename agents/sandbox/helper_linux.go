package sandbox

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// exitRefused is the exit code of a helper that could not confine itself.
const exitRefused = 126

// Helper makes this process the agent that its command line names, confined, and
// doesn't return then. Main calls it before anything else. Ours is false for every
// other command line.
func Helper(args, environ []string) (code int, ours bool) {
	if len(args) < 3 || args[1] != helperName {
		return 0, false
	}
	// What is taken away is taken from one thread; it is the one that execs.
	runtime.LockOSThread()
	err := confineAndExec(args, environ)
	fmt.Fprintf(os.Stderr, "uwf: confine the agent: %v; with sandbox: off it runs unconfined\n", err)
	return exitRefused, true
}

// confineAndExec confines this process and executes the program in the helper's command line.
func confineAndExec(args, environ []string) error {
	p, env, err := takePolicy(environ)
	if err != nil {
		return err
	}
	if p.Gateway && len(p.Ports) == 0 && !p.Asks {
		separate, err := separateNetwork()
		switch {
		case err != nil:
			return fmt.Errorf("separate its network: %w", err)
		case separate:
			p.Gateway = false // there is nothing else to reach
		case p.Filter:
			return p.runAnswered(args, env)
		}
	}
	argv := args[2:]
	parent := os.Getppid() // which lives, or we would have been killed with it
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"close files", closeFiles},
		{"leave the keyring", leaveKeyring},
		{"limit processes", p.setLimits},
		{"separate its mounts", p.separateMounts},
		{"change the user", p.changeUser},
		{"end with uwf", func() error { return bindToParent(parent) }},
		{"give up new privileges", func() error { return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }},
		{"filter system calls", p.filterCalls},
		{"limit files", func() error {
			if p.ABI == 0 {
				return nil
			}
			return p.restrictThread()
		}},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	if err := syscall.Exec(argv[0], argv, env); err != nil {
		return fmt.Errorf("start %s: %w", argv[0], err)
	}
	return nil
}

// closeFiles has everything but stdin, stdout and stderr closed by exec: files
// that this process's own parents left open are not for agents.
func closeFiles() error {
	err := unix.CloseRange(3, ^uint(0)>>1&0xffff_ffff, unix.CLOSE_RANGE_CLOEXEC)
	if !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EINVAL) {
		return err
	}
	dir, err := os.ReadDir("/proc/self/fd") // before Linux 5.11
	if err != nil {
		return err
	}
	for _, e := range dir {
		var fd int
		if _, err := fmt.Sscan(e.Name(), &fd); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// leaveKeyring gives the process a keyring of its own; kernels and containers
// without keyrings have none to leave.
func leaveKeyring() error {
	_, _ = unix.KeyctlJoinSessionKeyring("")
	return nil
}

// setLimits bounds processes, and leaves no memory in files.
func (p policy) setLimits() error {
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return err
	}
	n := uint64(max(p.Processes, 0))
	if p.Processes == bounded {
		var info unix.Sysinfo_t
		if err := unix.Sysinfo(&info); err != nil {
			return err
		}
		n = uint64(info.Procs) + ownProcesses
	}
	if n == 0 {
		return nil
	}
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &now); err != nil {
		return err
	}
	n = min(n, now.Max)
	return unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: n, Max: n})
}

// changeUser becomes another user, or root without its capabilities. No step of it can
// be undone, which is tried.
func (p policy) changeUser() error {
	if p.UID == keep {
		return nil
	}
	if err := dropBounds(); err != nil {
		return err
	}
	if err := syscall.Setgroups([]int{}); err != nil {
		return fmt.Errorf("leave all groups: %w", err)
	}
	if err := syscall.Setresgid(p.GID, p.GID, p.GID); err != nil {
		return fmt.Errorf("group %d: %w", p.GID, err)
	}
	if err := syscall.Setresuid(p.UID, p.UID, p.UID); err != nil {
		return fmt.Errorf("user %d: %w", p.UID, err)
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	if p.UID != 0 && (syscall.Setresuid(0, 0, 0) == nil || syscall.Setresgid(0, 0, 0) == nil) {
		return errors.New("it could be undone")
	}
	return nil
}

// dropBounds takes every capability out of what exec can give.
func dropBounds() error {
	for c := range uintptr(64) {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) {
			return nil // no capability of this kernel
		}
		if err != nil {
			return fmt.Errorf("capability %d: %w", c, err)
		}
	}
	return nil
}

func dropCapabilities() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("ambient capabilities: %w", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	return nil
}

// bindToParent binds this process to its parent anew: changing the user has undone it. That
// is uwf's, or the watcher's, which ends everything when uwf has ended.
func bindToParent(parent int) error {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return err
	}
	if os.Getppid() != parent {
		return errors.New("uwf has ended")
	}
	return nil
}
