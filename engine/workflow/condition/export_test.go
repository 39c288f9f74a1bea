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
	t.measure.now, t.measure.after = now, after
	return t
}

// SetMemory lets a test say how many bytes the heap may grow by.
func (t *Thread) SetMemory(n uint64) *Thread {
	t.measure.memory = n
	return t
}
