package rewrite

import (
	"fmt"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// kind is what a file or folder is, by where it stands. The same object may be
// several things.
type kind uint8

const (
	foreign kind = iota // not uwf's: text
	root
	casFolder
	threadsFolder
	threadFolder
	detailFolder // a folder for each record of a thread
	nodeFolder   // a record's details: node files alone
	pagesFolder
	historyFolder
	yearFolder
	attemptRoot
	nodeFile
	ownFile // what a record refers to: a node file with the record's hash in its name
	threadsYAML
	registryYAML
	dayFile
	dayPage
	versionFile
	textFile // README.md, error.txt: text under a name of uwf's own
	pageFile // index.md, NN-<role>.md
)

// childOf is the kind of an entry of a folder.
func childOf(k kind, e gitobj.Entry) kind {
	isDir := e.IsDir()
	_, isNode := statefile.NodeName(e.Name)
	_, _, isOwn := statefile.OwnName(e.Name)
	switch {
	case e.Mode != filemode.Regular && !isDir:
		return foreign
	case k == root:
		return childOfRoot(e.Name, isDir)
	case k == threadsFolder && isDir && statefile.ThreadID(e.Name).Valid():
		return threadFolder
	case k == attemptRoot:
		return childOfAttempt(e.Name, isDir)
	case k == threadFolder && isDir && e.Name == "detail":
		return detailFolder
	case k == detailFolder && isDir && node.Hash(e.Name).Valid():
		return nodeFolder
	case k == threadFolder && isDir && e.Name == "pages":
		return pagesFolder
	case k == threadFolder && !isDir && isOwn:
		return ownFile
	case k == historyFolder && isDir && statefile.IsYear(e.Name):
		return yearFolder
	case k == yearFolder && !isDir && statefile.IsDay(e.Name):
		return dayFile
	case k == yearFolder && !isDir && statefile.IsDayPage(e.Name):
		return dayPage
	case k == pagesFolder && !isDir && statefile.IsPage(e.Name):
		return pageFile
	case !isDir && isNode && (k == casFolder || k == threadFolder || k == nodeFolder):
		return nodeFile
	}
	return foreign
}

// childOfAttempt: an attempt has what would go to cas/ and to the thread's folder.
func childOfAttempt(name string, isDir bool) kind {
	switch {
	case isDir && name == "cas":
		return casFolder
	case isDir && name == "thread":
		return threadFolder
	case !isDir && name == "error.txt":
		return textFile
	}
	return foreign
}

func childOfRoot(name string, isDir bool) kind {
	switch {
	case isDir && name == "cas":
		return casFolder
	case isDir && name == "threads":
		return threadsFolder
	case isDir && name == "history":
		return historyFolder
	case !isDir && name == "threads.yaml":
		return threadsYAML
	case !isDir && name == "registry.yaml":
		return registryYAML
	case !isDir && name == "VERSION":
		return versionFile
	case !isDir && name == "README.md":
		return textFile
	}
	return foreign
}

// memoKey names an object by what it is and where its hashes are looked up.
type memoKey struct {
	kind kind
	id   wire.ID
	in   *scope
}

// at is a folder or file on its way.
type at struct {
	kind kind
	id   wire.ID
	dir  string // the path of the folder that it is in
	name string
	in   *scope // of the nodes in it
}

func (a at) memoKeyOf() memoKey {
	switch a.kind {
	case foreign, textFile, pageFile:
		return memoKey{a.kind, a.id, a.in.threadScope()}
	case ownFile:
		return memoKey{nodeFile, a.id, a.in}
	}
	return memoKey{a.kind, a.id, a.in}
}

// joinPath is joined only where it is needed: most objects are looked up and no more.
func (a at) joinPath() string {
	if a.dir == "" {
		return a.name
	}
	return a.dir + "/" + a.name
}

func (r *run) childOf(a at, path string, e gitobj.Entry) at {
	c := at{kind: childOf(a.kind, e), id: e.ID, dir: path, name: e.Name, in: a.in}
	scopes := &r.nodes.scopes
	switch {
	case c.kind == casFolder:
		c.in = scopes.shared
	case c.kind == threadFolder && a.kind == threadsFolder:
		c.in = scopes.ofThread(e.Name)
	case c.kind == nodeFolder:
		c.in = scopes.ofRecord(nodeID{a.in, node.Hash(e.Name)})
	case c.kind == ownFile:
		of, _, _ := statefile.OwnName(e.Name)
		c.in = scopes.ofRecord(nodeID{a.in, of})
	}
	return c
}

// maxTreeDepth bounds how deep folders nest.
const maxTreeDepth = 200

// gatherNodes finds the nodes of a tree that were not rewritten yet.
func (r *run) gatherNodes(a at, depth int) error {
	if _, done := r.memo[a.memoKeyOf()]; done || a.kind == foreign {
		return nil
	}
	entries, err := r.readEntries(a, depth)
	if err != nil {
		return err
	}
	path := a.joinPath()
	var folders []at
	var ids []wire.ID
	for _, e := range entries {
		c := r.childOf(a, path, e)
		if _, done := r.memo[c.memoKeyOf()]; done || c.kind == foreign {
			continue
		}
		ids = append(ids, c.id)
		switch {
		case e.IsDir():
			folders = append(folders, c)
		case c.kind == nodeFile, c.kind == ownFile:
			r.found = append(r.found, c)
		}
	}
	if a.kind != root && a.kind != attemptRoot {
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

// readNodes reads the nodes that were gathered.
func (r *run) readNodes() error {
	for _, c := range r.found {
		o, err := r.readObject(c.id, plumbing.BlobObject)
		if err != nil {
			return err
		}
		h, _ := statefile.NodeName(c.name)
		if c.kind == ownFile {
			_, h, _ = statefile.OwnName(c.name)
		}
		r.nodes.addNode(nodeID{c.in, h}, o, r.prefix+c.joinPath())
	}
	r.found = nil
	return nil
}

func (r *run) readEntries(a at, depth int) ([]gitobj.Entry, error) {
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

// part is one entry of a folder: what it was, and what became of it.
type part struct {
	at       at
	was, now gitobj.Entry
}

// rebuildFolder writes a folder anew where something in it changed.
func (r *run) rebuildFolder(a at, depth int) (wire.ID, error) {
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
	if slices.ContainsFunc(parts, func(p part) bool { return p.was != p.now }) {
		if id, err = r.writeFolder(a, parts, depth); err != nil {
			return wire.ZeroID, err
		}
	}
	r.memo[key] = id
	return id, nil
}

// rewriteParts are the entries of a folder, rewritten.
func (r *run) rewriteParts(a at, depth int) ([]part, error) {
	entries, err := r.readEntries(a, depth)
	if err != nil {
		return nil, err
	}
	out, path := make([]part, len(entries)), a.joinPath()
	for i, e := range entries {
		c := r.childOf(a, path, e)
		out[i] = part{at: c, was: e}
		if out[i].now, err = r.rewriteEntry(a, c, e, depth); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// writeFolder writes a folder of these parts, in the place of a.
func (r *run) writeFolder(a at, parts []part, depth int) (wire.ID, error) {
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
func (r *run) rewriteEntry(a, c at, e gitobj.Entry, depth int) (gitobj.Entry, error) {
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
	case c.kind == nodeFile:
		h, _ := statefile.NodeName(e.Name)
		if to, ok := r.nodes.names[renamed{h, e.ID}]; ok {
			e.Name = statefile.NodeFile(to)
		}
		r.noteFirst(c, e)
	case c.kind == ownFile:
		_, h, _ := statefile.OwnName(e.Name)
		if to, ok := r.nodes.names[renamed{h, e.ID}]; ok {
			h = to
		}
		e.Name = statefile.OwnFile(r.nodes.folderNow(c.in), h)
		r.noteFirst(c, e)
	case c.kind == nodeFolder:
		e.Name = string(r.nodes.folderNow(c.in))
	case c.kind == pageFile: // its role is a name
		r.textAt(c.joinPath()).noteName("(its name)", e.Name)
	case c.kind == foreign:
		e.Name = r.textAt(a.joinPath()).cleanField("(its name)", e.Name)
	}
	return e, nil
}

// rewriteFile is what becomes of a file.
func (r *run) rewriteFile(c at) (wire.ID, error) {
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
func (r *run) isAlsoPeoples(a at) bool {
	_, here := r.objs[a.id]
	return r.partial && a.kind == foreign && !here
}

func (r textRewriter) rewriteContent(c at, data []byte) ([]byte, error) {
	switch c.kind {
	case threadsYAML:
		return r.threadsFile(data)
	case registryYAML:
		return r.registryFile(data)
	case dayFile:
		return r.dayFile(data), nil
	case dayPage:
		return r.dayPage(data), nil
	case versionFile: // it holds no text of anybody's
		r.noteName("", string(data))
		return data, nil
	case nodeFile, ownFile:
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
func canJoin(k kind) bool {
	return k == nodeFile || k == ownFile || k == nodeFolder
}

// become is what an entry became.
type become struct {
	name string
	kind kind
}

// uniqueNames joins what became the same, and numbers other files that got the same name.
func (r *run) uniqueNames(parts []part, depth int) ([]gitobj.Entry, error) {
	var groups [][]part
	index := make(map[become]int, len(parts))
	for _, p := range parts {
		b := become{p.now.Name, p.at.kind}
		if i, twice := index[b]; twice && canJoin(b.kind) {
			groups[i] = append(groups[i], p)
			continue
		}
		index[b] = len(groups)
		groups = append(groups, []part{p})
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
func (r *run) joinParts(group []part, depth int) (wire.ID, error) {
	if first := group[0]; !first.now.IsDir() {
		return r.firsts[r.slotOf(first.at, first.now.Name)], nil
	}
	var all []part
	for _, p := range group {
		parts, err := r.rewriteParts(p.at, depth+1)
		if err != nil {
			return wire.ZeroID, err
		}
		all = append(all, parts...)
	}
	return r.writeFolder(group[0].at, all, depth+1)
}

// slot is where the file of a node stands now.
type slot struct {
	in   *scope    // of the thread, or what all share
	of   node.Hash // the record that refers to it, as it is called now
	kind kind
	name string
}

func (r *run) slotOf(c at, name string) slot {
	s := slot{in: c.in.threadScope(), kind: c.kind, name: name}
	if c.in.up != nil {
		s.of = r.nodes.folderNow(c.in)
	}
	return s
}

// noteFirst notes the first file that stands somewhere: commits are rewritten oldest first.
func (r *run) noteFirst(c at, e gitobj.Entry) {
	if s := r.slotOf(c, e.Name); r.firsts[s].IsZero() {
		r.firsts[s] = e.ID
	}
}

// textAt rewrites text of the present commit.
func (r *run) textAt(path string) textRewriter { return textRewriter{r, r.prefix + path} }
