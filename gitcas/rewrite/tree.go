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
	"github.com/united-workforce/uwf/internal/lazyregexp"
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
	detailFolder
	nodeFolder // node files alone
	historyFolder
	yearFolder
	attemptRoot
	nodeFile
	threadsYAML
	registryYAML
	dayFile
	versionFile
	textFile // README.md, error.txt: text under a name of uwf's own
	pageFile // NN-<role>.md
)

// pageName is what the pages of steps are named.
var pageName = lazyregexp.New(`^[0-9]{2,6}-[0-9A-Za-z._-]{1,100}\.md$`)

// childOf is the kind of an entry of a folder.
func childOf(k kind, e gitobj.Entry) kind {
	isDir := e.IsDir()
	_, isNode := nodeName(e.Name)
	switch {
	case e.Mode != filemode.Regular && !isDir:
		return foreign
	case k == root:
		return childOfRoot(e.Name, isDir)
	case k == threadsFolder && isDir && statefile.ThreadID(e.Name).Valid():
		return threadFolder
	case (k == threadFolder || k == attemptRoot) && isDir && e.Name == "detail":
		return detailFolder
	case k == detailFolder && isDir && node.Hash(e.Name).Valid(),
		k == attemptRoot && isDir && (e.Name == "nodes" || e.Name == "cas"):
		return nodeFolder
	case k == historyFolder && isDir && statefile.IsYear(e.Name):
		return yearFolder
	case k == yearFolder && !isDir && statefile.IsDay(e.Name):
		return dayFile
	case k == attemptRoot && !isDir && e.Name == "error.txt":
		return textFile
	case k == threadFolder && !isDir && pageName.MatchString(e.Name):
		return pageFile
	case !isDir && isNode && (k == casFolder || k == threadFolder || k == detailFolder || k == nodeFolder):
		return nodeFile
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

// memoKey names an object by what it is.
type memoKey struct {
	kind kind
	id   wire.ID
}

// at is a folder or file on its way.
type at struct {
	kind   kind
	id     wire.ID
	dir    string // the path of the folder that it is in
	name   string
	thread string
}

// path is joined only where it is needed: most objects are looked up and no more.
func (a at) path() string {
	if a.dir == "" {
		return a.name
	}
	return a.dir + "/" + a.name
}

func (a at) child(path string, e gitobj.Entry) at {
	c := at{kind: childOf(a.kind, e), id: e.ID, dir: path, name: e.Name, thread: a.thread}
	if c.kind == threadFolder {
		c.thread = e.Name
	}
	return c
}

// maxTreeDepth bounds how deep folders nest.
const maxTreeDepth = 200

// gather finds the nodes of a tree that were not rewritten yet.
func (r *run) gather(a at, depth int) error {
	if _, done := r.memo[memoKey{a.kind, a.id}]; done || a.kind == foreign {
		return nil
	}
	entries, err := r.entries(a, depth)
	if err != nil {
		return err
	}
	path := a.path()
	for _, e := range entries {
		c := a.child(path, e)
		switch {
		case e.IsDir():
			err = r.gather(c, depth+1)
		case c.kind == nodeFile:
			err = r.gatherNode(c, e.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *run) gatherNode(c at, name string) error {
	if _, done := r.memo[memoKey{nodeFile, c.id}]; done {
		return nil
	}
	h, _ := nodeName(name)
	o, err := r.object(c.id, plumbing.BlobObject)
	if err != nil {
		return err
	}
	r.nodes.add(h, o, r.place(c.path()), c.thread)
	return nil
}

func (r *run) entries(a at, depth int) ([]gitobj.Entry, error) {
	if depth > maxTreeDepth {
		return nil, fmt.Errorf("%w: folders are nested deeper than %d", ErrUnreadable, maxTreeDepth)
	}
	o, err := r.object(a.id, plumbing.TreeObject)
	if err != nil {
		return nil, err
	}
	entries, err := gitobj.DecodeTree(o.Data)
	if err != nil {
		return nil, fmt.Errorf("%w: tree %s: %w", ErrUnreadable, a.id, err)
	}
	return entries, nil
}

// rebuild writes a folder anew where something in it changed.
func (r *run) rebuild(a at, depth int) (wire.ID, error) {
	key := memoKey{a.kind, a.id}
	if id, done := r.memo[key]; done {
		return id, nil
	}
	if r.peoples(a) {
		return a.id, nil
	}
	entries, err := r.entries(a, depth)
	if err != nil {
		return wire.ZeroID, err
	}
	out := make([]gitobj.Entry, len(entries))
	changed, path := false, a.path()
	for i, e := range entries {
		if out[i], err = r.entry(a, path, e, depth); err != nil {
			return wire.ZeroID, err
		}
		changed = changed || out[i] != e
	}
	id := a.id
	if changed {
		var picked map[string]wire.ID
		if out, picked, err = r.unique(a, entries, out); err != nil {
			return wire.ZeroID, err
		}
		data, err := gitobj.EncodeTree(out)
		if err != nil {
			return wire.ZeroID, fmt.Errorf("%w: tree %s: %w", ErrUnreadable, a.id, err)
		}
		old, err := r.object(a.id, plumbing.TreeObject)
		if err != nil {
			return wire.ZeroID, err
		}
		id = r.w.put(plumbing.TreeObject, data, &old)
		if len(picked) > 0 {
			r.picked[id] = picked
		}
	}
	r.memo[key] = id
	return id, nil
}

// entry is what becomes of one entry of a folder.
func (r *run) entry(a at, path string, e gitobj.Entry, depth int) (gitobj.Entry, error) {
	c := a.child(path, e)
	var err error
	switch {
	case e.Mode == filemode.Submodule:
	case e.IsDir():
		e.ID, err = r.rebuild(c, depth+1)
	default:
		e.ID, err = r.file(c)
	}
	switch {
	case err != nil:
		return e, err
	case c.kind == nodeFile:
		if h, _ := nodeName(e.Name); r.nodes.now(h) != h {
			e.Name = string(r.nodes.now(h)) + ".json"
		}
	case c.kind == nodeFolder && a.kind == detailFolder:
		e.Name = string(r.nodes.now(node.Hash(e.Name)))
	case c.kind == pageFile: // its role is a name
		fields{r, r.place(c.path())}.name("(its name)", e.Name)
	case c.kind == foreign:
		e.Name = r.fileName(e.Name, r.place(path))
	}
	return e, nil
}

// file is what becomes of a file.
func (r *run) file(c at) (wire.ID, error) {
	key := memoKey{c.kind, c.id}
	if id, done := r.memo[key]; done {
		return id, nil
	}
	if r.peoples(c) {
		return c.id, nil
	}
	o, err := r.object(c.id, plumbing.BlobObject)
	if err != nil {
		return wire.ZeroID, err
	}
	data, err := r.content(c, o.Data)
	if err != nil {
		return wire.ZeroID, fmt.Errorf("%s: %w", c.path(), err)
	}
	id := c.id
	if string(data) != string(o.Data) {
		id = r.w.put(plumbing.BlobObject, data, &o)
	}
	r.memo[key] = id
	return id, nil
}

// peoples reports whether something in an attempt's folder is also in the commits
// that the work was based on: then it stays.
func (r *run) peoples(a at) bool {
	_, here := r.objs[a.id]
	return r.partial && a.kind == foreign && !here
}

func (r *run) content(c at, data []byte) ([]byte, error) {
	place := r.place(c.path())
	switch c.kind {
	case threadsYAML:
		return r.threadsFile(data, place)
	case registryYAML:
		return r.registryFile(data, place)
	case dayFile:
		return r.dayFile(data, place), nil
	case versionFile:
		return r.versionFile(data, place), nil
	case nodeFile:
		// A file with a node's name that is none, or another one: as it is, but
		// for the text.
		if out, n := r.clean(string(data), nil); n > 0 {
			r.report.found(place, "")
			return []byte(out), nil
		}
		return data, nil
	}
	return r.page(data, place, c.thread), nil
}

// unique joins files that became the same: of two nodes that hash to the same now
// the one that was there first stays, so that no commit rewrites it. Other files
// that got the same name are numbered. It returns which file each joined node has.
func (r *run) unique(a at, before, entries []gitobj.Entry) ([]gitobj.Entry, map[string]wire.ID, error) {
	byName := make(map[string]int, len(entries))
	out := make([]gitobj.Entry, 0, len(entries))
	same := map[string][]int{} // nodes that became one
	for i, e := range entries {
		j, twice := byName[e.Name]
		if twice && childOf(a.kind, e) == nodeFile {
			if len(same[e.Name]) == 0 {
				same[e.Name] = []int{slices.IndexFunc(entries, func(x gitobj.Entry) bool { return x == out[j] })}
			}
			same[e.Name] = append(same[e.Name], i)
			continue
		}
		for n := 2; twice; n++ {
			e.Name = fmt.Sprintf("%s-%d", entries[i].Name, n)
			_, twice = byName[e.Name]
		}
		byName[e.Name] = len(out)
		out = append(out, e)
	}
	if len(same) == 0 {
		return out, nil, nil
	}
	earlier, picked, err := r.earlier(a)
	if err != nil {
		return nil, nil, err
	}
	now := map[string]wire.ID{}
	for name, list := range same {
		pick := entries[list[0]]
		for _, i := range list {
			if earlier[before[i].Name] {
				pick = entries[i]
				break
			}
		}
		if id, ok := picked[name]; ok {
			pick.ID = id
		}
		out[byName[name]], now[name] = pick, pick.ID
	}
	return out, now, nil
}

// earlier are the names in a folder as the commit before had it, and which files
// its joined nodes got.
func (r *run) earlier(a at) (names map[string]bool, picked map[string]wire.ID, err error) {
	if r.prev.IsZero() || r.partial {
		return nil, nil, nil
	}
	here := at{kind: root, id: r.prev}
	for part := range strings.SplitSeq(a.path(), "/") {
		entries, err := r.entries(here, 0)
		if err != nil {
			return nil, nil, err
		}
		i := slices.IndexFunc(entries, func(e gitobj.Entry) bool { return e.Name == part && e.IsDir() })
		if i < 0 {
			return nil, nil, nil
		}
		here = here.child(here.path(), entries[i])
	}
	entries, err := r.entries(here, 0)
	if err != nil {
		return nil, nil, err
	}
	names = make(map[string]bool, len(entries))
	for _, e := range entries {
		names[e.Name] = true
	}
	return names, r.picked[r.memo[memoKey{here.kind, here.id}]], nil
}

// place is where something stands in the present commit.
func (r *run) place(path string) Place {
	return Place{Commit: r.commit, Path: r.prefix + path}
}
