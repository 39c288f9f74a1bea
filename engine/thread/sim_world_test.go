package thread

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

	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/wire"
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
	run     string
	attempt int
	claims  int // how many it made
	eng     *Engine
	ctx     context.Context
	stop    context.CancelCauseFunc
	rng     *rand.Rand
	isJob   bool
	alone   bool // what it does leaves other jobs' claims alone
	heeds   bool // it leaves claims alone that count
	thread  gitcas.ThreadID

	crashed  bool
	signaled bool
	faulted  bool // a remote operation failed under it
	finished bool
	res      Result
	err      error
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
	mem    *wire.Memory
	atomic bool
	// delivers says that jobs deliver what has ended.
	delivers bool

	direct  *gitcas.Store // without a gate
	looking sync.Mutex
	seen    *gitcas.View

	mu      sync.Mutex
	waiting []*request
	actors  []*actor
	orders  int
	story   []string

	main, other gitcas.ThreadID
	forks       []gitcas.ThreadID
	chaos       atomic.Bool
	runs        int
	people      int
	model       model
}

func newWorld(tb testing.TB, seed uint64) *world {
	rng := rand.New(rand.NewPCG(seed, 0x5eed))
	w := &world{
		tb: tb, seed: seed, rng: rng, atomic: rng.IntN(3) > 0, delivers: rng.IntN(3) > 0,
		main: "01JD0000000000000000000001", other: "01JD0000000000000000000002",
	}
	w.mem = wire.NewMemory(wire.MemoryOptions{Atomic: w.atomic})
	w.direct = w.fresh()
	w.chaos.Store(true)
	w.model.init()
	return w
}

// say notes an event for the story that a failing seed prints.
func (w *world) say(format string, args ...any) {
	w.mu.Lock()
	w.story = append(w.story, fmt.Sprintf(format, args...))
	w.mu.Unlock()
}

// wait blocks a goroutine at a gate until the scheduler opens it.
func (w *world) wait(a *actor, what string, agent bool) fate {
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
		return <-q.grant
	}
	select {
	case f := <-q.grant:
		return f
	case <-a.ctx.Done():
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
	if f == crash || f == crashNow {
		w.kill(q.actor)
	}
	w.say("%s: %s%s", q.actor.name, q.what, map[fate]string{
		loseReply: " (reply lost)", drop: " (never arrives)", crash: " (dies before)", crashNow: " (dies after)",
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

func (g *gate) unreachable(op string) error {
	g.a.faulted = true
	return &wire.Error{Op: op, URL: g.URL(), Kind: wire.ErrUnreachable, Detail: errSim.Error()}
}

func (g *gate) List(ctx context.Context, prefixes ...string) (wire.Listing, error) {
	if f := g.w.wait(g.a, "list", false); f != proceed && f != loseReply || ctx.Err() != nil {
		return wire.Listing{}, g.unreachable("list refs")
	}
	return g.Remote.List(ctx, prefixes...)
}

func (g *gate) Fetch(ctx context.Context, req wire.FetchRequest) (wire.Objects, error) {
	if f := g.w.wait(g.a, "fetch", false); f != proceed && f != loseReply || ctx.Err() != nil {
		return nil, g.unreachable("fetch")
	}
	return g.Remote.Fetch(ctx, req)
}

func (g *gate) Push(ctx context.Context, req wire.PushRequest) (time.Time, error) {
	names := make([]string, len(req.Updates))
	for i, u := range req.Updates {
		names[i] = shortRef(u)
	}
	f := g.w.wait(g.a, "push "+strings.Join(names, " "), false)
	if f == drop || f == crash || ctx.Err() != nil {
		return time.Time{}, g.unreachable("push")
	}
	before := g.w.mem.Refs()
	at, err := g.Remote.Push(context.WithoutCancel(ctx), req)
	g.w.pushed(g.a, before)
	if f == loseReply || f == crashNow {
		return time.Time{}, g.unreachable("push")
	}
	return at, err
}

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
		Now: time.Now, Jitter: a.rng.Float64, RetryFor: time.Minute, Rand: zeroReader{},
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
	a := &actor{name: name, run: run, attempt: attempt, thread: th, rng: rand.New(rand.NewPCG(w.seed, uint64(len(w.actors)+1)))}
	a.ctx, a.stop = context.WithCancelCause(context.Background())
	a.eng = w.engine(a)
	w.actors = append(w.actors, a)
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
	w.tb.Fatalf("seed %d (atomic %v): %s\nreplay: UWF_SIM_SEED=%d go test ./engine/thread -run TestSimulation\nthe story:\n  %s",
		w.seed, w.atomic, fmt.Sprintf(format, args...), w.seed, story)
}
