package life

import (
	"cmp"
	"fmt"
	"time"

	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/text"
)

// monthOf is how a month is written in entries: 2026-11.
func monthOf(at time.Time) string { return at.UTC().Format("2006-01") }

// NoteSpent notes in a thread's entry what it took: before, what is known of ahead of the step
// that ends at a time, which may be less than what was noted, as jobs that were cut off leave
// nothing else; own, what that step used; nil: nothing. A step so counts in the month in which
// it ends. Of a thread that nobody noted anything of in a month before this one, all of
// before is taken for the earlier months'.
func NoteSpent(entry *gitcas.Entry, id gitcas.ThreadID, before moderator.Totals, own *record.Usage, at time.Time) {
	s, month := entry.Spent, monthOf(at)
	switch {
	case s.Month == month:
	case s.Month != "":
		s.TokensBefore, s.CostBefore = s.Tokens, s.CostUSD
	case monthOf(id.Time()) < month:
		s.TokensBefore, s.CostBefore = before.Tokens, before.CostUSD
	}
	var all moderator.Totals
	AddSpending(&all, max(s.Tokens, before.Tokens), max(s.CostUSD, before.CostUSD))
	all.Add("", own)
	entry.Spent = gitcas.Spent{Month: month, Tokens: all.Tokens, CostUSD: all.CostUSD, TokensBefore: s.TokensBefore, CostBefore: s.CostBefore}
}

// NoteClaim notes in a thread's entry what a job used whose claim on the thread's next step is
// about to be taken away, as far as that claim tells, and returns it; nil: there is no such claim.
func NoteClaim(entry *gitcas.Entry, v *gitcas.View, id gitcas.ThreadID) *record.Usage {
	held, _ := v.FindClaim(id)
	if held.For != "" || held.Head != entry.Head {
		return nil
	}
	own := ClaimUsage(ClampClaim(held.Claim))
	NoteSpent(entry, id, moderator.Totals{Tokens: entry.Used.Tokens, CostUSD: entry.Used.CostUSD}, own, v.Time())
	return own
}

// AddEntryOfMonth adds to what was used in the month of a time what a thread that is alive used
// of it, as far as its entry tells.
func AddEntryOfMonth(all *moderator.Totals, id gitcas.ThreadID, e gitcas.Entry, at time.Time) {
	u, known := e.Known()
	if !known {
		u = gitcas.Used{}
	}
	addOfMonth(all, id, e.Spent, u.Tokens, u.CostUSD, at)
	all.Unpriced = all.Unpriced || u.Unpriced
}

// AddEndedOfMonth is AddEntryOfMonth of a thread that has ended, by its newest history line.
func AddEndedOfMonth(all *moderator.Totals, e gitcas.Ended, at time.Time) {
	if monthOf(time.UnixMilli(e.CompletedAt)) != monthOf(at) {
		return
	}
	var s gitcas.Spent
	if e.Spent != nil {
		s = *e.Spent
	}
	if u := e.Used; u != nil {
		addOfMonth(all, e.Thread, s, u.Tokens, u.CostUSD, at)
		all.Unpriced = all.Unpriced || u.Unpriced
		return
	}
	addOfMonth(all, e.Thread, s, 0, 0, at)
}

// addOfMonth adds what a thread used in a month that took so much since its first step. What
// was not noted of one of an earlier month counts as that month's.
func addOfMonth(all *moderator.Totals, id gitcas.ThreadID, s gitcas.Spent, tokens int64, costUSD float64, at time.Time) {
	switch month := monthOf(at); {
	case s.Month == month:
	case s.Month != "":
		s.TokensBefore, s.CostBefore = s.Tokens, s.CostUSD
	case monthOf(id.Time()) < month:
		return
	}
	AddSpending(all, max(s.Tokens, tokens)-s.TokensBefore, max(s.CostUSD, costUSD)-s.CostBefore)
}

// AddSpending adds tokens and US dollars to a sum. Anyone who can push the state branch can
// write them: none makes room for more, and no sum of them overflows.
func AddSpending(all *moderator.Totals, tokens int64, costUSD float64) {
	const most = 1 << 40
	all.Tokens += min(max(tokens, 0), most)
	all.CostUSD += min(max(costUSD, 0), most)
}

// Reservation is what a step may still use, as its claim says.
type Reservation struct {
	Since  int64 // milliseconds
	Nonce  string
	Budget task.Budget
}

// ReservationOf is that of a claim; one that names no bound reserves what it was charged.
func ReservationOf(c gitcas.Claim) Reservation {
	return Reservation{c.Since, c.Nonce, task.Budget{Tokens: max(c.ReserveTokens, c.Tokens), CostUSD: max(c.ReserveUSD, c.CostUSD)}}
}

// precedes reports whether a step goes before another one where there is not enough for both.
func (r Reservation) precedes(o Reservation) bool {
	return cmp.Or(cmp.Compare(r.Since, o.Since), cmp.Compare(r.Nonce, o.Nonce)) < 0
}

// RemainingBudget is what the limits of a thread that used so much leave its next step; 0: nothing
// bounds it. Where only limits on a month do, it is a tenth of these, so that one step does not
// keep all others waiting.
func RemainingBudget(l moderator.Limits, month moderator.MonthLimits, used moderator.Totals) task.Budget {
	b := task.Budget{Tokens: (month.Tokens + 9) / 10, CostUSD: month.CostUSD / 10}
	if l.Tokens > 0 {
		b.Tokens = max(l.Tokens-used.Tokens, 1)
	}
	if l.CostUSD > 0 {
		b.CostUSD = l.CostUSD - used.CostUSD
	}
	return b
}

// MonthHeldError says that the month has something left, and that steps which are at work may use
// it up.
type MonthHeldError struct {
	Limit string // its name in the configuration
	Max   string
	Used  string
	Held  string // what those steps may use
	Steps int
	// Yields: some of them were claimed later, and are to let go for this one.
	Yields bool
}

func (e *MonthHeldError) Error() string {
	return fmt.Sprintf("limits.%s (%s a month) leaves nothing for it now: %s was used, and %s at work may use %s; it can go on when they are done",
		e.Limit, e.Max, e.Used, text.Plural(e.Steps, "step"), e.Held)
}

// ShareMonth is what a step may use whose claim is on the store: what it reserves, as far as
// the month leaves it. Of steps that reserve more than is left, the later by (since, nonce)
// let go. A step never begins beside reservations that it does not fit with, whichever came
// first: one that looked before this was claimed may be at work. The error is a
// *moderator.LimitError or a *MonthHeldError.
func ShareMonth(l moderator.MonthLimits, used moderator.Totals, own Reservation, others []Reservation, at time.Time) (task.Budget, error) {
	share := own.Budget
	if err := l.Check(used, at); err != nil {
		return share, err
	}
	var held *MonthHeldError
	dollars := func(n float64) string { return fmt.Sprintf("$%.2f", n) }
	tokens := func(n float64) string { return fmt.Sprintf("%.0f tokens", n) }
	for _, d := range []struct {
		name        string
		limit, used float64
		of          func(task.Budget) float64
		format      func(float64) string
	}{
		{"tokens", float64(l.Tokens), float64(used.Tokens), func(b task.Budget) float64 { return float64(b.Tokens) }, tokens},
		{"costUsd", l.CostUSD, used.CostUSD, func(b task.Budget) float64 { return b.CostUSD }, dollars},
	} {
		if d.limit <= 0 {
			continue
		}
		var earlier, later float64
		for _, o := range others {
			if o.precedes(own) {
				earlier += d.of(o.Budget)
			} else {
				later += d.of(o.Budget)
			}
		}
		left := d.limit - d.used
		want := min(d.of(own.Budget), left)
		const rounding = 1e-9 // tenths of a limit don't add up to it exactly
		fits := func(reserved float64) bool { return want+reserved <= left+d.limit*rounding }
		if !fits(earlier+later) && (held == nil || held.Yields) {
			held = &MonthHeldError{
				Limit: moderator.MonthPrefix + d.name, Max: d.format(d.limit), Used: d.format(d.used), Held: d.format(earlier + later),
				Steps: len(others), Yields: fits(earlier),
			}
		}
		if d.name == "tokens" {
			share.Tokens = max(int64(want), 1)
		} else {
			share.CostUSD = want
		}
	}
	if held != nil {
		return share, held
	}
	return share, nil
}
