package runner

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/runner/effects"
	"github.com/united-workforce/uwf/engine/runner/threadview"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
)

// holdStep asks before an agent works.
func (j *steps) holdStep(ctx context.Context, t *reading.Thread) life.Hold {
	return j.askSubject(ctx, t.ID, threadview.ReadTrigger(t.Chain.Start.Trigger), t.Entry)
}

// holdDelivery asks before something is handed over. Without changes only words are.
func (j *steps) holdDelivery(ctx context.Context, t *reading.Thread) life.Hold {
	if at := t.Entry.Work.Commit; at == "" || at == t.Chain.Start.Base {
		return life.Hold{}
	}
	return j.askSubject(ctx, t.ID, threadview.ReadTrigger(t.Chain.Start.Trigger), t.Entry)
}

// askSubject asks the forge whether people still want what a thread is about. If they closed,
// deleted or moved it, and nobody has let the thread go on since, that holds the thread. A
// forge that doesn't say holds nothing.
func (j *steps) askSubject(ctx context.Context, id gitcas.ThreadID, about threadview.Trigger, entry gitcas.Entry) life.Hold {
	if about.Number == 0 {
		return life.Hold{}
	}
	ctx, cancel := effects.WithEffectTime(ctx)
	defer cancel()
	name, ask := fmt.Sprintf("issue #%d", about.Number), j.readIssueEnd
	if about.Pull {
		name, ask = fmt.Sprintf("pull request #%d", about.Number), j.readPullEnd
	}
	end, err := ask(ctx, about.Number)
	switch {
	case err == nil && (end.what == "" || isReleasedSince(entry, end.at)):
		return life.Hold{}
	case err == nil && end.away:
		return life.Hold{Reason: fmt.Sprintf("%s %s; in another issue, /uwf resume --thread=%s lets its next step go on, and /uwf cancel --thread=%s ends it", name, end.what, id, id)}
	case err == nil:
		return life.Hold{Reason: fmt.Sprintf("%s %s; /uwf resume goes on all the same, /uwf cancel ends the thread", name, end.what)}
	case j.isDeleted(err):
		return life.Hold{Reason: name + " was deleted", Over: true}
	}
	if ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded) { // otherwise nobody waits for it
		j.Warn(fmt.Sprintf("whether %s is still open is not known; the thread goes on", name), err)
	}
	return life.Hold{}
}

// subjectEnd is what became of an issue or a pull request.
type subjectEnd struct {
	what string    // empty: it is open
	at   time.Time // zero: not known
	away bool      // nobody can comment on it here
}

func (j *steps) readIssueEnd(ctx context.Context, number int) (subjectEnd, error) {
	issue, err := j.Forge.ReadIssue(ctx, number)
	switch {
	case errors.Is(err, forge.ErrNotFound) && !j.isDeleted(err):
		return subjectEnd{what: "can't be found: it was moved, or this job may not read it", away: true}, nil
	case err != nil:
		return subjectEnd{}, err
	case issue.Moved != "":
		return subjectEnd{what: "was moved to " + issue.Moved, away: true}, nil
	case issue.Open:
		return subjectEnd{}, nil
	case issue.ClosedBy != "":
		return subjectEnd{what: "was closed by " + issue.ClosedBy, at: issue.ClosedAt}, nil
	}
	return subjectEnd{what: "was closed", at: issue.ClosedAt}, nil
}

func (j *steps) readPullEnd(ctx context.Context, number int) (subjectEnd, error) {
	pull, err := j.Forge.ReadPull(ctx, number)
	if err != nil {
		return subjectEnd{}, err
	}
	j.pull = &pull
	end := subjectEnd{at: pull.ClosedAt}
	switch {
	case pull.Merged:
		end.what = "was merged"
	case !pull.Open:
		end.what = "was closed"
	}
	return end, nil
}

// isDeleted reports whether an error says that an issue is gone for good. GitHub says so only
// with 410; there, 404 may be a lack of rights.
func (j *steps) isDeleted(err error) bool {
	var e *forge.CallError
	if !errors.As(err, &e) {
		return false
	}
	return e.Status == http.StatusGone && !strings.Contains(e.Message, "disabled") || j.IsGitea() && e.Status == http.StatusNotFound
}

// isReleasedSince reports whether a person let the thread go on after a time; if that is not
// known, whether they did for what is next.
func isReleasedSince(entry gitcas.Entry, at time.Time) bool {
	said := entry.Released
	switch {
	case said == 0 || !at.IsZero():
		return said != 0 && !at.After(time.UnixMilli(said))
	case entry.Deliver:
		return said == entry.Since
	}
	return entry.Next != nil && said == entry.Next.Since
}

// holdBack makes a thread wait, or ends it, instead of starting jobs for it: one in which
// agents run may be able to read no issue. It reports whether it did.
func (j *steps) holdBack(ctx context.Context, p *threadview.Thread) (held bool, err error) {
	if p.Entry.Deliver { // that job asks itself
		return false, nil
	}
	hold := j.askSubject(ctx, p.ID, p.Trigger, p.Entry)
	if hold == (life.Hold{}) {
		return false, nil
	}
	j.dispatcher.releaseAhead(ctx)
	if hold.Over {
		if err := j.Engine.Abandon(ctx, p.ID, hold.Reason); err != nil {
			return true, err
		}
		return true, j.FinishOK(fmt.Sprintf("thread %s was cancelled: %s", p.ID, hold.Reason))
	}
	done, err := j.Engine.SuspendAt(ctx, p.ID, p.Entry.Head, hold.Reason)
	switch {
	case err != nil:
		return true, err
	case !done:
		return true, j.FinishOK(fmt.Sprintf("thread %s has gone on without this job", p.ID))
	}
	return true, j.tellWaiting(ctx, thread.Result{Thread: p.ID, Suspended: &thread.SuspendedInfo{Reason: hold.Reason}})
}
