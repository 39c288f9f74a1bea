package gitcas

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// manyThreads makes a store with n threads of two steps.
func manyThreads(t *testing.T, n int) *wiretest.Memory {
	t.Helper()
	mem := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})
	s := Open(mem, testOptions())
	v := mustInit(t, s)
	pushAll := func(change func(ThreadID) *Change) {
		all := &Change{Subject: "many", Threads: map[ThreadID]*Entry{}, Readable: map[string][]byte{}}
		for i := range n {
			c := change(threadID(i + 1))
			all.Nodes = append(all.Nodes, c.Nodes...)
			maps.Copy(all.Threads, c.Threads)
			maps.Copy(all.Readable, c.Readable)
		}
		v = mustPush(t, s, v, all)
	}
	pushAll(func(id ThreadID) *Change { return startChange(t, id, "prompt of "+string(id)) })
	for i := range 2 {
		pushAll(func(id ThreadID) *Change { return stepChange(t, v, id, "developer", fmt.Sprint(id, i)) })
	}
	return mem
}

// fsckCounted checks a store. It returns what was found, and the requests.
func fsckCounted(t *testing.T, remote wire.Remote, refuse func(wire.FetchRequest) error) (view.Report, []wire.FetchRequest) {
	t.Helper()
	var asked []wire.FetchRequest
	r, err := Open(&wrapped{Remote: remote, fetch: func(req wire.FetchRequest) error {
		asked = append(asked, req)
		return refuse(req)
	}}, testOptions()).Fsck(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	return r, asked
}

func refuseNone(wire.FetchRequest) error { return nil }

// TestFsckRequests: fsck asks for many threads at once, for as many as the answers' sizes allow.
func TestFsckRequests(t *testing.T) {
	const threads = 200
	mem := manyThreads(t, threads)
	r, asked := fsckCounted(t, mem, refuseNone)
	if !r.OK() || r.Threads != threads || len(asked) != 8 { // tip, cas/, and 16, 128 and 56 threads twice
		t.Errorf("%d requests: %+v", len(asked), r)
	}

	n := 0
	small, asked := fsckCounted(t, mem, func(req wire.FetchRequest) error {
		if n++; req.MaxBytes == 0 && n > 2 {
			t.Errorf("%d objects are asked for without a bound", len(req.Wants))
		}
		if req.MaxBytes > 0 && len(req.Wants) > 5 {
			return &wire.RemoteError{Op: "fetch", Kind: wire.ErrUnreadable, Detail: "too large"}
		}
		return nil
	})
	if fmt.Sprint(small) != fmt.Sprint(r) || len(asked) != 2+2+2*threads/4 { // 16 and 8 are too many
		t.Errorf("if answers are too large: %d requests: %+v", len(asked), small)
	}
}

// TestFsckOneDamagedThread: what is wrong with one thread is said of that thread, and as it is said
// if the thread is fetched by itself.
func TestFsckOneDamagedThread(t *testing.T) {
	const threads = 20
	id := threadID(3)
	for name, change := range map[string]func(x *vandal, c Chain) (lost wire.ID){
		"a record is not there": func(x *vandal, c Chain) wire.ID {
			return x.idOf(Place{Thread: id}.Path(c.Steps[0].Hash))
		},
		"a detail is not there": func(x *vandal, c Chain) wire.ID {
			return x.idOf(Place{Thread: id, Of: c.Steps[0].Hash, Detail: true}.Path(c.Steps[0].Detail))
		},
		"its folder is not there":            func(x *vandal, c Chain) wire.ID { return x.idOf(layout.ThreadPath(id)) },
		"the folder of details is not there": func(x *vandal, c Chain) wire.ID { return x.idOf(layout.ThreadPath(id) + "/" + layout.DetailDir) },
		"garbage in a detail": func(x *vandal, c Chain) wire.ID {
			x.replace(Place{Thread: id, Of: c.Steps[0].Hash, Detail: true}.Path(c.Steps[0].Detail), func([]byte) []byte { return []byte("garbage") })
			return wire.ZeroID
		},
		"a foreign file": func(x *vandal, c Chain) wire.ID {
			x.replace(layout.ThreadPath(id)+"/run.sh", flipNothing)
			return wire.ZeroID
		},
	} {
		t.Run(name, func(t *testing.T) {
			mem := manyThreads(t, threads)
			x := &vandal{t: t, mem: mem, s: Open(mem, testOptions())}
			x.v = mustLoad(t, x.s, id)
			c, err := x.v.ReadChain(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}

			lost := change(x, c)
			for _, kind := range []error{wire.ErrNotFound, wire.ErrNotGiven} {
				refuse := func(req wire.FetchRequest) error {
					if slices.Contains(req.Wants, lost) || req.Filter != "tree:0" && len(req.Wants) > 1 && !lost.IsZero() {
						return &wire.RemoteError{Op: "fetch", Kind: kind, Detail: lost.String()}
					}
					return nil
				}

				got, _ := fsckCounted(t, mem, refuse)
				alone, _ := fsckCounted(t, mem, func(req wire.FetchRequest) error {
					if req.MaxBytes > 0 {
						return &wire.RemoteError{Op: "fetch", Kind: wire.ErrUnreadable, Detail: "too large"}
					}
					return refuse(req)
				})

				if fmt.Sprint(got) != fmt.Sprint(alone) {
					t.Errorf("%v: together:\n%+v\nalone:\n%+v", kind, got, alone)
				}
				for _, p := range append(got.Problems, got.Unread...) {
					if p.Path != "" && !strings.Contains(p.Path, string(id)) { // several files together have no path
						t.Errorf("%v: it names another: %+v", kind, p)
					}
				}
				if len(got.Problems)+len(got.Unread) == 0 || got.Threads != threads {
					t.Errorf("%v: %+v", kind, got)
				}
			}
		})
	}
}

// idOf is the object at a path of the branch.
func (x *vandal) idOf(path string) (id wire.ID) {
	x.t.Helper()
	c, err := gitobj.DecodeCommit(x.get(x.v.Tip()))
	if err != nil {
		x.t.Fatal(err)
	}
	x.editTree(c.Tree, strings.Split(path, "/"), func(e gitobj.Entry) gitobj.Entry { id = e.ID; return e })
	return id
}

// TestHistoryRequests: the history is read in few requests, and once for all threads that are looked
// for.
func TestHistoryRequests(t *testing.T) {
	const threads = 40
	mem := manyThreads(t, threads)
	s := Open(mem, testOptions())
	v := mustLoad(t, s)
	over := &Change{Subject: "over"}
	for i := range threads - 1 {
		e := mustEntry(t, v, threadID(i+1))
		over.Archive = append(over.Archive, Ended{Thread: threadID(i + 1), Head: e.Head, Reason: ReasonCancelled, CompletedAt: 1_700_000_000_000 + int64(i)*24*3_600_000})
	}
	mustPush(t, s, v, over)
	for name, tc := range map[string]struct {
		ids   []ThreadID
		found int
		want  int // requests after the tip: the years, then 1, 8 and 30 days
	}{
		"the newest":          {[]ThreadID{threadID(threads - 1)}, 1, 2},
		"some":                {[]ThreadID{threadID(1), threadID(20), threadID(threads - 1)}, 3, 4},
		"one that is unknown": {[]ThreadID{threadID(30), threadID(99)}, 1, 4},
		"one that is alive":   {[]ThreadID{threadID(threads)}, 0, 4},
		"none":                {nil, 0, 0},
	} {
		n := 0
		v := mustLoad(t, Open(&wrapped{Remote: mem, fetch: func(wire.FetchRequest) error { n++; return nil }}, testOptions()))
		n = 0
		found, err := view.FindAllEnded(t.Context(), v, time.Time{}, tc.ids...)
		if err != nil || len(found) != tc.found || n != tc.want {
			t.Errorf("%s: %d requests, %d threads, %v", name, n, len(found), err)
		}
		for id, e := range found {
			if e.Thread != id || !slices.Contains(tc.ids, id) {
				t.Errorf("%s: %s is %+v", name, id, e)
			}
		}
	}
}
