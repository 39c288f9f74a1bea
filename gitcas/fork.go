package gitcas

import (
	"cmp"
	"fmt"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/gitcas/tree"
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// forkThread gives a new thread the part of another one's folder that its head needs:
// the chain with its outputs and bodies, the details and pages of these steps.
// They are the same git objects, so nothing of them is uploaded.
func (b *builder) forkThread(id, from ThreadID) error {
	entry := b.c.Threads[id]
	_, alive := b.cur.ThreadsFile.Get(id)
	if !id.Valid() || entry == nil || alive || b.cur.ThreadsDir.IDOf(string(id)) != wire.ZeroID {
		return fmt.Errorf("%w: fork %s of %s: the new thread needs an entry, and must not be there yet", ErrInvalid, id, from)
	}
	src, err := b.forkSource(from)
	if err != nil {
		return err
	}
	need, steps, err := b.sharedRecords(src, id, entry.Head)
	if err != nil {
		return fmt.Errorf("fork %s of %s: %w", id, from, err)
	}
	folders, err := b.v.StepFolders(b.ctx, src)
	if err != nil {
		return err
	}
	shared := &tree.Edit{}
	for _, d := range folders {
		err := b.visitSteps(d, need, 0, steps, func(folder string, e gitobj.Entry) { shared.At(folder).Set(e) })
		if err != nil {
			return err
		}
	}
	d, err := shared.Write(b.ctx, b.v.Reader, layout.ThreadPath(id), layout.ThreadFolder, nil, src, b.putFolder)
	if err != nil {
		return err
	}
	b.replaceThread(id, d, src)
	return nil
}

// visitSteps gives the files of some records to fn, and their details, and the pages of some
// steps, by their folder in d: "" is d itself.
func (b *builder) visitSteps(d *tree.Dir, records map[node.Hash]bool, first, last int, fn func(folder string, e gitobj.Entry)) error {
	for _, e := range d.Entries() {
		if of, h, isNode := layout.ParseNodeFile(e.Name); isNode && records[cmp.Or(of, h)] {
			fn("", e)
		}
	}
	for name, wanted := range map[string]func(name string) bool{
		layout.DetailDir: func(name string) bool { return records[node.Hash(name)] },
		layout.PagesDir: func(name string) bool {
			n := layout.PageNumber(name)
			return first <= n && n <= last
		},
	} {
		in, err := b.v.Reader.Below(b.ctx, d, name)
		if err != nil {
			return err
		}
		for _, e := range in.Entries() {
			if wanted(e.Name) {
				fn(name, e)
			}
		}
	}
	return nil
}

// replaceThread begins a thread's folder with another one than is there. known is one like it
// that the remote has.
func (b *builder) replaceThread(id ThreadID, from, known *tree.Dir) {
	b.threads[id] = from
	b.edit.At(layout.ThreadPath(id)).Replace(from, known)
}

// forkSource is the folder of the thread to fork, also of one that has ended.
func (b *builder) forkSource(from ThreadID) (*tree.Dir, error) {
	if src, err := b.v.ThreadFolder(b.ctx, from); err != nil || src != nil {
		return src, err
	}
	e, ok, err := b.v.FindEnded(b.ctx, from)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("%w: %s", ErrUnknownThread, from)
	}
	past, err := b.v.LoadEnded(b.ctx, e)
	if err != nil {
		return nil, err
	}
	return past.ThreadFolder(b.ctx, from)
}

// sharedRecords are the records of the chain from head, with the earlier attempts that they
// name, and the number of its steps that src has. The new thread's own may come first.
func (b *builder) sharedRecords(src *tree.Dir, id ThreadID, head node.Hash) (map[node.Hash]bool, int, error) {
	records, err := b.v.Records(b.ctx, src)
	if err != nil {
		return nil, 0, err
	}
	need := map[node.Hash]bool{}
	get := func(h node.Hash) (node.Node, error) {
		need[h] = true
		for at, nodes := range b.fresh {
			if n, ok := nodes[h]; ok && at.Thread != "" && at.Of == "" {
				return n, nil
			}
		}
		return records(h)
	}
	c, err := view.FollowChain(head, src.Path, get)
	if err != nil {
		return nil, 0, err
	}
	steps := 0
	for _, s := range c.Steps {
		if _, fresh := b.fresh[Place{Thread: id}][s.Hash]; !fresh {
			steps++
		}
	}
	return need, steps, view.CheckAttempts(c, src.Path, get)
}

// reopenThread brings the folder of an ended thread back, as it was when the thread was
// taken off the tip: the same git objects, with what is not part of its chain.
func (b *builder) reopenThread(e Ended) error {
	if e.Reason != statefile.ReasonEnded || b.c.Threads[e.Thread] == nil || b.threads[e.Thread] != nil {
		return fmt.Errorf("%w: reopen thread %s, which is %s: only what has ended comes back, with an entry, and once", ErrInvalid, e.Thread, e.Reason)
	}
	if err := b.checkNewest(e, "reopen"); err != nil {
		return err
	}
	past, err := b.v.LoadEnded(b.ctx, e)
	if err != nil {
		return err
	}
	d, err := past.ThreadFolder(b.ctx, e.Thread)
	if err != nil {
		return err
	}
	b.replaceThread(e.Thread, d, d)
	return nil
}
