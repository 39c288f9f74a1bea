package reading

import (
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/gitcas/record"
)

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
