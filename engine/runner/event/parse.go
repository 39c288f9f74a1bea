package event

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// Parse reads the payload of an event. What is certainly not for uwf has the kind
// None and one line that says why. A payload that is not what a forge would write is
// a *PayloadError that names the field; a /uwf line that can't be understood is a
// *CommandError, beside an Event that says where to answer.
func Parse(name string, payload []byte) (Event, error) {
	m, err := decode(payload)
	if err == nil {
		e := Event{Name: name}
		var wrong error
		p := parser{object: object{m: m, err: &wrong}, e: &e}
		err = p.event()
		if wrong != nil {
			err = wrong
		}
		if err == nil {
			return e, nil
		}
		var cmd *CommandError
		if errors.As(err, &cmd) {
			return e, err
		}
	}
	var bad *PayloadError
	if errors.As(err, &bad) {
		bad.Event = name
	}
	return Event{Name: name}, err
}

type parser struct {
	object
	e *Event
}

// event reads what all events have, then what its own kind has.
func (p parser) event() error {
	e := p.e
	e.Action = p.name("action")
	e.Sender = user(p.object.object("sender"))
	repo := p.object.object("repository")
	owner := repo.object("owner")
	e.Repo = Repo{
		FullName: repo.name("full_name"), DefaultBranch: repo.name("default_branch"), Private: repo.flag("private"), URL: repo.name("html_url"),
		Owner: user(owner), Organisation: owner.has("type") && owner.name("type") != "User",
	}
	switch e.Name {
	case "issues":
		p.issue()
	case "pull_request", "pull_request_target":
		p.pull()
	case "issue_comment", "pull_request_comment": // the second: some versions of Gitea
		return p.comment("issue")
	case "pull_request_review_comment":
		return p.comment("pull_request")
	case "schedule":
		e.Kind = Schedule
	case "workflow_dispatch":
		e.Kind, e.Inputs = Manual, p.object.object("inputs").texts(true)
	case "repository_dispatch":
		e.Kind, e.Type, e.Inputs = Dispatch, e.Action, p.object.object("client_payload").texts(false)
	default:
		p.plain()
	}
	return nil
}

func (p parser) none(format string, args ...any) {
	p.e.Kind, p.e.Why = None, fmt.Sprintf(format, args...)
}

// plain is an event that says nothing to uwf by itself.
func (p parser) plain() {
	p.e.Kind = Plain
	what := clip(p.e.Name)
	if p.e.Action != "" {
		what += " (" + clip(p.e.Action) + ")"
	}
	p.e.Why = fmt.Sprintf("the event %s starts nothing by itself: give the action a prompt, or use a label or a comment", what)
}

func (p parser) issue() {
	p.e.Subject = subject(p.object.object("issue"))
	p.subjectAction("issue")
}

func (p parser) pull() {
	in := p.object.object("pull_request")
	s := subject(in)
	s.Pull = true
	s.Head, s.Base = branch(in.object("head")), branch(in.object("base"))
	p.e.Subject = s
	p.subjectAction("pull_request")
}

// subjectAction judges what was done to an issue or a pull request.
func (p parser) subjectAction(field string) {
	switch p.e.Action {
	case "labeled":
		p.labeled(p.labelOf())
	case "label_updated":
		p.labelUpdated()
	case "assigned":
		p.e.Kind, p.e.Assignee = Assigned, p.assignee(field)
	case "unlabeled", "label_cleared":
		p.none("a label was taken off #%d", p.e.Subject.Number)
	case "unassigned":
		p.none("somebody was taken off #%d", p.e.Subject.Number)
	case "deleted", "transferred":
		p.none("#%d was %s", p.e.Subject.Number, p.e.Action)
	default:
		p.plain()
	}
}

// labelOf is the label of GitHub's event, which has one event for each label.
func (p parser) labelOf() []string {
	if !p.has("label") {
		p.fail("label", "is missing")
		return nil
	}
	label := p.object.object("label")
	name := label.name("name")
	if name == "" {
		p.fail("label.name", "is missing")
	}
	return []string{name}
}

// labelUpdated is Gitea's event, one for all labels that were changed at once.
func (p parser) labelUpdated() {
	if !p.has("changes") {
		p.none("this forge doesn't say which labels of #%d were changed: Gitea does from 1.24 on; comment /uwf start instead", p.e.Subject.Number)
		return
	}
	var added []string
	for _, l := range p.object.object("changes").objects("added_labels", maxLabels) {
		added = append(added, l.name("name"))
	}
	p.labeled(added)
}

func (p parser) labeled(added []string) {
	if len(added) == 0 {
		p.none("labels were only taken off #%d", p.e.Subject.Number)
		return
	}
	p.e.Kind, p.e.Added = Labeled, added
}

// assignee is who was assigned: GitHub says so, Gitea only shows all of them.
func (p parser) assignee(field string) string {
	if login := p.object.object("assignee").name("login"); login != "" {
		return login
	}
	in := p.object.object(field)
	if all := in.objects("assignees", maxLabels); len(all) > 0 {
		return all[len(all)-1].name("login")
	}
	return in.object("assignee").name("login")
}

// ownComment is what each comment that uwf writes begins with.
const ownComment = "<!-- uwf:"

// comment reads a comment on an issue, a pull request, or a line of one.
func (p parser) comment(field string) error {
	e := p.e
	in := p.object.object(field)
	e.Subject = subject(in)
	if field == "pull_request" {
		e.Subject.Pull, e.Review = true, true
		e.Subject.Head, e.Subject.Base = branch(in.object("head")), branch(in.object("base"))
	} else {
		e.Subject.Pull = in.has("pull_request") || p.flag("is_pull")
	}
	c := p.object.object("comment")
	e.CommentID, e.CommentURL = c.number("id"), c.name("html_url")
	e.CommentAuthor = user(c.object("user"))
	if e.Action != "created" {
		p.none("a comment on #%d was %s: only new ones count", e.Subject.Number, clip(e.Action))
		return nil
	}
	body := c.text("body", maxText)
	e.CommentBody = body
	if strings.HasPrefix(body, ownComment) {
		// Written with the token of a person, it would be that person's command.
		p.none("the comment on #%d is one of uwf's own", e.Subject.Number)
		return nil
	}
	cmd, err := ParseCommand(body)
	e.Kind, e.Command = Comment, cmd
	if err == nil && cmd == nil {
		p.none("the comment on #%d has no line that begins with /uwf", e.Subject.Number)
	}
	return err
}

// subject reads an issue or a pull request.
func subject(in object) *Subject {
	author := in.object("user")
	s := &Subject{
		Title: in.text("title", maxText), Body: in.text("body", maxText), Author: author.name("login"), AuthorID: author.account(),
		Open: in.name("state") == "open", URL: in.name("html_url"), Quiet: in.isZero("comments"),
	}
	n := in.number("number")
	if n > math.MaxInt32 {
		in.fail(under(in.path, "number"), "is too large")
	}
	s.Number = int(n)
	for _, l := range in.objects("labels", maxLabels) {
		s.Labels = append(s.Labels, l.name("name"))
	}
	return s
}

// branch is one side of a pull request. Its repository is gone when somebody
// deleted the fork.
func branch(in object) Branch {
	return Branch{Repo: in.object("repo").name("full_name"), Name: in.name("ref"), SHA: in.name("sha")}
}

// user reads an account. Gitea's and Forgejo's own ones, which jobs act as, are
// ordinary users in payloads.
func user(in object) User {
	u := User{Login: in.name("login"), ID: in.account()}
	u.Bot = in.name("type") == "Bot" || strings.HasSuffix(u.Login, "[bot]") || u.Login == "gitea-actions" || u.Login == "forgejo-actions"
	return u
}
