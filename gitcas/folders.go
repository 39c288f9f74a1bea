package gitcas

import (
	"context"
	"fmt"
	"maps"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// maxSmallCas is how many files of cas/ are fetched without asking which of them
// are needed: that saves a round trip.
const maxSmallCas = 64

// threadFilter sends a thread's folder with its records and what they refer to, but of
// the details only that there are some, see Place.folder. The pages for people come
// along unread: they are smaller than the round trip that leaving them out would cost.
// nodesFilter sends as much of its folder nodes/, ownFilter of a folder in that.
const (
	threadFilter = "tree:3"
	nodesFilter  = "tree:2"
	ownFilter    = "tree:1"
)

// longThread is from how many steps on a folder is listed before anything of it is
// fetched. The round trip costs less than the nodes and pages of so many steps,
// and who only wants to know where the thread stands needs none of them.
const longThread = 64

// long reports whether a thread is so long that its nodes were not loaded with its
// folder. The entry may lie: then one request too many is made, or too much comes.
func (v *View) long(id ThreadID) bool {
	e, _ := v.Entry(id)
	used, known := e.Known()
	return known && used.Steps >= longThread
}

// readThreads fetches the folders of threads with all but the details, and what is
// needed of cas/. Of long threads it fetches the listings.
func (v *View) readThreads(ctx context.Context, ids []ThreadID) error {
	var short, long []ThreadID
	for _, id := range ids {
		if _, loaded := v.folders[id]; loaded {
			continue
		}
		_, there := v.threadDirs.get(string(id))
		_, listed := v.threads.Get(id)
		switch {
		case listed && !there:
			return content(threadPath(id), "threads.yaml lists the thread, but its folder is missing")
		case there && v.long(id):
			long = append(long, id)
		case there:
			short = append(short, id)
		}
	}
	if err := v.readFolders(ctx, long, onlyWanted); err != nil {
		return err
	}
	if err := v.readFolders(ctx, short, threadFilter); err != nil {
		return err
	}
	for _, id := range short {
		// Nothing is left to fetch unless the remote held something back.
		if err := v.fetchNodes(ctx, v.folders[id]); err != nil {
			return err
		}
	}
	return nil
}

// readFolders fetches folders, with what the filter lets come along, and cas/ where
// it is small.
func (v *View) readFolders(ctx context.Context, ids []ThreadID, filter string) error {
	if len(ids) == 0 {
		return nil
	}
	var wants []wire.ID
	for _, id := range ids {
		wants = append(wants, v.threadDirs.id(string(id)))
	}
	if v.smallCas() {
		wants = append(wants, v.casFiles(nil)...)
	}
	objs, err := v.fetchWith(ctx, filter, wants)
	if err != nil {
		return err
	}
	folders := maps.Clone(v.folders)
	for _, id := range ids {
		d, err := v.dir(ctx, threadPath(id), v.threadDirs.id(string(id)), checkThread)
		if err != nil {
			return err
		}
		folders[id] = d
		if err := v.adopt(ctx, d, objs); err != nil {
			return err
		}
	}
	v.folders = folders
	return nil
}

// adopt keeps, of what came along with a thread's folder, or a folder in it, what a job
// reads: nodes, and the folders that they are in.
func (v *View) adopt(ctx context.Context, d *dir, objs wire.Objects) error {
	for _, e := range d.list() {
		o, came := objs[e.ID]
		_, isNode := nodeOf(e.Name)
		if came && isNode && !v.cache.has(e.ID) {
			v.cache.add(wire.Objects{e.ID: o})
		}
		if !e.IsDir() || e.Name == detailDir {
			continue
		}
		if came && !v.cache.has(e.ID) {
			v.cache.add(wire.Objects{e.ID: o})
		}
		if !v.cache.has(e.ID) {
			continue
		}
		sub, err := v.sub(ctx, d, e.Name, checkBelow(e.Name))
		if err != nil {
			return err
		}
		if err := v.adopt(ctx, sub, objs); err != nil {
			return err
		}
	}
	return nil
}

// checkBelow is the check of a folder in a thread's, by its name.
func checkBelow(name string) func(gitobj.Entry) error {
	if name == nodesDir {
		return checkNodes
	}
	return checkOwn
}

// fetchNodes fetches what is not there yet of a thread's records and what they refer
// to, without details, and what of cas/ they need. It is one request where nothing was
// fetched before, and where cas/ is small.
func (v *View) fetchNodes(ctx context.Context, d *dir) error {
	var records []wire.ID
	for _, e := range d.list() {
		if _, ok := nodeOf(e.Name); ok || e.Name == nodesDir {
			records = append(records, e.ID)
		}
	}
	if err := v.bring(ctx, d, nodesFilter, records); err != nil {
		return err
	}
	// Nothing is left unless the remote held something back, or brought up only a part.
	nodes, err := v.sub(ctx, d, nodesDir, checkNodes)
	if err != nil {
		return err
	}
	var folders, files []wire.ID
	for _, e := range nodes.list() {
		folders = append(folders, e.ID)
	}
	if err := v.bring(ctx, d, ownFilter, folders); err != nil {
		return err
	}
	for _, e := range nodes.list() {
		own, err := v.sub(ctx, nodes, e.Name, checkOwn)
		if err != nil {
			return err
		}
		for _, e := range own.list() {
			if _, ok := nodeOf(e.Name); ok {
				files = append(files, e.ID)
			}
		}
	}
	if err := v.fetch(ctx, files...); err != nil {
		return err
	}
	return v.prefetchCas(ctx, d)
}

// bring fetches objects of a thread's folder d, with what comes along.
func (v *View) bring(ctx context.Context, d *dir, filter string, ids []wire.ID) error {
	objs, err := v.fetchWith(ctx, filter, ids)
	if err != nil || len(objs) == 0 {
		return err
	}
	return v.adopt(ctx, d, objs)
}

// smallCas reports whether all of cas/ is fetched without asking what is needed.
func (v *View) smallCas() bool { return len(v.cas.list()) <= maxSmallCas }

// prefetchCas fetches a thread's workflow in one request, and what that refers to in
// another, where cas/ was too large to be fetched whole.
func (v *View) prefetchCas(ctx context.Context, d *dir) error {
	if v.smallCas() || d == nil {
		return nil
	}
	for _, e := range d.entries {
		h, ok := nodeOf(e.Name)
		if !ok {
			continue
		}
		n, err := v.decoded(d.at(e.Name), e.ID, h)
		if err != nil {
			return err
		}
		if !record.IsStart(n.Type) {
			continue
		}
		s, err := record.ParseStart(n)
		if err != nil {
			return contentErr(d.at(e.Name), err)
		}
		if err := v.fetch(ctx, v.casFiles(map[node.Hash]bool{s.Workflow: true})...); err != nil {
			return err
		}
		return v.prefetchRefs(ctx, s.Workflow)
	}
	return nil
}

// prefetchRefs fetches, in one request, what a node of cas/ refers to. One that
// can't be read says so to who needs it.
func (v *View) prefetchRefs(ctx context.Context, h node.Hash) error {
	if _, ok := v.cas.get(nodeFile(h)); !ok {
		return nil
	}
	n, err := v.Get(ctx, h)
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	refs, err := v.s.schemas.Refs(v.Getter(ctx), n)
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	need := map[node.Hash]bool{}
	for _, r := range refs {
		need[r] = true
	}
	return v.fetch(ctx, v.casFiles(need)...)
}

// Prefetch fetches nodes of cas/ in one request, so that Get needs none for any of
// them. Those that are not there are left out.
func (v *View) Prefetch(ctx context.Context, hs ...node.Hash) error {
	need := make(map[node.Hash]bool, len(hs))
	for _, h := range hs {
		need[h] = true
	}
	return v.fetch(ctx, v.casFiles(need)...)
}

// decoded is a node that was fetched, checked by hash but not by schema.
func (v *View) decoded(path string, id wire.ID, h node.Hash) (node.Node, error) {
	n, err := v.decode(path, id, h, func() (wire.Object, error) {
		o, err := v.cachedObject(path, id)
		if err == nil && (len(o.Data) > MaxNodeFile || o.Type != plumbing.BlobObject) {
			err = content(path, fmt.Sprintf("a %s of %d bytes; %d are allowed", o.Type, len(o.Data), MaxNodeFile))
		}
		return o, err
	})
	return n.node, err
}

// casFiles are the blobs of the needed files of cas/ (nil: of all), without those
// that every uwf knows.
func (v *View) casFiles(need map[node.Hash]bool) []wire.ID {
	var ids []wire.ID
	for _, e := range v.cas.list() {
		h, _ := nodeOf(e.Name)
		if _, known := known()[h]; !known && (need == nil || need[h]) {
			ids = append(ids, e.ID)
		}
	}
	return ids
}
