// Package authority says what the people behind an event may have done, and who they are.
// Nothing in a payload gives anybody a right: what they may do, the forge is asked for.
package authority

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/runner/effects"
	"github.com/united-workforce/uwf/engine/runner/event"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/gitcas/record"
)

// Gate says what the people behind an event may have done, and where agents may work.
type Gate struct {
	*effects.Effects
	allowed bool // the people behind the event may start and steer
	// Confirmed: the comment with the command is what its author wrote, who may give it.
	Confirmed bool
	Written   time.Time // when the comment with the command was, once that is confirmed
	Unknown   bool      // the forge can't tell what somebody may do
}

// Nothing in a payload gives anybody a right: it only says who did something. What
// they may do is looked up, now, also in a re-run.

// MayStart says whether the people behind the event may start or steer a thread. Why
// says why not, in one line. That it can't be found out is an error only where asking
// again would help.
func (j *Gate) MayStart(ctx context.Context) (ok bool, why string, err error) {
	if j.allowed {
		return true, "", nil
	}
	for _, who := range j.listActors() {
		if ok, why, err = j.mayAccount(ctx, who); !ok || err != nil {
			return false, why, err
		}
	}
	j.allowed = true
	return true, "", nil
}

// listActors are everybody who has to be allowed: who did it; for a comment its author, and
// whoever edited it; and who started the re-run.
func (j *Gate) listActors() []event.User {
	who := []event.User{j.Event.Sender}
	if j.Event.Kind == event.Comment {
		who = append([]event.User{j.Event.CommentAuthor}, who...)
	}
	if again := j.StartedAgainBy(); again != "" {
		who = append(who, event.User{Login: again, Bot: forge.IsBot(again)})
	}
	var out []event.User
	for _, u := range who {
		if !slices.ContainsFunc(out, func(o event.User) bool { return o.Login == u.Login }) {
			out = append(out, u)
		}
	}
	return out
}

// mayAccount says whether one account may start and steer threads.
func (j *Gate) mayAccount(ctx context.Context, who event.User) (ok bool, why string, err error) {
	named := who.Login != "" && slices.Contains(j.Inputs.Allow, who.Login)
	switch {
	case who.Login == "":
		return false, "the event doesn't say who did it", nil
	case who.Bot || forge.IsBot(who.Login):
		if named {
			return true, "", nil
		}
		return false, fmt.Sprintf("%s is a bot; name it in the input allow to let it", who.Login), nil
	}
	p, err := j.Forge.ReadPermission(ctx, who.Login)
	switch {
	case err != nil:
		return false, "", fmt.Errorf("find out whether %s may do this: %w", who.Login, err)
	case p >= forge.Write:
		return true, "", nil
	case p != forge.Unknown:
		return false, fmt.Sprintf("%s can't write to this repository", who.Login), nil
	case named:
		return true, "", nil
	}
	if owner, err := j.isOwner(ctx, who); owner || err != nil {
		return owner, "", err
	}
	j.Unknown = true
	return false, fmt.Sprintf("this job's token can't find out whether %s may write here; name them in the input allow to let them (allow: %[1]s, below with: of the workflow file)", who.Login), nil
}

// isOwner reports whether somebody owns this repository, as a person: where nobody can
// tell what others may do, as on Gitea, that much is sure. Login and id have to be the
// owner's, which the forge put into the event. Whoever the job's own token stands for is
// not meant: what that does, jobs do. Where the forge doesn't say who that is, nobody is.
func (j *Gate) isOwner(ctx context.Context, who event.User) (bool, error) {
	o := j.Event.Repo.Owner
	login, _, _ := strings.Cut(j.Job.Repository, "/")
	if j.Event.Repo.Organisation || o.Bot || o.ID == 0 || o.ID != who.ID || o.Login != who.Login || o.Login != login {
		return false, nil
	}
	me, err := j.Forge.ReadTokenOwner(ctx)
	switch {
	case forge.IsRefused(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("find out whose token this job has: %w", err)
	}
	return me.ID != o.ID && !strings.EqualFold(me.Login, o.Login), nil
}

// IsOurs reports whether an account is the one that issues are assigned to for uwf to
// take them: that of the label's name, or a bot that may start threads.
func (j *Gate) IsOurs(login string) bool {
	label := j.StartLabel()
	if login == label || login == label+"[bot]" || login == label+"-bot" {
		return true
	}
	return (forge.IsBot(login) || strings.HasSuffix(login, "-bot")) && slices.Contains(j.Inputs.Allow, login)
}

// ConfirmComment asks the forge for the comment with the command: whoever can write the
// event's file could put anybody's name, and any words, into it. Why says why it is not
// what the event says, in one line.
func (j *Gate) ConfirmComment(ctx context.Context) (why string, err error) {
	ask := j.Forge.ReadComment
	if j.Event.Review {
		ask = j.Forge.ReadLineComment
	}
	c, err := ask(ctx, j.Event.CommentID)
	who := j.Event.CommentAuthor
	switch {
	case errors.Is(err, forge.ErrNotFound):
		return "the comment is not there any more", nil
	case err != nil:
		return "", fmt.Errorf("look for the comment: %w", err)
	case who.ID != 0 && c.AuthorID != 0 && who.ID != c.AuthorID, !strings.EqualFold(who.Login, c.Author):
		return fmt.Sprintf("the comment is by %s, and the event says %s", c.Author, who.Login), nil
	case c.Number != j.Event.Subject.Number:
		return fmt.Sprintf("the comment is on #%d, and the event says #%d", c.Number, j.Event.Subject.Number), nil
	case strings.TrimSpace(c.Body) != strings.TrimSpace(j.Event.CommentBody):
		return "the comment was edited since: write another one", nil
	}
	j.Written = c.Created
	return "", nil
}

// AddsLabel reports whether the event put our label on.
func (j *Gate) AddsLabel() bool {
	label := j.StartLabel()
	return slices.ContainsFunc(j.Event.Added, func(l string) bool { return strings.EqualFold(l, label) })
}

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
	if by.Validate() != nil {
		by.URL = ""
	}
	if by.Validate() != nil {
		return nil
	}
	return &story.Person{By: by, Email: forge.NoReplyAddress(j.Forge.ForgeFlavour(), j.Job.ServerURL, by.Login, by.ID)}
}

// StartedAgainBy is who started this run again, where that is another account than the
// one that the event is by; empty: nobody.
func (j *Gate) StartedAgainBy() string {
	if again := j.Job.TriggeringActor; j.Job.Attempt > 1 && again != j.Job.Actor {
		return again
	}
	return ""
}
