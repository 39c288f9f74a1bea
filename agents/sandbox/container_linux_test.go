package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// dockerCapabilities are those that Docker leaves to root in a container.
var dockerCapabilities = []int{
	unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FSETID, unix.CAP_FOWNER, unix.CAP_MKNOD, unix.CAP_NET_RAW, unix.CAP_SETGID, unix.CAP_SETUID,
	unix.CAP_SETFCAP, unix.CAP_SETPCAP, unix.CAP_NET_BIND_SERVICE, unix.CAP_SYS_CHROOT, unix.CAP_KILL, unix.CAP_AUDIT_WRITE,
}

// becomeContained goes on as another program with the capabilities and, as far as it matters
// here, the system calls that Docker leaves to a container.
func becomeContained(argv []string) error {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	var data [2]unix.CapUserData
	for c := range 64 {
		if slices.Contains(dockerCapabilities, c) {
			data[c/32].Permitted |= 1 << (c % 32)
			data[c/32].Effective |= 1 << (c % 32)
		} else if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); err != nil && err != unix.EINVAL {
			return err
		}
	}
	var f filter
	f.loadWord(atNumber)
	f.refuseEach([]uint32{unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP, unix.SYS_BPF}, unix.EPERM)
	f.refuseEach([]uint32{unix.SYS_CLONE3}, unix.ENOSYS)
	f.addAllow()
	if _, err := f.installFilter(false); err != nil { // while CAP_SYS_ADMIN is still there
		return err
	}
	if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &data[0]); err != nil {
		return err
	}
	return syscall.Exec(argv[0], argv, os.Environ())
}

// contained runs tests of this package again as in a container, whatever it may do here.
func contained(t *testing.T, tests string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("NOT TESTED: this is not root")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "attempt", "contained", self, "-test.run", "^("+tests+")$", "-test.v")
	cmd.Env = append(os.Environ(), quickExit)
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), "no tests to run") {
		t.Errorf("%v\n%s", err, failedLines(out))
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "NOT TESTED") {
			t.Log(strings.TrimSpace(line))
		}
	}
}

// What holds on a machine holds in a container, where nobody makes namespaces.
func TestInAContainer(t *testing.T) {
	required(t)
	contained(t, "TestEscapes|TestNetworkEscapes|TestNetworkEscapesOfCommands|TestLoopback|TestServersAreReachedByNobody|TestPrivatePlaces")
}

// Pools of processes and the JVM find the places that they expect, and the user has a name.
// Nothing of it is there for the next run.
func TestPrivatePlaces(t *testing.T) {
	required(t)
	p := newPlace(t)
	if !p.report.Root {
		t.Skip("NOT TESTED: an ordinary user shares /dev/shm")
	}
	tools := map[string]string{
		"python3": `python3 -uc '
import multiprocessing as m, os, multiprocessing.shared_memory as s
m.Lock()
b = s.SharedMemory(name="left", create=True, size=8)
with m.Pool(2) as p: print(sum(p.map(abs, [-1, -2])))
os._exit(0)' 2>/dev/null`,
		"java": `cat > T.java <<'X'
class T { public static void main(String[] a) throws Exception {
  String t = System.getenv("TMPDIR"), h = System.getenv("HOME");
  if (!java.nio.file.Files.createTempDirectory("x").startsWith(t) || !System.getProperty("user.home").equals(h) || !System.getProperty("user.name").equals("uwf-agent")) throw new Exception();
  System.out.println(3); } }
X
java T.java 2>/dev/null`,
		"sh": `test "$(stat -c %a "$XDG_RUNTIME_DIR")" = 700 && touch "$XDG_RUNTIME_DIR/x" && echo 3`,
	}
	if canMount() {
		tools["id"] = `test "$(id -un)" = uwf-agent && echo 3`
	}
	for name, script := range tools {
		t.Run(name, func(t *testing.T) {
			if _, err := os.Stat(filepath.Join("/usr/bin", name)); err != nil {
				t.Skip("NOT TESTED: it is not installed")
			}
			_, before := listShm(p.report.UID)
			got := p.program("/bin/sh", "-c", script)
			if _, after := listShm(p.report.UID); got.code != 0 && !canMount() && (before || after) {
				t.Skip("NOT TESTED: somebody else uses /dev/shm here, and lets everybody in")
			}
			if got.code != 0 || got.text != "3" {
				t.Errorf("%+v", got)
			}
		})
	}
	if _, err := os.Lstat(shmFolder + "/left"); err == nil {
		t.Error("shared memory is left for the next run")
	}
}

// A workspace in /dev/shm, as TMPDIR may say, is not hidden.
func TestWorkspaceInSharedMemory(t *testing.T) {
	required(t)
	p := newPlace(t)
	dir, err := os.MkdirTemp(shmFolder, "uwf-sandbox-") //nolint:usetesting // it has to lie there
	p.must(err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	p.must(os.Chmod(dir, 0o755))
	p.workspace = filepath.Join(dir, "workspace")
	p.must(os.Mkdir(p.workspace, 0o755))
	if got := p.program("/bin/sh", "-c", `echo x > "$0/file" && cat "$0/file"`, p.workspace); got.code != 0 || got.text != "x" {
		t.Errorf("%+v", got)
	}
}

// failedLines are the lines of a test's output around its failures.
func failedLines(out []byte) string {
	var failed []string
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "--- FAIL") || strings.Contains(line, "_test.go:") && !strings.Contains(line, "confined: ") {
			failed = append(failed, line)
		}
	}
	return strings.Join(failed, "")
}
