package effects

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/runner/report"
	"github.com/united-workforce/uwf/engine/runner/threadview"
	"github.com/united-workforce/uwf/gitcas"
)

// DescribeThread is what the report is made of, in one state.
func (j *Effects) DescribeThread(p *threadview.Thread, state report.State) report.Thread {
	t := report.Thread{
		ID: string(p.ID), Workflow: p.Def.Name, State: state, Definition: p.Def, Past: p.Past,
		Steps: p.Steps(), Subject: p.Trigger.Number, SubjectPull: p.Trigger.Pull, Links: j.LinkThread(p), Now: j.Now(),
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
		t.Question, t.Role, t.Asks = s.Reason, cmp.Or(s.Role, t.Role), p.Asks()
		if t.Limit = life.ReachedLimit(p.Entry); t.Limit != "" && state == report.Waiting {
			t.State = report.Limited // nobody asks anything
		}
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

// LinkThread are the addresses on the forge.
func (j *Effects) LinkThread(p *threadview.Thread) report.Links {
	l := report.Links{
		Repo: j.Job.RepositoryURL(), Run: j.Job.ResolveRunURL(), Gitea: j.IsGitea(), StateBranch: j.Job.StateBranch,
		WorkBranch: p.Entry.Work.Branch,
	}
	if p.Trigger.Number > 0 && j.Comment != nil && j.Comment.ID > 0 {
		l.Comment = fmt.Sprintf("%s#issuecomment-%d", l.IssueURL(p.Trigger.Number), j.Comment.ID)
	}
	return l
}

// LoadThread reads a thread anew, for what is shown of it.
func (j *Effects) LoadThread(ctx context.Context, id gitcas.ThreadID) (*threadview.Thread, error) {
	ctx, cancel := WithEffectTime(ctx)
	defer cancel()
	v, err := j.Engine.Store.Load(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("read thread %s: %w", id, err)
	}
	return j.ReadThread(ctx, v, id)
}

// ReadThread reads a thread as a view shows it, for what is shown of it.
func (j *Effects) ReadThread(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) (*threadview.Thread, error) {
	j.StoreID, j.View = v.StoreID(), v
	p, err := threadview.Load(ctx, v, id)
	if err == nil {
		j.Last = p
	}
	return p, err
}

// LoadThreadOrLast is how a thread looks now; where that can't be read, how it looked last.
func (j *Effects) LoadThreadOrLast(ctx context.Context, id gitcas.ThreadID) *threadview.Thread {
	p, err := j.LoadThread(ctx, id)
	if err != nil {
		if !errors.Is(err, gitcas.ErrUnknownThread) { // it is over: what was last is to be shown
			j.Warn("the thread can't be shown as it is now", err)
		}
		if j.Last == nil || j.Last.ID != id {
			return nil
		}
		return j.Last
	}
	return p
}
