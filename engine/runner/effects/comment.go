package effects

import (
	"cmp"
	"context"
	"slices"

	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/runner/report"
	"github.com/united-workforce/uwf/engine/runner/sticky"
	"github.com/united-workforce/uwf/engine/runner/threadview"
	"github.com/united-workforce/uwf/gitcas"
)

// NewComment is the comment of a thread, not looked for yet.
func (j *Effects) NewComment(id gitcas.ThreadID) *sticky.Comment {
	return &sticky.Comment{
		Forge: j.Forge, Thread: string(id), Off: j.Inputs.Comment.Off, Fresh: j.Made == id,
		Clean: j.RedactText, Warn: j.Warn, Hook: j.CallHook,
	}
}

// SelectComment tells the job which thread its effects are for.
func (j *Effects) SelectComment(p *threadview.Thread) *sticky.Comment {
	s := j.Comment
	if s == nil || s.Thread != string(p.ID) {
		s = j.NewComment(p.ID)
		if j.Inputs.Thread == p.ID {
			s.ID = j.Inputs.Comment.ID
		}
		j.Comment = s
	}
	s.Number = p.Trigger.Number
	if s.ID == 0 {
		s.ID = p.Entry.Comment
	}
	return s
}

// UpdateComment brings the thread's comment to a state. Nothing depends on it.
func (j *Effects) UpdateComment(ctx context.Context, p *threadview.Thread, t report.Thread) {
	s := j.SelectComment(p)
	t.Links.Comment = j.LinkThread(p).Comment
	j.WriteComment(ctx, s, t)
}

// WriteComment makes a thread's comment say how it stands.
func (j *Effects) WriteComment(ctx context.Context, s *sticky.Comment, t report.Thread) {
	j.Shown = &t
	if s.Off || s.Number == 0 {
		return
	}
	ctx, cancel := WithEffectTime(ctx)
	defer cancel()
	if err := s.Write(ctx, report.Comment(t)); err != nil {
		j.Warn("the thread's comment could not be brought up to date", err)
		return
	}
	j.Spoke = true
	j.Told = slices.Contains([]report.State{report.Failed, report.Waiting, report.Limited, report.Damaged}, t.State)
}

// TellState shows how a thread stands with which nothing goes on for now: in its comment,
// whose id is noted, and by a label; empty: none is changed.
func (j *Effects) TellState(ctx context.Context, p *threadview.Thread, t report.Thread, label string) {
	j.UpdateComment(ctx, p, t)
	if label != "" {
		j.SetLabel(ctx, p, label)
	}
	j.RecordComment(ctx, p)
}

// TellFailed shows that a thread's step failed, or that its next job did not come.
func (j *Effects) TellFailed(ctx context.Context, p *threadview.Thread, why report.Failure) {
	t := j.DescribeThread(p, report.Failed)
	t.Question = ""
	t.Failure = &why
	j.TellState(ctx, p, t, LabelFailed)
}

// ListEffects are what the step's commit writes down.
func (j *Effects) ListEffects() life.Effects {
	if j.Comment == nil {
		return life.Effects{}
	}
	return life.Effects{Comment: j.Comment.ID}
}

// RecordComment writes the comment's id down where no step of this job does.
func (j *Effects) RecordComment(ctx context.Context, p *threadview.Thread) {
	s := j.Comment
	if s == nil || s.ID == 0 || s.ID == p.Entry.Comment {
		return
	}
	ctx, cancel := WithEffectTime(ctx)
	defer cancel()
	if err := j.Engine.Record(ctx, p.ID, life.Effects{Comment: s.ID}); err != nil {
		j.Warn("the comment's id could not be noted", err)
	}
}

// StartLabel is the label that starts a thread.
func (j *Effects) StartLabel() string { return cmp.Or(j.Inputs.Label, "uwf") }

// Labels are those that tell of a thread that waits or failed.
func Labels() []forge.Label {
	return []forge.Label{
		{Name: LabelWaiting, Color: "fbca04", Description: "An agent's question waits for an answer"},
		{Name: LabelFailed, Color: "b60205", Description: "uwf can't go on without help"},
	}
}

// SetLabel puts one of the labels on and takes the others off, as far as the payload tells
// that they are there.
func (j *Effects) SetLabel(ctx context.Context, p *threadview.Thread, name string) {
	if p.Trigger.Number == 0 {
		return
	}
	ctx, cancel := WithEffectTime(ctx)
	defer cancel()
	for _, l := range Labels() {
		switch {
		case l.Name == name:
			if err := j.Forge.AddLabel(ctx, p.Trigger.Number, l); err != nil {
				j.Warn("the label "+name+" could not be put on", err)
			}
		case j.HasLabel(p.Trigger.Number, l.Name):
			j.RemoveLabels(ctx, p, l.Name)
		}
	}
	j.CallHook("labelled")
}

// RemoveLabels takes labels off. That they are not there is no error.
func (j *Effects) RemoveLabels(ctx context.Context, p *threadview.Thread, names ...string) {
	if p.Trigger.Number == 0 {
		return
	}
	ctx, cancel := WithEffectTime(ctx)
	defer cancel()
	for _, name := range names {
		if err := j.Forge.RemoveLabel(ctx, p.Trigger.Number, name); err != nil {
			j.Warn("the label "+name+" could not be taken off", err)
		}
	}
}

// HasLabel reports whether the event's subject is that number, with that label.
func (j *Effects) HasLabel(number int, label string) bool {
	s := j.Event.Subject
	return s != nil && s.Number == number && slices.Contains(s.Labels, label)
}
