package condition

import "time"

// Limits by the clock, which apply where those by parts do not.
const (
	MaxTime    = maxTime
	MaxAllTime = maxAllTime
)

// ErrStuck is that of an evaluation that was given up.
var ErrStuck = errStuck

// SetClock lets a test say what time it is, and when waiting for an evaluation that
// does not stop is over.
func (t *Thread) SetClock(now func() time.Time, after func(time.Duration) <-chan time.Time) *Thread {
	t.clock = clock{now, after}
	return t
}
