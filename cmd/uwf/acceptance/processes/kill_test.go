package processes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
	"github.com/united-workforce/uwf/internal/testmode"
)

// story is a workflow that meets everything that may become of a step: it goes on,
// is sent back, waits for a person, fails until that suspends the thread, ends.
const story = `name: flow
description: Written, sent back, asked about, approved.
roles:
  writer:
    description: writes
    goal: Write.
    capabilities: []
    procedure: Write.
    output: What was written.
    frontmatter:
      type: object
      properties: {$status: {enum: [done, asks]}, question: {type: string}}
      required: [$status]
  editor:
    description: edits
    goal: Edit.
    capabilities: []
    procedure: Edit.
    output: What is wrong with it.
    frontmatter:
      type: object
      properties: {$status: {enum: [rejected, approved]}}
      required: [$status]
graph:
  $START: {_: {role: writer, prompt: Write.}}
  writer:
    done: {role: editor, prompt: Edit it.}
    asks: {role: $SUSPEND, prompt: "{{question}}"}
  editor:
    rejected: {role: writer, prompt: Again.}
    approved: {role: $END, prompt: Done.}
`

// storyScript plays the story. The second step lasts for as long as there is a
// file named hold, and makes hold.on then.
func storyScript(log, hold string) string {
	run := "echo run >> '" + log + "'"
	return fmt.Sprintf(`steps:
  - {step: 1, commands: [%[1]q], write: {draft.txt: "one\n", new/a.txt: "a\n"}, output: "---\n$status: done\n---\nWritten.\n"}
  - {step: 2, commands: [%[1]q, %[2]q], output: "---\n$status: rejected\n---\nToo short.\n"}
  - {step: 3, commands: [%[1]q], write: {draft.txt: "three\n"}, output: "---\n$status: asks\nquestion: How long?\n---\nI must ask.\n"}
  - {step: 4, commands: [%[1]q], write: {draft.txt: "four\n"}, delete: [new/a.txt], output: "---\n$status: done\n---\nLonger.\n"}
  - {step: 5, attempt: 4, commands: [%[1]q], write: {new/b.txt: "b\n"}, output: "---\n$status: approved\n---\nGood.\n"}
  - {step: 5, commands: [%[1]q], write: {new/torn.txt: "never seen\n"}, exit: 9}
`, run, "while test -e '"+hold+"'; do touch '"+hold+".on'; sleep 0.01; done")
}

// pace is how a job that was killed is run again.
type pace struct {
	// elsewhere is on another machine, as soon as the dead job's claim has expired.
	elsewhere bool
	// ci makes each job a run of a CI system, told which head to step; its re-run
	// has the same id, a higher attempt and another machine, and starts at once.
	ci bool
}

// teller tells a story by processes that may be killed.
type teller struct {
	*lab
	pace
	machines  []*machine // jobs work on the first, until that changes
	log, hold string
	id        string

	run, attempt int    // of the present job, where ci is set
	expect       string // the head that it was told to step
}

func newTeller(t *testing.T, p pace) *teller {
	t.Helper()
	dir := t.TempDir()
	te := &teller{pace: p, log: filepath.Join(dir, "runs"), hold: filepath.Join(dir, "hold")}
	te.lab = newLab(t, story, storyScript(te.log, te.hold), nil)
	te.inside = true
	te.machines = []*machine{te.machine("a"), te.machine("b")}
	return te
}

// standing is where the thread stands, by `uwf thread show`.
type standing struct {
	Status, Head string
	Steps        int
}

func (te *teller) standing() (s standing) {
	te.Helper()
	te.machines[0].start(nil, "thread", "show", te.id).ends(0).json(&s)
	return s
}

// tell tells the story to its end and returns its steps. kills are the points at
// which the jobs on a step die, one after the other; an empty one means that this
// job lives. Step 0 is the start of the thread, -1 is the first resume.
func (te *teller) tell(kills map[int][]string) []shownStep {
	te.Helper()
	next := func(step int) (point string) {
		if rest := kills[step]; len(rest) > 0 {
			point, kills[step] = rest[0], rest[1:]
		}
		return point
	}
	te.begin(next(0))
	again := false
	for range maxJobs {
		s := te.standing()
		switch {
		case again && te.ci && s.Head != te.expect:
			te.step("").ends(0) // its first attempt has done it all
			again = false
		case again && s.Status == "suspended":
			te.step("").ends(3)
			again = false
		case again && s.Status == "ended":
			te.step("").ends(4)
			again = false
		case s.Status == "ended":
			return te.machines[0].steps(te.id)
		case s.Status == "suspended":
			te.do(next(-1), "thread", "resume", te.id, "-p", "Long.")
		default:
			if !again {
				te.run, te.attempt, te.expect = te.run+1, 1, s.Head
			}
			again = te.live(next(s.Steps + 1))
		}
	}
	te.Fatalf("the story does not come to its end within %d jobs", maxJobs)
	return nil
}

// maxJobs is far more than a story takes.
const maxJobs = 60

// live runs one job, which dies at the point if there is one, and gets everything
// ready for the job to be run again.
func (te *teller) live(point string) (died bool) {
	te.Helper()
	j := te.step(point)
	if point == "" {
		<-j.done
		if !slices.Contains([]int{0, 1, 3}, j.code) {
			te.Fatalf("%s: exit code %d", j, j.code)
		}
		return false
	}
	j.dies()
	te.check(errors.Join(os.RemoveAll(te.hold), os.RemoveAll(te.hold+".on")))
	if !te.elsewhere && !te.ci {
		return true
	}
	slices.Reverse(te.machines)
	te.attempt++
	if te.elsewhere && len(te.refs("refs/uwf/claims")) > 0 {
		before := te.lines(te.log)
		te.step("").ends(4) // nobody here can know yet that the other job is dead
		if te.lines(te.log) != before {
			te.Errorf("after a kill at %s an agent ran beside a claim that was alive", point)
		}
		te.outlive()
	}
	return true
}

// step starts a job on the thread.
func (te *teller) step(kill string) *job {
	te.Helper()
	var env, flags []string
	if te.ci {
		env = []string{fmt.Sprintf("GITHUB_RUN_ID=%d", 1000+te.run), fmt.Sprintf("GITHUB_RUN_ATTEMPT=%d", te.attempt)}
		flags = []string{"--expect-head", te.expect}
	}
	if kill != "" {
		env = append(env, clitest.EnvKill+"="+kill)
	}
	if kill == "renew" {
		te.write(te.hold, "")
		env = append(env, clitest.EnvRenew+"="+te.hold+".on")
	}
	return te.machines[0].step(env, te.id, flags...)
}

// do runs another command, killed at the point if there is one. Run again it
// succeeds, or says by exit code 4 that there is nothing to do.
func (te *teller) do(point string, args ...string) *job {
	te.Helper()
	m := te.machines[0]
	if point == "" {
		return m.start(nil, args...).ends(0)
	}
	m.start([]string{clitest.EnvKill + "=" + point}, args...).dies()
	j := m.start(nil, args...)
	if <-j.done; j.code != 0 && j.code != 4 {
		te.Fatalf("%s: exit code %d, want 0 or 4", j, j.code)
	}
	return j
}

// begin starts the thread.
func (te *teller) begin(point string) {
	te.Helper()
	var s struct{ Thread string }
	te.do(point, "thread", "start", "flow", "-p", "Work.", "--key", "one").json(&s)
	te.id = s.Thread
	if commits := te.bare("rev-list", "--count", "uwf-state"); commits != "2" {
		te.Errorf("the state branch has %s commits after the start, want 2: its own and the thread's", commits)
	}
}

// facts is what must be the same however often jobs were killed: who said what in
// which order, and the files after each step.
func (te *teller) facts(list []shownStep) []string {
	te.Helper()
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = fmt.Sprintf("%d %s %v %q %s", s.Step, s.Role, s.Output, s.Body, te.bare("rev-parse", s.Work.Commit+"^{tree}"))
	}
	last := list[len(list)-1].Work
	if tip := te.bare("rev-parse", "refs/heads/"+last.Branch); tip != last.Commit {
		te.Errorf("the work branch is at %s, not at %s", tip, last.Commit)
	}
	return out
}

// TestKilled kills jobs at every durable point of the protocol and runs them
// again: at once on the same machine, elsewhere after the claim's lifetime, and as
// the next attempt of the same CI run. The thread is the one of a run without
// kills, and an agent is paid again only where it had been at work. By default only
// the jobs of a CI are killed.
func TestKilled(t *testing.T) {
	t.Parallel()
	const agents, again = 8, 2 // runs without kills; those that the kills cost
	quiet := newTeller(t, pace{})
	want := quiet.facts(quiet.tell(nil))
	if n := quiet.lines(quiet.log); n != agents || len(want) != 5 {
		t.Fatalf("without kills agents ran %d times for %d steps, want %d for 5", n, len(want), agents)
	}
	quiet.machines[0].sound()
	paces := map[string]pace{"next attempt": {ci: true}}
	if testmode.HasProcesses() {
		paces["same machine"], paces["elsewhere"] = pace{}, pace{elsewhere: true}
	}
	for name, p := range paces {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			te := newTeller(t, p)
			kills := map[int][]string{
				0: {"start"}, -1: {"resume"},
				1: {"claim", "workspace"},
				2: {"renew", "agent"},
				3: {"commit"}, // the step that suspends
				4: {"commit"},
				5: {"attempt", "", "", "suspend", "commit"},
			}
			got := te.facts(te.tell(kills))
			if !slices.Equal(got, want) {
				t.Errorf("the thread is\n%s\nand without kills\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			for step, left := range kills {
				if len(left) > 0 {
					t.Errorf("step %d: no job died at %v", step, left)
				}
			}
			if n := te.lines(te.log); n != agents+again {
				t.Errorf("agents ran %d times, want %d", n, agents+again)
			}
			te.machines[0].sound()
		})
	}
}

// TestKilledOnDisk kills each job when its step is sealed and nothing of it is pushed: the
// next job on that machine brings it in, and no agent is paid twice.
func TestKilledOnDisk(t *testing.T) {
	t.Parallel()
	te := newTeller(t, pace{})
	kills := map[int][]string{1: {"on-disk"}, 2: {"on-disk"}, 3: {"on-disk"}, 4: {"on-disk"}}
	if steps := te.tell(kills); len(steps) != 5 {
		t.Errorf("there are %d steps, want 5", len(steps))
	}
	for step, left := range kills {
		if len(left) > 0 {
			t.Errorf("step %d: no job died at %v", step, left)
		}
	}
	if n := te.lines(te.log); n != 8 {
		t.Errorf("agents ran %d times, want 8 as without kills", n)
	}
	left, err := filepath.Glob(filepath.Join(te.machines[0].home, "pending", "*", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("steps are left on disk: %q %v", left, err)
	}
	te.machines[0].sound()
}

// TestKilledCancel kills a cancel after its push: the thread is cancelled, and
// cancelling it again says so.
func TestKilledCancel(t *testing.T) {
	t.Parallel()
	te := newTeller(t, pace{})
	te.begin("")
	te.step("").ends(0)
	te.do("cancel", "thread", "cancel", te.id, "-m", "no need").ends(0)
	te.step("").ends(4)
	if s := te.standing(); s.Status != "cancelled" || s.Steps != 1 {
		t.Errorf("the thread is %+v, want cancelled after one step", s)
	}
	te.machines[1].sound()
}
