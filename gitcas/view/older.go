package view

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/tree"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// olderFilter sends the folder with all older steps of a thread as threadFilter does theirs.
const olderFilter = "tree:2"

// olderSteps are the folders with the older steps of a thread, as far as they were read.
type olderSteps struct {
	mu   sync.Mutex
	all  *tree.Dir
	left []gitobj.Entry // those to be read, oldest first
	dirs []*tree.Dir    // those that were read, newest first
	in   map[string]*tree.Dir
}

// readOlder reads some more of the folders with a thread's older steps. d is the thread's folder.
func (v *View) readOlder(ctx context.Context, d *tree.Dir, n int) (*olderSteps, error) {
	o, there := v.older.Get(d.Object.ID)
	if !there {
		folder, err := v.Reader.Below(ctx, d, layout.OlderDir)
		if err != nil {
			return nil, err
		}
		o = &olderSteps{all: folder, left: folder.Entries(), in: map[string]*tree.Dir{}}
		v.older.Put(d.Object.ID, o)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	n = min(n, len(o.left))
	if err := o.readFolders(ctx, v, o.left[len(o.left)-n:]); err != nil {
		return nil, err
	}
	o.left = o.left[:len(o.left)-n]
	return o, nil
}

// readFolders reads some of the folders, with their nodes, in one request.
func (o *olderSteps) readFolders(ctx context.Context, v *View, entries []gitobj.Entry) error {
	ids := make([]wire.ID, len(entries))
	for i, e := range entries {
		ids[i] = e.ID
	}
	var objs wire.Objects
	if wants, filter := v.Reader.Missing(ids), threadFilter; len(wants) > 0 {
		if len(wants) == len(o.all.Entries()) {
			wants, filter = []wire.ID{o.all.Object.ID}, olderFilter
		}
		var err error
		if objs, err = v.Source.Remote.Fetch(ctx, wire.FetchRequest{Wants: wants, Depth: 1, Filter: filter}); err != nil {
			return fmt.Errorf("read the state branch: %w", err)
		}
	}
	for _, e := range slices.Backward(entries) {
		if came, ok := objs[e.ID]; ok {
			v.Reader.Keep(came)
		}
		dir, err := v.Reader.Below(ctx, o.all, e.Name)
		if err != nil {
			return err
		}
		prefetcher{v}.adoptObjects(dir, objs)
		o.dirs = append(o.dirs, dir)
		for _, f := range dir.Entries() {
			if !f.IsDir() {
				o.in[f.Name] = dir
			}
		}
	}
	return nil
}

// folderWith returns the folder among those that were read which has a file; nil: none has.
func (o *olderSteps) folderWith(name string) *tree.Dir {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.in[name]
}

// StepFolders are the folders of a thread with its steps: its own, d, and those with older ones.
func (v *View) StepFolders(ctx context.Context, d *tree.Dir) ([]*tree.Dir, error) {
	if d == nil || d.IDOf(layout.OlderDir).IsZero() {
		return []*tree.Dir{d}, nil
	}
	o, err := v.readOlder(ctx, d, maxChain)
	if err != nil {
		return nil, err
	}
	return append([]*tree.Dir{d}, o.dirs...), nil
}

// FolderOf is the one of a thread's folders that has a record, with what that refers to: d, the
// thread's own, or one with older steps. It is d for what is in none of them.
func (v *View) FolderOf(ctx context.Context, d *tree.Dir, record node.Hash) (*tree.Dir, error) {
	if _, here := d.Find(layout.FileOf(record)); here || d.IDOf(layout.OlderDir).IsZero() {
		return d, nil
	}
	if _, said := d.Find(layout.OwnFileOf(record, record)); said { // what a person has said is no record
		return d, nil
	}
	if o, there := v.older.Get(d.Object.ID); there {
		if dir := o.folderWith(layout.FileOf(record)); dir != nil {
			return dir, nil
		}
	}
	o, err := v.readOlder(ctx, d, maxChain)
	if err != nil {
		return nil, err
	}
	if dir := o.folderWith(layout.FileOf(record)); dir != nil {
		return dir, nil
	}
	return d, nil
}
