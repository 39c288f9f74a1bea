package lease

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/gitcas"
)

// Counts reports whether a claim that v shows keeps others out: it is on the thread's
// present head and alive.
func (k *Keeper) Counts(v *gitcas.View, c gitcas.Claim, entry gitcas.Entry) bool {
	return c.Head == entry.Head && k.IsAlive(v, c)
}

// IsAlive reports whether the job of a claim that v shows is to be taken for running. What
// this machine, or this run, knows for certain goes before what the claim says of itself.
func (k *Keeper) IsAlive(v *gitcas.View, c gitcas.Claim) bool {
	return k.IsAliveAt(c, v.Time(), v.TimeGuessed())
}

// IsAliveAt is IsAlive at a time of the server, which may be a guess.
func (k *Keeper) IsAliveAt(c gitcas.Claim, now time.Time, guessed bool) bool {
	if alive, known := k.checkAlive(c); known {
		return alive
	}
	return life.AliveAt(c, now, guessed)
}

// IsSurelyDead reports whether a claim's job is dead by more than a guessed clock: then it need
// not stand for a while before it is taken away.
func (k *Keeper) IsSurelyDead(v *gitcas.View, c gitcas.Claim) bool {
	if alive, known := k.checkAlive(c); known {
		return !alive
	}
	return !v.TimeGuessed() && !k.IsAlive(v, c)
}

// checkAlive reports whether a claim's job is running, where that is known without a clock.
func (k *Keeper) checkAlive(c gitcas.Claim) (alive, known bool) {
	if k.IsOver(c) {
		return false, true
	}
	if w := k.Who; w.Alive != nil && !c.Ahead && c.Host == w.Host && c.Boot != "" && c.Boot == w.Boot && c.PIDNS != "" && c.PIDNS == w.PIDNS && c.Started > 0 {
		return w.Alive(c.PID, c.Started), true
	}
	return false, false
}

// IsOver reports whether a claim is one that this engine has let go, of an earlier
// attempt of this job, or of a job of this run that is known to be over. One that was made
// ahead is over with the jobs that it was made for, or where its maker was killed, that may
// never have started them.
func (k *Keeper) IsOver(c gitcas.Claim) bool {
	if _, over := k.Released.Load(c.Nonce); over && c.Nonce != "" {
		return true
	}
	if c.Ahead && c.Nonce != "" && c.Nonce == k.Who.Ahead {
		return len(k.Who.Over) > 0
	}
	if !k.isSameRun(c) {
		return false
	}
	if c.Ahead {
		return c.Attempt == k.Who.Attempt && slices.Contains(k.Who.Killed, c.Job)
	}
	return c.Job == k.Who.Job && c.Attempt < k.Who.Attempt || c.Attempt == k.Who.Attempt && slices.Contains(k.Who.Over, c.Job)
}

// isSameRun reports whether a claim's job belongs to this job's CI run.
func (k *Keeper) isSameRun(c gitcas.Claim) bool {
	run := cmp.Or(k.Who.CIRun, k.Who.Run)
	return c.Run == run || k.Who.CIRun != "" && strings.HasPrefix(c.Run, run+"-")
}

// IsLeftBehind reports whether a claim is one of this job whose process ended before it
// could let it go.
func (k *Keeper) IsLeftBehind(v *gitcas.View, c gitcas.Claim) bool {
	return k.isSameRun(c) && c.Job == k.Who.Job && !k.IsAlive(v, c)
}
