package workspace

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace/convert"
	"github.com/united-workforce/uwf/gitcas/workspace/ignore"
	"github.com/united-workforce/uwf/gitcas/workspace/memtree"
	"github.com/united-workforce/uwf/gitcas/workspace/rooted"
	"github.com/united-workforce/uwf/gitcas/workspace/stamps"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/text"
)

// LeftOut is something of a commit that is not in the folder as other files are, and that every
// snapshot keeps as the commit has it.
type LeftOut struct {
	Path string      `json:"path"`
	Kind LeftOutKind `json:"kind"`
	Why  string      `json:"why,omitempty"` // of a submodule that could not be filled
}

// LeftOutKind says what is left out.
type LeftOutKind string

// What is left out.
const (
	LeftSubmodule LeftOutKind = "submodule" // its files are not there
	LeftPointer   LeftOutKind = "pointer"   // a pointer of Git LFS stands for its content
	LeftLink      LeftOutKind = "link"      // it leads out of the folder or into .git, and is not there
)

// ListLeftOut returns what the last Restore left out, in the order of kinds and paths.
func (w *Workspace) ListLeftOut() []LeftOut {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.leftOut
}

// maxNamed is how many paths of a kind DescribeLeftOut names.
const maxNamed = 3

// DescribeLeftOut says on one line what is left out; empty: nothing is.
func DescribeLeftOut(all []LeftOut) string {
	var parts []string
	for _, k := range []struct {
		kind             LeftOutKind
		part, noun, rest string
	}{{LeftSubmodule, "", "submodule", ""}, {LeftPointer, "the content of ", "LFS file", ""}, {LeftLink, "", "link", " out of the repository"}} {
		of := slices.DeleteFunc(slices.Clone(all), func(l LeftOut) bool { return l.Kind != k.kind })
		named := lists.Map(of[:min(len(of), maxNamed)], describeLeft)
		if len(of) > maxNamed {
			named = append(named, "…")
		}
		if len(of) > 0 {
			parts = append(parts, fmt.Sprintf("%s%s%s (%s)", k.part, text.Plural(len(of), k.noun), k.rest, strings.Join(named, ", ")))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "not in the agents' folder: " + strings.Join(parts, "; ")
}

func describeLeft(l LeftOut) string {
	if l.Why == "" {
		return text.OneLine(l.Path)
	}
	return text.OneLine(l.Path + ": " + l.Why)
}

// Submodule is a commit of another repository that a commit names.
type Submodule struct {
	Path   string
	Commit wire.ID
}

// ListSubmodules lists the submodules of a commit by their paths.
func (w *Workspace) ListSubmodules(ctx context.Context, commit wire.ID) (subs []Submodule, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	tree, err := w.treeOf(ctx, commit)
	if err != nil {
		return nil, fmt.Errorf("list the submodules of %s: %w", commit, err)
	}
	for path, e := range tree.FilesThat((*memtree.Entry).IsSubmodule) {
		subs = append(subs, Submodule{path, e.ID})
	}
	return subs, nil
}

// NoteFilled says what became of submodules whose files the caller puts into the folder. The next
// Restore leaves out those that failed, and all that are in neither list.
func (w *Workspace) NoteFilled(filled []string, failed []LeftOut) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.filled, w.unfilled = filled, failed
}

// noteLeftOut notes what the folder doesn't have of a commit, and what is in its submodules' folders.
func (r *restorer) noteLeftOut(tree *memtree.Dir) (err error) {
	r.w.leftOut = nil
	for path := range tree.FilesThat((*memtree.Entry).IsSubmodule) {
		failed := slices.ContainsFunc(r.w.unfilled, func(l LeftOut) bool { return l.Path == path })
		if !failed && !slices.Contains(r.w.filled, path) {
			r.w.leftOut = append(r.w.leftOut, LeftOut{Path: path, Kind: LeftSubmodule})
		}
	}
	r.w.leftOut = append(r.w.leftOut, r.w.unfilled...)
	if err := r.notePointers(tree); err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(r.out)) {
		r.w.leftOut = append(r.w.leftOut, LeftOut{Path: path, Kind: LeftLink})
	}
	r.w.inside, err = r.rd.filesInside(r.root, tree, r.w.most)
	return err
}

// notePointers notes the files of which the folder has pointers of Git LFS.
func (r *restorer) notePointers(tree *memtree.Dir) error {
	filters := false // to ask for the form of each file takes long
	for _, e := range tree.FilesThat(isAttributes) {
		filters = filters || strings.Contains(r.texts[e.ID], convert.LFS)
	}
	if !filters {
		return nil
	}

	cur := rooted.Cursor{Root: r.root, Op: r.rd.op}
	for path := range tree.FilesThat(memtree.IsRegular) {
		form, err := r.forms.formOf(path)
		if err != nil {
			return errors.Join(err, cur.CloseAll())
		}
		if form.Filter == convert.LFS && r.readsPointer(&cur, path) {
			r.w.leftOut = append(r.w.leftOut, LeftOut{Path: path, Kind: LeftPointer})
		}
	}
	return cur.CloseAll()
}

// readsPointer reports whether there is a pointer of Git LFS at a path.
func (r *restorer) readsPointer(cur *rooted.Cursor, path string) bool {
	folder, name := rooted.SplitPath(path)
	in, err := cur.OpenDir(folder, false)
	if err != nil {
		return false
	}
	info, err := in.Lstat(name)
	if err != nil || info.Size() > convert.MaxPointer {
		return false
	}
	c, err := r.rd.readContent(in, path, name, info, sizes{hash: convert.MaxPointer, keep: convert.MaxPointer})
	return err == nil && convert.IsPointer(c.data)
}

// filesInside lists what is in the folders of a tree's submodules, but for what their .gitignore
// files ignore, as a map of paths for each.
func (rd *reader) filesInside(root *os.Root, tree *memtree.Dir, most limits) (map[string]map[string]stamps.Stamp, error) {
	all := map[string]map[string]stamps.Stamp{}
	cur := rooted.Cursor{Root: root, Op: rd.op}
	for path := range tree.FilesThat((*memtree.Entry).IsSubmodule) {
		found := map[string]stamps.Stamp{}
		all[path] = found
		in, err := cur.OpenDir(path, false)
		if err != nil { // it isn't there, or is no folder
			continue
		}
		if err := rd.listInside(place{r: in, path: path, rules: ignore.New(most.ignoreSteps)}, found); err != nil {
			return nil, errors.Join(err, cur.CloseAll())
		}
	}
	return all, cur.CloseAll()
}

func (rd *reader) listInside(p place, into map[string]stamps.Stamp) error {
	found, err := rd.listFolder(p.r, p.path)
	if err == nil {
		p.rules, err = rd.readIgnore(p, found)
	}
	if err != nil {
		return err
	}
	for _, d := range found {
		path := memtree.JoinPath(p.path, d.name)
		ignored, err := rd.isIgnored(p, path, d.info.IsDir())
		switch {
		case err != nil:
			return err
		case ignored || d.name == gitDir:
		case d.info.IsDir():
			err = rd.visitFolder(p, pair{name: d.name, disk: &d}, nil, false, func(in place) error { return rd.listInside(in, into) })
		default:
			stamp := stamps.StatOf(d.info).Stamp
			stamp.CTime = 0 // which changes when the folder is lent to the agents' user
			into[path] = stamp
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// noteInside notes what was changed in the folders of base's submodules since a restore found
// these files there.
func (s *scanner) noteInside(root *os.Root, before map[string]map[string]stamps.Stamp) error {
	if len(before) == 0 {
		return nil
	}
	now, err := s.rd.filesInside(root, s.base, s.most)
	if err != nil {
		return err
	}
	for sub, was := range before {
		is, there := now[sub]
		changed := slices.Concat(slices.Collect(maps.Keys(is)), slices.Collect(maps.Keys(was)))
		changed = slices.DeleteFunc(changed, func(path string) bool { return is[path] == was[path] })
		slices.Sort(changed)
		switch changed = slices.Compact(changed); {
		case !there || len(changed) == 0:
		case len(changed) == 1:
			s.noteSkipped(changed[0], "it lies in the submodule "+sub)
		default:
			s.noteSkipped(changed[0], fmt.Sprintf("it lies in the submodule %s, like %s", sub, text.Plural(len(changed)-1, "more change")))
		}
	}
	return nil
}
