package view

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/tree"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// maxSmallCas is how many files of cas/ are fetched without asking which of them
// are needed: that saves a round trip.
const maxSmallCas = 64

// threadFilter sends a thread's folder with its records and what they refer to, but of
// the details and the pages only which there are, see Place.Folder.
const threadFilter = "tree:1"

// manyNodes is how many nodes of a folder are named to fetch them. Otherwise the folder once more
// costs less.
const manyNodes = 64

// prefetcher reads folders and nodes before they are asked for, in few requests.
type prefetcher struct{ *View }

// ReadThreads fetches the folders of threads with all but the details, and what is
// needed of cas/.
func (v *View) ReadThreads(ctx context.Context, ids ...layout.ThreadID) error {
	return v.Source.AdviseRestore(v.refs, prefetcher{v}.readThreads(ctx, ids))
}

func (v prefetcher) readThreads(ctx context.Context, ids []layout.ThreadID) error {
	var todo []layout.ThreadID
	for _, id := range ids {
		folder, there := v.ThreadsDir.Find(string(id))
		if v.Reader.Has(folder.ID) {
			continue
		}
		_, listed := v.Entry(id)
		switch {
		case listed && !there:
			return tree.Damaged(layout.ThreadPath(id), "threads.yaml lists the thread, but its folder is missing")
		case there:
			todo = append(todo, id)
		}
	}
	if err := v.readFolders(ctx, todo); err != nil {
		return err
	}
	for _, id := range todo {
		// Nothing is left to fetch unless the remote held something back.
		d, err := v.ThreadFolder(ctx, id)
		if err == nil {
			err = v.fetchNodes(ctx, d)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readFolders fetches folders, and cas/ where it is small.
func (v prefetcher) readFolders(ctx context.Context, ids []layout.ThreadID) error {
	if len(ids) == 0 {
		return nil
	}
	var wants []wire.ID
	for _, id := range ids {
		wants = append(wants, v.ThreadsDir.IDOf(string(id)))
	}
	if v.smallCas() {
		wants = append(wants, v.casFiles(nil)...)
	}
	tries := v.attemptsOf(ids)
	objs, err := v.Reader.FetchWith(ctx, threadFilter, append(tries, wants...))
	if len(tries) > 0 && errors.Is(err, wire.ErrNotFound) { // one was deleted since it was listed
		objs, err = v.Reader.FetchWith(ctx, threadFilter, wants)
	}
	if err != nil {
		return err
	}
	v.keepRoots(tries, objs)
	for _, id := range ids {
		d, err := v.ThreadFolder(ctx, id)
		if err != nil {
			return err
		}
		v.adoptObjects(d, objs)
	}
	return nil
}

// attemptsOf are the commits of the attempts at threads' next steps.
func (v prefetcher) attemptsOf(ids []layout.ThreadID) (commits []wire.ID) {
	for name, id := range v.refs {
		if ref := layout.ParseRef(name); ref.Run != "" && slices.Contains(ids, ref.Thread) {
			commits = append(commits, id)
		}
	}
	return commits
}

// keepRoots keeps the root folders of attempts that came with their commits.
func (v prefetcher) keepRoots(commits []wire.ID, came wire.Objects) {
	for _, id := range commits {
		c, err := gitobj.DecodeCommit(came[id].Data)
		if root, ok := came[c.Tree]; err == nil && ok {
			v.Reader.Keep(root)
		}
	}
}

// ReadAttemptCommits returns commits of attempts with their root folders, each fetched once. A
// commit that the remote does not have is wire.ErrNotFound.
func (v *View) ReadAttemptCommits(ctx context.Context, commits ...wire.ID) (wire.Objects, error) {
	came, err := v.Reader.FetchWith(ctx, threadFilter, commits)
	if err != nil {
		return nil, err
	}
	prefetcher{v}.keepRoots(commits, came)

	ids := slices.Clone(commits)
	for _, id := range commits {
		o, _ := v.Reader.Object(id)
		c, err := gitobj.DecodeCommit(o.Data)
		if err == nil && c.Tree != wire.EmptyTree { // what is wrong with it is said by who reads it
			ids = append(ids, c.Tree)
		}
	}
	if err := v.Reader.Fetch(ctx, ids...); err != nil {
		return nil, err
	}

	objs := wire.Objects{}
	for _, id := range ids {
		o, _ := v.Reader.Object(id)
		objs.Add(o)
	}
	return objs, nil
}

// adoptObjects keeps, of what came along with a thread's folder, what a job reads: nodes, and the
// listings of the folders in it.
func (v prefetcher) adoptObjects(d *tree.Dir, objs wire.Objects) {
	for _, e := range d.Entries() {
		_, _, isNode := layout.ParseNodeFile(e.Name)
		if o, came := objs[e.ID]; came && (isNode || e.IsDir()) && !v.Reader.Has(e.ID) {
			v.Reader.Keep(o)
		}
	}
}

// fetchNodes fetches what is not there yet of a thread's records and what they refer
// to, without details, and what of cas/ they need. It is one request where nothing was
// fetched before, and where cas/ is small.
func (v prefetcher) fetchNodes(ctx context.Context, d *tree.Dir) error {
	var nodes []wire.ID
	for _, e := range d.Entries() {
		if _, _, isNode := layout.ParseNodeFile(e.Name); isNode {
			nodes = append(nodes, e.ID)
		}
	}
	if n := len(v.Reader.Missing(nodes)); n > manyNodes {
		objs, err := v.Source.Remote.Fetch(ctx, wire.FetchRequest{Wants: []wire.ID{d.Object.ID}, Depth: 1, Filter: threadFilter})
		if err != nil {
			return fmt.Errorf("read the state branch: %w", err)
		}
		v.adoptObjects(d, objs)
	}
	// Nothing is left unless the remote held something back, or brought up only a part.
	if err := v.Reader.Fetch(ctx, nodes...); err != nil {
		return err
	}
	return v.prefetchCas(ctx, d)
}

// smallCas reports whether all of cas/ is fetched without asking what is needed.
func (v prefetcher) smallCas() bool { return len(v.CasDir.Entries()) <= maxSmallCas }

// prefetchCas fetches a thread's workflow in one request, and what that refers to in
// another, where cas/ was too large to be fetched whole.
func (v prefetcher) prefetchCas(ctx context.Context, d *tree.Dir) error {
	if v.smallCas() || d == nil {
		return nil
	}
	for _, e := range d.Entries() {
		of, h, ok := layout.ParseNodeFile(e.Name)
		if !ok || of != "" {
			continue
		}
		n, err := v.Reader.Node(ctx, d.PathOf(e.Name), e.ID, h)
		if err != nil {
			return err
		}
		if !record.IsStart(n.Node.Type) {
			continue
		}
		s, err := record.ParseStart(n.Node)
		if err != nil {
			return tree.DamagedBy(d.PathOf(e.Name), err)
		}
		if err := v.Reader.Fetch(ctx, v.casFiles(map[node.Hash]bool{s.Workflow: true})...); err != nil {
			return err
		}
		return v.prefetchRefs(ctx, s.Workflow)
	}
	return nil
}

// prefetchRefs fetches, in one request, what a node of cas/ refers to. One that
// can't be read says so to who needs it.
func (v prefetcher) prefetchRefs(ctx context.Context, h node.Hash) error {
	if _, ok := v.CasDir.Find(layout.FileOf(h)); !ok {
		return nil
	}
	n, err := v.Get(ctx, h)
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	refs, err := v.Source.Schemas.Refs(v.Getter(ctx), n)
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	need := map[node.Hash]bool{}
	for _, r := range refs {
		need[r] = true
	}
	return v.Reader.Fetch(ctx, v.casFiles(need)...)
}

// Prefetch fetches nodes of cas/ in one request, so that Get needs none for any of
// them. Those that are not there are left out.
func (v *View) Prefetch(ctx context.Context, hs ...node.Hash) error {
	need := make(map[node.Hash]bool, len(hs))
	for _, h := range hs {
		need[h] = true
	}
	return v.Reader.Fetch(ctx, prefetcher{v}.casFiles(need)...)
}

// casFiles are the blobs of the needed files of cas/ (nil: of all), without those
// that every uwf knows.
func (v prefetcher) casFiles(need map[node.Hash]bool) []wire.ID {
	var ids []wire.ID
	for _, e := range v.CasDir.Entries() {
		_, h, _ := layout.ParseNodeFile(e.Name)
		if _, known := known()[h]; !known && (need == nil || need[h]) {
			ids = append(ids, e.ID)
		}
	}
	return ids
}
