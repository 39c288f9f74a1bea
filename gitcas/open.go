package gitcas

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/text"
)

// The rules for which branch is the store's. refs/uwf/store marks that there is a
// store, and points to the last state commit that uwf wrote: it is updated in the
// same push as the branch. So one listing of refs tells whether the branch was
// deleted, set back or rewritten, and what it was before is still on the remote,
// held by that ref, to restore it from.
//
// The two may differ for harmless reasons: a listing is no snapshot, and may show
// one ref before a push and the other after it; a remote without atomic pushes,
// or a person's own commit, leaves the ref behind. In these cases the branch
// extends the ref, or does so when both are listed again.

// listings is how often the refs are listed when they don't fit together.
const listings = 4

// checkPresence applies the rules that the listing alone decides.
func (s opener) checkPresence(ctx context.Context, l wire.Listing) error {
	tip, mark := l.Refs[s.source.Branch], l.Refs[layout.StoreRef]
	if s.o.LocalTip != nil {
		local, ok, err := s.o.LocalTip(ctx)
		if err != nil {
			return fmt.Errorf("look for a local branch %s: %w", s.o.Branch, err)
		}
		if ok && local != tip {
			return &LocalDiffersError{Branch: s.o.Branch, URL: s.source.Remote.URL(), Local: local, Remote: tip}
		}
	}
	switch {
	case !tip.IsZero():
		return nil
	case !mark.IsZero():
		return &DamagedError{
			What: s.source.Branch, Kind: ErrBranchGone, Why: layout.StoreRef + " is there, the branch is not", LastKnown: mark,
			Restore: fmt.Sprintf("restore it: git fetch %[1]s %[2]s && git push %[1]s %[3]s:%[4]s", text.ShellWord(s.source.Remote.URL()), layout.StoreRef, mark, s.source.Branch),
		}
	case s.o.ExpectStore != "":
		return &DamagedError{What: s.source.Branch, Kind: ErrBranchGone, Why: fmt.Sprintf("store %s was expected here; there is neither the branch nor %s", s.o.ExpectStore, layout.StoreRef),
			Restore: fmt.Sprintf("push it from a clone that has it: git push %s refs/remotes/origin/%[2]s:refs/heads/%[2]s", text.ShellWord(s.source.Remote.URL()), s.o.Branch)}
	}
	return fmt.Errorf("%w: %s has no branch %s; the first thread makes it: uwf thread start WORKFLOW -p …", ErrNoStore, s.source.Remote.URL(), s.o.Branch)
}

// LocalDiffersError: the state branch stands in the local repository too, with
// another tip. It matches ErrLocalDiffers.
type LocalDiffersError struct {
	Branch, URL   string
	Local, Remote wire.ID // Remote is zero when the branch is not there
}

func (e *LocalDiffersError) Error() string {
	if e.Remote.IsZero() {
		return fmt.Sprintf("%v: the branch %s stands here at %s, and not on %s: push it (git push %s %s), or set state.remote to use it here",
			ErrLocalDiffers, e.Branch, e.Local, e.URL, text.ShellWord(e.URL), e.Branch)
	}
	return fmt.Sprintf("%v: the branch %s is %s here and %s on %s; uwf uses the remote's: put the local one aside, with the threads that only it has (git branch -m %s old-%s), or set state.remote to use it",
		ErrLocalDiffers, e.Branch, e.Local, e.Remote, e.URL, e.Branch, e.Branch)
}

// Unwrap makes the error match ErrLocalDiffers.
func (e *LocalDiffersError) Unwrap() error { return ErrLocalDiffers }

// readConsistent lists the refs and reads the tip, until the branch extends what
// refs/uwf/store points to. All refs are listed again each time: claims are judged
// against the heads of the same listing.
func (s opener) readConsistent(ctx context.Context, v *View, ids []ThreadID) (*View, error) {
	for try := 0; ; try++ {
		l, err := s.listRefs(ctx, v, ids)
		if err != nil {
			return nil, err
		}
		next, err := s.openView(ctx, v, l)
		var ok bool
		if err == nil {
			ok, err = s.extendsMark(ctx, next)
		}
		last := try+1 == listings
		switch {
		case errors.Is(err, wire.ErrNotFound) && !last:
			next = v // a claim that was deleted since the refs were listed, say
		case err != nil:
			return nil, s.source.AdviseRestore(l.Refs, err)
		case ok:
			return next, nil
		case last:
			return nil, s.checkRewritten(next.Commit, l.Refs[layout.StoreRef])
		}
		// The listing may have caught a push halfway.
		if err := s.o.Sleep(ctx, time.Duration(try)*20*time.Millisecond); err != nil {
			return nil, err
		}
		v = next
	}
}

// extendsMark reports whether the tip is what refs/uwf/store points to, or
// extends it. A branch without the ref gets it with the next push.
func (s opener) extendsMark(ctx context.Context, v *View) (bool, error) {
	mark, ok := v.Ref(layout.StoreRef)
	if !ok || mark == v.Commit || slices.Contains(v.Parents, mark) {
		return true, nil
	}
	return s.isAncestor(ctx, v.Commit, mark)
}

func (s opener) checkRewritten(tip, mark wire.ID) error {
	url := text.ShellWord(s.source.Remote.URL())
	return &DamagedError{
		What: s.source.Branch, Kind: ErrRewritten, LastKnown: mark,
		Why: fmt.Sprintf("its tip %s does not extend the last commit that uwf wrote, %s", tip, mark),
		Restore: fmt.Sprintf("%s; if it was rewritten on purpose, accept it: git push --force %s %s:%s",
			s.source.BuildRestoreCommand(tip, mark), url, tip, layout.StoreRef),
	}
}

// isAncestor reports whether ancestor is in the history of tip.
func (s opener) isAncestor(ctx context.Context, tip, ancestor wire.ID) (bool, error) {
	found := false
	err := s.walkBack(ctx, tip, ancestor, 0, func(id wire.ID) bool {
		found = id == ancestor
		return !found
	})
	return found, err
}
