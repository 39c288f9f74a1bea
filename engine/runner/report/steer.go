package report

import (
	"fmt"
	"math"
	"strings"
)

// command is what a person writes to steer the thread, ready to be copied: a
// comment on the forge, or a line for a terminal where there is nothing to comment
// on. Text is what goes with it; an option of the command begins with "--".
func (p page) command(verb, text string) string {
	option := strings.HasPrefix(text, "--")
	if !p.console {
		switch {
		case option:
			return fenced("/uwf "+verb+" "+text, "text")
		case text != "":
			return fenced("/uwf "+verb+"\n"+text, "text")
		}
		return fenced("/uwf "+verb, "text")
	}
	line := "uwf thread " + verb + " " + word(p.ID)
	switch verb {
	case "start":
		line = "uwf thread start " + shellWord(p.Workflow) + ` -p "What is to be done"`
	case "retry":
		line = "uwf thread step " + word(p.ID)
	case "status":
		line = "uwf thread show " + word(p.ID)
	}
	switch {
	case option:
		line += " " + text
	case text != "":
		line += ` -p "` + text + `"`
	}
	return fenced(line, "sh")
}

func shellWord(s string) string {
	if safeRef(s) {
		return s
	}
	return "WORKFLOW"
}

// steer is what else can be said in this state.
func (p page) steer() string {
	var ways []string
	add := func(what, verb, text string) { ways = append(ways, what+"\n"+p.command(verb, text)) }
	switch p.State {
	case Running:
		add("Stop the agent, and end the thread for good:", "cancel", "")
	case Queued:
		add("Nothing happens? Start the job for the next step again:", "retry", "")
		add("End the thread for good:", "cancel", "")
	case Waiting, Limited:
		add("End the thread for good:", "cancel", "")
	case Failed:
		add("Try again, and tell the agent something first:", "resume", "What it should know.")
		add("End the thread for good:", "cancel", "")
	case Delivered, NoChanges:
		if p.Definition != nil && p.Definition.Resume != nil {
			add("Let it go on:", "resume", "What is still to be done.")
		}
		add("Start over, in a new thread:", "start", "")
	case Cancelled:
		add("Start over, in a new thread:", "start", "")
	}
	if len(ways) == 0 {
		return ""
	}
	who := "From people who may push to this repository. Comments without <code>/uwf</code> are not read."
	if p.console {
		who = ""
	}
	return details("How to steer", join(join(ways...), who))
}

// limitFlag is the option that raises the limit that is reached, with a value that
// makes room.
func (p page) limitFlag() string {
	switch p.Limit {
	case "maxStepsPerRole":
		return "max-steps-per-role=20"
	case "tokens":
		return fmt.Sprintf("max-tokens=%d", p.MaxTokens+max(p.MaxTokens/2, 10_000))
	case "costUsd":
		return fmt.Sprintf("max-cost=%v", math.Ceil(max(p.MaxCostUSD*1.5, 1)))
	case "wall":
		return "max-time=6h"
	}
	return fmt.Sprintf("max-steps=%d", max(p.MaxSteps, p.next()-1)+10)
}
