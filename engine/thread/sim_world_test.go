package thread_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// The simulation runs the protocol's own code over an in-memory remote. Every
// remote operation and every agent waits at a gate; a scheduler that is driven
// by one seed opens one gate at a time and decides what happens there: it goes
// well, its reply is lost, it never arrives, or the process dies. Between two
// openings nothing runs, so a seed always gives the same story. Time is the
// fake time of a synctest bubble and passes only when the scheduler says so.

// fate is what happens at a gate.
type fate int

const (
	proceed   fate = iota
	loseReply      // it happens, but the caller never hears of it
	drop           // it does not happen: unreachable
	crash          // the process dies here
	crashNow       // it happens, and the process dies before it hears of it
	late           // it is not answered, and happens later, or never
	tear           // half of what is listed is as it is now, half as it is later
)

// request is a goroutine that waits at a gate.
type request struct {
	actor *actor
	what  string
	agent bool
	order int
	grant chan fate
}

// actor is one process: a job, or a person's command.
type actor struct {
	name    string
	ci      string // the run of its job
	run     string // that of the step which it does
	attempt int
	claims  int // how many it made
	eng     *engine
	ctx     context.Context
	stop    context.CancelCauseFunc
	rng     *rand.Rand
	isJob   bool
	alone   bool // what it does leaves other jobs' claims alone
	heeds   bool // it leaves claims alone that count
	takes   bool // it takes whatever claim there is
	thread  gitcas.ThreadID

	job       string // its name in its run
	pair      *pair  // the run of two jobs that it belongs to; nil: none
	note      string // how the agent whose work it commits called itself; empty: as it does
	over      []string
	killed    []string
	on        *machine
	pid       int
	contained bool
	skew      time.Duration // of its clock
	chance    *rand.Rand    // for what its remote operations draw
	began     time.Time
	leftBy    map[*actor]bool // whose processes were over when it began

	crashed  bool
	signaled time.Time // when it was told to end; zero: it was not
	hurt     bool      // a remote operation failed under it since then
	killAt   time.Time // when who sent the signal has waited long enough; zero: they wait
	faulted  bool      // a remote operation failed under it
	finished bool
	rescued  bool
	kept     bool       // it wrote its step to the disk
	made     *task.Task // what its agent finished

	outrun        time.Time // until when its commits lose their races
	away          away
	reads, pushes streak
	listed        int           // how many pushes there were when it listed the refs last
	held          time.Duration // how long it waited at gates since its claim was renewed
	expect        node.Hash     // the head that it was told to step; empty: any
	ran           bool          // its agent did, in this step
	working       *task.Task    // what its agent is at
	lost          time.Time     // since when its agent works for nothing; zero: it doesn't
	tried         string        // at what its agent was last, see attemptsAt
	mayGiveUp     bool          // the remote was away for so long that it may give up
	late          bool          // a push of it may still arrive
	looked        int           // how many gates had been opened when it last saw the refs
	refused       int           // as many refs were too many for a push of it
	res           thread.Result
	err           error
	// claimHead is the thread's head when this actor's claim was created.
	claimHead string
	// claimPaused says that the thread was not to run then, and claimEpoch how often
	// it had been let go on before.
	claimPaused bool
	claimEpoch  int
}

type world struct {
	tb     testing.TB
	seed   uint64
	rng    *rand.Rand
	mem    *wiretest.Memory
	atomic bool
	most   int  // how many refs a push may update; 0: any number
	silent bool // and the server doesn't say so many
	// whole: a step's refs go out at once, or not at all.
	whole bool
	// delivers says that jobs deliver what has ended.
	delivers bool

	direct  *gitcas.Store // without a gate
	looking sync.Mutex
	seen    *gitcas.View

	mu      sync.Mutex
	waiting []*request
	actors  []*actor
	orders  int
	opened  int // gates
	story   []string

	main, other gitcas.ThreadID
	forks       []gitcas.ThreadID
	machines    []*machine
	away        away
	guesses     bool // nobody knows the server's clock
	latePushes  []latePush
	pairs       []*pair
	chaos       atomic.Bool
	runs        int
	told        map[string]node.Hash // the head that the jobs of a run were dispatched with
	people      int
	siblings    int
	timeout     time.Duration // of an agent
	inPairs     bool          // some runs have two jobs
	landed      int           // how many pushes arrived
	model       model
}

func newWorld(tb testing.TB, seed uint64) *world {
	rng := rand.New(rand.NewPCG(seed, 0x5eed))
	w := &world{
		tb: tb, seed: seed, rng: rng, atomic: rng.IntN(3) > 0, delivers: rng.IntN(3) > 0,
		told: map[string]node.Hash{}, main: "01JD0000000000000000000001", other: "01JD0000000000000000000002",
	}
	w.most, w.silent = []int{0, 0, 0, 2, 3, 4}[rng.IntN(6)], rng.IntN(3) == 0
	w.whole = w.atomic && (w.most == 0 || w.most >= gitcas.StepRefs)
	w.mem = wiretest.NewMemory(wiretest.MemoryOptions{Atomic: w.atomic, MostRefs: w.most})
	w.guesses = rng.IntN(5) == 0
	w.inPairs = rng.IntN(3) == 0
	w.timeout = []time.Duration{10 * time.Minute, 10 * time.Minute, 2 * time.Hour}[rng.IntN(3)]
	w.machines = []*machine{{name: "laptop", lasts: true}, {name: "desk", lasts: true}}
	w.direct = w.fresh()
	w.chaos.Store(true)
	w.model.init()
	return w
}

// say notes an event for the story that a failing seed prints.
func (w *world) say(format string, args ...any) {
	w.mu.Lock()
	w.story = append(w.story, time.Now().Format("15:04:05 ")+fmt.Sprintf(format, args...))
	w.mu.Unlock()
}

// wait blocks a goroutine at a gate until the scheduler opens it.
func (w *world) wait(a *actor, what string) fate { return w.waitUntil(nil, a, what) }

// waitIn is wait of what an actor does without its remote: it ends with the context.
func (w *world) waitIn(ctx context.Context, a *actor, what string) fate {
	return w.waitUntil(ctx.Done(), a, what)
}

func (w *world) waitUntil(done <-chan struct{}, a *actor, what string) fate {
	agent := done != nil
	w.mu.Lock()
	if a.crashed {
		w.mu.Unlock()
		return crash
	}
	w.orders++
	q := &request{actor: a, what: what, agent: agent, order: w.orders, grant: make(chan fate, 1)}
	w.waiting = append(w.waiting, q)
	w.mu.Unlock()
	if !agent {
		began := time.Now()
		f := <-q.grant
		w.mu.Lock()
		a.held += time.Since(began)
		w.mu.Unlock()
		return f
	}
	select {
	case f := <-q.grant:
		return f
	case <-done:
		w.forget(q)
		return proceed
	}
}

func (w *world) forget(q *request) {
	w.mu.Lock()
	w.waiting = slices.DeleteFunc(w.waiting, func(x *request) bool { return x == q })
	w.mu.Unlock()
}

// pending lists the waiting goroutines in an order that doesn't depend on which
// of them the Go scheduler ran first.
func (w *world) pending() []*request {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := slices.Clone(w.waiting)
	slices.SortFunc(out, func(a, b *request) int {
		if c := strings.Compare(a.actor.name, b.actor.name); c != 0 {
			return c
		}
		return strings.Compare(a.what, b.what)
	})
	return out
}

func (w *world) open(q *request, f fate) {
	w.forget(q)
	w.mu.Lock()
	w.opened++
	w.mu.Unlock()
	if f == crash || f == crashNow {
		w.kill(q.actor)
	}
	w.say("%s: %s%s", q.actor.name, q.what, map[fate]string{
		loseReply: " (reply lost)", drop: " (never arrives)", crash: " (dies before)", crashNow: " (dies after)",
		late: " (on its way)", tear: " (torn)",
	}[f])
	q.grant <- f
	synctest.Wait()
}

// kill marks a process dead: nothing it still does has any effect.
func (w *world) kill(a *actor) {
	w.mu.Lock()
	a.crashed = true
	others := slices.Clone(w.waiting)
	w.waiting = slices.DeleteFunc(w.waiting, func(x *request) bool { return x.actor == a })
	w.mu.Unlock()
	for _, q := range others {
		if q.actor == a {
			q.grant <- crash
		}
	}
	a.stop(errors.New("killed"))
}

// gate is the remote as one actor sees it.
type gate struct {
	w *world
	a *actor
	wire.Remote
}

var errSim = errors.New("simulated")

func shortRef(u wire.RefUpdate) string {
	s := strings.TrimPrefix(strings.TrimPrefix(u.Name, "refs/"), "uwf/")
	switch {
	case u.New.IsZero():
		return "-" + s
	case u.Old.IsZero():
		return "+" + s
	}
	return s
}

// store opens the Store behind a gate.
func (w *world) store(a *actor) *gitcas.Store {
	return gitcas.Open(&gate{w: w, a: a, Remote: w.mem}, gitcas.Options{
		Now: a.now, Jitter: a.chance.Float64, RetryFor: time.Minute, Rand: zeroReader{},
	})
}

// fresh opens the Store without a gate, with nothing in its memory.
func (w *world) fresh() *gitcas.Store {
	return gitcas.Open(w.mem, gitcas.Options{Now: time.Now, Jitter: func() float64 { return 0 }, Rand: zeroReader{}})
}

// look reads the Store without a gate, for the checks. What was read before is not
// decoded again; jobs look for themselves, and fsck does at the end.
func (w *world) look(ids ...gitcas.ThreadID) (*gitcas.View, error) {
	w.looking.Lock()
	defer w.looking.Unlock()
	v, err := w.direct.Reload(context.Background(), w.seen, ids...)
	if err == nil {
		w.seen = v
	}
	return v, err
}

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// spawn starts an actor's goroutine.
func (w *world) spawn(name, run string, attempt int, th gitcas.ThreadID, body func(*actor)) *actor {
	return w.spawnAs(&actor{name: name, ci: run, run: run, attempt: attempt, thread: th, job: jobStep, on: w.machineFor(name)}, body)
}

// jobStep is the name of the jobs that step.
const jobStep = "step"

func (w *world) spawnAs(a *actor, body func(*actor)) *actor {
	a.pid = len(w.actors) + 1
	a.rng, a.chance = rand.New(rand.NewPCG(w.seed, uint64(a.pid))), rand.New(rand.NewPCG(w.seed, uint64(a.pid)<<32))
	a.contained = a.chance.IntN(4) == 0
	if a.chance.IntN(2) == 0 {
		a.skew = time.Duration(a.chance.IntN(600)-300) * time.Second
	}
	a.began = time.Now()
	a.leftBy = map[*actor]bool{}
	for _, b := range w.actors {
		a.leftBy[b] = !w.alive(b)
	}
	a.ctx, a.stop = context.WithCancelCause(context.Background())
	a.eng = w.engine(a)
	w.mu.Lock()
	w.actors = append(w.actors, a)
	w.mu.Unlock()
	go func() {
		body(a)
		w.mu.Lock()
		a.finished = true
		w.mu.Unlock()
	}()
	synctest.Wait()
	return a
}

// live are the actors that still run.
func (w *world) live(jobs bool) []*actor {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []*actor
	for _, a := range w.actors {
		if !a.finished && !a.crashed && (!jobs || a.isJob) {
			out = append(out, a)
		}
	}
	return out
}

// reap ends all goroutines: a bubble must not end while one is left. The dead
// ones find every gate closed and come to their end as their time-outs pass.
func (w *world) reap() {
	for _, a := range w.live(false) {
		w.kill(a)
	}
	for range 100 {
		done := true
		w.mu.Lock()
		for _, a := range w.actors {
			done = done && a.finished
		}
		w.mu.Unlock()
		if done {
			return
		}
		w.pass(10 * time.Second)
	}
}

func (w *world) fail(format string, args ...any) {
	w.tb.Helper()
	w.mu.Lock()
	story := strings.Join(w.story, "\n  ")
	w.mu.Unlock()
	w.reap()
	w.tb.Fatalf("seed %d (atomic %v, %d refs): %s\nreplay: UWF_SIM_SEED=%d go test ./engine/thread -run TestSimulation\nthe story:\n  %s",
		w.seed, w.atomic, w.most, fmt.Sprintf(format, args...), w.seed, story)
}
