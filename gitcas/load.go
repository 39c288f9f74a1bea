package gitcas

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/gitcas/tree"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/text"
)

// tipFilter sends a commit with its root folder and what that lists: the YAML
// files, and the listings of cas/, threads/ and history/.
const tipFilter = "tree:2"

// Load reads the store. Of the threads named it reads everything but the
// details; of long ones, as their entries say, only what is listed in their
// folders: Chain fetches the rest in one request. Without any it reads the entries
// and claims of all threads.
//
// It costs one listing of refs and two fetches: the tip, then the threads' folders
// with cas/; where cas/ is large, two more: what the nodes need of it, and what the
// workflow refers to.
func (s *Store) Load(ctx context.Context, ids ...ThreadID) (*View, error) {
	return s.Reload(ctx, nil, ids...)
}

// Reload reads the store again. What v has already is not fetched again; when
// nothing moved, that is everything. A nil v is a Load.
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
	if err := (prefetcher{next}).readThreads(ctx, ids); err != nil {
		return nil, opener{s}.adviseRestore(next.refs, err)
	}
	return next, tipReader{next}.listWorkBranches(ctx, ids)
}

// listRefs lists the refs that a view of these threads shows.
func (s *Store) listRefs(ctx context.Context, v *View, ids []ThreadID) (wire.Listing, error) {
	prefixes := []string{s.ref, layout.StoreRef}
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
	l, err := s.remote.List(ctx, prefixes...)
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

// tipReader reads what the tip of the branch lists.
type tipReader struct{ *View }

// listWorkBranches lists work branches that have a name of their own (a pull
// request's): only the entry tells it.
func (v tipReader) listWorkBranches(ctx context.Context, ids []ThreadID) error {
	var names []string
	for _, id := range ids {
		e, ok := v.Entry(id)
		if ok && e.Work.Branch != "" && e.Work.Branch != layout.WorkBranch(id) {
			name := layout.Heads + e.Work.Branch
			if _, ok := v.refs[name]; !ok {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	l, err := v.s.remote.List(ctx, names...)
	if err != nil {
		return fmt.Errorf("read the work branch: %w", err)
	}
	for _, name := range names {
		if id, ok := l.Refs[name]; ok {
			v.refs[name] = id
		}
	}
	return nil
}

// opener makes a view of what the remote has now, and refuses a branch that is not the one that was seen before.
type opener struct{ *Store }

// openView makes a view of a listing, without any thread that v has not loaded.
func (s opener) openView(ctx context.Context, old *View, l wire.Listing) (*View, error) {
	if err := s.checkPresence(ctx, l); err != nil {
		return nil, err
	}
	tip := l.Refs[s.ref]
	v := &View{s: s.Store, at: l.Time, guessed: l.TimeGuessed, refs: l.Refs, claims: map[ThreadID]Held{}}
	switch {
	case old == nil || old.pinned:
		v.Reader, v.worked = tree.NewReader(s.remote), newWorked()
	case old.tip == tip:
		v.Reader, v.worked, v.state = old.Reader, old.worked, old.state
	default:
		v.Reader, v.worked = old.Reader.Apart(), newWorked()
		tipReader{v}.keepObjects(ctx, old)
	}
	if err := (tipReader{v}).fetchTip(ctx, tip); err != nil {
		return nil, err
	}
	if v.tip != tip {
		var err error
		if v.state, err = (tipReader{v}).readTip(ctx, tip); err != nil {
			return nil, err
		}
	}
	if err := (tipReader{v}).readClaims(); err != nil {
		return nil, err
	}
	if want := s.o.ExpectStore; want != "" && v.version.Store != want {
		return nil, &DamagedError{What: s.ref, Kind: ErrOtherStore, Why: fmt.Sprintf("its id is %s, expected was %s", v.version.Store, want)}
	}
	return v, nil
}

// claimRefs are the claims' refs, by thread.
func (v tipReader) claimRefs() map[ThreadID]wire.ID {
	out := map[ThreadID]wire.ID{}
	for name, id := range v.refs {
		if ref := layout.ParseRef(name); ref.Kind == layout.ClaimKind && ref.Thread != "" {
			out[ref.Thread] = id
		}
	}
	return out
}

// keepObjects takes over what an older view has of claims, of cas/ and of the threads that it
// has read. Nothing else of it is kept: a job that loses many races must not grow.
func (v tipReader) keepObjects(ctx context.Context, old *View) {
	ids := slices.Collect(maps.Values(v.claimRefs()))
	dirs := []*tree.Dir{old.cas}
	for _, e := range old.threadDirs.Entries() {
		if old.Reader.Has(e.ID) {
			d, _ := old.threadFolder(ctx, ThreadID(e.Name)) // it was read, and is here
			dirs, ids = append(dirs, d), append(ids, e.ID)
		}
	}
	for _, d := range dirs {
		for _, e := range d.Entries() {
			ids = append(ids, e.ID)
		}
	}
	for _, id := range ids {
		if o, ok := old.Reader.Object(id); ok {
			v.Reader.Keep(o)
		}
	}
}

// fetchTip fetches the tip and the claims' commits in one request, unless they
// are there.
func (v tipReader) fetchTip(ctx context.Context, tip wire.ID) error {
	wants := append(slices.Collect(maps.Values(v.claimRefs())), tip)
	slices.SortFunc(wants, func(a, b wire.ID) int { return slices.Compare(a[:], b[:]) })
	objs, err := v.Reader.FetchWith(ctx, tipFilter, wants)
	v.Reader.Keep(slices.Collect(maps.Values(objs))...)
	return err
}

// readTip reads what the tip's fetch brought.
func (v tipReader) readTip(ctx context.Context, tip wire.ID) (state, error) {
	st := state{tip: tip}
	o, _ := v.Reader.Object(tip)
	if o.Type != plumbing.CommitObject {
		return st, tree.Damaged(v.s.ref, "it does not point to a commit")
	}
	c, err := gitobj.DecodeCommit(o.Data)
	if err != nil {
		return st, tree.DamagedBy("commit "+tip.String(), err)
	}
	st.parents = c.Parents
	if st.root, err = v.Reader.Dir(ctx, "", layout.RootFolder, c.Tree); err != nil {
		return st, err
	}
	if err := v.readVersion(ctx, &st); err != nil {
		return st, err
	}
	if err := st.findFolders(ctx, v.Reader); err != nil {
		return st, err
	}
	return st, v.readLists(ctx, &st)
}

// findFolders reads the folders in the root.
func (st *state) findFolders(ctx context.Context, r *tree.Reader) (err error) {
	for name, to := range map[string]**tree.Dir{layout.CasDir: &st.cas, layout.ThreadsDir: &st.threadDirs, layout.HistoryDir: &st.history} {
		if *to, err = r.Below(ctx, st.root, name); err != nil {
			return err
		}
	}
	return nil
}

// rootFile reads one of the files that every tip has.
func (v tipReader) rootFile(ctx context.Context, st *state, name string) ([]byte, error) {
	e, ok := st.root.Find(name)
	if !ok {
		return nil, tree.Damaged(name, "it is missing")
	}
	o, err := v.Reader.Read(ctx, name, e.ID, plumbing.BlobObject, tree.MaxTree)
	return o.Data, err
}

func (v tipReader) readVersion(ctx context.Context, st *state) error {
	data, err := v.rootFile(ctx, st, layout.VersionName)
	if err != nil {
		return err
	}
	st.version, err = statefile.ParseVersion(data)
	switch {
	case errors.Is(err, statefile.ErrUnreleased):
		branch, url := text.ShellWord(v.s.o.Branch), text.ShellWord(v.s.remote.URL())
		return &DamagedError{What: layout.VersionName, Kind: ErrVersion, Why: err.Error(), Err: err, Restore: fmt.Sprintf(
			"in a clone that has the branch, put that store aside and begin a new one: git push %[1]s refs/heads/%[2]s:refs/heads/%[2]s-old :refs/heads/%[2]s :%[3]s", url, branch, layout.StoreRef)}
	case errors.Is(err, statefile.ErrFormat):
		return &DamagedError{What: layout.VersionName, Kind: ErrVersion, Why: err.Error(), Restore: "use a newer uwf", Err: err}
	case err != nil:
		return tree.DamagedBy(layout.VersionName, err)
	}
	return nil
}

func (v tipReader) readLists(ctx context.Context, st *state) error {
	data, err := v.rootFile(ctx, st, layout.ThreadsName)
	if err != nil {
		return err
	}
	if st.threads, err = statefile.ParseThreads(data); err != nil {
		return tree.DamagedBy(layout.ThreadsName, err)
	}
	if data, err = v.rootFile(ctx, st, layout.RegistryName); err != nil {
		return err
	}
	if st.registry, err = statefile.ParseRegistry(data); err != nil {
		return tree.DamagedBy(layout.RegistryName, err)
	}
	return nil
}

// readClaims reads the claims' commits.
func (v tipReader) readClaims() error {
	for thread, id := range v.claimRefs() {
		name := layout.ClaimRef(thread)
		o, _ := v.Reader.Object(id)
		c, err := parseClaim(o)
		if err != nil {
			return &DamagedError{What: name, Kind: ErrContent, Why: err.Error(), Err: err,
				Restore: fmt.Sprintf("delete it: git push %s :%s", text.ShellWord(v.s.remote.URL()), name)}
		}
		v.claims[thread] = Held{ID: id, Claim: c}
	}
	return nil
}
