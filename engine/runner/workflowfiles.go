package runner

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

// GitHub refuses a push that changes a file below .github/workflows, unless the token
// has a right of its own for that, which no job's own token has. The whole push is
// refused: the step would be lost. So the change is found before, and taken back.

const workflowFolder = ".github/workflows"

// Bounds on what is kept to be put back.
const (
	maxWorkflowFiles = 500
	maxWorkflowFile  = 1 << 20
)

// workflowFiles are the workflow files of a folder as they were.
type workflowFiles struct {
	dir  string // empty: nothing is watched
	was  map[string]string
	skip bool // they could not be read
}

// WorkflowFilesError: an agent changed workflow files, which this job can't push.
type WorkflowFilesError struct{ Paths []string }

func (e *WorkflowFilesError) Error() string {
	return fmt.Sprintf("the agent changed %s, and this job's token may not push changes below %s", strings.Join(e.Paths, ", "), workflowFolder)
}

func watchWorkflows(dir string) workflowFiles {
	was, err := readWorkflows(dir)
	return workflowFiles{dir: dir, was: was, skip: err != nil}
}

// check fails where the agent changed them. They are put back, so that the rest of its
// work can be kept; what it wrote is in the error.
func (w workflowFiles) check(t thread.Task) error {
	if w.dir == "" || w.skip {
		return nil
	}
	now, err := readWorkflows(w.dir)
	if err == nil && maps.Equal(now, w.was) {
		return nil
	}
	e := &WorkflowFilesError{}
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
		e.Paths = []string{workflowFolder}
	}
	return &thread.AgentError{
		Agent: t.Agent, Reason: "its work can't be pushed", Detail: short(detail.String(), 16<<10),
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
func (w workflowFiles) restore(now map[string]string) (err error) {
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

// readWorkflows reads the files. The folder is an agent's: nothing leads out of it,
// and what is no plain file counts as a file of its kind's name.
func readWorkflows(dir string) (out map[string]string, err error) {
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
		if len(out) >= maxWorkflowFiles {
			return fmt.Errorf("there are more than %d files below %s", maxWorkflowFiles, workflowFolder)
		}
		if !d.Type().IsRegular() {
			out[name] = d.Type().String()
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Size() > maxWorkflowFile {
			return fmt.Errorf("%s has %d bytes", name, info.Size())
		}
		data, err := root.ReadFile(name)
		out[name] = string(data)
		return err
	}
	return out, fs.WalkDir(root.FS(), workflowFolder, walk)
}

// refusesWorkflows recognises GitHub's refusal of a push that changes workflow files.
func refusesWorkflows(err error) bool {
	text := err.Error()
	return strings.Contains(text, "refusing to allow") && strings.Contains(text, "workflow")
}
