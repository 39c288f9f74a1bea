package thread

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/united-workforce/uwf/engine/attempt"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/engine/workbranch"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/commitmsg"
	"github.com/united-workforce/uwf/internal/text"
)

// Poke takes the thread's last step back and lets its role work again, told the
// same as before and the text. The step stays in the thread's folder, and the new
// one names it among its previous attempts. What it did on the work branch is undone
// by a commit on top of the branch; people's commits stay. A thread that was poked
// and has not worked since is only told the text as well: nothing more is taken back.
func (e *Engine) Poke(ctx context.Context, id gitcas.ThreadID, text string) error {
	text, err := cleanWords(e.Redact, "instruction", text)
	if err != nil {
		return err
	}
	v, err := e.Store.Load(ctx, id)
	if err != nil {
		return fmt.Errorf("poke thread %s: %w", id, err)
	}
	if _, err := e.Judge(ctx, v, id, life.Poke); err != nil {
		return err
	}
	p := &poking{e: e, id: id, text: text, by: e.identifySpeaker(ctx, v, id)}
	return e.withClaim(ctx, v, id, forDeed(life.Poke), func(v *gitcas.View, entry *gitcas.Entry) (*gitcas.Change, error) {
		return p.buildChange(ctx, v, entry)
	})
}

// poking is one Poke, over all its tries.
type poking struct {
	e    *Engine
	id   gitcas.ThreadID
	text string
	by   *story.Person
}

func (p *poking) refusePoke(reason string) error { return life.Refuse(life.Poke, p.id, reason) }

// buildChange completes the entry and makes the push, as v allows it.
func (p *poking) buildChange(ctx context.Context, v *gitcas.View, entry *gitcas.Entry) (*gitcas.Change, error) {
	c := &gitcas.Change{}
	t := reading.Locate(ctx, v, p.id)
	words, err := t.PendingWords()
	if err != nil {
		return nil, err
	}
	since := life.NextTime(v, *entry)
	var subject string
	var before []record.Word
	if entry.Next != nil && entry.Next.Poked != "" {
		subject = "poked again: " + text.OneLine(entry.Next.Role) // it has not worked since
	} else if subject, before, err = p.removeLastStep(ctx, t, c, entry); err != nil {
		return nil, err
	}
	life.LetGoOn(entry, entry.Next.Role, since, p.by.OnRecord())
	if words, err = appendWord(p.id, life.Poke, append(before, words...), record.Word{
		Do: record.DoPoke, Role: entry.Next.Role, Text: p.text, By: p.by.OnRecord(), AtMs: since,
	}); err != nil {
		return nil, err
	}
	if entry.Next.Answer, err = answerChange(c, v, p.id, record.Answer{Words: words}); err != nil {
		return nil, err
	}
	story.SetEntry(c, p.id, *entry, subject, p.text, nil)
	c.Trailers = append(c.Trailers, gitcas.Trailer{Key: "Uwf-Poked", Value: string(entry.Next.Poked)})
	return story.Sign(c, p.by), nil
}

// removeLastStep takes the last step off the chain, and adds to the change what undoes it. It
// returns what it did, and the words that people said before that step.
func (p *poking) removeLastStep(ctx context.Context, t *reading.Thread, c *gitcas.Change, entry *gitcas.Entry) (string, []record.Word, error) {
	chain, err := t.View.ReadChain(ctx, p.id)
	if err != nil {
		return "", nil, err
	}
	n := len(chain.Steps)
	if n == 0 {
		return "", nil, life.Standing{Thread: p.id, Alive: true, Entry: *entry}.RefuseDeed(life.Poke, "it has no step yet")
	}
	last := chain.Steps[n-1]
	if total := len(last.EdgePrompt) + len(p.text); total > reading.MaxPrompt {
		return "", nil, p.refusePoke(fmt.Sprintf("what its role was told and the instruction have %d bytes together; at most %d are passed on: put long texts on the work branch", total, reading.MaxPrompt))
	}
	words, err := t.WordsBefore(last.Hash, last.Step)
	if err != nil {
		return "", nil, err
	}
	if err := p.undoEdits(ctx, t.View, c, entry, last, n); err != nil {
		return "", nil, err
	}
	chain.Steps = chain.Steps[:n-1]
	entry.Head = reading.HeadOf(chain)
	life.UndoDelivery(entry)
	entry.Next = &gitcas.Next{Role: last.Role, Poked: last.Hash}
	c.Readable = map[string][]byte{layout.PagePath(p.id, n, last.Role): story.WriteTakenBack(last, n, p.text, p.by.OnRecord())}
	return fmt.Sprintf("poked: %s · step %d", text.OneLine(last.Role), n), words, nil
}

// undoEdits adds to a change the commit that takes back what a step did on the work
// branch, and records it in the entry.
func (p *poking) undoEdits(ctx context.Context, v *gitcas.View, c *gitcas.Change, entry *gitcas.Entry, last gitcas.ChainStep, n int) error {
	if last.Work == nil || last.Work.Commit == "" {
		return nil
	}
	work := workbranch.Of(p.id, *entry)
	if work.Commit == "" {
		work.Commit = last.Work.Commit
	}
	at, err := p.tipOf(ctx, v, work)
	if err != nil {
		return err
	}
	made := plumbing.NewHash(last.Work.Commit)
	own, before, err := p.findEdits(ctx, made, last, n)
	if err != nil || !own {
		work.Commit = at.String()
		entry.Work = work
		return err
	}
	tree, objs, overlap, err := workbranch.RevertEdits(ctx, p.e.Store.Remote(), made, before, at)
	switch {
	case err != nil:
		return err
	case len(overlap) > 0:
		return p.refusePoke(fmt.Sprintf("people changed files that the step changed too (%s): undo the step on the branch by hand, and tell the next role what to do; or fork the step before it", strings.Join(overlap, ", ")))
	}
	msg, err := commitmsg.Message{
		Subject: fmt.Sprintf("Take back step %d of %s", n, text.OneLine(last.Role)), Body: "A person had it done again.",
		Trailers: []gitcas.Trailer{{Key: "Uwf-Thread", Value: string(p.id)}},
	}.Format()
	if err != nil {
		return err
	}
	commit, err := workbranch.MakeCommit(p.e.Clock.Now(), tree, []wire.ID{at}, msg)
	if err != nil {
		return err
	}
	old := workbranch.Tip(v, work)
	if !old.IsZero() {
		old = at
	}
	c.Objects = append(append(c.Objects, objs...), wire.PackObject{Object: commit})
	c.Refs = append(c.Refs, wire.RefUpdate{Name: workbranch.Ref(work.Branch), Old: old, New: commit.ID})
	work.Commit = commit.ID.String()
	entry.Work = work
	if p.e.Store.Atomic(v) {
		return nil
	}
	return p.holdCommit(v, c, commit.ID)
}

// tipOf is where the work stands: the branch's tip, which contains the recorded commit.
func (p *poking) tipOf(ctx context.Context, v *gitcas.View, work gitcas.Work) (wire.ID, error) {
	at, err := p.e.Branches().FindBase(ctx, v, p.id, work, func(ctx context.Context) (*gitcas.View, error) {
		fresh, err := p.e.Store.Reload(ctx, v, p.id)
		if err == nil {
			v = fresh
		}
		return fresh, err
	})
	if div, ok := errors.AsType[*workbranch.DivergedError](err); ok {
		return at, p.refusePoke(div.Error())
	}
	return at, err
}

// findEdits reports whether a recorded commit is the step's own work, and the commit
// that it was made on, zero for none. A step that changed nothing recorded the
// commit that it saw, which is somebody else's: the commit itself tells, as it was
// written by the step that recorded it.
func (p *poking) findEdits(ctx context.Context, id wire.ID, last gitcas.ChainStep, n int) (bool, wire.ID, error) {
	c, err := workbranch.Read(ctx, p.e.Store.Remote(), id)
	if errors.Is(err, wire.ErrNotFound) {
		_, err = p.e.Branches().FindCommit(ctx, id.String())
	}
	if err != nil {
		return false, wire.ZeroID, err
	}
	if len(c.Parents) > 1 || last.Run == nil {
		return false, wire.ZeroID, nil
	}
	trailers := commitmsg.Parse(c.Message).Trailers
	for _, want := range story.WorkTrailers(n, last.Role, *last.Run) {
		want.Value = commitmsg.Line(want.Value)
		if !slices.Contains(trailers, want) {
			return false, wire.ZeroID, nil
		}
	}
	if len(c.Parents) == 0 {
		return true, wire.ZeroID, nil
	}
	return true, c.Parents[0], nil
}

// holdCommit keeps the commit on a ref before the state branch names it, where pushes are
// not atomic: the work branch may come late, or never. What is on that ref already
// must not get lost.
func (p *poking) holdCommit(v *gitcas.View, c *gitcas.Change, commit wire.ID) error {
	a := gitcas.Attempt{Thread: p.id, Run: p.e.Who.Run, Attempt: p.e.Who.Attempt, Parents: []wire.ID{commit}, At: v.Time()}
	return new(attempt.Writer).AddTo(c, v, "poke", a, nil)
}
