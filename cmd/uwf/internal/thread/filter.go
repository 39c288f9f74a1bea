package thread

import (
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/statefile"
)

// listStatuses are those that a thread in a list can have.
func listStatuses() []string {
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

func (o *ListOptions) newFilter() (filter, error) {
	f := filter{all: o.All, workflow: o.Workflow, role: o.Role}
	if o.Limit < 0 || o.Offset < 0 {
		return f, app.Usagef("--limit and --offset are numbers of threads from 0")
	}
	for s := range strings.SplitSeq(o.Status, ",") {
		s = strings.ToLower(strings.TrimSpace(s))
		switch {
		case s == "":
		case !slices.Contains(listStatuses(), s):
			near := ""
			if n := app.Near(s, listStatuses()); len(n) > 0 {
				near = "; did you mean " + n[0] + "?"
			}
			return f, app.Usagef("--status %.40q: the statuses are %s%s", s, strings.Join(listStatuses(), ", "), near)
		default:
			f.statuses = append(f.statuses, s)
		}
	}
	var err error
	if f.after, err = app.Moment("--after", o.After, o.Now()); err != nil {
		return f, err
	}
	if f.before, err = app.Moment("--before", o.Before, o.Now()); err != nil {
		return f, err
	}
	f.any = len(f.statuses) > 0 || o.After != "" || o.Before != "" || o.Workflow != "" || o.Role != ""
	return f, nil
}

// wantsOver reports whether threads that are over can fit.
func (f filter) wantsOver() bool {
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

func (f filter) fitsFilter(t listed) bool {
	switch {
	case f.statuses != nil && !slices.Contains(f.statuses, t.Status):
	case f.role != "" && t.NextRole != f.role:
	case f.workflow != "" && t.Name != f.workflow && string(t.Workflow) != f.workflow:
	case !f.after.IsZero() && !t.Started.After(f.after):
	case !f.before.IsZero() && !t.Started.Before(f.before):
	default:
		return true
	}
	return false
}
