package thread

import (
	"cmp"
	"context"
	"fmt"
	"reflect"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/engine/workbranch"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/internal/text"
)

// Pause makes a thread wait before its next step. A step that runs is left alone:
// it is committed, and the thread waits after it.
//
// It takes two pushes. The first asks for the pause in the thread's entry; a commit
// takes no offence at that, and nobody who reads it begins a step. The second, with
// the thread's claim in hand, makes the thread suspended: it is left to the job that
// works on the thread where there is one.
func (e *Engine) Pause(ctx context.Context, id gitcas.ThreadID, reason string) error {
	reason, err := cleanWords(e.Redact, "reason", reason)
	if err != nil {
		return err
	}
	pause := gitcas.Pause{Reason: cmp.Or(text.Cut(reason, life.MaxReason), life.PausedByPerson), By: e.By.OnRecord()}
	v, err := e.performDeed(ctx, id, life.Pause, func(_ *gitcas.View, s life.Standing) (*gitcas.Change, error) {
		if s.Entry.Pause != nil && reflect.DeepEqual(*s.Entry.Pause, pause) {
			return nil, nil
		}
		s.Entry.Pause = &pause
		return story.SetEntry(&gitcas.Change{}, id, s.Entry, "to be paused", pause.Reason, e.By), nil
	})
	if err != nil {
		return err
	}
	e.Reached("pause asked")
	return e.suspendIfPaused(ctx, v, id)
}

// suspendIfPaused suspends a thread that is to pause, unless a step of it runs.
func (e *Engine) suspendIfPaused(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) error {
	v, err := e.Store.Reload(ctx, v, id)
	if err != nil {
		return fmt.Errorf("the pause of thread %s is noted, and holds from its next step on; but: %w", id, err)
	}
	entry, alive := v.Entry(id)
	if !alive || entry.Pause == nil || entry.Status != gitcas.StatusActive {
		return nil // the running step was over, or somebody else was faster
	}
	if held, claimed := v.FindClaim(id); claimed && e.Leases().Counts(v, held.Claim, entry) {
		return nil // whoever holds it sees to it
	}
	e.Branches().CatchUp(ctx, v, id, workbranch.Of(id, entry))
	err = e.withClaim(ctx, v, id, forDeed(life.Pause), func(_ *gitcas.View, entry *gitcas.Entry) (*gitcas.Change, error) {
		if entry.Pause == nil {
			return nil, nil
		}
		pause, role := *entry.Pause, life.WaitingRole(*entry)
		life.ApplyPause(entry, role)
		var by *story.Person
		if reflect.DeepEqual(pause.By, e.By.OnRecord()) { // else somebody paused it at the same time
			by = e.By
		}
		return story.SetEntry(&gitcas.Change{}, id, *entry, "suspended before "+text.OneLine(role), pause.Reason, by), nil
	})
	if life.KindOf(err) == life.KindNotYours {
		return nil // somebody works on it after all: the same holds
	}
	return err
}
