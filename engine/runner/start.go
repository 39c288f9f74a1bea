package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/united-workforce/uwf/engine/runner/authority"
	"github.com/united-workforce/uwf/engine/runner/ci"
	"github.com/united-workforce/uwf/engine/runner/effects"
	"github.com/united-workforce/uwf/engine/runner/event"
	"github.com/united-workforce/uwf/engine/runner/sanitize"
	"github.com/united-workforce/uwf/engine/runner/threadview"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
)

// intake makes threads of events.
type intake struct {
	*effects.Effects
	gate        *authority.Gate
	finder      *finder
	steps       *steps
	definitions Definitions
	base        func(ctx context.Context, branch string) (string, error)
	rand        io.Reader
	id          string // the run, as its first step names it
}

// wantedThread is a thread that somebody wants.
type wantedThread struct {
	subject  *event.Subject // nil: none
	workflow string
	key      string // after the workflow's name; empty: that of the subject
	// more is what is added to the subject's text, cleaned.
	more   string
	limits map[string]float64 // of the thread's own
	// byCommand: somebody waits for an answer.
	byCommand bool
}

// startLabeled starts a thread where our label was put on.
func (j *intake) startLabeled(ctx context.Context) error {
	if !j.gate.AddsLabel() {
		return j.FinishOK(fmt.Sprintf("the label is not %s", j.StartLabel()))
	}
	return j.startFromSubject(ctx)
}

// startAssigned starts a thread where the issue was given to uwf's account; or to anybody,
// if it has our label, and there never was a thread for it.
func (j *intake) startAssigned(ctx context.Context) error {
	s := j.Event.Subject
	if j.gate.IsOurs(j.Event.Assignee) {
		return j.startFromSubject(ctx)
	}
	label := j.StartLabel()
	if s == nil || !slices.ContainsFunc(s.Labels, func(l string) bool { return strings.EqualFold(l, label) }) {
		return j.FinishOK(fmt.Sprintf("it was assigned to %s, who is not uwf", j.Event.Assignee))
	}
	there, err := j.finder.findBySubject(ctx, *s)
	switch {
	case err != nil:
		return err
	case there != nil:
		return j.FinishOK(fmt.Sprintf("thread %s is about it already", there.id))
	}
	return j.startFromSubject(ctx)
}

func (j *intake) startFromSubject(ctx context.Context) error {
	if j.Event.Subject == nil {
		return j.FinishOK("the event names no issue and no pull request")
	}
	return j.startThread(ctx, wantedThread{subject: j.Event.Subject, workflow: j.Inputs.Workflow, more: sanitize.Incoming(j.Inputs.Prompt)})
}

// startPrompted starts a thread with the prompt of the inputs.
func (j *intake) startPrompted(ctx context.Context) error {
	key := promptKey(j.Job.Run)
	if j.Job.Name != "" {
		key += "/" + j.Job.Name
	}
	return j.startThread(ctx, wantedThread{subject: j.Event.Subject, workflow: j.Inputs.Workflow, key: key, more: sanitize.Incoming(j.Inputs.Prompt)})
}

// promptKey begins the keys of threads that a run's jobs start for a prompt.
func promptKey(run string) string { return "run/" + run }

// startThread starts a thread, or takes on the one with the same key, and goes on with it.
func (j *intake) startThread(ctx context.Context, a wantedThread) error {
	// A schedule has nobody behind it: it runs the default branch's own file.
	if j.Event.Kind != event.Schedule {
		ok, why, err := j.gate.MayStart(ctx)
		if err != nil {
			return err
		}
		if !ok {
			return j.denyStart(ctx, why)
		}
	}
	req, err := j.buildRequest(ctx, a)
	if err != nil || req == nil {
		return j.tellUnstarted(ctx, a, err)
	}
	over, err := j.endedBefore(ctx, req.Key, false)
	if err != nil {
		return err
	}
	if over != nil {
		return j.endAsBefore(over)
	}
	started, err := j.Engine.Start(ctx, *req)
	if err != nil {
		return j.tellUnstarted(ctx, a, err)
	}
	j.CallHook("started")
	j.Outcome.Thread, j.Outcome.Head, j.Outcome.NextRole, j.Outcome.Status = started.Thread, started.Head, started.Role, started.Status
	if !started.Existed {
		j.Made = started.Thread
		return j.steps.continueThread(ctx, started.Thread, started.Head)
	}
	j.Out.Notice(fmt.Sprintf("thread %s is there already, with the key %s: it is taken on", started.Thread, req.Key))
	if a.byCommand && j.Job.Attempt <= 1 {
		if err := j.finder.refuseCommand(ctx, started.Thread, verbStart, "There is a thread already; it is taken on where nothing runs."); err != nil || started.Suspended != nil {
			return err
		}
	}
	head, err := j.findHead(ctx, started.Thread)
	if err != nil {
		return err
	}
	return j.steps.continueThread(ctx, started.Thread, head)
}

// denyStart ends a job that somebody without the right started.
func (j *intake) denyStart(ctx context.Context, why string) error {
	if j.Event.Subject != nil && j.gate.Unknown {
		// Whoever can't be known may well have the right: they are told how to say so.
		// Strangers can't be told from them, so it is said once, and not to each.
		j.PostRefusal(ctx, j.Event.Subject.Number, effects.MakeSentence(why))
	}
	return j.FinishOK("not allowed: " + why)
}

func (j *intake) newID() (gitcas.ThreadID, error) {
	id, err := ulid.New(ulid.Timestamp(j.Now().UTC().Truncate(time.Millisecond)), j.rand)
	if err != nil {
		return "", fmt.Errorf("make a thread id: %w", err)
	}
	return gitcas.ThreadID(id.String()), nil
}

// tellUnstarted tells those who wait for it that there will be no thread. A damaged store is told in
// the comments of its threads.
func (j *intake) tellUnstarted(ctx context.Context, a wantedThread, err error) error {
	if err == nil || a.subject == nil || effects.IsPassing(err) || errors.Is(err, gitcas.ErrDamaged) {
		return err
	}
	j.PostAnswer(ctx, a.subject.Number, j.DescribeFailure("start a thread", err))
	return err
}

// sameRun is how long a run can be started again: GitHub keeps it for so long.
const sameRun = 35 * 24 * time.Hour

// endedBefore is the thread with a key that has come to its end, in the re-run of a job that
// began it: it must not begin once more. Nil: there is none. Other runs may have begun one
// with that key, too, unless the key is of this one event.
func (j *intake) endedBefore(ctx context.Context, key string, once bool) (*gitcas.Ended, error) {
	if j.Job.Attempt <= 1 && j.Inputs.Command != ci.CommandRescue {
		return nil, nil
	}
	v, err := j.finder.loadStore(ctx)
	if v == nil {
		return nil, err
	}
	if _, alive := thread.FindByKey(v, key); alive {
		return nil, nil
	}
	var unread error
	over, err := j.finder.searchHistory(ctx, v, v.Time().Add(-sameRun), func(e gitcas.Ended) bool {
		if e.Key != key || once {
			return e.Key == key
		}
		var f *found
		f, unread = j.finder.loadEnded(ctx, v, e)
		return unread != nil || j.Job.IsOwnRun(f.p.Trigger.Run)
	})
	return over, cmp.Or(unread, err)
}

// endAsBefore ends a re-run whose thread is over, as the run before it ended.
func (j *intake) endAsBefore(over *gitcas.Ended) error {
	j.Outcome.Thread, j.Outcome.Head, j.Outcome.Done, j.Outcome.PullRequest = over.Thread, over.Head, true, over.PR
	j.Outcome.Status, j.Outcome.Step = over.Reason, len(over.Steps)
	return j.FinishOK(fmt.Sprintf("thread %s, which this run started, is over (%s)", over.Thread, over.Reason))
}

// findHead is the head at which this job takes a thread on: where it stands, or, where
// an earlier attempt of this very run has done its step, the head before that, so that
// only what follows from the step is done.
func (j *intake) findHead(ctx context.Context, id gitcas.ThreadID) (node.Hash, error) {
	v, err := j.Engine.Store.Load(ctx, id)
	if err != nil {
		return "", err
	}
	entry, alive := v.Entry(id)
	if !alive {
		return "", nil
	}
	chain, err := v.ReadChain(ctx, id)
	if err != nil {
		return "", err
	}
	n := len(chain.Steps)
	if n == 0 || chain.Steps[n-1].Run == nil || chain.Steps[n-1].Run.ID != j.id {
		return entry.Head, nil
	}
	if prev := chain.Steps[n-1].Prev; prev != nil {
		return *prev, nil
	}
	return chain.StartHash, nil
}

// newTrigger is that of a thread that this job starts.
func (j *intake) newTrigger(s *event.Subject, g *workBase) threadview.Trigger {
	t := threadview.Trigger{
		Event: j.Event.Name, Repo: j.Job.Repository, Actor: j.Event.Sender.Login, Run: j.id, Branch: g.branch,
		Author: g.author, AuthorID: g.authorID,
	}
	if j.Event.Kind == event.Comment {
		t.Actor, t.URL = j.Event.CommentAuthor.Login, j.Event.CommentURL
	}
	if s != nil {
		t.Number, t.Pull, t.Title = s.Number, s.Pull, sanitize.Line(s.Title)
		if t.URL == "" {
			t.URL = s.URL
		}
	}
	return t
}
