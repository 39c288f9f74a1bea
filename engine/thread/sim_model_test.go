package thread_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// model is what must be true, as seen from outside the protocol.
type model struct {
	tip       wire.ID
	chains    map[gitcas.ThreadID][]node.Hash // as last seen
	ended     map[gitcas.ThreadID]gitcas.Ended
	heads     map[gitcas.ThreadID]node.Hash
	work      map[string]wire.ID     // work branches as last seen
	byHand    map[wire.ID]bool       // people's commits
	produced  map[string][]task.Task // "run.attempt" → the tasks that its jobs finished
	answers   map[string][]string    // thread and head → answers given on it, in order
	heardOf   map[node.Hash]bool     // heads that the main thread ever had
	poked     map[node.Hash]string   // steps that were taken back → who made them
	byPoked   map[string]bool        // who made a step that was taken back
	entries   map[gitcas.ThreadID]gitcas.Entry
	epoch     int                       // how often a thread that waited was let go on
	mended    bool                      // a person put files together by hand
	pusher    *actor                    // who pushed last
	committed map[node.Hash]bool        // steps in chains
	brought   map[string]int            // "run.attempt" of steps that others brought in: how many gates had been opened
	moved     map[gitcas.ThreadID]moved // when its claim was last put there, moved or deleted
	tries     map[string][]string       // a head and what people said since → the jobs whose agents ran
	everOver  map[gitcas.ThreadID]bool  // it was off the tip at least once
	delivered map[node.Hash]int         // end heads → how often their end was made known
	noted     bool                      // who had to push fewer refs has made a commit since
	problem   string
}

// moved is when something changed: after how many pushes, and by the clock.
type moved struct {
	push int
	at   time.Time
}

func (m *model) init() {
	m.chains = map[gitcas.ThreadID][]node.Hash{}
	m.ended = map[gitcas.ThreadID]gitcas.Ended{}
	m.heads = map[gitcas.ThreadID]node.Hash{}
	m.work = map[string]wire.ID{}
	m.byHand = map[wire.ID]bool{}
	m.produced = map[string][]task.Task{}
	m.answers = map[string][]string{}
	m.heardOf = map[node.Hash]bool{}
	m.poked = map[node.Hash]string{}
	m.byPoked = map[string]bool{}
	m.entries = map[gitcas.ThreadID]gitcas.Entry{}
	m.committed = map[node.Hash]bool{}
	m.brought = map[string]int{}
	m.delivered = map[node.Hash]int{}
	m.moved = map[gitcas.ThreadID]moved{}
	m.tries = map[string][]string{}
	m.everOver = map[gitcas.ThreadID]bool{}
}

// entry reads a thread's entry without a gate.
func (w *world) entry(id gitcas.ThreadID) (gitcas.Entry, bool) {
	v, err := w.look(id)
	if err != nil {
		w.fail("the store does not read: %v", err)
	}
	return v.Entry(id)
}

// entryNow is entry for goroutines that are not the test's own.
func (w *world) entryNow(id gitcas.ThreadID) (gitcas.Entry, bool) {
	v, err := w.look(id)
	if err != nil {
		w.problem("the store does not read: %v", err)
		return gitcas.Entry{}, false
	}
	return v.Entry(id)
}

// check tests the invariants that hold at every moment.
func (w *world) check() {
	w.mu.Lock()
	problem := w.model.problem
	w.mu.Unlock()
	if problem != "" {
		w.fail("%s", problem)
	}
	w.checkWorkBranch()
	w.checkWorkers()
	tip := w.mem.Refs()["refs/heads/"+gitcas.DefaultBranch]
	if tip.IsZero() || tip == w.model.tip {
		return
	}
	if !w.model.tip.IsZero() && !w.reaches(tip, w.model.tip) {
		w.fail("the state branch was rewritten: %s does not contain %s", tip, w.model.tip)
	}
	w.model.tip = tip
	ids := append([]gitcas.ThreadID{w.main, w.other}, w.forks...)
	v, err := w.look(ids...)
	if err != nil {
		w.fail("the store does not read: %v", err)
	}
	for _, id := range ids {
		w.checkThread(v, id)
	}
}

func (w *world) checkThread(v *gitcas.View, id gitcas.ThreadID) {
	entry, alive := v.Entry(id)
	was, gone := w.model.ended[id]
	switch {
	case gone && !alive:
		return
	case gone && was.Reason != gitcas.ReasonEnded:
		w.fail("thread %s was %s and lives again", id, was.Reason)
	case gone:
		delete(w.model.ended, id) // resumed
	}
	if !alive {
		w.checkEnd(v, id)
		return
	}
	chain, err := v.ReadChain(context.Background(), id)
	if err != nil {
		w.fail("thread %s: %v", id, err)
	}
	w.checkFork(id, entry)
	w.checkPoke(v, id, entry, chain)
	if len(chain.Steps) > len(w.model.chains[id]) {
		w.leavesOldClaim(id, entry)
	}
	w.extend(id, hashes(chain))
	w.model.heads[id] = entry.Head
	if id == w.main {
		w.model.heardOf[entry.Head] = true
	}
	if last, ok := w.model.entries[id]; ok && waits(last) && !waits(entry) {
		w.model.epoch++
		if w.model.pusher.isJob {
			w.fail("%s let thread %s go on, which was to wait", w.model.pusher.name, id)
		}
	}
	if was := w.model.entries[id]; entry.Status == gitcas.StatusSuspended && was.Status != entry.Status {
		w.leavesClaim(id, "suspended")
	}
	if was := w.model.entries[id]; was.Comment != 0 && entry.Comment == 0 || was.PR != 0 && entry.PR == 0 {
		w.fail("thread %s lost its comment or pull request: %+v", id, entry)
	}
	w.model.entries[id] = entry
	w.checkSteps(id, chain)
	w.checkCounts(v, id, chain)
	w.checkWork(entry)
	if entry.Next != nil && entry.Next.Answer != "" {
		n, err := v.In(context.Background(), gitcas.Place{Thread: id, Of: entry.Next.Answer}).Get(entry.Next.Answer)
		if err != nil {
			w.fail("the answer of thread %s: %v", id, err)
		}
		at := string(id) + string(entry.Head)
		a, err := record.ParseAnswer(n)
		if err != nil {
			w.fail("the answer of thread %s: %v", id, err)
		}
		w.model.answers[at] = nil
		for _, word := range a.Words {
			w.model.answers[at] = append(w.model.answers[at], word.Text)
		}
	}
}

// leavesClaim: who makes a thread wait or end deletes its claim in the same push, whoever's
// it is, if it was there to be seen.
func (w *world) leavesClaim(id gitcas.ThreadID, what string) {
	_, there := w.mem.Refs()[layout.ClaimRef(id)]
	if p := w.model.pusher; w.whole && there && p.thread == id && w.model.moved[id].push < p.listed && !p.late {
		w.fail("%s made that thread %s is %s, and left its claim", p.name, id, what)
	}
}

// leavesOldClaim: a step takes the claim that it was made under away.
func (w *world) leavesOldClaim(id gitcas.ThreadID, entry gitcas.Entry) {
	if held, there := w.mem.Refs()[layout.ClaimRef(id)]; w.whole && there && w.claimOf(held).Head != entry.Head {
		w.fail("thread %s has a new step, and the claim of the one before", id)
	}
}

// waits: nobody may begin a step.
func waits(e gitcas.Entry) bool { return e.Status != gitcas.StatusActive || e.Pause != nil }

// checkFork: a fork begins where the main thread once was. That is the chain before
// it as well: its hash says so.
func (w *world) checkFork(id gitcas.ThreadID, entry gitcas.Entry) {
	if _, known := w.model.entries[id]; known || !slices.Contains(w.forks, id) {
		return
	}
	if !w.model.heardOf[entry.Head] {
		w.fail("fork %s begins at %s, where the main thread never was", id, entry.Head)
	}
	w.model.chains[id] = nil
	v, err := w.look(id)
	if err != nil {
		w.fail("fork %s: %v", id, err)
	}
	chain, err := v.ReadChain(context.Background(), id)
	if err != nil {
		w.fail("fork %s: %v", id, err)
	}
	w.model.chains[id] = hashes(chain)
}

// checkPoke: the last step, and no other, goes off the chain; it is still there to
// be read, the step after it names it, and it never comes back.
func (w *world) checkPoke(v *gitcas.View, id gitcas.ThreadID, entry gitcas.Entry, c gitcas.Chain) {
	was := w.model.chains[id]
	if n := len(was); n > 0 && len(c.Steps) == n-1 {
		last := was[n-1]
		if entry.Next == nil || entry.Next.Poked != last {
			w.fail("thread %s lost its step %d, %s: %+v", id, n, last, entry.Next)
		}
		step, err := record.ParseStep(w.node(v, gitcas.Place{Thread: id}, last))
		if err != nil {
			w.fail("the step %s that was taken back: %v", last, err)
		}
		name := fmt.Sprintf("%s.%d", step.Run.ID, step.Run.Attempt)
		if id == w.main {
			w.model.poked[last] = name
		}
		w.model.byPoked[name] = true
		w.model.chains[id] = was[:n-1]
	}
	if last, ok := w.model.entries[id]; ok && last.Next != nil && last.Next.Poked != "" && len(c.Steps) > len(w.model.chains[id]) {
		if step := c.Steps[len(c.Steps)-1]; !slices.Contains(step.PreviousAttempts, last.Next.Poked) {
			w.fail("step %s does not name %s, which it does again: %v", step.Hash, last.Next.Poked, step.PreviousAttempts)
		}
	}
	for _, s := range c.Steps {
		if _, poked := w.model.poked[s.Hash]; poked && id == w.main {
			w.fail("step %s was taken back and is in the chain", s.Hash)
		}
		for _, h := range s.PreviousAttempts {
			w.node(v, gitcas.Place{Thread: id}, h)
		}
	}
}

func (w *world) node(v *gitcas.View, at gitcas.Place, h node.Hash) node.Node {
	n, err := v.In(context.Background(), at).Get(h)
	if err != nil {
		w.fail("node %s: %v", h, err)
	}
	return n
}

// extend: a chain only ever grows, and by one step at a time.
func (w *world) extend(id gitcas.ThreadID, now []node.Hash) {
	was := w.model.chains[id]
	if len(now) < len(was) || len(now) > len(was)+1 {
		w.fail("thread %s had %d steps and has %d", id, len(was), len(now))
	}
	for i := range was {
		if was[i] != now[i] {
			w.fail("thread %s: step %d was %s and is %s", id, i+1, was[i], now[i])
		}
	}
	w.model.chains[id] = now
}

func hashes(c gitcas.Chain) []node.Hash {
	out := make([]node.Hash, len(c.Steps))
	for i, s := range c.Steps {
		out[i] = s.Hash
	}
	return out
}

// checkSteps: each job is in the chain at most once, each step was finished by
// the run that it names, and one that follows an answer has seen it.
func (w *world) checkSteps(id gitcas.ThreadID, c gitcas.Chain) {
	seen := map[string]int{}
	prev := c.StartHash
	for seenAt, s := range c.Steps {
		name := fmt.Sprintf("%s.%d", s.Run.ID, s.Run.Attempt)
		made := w.model.produced[name]
		if seen[name]++; seen[name] > len(made) {
			w.fail("%s is in the chain %d times, and its jobs finished %d steps", name, seen[name], len(made))
		}
		if p := w.model.pusher; !w.model.committed[s.Hash] && (p.who() != name || p.made == nil) {
			w.model.brought[name] = w.opened
		}
		w.model.committed[s.Hash] = true
		if !slices.ContainsFunc(made, func(t task.Task) bool { return t.Role == s.Role && t.Step == seenAt+1 }) {
			w.fail("step %s (%s) was never finished by %s", s.Hash, s.Role, name)
		}
		for _, said := range w.model.answers[string(id)+string(prev)] {
			if !strings.Contains(s.EdgePrompt, said) {
				w.fail("step %s by %s was committed without having seen %q; it saw %q", s.Hash, name, said, s.EdgePrompt)
			}
		}
		prev = s.Hash
	}
}

// checkCounts: the last step's counts are what the records of the chain add up to.
func (w *world) checkCounts(v *gitcas.View, id gitcas.ThreadID, c gitcas.Chain) {
	if len(c.Steps) == 0 {
		return
	}
	var want, got string
	roles, tries, tokens := map[string]int{}, map[string]int{}, int64(0)
	var count func(s record.Step)
	count = func(s record.Step) {
		tokens += s.Usage.InputTokens + s.Usage.OutputTokens
		for _, h := range s.PreviousAttempts {
			tried, err := record.ParseStep(w.node(v, gitcas.Place{Thread: id}, h))
			if err != nil {
				w.fail("try %s of thread %s: %v", h, id, err)
			}
			tries[tried.Role]++
			count(tried)
		}
	}
	for _, s := range c.Steps {
		roles[s.Role]++
		count(s.Step)
	}
	want = fmt.Sprint(len(c.Steps), tokens, roles, tries)
	n := c.Steps[len(c.Steps)-1].Counts
	saidRoles, saidTries := map[string]int{}, map[string]int{}
	for _, r := range n.Roles {
		if r.Steps > 0 {
			saidRoles[r.Role] = r.Steps
		}
		if r.Tries > 0 {
			saidTries[r.Role] = r.Tries
		}
	}
	if got = fmt.Sprint(n.Done.Steps, n.Done.Tokens+n.Tries.Tokens, saidRoles, saidTries); got != want {
		w.fail("thread %s: its head counts %s, and its records are %s", id, got, want)
	}
}

// checkWork: the recorded commit is on a ref.
func (w *world) checkWork(entry gitcas.Entry) {
	if entry.Work.Commit == "" {
		return
	}
	id := plumbing.NewHash(entry.Work.Commit)
	for name, tip := range w.mem.Refs() {
		if strings.HasPrefix(name, "refs/uwf/attempts/") || name == "refs/heads/"+entry.Work.Branch {
			if w.reaches(tip, id) {
				return
			}
		}
	}
	w.fail("the recorded work commit %s is on no ref", id)
}

// checkWorkBranch: work branches only ever move forward.
func (w *world) checkWorkBranch() {
	for name, tip := range w.mem.Refs() {
		if !strings.HasPrefix(name, "refs/heads/uwf/") {
			continue
		}
		if was, ok := w.model.work[name]; ok && was != tip && !w.reaches(tip, was) {
			w.fail("%s was rewritten: %s does not contain %s", name, tip, was)
		}
		w.model.work[name] = tip
	}
}

func (w *world) checkEnd(v *gitcas.View, id gitcas.ThreadID) {
	if len(w.model.chains[id]) == 0 && w.model.heads[id] == "" {
		return // not started yet
	}
	ended, ok, err := v.FindEnded(context.Background(), id)
	if err != nil || !ok {
		w.fail("thread %s is gone, and not among the ended ones: %v", id, err)
	}
	w.extend(id, ended.Steps)
	w.model.ended[id] = ended
	w.leavesClaim(id, ended.Reason)
	w.model.everOver[id] = true
	past, err := v.LoadEnded(context.Background(), ended)
	if err != nil {
		w.fail("ended thread %s: %v", id, err)
	}
	chain, err := past.ReadChain(context.Background(), id)
	if err != nil {
		w.fail("ended thread %s: %v", id, err)
	}
	if ended.Reason == gitcas.ReasonEnded {
		w.checkDelivered(id, ended)
		w.checkSteps(id, chain)
		if n := len(chain.Steps); n == 0 || chain.Steps[n-1].Role != "b" {
			w.fail("thread %s ended without an approval", id)
		}
	}
	w.checkWork(gitcas.Entry{Work: ended.Work})
}

// reaches reports whether commit anc is reachable from tip.
func (w *world) reaches(tip, anc wire.ID) bool {
	seen := map[wire.ID]bool{}
	for queue := []wire.ID{tip}; len(queue) > 0; {
		id := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if id == anc {
			return true
		}
		if seen[id] {
			continue
		}
		seen[id] = true
		if c, err := w.commitOf(id); err == nil {
			queue = append(queue, c.Parents...)
		}
	}
	return false
}

// pushed looks at every push that arrived: who may touch a claim.
func (w *world) pushed(a *actor, before map[string]wire.ID) {
	after := w.mem.Refs()
	w.mu.Lock()
	w.model.pusher = a
	w.mu.Unlock()
	ref := layout.ClaimRef(a.thread)
	was, had := before[ref]
	now, has := after[ref]
	w.landed++
	if was == now {
		return
	}
	stood := w.model.moved[a.thread]
	w.model.moved[a.thread] = moved{w.landed, time.Now()}
	w.renews(a, was, now)
	if had && (!has || w.claimOf(was).Nonce != w.claimOf(now).Nonce) && (a.isJob || a.alone || a.heeds) && !w.mayTouch(a, w.claimOf(was), stood.at) {
		c := w.claimOf(was)
		w.problem("%s takes away the claim of %s.%d (%s), which counts", a.name, c.Run, c.Attempt, c.Nonce)
	}
	if has {
		if c := w.claimOf(now); w.ownerOf(c) == a && (!had || w.claimOf(was).Nonce != c.Nonce) {
			entry, _ := w.entryNow(a.thread)
			a.claimHead = string(entry.Head)
			a.claimPaused, a.claimEpoch = waits(entry), w.model.epoch
		}
	}
	if had && !has && a.job == "rescue" && w.ownerOf(w.claimOf(was)) != a {
		c := w.claimOf(was)
		entry, alive := w.entryNow(a.thread)
		if ref := layout.AttemptRef(a.thread, c.Run, c.Attempt); w.whole && alive && entry.Head == c.Head && c.For == "" && !slices.Contains(entry.Attempts, ref) {
			w.problem("%s frees the thread of %s.%d, which died, and does not count it", a.name, c.Run, c.Attempt)
		}
	}
	// On a thread that has ended, whoever comes by clears a dead claim away; also when
	// it is resumed just then. A re-run clears away what its earlier attempts left.
	if _, over := w.model.ended[a.thread]; had && !has && (a.isJob || a.alone) && !over {
		c := w.claimOf(was)
		cleared := (w.model.everOver[a.thread] || a.isOfRun(c.Run) && c.Job == a.job) && !time.Now().Before(diesAt(c, time.Now(), w.guesses))
		if b := w.ownerOf(c); !cleared && !c.Ahead && !a.takes && (!a.isOfRun(c.Run) || c.Attempt > a.attempt) && (b == nil || w.alive(b) || b.on != a.on) {
			w.problem("%s deleted the claim of %s.%d", a.name, c.Run, c.Attempt)
		}
	}
}

func (w *world) claimOf(id wire.ID) gitcas.Claim {
	c, err := w.commitOf(id)
	if err != nil {
		w.problem("claim %s: %v", id, err)
	}
	var claim gitcas.Claim
	if err := json.Unmarshal([]byte(c.Message), &claim); err != nil {
		w.problem("claim %s: %v", id, err)
	}
	return claim
}

// agentStarts: an agent is only paid for the head that its claim was made on.
func (w *world) agentStarts(a *actor, t task.Task) {
	head := t.Start
	if t.Prev != nil {
		head = *t.Prev
	}
	if a.claimHead != "" && string(head) != a.claimHead {
		w.problem("%s runs its agent on head %s, but claimed the thread at %s", a.name, head, a.claimHead)
	}
	if a.expect != "" && head != a.expect {
		w.problem("%s runs its agent on head %s, and was told to step %s", a.name, head, a.expect)
	}
	if !w.holds(a) && w.model.moved[a.thread].push < a.listed {
		w.problem("%s runs its agent, and has seen that its claim is gone", a.name)
	}
	a.ran = true
	w.paidTwice(a)
	w.triesAgain(a, t)
	if e := w.model.entries[a.thread]; string(e.Head) == string(head) && e.Next != nil && len(e.Attempts)-e.Next.Forgiven >= 3 {
		w.problem("%s runs its agent, and %d attempts failed", a.name, len(e.Attempts))
	}
	if a.claimPaused && a.claimEpoch == w.model.epoch {
		w.problem("%s runs its agent, but claimed the thread while it was to wait", a.name)
	}
}

// triesAgain: three jobs at most try one step, unless a person says so: those that died count.
// Of one whose remote was away, or that was told to end, nobody may have heard.
func (w *world) triesAgain(a *actor, t task.Task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := fmt.Sprintf("%s %v", t.Entry.Head, t.Entry.Next)
	a.tried = at
	n := 0
	for _, name := range w.model.tries[at] {
		heard := !slices.ContainsFunc(w.actors, func(b *actor) bool { return b.tried == at && b.who() == name && (b.excused() || b.crashed && b.hurt) })
		if heard && name != a.who() {
			n++
		}
	}
	if !slices.Contains(w.model.tries[at], a.who()) {
		w.model.tries[at] = append(w.model.tries[at], a.who())
	}
	if n >= life.MaxAttempts && w.model.problem == "" {
		w.model.problem = fmt.Sprintf("%s runs its agent, and these did in vain: %v", a.name, w.model.tries[at])
	}
}

// renews looks at a claim that an actor put somewhere: it is only renewed while an agent
// works, and not before it is time to.
func (w *world) renews(a *actor, was, now wire.ID) {
	if now.IsZero() {
		return
	}
	c := w.claimOf(now)
	if w.ownerOf(c) != a {
		return
	}
	w.mu.Lock()
	a.held = time.Since(time.UnixMilli(max(c.Since, c.Renewed))) // its reads took so long
	w.mu.Unlock()
	if !was.IsZero() && w.claimOf(was).Nonce == c.Nonce && a.isJob && c.For == "" && !w.isWorking(a) && !a.late {
		w.problem("%s renews its claim, and no agent of it works", a.name)
	}
}

// checkWorkers: an agent whose claim is gone, or whose thread was made to wait, changed or
// ended, is stopped as soon as its job has had its remote for two looks.
func (w *world) checkWorkers() {
	for _, a := range w.live(true) {
		w.mu.Lock()
		working, lost := a.working, a.lost
		w.mu.Unlock()
		if working == nil {
			continue
		}
		entry := w.model.entries[a.thread]
		_, over := w.model.ended[a.thread]
		switch {
		case !over && w.holds(a) && entry.Head == working.Entry.Head && entry.Status == gitcas.StatusActive && reflect.DeepEqual(entry.Next, working.Entry.Next):
			lost = time.Time{}
		case lost.IsZero() || w.isHeldUp(a):
			lost = time.Now()
		case time.Since(lost) > 2*2*lease.WatchEvery+time.Second:
			w.fail("%s has its agent work on, %s after it lost the thread", a.name, time.Since(lost))
		}
		w.mu.Lock()
		a.lost = lost
		w.mu.Unlock()
	}
}

// isWorking reports whether an actor's agent is at work.
func (w *world) isWorking(a *actor) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return a.working != nil
}

// isHeldUp reports whether an actor waits for its remote.
func (w *world) isHeldUp(a *actor) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return a.reads.times > 0 || a.pushes.times > 0 || slices.ContainsFunc(w.waiting, func(q *request) bool { return q.actor == a && !q.agent })
}

// holds reports whether the claim that is there is the actor's.
func (w *world) holds(a *actor) bool {
	id, ok := w.mem.Refs()[layout.ClaimRef(a.thread)]
	if !ok {
		return false
	}
	c := w.claimOf(id)
	return w.ownerOf(c) == a || a.pair != nil && a.pair.nonce == c.Nonce
}

// agentDone notes finished work: from here on it must not be lost.
func (w *world) agentDone(a *actor, t task.Task) {
	w.mu.Lock()
	w.model.produced[a.who()] = append(w.model.produced[a.who()], t)
	a.made = &t
	w.mu.Unlock()
}

// who is the actor as it is named in what it makes.
func (a *actor) who() string { return fmt.Sprintf("%s.%d", a.run, a.attempt) }

// stepped looks at what a job says of itself. It runs on the job's goroutine,
// before the scheduler goes on.
func (w *world) stepped(a *actor) {
	if a.crashed {
		return
	}
	w.say("%s: exit %d: %v", a.name, life.KindOf(a.err), a.err)
	w.keptOut(a)
	inChain := w.inChain(a)
	_, poked := w.model.byPoked[a.who()]
	code := life.KindOf(a.err)
	away := errors.Is(a.err, wire.ErrUnreachable)
	var failed *life.FailedError
	unsure := errors.As(a.err, &failed) && failed.Unsure
	var moved *life.DeedError
	errors.As(a.err, &moved)
	switch {
	case a.res.Again && (a.made != nil && !inChain || w.model.poked[a.res.Head] == "" && !slices.Contains(w.model.chains[a.thread], a.res.Head)):
		w.problem("%s says that its run had done the step before: %+v", a.name, a.res)
	case a.res.Held != nil && (a.err != nil || a.res.Done || a.res.Suspended != nil):
		w.problem("%s has claimed a next step that it does not take: %v", a.name, a.err)
	case failed != nil && failed.Attempt != "" && failed.Phase == "commit" && errors.Is(a.err, wire.ErrLostRace):
		w.problem("%s lost its races, and its step, which is paid for, became an attempt: %v", a.name, a.err)
	case failed != nil && a.ran && !unsure && !a.excused() && failed.Attempt == "" && !w.leavesSealed(a):
		w.problem("%s kept nothing of what failed: %v", a.name, a.err)
	case failed != nil && failed.Attempt != "" && !w.isThere(a, failed.Attempt):
		w.problem("%s says that its attempt is kept in %s, which is not there", a.name, failed.Attempt)
	case moved != nil && moved.Kept != "" && !w.isThere(a, moved.Kept):
		w.problem("%s says that its attempt is kept in %s, which is not there", a.name, moved.Kept)
	case away && a.signaled.IsZero() && !a.excused():
		w.problem("%s did not wait for the remote: %v", a.name, a.err)
	case !a.excused() && w.claims(a) && !w.leavesSealed(a):
		w.problem("%s is over and its claim is left: %v", a.name, a.err)
	case a.err == nil && a.made != nil && !inChain && !poked:
		w.problem("%s says that it advanced the thread, but its step is not in the chain", a.name)
	case a.err != nil && code != life.KindSuspended && inChain && !unsure && a.looked >= w.model.brought[a.who()]:
		w.problem("%s says %q (exit %d), but its step is in the chain", a.name, a.err, code)
	case a.err == nil && a.made != nil && w.isOnDisk(a):
		w.problem("%s advanced the thread, and its step is left on disk", a.name)
	case a.made != nil && !w.isSafe(a):
		w.problem("%s finished its work and it is on no ref, nor on disk: %v", a.name, a.err)
	}
}

// isSafe reports whether what an actor finished is somewhere.
func (w *world) isSafe(a *actor) bool {
	_, poked := w.model.byPoked[a.who()]
	return w.inChain(a) || poked || w.gone(a) || w.hasAttempt(a) || w.isOnDisk(a)
}

// checkKept: nothing that was ever sealed on a machine which is still there is lost, and
// nothing is left there of what the thread has.
func (w *world) checkKept() {
	for _, m := range w.machines {
		for _, u := range w.onDiskOf(m, w.main) {
			w.fail("the step that %s sealed is left on %s", u.Nonce, m.name)
		}
	}
	for _, a := range w.actors {
		if a.kept && a.thread == w.main && (a.on.lasts || a.rescued) && !w.isSafe(a) {
			w.fail("%s sealed its step on %s, and it is lost", a.name, a.on.name)
		}
	}
}

// claims reports whether a claim of the actor is there, but for the one that it has for its
// next step.
func (w *world) claims(a *actor) bool {
	id, ok := w.mem.Refs()[layout.ClaimRef(a.thread)]
	if !ok {
		return false
	}
	c := w.claimOf(id)
	return w.ownerOf(c) == a && (a.res.Held == nil || a.res.Held.Nonce() != c.Nonce)
}

// released looks at a job that takes no next step after all.
func (w *world) released(a *actor) {
	if a.res.Held = nil; !a.crashed && !a.excused() && w.claims(a) {
		w.problem("%s is over between two steps and its claim is left", a.name)
	}
}

// gone reports whether the actor's thread was removed, with all that it had.
func (w *world) gone(a *actor) bool {
	v, err := w.look(a.thread)
	if err != nil {
		return false
	}
	ended, ok, err := v.FindEnded(context.Background(), a.thread)
	return err == nil && ok && ended.Reason == gitcas.ReasonRemoved
}

// findEarlierFork reports whether a ref is there, or went with the actor's thread.
func (w *world) isThere(a *actor, ref string) bool {
	_, there := w.mem.Refs()[ref]
	return there || w.gone(a)
}

// hasAttempt reports whether the actor's attempt ref is there.
func (w *world) hasAttempt(a *actor) bool {
	_, ok := w.mem.Refs()[layout.AttemptRef(a.thread, a.run, a.attempt)]
	return ok
}

// inChain looks for the actor's step in the thread, alive or ended.
func (w *world) inChain(a *actor) bool {
	v, err := w.look(a.thread)
	if err != nil {
		w.problem("the store does not read: %v", err)
		return false
	}
	view := v
	if _, alive := v.Entry(a.thread); !alive {
		ended, ok, err := v.FindEnded(context.Background(), a.thread)
		if err != nil || !ok {
			return false
		}
		if view, err = v.LoadEnded(context.Background(), ended); err != nil {
			w.problem("ended thread: %v", err)
			return false
		}
	}
	chain, err := view.ReadChain(context.Background(), a.thread)
	if err != nil {
		w.problem("chain: %v", err)
		return false
	}
	for _, s := range chain.Steps {
		if s.Run.ID == a.run && s.Run.Attempt == a.attempt && w.noteOf(view, a.thread, s) == cmp.Or(a.note, a.name) {
			return true
		}
	}
	return false
}

// noteOf is what the agent of a step said of itself: of which actor it was.
func (w *world) noteOf(v *gitcas.View, id gitcas.ThreadID, s gitcas.ChainStep) string {
	n, err := v.In(context.Background(), gitcas.Place{Thread: id, Of: s.Hash}).Get(s.Output)
	if err != nil {
		w.problem("the output of %s: %v", s.Hash, err)
		return ""
	}
	out, _ := n.Payload.(map[string]any)
	note, _ := out["note"].(string)
	return note
}

// problem is fail for goroutines that are not the test's own.
func (w *world) problem(format string, args ...any) {
	w.mu.Lock()
	w.model.problem = fmt.Sprintf(format, args...)
	w.mu.Unlock()
}

// final: nothing that people or agents made is lost.
func (w *world) final() {
	report, err := w.fresh().Fsck(context.Background(), true)
	if err != nil || !report.OK() {
		w.fail("fsck: %+v, %v", report.Problems, err)
	}
	w.checkHistory()
	w.checkKept()
	v, err := w.fresh().Load(context.Background())
	if err != nil {
		w.fail("the store does not read: %v", err)
	}
	if n := w.fresh().MostRefs(v); w.model.noted && n > w.most {
		w.fail("a push may have %d refs, and the store says %d", w.most, n)
	}
	ended := w.model.ended[w.main]
	tip := w.mem.Refs()["refs/heads/"+layout.WorkBranch(w.main)]
	for id := range w.model.byHand {
		if !w.reaches(tip, id) {
			w.fail("a person's commit %s is no longer on the work branch", id)
		}
	}
	if ended.Reason != gitcas.ReasonEnded || ended.Work.Commit == "" {
		return
	}
	files, _, err := w.filesOf(plumbing.NewHash(ended.Work.Commit))
	if err != nil {
		w.fail("the ended thread's work: %v", err)
	}
	for i, h := range ended.Steps {
		found := false
		for name := range files {
			found = found || strings.HasPrefix(name, fmt.Sprintf("step-%02d-", i+1))
		}
		if !found {
			w.fail("the edits of step %d (%s) are not in the work commit", i+1, h)
		}
	}
	if w.model.mended {
		return
	}
	for h, name := range w.model.poked {
		if len(w.model.produced[name]) != 1 {
			continue // of which of these jobs it was can't be told
		}
		t := w.model.produced[name][0]
		run, _, _ := strings.Cut(name, ".")
		if file := fmt.Sprintf("step-%02d-%s-%s", t.Step, run, t.Role); files[file] == name+"\n" {
			w.fail("step %s was taken back, but its file %s is in the work commit", h, file)
		}
	}
}
