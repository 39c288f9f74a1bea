package deadline

import (
	"time"
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
