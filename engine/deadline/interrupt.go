// Package deadline is the time as the engine sees it, and what is left of it once a job is
// told to end.
package deadline

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/united-workforce/uwf/internal/outage"
)

// ErrStopped is the cause with which a step's context is ended where a person at the
// terminal stopped it. What there is is kept and was paid for, but nothing failed: it
// counts for no suspension. A job that is ended from outside failed.
var ErrStopped = errors.New("a person stopped it")

// What is left to do after an interrupt has to be done within the seven seconds
// that a CI system leaves. All are counted from the interrupt itself: an agent
// that takes long to die takes it from what comes after.
const (
	CommitGrace  = 3 * time.Second         // a finished step is committed
	SalvageGrace = 3200 * time.Millisecond // the attempt is put together
	LinkGrace    = 4200 * time.Millisecond // and named in the thread's entry
	KeepGrace    = 5200 * time.Millisecond // or at least pushed
	ReleaseGrace = 6 * time.Second         // the claim is let go
	CleanupGrace = 6500 * time.Millisecond // what agents left on the machine is removed
)

// interrupt knows when a step's context ended.
type interrupt struct {
	ctx   context.Context
	clock Clock
	at    atomic.Pointer[time.Time]
}

type interruptKey struct{}

// WatchInterrupt returns a context that outlive can be asked about. Stop it when
// the step is over.
func WatchInterrupt(ctx context.Context, clock Clock) (watched context.Context, stop func() bool) {
	i := &interrupt{ctx: ctx, clock: clock}
	return context.WithValue(ctx, interruptKey{}, i), context.AfterFunc(ctx, func() { i.beganAt() })
}

// beganAt is when the interrupt came. It is only asked for after it did.
func (i *interrupt) beganAt() time.Time {
	now := i.clock.Now()
	i.at.CompareAndSwap(nil, &now)
	return *i.at.Load()
}

// Outlive returns a context that goes on when ctx ends. It ends by itself after
// limit (0: never), or grace after the interrupt of the step, or else the end of ctx,
// whichever is first.
func Outlive(ctx context.Context, limit, grace time.Duration) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	if limit > 0 {
		out, cancel = context.WithTimeout(context.WithoutCancel(ctx), limit)
	}
	i, ok := ctx.Value(interruptKey{}).(*interrupt)
	if !ok {
		i = &interrupt{ctx: ctx, clock: SystemClock{}}
	}
	out = outage.WithHurry(out, func() bool { return i.ctx.Err() != nil })
	stop := context.AfterFunc(i.ctx, func() {
		over, forget := i.clock.After(grace - i.clock.Now().Sub(i.beganAt()))
		defer forget()
		select {
		case <-over:
			cancel()
		case <-out.Done():
		}
	})
	return out, func() {
		stop()
		cancel()
	}
}

// WasInterrupted reports whether the step's context was ended, by whomever.
func WasInterrupted(ctx context.Context) bool {
	i, ok := ctx.Value(interruptKey{}).(*interrupt)
	return ok && i.ctx.Err() != nil
}

// StoppedByPerson reports whether the step's context was ended by a person at the
// terminal, see ErrStopped.
func StoppedByPerson(ctx context.Context) bool {
	i, ok := ctx.Value(interruptKey{}).(*interrupt)
	return ok && errors.Is(context.Cause(i.ctx), ErrStopped)
}

// What bounds the single parts of a step on this machine, as long as no interrupt does. How
// long the remote is waited for the Store's policy says.
const (
	// SealTimeout: what the agent left is read, checked and compared.
	SealTimeout = 2 * time.Minute
	// SalvageTimeout is the same for an attempt.
	SalvageTimeout = 30 * time.Second
)

// Clock is the time as the engine sees it.
type Clock interface {
	Now() time.Time
	// After returns a channel that delivers once d has passed, and a stop function.
	After(d time.Duration) (<-chan time.Time, func())
}

// SystemClock is the machine's clock.
type SystemClock struct{}

// Now is time.Now.
func (SystemClock) Now() time.Time { return time.Now() }

// After is a time.Timer.
func (SystemClock) After(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}
