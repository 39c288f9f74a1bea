package rewrite

import (
	"fmt"
	"slices"
	"strings"

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
		r.nodes.addNode(nodeID{c.in, h}, o, r.placeOf(c.joinPath()))
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
	old      bool // it was in the commit before; only known where that matters
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
		var last map[string]wire.ID
		if anyJoined(parts) {
			if last, err = r.noteEarlier(a, parts); err != nil {
				return wire.ZeroID, err
			}
		}
		if id, err = r.writeFolder(a, parts, last, depth); err != nil {
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
func (r *run) writeFolder(a at, parts []part, last map[string]wire.ID, depth int) (wire.ID, error) {
	entries, picked, err := r.uniqueNames(parts, last, depth)
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
	id := r.w.putObject(plumbing.TreeObject, data, &old)
	if len(picked) > 0 {
		r.picked[id] = picked
	}
	return id, nil
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
	case c.kind == ownFile:
		_, h, _ := statefile.OwnName(e.Name)
		if to, ok := r.nodes.names[renamed{h, e.ID}]; ok {
			h = to
		}
		e.Name = statefile.OwnFile(r.nodes.folderNow(c.in), h)
	case c.kind == nodeFolder:
		e.Name = string(r.nodes.folderNow(c.in))
	case c.kind == pageFile: // its role is a name
		fields{r, r.placeOf(c.joinPath())}.noteName("(its name)", e.Name)
	case c.kind == foreign:
		e.Name = textRewriter{r}.fileName(e.Name, r.placeOf(a.joinPath()))
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
	data, err := textRewriter{r}.rewriteContent(c, o.Data)
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
	place := r.placeOf(c.joinPath())
	switch c.kind {
	case threadsYAML:
		return r.threadsFile(data, place)
	case registryYAML:
		return r.registryFile(data, place)
	case dayFile:
		return r.dayFile(data, place), nil
	case dayPage:
		return r.dayPage(data, place), nil
	case versionFile:
		return r.versionFile(data, place), nil
	case nodeFile, ownFile:
		// A file with a node's name that is none, or another one: as it is, but
		// for the text.
		if out, n := r.cleanText(string(data), ""); n > 0 {
			r.report.noteFound(place, "")
			return []byte(out), nil
		}
		return data, nil
	}
	return r.rewritePage(data, place, c.in.thread), nil
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

// anyJoined reports whether parts of a folder became one.
func anyJoined(parts []part) bool {
	seen := make(map[become]bool, len(parts))
	for _, p := range parts {
		b := become{p.now.Name, p.at.kind}
		if seen[b] && canJoin(b.kind) {
			return true
		}
		seen[b] = true
	}
	return false
}

// uniqueNames joins what became the same, and numbers other files that got the same name. It
// returns what each joined name stands for; last is the same of the commit before.
func (r *run) uniqueNames(parts []part, last map[string]wire.ID, depth int) ([]gitobj.Entry, map[string]wire.ID, error) {
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
	out, picked := make([]gitobj.Entry, 0, len(groups)), map[string]wire.ID{}
	taken := make(map[string]bool, len(groups))
	for _, g := range groups {
		e := g[0].now
		if len(g) > 1 {
			var err error
			if e, err = r.joinParts(g, last[e.Name], depth); err != nil {
				return nil, nil, err
			}
			picked[e.Name] = e.ID
		}
		for n, name := 2, e.Name; taken[e.Name]; n++ {
			e.Name = fmt.Sprintf("%s-%d", name, n)
		}
		taken[e.Name] = true
		out = append(out, e)
	}
	return out, picked, nil
}

// joinParts makes one of several that became the same. Of two nodes that hash to the same now
// the one that was there first stays, so that no commit rewrites it; last is what stood
// there in the commit before, if it was joined then. Of two folders all goes into one.
func (r *run) joinParts(group []part, last wire.ID, depth int) (gitobj.Entry, error) {
	slices.SortStableFunc(group, func(a, b part) int {
		switch {
		case a.old == b.old:
			return 0
		case a.old:
			return -1
		}
		return 1
	})
	e := group[0].now
	if !e.IsDir() {
		if !last.IsZero() {
			e.ID = last
		}
		return e, nil
	}
	var all []part // what was there first comes first
	for _, p := range group {
		parts, err := r.rewriteParts(p.at, depth+1)
		if err != nil {
			return e, err
		}
		all = append(all, parts...)
	}
	var err error
	e.ID, err = r.writeFolder(group[0].at, all, r.picked[last], depth+1)
	return e, err
}

// noteEarlier notes which parts of a folder the commit before had, and returns what its
// joined names stand for.
func (r *run) noteEarlier(a at, parts []part) (map[string]wire.ID, error) {
	if r.prev.IsZero() || r.partial {
		return nil, nil
	}
	here := at{kind: root, id: r.prev, in: r.nodes.scopes.shared}
	for part := range strings.SplitSeq(a.joinPath(), "/") {
		entries, err := r.readEntries(here, 0)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(entries, func(e gitobj.Entry) bool { return e.Name == part && e.IsDir() })
		if i < 0 {
			return nil, nil
		}
		here = r.childOf(here, here.joinPath(), entries[i])
	}
	entries, err := r.readEntries(here, 0)
	if err != nil {
		return nil, err
	}
	names := make(map[string]bool, len(entries))
	for _, e := range entries {
		names[e.Name] = true
	}
	for i := range parts {
		parts[i].old = names[parts[i].was.Name]
	}
	return r.picked[r.memo[here.memoKeyOf()]], nil
}

// placeOf is where something stands in the present commit.
func (r *run) placeOf(path string) Place {
	return Place{Commit: r.commit, Path: r.prefix + path}
}
