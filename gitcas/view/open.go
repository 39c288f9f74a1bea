package view

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

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

// Open makes a view of a listing. What old has of it is not fetched again: old may be nil.
func (s Source) Open(ctx context.Context, old *View, l wire.Listing) (*View, error) {
	tip := l.Refs[s.Branch]
	v := &View{Source: s, Head: l.Head, at: l.Time, guessed: l.TimeGuessed, refs: l.Refs, claims: map[layout.ThreadID]Held{}}
	switch {
	case old == nil || old.Pinned:
		v.Reader, v.derivedMemos = tree.NewReader(s.Remote), newDerivedMemos()
	case old.Commit == tip:
		v.Reader, v.derivedMemos, v.State = old.Reader, old.derivedMemos, old.State
	default:
		v.Reader, v.derivedMemos = old.Reader.Apart(), newDerivedMemos()
		tipReader{v}.keepObjects(ctx, old)
	}
	if err := (tipReader{v}).fetchTip(ctx, tip); err != nil {
		return nil, err
	}
	if v.Commit != tip {
		if err := (tipReader{v}).readTip(ctx, tip); err != nil {
			return nil, err
		}
	}
	return v, tipReader{v}.readClaims()
}

// OpenCommit makes a view of a state commit as it was, without refs: it reads what the tip's
// fetch brings of it. It can be read like any other, but not pushed on.
func (s Source) OpenCommit(ctx context.Context, at time.Time, commit wire.ID) (*View, error) {
	v := &View{Source: s, at: at, Pinned: true, refs: map[string]wire.ID{}, Reader: tree.NewReader(s.Remote), derivedMemos: newDerivedMemos()}
	objs, err := s.Remote.Fetch(ctx, wire.FetchRequest{Wants: []wire.ID{commit}, Depth: 1, Filter: tipFilter})
	if err != nil {
		return nil, err
	}
	v.Reader.Keep(slices.Collect(maps.Values(objs))...)
	return v, tipReader{v}.readTip(ctx, commit)
}

// AdviseRestore adds to an error about the branch's content how to get back to what uwf
// wrote last. A format that is not known may come from a newer uwf and is left
// alone.
func (s Source) AdviseRestore(refs map[string]wire.ID, err error) error {
	tip, mark := refs[s.Branch], refs[layout.StoreRef]
	var d *tree.DamagedError
	if mark.IsZero() || mark == tip || !errors.As(err, &d) || !errors.Is(err, tree.ErrContent) || d.Restore != "" {
		return err
	}
	// The error was made for this call: nobody else has it.
	d.LastKnown, d.Restore = mark, s.BuildRestoreCommand(tip, mark)
	return err
}

// BuildRestoreCommand is the command, for people, that puts the branch back to the last commit that uwf
// wrote.
func (s Source) BuildRestoreCommand(tip, mark wire.ID) string {
	return fmt.Sprintf("restore it: git fetch %[1]s %[2]s && git push --force-with-lease=%[3]s:%[4]s %[1]s %[5]s:%[3]s",
		text.ShellWord(s.Remote.URL()), layout.StoreRef, s.Branch, tip, mark)
}

// tipReader reads what the tip of the branch lists.
type tipReader struct{ *View }

// ListWorkBranches lists work branches that have a name of their own (a pull
// request's): only the entry tells it.
func (v *View) ListWorkBranches(ctx context.Context, ids []layout.ThreadID) error {
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
	l, err := v.Source.Remote.List(ctx, names...)
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

// claimRefs are the claims' refs, by thread.
func (v tipReader) claimRefs() map[layout.ThreadID]wire.ID {
	out := map[layout.ThreadID]wire.ID{}
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
	dirs := []*tree.Dir{old.CasDir}
	for _, e := range old.ThreadsDir.Entries() {
		if old.Reader.Has(e.ID) {
			d, _ := old.ThreadFolder(ctx, layout.ThreadID(e.Name)) // it was read, and is here
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
func (v tipReader) readTip(ctx context.Context, tip wire.ID) error {
	o, _ := v.Reader.Object(tip)
	if o.Type != plumbing.CommitObject {
		return tree.Damaged(v.Source.Branch, "it does not point to a commit")
	}
	c, err := gitobj.DecodeCommit(o.Data)
	if err != nil {
		return tree.DamagedBy("commit "+tip.String(), err)
	}
	v.State = State{Commit: tip, Parents: c.Parents}
	if v.Root, err = v.Reader.ReadDir(ctx, "", layout.RootFolder, c.Tree); err != nil {
		return err
	}
	if err := v.readVersion(ctx); err != nil {
		return err
	}
	if err := v.FindFolders(ctx, v.Reader); err != nil {
		return err
	}
	return v.readLists(ctx)
}

// RootFile reads one of the files that every tip has.
func (v *View) RootFile(ctx context.Context, name string) ([]byte, error) {
	e, ok := v.Root.Find(name)
	if !ok {
		return nil, tree.Damaged(name, "it is missing")
	}
	o, err := v.Reader.Read(ctx, name, e.ID, plumbing.BlobObject, tree.MaxTree)
	return o.Data, err
}

func (v tipReader) readVersion(ctx context.Context) error {
	data, err := v.RootFile(ctx, layout.VersionName)
	if err != nil {
		return err
	}
	v.Version, err = statefile.ParseVersion(data)
	switch {
	case errors.Is(err, statefile.ErrUnreleased):
		branch, url := text.ShellWord(v.Source.shortBranch()), text.ShellWord(v.Source.Remote.URL())
		return &tree.DamagedError{What: layout.VersionName, Kind: ErrVersion, Why: err.Error(), Err: err, Restore: fmt.Sprintf(
			"in a clone that has the branch, put that store aside and begin a new one: git push %[1]s refs/heads/%[2]s:refs/heads/%[2]s-old :refs/heads/%[2]s :%[3]s", url, branch, layout.StoreRef)}
	case errors.Is(err, statefile.ErrFormat):
		return &tree.DamagedError{What: layout.VersionName, Kind: ErrVersion, Why: err.Error(), Restore: "use a newer uwf", Err: err}
	case err != nil:
		return tree.DamagedBy(layout.VersionName, err)
	}
	return nil
}

func (v tipReader) readLists(ctx context.Context) error {
	data, err := v.RootFile(ctx, layout.ThreadsName)
	if err != nil {
		return err
	}
	if v.ThreadsFile, err = statefile.ParseThreads(data); err != nil {
		return tree.DamagedBy(layout.ThreadsName, err)
	}
	if data, err = v.RootFile(ctx, layout.RegistryName); err != nil {
		return err
	}
	if v.RegistryFile, err = statefile.ParseRegistry(data); err != nil {
		return tree.DamagedBy(layout.RegistryName, err)
	}
	return nil
}

// readClaims reads the claims' commits.
func (v tipReader) readClaims() error {
	for thread, id := range v.claimRefs() {
		name := layout.ClaimRef(thread)
		o, _ := v.Reader.Object(id)
		c, err := ParseClaim(o)
		if err != nil {
			return &tree.DamagedError{What: name, Kind: tree.ErrContent, Why: err.Error(), Err: err,
				Restore: fmt.Sprintf("delete it: git push %s :%s", text.ShellWord(v.Source.Remote.URL()), name)}
		}
		v.claims[thread] = Held{ID: id, Claim: c}
	}
	return nil
}

// readPushedClaim reads a claim that was just pushed.
func (v tipReader) readPushedClaim(thread layout.ThreadID, id wire.ID, objs []wire.PackObject) error {
	for _, o := range objs {
		if o.ID != id {
			continue
		}
		c, err := ParseClaim(o.Object)
		if err != nil {
			return fmt.Errorf("%w: %w", tree.ErrInvalid, err)
		}
		v.claims[thread] = Held{ID: id, Claim: c}
		v.Reader.Keep(o.Object)
	}
	return nil
}
