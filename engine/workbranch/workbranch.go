// Package workbranch is where the edits of a thread's agents are: which commit the next role
// works from, and how a branch that lags behind or has moved on is brought up.
package workbranch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/united-workforce/uwf/engine/deadline"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
)

// Branches are the work branches of a store's remote.
type Branches struct {
	Store *gitcas.Store
	Clock deadline.Clock
}

// DivergedError: the work branch no longer contains the commit that the thread
// recorded, so nobody can say which edits the next role should see.
type DivergedError struct {
	Branch, Recorded, Tip string
	Overlap               []string
}

func (e *DivergedError) Error() string {
	if len(e.Overlap) > 0 {
		return fmt.Sprintf("branch %s was changed by people in files that the agent changed too (%s); merge them on the branch, then resume the thread",
			e.Branch, strings.Join(e.Overlap, ", "))
	}
	return fmt.Sprintf("branch %s is at %s, which does not contain %s, the thread's last recorded commit; merge or reset the branch to a descendant of it, then resume the thread; or resume it with --take-branch, to go on from the branch as it is",
		e.Branch, e.Tip, e.Recorded)
}

// Ref is the name of the ref of a branch.
func Ref(branch string) string { return layout.Heads + branch }

// Tip is where the work branch stands in v; zero when it is not there.
func Tip(v *gitcas.View, w gitcas.Work) wire.ID {
	tip, _ := v.Ref(Ref(w.Branch))
	return tip
}

// Of is where a thread's edits are. An entry that another tool wrote may not
// name the branch.
func Of(id gitcas.ThreadID, entry gitcas.Entry) gitcas.Work {
	w := entry.Work
	if w.Branch == "" {
		w.Branch = layout.WorkBranch(id)
	}
	return w
}

// Tries bounds how often a work branch is looked at again that others push to.
const Tries = 5

// FindBase finds the commit to work from: the branch's tip if that contains the recorded
// commit, which is kept where the branch is gone. A branch that lags behind is brought up.
// reload reads the store again after a push of this job's own, and where somebody else pushed
// to the branch meanwhile: then it is looked at again.
func (b *Branches) FindBase(ctx context.Context, v *gitcas.View, id gitcas.ThreadID, w gitcas.Work, reload func(context.Context) (*gitcas.View, error)) (wire.ID, error) {
	for try := 0; ; try++ {
		recorded, tip := CommitID(w), Tip(v, w)
		switch {
		case tip.IsZero():
			return recorded, nil
		case tip == recorded || recorded.IsZero():
			return tip, nil
		}
		from, err := b.followBranch(ctx, v, id, w, tip)
		switch {
		case err == nil && from != tip: // the branch was brought up
			_, err = reload(ctx)
			return from, err
		case !errors.Is(err, wire.ErrLostRace) || try >= Tries:
			return from, err
		}
		if v, err = reload(ctx); err != nil {
			return wire.ZeroID, err
		}
	}
}

// followBranch returns the commit to work from when the branch is not at the recorded
// commit: its tip, if that contains the commit, or was rebased. On a remote without atomic
// pushes the branch may lag behind what was recorded, and is brought up.
func (b *Branches) followBranch(ctx context.Context, v *gitcas.View, id gitcas.ThreadID, w gitcas.Work, tip wire.ID) (wire.ID, error) {
	recorded := plumbing.NewHash(w.Commit)
	contains, err := Contains(ctx, b.Store.Remote(), tip, recorded)
	if err == nil && !contains {
		contains, err = b.isRebased(ctx, id, recorded, tip)
	}
	if err != nil {
		return wire.ZeroID, fmt.Errorf("compare branch %s with the recorded commit: %w", w.Branch, err)
	}
	if contains {
		return tip, nil
	}
	if b.Store.Atomic(v) {
		return wire.ZeroID, &DivergedError{Branch: w.Branch, Recorded: w.Commit, Tip: tip.String()}
	}
	return b.bringUp(ctx, id, w, tip)
}

// bringUp moves a work branch that lags behind the recorded commit, or has moved
// on beside it, to one that contains both: a fast-forward, or one merge commit
// where no file overlaps.
func (b *Branches) bringUp(ctx context.Context, id gitcas.ThreadID, w gitcas.Work, tip wire.ID) (wire.ID, error) {
	recorded := plumbing.NewHash(w.Commit)
	behind, err := Contains(ctx, b.Store.Remote(), recorded, tip)
	if err != nil {
		return wire.ZeroID, err
	}
	target, objs := recorded, []wire.PackObject(nil)
	if !behind {
		if target, objs, err = b.mergeCommits(ctx, w, recorded, tip); err != nil {
			return wire.ZeroID, err
		}
	}
	if err := b.Store.PushRef(ctx, wire.RefUpdate{Name: Ref(w.Branch), Old: tip, New: target}, objs); err != nil {
		return wire.ZeroID, fmt.Errorf("bring branch %s of thread %s up: %w", w.Branch, id, err)
	}
	return target, nil
}

func (b *Branches) mergeCommits(ctx context.Context, w gitcas.Work, recorded, tip wire.ID) (wire.ID, []wire.PackObject, error) {
	base, err := Base(ctx, b.Store.Remote(), recorded, tip)
	if err != nil {
		return wire.ZeroID, nil, err
	}
	if base.IsZero() {
		return wire.ZeroID, nil, &DivergedError{Branch: w.Branch, Recorded: w.Commit, Tip: tip.String()}
	}
	return Join{Work: w, Base: base, Ours: recorded, Tip: tip, Parents: []wire.ID{recorded, tip}}.Commit(ctx, b.Store.Remote(), b.Clock.Now(), "Merge people's commits with the thread's\n")
}

// Join is what led from Base to Ours, put on the Tip of a work branch.
type Join struct {
	Work            gitcas.Work // as it is recorded
	Base, Ours, Tip wire.ID
	Parents         []wire.ID
	Known           wire.Objects // that the remote may not have
}

// Commit makes the commit of it; where files overlap the error is a *DivergedError.
func (j Join) Commit(ctx context.Context, remote wire.Remote, at time.Time, message string) (wire.ID, []wire.PackObject, error) {
	m, err := workspace.Merge(ctx, remote, j.Base, j.Ours, j.Tip, j.Known)
	if err == nil && len(m.Overlap) > 0 {
		err = &DivergedError{Branch: j.Work.Branch, Recorded: j.Work.Commit, Tip: j.Tip.String(), Overlap: m.Overlap}
	}
	if err != nil {
		return wire.ZeroID, nil, err
	}
	o, err := MakeCommit(at, m.Tree, j.Parents, message)
	return o.ID, append(m.Objects, wire.PackObject{Object: o}), err
}

// CommitID is the commit that is recorded for a thread; zero for none.
func CommitID(w gitcas.Work) wire.ID { return plumbing.NewHash(w.Commit) }

// CatchUp brings up a work branch that lags behind, where the remote has no
// atomic pushes: before a thread comes to rest its branch should hold all its
// commits. It is no condition for that: a branch that can't be merged, or is
// pushed to all the time, stays for a person or the next job, and the commits
// are on the attempt ref until then.
func (b *Branches) CatchUp(ctx context.Context, v *gitcas.View, id gitcas.ThreadID, w gitcas.Work) {
	for range Tries {
		tip := Tip(v, w)
		if b.Store.Atomic(v) || w.Commit == "" || tip.IsZero() || tip.String() == w.Commit {
			return
		}
		_, err := b.followBranch(ctx, v, id, w, tip)
		if !errors.Is(err, wire.ErrLostRace) {
			return
		}
		if v, err = b.Store.Reload(ctx, v, id); err != nil {
			return
		}
	}
}

// RestoreRef makes a recorded commit reachable again where its branch is gone. A
// commit that the remote doesn't have any more is an error.
func (b *Branches) RestoreRef(ctx context.Context, v *gitcas.View, w gitcas.Work) ([]wire.RefUpdate, error) {
	if w.Commit == "" || !Tip(v, w).IsZero() {
		return nil, nil
	}
	commit, err := b.FindCommit(ctx, w.Commit)
	if err != nil {
		return nil, err
	}
	return []wire.RefUpdate{{Name: Ref(w.Branch), New: commit}}, nil
}

// FindCommit looks for a recorded commit on the remote.
func (b *Branches) FindCommit(ctx context.Context, commit string) (wire.ID, error) {
	id := plumbing.NewHash(commit)
	_, err := Read(ctx, b.Store.Remote(), id)
	if errors.Is(err, wire.ErrNotFound) {
		return id, life.Usagef("commit %s, which the thread's work goes on from, is not on %s any more; push it there under any name (git push <remote> %s:refs/heads/<name>), then try again",
			commit, b.Store.Remote().URL(), commit)
	}
	return id, err
}
