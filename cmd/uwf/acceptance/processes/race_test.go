package processes

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
	"github.com/united-workforce/uwf/internal/testmode"
)

// loop is a workflow whose one role works until it says that it is done.
const loop = `name: flow
description: Goes on until it is done.
roles:
  worker:
    description: works
    goal: Work.
    capabilities: []
    procedure: Work.
    output: What was done.
    frontmatter:
      type: object
      properties: {$status: {enum: [more, done]}, part: {type: integer}}
      required: [$status, part]
graph:
  $START: {_: {role: worker, prompt: Begin.}}
  worker:
    more: {role: worker, prompt: "Part {{part}} is done; go on."}
    done: {role: $END, prompt: Done.}
`

// loopScript plays the loop for that many steps. Each adds a line to log when it
// is run, and writes a file of its own.
func loopScript(steps int, log string, commands ...string) string {
	var b strings.Builder
	b.WriteString("steps:\n")
	for n := 1; n <= steps; n++ {
		status := "more"
		if n == steps {
			status = "done"
		}
		fmt.Fprintf(&b, `  - step: %d
    write: {parts/%d.txt: "part %d\n", draft.txt: "%d parts\n"}
    commands: [%s]
    output: "---\n$status: %s\npart: %d\n---\nPart %d is done.\n"
`, n, n, n, n, yamlList(append([]string{"echo run >> '" + log + "'"}, commands...)), status, n, n)
	}
	return b.String()
}

func yamlList(items []string) string {
	quoted := make([]string, len(items))
	for i, s := range items {
		quoted[i] = fmt.Sprintf("%q", s)
	}
	return strings.Join(quoted, ", ")
}

// newLoopLab serves a repository with a loop of that many steps; the returned
// file gets a line for each run of an agent.
func newLoopLab(t *testing.T, steps int, config map[string]string, commands ...string) (*lab, string) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "runs")
	return newLab(t, loop, loopScript(steps, log, commands...), config), log
}

// looped checks a thread that went all the way: each part once, in order, and the
// files of all of them in the last commit.
func (m *machine) looped(id string, want int) {
	m.Helper()
	list := m.steps(id)
	if len(list) != want {
		m.Fatalf("thread %s has %d steps, want %d", id, len(list), want)
	}
	for i, s := range list {
		if part, _ := s.Output["part"].(float64); s.Step != i+1 || int(part) != i+1 || s.Body != fmt.Sprintf("Part %d is done.", i+1) {
			m.Errorf("step %d of thread %s is %+v", i+1, id, s)
		}
		m.bare("merge-base", "--is-ancestor", s.Work.Commit, list[want-1].Work.Commit)
	}
	last := list[want-1].Work
	if tip := m.bare("rev-parse", "refs/heads/"+last.Branch); tip != last.Commit {
		m.Errorf("the work branch is at %s, not at %s", tip, last.Commit)
	}
	files := strings.Fields(m.bare("ls-tree", "-r", "--name-only", last.Commit, "parts/"))
	if len(files) != want {
		m.Errorf("thread %s has the files of %d steps, want %d: %v", id, len(files), want, files)
	}
}

// TestManyThreads steps eight threads at once, each by processes of its own, on
// one remote: nothing gets lost, and every chain is one line. By default they are two
// of two steps; UWF_TEST_KILLS asks for twenty steps each.
func TestManyThreads(t *testing.T) {
	t.Parallel()
	threads, steps := 2, 2
	if testmode.HasProcesses() {
		threads, steps = 8, 5
	}
	if os.Getenv("UWF_TEST_KILLS") != "" {
		steps = 20
	}
	l, log := newLoopLab(t, steps, nil)
	var wg sync.WaitGroup
	ids := make([]string, threads)
	first := l.machine("0")
	for i := range threads {
		m := first
		if i > 0 {
			m = l.machine(fmt.Sprint(i))
		}
		ids[i] = m.startThread()
		wg.Go(func() {
			for n := range steps {
				if j := m.step(nil, ids[i]); !j.succeeds() {
					t.Errorf("thread %d, step %d: %s: exit code %d", i, n+1, j, j.code)
					return
				}
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	for _, id := range ids {
		first.looped(id, steps)
	}
	if n := l.lines(log); n != threads*steps {
		t.Errorf("agents ran %d times, want %d", n, threads*steps)
	}
	first.sound()
}

// TestOneStepFourTimes starts the same step in four processes whose claims reach
// the server together: one runs the agent, the others exit 4. So it must be
// where the thread is free, and where a dead job's claim lies on it.
func TestOneStepFourTimes(t *testing.T) {
	t.Parallel()
	for _, dead := range testmode.Some(2, true, false) {
		t.Run(fmt.Sprintf("dead claim %t", dead), func(t *testing.T) {
			t.Parallel()
			const jobs = 4
			log := filepath.Join(t.TempDir(), "runs")
			l := newLab(t, loop, "", nil)
			g := l.gate("gate")
			l.write(l.script, loopScript(1, log, "read -r word < '"+g.file+"'"))
			m := l.machine("a")
			id := m.startThread()
			if dead {
				m.step([]string{clitest.EnvKill + "=claim"}, id).dies()
			}
			l.together(jobs)
			all, ended := make([]*job, jobs), make(chan int, jobs)
			for i := range all {
				all[i] = m.step(nil, id, "--workspace", t.TempDir())
				go func() {
					<-all[i].done
					ended <- all[i].code
				}()
			}
			open := g.await(all...)
			lost := []int{<-ended, <-ended, <-ended}
			open()
			if won := <-ended; won != 0 || !slices.Equal(lost, []int{4, 4, 4}) {
				t.Errorf("exit codes: the winner's %d, want 0; the others' %v, want 4 each: %v", won, lost, all)
			}
			if n := l.lines(log); n != 1 {
				t.Errorf("%d agents ran", n)
			}
			m.looped(id, 1)
			m.sound()
		})
	}
}

// together holds the next n pushes back until all of them have arrived.
func (l *lab) together(n int) {
	var mu sync.Mutex
	arrived, all := 0, make(chan struct{})
	wrap := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if isPush(r) {
				mu.Lock()
				if arrived++; arrived == n {
					close(all)
				}
				mu.Unlock()
				select {
				case <-all:
				case <-r.Context().Done():
				}
			}
			next.ServeHTTP(w, r)
		})
	}
	l.wrap.Store(&wrap)
}

// TestTwoClones steps the same threads from two clones, one step here, one there.
func TestTwoClones(t *testing.T) {
	t.Parallel()
	steps := 2
	if testmode.HasProcesses() {
		steps = 4
	}
	l, log := newLoopLab(t, steps, nil)
	l.inside = true
	clones := []*machine{l.machine("a"), l.machine("b")}
	ids := []string{clones[0].startThread(), clones[1].startThread()}
	for n := range steps {
		here, there := clones[n%2].step(nil, ids[0]), clones[(n+1)%2].step(nil, ids[1])
		here.ends(0)
		there.ends(0)
	}
	for i, id := range ids {
		clones[i].looped(id, steps)
	}
	if n := l.lines(log); n != 2*steps {
		t.Errorf("agents ran %d times, want %d", n, 2*steps)
	}
	clones[0].sound()
}

// TestCancelWins cancels a thread while its agent works. The job finds out at its
// next renewal, or at the latest when it commits; either way the thread stays
// cancelled, and what the agent did is kept.
func TestCancelWins(t *testing.T) {
	t.Parallel()
	for _, by := range testmode.Some(2, "renewal", "commit") {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			log := filepath.Join(t.TempDir(), "runs")
			l := newLab(t, loop, "", nil)
			g := l.gate("gate")
			l.write(l.script, loopScript(2, log, "read -r word < '"+g.file+"'"))
			a, b := l.machine("a"), l.machine("b")
			id := a.startThread()
			j := a.step(nil, id)
			g.await(j)()
			j.ends(0)

			renew := l.path("renew")
			j = a.step([]string{clitest.EnvRenew + "=" + renew}, id)
			open := g.await(j)
			b.start(nil, "thread", "cancel", id, "-m", "not needed any more").ends(0)
			if by == "commit" {
				open()
			} else {
				l.write(renew, "")
			}
			j.ends(4)
			if !g.empty() {
				t.Error("the agent is still there")
			}
			l.kept(id, "parts/2.txt", "part 2")
			if s := b.status(id); s != "cancelled" {
				t.Errorf("the thread is %s, not cancelled", s)
			}
			a.step(nil, id).ends(4)
			if n := len(b.steps(id)); n != 1 {
				t.Errorf("the thread has %d steps, want the one from before", n)
			}
			if n := l.lines(log); n != 2 {
				t.Errorf("agents ran %d times, want 2", n)
			}
			b.sound()
		})
	}
}

// kept checks that the one attempt of a thread holds a file that its agent wrote.
func (l *lab) kept(id, file, want string) {
	l.Helper()
	refs := l.refs("refs/uwf/attempts/" + id)
	if len(refs) != 1 {
		l.Fatalf("attempts kept: %v, want one", refs)
	}
	if got := l.bare("show", refs[0]+":work/"+file); got != want {
		l.Errorf("%s of the kept attempt is %q, want %q", file, got, want)
	}
}

// TestLesserServers runs a thread to its end on servers that can do less.
func TestLesserServers(t *testing.T) {
	t.Parallel()
	v0 := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Del("Git-Protocol")
			next.ServeHTTP(w, r)
		})
	}
	plain := map[string]string{
		"uploadpack.allowFilter": "false", "uploadpack.allowAnySHA1InWant": "false", "uploadpack.allowReachableSHA1InWant": "false",
	}
	type server struct {
		name   string
		config map[string]string
		wrap   func(http.Handler) http.Handler
	}
	for _, tt := range testmode.Some(2, []server{
		{name: "no atomic pushes", config: map[string]string{"receive.advertiseAtomic": "false"}},
		{name: "protocol v0", wrap: v0},
		{name: "git's defaults, v0", wrap: v0, config: plain},
	}...) {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			const steps = 3
			l, log := newLoopLab(t, steps, tt.config)
			l.inside = true
			if tt.wrap != nil {
				l.wrap.Store(&tt.wrap)
			}
			m := l.machine("a")
			id := m.startThread()
			for range steps {
				m.step(nil, id).ends(0)
			}
			m.looped(id, steps)
			if n := l.lines(log); n != steps {
				t.Errorf("agents ran %d times, want %d", n, steps)
			}
			m.sound()
		})
	}
}
