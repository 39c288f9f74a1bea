package result

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/engine/patch"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
)

// maxHere is the largest file of the checkout that is compared, in bytes.
const maxHere = 64 << 20

// plan is what taking a thread's work into a folder does there.
type plan struct {
	edits     []workspace.Edit
	removals  []string
	merged    []string // files that were changed here too, at other places
	conflicts []string // with what is wrong with each
	already   int      // files that are as they should be
}

// here is a file as it is in the folder.
type here struct {
	mode filemode.FileMode // filemode.Empty: it is not there
	data []byte
}

// planWork finds out what is to be done, and changes nothing.
func planWork(ctx context.Context, f *app.Factory, root *os.Root, w *work) (*plan, error) {
	contents, err := w.fetchContents(ctx)
	if err != nil {
		return nil, err
	}
	p := &plan{}
	for _, c := range w.changes {
		if err := p.addFile(ctx, f, root, c, contents); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func isSubmodule(c workspace.Change) bool {
	return c.Mode == filemode.Submodule || c.OldMode == filemode.Submodule
}

// addFile plans one file. Where it is not as the thread found it, lines that were changed at
// other places are merged.
func (p *plan) addFile(ctx context.Context, f *app.Factory, root *os.Root, c workspace.Change, contents map[wire.ID][]byte) error {
	clash := func(why string) { p.conflicts = append(p.conflicts, c.Path+": "+why) }
	if isSubmodule(c) {
		clash("it is a submodule: update that by hand")
		return nil
	}
	old, want := here{c.OldMode, contents[c.Old]}, here{c.Mode, contents[c.Blob]}
	if c.Kind == workspace.Deleted {
		want = here{}
	}
	is, err := readHere(root, c.Path)
	switch {
	case err != nil:
		clash(err.Error())
	case is.isSame(want):
		p.already++
	case is.isSame(old):
		p.setFile(c.Path, want)
	case is.isText() && old.isText() && want.isText():
		data, clean, err := mergeLines(ctx, f, is.data, old.data, want.data)
		if err != nil {
			return err
		}
		if !clean {
			clash("the same lines were changed here")
			return nil
		}
		mode := want.mode
		if want.mode == old.mode {
			mode = is.mode
		}
		if merged := (here{mode, data}); merged.isSame(is) { // it was taken before
			p.already++
		} else {
			p.merged = append(p.merged, c.Path)
			p.setFile(c.Path, merged)
		}
	case is.mode == filemode.Empty:
		clash("it is not here any more")
	case old.mode == filemode.Empty:
		clash("another file of that name is here")
	default:
		clash("it was changed here")
	}
	return nil
}

func (p *plan) setFile(path string, to here) {
	if to.mode == filemode.Empty {
		p.removals = append(p.removals, path)
		return
	}
	p.edits = append(p.edits, workspace.Edit{Path: path, Mode: to.mode, Data: to.data})
}

// changedPaths are the files that will be changed, sorted.
func (p *plan) changedPaths() []string {
	out := slices.Clone(p.removals)
	for _, e := range p.edits {
		out = append(out, e.Path)
	}
	slices.Sort(out)
	return out
}

// isSame compares two versions; that a file is executable counts, too.
func (h here) isSame(o here) bool {
	return plainMode(h.mode) == plainMode(o.mode) && bytes.Equal(h.data, o.data)
}

// plainMode takes git's two modes of plain files for one.
func plainMode(m filemode.FileMode) filemode.FileMode {
	if m == filemode.Deprecated {
		return filemode.Regular
	}
	return m
}

func (h here) isText() bool {
	return (plainMode(h.mode) == filemode.Regular || h.mode == filemode.Executable) && !patch.LooksBinary(h.data)
}

// readHere reads a file of the folder without leaving it. The error says why it is none that
// could be replaced.
func readHere(root *os.Root, path string) (here, error) {
	name := filepath.FromSlash(path)
	info, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return here{}, nil
	case err != nil:
		return here{}, errors.New("it can't be reached here")
	case info.Mode().Type() == fs.ModeSymlink:
		target, err := root.Readlink(name)
		return here{filemode.Symlink, []byte(target)}, err
	case !info.Mode().IsRegular():
		return here{}, errors.New("it is no file here")
	}
	data, err := app.ReadRegularBy(root.Stat, root.Open, name, maxHere)
	mode := filemode.Regular
	if info.Mode()&0o100 != 0 {
		mode = filemode.Executable
	}
	return here{mode, data}, err
}

// mergeLines merges two versions of a text that have one before them, as git does; clean is
// false where both changed the same lines.
func mergeLines(ctx context.Context, f *app.Factory, ours, base, theirs []byte) (merged []byte, clean bool, err error) {
	dir, err := os.MkdirTemp("", "uwf-merge-*")
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	args := []string{"merge-file", "-p", "-q"}
	for i, data := range [][]byte{ours, base, theirs} {
		name := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(name, data, 0o600); err != nil {
			return nil, false, err
		}
		args = append(args, name)
	}
	merged, err = f.Git(ctx, "", nil, args...)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 && exit.ExitCode() < 128 {
		return nil, false, nil // as many conflicts
	}
	return merged, err == nil, err
}

// carryOut makes the folder what was planned: each file whole or not at all. Killed in between
// and started again, it goes on with those that are left.
func (p *plan) carryOut(root *os.Root) error {
	if err := workspace.Apply(root.Name(), p.edits); err != nil {
		return err
	}
	for _, path := range p.removals {
		if err := root.Remove(filepath.FromSlash(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for dir := filepath.Dir(filepath.FromSlash(path)); dir != "."; dir = filepath.Dir(dir) {
			if root.Remove(dir) != nil { // it is not empty
				break
			}
		}
	}
	return nil
}
