package text

import "time"

// Time is a time for a person, to the second: 2026-06-04 12:00:05 UTC. Programs get RFC 3339
// or milliseconds.
func Time(t time.Time) string { return t.UTC().Format(time.DateTime + " UTC") }

// Took is how long something took that is given in milliseconds, to a tenth of a second.
func Took(ms int64) string {
	return (time.Duration(ms) * time.Millisecond).Round(100 * time.Millisecond).String()
}
