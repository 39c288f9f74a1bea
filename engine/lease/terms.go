package lease

import (
	"cmp"
	"time"

	"github.com/united-workforce/uwf/engine/deadline"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas"
)

// What is done about claims, and when.
const (
	// RenewEvery is how long an agent runs between two renewals of its claim.
	RenewEvery = 4 * time.Minute
	// WatchEvery is how often a job looks whether its claim and thread are still there;
	// half as often from the time on that is watchClosely.
	WatchEvery   = 15 * time.Second
	watchClosely = 10 * time.Minute

	// ClaimSpare is what a claim lives longer than its job should need it.
	ClaimSpare = 20 * time.Minute
	// SealingTime is what is left of a claim when its agent is stopped.
	SealingTime = deadline.SealTimeout + 2*time.Minute
	// queueTime is how long each of two jobs that share a claim may wait for its runner.
	queueTime = 30 * time.Minute
	// DeliveryTime is how long a delivery should take.
	DeliveryTime = 20 * time.Minute
	// DeedTime is how long what a person does should take.
	DeedTime = time.Minute
	// Standstill is how long a claim must not have moved that is dead by a guessed clock.
	Standstill = 5 * time.Minute
)

// Terms are what a thread is claimed for.
type Terms struct {
	Purpose life.Deed     // what the claim is for; empty: a step
	Work    time.Duration // how long its agent, or whoever else works, may take; 0: as long as a claim may live
	Budget  task.Budget   // what its agent may use
	Ahead   bool          // it is for jobs that are yet to be started
	// Take, where it is not nil, takes whatever claim there is, on a person's word, which is
	// put here.
	Take *gitcas.Held
}

// endsAt is when a claim on these terms is over that is made at a time.
func (t Terms) endsAt(since time.Time) time.Time {
	lasts := t.Work + SealingTime + ClaimSpare
	if t.Ahead {
		lasts += 2 * queueTime
	}
	if t.Work == 0 || lasts > life.MaxClaim {
		lasts = life.MaxClaim
	}
	return since.Add(lasts)
}

// Took reports whether a claim was taken from somebody else.
func (t Terms) Took() bool { return t.Take != nil && !t.Take.ID.IsZero() }

// deed is what the claim is for.
func (t Terms) deed() life.Deed { return cmp.Or(t.Purpose, life.Step) }
