package report

import (
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/runner/sanitize"
	"github.com/united-workforce/uwf/engine/summary"
	"github.com/united-workforce/uwf/internal/markdown"
)

// PullTitle is the pull request's title. The newest output with a field for it
// (pullTitle, prTitle, title, subject) says it; else the first sentence of the
// newest summary, if that is short enough for a title; else it is issue, the title
// of the issue that the thread came from; else the beginning of the summary.
func PullTitle(t Thread, issue string) string {
	if s := oneLine(findNewest(t, summary.Written)); s != "" {
		return s
	}
	said := summary.FirstSentence(oneLine(findNewest(t, summary.Text)))
	if said != "" && len([]rune(said)) <= summary.GoodTitle {
		return said
	}
	if s := oneLine(issue); s != "" {
		return s
	}
	if said != "" {
		return cutRunes(said, summary.GoodTitle)
	}
	return fmt.Sprintf("%s: thread %s", cleanName(t.Workflow), bareWord(t.ID))
}

// oneLine is a text as a title.
func oneLine(s string) string { return sanitize.Title(cutBeginning(s)) }

// findNewest is what the newest output says that says it.
func findNewest(t Thread, of func(output map[string]any) string) string {
	for i := len(t.Past.Steps) - 1; i >= 0; i-- {
		if s := of(t.Past.Steps[i].Output); s != "" {
			return s
		}
	}
	if t.Last != nil {
		return of(t.Last.Fields)
	}
	return ""
}

// PullBody is the pull request's body: Marker, what was changed in the words of the
// newest output that says so (description, summary, …), Fixes for the issue that
// it came from, the verdict, what the other roles reported last, the steps, and how
// to read the thread. It is at most MaxComment bytes.
func PullBody(t Thread) string {
	p := newPage(t)
	p.all = MaxComment
	what := findNewest(t, summary.Text)
	fixes := ""
	if t.Subject > 0 && !t.SubjectPull {
		fixes = fmt.Sprintf("Fixes #%d", t.Subject)
	}
	former := ""
	if t.Former > 0 && (t.Pull == nil || t.Former != t.Pull.Number) {
		former = fmt.Sprintf("An earlier pull request for the same: #%d.", t.Former)
	}
	verdict := ""
	if t.Last != nil {
		verdict = joinBlocks("### Verdict", p.writeVerdict(*t.Last), p.writeOutput(*t.Last, 10_000, what))
	}
	head := joinBlocks(sanitize.Outgoing(what, "", 10_000), fixes, former, verdict, p.writeUnproven(4_000), p.writeNotes(), p.writeReports(8_000))
	foot := joinBlocks(p.whoDecided(), p.writeReviewHint(), p.writeFooter())
	steps := foldBlock("How it came about: "+escapeUsed(p.writeUsage()), p.writeSteps(p.all-len(head)-len(foot)-600))
	return Marker(t.ID) + "\n" + joinBlocks(head, steps, foot) + "\n"
}

// escapeUsed keeps the dollar sign in the title of the steps from being read as the
// beginning of a formula.
func escapeUsed(s string) string { return strings.ReplaceAll(s, "$", "&#36;") }

// writeReports are the newest outputs of up to three other roles.
func (p page) writeReports(limit int) string {
	seen := map[string]bool{}
	if p.Last != nil {
		seen[p.Last.Role] = true
	}
	var out []string
	for i := len(p.Past.Steps) - 1; i >= 0 && len(out) < 3; i-- {
		s := p.Past.Steps[i]
		if seen[s.Role] {
			continue
		}
		seen[s.Role] = true
		o := Output{Role: s.Role, Fields: s.Output, Body: s.Body}
		if p.Definition != nil {
			o.Status = moderator.StatusOf(p.Definition, s)
		}
		out = append(out, foldBlock("What "+escapeName(cleanName(s.Role))+" reported", p.writeOutput(o, limit)))
	}
	return joinBlocks(out...)
}

// writeReviewHint says how to read the thread, on the forge and in a terminal.
func (p page) writeReviewHint() string {
	if !safeRef(p.Links.StateBranch) || bareWord(p.ID) == "" {
		return ""
	}
	where := "Every step, with its prompt and its answer:"
	if markdown.IsAddress(p.Links.Comment) {
		where = "How it went is in " + markdown.Link("the thread's comment", p.Links.Comment) + ". Every step, with its prompt and its answer:"
	}
	return joinBlocks(where, markdown.Fence("git fetch origin "+p.Links.StateBranch+" && git log FETCH_HEAD -- threads/"+bareWord(p.ID), "sh"))
}
