package app

import (
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/engine/life"
)

// needs are what a verb takes besides a thread, as it is typed.
var needs = map[string]string{
	life.NeedsText: `-p "…"`, "maxSteps": "--max-steps N", "maxStepsPerRole": "--max-steps-per-role N", "tokens": "--max-tokens N",
	"costUsd": "--max-cost DOLLARS", "wall": "--max-time TIME",
}

// Command is what a person types to do something next.
func Command(v life.Verb) string {
	thread, verb := string(v.Thread), string(v.Do)
	switch {
	case v.Do == life.Check:
		return "uwf fsck --history"
	case v.Do == life.Take:
		verb = "retry --take"
	case v.Do == life.Fork && v.Steps >= 0:
		thread = fmt.Sprintf("%s:%d", v.Thread, v.Steps)
	}
	return strings.TrimSpace("uwf thread " + verb + " " + thread + " " + needs[v.Needs])
}

// NextLines are what can be done about an error, a line each.
func NextLines(err error) string {
	var b strings.Builder
	for _, v := range life.NextOf(err) {
		b.WriteString("\n" + v.For + ": " + Command(v))
	}
	return b.String()
}

// NextCommand is what the first of some verbs is for, and the command.
func NextCommand(verbs []life.Verb) (what, command string) {
	if len(verbs) == 0 {
		return "", ""
	}
	return verbs[0].For + ":", Command(verbs[0])
}
