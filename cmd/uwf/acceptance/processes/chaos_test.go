package processes

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/united-workforce/uwf/internal/testmode"
)

// TestKilledAfterPushes kills jobs after each of their pushes in turn, taken but not
// answered. Where pushes are not atomic there are many, and all must be safe. The
// last step has its kill too: where a dead job has done its step, the next one does
// the step after it, so that their number is odd. By default it is one step,
// on a server with atomic pushes.
func TestKilledAfterPushes(t *testing.T) {
	t.Parallel()
	lengths := []int{1}
	if testmode.HasProcesses() {
		lengths = append(lengths, 3)
	}
	for _, name := range testmode.Some(2, slices.Sorted(maps.Keys(servers()))...) {
		for _, steps := range lengths {
			t.Run(fmt.Sprintf("%s, %d steps", name, steps), func(t *testing.T) {
				t.Parallel()
				l, log := newLoopLab(t, steps, servers()[name])
				m := l.machine("a")
				kills, threads := 0, 0
				for n, before := 1, -1; kills > before; n++ {
					before = kills
					id := m.startThread()
					threads++
					kills += m.killedAfter(n, id)
					m.looped(id, steps)
					if t.Failed() {
						t.Fatalf("after kills at push %d", n)
					}
				}
				n := l.lines(log)
				t.Logf("%d threads, %d kills: agents ran %d times", threads, kills, n)
				if n < threads*steps || n > threads*steps+kills {
					t.Errorf("agents ran %d times, want %d, and at most once more for each kill", n, threads*steps)
				}
				m.sound()
			})
		}
	}
}

// over reports whether a thread has ended. A job that comes to a thread that has
// ended sees to what a dead one left undone; where the dead job's push was taken
// only after the last one looked, this is the one.
func (m *machine) over(id string) bool {
	m.Helper()
	if m.status(id) != "ended" {
		return false
	}
	m.step(nil, id).ends(4)
	return true
}

// servers are the configurations of servers that differ in what a kill leaves.
func servers() map[string]map[string]string {
	return map[string]map[string]string{"atomic": nil, "not atomic": {"receive.advertiseAtomic": "false"}}
}

// killedAfter steps a thread to its end. Every other job is killed after its n-th
// push. It returns how many were.
func (m *machine) killedAfter(n int, id string) (kills int) {
	m.Helper()
	for {
		j := m.stepKilledAt(n, isPush, taken, id)
		if j.killed() {
			kills++
			j = m.step(nil, id)
			<-j.done
		}
		switch j.code {
		case 0:
			var r struct{ Done bool }
			if j.json(&r); r.Done {
				return kills
			}
		case 4: // the dead job's last push was taken after all
			if m.over(id) {
				return kills
			}
		default:
			m.Fatalf("%s: exit code %d after a kill at push %d", j, j.code, n)
		}
	}
}

// TestRandomKills kills jobs at random requests to their server, which takes what is
// sent, or not, or only after the job's death. They are run again at once on the same
// machine, or elsewhere after the claim's lifetime. UWF_TEST_SEED, which is printed,
// chooses them all; UWF_TEST_KILLS says how many are killed.
func TestRandomKills(t *testing.T) {
	t.Parallel()
	kills := int64(3)
	if testmode.HasProcesses() {
		kills = 12
	}
	kills = readNumber(t, "UWF_TEST_KILLS", kills)
	seed := readNumber(t, "UWF_TEST_SEED", 1)
	for i, name := range testmode.Some(2, slices.Sorted(maps.Keys(servers()))...) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			steps := 2
			if testmode.HasProcesses() {
				steps = 8
			}
			l, log := newLoopLab(t, steps, servers()[name])
			c := &chaos{
				lab: l, rand: rand.New(rand.NewPCG(uint64(seed), uint64(i))), //nolint:gosec // a test's choice
				machines: []*machine{l.machine("a"), l.machine("b")}, left: int(kills+int64(i)) / 2,
			}
			all, threads := c.left, 0
			t.Logf("UWF_TEST_SEED=%d UWF_TEST_KILLS=%d", seed, kills)
			for ; c.left > 0; threads++ {
				id := c.machines[0].startThread()
				c.run(id)
				c.machines[0].looped(id, steps)
				if t.Failed() {
					return
				}
			}
			n := l.lines(log)
			t.Logf("%d threads of %d steps, %d kills: agents ran %d times", threads, steps, all, n)
			if n < threads*steps || n > threads*steps+all {
				t.Errorf("agents ran %d times, want %d, and at most once more for each kill", n, threads*steps)
			}
			c.machines[0].sound()
		})
	}
}

func readNumber(t *testing.T, variable string, otherwise int64) int64 {
	t.Helper()
	v := os.Getenv(variable)
	if v == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q: a number from 1 is expected", variable, v)
	}
	return n
}

// chaos kills jobs.
type chaos struct {
	*lab
	rand     *rand.Rand
	machines []*machine
	left     int // kills that are still to come
}

// run runs jobs until the thread has ended.
func (c *chaos) run(id string) {
	c.Helper()
	for died := false; ; {
		how, j := c.job(id)
		before := died
		if died = j.killed(); died {
			c.left--
			if c.rand.IntN(2) == 0 {
				c.machines[0], c.machines[1] = c.machines[1], c.machines[0]
				c.outlive()
			}
			continue
		}
		switch j.code {
		case 0:
			var r struct{ Done bool }
			if j.json(&r); r.Done {
				return
			}
		case 3: // three jobs died at the same step
			c.machines[0].start(nil, "thread", "resume", id, "-p", "Go on.").ends(0)
		case 4: // the dead job's last push was taken after all, maybe only now
			if !before {
				c.Fatalf("%s: exit code 4 without a kill before", j)
			}
			if c.machines[0].over(id) {
				return
			}
		default:
			c.Fatalf("%s (%s): exit code %d", j, how, j.code)
		}
	}
}

// maxRequests is more than a job of one step makes: a job that makes fewer than its
// number says is not killed.
const maxRequests = 14

// job runs one job, which is killed as long as kills are left.
func (c *chaos) job(id string) (how string, j *job) {
	c.Helper()
	if c.left == 0 || c.rand.IntN(4) == 0 {
		j = c.machines[0].step(nil, id)
		<-j.done
		return "not killed", j
	}
	f := []fate{never, after, taken}[c.rand.IntN(3)]
	if c.rand.IntN(2) == 0 {
		n := 1 + c.rand.IntN(maxRequests)
		return fmt.Sprintf("killed at request %d, %s", n, f), c.machines[0].stepKilledAt(n, anyRequest, f, id)
	}
	n := 1 + c.rand.IntN(2)
	return fmt.Sprintf("killed at push %d, %s", n, f), c.machines[0].stepKilledAt(n, isPush, f, id)
}

func anyRequest(*http.Request) bool { return true }

func (j *job) kill() { _ = j.cmd.Process.Kill() } // it may have ended by itself

// fate is what becomes of the request at which a job is killed.
type fate string

const (
	never fate = "never taken"
	after fate = "taken after the job's death"
	taken fate = "taken but not answered"
)

// stepKilledAt does one step with a job that is killed at its n-th request of a kind.
func (m *machine) stepKilledAt(n int, counts func(*http.Request) bool, f fate, id string) *job {
	m.Helper()
	victim := make(chan *job, 1)
	var seen atomic.Int64
	wrap := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !counts(r) || seen.Add(1) != int64(n) {
				next.ServeHTTP(w, r)
				return
			}
			j := <-victim
			body, err := io.ReadAll(r.Body)
			if err != nil {
				panic(http.ErrAbortHandler)
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			if f == taken {
				next.ServeHTTP(&unanswered{header: http.Header{}}, r)
			}
			j.kill()
			<-j.done
			if f == after {
				next.ServeHTTP(w, r)
			}
		})
	}
	m.wrap.Store(&wrap)
	defer m.wrap.Store(nil)
	j := m.step(nil, id)
	victim <- j
	<-j.done
	return j
}

// unanswered is the answer that nobody gets.
type unanswered struct{ header http.Header }

func (u *unanswered) Header() http.Header         { return u.header }
func (u *unanswered) Write(b []byte) (int, error) { return len(b), nil }
func (u *unanswered) WriteHeader(int)             {}
