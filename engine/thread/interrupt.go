package thread

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/united-workforce/uwf/internal/outage"
)

// What is left to do after an interrupt has to be done within the seven seconds
// that a CI system leaves. All are counted from the interrupt itself: an agent
// that takes long to die takes it from what comes after.
const (
	commitGrace  = 3 * time.Second         // a finished step is committed
	salvageGrace = 3200 * time.Millisecond // the attempt is put together
	linkGrace    = 4200 * time.Millisecond // and named in the thread's entry
	keepGrace    = 5200 * time.Millisecond // or at least pushed
	releaseGrace = 6 * time.Second         // the claim is let go
	leftGrace    = 6500 * time.Millisecond // what agents left on the machine is removed
)

// interrupt knows when a step's context ended.
type interrupt struct {
	ctx   context.Context
	clock Clock
	at    atomic.Pointer[time.Time]
}

type interruptKey struct{}

// watchInterrupt returns a context that outlive can be asked about. Stop it when
// the step is over.
func watchInterrupt(ctx context.Context, clock Clock) (watched context.Context, stop func() bool) {
	i := &interrupt{ctx: ctx, clock: clock}
	return context.WithValue(ctx, interruptKey{}, i), context.AfterFunc(ctx, func() { i.began() })
}

// began is when the interrupt came. It is only asked for after it did.
func (i *interrupt) began() time.Time {
	now := i.clock.Now()
	i.at.CompareAndSwap(nil, &now)
	return *i.at.Load()
}

// outlive returns a context that goes on when ctx ends. It ends by itself after
// limit (0: never), or grace after the interrupt of the step, or else the end of ctx,
// whichever is first.
func outlive(ctx context.Context, limit, grace time.Duration) (context.Context, context.CancelFunc) {
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
		over, forget := i.clock.After(grace - i.clock.Now().Sub(i.began()))
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

// wasInterrupted reports whether the step's context was ended, by whomever.
func wasInterrupted(ctx context.Context) bool {
	i, ok := ctx.Value(interruptKey{}).(*interrupt)
	return ok && i.ctx.Err() != nil
}

// stoppedByPerson reports whether the step's context was ended by a person at the
// terminal, see ErrStopped.
func stoppedByPerson(ctx context.Context) bool {
	i, ok := ctx.Value(interruptKey{}).(*interrupt)
	return ok && errors.Is(context.Cause(i.ctx), ErrStopped)
}
