package report

import (
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/internal/markdown"
)

// writeCommand is what a person writes to steer the thread, ready to be copied: a
// comment on the forge, or a line for a terminal where there is nothing to comment
// on. Text is what goes with it; an option of the command begins with "--".
func (p page) writeCommand(verb, text string) string {
	option := strings.HasPrefix(text, "--")
	switch {
	case p.console && verb == "start":
		return markdown.Fence("uwf thread start "+shellWord(p.Workflow)+` -p "What is to be done"`, "sh")
	case p.console:
		verb = "uwf thread " + verb + " " + bareWord(p.ID)
		if text != "" && !option {
			text = `-p "` + text + `"`
		}
		return markdown.Fence(strings.TrimSpace(verb+" "+text), "sh")
	case option:
		return markdown.Fence("/uwf "+verb+" "+text, "text")
	}
	return markdown.Fence("/uwf "+verb+"\n"+text, "text")
}

func shellWord(s string) string {
	if safeRef(s) {
		return s
	}
	return "WORKFLOW"
}

// writeSteering is what can be said in this state: everything, or what else than stands
// above the graph.
func (p page) writeSteering(everything bool) string {
	var ways []string
	add := func(what, verb, text string) { ways = append(ways, what+"\n"+p.writeCommand(verb, text)) }
	switch p.State {
	case Running:
		add("Stop the agent, and end the thread for good:", "cancel", "")
	case Queued, Held:
		add("Nothing happens? Start the job for the next step again:", "retry", "")
		add("End the thread for good:", "cancel", "")
	case Lost:
		if everything || p.Lost.Again {
			add("Nothing happens? Start the job for the next step again:", "retry", "")
		}
		add("End the thread for good:", "cancel", "")
	case Waiting, Limited:
		if everything {
			add("Answer, and let it go on:", "resume", "Your answer")
		}
		add("End the thread for good:", "cancel", "")
	case Failed:
		if everything {
			add("Have it tried again:", "retry", "")
		}
		if p.Waits && (p.Failure == nil || p.Failure.Phase != "deliver" && p.Failure.Phase != "dispatch") {
			add("Try again, and tell the agent something first:", "resume", "What it should know.")
		}
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
	return foldBlock("How to steer", joinBlocks(joinBlocks(ways...), who))
}

// writeRaise is how a limit is raised that is reached.
func (p page) writeRaise() string {
	const lowest = "Of the thread's limit, the settings' and the workflow's the lowest counts."
	if strings.HasPrefix(p.Limit, moderator.MonthPrefix) {
		return joinBlocks("It is a limit on all threads together. Once the month is over (UTC), or `limits."+p.Limit+"` is raised in the settings (`.uwf/config.yaml` of the default branch):", p.writeCommand("resume", ""))
	}
	switch p.Limit {
	case "", "maxSteps":
		return joinBlocks("Raise it, and the thread goes on. "+lowest, p.writeCommand("resume", fmt.Sprintf("--max-steps=%d", max(p.MaxSteps, p.nextStep()-1)+10)))
	case workflow.FindLimit(p.Limit).Name:
		return joinBlocks("Raise `limits."+p.Limit+"` in the settings (`.uwf/config.yaml` of the default branch) or in the workflow, wherever it is set. Then:", p.writeCommand("resume", ""))
	}
	return joinBlocks("Raise it where it is set, in the settings or the workflow. Then:", p.writeCommand("resume", ""))
}
