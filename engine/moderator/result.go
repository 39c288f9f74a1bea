package moderator

import (
	"strings"

	"github.com/united-workforce/uwf/engine/workflow"
)

// arrow stands before where an edge leads, in a result without a name.
const arrow = "→ "

// Result is what the last step decided: its status; without one, the condition of the edge
// that was taken, or where an edge without a condition leads: "→ developer", "→ end".
func (d Decision) Result() string {
	switch {
	case d.Status != "":
		return d.Status
	case d.Edge.When.Kind == workflow.OnCondition:
		return d.Edge.When.Value
	}
	return arrowTo(d.Edge.To)
}

// arrowTo is the result of an edge without a name.
func arrowTo(target string) string {
	switch target {
	case workflow.End:
		return arrow + "end"
	case workflow.Suspend:
		return arrow + "a person"
	}
	return arrow + target
}

// Arrow is a result as it stands behind its role: " → approved".
func Arrow(result string) string {
	if result == "" {
		return ""
	}
	return " " + arrow + strings.TrimPrefix(result, arrow)
}

// maxDecided is how many results of a thread are found by evaluating conditions again: each
// of them looks at the whole thread before it, and every step's commit shows all results.
const maxDecided = 100

// Results are what the steps of a thread decided, as [Decision.Result] says it. Nothing
// records which edge was taken: the conditions of the newest maxDecided steps are evaluated
// again, and an older step has where it led. Empty: the workflow has no way on from the
// step, which was made by another version.
func Results(d *workflow.Definition, t Thread) []string {
	out, left := make([]string, len(t.Steps)), maxDecided
	next := ""
	for i := len(t.Steps) - 1; i >= 0; i-- {
		out[i] = resultBefore(d, Thread{t.Start, t.Steps[:i+1]}, next, &left)
		next = t.Steps[i].Role
	}
	return out
}

// resultBefore is the result of a thread's last step, which the role next followed; empty:
// none has yet.
func resultBefore(d *workflow.Definition, t Thread, next string, left *int) string {
	last := t.Steps[len(t.Steps)-1]
	if status := StatusOf(d, last); status != "" {
		return status
	}
	edge := edgeAfter(d, t, left)
	switch {
	case edge != nil && (next == "" || explains(d, *edge, last.Role, next)):
		return Decision{Edge: *edge}.Result()
	case next != "":
		return arrowTo(next)
	}
	return ""
}

// edgeAfter is the edge from a thread's last step; nil: it can't be told.
func edgeAfter(d *workflow.Definition, t Thread, left *int) *workflow.Edge {
	from := t.Steps[len(t.Steps)-1].Role
	if d.Lists[from] {
		if *left--; *left < 0 {
			return nil
		}
	}
	edge, err := chooseEdge(d, t, from, "")
	if err != nil {
		return nil
	}
	return edge
}

// explains reports whether a role can be next after an edge: the edge leads to it, or to a
// person whose answer it got, or to an end after which the thread was reopened.
func explains(d *workflow.Definition, e workflow.Edge, from, next string) bool {
	switch e.To {
	case workflow.Suspend:
		return next == from
	case workflow.End:
		return d.Resume != nil && d.Resume.To == next
	}
	return e.To == next
}
