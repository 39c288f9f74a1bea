package result

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/checkout"
	"github.com/united-workforce/uwf/engine/patch"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
	"github.com/united-workforce/uwf/internal/lists"
)

// planner finds out what taking a thread's work into a checkout does there. It changes nothing.
type planner struct {
	f          *app.Factory
	scratch    *checkout.Scratch
	top        string // of the checkout
	work       *work
	contents   map[wire.ID][]byte
	runFilters bool

	todo      map[string]checkout.Entry // what is to be done
	from, to  wire.ID                   // trees: as git stores what is here, and as it is to be
	merged    []string                  // files that were changed here too, at other places
	conflicts []string                  // with what is wrong with each
	already   int                       // files that are as they should be
}

// planWork plans all changes of the thread. If there are conflicts, the plan is not complete.
func planWork(ctx context.Context, p *planner) (err error) {
	p.todo = map[string]checkout.Entry{}
	for _, path := range p.scratch.Unmerged {
		p.addConflict(path, "it has a conflict that is not resolved: resolve it, and git add it")
	}
	if len(p.conflicts) > 0 {
		return nil
	}
	if p.contents, err = p.work.fetchContents(ctx); err != nil {
		return err
	}
	if err := p.compareFiles(ctx); err != nil || len(p.conflicts) > 0 || len(p.todo) == 0 {
		return err
	}
	if err := p.makeTree(ctx); err != nil || len(p.conflicts) > 0 {
		return err
	}
	var refused *app.GitError
	if err := p.tryWriting(ctx); errors.As(err, &refused) {
		p.conflicts = append(p.conflicts, strings.Split(refused.Stderr, "\n")...)
	} else if err != nil {
		return err
	}
	return nil
}

func isSubmodule(c workspace.Change) bool {
	return c.Mode == filemode.Submodule || c.OldMode == filemode.Submodule
}

func (p *planner) addConflict(path, why string) { p.conflicts = append(p.conflicts, path+": "+why) }

// compareFiles plans each file by how git stores what is here.
func (p *planner) compareFiles(ctx context.Context) error {
	paths := lists.Map(p.work.changes, func(c workspace.Change) string { return c.Path })
	staged, refused, err := p.scratch.Stage(ctx, paths, p.mayReplace)
	if err != nil {
		return err
	}
	for _, c := range p.work.changes {
		switch why := refused[c.Path]; {
		case isSubmodule(c):
			p.addConflict(c.Path, "it is a submodule: update that by hand")
		case why != "":
			p.addConflict(c.Path, why)
		default:
			if err := p.addFile(ctx, c, staged[c.Path]); err != nil {
				return err
			}
		}
	}
	return nil
}

// mayReplace says whether the thread may replace what stands at a path: a file of the thread that
// has become a folder, or a folder of which it has changed all that lies there.
func (p *planner) mayReplace(path string, folder bool) bool {
	changed := map[string]bool{}
	below, isFile := false, false
	for _, c := range p.work.changes {
		changed[c.Path] = true
		below = below || strings.HasPrefix(c.Path, path+"/")
		isFile = isFile || c.Path == path && c.Kind != workspace.Deleted
	}
	if !folder || !below {
		return !folder && changed[path]
	}
	if !isFile {
		return true
	}
	err := filepath.WalkDir(filepath.Join(p.top, filepath.FromSlash(path)), func(name string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(p.top, name)
		if err = errors.Join(err, relErr); err == nil && !d.IsDir() && !changed[filepath.ToSlash(rel)] {
			err = fs.ErrExist
		}
		return err
	})
	return err == nil
}

// addFile plans one file. If it is not as the thread found it, lines that were changed at other
// places are merged.
func (p *planner) addFile(ctx context.Context, c workspace.Change, is checkout.Entry) error {
	old, want := newEntry(c.OldMode, c.Old), newEntry(c.Mode, c.Blob)
	if c.Kind == workspace.Deleted {
		want = checkout.Entry{}
	}
	switch {
	case is == want:
		p.already++
	case is == old:
		p.todo[c.Path] = want
	case is.IsPlain() && old.IsPlain() && want.IsPlain():
		return p.mergeFile(ctx, c.Path, is, old, want)
	case is == checkout.Entry{}:
		p.addConflict(c.Path, "it is not here any more")
	case old == checkout.Entry{}:
		p.addConflict(c.Path, "another file of that name is here")
	default:
		p.addConflict(c.Path, "it was changed here")
	}
	return nil
}

// newEntry takes git's two modes of plain files for one.
func newEntry(mode filemode.FileMode, id wire.ID) checkout.Entry {
	if mode == filemode.Deprecated {
		mode = filemode.Regular
	}
	return checkout.Entry{Mode: mode, ID: id}
}

// mergeFile merges two versions of a text that have one before them, as git does.
func (p *planner) mergeFile(ctx context.Context, path string, is, old, want checkout.Entry) error {
	mine, err := p.scratch.ReadBlob(ctx, is.ID)
	if err != nil {
		return err
	}
	base, theirs := p.contents[old.ID], p.contents[want.ID]
	if patch.LooksBinary(mine) || patch.LooksBinary(base) || patch.LooksBinary(theirs) {
		p.addConflict(path, "it was changed here")
		return nil
	}
	data, clean, err := p.scratch.Merge(ctx, mine, base, theirs)
	if err != nil {
		return err
	}
	if !clean {
		p.addConflict(path, "the same lines were changed here")
		return nil
	}

	ids, err := p.scratch.AddBlobs(ctx, data)
	if err != nil {
		return err
	}
	merged := checkout.Entry{Mode: want.Mode, ID: ids[0]}
	if want.Mode == old.Mode {
		merged.Mode = is.Mode
	}
	if merged == is { // it was taken before
		p.already++
		return nil
	}
	p.merged = append(p.merged, path)
	p.todo[path] = merged
	return nil
}

// makeTree has git make the tree that is wanted, and looks for files that go through a filter.
func (p *planner) makeTree(ctx context.Context) (err error) {
	var blobs [][]byte
	for _, e := range p.todo {
		if data, known := p.contents[e.ID]; known {
			blobs = append(blobs, data)
		}
	}
	if _, err = p.scratch.AddBlobs(ctx, blobs...); err != nil {
		return err
	}
	if p.from, err = p.scratch.WriteTree(ctx); err != nil {
		return err
	}
	if p.to, err = p.scratch.EditTree(ctx, p.from.String(), p.todo); err != nil || p.runFilters {
		return err
	}
	filters, err := p.scratch.Filters(ctx, p.writtenPaths())
	for _, path := range p.writtenPaths() {
		if name := filters[path]; p.scratch.HasDriver(name) {
			p.addConflict(path, fmt.Sprintf("it is stored through filter %s: merge the branch %s, or --run-filters", name, p.work.Entry.Work.Branch))
		}
	}
	return err
}

// tryWriting has git look whether it would overwrite anything.
func (p *planner) tryWriting(ctx context.Context) error {
	return p.scratch.Try(ctx, p.from, p.to, p.changedPaths())
}

// changedPaths are the files that will be changed, sorted.
func (p *planner) changedPaths() []string {
	return p.pathsWith(func(checkout.Entry) bool { return true })
}

// writtenPaths are those of them that are there afterwards.
func (p *planner) writtenPaths() []string {
	return p.pathsWith(func(e checkout.Entry) bool { return e != checkout.Entry{} })
}

func (p *planner) pathsWith(match func(checkout.Entry) bool) (paths []string) {
	for path, e := range p.todo {
		if match(e) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// carryOut makes the folder what was planned.
func (p *planner) carryOut(ctx context.Context) error {
	if err := p.tryWriting(ctx); err != nil { // somebody may have worked here since
		return err
	}
	edits, err := p.scratch.Render(ctx, p.writtenPaths(), p.runFilters)
	if err != nil {
		return err
	}
	gone := p.pathsWith(func(e checkout.Entry) bool { return e == checkout.Entry{} })
	return changeFolder(p.top, gone, edits)
}

// changeFolder removes files and writes others, each whole or not at all. Killed in between and
// started again, apply goes on with those that are left.
func changeFolder(top string, gone []string, edits []workspace.Edit) (err error) {
	root, err := os.OpenRoot(top)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for _, path := range gone {
		if err := root.Remove(filepath.FromSlash(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for dir := filepath.Dir(filepath.FromSlash(path)); dir != "."; dir = filepath.Dir(dir) {
			if root.Remove(dir) != nil { // it is not empty
				break
			}
		}
	}
	return workspace.Apply(top, edits)
}
