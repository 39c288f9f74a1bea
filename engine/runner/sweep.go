package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/runner/authority"
	"github.com/united-workforce/uwf/engine/runner/ci"
	"github.com/united-workforce/uwf/engine/runner/effects"
	"github.com/united-workforce/uwf/engine/runner/event"
	"github.com/united-workforce/uwf/engine/runner/report"
	"github.com/united-workforce/uwf/engine/runner/threadview"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
)

// sweeper looks after threads that nobody steps, and says why a job is red.
type sweeper struct {
	*effects.Effects
	gate       *authority.Gate
	finder     *finder
	dispatcher *dispatcher
	steps      *steps
	rand       io.Reader
}

// Bounds on what one job dispatches for others. A thread stays due until the job for it
// has begun, so that jobs which end meanwhile start it again: a job with a thread of its
// own starts one at most, then their number doesn't grow. A scheduled run does nothing
// else.
const (
	sweepMaxHop      = 1
	sweepMax         = 2
	sweepMaxSchedule = 5
)

// sweepThreads starts the next job of threads that nobody works on although they are due:
// their job died, or its dispatch got lost. It fails no job but a scheduled one, which is
// there for nothing else, and only where the store is damaged.
func (j *sweeper) sweepThreads(ctx context.Context) error {
	if j.Inputs.Dispatch == ci.DispatchOff {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, effects.MaxEffectTime)
	defer cancel()
	if j.View != nil && len(j.listDue(j.View)) == 0 {
		return nil // that view lacks claims of others, which only make fewer threads due
	}
	v, err := j.Engine.Store.Reload(ctx, j.View)
	switch {
	case errors.Is(err, gitcas.ErrNoStore):
		return nil
	case err == nil:
		j.startDueThreads(ctx, v)
		return nil
	}
	j.tellDamage(ctx, err)
	err = fmt.Errorf("look for threads whose next job got lost: %w", err)
	if j.Event.Kind == event.Schedule && errors.Is(err, gitcas.ErrDamaged) {
		return err
	}
	j.Warn("the threads that are due were not taken up", err)
	return nil
}

// startDueThreads starts the next job of some of the threads that are due. It reads none of them:
// a job that can't read its thread makes it wait.
func (j *sweeper) startDueThreads(ctx context.Context, v *gitcas.View) {
	most := sweepMax
	switch {
	case j.Outcome.Thread != "" || j.Inputs.Thread != "":
		most = sweepMaxHop
	case j.Event.Kind == event.Schedule:
		most = sweepMaxSchedule
	}
	for _, p := range pickSome(j.rand, j.listDue(v), most) {
		entry, _ := v.Entry(p.Thread)
		if j.waitAfterCancel(ctx, v, p) {
			continue
		}
		inputs := j.dispatcher.inputsOf(p.Thread, node.Pin{Hash: p.Head}, v.StoreID(), &threadview.Thread{ID: p.Thread, Entry: entry})
		if err := j.dispatcher.sendDispatch(ctx, inputs); err != nil {
			j.Warn(fmt.Sprintf("thread %s is due, but its next job could not be started", p.Thread), err)
			j.tellLost(ctx, v, p.Thread)
			return
		}
		j.Out.Notice(fmt.Sprintf("thread %s was due and nobody worked on it: its next job was started", p.Thread))
		j.CallHook("dispatched")
	}
}

// waitAfterCancel makes a thread wait if its job is dead since a person cancelled the run. Only Gitea
// has to be asked: there the run's own jobs were all cancelled with it. What can't be read was not.
func (j *sweeper) waitAfterCancel(ctx context.Context, v *gitcas.View, p thread.Pending) bool {
	held, claimed := v.FindClaim(p.Thread)
	if !j.IsGitea() || !claimed || held.Head != p.Head || !life.ClaimedByJob(held.Claim) {
		return false
	}
	run, _, _ := strings.Cut(held.Run, "-")
	was, _, err := j.Forge.WasRunCancelled(ctx, run)
	if err != nil || !was {
		return false
	}
	job := j.Job
	job.Run, job.RunPage = run, ""
	j.View = v
	done, err := j.dispatcher.suspendCancelled(ctx, p.Thread, p.Head, "cancelled on the Actions page: "+job.ResolveRunURL())
	if err != nil {
		j.Warn(fmt.Sprintf("the run of thread %s was cancelled, and it could not be made to wait", p.Thread), err)
	}
	return done || err != nil
}

// tellLost shows in a thread's comment that its job died, or never came, and that there
// is no other one. Where there is, that says more soon.
func (j *sweeper) tellLost(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) {
	if p := j.LoadThreadOrLast(ctx, id); p != nil {
		t := j.DescribeThread(p, report.Lost)
		t.Lost, _ = j.finder.lostJob(v, p)
		j.UpdateComment(ctx, p, t)
	}
}

// listDue are the threads that wait for a job, but for the one whose next job this one
// has just started.
func (j *sweeper) listDue(v *gitcas.View) []thread.Pending {
	return slices.DeleteFunc(j.Engine.ListPending(v, j.finder.idleTime()), func(p thread.Pending) bool { return j.dispatcher.sent && p.Thread == j.Outcome.Thread })
}

// pickSome picks at most n of some things, by chance: jobs that end at the same time pick
// different ones.
func pickSome[T any](chance io.Reader, all []T, n int) []T {
	var seed [32]byte
	_, _ = io.ReadFull(chance, seed[:]) // which ones is no secret
	rand.New(rand.NewChaCha8(seed)).Shuffle(len(all), func(a, b int) { all[a], all[b] = all[b], all[a] })
	return all[:min(n, len(all))]
}

// unanswered is how long an issue is left alone that has our label and no thread: its job may wait
// for a runner.
const unanswered = time.Hour

// tellUnanswered writes on open issues that have our label, no thread, and no word of uwf: their job
// was lost with its run. No thread is started: the text may have changed since the label was put on,
// and nobody has asked who put it there.
func (j *sweeper) tellUnanswered(ctx context.Context) {
	if j.Inputs.Comment.Off {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, effects.MaxEffectTime)
	defer cancel()
	list, err := j.Forge.ListIssues(ctx, j.StartLabel())
	var lost []forge.Issue
	if err == nil {
		lost, err = j.withoutThread(ctx, list)
	}
	for _, i := range pickSome(j.rand, lost, sweepMaxSchedule) {
		said, cerr := j.Forge.ListComments(ctx, i.Number)
		if cerr != nil {
			err = cerr
			break
		}
		if !slices.ContainsFunc(said, func(c forge.Comment) bool { return event.IsOwnComment(c.Body) }) {
			j.PostAnswer(ctx, i.Number, fmt.Sprintf("This issue has the label `%s`, and uwf has not begun. Its job died before it could, or the person who put the label on may not start threads. Take the label off and put it on again, or comment `/uwf start`.", j.StartLabel()))
		}
	}
	if err != nil {
		j.Warn("issues whose job was lost could not be looked for", err)
	}
}

// withoutThread are those of some issues that nothing happened to for a while, and that no thread is
// or was about.
func (j *sweeper) withoutThread(ctx context.Context, list []forge.Issue) ([]forge.Issue, error) {
	list = slices.DeleteFunc(list, func(i forge.Issue) bool { return j.Now().Sub(i.Updated) < unanswered })
	drop := func(key string) bool {
		list = slices.DeleteFunc(list, func(i forge.Issue) bool { return threadview.IsAbout(key, threadview.SubjectKey(false, i.Number)) })
		return len(list) == 0
	}
	if len(list) == 0 {
		return nil, nil
	}
	v, err := j.finder.loadStore(ctx)
	if v == nil {
		return list, err
	}
	for _, e := range v.Threads() {
		drop(e.Key)
	}
	if len(list) > 0 {
		_, err = j.finder.searchHistory(ctx, v, v.Time().Add(-searchBack), func(e gitcas.Ended) bool { return drop(e.Key) })
	}
	return list, err
}
