package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// escape is something that an agent must not be able to do.
type escape struct {
	name string
	args func(p *place) []string
	// lone: it needs root to prepare, or a user of its own to be refused.
	lone bool
	// control is how the same is done freely. Nil: as this process's user.
	control func(p *place, args []string) outcome
	// fickle: a machine may refuse it to everybody.
	fickle bool
}

func words(w ...string) func(*place) []string {
	return func(p *place) []string {
		out := make([]string, len(w))
		for i, s := range w {
			out[i] = strings.NewReplacer("{dir}", p.dir, "{out}", p.outside, "{ws}", p.workspace, "{uwf}", strconv.Itoa(os.Getpid())).Replace(s)
		}
		return out
	}
}

// inMemory is something of this process's memory.
var inMemory = []byte(secret)

func escapes() []escape {
	all := []escape{
		{name: "reading the user's home", args: words("read", "{out}/secret.txt")},
		{name: "listing a folder outside", args: words("list", "{out}")},
		{name: "writing a file outside", args: words("append", "{out}/victim.txt")},
		{name: "making a file outside", args: words("create", "{out}/new")},
		{name: "emptying a file outside", args: words("truncate", "{out}/victim.txt")},
		{name: "removing a file outside", args: words("remove", "{out}/removed")},
		{name: "a symlink in the workspace", args: words("symlink", "{out}/secret.txt")},
		{name: "..", args: words("read", "../outside/secret.txt")},
		{name: "/proc/self/root", args: words("read", "/proc/self/root{out}/secret.txt")},
		{name: "/proc/self/cwd", args: words("read", "/proc/self/cwd/../outside/secret.txt")},
		{name: "a hard link into the workspace", args: words("hard link in", "{out}/secret.txt")},
		{name: "a hard link out of the workspace", args: words("hard link", "{ws}/own.txt", "{out}/linked")},
		{name: "moving a file out of the workspace", args: words("rename", "{ws}/moved.txt", "{out}/moved.txt")},
		{name: "moving a file over one outside", args: words("rename", "{ws}/moved-2.txt", "{out}/replaced")},
		{name: "a file in /tmp", args: func(p *place) []string { return []string{"create", p.dir + "-tmp"} }},
		{name: "somebody's shared memory", args: openShm},
		{name: "a FIFO outside", args: fifo},
		{name: "a device outside", args: deviceOutside, lone: true},
		{name: "making a device", args: words("device", "{ws}/device"), lone: true},
		{name: "settings of the kernel", args: words("open write", "/proc/sys/kernel/core_pattern"), lone: true},
		{name: "the event file", args: jobFile("read", "GITHUB_EVENT_PATH")},
		{name: "RUNNER_TEMP", args: jobFile("read", "RUNNER_TEMP/token")},
		{name: "listing RUNNER_TEMP", args: jobFile("list", "RUNNER_TEMP")},
		{name: "a file left open by uwf's parent", args: leakedFile},
		{name: "a daemon's reading", args: words("daemon", "{out}/secret.txt", "{ws}/report")},
		{name: "a daemon of run_command", args: words("run_command", "{ws}", "{out}/secret.txt")},
		{name: "a setuid program", args: setuidProgram, lone: true, control: asNobody},
		{name: "becoming root again", args: words("regain root"), lone: true},
		{name: "changing the mode of a file outside", args: words("chmod", "{out}/victim.txt"), lone: true},
		{name: "a namespace with other mounts", args: words("mount", "{out}", "{ws}"), fickle: true},
		{name: "signals to uwf", args: words("signal", "{uwf}")},
		{name: "signals to its watcher", args: words("signal", "parent")},
		{name: "ptrace of uwf", args: words("ptrace", "{uwf}"), fickle: true},
		{name: "reading uwf's memory", args: func(*place) []string {
			return []string{"vm read", strconv.Itoa(os.Getpid()), fmt.Sprint(uintptr(unsafe.Pointer(&inMemory[0])))}
		}, fickle: true},
		{name: "the container engine's socket", args: engineSocket},
		{name: "a datagram socket", args: datagramSocket},
		{name: "an abstract unix socket", args: abstractSocket},
		{name: "the kernel's keyrings", args: words("keyring"), fickle: true},
		{name: "io_uring", args: words("io_uring"), fickle: true},
		{name: "a program of another architecture", args: words("foreign", "{ws}/foreign"), fickle: true},
		{name: "sockets of other families", args: words("vsock"), fickle: true},
	}
	for _, name := range []string{"GITHUB_ENV", "GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_STATE", "GITHUB_STEP_SUMMARY"} {
		all = append(all, escape{name: "writing " + name, args: jobFile("append", name)},
			escape{name: "reading " + name, args: jobFile("read", name)})
	}
	for _, name := range []string{"environ", "mem", "fd", "root", "cwd"} {
		all = append(all, escape{name: "uwf's /proc/…/" + name, args: words("process", "{uwf}", name)},
			escape{name: "its watcher's /proc/…/" + name, args: words("process", "parent", name)})
	}
	return all
}

// networkEscapes are what network: gateway closes.
func networkEscapes() []escape {
	return []escape{
		{name: "another port", args: anotherPort("dial", "tcp")},
		{name: "another port by IPv6", args: func(p *place) []string {
			return []string{"dial", "tcp", fmt.Sprintf("[::ffff:127.0.0.1]:%d", portOf(p.listen("tcp4", "127.0.0.1:0")))}
		}},
		{name: "multipath TCP", args: anotherPort("mptcp"), fickle: true},
		{name: "connecting by sending", args: anotherPort("fast open"), fickle: true},
		{name: "another port by one's own address", args: ownAddress, fickle: true},
		{name: "another port by IPv6 alone", args: func(p *place) []string {
			l, err := net.Listen("tcp6", "[::1]:0")
			if err != nil {
				return []string{"dial", "tcp", "[::1]:9"}
			}
			p.Cleanup(func() { _ = l.Close() })
			return []string{"dial", "tcp", l.Addr().String()}
		}, fickle: true},
		{name: "another port by a socket without bounds", args: anotherPort("rebind")},
		{name: "another port by a socket of another connection", args: anotherPort("reconnect")},
		{name: "UDP", args: func(p *place) []string { return []string{"udp", answerUDP(p)} }},
		{name: "a unix socket that everybody may use", args: func(p *place) []string {
			l := p.listen("unix", p.path("outside/open.sock"))
			p.must(os.Chmod(l.Addr().String(), 0o666))
			return []string{"dial", "unix", l.Addr().String()}
		}},
	}
}

// ownAddress is a port of this machine at an address that is not loopback's.
func ownAddress(p *place) []string {
	addresses, _ := net.InterfaceAddrs()
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && n.IP.To4() != nil {
			return []string{"dial", "tcp", p.listen("tcp4", net.JoinHostPort(n.IP.String(), "0")).Addr().String()}
		}
	}
	return []string{"dial", "tcp", "192.0.2.1:9"}
}

func anotherPort(w ...string) func(*place) []string {
	return func(p *place) []string { return append(w, p.listen("tcp4", "127.0.0.1:0").Addr().String()) }
}

func fifo(p *place) []string {
	path := p.path("outside/fifo")
	p.must(unix.Mkfifo(path, 0o666))
	p.must(os.Chmod(path, 0o666))
	r, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	p.must(err)
	p.Cleanup(func() { _ = r.Close() })
	return []string{"open write", path}
}

// openShm is a file in /dev/shm that everybody may use.
func openShm(p *place) []string {
	path := filepath.Join(shmFolder, filepath.Base(p.dir))
	p.must(os.WriteFile(path, []byte(secret), 0o600))
	p.must(os.Chmod(path, 0o666))
	p.Cleanup(func() { _ = os.Remove(path) })
	return []string{"read", path}
}

func deviceOutside(p *place) []string {
	path := p.path("outside/zero")
	p.must(unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))))
	p.must(os.Chmod(path, 0o666))
	return []string{"open", path}
}

// jobFile is a file of the runner, named by a variable, and as open as it gets.
func jobFile(attempt, name string) func(*place) []string {
	return func(p *place) []string {
		variable, below, folder := strings.Cut(name, "/")
		path := p.path("job-" + variable)
		if folder || attempt == "list" {
			p.must(os.MkdirAll(path, 0o755))
			p.must(os.Chmod(path, 0o777))
			p.options.Environ = append(p.options.Environ, variable+"="+path)
			if below != "" {
				return []string{attempt, p.write("job-"+variable+"/"+below, secret)}
			}
			return []string{attempt, path}
		}
		p.options.Environ = append(p.options.Environ, variable+"="+path)
		return []string{attempt, p.write("job-"+variable, secret)}
	}
}

// leakedFile is open in this process, and not closed by exec.
func leakedFile(p *place) []string {
	fd, err := unix.Open(p.path("outside/secret.txt"), unix.O_RDONLY, 0)
	p.must(err)
	p.Cleanup(func() { _ = unix.Close(fd) })
	return []string{"read open", strconv.Itoa(fd)}
}

func setuidProgram(p *place) []string {
	path := p.path("outside/setuid")
	p.must(copyProgram(p.self, path))
	p.must(os.Chmod(path, 0o755|os.ModeSetuid))
	p.files = append(p.files, path)
	return []string{"setuid", path}
}

func asNobody(p *place, args []string) outcome { return p.freeAs(65534, args...) }

// engineSocket is a socket as the container engine's: for root and its group, or
// for this process's user.
func engineSocket(p *place) []string {
	l := p.listen("unix", p.path("outside/docker.sock"))
	p.must(os.Chmod(l.Addr().String(), 0o660))
	return []string{"dial", "unix", l.Addr().String()}
}

func datagramSocket(p *place) []string {
	path := p.path("outside/log.sock")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	p.must(err)
	p.Cleanup(func() { _ = c.Close() })
	p.must(os.Chmod(path, 0o600))
	return []string{"datagram", path}
}

func abstractSocket(p *place) []string {
	name := "@" + filepath.Base(p.dir)
	p.listen("unix", name)
	return []string{"dial", "unix", name}
}

// tryAll does escapes with and without a sandbox.
func tryAll(p *place, all []escape) {
	p.Helper()
	for _, name := range []string{"workspace/moved.txt", "workspace/moved-2.txt", "outside/removed", "outside/replaced"} {
		p.write(name, "x")
	}
	lists := make([][]string, len(all))
	var confined, free [][]string
	for i, e := range all {
		if e.lone && !p.report.Root {
			continue
		}
		lists[i] = e.args(p)
		confined = append(confined, lists[i])
		if e.control == nil {
			free = append(free, lists[i])
		}
	}
	got, _ := p.many(p.confined, confined)
	for name, text := range map[string]string{
		"outside/secret.txt": secret, "outside/victim.txt": secret, "outside/removed": "x", "outside/replaced": "x",
	} {
		if b, err := os.ReadFile(p.path(name)); err != nil || string(b) != text {
			p.Errorf("%s is %q, %v", name, b, err)
		}
	}
	_ = os.Remove(p.path("workspace/report"))
	control, _ := p.many(p.free, free)
	tidy(p, free)
	for i, e := range all {
		p.Run(e.name, func(t *testing.T) {
			if lists[i] == nil {
				t.Skip("NOT TESTED: it takes root to prepare, or another user to refuse")
			}
			refused := got[0]
			got = got[1:]
			if refused == "" {
				t.Errorf("an agent could do it: %q", lists[i])
			}
			t.Logf("confined: %s", refused)
			e.compare(t, p, lists[i], &control)
		})
	}
}

// compare checks that the same works where nobody is confined.
func (e escape) compare(t *testing.T, p *place, args []string, control *[]string) {
	t.Helper()
	var failed string
	if e.control != nil {
		if free := e.control(p, args); free.code != 0 {
			failed = free.text
		}
	} else {
		failed, *control = (*control)[0], (*control)[1:]
	}
	switch {
	case failed == "":
	case e.fickle:
		t.Logf("nobody can do this here, so this shows nothing: %s", failed)
	default:
		t.Errorf("without a sandbox it fails too, so this shows nothing: %s", failed)
	}
}

// tidy removes what free attempts left outside of the place.
func tidy(p *place, all [][]string) {
	for _, args := range all {
		if args[0] == "create" {
			_ = os.Remove(args[1])
		}
	}
	var pid int
	b, _ := os.ReadFile(p.path("workspace/report"))
	if _, err := fmt.Sscan(string(b), &pid); err == nil && pid > 1 {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// required says loudly why nothing is shown where require can't hold.
func required(t *testing.T) {
	t.Helper()
	if gaps := Probe().Gaps(GatewayOnly); len(gaps) > 0 {
		t.Skipf("NOT TESTED: this machine can't enforce everything: %s", strings.Join(gaps, "; "))
	}
}

// With require no escape works; each does without a sandbox.
func TestEscapes(t *testing.T) {
	required(t)
	tryAll(newPlace(t), escapes())
}

// With network: gateway an agent reaches the gateway's port, and no other.
func TestNetworkEscapes(t *testing.T) {
	required(t)
	p := newPlace(t)
	p.options.Network = GatewayOnly
	l := p.listen("tcp4", "127.0.0.1:0")
	p.ports = []uint16{portOf(l)}
	tryAll(p, append(networkEscapes(), escape{name: "listening on a port that the kernel chooses", args: words("listen")}))
	if got := p.confined("dial", "tcp", l.Addr().String()); got.code != 0 {
		t.Errorf("the gateway can't be reached: %s", got.text)
	}
}

// A container engine that listens to everybody doesn't listen to agents.
func TestOpenEngineSocket(t *testing.T) {
	required(t)
	p := newPlace(t)
	args := engineSocket(p)
	p.must(os.Chmod(args[2], 0o666))
	p.options.Environ = append(p.options.Environ, "DOCKER_HOST=unix://"+args[2])
	if got := p.confined(args...); got.code != 1 {
		t.Errorf("an agent reached it: %+v", got)
	}
	if free := p.free(args...); free.code != 0 {
		t.Errorf("nobody reaches it: %s", free.text)
	}
}

// The same holds for a user that isn't root, by Landlock and the filter alone.
func TestEscapesOfAnOrdinaryUser(t *testing.T) {
	required(t)
	if os.Geteuid() != 0 {
		t.Skip("TestEscapes is that here")
	}
	p := newPlace(t)
	binary := p.path("tests")
	p.must(copyProgram(p.self, binary))
	const nobody = 65534
	cmd := exec.Command(binary, "-test.run", "^(TestEscapes|TestNetworkEscapes|TestEscapesOfCommands|TestNetworkEscapesOfCommands|TestLoopback|TestServersAreReachedByNobody|TestAgentsWork|TestLimits|TestFilterRefusesCalls)$", "-test.v")
	cmd.Dir, cmd.Env = p.dir, []string{"PATH=/usr/bin:/bin", "HOME=" + p.outside, "TMPDIR=" + p.dir, quickExit}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), "no tests to run") || !strings.Contains(string(out), "--- PASS: TestEscapes/the_container_engine's_socket") {
		t.Errorf("as user %d: %v\n%s", nobody, err, out)
	}
}

// Root whose agents can't have a user of their own, since the workspace is closed to
// other users, takes root's capabilities away from them.
func TestEscapesOfRootWithoutCapabilities(t *testing.T) {
	required(t)
	if !Probe().Root {
		t.Skip("NOT TESTED: this is not root")
	}
	// What root can do in name alone; what else there is, TestEscapes shows.
	all := slices.DeleteFunc(escapes(), func(e escape) bool {
		return !regexp.MustCompile(`uwf|socket|device|kernel|home|event|TEMP|mounts|architecture`).MatchString(e.name)
	})
	p := newPlace(t)
	p.options.Mode = Auto
	p.must(os.Chmod(p.dir, 0o700))
	tryAll(p, all)
	got := p.program("/bin/sh", "-c", "grep -c 'Cap...:.0000000000000000$' /proc/self/status")
	if got.text != "5" || len(got.gaps) != 1 || !strings.Contains(got.gaps[0], "closed to other users") {
		t.Errorf("capabilities: %s, gaps %v", got.text, got.gaps)
	}
	p.options.Mode = Require
	var refused *RefusedError
	if _, err := p.enter("/bin/true"); !errors.As(err, &refused) || !strings.Contains(err.Error(), "chmod o+x "+p.dir) {
		t.Errorf("require went on: %v", err)
	}
}
