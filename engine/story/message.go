package story

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/summary"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/commitmsg"
	"github.com/united-workforce/uwf/internal/text"
)

// Subject is the subject of a state commit about a thread.
func Subject(title string, id gitcas.ThreadID, what string) string {
	return commitmsg.Subject(title, what, id.Short())
}

// DescribeStep is what a step's commit says happened.
func DescribeStep(role, result string, step int) string {
	return fmt.Sprintf("%s · step %d", text.OneLine(role+moderator.Arrow(result)), step)
}

// ModelOf is the name of the model that a step asked; empty: it asked none.
func ModelOf(t task.Task, u *record.Usage) string {
	if t.Model == nil || u == nil || u.InputTokens+u.OutputTokens == 0 {
		return ""
	}
	return text.OneLine(cmp.Or(t.Model.Name, t.Model.Alias))
}

// CostTrailers are what a step took, and from which model.
func CostTrailers(t task.Task, u *record.Usage) []gitcas.Trailer {
	var out []gitcas.Trailer
	if m := ModelOf(t, u); m != "" {
		out = append(out, gitcas.Trailer{Key: "Uwf-Model", Value: m})
	}
	if u == nil {
		u = &record.Usage{}
	}
	out = append(out, gitcas.Trailer{Key: "Uwf-Tokens", Value: fmt.Sprintf("%d in, %d out", u.InputTokens, u.OutputTokens)})
	if u.CostUSD > 0 {
		out = append(out, gitcas.Trailer{Key: "Uwf-Cost", Value: text.Dollars(u.CostUSD, u.Unpriced)})
	}
	return out
}

// maxWorkText bounds what a step says of itself in a commit's message, in bytes: who said
// it comes after it.
const maxWorkText = 3500

// WorkMessage is the message of the commit on the work branch, which people merge: what
// the step says that it did, then who did it. CI systems do run on that branch. It names
// the head that the step was taken on, with its digest: who exchanges that on the state
// branch would have to rewrite this branch too. told is nil where there is no step.
func WorkMessage(t task.Task, run record.Run, head node.Pin, result string, told *Told, usage *record.Usage) (string, error) {
	what := fmt.Sprintf("%s · %s", DescribeStep(t.Role, result, t.Step), text.OneLine(t.WorkflowName))
	m := commitmsg.Message{Subject: what, Trailers: append([]gitcas.Trailer{{Key: "Uwf-Thread", Value: string(t.Thread)}},
		append(WorkTrailers(t.Step, t.Role, run),
			gitcas.Trailer{Key: "Uwf-Agent", Value: text.OneLine(t.Agent)},
			gitcas.Trailer{Key: "Uwf-Head", Value: head.String()})...)}
	if told != nil {
		if title := text.OneLine(summary.Title(told.Output)); title != "" {
			m.Subject, m.Body = title, what
			if said := strings.TrimSpace(summary.Text(told.Output)); said != title && said != "" {
				m.Body = text.Cut(said, maxWorkText) + "\n\n" + what
			}
		}
		m.Trailers = append(m.Trailers, CostTrailers(t, usage)...)
	}
	return m.Format()
}

// StepTrailers are the facts that the state commit of a step, or of an attempt at it, names.
func StepTrailers(t task.Task, run record.Run, result string, head node.Hash) []gitcas.Trailer {
	return []gitcas.Trailer{
		{Key: "Uwf-Thread", Value: string(t.Thread)},
		{Key: "Uwf-Step", Value: strconv.Itoa(t.Step)},
		{Key: "Uwf-Role", Value: t.Role},
		{Key: "Uwf-Result", Value: result},
		{Key: "Uwf-Head", Value: string(head)},
		{Key: "Uwf-Prev", Value: FormatRef(t.Prev)},
		{Key: "Uwf-Agent", Value: t.Agent},
		{Key: "Uwf-Run", Value: fmt.Sprintf("%s attempt %d", run.ID, run.Attempt)},
	}
}

// WorkTrailers are what a work commit says of the step that made it. A fork shares
// the steps of another thread: the thread's id is not among them.
func WorkTrailers(n int, role string, run record.Run) []gitcas.Trailer {
	return []gitcas.Trailer{
		{Key: "Uwf-Step", Value: strconv.Itoa(n)}, {Key: "Uwf-Role", Value: text.OneLine(role)},
		{Key: "Uwf-Run", Value: fmt.Sprintf("%s attempt %d", text.OneLine(run.ID), run.Attempt)},
	}
}

// EntryTrailers are the facts that a state commit names which only changes a thread's entry.
func EntryTrailers(id gitcas.ThreadID, entry gitcas.Entry) []gitcas.Trailer {
	return []gitcas.Trailer{{Key: "Uwf-Thread", Value: string(id)}, {Key: "Uwf-Head", Value: string(entry.Head)}}
}
