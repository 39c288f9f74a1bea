package text

import "time"

// Time is a time for a person, to the second: 2026-06-04 12:00:05 UTC. Programs get RFC 3339
// or milliseconds.
func Time(t time.Time) string { return t.UTC().Format(time.DateTime + " UTC") }
