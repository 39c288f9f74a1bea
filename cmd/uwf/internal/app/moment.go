package app

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/united-workforce/uwf/gitcas"
)

// Moment reads a time: a date, a date with a time of day, how long ago (7d, 12h,
// 2w, 90m), or a thread, which stands for when it was started. What has no time
// zone is UTC, as all times that uwf prints.
func Moment(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, ok := parseAgo(text); ok {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339, time.DateTime, time.DateTime + " UTC", "2006-01-02 15:04", "2006-01-02T15:04:05", "2006-01-02T15:04"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	if id := gitcas.ThreadID(strings.ToUpper(text)); id.Valid() {
		return id.Time(), nil
	}
	return time.Time{}, Usagef("%s %.80q is no time: write 2026-06-04, 2026-06-04T12:00:00Z (UTC where no zone is said), or how long ago: 90m, 12h, 7d, 2w", flag, text)
}

// parseAgo reads how long something is ago.
func parseAgo(text string) (time.Duration, bool) {
	if text == "" {
		return 0, false
	}
	unit := map[byte]time.Duration{'m': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour}[text[len(text)-1]]
	n, err := strconv.ParseUint(text[:len(text)-1], 10, 32)
	if unit == 0 || err != nil || n > uint64(math.MaxInt64/unit) {
		return 0, false
	}
	return time.Duration(n) * unit, true
}
