// Package thread is the life of a thread over a Store: start, fork, pause, suspend, resume,
// retry, poke, cancel, remove. What people do to a thread while a job may work on it either
// does not concern the step that runs, ends its claim, or is done with the claim in hand.
// Steps and deliveries are made of a [Session], see packages step and deliver.
//
// It never spawns a process, never opens a socket and never reads the
// environment: agents, working folders, clock and identity are given to it. So
// the same code runs in a CI job, on a laptop, and ten thousand times in the
// simulation of its tests.
package thread

import (
	"context"
	"errors"
	"sync"

	"github.com/united-workforce/uwf/engine/deadline"
	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/workbranch"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// Engine changes threads in a store, for a person or a job. All fields but By, ProvePerson,
// ShowRef, Observe and Hook are required.
type Engine struct {
	Store    *gitcas.Store
	Redact   Redactor
	Settings Settings
	Who      lease.Identity
	// By is whom the deeds of people (start, resume, cancel …) are done for; nil: nobody.
	By *story.Person
	// ProvePerson asks the forge who the person of this machine is, where it matters; nil: it
	// can't be asked.
	ProvePerson func(ctx context.Context) (*story.Person, error)
	Clock       deadline.Clock
	// ShowRef is the command that shows a person what a ref of the store's remote holds;
	// nil: git show, in the repository that the store is in.
	ShowRef func(ref string) string
	// Nonce returns a random word that tells one claim from all others; empty: none can
	// be had.
	Nonce func() string
	// Observe is told what goes on; it must not block.
	Observe func(Event)
	// Hook is called after each durable point of the protocol, by name. Fault
	// injection only.
	Hook func(point string)

	released sync.Map // the nonces of claims that this engine let go, deleted or not
}

// Event is something worth showing while a step runs.
type Event struct {
	// Kind is "claimed", "agent" (it starts; Text is what it was told), "tokens"
	// (Usage so far), "turn" (the model has answered: Turn, and Text is what it wants done next, or
	// says; empty: it says nothing), "notice" (Text), "check" (one has ended; Text is how), "sealed", "committed", "suspended", "ended" or
	// "delivered".
	Kind   string
	Thread gitcas.ThreadID
	Step   int
	Role   string
	Agent  string
	Status string
	Turn   int // of the agent, from 1
	Tokens int64
	Usage  record.Usage
	Text   string
}

// Emit tells whoever observes the engine what goes on.
func (e *Engine) Emit(ev Event) {
	if e.Observe != nil {
		e.Observe(ev)
	}
}

// Reached calls the hook at a durable point of the protocol.
func (e *Engine) Reached(point string) {
	if e.Hook != nil {
		e.Hook(point)
	}
}

// Update makes a change of the store. With it go the index pages of the threads whose
// entries change.
func (e *Engine) Update(ctx context.Context, v *gitcas.View, build func(*gitcas.View) (*gitcas.Change, error), ids ...gitcas.ThreadID) (*gitcas.View, error) {
	return e.Store.Update(ctx, v, func(v *gitcas.View) (*gitcas.Change, error) {
		c, err := build(v)
		if err == nil && c != nil {
			story.AddPages(ctx, v, c)
		}
		return c, err
	}, ids...)
}

// Leases claims threads for this job.
func (e *Engine) Leases() *lease.Keeper {
	return &lease.Keeper{
		Store: e.Store, Clock: e.Clock, Who: e.Who, NewNonce: e.Nonce, Released: &e.released, Reached: e.Reached,
		Notice: func(id gitcas.ThreadID, text string) { e.Emit(Event{Kind: "notice", Thread: id, Text: text}) },
	}
}

// Branches are the work branches of the store's remote.
func (e *Engine) Branches() *workbranch.Branches {
	return &workbranch.Branches{Store: e.Store, Clock: e.Clock}
}

// CheckPush asks the remote, before an agent is paid, whether it would take the commit of a
// thread's next step on its work branch: the error says what is in the way.
func (e *Engine) CheckPush(ctx context.Context, v *gitcas.View, t task.Task) error {
	w := workbranch.Of(t.Thread, t.Entry)
	tip, tree, parents := workbranch.Tip(v, w), wire.EmptyTree, []wire.ID(nil)
	if tip.IsZero() && w.Branch != layout.WorkBranch(t.Thread) {
		tip = workbranch.CommitID(w) // somebody made it: that is not asked
	}
	if !tip.IsZero() {
		c, err := workbranch.Read(ctx, e.Store.Remote(), tip)
		if err != nil {
			return err
		}
		tree, parents = c.Tree, []wire.ID{tip}
	}
	msg, err := story.WorkMessage(t, record.Run{ID: e.Who.Run, Attempt: e.Who.Attempt}, node.Pin{Hash: t.Entry.Head}, "done", nil, nil)
	if err != nil {
		return err
	}
	commit, err := workbranch.MakeCommit(e.Clock.Now(), tree, parents, msg)
	if err != nil {
		return err
	}
	return e.Store.TryBranch(ctx, v, w.Branch, tip, commit)
}

// Claim takes the thread, as it stands in v, for this job. The returned view is
// a fresh one, read after the claim was won; the entry in it equals v's.
func (e *Engine) Claim(ctx context.Context, v *gitcas.View, id gitcas.ThreadID, t lease.Terms) (*gitcas.View, *lease.Lease, error) {
	won, l, err := e.WinClaim(ctx, v, id, t)
	if err != nil {
		return nil, nil, err
	}
	fresh, err := l.Recheck(ctx, won)
	return fresh, l, err
}

// WinClaim is Claim without the second look.
func (e *Engine) WinClaim(ctx context.Context, v *gitcas.View, id gitcas.ThreadID, t lease.Terms) (*gitcas.View, *lease.Lease, error) {
	won, l, err := e.Leases().Win(ctx, v, id, t)
	if err != nil && !errors.Is(err, gitcas.ErrUnsure) {
		e.DropClaim(ctx, v, id)
	}
	return won, l, err
}

// DropClaim deletes a claim of this job that v shows: one whose process ended before it
// could. A step that had begun under it on the thread's head counts as an attempt, and what
// it used; where that can't be written down the claim stays, for who claims the thread next.
func (e *Engine) DropClaim(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) {
	held, claimed := v.FindClaim(id)
	if !claimed || !e.Leases().IsLeftBehind(v, held.Claim) {
		return
	}
	if held.For == "" {
		ctx, cancel := deadline.Outlive(ctx, 0, deadline.ReleaseGrace)
		defer cancel()
		var err error
		if v, err = e.FreeClaim(ctx, v, id); err != nil {
			return
		}
		if held, claimed = v.FindClaim(id); !claimed || !e.Leases().IsLeftBehind(v, held.Claim) {
			return
		}
	}
	e.Leases().Release(ctx, id, held)
}

// identifySpeaker is who speaks to a thread, see identifyPerson.
func (e *Engine) identifySpeaker(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) *story.Person {
	if _, alive := v.Entry(id); !alive || !e.canIdentify() {
		return e.By
	}
	t, err := reading.Read(ctx, v, id)
	if err != nil {
		return e.By // what is wrong with the thread is said by who changes it
	}
	return e.identifyPerson(ctx, t.Def, id, "what you say is noted, and is no approval")
}

// canIdentify reports whether the forge could say who somebody is of whom only git does.
func (e *Engine) canIdentify() bool {
	return e.By != nil && e.By.Kind == record.ByLocal && e.ProvePerson != nil
}

// identifyPerson is who does something with a thread: where its workflow has edges that only an
// approval opens, a person whom the forge names, if it does. Else what that means is said.
func (e *Engine) identifyPerson(ctx context.Context, def *workflow.Definition, id gitcas.ThreadID, otherwise string) *story.Person {
	if !e.canIdentify() || !def.NeedsApproval() {
		return e.By
	}
	p, err := e.ProvePerson(ctx)
	if err != nil {
		e.Emit(Event{Kind: "notice", Thread: id, Text: otherwise + ": " + err.Error()})
		return e.By
	}
	return p
}
