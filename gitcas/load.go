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
	v := &View{s: s.Store, at: l.Time, guessed: l.TimeGuessed, refs: l.Refs, claims: map[ThreadID]Held{}, cache: newCache()}
	if old != nil && !old.pinned {
		v.cache.nodes = old.cache.nodes
		if old.tip == tip {
			v.cache, v.state = old.cache, old.state
		} else {
			tipReader{v}.keepClaims(old)
		}
	}
	if err := (tipReader{v}).fetchTip(ctx, tip); err != nil {
		return nil, err
	}
	if v.tip != tip {
		st, err := tipReader{v}.readTip(tip)
		if err != nil {
			return nil, err
		}
		v.state = st
		if old != nil && !old.pinned {
			tipReader{v}.keepFolders(old)
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

// keepClaims takes over the claims' commits that an older view has.
func (v tipReader) keepClaims(old *View) {
	for name, id := range v.refs {
		if layout.ParseRef(name).Kind != layout.ClaimKind {
			continue
		}
		if o, have := old.cache.getObject(id); have {
			v.cache.addObjects(wire.Objects{id: o})
		}
	}
}

// keepFolders takes over what an older view has of folders that are as they were,
// and blobs that are still listed. Nothing else of it is kept: a job that loses
// many races must not grow.
func (v tipReader) keepFolders(old *View) {
	for id, d := range old.folders {
		if d != nil && v.threadDirs.entryID(string(id)) == d.obj.ID {
			v.folders[id] = d
		}
		v.keepFolder(old, d)
	}
	v.keepFolder(old, v.cas)
}

func (v tipReader) keepFolder(old *View, d *dir) {
	for _, e := range d.listEntries() {
		if o, ok := old.cache.getObject(e.ID); ok {
			v.cache.addObjects(wire.Objects{e.ID: o})
		}
		if !e.IsDir() {
			continue
		}
		if sub, ok, err := old.cache.cachedDir(d.pathOf(e.Name), d.kind.ChildOf(e.Name), e.ID); ok && err == nil {
			v.cache.addDir(sub)
		}
	}
}

// fetchTip fetches the tip and the claims' commits in one request, unless they
// are there.
func (v tipReader) fetchTip(ctx context.Context, tip wire.ID) error {
	var wants []wire.ID
	if v.tip != tip {
		wants = append(wants, tip)
	}
	for name, id := range v.refs {
		if layout.ParseRef(name).Kind != layout.ClaimKind {
			continue
		}
		if _, have := v.cache.getObject(id); !have && !slices.Contains(wants, id) {
			wants = append(wants, id)
		}
	}
	if len(wants) == 0 {
		return nil
	}
	slices.SortFunc(wants, func(a, b wire.ID) int { return slices.Compare(a[:], b[:]) })
	objs, err := v.s.remote.Fetch(ctx, wire.FetchRequest{Wants: wants, Depth: 1, Filter: tipFilter})
	if err != nil {
		return fmt.Errorf("read the tip of %s: %w", v.s.o.Branch, err)
	}
	v.cache.addObjects(objs)
	return nil
}

// readTip reads what the tip's fetch brought.
func (v tipReader) readTip(tip wire.ID) (state, error) {
	st := state{tip: tip, folders: map[ThreadID]*dir{}}
	o, _ := v.cache.getObject(tip)
	if o.Type != plumbing.CommitObject {
		return st, newContentError(v.s.ref, "it does not point to a commit")
	}
	c, err := gitobj.DecodeCommit(o.Data)
	if err != nil {
		return st, contentErr("commit "+tip.String(), err)
	}
	st.parents = c.Parents
	if st.root, err = v.readCached("", layout.RootFolder, c.Tree); err != nil {
		return st, err
	}
	if err := v.readVersion(&st); err != nil {
		return st, err
	}
	for _, sub := range []struct {
		name string
		to   **dir
	}{{layout.CasDir, &st.cas}, {layout.ThreadsDir, &st.threadDirs}, {layout.HistoryDir, &st.history}} {
		if e, ok := st.root.findEntry(sub.name); ok {
			if *sub.to, err = v.readCached(sub.name, layout.RootFolder.ChildOf(sub.name), e.ID); err != nil {
				return st, err
			}
		}
	}
	return st, v.readLists(&st)
}

// readCached reads a folder that a fetch has brought.
func (v *View) readCached(path string, kind layout.Kind, id wire.ID) (*dir, error) {
	o, err := v.cachedObject(quotePath(path), id)
	if err != nil {
		return nil, err
	}
	return parseDir(path, kind, o)
}

func (v *View) cachedObject(path string, id wire.ID) (wire.Object, error) {
	o, ok := v.cache.getObject(id)
	if !ok {
		return o, newContentError(path, "the remote doesn't send its object "+id.String())
	}
	return o, nil
}

// rootFile reads one of the files that every tip has.
func (v tipReader) rootFile(st *state, name string) ([]byte, error) {
	e, ok := st.root.findEntry(name)
	if !ok {
		return nil, newContentError(name, "it is missing")
	}
	o, err := v.cachedObject(name, e.ID)
	if err != nil {
		return nil, err
	}
	if o.Type != plumbing.BlobObject {
		return nil, newContentError(name, fmt.Sprintf("it is a %s, not a file", o.Type))
	}
	return o.Data, nil
}

func (v tipReader) readVersion(st *state) error {
	data, err := v.rootFile(st, layout.VersionName)
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
		return contentErr(layout.VersionName, err)
	}
	return nil
}

func (v tipReader) readLists(st *state) error {
	data, err := v.rootFile(st, layout.ThreadsName)
	if err != nil {
		return err
	}
	if st.threads, err = statefile.ParseThreads(data); err != nil {
		return contentErr(layout.ThreadsName, err)
	}
	if data, err = v.rootFile(st, layout.RegistryName); err != nil {
		return err
	}
	if st.registry, err = statefile.ParseRegistry(data); err != nil {
		return contentErr(layout.RegistryName, err)
	}
	return nil
}

// readClaims reads the claims' commits.
func (v tipReader) readClaims() error {
	for name, id := range v.refs {
		ref := layout.ParseRef(name)
		if ref.Kind != layout.ClaimKind || ref.Thread == "" {
			continue
		}
		o, err := v.cachedObject(name, id)
		if err != nil {
			return err
		}
		c, err := parseClaim(o)
		if err != nil {
			return &DamagedError{What: name, Kind: ErrContent, Why: err.Error(), Err: err,
				Restore: fmt.Sprintf("delete it: git push %s :%s", text.ShellWord(v.s.remote.URL()), name)}
		}
		v.claims[ref.Thread] = Held{ID: id, Claim: c}
	}
	return nil
}
