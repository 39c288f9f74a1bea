// Package outage waits for servers that are away for a while: one policy for requests of
// git, of REST and of models. It makes no request itself.
package outage

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// Patience is how long an outage is waited for where nothing else is said, counted from
// Begin.
const Patience = 10 * time.Minute

// Bounds of the waits: from FirstWait they double up to MostWait. What a server asks for
// goes before, except where less than that is left.
const (
	FirstWait = 2 * time.Second // GitHub advises a few pushes a minute
	MostWait  = time.Minute
	// hurriedWait is the wait of who has only seconds left.
	hurriedWait = 200 * time.Millisecond
)

// Policy says how long is waited. The zero value works: the machine's clock, up to
// Patience, in silence.
type Policy struct {
	// Until is when nothing is waited for any more: the job's deadline, less what it
	// needs after its last request. Zero: For counts.
	Until time.Time
	For   time.Duration // how long is waited; 0: Patience
	// Tell hears of each wait before it begins, but for the short ones after an interrupt;
	// nil: nobody does.
	Tell func(Wait)
	// Now, Sleep and Jitter (in [0,1)) are the clock and the chance; nil: the real ones.
	Now    func() time.Time
	Sleep  func(ctx context.Context, d time.Duration) error
	Jitter func() float64
}

// Wait is one wait, for whoever watches.
type Wait struct {
	Err   error         // why the request failed
	For   time.Duration // how long is waited now
	Until time.Time     // when it would be given up
}

func (w Wait) String() string {
	return fmt.Sprintf("%v; trying again in %s, until %s", w.Err, w.For.Round(100*time.Millisecond), w.Until.UTC().Format("15:04:05 UTC"))
}

// WithDefaults fills in the real clock and chance.
func (p Policy) WithDefaults() Policy {
	if p.Now == nil {
		p.Now = time.Now
	}
	if p.Sleep == nil {
		p.Sleep = Sleep
	}
	if p.Jitter == nil {
		p.Jitter = rand.Float64
	}
	return p
}

// Begin is called before a request is made that may meet an outage, or when it has met one
// and its own time is not to count.
func (p Policy) Begin() *Outage {
	p = p.WithDefaults()
	began := p.Now()
	if p.Until.IsZero() {
		p.Until = began.Add(cmp.Or(p.For, Patience))
	}
	return &Outage{p: p, began: began}
}

// Outage is the time in which one request gets no answer.
type Outage struct {
	p     Policy
	began time.Time
	tries int
}

// Rest is the policy for requests that are made in the middle of the outage: they wait no longer
// than it.
func (o *Outage) Rest() Policy { return o.p }

// Lasted is how long it is since Begin.
func (o *Outage) Lasted() time.Duration { return o.p.Now().Sub(o.began) }

// WaitToRetry waits before the request that failed with err is made again. after is what the
// server asked for; 0: it asked for nothing. The error says that it is not to be made
// again, and wraps err.
func (o *Outage) WaitToRetry(ctx context.Context, err error, after time.Duration) error {
	o.tries++
	now, until := o.p.Now(), o.p.Until
	wait := max(after, o.backOff())
	hurried := isHurried(ctx)
	if hurried {
		wait = hurriedWait
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%w, and then the wait was ended: %w", err, ctx.Err())
	case o.tries == 1 && now.After(until): // nothing is waited for at all
		return err
	case now.Add(wait).After(until) && after > 0:
		return fmt.Errorf("given up: the server asks to wait for %s, and there is no time for that: %w", after, err)
	case now.Add(wait).After(until):
		return fmt.Errorf("given up after %s and %d tries: %w", o.Lasted().Round(time.Second), o.tries, err)
	}
	if o.p.Tell != nil && !hurried {
		o.p.Tell(Wait{Err: err, For: wait, Until: until})
	}
	if serr := o.p.Sleep(ctx, wait); serr != nil {
		return fmt.Errorf("%w, and then the wait was ended: %w", err, cmp.Or(ctx.Err(), serr))
	}
	return nil
}

// backOff is the next wait: between a bound and half of it more, so that jobs which met
// the same outage spread out.
func (o *Outage) backOff() time.Duration {
	bound := MostWait
	if o.tries < 6 {
		bound = min(FirstWait<<(o.tries-1), MostWait)
	}
	return bound + time.Duration(o.p.Jitter()*float64(bound/2))
}

type hurryKey struct{}

// WithHurry returns a context in which nothing is waited for long once hurried says so:
// after an interrupt a job has a few seconds, whatever the server asks for.
func WithHurry(ctx context.Context, hurried func() bool) context.Context {
	return context.WithValue(ctx, hurryKey{}, hurried)
}

func isHurried(ctx context.Context) bool {
	hurried, ok := ctx.Value(hurryKey{}).(func() bool)
	return ok && hurried()
}

// Sleep waits for d, or until ctx ends: then it returns the cause.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// RetryAfter is how long a server wants to be left alone, by the header of that name
// (RFC 9110, 10.2.3: seconds, or a date) or by OpenAI's in milliseconds; 0: it doesn't say.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	for _, form := range []struct {
		header string
		unit   time.Duration
	}{{"Retry-After-Ms", time.Millisecond}, {"Retry-After", time.Second}} {
		n, err := strconv.ParseFloat(h.Get(form.header), 64)
		if err == nil && n > 0 && n < 1<<31 {
			return time.Duration(n * float64(form.unit))
		}
	}
	if at, err := http.ParseTime(h.Get("Retry-After")); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}
