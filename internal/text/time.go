package text

import (
	"fmt"
	"time"
)

// Time is a time for people anywhere, to the second: 2026-06-04 12:00:05 UTC. Pages, commits
// and comments have it. Programs get RFC 3339 or milliseconds.
func Time(t time.Time) string { return TimeIn(t, time.UTC) }

// TimeIn is a time for the person whose zone it is, and names that: 2026-06-04 14:00:05 CEST,
// or 2026-06-04 09:00:05 -03 where the zone's times have no name.
func TimeIn(t time.Time, zone *time.Location) string {
	return t.In(zone).Format(time.DateTime + " MST")
}

// Took is how long something took that is given in milliseconds, to a tenth of a second.
func Took(ms int64) string {
	return (time.Duration(ms) * time.Millisecond).Round(100 * time.Millisecond).String()
}

// Age is how long something has been so, by its two largest units: "3d 4h", "12m", "40s".
func Age(d time.Duration) string {
	d = max(d, 0)
	switch days, hours, minutes := int(d/(24*time.Hour)), int(d/time.Hour)%24, int(d/time.Minute)%60; {
	case days > 0:
		return fmt.Sprintf("%dd %dh", days, hours)
	case hours > 0:
		return fmt.Sprintf("%dh %dm", hours, minutes)
	case minutes > 0:
		return fmt.Sprintf("%dm", minutes)
	}
	return fmt.Sprintf("%ds", int(d/time.Second))
}
