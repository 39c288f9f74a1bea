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
	if s := oneLine(newest(t, summary.Written)); s != "" {
		return s
	}
	said := summary.FirstSentence(oneLine(newest(t, summary.Text)))
	if said != "" && len([]rune(said)) <= summary.GoodTitle {
		return said
	}
	if s := oneLine(issue); s != "" {
		return s
	}
	if said != "" {
		return cut(said, summary.GoodTitle)
	}
	return fmt.Sprintf("%s: thread %s", name(t.Workflow), word(t.ID))
}

// oneLine is a text as a title.
func oneLine(s string) string {
	return strings.TrimSpace(sanitize.Title(strings.Join(strings.Fields(beginning(s)), " ")))
}

// newest is what the newest output says that says it.
func newest(t Thread, of func(output map[string]any) string) string {
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
	what := newest(t, summary.Text)
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
		verdict = join("### Verdict", p.verdict(*t.Last), p.output(*t.Last, 10_000, what))
	}
	head := join(p.markdown(what, "", 10_000), fixes, former, verdict, p.reports(8_000))
	foot := join(p.whoDecided(), p.review(), p.footer())
	steps := details("How it came about: "+escapeUsed(p.used()), p.steps(p.all-len(head)-len(foot)-600))
	return Marker(t.ID) + "\n" + join(head, steps, foot) + "\n"
}

// escapeUsed keeps the dollar sign in the title of the steps from being read as the
// beginning of a formula.
func escapeUsed(s string) string { return strings.ReplaceAll(s, "$", "&#36;") }

// reports are the newest outputs of up to three other roles.
func (p page) reports(limit int) string {
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
		out = append(out, details("What "+escape(name(s.Role))+" reported", p.output(o, limit)))
	}
	return join(out...)
}

// review says how to read the thread, on the forge and in a terminal.
func (p page) review() string {
	if !safeRef(p.Links.StateBranch) || word(p.ID) == "" {
		return ""
	}
	where := "Every step, with its prompt and its answer:"
	if markdown.IsAddress(p.Links.Comment) {
		where = "How it went is in " + markdown.Link("the thread's comment", p.Links.Comment) + ". Every step, with its prompt and its answer:"
	}
	return join(where, fenced("git fetch origin "+p.Links.StateBranch+" && git log FETCH_HEAD -- threads/"+word(p.ID), "sh"))
}
