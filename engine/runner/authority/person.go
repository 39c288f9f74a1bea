package authority

import (
	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/runner/event"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/gitcas/record"
)

// FindPerson is who did what the event is about, as the record has it; nil: nobody did,
// or the payload doesn't say who. What they may do is looked up before anything is done
// for them. In a run that somebody else started again it is that person.
func (j *Gate) FindPerson() *story.Person {
	who, address := j.Event.Sender, j.Job.ResolveRunURL()
	switch again := j.StartedAgainBy(); {
	case again != "":
		who = event.User{Login: again}
	case j.Event.Kind == event.Schedule:
		return nil
	case j.Event.Kind == event.Comment:
		who, address = j.Event.CommentAuthor, j.Event.CommentURL
	case (j.Event.Kind == event.Labeled || j.Event.Kind == event.Assigned) && j.Event.Subject != nil:
		address = j.Event.Subject.URL
	}
	by := record.By{Kind: record.ByForge, Login: who.Login, ID: who.ID, URL: address}
	if who.Bot || forge.IsBot(who.Login) {
		by.Kind = record.ByBot
	}
	if by.Check() != nil {
		by.URL = ""
	}
	if by.Check() != nil {
		return nil
	}
	return &story.Person{By: by, Email: forge.NoReply(j.Forge.Flavour(), j.Job.ServerURL, by.Login, by.ID)}
}

// StartedAgainBy is who started this run again, where that is another account than the
// one that the event is by; empty: nobody.
func (j *Gate) StartedAgainBy() string {
	if again := j.Job.TriggeringActor; j.Job.Attempt > 1 && again != j.Job.Actor {
		return again
	}
	return ""
}
