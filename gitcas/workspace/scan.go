package workspace

import (
	"bytes"
	"cmp"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace/convert"
	"github.com/united-workforce/uwf/gitcas/workspace/ignore"
	"github.com/united-workforce/uwf/gitcas/workspace/memtree"
	"github.com/united-workforce/uwf/gitcas/workspace/rooted"
	"github.com/united-workforce/uwf/gitcas/workspace/stamps"
	"github.com/united-workforce/uwf/internal/text"
)

// scanner walks the folder for a snapshot.
type scanner struct {
	most limits
	base *memtree.Dir // the first parent's tree
	// without are the paths that stay as base has them.
	without map[string]bool
	rd      reader
	// fetch gets blobs of the first parent.
	fetch func(ids map[wire.ID]bool) (wire.Objects, error)

	// crlf says of blobs of the first parent whether they have CRLF; unread are those of which it
	// is not known yet.
	crlf   map[wire.ID]bool
	unread map[wire.ID]bool

	clock int64  // the file system's clock before anything was looked at
	owner uint32 // of the workspace's folder
	own   int    // another user whose files are the folder's own; negative: nobody

	made    memtree.Objects
	old     map[wire.ID]bool // contents of base; made when first asked
	total   int64            // bytes of new content
	skipped []Skipped
	raw     []Skipped
	more    int                // skipped, and not listed
	targets map[wire.ID]string // of links, by blob
	out     map[string]string  // base's links that lead out
	stay    map[string]string  // those of them that the new tree has
}

func (s *scanner) scanTop(root *os.Root, seen *memtree.Dir) (*memtree.Dir, error) {
	info, err := root.Stat(".")
	if err != nil {
		return nil, rooted.IOError(s.rd.op, ".", err)
	}
	s.owner = stamps.StatOf(info).Owner
	// Where no file can be made no stamp can be trusted; that costs time only.
	if s.clock, _, err = stamps.Clock(root, clockFile); err != nil {
		s.clock = 0
	}
	tree, err := s.scanFolder(place{r: root, tree: s.base, seen: seen, rules: ignore.New(s.most.ignoreSteps)})
	if err != nil {
		return nil, err
	}
	if tree == nil {
		tree = memtree.EmptyDir()
	}
	return tree, s.checkLinks(tree)
}

// scanFolder returns what is in a folder as a tree, nil when that is nothing.
func (s *scanner) scanFolder(p place) (*memtree.Dir, error) {
	found, err := s.rd.listFolder(p.r, p.path)
	if err != nil {
		return nil, err
	}
	if !p.ignored {
		if p.rules, err = s.rd.readIgnore(p, found); err != nil {
			return nil, err
		}
	}
	if p.attributes, err = s.rd.readAttributes(p, found, s.most); err != nil {
		return nil, err
	}
	out := &memtree.Dir{Entries: make([]memtree.Entry, 0, len(p.tree.AllEntries()))}
	for _, x := range pairUp(found, p.tree.AllEntries()) {
		if err := s.rd.ctx.Err(); err != nil {
			return nil, err
		}
		e := s.findUnchanged(p, x)
		if e == nil {
			if e, err = s.scanPair(p, x); err != nil {
				return nil, err
			}
		}
		if e != nil {
			out.Entries = append(out.Entries, *e)
		}
	}
	d, err := s.made.AddTree(out, p.tree)
	if err != nil || d == nil {
		return nil, err
	}
	return d, d.CheckSize(s.rd.op, cmp.Or(p.path, "."), s.most.files)
}

// findUnchanged returns the entry of a tracked file that looks as it did when it had the base's content: of
// most files nothing else has to be asked. Of all others it returns nil.
func (s *scanner) findUnchanged(p place, x pair) *memtree.Entry {
	if x.disk == nil || x.tree == nil || !memtree.IsFile(x.tree.Mode) || len(s.without) > 0 || x.name == gitDir {
		return nil
	}
	seen := p.seen.FindEntry(x.name)
	if seen == nil || seen.ID != x.tree.ID || !x.disk.info.Mode().IsRegular() || !seen.LooksLike(stamps.StatOf(x.disk.info)) {
		return nil
	}
	e := memtree.Entry{Name: x.name, Mode: modeOf(x.disk.info), ID: seen.ID, Size: x.disk.info.Size(), Stamp: seen.Stamp}
	return sameForm(&e, x.tree)
}

// scanPair decides what one name of a folder becomes in the new tree.
func (s *scanner) scanPair(p place, x pair) (*memtree.Entry, error) {
	path := memtree.JoinPath(p.path, x.name)
	switch {
	case s.without[path]:
		return x.tree, nil
	case x.disk == nil:
		return s.keepAbsent(path, x.tree)
	case x.name == gitDir:
		return nil, nil
	}
	isDir := x.disk.info.IsDir()
	if isDir && x.tree.IsSubmodule() {
		return x.tree, nil
	}
	ignored, tracked := p.ignored, x.tree != nil && (x.tree.Dir != nil) == isDir
	if !tracked || isDir {
		var err error
		if ignored, err = s.rd.isIgnored(p, path, isDir); err != nil {
			return nil, err
		}
	}
	if ignored && !tracked {
		return s.keepAbsent(path, x.tree)
	}
	if x.tree == nil {
		if why := refusedName(x.name); why != "" {
			s.noteSkipped(path, why)
			return nil, nil
		}
		if strings.HasPrefix(x.name, TempPrefix) {
			return nil, nil
		}
	}
	if !isDir {
		if e, err := s.scanLeaf(p, x, path); e != nil || err != nil {
			return e, err
		}
		return s.keepAbsent(path, x.tree)
	}
	var d *memtree.Dir
	err := s.rd.visitFolder(p, x, x.tree.AsFolder(), ignored, func(in place) (err error) {
		d, err = s.scanFolder(in)
		return err
	})
	return memtree.EntryOf(x.name, d), err
}

// scanLeaf reads what is no folder. A nil entry means that it was skipped.
func (s *scanner) scanLeaf(p place, x pair, path string) (*memtree.Entry, error) {
	base := x.tree.AsFile()
	if sub := x.tree.FirstSubmodule(path); sub != "" {
		s.noteSkipped(path, "it stands in the place of the submodule "+sub)
		return nil, nil
	}
	switch t := x.disk.info.Mode().Type(); t {
	case 0:
		return s.hashFile(p, x, base, path)
	case fs.ModeSymlink:
		return s.readLink(p, x, base, path)
	default:
		s.noteSkipped(path, "neither a file nor a folder: "+t.String())
		return nil, nil
	}
}

// hashFile hashes a regular file, unless it is known not to have changed.
func (s *scanner) hashFile(p place, x pair, base *memtree.Entry, path string) (*memtree.Entry, error) {
	st := stamps.StatOf(x.disk.info)
	if st.Links > 1 && st.Owner != s.owner && int(st.Owner) != s.own && base == nil {
		s.noteSkipped(path, "a hard link to a file of another user")
		return nil, nil
	}
	e := &memtree.Entry{Name: x.name, Mode: modeOf(x.disk.info), Size: x.disk.info.Size()}
	if seen := p.seen.FindEntry(x.name); seen.LooksLike(st) && s.baseHas(base, seen.ID) {
		e.ID, e.Stamp = seen.ID, seen.Stamp
		return sameForm(e, base), nil
	}
	most := sizes{hash: s.most.file, keep: s.most.file}
	if e.Size > s.most.file {
		if !s.canBeBase(base, p.seen.FindEntry(x.name), e.Size) {
			return nil, s.tooLarge(path, e.Size)
		}
		most.hash = e.Size
	}
	c, err := s.rd.readFile(p.r, path, x.name, x.disk.info, most)
	if err != nil {
		return nil, err
	}
	e.Mode, e.ID, e.Size, e.Stamp = c.mode, c.id, c.size, c.stamp.IfSettled(s.clock)
	if base != nil && base.ID == c.id { // whatever the attributes say
		return sameForm(e, base), nil
	}
	if c.size > s.most.file {
		if s.baseHas(base, c.id) {
			return sameForm(e, base), nil
		}
		return nil, s.tooLarge(path, c.size)
	}
	if err := s.convertFile(p, e, base, path, &c); err != nil {
		return nil, err
	}
	if s.baseHas(base, c.id) || s.made.Had[c.id] {
		return sameForm(e, base), nil
	}
	if s.total += c.size; s.total > s.most.total {
		return nil, rooted.NewError(ErrLimit, s.rd.op, path, "with this file there are more than %d bytes of new content: remove what is not needed, or add it to .gitignore", s.most.total)
	}
	s.made.AddObject(wire.Object{ID: c.id, Type: plumbing.BlobObject, Data: bytes.Clone(c.data)}, nil)
	return e, nil
}

// canBeBase reports whether a file that is over the limit can be the base's, as far as its size
// says. If the size of the base's is not known, it is fetched: the file may be a hole that takes
// hours to read.
func (s *scanner) canBeBase(base, seen *memtree.Entry, size int64) bool {
	if base == nil || !memtree.IsFile(base.Mode) {
		return false
	}
	if seen != nil && seen.ID == base.ID && seen.Size > 0 {
		return seen.Size == size
	}
	blobs, err := s.fetch(map[wire.ID]bool{base.ID: true})
	return err == nil && int64(len(blobs[base.ID].Data)) == size
}

// convertFile gives a changed file the form that git stores. What can't be converted stays as
// it is, and is listed.
func (s *scanner) convertFile(p place, e, base *memtree.Entry, path string, c *content) error {
	form, err := s.rd.formOf(p.attributes, path)
	if err != nil || form == (convert.Form{}) {
		return err
	}
	if err := checkFilter(s.rd.op, path, form, c.data); err != nil {
		return err
	}
	hadCRLF := false
	data, err := form.ToGit(c.data, func() bool { hadCRLF = true; return false })
	if hadCRLF && memtree.BlobID(data) != base.IDOf() && s.baseHasCRLF(e, base) {
		data, err = form.ToGit(c.data, func() bool { return true })
	}
	if err != nil && len(s.raw) < maxSkipped {
		s.raw = append(s.raw, Skipped{Path: path, Why: err.Error()})
	}
	c.id, c.data, c.size = memtree.BlobID(data), data, int64(len(data))
	e.ID, e.Size = c.id, c.size
	return nil
}

// baseHasCRLF reports whether the base's file has CRLF. If that is not known yet, it has the
// blob fetched for the next scan.
func (s *scanner) baseHasCRLF(e, base *memtree.Entry) bool {
	if base == nil || !memtree.IsFile(base.Mode) {
		return false
	}
	has, known := s.crlf[base.ID]
	if !known {
		s.unread[base.ID] = true
		e.Stamp = stamps.Stamp{} // its id is not the last word
	}
	return has
}

// readUnread fetches the blobs that a scan wanted to know more of.
func (s *scanner) readUnread() error {
	ids := slices.Collect(maps.Keys(s.unread))
	return inBatches(len(ids), func(from, to int) (int64, error) {
		wanted := make(map[wire.ID]bool)
		for _, id := range ids[from:to] {
			wanted[id] = true
		}
		blobs, err := s.fetch(wanted)
		for id, o := range blobs {
			s.crlf[id] = convert.HasCRLF(o.Data)
		}
		return blobs.Size(), err
	})
}

// sameForm keeps the mode of an unchanged file that an old program wrote as
// group-writable, so that it is no change.
func sameForm(e, base *memtree.Entry) *memtree.Entry {
	if base != nil && base.Mode == filemode.Deprecated && e.Mode == filemode.Regular && e.ID == base.ID {
		e.Mode = filemode.Deprecated
	}
	return e
}

func (s *scanner) tooLarge(path string, size int64) error {
	return rooted.NewError(ErrLimit, s.rd.op, path, "it has %d bytes, the limit is %d: remove it, or add it to .gitignore", size, s.most.file)
}

// baseHas reports whether base holds a blob, there or anywhere.
func (s *scanner) baseHas(at *memtree.Entry, id wire.ID) bool {
	if at != nil && at.ID == id {
		return true
	}
	if s.old == nil {
		s.old = s.base.ListContents()
	}
	return s.old[id]
}

// readLink takes a symlink whose target is inside by its text alone; checkLinks
// looks at what it resolves to when the whole tree is known.
func (s *scanner) readLink(p place, x pair, base *memtree.Entry, path string) (*memtree.Entry, error) {
	c, err := s.rd.readContent(p.r, path, x.name, x.disk.info, unboundedSizes(maxTarget))
	if err != nil {
		return nil, err
	}
	target := string(c.data)
	e := &memtree.Entry{Name: x.name, Mode: c.mode, ID: c.id, Size: c.size}
	if !memtree.SameEntry(e, base) {
		refused := CheckLink(path, target)
		if refused == nil {
			refused = gitobj.CheckEntry(x.name, filemode.Symlink)
		}
		if refused != nil {
			s.noteSkipped(path, refused.Error())
			return nil, nil
		}
		if !s.baseHas(base, c.id) {
			s.made.AddObject(wire.NewObject(plumbing.BlobObject, c.data), nil)
		}
	}
	s.targets[c.id] = target
	return e, nil
}

// checkLinks refuses links that lead out through other links, and don't in base. Only an agent
// that tries to get out makes such ones.
func (s *scanner) checkLinks(tree *memtree.Dir) error {
	var err error
	if s.stay, err = linksOut(s.rd.ctx, tree, s.targets); err != nil {
		return err
	}
	return refuseLinks(s.rd.op, "its target %q leads out through another link: remove one of them", s.stay, s.out)
}

// clipText shortens text for a message.
func clipText(s string) string { return text.Cut(s, 200) }

// refusedName says why a new thing of that name is left out; empty if it isn't.
func refusedName(name string) string {
	if err := gitobj.CheckName(name); err != nil {
		return err.Error()
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "a name with control characters"
	}
	return ""
}

// keepAbsent is what stays of something that base has and the folder hasn't: a restore makes no
// submodules, and no links that lead out, so their absence says nothing.
func (s *scanner) keepAbsent(path string, e *memtree.Entry) (*memtree.Entry, error) {
	switch {
	case e == nil || e.IsSubmodule():
		return e, nil
	case e.Dir == nil:
		if _, out := s.out[path]; out {
			return e, nil
		}
		return nil, nil
	}
	left := &memtree.Dir{}
	for i := range e.Dir.Entries {
		c := &e.Dir.Entries[i]
		kept, err := s.keepAbsent(memtree.JoinPath(path, c.Name), c)
		if err != nil {
			return nil, err
		}
		if kept != nil {
			left.Entries = append(left.Entries, *kept)
		}
	}
	d, err := s.made.AddTree(left, e.Dir)
	return memtree.EntryOf(e.Name, d), err
}

// maxSkipped is how much of what was left out is listed: each is told to a person.
const maxSkipped = 100

func (s *scanner) noteSkipped(path, why string) {
	if len(s.skipped) == maxSkipped {
		s.more++
		return
	}
	s.skipped = append(s.skipped, Skipped{Path: path, Why: why})
}
