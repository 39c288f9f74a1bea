package thread

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/engine/workbranch"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// Remove takes a thread that has ended, or was cancelled, off all lists, and
// deletes its attempts, its claim and its work branch. The state branch's history
// still has it: what must not be there at all is purged.
//
// The work branch goes only where nobody needs it: it is the thread's own, stands at
// the commit that the thread recorded, has no pull request, and no thread that is
// alive depends on it. Removing a thread again finishes what was left undone.
func (e *Engine) Remove(ctx context.Context, id gitcas.ThreadID) error {
	var ended gitcas.Ended
	v, err := e.performDeed(ctx, id, life.Remove, func(v *gitcas.View, s life.Standing) (*gitcas.Change, error) {
		ended = s.Ended
		return removalChange(v, s.Ended, e.By), nil
	})
	if err != nil {
		return err
	}
	e.Reached("remove")
	if why, err := dropBranch(ctx, e.Store, v, ended); err != nil {
		return fmt.Errorf("thread %s is removed, but its work branch %s could not be deleted (try again, or: git push <remote> :%s): %w", id, ended.Work.Branch, workbranch.Ref(ended.Work.Branch), err)
	} else if why != "" {
		e.Emit(Event{Kind: "notice", Thread: id, Text: fmt.Sprintf("branch %s stays: %s", ended.Work.Branch, why)})
	}
	e.Reached("remove branch")
	return nil
}

// removalChange takes a thread off the lists, with its refs; nil: nothing is left to do.
func removalChange(v *gitcas.View, ended gitcas.Ended, by *story.Person) *gitcas.Change {
	c := &gitcas.Change{Refs: refsToDrop(v, ended.Thread)}
	if ended.Reason != gitcas.ReasonRemoved {
		line := ended
		line.Note, line.CompletedAt = ended.Reason, max(v.Time().UnixMilli(), ended.CompletedAt) // the newest line, whatever the clock says
		line.ClosedBy = by.OnRecord()
		c.Removed = []gitcas.Ended{line}
		c.Subject = story.Subject(ended.Title, ended.Thread, "removed")
		c.Trailers = story.EntryTrailers(ended.Thread, gitcas.Entry{Head: ended.Head})
	} else if len(c.Refs) == 0 {
		return nil
	}
	return story.Sign(c, by)
}

// refsToDrop deletes a thread's claim and attempts.
func refsToDrop(v *gitcas.View, id gitcas.ThreadID) []wire.RefUpdate {
	var out []wire.RefUpdate
	for _, name := range slices.Sorted(maps.Keys(v.Refs())) {
		if name == layout.ClaimRef(id) || strings.HasPrefix(name, layout.AttemptRefs(id)) {
			old, _ := v.Ref(name)
			out = append(out, wire.RefUpdate{Name: name, Old: old})
		}
	}
	return out
}

// dropBranch deletes the work branch of a removed thread, or says why it stays.
func dropBranch(ctx context.Context, st *gitcas.Store, v *gitcas.View, ended gitcas.Ended) (why string, err error) {
	for range workbranch.Tries {
		tip := workbranch.Tip(v, ended.Work)
		if ended.Work.Branch == "" || tip.IsZero() {
			return "", nil
		}
		if why, err = branchNeeded(ctx, st, v, ended, tip); why != "" || err != nil {
			return why, err
		}
		err = st.PushRef(ctx, wire.RefUpdate{Name: workbranch.Ref(ended.Work.Branch), Old: tip}, nil)
		if !errors.Is(err, wire.ErrLostRace) {
			return "", err
		}
		fresh, lerr := st.Reload(ctx, v, ended.Thread)
		if lerr != nil {
			return "", errors.Join(err, lerr)
		}
		v = fresh
	}
	return "", err
}

// branchNeeded says who needs a removed thread's work branch; nobody: empty.
func branchNeeded(ctx context.Context, st *gitcas.Store, v *gitcas.View, ended gitcas.Ended, tip wire.ID) (string, error) {
	switch {
	case ended.Work.Branch != layout.WorkBranch(ended.Thread):
		return "it is not the thread's own", nil
	case ended.PR != 0:
		return fmt.Sprintf("pull request #%d is made of it", ended.PR), nil
	case tip.String() != ended.Work.Commit:
		return "somebody pushed to it", nil
	}
	remote := st.Remote()
	refs, err := remote.List(ctx, "HEAD", "refs/heads/")
	if err != nil {
		return "", err
	}
	var others []wire.ID
	for _, name := range slices.Sorted(maps.Keys(refs.Refs)) {
		if name != workbranch.Ref(ended.Work.Branch) && name != st.Branch() {
			others = append(others, refs.Refs[name])
		}
	}
	threads, free := v.Threads(), map[wire.ID]bool{}
	for _, id := range slices.Sorted(maps.Keys(threads)) {
		w := workbranch.Of(id, threads[id])
		if w.Branch == ended.Work.Branch {
			return fmt.Sprintf("thread %s works on it", id), nil
		}
		at := workbranch.CommitID(w)
		if _, own := refs.Refs[workbranch.Ref(w.Branch)]; own || w.Commit == "" || free[at] {
			continue
		}
		// One that has not edited yet stands where its work began, which other branches have.
		needs, err := workbranch.Contains(ctx, remote, tip, at)
		if needs && err == nil {
			needs, err = workbranch.AnyContains(ctx, remote, others, at)
			needs = !needs
		}
		if err != nil {
			return "", err
		}
		if needs {
			return fmt.Sprintf("thread %s goes on from a commit of it", id), nil
		}
		free[at] = true
	}
	return "", nil
}
