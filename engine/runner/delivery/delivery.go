// Package delivery hands over what a thread made: one pull request, opened or brought up to
// date, and the last words of its comment. Everything in it may be done again.
package delivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/engine/deliver"
	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/runner/effects"
	"github.com/united-workforce/uwf/engine/runner/report"
	"github.com/united-workforce/uwf/engine/runner/threadview"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/text"
)

// Delivery is what people get of a thread that has ended: a pull request and the last
// words of its comment.
type Delivery struct{ *effects.Effects }

// HandOver opens or updates the pull request and finishes the comment. It may be
// called again, and finds then what it made.
func (j *Delivery) HandOver(ctx context.Context, id gitcas.ThreadID, d deliver.Delivery) (life.Effects, error) {
	p, err := threadview.Build(func(p gitcas.Place) node.Getter { return d.View.In(ctx, p) }, id, d.Entry, d.Def, d.Chain)
	if err != nil {
		return life.Effects{}, err
	}
	j.Last, j.View = p, d.View
	s := j.SelectComment(p)
	t := j.DescribeThread(p, report.Delivered)
	t.Role, t.Question = "", ""
	made := func() life.Effects {
		e := life.Effects{Comment: s.ID}
		if t.Pull != nil {
			e.PR, e.Link = t.Pull.Number, t.Pull.URL
		}
		return e
	}
	if d.Tip.IsZero() || d.Tip.String() == p.Chain.Start.Base {
		t.State = report.NoChanges
	} else if err := j.ensurePull(ctx, p, &t); err != nil {
		return made(), err
	}
	if t.Pull != nil {
		j.Outcome.PullRequest = t.Pull.Number
	}
	for _, l := range effects.Labels() {
		if len(p.Entry.Attempts) > 0 || j.HasLabel(p.Trigger.Number, l.Name) {
			j.RemoveLabels(ctx, p, l.Name)
		}
	}
	return made(), j.closeComment(ctx, p, t)
}

// closeComment writes the comment's last words. The thread leaves the tip after them, so what
// keeps them back for a while is an error: the delivery is tried again.
func (j *Delivery) closeComment(ctx context.Context, p *threadview.Thread, t report.Thread) error {
	s := j.SelectComment(p)
	t.Links.Comment = j.LinkThread(p).Comment
	j.Shown = &t
	j.Out.Notice(fmt.Sprintf("thread %s: %s", p.ID, report.Sentence(t)))
	err := s.Write(ctx, report.Comment(t))
	if err != nil && (errors.Is(err, forge.ErrLimited) || errors.Is(err, forge.ErrUnreachable)) {
		return err
	}
	if err != nil {
		j.Warn("the thread's comment could not be brought up to date", err)
	}
	return nil
}

// ensurePull sees to it that there is a pull request for the thread's work, one.
func (j *Delivery) ensurePull(ctx context.Context, p *threadview.Thread, t *report.Thread) error {
	branch := p.WorkBranch()
	if p.Trigger.Branch == branch {
		return j.describeOwnPull(ctx, p, t)
	}
	base := p.Trigger.Branch // a fork of a thread about a pull request
	if base == "" {
		var err error
		if base, err = j.DefaultBranch(ctx); err != nil {
			return err
		}
	}
	t.Links.Compare = t.Links.CompareURL(base, branch)
	if j.Inputs.PullRequest.Off {
		t.Prevented = "No pull request is opened here: the input pull-request is false."
		return nil
	}
	title, err := j.RedactText(report.PullTitle(*t, p.Trigger.Title))
	if err != nil {
		return err
	}
	body, err := j.RedactText(report.PullBody(*t))
	if err != nil {
		return err
	}
	found, updated, err := j.openOrUpdatePull(ctx, p, forge.NewPull{Title: title, Body: body, Head: branch, Base: base, Draft: j.Inputs.Draft})
	switch {
	case err == nil:
		t.Pull = &report.Pull{Number: found.Number, URL: cmp.Or(found.URL, t.Links.IssueURL(found.Number)), Draft: j.Inputs.Draft && !updated, Updated: updated}
		t.Links.Compare = ""
		return nil
	case errors.Is(err, forge.ErrNoChanges):
		t.State = report.NoChanges
		t.Links.Compare = ""
		return nil
	case forge.IsRefused(err):
		t.Prevented = j.explainPrevented(err)
		j.Warn("the pull request could not be opened", err)
		return nil
	}
	return err
}

// describeOwnPull looks after a thread that worked on a pull request's own branch, which has the
// changes already: unless it was merged or closed meanwhile.
func (j *Delivery) describeOwnPull(ctx context.Context, p *threadview.Thread, t *report.Thread) error {
	n := p.Trigger.Number
	found, err := j.Forge.ReadPull(ctx, n)
	switch {
	case err == nil && found.Open:
		t.Pull = &report.Pull{Number: n, URL: t.Links.IssueURL(n), Updated: true}
		return nil
	case err != nil && !errors.Is(err, forge.ErrNotFound):
		return err
	}
	what := "closed"
	if found.Merged {
		what = "merged"
	}
	t.Prevented = fmt.Sprintf("Pull request #%d was %s before the work was done: what was changed since is not in it.", n, what)
	base, err := j.DefaultBranch(ctx)
	if err != nil {
		return err
	}
	t.Links.Compare = t.Links.CompareURL(base, p.WorkBranch())
	return nil
}

// explainPrevented says why there is no pull request, and how to allow it.
func (j *Delivery) explainPrevented(err error) string {
	if errors.Is(err, forge.ErrForbidden) {
		why := "This job may not open pull requests. To allow it: the job needs the permission \"pull-requests: write\""
		if j.IsGitea() { // which has no setting for it
			return why + "."
		}
		return why + ", and the setting \"Allow GitHub Actions to create and approve pull requests\" (Settings → Actions → General) has to be on."
	}
	return "The pull request could not be opened: " + text.Cut(err.Error(), 1000)
}

// openOrUpdatePull updates the thread's pull request if there is an open one, otherwise it opens
// one. One that another job left is found by its branch.
func (j *Delivery) openOrUpdatePull(ctx context.Context, p *threadview.Thread, n forge.NewPull) (_ forge.Pull, updated bool, err error) {
	if known := j.findKnownPull(p); known != 0 {
		found, err := j.Forge.ReadPull(ctx, known)
		switch {
		case err == nil && found.Open && found.Head.Name == n.Head && strings.EqualFold(found.Head.Repo, j.Job.Repository):
			return found, true, j.updatePull(ctx, p, found, n)
		case err != nil && !errors.Is(err, forge.ErrNotFound):
			return found, false, err
		}
	}
	made, err := j.Forge.CreatePull(ctx, n)
	if n.Draft && errors.Is(err, forge.ErrInvalid) {
		// Drafts are not to be had in every repository.
		n.Draft = false
		made, err = j.Forge.CreatePull(ctx, n)
	}
	switch {
	case err == nil:
		j.CallHook("pull-created")
		return made, false, nil
	case errors.Is(err, forge.ErrExists):
		found, ok, ferr := j.Forge.FindPull(ctx, n.Head)
		if ferr != nil || !ok || !found.Open {
			return made, false, errors.Join(err, ferr)
		}
		return found, !isOurs(p, found), j.updatePull(ctx, p, found, n)
	}
	return made, false, err
}

// findKnownPull is the pull request that an earlier job opened for the thread; 0: none.
func (j *Delivery) findKnownPull(p *threadview.Thread) int {
	if p.Entry.PR != 0 {
		return p.Entry.PR
	}
	if j.Inputs.Thread == p.ID {
		return int(j.Inputs.PullRequest.ID)
	}
	return 0
}

// isOurs reports whether a job of the thread opened a pull request. One that nobody noted is as
// good as new: no job has told of it yet.
func isOurs(p *threadview.Thread, found forge.Pull) bool {
	id, marked := report.FindMarker(found.Body)
	return marked && id == string(p.ID)
}

// updatePull brings the pull request's words up to date. They are not worth failing.
// Where a person opened it, or wrote it anew, their words stay.
func (j *Delivery) updatePull(ctx context.Context, p *threadview.Thread, found forge.Pull, n forge.NewPull) error {
	if !isOurs(p, found) || found.Title == n.Title && found.Body == n.Body {
		return nil
	}
	if err := j.Forge.UpdatePull(ctx, found.Number, n.Title, n.Body); err != nil {
		j.Warn(fmt.Sprintf("pull request #%d could not be brought up to date", found.Number), err)
		return nil
	}
	j.CallHook("pull-updated")
	return nil
}
