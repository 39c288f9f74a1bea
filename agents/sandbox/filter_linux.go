package sandbox

import (
	"errors"
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

func (f *filter) addInstruction(code uint16, k uint32, jt, jf uint8) {
	*f = append(*f, unix.SockFilter{Code: code, Jt: jt, Jf: jf, K: k})
}

// loadWord takes a word of the call; argument loads the low half of an argument, which
// is all that the kernel takes of an int.
func (f *filter) loadWord(at uint32)    { f.addInstruction(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, at, 0, 0) }
func (f *filter) loadArgument(n uint32) { f.loadWord(atArgs + 8*n) }
func (f *filter) addAllow()             { f.addInstruction(unix.BPF_RET|unix.BPF_K, unix.SECCOMP_RET_ALLOW, 0, 0) }
func (f *filter) addQuestion() {
	f.addInstruction(unix.BPF_RET|unix.BPF_K, unix.SECCOMP_RET_USER_NOTIF, 0, 0)
}
func (f *filter) addRefusal(errno unix.Errno) {
	f.addInstruction(unix.BPF_RET|unix.BPF_K, unix.SECCOMP_RET_ERRNO|uint32(errno), 0, 0)
}

// addWhen runs what then adds if the word is k, and goes on after it otherwise.
func (f *filter) addWhen(k uint32, then func()) { f.addBranch(unix.BPF_JEQ, k, then) }

// whenSet is when for a word that has a bit of k.
func (f *filter) whenSet(k uint32, then func()) { f.addBranch(unix.BPF_JSET, k, then) }

func (f *filter) addBranch(test uint16, k uint32, then func()) {
	at := len(*f)
	f.addInstruction(unix.BPF_JMP|test|unix.BPF_K, k, 0, 0)
	then()
	(*f)[at].Jf = uint8(len(*f) - at - 1) // blocks are far shorter than 255
}

// refuseEach refuses each of these numbers, and goes on after it otherwise. Of a list
// that is one jump a number, where when takes two instructions.
func (f *filter) refuseEach(numbers []uint32, errno unix.Errno) {
	for i, nr := range numbers {
		f.addInstruction(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, nr, uint8(len(numbers)-i), 0) // to the refusal
	}
	f.addInstruction(unix.BPF_JMP|unix.BPF_JA, 1, 0, 0)
	f.addRefusal(errno)
}

// buildFilter is the filter of a policy.
func (p policy) buildFilter() filter {
	var f filter
	f.loadWord(atArch)
	f.addInstruction(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, auditArch, 1, 0)
	f.addRefusal(unix.ENOSYS)
	f.loadWord(atNumber)
	if otherABI != 0 {
		f.addInstruction(unix.BPF_JMP|unix.BPF_JGE|unix.BPF_K, otherABI, 0, 1)
		f.addRefusal(unix.ENOSYS)
	}
	f.refuseEach(missing[:], unix.ENOSYS)
	f.refuseEach(slices.Concat(refused[:], refusedHere[:]), unix.EPERM)
	for nr, flags := range map[uint32]uint32{unix.SYS_CLONE: newNamespaces, unix.SYS_UNSHARE: newNamespaces | unix.CLONE_NEWTIME} {
		f.addWhen(nr, func() { f.loadArgument(0); f.whenSet(flags, func() { f.addRefusal(unix.EPERM) }); f.addAllow() })
	}
	f.addWhen(unix.SYS_SOCKET, func() { p.filterSockets(&f) })
	if p.CloseUnix {
		// A pair of datagram sockets can still be pointed at any other.
		f.addWhen(unix.SYS_SOCKETPAIR, func() {
			f.loadArgument(1)
			f.maskSocketType()
			f.addWhen(unix.SOCK_DGRAM, func() { f.addRefusal(unix.EACCES) })
			f.addAllow()
		})
	}
	if p.Gateway && !p.Asks {
		// Landlock refuses to bind; listening without it binds to a port of the
		// kernel's choice, and whoever finds that one could fetch what the agent has.
		f.addWhen(unix.SYS_LISTEN, func() { f.addRefusal(unix.EACCES) })
	}
	if p.Gateway {
		for nr, flags := range map[uint32]uint32{unix.SYS_SENDTO: 3, unix.SYS_SENDMSG: 2, unix.SYS_SENDMMSG: 3} {
			f.addWhen(nr, func() {
				f.loadArgument(flags)
				f.whenSet(msgFastOpen, func() { f.addRefusal(unix.EOPNOTSUPP) })
				f.addAllow()
			})
		}
	}
	if p.Asks {
		f.addWhen(unix.SYS_SETSOCKOPT, func() {
			f.loadArgument(1)
			for level, option := range map[uint32]uint32{unix.IPPROTO_IP: unix.IP_MINTTL, unix.IPPROTO_IPV6: unix.IPV6_MINHOPCOUNT} {
				f.addWhen(level, func() { f.loadArgument(2); f.addWhen(option, func() { f.addRefusal(unix.EPERM) }); f.addAllow() })
			}
			f.addAllow()
		})
	}
	f.addAllow()
	return f
}

// maskSocketType leaves of a socket's type what is not a flag.
func (f *filter) maskSocketType() { f.addInstruction(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, 0xf, 0, 0) }

// filterSockets is what becomes of socket(2).
func (p policy) filterSockets(f *filter) {
	f.loadArgument(0)
	f.addWhen(unix.AF_UNIX, func() {
		if p.CloseUnix {
			f.addRefusal(unix.EACCES)
		} else {
			f.addAllow()
		}
	})
	f.addWhen(unix.AF_NETLINK, f.addAllow) // resolvers list addresses with it
	for _, family := range []uint32{unix.AF_INET, unix.AF_INET6} {
		f.addWhen(family, func() {
			if p.Gateway {
				// Landlock knows plain TCP only: not multipath TCP, nor UDP.
				f.loadArgument(1)
				f.maskSocketType()
				f.addInstruction(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, unix.SOCK_STREAM, 1, 0)
				f.addRefusal(unix.EACCES)
				f.loadArgument(2)
				allow := f.addAllow
				if p.Asks {
					allow = f.addQuestion
				}
				f.addWhen(0, allow)
				f.addWhen(unix.IPPROTO_TCP, allow)
				f.addRefusal(unix.EPROTONOSUPPORT)
				return
			}
			f.addAllow()
		})
	}
	f.addRefusal(unix.EAFNOSUPPORT)
}

// installFilter puts a filter on the calling thread. no_new_privs must be set. With asks it
// returns the file by which the questions of addQuestion come.
func (f filter) installFilter(asks bool) (questions int, err error) {
	prog := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	flags := uintptr(0)
	if asks {
		flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(f)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

// filterCalls filters this thread's system calls, and hands over its questions. If an enclosing
// sandbox answers such questions already, the kernel allows no second one, and p.Asks is taken back.
func (p *policy) filterCalls() error {
	if !p.Filter {
		return nil
	}
	questions, err := p.buildFilter().installFilter(p.Asks)
	switch {
	case p.Asks && (errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EINVAL)):
		p.Asks = false
		return p.filterCalls()
	case p.Asks && err == nil:
		return handOver(questions)
	}
	return err
}
