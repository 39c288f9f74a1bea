package gitcas

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// Load reads the store. Of the threads named it reads everything but the
// details; of long ones, as their entries say, only what is listed in their
// folders: Chain fetches the rest in one request. Without any it reads the entries
// and claims of all threads.
//
// It costs one listing of refs and two fetches: the tip, then the threads' folders
// with cas/; where cas/ is large, two more: what the nodes need of it, and what the
// workflow refers to. What this Store read or pushed last is not fetched again.
func (s *Store) Load(ctx context.Context, ids ...ThreadID) (*View, error) {
	return s.Reload(ctx, s.latest.Load(), ids...)
}

// Reload reads the store again. What v has already is not fetched again; when
// nothing moved, that is everything. A nil v has nothing.
func (s *Store) Reload(ctx context.Context, v *View, ids ...ThreadID) (*View, error) {
	if s.err != nil {
		return nil, s.err
	}
	for _, id := range ids {
		if err := id.Check(); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	next, err := opener{s}.readConsistent(ctx, v, ids)
	if err != nil {
		return nil, err
	}
	if err := next.ReadThreads(ctx, ids...); err != nil {
		return nil, err
	}
	if err := next.ListWorkBranches(ctx, ids); err != nil {
		return nil, err
	}
	s.latest.Store(next)
	return next, nil
}

// headRef asks a listing for [View.Head].
const headRef = "HEAD"

// listRefs lists the refs that a view of these threads shows.
func (s *Store) listRefs(ctx context.Context, v *View, ids []ThreadID) (wire.Listing, error) {
	prefixes := []string{headRef, s.source.Branch, layout.StoreRef}
	for _, id := range ids {
		prefixes = append(prefixes, layout.ClaimRef(id), layout.Heads+layout.WorkBranch(id), layout.AttemptRefs(id))
		if v != nil {
			if e, ok := v.Entry(id); ok && e.Work.Branch != "" && e.Work.Branch != layout.WorkBranch(id) {
				prefixes = append(prefixes, layout.Heads+e.Work.Branch)
			}
		}
	}
	if len(ids) == 0 {
		prefixes = append(prefixes, layout.Claims)
	}
	l, err := s.source.Remote.List(ctx, prefixes...)
	if err != nil {
		return l, fmt.Errorf("read the store: %w", err)
	}
	// A prefix matches longer names too.
	maps.DeleteFunc(l.Refs, func(name string, _ wire.ID) bool {
		return !slices.ContainsFunc(prefixes, func(p string) bool {
			return name == p || p[len(p)-1] == '/' && len(name) > len(p) && name[:len(p)] == p
		})
	})
	return l, nil
}

// opener makes a view of what the remote has now, and refuses a branch that is not the one that was seen before.
type opener struct{ *Store }

// openView makes a view of a listing, without any thread that v has not loaded.
func (s opener) openView(ctx context.Context, old *View, l wire.Listing) (*View, error) {
	if err := s.checkPresence(ctx, l); err != nil {
		return nil, err
	}
	v, err := s.source.Open(ctx, old, l)
	if err != nil {
		return nil, err
	}
	if want := s.o.ExpectStore; want != "" && v.Version.Store != want {
		return nil, &DamagedError{What: s.source.Branch, Kind: ErrOtherStore, Why: fmt.Sprintf("its id is %s, expected was %s", v.Version.Store, want)}
	}
	return v, nil
}

// LoadKnown returns a view of a state commit as it was, with everything of the threads
// named: where the branch is damaged, that of the last commit that is known to be good
// (DamagedError.LastKnown). It can be read like any other, but not pushed on.
func (s *Store) LoadKnown(ctx context.Context, commit wire.ID, ids ...ThreadID) (*View, error) {
	v, err := s.source.OpenCommit(ctx, s.o.Now(), commit)
	if err != nil {
		return nil, fmt.Errorf("read the state commit %s: %w", commit, err)
	}
	return v, v.ReadThreads(ctx, ids...)
}

// Fsck reads the store and checks all of it, see [view.View.Fsck].
func (s *Store) Fsck(ctx context.Context, history bool) (report view.Report, err error) {
	v, err := s.Reload(ctx, nil)
	if err != nil {
		err = report.NoteError(s.source.Branch, err)
		return report, err
	}
	return v.Fsck(ctx, history)
}
