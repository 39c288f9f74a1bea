package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/runner/picture"
	"github.com/united-workforce/uwf/engine/runner/report"
	"github.com/united-workforce/uwf/engine/runner/sticky"
	"github.com/united-workforce/uwf/gitcas"
)

// Effects are what people see of a step. One that fails never loses the step and never
// makes it a failed one: it is told as a warning, and made up for by the next job, the
// re-run or the sweep.

// What the job may take for its effects when it was interrupted: GitHub kills it about
// ten seconds after it asked it to end.
const (
	effectTime = 2 * time.Minute
	graceTime  = 5 * time.Second
)

// effectContext is one for effects: an interrupt leaves them a little time.
func effectContext(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Err() == nil {
		return context.WithTimeout(ctx, effectTime)
	}
	return context.WithTimeout(context.WithoutCancel(ctx), graceTime)
}

// Labels of a thread's issue or pull request, beside the one that starts it, which is
// left alone.
const (
	labelWaiting = "uwf-waiting"
	labelFailed  = "uwf-failed"
)

func labels() []forge.Label {
	return []forge.Label{
		{Name: labelWaiting, Color: "fbca04", Description: "An agent's question waits for an answer"},
		{Name: labelFailed, Color: "b60205", Description: "uwf can't go on without help"},
	}
}

// about tells the job which thread its effects are for.
func (j *job) about(p *picture.Picture) *sticky.Comment {
	s := j.sticky
	if s == nil || s.Thread != string(p.ID) {
		s = j.newSticky(p.ID)
		if j.in.Thread == p.ID {
			s.ID = j.in.Comment.ID
		}
		j.sticky = s
	}
	s.Number = p.Trigger.Number
	if s.ID == 0 {
		s.ID = p.Entry.Comment
	}
	return s
}

// tell brings the thread's comment to a state. Nothing depends on it.
func (j *job) tell(ctx context.Context, p *picture.Picture, t report.Thread) {
	s := j.about(p)
	t.Links.Comment = j.links(p).Comment
	j.writeSticky(ctx, s, t)
}

// writeSticky makes a thread's comment say how it stands.
func (j *job) writeSticky(ctx context.Context, s *sticky.Comment, t report.Thread) {
	j.shown = &t
	if s.Off || s.Number == 0 {
		return
	}
	ctx, cancel := effectContext(ctx)
	defer cancel()
	if err := s.Write(ctx, report.Comment(t)); err != nil {
		j.warn("the thread's comment could not be brought up to date", err)
		return
	}
	j.spoke = true
	j.told = slices.Contains([]report.State{report.Failed, report.Waiting, report.Limited, report.Damaged}, t.State)
}

// effects are what the step's commit writes down.
func (j *job) effects() life.Effects {
	if j.sticky == nil {
		return life.Effects{}
	}
	return life.Effects{Comment: j.sticky.ID}
}

// record writes the comment's id down where no step of this job does.
func (j *job) record(ctx context.Context, p *picture.Picture) {
	s := j.sticky
	if s == nil || s.ID == 0 || s.ID == p.Entry.Comment {
		return
	}
	ctx, cancel := effectContext(ctx)
	defer cancel()
	if err := j.Engine.Record(ctx, p.ID, life.Effects{Comment: s.ID}); err != nil {
		j.warn("the comment's id could not be noted", err)
	}
}

// mark puts one of the labels on and takes the others off, as far as the payload tells
// that they are there.
func (j *job) mark(ctx context.Context, p *picture.Picture, name string) {
	if p.Trigger.Number == 0 {
		return
	}
	ctx, cancel := effectContext(ctx)
	defer cancel()
	for _, l := range labels() {
		switch {
		case l.Name == name:
			if err := j.Forge.AddLabel(ctx, p.Trigger.Number, l); err != nil {
				j.warn("the label "+name+" could not be put on", err)
			}
		case j.carries(p.Trigger.Number, l.Name):
			j.unmark(ctx, p, l.Name)
		}
	}
	j.hook(nil, "labelled")
}

// unmark takes labels off. That they are not there is no error.
func (j *job) unmark(ctx context.Context, p *picture.Picture, names ...string) {
	if p.Trigger.Number == 0 {
		return
	}
	ctx, cancel := effectContext(ctx)
	defer cancel()
	for _, name := range names {
		if err := j.Forge.RemoveLabel(ctx, p.Trigger.Number, name); err != nil {
			j.warn("the label "+name+" could not be taken off", err)
		}
	}
}

// carries reports whether the event's subject is that number, with that label.
func (j *job) carries(number int, label string) bool {
	s := j.ev.Subject
	return s != nil && s.Number == number && slices.Contains(s.Labels, label)
}

// warn tells of an effect that failed.
func (j *job) warn(what string, err error) {
	text, cerr := j.clean(err.Error())
	if cerr != nil {
		text = "the error can't be shown"
	}
	j.Out.Warning(what + ": " + text)
}

// clean takes secrets out of what is about to be shown. It fails closed.
func (j *job) clean(s string) (string, error) {
	v, _, err := j.Engine.Redact.Value(s)
	text, ok := v.(string)
	if err != nil || !ok {
		return "", fmt.Errorf("check what is to be shown for secrets: %w", err)
	}
	return text, nil
}

// hook is a durable point, where there was no error.
func (j *job) hook(err error, point string) {
	if err == nil && j.Hook != nil {
		j.Hook(point)
	}
}

func unsure(err error) bool {
	var e *forge.Error
	return errors.As(err, &e) && e.Unsure
}

// refused reports whether a forge said no, so that asking again does not help.
func refused(err error) bool {
	for _, kind := range []error{forge.ErrForbidden, forge.ErrAuth, forge.ErrNotFound, forge.ErrInvalid} {
		if errors.Is(err, kind) {
			return !unsure(err)
		}
	}
	return false
}

// defaultBranch asks for the default branch's name: somebody may have renamed it since
// the job before. Git tells it with HEAD, at no cost of API calls; where it doesn't,
// the forge is asked.
func (j *job) defaultBranch(ctx context.Context) (string, error) {
	if j.branch != "" {
		return j.branch, nil
	}
	if l, err := j.Engine.Store.Remote().List(ctx, "HEAD"); err == nil {
		if name, ok := strings.CutPrefix(l.Head, "refs/heads/"); ok && name != "" {
			j.branch = name
			return name, nil
		}
	}
	return j.askBranch(ctx)
}

func (j *job) askBranch(ctx context.Context) (string, error) {
	repo, err := j.Forge.Repository(ctx)
	if err != nil {
		return "", fmt.Errorf("ask for the default branch: %w", err)
	}
	if repo.DefaultBranch == "" {
		return "", fmt.Errorf("ask for the default branch: repository %s names none", j.Job.Repository)
	}
	j.branch = repo.DefaultBranch
	return j.branch, nil
}

// work is the branch that a thread works on.
func work(p *picture.Picture) string {
	if b := p.Entry.Work.Branch; b != "" {
		return b
	}
	return gitcas.WorkBranch(p.ID)
}
