package thread

import (
	"context"
	"fmt"

	"github.com/united-workforce/uwf/engine/attempt"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/gitcas"
)

// Cancel ends a thread for good: it never runs again. A job that works on it
// finds its claim gone and keeps what it has as an attempt.
func (e *Engine) Cancel(ctx context.Context, id gitcas.ThreadID, reason string) (gitcas.Ended, error) {
	return e.cancelFor(ctx, id, reason, e.By)
}

// Abandon is Cancel on nobody's word.
func (e *Engine) Abandon(ctx context.Context, id gitcas.ThreadID, reason string) error {
	_, err := e.cancelFor(ctx, id, reason, nil)
	return err
}

// cancelFor is Cancel on the word of a person; nil: nobody's.
func (e *Engine) cancelFor(ctx context.Context, id gitcas.ThreadID, reason string, by *story.Person) (gitcas.Ended, error) {
	var line gitcas.Ended
	_, err := e.performDeed(ctx, id, life.Cancel, func(v *gitcas.View, s life.Standing) (*gitcas.Change, error) {
		if !s.Alive { // cancelled is cancelled, whoever did it
			line = s.Ended
			return nil, nil
		}
		c, err := e.cancelChange(ctx, v, id, reason, by)
		if err == nil {
			c.Landed = func(*gitcas.View) { line = c.Archive[0] }
		}
		return c, err
	})
	if err == nil {
		e.Reached("cancel")
	}
	return line, err
}

func (e *Engine) cancelChange(ctx context.Context, v *gitcas.View, id gitcas.ThreadID, note string, by *story.Person) (*gitcas.Change, error) {
	t, used, err := attempt.CountThread(ctx, e.Store, v, id)
	if t == nil {
		return nil, err
	}
	note, rerr := cleanReason(e.Redact, note)
	if rerr != nil {
		return nil, rerr
	}
	used.Add("", life.NoteClaim(&t.Entry, v, id))
	line := t.EndLine(t.Entry, gitcas.ReasonCancelled, v.Time())
	line.Note, line.ClosedBy, line.Commit = note, by.OnRecord(), v.Tip().String()
	if err == nil { // else nobody knows what it took
		cost := story.CostOf(used)
		cost.Steps = len(line.Steps)
		line.Used = &cost
	}
	c := &gitcas.Change{
		Subject:  story.Subject(t.Entry.Title, id, fmt.Sprintf("cancelled · step %d", len(line.Steps))),
		Body:     note,
		Trailers: story.EntryTrailers(id, t.Entry),
		Archive:  []gitcas.Ended{line},
	}
	dropClaim(c, v, id)
	return story.Sign(c, by), nil
}
