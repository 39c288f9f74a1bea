package event

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/internal/lists"
)

// Parse reads the payload of an event. What is certainly not for uwf has the kind
// None and one line that says why. A payload that is not what a forge would write is
// a *PayloadError that names the field; a /uwf line that can't be understood is a
// *CommandError, beside an Event that says where to answer.
func Parse(name string, payload []byte) (Event, error) {
	e := Event{Name: name}
	m, err := decodeJSON(payload)
	if err == nil {
		var wrong error
		p := parser{object: object{m: m, err: &wrong}, e: &e}
		err = p.parseEvent()
		err = cmp.Or(wrong, err)
	}
	if bad, ok := errors.AsType[*PayloadError](err); ok {
		bad.Event = name
		return Event{Name: name}, err
	}
	return e, err
}

type parser struct {
	object
	e *Event
}

// parseEvent reads what all events have, then what its own kind has.
func (p parser) parseEvent() error {
	e := p.e
	e.Action = p.readName("action")
	e.Sender = parseUser(p.object.readObject("sender"))
	repo := p.object.readObject("repository")
	owner := repo.readObject("owner")
	e.Repo = Repo{
		FullName: repo.readName("full_name"), DefaultBranch: repo.readName("default_branch"), PageURL: repo.readName("html_url"),
		Owner: parseUser(owner), Organisation: owner.hasField("type") && owner.readName("type") != "User",
	}
	switch e.Name {
	case "issues":
		p.parseIssue()
	case "pull_request", "pull_request_target":
		p.parsePull()
	case "issue_comment", "pull_request_comment": // the second: some versions of Gitea
		return p.parseComment("issue")
	case "pull_request_review_comment":
		return p.parseComment("pull_request")
	case "schedule":
		e.Kind = Schedule
	case "workflow_dispatch":
		e.Kind, e.Inputs = Manual, p.object.readObject("inputs").readTexts(true)
	case "repository_dispatch":
		e.Kind, e.Inputs = Dispatch, p.object.readObject("client_payload").readTexts(false)
	default:
		p.parsePlain()
	}
	return nil
}

func (p parser) setNone(format string, args ...any) {
	p.e.Kind, p.e.Why = None, fmt.Sprintf(format, args...)
}

// parsePlain is an event that says nothing to uwf by itself.
func (p parser) parsePlain() {
	p.e.Kind = Plain
	what := clipText(p.e.Name)
	if p.e.Action != "" {
		what += " (" + clipText(p.e.Action) + ")"
	}
	p.e.Why = fmt.Sprintf("the event %s starts nothing by itself: give the action a prompt, or use a label or a comment", what)
}

func (p parser) parseIssue() {
	p.e.Subject = parseSubject(p.object.readObject("issue"))
	p.subjectAction("issue")
}

func (p parser) parsePull() {
	in := p.object.readObject("pull_request")
	s := parseSubject(in)
	s.Pull = true
	p.e.Subject = s
	p.subjectAction("pull_request")
}

// subjectAction judges what was done to an issue or a pull request.
func (p parser) subjectAction(field string) {
	switch p.e.Action {
	case "labeled":
		p.setLabeled(p.labelOf())
	case "label_updated":
		p.labelUpdated()
	case "assigned":
		p.e.Kind, p.e.Assignee = Assigned, p.parseAssignee(field)
	case "unlabeled", "label_cleared":
		p.setNone("a label was taken off #%d", p.e.Subject.Number)
	case "unassigned":
		p.setNone("somebody was taken off #%d", p.e.Subject.Number)
	case "deleted", "transferred":
		p.setNone("#%d was %s", p.e.Subject.Number, p.e.Action)
	default:
		p.parsePlain()
	}
}

// labelOf is the label of GitHub's event, which has one event for each label.
func (p parser) labelOf() []string {
	if !p.hasField("label") {
		p.failField("label", "is missing")
		return nil
	}
	label := p.object.readObject("label")
	name := label.readName("name")
	if name == "" {
		p.failField("label.name", "is missing")
	}
	return []string{name}
}

// labelUpdated is Gitea's event, one for all labels that were changed at once.
func (p parser) labelUpdated() {
	if !p.hasField("changes") {
		p.setNone("this forge doesn't say which labels of #%d were changed: Gitea does from 1.24 on; comment /uwf start instead", p.e.Subject.Number)
		return
	}
	added := p.object.readObject("changes").readObjects("added_labels", maxLabels)
	p.setLabeled(lists.Map(added, func(l object) string { return l.readName("name") }))
}

func (p parser) setLabeled(added []string) {
	if len(added) == 0 {
		p.setNone("labels were only taken off #%d", p.e.Subject.Number)
		return
	}
	p.e.Kind, p.e.Added = Labeled, added
}

// parseAssignee is who was assigned: GitHub says so, Gitea only shows all of them.
func (p parser) parseAssignee(field string) string {
	if login := p.object.readObject("assignee").readName("login"); login != "" {
		return login
	}
	in := p.object.readObject(field)
	if all := in.readObjects("assignees", maxLabels); len(all) > 0 {
		return all[len(all)-1].readName("login")
	}
	return in.readObject("assignee").readName("login")
}

// ownComment is what each comment that uwf writes begins with.
const ownComment = "<!-- uwf:"

// IsOwnComment reports a comment that uwf wrote, or that passes for one.
func IsOwnComment(body string) bool { return strings.HasPrefix(body, ownComment) }

// parseComment reads a comment on an issue, a pull request, or a line of one.
func (p parser) parseComment(field string) error {
	e := p.e
	in := p.object.readObject(field)
	e.Subject = parseSubject(in)
	if field == "pull_request" {
		e.Subject.Pull, e.Review = true, true
	} else {
		e.Subject.Pull = in.hasField("pull_request") || p.readFlag("is_pull")
	}
	c := p.object.readObject("comment")
	e.CommentID, e.CommentURL = c.readNumber("id"), c.readName("html_url")
	e.CommentAuthor = parseUser(c.readObject("user"))
	if e.Action != "created" {
		p.setNone("a comment on #%d was %s: only new ones count", e.Subject.Number, clipText(e.Action))
		return nil
	}
	body := c.readText("body", maxText)
	e.CommentBody = body
	if IsOwnComment(body) {
		// Written with the token of a person, it would be that person's command.
		p.setNone("the comment on #%d is one of uwf's own", e.Subject.Number)
		return nil
	}
	cmd, err := ParseCommand(body)
	e.Kind, e.Command = Comment, cmd
	if err == nil && cmd == nil {
		p.setNone("the comment on #%d has no line that begins with /uwf", e.Subject.Number)
	}
	return err
}

// parseSubject reads an issue or a pull request.
func parseSubject(in object) *Subject {
	author := in.readObject("user")
	s := &Subject{
		Title: in.readText("title", maxText), Body: in.readText("body", maxText), Author: author.readName("login"), AuthorID: author.readAccount(),
		Open: in.readName("state") == "open", URL: in.readName("html_url"), Quiet: in.isZero("comments"),
	}
	n := in.readNumber("number")
	if n > math.MaxInt32 {
		in.failField(joinPath(in.path, "number"), "is too large")
	}
	s.Number = int(n)
	for _, l := range in.readObjects("labels", maxLabels) {
		s.Labels = append(s.Labels, l.readName("name"))
	}
	return s
}

// parseUser reads an account. Gitea's and Forgejo's own ones, which jobs act as, are
// ordinary users in payloads.
func parseUser(in object) User {
	u := User{Login: in.readName("login"), ID: in.readAccount()}
	u.Bot = in.readName("type") == "Bot" || forge.IsBot(u.Login)
	return u
}
