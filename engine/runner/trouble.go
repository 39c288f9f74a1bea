package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/united-workforce/uwf/engine/runner/ci"
	"github.com/united-workforce/uwf/engine/runner/effects"
	"github.com/united-workforce/uwf/engine/runner/event"
	"github.com/united-workforce/uwf/engine/runner/report"
	"github.com/united-workforce/uwf/engine/runner/threadview"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/internal/lists"
)

// tellTrouble says on the issue why the job is red, unless that was said: an issue must
// not say that all is well when it is not. What may pass by itself is told only to who
// waits for an answer; so is everything where nothing is known of the thread.
func (j *sweeper) tellTrouble(ctx context.Context, err error) {
	if j.Inputs.Command == ci.CommandRun || ctx.Err() != nil {
		return
	}
	id, answered := j.threadAtHand(), j.Told
	if errors.Is(err, gitcas.ErrDamaged) {
		j.tellDamage(ctx, err)
		j.suspendUnread(ctx, err)
		answered = answered || j.Told && j.Event.Command == nil // who commands gets an answer, too
	} else if !j.Told && id != "" && !effects.IsPassing(err) {
		j.steps.tellFailure(ctx, id, err)
		answered = j.Told
	}
	lost := j.Inputs.Command == ci.CommandRescue && id == "" // and no other job does it
	if s := j.Event.Subject; s != nil && !answered && j.waitsForAnswer(ctx) && (lost || j.Event.Command != nil || !effects.IsPassing(err)) {
		j.PostAnswer(ctx, s.Number, j.DescribeFailure("do this", err))
	}
}

// waitsForAnswer reports whether somebody with the right to it is behind the event.
func (j *sweeper) waitsForAnswer(ctx context.Context) bool {
	switch j.Event.Kind {
	case event.Comment:
		return j.gate.Confirmed
	case event.Labeled, event.Assigned:
		ok, _, err := j.gate.MayStart(ctx)
		return err == nil && ok
	}
	return false
}

// threadAtHand is the thread that the job is about; empty: none, or it is not known.
func (j *sweeper) threadAtHand() gitcas.ThreadID {
	return cmp.Or(j.Outcome.Thread, j.Inputs.Thread, j.Made)
}

// threadsAtHand are those of a view that a damaged store concerns: the job's own, those
// about the event's subject, or, where the job is about none, all.
func (j *sweeper) threadsAtHand(v *gitcas.View) []gitcas.ThreadID {
	if id := j.threadAtHand(); id != "" {
		return []gitcas.ThreadID{id}
	}
	if v == nil {
		return nil
	}
	s := j.Event.Subject
	var all []thread.Pending
	for id, e := range v.Threads() {
		if s == nil || isAbout(e.Key, e.PR, *s) {
			all = append(all, thread.Pending{Thread: id})
		}
	}
	slices.SortFunc(all, func(a, b thread.Pending) int { return cmp.Compare(a.Thread, b.Thread) })
	return lists.Map(pickSome(j.rand, all, sweepMaxSchedule), func(p thread.Pending) gitcas.ThreadID { return p.Thread })
}

// tellDamage says in the comments of threads that the store is damaged, and how it is
// mended. They are read from the last commit that is known to be good. A comment that
// says so already is left as it is, however often a schedule finds the same.
func (j *sweeper) tellDamage(ctx context.Context, err error) {
	var d *gitcas.DamagedError
	if !errors.As(err, &d) {
		return
	}
	ctx, cancel := effects.WithEffectTime(ctx)
	defer cancel()
	known := j.lastKnown(ctx, d)
	what := *d
	what.Restore = ""
	why := &report.Failure{Message: what.Error(), Mend: d.Restore}
	for _, id := range j.threadsAtHand(known) {
		if p := j.loadLastThread(ctx, id, d); p != nil {
			t := j.DescribeThread(p, report.Damaged)
			t.Role, t.Question, t.Failure, t.Links.Run = "", "", why, ""
			j.UpdateComment(ctx, p, t)
			continue
		}
		j.tellUnread(ctx, id, known, why)
	}
}

// suspendUnread makes a thread wait that the job could not read: another job for it would
// fare no better, and the sweep would start one again and again. Where the branch is to
// be put back to what uwf wrote last, nothing is written on top of it.
func (j *sweeper) suspendUnread(ctx context.Context, cause error) {
	id := j.threadAtHand()
	if d, ok := errors.AsType[*gitcas.DamagedError](cause); id == "" || ok && d.Restore != "" {
		return
	}
	ctx, cancel := effects.WithEffectTime(ctx)
	defer cancel()
	v, err := j.Engine.Store.Load(ctx)
	if err == nil {
		entry, _ := v.Entry(id)
		_, err = j.Engine.SuspendAt(ctx, id, entry.Head, cause.Error())
	}
	if err != nil && !errors.Is(err, gitcas.ErrDamaged) { // a store that nobody can read starts no jobs
		j.Warn(fmt.Sprintf("thread %s can't be read, and could not be made to wait", id), err)
	}
}

// lastKnown is the store as it was before it was damaged, or, where only a thread is, as
// it is; nil: nothing of it can be read, and is not shown then.
func (j *sweeper) lastKnown(ctx context.Context, d *gitcas.DamagedError) *gitcas.View {
	var v *gitcas.View
	var err error
	if d.LastKnown.IsZero() {
		v, err = j.Engine.Store.Load(ctx)
	} else {
		v, err = j.Engine.Store.LoadKnown(ctx, d.LastKnown)
	}
	if err != nil {
		return nil
	}
	return v
}

// loadLastThread is how a thread looked before its store was damaged; nil: nobody knows.
func (j *sweeper) loadLastThread(ctx context.Context, id gitcas.ThreadID, d *gitcas.DamagedError) *threadview.Thread {
	if p := j.Last; p != nil && p.ID == id {
		return p
	}
	if d.LastKnown.IsZero() {
		return nil
	}
	v, err := j.Engine.Store.LoadKnown(ctx, d.LastKnown, id)
	if err != nil {
		return nil
	}
	p, err := threadview.Load(ctx, v, id)
	if err != nil {
		return nil
	}
	return p
}

// tellUnread is tellDamage for a thread of which nothing can be read: its comment is
// found by the id that its entry, or the dispatch, tells of it.
func (j *sweeper) tellUnread(ctx context.Context, id gitcas.ThreadID, v *gitcas.View, why *report.Failure) {
	var comment int64
	if v != nil {
		e, _ := v.Entry(id)
		comment = e.Comment
	}
	if comment == 0 && j.Inputs.Thread == id {
		comment = j.Inputs.Comment.ID
	}
	if comment == 0 || j.Inputs.Comment.Off {
		return
	}
	there, err := j.Forge.ReadComment(ctx, comment)
	if err != nil {
		j.Warn("the thread's comment could not be brought up to date", err)
		return
	}
	// The id may lead to anybody's words, and so to any issue.
	if marked, ok := report.FindMarker(there.Body); !ok || marked != string(id) {
		return
	}
	t := report.Thread{
		ID: string(id), State: report.Damaged, Failure: why, Subject: there.Number, Now: j.Now(),
		Links: report.Links{Repo: j.Job.RepositoryURL(), Gitea: j.IsGitea(), StateBranch: j.Job.StateBranch},
	}
	j.Comment = j.NewComment(id)
	j.Comment.ID, j.Comment.Number = comment, there.Number
	j.WriteComment(ctx, j.Comment, t)
}
