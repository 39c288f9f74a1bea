package thread

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// appendWord adds a word to what people have said to a thread. A thread may be made to wait
// again before the role that asked could work (attempts, limits, the work branch): what it
// was told then still holds. No word with a text is ever dropped: who approves does so
// with all that was said.
func appendWord(id gitcas.ThreadID, do string, before []record.Word, w record.Word) ([]record.Word, error) {
	words := slices.Concat(before, []record.Word{w})
	for len(words) > record.MaxWords {
		i := slices.IndexFunc(words, func(w record.Word) bool { return strings.TrimSpace(w.Text) == "" && w.Do != record.DoPoke })
		if i < 0 {
			break
		}
		words = slices.Delete(words, i, i+1)
	}
	if size := reading.TextSize(words); len(words) > record.MaxWords || size > reading.MaxPrompt {
		return nil, &life.RefusedError{
			Thread: id, Do: do, Reason: fmt.Sprintf("people have said %d things with %d bytes to it since its last step, and that is as much as one step is told", len(words)-1, size-len(w.Text)),
			Advice: "let it work: uwf thread step " + string(id) + "\nor begin another thread from its steps: uwf thread fork " + string(id),
		}
	}
	return words, nil
}

// answerChange adds an answer to a change, in the place where it waits for the next
// step, and returns its hash.
func answerChange(c *gitcas.Change, v *gitcas.View, id gitcas.ThreadID, a record.Answer) (node.Hash, error) {
	n, h, err := a.Node(v.Time())
	if err != nil {
		return "", fmt.Errorf("what thread %s is told: %w", id, err)
	}
	schema, _ := gitcas.Known(record.AnswerSchema)
	c.Nodes = append(c.Nodes,
		gitcas.PlacedNode{Hash: h, Node: n, Place: gitcas.Place{Thread: id, Of: h}},
		gitcas.PlacedNode{Hash: record.AnswerSchema, Node: schema})
	return h, nil
}

// openStatuses are the statuses that the role may put out now.
func (r *stepRun) openStatuses() []string {
	return slices.DeleteFunc(r.Def.Statuses(r.plan.role), func(s string) bool { return slices.Contains(r.closed, s) })
}

// noteApproval works out which edges are closed to the role whose turn it is, for want of
// an approval, and what it is told of that.
func (r *stepRun) noteApproval() error {
	guarded := r.Def.Guarded(r.plan.role)
	if len(guarded) == 0 {
		return nil
	}
	a, err := r.GatherApproval(r.plan.role)
	if err != nil {
		return err
	}
	var note, why []string
	for _, e := range guarded {
		no := a.Refusal(e.Approval.Not)
		if no == "" {
			note = append(note, wayOf(e)+" is open: who said this may approve, and if it says yes, it is an approval.")
			continue
		}
		note = append(note, wayOf(e)+" is refused: there is no approval, as "+no+".")
		why = append(why, no)
		if e.When.Kind != workflow.OnCondition {
			r.closed = append(r.closed, e.When.Value)
		}
	}
	r.closedWhy = strings.Join(slices.Compact(why), "; ")
	r.approvalNote = strings.Join(note, "\n")
	return nil
}

// wayOf is an edge as its role knows it.
func wayOf(e workflow.Edge) string {
	switch e.When.Kind {
	case workflow.OnCondition:
		return "An output for which " + e.When.Value + " holds"
	case workflow.Always:
		return "An output without a status"
	}
	return "`" + e.When.Value + "`"
}

// checkApproval checks that the new output takes no edge that it has no approval for.
func (r *stepRun) checkApproval(d moderator.Decision) error {
	if d.Edge.Approval == nil {
		return nil
	}
	a, err := r.GatherApproval(r.plan.role)
	if err != nil {
		return err
	}
	return moderator.Approve(d, a)
}

// identifySpeaker is who speaks to a thread, see identify.
func (e *Engine) identifySpeaker(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) *story.Person {
	if _, alive := v.Entry(id); !alive || !e.canIdentify() {
		return e.By
	}
	t, err := reading.Read(ctx, v, id)
	if err != nil {
		return e.By // what is wrong with the thread is said by who changes it
	}
	return e.identify(ctx, t.Def, id, "what you say is noted, and is no approval")
}

// canIdentify reports whether the forge could say who somebody is of whom only git does.
func (e *Engine) canIdentify() bool {
	return e.By != nil && e.By.Kind == record.ByLocal && e.Prove != nil
}

// identify is who does something with a thread: where its workflow has edges that only an
// approval opens, a person whom the forge names, if it does. Else what that means is said.
func (e *Engine) identify(ctx context.Context, def *workflow.Definition, id gitcas.ThreadID, otherwise string) *story.Person {
	if !e.canIdentify() || !def.NeedsApproval() {
		return e.By
	}
	p, err := e.Prove(ctx)
	if err != nil {
		e.observe(Event{Kind: "notice", Thread: id, Text: otherwise + ": " + err.Error()})
		return e.By
	}
	return p
}
