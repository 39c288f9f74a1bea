package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// roleEnv makes the test binary one of the programs below.
const roleEnv = "PROC_TEST_ROLE"

// quickExit takes the second away that the race detector waits for at the end of
// each process.
const quickExit = "GORACE=atexit_sleep_ms=0"

func TestMain(m *testing.M) {
	if code, ours := Watch(os.Args); ours {
		os.Exit(code)
	}
	if role := os.Getenv(roleEnv); role != "" {
		play(role)
		return
	}
	goleak.VerifyTestMain(m)
}

// play is what the child programs do.
func play(role string) {
	switch role {
	case "echo":
		fmt.Println("out")
		fmt.Fprintln(os.Stderr, "err")
		_, err := io.Copy(os.Stdout, os.Stdin)
		if err != nil {
			os.Exit(9)
		}
	case "conceal":
		if err := Conceal(); err != nil {
			fmt.Println("failed", err)
		}
		fmt.Println("ready", os.Getpid())
		fmt.Println("still", os.Getenv("PLANTED"))
		// A child reads what its parent shows, and is itself as open as ever.
		spawn(&syscall.SysProcAttr{}, nil, "/bin/sh", "-c", `tr '\0' '\n' < /proc/$PPID/environ; echo "end $$"; cat /proc/$$/environ > /dev/null && echo open $$`)
	case "exit3":
		os.Exit(3)
	case "sleep":
		fmt.Println("ready", os.Getpid())
		time.Sleep(time.Hour)
	case "deaf":
		ignoreTerm()
		fmt.Println("ready", os.Getpid())
		time.Sleep(time.Hour)
	case "polite":
		ch := make(chan os.Signal, 1)
		notifyTerm(ch)
		fmt.Println("ready", os.Getpid())
		<-ch
		fmt.Println("goodbye")
	case "daemon":
		// In a session of its own, without environment, and its parent gone.
		spawn(&syscall.SysProcAttr{Setsid: true}, nil, "/bin/sh", "-c", "sleep 3600 & sleep 3600 & echo daemon $!")
	case "group":
		spawn(&syscall.SysProcAttr{Setpgid: true}, os.Environ(), "/bin/sh", "-c", "sleep 3600 & echo daemon $!")
	case "storm":
		// Many chains of processes that each start the next one and end, deaf to
		// SIGTERM. Their number stays the same: one that doubled would take the
		// machine away from everybody, the test included.
		spawn(nil, nil, "/bin/sh", "-c", `trap '' TERM; f() { sleep 0.02; f & }; for i in 1 2 3 4 5 6 7 8; do f & done; echo "ready $$"; sleep 0.2`)
		time.Sleep(time.Hour)
	case "sessions":
		// A chain of processes that each leave for a new session and end.
		spawn(nil, nil, "/bin/sh", "-c", `echo 'trap "" TERM; setsid /bin/sh "$0" "$0" & sleep 0.01' > "$0"; setsid /bin/sh "$0" "$0" & echo "ready $$"; sleep 0.2`, os.Args[1])
		time.Sleep(time.Hour)
	case "endless":
		b := bytes.Repeat([]byte("x"), 4096)
		for {
			if _, err := os.Stdout.Write(b); err != nil {
				time.Sleep(time.Hour)
			}
		}
	case "watching parent":
		beParent()
	case "parent": // runs a program itself, and is killed while doing so
		r := NewRunner(os.Getenv(MarkName))
		_, err := r.Run(context.Background(), Spec{Argv: []string{"/bin/sh", "-c", "echo pid $$; sleep 3600 & sleep 3600"}, Stdout: os.Stdout})
		fmt.Println(err)
	}
}

// beParent runs what its arguments say, watched, until it is killed.
func beParent() {
	self, err := os.Executable()
	if err == nil {
		_, err = fmt.Println("parent")
	}
	if err == nil {
		env := []string{"PATH=" + os.Getenv("PATH"), quickExit}
		_, err = NewRunner("", self, WatchName).Run(context.Background(), Spec{Argv: os.Args[1:], Dir: "/", Env: env, Stdout: os.Stdout})
	}
	fmt.Println(err)
}

func spawn(attr *syscall.SysProcAttr, env []string, name string, args ...string) {
	cmd := &exec.Cmd{Path: name, Args: append([]string{name}, args...), Env: env, SysProcAttr: attr, Stdout: os.Stdout}
	if env == nil {
		cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	}
	if err := cmd.Start(); err != nil {
		fmt.Println(err)
		os.Exit(8)
	}
	if attr != nil {
		_ = cmd.Wait()
	}
}

// bothWays runs a test with programs that nobody watches, and with watched ones: all
// is the same.
func bothWays(t *testing.T, test func(t *testing.T, r *Runner)) {
	t.Helper()
	t.Run("alone", func(t *testing.T) { test(t, NewRunner("")) })
	t.Run("watched", func(t *testing.T) { test(t, watched(t)) })
}

func watched(t testing.TB) *Runner {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return NewRunner("", self, WatchName)
}

// spec runs the test binary as one of the programs.
func spec(t *testing.T, role string, out io.Writer) Spec {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Spec{
		Argv: []string{self, t.TempDir() + "/loop.sh"}, Dir: t.TempDir(), Stdout: out,
		Env: []string{roleEnv + "=" + role, "PATH=" + os.Getenv("PATH"), quickExit},
	}
}

// lines collects output and hands out its lines while the program runs.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
	ch   chan string
}

func newLines() *lines { return &lines{ch: make(chan string, 1000)} }

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	for {
		line, err := l.text.ReadString('\n')
		if err != nil {
			l.text.WriteString(line)
			return len(p), nil
		}
		l.ch <- strings.TrimSpace(line)
	}
}

// pid waits for a line "<word> <pid>", for ever: how long a program takes to say it is
// the machine's affair, and a test that hangs shows where.
func (l *lines) pid(t *testing.T, word string) int {
	t.Helper()
	for {
		if rest, ok := strings.CutPrefix(<-l.ch, word+" "); ok {
			pid, err := strconv.Atoi(rest)
			if err != nil {
				t.Error(err)
			}
			return pid
		}
	}
}

func gone(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d is still there (%v)", pid, err)
	}
}

func TestRunReportsHowItEnded(t *testing.T) { bothWays(t, testRunReportsHowItEnded) }

func testRunReportsHowItEnded(t *testing.T, r *Runner) {
	tests := []struct {
		role string
		want Result
		out  string
	}{
		{"echo", Result{}, "out\n"},
		{"exit3", Result{Code: 3}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.role, func(t *testing.T) {
			var out, errs bytes.Buffer
			s := spec(t, tt.role, &out)
			s.Stderr = &errs
			got, err := r.Run(t.Context(), s)
			if got.CPU <= 0 {
				t.Error("it took no processor time")
			}
			got.CPU = 0
			if err != nil || got != tt.want {
				t.Errorf("Run = %+v, %v; want %+v", got, err, tt.want)
			}
			if out.String() != tt.out {
				t.Errorf("stdout %q, want %q", out.String(), tt.out)
			}
			if tt.role == "echo" && errs.String() != "err\n" {
				t.Errorf("stderr %q", errs.String())
			}
		})
	}
}

func TestRunGivesInput(t *testing.T) { bothWays(t, testRunGivesInput) }

func testRunGivesInput(t *testing.T, r *Runner) {
	in, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if _, err := in.WriteString("a message\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	s := spec(t, "echo", &out)
	s.Stdin = in
	if res, err := r.Run(t.Context(), s); err != nil || res.Code != 0 || out.String() != "out\na message\n" {
		t.Errorf("%+v %v %q", res, err, out.String())
	}
}

func TestRunMergesInOrder(t *testing.T) { bothWays(t, testRunMergesInOrder) }

func testRunMergesInOrder(t *testing.T, r *Runner) {
	var out bytes.Buffer
	s := spec(t, "echo", &out)
	s.Merge = true
	if _, err := r.Run(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if out.String() != "out\nerr\n" {
		t.Errorf("merged output %q", out.String())
	}
}

func TestRunThatCannotStart(t *testing.T) { bothWays(t, testRunThatCannotStart) }

func testRunThatCannotStart(t *testing.T, r *Runner) {
	_, err := r.Run(t.Context(), Spec{Argv: []string{"/no/such/program"}, Stdout: io.Discard})
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "/no/such/program") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	cancel(cause)
	res, err := r.Run(ctx, spec(t, "sleep", nil))
	if err != nil || !errors.Is(res.Stopped, cause) {
		t.Errorf("a run that was over before it began: %+v, %v", res, err)
	}
}

func TestRunTimeout(t *testing.T) { bothWays(t, testRunTimeout) }

func testRunTimeout(t *testing.T, r *Runner) {
	s := spec(t, "sleep", nil)
	s.Timeout, s.Grace = 300*time.Millisecond, time.Hour
	var pid int
	s.Started = func(p int) { pid = p }
	res, err := r.Run(t.Context(), s)
	if err != nil || !errors.Is(res.Stopped, ErrTimeout) {
		t.Errorf("Run = %+v, %v", res, err)
	}
	if pid == 0 {
		return // the time was up before the program was started
	}
	if res.Signal != syscall.SIGTERM {
		t.Errorf("ended by %v", res.Signal)
	}
	gone(t, pid)
}

func TestRunCancelledWhileDeaf(t *testing.T) { bothWays(t, testRunCancelledWhileDeaf) }

func testRunCancelledWhileDeaf(t *testing.T, r *Runner) {
	out := newLines()
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("claim lost")
	var pid int
	go func() {
		pid = out.pid(t, "ready")
		cancel(cause)
	}()
	s := spec(t, "deaf", out)
	s.Grace = 100 * time.Millisecond
	res, err := r.Run(ctx, s)
	if err != nil || !errors.Is(res.Stopped, cause) || res.Signal != syscall.SIGKILL {
		t.Errorf("Run = %+v, %v", res, err)
	}
	gone(t, pid)
}

func TestRunLetsThePoliteFinish(t *testing.T) { bothWays(t, testRunLetsThePoliteFinish) }

func testRunLetsThePoliteFinish(t *testing.T, r *Runner) {
	var all bytes.Buffer
	out := newLines()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		out.pid(t, "ready")
		cancel()
	}()
	s := spec(t, "polite", io.MultiWriter(out, &all))
	s.Grace = time.Hour
	res, err := r.Run(ctx, s)
	if err != nil || res.Code != 0 || !strings.Contains(all.String(), "goodbye") {
		t.Errorf("Run = %+v, %v, printed %q", res, err, all.String())
	}
}

func TestRunStopsWhenItsWriterFails(t *testing.T) { bothWays(t, testRunStopsWhenItsWriterFails) }

func testRunStopsWhenItsWriterFails(t *testing.T, r *Runner) {
	full := errors.New("full")
	res, err := r.Run(t.Context(), spec(t, "endless", writerFunc(func(p []byte) (int, error) { return 0, full })))
	if err != nil || !errors.Is(res.Stopped, full) {
		t.Errorf("Run = %+v, %v", res, err)
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// Whatever left the program's group is ended with it, too. Its hold on stdout is not
// waited for: it would be for an hour.
func TestRunLeavesNoDaemon(t *testing.T) { bothWays(t, testRunLeavesNoDaemon) }

func testRunLeavesNoDaemon(t *testing.T, r *Runner) {
	for _, role := range []string{"daemon", "group"} {
		t.Run(role, func(t *testing.T) {
			out := newLines()
			res, err := r.Run(t.Context(), spec(t, role, out))
			if err != nil || res.Stopped != nil || res.Code != 0 || res.Left == 0 {
				t.Errorf("Run = %+v, %v", res, err)
			}
			gone(t, out.pid(t, "daemon"))
		})
	}
}

// Two runs at once, one of them with a daemon: the other must not be touched.
func TestRunsAtOnceAreToldApart(t *testing.T) { bothWays(t, testRunsAtOnceAreToldApart) }

func testRunsAtOnceAreToldApart(t *testing.T, r *Runner) {
	ctx, cancel := context.WithCancel(t.Context())
	long := newLines()
	done := make(chan Result, 1)
	go func() {
		s := spec(t, "polite", long)
		s.Grace = time.Hour
		res, err := r.Run(ctx, s)
		if err != nil {
			t.Error(err)
		}
		done <- res
	}()
	long.pid(t, "ready")
	for range 3 {
		out := newLines()
		if _, err := r.Run(t.Context(), spec(t, "group", out)); err != nil {
			t.Fatal(err)
		}
		gone(t, out.pid(t, "daemon"))
	}
	cancel()
	if res := <-done; res.Code != 0 || res.Signal != 0 {
		t.Errorf("the other run was hurt: %+v", res)
	}
}

// A process that we started ourselves is nobody's orphan.
func TestSweepSparesOurOwnChildren(t *testing.T) { bothWays(t, testSweepSparesOurOwnChildren) }

func testSweepSparesOurOwnChildren(t *testing.T, r *Runner) {
	own := exec.Command("sleep", "3600")
	if err := own.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := own.Process.Kill(); err != nil {
			t.Errorf("our own child was killed: %v", err)
		}
		_ = own.Wait()
	}()
	out := newLines()
	if _, err := r.Run(t.Context(), spec(t, "daemon", out)); err != nil {
		t.Fatal(err)
	}
	if err := own.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("our own child was killed: %v", err)
	}
}
