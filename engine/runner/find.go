package runner

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/runner/ci"
	"github.com/united-workforce/uwf/engine/runner/effects"
	"github.com/united-workforce/uwf/engine/runner/event"
	"github.com/united-workforce/uwf/engine/runner/report"
	"github.com/united-workforce/uwf/engine/runner/threadview"
	"github.com/united-workforce/uwf/gitcas"
)

// finder finds the thread that people mean, alive or over, and says how it stands.
type finder struct {
	*effects.Effects
	idle time.Duration
}

// defaultIdle is how long a thread lies still before its next job counts as lost: far
// longer than a runner takes to begin, on most days.
const defaultIdle = 5 * time.Minute

// idleElsewhere is the same where agents run in jobs that can't claim their thread: it
// lies still for as long as an agent may work.
const idleElsewhere = time.Hour

// idleTime is how long a thread has to lie still before its next job counts as lost.
func (j *finder) idleTime() time.Duration {
	switch {
	case j.idle != 0:
		return j.idle
	case j.Inputs.Command == ci.CommandCommit:
		return idleElsewhere
	}
	return defaultIdle
}

// lostJob is the job that is to go on with a thread of a view, if that died, or did not
// come for longer than jobs take to.
func (j *finder) lostJob(v *gitcas.View, p *threadview.Thread) (_ report.LostJob, lost bool) {
	if held, ok := v.FindClaim(p.ID); ok && held.Head == p.Entry.Head && life.ClaimedByJob(held.Claim) {
		return report.LostJob{Began: true, At: time.UnixMilli(held.Renewed)}, !life.ClaimAlive(held.Claim, v.Time())
	}
	var since int64
	switch e := p.Entry; {
	case e.Deliver:
		since = e.Since
	case e.Next != nil:
		since = e.Next.Since
	}
	if since == 0 {
		return report.LostJob{}, false
	}
	at := time.UnixMilli(since)
	return report.LostJob{At: at}, v.Time().Sub(at) > j.idleTime()
}

// found is the thread that a command means.
type found struct {
	id    gitcas.ThreadID
	v     *gitcas.View // as it is now
	p     *threadview.Thread
	ended *gitcas.Ended // nil: it is alive
}

// findFor finds the thread that a command means: the one that it names, else that of
// the issue or pull request.
func (j *finder) findFor(ctx context.Context, c *event.Command, s event.Subject) (*found, error) {
	if id, ok := c.Option("thread"); ok {
		t := gitcas.ThreadID(strings.ToUpper(id))
		if !t.Valid() {
			return nil, nil
		}
		return j.findByID(ctx, t)
	}
	return j.findBySubject(ctx, s)
}

// searchBack bounds how far back a thread that has ended is looked for.
const searchBack = 366 * 24 * time.Hour

// findBySubject finds the thread about a subject, or whose pull request it is: of those that
// are alive the newest, else of the ended ones the one that ended last. Nil: none.
func (j *finder) findBySubject(ctx context.Context, s event.Subject) (*found, error) {
	v, err := j.loadStore(ctx)
	if v == nil {
		return nil, err
	}
	var newest gitcas.ThreadID
	for id, e := range v.Threads() {
		if isAbout(e.Key, e.PR, s) && id > newest {
			newest = id
		}
	}
	if newest != "" {
		return j.findByID(ctx, newest)
	}
	line, err := j.searchHistory(ctx, v, v.Time().Add(-searchBack), func(e gitcas.Ended) bool { return isAbout(e.Key, e.PR, s) })
	if line == nil {
		return nil, err
	}
	return j.loadEnded(ctx, v, *line)
}

// loadStore reads the store; nil: there is none yet.
func (j *finder) loadStore(ctx context.Context, ids ...gitcas.ThreadID) (*gitcas.View, error) {
	v, err := j.Engine.Store.Load(ctx, ids...)
	if errors.Is(err, gitcas.ErrNoStore) {
		return nil, nil
	}
	return v, err
}

// searchHistory finds the thread that ended last since a time, of those that match; nil: none.
func (j *finder) searchHistory(ctx context.Context, v *gitcas.View, from time.Time, match func(gitcas.Ended) bool) (found *gitcas.Ended, err error) {
	err = v.History(ctx, from, func(e gitcas.Ended) error {
		if !match(e) {
			return nil
		}
		found = &e
		return gitcas.ErrStop
	})
	return found, err
}

// isAbout reports whether a thread with that key and pull request is about a subject.
func isAbout(key string, pr int, s event.Subject) bool {
	return threadview.IsAbout(key, threadview.SubjectKey(s.Pull, s.Number)) || s.Pull && pr == s.Number
}

// findByID reads a thread by its id, alive or over.
func (j *finder) findByID(ctx context.Context, id gitcas.ThreadID) (*found, error) {
	v, err := j.loadStore(ctx, id)
	if v == nil {
		return nil, err
	}
	j.StoreID = v.StoreID()
	if _, alive := v.Entry(id); alive {
		p, err := threadview.Load(ctx, v, id)
		return &found{id: id, v: v, p: p}, err
	}
	line, ok, err := v.FindEnded(ctx, id)
	if !ok || line.Reason == gitcas.ReasonRemoved {
		return nil, err
	}
	return j.loadEnded(ctx, v, line)
}

// loadEnded reads a thread that is no longer on the tip.
func (j *finder) loadEnded(ctx context.Context, v *gitcas.View, line gitcas.Ended) (*found, error) {
	past, err := v.LoadEnded(ctx, line)
	if err != nil {
		return nil, err
	}
	p, err := threadview.Load(ctx, past, line.Thread)
	return &found{id: line.Thread, v: v, p: p, ended: &line}, err
}

// cancelledBy begins the note of a thread that a comment cancelled; what was said follows.
func cancelledBy(login string) string { return "cancelled by " + login + " in a comment" }

// whyCancelled is what was said when a thread was cancelled, without who said it.
func whyCancelled(e *gitcas.Ended) string {
	if e.ClosedBy == nil {
		return e.Note
	}
	if text, ok := strings.CutPrefix(e.Note, cancelledBy(e.ClosedBy.Login)); ok {
		return strings.TrimPrefix(text, ": ")
	}
	return e.Note
}

// describeNow is a thread as it stands now, for people.
func (j *finder) describeNow(f *found) report.Thread {
	p := f.p
	if f.ended != nil {
		return j.describeEnded(f)
	}
	switch e := p.Entry; {
	case life.CountAttempts(e, "", nil) > 0:
		return j.describeFailed(p)
	case e.Status == gitcas.StatusSuspended:
		return j.DescribeThread(p, report.Waiting)
	}
	t := j.DescribeThread(p, report.Queued)
	if f.isClaimed() {
		held, _ := f.v.FindClaim(f.id)
		t.State, t.Since = report.Running, time.UnixMilli(held.Since)
	} else if job, lost := j.lostJob(f.v, p); lost {
		t.State, t.Lost = report.Lost, job
	}
	return t
}

// describeFailed is a thread with failed attempts at its next step.
func (j *finder) describeFailed(p *threadview.Thread) report.Thread {
	t := j.DescribeThread(p, report.Failed)
	f := countTries(p.Entry)
	f.Message, f.Advice = cmp.Or(t.Question, "its last attempt failed"), "Comment /uwf retry to try again."
	if p.Entry.Deliver {
		f.Phase = "deliver"
	}
	t.Question, t.Failure = "", &f
	return t
}

// isClaimed reports whether a job works on the thread.
func (f *found) isClaimed() bool {
	_, counts := life.CountingClaim(f.v, f.id, f.p.Entry)
	return counts
}

// describeEnded is a thread that is over, for people.
func (j *finder) describeEnded(f *found) report.Thread {
	t := j.DescribeThread(f.p, report.Delivered)
	t.Role, t.Question = "", ""
	switch {
	case f.ended.Reason == gitcas.ReasonCancelled:
		t.State, t.Closed, t.Why = report.Cancelled, f.ended.ClosedBy, whyCancelled(f.ended)
	case f.ended.PR != 0:
		t.Pull = &report.Pull{Number: f.ended.PR, URL: t.Links.IssueURL(f.ended.PR)}
	case f.ended.Work.Commit == f.p.Chain.Start.Base:
		t.State = report.NoChanges
	}
	return t
}

// refuseCommand answers that a command doesn't fit the thread as it is.
func (j *finder) refuseCommand(ctx context.Context, id gitcas.ThreadID, verb, why string) error {
	r := report.Reply{Kind: report.NotNow, Verb: verb, Why: why}
	if f, err := j.findByID(ctx, id); err == nil && f != nil {
		j.SelectComment(f.p)
		r.Thread = j.describeNow(f)
	}
	return j.AnswerCommand(ctx, r)
}

// tellStopped says that nobody works on a thread any more that was cancelled while somebody
// did. What else became of it somebody else says.
func (j *finder) tellStopped(ctx context.Context, id gitcas.ThreadID) {
	ctx, cancel := effects.WithEffectTime(ctx)
	defer cancel()
	f, err := j.findByID(ctx, id)
	if err != nil {
		j.Warn("the thread's comment could not be brought up to date", err)
		return
	}
	if f != nil && f.ended != nil && f.ended.Reason == gitcas.ReasonCancelled {
		j.UpdateComment(ctx, f.p, j.describeEnded(f))
	}
}
