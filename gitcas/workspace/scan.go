package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace/ignore"
)

// scanner walks the folder for a snapshot.
type scanner struct {
	w    *Workspace
	base *dir // the first parent's tree
	// without are the paths that stay as base has them.
	without map[string]bool
	rd      reader

	clock int64  // the file system's clock before anything was looked at
	owner uint32 // of the workspace's folder
	files int

	objects []wire.PackObject
	sent    map[wire.ID]bool // ids among objects
	old     map[wire.ID]bool // blobs of base; made when first asked
	total   int64            // bytes of new content

	changes []Change
	skipped []Skipped
	more    int // skipped, and not listed
	links   []seenLink
	targets map[wire.ID]string // of links, by blob
}

// seenLink is a symlink of the new tree.
type seenLink struct {
	path   string
	target string
	isNew  bool // base has it not, or not with this target
}

// place is a folder during the walk.
type place struct {
	r     *os.Root
	path  string
	depth int
	base  *dir // the same folder in the first parent
	seen  *dir // the same folder when it was last looked at
	rules *ignore.Rules
	// ignored: only what base has is of interest.
	ignored bool
}

func (s *scanner) scanTop(root *os.Root) (*dir, error) {
	info, err := root.Stat(".")
	if err != nil {
		return nil, ioError(s.rd.op, ".", err)
	}
	s.owner = statOf(info).owner
	// Where no file can be made no stamp can be trusted; that costs time only.
	if s.clock, _, err = fsClock(root); err != nil {
		s.clock = 0
	}
	tree, err := s.scanFolder(place{r: root, base: s.base, seen: s.w.seen, rules: ignore.New(s.w.o.ignoreSteps)})
	if err != nil {
		return nil, err
	}
	if tree == nil {
		tree = emptyDir()
	}
	return tree, s.checkLinks(tree)
}

// scanFolder returns what is in a folder as a tree, nil when that is nothing.
func (s *scanner) scanFolder(p place) (*dir, error) {
	if p.depth > maxDepth || len(p.path) > maxPath {
		return nil, s.tooDeep(p.path)
	}
	found, err := s.rd.listFolder(p.r, p.path)
	if err != nil {
		return nil, err
	}
	if !p.ignored {
		if p.rules, err = s.rd.readRules(p.r, p.path, found, p.rules); err != nil {
			return nil, err
		}
	}
	out := &dir{entries: make([]entry, 0, len(p.base.allEntries()))}
	for _, x := range pairUp(found, p.base.allEntries()) {
		e, err := s.scanPair(p, x)
		if err != nil {
			return nil, err
		}
		if e != nil {
			out.entries = append(out.entries, *e)
		}
	}
	return s.finishFolder(out, p.base)
}

func (s *scanner) tooDeep(path string) error {
	return &Error{Op: s.rd.op, Path: path, Kind: ErrLimit, Detail: fmt.Sprintf("folders lie deeper than %d levels or the path is longer than %d bytes", maxDepth, maxPath)}
}

// finishFolder gives the new tree its id, and makes its object unless base has it.
func (s *scanner) finishFolder(d *dir, base *dir) (*dir, error) {
	if len(d.entries) == 0 {
		return nil, nil
	}
	d.measureTree()
	if base != nil && sameEntries(d.entries, base.entries) {
		d.id = base.id
		return d, nil
	}
	o, err := treeObject(d.entries)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.rd.op, err)
	}
	d.id = o.ID
	var old *wire.Object
	if base != nil && len(base.entries) > 0 {
		// An old program may have written base in a form that is not ours.
		if b, err := treeObject(base.entries); err == nil && b.ID == base.id {
			old = &b
		}
	}
	s.addObject(o, old)
	return d, nil
}

func (s *scanner) addObject(o wire.Object, base *wire.Object) {
	if !s.sent[o.ID] {
		s.sent[o.ID] = true
		s.objects = append(s.objects, wire.PackObject{Object: o, Base: base})
	}
}

func sameEntries(a, b []entry) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].name != b[i].name || a[i].mode != b[i].mode || a[i].id != b[i].id {
			return false
		}
	}
	return true
}

// scanPair decides what one name of a folder becomes in the new tree.
func (s *scanner) scanPair(p place, x pair) (*entry, error) {
	if err := s.rd.ctx.Err(); err != nil {
		return nil, err
	}
	path := joinPath(p.path, x.name)
	if s.without[path] {
		if x.tree == nil {
			return nil, nil
		}
		return s.keepEntry(x.tree, path)
	}
	if x.disk == nil {
		return s.noteGone(path, x.tree)
	}
	if x.name == gitDir {
		return nil, nil
	}
	isDir := x.disk.info.IsDir()
	tracked := x.tree != nil && (x.tree.dir != nil) == isDir
	if isDir && x.tree != nil && x.tree.mode == filemode.Submodule {
		return s.keepEntry(x.tree, path)
	}
	ignored := p.ignored
	if !ignored && (!tracked || isDir) {
		var err error
		if ignored, err = p.rules.Ignored(path, isDir); err != nil {
			return nil, rulesError(s.rd.op, err)
		}
	}
	if ignored && !tracked {
		return s.noteGone(path, x.tree)
	}
	if why := refusedName(x.name); why != "" && x.tree == nil {
		s.noteSkipped(path, why)
		return nil, nil
	}
	if x.tree == nil && strings.HasPrefix(x.name, TempPrefix) {
		return nil, nil
	}
	if isDir {
		return s.scanSubfolder(p, x, path, ignored)
	}
	if x.tree != nil && x.tree.dir != nil {
		// A file took a folder's place: the folder's files are deleted.
		if _, err := s.goneAll(path, x.tree, false); err != nil {
			return nil, err
		}
		x.tree = nil
	}
	e, size, err := s.scanLeaf(p, x, path)
	if err != nil || e == nil {
		if err == nil && x.tree != nil {
			s.noteDeleted(path, x.tree)
		}
		return nil, err
	}
	s.noteChange(path, x.tree, e, size)
	return e, s.countFile(path)
}

// scanSubfolder walks a folder; a file of that name in base is deleted.
func (s *scanner) scanSubfolder(p place, x pair, path string, ignored bool) (*entry, error) {
	sub, err := openDir(p.r, s.rd.op, path, x.name, x.disk.info)
	if err != nil {
		return nil, err
	}
	in := place{r: sub, path: path, depth: p.depth + 1, seen: p.seen.findFolder(x.name), rules: p.rules, ignored: ignored}
	if x.tree != nil {
		if in.base = x.tree.dir; in.base == nil {
			s.noteDeleted(path, x.tree)
		}
	}
	d, err := s.scanFolder(in)
	if err = errors.Join(err, sub.Close()); err != nil || d == nil {
		return nil, err
	}
	return &entry{name: x.name, mode: filemode.Dir, id: d.id, dir: d}, nil
}

// scanLeaf reads what is no folder. A nil entry means that it was skipped.
func (s *scanner) scanLeaf(p place, x pair, path string) (*entry, int64, error) {
	switch t := x.disk.info.Mode().Type(); {
	case t == 0:
		return s.hashFile(p, x, path)
	case t == fs.ModeSymlink:
		return s.readLink(p, x, path)
	default:
		s.noteSkipped(path, "neither a file nor a folder: "+x.disk.info.Mode().Type().String())
		return nil, 0, nil
	}
}

// hashFile hashes a regular file, unless it is known not to have changed.
func (s *scanner) hashFile(p place, x pair, path string) (*entry, int64, error) {
	st := statOf(x.disk.info)
	if st.links > 1 && st.owner != s.owner && x.tree == nil {
		s.noteSkipped(path, "a hard link to a file of another user")
		return nil, 0, nil
	}
	if seen := p.seen.findEntry(x.name); seen != nil && seen.stamp.isKnown() && seen.stamp == st.stamp && s.baseHas(x.tree, seen.id) {
		e := *seen
		e.mode = modeOf(x.disk.info)
		return s.sameForm(&e, x.tree), st.stamp.size, nil
	}
	if x.tree == nil && x.disk.info.Size() > s.w.o.MaxFile {
		return nil, 0, s.tooLarge(path, x.disk.info.Size())
	}
	c, err := s.rd.readFile(p.r, path, x.name, x.disk.info, s.w.o.MaxFile)
	if err != nil {
		return nil, 0, err
	}
	e := &entry{name: x.name, mode: c.mode, id: c.id, stamp: c.stamp.ifSettled(s.clock)}
	if s.baseHas(x.tree, c.id) || s.sent[c.id] {
		return s.sameForm(e, x.tree), c.size, nil
	}
	if c.data == nil {
		return nil, 0, s.tooLarge(path, c.size)
	}
	if s.total += c.size; s.total > s.w.o.MaxTotal {
		return nil, 0, &Error{Op: s.rd.op, Path: path, Kind: ErrLimit, Detail: fmt.Sprintf("with this file there are more than %d bytes of new content: remove what is not needed, add it to .gitignore or raise the limit", s.w.o.MaxTotal)}
	}
	o := wire.Object{ID: c.id, Type: plumbing.BlobObject, Data: bytes.Clone(c.data)}
	var base *wire.Object
	if x.tree != nil {
		if b, ok := s.w.kept[x.tree.id]; ok {
			base = &b
		}
	}
	s.addObject(o, base)
	return e, c.size, nil
}

// sameForm keeps the mode of an unchanged file that an old program wrote as
// group-writable, so that it is no change.
func (s *scanner) sameForm(e *entry, base *entry) *entry {
	if base != nil && base.mode == filemode.Deprecated && e.mode == filemode.Regular && e.id == base.id {
		e.mode = filemode.Deprecated
	}
	return e
}

func (s *scanner) tooLarge(path string, size int64) error {
	return &Error{Op: s.rd.op, Path: path, Kind: ErrLimit, Detail: fmt.Sprintf("it has %d bytes, the limit is %d: remove it, add it to .gitignore or raise the limit", size, s.w.o.MaxFile)}
}

// baseHas reports whether base holds a blob, there or anywhere.
func (s *scanner) baseHas(at *entry, id wire.ID) bool {
	if at != nil && at.id == id {
		return true
	}
	if s.old == nil {
		s.old = make(map[wire.ID]bool, s.base.files)
		collectBlobs(s.base, s.old)
	}
	return s.old[id]
}

func collectBlobs(d *dir, into map[wire.ID]bool) {
	for i := range d.entries {
		if e := &d.entries[i]; e.dir != nil {
			collectBlobs(e.dir, into)
		} else if e.mode != filemode.Submodule {
			into[e.id] = true
		}
	}
}

// readLink takes a symlink whose target is inside by its text alone; checkLinks
// looks at what it resolves to when the whole tree is known.
func (s *scanner) readLink(p place, x pair, path string) (*entry, int64, error) {
	target, err := p.r.Readlink(x.name)
	if err != nil {
		return nil, 0, ioError(s.rd.op, path, err)
	}
	o := wire.NewObject(plumbing.BlobObject, []byte(target))
	e := &entry{name: x.name, mode: filemode.Symlink, id: o.ID}
	l := seenLink{path: path, target: target, isNew: x.tree == nil || x.tree.mode != filemode.Symlink || x.tree.id != o.ID}
	if l.isNew {
		if !linkInside(nil, folderOf(path), target, nil) {
			s.noteSkipped(path, fmt.Sprintf("a symlink that leads out of the folder or into .git: %q", clipText(target)))
			return nil, 0, nil
		}
		if err := gitobj.CheckEntry(x.name, filemode.Symlink); err != nil {
			s.noteSkipped(path, err.Error())
			return nil, 0, nil
		}
		if !s.baseHas(x.tree, o.ID) {
			s.addObject(o, nil)
		}
	}
	s.links = append(s.links, l)
	s.targets[o.ID] = target
	return e, int64(len(target)), nil
}

// folderOf returns the parts of the path of the folder that path lies in.
func folderOf(path string) []string {
	parts := strings.Split(path, "/")
	return parts[:len(parts)-1]
}

// checkLinks refuses links that lead out through other links, where that is new.
// Only an agent that tries to get out makes such ones.
func (s *scanner) checkLinks(tree *dir) error {
	if !slices.ContainsFunc(s.links, func(l seenLink) bool { return l.isNew }) {
		return nil
	}
	read := func(e *entry) (string, bool) {
		t, ok := s.targets[e.id]
		return t, ok
	}
	for _, l := range s.links {
		if err := s.rd.ctx.Err(); err != nil {
			return err
		}
		if linkInside(tree, folderOf(l.path), l.target, read) || !l.isNew && !linkInside(s.base, folderOf(l.path), l.target, read) {
			continue
		}
		return &Error{Op: s.rd.op, Path: l.path, Kind: ErrLink, Detail: fmt.Sprintf("its target %q leads out through another link: remove one of them", clipText(l.target))}
	}
	return nil
}

// clipText shortens text for a message.
func clipText(s string) string {
	const most = 200
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

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

// keepEntry takes an entry over from base as it is.
func (s *scanner) keepEntry(e *entry, path string) (*entry, error) {
	c := *e
	return &c, s.countFile(path)
}

// noteGone notes what base has and the folder hasn't. Submodules stay: a restore
// makes no folder for them, so their absence says nothing.
func (s *scanner) noteGone(path string, e *entry) (*entry, error) {
	if e == nil {
		return nil, nil
	}
	return s.goneAll(path, e, true)
}

func (s *scanner) goneAll(path string, e *entry, submodules bool) (*entry, error) {
	switch {
	case e.mode == filemode.Submodule && submodules:
		return s.keepEntry(e, path)
	case e.dir == nil:
		s.noteDeleted(path, e)
		return nil, nil
	}
	left := &dir{}
	for i := range e.dir.entries {
		c := &e.dir.entries[i]
		sub, err := s.goneAll(joinPath(path, c.name), c, submodules)
		if err != nil {
			return nil, err
		}
		if sub != nil {
			left.entries = append(left.entries, *sub)
		}
	}
	d, err := s.finishFolder(left, e.dir)
	if err != nil || d == nil {
		return nil, err
	}
	return &entry{name: e.name, mode: filemode.Dir, id: d.id, dir: d}, nil
}

func (s *scanner) noteDeleted(path string, e *entry) {
	s.changes = append(s.changes, Change{Path: path, Kind: Deleted, Blob: e.id, Old: e.id, OldMode: e.mode})
}

// noteChange notes how a file differs from base.
func (s *scanner) noteChange(path string, base, now *entry, size int64) {
	switch {
	case base == nil:
		s.changes = append(s.changes, Change{Path: path, Kind: Added, Blob: now.id, Mode: now.mode, Size: size})
	case base.id != now.id || base.mode != now.mode:
		s.changes = append(s.changes, Change{Path: path, Kind: Modified, Blob: now.id, Old: base.id, OldMode: base.mode, Mode: now.mode, Size: size})
	}
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

func (s *scanner) countFile(path string) error {
	if s.files++; s.files > s.w.o.MaxFiles {
		return &Error{Op: s.rd.op, Path: path, Kind: ErrLimit, Detail: fmt.Sprintf("with this one there are more than %d files: remove what is not needed, add it to .gitignore or raise the limit", s.w.o.MaxFiles)}
	}
	return nil
}
