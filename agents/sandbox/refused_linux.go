//go:build amd64 || arm64

package sandbox

import "golang.org/x/sys/unix"

// refused are system calls that answer EPERM, as they do to a process without
// capabilities in the default profiles of container engines. None of them is needed
// to build, test or run a program; each reaches out of the sandbox, or into parts of
// the kernel that were only ever meant for root. Those of clone and unshare that make
// namespaces are refused by their flags (newNamespaces).
var refused = [...]uint32{
	// Other namespaces, and another view of the files: what Landlock allowed by its
	// place would lie somewhere else.
	unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOVE_MOUNT,
	unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR, unix.SYS_MOUNT_SETATTR,
	// Files by number, not by place; who opens which file on a whole mount.
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT,
	// Other processes from the inside.
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD,
	// Programs in the kernel, and what most of its exploits begin with.
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD,
	// The machine.
	unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_REBOOT,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_SYSLOG,
	// Keyrings are the user's or the session's, not the process's.
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
}

// missing are system calls that answer ENOSYS, so that libraries take an older way.
var missing = [...]uint32{
	// It takes its flags in memory, where no filter sees them; clone does the same.
	unix.SYS_CLONE3,
	// io_uring makes sockets and sends past this filter.
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
}
