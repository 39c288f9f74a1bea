package proc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// hiders is a shell script that starts what is hard to find again: a child, one of a
// session of its own, one whose parents are gone, and one of those that is deaf and
// without environment, files and folder. It stays as well. All sleep for the time that
// it is given, and say before "pid NUMBER", the script itself "self NUMBER".
const hiders = `hide='echo "pid $$"; exec sleep "$0"'
sh -c "$hide" "$1" &
setsid sh -c "$hide" "$1" &
setsid sh -c 'setsid sh -c "$0" "$1" & exit' "$hide" "$1" &
setsid sh -c 'trap "" HUP TERM; setsid sh -c "$0" "$1" & exit' 'cd /; echo "pid $$"; exec env -i sleep "$0" 0<&- 1>&- 2>&-' "$1" &
echo "self $$"
exec sleep "$1"
`

// sleepers are how the hiders are run, and the time by which they are known.
func sleepers(t *testing.T) (s Spec, word string) {
	t.Helper()
	word = fmt.Sprintf("3600.%09d%d", rand.N(1_000_000_000), os.Getpid())
	return Spec{Argv: []string{"/bin/sh", "-c", hiders, "hiders", word}, Dir: t.TempDir(), Env: []string{"PATH=" + os.Getenv("PATH")}}, word
}

// parent is a process that runs a program, and what they print.
func parent(t *testing.T, s Spec) (cmd *exec.Cmd, printed *lines) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	printed = newLines()
	cmd = exec.Command(self, s.Argv...)
	cmd.Env = append(s.Env, roleEnv+"=watching parent", quickExit)
	cmd.Stdout = printed
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for <-printed.ch != "parent" {
	}
	return cmd, printed
}

// hidden are the process ids that the hiders print; the last is the script's own.
func (l *lines) hidden(t *testing.T) []int {
	t.Helper()
	var out []int
	self := 0
	for len(out) < 4 || self == 0 {
		word, number, _ := strings.Cut(<-l.ch, " ")
		pid, err := strconv.Atoi(number)
		switch {
		case err != nil:
		case word == "pid":
			out = append(out, pid)
		case word == "self":
			self = pid
		}
	}
	return append(out, self)
}

// waitEnd waits until a process has ended, by its descriptor: for ever, and a test
// that hangs shows which it is.
func waitEnd(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if errors.Is(err, unix.ESRCH) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
			if n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
				break
			}
		}
		_ = unix.Close(fd)
	}
}

func parentOf(t *testing.T, pid int) int {
	t.Helper()
	ps, err := listProcesses()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(ps, func(p process) bool { return p.pid == pid })
	if i < 0 {
		t.Fatalf("there is no process %d", pid)
	}
	return ps[i].ppid
}

// Whoever is killed outright takes all with him: the program, what left its session,
// what lost its parents and what closed all files; and the watcher ends after them.
func TestTreeDiesWithItsParent(t *testing.T) {
	s, word := sleepers(t)
	cmd, printed := parent(t, s)
	pids := printed.hidden(t)
	watcher := parentOf(t, pids[4])
	if parentOf(t, watcher) != cmd.Process.Pid {
		t.Errorf("%d is watched by %d, which isn't our %d's", pids[4], watcher, cmd.Process.Pid)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	waitEnd(t, append(pids, watcher)...)
	_ = cmd.Wait() // also for the end of the output, which nobody holds any more
	if left := alive(t, word); len(left) > 0 {
		t.Errorf("processes %v are still there", left)
	}
	reapOrphans(t)
}

// Nothing is left either where the parent is killed while all this is being started.
func TestTreeDiesWithItsParentAtOnce(t *testing.T) {
	for i := range 10 {
		s, word := sleepers(t)
		cmd, _ := parent(t, s)
		// Each time a little later, by what has happened and not by the clock.
		for range i {
			alive(t, word)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		for pids := alive(t, word); len(pids) > 0; pids = alive(t, word) {
			waitEnd(t, pids...)
		}
		reapOrphans(t)
	}
}

// A storm that leaves its session with every step ends with the parent, too.
func TestStormDiesWithItsParent(t *testing.T) {
	s := spec(t, "sessions", nil)
	s.Argv = []string{"/bin/sh", "-c", `echo 'trap "" TERM; setsid /bin/sh "$0" "$0" & sleep 0.01' > "$0"
		for i in 1 2 3 4; do setsid /bin/sh "$0" "$0" & done; echo "ready $$"; exec sleep 3600`, s.Argv[1]}
	cmd, printed := parent(t, s)
	printed.pid(t, "ready")
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	for pids := alive(t, s.Argv[3]); len(pids) > 0; pids = alive(t, s.Argv[3]) {
		waitEnd(t, pids...)
	}
	reapOrphans(t)
}

// A watcher that is killed takes the program with it, and its parent ends the rest.
func TestWatcherIsKilled(t *testing.T) {
	s, word := sleepers(t)
	printed := newLines()
	s.Stdout = printed
	done := make(chan Result, 1)
	go func() {
		res, err := watched(t).Run(t.Context(), s)
		if err != nil {
			t.Error(err)
		}
		done <- res
	}()
	if err := syscall.Kill(parentOf(t, printed.hidden(t)[4]), syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	if res := <-done; res.Signal != syscall.SIGKILL || res.Left == 0 {
		t.Errorf("Run = %+v", res)
	}
	if left := alive(t, word); len(left) > 0 {
		t.Errorf("processes %v are still there", left)
	}
	if ps := orphans(t); len(ps) > 0 {
		t.Errorf("orphans %v were left to us", ps)
	}
}

// A daemon that is nobody's by its mark ends with its run, while others run on.
func TestWatchedRunsAtOnce(t *testing.T) {
	r := watched(t)
	ctx, cancel := context.WithCancel(t.Context())
	long := newLines()
	done := make(chan Result, 1)
	go func() {
		res, err := r.Run(ctx, spec(t, "polite", long))
		if err != nil {
			t.Error(err)
		}
		done <- res
	}()
	long.pid(t, "ready")
	out := newLines()
	res, err := r.Run(t.Context(), spec(t, "daemon", out)) // its environment is wiped
	if err != nil || res.Left == 0 {
		t.Errorf("Run = %+v, %v", res, err)
	}
	gone(t, out.pid(t, "daemon"))
	cancel()
	if res := <-done; res.Code != 0 || res.Signal != 0 {
		t.Errorf("the other run was hurt: %+v", res)
	}
}

// A program can't tell whether it is watched: its signals, limits, files, folder and
// environment are the same.
func TestWatchedProgramIsTheSame(t *testing.T) {
	script := `grep -E '^(Sig[BICP]|Shd|Cap|NoNewPrivs|Seccomp|Umask|Uid|Gid|Groups)' /proc/self/status; cat /proc/self/limits; ls /proc/self/fd; readlink /proc/self/fd/0
		env | sed 's/^` + MarkName + `=.*/marked/' | sort; pwd; nice; test "$(ps -o sid= -p $$)" -eq $$ && echo session; test "$(ps -o pgid= -p $$)" -eq $$ && echo group; printf '%s' "$X$0" | od -An -tx1; echo err >&2`
	said := map[bool]string{}
	dir := t.TempDir()
	signal.Ignore(syscall.SIGHUP) // as nohup does
	defer signal.Reset(syscall.SIGHUP)
	for _, watching := range []bool{false, true} {
		r := NewRunner("")
		if watching {
			r = watched(t)
		}
		var out strings.Builder
		res, err := r.Run(t.Context(), Spec{Argv: []string{"/bin/sh", "-c", script, "\xfe\n"}, Dir: dir, Env: []string{"PATH=" + os.Getenv("PATH"), "A=b", "A=c", "X=\xff\"\xc3"}, Stdout: &out, Merge: true})
		if err != nil || res.Code != 0 || !strings.Contains(out.String(), "session\ngroup\n ff 22 c3 fe 0a\nerr\n") {
			t.Fatalf("Run = %+v, %v: %s", res, err, out.String())
		}
		said[watching] = out.String()
	}
	if said[false] != said[true] {
		t.Errorf("watched:\n%s\nalone:\n%s", said[true], said[false])
	}
}

// A watcher holds neither the program's output nor its folder, knows nothing of its
// environment, and lets signals be that are meant for the program.
func TestWatcherKeepsOut(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT TESTED: only root can look into a watcher")
	}
	out := newLines()
	ctx, cancel := context.WithCancel(t.Context())
	s := spec(t, "sleep", out)
	s.Env = append(s.Env, "PLANTED=secret")
	started := make(chan int, 1)
	s.Started = func(pid int) { started <- pid }
	done := make(chan Result, 1)
	go func() {
		res, err := watched(t).Run(ctx, s)
		if err != nil {
			t.Error(err)
		}
		done <- res
	}()
	out.pid(t, "ready")
	pid := <-started
	watcher := "/proc/" + strconv.Itoa(parentOf(t, pid))
	// It lets go after it has said that the program runs.
	for link := ""; link != "/"; {
		var err error
		if link, err = os.Readlink(watcher + "/cwd"); err != nil {
			t.Fatal(err)
		}
	}
	for fd := range 3 {
		if link, err := os.Readlink(fmt.Sprintf("%s/fd/%d", watcher, fd)); err != nil || link != os.DevNull {
			t.Errorf("file %d is %s, %v", fd, link, err)
		}
	}
	if env, err := os.ReadFile(watcher + "/environ"); err != nil || strings.Contains(string(env), "PLANTED") || strings.Contains(string(env), "PATH=") {
		t.Errorf("its environment is %q, %v", env, err)
	}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT} {
		if err := syscall.Kill(parentOf(t, pid), sig); err != nil {
			t.Error(err)
		}
	}
	cancel()
	if res := <-done; res.Signal != syscall.SIGTERM {
		t.Errorf("Run = %+v", res)
	}
}

// What a program is told through its watcher is bounded by nothing but the kernel.
func TestWatchedProgramWithLargeEnvironment(t *testing.T) {
	var env []string
	for i := range 10 {
		env = append(env, fmt.Sprintf("V%d=%s", i, strings.Repeat("x", 100_000)))
	}
	var out strings.Builder
	res, err := watched(t).Run(t.Context(), Spec{Argv: []string{"/bin/sh", "-c", `echo ${#V9} "$1"`, "sh", strings.Repeat("y", 100_000)}, Dir: t.TempDir(), Env: env, Stdout: &out})
	if err != nil || res.Code != 0 || out.String() != "100000 "+strings.Repeat("y", 100_000)+"\n" {
		t.Errorf("Run = %+v, %v: %.20s", res, err, out.String())
	}
}

// People who call it, and orders that are none, get no watcher.
func TestWatchRefuses(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, orders := range map[string]string{"none": "", "garbage": "x\n", "half a line": `{"argv":["/bin/echo"`, "nothing to run": "{}\n"} {
		cmd := exec.Command(self, WatchName)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
		if name != "none" {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.WriteString(orders); err != nil {
				t.Fatal(err)
			}
			_ = w.Close()
			defer func() { _ = r.Close() }()
			cmd.ExtraFiles = []*os.File{r, r}
		}
		out, err := cmd.CombinedOutput()
		if err == nil || cmd.ProcessState.ExitCode() != 126 || !strings.Contains(string(out), "only uwf itself calls this") {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
	for _, args := range [][]string{{"uwf"}, {"uwf", "run", WatchName}, {"uwf", WatchName, "x"}} {
		if _, ours := Watch(args); ours {
			t.Errorf("it takes %q", args)
		}
	}
}

// A watcher that can't be started, or is something else, runs no program.
func TestWatcherThatIsNone(t *testing.T) {
	for watch, want := range map[string]string{"/no/such/watcher": "its watcher /no/such/watcher", "/bin/true": "its watcher ended", "/bin/cat": "its watcher ended"} {
		var out strings.Builder
		_, err := NewRunner("", watch).Run(t.Context(), Spec{Argv: []string{"/bin/echo", "ran"}, Env: []string{}, Stdout: &out})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "starting /bin/echo") || strings.HasPrefix(out.String(), "ran") {
			t.Errorf("%s: %v, printed %q", watch, err, out.String())
		}
	}
	if n := len(programs.active); n != 0 {
		t.Errorf("%d programs count as active", n)
	}
}

// BenchmarkRun is what a watcher adds to a program's run.
func BenchmarkRun(b *testing.B) {
	for name, r := range map[string]*Runner{"alone": NewRunner(""), "watched": watched(b)} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if res, err := r.Run(b.Context(), Spec{Argv: []string{"/bin/true"}, Dir: "/", Env: []string{}}); err != nil || res.Code != 0 {
					b.Fatalf("Run = %+v, %v", res, err)
				}
			}
		})
	}
}
