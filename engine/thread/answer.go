package thread

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// ReadAnswer reads what people said to a thread before one of its steps, or, where of
// and h are the same, before its next one.
func ReadAnswer(in func(gitcas.Place) node.Getter, id gitcas.ThreadID, of, h node.Hash) ([]record.Word, error) {
	n, err := in(gitcas.Place{Thread: id, Of: of}).Get(h)
	if err != nil && !errors.Is(err, gitcas.ErrContent) {
		return nil, fmt.Errorf("the answer to thread %s: %w", id, err)
	}
	var a record.Answer
	if err == nil {
		a, err = record.ParseAnswer(n)
	}
	if err == nil && textSize(a.Words) > maxEdgePrompt {
		err = fmt.Errorf("it has more than %d bytes", maxEdgePrompt)
	}
	if err != nil {
		return nil, &gitcas.DamagedError{
			What: "threads.yaml", Kind: gitcas.ErrContent, Err: err,
			Why:     fmt.Sprintf("thread %s: node %s is no answer of people: %v", id, h, err),
			Restore: fmt.Sprintf("cancel this thread, and begin another from its steps: uwf thread fork %s", id),
		}
	}
	return a.Words, nil
}

func textSize(words []record.Word) int {
	n := 0
	for _, w := range words {
		n += len(w.Text)
	}
	return n
}

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
	if size := textSize(words); len(words) > record.MaxWords || size > maxEdgePrompt {
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

// readPendingWords reads what an entry's next step is to be told.
func readPendingWords(in func(gitcas.Place) node.Getter, id gitcas.ThreadID, entry gitcas.Entry) ([]record.Word, error) {
	if entry.Next == nil || entry.Next.Answer == "" {
		return nil, nil
	}
	return ReadAnswer(in, id, entry.Next.Answer, entry.Next.Answer)
}

// answerBefore are the words that people said before a step.
func answerBefore(in func(gitcas.Place) node.Getter, id gitcas.ThreadID, step node.Hash, s record.Step) ([]record.Word, error) {
	if s.Answer == nil {
		return nil, nil
	}
	return ReadAnswer(in, id, step, *s.Answer)
}

// wordsAfter are the words that are not among some others.
func wordsAfter(words, before []record.Word) []record.Word {
	return slices.DeleteFunc(slices.Clone(words), func(w record.Word) bool {
		return slices.ContainsFunc(before, func(b record.Word) bool { return reflect.DeepEqual(w, b) })
	})
}

// quoteWords is what people said, as the role is told it. Who said it is named where it
// matters: where several did, or where a word may be an approval.
func (r *Thread) quoteWords(words []record.Word) string {
	named := r.def.NeedsApproval() || slices.ContainsFunc(words, func(w record.Word) bool { return !reflect.DeepEqual(w.By, words[0].By) })
	var out []string
	for _, w := range words {
		switch text := strings.TrimSpace(w.Text); {
		case text == "":
		case !named:
			out = append(out, text)
		default:
			// Marked line by line: nobody can speak for another in their own words.
			out = append(out, "From "+nameOf(w.By)+":\n> "+strings.ReplaceAll(text, "\n", "\n> "))
		}
	}
	return strings.Join(out, "\n\n")
}

// gatherApproval collects what speaks for an approval of the next step: whether its role
// asked, and what it was answered.
func (r *Thread) gatherApproval(role string) (moderator.Approval, error) {
	words, err := readPendingWords(r.in, r.id, r.entry)
	if err != nil {
		return moderator.Approval{}, err
	}
	a := moderator.Approval{Words: words}
	a.Author, a.Authored = authorOf(r.chain.Start)
	for _, by := range []*record.By{r.chain.Start.By, r.entry.By, actorOf(r.chain.Start)} {
		if by != nil {
			a.Starters = append(a.Starters, *by)
		}
	}
	asked, err := r.upNext()
	a.Asked = err == nil && asked.Kind == moderator.Suspend && asked.Role == role
	return a, nil
}

// Names in the trigger of a StartNode that say who is behind a thread: who did what started
// it, and the number and author of the issue or pull request that it is about.
const (
	TriggerActor    = "actor"
	TriggerNumber   = "number"
	TriggerAuthor   = "author"
	TriggerAuthorID = "authorId"
)

// authorOf is who wrote what a thread is about; authored: somebody did, known or not.
func authorOf(s record.Start) (by *record.By, authored bool) {
	login, _ := s.Trigger[TriggerAuthor].(string)
	id, _ := s.Trigger[TriggerAuthorID].(int64)
	if login == "" {
		_, authored = s.Trigger[TriggerNumber]
		return nil, authored
	}
	return &record.By{Kind: record.ByForge, Login: login, ID: max(id, 0)}, true
}

// actorOf is whose event started a thread: somebody else may have started its run again.
func actorOf(s record.Start) *record.By {
	login, _ := s.Trigger[TriggerActor].(string)
	if login == "" {
		return nil
	}
	return &record.By{Kind: record.ByForge, Login: login}
}

// openStatuses are the statuses that the role may put out now.
func (r *stepRun) openStatuses() []string {
	return slices.DeleteFunc(r.def.Statuses(r.plan.role), func(s string) bool { return slices.Contains(r.closed, s) })
}

// noteApproval works out which edges are closed to the role whose turn it is, for want of
// an approval, and what it is told of that.
func (r *stepRun) noteApproval() error {
	guarded := r.def.Guarded(r.plan.role)
	if len(guarded) == 0 {
		return nil
	}
	a, err := r.gatherApproval(r.plan.role)
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
	a, err := r.gatherApproval(r.plan.role)
	if err != nil {
		return err
	}
	return moderator.Approve(d, a)
}

// identifySpeaker is who speaks to a thread, see identify.
func (e *Engine) identifySpeaker(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) *Person {
	if _, alive := v.Entry(id); !alive || !e.canIdentify() {
		return e.By
	}
	t, err := readThread(ctx, v, id)
	if err != nil {
		return e.By // what is wrong with the thread is said by who changes it
	}
	return e.identify(ctx, t.def, id, "what you say is noted, and is no approval")
}

// canIdentify reports whether the forge could say who somebody is of whom only git does.
func (e *Engine) canIdentify() bool {
	return e.By != nil && e.By.Kind == record.ByLocal && e.Prove != nil
}

// identify is who does something with a thread: where its workflow has edges that only an
// approval opens, a person whom the forge names, if it does. Else what that means is said.
func (e *Engine) identify(ctx context.Context, def *workflow.Definition, id gitcas.ThreadID, otherwise string) *Person {
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
