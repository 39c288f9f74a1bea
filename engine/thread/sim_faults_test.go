package thread_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/engine/deadline"
	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/engine/step/unpushed"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/outage"
)

// away is a time in which a server answers nobody, or not some actor.
type away struct {
	until time.Time
	after time.Duration // what it asks to be left alone for; 0: it doesn't say
}

func (o away) now() bool { return time.Now().Before(o.until) }

// takeAway begins an outage: for one actor, or now and then for all.
func (w *world) takeAway() {
	o := away{
		until: time.Now().Add(time.Duration(1+w.rng.IntN(600)) * time.Second),
		after: []time.Duration{0, 0, 30 * time.Second, time.Minute, 5 * time.Minute}[w.rng.IntN(5)],
	}
	who, to := "everybody", &w.away
	if live := w.live(false); len(live) > 0 && w.rng.IntN(4) > 0 {
		a := live[w.rng.IntN(len(live))]
		who, to = a.name, &a.away
	}
	w.mu.Lock()
	*to = o
	w.mu.Unlock()
	w.say("-- the server is away for %s, for %s (Retry-After %s)", who, time.Until(o.until), o.after)
}

// contend has others be faster than a job for a while, whatever it commits of a sealed step.
func (w *world) contend() {
	live := w.live(true)
	if len(live) == 0 {
		w.openOne()
		return
	}
	a := live[w.rng.IntN(len(live))]
	d := time.Duration(1+w.rng.IntN(180)) * time.Second
	w.mu.Lock()
	a.outrun = time.Now().Add(d)
	w.mu.Unlock()
	w.say("-- others are faster than %s for %s", a.name, d)
}

// isOutrun reports whether a push is the commit of a sealed step that loses its race.
func (w *world) isOutrun(a *actor, req wire.PushRequest) bool {
	w.mu.Lock()
	outrun := time.Now().Before(a.outrun)
	w.mu.Unlock()
	return outrun && touches(req, "refs/heads/"+gitcas.DefaultBranch) && len(w.onDiskOf(a.on, a.thread)) > 0
}

// leavesSealed reports whether a job says that its step is on disk, for the next one there: it
// may leave its claim beside it.
func (w *world) leavesSealed(a *actor) bool {
	var failed *life.FailedError
	return errors.As(a.err, &failed) && failed.OnDisk != "" && len(w.onDiskOf(a.on, a.thread)) > 0
}

// outageOf is the outage that an actor is in. The dead are in none.
func (w *world) outageOf(a *actor) (away, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if a.crashed {
		return away{}, false
	}
	for _, o := range []away{a.away, w.away} {
		if o.now() {
			return o, true
		}
	}
	return away{}, false
}

// enter waits at the gate of a remote operation. In an outage it fails at once.
func (g *gate) enter(what string) (f fate, began time.Time) {
	began = time.Now()
	g.w.leavesAlone(g.a, what)
	if _, out := g.w.outageOf(g.a); out {
		return drop, began
	}
	f = g.w.wait(g.a, what)
	if _, out := g.w.outageOf(g.a); out && f == proceed {
		f = drop
	}
	return f, began
}

// spareWait is the longest wait of the policy for outages, which it does not begin where
// it would not come to its end.
const spareWait = outage.MostWait * 3 / 2

// unreachable is the failure of an operation that began then. It is noted from when on
// the actor may give up: the policy gives up only at an outage that lasts.
func (g *gate) unreachable(op, what string, began time.Time) error {
	a := g.a
	o, _ := g.w.outageOf(a)
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	a.faulted, a.hurt = true, a.hurt || !a.signaled.IsZero()
	s := &a.reads
	if op == "push" {
		s = &a.pushes
	}
	if s.times == 0 || s.what != what && op == "push" {
		*s = streak{what: what, since: began}
	}
	s.times++
	s.quiet = time.Now().Add(max(o.after, 2*time.Second))
	if time.Since(s.since)+max(spareWait, o.after) >= outage.Patience {
		a.mayGiveUp = true
	}
	return &wire.RemoteError{Op: op, URL: g.URL(), Kind: wire.ErrUnreachable, Detail: errSim.Error(), RetryAfter: o.after}
}

// leavesAlone: a server that is away is pushed the same again when it said, and at most once
// in two seconds. Who was told to end, or gave up, has a last word.
func (w *world) leavesAlone(a *actor, what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := a.pushes
	if a.signaled.IsZero() && !a.mayGiveUp && !a.crashed && s.what == what && time.Now().Before(s.quiet) && w.model.problem == "" {
		w.model.problem = fmt.Sprintf("%s asks (%s) %s before it should again", a.name, what, time.Until(s.quiet))
	}
}

// slowPart is how long one part of a change may take, where it goes out in parts: the time
// for an outage is counted from the first part on.
const slowPart = 5 * time.Minute

// streak is a row of operations that failed.
type streak struct {
	what  string
	since time.Time
	times int
	quiet time.Time // until when it is not to be tried again
}

func (g *gate) answered(s *streak) {
	g.w.mu.Lock()
	*s = streak{}
	g.w.mu.Unlock()
}

// excused: what the actor says of the remote is not held against it.
func (a *actor) excused() bool { return a.mayGiveUp || a.late || a.hurried() }

// hurried: it was told to end, and has not had the remote for long enough since.
func (a *actor) hurried() bool {
	return !a.signaled.IsZero() && (a.hurt || time.Since(a.signaled) > promptly)
}

// promptly is how soon who was told to end has done what is left, where nothing goes wrong.
const promptly = 2 * time.Second

// List shows some refs as they were before a push that lands meanwhile, where it is torn.
func (g *gate) List(ctx context.Context, prefixes ...string) (wire.Listing, error) {
	f, began := g.enter("list")
	if ctx.Err() == nil && f != proceed && f != loseReply && f != tear {
		return wire.Listing{}, g.unreachable("list refs", "list", began)
	}
	g.w.mu.Lock()
	g.a.looked = g.w.opened
	g.w.mu.Unlock()
	l, err := g.Remote.List(ctx, prefixes...)
	if err != nil {
		return l, err
	}
	g.w.mu.Lock()
	landed := g.w.landed // of a torn listing half is no newer
	g.w.mu.Unlock()
	if f == tear && g.w.wait(g.a, "list (the rest)") != crash {
		later, err := g.Remote.List(context.WithoutCancel(ctx), prefixes...)
		if err != nil {
			return later, err
		}
		l = g.w.mix(g.a, l, later)
	}
	g.answered(&g.a.reads)
	if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(p, layout.Claims) }) { // else it sees none
		g.a.listed = landed
	}
	if g.w.guesses {
		l.Time, l.TimeGuessed = g.a.now(), true
	}
	return l, nil
}

// mix takes each ref from one of two listings.
func (w *world) mix(a *actor, before, later wire.Listing) wire.Listing {
	names := slices.Sorted(maps.Keys(before.Refs))
	for name := range later.Refs {
		if _, there := before.Refs[name]; !there {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	out := wire.Listing{Refs: map[string]wire.ID{}, Head: later.Head, Time: later.Time}
	for _, name := range names {
		from := before
		if a.chance.IntN(2) == 0 {
			from = later
		}
		if id, there := from.Refs[name]; there {
			out.Refs[name] = id
		}
	}
	return out
}

func (g *gate) Fetch(ctx context.Context, req wire.FetchRequest) (wire.Objects, error) {
	f, began := g.enter("fetch")
	if ctx.Err() == nil && f != proceed && f != loseReply {
		return nil, g.unreachable("fetch", "fetch", began)
	}
	objs, err := g.Remote.Fetch(ctx, req)
	if ctx.Err() == nil {
		g.answered(&g.a.reads)
	}
	return objs, err
}

func (g *gate) Push(ctx context.Context, req wire.PushRequest) (time.Time, error) {
	names := make([]string, len(req.Updates))
	for i, u := range req.Updates {
		names[i] = shortRef(u)
	}
	what := "push " + strings.Join(names, " ")
	f, began := g.enter(what)
	switch {
	case f == late || f == crash && g.a.chance.IntN(3) == 0:
		g.w.keepForLater(g.a, what, req)
		return time.Time{}, g.unreachable("push", what, began)
	case f == drop || f == crash:
		return time.Time{}, g.unreachable("push", what, began)
	case ctx.Err() != nil:
		return g.Remote.Push(ctx, req)
	case f == proceed && g.w.isOutrun(g.a, req):
		return time.Time{}, &wire.RemoteError{Op: "push", URL: g.URL(), Kind: wire.ErrLostRace, Detail: "others are faster"}
	}
	before := g.w.mem.Refs()
	at, err := g.Remote.Push(context.WithoutCancel(ctx), req)
	var refused *wire.RemoteError
	if errors.As(err, &refused) && errors.Is(err, wire.ErrTooManyRefs) && f == proceed {
		g.w.tooMany(g.a, len(names))
		if g.w.silent {
			refused.MostRefs = 0
		}
	}
	g.w.pushed(g.a, before)
	if state := "refs/heads/" + gitcas.DefaultBranch; g.a.refused > 0 && before[state] != g.w.mem.Refs()[state] {
		_, alive := g.w.entryNow(g.a.thread) // a commit that archives alone notes nothing
		g.w.model.noted = g.w.model.noted || alive
	}
	if f == loseReply || f == crashNow {
		return time.Time{}, g.unreachable("push", what, began)
	}
	if !g.w.whole && (time.Since(began) > slowPart || g.a.pushes.times > 0 && time.Since(g.a.pushes.since) > slowPart) {
		g.a.mayGiveUp = true
	}
	g.answered(&g.a.pushes)
	if g.w.guesses {
		at = g.a.now()
	}
	return at, err
}

// tooMany: a process learns how many refs a push may have, and pushes no more again.
func (w *world) tooMany(a *actor, refs int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if a.refused > 0 && refs >= a.refused {
		w.model.problem = fmt.Sprintf("%s pushes %d refs, and %d were too many before", a.name, refs, a.refused)
	}
	a.refused = refs
}

// latePush is a push that nobody answered, and that is still on its way.
type latePush struct {
	actor *actor
	what  string
	req   wire.PushRequest
}

func (w *world) keepForLater(a *actor, what string, req wire.PushRequest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a.late = true
	req.Updates = slices.Clone(req.Updates)
	w.latePushes = append(w.latePushes, latePush{a, what, req})
}

// landLate lets a push arrive at last, or never.
func (w *world) landLate() {
	if len(w.latePushes) == 0 {
		w.openOne()
		return
	}
	i := w.rng.IntN(len(w.latePushes))
	p := w.latePushes[i]
	w.latePushes = slices.Delete(w.latePushes, i, i+1)
	if w.rng.IntN(5) == 0 {
		return
	}
	before := w.mem.Refs()
	_, err := w.mem.Push(context.Background(), p.req)
	w.say("-- late: %s: %s: %v", p.actor.name, p.what, err)
	w.pushed(p.actor, before)
	w.check() // before somebody else pushes, who would be blamed for it
}

// machine is where actors run that can see each other's processes, and what these keep.
type machine struct {
	name string
	disk memoryDisk
	// lasts: it is there at the end of the story, as a CI job's is not.
	lasts bool
}

// machineFor is a machine for a new actor: one that others use too, or its own.
func (w *world) machineFor(name string) *machine {
	if n := w.rng.IntN(2 * len(w.machines)); n < len(w.machines) {
		return w.machines[n]
	}
	return &machine{name: "host-" + name}
}

// now is the time by an actor's own clock.
func (a *actor) now() time.Time { return time.Now().Add(a.skew) }

// simClock is a machine's clock, which may be off.
type simClock struct {
	deadline.SystemClock
	a *actor
}

func (c simClock) Now() time.Time { return c.a.now() }

// ownerOf is the actor that made a claim; nil: nobody here did.
func (w *world) ownerOf(c gitcas.Claim) *actor {
	var pid, n int
	if _, err := fmt.Sscanf(c.Nonce, "p%d-%d", &pid, &n); err != nil {
		return nil
	}
	return w.actors[pid-1]
}

// alive reports whether an actor's process is there.
func (w *world) alive(a *actor) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return a != nil && !a.crashed && !a.finished
}

// identity is what an actor knows of itself and of others. Some are in a container, whose
// processes have other numbers.
func (w *world) identity(a *actor) lease.Identity {
	id := lease.Identity{
		Ahead: a.ahead(), Killed: a.killed, Run: a.run, CIRun: a.ci, Attempt: a.attempt, Job: a.job, Over: a.over, Host: a.on.name, Boot: "boot", PIDNS: "pids",
		PID: a.pid % 3, Started: int64(a.pid),
		Alive: func(pid int, started int64) bool {
			b := w.actors[started-1]
			return b.on == a.on && b.pid%3 == pid && !a.contained && !b.contained && w.alive(b)
		},
	}
	if a.contained {
		id.PIDNS = fmt.Sprintf("pids of %d", a.pid)
	}
	return id
}

// diesAt is when a claim stops to count, by what it says (docs/protocol.md, "Places"): the simulation's own
// reading of the rule.
func diesAt(c gitcas.Claim, now time.Time, guessed bool) time.Time {
	since, until, renewed := time.UnixMilli(c.Since), time.UnixMilli(c.Until), time.UnixMilli(c.Renewed)
	switch {
	case !guessed && since.Sub(now) > 3*time.Minute, since.Sub(now) > 24*time.Hour, until.Sub(since) > 6*time.Hour:
		return now
	case renewed.After(since) && renewed.Add(20*time.Minute).Before(until):
		return renewed.Add(20 * time.Minute)
	}
	return until
}

// isEarlier reports whether a claim is known to be over to an actor: of an earlier attempt
// of its job, or of a job of its run that is over.
func (a *actor) isEarlier(c gitcas.Claim) bool {
	if c.Ahead {
		return a.ahead() == c.Nonce || a.isOfRun(c.Run) && c.Attempt == a.attempt && slices.Contains(a.killed, c.Job)
	}
	return a.isOfRun(c.Run) && (c.Job == a.job && c.Attempt < a.attempt || c.Attempt == a.attempt && slices.Contains(a.over, c.Job))
}

// isOfRun reports whether a step's run is one of the actor's job.
func (a *actor) isOfRun(run string) bool { return run == a.ci || strings.HasPrefix(run, a.ci+"-") }

// mayTouch: nobody takes or deletes a claim that counts, but who was told to, or knows that
// its job is over. Without atomic pushes a claim outlives the head that it was for.
//
// Where the time is guessed it must have stood for five minutes besides. Nobody alive loses
// it by the clock whose remote was there to renew it at.
func (w *world) mayTouch(a *actor, was gitcas.Claim, since time.Time) bool {
	b, now := w.ownerOf(was), time.Now()
	if was.Ahead {
		if b == a || a.pair != nil && a.pair.nonce == was.Nonce || !w.isUnderWay(was) {
			return true
		}
		b = nil
	}
	_, over := w.model.ended[a.thread]
	switch {
	case over && was.Nonce == forgedNonce: // whoever comes by clears it away, and nobody works under it
		return true
	case a.takes, b != nil && (b == a || !w.alive(b)), a.isEarlier(was), was.Head != w.model.heads[a.thread]:
		return true
	case w.guesses:
		now = a.now()
		if time.Since(since) < lease.Standstill || time.Since(a.began) < lease.Standstill {
			return false
		}
	case b != nil && w.isWorking(b) && !b.mayLose() && now.UnixMilli() < was.Until:
		return false
	}
	return !now.Before(diesAt(was, now, w.guesses))
}

// mayLose: the actor did not get at its remote for long enough to lose its claim.
func (a *actor) mayLose() bool { return a.hurt || a.faulted || a.held > 10*time.Minute }

// forgedNonce tells the claims that no job made.
const forgedNonce = "forged"

// forge puts a claim on the main thread that no job made.
func (w *world) forge() {
	ref := layout.ClaimRef(w.main)
	if _, claimed := w.mem.Refs()[ref]; claimed || w.model.heads[w.main] == "" {
		return
	}
	since, life := time.Now(), life.MaxClaim
	var renewed time.Duration
	switch n := w.rng.IntN(4); {
	case n == 0 && w.guesses && w.rng.IntN(2) == 0: // who guesses the time takes it to be the other's that is right
		since = since.Add(20 * time.Minute)
	case n == 0:
		since = since.AddDate(1, 0, 0)
	case n == 1:
		life = 365 * 24 * time.Hour
	case n == 2:
		renewed = time.Second // once
	}
	w.runs++
	c := gitcas.Claim{
		Nonce: forgedNonce, Run: fmt.Sprintf("forged%d", w.runs), Attempt: 1, Host: "nowhere", PID: 1, Head: w.model.heads[w.main],
		Since: since.UnixMilli(), Renewed: since.Add(renewed).UnixMilli(), Until: since.Add(life).UnixMilli(),
	}
	upd, objs := view.ClaimUpdate(w.main, nil, &c, time.Now())
	_, err := w.mem.Push(context.Background(), wire.PushRequest{Updates: []wire.RefUpdate{upd}, Objects: objs})
	w.landed++
	w.model.moved[w.main] = moved{w.landed, time.Now()}
	w.say("-- somebody forges a claim from %s for %s, renewed after %s: %v", since, life, renewed, err)
}

// simDisk is a machine's disk as one process uses it.
type simDisk struct {
	w *world
	a *actor
}

func (d *simDisk) Path(store string, id gitcas.ThreadID, nonce string) string {
	return d.a.on.disk.Path(store, id, nonce)
}

func (d *simDisk) Write(s unpushed.Step) error {
	f := d.w.wait(d.a, "to disk")
	if f == crash {
		return errSim
	}
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	d.a.kept = true
	return d.a.on.disk.Write(s)
}

func (d *simDisk) Read(store string, id gitcas.ThreadID) (unpushed.Step, error) {
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	if d.a.crashed {
		return unpushed.Step{}, fs.ErrNotExist
	}
	return d.a.on.disk.Read(store, id)
}

func (d *simDisk) Remove(store string, id gitcas.ThreadID, nonce string) error {
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	if d.a.crashed {
		return errSim
	}
	return d.a.on.disk.Remove(store, id, nonce)
}

func (d *simDisk) Clear(store string) error {
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	if d.a.crashed {
		return errSim
	}
	return d.a.on.disk.Clear(store)
}

func (d *simDisk) SetAside(path string) (string, error) {
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	if d.a.crashed {
		return "", errSim
	}
	return d.a.on.disk.SetAside(path)
}

// onDiskOf are the steps that a machine keeps for a thread.
func (w *world) onDiskOf(m *machine, id gitcas.ThreadID) []unpushed.Step {
	v, err := w.look()
	if err != nil {
		w.problem("the store does not read: %v", err)
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []unpushed.Step
	for _, path := range m.disk.paths(v.StoreID(), id) {
		u, err := m.disk.read(path)
		if err != nil {
			w.model.problem = err.Error()
		}
		out = append(out, u)
	}
	return out
}

// isOnDisk reports whether the step of an actor is kept where it was.
func (w *world) isOnDisk(a *actor) bool {
	return slices.ContainsFunc(w.onDiskOf(a.on, a.thread), func(u unpushed.Step) bool {
		return w.ownerOf(gitcas.Claim{Nonce: u.Nonce}) == a
	})
}

// paidTwice: no agent runs for a step that is sealed on the machine, by a job that was over
// when this one began.
func (w *world) paidTwice(a *actor) {
	for _, u := range w.onDiskOf(a.on, a.thread) {
		b := w.ownerOf(gitcas.Claim{Nonce: u.Nonce})
		if b != a && a.leftBy[b] && life.SameThread(u.Entry, w.model.entries[a.thread]) {
			w.problem("%s runs its agent, and the step that %s sealed lies on this machine", a.name, b.name)
		}
	}
}

// hasDied reports whether nothing that the actor does has an effect any more.
func (a *actor) hasDied(w *world) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return a.crashed
}

// rescue looks after a job that is over, as the run's own rescue job does: it brings in what
// that had sealed, and frees its claim.
func (w *world) rescue() {
	if over := w.overPairs(); len(over) > 0 && w.rng.IntN(2) == 0 {
		p := over[w.rng.IntN(len(over))]
		p.rescued = true
		w.rescuePair(p)
		return
	}
	var died []*actor
	for _, a := range w.actors {
		if a.isJob && a.job == jobStep && !a.rescued && !w.alive(a) && !slices.ContainsFunc(w.actors, func(b *actor) bool {
			return b.ci == a.ci && b.attempt >= a.attempt && w.alive(b)
		}) {
			died = append(died, a)
		}
	}
	if len(died) == 0 {
		w.openOne()
		return
	}
	dead := died[w.rng.IntN(len(died))]
	dead.rescued = true
	name := fmt.Sprintf("%s-rescue", dead.name)
	w.say("%s starts", name)
	w.spawnAs(&actor{name: name, ci: dead.ci, run: dead.ci, attempt: dead.attempt, job: "rescue", over: []string{jobStep}, killed: killed(dead), on: dead.on, thread: dead.thread, isJob: true}, func(a *actor) {
		var in bool
		a.res, in, a.err = a.eng.BringIn(a.ctx, step.Request{Thread: a.thread, Deliver: w.delivers})
		if a.err == nil && !in {
			var v *gitcas.View
			var left thread.Remains
			if v, a.err = a.eng.Store.Load(a.ctx, a.thread); a.err != nil {
				return
			}
			if _, alive := v.Entry(a.thread); alive {
				left, a.err = a.eng.FindRemains(a.ctx, v, a.thread, func(run string, attempt int) bool { return a.isOfRun(run) && attempt <= a.attempt })
			}
			if left.Claim && a.err == nil {
				_, a.err = a.eng.FreeClaim(a.ctx, v, a.thread)
				if held, _ := v.FindClaim(a.thread); a.err == nil && !a.excused() && !a.hasDied(w) && a.signaled.IsZero() && a.isEarlier(held.Claim) && w.mem.Refs()[layout.ClaimRef(a.thread)] == held.ID {
					w.problem("%s left the claim of %s, which is over", a.name, held.Run)
				}
			}
		}
		w.rescueOver(a, in)
	})
}

func (w *world) rescueOver(a *actor, in bool) {
	if a.crashed {
		return
	}
	w.say("%s: brought in %t, exit %d: %v", a.name, in, life.KindOf(a.err), a.err)
	w.keptOut(a)
	switch {
	case errors.Is(a.err, wire.ErrUnreachable) && a.signaled.IsZero() && !a.excused():
		w.problem("%s did not wait for the remote: %v", a.name, a.err)
	case !a.excused() && w.claims(a) && !w.leavesSealed(a):
		w.problem("%s is over and its claim is left: %v", a.name, a.err)
	}
}

// keptOut: nobody is kept out by a claim whose job they know to be over, or that is over by
// what it says. A clock that is guessed may be wrong.
func (w *world) keptOut(a *actor) {
	var claimed *life.ClaimedError
	if !errors.As(a.err, &claimed) {
		return
	}
	c := claimed.Claim
	b := w.ownerOf(c)
	switch {
	case a.isEarlier(c):
		w.problem("%s is kept out by the claim of %s.%d, which it knows to be over", a.name, c.Run, c.Attempt)
	case b != nil && !c.Ahead && b.on == a.on && a.leftBy[b] && !a.contained && !b.contained:
		w.problem("%s is kept out by the claim of %s, whose process is gone from its machine", a.name, b.name)
	case !w.guesses && (b == nil || b.on != a.on) && a.began.After(diesAt(c, a.began, false)):
		w.problem("%s is kept out by the claim of %s.%d, which was over when it began", a.name, c.Run, c.Attempt)
	}
}
