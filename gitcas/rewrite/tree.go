package rewrite

import (
	"fmt"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// childOf is what an entry of a folder is. The same object may be several things. The work
// tree of an attempt is people's: text.
func childOf(k layout.Kind, e gitobj.Entry) layout.Kind {
	c := k.ChildOf(e.Name)
	if e.Mode != filemode.Regular && !e.IsDir() || c.IsFolder() != e.IsDir() || c == layout.WorkFolder {
		return layout.Foreign
	}
	return c
}

// memoKey names an object by what it is and where its hashes are looked up.
type memoKey struct {
	kind layout.Kind
	id   wire.ID
	in   *scope
}

// treeItem is a folder or file on its way.
type treeItem struct {
	kind layout.Kind
	id   wire.ID
	dir  string // the path of the folder that it is in
	name string
	in   *scope // of the nodes in it
}

func (a treeItem) memoKeyOf() memoKey {
	switch a.kind {
	case layout.Foreign, layout.TextFile, layout.PageFile:
		return memoKey{a.kind, a.id, a.in.threadScope()}
	case layout.OwnFile:
		return memoKey{layout.NodeFile, a.id, a.in}
	}
	return memoKey{a.kind, a.id, a.in}
}

// joinPath is joined only where it is needed: most objects are looked up and no more.
func (a treeItem) joinPath() string {
	if a.dir == "" {
		return a.name
	}
	return a.dir + "/" + a.name
}

func (r *run) newChild(a treeItem, path string, e gitobj.Entry) treeItem {
	c := treeItem{kind: childOf(a.kind, e), id: e.ID, dir: path, name: e.Name, in: a.in}
	scopes := &r.nodes.scopes
	switch {
	case c.kind == layout.CasFolder:
		c.in = scopes.shared
	case c.kind == layout.ThreadFolder && a.kind == layout.ThreadsFolder:
		c.in = scopes.ofThread(e.Name)
	case c.kind == layout.NodeFolder:
		c.in = scopes.ofRecord(nodeID{a.in, node.Hash(e.Name)})
	case c.kind == layout.OwnFile:
		of, _, _ := layout.ParseNodeFile(e.Name)
		c.in = scopes.ofRecord(nodeID{a.in, of})
	}
	return c
}

// maxTreeDepth bounds how deep folders nest.
const maxTreeDepth = 200

// gatherNodes finds the nodes of a tree that were not rewritten yet.
func (r *run) gatherNodes(a treeItem, depth int) error {
	if _, done := r.memo[a.memoKeyOf()]; done || a.kind == layout.Foreign {
		return nil
	}
	entries, err := r.readEntries(a, depth)
	if err != nil {
		return err
	}
	path := a.joinPath()
	var folders []treeItem
	var ids []wire.ID
	for _, e := range entries {
		c := r.newChild(a, path, e)
		if _, done := r.memo[c.memoKeyOf()]; done || c.kind == layout.Foreign {
			continue
		}
		ids = append(ids, c.id)
		switch {
		case e.IsDir():
			folders = append(folders, c)
			if c.kind == layout.StepsFolder { // there may be many, each with few files
				ids = append(ids, r.idsBelow(c.id)...)
			}
		case c.kind == layout.NodeFile, c.kind == layout.OwnFile:
			r.found = append(r.found, c)
		}
	}
	if a.kind != layout.RootFolder && a.kind != layout.AttemptFolder {
		if err := r.readOlder(ids); err != nil {
			return err
		}
	}
	for _, c := range folders {
		if err := r.gatherNodes(c, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// idsBelow are the objects in a folder, and in the folders in it that the present chunk has.
func (r *run) idsBelow(id wire.ID) (ids []wire.ID) {
	entries, _ := gitobj.DecodeTree(r.objs[id].Data)
	for _, e := range entries {
		if ids = append(ids, e.ID); e.IsDir() {
			ids = append(ids, r.idsBelow(e.ID)...)
		}
	}
	return ids
}

// readNodes reads the nodes that were gathered.
func (r *run) readNodes() error {
	for _, c := range r.found {
		o, err := r.readObject(c.id, plumbing.BlobObject)
		if err != nil {
			return err
		}
		_, h, _ := layout.ParseNodeFile(c.name)
		r.nodes.addNode(nodeID{c.in, h}, o, r.prefix+c.joinPath())
	}
	r.found = nil
	return nil
}

func (r *run) readEntries(a treeItem, depth int) ([]gitobj.Entry, error) {
	if depth > maxTreeDepth {
		return nil, fmt.Errorf("%w: folders are nested deeper than %d", ErrUnreadable, maxTreeDepth)
	}
	o, err := r.readObject(a.id, plumbing.TreeObject)
	if err != nil {
		return nil, err
	}
	entries, err := gitobj.DecodeTree(o.Data)
	if err != nil {
		return nil, fmt.Errorf("%w: tree %s: %w", ErrUnreadable, a.id, err)
	}
	return entries, nil
}

// rewrittenItem is one entry of a folder: what it was, and what became of it.
type rewrittenItem struct {
	at       treeItem
	was, now gitobj.Entry
}

// rebuildFolder writes a folder anew where something in it changed.
func (r *run) rebuildFolder(a treeItem, depth int) (wire.ID, error) {
	key := a.memoKeyOf()
	if id, done := r.memo[key]; done {
		return id, nil
	}
	if r.isAlsoPeoples(a) {
		return a.id, nil
	}
	parts, err := r.rewriteParts(a, depth)
	if err != nil {
		return wire.ZeroID, err
	}
	id := a.id
	if slices.ContainsFunc(parts, func(p rewrittenItem) bool { return p.was != p.now }) {
		if id, err = r.writeFolder(a, parts, depth); err != nil {
			return wire.ZeroID, err
		}
	}
	r.memo[key] = id
	return id, nil
}

// rewriteParts are the entries of a folder, rewritten.
func (r *run) rewriteParts(a treeItem, depth int) ([]rewrittenItem, error) {
	entries, err := r.readEntries(a, depth)
	if err != nil {
		return nil, err
	}
	out, path := make([]rewrittenItem, len(entries)), a.joinPath()
	for i, e := range entries {
		c := r.newChild(a, path, e)
		out[i] = rewrittenItem{at: c, was: e}
		if out[i].now, err = r.rewriteEntry(a, c, e, depth); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// writeFolder writes a folder of these parts, in the place of a.
func (r *run) writeFolder(a treeItem, parts []rewrittenItem, depth int) (wire.ID, error) {
	entries, err := r.uniqueNames(parts, depth)
	if err != nil {
		return wire.ZeroID, err
	}
	data, err := gitobj.EncodeTree(entries)
	if err != nil {
		return wire.ZeroID, fmt.Errorf("%w: tree %s: %w", ErrUnreadable, a.id, err)
	}
	old, err := r.readObject(a.id, plumbing.TreeObject)
	if err != nil {
		return wire.ZeroID, err
	}
	return r.w.putObject(plumbing.TreeObject, data, &old), nil
}

// rewriteEntry is what becomes of one entry of a folder.
func (r *run) rewriteEntry(a, c treeItem, e gitobj.Entry, depth int) (gitobj.Entry, error) {
	var err error
	switch {
	case e.Mode == filemode.Submodule:
	case e.IsDir():
		e.ID, err = r.rebuildFolder(c, depth+1)
	default:
		e.ID, err = r.rewriteFile(c)
	}
	switch {
	case err != nil:
		return e, err
	case c.kind == layout.NodeFile:
		_, h, _ := layout.ParseNodeFile(e.Name)
		if to, ok := r.nodes.names[renamed{h, e.ID}]; ok {
			e.Name = layout.FileOf(to)
		}
		r.noteFirst(c, e)
	case c.kind == layout.OwnFile:
		_, h, _ := layout.ParseNodeFile(e.Name)
		if to, ok := r.nodes.names[renamed{h, e.ID}]; ok {
			h = to
		}
		e.Name = layout.OwnFileOf(r.nodes.folderNow(c.in), h)
		r.noteFirst(c, e)
	case c.kind == layout.NodeFolder:
		e.Name = string(r.nodes.folderNow(c.in))
	case c.kind == layout.FormerFile:
		if _, flow := layout.ParseFormerName(e.Name); flow != "" {
			e.Name = layout.FormerName(r.nodes.sharedNow(flow))
		}
	case c.kind == layout.PageFile: // its role is a name
		r.textAt(c.joinPath()).noteName("(its name)", e.Name)
	case c.kind == layout.Foreign:
		e.Name = r.textAt(a.joinPath()).cleanField("(its name)", e.Name)
	}
	return e, nil
}

// rewriteFile is what becomes of a file.
func (r *run) rewriteFile(c treeItem) (wire.ID, error) {
	key := c.memoKeyOf()
	if id, done := r.memo[key]; done {
		return id, nil
	}
	if r.isAlsoPeoples(c) {
		return c.id, nil
	}
	o, err := r.readObject(c.id, plumbing.BlobObject)
	if err != nil {
		return wire.ZeroID, err
	}
	data, err := r.textAt(c.joinPath()).rewriteContent(c, o.Data)
	if err != nil {
		return wire.ZeroID, fmt.Errorf("%s: %w", c.joinPath(), err)
	}
	id := c.id
	if string(data) != string(o.Data) {
		id = r.w.putObject(plumbing.BlobObject, data, &o)
	}
	r.memo[key] = id
	return id, nil
}

// isAlsoPeoples reports whether something in an attempt's folder is also in the commits
// that the work was based on: then it stays.
func (r *run) isAlsoPeoples(a treeItem) bool {
	_, here := r.objs[a.id]
	return r.partial && a.kind == layout.Foreign && !here
}

func (r textRewriter) rewriteContent(c treeItem, data []byte) ([]byte, error) {
	switch c.kind {
	case layout.ThreadsFile:
		return r.threadsFile(data)
	case layout.RegistryFile:
		return r.registryFile(data)
	case layout.DayFile:
		return r.dayFile(data), nil
	case layout.DayPage:
		return r.dayPage(data), nil
	case layout.VersionFile:
		return r.versionFile(data), nil
	case layout.FormerFile:
		if list, err := statefile.ParseFormer(data); err == nil {
			return r.formerFile(list)
		}
	case layout.NodeFile, layout.OwnFile:
		// A file with a node's name that is none, or another one: as it is, but
		// for the text.
		if _, n := r.cleanText(string(data), ""); n == 0 {
			return data, nil
		}
		return r.rewritePage(data, ""), nil
	}
	return r.rewritePage(data, c.in.thread), nil
}

// canJoin reports whether two of a kind that got the same name become one. Other files
// are numbered.
func canJoin(k layout.Kind) bool {
	return k == layout.NodeFile || k == layout.OwnFile || k == layout.NodeFolder
}

// renamedEntry is what an entry became.
type renamedEntry struct {
	name string
	kind layout.Kind
}

// uniqueNames joins what became the same, and numbers other files that got the same name.
func (r *run) uniqueNames(parts []rewrittenItem, depth int) ([]gitobj.Entry, error) {
	var groups [][]rewrittenItem
	index := make(map[renamedEntry]int, len(parts))
	for _, p := range parts {
		b := renamedEntry{p.now.Name, p.at.kind}
		if i, twice := index[b]; twice && canJoin(b.kind) {
			groups[i] = append(groups[i], p)
			continue
		}
		index[b] = len(groups)
		groups = append(groups, []rewrittenItem{p})
	}
	out, taken := make([]gitobj.Entry, 0, len(groups)), make(map[string]bool, len(groups))
	for _, g := range groups {
		e := g[0].now
		if len(g) > 1 {
			var err error
			if e.ID, err = r.joinParts(g, depth); err != nil {
				return nil, err
			}
		}
		for n, name := 2, e.Name; taken[e.Name]; n++ {
			e.Name = fmt.Sprintf("%s-%d", name, n)
		}
		taken[e.Name] = true
		out = append(out, e)
	}
	return out, nil
}

// joinParts makes one of several that became the same. Of two nodes that hash to the same now
// the one that was there first stays, so that no commit rewrites it. Of two folders all goes
// into one.
func (r *run) joinParts(group []rewrittenItem, depth int) (wire.ID, error) {
	if first := group[0]; !first.now.IsDir() {
		return r.firsts[r.filePlaceOf(first.at, first.now.Name)], nil
	}
	var all []rewrittenItem
	for _, p := range group {
		parts, err := r.rewriteParts(p.at, depth+1)
		if err != nil {
			return wire.ZeroID, err
		}
		all = append(all, parts...)
	}
	return r.writeFolder(group[0].at, all, depth+1)
}

// filePlace is where the file of a node stands now.
type filePlace struct {
	in   *scope    // of the thread, or what all share
	of   node.Hash // the record that refers to it, as it is called now
	kind layout.Kind
	name string
}

func (r *run) filePlaceOf(c treeItem, name string) filePlace {
	s := filePlace{in: c.in.threadScope(), kind: c.kind, name: name}
	if c.in.up != nil {
		s.of = r.nodes.folderNow(c.in)
	}
	return s
}

// noteFirst notes the first file that stands somewhere: commits are rewritten oldest first.
func (r *run) noteFirst(c treeItem, e gitobj.Entry) {
	if s := r.filePlaceOf(c, e.Name); r.firsts[s].IsZero() {
		r.firsts[s] = e.ID
	}
}

// textAt rewrites text of the present commit.
func (r *run) textAt(path string) textRewriter { return textRewriter{r, r.prefix + path} }
