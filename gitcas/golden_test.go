package gitcas

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/tree"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/wiretest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// goldenStores are tips of stores of format 2, one for each way in which a version
// wrote it. Every later version must read them all: none is ever changed, and a
// version that writes other bytes adds one. goldenStore is what this one writes.
var goldenStores = []string{goldenStore}

const goldenStore = "testdata/store-v2.txtar"

// files are all files of a tree, sorted by path.
func files(t *testing.T, mem *wiretest.Memory, tree wire.ID, prefix string) []txtar.File {
	t.Helper()
	o, ok := mem.Get(tree)
	if !ok {
		t.Fatalf("tree %s is not there", tree)
	}
	entries, err := gitobj.DecodeTree(o.Data)
	if err != nil {
		t.Fatal(err)
	}
	var out []txtar.File
	for _, e := range entries {
		if e.IsDir() {
			out = append(out, files(t, mem, e.ID, prefix+e.Name+"/")...)
			continue
		}
		if e.Mode != filemode.Regular {
			t.Errorf("%s%s has the mode %s", prefix, e.Name, e.Mode)
		}
		blob, _ := mem.Get(e.ID)
		out = append(out, txtar.File{Name: prefix + e.Name, Data: blob.Data})
	}
	return out
}

// scripted makes a store whose every byte is determined.
func scripted(t *testing.T) (*wiretest.Memory, *Store) {
	t.Helper()
	at := newClock()
	mem := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true, Now: at.now})
	o := testOptions()
	o.Now = at.now
	s := Open(mem, o)
	first, second, third := threadID(1), threadID(2), threadID(3)
	threadWithSteps(t, s, first, 2)
	threadWithSteps(t, Open(mem, o), second, 1) // the clock goes on with each request
	threadWithSteps(t, Open(mem, o), third, 1)
	v := mustLoad(t, s, first, second, third)
	e := mustEntry(t, v, first)
	e.Status, e.PR, e.Comment = StatusSuspended, 7, 123456789
	e.Work = Work{Branch: layout.WorkBranch(first), Commit: strings.Repeat("0a", 20)}
	e.Next = &Next{Role: "developer", Since: 1_772_366_400_000}
	e.Suspended = &Suspended{Role: "developer", Reason: "which one:\nthis or \"that\"?"}
	e.Attempts = []string{layout.AttemptRef(first, "77", 1)}
	e.Limits = map[string]float64{"steps": 20, "cost": 1.5}
	wf := workflowNode(t)
	v = mustPush(t, s, v, &Change{
		Subject: "suspended · developer", Threads: map[ThreadID]*Entry{first: &e},
		Registry: map[string]*RegistryEntry{"solve-issue": {Hash: wf.Hash, Timestamp: 1_772_366_400_000}, "plain": {Hash: wf.Hash}},
	})
	c := endChange(t, v, second, "the end")
	c.Archive[0].CompletedAt = 1_772_366_400_000
	mustPush(t, s, v, c)
	return mem, s
}

// TestGoldenStore: the same changes make the same bytes, in this version and in
// every one that writes format 2.
func TestGoldenStore(t *testing.T) {
	mem, s := scripted(t)
	c, err := gitobj.DecodeCommit(mustObject(t, mem, mustLoad(t, s).Tip()))
	if err != nil {
		t.Fatal(err)
	}
	got := txtar.Format(&txtar.Archive{Comment: []byte("The tip of a store of format 2, see golden_test.go.\n"), Files: files(t, mem, c.Tree, "")})
	if *update {
		if err := os.WriteFile(goldenStore, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(goldenStore)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the store's bytes are no longer those of %s; got\n%s", goldenStore, got)
	}
}

func mustObject(t *testing.T, mem *wiretest.Memory, id wire.ID) []byte {
	t.Helper()
	o, ok := mem.Get(id)
	if !ok {
		t.Fatalf("object %s is not there", id)
	}
	return o.Data
}

// TestReadGoldenStore: a store that was written long ago is read and goes on.
func TestReadGoldenStore(t *testing.T) {
	for _, name := range goldenStores {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) { readGolden(t, name) })
	}
}

func readGolden(t *testing.T, name string) {
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	mem := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true, Now: func() time.Time { return time.Unix(1_800_000_000, 0) }})
	s := Open(mem, testOptions())
	tip := commitFiles(t, mem, archive.Files)
	mem.SetRef(s.source.Branch, tip)

	id := threadID(1)
	v := mustLoad(t, s, id)
	c, err := v.ReadChain(t.Context(), id)
	if err != nil || len(c.Steps) != 2 {
		t.Fatalf("%d steps, %v", len(c.Steps), err)
	}
	e := mustEntry(t, v, id)
	if e.Status != StatusSuspended || e.Suspended.Reason != "which one:\nthis or \"that\"?" || e.Limits["cost"] != 1.5 || e.Next.Role != "developer" || e.PR != 7 {
		t.Errorf("entry %+v", e)
	}
	if n, err := below(t.Context(), v, id, c.Steps[1].Hash, c.Steps[1].Detail); err != nil || !strings.HasPrefix(n.Payload.(string), "detail of") {
		t.Errorf("detail: %v", err)
	}
	var ended []ThreadID
	if err := v.History(t.Context(), time.Time{}, func(e Ended) error { ended = append(ended, e.Thread); return nil }); err != nil || !slices.Equal(ended, []ThreadID{threadID(2)}) {
		t.Errorf("ended %v, %v", ended, err)
	}
	r, err := s.Fsck(t.Context(), false)
	if err != nil || !r.OK() {
		t.Errorf("fsck: %+v, %v", r.Problems, err)
	}
	v = mustPush(t, s, v, stepChange(t, v, id, "developer", "years later"))
	if c, err := v.ReadChain(t.Context(), id); err != nil || len(c.Steps) != 3 {
		t.Errorf("%d steps, %v", len(c.Steps), err)
	}
}

// commitFiles puts files into the remote as one commit.
func commitFiles(t *testing.T, mem *wiretest.Memory, list []txtar.File) wire.ID {
	t.Helper()
	put := func(typ plumbing.ObjectType, data []byte) wire.ID {
		o := wire.NewObject(typ, data)
		mem.AddObjects(o)
		return o.ID
	}
	edit := &tree.Edit{}
	for _, f := range list {
		edit.SetFile(f.Name, put(plumbing.BlobObject, f.Data))
	}
	root, err := edit.Write(t.Context(), nil, "", layout.RootFolder, nil, nil, func(d, _, _ *tree.Dir) { mem.AddObjects(d.Object) })
	if err != nil {
		t.Fatal(err)
	}
	sig := gitobj.Signature{Name: "uwf", Email: "uwf@localhost", When: time.Unix(1, 0)}
	data, err := gitobj.EncodeCommit(gitobj.Commit{Tree: root.Object.ID, Author: sig, Committer: sig, Message: "golden\n"})
	if err != nil {
		t.Fatal(err)
	}
	return put(plumbing.CommitObject, data)
}
