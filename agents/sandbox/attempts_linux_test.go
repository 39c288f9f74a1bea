package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/agents/internal/proc"
	"github.com/united-workforce/uwf/agents/tools"
)

// attempts are what an agent might try, as the test binary does it when it is
// called as `<binary> attempt <name> <argument>…`. An attempt that gets what it is
// after returns nil, both inside and outside of a sandbox.
func attempts() map[string]func(args []string) error {
	return map[string]func([]string) error{
		"read":         func(a []string) error { return readSecret(a[0]) },
		"append":       func(a []string) error { return appendTo(a[0]) },
		"create":       func(a []string) error { return os.WriteFile(a[0], nil, 0o600) },
		"list":         func(a []string) error { _, err := os.ReadDir(a[0]); return err },
		"truncate":     func(a []string) error { return os.Truncate(a[0], 1) },
		"remove":       func(a []string) error { return os.Remove(a[0]) },
		"chmod":        func(a []string) error { return os.Chmod(a[0], 0o777) },
		"symlink":      throughSymlink,
		"hard link in": hardLinkIn,
		"hard link":    func(a []string) error { return os.Link(a[0], a[1]) },
		"rename":       func(a []string) error { return os.Rename(a[0], a[1]) },
		"open":         func(a []string) error { return openFor(a[0], os.O_RDONLY) },
		"open write":   func(a []string) error { return openFor(a[0], os.O_WRONLY) },
		"device":       func(a []string) error { return unix.Mknod(a[0], unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))) },
		"process":      func(a []string) error { return inProcess(process(a[0]), a[1]) },
		"ptrace":       func(a []string) error { runtime.LockOSThread(); return unix.PtraceSeize(process(a[0])) },
		"vm read":      func(a []string) error { return readMemory(process(a[0]), a[1]) },
		"signal":       func(a []string) error { return syscall.Kill(process(a[0]), 0) },
		"follow":       func([]string) error { return bindToParent(os.Getppid() + 1) },
		"dial":         func(a []string) error { return dial(a[0], a[1]) },
		"udp":          func(a []string) error { return askByUDP(a[0]) },
		"rebind":       func(a []string) error { return rebind(a[0]) },
		"reconnect":    func(a []string) error { return reconnect(a[0]) },
		"loopback":     func([]string) error { return useLoopback() },
		"serve":        func(a []string) error { return serveOnce(a[0]) },
		"mptcp":        func(a []string) error { return multipath(a[0]) },
		"listen":       func([]string) error { return listenUnbound() },
		"fast open":    func(a []string) error { return fastOpen(a[0]) },
		"datagram":     func(a []string) error { return datagram(a[0]) },
		"vsock":        func([]string) error { return family(unix.AF_VSOCK) },
		"setuid":       func(a []string) error { return run(a[0], "attempt", "am root") },
		"am root":      amRoot,
		"regain root":  func([]string) error { return syscall.Setuid(0) },
		"io_uring":     func([]string) error { return ioUring() },
		"keyring":      func([]string) error { _, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, true); return err },
		"mount":        func(a []string) error { return namespaces(a[0], a[1]) },
		"bind":         func(a []string) error { return unix.Mount(a[0], a[1], "", unix.MS_BIND, "") },
		"storm":        func(a []string) error { return storm(a[0]) },
		"daemon":       func(a []string) error { return daemon(a[0], a[1], 2) },
		"daemon 1":     func(a []string) error { return daemon(a[0], a[1], 1) },
		"daemon 0":     func(a []string) error { return haunt(a[0], a[1]) },
		"run_command":  func(a []string) error { return runCommand(a[0], a[1]) },
		"read open":    func(a []string) error { return readOpen(a[0]) },
		"conceal":      func([]string) error { return proc.Conceal() },
		"nothing":      func([]string) error { return nil },
		"suid file":    func(a []string) error { return suidFile(a[0]) },
		"calls":        makeCalls,
		"foreign":      func(a []string) error { return runForeign(a[0]) },
		"own child":    reachOwnChild,
		"contained":    becomeContained,
	}
}

// secret is what the files outside hold.
const secret = "planted" + "-secret"

var errNoSecret = errors.New("the secret isn't in it")

func readSecret(path string) error {
	b, err := os.ReadFile(path)
	if err == nil && !strings.Contains(string(b), secret) {
		err = fmt.Errorf("%s: %w", path, errNoSecret)
	}
	return err
}

func appendTo(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("x=y\n")
	return errors.Join(err, f.Close())
}

func openFor(path string, flag int) error {
	f, err := os.OpenFile(path, flag|unix.O_NONBLOCK, 0)
	if err == nil {
		err = f.Close()
	}
	return err
}

// throughSymlink reads args[0] through a link to it and through one to its folder.
func throughSymlink(a []string) error {
	link, folder := "link", "folder"
	if err := errors.Join(os.Symlink(a[0], link), os.Symlink(filepath.Dir(a[0]), folder)); err != nil {
		return err
	}
	defer func() { _, _ = os.Remove(link), os.Remove(folder) }()
	if readSecret(link) == nil {
		return nil
	}
	return readSecret(filepath.Join(folder, filepath.Base(a[0])))
}

func hardLinkIn(a []string) error {
	defer func() { _ = os.Remove("hard") }()
	if err := os.Link(a[0], "hard"); err != nil {
		return err
	}
	return readSecret("hard")
}

// process is a process by its number, or our parent by the word.
func process(word string) int {
	pid, err := strconv.Atoi(word)
	if err != nil {
		return os.Getppid()
	}
	return pid
}

// inProcess reads something of a process's folder in /proc.
func inProcess(pid int, name string) error {
	path := filepath.Join("/proc", strconv.Itoa(pid), name)
	switch name {
	case "environ":
		b, err := os.ReadFile(path)
		if err == nil && len(b) == 0 {
			err = errNoSecret
		}
		return err
	case "mem":
		return openFor(path, os.O_RDWR)
	case "fd":
		return openAny(path) // how many there are is no secret
	}
	_, err := os.ReadDir(path + "/.")
	return err
}

// readOpen reads a file that is open already.
func readOpen(number string) error {
	fd, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	b := make([]byte, len(secret))
	if _, err := unix.Pread(fd, b, 0); err != nil {
		return err
	}
	if string(b) != secret {
		return errNoSecret
	}
	return nil
}

// openAny opens one of the files that a process has open.
func openAny(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err = openFor(filepath.Join(dir, e.Name()), os.O_RDONLY); err == nil {
			return nil
		}
	}
	return err
}

// readMemory reads a process's memory at an address.
func readMemory(pid int, address string) error {
	at, err := strconv.ParseUint(address, 0, 64)
	if err != nil {
		return err
	}
	b := make([]byte, len(secret))
	local := []unix.Iovec{{Base: &b[0], Len: uint64(len(b))}}
	if _, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: uintptr(at), Len: len(b)}}, 0); err != nil {
		return err
	}
	if string(b) != secret {
		return errNoSecret
	}
	return nil
}

func dial(network, address string) error {
	c, err := net.DialTimeout(network, address, patience)
	if err != nil {
		return err
	}
	return errors.Join(err, c.Close())
}

func loopback(address string) (unix.Sockaddr, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(port)
	return &unix.SockaddrInet4{Port: n, Addr: [4]byte{127, 0, 0, 1}}, err
}

// multipath connects by multipath TCP, which Landlock doesn't take for TCP.
func multipath(address string) error {
	to, err := loopback(address)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP)
	if err != nil {
		return err
	}
	return errors.Join(unix.Connect(fd, to), unix.Close(fd))
}

// fastOpen connects by sending.
func fastOpen(address string) error {
	to, err := loopback(address)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	return errors.Join(unix.Sendto(fd, []byte("x"), msgFastOpen, to), unix.Close(fd))
}

// datagram points one of a pair of connected sockets at another one.
func datagram(path string) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	return unix.Connect(pair[0], &unix.SockaddrUnix{Name: path})
}

func family(f int) error {
	fd, err := unix.Socket(f, unix.SOCK_STREAM, 0)
	if err == nil {
		err = unix.Close(fd)
	}
	return err
}

func run(argv ...string) error {
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

func amRoot([]string) error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("the effective user is %d", os.Geteuid())
	}
	return nil
}

func ioUring() error {
	var params [120]byte
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params[0])), 0)
	if errno != 0 {
		return errno
	}
	return unix.Close(int(fd))
}

// namespaces mounts args[0] over args[1] in namespaces of its own.
func namespaces(from, to string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, "attempt", "bind", from, to)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// storm starts so many processes at once.
func storm(count string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	var started []*exec.Cmd
	defer func() {
		for _, c := range started {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
	}()
	for range n {
		c := exec.Command("/bin/sleep", "600")
		if err := c.Start(); err != nil {
			return fmt.Errorf("after %d: %w", len(started), err)
		}
		started = append(started, c)
	}
	return nil
}

// daemon cuts a process off: each generation starts the next in a session of its
// own and ends. It waits for the file that the last one writes.
func daemon(path, report string, generations int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c := exec.Command(self, "attempt", "daemon "+strconv.Itoa(generations-1), path, report)
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	c.Env = append(os.Environ(), proc.MarkName+"=forged") // as if it were of another run
	if err := c.Start(); err != nil || generations < 2 {
		return err
	}
	for {
		b, err := os.ReadFile(report)
		if err == nil {
			if _, what, _ := strings.Cut(string(b), " "); what != "" {
				return errors.New(what)
			}
			return nil
		}
		time.Sleep(time.Millisecond) // the test has a deadline
	}
}

// haunt says what it could read, and stays.
func haunt(path, report string) error {
	what := strconv.Itoa(os.Getpid()) + " "
	if err := readSecret(path); err != nil {
		what += err.Error()
	}
	if err := os.WriteFile(report+".new", []byte(what), 0o600); err != nil {
		return err
	}
	if err := os.Rename(report+".new", report); err != nil {
		return err
	}
	select {}
}

// runCommand reads a file as the builtin agent's run_command does.
func runCommand(dir, path string) error {
	s, err := tools.Open(tools.Options{Dir: dir, AllowShell: true, Environ: os.Environ()})
	if err != nil {
		return err
	}
	out, err := s.Call(context.Background(), "run_command", fmt.Sprintf(`{"command":"cat %s"}`, path))
	if err == nil && !strings.Contains(out, secret) {
		err = errors.New(out)
	}
	return errors.Join(err, s.Close())
}

func suidFile(path string) error {
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700); err != nil {
		return err
	}
	return os.Chmod(path, 0o777|os.ModeSetuid|os.ModeSetgid)
}

// attemptMany does several, and prints as JSON what each came to: empty where it
// got what it was after.
func attemptMany(list string) int {
	var all [][]string
	if err := json.Unmarshal([]byte(list), &all); err != nil {
		fmt.Println(err)
		return 2
	}
	results := make([]string, len(all))
	for i, args := range all {
		if err := attempts()[args[0]](args[1:]); err != nil {
			results[i] = err.Error()
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(results); err != nil {
		return 2
	}
	return 0
}

// attempt does one and exits.
func attempt(args []string) int {
	if args[0] == "many" {
		return attemptMany(args[1])
	}
	err := attempts()[args[0]](args[1:])
	if err == nil {
		fmt.Println("done")
		return 0
	}
	_, _ = io.WriteString(os.Stderr, err.Error()+"\n")
	return 1
}

// listenUnbound listens without having bound: the kernel chooses a port.
func listenUnbound() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return unix.Listen(fd, 1)
}
