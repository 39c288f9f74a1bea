package step

import (
	"fmt"

	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/workspace"
	"github.com/united-workforce/uwf/internal/lists"
)

const (
	// maxLeftOut is how much of what is not in its folder an agent's context.json lists.
	maxLeftOut = 1_000
	// maxNotes is how many notes a step has at most.
	maxNotes = 20
)

// describeSnapshot says what a snapshot does not keep, or not in git's form, a line each.
func (r *agentRun) describeSnapshot(snap *workspace.Snapshot) []string {
	lines := lists.Map(snap.Skipped, func(k workspace.Skipped) string {
		return r.cleanLine(fmt.Sprintf("%s is not kept: %s", k.Path, k.Why))
	})
	if n := snap.MoreSkipped; n > 0 {
		lines = append(lines, fmt.Sprintf("%d more are not kept", n))
	}
	if len(lines) > 0 && snap.Unchanged {
		lines = append([]string{record.NoteAllSkipped}, lines...)
	}
	return append(lines, lists.Map(snap.Raw, func(k workspace.Skipped) string {
		return r.cleanLine(fmt.Sprintf("%s is committed as it is: %s", k.Path, k.Why))
	})...)
}

// noteFolder makes the step's notes: what its agent's folder did not have, and what is said of
// the snapshot of it.
func noteFolder(r *agentRun, snapshot []string) (notes []string) {
	if said := workspace.DescribeLeftOut(r.leftOut); said != "" {
		notes = append(notes, said)
	}
	notes = append(notes, snapshot...)
	if more := len(notes) - maxNotes; more > 0 {
		notes = append(notes[:maxNotes-1], fmt.Sprintf("and %d more: the log of the run has them", more+1))
	}
	return notes
}

// reportedNotes are the notes of another job, marked as its word.
func reportedNotes(r *agentRun, said []string, who string) []string {
	return lists.Map(said[:min(len(said), maxNotes)], func(note string) string {
		return r.cleanLine("reported by " + who + ": " + note)
	})
}
