package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/runner/event"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/gitcas/record"
)

// personBehind is who did what the event is about, as the record has it; nil: nobody did,
// or the payload doesn't say who. What they may do is looked up before anything is done
// for them. In a run that somebody else started again it is that person.
func (j *job) personBehind() *story.Person {
	who, address := j.ev.Sender, j.Job.runURL()
	switch again := j.startedAgainBy(); {
	case again != "":
		who = event.User{Login: again}
	case j.ev.Kind == event.Schedule:
		return nil
	case j.ev.Kind == event.Comment:
		who, address = j.ev.CommentAuthor, j.ev.CommentURL
	case (j.ev.Kind == event.Labeled || j.ev.Kind == event.Assigned) && j.ev.Subject != nil:
		address = j.ev.Subject.URL
	}
	by := record.By{Kind: record.ByForge, Login: who.Login, ID: who.ID, URL: address}
	if who.Bot || isBot(who.Login) {
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

// startedAgainBy is who started this run again, where that is another account than the
// one that the event is by; empty: nobody.
func (j *job) startedAgainBy() string {
	if again := j.Job.TriggeringActor; j.Job.Attempt > 1 && again != j.Job.Actor {
		return again
	}
	return ""
}

// confirmComment asks the forge for the comment with the command: whoever can write the
// event's file could put anybody's name, and any words, into it. Why says why it is not
// what the event says, in one line.
func (j *job) confirmComment(ctx context.Context) (why string, err error) {
	ask := j.Forge.Comment
	if j.ev.Review {
		ask = j.Forge.ReviewComment
	}
	c, err := ask(ctx, j.ev.CommentID)
	who := j.ev.CommentAuthor
	switch {
	case errors.Is(err, forge.ErrNotFound):
		return "the comment is not there any more", nil
	case err != nil:
		return "", fmt.Errorf("look for the comment: %w", err)
	case who.ID != 0 && c.AuthorID != 0 && who.ID != c.AuthorID, !strings.EqualFold(who.Login, c.Author):
		return fmt.Sprintf("the comment is by %s, and the event says %s", c.Author, who.Login), nil
	case c.Number != j.ev.Subject.Number:
		return fmt.Sprintf("the comment is on #%d, and the event says #%d", c.Number, j.ev.Subject.Number), nil
	case strings.TrimSpace(c.Body) != strings.TrimSpace(j.ev.CommentBody):
		return "the comment was edited since: write another one", nil
	}
	j.written = c.Created
	return "", nil
}
