package action

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/cmd/uwf/internal/worker"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/engine/step/unpushed"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

const (
	keptThread gitcas.ThreadID = "01JD0000000000000000000001"
	keptStore  string          = "0123456789abcdef"
)

func sealedStep(t *testing.T, store string, id gitcas.ThreadID) unpushed.Step {
	t.Helper()
	text, h, err := node.New(node.String, "done", time.UnixMilli(1))
	if err != nil {
		t.Fatal(err)
	}
	step, handle, err := record.Step{
		Start: h, Role: "developer", Output: h, Detail: h, Agent: "mock", Cwd: ".", Usage: &record.Usage{}, Run: &record.Run{ID: "r", Attempt: 1},
	}.Node(time.UnixMilli(1))
	if err != nil {
		t.Fatal(err)
	}
	return unpushed.Step{
		Store: store, Thread: id, Entry: gitcas.Entry{Head: h, Status: gitcas.StatusActive},
		Handle: handle, Nodes: map[node.Hash]node.Node{h: text, handle: step},
	}
}

// keeping is a worker whose sealed steps are noted, and a workspace.
func keeping(t *testing.T) (*keeper, string) {
	t.Helper()
	w := &worker.Worker{Stepper: &step.Stepper{Unpushed: &unpushed.Folder{Dir: filepath.Join(t.TempDir(), "pending")}}}
	return watchUnpushed(w), t.TempDir()
}

func mustDo(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// files are all files below a folder.
func filesIn(t *testing.T, dir string) string {
	t.Helper()
	var out []string
	mustDo(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			out = append(out, rel)
		}
		return err
	}))
	return strings.Join(out, " ")
}

// handedOverPath is where the step of the tests' thread is in the workspace.
func handedOverPath(k *keeper) string {
	return filepath.Join(handedOver, keptStore, filepath.Base(k.Path(keptStore, keptThread, "")))
}

// TestHandOver: the rescue job finds what this job left, and nothing else.
func TestHandOver(t *testing.T) {
	k, workspace := keeping(t)
	const other = "01JD0000000000000000000002"
	mustDo(t, k.Folder.Write(sealedStep(t, "fedcba9876543210", other)), // another repository's job left it
		k.Write(sealedStep(t, keptStore, other)), k.Remove(keptStore, other, ""),
		k.Write(sealedStep(t, keptStore, keptThread)))
	for range 2 { // as often as it is asked for
		mustDo(t, k.handOver(t.Context(), workspace))
	}
	path := handedOverPath(k)
	if got := filesIn(t, workspace); got != path {
		t.Errorf("the workspace holds %q, want %q", got, path)
	}
	for name, want := range map[string]fs.FileMode{path: 0o600, filepath.Dir(path): fs.ModeDir | 0o700, handedOver: fs.ModeDir | 0o700} {
		info, err := os.Stat(filepath.Join(workspace, name))
		mustDo(t, err)
		if info.Mode() != want {
			t.Errorf("%s has mode %s, want %s", name, info.Mode(), want)
		}
	}
	w := &worker.Worker{Stepper: &step.Stepper{Engine: &thread.Engine{}}}
	readHandedOver(w, workspace)
	got, err := w.Unpushed.Read(keptStore, keptThread)
	if err != nil || got.Thread != keptThread {
		t.Errorf("%+v, %v", got, err)
	}
	mustDo(t, k.Remove(keptStore, keptThread, ""), k.handOver(t.Context(), workspace))
	if got := filesIn(t, workspace); got != "" {
		t.Errorf("%q is left of what was pushed", got)
	}
}

// TestHandOverPlanted: what an agent put where steps are handed over is neither followed
// nor handed over.
func TestHandOverPlanted(t *testing.T) {
	for name, plant := range map[string]func(t *testing.T, at, outside string){
		"a link": func(t *testing.T, at, outside string) { mustDo(t, os.Symlink(outside, at)) },
		"a file": func(t *testing.T, at, _ string) { mustDo(t, os.WriteFile(at, []byte("x"), 0o600)) },
		"a link in place of store": func(t *testing.T, at, outside string) {
			mustDo(t, os.Mkdir(at, 0o700), os.Symlink(outside, filepath.Join(at, keptStore)))
		},
		"a step": func(t *testing.T, at, _ string) {
			mustDo(t, (&unpushed.Folder{Dir: at}).Write(sealedStep(t, keptStore, "01JD0000000000000000000003")))
		},
		"a closed folder": func(t *testing.T, at, _ string) {
			mustDo(t, os.MkdirAll(filepath.Join(at, "x"), 0o700), os.Chmod(at, 0))
		},
	} {
		for _, leaves := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				k, workspace := keeping(t)
				outside := t.TempDir()
				mustDo(t, os.WriteFile(filepath.Join(outside, "mine"), nil, 0o600))
				plant(t, filepath.Join(workspace, handedOver), outside)
				want := ""
				if leaves {
					mustDo(t, k.Write(sealedStep(t, keptStore, keptThread)))
					want = handedOverPath(k)
				}
				mustDo(t, k.handOver(t.Context(), workspace))
				if got := filesIn(t, workspace); got != want {
					t.Errorf("the workspace holds %q, want %q", got, want)
				}
				if got := filesIn(t, outside); got != "mine" {
					t.Errorf("outside of it there is %q", got)
				}
			})
		}
	}
}

// TestTakeOverLink: the folder of the artifact is no link to another one.
func TestTakeOverLink(t *testing.T) {
	elsewhere, workspace := t.TempDir(), t.TempDir()
	mustDo(t, (&unpushed.Folder{Dir: elsewhere}).Write(sealedStep(t, keptStore, keptThread)), os.Symlink(elsewhere, filepath.Join(workspace, handedOver)))
	w := &worker.Worker{Stepper: &step.Stepper{Engine: &thread.Engine{}}}
	readHandedOver(w, workspace)
	if got, err := w.Unpushed.Read(keptStore, keptThread); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%+v, %v", got, err)
	}
}
