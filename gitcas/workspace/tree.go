package workspace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/wire"
)

const blobNone = "blob:none"

// entry is one line of a tree.
type entry struct {
	name  string
	mode  filemode.FileMode
	id    wire.ID
	stamp stamp // what the file looked like when its content had this id
	dir   *dir  // the content, when it is a folder
}

// looksLike reports whether a file still looks as it did when its content was read.
func (e *entry) looksLike(st stat) bool { return e != nil && e.stamp.isKnown() && e.stamp == st.stamp }

// dir is a git tree with everything below it. It is not changed once it is
// complete, so several places may share one.
type dir struct {
	id      wire.ID
	entries []entry // sorted by name, bytewise
	files   int     // entries at and below that are no folders
	folders int     // folders below
	depth   int     // folders on the longest way down, this one included
	longest int     // bytes of the longest path below
}

// findEntry returns the entry of that name, or nil. A nil dir has none.
func (d *dir) findEntry(name string) *entry {
	if d == nil {
		return nil
	}
	i, ok := slices.BinarySearchFunc(d.entries, name, func(e entry, n string) int { return strings.Compare(e.name, n) })
	if !ok {
		return nil
	}
	return &d.entries[i]
}

// findFolder returns the folder of that name, or nil.
func (d *dir) findFolder(name string) *dir {
	if e := d.findEntry(name); e != nil {
		return e.dir
	}
	return nil
}

// allEntries returns the entries; a nil dir has none.
func (d *dir) allEntries() []entry {
	if d == nil {
		return nil
	}
	return d.entries
}

// measureTree sets what is computed from the entries.
func (d *dir) measureTree() {
	d.files, d.folders, d.depth, d.longest = 0, 0, 1, 0
	for i := range d.entries {
		e := &d.entries[i]
		n := len(e.name)
		if e.dir == nil {
			d.files++
		} else {
			d.files += e.dir.files
			d.folders += e.dir.folders + 1
			d.depth = max(d.depth, e.dir.depth+1)
			n += 1 + e.dir.longest
		}
		d.longest = max(d.longest, n)
	}
}

// treeObject is the git tree with these entries.
func treeObject(entries []entry) (wire.Object, error) {
	list := make([]gitobj.Entry, len(entries))
	for i := range entries {
		e := &entries[i]
		list[i] = gitobj.Entry{Name: e.name, Mode: e.mode, ID: e.id}
	}
	data, err := gitobj.EncodeTree(list)
	if err != nil {
		return wire.Object{}, err
	}
	return wire.NewObject(plumbing.TreeObject, data), nil
}

// emptyDir is the tree without entries.
func emptyDir() *dir { return &dir{id: wire.EmptyTree, depth: 1} }

// loader reads trees: from objects at hand, from trees read before, and what is
// still missing from the remote.
type loader struct {
	remote   wire.Remote
	objects  wire.Objects
	dirs     map[wire.ID]*dir
	maxFiles int
	missing  []wire.ID        // trees to fetch, found by one pass of build
	partial  map[wire.ID]bool // trees with something missing below, by the same
}

func newLoader(remote wire.Remote, objects wire.Objects, maxFiles int) *loader {
	all := make(wire.Objects, len(objects))
	for id, o := range objects {
		all[id] = o
	}
	return &loader{remote: remote, objects: all, dirs: make(map[wire.ID]*dir), maxFiles: maxFiles}
}

// addKnown makes the folders of a tree known by their ids.
func (l *loader) addKnown(d *dir) {
	if d == nil || l.dirs[d.id] != nil {
		return
	}
	l.dirs[d.id] = d
	for i := range d.entries {
		l.addKnown(d.entries[i].dir)
	}
}

func (l *loader) fetchObjects(ctx context.Context, wants []wire.ID, depth int, filter string, haves []wire.ID) error {
	if l.remote == nil {
		return &Error{Op: "fetch", Path: wants[0].String(), Kind: ErrUnreadable, Detail: "the workspace has no remote to fetch from"}
	}
	objs, err := l.remote.Fetch(ctx, wire.FetchRequest{Wants: wants, Depth: depth, Filter: filter, Haves: haves})
	if err != nil {
		return err
	}
	for id, o := range objs {
		l.objects[id] = o
	}
	return nil
}

// searchDepth is how many commits a server looks back for one that we have. It
// leaves out what such a commit holds only if it comes upon it that way.
const searchDepth = 20

// fetchCommit fetches a commit and its tree, without what the haves hold.
func (l *loader) fetchCommit(ctx context.Context, commit wire.ID, filter string, haves []wire.ID) error {
	depth := 1
	if len(haves) > 0 {
		depth = searchDepth
	}
	if err := l.fetchObjects(ctx, []wire.ID{commit}, depth, filter, haves); err != nil {
		return err
	}
	if _, ok := l.objects[commit]; ok || len(haves) == 0 {
		return nil
	}
	// It is an ancestor of what we have, and a server takes it for granted that
	// we have it too.
	return l.fetchObjects(ctx, []wire.ID{commit}, 1, filter, nil)
}

// fetchWhole fetches a commit with all its trees and blobs, whatever is known.
// That is for servers that give no single object: then all they are asked for is
// a commit.
func (l *loader) fetchWhole(ctx context.Context, commit wire.ID) error {
	return l.fetchObjects(ctx, []wire.ID{commit}, 1, "", nil)
}

// commitTree reads the tree of a commit, which is fetched as fetchCommit does.
func (l *loader) commitTree(ctx context.Context, commit wire.ID, filter string, haves []wire.ID) (*dir, error) {
	if err := l.fetchCommit(ctx, commit, filter, haves); err != nil {
		return nil, err
	}
	t, err := l.fetchedTree(ctx, commit)
	if errors.Is(err, wire.ErrNotFound) {
		if err := l.fetchWhole(ctx, commit); err != nil {
			return nil, err
		}
		t, err = l.fetchedTree(ctx, commit)
	}
	return t, err
}

// fetchedTree reads the tree of a commit that is among the objects.
func (l *loader) fetchedTree(ctx context.Context, commit wire.ID) (*dir, error) {
	o, ok := l.objects[commit]
	if !ok || o.Type != plumbing.CommitObject {
		return nil, &Error{Op: "read", Path: commit.String(), Kind: ErrDamaged, Detail: "the remote sent no such commit"}
	}
	c, err := gitobj.DecodeCommit(o.Data)
	if err != nil {
		return nil, &Error{Op: "read", Path: commit.String(), Kind: ErrDamaged, Err: err}
	}
	return l.readTree(ctx, c.Tree)
}

// readTree reads a tree with all trees below it, and fetches those that are missing,
// one level of missing ones at a time.
func (l *loader) readTree(ctx context.Context, id wire.ID) (*dir, error) {
	for range maxDepth + 1 {
		l.missing, l.partial = nil, make(map[wire.ID]bool)
		d, err := l.buildDir(id, 0)
		if err != nil || len(l.missing) == 0 {
			return d, err
		}
		wants := l.missing
		if err := l.fetchObjects(ctx, wants, 0, blobNone, nil); err != nil {
			return nil, err
		}
		for _, m := range wants {
			if _, ok := l.objects[m]; !ok {
				return nil, &Error{Op: "read", Path: m.String(), Kind: ErrDamaged, Detail: "the remote sent no such tree"}
			}
		}
	}
	return nil, &Error{Op: "read", Path: id.String(), Kind: ErrLimit, Detail: fmt.Sprintf("folders lie deeper than %d levels", maxDepth)}
}

// buildDir makes the dir of a tree. When a tree is not at hand it is noted as
// missing, and the result is nil.
func (l *loader) buildDir(id wire.ID, depth int) (*dir, error) {
	if d := l.dirs[id]; d != nil || l.partial[id] {
		return d, nil
	}
	if id == wire.EmptyTree {
		return emptyDir(), nil
	}
	if depth > maxDepth {
		return nil, &Error{Op: "read", Path: id.String(), Kind: ErrLimit, Detail: fmt.Sprintf("folders lie deeper than %d levels", maxDepth)}
	}
	o, ok := l.objects[id]
	if !ok {
		l.missing = append(l.missing, id)
		l.partial[id] = true
		return nil, nil
	}
	list, err := l.decodeTree(o)
	if err != nil {
		return nil, err
	}
	d := &dir{id: id, entries: make([]entry, len(list))}
	for i, e := range list {
		d.entries[i] = entry{name: e.Name, mode: e.Mode, id: e.ID}
		if !e.IsDir() {
			continue
		}
		sub, err := l.buildDir(e.ID, depth+1)
		if err != nil {
			return nil, err
		}
		if sub == nil {
			l.partial[id] = true
		}
		d.entries[i].dir = sub
	}
	if l.partial[id] {
		return nil, nil
	}
	// Git's order puts "a.b" before the folder "a"; look-ups go by name.
	slices.SortFunc(d.entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	d.measureTree()
	if err := l.checkSize(d); err != nil {
		return nil, err
	}
	l.dirs[id] = d
	return d, nil
}

func (l *loader) decodeTree(o wire.Object) ([]gitobj.Entry, error) {
	// An entry has 28 bytes and more: no memory for trees that are too large
	// anyway.
	const long = 300
	if o.Type != plumbing.TreeObject {
		return nil, &Error{Op: "read", Path: o.ID.String(), Kind: ErrDamaged, Detail: "a tree was expected"}
	}
	if len(o.Data)/long > l.maxFiles {
		return nil, l.tooMany(o.ID)
	}
	list, err := gitobj.DecodeTree(o.Data)
	if err != nil {
		return nil, &Error{Op: "read", Path: o.ID.String(), Kind: ErrDamaged, Err: err}
	}
	return list, nil
}

func (l *loader) tooMany(id wire.ID) error {
	return &Error{Op: "read", Path: id.String(), Kind: ErrLimit, Detail: fmt.Sprintf("more than %d files or folders: raise the limit if the repository is that large", l.maxFiles)}
}

// checkSize refuses trees that are too large. Counting on the way up finds a
// small pack that unfolds to billions of files before it is unfolded.
func (l *loader) checkSize(d *dir) error {
	var what string
	switch {
	case d.files > l.maxFiles || d.folders > l.maxFiles:
		return l.tooMany(d.id)
	case d.depth > maxDepth:
		what = fmt.Sprintf("folders lie deeper than %d levels", maxDepth)
	case d.longest > maxPath:
		what = fmt.Sprintf("a path is longer than %d bytes", maxPath)
	default:
		return nil
	}
	return &Error{Op: "read", Path: d.id.String(), Kind: ErrLimit, Detail: what}
}
