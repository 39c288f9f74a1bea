package workbranch

import (
	"context"
	"errors"
	"maps"
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
// commits up to that one again, as git rebase leaves them: by the same author, at the same time,
// with the same patch id.
func (b *Branches) isRebased(ctx context.Context, id gitcas.ThreadID, recorded, tip wire.ID) (bool, error) {
	lost, err := b.commitsBeside(ctx, recorded, tip)
	if err != nil || len(lost) == 0 { // none: the remote no longer has the recorded commit
		return false, err
	}
	there, err := b.commitsBeside(ctx, tip, recorded)
	if err != nil {
		return false, err
	}

	mine := commitmsg.Trailer{Key: "Uwf-Thread", Value: string(id)}
	maps.DeleteFunc(lost, func(_ wire.ID, c gitobj.Commit) bool {
		return !slices.Contains(commitmsg.Parse(c.Message).Trailers, mine)
	})
	if len(lost) > maxRebased {
		return false, nil
	}

	for commit, c := range lost {
		again, err := b.isAmong(ctx, there, commit, c)
		if err != nil || !again {
			return false, err
		}
	}
	return true, nil
}

// isAmong reports whether others have a commit once more.
func (b *Branches) isAmong(ctx context.Context, others map[wire.ID]gitobj.Commit, commit wire.ID, c gitobj.Commit) (bool, error) {
	want := ""
	for other, o := range others {
		if o.Author.Name != c.Author.Name || !o.Author.When.Equal(c.Author.When) {
			continue
		}
		if want == "" {
			var err error
			if want, err = b.patchID(ctx, commit, c); err != nil {
				return false, err
			}
		}
		got, err := b.patchID(ctx, other, o)
		if err != nil || got == want {
			return err == nil, err
		}
	}
	return false, nil
}

// patchID is the patch id of a commit, compared with its first parent, or with no files.
func (b *Branches) patchID(ctx context.Context, commit wire.ID, c gitobj.Commit) (string, error) {
	var parent wire.ID
	if len(c.Parents) > 0 {
		parent = c.Parents[0]
	}
	changes, err := workspace.OpenRemote(b.Store.Remote()).Compare(ctx, parent, commit)
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
