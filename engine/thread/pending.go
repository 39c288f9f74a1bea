package thread

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
)

// Pending is a thread whose next step, or delivery, is due and nobody's work.
type Pending struct {
	Thread  gitcas.ThreadID
	Head    node.Hash
	Deliver bool
	Since   time.Time // the zero time where nobody wrote it down
}

// Pending lists the threads of a view that have waited for their next step, or for
// their delivery, for longer than idle, without a claim that counts: the job that was
// to do it died, or was never started. The view must have been loaded for no thread
// in particular, which is the claims of all. The oldest come first.
//
// What failed in a job that lived to say so is a person's to try again, and not
// listed; nor is what was interrupted, which the job's own run takes up. A delivery, which costs nothing, is tried until MaxAttempts of them failed,
// which suspends the thread. So is a step whose jobs died MaxAttempts times: nothing
// is listed for ever.
func (e *Engine) Pending(v *gitcas.View, idle time.Duration) []Pending {
	var out []Pending
	for id, entry := range v.Threads() {
		p := Pending{Thread: id, Head: entry.Head}
		var since int64
		switch {
		case entry.Status == gitcas.StatusActive && entry.Next != nil && life.CountAttempts(entry, id, nil) == 0:
			since = entry.Next.Since
		case entry.Status == gitcas.StatusEnded && entry.Deliver:
			since, p.Deliver = entry.Since, true
		default:
			continue
		}
		if since != 0 {
			p.Since = time.UnixMilli(since)
		}
		// A time to come says nothing, like a claim's: a wrong clock must not keep
		// everybody out.
		if v.Time().Sub(p.Since).Abs() <= idle {
			continue
		}
		if held, claimed := v.Claim(id); claimed && e.Leases().Counts(v, held.Claim, entry) {
			continue
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b Pending) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Thread, b.Thread))
	})
	return out
}

// Find looks for the thread that has a key, whatever its status. Of several it is
// the oldest. One that is over has given its key back.
func Find(v *gitcas.View, key string) (gitcas.ThreadID, bool) {
	threads := v.Threads()
	for _, id := range slices.Sorted(maps.Keys(threads)) {
		if key != "" && threads[id].Key == key {
			return id, true
		}
	}
	return "", false
}
