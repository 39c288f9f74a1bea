package life

import (
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/gitcas"
)

// WayOn is what a person does so that a thread that waits goes on: what it is called, and
// the command. A person who is told to answer a limit would resume the thread, and see it
// stop at once; a pause has asked nothing; and what failed is tried again.
func WayOn(id gitcas.ThreadID, reason string) (name, command string) {
	resume := "uwf thread resume " + string(id)
	if flag := limitFlag(reason); flag != "" {
		return "raise it", resume + " " + flag
	}
	if retry := RetryCommand(id); strings.HasSuffix(reason, retry) {
		return "try again", retry
	}
	if reason == PausedByPerson {
		return "let it go on", resume
	}
	return "answer", resume + ` -p "…"`
}

// RetryCommand is the command after which what failed too often may be tried again.
func RetryCommand(id gitcas.ThreadID) string { return "uwf thread retry " + string(id) }

// limitFlag is the flag that raises the limit that a reason names, with a word for its
// value; empty for other reasons.
func limitFlag(reason string) string {
	reason, ok := strings.CutPrefix(reason, "limit ")
	if !ok {
		return ""
	}
	limit, _, _ := strings.Cut(reason, " reached: ")
	return map[string]string{
		"maxSteps": "--max-steps N", "maxStepsPerRole": "--max-steps-per-role N", "tokens": "--max-tokens N",
		"costUsd": "--max-cost DOLLARS", "wall": "--max-time TIME",
	}[limit]
}

// AdviseWait is what comes before anything that a thread must wait for.
func AdviseWait(id gitcas.ThreadID) string {
	return fmt.Sprintf("make it wait with: uwf thread step %s\nthen ", id)
}

// AdviseRaise says how a limit is raised that a thread has reached.
func AdviseRaise(id gitcas.ThreadID, reached error) string {
	name, command := WayOn(id, reached.Error())
	return name + " with: " + command + "; where the configuration or the workflow sets it, there first: the lowest counts"
}
