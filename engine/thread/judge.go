package thread

import (
	"context"

	"github.com/united-workforce/uwf/engine/attempt"
	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/gitcas"
)

// Judge is how a thread stands in a view, and the error that says why a deed may not be done
// with it now, and what else may: see docs/states.md.
func (e *Engine) Judge(ctx context.Context, v *gitcas.View, id gitcas.ThreadID, d life.Deed) (life.Standing, error) {
	s := life.Standing{Thread: id}
	if s.Entry, s.Alive = v.Entry(id); s.Alive {
		e.noteClaim(v, &s, d)
	} else {
		var err error
		if s.Ended, err = reading.FindEnded(ctx, e.Store, v, id); err != nil {
			return s, err
		}
	}
	err := s.Judge(d)
	if len(life.NextOf(err)) > 0 { // they hang on more than was read
		outlook{e}.lookAhead(ctx, v, &s)
		err = s.Judge(d)
	}
	return s, err
}

// noteClaim notes who works on a thread, or died on it. Any claim can be taken.
func (e *Engine) noteClaim(v *gitcas.View, s *life.Standing, d life.Deed) {
	held, claimed := v.Claim(s.Thread)
	purpose := life.Deed("")
	if s.Entry.Deliver {
		purpose = life.Deliver
	}
	switch {
	case claimed && d == life.Take:
		s.Claim = &held.Claim
	case !claimed || held.Head != s.Entry.Head:
	case !e.Leases().IsAlive(v, held.Claim):
		_, s.Died = lease.RecordDeadClaim(v, s.Thread, held, purpose)
	default:
		s.Claim = &held.Claim
	}
}

// outlook is what a thread is to find.
type outlook struct{ *Engine }

// lookAhead notes what a person can do with a thread, as far as that can be read.
func (e outlook) lookAhead(ctx context.Context, v *gitcas.View, s *life.Standing) {
	switch s.State() {
	case life.Ended:
		if past, _, err := reading.FindPast(ctx, e.Store, v, s.Thread); err == nil {
			t, err := reading.Read(ctx, past, s.Thread)
			s.Reopens = err == nil && t.Def.Resume != nil
		}
	case life.Active, life.Failed:
		s.Limit = e.limitAhead(ctx, v, s.Thread)
		if sum, err := v.Summary(ctx, s.Thread); err == nil {
			s.Steps = sum.Used.Steps
		}
	}
}

// limitAhead is the limit that a thread's next step will find reached; nil: none.
func (e outlook) limitAhead(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) error {
	t, err := reading.Read(ctx, v, id)
	if err != nil {
		return nil //nolint:nilerr // the next step will say
	}
	role := life.WaitingRole(t.Entry)
	used, err := attempt.NewLedger(e.Store, t, role).CountUsed(ctx, t.Entry.Attempts)
	if err != nil {
		return nil //nolint:nilerr // the next step will say
	}
	return e.LimitsOf(t).Check(used, role)
}
