package processes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/united-workforce/uwf/internal/testpty"
)

// TestStoppedAtATerminal: a person who presses ctrl-C stops a step; that is no failure, as
// often as it happens. The same signal without a terminal, and any other one, is a job's
// end, and three of them make the thread wait.
func TestStoppedAtATerminal(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		end    func(j *job, person *os.File)
		counts bool
	}{
		{"ctrl-c", func(j *job, person *os.File) {
			_, err := person.WriteString("\x03")
			j.m.check(err)
		}, false},
		{"SIGTERM at a terminal", func(j *job, _ *os.File) { j.signal(syscall.SIGTERM) }, true},
		{"SIGINT without one", func(j *job, _ *os.File) { j.signal(os.Interrupt) }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			log := filepath.Join(t.TempDir(), "runs")
			l := newLab(t, loop, "", nil)
			g := l.gate("gate")
			l.write(l.script, fmt.Sprintf(`steps:
  - attempt: 4
    output: "---\n$status: done\npart: 1\n---\nPart 1 is done.\n"
  - write: {draft.txt: "half\n"}
    commands: [%q, %q]
    output: "---\n$status: done\npart: 1\n---\nPart 1 is done.\n"
`, "echo run >> '"+log+"'", "read -r word < '"+g.file+"'"))
			m := l.machine("a")
			id := m.startThread()
			for try := range 3 {
				person, tty := testpty.Open(t)
				if tt.name == "SIGINT without one" {
					tty = nil
				}
				j := m.startAt(tty, "thread", "step", id, "--agent", "uwf agent mock '"+m.script+"'")
				g.await(j)
				tt.end(j, person)
				j.ends(1)
				said := j.errs.String()
				if stopped := strings.Contains(said, "was stopped (role") && strings.Contains(said, "counts as no failed attempt; go on: uwf thread step "+id); stopped == tt.counts {
					t.Errorf("it says %s", said)
				}
				if kept := l.refs("refs/uwf/attempts/" + id); len(kept) != try+1 {
					t.Errorf("after try %d these are kept: %v", try+1, kept)
				}
			}
			if n := l.lines(log); n != 3 {
				t.Errorf("agents ran %d times, want 3", n)
			}
			if tt.counts {
				if j := m.step(nil, id).ends(3); !strings.Contains(j.errs.String(), "3 attempts at this step failed") {
					t.Errorf("%s", j)
				}
				return
			}
			if status := m.status(id); status != "active" {
				t.Errorf("the thread is %s", status)
			}
			m.step(nil, id).ends(0)
			if steps := m.startInside("thread", "steps", id, "--format", "text").ends(0).out.String(); strings.Count(steps, "stopped") < 3 || strings.Contains(steps, "failed") {
				t.Errorf("the attempts are not shown as stopped:\n%s", steps)
			}
			m.sound()
		})
	}
}
