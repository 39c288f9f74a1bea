package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas/record"
)

// Sentence says what is going on, as one line of plain text.
func Sentence(t Thread) string { return writeSentence(t, cleanName) }

// icons are what a thread's comment begins with in each state.
var icons = map[State]string{
	Running: "⚙️", Queued: "⏳", Held: "⏳", Waiting: "💬", Limited: "⏸️", Failed: "❌", Damaged: "❌", Lost: "⚠️", Delivered: "✅", NoChanges: "✅", Cancelled: "🚫",
}

// chooseIcon returns what the comment begins with.
func (t Thread) chooseIcon() string {
	if t.State == NoChanges && t.wasSkipped() {
		return "⚠️"
	}
	return cmp.Or(icons[t.State], "ℹ️")
}

// writeSentence is Sentence with names written as who says.
func writeSentence(t Thread, who func(string) string) string {
	role, step := who(t.Role), t.nextStep()
	if t.Role == "" {
		role = "The next role"
	}
	switch t.State {
	case Running:
		if t.Delivering {
			return fmt.Sprintf("All steps are done; the result is being delivered%s.", t.sinceWhen())
		}
		return fmt.Sprintf("%s is working on step %d%s.", role, step, t.sinceWhen())
	case Queued:
		if t.Delivering {
			return "All steps are done; the job that delivers the result is on its way."
		}
		return fmt.Sprintf("%s is next, with step %d; the job for it is on its way.", role, step)
	case Held:
		return fmt.Sprintf("%s is next, with step %d, and goes on by itself when steps of other threads are done.", role, step)
	case Lost:
		return t.describeLost()
	case Damaged:
		return "The branch that threads are kept on is damaged: nothing goes on until a person mends it."
	case Waiting:
		switch {
		case t.Delivering:
			return "All steps are done, but the result is not delivered until a person says so."
		case t.Role == "" || !t.Asks:
			return fmt.Sprintf("The thread waits for a person before step %d.", step)
		}
		return role + " has a question, and waits for an answer."
	case Limited:
		return fmt.Sprintf("Paused before step %d: the limit %s is reached.", step, limitWords(t.Limit))
	case Failed:
		return t.describeFailed(role)
	case Delivered:
		return t.describeDelivered()
	case NoChanges:
		if t.wasSkipped() {
			return "Done, but no file was changed: what an agent wrote could not be kept. The notes below say why."
		}
		return "Done, and no file was changed."
	case Cancelled:
		by, now := "Cancelled", ". No agent works on this any more."
		if t.Closed != nil {
			by += " by " + t.closedBy(who)
		}
		if t.Stopping {
			now = ". The agent that works on this is told to end."
		}
		return by + now
	}
	return fmt.Sprintf("The thread is at step %d.", step)
}

// wasSkipped reports whether a step could keep nothing of what its agent wrote.
func (t Thread) wasSkipped() bool {
	return slices.ContainsFunc(t.Steps, func(s Step) bool {
		return slices.ContainsFunc(s.Notes, func(note string) bool { return strings.Contains(note, record.NoteAllSkipped) })
	})
}

// describeLost says what became of the job that was to go on.
func (t Thread) describeLost() string {
	job, at := fmt.Sprintf("The job for step %d", t.nextStep()), ""
	if t.Delivering {
		job = "All steps are done, but the job that delivers the result"
	}
	switch {
	case t.Lost.Began && !t.Lost.At.IsZero():
		at = "; nothing was heard of it after " + formatMoment(t.Lost.At, t.Now)
	case !t.Lost.At.IsZero():
		at = "; it has been due since " + formatMoment(t.Lost.At, t.Now)
	}
	what := " has not begun"
	if t.Lost.Began {
		if what = " died"; t.Links.Gitea { // where a job can't always ask
			what = " died or was cancelled"
		}
	}
	again := "."
	if t.Lost.Again {
		again = ". Another one is on its way."
	}
	return job + what + at + again
}

// nextStep is the number of the step that comes after those that are done.
func (t Thread) nextStep() int {
	if n := len(t.Steps); n > 0 {
		return max(t.Steps[n-1].N, 0) + 1
	}
	return 1
}

func (t Thread) sinceWhen() string {
	if t.Since.IsZero() {
		return ""
	}
	return ", since " + formatMoment(t.Since, t.Now)
}

func limitWords(name string) string {
	if kind, ok := strings.CutPrefix(name, moderator.MonthPrefix); ok {
		return "on a month's " + workflow.FindLimit(kind).On
	}
	if on := workflow.FindLimit(name).On; on != "" {
		return "on " + on
	}
	return "of this thread"
}

func (t Thread) describeFailed(role string) string {
	phase := ""
	if t.Failure != nil {
		phase = t.Failure.Phase
	}
	switch {
	case phase == "deliver":
		return "All steps are done, but the result could not be delivered."
	case phase == "dispatch":
		return fmt.Sprintf("The job for step %d could not be started, and nothing goes on by itself.", t.nextStep())
	case t.Role == "":
		return fmt.Sprintf("Step %d failed%s, and nothing goes on by itself.", t.nextStep(), t.countTries())
	}
	return fmt.Sprintf("%s failed at step %d%s, and nothing goes on by itself.", role, t.nextStep(), t.countTries())
}

// countTries counts all of them: that some were forgiven makes none undone.
func (t Thread) countTries() string {
	if t.Failure == nil || t.Failure.Tries < 2 {
		return ""
	}
	return fmt.Sprintf(" for the %s time", formatOrdinal(t.Failure.Tries))
}

func (t Thread) describeDelivered() string {
	switch {
	case t.Pull != nil && t.SubjectPull && t.Pull.Number == t.Subject:
		return "Done: the changes are on this pull request's branch."
	case t.Pull != nil && t.Pull.Draft:
		return fmt.Sprintf("Done: pull request #%d is there, as a draft.", t.Pull.Number)
	case t.Pull != nil && t.Pull.Updated:
		return fmt.Sprintf("Done: pull request #%d is brought up to date, and ready for review.", t.Pull.Number)
	case t.Pull != nil:
		return fmt.Sprintf("Done: pull request #%d is ready for review.", t.Pull.Number)
	case t.Prevented != "":
		return "Done, but the pull request has to be opened by you."
	}
	return "Done."
}

func formatOrdinal(n int) string {
	if ending := []string{"th", "st", "nd", "rd"}; n%10 < len(ending) && n/10%10 != 1 {
		return fmt.Sprint(n, ending[n%10])
	}
	return fmt.Sprint(n, "th")
}

// formatMoment is a time as UTC; with the day, unless it is now's.
func formatMoment(at, now time.Time) string {
	at, now = at.UTC(), now.UTC()
	if at.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return at.Format("15:04 UTC")
	}
	return at.Format("2 January 15:04 UTC")
}

// formatDuration is a duration in its two largest units: 0s, 45s, 2m 5s, 3h 20m, 2d 4h.
func formatDuration(d time.Duration) string {
	left := max(d, 0).Round(time.Second)
	out := ""
	for i, name := range []string{"d", "h", "m", "s"} {
		size := []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second}[i]
		n := left / size
		left %= size
		switch {
		case out != "" && n > 0:
			return fmt.Sprintf("%s %d%s", out, n, name)
		case out != "":
			return out
		case n > 0 || name == "s":
			out = fmt.Sprintf("%d%s", n, name)
		}
	}
	return out
}

// formatAmount is a count in three digits or so: 950, 12.4k, 340k, 1.2M.
func formatAmount(n int64) string {
	n = max(n, 0)
	for _, unit := range []struct {
		size float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		v := float64(n) / unit.size
		switch {
		case v >= 99.95:
			return strconv.FormatFloat(math.Round(v), 'f', 0, 64) + unit.name
		case v >= 0.9995:
			return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0") + unit.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// formatPrice is a cost that may be known in part, or not at all.
func formatPrice(usd float64, unpriced bool) string {
	switch {
	case unpriced && !(usd > 0):
		return "cost unknown"
	case unpriced:
		return "at least $" + formatDollars(usd)
	}
	return "$" + formatDollars(usd)
}

// formatDollars is a cost without its sign: cents, and more digits below a cent.
func formatDollars(usd float64) string {
	switch {
	case !(usd > 0): // NaN too
		return "0"
	case usd < 0.0001:
		return "0.0001"
	case usd < 0.01:
		return strconv.FormatFloat(usd, 'f', 4, 64)
	}
	return strconv.FormatFloat(min(usd, 1e9), 'f', 2, 64)
}
