package thread

import (
	"context"
	"errors"
	"fmt"

	"github.com/united-workforce/uwf/engine/deadline"
	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/engine/workbranch"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/internal/text"
)

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
	held, claimed := v.Claim(id)
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
		if held, claimed = v.Claim(id); !claimed || !e.Leases().IsLeftBehind(v, held.Claim) {
			return
		}
	}
	e.Leases().Release(ctx, id, held)
}

// CleanText is a text without secrets, whatever it is.
func (e *Engine) CleanText(what, s string) (string, error) {
	clean, _, err := e.Redact.Value(s)
	if err != nil {
		return "", fmt.Errorf("check the %s for secrets: %w", what, err)
	}
	s, _ = clean.(string)
	return s, nil
}

// cleanReason is why a person stops a thread, or uwf makes it wait.
func (e *Engine) cleanReason(reason string) (string, error) {
	reason, err := e.CleanText("reason", reason)
	return text.Cut(reason, life.MaxReason), err
}

// cleanText is what a person says to a thread.
func (e *Engine) cleanText(what, s string) (string, error) {
	s, err := e.CleanText(what, s)
	if err == nil && len(s) > reading.MaxPrompt {
		err = life.Usagef("the %s has %d bytes; at most %d are taken: put long texts on the work branch", what, len(s), reading.MaxPrompt)
	}
	return s, err
}

// redactedError is an error whose text held a secret: of an agent's stderr, say.
type redactedError struct {
	text string
	err  error
}

func (e *redactedError) Error() string { return e.text }

func (e *redactedError) Unwrap() error { return e.err }

// CleanError takes secrets out of what an error says.
func (e *Engine) CleanError(err error) error {
	text, found, rerr := e.Redact.Value(err.Error())
	switch {
	case rerr != nil:
		return &redactedError{"the step ended with an error that could not be checked for secrets, so it is not shown: " + rerr.Error(), err}
	case found == 0:
		return err
	}
	clean, _ := text.(string)
	return &redactedError{clean, err}
}

// ShowAttempt is the command that shows what a ref of the store's remote holds.
func (e *Engine) ShowAttempt(ref string) string {
	if e.ShowRef == nil || ref == "" {
		return "git show " + ref
	}
	return e.ShowRef(ref)
}
