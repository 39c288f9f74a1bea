package life

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/text"
)

// PhaseStopped is the phase of an attempt that a person stopped: it did not fail.
const PhaseStopped = "stopped"

// PhaseInterrupted is the phase of an attempt whose job was ended from outside, by SIGTERM.
// It failed, but nobody knows whether the step itself would have: the job's run may try
// it again.
const PhaseInterrupted = "interrupted"

// LinkAttempts names attempts in the entry: claims found dead first.
func LinkAttempts(entry *gitcas.Entry, id gitcas.ThreadID, died []string, own ...string) {
	entry.Attempts = AttemptsOf(*entry, id, died, own...)
}

// AttemptsOf are the refs of the attempts that an entry names, those that a claim names in
// died, as <run>.<attempt>, and some more, each once.
func AttemptsOf(entry gitcas.Entry, id gitcas.ThreadID, died []string, more ...string) []string {
	attempts := slices.Clone(entry.Attempts)
	refs := lists.Map(died, func(d string) string { return layout.AttemptRefs(id) + d })
	for _, ref := range append(refs, more...) {
		if !slices.Contains(attempts, ref) {
			attempts = append(attempts, ref)
		}
	}
	return attempts
}

// ForgiveAttempts takes some linked attempts out of those that count. They stay linked, and what
// they took stays counted.
func ForgiveAttempts(entry *gitcas.Entry, attempts int, role string) {
	if attempts > 0 {
		next := *cmp.Or(entry.Next, &gitcas.Next{Role: role})
		next.Forgiven += attempts
		entry.Next = &next
	}
}

// CountAttempts counts the failed attempts on the thread's present head that have
// not been forgiven by a resume.
func CountAttempts(entry gitcas.Entry, id gitcas.ThreadID, died []string) int {
	n := len(AttemptsOf(entry, id, died))
	if entry.Next != nil {
		n -= entry.Next.Forgiven
	}
	return max(n, 0)
}

// SameThread compares entries by all that the step was worked out from: comment,
// pull request and attempts may change meanwhile, and a pause only concerns the
// step after it. What the steps used follows from the head, and what was spent concerns others.
func SameThread(a, b gitcas.Entry) bool {
	a.Comment, a.PR, a.Attempts, a.Pause, a.Used, a.Spent = 0, 0, nil, nil, gitcas.Used{}, gitcas.Spent{}
	b.Comment, b.PR, b.Attempts, b.Pause, b.Used, b.Spent = 0, 0, nil, nil, gitcas.Used{}, gitcas.Spent{}
	return reflect.DeepEqual(a, b)
}

// SameTask is SameThread for a step that is at hand: a retry since tells nobody anything new.
func SameTask(now, then gitcas.Entry) bool {
	if now.Next != nil && then.Next != nil && now.Next.Forgiven > then.Next.Forgiven {
		next := *now.Next
		next.Since, next.Forgiven, next.By = then.Next.Since, then.Next.Forgiven, then.Next.By
		now.Next, now.Released = &next, then.Released
	}
	return SameThread(now, then)
}

// DescribeEnd says what became of a thread that is no longer on the tip.
func DescribeEnd(e gitcas.Ended) string {
	switch e.Reason {
	case "":
		return "it is gone from the store"
	case gitcas.ReasonEnded:
		return "it has ended"
	}
	return "it was " + e.Reason
}

// Effects are what a job made for a thread outside of the store: the comment that
// tells of it, and its pull request. 0: not known.
type Effects struct {
	Comment int64
	PR      int
	Link    string // where people see the pull request; it is in no entry
}

// AddTo puts what is known into an entry. base is the entry that the job began with:
// what it only repeats from there does not undo what somebody else wrote since.
func (f Effects) AddTo(entry *gitcas.Entry, base gitcas.Entry) {
	if f.Comment > 0 && (f.Comment != base.Comment || entry.Comment == 0) {
		entry.Comment = f.Comment
	}
	if f.PR > 0 && (f.PR != base.PR || entry.PR == 0) {
		entry.PR = f.PR
	}
}

// WithoutEffects is an entry without what a job may write there beside the one that
// works on the thread, and that doesn't concern its work.
func WithoutEffects(e gitcas.Entry) gitcas.Entry {
	e.Comment, e.PR = 0, 0
	return e
}

// MaxAttempts is how many failed attempts on one head suspend a thread.
const MaxAttempts = 3

// MakeWait suspends a thread before a role.
func MakeWait(entry *gitcas.Entry, role, reason string, by *record.By) {
	entry.Status, entry.Pause = gitcas.StatusSuspended, nil
	entry.Suspended = &gitcas.Suspended{Role: role, Reason: text.Cut(reason, MaxReason), By: by}
}

// Hold is what keeps a thread from going on without a person's word; its zero value: nothing
// does.
type Hold struct {
	Reason string
	Over   bool // nobody can want the work any more: the thread is cancelled
}

// ApplyPause lets a pause take effect: the thread waits.
func ApplyPause(entry *gitcas.Entry, role string) {
	MakeWait(entry, role, entry.Pause.Reason, entry.Pause.By)
}

// LetGoOn has a role work next, on somebody's word: failed attempts no longer count. What
// was said to it, and which step it does again, stays.
func LetGoOn(entry *gitcas.Entry, role string, since int64, by *record.By) {
	next := *cmp.Or(entry.Next, &gitcas.Next{})
	next.Role, next.Since, next.Forgiven, next.By = role, since, len(entry.Attempts), by
	entry.Status, entry.Suspended, entry.Pause, entry.Next, entry.Released = gitcas.StatusActive, nil, nil, &next, since
}

// ReopenEnded has a role work next in a thread that had ended.
func ReopenEnded(entry *gitcas.Entry, role string, since int64, by *record.By) {
	UndoDelivery(entry)
	entry.Next, entry.Attempts = nil, nil
	LetGoOn(entry, role, since, by)
}

// EndThread ends a thread; at is when, where it is to be delivered.
func EndThread(entry *gitcas.Entry, deliver bool, at int64) {
	entry.Status, entry.Next, entry.Suspended, entry.Pause, entry.Attempts = gitcas.StatusEnded, nil, nil, nil, nil
	if deliver {
		entry.Deliver, entry.Since = true, at
	}
}

// NextTime is the time of a change to an entry. The entry must differ from what it
// was, see the commit rules, also where the clock stands still.
func NextTime(v *gitcas.View, entry gitcas.Entry) int64 {
	since := v.Time().UnixMilli()
	if entry.Next != nil {
		since = max(since, entry.Next.Since+1)
	}
	return since
}

// DeliverAgain makes an entry one that waits to be delivered, as on its first day. The
// time differs, so that a delivery that still runs can't be noted.
func DeliverAgain(v *gitcas.View, entry *gitcas.Entry) {
	entry.Since = max(v.Time().UnixMilli(), entry.Since+1)
	entry.Released = entry.Since
	entry.Status, entry.Deliver, entry.Suspended, entry.Attempts = gitcas.StatusEnded, true, nil, nil
}

// UndoDelivery takes back that a thread has ended and is to be delivered. What failed
// or died was a delivery: it does not count as an attempt at a step.
func UndoDelivery(entry *gitcas.Entry) {
	if entry.Deliver {
		entry.Deliver, entry.Since, entry.Attempts = false, 0, nil
	}
}

// WaitingRole is the role that a suspended thread waits for, as far as the entry tells.
func WaitingRole(entry gitcas.Entry) string { return entry.WaitingRole() }

// MaxReason bounds the reason in a thread's entry, in bytes. What an agent asked
// stands whole in its output.
const MaxReason = 8 << 10

// PausedByPerson is the reason of a pause for which a person gave none.
const PausedByPerson = "paused by a person"

// WaitReason is why a thread waits.
func WaitReason(entry gitcas.Entry) string {
	if entry.Suspended == nil {
		return ""
	}
	return entry.Suspended.Reason
}
