package reading

import (
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/text"
)

// ModeratorThread is what the moderator decides on: the steps so far, and further ones.
func (r *Thread) ModeratorThread(more ...moderator.Output) (moderator.Thread, error) {
	t := moderator.Thread{Steps: append(slices.Clone(r.Past), more...)}
	if len(r.Def.Conditions) == 0 {
		return t, nil
	}
	n, err := r.In(gitcas.Place{Thread: r.ID}).Get(r.Chain.StartHash)
	if err != nil {
		return t, fmt.Errorf("start of the thread: %w", err)
	}
	t.Start, _ = n.Payload.(map[string]any)
	return t, nil
}

// DecideNext asks the moderator; after a resume or a poke, with what the person said.
func (r *Thread) DecideNext() (moderator.Decision, error) {
	t, err := r.ModeratorThread()
	if err != nil {
		return moderator.Decision{}, err
	}
	if r.Entry.Next == nil || r.Entry.Next.Answer == "" {
		return r.markStuck(moderator.Next(r.Def, t))
	}
	words, err := r.PendingWords()
	if err != nil {
		return moderator.Decision{}, err
	}
	if r.Entry.Next.Poked != "" {
		return r.decideAgain(t, words)
	}
	d, err := moderator.Next(r.Def, t)
	if err == nil && d.Kind == moderator.End && r.Def.Resume != nil && r.Entry.Next.Role == r.Def.Resume.To {
		return r.markStuck(moderator.Reopen(r.Def, r.quoteWords(words)))
	}
	return r.markStuck(moderator.Resume(r.Def, t, r.quoteWords(words)))
}

// markStuck makes the moderator's errors ones of the thread: what it decides on is
// stored, so that asking it again doesn't help.
func (r *Thread) markStuck(d moderator.Decision, err error) (moderator.Decision, error) {
	if err != nil {
		err = life.NewStuckError(r.ID, r.StepNumber()-1, err)
	}
	return d, err
}

// decideAgain decides on a thread that was poked: the role of the step that was taken
// back, in the same place, with the same prompt and what the person says.
func (r *Thread) decideAgain(t moderator.Thread, words []record.Word) (moderator.Decision, error) {
	poked, err := ReadStep(r.In, r.ID, r.Entry.Next.Poked)
	if err != nil {
		return moderator.Decision{}, fmt.Errorf("the step that is to be done again: %w", err)
	}
	before, err := r.WordsBefore(r.Entry.Next.Poked, poked)
	if err != nil {
		return moderator.Decision{}, err
	}
	said := r.quoteWords(wordsAfter(words, before))
	if !SameHash(poked.Prev, r.LastStep()) || poked.Start != r.Chain.StartHash {
		return moderator.Decision{}, r.newPokeMismatchError("it does not follow the thread's head")
	}
	d, err := r.markStuck(moderator.Next(r.Def, t))
	switch {
	case err != nil:
		return d, err
	case d.Kind == moderator.Suspend:
		d, err = r.markStuck(moderator.Resume(r.Def, t, said))
	case d.Kind == moderator.End:
		d, err = r.markStuck(moderator.Reopen(r.Def, said))
	}
	if err != nil {
		return d, err
	}
	if d.Kind != moderator.Run || d.Role != poked.Role {
		return d, r.newPokeMismatchError(fmt.Sprintf("it is of role %s, and the workflow wants %q here", text.OneLine(poked.Role), d.Role))
	}
	if poked.EdgePrompt != "" {
		d.Prompt = poked.EdgePrompt
	}
	d.Prompt = strings.TrimRight(d.Prompt, "\n") + "\n\nYou did this before, and it was taken back: a person wants it done again."
	if strings.TrimSpace(said) != "" {
		d.Prompt += " The person says:\n" + said
	}
	return d, nil
}

// newPokeMismatchError is the error for an entry that names another step to be done again than
// poke can have written there.
func (r *Thread) newPokeMismatchError(why string) error {
	return adviseFork(r.ID, r.StepNumber()-1, &gitcas.DamagedError{
		What: "threads.yaml", Kind: gitcas.ErrContent, Why: fmt.Sprintf("thread %s: step %s is to be done again, but %s", r.ID, r.Entry.Next.Poked, why),
	})
}

// AskModerator asks the moderator what follows the steps, whatever anybody has said.
func (r *Thread) AskModerator() (moderator.Decision, error) {
	t, err := r.ModeratorThread()
	if err != nil {
		return moderator.Decision{}, err
	}
	return moderator.Next(r.Def, t)
}

// AskReopened asks the moderator how the thread goes on after its end.
func (r *Thread) AskReopened(text string) (moderator.Decision, error) {
	d, err := moderator.Reopen(r.Def, text)
	if err == nil && len(d.Prompt) > MaxPrompt {
		err = fmt.Errorf("the prompt of role %s has %d bytes; at most %d are passed on", d.Role, len(d.Prompt), MaxPrompt)
	}
	return d, err
}

// GatherApproval collects what speaks for an approval of the next step: whether its role
// asked, and what it was answered.
func (r *Thread) GatherApproval(role string) (moderator.Approval, error) {
	words, err := r.PendingWords()
	if err != nil {
		return moderator.Approval{}, err
	}
	a := moderator.Approval{Words: words}
	a.Author, a.Authored = authorOf(r.Chain.Start)
	for _, by := range []*record.By{r.Chain.Start.By, r.Entry.By, actorOf(r.Chain.Start)} {
		if by != nil {
			a.Starters = append(a.Starters, *by)
		}
	}
	asked, err := r.AskModerator()
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
