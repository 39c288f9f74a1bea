package gitcas

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/tree"
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// faulty is a remote of which one answer is not as it should be. Answers are counted
// from 1; with none at fault they are only counted.
type faulty struct {
	*wiretest.Memory
	at    int
	down  error                   // the answer is this error
	spoil func(objs wire.Objects) // the answer is changed
	after bool                    // those after it as well
	lasts bool                    // and so are later ones that are to hold the same first object
	gone  wire.ID                 // that object
	n     int
}

func (f *faulty) List(ctx context.Context, prefixes ...string) (wire.Listing, error) {
	if f.n++; f.n == f.at && f.down != nil {
		return wire.Listing{}, f.down
	}
	return f.Memory.List(ctx, prefixes...)
}

func (f *faulty) Fetch(ctx context.Context, req wire.FetchRequest) (wire.Objects, error) {
	if f.n++; f.n == f.at && f.down != nil {
		f.gone = req.Wants[0]
		return nil, f.down
	}
	if f.lasts && slices.Contains(req.Wants, f.gone) {
		return nil, f.down
	}
	objs, err := f.Memory.Fetch(ctx, req)
	if (f.n == f.at || f.after && f.n > f.at) && f.spoil != nil && err == nil {
		f.spoil(objs)
	}
	return objs, err
}

// everyKind is a store that has one of everything: a thread with an own branch, an
// attempt and a claim, one that ended, one with older steps, and one that ended
// and goes on. It comes with all that is done with a store.
func everyKind(t *testing.T, shared int) (*wiretest.Memory, map[string]func(context.Context, *Store) error) {
	mem := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})
	s := Open(mem, testOptions())
	id, ended, long, again := threadID(1), threadID(2), threadID(3), threadID(4)
	threadWithSteps(t, s, ended, 1)
	v := mustPush(t, s, mustLoad(t, s, ended), endChange(t, mustLoad(t, s, ended), ended, "end"))
	line := findLine(t, s, v, ended)
	threadWithSteps(t, s, again, 1)
	mustPush(t, s, mustLoad(t, s, again), endChange(t, mustLoad(t, s, again), again, "end"))
	mustPush(t, s, mustLoad(t, s), reopenChange(t, s, mustLoad(t, s), again))
	threadWithSteps(t, s, long, 2*layout.KeptSteps)
	v = threadWithSteps(t, s, id, 2)
	c, err := v.ReadChain(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	_, nodes := nextStep(t, c, id, "developer", "in vain")
	attempt, objs, err := BuildAttempt(Attempt{Thread: id, Run: "r", Attempt: 1, Nodes: nodes, WorkTree: wire.EmptyTree, Error: "it failed"})
	if err != nil {
		t.Fatal(err)
	}
	claim, more := view.ClaimUpdate(id, nil, &Claim{Run: "run-1", Attempt: 1, Head: mustEntry(t, v, id).Head}, v.Time())
	change := &Change{Subject: "more", Refs: []wire.RefUpdate{attempt, claim}, Objects: slices.Concat(objs, more)}
	e := mustEntry(t, v, id)
	e.Work.Branch, e.Attempts = "feature", []string{attempt.Name}
	change.Threads = map[ThreadID]*Entry{id: &e}
	for n := range shared {
		change.Nodes = append(change.Nodes, placed(t, Place{}, node.String, fmt.Sprint("shared ", n)))
	}
	mustPush(t, s, v, change)
	mem.SetRef("refs/heads/feature", mustLoad(t, s).Tip())

	detail, output := c.Steps[1].Detail, c.Steps[1].Output
	// with loads the store and goes on.
	with := func(ids []ThreadID, do func(context.Context, *Store, *View) error) func(context.Context, *Store) error {
		return func(ctx context.Context, s *Store) error {
			v, err := s.Load(ctx, ids...)
			if err != nil {
				return err
			}
			return do(ctx, s, v)
		}
	}
	nothing := func(Ended) error { return nil }
	return mem, map[string]func(context.Context, *Store) error{
		"load":         with([]ThreadID{id, long}, func(context.Context, *Store, *View) error { return nil }),
		"reload":       with(nil, func(ctx context.Context, s *Store, v *View) error { _, err := s.Reload(ctx, v, id); return err }),
		"chain":        with(nil, func(ctx context.Context, _ *Store, v *View) error { _, err := v.ReadChain(ctx, id); return err }),
		"long chain":   with([]ThreadID{long}, func(ctx context.Context, _ *Store, v *View) error { _, err := v.ReadChain(ctx, long); return err }),
		"summary":      with(nil, func(ctx context.Context, _ *Store, v *View) error { _, err := v.ReadSummary(ctx, id); return err }),
		"long summary": with(nil, func(ctx context.Context, _ *Store, v *View) error { _, err := v.ReadSummary(ctx, long); return err }),
		"get": with([]ThreadID{id}, func(ctx context.Context, _ *Store, v *View) error {
			_, err := v.In(ctx, Place{Thread: id, Of: c.Steps[1].Hash}).Get(output)
			return err
		}),
		"long get": with([]ThreadID{long}, func(ctx context.Context, _ *Store, v *View) error {
			_, err := v.In(ctx, Place{Thread: long}).Get(mustEntry(t, v, long).Head)
			return err
		}),
		"detail": with(nil, func(ctx context.Context, _ *Store, v *View) error {
			_, err := below(ctx, v, id, c.Steps[1].Hash, detail)
			return err
		}),
		"find":       with(nil, func(ctx context.Context, s *Store, v *View) error { _, err := Find(ctx, v, output); return err }),
		"find ended": with(nil, func(ctx context.Context, s *Store, v *View) error { _, err := Find(ctx, v, line.Head); return err }),
		"record of a thread that was not loaded": with(nil, func(ctx context.Context, _ *Store, v *View) error {
			_, err := v.In(ctx, Place{Thread: id}).Get(c.Steps[1].Hash)
			return err
		}),
		"output of a thread that was not loaded": with(nil, func(ctx context.Context, _ *Store, v *View) error {
			_, err := v.In(ctx, Place{Thread: id, Of: c.Steps[1].Hash}).Get(output)
			if err == nil {
				_, err = v.ReadChain(ctx, id) // which needs the rest
			}
			return err
		}),
		"history": with(nil, func(ctx context.Context, s *Store, v *View) error { return v.History(ctx, time.Time{}, nothing) }),
		"ended": with(nil, func(ctx context.Context, s *Store, v *View) error {
			_, _, err := v.FindEnded(ctx, threadID(9))
			return err
		}),
		"ended chain": with(nil, func(ctx context.Context, s *Store, v *View) error {
			past, err := v.LoadEnded(ctx, line)
			if err == nil {
				_, err = past.ReadChain(ctx, ended)
			}
			return err
		}),
		"log": with(nil, func(ctx context.Context, s *Store, v *View) error {
			return v.Log(ctx, ended, func(view.LogEntry) error { return nil })
		}),
		"shared": with(nil, func(ctx context.Context, _ *Store, v *View) error {
			return v.Shared(ctx, func(node.Hash, node.Node) error { return nil })
		}),
		"attempt": with(nil, func(ctx context.Context, s *Store, v *View) error {
			_, err := s.ReadAttempt(ctx, v, attempt.Name)
			return err
		}),
		"attempts that are not linked": with([]ThreadID{id}, func(ctx context.Context, s *Store, v *View) error {
			_, err := s.Unlinked(ctx, v, []string{attempt.Name})
			return err
		}),
		"whole store": func(ctx context.Context, s *Store) error {
			r, err := s.Fsck(ctx, true)
			for _, p := range r.Problems {
				if err == nil && !strings.Contains(p.Why, "its chain has 2") { // the entry's lie
					err = &DamagedError{What: p.Path, Why: p.Why, Kind: ErrContent}
				}
			}
			return err
		},
	}
}

// TestEveryAnswerFails: no answer of the remote is read over that is an error.
func TestEveryAnswerFails(t *testing.T) {
	for _, shared := range []int{0, maxSmallCas} {
		mem, operations := everyKind(t, shared)
		for name, do := range operations {
			f := &faulty{Memory: mem}
			if err := do(t.Context(), Open(f, testOptions())); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for n := 1; n <= f.n; n++ {
				broken := &faulty{Memory: mem, at: n, down: &wire.RemoteError{Op: "fetch", Kind: wire.ErrDenied, Detail: "the key is gone"}}
				if err := do(t.Context(), Open(broken, testOptions())); !errors.Is(err, wire.ErrDenied) || errors.Is(err, ErrDamaged) {
					t.Errorf("%s: answer %d of %d is an error, and it says %v", name, n, f.n, err)
				}
				away := &faulty{Memory: mem, at: n, down: &wire.RemoteError{Op: "fetch", Kind: wire.ErrUnreachable, Detail: "the line is down"}}
				if err := do(t.Context(), Open(away, testOptions())); err != nil {
					t.Errorf("%s: answer %d of %d does not come, and it is not asked for again: %v", name, n, f.n, err)
				}
			}
		}
	}
}

// TestFsckNotFound: an object that the remote does not have is a problem of the store.
func TestFsckNotFound(t *testing.T) {
	mem, operations := everyKind(t, 0)
	f := &faulty{Memory: mem}
	if err := operations["whole store"](t.Context(), Open(f, testOptions())); err != nil {
		t.Fatal(err)
	}
	sound, err := Open(mem, testOptions()).Fsck(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	for n := 2; n <= f.n; n++ {
		lost := &faulty{Memory: mem, at: n, down: &wire.RemoteError{Op: "fetch", Kind: wire.ErrNotFound}, lasts: n > 2}
		r, err := Open(lost, testOptions()).Fsck(t.Context(), true)
		told := fmt.Sprint(r.Problems)
		if err != nil || n > 2 && !strings.Contains(told, "not found") && !strings.Contains(told, "not there any more") { // the tip is asked for again
			t.Errorf("answer %d of %d: %+v, %v", n, f.n, r.Problems, err)
		}
		lost = &faulty{Memory: mem, at: n, down: &wire.RemoteError{Op: "fetch", Kind: wire.ErrNotGiven}, lasts: n > 2}
		r, err = Open(lost, testOptions()).Fsck(t.Context(), true)
		if err != nil || len(r.Problems) > len(sound.Problems) || n > 2 && len(r.Unread) == 0 {
			t.Errorf("answer %d of %d, not given: %+v, %v", n, f.n, r, err)
		}
	}
}

// TestEveryObjectSpoilt: what the remote leaves out of an answer, or sends in place of
// what it should be, is named, or nobody needs it.
func TestEveryObjectSpoilt(t *testing.T) {
	large := bytes.Repeat([]byte{' '}, tree.MaxNodeFile+1)
	spoil := func(change func(o *wire.Object)) func(wire.Objects, wire.ID) {
		return func(objs wire.Objects, id wire.ID) {
			o := objs[id]
			change(&o)
			objs[id] = o
		}
	}
	other := placed(t, Place{}, node.String, "another node")
	another, err := node.EncodeFile(other.Node)
	if err != nil {
		t.Fatal(err)
	}
	others := map[plumbing.ObjectType]plumbing.ObjectType{plumbing.BlobObject: plumbing.TreeObject, plumbing.TreeObject: plumbing.BlobObject, plumbing.CommitObject: plumbing.TagObject}
	mem, operations := everyKind(t, maxSmallCas)
	needed, nodes := whatIsNeeded(t, mem)
	along := map[wire.ID]bool{} // come with the threads' folders, and are looked at by who reads attempts
	for ref, commit := range mem.Refs() {
		if c, err := gitobj.DecodeCommit(mustObject(t, mem, commit)); err == nil && strings.HasPrefix(ref, layout.Attempts) {
			along[commit], along[c.Tree] = true, true
		}
	}
	for kind, tc := range map[string]struct {
		files bool // only files are
		spoil func(objs wire.Objects, id wire.ID)
		says  []string
	}{
		"withheld": {false, func(objs wire.Objects, id wire.ID) { delete(objs, id) },
			[]string{"the remote doesn't send", "it does not point to a commit", "it is missing, no file, or too large"}},
		"another kind": {false, spoil(func(o *wire.Object) { o.Type = others[o.Type] }),
			[]string{"is a tree, not a blob", "is a blob, not a tree", "it is a blob, not a folder", "it is a tree, not a file", "a tree of ", "it does not point to a commit",
				"it is no commit", "is no folder", "is no claim", "it is missing, no file, or too large"}},
		"garbage": {false, spoil(func(o *wire.Object) { o.Data = []byte("garbage") }),
			[]string{"it rewrites history/", "read a node: read JSON: line 1", "malformed: line ", "malformed git object: commit", "malformed git object: tree"}},
		"another file": {true, spoil(func(o *wire.Object) { o.Data = another }), []string{"it rewrites history/", "its content hashes to " + string(other.Hash), "malformed: line "}},
		"large": {true, spoil(func(o *wire.Object) { o.Data = large }),
			[]string{"it rewrites history/", " are allowed", "more than", "malformed: line ", "it is missing, no file, or too large", "is no claim", "malformed git object: commit", "malformed git object: tree"}},
	} {
		done := map[string]bool{}
		for _, name := range slices.Sorted(maps.Keys(operations)) {
			do := operations[name]
			for n, more := 1, true; more; n++ {
				types := map[wire.ID]plumbing.ObjectType{}
				look := &faulty{Memory: mem, at: n, spoil: func(objs wire.Objects) {
					for id, o := range objs {
						types[id] = o.Type
					}
				}}
				if err := do(t.Context(), Open(look, testOptions())); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				more = n < look.n
				for id, typ := range types {
					if tc.files && typ != plumbing.BlobObject {
						continue
					}
					// All operations begin with the same two answers, and read files alike, but
					// for these.
					common, known := fmt.Sprint(n, id), done[id.String()] && typ == plumbing.BlobObject
					if !slices.Contains([]string{"attempt", "load", "shared"}, name) && (done[common] || known) {
						continue
					}
					done[common], done[id.String()] = n < 3, true
					must := needed[id] && (name == "attempt" || !along[id]) || name == "load" && nodes[id] && kind != "withheld" || name == "shared" && n > 2 && typ == plumbing.BlobObject // they are all nodes
					err := do(t.Context(), Open(&faulty{Memory: mem, at: n, after: kind == "withheld", spoil: func(objs wire.Objects) { tc.spoil(objs, id) }}, testOptions()))
					named := err != nil && slices.ContainsFunc(tc.says, func(s string) bool { return strings.Contains(err.Error(), s) })
					if name == "attempts that are not linked" && err == nil {
						continue // anybody's refs may be there
					}
					if err != nil && (!errors.Is(err, ErrDamaged) || !named) {
						t.Errorf("%s: %s of answer %d is %s: %v", name, id, n, kind, err)
					}
					if err == nil && must {
						t.Errorf("%s: %s of answer %d is %s, and nobody sees it", name, id, n, kind)
					}
				}
			}
		}
	}
}

// whatIsNeeded are the objects that nobody can do without: the tip with its folders and
// lists, the history, the claim, and the attempt with its folders. nodes are those of the
// first thread.
func whatIsNeeded(t *testing.T, mem *wiretest.Memory) (needed, nodes map[wire.ID]bool) {
	t.Helper()
	needed, nodes = map[wire.ID]bool{}, map[wire.ID]bool{}
	list := func(tree wire.ID) []gitobj.Entry {
		entries, err := gitobj.DecodeTree(mustObject(t, mem, tree))
		if err != nil {
			t.Fatal(err)
		}
		return entries
	}
	var history func(tree wire.ID)
	history = func(tree wire.ID) {
		for _, e := range list(tree) {
			if needed[e.ID] = true; e.IsDir() {
				history(e.ID)
			}
		}
	}
	for _, commit := range mem.Refs() {
		c, err := gitobj.DecodeCommit(mustObject(t, mem, commit))
		if err != nil {
			t.Fatal(err)
		}
		needed[commit], needed[c.Tree] = true, true
		for _, e := range list(c.Tree) {
			needed[e.ID] = e.IsDir() && e.Name != layout.AttemptWork || slices.Contains([]string{layout.VersionName, layout.ThreadsName, layout.RegistryName}, e.Name)
			if e.Name == layout.HistoryDir {
				history(e.ID)
			}
			if e.Name != layout.ThreadsDir {
				continue
			}
			for _, f := range list(list(e.ID)[0].ID) {
				if of, _, isNode := layout.ParseNodeFile(f.Name); isNode && of == "" {
					n, err := node.DecodeFile(mustObject(t, mem, f.ID))
					if err != nil {
						t.Fatal(err)
					}
					nodes[f.ID] = record.IsStart(n.Type) // which names the workflow
				}
			}
		}
	}
	delete(needed, wire.EmptyTree)
	return needed, nodes
}
