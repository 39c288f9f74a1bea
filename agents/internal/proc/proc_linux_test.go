package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// alive lists the processes whose command line holds a word.
func alive(t *testing.T, word string) []int {
	t.Helper()
	ps, err := listProcesses()
	if err != nil {
		t.Fatal(err)
	}
	var out []int
	for _, p := range ps {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/cmdline")
		if err == nil && strings.Contains(string(b), word) {
			out = append(out, p.pid)
		}
	}
	return out
}

// A fork storm is outrun, whether it stays in its group or leaves its session
// with every step.
func TestRunOutrunsForkStorms(t *testing.T) { bothWays(t, testRunOutrunsForkStorms) }

func testRunOutrunsForkStorms(t *testing.T, r *Runner) {
	for _, role := range []string{"storm", "sessions"} {
		t.Run(role, func(t *testing.T) {
			// Not by a timeout: on a busy machine it would be over before the storm
			// has begun.
			out := newLines()
			ctx, cancel := context.WithCancelCause(t.Context())
			raging := errors.New("the storm rages")
			go func() {
				out.pid(t, "ready")
				cancel(raging)
			}()
			s := spec(t, role, out)
			s.Grace = 50 * time.Millisecond
			word := s.Argv[1]
			res, err := r.Run(ctx, s)
			if err != nil || !errors.Is(res.Stopped, raging) || res.Left == 0 {
				t.Errorf("Run = %+v, %v", res, err)
			}
			t.Logf("%d processes", res.Left)
			if left := alive(t, word); len(left) > 0 {
				t.Errorf("processes %v are still there", left)
			}
			if ps := orphans(t); len(ps) > 0 {
				t.Errorf("orphans %v were left to us", ps)
			}
		})
	}
}

// orphans are our children in other sessions.
func orphans(t *testing.T) []process {
	t.Helper()
	ps, err := listProcesses()
	if err != nil {
		t.Fatal(err)
	}
	own, err := ownSession()
	if err != nil {
		t.Fatal(err)
	}
	var out []process
	for _, p := range ps {
		if p.ppid == os.Getpid() && p.session != own {
			out = append(out, p)
		}
	}
	return out
}

// reapOrphans collects them as an init would, once they have ended.
func reapOrphans(t *testing.T) {
	t.Helper()
	for ps := orphans(t); len(ps) > 0; ps = orphans(t) {
		for _, p := range ps {
			reapOrphan(p.pid)
		}
	}
}

// An agent that is killed while it runs a command leaves nothing of the command:
// what it started is found through us, its reaper.
func TestRunEndsWhatAKilledChildWasRunning(t *testing.T) {
	bothWays(t, testRunEndsWhatAKilledChildWasRunning)
}

func testRunEndsWhatAKilledChildWasRunning(t *testing.T, r *Runner) {
	out := newLines()
	ctx, cancel := context.WithCancel(t.Context())
	started := make(chan int, 1)
	s := spec(t, "parent", out)
	s.Started = func(pid int) { started <- pid }
	inner := make(chan int, 1)
	go func() {
		inner <- out.pid(t, "pid")
		if err := syscall.Kill(<-started, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}()
	res, err := r.Run(ctx, s)
	cancel()
	if err != nil || res.Signal != syscall.SIGKILL {
		t.Errorf("Run = %+v, %v", res, err)
	}
	gone(t, <-inner)
	if ps := orphans(t); len(ps) > 0 {
		t.Errorf("orphans %v were left to us", ps)
	}
}

// The program dies with us, so that nobody works on in a workspace whose job was
// killed.
func TestProgramDiesWithItsParent(t *testing.T) {
	s := spec(t, "parent", nil)
	cmd := exec.Command(s.Argv[0], s.Argv[1:]...)
	cmd.Env = s.Env
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var inner int
	if _, err := fmt.Fscanf(out, "pid %d\n", &inner); err != nil {
		t.Fatal(err)
	}
	// Its own children don't die with it: they are in its group.
	defer func() {
		_ = syscall.Kill(-inner, syscall.SIGKILL)
		reapOrphans(t)
	}()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed: an error for certain
	// A process that outlives its parent is there for an hour.
	for !errors.Is(syscall.Kill(inner, 0), syscall.ESRCH) {
		reapOrphan(inner) // it is ours as an orphan: reap it as an init would
		time.Sleep(time.Millisecond)
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("12 (a) b) S 1 2 3 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 99 0"))
	f.Add([]byte("1 ("))
	f.Add([]byte(") ( 1"))
	f.Add([]byte("2 (a) S 1 2 3 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 96666666666666666666")) // no 64 bits
	f.Fuzz(func(t *testing.T, b []byte) {
		p, ok := parseStat(b)
		if !ok && p != (process{}) {
			t.Errorf("a refused line gave a process: %+v", p)
		}
	})
}

func TestParseStat(t *testing.T) {
	p, ok := parseStat([]byte("12 (a) (\nb) S 1 2 3 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 99 0\n"))
	if want := (process{pid: 12, ppid: 1, pgrp: 2, session: 3, start: 99}); !ok || p != want {
		t.Errorf("parseStat = %+v, %v; want %+v", p, ok, want)
	}
}

// A child finds nothing in its parent's /proc entry, which itself works on.
func TestConceal(t *testing.T) {
	secret := strings.Join([]string{"planted", "secret"}, "-")
	var out bytes.Buffer
	s := spec(t, "conceal", &out)
	s.Env = append(s.Env, "PLANTED="+secret)
	s.Merge = true
	if _, err := NewRunner("").Run(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	if !strings.Contains(text, "still "+secret) || !strings.Contains(text, "open ") || strings.Contains(text, "failed") {
		t.Fatalf("the concealed process: %s", text)
	}
	_, shown, _ := strings.Cut(text, "still "+secret)
	if strings.Contains(shown, secret) || strings.Contains(shown, roleEnv) {
		t.Errorf("the child found %q", shown)
	}
}

// The sweep knows what we started ourselves by its session: nothing else in this
// module may start a process in a session of its own.
func TestNobodyElseUsesSessions(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	seen := 0
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(p, ".go") {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil || strings.HasPrefix(rel, "agents/internal/proc/") || rel == "agents/mock/mock.go" || rel == "agents/sandbox/attempts_linux_test.go" || rel == "agents/acp/main_test.go" ||
			rel == "cmd/uwf/acceptance/processes/lab_test.go" || rel == "cmd/uwf/acceptance/commands/run_linux_test.go" || rel == "cmd/uwf/acceptance/commands/firstrun_linux_test.go" {
			return err
		}
		b, err := os.ReadFile(p)
		seen++
		if bytes.Contains(b, []byte("Setsid")) {
			t.Errorf("%s starts processes in their own session; run them through package proc", rel)
		}
		return err
	})
	if err != nil || seen < 10 {
		t.Errorf("looked at %d files: %v", seen, err)
	}
}
