package processes

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/united-workforce/uwf/agents/sandbox"
	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
	"github.com/united-workforce/uwf/internal/testmode"
)

// halfway is a script whose first try writes a file and comes to a gate; the tries
// after it do the step.
func halfway(log, gate, more string) string {
	return fmt.Sprintf(`steps:
  - attempt: 1
    write: {draft.txt: "half\n"}
    commands: [%q, %q]
    output: "---\n$status: done\npart: 1\n---\nPart 1 is done.\n"
%s  - write: {parts/1.txt: "part 1\n"}
    commands: [%q]
    output: "---\n$status: done\npart: 1\n---\nPart 1 is done.\n"
`, "echo run >> '"+log+"'", "read -r word < '"+gate+"'", more, "echo run >> '"+log+"'")
}

// TestInterrupted asks a job to end while its agent is at work, as CI systems and
// people do. Within the time that they leave, no process of it is left, the claim
// is gone, and what the agent did is on its ref. The step can be run again.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the process table is read from /proc")
	}
	type row struct {
		name   string
		signal os.Signal
		script string // of the first try
		inside bool   // the agent stays at the gate
		agents int    // processes that there are when the signal comes, its watcher among them; 0: any number
	}
	for _, tt := range testmode.Some(3, []row{
		{name: "at work", signal: syscall.SIGTERM, inside: true},
		{name: "ctrl-c", signal: os.Interrupt, inside: true},
		{name: "deaf", signal: syscall.SIGTERM, script: "    hang: true\n", agents: 2},
		{name: "with a daemon", signal: syscall.SIGTERM, script: "    hang: true\n    daemon: true\n", agents: 3},
		{name: "daemon, ctrl-c", signal: os.Interrupt, script: "    hang: true\n    daemon: true\n", agents: 3},
	}...) {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			log := filepath.Join(t.TempDir(), "runs")
			l := newLab(t, loop, "", nil)
			g := l.gate("gate")
			l.write(l.script, halfway(log, g.file, tt.script))
			m := l.machine("a")
			id := m.startThread()

			j := m.step(nil, id)
			open := g.await(j)
			if !tt.inside {
				open()
				clitest.WaitUntil(t, func() bool { return len(j.family()) == tt.agents })
			}
			family := j.family()
			j.signal(tt.signal)
			j.ends(1)
			for _, p := range family {
				if p.alive() {
					t.Errorf("process %d is still there: %s", p.pid, p.command)
				}
			}
			if claims := l.refs("refs/uwf/claims"); len(claims) > 0 {
				t.Errorf("the claim is still there: %v", claims)
			}
			l.kept(id, "draft.txt", "half")
			m.step(nil, id).ends(0)
			m.looped(id, 1)
			if n := l.lines(log); n != 2 {
				t.Errorf("agents ran %d times, want 2", n)
			}
			m.sound()
		})
	}
}

// TestKilledOutright kills a job while its agent is at work, and nothing else: the agent
// and a daemon that cut itself off end with it, confined or not.
func TestKilledOutright(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the process table is read from /proc")
	}
	for _, mode := range []string{"off", "auto"} {
		if mode == "auto" && !sandbox.Probe().Usable() {
			continue
		}
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, loop, "steps:\n  - hang: true\n    daemon: true\n", nil)
			m := l.machine("a")
			j := m.step(nil, m.startThread(), "--sandbox", mode)
			var family []process
			clitest.WaitUntil(t, func() bool {
				family = j.family()
				isDaemon := func(p process) bool { return strings.Contains(p.command, "(sleep)") }
				return len(family) == 3 && slices.ContainsFunc(family, isDaemon) // with the watcher and the agent
			})
			j.kill()
			j.dies()
			for _, p := range family {
				clitest.WaitUntil(t, func() bool { return !p.alive() })
			}
		})
	}
}

// TestInterruptedWithoutServer asks a job to end whose server no longer answers: it ends
// all the same, though it would wait for the server for longer than this test, says that
// nothing could be kept, and can be run again.
func TestInterruptedWithoutServer(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "runs")
	l := newLab(t, loop, "", nil)
	g := l.gate("gate")
	l.write(l.script, halfway(log, g.file, ""))
	m := l.machine("a")
	id := m.startThread()
	j := m.step([]string{clitest.EnvQuiet + "=24h"}, id)
	g.await(j)
	silent := func(http.Handler) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // only then the server sees the client go
			<-r.Context().Done()
		})
	}
	l.wrap.Store(&silent)
	j.signal(syscall.SIGTERM)
	j.ends(1)
	if !strings.Contains(j.errs.String(), "could not be kept") {
		t.Errorf("it does not say that nothing was kept: %s", j)
	}
	if !g.empty() {
		t.Error("the agent is still there")
	}
	l.wrap.Store(nil)
	m.step(nil, id).ends(0) // the claim that was left is a failed attempt: its script has no gate
	if n := l.lines(log); n != 2 {
		t.Errorf("agents ran %d times, want 2", n)
	}
	m.sound()
}

// TestInterruptedCommit asks a job to end while its commit is on the way: the step is
// committed, and its agent is not paid twice.
func TestInterruptedCommit(t *testing.T) {
	t.Parallel()
	for _, when := range testmode.Some(2, "before it arrives", "before it is answered") {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			l, log := newLoopLab(t, 1, nil)
			m := l.machine("a")
			id := m.startThread()
			pushes, victim := 0, make(chan *job, 1)
			wrap := func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if isPush(r) {
						pushes++ // the claim, then the commit
					}
					if !isPush(r) || pushes != 2 {
						next.ServeHTTP(w, r)
						return
					}
					j := <-victim
					if when == "before it arrives" {
						j.signal(syscall.SIGTERM)
					}
					next.ServeHTTP(w, r)
					if when != "before it arrives" {
						j.signal(syscall.SIGTERM)
					}
				})
			}
			l.wrap.Store(&wrap)
			j := m.step(nil, id)
			victim <- j
			j.ends(0)
			l.wrap.Store(nil)
			m.looped(id, 1)
			if n := l.lines(log); n != 1 {
				t.Errorf("agents ran %d times, want once", n)
			}
			m.sound()
		})
	}
}

func (j *job) signal(s os.Signal) { _ = j.cmd.Process.Signal(s) } // it may have ended by itself

// process is one of the system's, by its number and the time that it began.
type process struct {
	pid, parent int
	began       string
	command     string
}

// alive reports whether the process is there, and not just to be collected.
func (p process) alive() bool {
	now, state, ok := readProcess(p.pid)
	return ok && now.began == p.began && state != "Z"
}

// family lists the processes that descend from the job.
func (j *job) family() []process {
	names, err := os.ReadDir("/proc")
	j.m.check(err)
	var all []process
	for _, e := range names {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, state, ok := readProcess(pid); ok && state != "Z" {
			all = append(all, p)
		}
	}
	family := []int{j.cmd.Process.Pid}
	var out []process
	for i := 0; i < len(family); i++ {
		for _, p := range all {
			if p.parent == family[i] && !slices.Contains(family, p.pid) {
				family = append(family, p.pid)
				out = append(out, p)
			}
		}
	}
	return out
}

// readProcess reads /proc/PID/stat; see proc(5).
func readProcess(pid int) (p process, state string, ok bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	end := bytes.LastIndexByte(b, ')')
	if err != nil || end < 0 {
		return p, "", false
	}
	f := strings.Fields(string(b[end+1:]))
	if len(f) < 20 {
		return p, "", false
	}
	p.pid, p.began, p.command = pid, f[19], string(b[:end+1])
	p.parent, err = strconv.Atoi(f[1])
	return p, f[0], err == nil
}
