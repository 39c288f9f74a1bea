package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A program that reaches nothing may still listen on loopback and connect to itself there. It
// gets a separate network if the machine allows that. Otherwise, as in most containers, the
// helper stays as its parent and makes its TCP sockets: bound to the loopback device, which the
// program can't undo without CAP_NET_RAW, and dropping what other sockets send: those don't set
// as many hops, and the filter of system calls keeps the bound. So the machine's own servers on
// loopback stay out of reach. The answer that a port is closed is dropped, too: connecting to it times out.

// answerFD is where a helper hands the requests for its sockets to its parent.
const answerFD = 3

// separateNetwork makes a network with nothing but loopback. False: the machine allows none.
func separateNetwork() (bool, error) {
	if unix.Unshare(unix.CLONE_NEWNET) != nil {
		return false, nil
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false, err
	}
	defer func() { _ = unix.Close(fd) }()
	device, err := unix.NewIfreq("lo")
	if err != nil {
		return false, err
	}
	device.SetUint16(unix.IFF_UP)
	return true, unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, device)
}

// runAnswered runs this helper again, which then becomes the program, makes the sockets that
// the program asks for, and ends as it does.
func (p policy) runAnswered(args, environ []string) error {
	p.Asks = true
	env, err := p.helperEnviron(environ)
	if err != nil {
		return err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	theirs := os.NewFile(uintptr(pair[1]), "answers")
	signal.Notify(make(chan os.Signal, 1), unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT) // the program gets them, too
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: args, Env: env, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, ExtraFiles: []*os.File{theirs}}
	if err := errors.Join(cmd.Start(), theirs.Close()); err != nil {
		return err
	}
	go p.answerSockets(pair[0])
	_ = cmd.Wait() // its state says how it ended
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		signal.Reset()
		_ = unix.Kill(os.Getpid(), status.Signal())
		os.Exit(128 + int(status.Signal()))
	}
	os.Exit(cmd.ProcessState.ExitCode())
	return nil
}

// handOver gives the requests of a filter to this process's parent.
func handOver(requests int) error {
	return errors.Join(unix.Sendmsg(answerFD, []byte{0}, unix.UnixRights(requests), nil, 0), unix.Close(requests))
}

// The structures of linux/seccomp.h.
type (
	socketRequest struct {
		id         uint64
		pid, flags uint32
		number     int32
		arch       uint32
		at         uint64
		args       [6]uint64
	}
	socketRefusal struct {
		id    uint64
		value int64
		errno int32
		flags uint32
	}
	socketFile struct {
		id                         uint64
		flags, from, to, fileFlags uint32
	}
)

// answerSockets makes the sockets that are asked for, until no process is left that can ask. From a request
// it takes only numbers, which the kernel has copied.
func (p policy) answerSockets(from int) {
	runtime.LockOSThread()
	if p.UID > 0 {
		_, _ = unix.SetfsuidRetUid(p.UID) // whose sockets they are
	}
	requests, err := receiveFile(from)
	if err != nil {
		return // the program asks for nothing
	}
	control := func(request uintptr, argument unsafe.Pointer) unix.Errno {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(requests), request, uintptr(argument))
		return errno
	}
	for {
		var r socketRequest
		switch errno := control(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&r)); errno {
		case 0:
		case unix.EINTR, unix.ENOENT: // who asked has been killed
			continue
		default:
			return
		}
		fd, err := makeOwnSocket(int(r.args[0]), int(r.args[1])&unix.SOCK_NONBLOCK)
		if err == nil {
			file := socketFile{id: r.id, flags: unix.SECCOMP_ADDFD_FLAG_SEND, from: uint32(fd), fileFlags: uint32(r.args[1]) & unix.SOCK_CLOEXEC}
			if errno := control(unix.SECCOMP_IOCTL_NOTIF_ADDFD, unsafe.Pointer(&file)); errno != 0 {
				err = errno
			}
			_ = unix.Close(fd)
		}
		if err != nil {
			refusal := socketRefusal{id: r.id, errno: -int32(unix.EACCES)}
			if errno, ok := errors.AsType[unix.Errno](err); ok {
				refusal.errno = -int32(errno)
			}
			control(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&refusal))
		}
	}
}

// receiveFile takes an open file from a socket.
func receiveFile(from int) (int, error) {
	control := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(from, make([]byte, 1), control, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return -1, err
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil || len(messages) == 0 {
		return -1, errors.Join(err, unix.EBADMSG)
	}
	files, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(files) == 0 {
		return -1, errors.Join(err, unix.EBADMSG)
	}
	return files[0], nil
}

const (
	// ownHops is how many hops a packet of such a socket has left, and least how many others must
	// have that it takes. Systems begin with 64 or 128.
	ownHops = 255
	// connectTries bounds how long a connection to elsewhere is waited for: some seconds.
	connectTries = 1
)

// makeOwnSocket makes a TCP socket that exchanges data with such sockets of this machine alone.
func makeOwnSocket(family, flags int) (fd int, err error) {
	fd, err = unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|flags, 0)
	if err != nil {
		return -1, err
	}
	options := [][3]int{{unix.IPPROTO_IP, unix.IP_TTL, ownHops}, {unix.IPPROTO_IP, unix.IP_MINTTL, ownHops}, {unix.IPPROTO_TCP, unix.TCP_SYNCNT, connectTries}}
	if family == unix.AF_INET6 {
		options = append(options, [3]int{unix.IPPROTO_IPV6, unix.IPV6_UNICAST_HOPS, ownHops}, [3]int{unix.IPPROTO_IPV6, unix.IPV6_MINHOPCOUNT, ownHops})
	}
	err = unix.BindToDevice(fd, "lo")
	for _, o := range options {
		err = errors.Join(err, unix.SetsockoptInt(fd, o[0], o[1], o[2]))
	}
	if err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}
