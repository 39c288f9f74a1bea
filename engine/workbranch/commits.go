package workbranch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
)

// Read reads one commit of the remote, without its files.
func Read(ctx context.Context, remote wire.Remote, id wire.ID) (gitobj.Commit, error) {
	objs, err := remote.Fetch(ctx, wire.FetchRequest{Wants: []wire.ID{id}, Depth: 1, Filter: "tree:0"})
	if err != nil {
		return gitobj.Commit{}, fmt.Errorf("read commit %s: %w", id, err)
	}
	o := objs[id]
	if o.Type != plumbing.CommitObject {
		return gitobj.Commit{}, fmt.Errorf("read commit %s: the remote sends no commit of that id", id)
	}
	return gitobj.DecodeCommit(o.Data)
}

// Contains reports whether commit anc is tip or an ancestor of it. Only commits
// that anc does not reach are asked for.
func Contains(ctx context.Context, remote wire.Remote, tip, anc wire.ID) (bool, error) {
	return AnyContains(ctx, remote, []wire.ID{tip}, anc)
}

// AnyContains reports whether commit anc is one of tips or an ancestor of one, in one
// request at most.
func AnyContains(ctx context.Context, remote wire.Remote, tips []wire.ID, anc wire.ID) (bool, error) {
	if len(tips) == 0 || slices.Contains(tips, anc) {
		return len(tips) > 0, nil
	}
	objs, err := remote.Fetch(ctx, wire.FetchRequest{
		Wants: tips, Haves: []wire.ID{anc}, Filter: "tree:0",
	})
	if errors.Is(err, wire.ErrNotFound) {
		return false, nil
	}
	found := false
	if err == nil {
		err = walkBack(objs, tips, func(id wire.ID) bool {
			found = id == anc
			return !found
		})
	}
	return found, err
}

// Base finds a nearest common ancestor of two commits by their histories;
// zero when they have none.
func Base(ctx context.Context, remote wire.Remote, a, b wire.ID) (wire.ID, error) {
	objs, err := remote.Fetch(ctx, wire.FetchRequest{Wants: []wire.ID{a, b}, Filter: "tree:0"})
	if err != nil {
		return wire.ZeroID, err
	}
	ofA := map[wire.ID]bool{}
	if err := walkBack(objs, []wire.ID{a}, func(id wire.ID) bool {
		ofA[id] = objs[id].Type == plumbing.CommitObject
		return true
	}); err != nil {
		return wire.ZeroID, err
	}
	var base wire.ID
	err = walkBack(objs, []wire.ID{b}, func(id wire.ID) bool {
		if ofA[id] {
			base = id
		}
		return base.IsZero()
	})
	return base, err
}

// walkBack visits commits from tips backwards, breadth first, while visit says so; those that
// are not at hand, too.
func walkBack(objs wire.Objects, tips []wire.ID, visit func(wire.ID) bool) error {
	seen := map[wire.ID]bool{}
	for queue := slices.Clone(tips); len(queue) > 0; {
		id := queue[0]
		queue = queue[1:]
		if seen[id] {
			continue
		}
		seen[id] = true
		if !visit(id) {
			return nil
		}
		if o, ok := objs[id]; ok {
			c, err := gitobj.DecodeCommit(o.Data)
			if err != nil {
				return err
			}
			queue = append(queue, c.Parents...)
		}
	}
	return nil
}

// MakeCommit makes a commit of uwf's own.
func MakeCommit(at time.Time, tree wire.ID, parents []wire.ID, message string) (wire.Object, error) {
	who := gitobj.Signature{Name: "uwf", Email: "uwf@localhost", When: at.UTC()}
	data, err := gitobj.EncodeCommit(gitobj.Commit{Tree: tree, Parents: parents, Author: who, Committer: who, Message: message})
	if err != nil {
		return wire.Object{}, err
	}
	return wire.NewObject(plumbing.CommitObject, data), nil
}

// RevertEdits is the tree of a commit without the edits that lead from before to made,
// zero standing for no files at all. Overlap are the files that were changed since:
// then there is no tree.
func RevertEdits(ctx context.Context, remote wire.Remote, made, before, at wire.ID) (tree wire.ID, objs []wire.PackObject, overlap []string, err error) {
	empty := wire.NewObject(plumbing.TreeObject, nil)
	switch {
	case at == made && before.IsZero():
		return empty.ID, []wire.PackObject{{Object: empty}}, nil, nil
	case at == made:
		c, err := Read(ctx, remote, before)
		return c.Tree, nil, nil, err
	case before.IsZero():
		before = empty.ID
	}
	known := wire.Objects{}
	known.Add(empty)
	m, err := workspace.Merge(ctx, remote, made, before, at, known)
	if err != nil || len(m.Overlap) > 0 {
		return wire.ZeroID, nil, m.Overlap, err
	}
	if m.Tree == empty.ID {
		m.Objects = append(m.Objects, wire.PackObject{Object: empty})
	}
	return m.Tree, m.Objects, nil, nil
}
