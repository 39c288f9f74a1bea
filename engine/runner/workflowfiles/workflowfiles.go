// Package workflowfiles keeps an agent from changing what the job's token may not push.
//
// GitHub refuses a push that changes a file below .github/workflows, unless the token
// has a right of its own for that, which no job's own token has. The whole push is
// refused: the step would be lost. So the change is found before, and taken back.
package workflowfiles

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas/workspace"
	"github.com/united-workforce/uwf/internal/text"
)

// folder is where workflow files are, in parent.
const (
	parent = ".github"
	folder = parent + "/workflows"
)

// Bounds on what is kept to be put back.
const (
	maxFiles = 500
	maxFile  = 1 << 20
)

// Watch knows the workflow files of a folder as they were.
type Watch struct {
	dir string
	was map[string]file
}

// file is what a push shows of a file: its content, a link's target, or what else it is.
type file struct {
	mode filemode.FileMode // Empty: something that git doesn't know
	text string
}

// ChangedError: an agent changed workflow files, which this job can't push.
type ChangedError struct{ Paths []string }

func (e *ChangedError) Error() string {
	return fmt.Sprintf("the agent changed %s, and this job's token may not push changes below %s", strings.Join(e.Paths, ", "), folder)
}

// Look remembers the workflow files of a working folder, before an agent runs there. What
// can't be read could not be compared with what the agent leaves: its work would be refused
// only when it is pushed, after it was paid for.
func Look(dir string) (Watch, error) {
	was, err := readFolder(dir)
	if err != nil {
		return Watch{}, fmt.Errorf("look at the files below %s, which this job's token may not push changes of: %w; make them fewer or smaller, or give the input token one that may change them", folder, err)
	}
	return Watch{dir: dir, was: was}, nil
}

// Check fails where the agent changed them. They are put back, so that the rest of its
// work can be kept; what it wrote is in the error.
func (w Watch) Check(agent string) error {
	now, err := readFolder(w.dir)
	if err == nil && maps.Equal(now, w.was) {
		return nil
	}
	e := &ChangedError{}
	var detail strings.Builder
	both := maps.Clone(w.was)
	maps.Copy(both, now)
	for _, name := range slices.Sorted(maps.Keys(both)) {
		f, there := now[name]
		if before, was := w.was[name]; was == there && before == f {
			continue
		}
		e.Paths = append(e.Paths, name)
		if there {
			fmt.Fprintf(&detail, "--- %s\n%s\n", name, f.text)
		}
	}
	if len(e.Paths) == 0 {
		e.Paths = []string{folder}
	}
	return &task.AgentError{
		Agent: agent, Reason: "its work can't be pushed", Detail: text.Cut(detail.String(), maxDetail),
		Err: errors.Join(e, err, w.restoreFiles()),
	}
}

// CheckChanges fails where changes are of workflow files, of which nothing can be put back.
func CheckChanges(changes []workspace.Change) error {
	e := &ChangedError{}
	for _, c := range changes {
		if strings.HasPrefix(c.Path+"/", folder+"/") || c.Path == parent && c.Kind != workspace.Deleted {
			e.Paths = append(e.Paths, c.Path)
		}
	}
	if len(e.Paths) > 0 {
		return e
	}
	return nil
}

// restoreFiles puts the files back, in the place of whatever is there.
func (w Watch) restoreFiles() error {
	if err := w.clearFolder(); err != nil {
		return err
	}
	var back []workspace.Edit
	for _, name := range slices.Sorted(maps.Keys(w.was)) {
		if f := w.was[name]; f.mode != filemode.Empty {
			back = append(back, workspace.Edit{Path: name, Mode: f.mode, Data: []byte(f.text)})
		}
	}
	return workspace.Apply(w.dir, back)
}

// clearFolder removes the folder, or what is in its place or its parent's.
func (w Watch) clearFolder() (err error) {
	root, err := os.OpenRoot(w.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	name := folder
	info, err := root.Lstat(parent)
	if _, was := w.was[parent]; was || err == nil && !info.IsDir() {
		name = parent
	}
	return root.RemoveAll(name)
}

// readFolder reads the files. The folder is an agent's: no link is followed, and a link in
// the place of a folder is what is found.
func readFolder(dir string) (out map[string]file, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	out = map[string]file{}
	for _, name := range []string{parent, folder} {
		info, err := root.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return out, nil
		case err == nil && info.IsDir():
			continue
		case err == nil:
			out[name], err = readFile(root, name, info)
		}
		return out, err
	}
	walk := func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if len(out) >= maxFiles {
			return fmt.Errorf("there are more than %d files below %s", maxFiles, folder)
		}
		info, err := d.Info()
		if err == nil {
			out[name], err = readFile(root, name, info)
		}
		return err
	}
	return out, fs.WalkDir(root.FS(), folder, walk)
}

// readFile reads one file.
func readFile(root *os.Root, name string, info fs.FileInfo) (file, error) {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := root.Readlink(name)
		return file{filemode.Symlink, target}, err
	case !info.Mode().IsRegular():
		return file{filemode.Empty, info.Mode().Type().String()}, nil
	case info.Size() > maxFile:
		return file{}, fmt.Errorf("%s has %d bytes", name, info.Size())
	}
	mode := filemode.Regular
	if info.Mode()&0o100 != 0 {
		mode = filemode.Executable
	}
	data, err := root.ReadFile(name)
	return file{mode, string(data)}, err
}

// Refused recognises GitHub's refusal of a push that changes workflow files.
func Refused(err error) bool {
	text := err.Error()
	return strings.Contains(text, "refusing to allow") && strings.Contains(text, "workflow")
}

// maxDetail is how much of the changed files an error keeps, in bytes.
const maxDetail = 16 << 10
