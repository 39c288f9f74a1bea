package thread

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/statefile"
)

// statuses are those that a thread in a list can have.
func statuses() []string {
	return []string{
		lookup.Running, string(gitcas.StatusActive), lookup.Failed, string(gitcas.StatusSuspended),
		statefile.ReasonEnded, statefile.ReasonCancelled,
	}
}

// filter says which threads are listed.
type filter struct {
	any           bool     // something is filtered
	statuses      []string // nil: live ones, and with all the others too
	all           bool
	after, before time.Time
	workflow      string
	role          string
}

func (o *ListOptions) filter() (filter, error) {
	f := filter{all: o.All, workflow: o.Workflow, role: o.Role}
	if o.Limit < 0 || o.Offset < 0 {
		return f, app.Usagef("--limit and --offset are numbers of threads from 0")
	}
	for s := range strings.SplitSeq(o.Status, ",") {
		s = strings.ToLower(strings.TrimSpace(s))
		switch {
		case s == "":
		case !slices.Contains(statuses(), s):
			near := ""
			if n := app.Near(s, statuses()); len(n) > 0 {
				near = "; did you mean " + n[0] + "?"
			}
			return f, app.Usagef("--status %.40q: the statuses are %s%s", s, strings.Join(statuses(), ", "), near)
		default:
			f.statuses = append(f.statuses, s)
		}
	}
	var err error
	if f.after, err = moment("--after", o.After, o.Now()); err != nil {
		return f, err
	}
	if f.before, err = moment("--before", o.Before, o.Now()); err != nil {
		return f, err
	}
	f.any = len(f.statuses) > 0 || o.After != "" || o.Before != "" || o.Workflow != "" || o.Role != ""
	return f, nil
}

// over reports whether threads that are over can fit.
func (f filter) over() bool {
	if f.statuses == nil {
		return f.all
	}
	return slices.Contains(f.statuses, statefile.ReasonEnded) || slices.Contains(f.statuses, statefile.ReasonCancelled)
}

// historyFrom is the time before which no thread ended that fits: none ends
// before it was started. Clocks differ, so a day more is read.
func (f filter) historyFrom() time.Time {
	if f.after.IsZero() {
		return time.Time{}
	}
	return f.after.Add(-24 * time.Hour)
}

func (f filter) fits(t listed, workflow node.Hash) bool {
	switch {
	case f.statuses != nil && !slices.Contains(f.statuses, t.Status):
	case f.role != "" && t.NextRole != f.role:
	case f.workflow != "" && t.Workflow != f.workflow && string(workflow) != f.workflow:
	case !f.after.IsZero() && !t.Started.After(f.after):
	case !f.before.IsZero() && !t.Started.Before(f.before):
	default:
		return true
	}
	return false
}

// moment reads a time: a date, a date with a time of day, how long ago (7d, 12h,
// 2w, 90m), or a thread, which stands for when it was started. What has no time
// zone is UTC, as all times that uwf prints.
func moment(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, ok := ago(text); ok {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339, time.DateTime, "2006-01-02 15:04", "2006-01-02T15:04:05", "2006-01-02T15:04"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	if id := gitcas.ThreadID(strings.ToUpper(text)); id.Valid() {
		return id.Time(), nil
	}
	return time.Time{}, app.Usagef("%s %.80q is no time: write 2026-06-04, 2026-06-04T12:00:00Z (UTC where no zone is said), or how long ago: 90m, 12h, 7d, 2w", flag, text)
}

// ago reads how long something is ago.
func ago(text string) (time.Duration, bool) {
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
