package thread

import (
	"strings"

	"github.com/united-workforce/uwf/gitcas"
)

// WayOn is what to do so that a thread that waits goes on: what it is called, and the
// command. A person who is told to answer a limit would resume the thread, and see it
// stop at once; a pause has asked nothing.
func WayOn(id gitcas.ThreadID, reason string) (name, command string) {
	resume := "uwf thread resume " + string(id)
	if flag := limitFlag(reason); flag != "" {
		return "raise it", resume + " " + flag
	}
	if reason == "paused by a person" {
		return "let it go on", resume
	}
	return "answer", resume + ` -p "…"`
}

// limitFlag is the flag that raises the limit that a reason names; empty for other
// reasons.
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
