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
	"path"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/thread"
)

// folder is where workflow files are.
const folder = ".github/workflows"

// Bounds on what is kept to be put back.
const (
	maxFiles = 500
	maxFile  = 1 << 20
)

// Watch knows the workflow files of a folder as they were. The zero value watches
// nothing.
type Watch struct {
	dir  string // empty: nothing is watched
	was  map[string]string
	skip bool // they could not be read
}

// ChangedError: an agent changed workflow files, which this job can't push.
type ChangedError struct{ Paths []string }

func (e *ChangedError) Error() string {
	return fmt.Sprintf("the agent changed %s, and this job's token may not push changes below %s", strings.Join(e.Paths, ", "), folder)
}

// Look remembers the workflow files of a working folder.
func Look(dir string) Watch {
	was, err := read(dir)
	return Watch{dir: dir, was: was, skip: err != nil}
}

// Check fails where the agent changed them. They are put back, so that the rest of its
// work can be kept; what it wrote is in the error.
func (w Watch) Check(agent string) error {
	if w.dir == "" || w.skip {
		return nil
	}
	now, err := read(w.dir)
	if err == nil && maps.Equal(now, w.was) {
		return nil
	}
	e := &ChangedError{}
	var detail strings.Builder
	for _, name := range slices.Sorted(maps.Keys(union(now, w.was))) {
		text, there := now[name]
		if before, was := w.was[name]; was == there && before == text {
			continue
		}
		e.Paths = append(e.Paths, name)
		if there {
			fmt.Fprintf(&detail, "--- %s\n%s\n", name, text)
		}
	}
	if len(e.Paths) == 0 {
		e.Paths = []string{folder}
	}
	return &thread.AgentError{
		Agent: agent, Reason: "its work can't be pushed", Detail: short(detail.String()),
		Err: errors.Join(e, err, w.restore(now)),
	}
}

func union(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, b)
	return out
}

// restore puts the files back.
func (w Watch) restore(now map[string]string) (err error) {
	root, err := os.OpenRoot(w.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for name, text := range now {
		if before, was := w.was[name]; !was || before != text {
			err = errors.Join(err, root.Remove(name))
		}
	}
	for name, text := range w.was {
		if before, there := now[name]; !there || before != text {
			err = errors.Join(err, root.MkdirAll(path.Dir(name), 0o755), root.WriteFile(name, []byte(text), 0o644))
		}
	}
	return err
}

// read reads the files. The folder is an agent's: nothing leads out of it,
// and what is no plain file counts as a file of its kind's name.
func read(dir string) (out map[string]string, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	out = map[string]string{}
	walk := func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		if len(out) >= maxFiles {
			return fmt.Errorf("there are more than %d files below %s", maxFiles, folder)
		}
		if !d.Type().IsRegular() {
			out[name] = d.Type().String()
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Size() > maxFile {
			return fmt.Errorf("%s has %d bytes", name, info.Size())
		}
		data, err := root.ReadFile(name)
		out[name] = string(data)
		return err
	}
	return out, fs.WalkDir(root.FS(), folder, walk)
}

// Refused recognises GitHub's refusal of a push that changes workflow files.
func Refused(err error) bool {
	text := err.Error()
	return strings.Contains(text, "refusing to allow") && strings.Contains(text, "workflow")
}

// maxDetail is how much of the changed files an error keeps, in bytes.
const maxDetail = 16 << 10

func short(s string) string {
	if len(s) <= maxDetail {
		return s
	}
	return strings.ToValidUTF8(s[:maxDetail], "") + "…"
}
