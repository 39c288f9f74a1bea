package thread

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/summary"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/commitmsg"
	"github.com/united-workforce/uwf/internal/text"
)

// subjectOf is the subject of a state commit about a thread.
func subjectOf(title string, id gitcas.ThreadID, what string) string {
	return commitmsg.Subject(title, what, id.Short())
}

// stepWhat is what a step's commit says happened.
func stepWhat(role, status string, step int) string {
	return fmt.Sprintf("%s → %s · step %d", text.OneLine(role), text.OneLine(status), step)
}

// modelOf is the name of the model that a step asked; empty: it asked none.
func modelOf(t task.Task, u *record.Usage) string {
	if t.Model == nil || u == nil || u.InputTokens+u.OutputTokens == 0 {
		return ""
	}
	return text.OneLine(cmp.Or(t.Model.Name, t.Model.Alias))
}

// costTrailers are what a step took, and from which model.
func costTrailers(t task.Task, u *record.Usage) []gitcas.Trailer {
	var out []gitcas.Trailer
	if m := modelOf(t, u); m != "" {
		out = append(out, gitcas.Trailer{Key: "Uwf-Model", Value: m})
	}
	out = append(out, gitcas.Trailer{Key: "Uwf-Tokens", Value: tokens(u)})
	if u != nil && u.CostUSD > 0 {
		out = append(out, gitcas.Trailer{Key: "Uwf-Cost", Value: text.Dollars(u.CostUSD, u.Unpriced)})
	}
	return out
}

// maxWorkText bounds what a step says of itself in a commit's message, in bytes: who said
// it comes after it.
const maxWorkText = 3500

// workMessage is the message of the commit on the work branch, which people merge: what
// the step says that it did, then who did it. CI systems do run on that branch. It names
// the head that the step was taken on, with its digest: who exchanges that on the state
// branch would have to rewrite this branch too. s is nil where there is no step.
func (r *stepRun) workMessage(result string, s *sealed) (string, error) {
	what := fmt.Sprintf("%s · %s", stepWhat(r.task.Role, result, r.task.Step), text.OneLine(r.task.WorkflowName))
	m := commitmsg.Message{Subject: what, Trailers: append([]gitcas.Trailer{{Key: "Uwf-Thread", Value: string(r.ID)}},
		append(stepTrailers(r.task.Step, r.task.Role, r.madeBy()),
			gitcas.Trailer{Key: "Uwf-Agent", Value: text.OneLine(r.task.Agent)},
			gitcas.Trailer{Key: "Uwf-Head", Value: node.Pin{Hash: reading.HeadOf(r.Chain), Digest: r.Chain.Head}.String()})...)}
	if s != nil {
		if title := text.OneLine(summary.Title(s.output)); title != "" {
			m.Subject, m.Body = title, what
			if said := strings.TrimSpace(summary.Text(s.output)); said != title && said != "" {
				m.Body = text.Cut(said, maxWorkText) + "\n\n" + what
			}
		}
		m.Trailers = append(m.Trailers, costTrailers(r.task, s.step.Usage)...)
	}
	return m.Format()
}
