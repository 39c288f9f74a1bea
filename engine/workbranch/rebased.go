package workbranch

import (
	"context"
	"errors"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/united-workforce/uwf/engine/patch"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
	"github.com/united-workforce/uwf/internal/commitmsg"
)

// maxRebased bounds how many commits of a thread's are looked for on a branch that was rebased.
const maxRebased = 100

// isRebased reports whether a branch that doesn't contain the recorded commit has the thread's
// commits up to that one again, as git rebase leaves them: of the same author and time, with
// the same patch id.
func (b *Branches) isRebased(ctx context.Context, id gitcas.ThreadID, recorded, tip wire.ID) (bool, error) {
	lost, err := b.commitsBeside(ctx, recorded, tip)
	if err != nil || len(lost) == 0 { // the recorded commit is gone, too
		return false, err
	}
	there, err := b.commitsBeside(ctx, tip, recorded)
	if err != nil {
		return false, err
	}
	looked := 0
	for commit, c := range lost {
		if !slices.Contains(commitmsg.Parse(c.Message).Trailers, commitmsg.Trailer{Key: "Uwf-Thread", Value: string(id)}) {
			continue
		}
		looked++
		again, err := b.isAmong(ctx, there, commit, c)
		if err != nil || !again || looked > maxRebased {
			return false, err
		}
	}
	return true, nil
}

// isAmong reports whether a commit is among others once more.
func (b *Branches) isAmong(ctx context.Context, others map[wire.ID]gitobj.Commit, commit wire.ID, c gitobj.Commit) (bool, error) {
	for other, o := range others {
		if o.Author.Name != c.Author.Name || !o.Author.When.Equal(c.Author.When) {
			continue
		}
		a, err := b.patchID(ctx, commit, c)
		if err != nil {
			return false, err
		}
		if z, err := b.patchID(ctx, other, o); err != nil || a == z {
			return err == nil, err
		}
	}
	return false, nil
}

// patchID is the patch id of a commit, compared with its first parent.
func (b *Branches) patchID(ctx context.Context, commit wire.ID, c gitobj.Commit) (string, error) {
	changes, err := workspace.OpenRemote(b.Store.Remote()).Compare(ctx, slices.Concat(c.Parents, []wire.ID{wire.ZeroID})[0], commit)
	if err != nil {
		return "", err
	}
	files, err := patch.CollectFiles(nil, changes, func(ids []wire.ID) (map[wire.ID][]byte, error) {
		return workspace.FetchFiles(ctx, b.Store.Remote(), ids)
	})
	if err != nil {
		return "", err
	}
	return patch.ID(files, b.Clock.Now)
}

// commitsBeside are the commits that lead to one and not to another one; none where the remote
// lacks one of them.
func (b *Branches) commitsBeside(ctx context.Context, tip, without wire.ID) (map[wire.ID]gitobj.Commit, error) {
	objs, err := b.Store.Remote().Fetch(ctx, wire.FetchRequest{Wants: []wire.ID{tip}, Haves: []wire.ID{without}, Filter: "tree:0"})
	if errors.Is(err, wire.ErrNotFound) {
		return nil, nil
	}
	out := make(map[wire.ID]gitobj.Commit, len(objs))
	for commit, o := range objs {
		c, wrong := gitobj.DecodeCommit(o.Data)
		if o.Type == plumbing.CommitObject && wrong == nil {
			out[commit] = c
		}
	}
	return out, err
}
