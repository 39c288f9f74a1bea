package liquid

import "time"

// MaxTime is the limit by the clock, which applies where those by turns and bytes do
// not.
const MaxTime = maxTime

// SetClock lets a test say what time it is.
func (t *Template) SetClock(now func() time.Time) { t.now = now }
