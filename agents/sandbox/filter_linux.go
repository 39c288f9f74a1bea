package sandbox

import (
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Where the kernel shows a system call to a filter: struct seccomp_data.
const (
	atNumber = 0
	atArch   = 4
	atArgs   = 16
)

// msgFastOpen (MSG_FASTOPEN) connects while it sends, past Landlock.
const msgFastOpen = 0x2000_0000

// newNamespaces are the flags of clone that ask for a namespace. In one of its own a
// process has every capability, and with that reaches far more of the kernel. That of
// a clock's namespace is one only for unshare: clone has the signal there that tells of
// the child's end.
const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// filter is a program under construction.
type filter []unix.SockFilter

func (f *filter) add(code uint16, k uint32, jt, jf uint8) {
	*f = append(*f, unix.SockFilter{Code: code, Jt: jt, Jf: jf, K: k})
}

// load takes a word of the call; argument loads the low half of an argument, which
// is all that the kernel takes of an int.
func (f *filter) load(at uint32)    { f.add(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, at, 0, 0) }
func (f *filter) argument(n uint32) { f.load(atArgs + 8*n) }
func (f *filter) allow()            { f.add(unix.BPF_RET|unix.BPF_K, unix.SECCOMP_RET_ALLOW, 0, 0) }
func (f *filter) refuse(errno unix.Errno) {
	f.add(unix.BPF_RET|unix.BPF_K, unix.SECCOMP_RET_ERRNO|uint32(errno), 0, 0)
}

// when runs what then adds if the word is k, and goes on after it otherwise.
func (f *filter) when(k uint32, then func()) { f.branch(unix.BPF_JEQ, k, then) }

// whenSet is when for a word that has a bit of k.
func (f *filter) whenSet(k uint32, then func()) { f.branch(unix.BPF_JSET, k, then) }

func (f *filter) branch(test uint16, k uint32, then func()) {
	at := len(*f)
	f.add(unix.BPF_JMP|test|unix.BPF_K, k, 0, 0)
	then()
	(*f)[at].Jf = uint8(len(*f) - at - 1) // blocks are far shorter than 255
}

// refuseEach refuses each of these numbers, and goes on after it otherwise. Of a list
// that is one jump a number, where when takes two instructions.
func (f *filter) refuseEach(numbers []uint32, errno unix.Errno) {
	for i, nr := range numbers {
		f.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, nr, uint8(len(numbers)-i), 0) // to the refusal
	}
	f.add(unix.BPF_JMP|unix.BPF_JA, 1, 0, 0)
	f.refuse(errno)
}

// program is the filter of a policy.
func (p policy) program() filter {
	var f filter
	f.load(atArch)
	f.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, auditArch, 1, 0)
	f.refuse(unix.ENOSYS)
	f.load(atNumber)
	if otherABI != 0 {
		f.add(unix.BPF_JMP|unix.BPF_JGE|unix.BPF_K, otherABI, 0, 1)
		f.refuse(unix.ENOSYS)
	}
	f.refuseEach(missing[:], unix.ENOSYS)
	f.refuseEach(slices.Concat(refused[:], refusedHere[:]), unix.EPERM)
	for nr, flags := range map[uint32]uint32{unix.SYS_CLONE: newNamespaces, unix.SYS_UNSHARE: newNamespaces | unix.CLONE_NEWTIME} {
		f.when(nr, func() { f.argument(0); f.whenSet(flags, func() { f.refuse(unix.EPERM) }); f.allow() })
	}
	f.when(unix.SYS_SOCKET, func() { p.sockets(&f) })
	if p.CloseUnix {
		// A pair of datagram sockets can still be pointed at any other.
		f.when(unix.SYS_SOCKETPAIR, func() { f.argument(1); f.kind(); f.when(unix.SOCK_DGRAM, func() { f.refuse(unix.EACCES) }); f.allow() })
	}
	if p.Gateway {
		// Landlock refuses to bind; listening without it binds to a port of the
		// kernel's choice, and whoever finds that one could fetch what the agent has.
		f.when(unix.SYS_LISTEN, func() { f.refuse(unix.EACCES) })
		for nr, flags := range map[uint32]uint32{unix.SYS_SENDTO: 3, unix.SYS_SENDMSG: 2, unix.SYS_SENDMMSG: 3} {
			f.when(nr, func() { f.argument(flags); f.whenSet(msgFastOpen, func() { f.refuse(unix.EOPNOTSUPP) }); f.allow() })
		}
	}
	f.allow()
	return f
}

// kind leaves of a socket's type what is not a flag.
func (f *filter) kind() { f.add(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, 0xf, 0, 0) }

// sockets is what becomes of socket(2).
func (p policy) sockets(f *filter) {
	f.argument(0)
	f.when(unix.AF_UNIX, func() {
		if p.CloseUnix {
			f.refuse(unix.EACCES)
		} else {
			f.allow()
		}
	})
	f.when(unix.AF_NETLINK, f.allow) // resolvers list addresses with it
	for _, family := range []uint32{unix.AF_INET, unix.AF_INET6} {
		f.when(family, func() {
			if p.Gateway {
				// Landlock knows plain TCP only: not multipath TCP, nor UDP.
				f.argument(1)
				f.kind()
				f.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, unix.SOCK_STREAM, 1, 0)
				f.refuse(unix.EACCES)
				f.argument(2)
				f.when(0, f.allow)
				f.when(unix.IPPROTO_TCP, f.allow)
				f.refuse(unix.EPROTONOSUPPORT)
				return
			}
			f.allow()
		})
	}
	f.refuse(unix.EAFNOSUPPORT)
}

// install puts a filter on the calling thread. no_new_privs must be set.
func (f filter) install() error {
	prog := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(f)
	if errno != 0 {
		return errno
	}
	return nil
}
