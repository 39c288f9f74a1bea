package agents

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/agents/internal/rundir"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/regular"
	"github.com/united-workforce/uwf/internal/text"
)

// The layout of UWF_CONTEXT.
const (
	taskFile   = "context.json"
	promptFile = "prompt.md"
)

// folders are the two folders of one run. They are held open, so that what is
// read back at the end is what was made at the beginning, whatever the agent put
// in its place meanwhile.
type folders struct {
	base    string
	root    *os.Root // of the stage
	run     *rundir.Folder
	context string
	stage   string
}

// makeFolders writes a task's context folder and makes its empty stage.
func makeFolders(tempDir string, t task.Task) (*folders, error) {
	run, err := rundir.MakeFolder(tempDir)
	if err != nil {
		return nil, err
	}
	f := &folders{base: run.Path, run: run, context: filepath.Join(run.Path, "context"), stage: filepath.Join(run.Path, "stage")}
	if err := f.fillFolders(t); err != nil {
		return nil, errors.Join(err, f.closeFiles(), os.RemoveAll(f.base)) // nobody else has been in there
	}
	return f, nil
}

func (f *folders) fillFolders(t task.Task) (err error) {
	if err := errors.Join(os.Mkdir(f.stage, 0o700), os.Mkdir(f.context, 0o700)); err != nil {
		return err
	}
	if f.root, err = os.OpenRoot(f.stage); err != nil {
		return err
	}
	return WriteContext(f.context, t)
}

// closeFiles lets go of what is open. The run counts as over then.
func (f *folders) closeFiles() error {
	err := f.run.EndRun()
	if f.root != nil {
		err = errors.Join(err, f.root.Close())
	}
	return err
}

// WriteContext writes a task's context folder, the one that UWF_CONTEXT names, into the
// existing folder dir, as the Spawner does for a child, and takes the right to write away
// from it.
func WriteContext(dir string, t task.Task) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	task, err := text.IndentJSON(t)
	if err != nil {
		return fmt.Errorf("writing the task: %w", err)
	}
	if err := root.WriteFile(taskFile, append(task, '\n'), 0o444); err != nil {
		return err
	}
	if err := root.WriteFile(promptFile, []byte(t.Prompt), 0o444); err != nil {
		return err
	}
	if err := writeNodes(root, t.Nodes); err != nil {
		return err
	}
	return root.Chmod(".", 0o500)
}

// readStage reads what an agent staged: every <HASH>.json that is a regular file
// within the limits, parses as a node and hashes to its name. Names that begin
// with a dot are files in the making. The nodes that can be read are returned
// also when there is an error, which is an ErrStage.
func readStage(root *os.Root, l Limits) (map[node.Hash]node.Node, error) {
	out := map[node.Hash]node.Node{}
	dir, err := root.Open(".")
	if err != nil {
		return out, fmt.Errorf("%w: can't be read: %w", ErrStage, err)
	}
	defer func() { _ = dir.Close() }()
	var errs []error
	var total int64
	for seen := 0; ; {
		entries, err := dir.ReadDir(256)
		for _, e := range entries {
			if seen++; seen > l.Files {
				return out, errors.Join(append(errs, fmt.Errorf("%w: more than %d files", ErrStage, l.Files))...)
			}
			if strings.HasPrefix(e.Name(), ".") {
				continue
			}
			h, n, size, err := readStaged(root, e.Name(), l.FileSize)
			if total += size; total > l.TotalSize {
				return out, errors.Join(append(errs, fmt.Errorf("%w: more than %d bytes together", ErrStage, l.TotalSize))...)
			}
			if err == nil {
				out[h] = n
			} else if len(errs) < 5 {
				errs = append(errs, err)
			}
		}
		if errors.Is(err, io.EOF) {
			return out, errors.Join(errs...)
		}
		if err != nil {
			return out, errors.Join(append(errs, fmt.Errorf("%w: can't be listed: %w", ErrStage, err))...)
		}
	}
}

// readStaged reads one staged file; size is what was read of it, also where it is no
// node.
func readStaged(root *os.Root, name string, limit int64) (h node.Hash, n node.Node, size int64, err error) {
	bad := func(format string, args ...any) (node.Hash, node.Node, int64, error) {
		return "", node.Node{}, size, fmt.Errorf("%w: %q "+format, append([]any{ErrStage, text.Cut(name, 40)}, args...)...)
	}
	stem, ok := strings.CutSuffix(name, ".json")
	h, err = node.ParseHash(stem)
	if !ok || err != nil {
		return bad("is not named <HASH>.json")
	}
	b, err := regular.Read(root, name, limit)
	if err != nil {
		return bad("can't be taken: %w", err)
	}
	size = int64(len(b))
	n, err = node.DecodeFile(b)
	if err != nil {
		return bad("is not a node file: %w", err)
	}
	got, err := n.ComputeHash()
	if err != nil {
		return bad("can't be hashed: %w", err)
	}
	if got != h {
		return bad("has the content of %s", got)
	}
	return h, n, size, nil
}
