package thread_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/engine/step/unpushed"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// Two-job runs: whoever starts one claims the thread for it and gives the claim's nonce along.
// The first job runs the agent and can write nothing, the second one commits what it left.

// pair is a run of two jobs.
type pair struct {
	run, nonce string
	head       node.Hash
	maker      *actor
	jobs       []*actor
	left       bool // the first job left what its agent did
	rescued    bool
	taken      bool // the second job was started, or never will be
}

const (
	jobAgent  = "agent"
	jobCommit = "commit"
)

// pairOf is the run that a claim was made ahead for; nil: none was started.
func (w *world) pairOf(nonce string) *pair {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.pairs {
		if p.nonce == nonce {
			return p
		}
	}
	return nil
}

// isUnderWay reports whether somebody is at work under a claim that was made ahead, or will be.
func (w *world) isUnderWay(c gitcas.Claim) bool {
	p := w.pairOf(c.Nonce)
	if p == nil {
		return w.alive(w.ownerOf(c))
	}
	for _, a := range p.jobs {
		if w.alive(a) {
			return true
		}
	}
	return len(p.jobs) == 0 || p.left && !p.taken
}

// dispatcher claims the main thread for a run of two jobs and starts that, or is refused, or
// dies before.
func (w *world) dispatcher() {
	w.runs++
	name := fmt.Sprintf("D%d", w.runs)
	w.say("%s claims for a run of two jobs", name)
	w.spawn(name+".1", name, 1, w.main, func(a *actor) {
		a.isJob = true
		v, err := a.eng.Store.Load(a.ctx, w.main)
		if a.err = err; err != nil {
			return
		}
		entry, alive := v.Entry(w.main)
		if !alive || entry.Status != gitcas.StatusActive {
			return
		}
		held, err := a.eng.ClaimAhead(a.ctx, v, w.main)
		w.say("%s: %v", a.name, err)
		if a.err = err; err != nil || held == nil {
			return
		}
		w.start(a, held, entry.Head)
	})
}

// start dispatches a run of two jobs, which the forge may refuse.
func (w *world) start(a *actor, held *lease.Lease, head node.Hash) {
	f := w.waitIn(a.ctx, a, "dispatch")
	switch {
	case a.crashed || f == crash:
		return
	case a.ctx.Err() != nil || w.chaos.Load() && a.rng.IntN(5) == 0:
		held.Release(a.ctx)
		a.res.Held = nil
		w.released(a)
		return
	}
	w.mu.Lock()
	w.pairs = append(w.pairs, &pair{run: "P" + strings.ReplaceAll(a.name, ".", "-"), nonce: held.Nonce(), head: head, maker: a})
	w.mu.Unlock()
}

// pairEvent starts a job of a run of two that has got its runner by now, or never will.
func (w *world) pairEvent() bool {
	w.mu.Lock()
	var due *pair
	for _, p := range w.pairs {
		if len(p.jobs) == 0 || p.left && !p.taken {
			due = p
		}
	}
	w.mu.Unlock()
	if due == nil {
		return false
	}
	if len(due.jobs) == 0 {
		w.startAgent(due)
	} else {
		w.startCommit(due)
	}
	return true
}

// ahead is the nonce that the rescue job of a run of two jobs is told.
func (a *actor) ahead() string {
	if a.pair == nil || len(a.over) == 0 {
		return ""
	}
	return a.pair.nonce
}

// killed are the names of those jobs that came to no end of their own.
func killed(jobs ...*actor) []string {
	var out []string
	for _, a := range jobs {
		if a.crashed {
			out = append(out, a.job)
		}
	}
	return out
}

// overPairs are the runs of two jobs that are over, and that nobody has looked after.
func (w *world) overPairs() []*pair {
	var out []*pair
	for _, p := range w.pairs {
		if !p.rescued && len(p.jobs) > 0 && !w.isUnderWay(gitcas.Claim{Nonce: p.nonce}) {
			out = append(out, p)
		}
	}
	return out
}

func (w *world) pairActor(p *pair, job string, body func(a *actor)) {
	name := p.run + "-" + job
	w.say("%s starts", name)
	a := &actor{name: name, ci: p.run, run: p.run, attempt: 1, job: job, on: &machine{name: "host-" + name}, thread: w.main, isJob: true, pair: p}
	p.jobs = append(p.jobs, a)
	w.spawnAs(a, body)
}

// blind is a remote to which nothing can be pushed.
type blind struct{ *gate }

func (b blind) Push(context.Context, wire.PushRequest) (time.Time, error) {
	return b.a.now(), &wire.RemoteError{Op: "push", Kind: wire.ErrDenied}
}

func (w *world) startAgent(p *pair) {
	w.pairActor(p, jobAgent, func(a *actor) {
		a.eng.Store = gitcas.Open(blind{&gate{w: w, a: a, Remote: w.mem}}, gitcas.Options{
			Now: a.now, Jitter: a.chance.Float64, RetryFor: time.Minute, Rand: zeroReader{},
		})
		a.expect = p.head
		a.res, a.err = a.eng.Step(a.ctx, step.Request{Thread: w.main, ExpectHead: node.Pin{Hash: p.head}, Deliver: w.delivers, Nonce: p.nonce, HandsOver: true})
		if a.crashed {
			return
		}
		w.say("%s: exit %d: %v", a.name, life.KindOf(a.err), a.err)
		w.keptOut(a)
		left := len(w.onDiskOf(a.on, w.main)) > 0
		if !left && a.made != nil {
			w.problem("%s finished its work and left nothing: %v", a.name, a.err)
		}
		w.mu.Lock()
		p.left = left
		w.mu.Unlock()
	})
}

func (w *world) startCommit(p *pair) {
	p.taken = true
	w.pairActor(p, jobCommit, func(a *actor) {
		first := p.jobs[0]
		a.note, a.expect, a.ran = first.name, p.head, true
		var working task.Task
		a.res, a.err = a.eng.Step(a.ctx, step.Request{
			Thread: w.main, ExpectHead: node.Pin{Hash: p.head}, Deliver: w.delivers, Nonce: p.nonce, Ahead: true,
			OnClaimed: func(_ context.Context, t task.Task) error {
				working = t
				w.setWorking(a, &working)
				return nil
			},
			TakesOver: func(store string, id gitcas.ThreadID) (unpushed.Step, error) {
				defer w.setWorking(a, nil)
				u, err := first.on.disk.Read(store, id)
				if err == nil && first.made != nil && life.SameThread(u.Entry, working.Entry) {
					a.made = &working
				}
				return u, err
			},
			Next:    func() (lease.Identity, bool) { return a.eng.Who, a.rng.IntN(3) > 0 },
			Effects: func() life.Effects { return life.Effects{Comment: simComment} },
		})
		w.stepped(a)
		if a.err == nil && a.res.Held != nil && !a.crashed {
			w.start(a, a.res.Held, a.res.Head)
		}
	})
}

// rescuePair looks after a run of two jobs that is over: what was claimed ahead for it is let go.
func (w *world) rescuePair(p *pair) {
	name := p.run + "-rescue"
	w.say("%s starts", name)
	w.spawnAs(&actor{
		name: name, ci: p.run, run: p.run, attempt: 1, job: "rescue", over: []string{jobAgent, jobCommit}, killed: killed(p.jobs...), pair: p,
		on: p.jobs[len(p.jobs)-1].on, thread: w.main, isJob: true,
	}, func(a *actor) {
		_, in, err := a.eng.BringIn(a.ctx, step.Request{Thread: w.main, Deliver: w.delivers})
		if a.err = err; err == nil && !in {
			var v *gitcas.View
			if v, a.err = a.eng.Store.Load(a.ctx, w.main); a.err == nil {
				_, a.err = a.eng.FreeClaim(a.ctx, v, w.main)
			}
		}
		w.rescueOver(a, in)
		if held, there := w.mem.Refs()[layout.ClaimRef(w.main)]; a.err == nil && there && !a.crashed && w.whole && w.claimOf(held).Nonce == p.nonce {
			if e := w.model.entries[w.main]; e.Head == w.claimOf(held).Head {
				w.problem("%s left the claim that was made for its run", a.name)
			}
		}
	})
}
