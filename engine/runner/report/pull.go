package report

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/runner/sanitize"
)

// titleFields and bodyFields are the fields of outputs that a pull request's title
// and text are taken from, the best first.
func titleFields() []string {
	return []string{"pullrequesttitle", "pulltitle", "prtitle", "title", "subject"}
}

func bodyFields() []string {
	return []string{"pullrequestbody", "pullbody", "prbody", "description", "summary", "changes", "changelog"}
}

// goodTitle is how long a title may be, in characters, that nobody wrote as one.
const goodTitle = 72

// PullTitle is the pull request's title. The newest output with a field for it
// (pullTitle, prTitle, title, subject) says it; else the first sentence of the
// newest summary, if that is short enough for a title; else it is issue, the title
// of the issue that the thread came from; else the beginning of the summary.
func PullTitle(t Thread, issue string) string {
	if s := oneLine(newest(t, titleFields())); s != "" {
		return s
	}
	summary := firstSentence(oneLine(newest(t, bodyFields())))
	if summary != "" && len([]rune(summary)) <= goodTitle {
		return summary
	}
	if s := oneLine(issue); s != "" {
		return s
	}
	if summary != "" {
		return cut(summary, goodTitle)
	}
	return fmt.Sprintf("%s: thread %s", name(t.Workflow), word(t.ID))
}

// oneLine is a text as a title.
func oneLine(s string) string {
	return strings.TrimSpace(sanitize.Title(strings.Join(strings.Fields(beginning(s)), " ")))
}

// firstSentence is a text up to its first full stop, without it.
func firstSentence(s string) string {
	runes := []rune(s)
	for i, r := range runes {
		if strings.ContainsRune(".!?。", r) && (i+1 == len(runes) || unicode.IsSpace(runes[i+1])) {
			return strings.TrimSpace(string(runes[:i]))
		}
	}
	return s
}

// newest is the text in the newest output that has one of the fields; of several
// fields in it the first.
func newest(t Thread, fields []string) string {
	for i := len(t.Past.Steps) - 1; i >= 0; i-- {
		if s := textOf(t.Past.Steps[i].Output, fields); s != "" {
			return s
		}
	}
	if t.Last != nil {
		return textOf(t.Last.Fields, fields)
	}
	return ""
}

// textOf is the first of the fields that holds text. Case, dashes and underscores
// in names don't matter.
func textOf(output map[string]any, fields []string) string {
	found := map[string]string{}
	for key, value := range output {
		if s, ok := value.(string); ok && strings.TrimSpace(s) != "" {
			found[strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(key))] = s
		}
	}
	for _, f := range fields {
		if s := found[f]; s != "" {
			return s
		}
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
	what := newest(t, bodyFields())
	fixes := ""
	if t.Subject > 0 && !t.SubjectPull {
		fixes = fmt.Sprintf("Fixes #%d", t.Subject)
	}
	verdict := ""
	if t.Last != nil {
		verdict = join("### Verdict", p.verdict(*t.Last), p.output(*t.Last, 10_000, what))
	}
	head := join(p.markdown(what, "", 10_000), fixes, verdict, p.reports(8_000))
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
	if goodURL(p.Links.Comment) {
		where = "How it went is in " + link("the thread's comment", p.Links.Comment) + ". Every step, with its prompt and its answer:"
	}
	return join(where, fenced("git fetch origin "+p.Links.StateBranch+" && git log FETCH_HEAD -- threads/"+word(p.ID), "sh"))
}
