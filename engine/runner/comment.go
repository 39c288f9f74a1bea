package runner

import (
	"context"
	"slices"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/runner/picture"
	"github.com/united-workforce/uwf/engine/runner/report"
	"github.com/united-workforce/uwf/engine/runner/sticky"
	"github.com/united-workforce/uwf/gitcas"
)

// newSticky is the comment of a thread, not looked for yet.
func (j *effects) newSticky(id gitcas.ThreadID) *sticky.Comment {
	return &sticky.Comment{
		Forge: j.Forge, Thread: string(id), Off: j.Inputs.Comment.Off, Fresh: j.made == id,
		Clean: j.clean, Warn: j.warn, Hook: j.hook,
	}
}

// about tells the job which thread its effects are for.
func (j *effects) about(p *picture.Picture) *sticky.Comment {
	s := j.sticky
	if s == nil || s.Thread != string(p.ID) {
		s = j.newSticky(p.ID)
		if j.Inputs.Thread == p.ID {
			s.ID = j.Inputs.Comment.ID
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
func (j *effects) tell(ctx context.Context, p *picture.Picture, t report.Thread) {
	s := j.about(p)
	t.Links.Comment = j.links(p).Comment
	j.writeSticky(ctx, s, t)
}

// writeSticky makes a thread's comment say how it stands.
func (j *effects) writeSticky(ctx context.Context, s *sticky.Comment, t report.Thread) {
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

// recorded are what the step's commit writes down.
func (j *effects) recorded() life.Effects {
	if j.sticky == nil {
		return life.Effects{}
	}
	return life.Effects{Comment: j.sticky.ID}
}

// record writes the comment's id down where no step of this job does.
func (j *effects) record(ctx context.Context, p *picture.Picture) {
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
