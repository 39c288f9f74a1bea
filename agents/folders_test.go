package agents

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
)

func TestMakeFoldersRefuses(t *testing.T) {
	t.Chdir(t.TempDir()) // folders without a base would be made here
	none := filepath.Join(t.TempDir(), "none")
	if f, err := makeFolders(none, task.Task{}); err == nil || !strings.Contains(err.Error(), none) {
		t.Errorf("in a folder that is not there: %v, %v", f, err)
	}
	// What was made until then goes away.
	dir := t.TempDir()
	bad := task.Task{Nodes: gitcas.Nodes{{}: {"0000000000000": {Type: node.String, Payload: math.NaN()}}}}
	if f, err := makeFolders(dir, bad); err == nil || !strings.Contains(err.Error(), "writing node 0000000000000 for the agent: ") {
		t.Errorf("with a node that can't be written: %v, %v", f, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	// Nor are folders taken that somebody else made.
	if err := os.Mkdir(filepath.Join(dir, "stage"), 0o700); err != nil {
		t.Fatal(err)
	}
	for base, is := range map[string]error{none: fs.ErrNotExist, dir: fs.ErrExist} {
		f := &folders{base: base, context: filepath.Join(base, "context"), stage: filepath.Join(base, "stage")}
		if err := f.fillFolders(task.Task{}); !errors.Is(err, is) {
			t.Errorf("filling %s: %v", base, err)
		}
	}
}

func TestWriteContextRefuses(t *testing.T) {
	if err := WriteContext(filepath.Join(t.TempDir(), "none"), task.Task{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("into a folder that is not there: %v", err)
	}
	for _, name := range []string{taskFile, promptFile, nodesFile} {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := WriteContext(dir, task.Task{}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("where %s is a folder: %v", name, err)
		}
	}
}

func TestReadStageThatIsGone(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := root.Close(); err != nil {
		t.Fatal(err)
	}
	if nodes, err := readStage(root, Limits{}.withDefaults()); !errors.Is(err, ErrStage) || !strings.Contains(err.Error(), "can't be read") {
		t.Errorf("%v, %v", nodes, err)
	}
}

// TestStageIsBounded: what is no node counts as well, in number and in size.
func TestStageIsBounded(t *testing.T) {
	for _, tt := range []struct {
		name string
		file func(i int) string
		says string
	}{
		{"files in the making", func(i int) string { return fmt.Sprint(".", i) }, "more than 50 files"},
		{"garbage", func(i int) string { return fmt.Sprintf("%013d.json", i) }, "more than 1000 bytes together"},
	} {
		dir := t.TempDir()
		for i := range 51 {
			if err := os.WriteFile(filepath.Join(dir, tt.file(i)), make([]byte, 100), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := readStage(root, Limits{Files: 50, FileSize: 100, TotalSize: 1000}); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", tt.name, err)
		}
		_ = root.Close()
	}
}
