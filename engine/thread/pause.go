package thread

import (
	"cmp"
	"context"
	"errors"
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
	reason, err := e.cleanText("reason", reason)
	if err != nil {
		return err
	}
	pause := gitcas.Pause{Reason: text.Cut(reason, life.MaxReason), By: e.By.OnRecord()}
	if pause.Reason == "" {
		pause.Reason = life.PausedByPerson
	}
	v, err := e.Store.Load(ctx, id)
	if err != nil {
		return fmt.Errorf("pause thread %s: %w", id, err)
	}
	build := func(v *gitcas.View) (*gitcas.Change, error) {
		entry, err := e.readAlive(ctx, v, id, "pause")
		switch {
		case err != nil:
			return nil, err
		case entry.Pause != nil && reflect.DeepEqual(*entry.Pause, pause):
			return nil, nil
		case entry.Status == gitcas.StatusSuspended:
			return nil, &life.RefusedError{Thread: id, Do: "pause", Reason: "it waits already (" + waitReason(entry) + ")"}
		}
		entry.Pause = &pause
		return story.Sign(&gitcas.Change{
			Subject: story.Subject(entry.Title, id, "to be paused"), Body: pause.Reason, Trailers: story.EntryTrailers(id, entry),
			Threads: map[gitcas.ThreadID]*gitcas.Entry{id: &entry},
		}, e.By), nil
	}
	if v, err = e.Update(ctx, v, build, id); err != nil {
		return err
	}
	e.Reached("pause asked")
	return e.takeEffect(ctx, v, id)
}

// takeEffect suspends a thread that is to pause, unless a step of it runs.
func (e *Engine) takeEffect(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) error {
	v, err := e.Store.Reload(ctx, v, id)
	if err != nil {
		return fmt.Errorf("the pause of thread %s is noted, and holds from its next step on; but: %w", id, err)
	}
	entry, alive := v.Entry(id)
	if !alive || entry.Pause == nil || entry.Status != gitcas.StatusActive {
		return nil // the running step was over, or somebody else was faster
	}
	if held, claimed := v.Claim(id); claimed && e.Leases().Counts(v, held.Claim, entry) {
		return nil // whoever holds it sees to it
	}
	e.Branches().CatchUp(ctx, v, id, workbranch.Of(id, entry))
	err = e.withClaim(ctx, v, id, "pause", func(_ *gitcas.View, entry *gitcas.Entry) (*gitcas.Change, error) {
		if entry.Pause == nil {
			return nil, nil
		}
		reason := entry.Pause.Reason
		life.TakePause(entry, life.WaitingRole(*entry))
		c := &gitcas.Change{Subject: story.Subject(entry.Title, id, "suspended before "+text.OneLine(life.WaitingRole(*entry))), Body: reason, Trailers: story.EntryTrailers(id, *entry)}
		if reflect.DeepEqual(entry.Suspended.By, e.By.OnRecord()) { // else somebody paused it at the same time
			story.Sign(c, e.By)
		}
		return c, nil
	})
	var refused *life.RefusedError
	if errors.As(err, &refused) {
		return nil // somebody works on it after all: the same holds
	}
	return err
}

func waitReason(entry gitcas.Entry) string {
	return cmp.Or(text.OneLine(life.WaitReason(entry)), "no reason is given")
}
