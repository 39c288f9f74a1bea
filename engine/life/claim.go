package life

import (
	"fmt"
	"time"

	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/text"
)

// How long claims live, by the server's clock.
const (
	// RenewedLife is how long a claim lives after its last renewal.
	RenewedLife = 20 * time.Minute
	// MaxClaim is how long a claim may say that it lives.
	MaxClaim = 6 * time.Hour

	// maxAhead is how far ahead of the clock a claim may have been made.
	maxAhead = 3 * time.Minute
	// MaxGuessed is the same where the clock is a guess: no machine's is off by more.
	MaxGuessed = 24 * time.Hour
)

// ClaimedByJob reports whether a claim is a job's, for a step or a delivery, and not that
// of a command by which a person changes the thread.
func ClaimedByJob(c gitcas.Claim) bool { return c.For == "" || c.For == ForDelivery }

// CountingClaim is the claim on a thread that keeps others out, as far as claims tell of
// themselves; false: none does.
func CountingClaim(v *gitcas.View, id gitcas.ThreadID, e gitcas.Entry) (gitcas.Held, bool) {
	c, ok := v.FindClaim(id)
	return c, ok && c.Head == e.Head && ClaimAlive(c.Claim, v.Time())
}

// WorkingClaim is that of the job which works on the next step; false: none does. A person
// who pokes the thread, say, is none.
func WorkingClaim(v *gitcas.View, id gitcas.ThreadID, e gitcas.Entry) (gitcas.Held, bool) {
	c, counts := CountingClaim(v, id, e)
	return c, counts && c.For == ""
}

// ClaimAlive reports whether a claim's job is to be taken for running, as far as the
// claim itself says: until RenewedLife after its last renewal, and until the time that it
// names where it was never renewed. It is read as hostile: one that was made in the future,
// or says that it lives longer than MaxClaim, is dead, or it could keep everybody out.
func ClaimAlive(c gitcas.Claim, now time.Time) bool { return AliveAt(c, now, false) }

// AliveAt is ClaimAlive; where the time is guessed, another machine's may be far ahead.
func AliveAt(c gitcas.Claim, now time.Time, guessed bool) bool {
	since, renewed := time.UnixMilli(c.Since), time.UnixMilli(c.Renewed)
	end := since.Add(MaxClaim)
	ahead := maxAhead
	if guessed {
		ahead = MaxGuessed
	}
	if since.Sub(now) > ahead {
		return false
	}
	if c.Until > 0 {
		until := time.UnixMilli(c.Until)
		if until.After(end) {
			return false
		}
		end = until
	}
	if c.Until == 0 || renewed.After(since) {
		if last := renewed.Add(RenewedLife); last.Before(end) {
			end = last
		}
	}
	return now.Before(end)
}

// ClaimedError says inside a NotYoursError that somebody else is at work.
type ClaimedError struct{ gitcas.Claim }

func (e *ClaimedError) Error() string {
	if e.Ahead {
		return fmt.Sprintf("the jobs that run %s (attempt %d) started for it at %s work on it, or will",
			text.OneLine(e.Run), e.Attempt, text.Time(time.UnixMilli(e.Since)))
	}
	switch e.For {
	case "":
	case ForDelivery:
		return fmt.Sprintf("run %s (attempt %d) on %s is delivering it, last heard of at %s",
			text.OneLine(e.Run), e.Attempt, text.OneLine(e.Host), text.Time(time.UnixMilli(e.Renewed)))
	default:
		return fmt.Sprintf("somebody on %s is about to do something else with it (%s)", text.OneLine(e.Host), text.OneLine(e.For))
	}
	return fmt.Sprintf("run %s (attempt %d) on %s is working on it, last heard of at %s",
		text.OneLine(e.Run), e.Attempt, text.OneLine(e.Host), text.Time(time.UnixMilli(e.Renewed)))
}

// ForDelivery is the purpose of a claim whose job delivers the thread. Those of people are
// for their deed.
const ForDelivery = string(Deliver)

// maxExact is the largest whole number that every JSON reader keeps.
const maxExact = 1<<53 - 1

// ClampClaim is a claim whose numbers can be stored.
func ClampClaim(c gitcas.Claim) gitcas.Claim {
	for _, n := range []*int64{&c.Since, &c.Renewed, &c.Tokens} {
		*n = min(*n, maxExact)
	}
	return c
}

// DescribeDeath says of a job that died without a word what its claim tells.
func DescribeDeath(c gitcas.Claim) string {
	if c.Ahead {
		return fmt.Sprintf("the jobs died that run %s (attempt %d) started, or was to start, at %s; nobody knows what they used, so all that they might have counts",
			text.Cut(c.Run, 100), c.Attempt, text.Time(time.UnixMilli(c.Since)))
	}
	return fmt.Sprintf("the job died: run %s (attempt %d) on %s was last heard of at %s",
		text.Cut(c.Run, 100), c.Attempt, text.Cut(c.Host, 100), text.Time(time.UnixMilli(c.Renewed)))
}

// ClaimUsage is what a job used, as far as its claim tells.
func ClaimUsage(c gitcas.Claim) *record.Usage {
	return &record.Usage{InputTokens: c.Tokens, CostUSD: c.CostUSD, Unpriced: c.Unpriced, DurationMs: max(c.Renewed-c.Since, 0)}
}
