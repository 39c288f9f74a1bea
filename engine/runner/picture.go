package runner

import (
	"cmp"
	"fmt"
	"time"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/runner/event"
	"github.com/united-workforce/uwf/engine/runner/picture"
	"github.com/united-workforce/uwf/engine/runner/report"
	"github.com/united-workforce/uwf/engine/runner/sanitize"
	"github.com/united-workforce/uwf/gitcas"
)

// newTrigger is that of a thread that this job starts.
func (j *job) newTrigger(s *event.Subject, g *ground) picture.Trigger {
	t := picture.Trigger{
		Event: j.ev.Name, Repo: j.Job.Repository, Actor: j.ev.Sender.Login, Run: j.id, Branch: g.branch,
		Author: g.author, AuthorID: g.authorID,
	}
	if j.ev.Kind == event.Comment {
		t.Actor, t.URL = j.ev.CommentAuthor.Login, j.ev.CommentURL
	}
	if s != nil {
		t.Number, t.Pull, t.Title = s.Number, s.Pull, sanitize.Title(sanitize.Incoming(s.Title))
		if t.URL == "" {
			t.URL = s.URL
		}
	}
	return t
}

// view is what the report is made of, in one state.
func (j *job) view(p *picture.Picture, state report.State) report.Thread {
	t := report.Thread{
		ID: string(p.ID), Workflow: p.Def.Name, State: state, Definition: p.Def, Past: p.Past,
		Steps: p.Steps(), Subject: p.Trigger.Number, SubjectPull: p.Trigger.Pull, Links: j.links(p), Now: j.Now(),
	}
	t.Started, t.Said = p.Entry.By, p.Said
	t.Waits = p.Entry.Status == gitcas.StatusSuspended
	if t.Started == nil {
		t.Started = p.Chain.Start.By
	}
	if n := p.Entry.Next; n != nil {
		t.Role, t.Since = n.Role, time.UnixMilli(n.Since)
	}
	t.Delivering, t.Former = p.Entry.Deliver, p.Trigger.Former
	if s := p.Entry.Suspended; s != nil {
		t.Question, t.Role = s.Reason, cmp.Or(s.Role, t.Role)
	}
	limits := life.EffectiveLimits(j.Engine.Settings.Limits(p.Def.Name), p.Def, p.Entry.Limits)
	t.MaxTokens, t.MaxCostUSD, t.MaxSteps = limits.Tokens, limits.CostUSD, limits.MaxSteps
	for _, s := range t.Steps {
		t.Tokens += s.Tokens
		t.CostUSD += s.CostUSD
		t.Unpriced = t.Unpriced || s.Unpriced
	}
	if n := len(p.Past.Steps); n > 0 {
		last := p.Past.Steps[n-1]
		t.Last = &report.Output{Role: last.Role, Status: moderator.StatusOf(p.Def, last), Fields: last.Output, Body: last.Body}
	}
	return t
}

// links are the addresses on the forge.
func (j *job) links(p *picture.Picture) report.Links {
	l := report.Links{
		Repo: j.Job.repoURL(), Run: j.Job.runURL(), Gitea: j.gitea(), StateBranch: j.Job.StateBranch,
		WorkBranch: p.Entry.Work.Branch,
	}
	if p.Trigger.Number > 0 && j.sticky != nil && j.sticky.ID > 0 {
		l.Comment = fmt.Sprintf("%s#issuecomment-%d", l.IssueURL(p.Trigger.Number), j.sticky.ID)
	}
	return l
}
