package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/internal/testmode"
)

// call is a system call that does nothing even where it is allowed: what it is given
// makes no sense.
type call struct {
	name string
	nr   uintptr
	args [6]uintptr
	want unix.Errno // what a filter says to it
}

const (
	bad  = ^uintptr(0)           // no pointer, descriptor, flag or command
	lone = unix.CLONE_THREAD     // alone it can't be: EINVAL
	both = unix.CLONE_FS | 1<<63 // nor can unshare this: EINVAL
)

func calls() []call {
	one := func(name string, nr uintptr, args ...uintptr) call {
		c := call{name: name, nr: nr, want: unix.EPERM}
		copy(c.args[:], args)
		return c
	}
	out := []call{
		one("setns", unix.SYS_SETNS, bad),
		one("mount", unix.SYS_MOUNT, bad, bad, bad, 0, bad),
		one("umount2", unix.SYS_UMOUNT2, bad, bad),
		one("pivot_root", unix.SYS_PIVOT_ROOT, bad, bad),
		one("chroot", unix.SYS_CHROOT, bad),
		one("fsopen", unix.SYS_FSOPEN, bad, bad),
		one("fsconfig", unix.SYS_FSCONFIG, bad, bad, bad, bad, bad),
		one("fsmount", unix.SYS_FSMOUNT, bad, bad, bad),
		one("fspick", unix.SYS_FSPICK, bad, bad, bad),
		one("move_mount", unix.SYS_MOVE_MOUNT, bad, bad, bad, bad, bad),
		one("open_tree", unix.SYS_OPEN_TREE, bad, bad, bad),
		one("open_tree_attr", unix.SYS_OPEN_TREE_ATTR, bad, bad, bad, bad, bad),
		one("mount_setattr", unix.SYS_MOUNT_SETATTR, bad, bad, bad, bad, bad),
		one("bpf", unix.SYS_BPF, bad, bad, 8),
		one("perf_event_open", unix.SYS_PERF_EVENT_OPEN, bad, 0, bad, bad, bad),
		one("userfaultfd", unix.SYS_USERFAULTFD, bad),
		one("ptrace", unix.SYS_PTRACE, bad, bad),
		one("process_vm_readv", unix.SYS_PROCESS_VM_READV, bad, bad, 1, bad, 1, bad),
		one("process_vm_writev", unix.SYS_PROCESS_VM_WRITEV, bad, bad, 1, bad, 1, bad),
		one("kcmp", unix.SYS_KCMP, bad, bad, bad),
		one("pidfd_getfd", unix.SYS_PIDFD_GETFD, bad, bad, bad),
		one("init_module", unix.SYS_INIT_MODULE, bad, 8, bad),
		one("finit_module", unix.SYS_FINIT_MODULE, bad, bad, bad),
		one("delete_module", unix.SYS_DELETE_MODULE, bad, bad),
		one("kexec_load", unix.SYS_KEXEC_LOAD, bad, bad, bad, bad),
		one("kexec_file_load", unix.SYS_KEXEC_FILE_LOAD, bad, bad, bad, bad, bad),
		one("open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT, bad, bad, 0),
		one("fanotify_init", unix.SYS_FANOTIFY_INIT, bad, bad),
		one("acct", unix.SYS_ACCT, bad),
		one("quotactl", unix.SYS_QUOTACTL, bad, bad, bad, bad),
		one("quotactl_fd", unix.SYS_QUOTACTL_FD, bad, bad, bad, bad),
		one("swapon", unix.SYS_SWAPON, bad, bad),
		one("swapoff", unix.SYS_SWAPOFF, bad),
		one("reboot", unix.SYS_REBOOT, bad, bad, bad, bad),
		one("settimeofday", unix.SYS_SETTIMEOFDAY, bad, bad),
		one("clock_settime", unix.SYS_CLOCK_SETTIME, bad, bad),
		one("sethostname", unix.SYS_SETHOSTNAME, bad, bad),
		one("setdomainname", unix.SYS_SETDOMAINNAME, bad, bad),
		one("syslog", unix.SYS_SYSLOG, bad, bad, bad),
		one("keyctl", unix.SYS_KEYCTL, bad, bad),
		one("add_key", unix.SYS_ADD_KEY, bad, bad, bad, 8, bad),
		one("request_key", unix.SYS_REQUEST_KEY, bad, bad, bad, bad),
	}
	for _, flag := range []struct {
		name string
		bit  uintptr
	}{
		{"NEWNS", unix.CLONE_NEWNS}, {"NEWCGROUP", unix.CLONE_NEWCGROUP}, {"NEWUTS", unix.CLONE_NEWUTS}, {"NEWIPC", unix.CLONE_NEWIPC},
		{"NEWUSER", unix.CLONE_NEWUSER}, {"NEWPID", unix.CLONE_NEWPID}, {"NEWNET", unix.CLONE_NEWNET},
	} {
		out = append(out, one("clone "+flag.name, unix.SYS_CLONE, flag.bit|lone), one("unshare "+flag.name, unix.SYS_UNSHARE, flag.bit|both))
	}
	out = append(out, one("unshare NEWTIME", unix.SYS_UNSHARE, unix.CLONE_NEWTIME|both))
	// What a filter leaves to the kernel: other flags of the same calls.
	plain := []call{one("clone", unix.SYS_CLONE, lone), one("unshare", unix.SYS_UNSHARE, both)}
	// The C library tries these first, and takes what is older where there are none.
	missing := []call{
		one("clone3", unix.SYS_CLONE3, bad, 8), one("io_uring_setup", unix.SYS_IO_URING_SETUP, bad, bad),
		one("io_uring_enter", unix.SYS_IO_URING_ENTER, bad), one("io_uring_register", unix.SYS_IO_URING_REGISTER, bad),
	}
	if runtime.GOARCH == "amd64" {
		out = append(out, one("iopl", 172, bad), one("ioperm", 173, bad, bad, bad))
		missing = append(missing, one("getpid of x32", otherABI|unix.SYS_GETPID))
	}
	for i := range plain {
		plain[i].want = unix.EINVAL
	}
	for i := range missing {
		missing[i].want = unix.ENOSYS
	}
	return append(append(out, plain...), missing...)
}

// makeCalls makes them all, and prints as JSON what the kernel said to each.
func makeCalls([]string) error {
	runtime.LockOSThread()
	said := map[string]int{}
	for _, c := range calls() {
		_, _, errno := unix.RawSyscall6(c.nr, c.args[0], c.args[1], c.args[2], c.args[3], c.args[4], c.args[5])
		said[c.name] = int(errno)
	}
	return json.NewEncoder(os.Stdout).Encode(said)
}

// answers are what the kernel said to a process that made the calls.
func answers(t *testing.T, cmd *exec.Cmd) map[string]int {
	t.Helper()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return decodeAnswers(t, string(out))
}

func decodeAnswers(t *testing.T, text string) map[string]int {
	t.Helper()
	said := map[string]int{}
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&said); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return said
}

// The filter alone refuses each of these calls, also to a process that has all
// capabilities; without it the kernel looks at what it was given. In a whole sandbox
// the answers are the same.
func TestFilterRefusesCalls(t *testing.T) {
	if !Probe().Seccomp {
		t.Skip("NOT TESTED: system calls can't be filtered here")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := newPlace(t)
	free := answers(t, exec.Command(self, "attempt", "calls"))
	alone := exec.Command(self, helperName, self, "attempt", "calls")
	alone.Env, err = policy{UID: keep, GID: keep, Filter: true}.helperEnviron([]string{quickExit})
	p.must(err)
	filtered := answers(t, alone)
	confined := decodeAnswers(t, p.confined("calls").text)
	for _, c := range calls() {
		t.Run(c.name, func(t *testing.T) {
			if got := unix.Errno(filtered[c.name]); got != c.want {
				t.Errorf("the filter says %v (%d), want %v", got, got, c.want)
			}
			if got := unix.Errno(confined[c.name]); got != c.want {
				t.Errorf("in a sandbox it is %v (%d), want %v", got, got, c.want)
			}
			if got := unix.Errno(free[c.name]); got == c.want && c.want != unix.EINVAL {
				t.Logf("without a filter it is %v too, so this shows nothing", got)
			}
		})
	}
}

// foreign is a program of 32-bit x86 that ends with code 42: it is the smallest ELF
// file that does. Where its system calls are not taken it dies of the instruction
// after them.
func foreign() []byte {
	const base = 0x0804_8000
	code := []byte{
		0xb8, 1, 0, 0, 0, // mov eax, 1 (exit)
		0xbb, 42, 0, 0, 0, // mov ebx, 42
		0xcd, 0x80, // int 0x80
		0x0f, 0x0b, // ud2
	}
	le := func(v uint32, n int) []byte {
		out := make([]byte, n)
		for i := range out {
			out[i] = byte(v >> (8 * i))
		}
		return out
	}
	size := uint32(52 + 32 + len(code))
	out := []byte("\x7fELF\x01\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	for _, f := range [][]byte{
		le(2, 2), le(3, 2), le(1, 4), le(base+84, 4), le(52, 4), le(0, 4), le(0, 4), le(52, 2), le(32, 2), le(1, 2), le(0, 2), le(0, 2), le(0, 2),
		le(1, 4), le(0, 4), le(base, 4), le(base, 4), le(size, 4), le(size, 4), le(5, 4), le(4096, 4),
		code,
	} {
		out = append(out, f...)
	}
	return out
}

// runForeign runs a program of another architecture.
func runForeign(path string) error {
	if err := os.WriteFile(path, foreign(), 0o700); err != nil {
		return err
	}
	err := exec.Command(path).Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 42 {
		return nil
	}
	return fmt.Errorf("it ended with %w", err)
}

// What people have their agents work with does not miss these calls.
func TestToolsWork(t *testing.T) {
	required(t)
	golang := `printf 'package main\nfunc main() { done := make(chan int); go func() { done <- 1 }(); println(<-done) }\n' >main.go
		`
	if testmode.HasProcesses() { // which compiles Go's own packages, too
		golang += "printf 'module m\n' >go.mod; GOFLAGS=-buildvcs=false GOPROXY=off CGO_ENABLED=0 go build -o m . && ./m"
	} else {
		golang += "go tool compile -p main -o main.o main.go && echo 1"
	}
	for _, tt := range []struct{ program, script, want string }{
		{"go", golang, "1"},
		{"git", `git init -q a && cd a && git -c user.name=n -c user.email=n@example.com commit -q --allow-empty -m m && git clone -q . ../b && git -C ../b log --format=%s`, "m"},
		{"node", `node -e 'const {Worker}=require("worker_threads"); const {execFileSync}=require("child_process");
			new Worker("require(\"worker_threads\").parentPort.postMessage(2)",{eval:true}).on("message",n=>console.log(n+execFileSync("echo",["x"])))'`, "2x"},
		{"npm", `mkdir p && cd p && npm init -y >/dev/null && npm pack --silent --offline`, "p-1.0.0.tgz"},
		{"python3", `python3 -c 'import os, subprocess, threading
t = threading.Thread(target=lambda: print(5)); t.start(); t.join()
if os.fork() == 0: os._exit(6)
print(os.waitstatus_to_exitcode(os.wait()[1]), subprocess.check_output(["echo", "x"]).decode().strip())'`, "6 x"},
		{"gcc", `printf 'int main(void) { return 7; }\n' >x.c && gcc -o x x.c && { ./x; echo $?; }`, "7"},
		{"java", `printf 'class X { public static void main(String[] a) throws Exception { Thread t = new Thread(() -> System.out.println(4)); t.start(); t.join(); } }' >X.java && java X.java`, "4"},
	} {
		t.Run(tt.program, func(t *testing.T) {
			path := "/usr/bin/" + tt.program
			if _, err := os.Stat(path); err != nil {
				path, err = exec.LookPath(tt.program)
				if err != nil || isWithin(resolvePath(path), resolvePath(os.Getenv("HOME"))) {
					t.Skipf("NOT TESTED: %s isn't where every user finds it", tt.program)
				}
			}
			p := newPlace(t)
			p.options.Environ = append(p.options.Environ, "PATH="+filepath.Dir(path)+":/usr/bin:/bin")
			if got := p.program("/bin/sh", "-c", "exec 2>&1\n"+tt.script); got.code != 0 || !strings.HasSuffix(got.text, tt.want) {
				t.Errorf("ended with %d: %s", got.code, got.text)
			}
		})
	}
}

// A process that is alive can still be asked for what every user may ask: signals,
// its end, its descriptor.
func TestOwnProcessesAreReached(t *testing.T) {
	required(t)
	if got := newPlace(t).confined("own child"); got.code != 0 {
		t.Error(got.text)
	}
}

// reachOwnChild starts a child by the calls that runtimes use, and ends it.
func reachOwnChild([]string) error {
	var fd int
	child := exec.Command("/bin/sleep", "600")
	child.SysProcAttr = &syscall.SysProcAttr{PidFD: &fd, Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := child.Start(); err != nil {
		return err
	}
	err := unix.PidfdSendSignal(fd, unix.SIGTERM, nil, 0)
	if err != nil {
		err = errors.Join(fmt.Errorf("signal by descriptor %d: %w", fd, err), child.Process.Kill())
	}
	_ = child.Wait()
	if !child.ProcessState.Sys().(syscall.WaitStatus).Signaled() {
		err = errors.Join(err, errors.New("it was not signalled"))
	}
	return err
}
