package thread

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/record"
)

// A step that goes before others looks again, for half a minute, whether they let go.
const (
	yieldLooks = 10
	yieldEvery = 3 * time.Second
)

// HoldMonth is what a step may use under the limits on a month, whose claim is on the store: of
// the budget that its thread leaves it, what the month does; nil: there are no such limits.
// used is what the thread took so far. limit is the one of which the month has nothing left;
// where steps at work may use up what there is, the error says that the step is not to be
// done now.
func HoldMonth(ctx context.Context, s *Session, used moderator.Totals, b task.Budget) (_ *task.Budget, limit, err error) {
	limits := s.Engine.Settings.MonthLimits()
	if limits == (moderator.MonthLimits{}) {
		return nil, nil, nil
	}
	held, _ := s.Lease.Current()
	own := life.Reservation{Since: held.Since, Nonce: held.Nonce, Budget: b}
	if held.Nonce == "" { // it is claimed nowhere: all others go before it
		own.Since = math.MaxInt64
	}
	for look := 1; ; look++ {
		v, err := s.Engine.Store.Reload(ctx, s.View)
		if err != nil {
			return nil, nil, fmt.Errorf("look for the steps at work, for the limits on a month: %w", err)
		}
		all, others, err := readMonth(ctx, s, v, used)
		if err != nil {
			return nil, nil, fmt.Errorf("read what threads used in this month, for its limits: %w", err)
		}
		share, err := life.ShareMonth(limits, all, own, others, v.Time())
		var full *life.MonthHeldError
		switch {
		case err == nil:
			return &share, nil, nil
		case !errors.As(err, &full):
			return nil, err, nil
		case !full.Yields || look == yieldLooks:
			refused := s.Refuse(full.Error())
			refused.Err, refused.Next = full, []life.Verb{{For: "then let it work", Do: life.Step, Thread: s.ID}}
			return nil, nil, refused
		}
		passed, cancel := s.Engine.Clock.After(yieldEvery)
		select {
		case <-passed:
		case <-ctx.Done():
		}
		cancel()
		if ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
	}
}

// readMonth reads what all threads used in the present month, and what the steps of others
// that are at work reserve. Jobs that died used what their claims were charged.
func readMonth(ctx context.Context, s *Session, v *gitcas.View, used moderator.Totals) (all moderator.Totals, others []life.Reservation, err error) {
	at, leases := v.Time(), s.Engine.Leases()
	for id, entry := range v.Threads() {
		if id == s.ID {
			life.NoteSpent(&entry, id, used, nil, at)
		}
		life.AddEntryOfMonth(&all, id, entry, at)
		held, claimed := v.FindClaim(id)
		switch {
		case !claimed || id == s.ID || held.For != "" || held.Head != entry.Head:
		case leases.IsAlive(v, held.Claim):
			others = append(others, life.ReservationOf(held.Claim))
		default:
			life.AddSpending(&all, held.Tokens, held.CostUSD)
		}
	}
	err = v.Endings(ctx, moderator.MonthStart(at), func(e gitcas.Ended) error {
		life.AddEndedOfMonth(&all, e, at)
		return nil
	})
	return all, others, err
}

// NoteSpent notes in the thread's entry what it took where limits on a month hold: what is
// known of before this job, and what that used.
func (s *Session) NoteSpent(entry *gitcas.Entry, used moderator.Totals, own *record.Usage) {
	if s.Engine.Settings.MonthLimits() == (moderator.MonthLimits{}) || used.Steps == 0 && own == nil {
		return
	}
	life.NoteSpent(entry, s.ID, used, own, s.Lease.ServerTime())
}
