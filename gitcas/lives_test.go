package gitcas

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/internal/wiretest"
)

func findLine(t *testing.T, s *Store, v *View, id ThreadID) Ended {
	t.Helper()
	e, ok, err := v.FindEnded(t.Context(), id)
	if err != nil || !ok {
		t.Fatalf("the line of thread %s: %v, %v", id, ok, err)
	}
	return e
}

// reopenChange brings a thread back with a further node.
func reopenChange(t *testing.T, s *Store, v *View, id ThreadID) *Change {
	t.Helper()
	e := findLine(t, s, v, id)
	return &Change{
		Subject: "resumed", Reopen: []Ended{e}, Threads: map[ThreadID]*Entry{id: {Head: e.Head, Workflow: e.Workflow}},
	}
}

// testLives: a thread ends, comes back whole, ends again and is removed.
func testLives(t *testing.T, s *Store) {
	id, other := ThreadID("01H00000000000000000000001"), threadID(2) // made before its end
	threadWithSteps(t, s, other, 1)
	threadWithSteps(t, s, id, 2)
	v := mustPush(t, s, mustLoad(t, s, id), endChange(t, mustLoad(t, s, id), id, "first end"))
	first := findLine(t, s, v, id)
	past, err := v.LoadEnded(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	was := folderNames(t, past, id)
	lost := first
	lost.Commit = strings.Repeat("a", 40)
	if _, err := v.LoadEnded(t.Context(), lost); !errors.Is(err, ErrContent) || !strings.Contains(err.Error(), "git push <remote> "+lost.Commit) {
		t.Errorf("a commit that is gone: %v", err)
	}

	v = mustLoad(t, s)
	mustPush(t, s, v, reopenChange(t, s, v, id))
	v = mustLoad(t, s, id)
	if c, err := v.ReadChain(t.Context(), id); err != nil || len(c.Steps) != 3 || !slices.Equal(folderNames(t, v, id), was) {
		t.Fatalf("it came back with %d steps and %q: %v", len(c.Steps), folderNames(t, v, id), err)
	}
	c, _ := v.ReadChain(t.Context(), id)
	if _, err := below(t.Context(), v, id, c.Steps[0].Hash, c.Steps[0].Detail); err != nil {
		t.Fatal(err)
	}
	listed := func() (out []string) {
		t.Helper()
		v := mustLoad(t, s)
		if err := v.History(t.Context(), time.Time{}, func(e Ended) error {
			out = append(out, fmt.Sprintf("%s %d", e.Reason, len(e.Steps)))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return out
	}
	if got := listed(); len(got) != 0 {
		t.Fatalf("it lives, and is among the ended ones: %q", got)
	}
	_, err = s.Push(t.Context(), v, reopenedTwice(first))
	wantErr(t, err, ErrStale)
	mustSound(t, s)

	v = mustPush(t, s, v, stepChange(t, v, id, "reviewer", "after the end"))
	v = mustPush(t, s, v, endChange(t, v, id, "second end"))
	second := findLine(t, s, v, id)
	if len(second.Steps) != 5 || second.Commit == first.Commit {
		t.Fatalf("the newest line is %+v", second)
	}
	if got := listed(); !slices.Equal(got, []string{"ended 5"}) {
		t.Fatalf("listed %q", got)
	}
	mustSound(t, s)
	var subjects []string
	if err := v.Log(t.Context(), id, func(e view.LogEntry) error { subjects = append(subjects, e.Subject); return nil }); err != nil {
		t.Fatal(err)
	}
	if n := len(subjects); n != 7 || subjects[2] != "resumed" || subjects[6] != "started · prompt of "+string(id) {
		t.Fatalf("its log: %q", subjects)
	}

	stale := first
	_, err = s.Push(t.Context(), v, &Change{Subject: "removed", Removed: []Ended{stale}})
	wantErr(t, err, ErrStale)
	second.CompletedAt = v.Time().UnixMilli()
	v = mustPush(t, s, v, &Change{Subject: "removed", Removed: []Ended{second}})
	if e := findLine(t, s, v, id); e.Reason != ReasonRemoved {
		t.Fatalf("the newest line is %+v", e)
	}
	if got := listed(); len(got) != 0 {
		t.Fatalf("listed %q", got)
	}
	if f, err := Find(t.Context(), mustLoad(t, s), second.Steps[3]); err == nil {
		t.Fatalf("a step of a removed thread is found: %+v", f)
	}
	_, err = s.Push(t.Context(), v, &Change{Subject: "again", Removed: []Ended{second}})
	wantErr(t, err, ErrStale)
	_, err = s.Push(t.Context(), v, reopenedTwice(second))
	wantErr(t, err, ErrStale)
	mustSound(t, s)
}

func reopenedTwice(e Ended) *Change {
	return &Change{Subject: "resumed", Reopen: []Ended{e}, Threads: map[ThreadID]*Entry{e.Thread: {Head: e.Head}}}
}

// TestReopenRefused: what was cancelled stays so, and nothing comes back without an
// entry.
func TestReopenRefused(t *testing.T) {
	s := Open(wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true}), testOptions())
	id := threadID(1)
	threadWithSteps(t, s, id, 1)
	v := mustLoad(t, s, id)
	_, err := s.Push(t.Context(), v, &Change{Subject: "removed", Removed: []Ended{{Thread: id, Head: mustEntry(t, v, id).Head, Commit: v.Tip().String()}}})
	wantErr(t, err, ErrStale)
	mustPush(t, s, v, &Change{Subject: "cancelled", Archive: []Ended{{Thread: id, Head: mustEntry(t, v, id).Head, Reason: ReasonCancelled, CompletedAt: 1_800_000_000_000}}})
	v = mustLoad(t, s)
	c := reopenChange(t, s, v, id)
	_, err = s.Push(t.Context(), v, c)
	wantErr(t, err, ErrInvalid)
	c.Reopen[0].Reason = ReasonEnded
	c.Threads = nil
	_, err = s.Push(t.Context(), v, c)
	wantErr(t, err, ErrInvalid)
	_, err = s.Push(t.Context(), v, &Change{Subject: "removed", Removed: []Ended{{Thread: threadID(7), Head: c.Reopen[0].Head}}})
	wantErr(t, err, ErrUnknownThread)
}

// TestFsckLives: threads that live again and must not, or not like that.
func TestFsckLives(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		edit   func(e *Ended)
		before string // how it had ended before; empty: not
		says   string
	}{
		"cancelled":             {ReasonCancelled, func(*Ended) {}, "", "was cancelled, but threads.yaml lists it"},
		"without head":          {ReasonEnded, func(e *Ended) { e.Head = "0000000000000" }, "", "without that step"},
		"ended after cancelled": {ReasonEnded, func(*Ended) {}, ReasonCancelled, "was cancelled, and ended after that"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newVandal(t)
			id := threadID(1)
			e := Ended{Thread: id, Head: mustEntry(t, mustLoadTip(x), id).Head, Reason: tc.reason, CompletedAt: 1_772_366_400_000, Commit: mustLoadTip(x).Tip().String()}
			tc.edit(&e)
			lines := []Ended{e}
			if tc.before != "" {
				lines = []Ended{{Thread: id, Head: e.Head, Reason: tc.before, CompletedAt: e.CompletedAt, Commit: e.Commit}, e}
			}
			var text []byte
			for _, e := range lines {
				line, err := statefile.EncodeEnded(e)
				if err != nil {
					t.Fatal(err)
				}
				text = append(text, line...)
			}
			x.edit("history/2026/03-01.jsonl", func(f gitobj.Entry) gitobj.Entry { f.ID = x.put(plumbing.BlobObject, text); return f })
			r, err := x.s.Fsck(t.Context(), false)
			if err != nil || len(r.Problems) != 1 || !strings.Contains(r.Problems[0].Why, tc.says) {
				t.Fatalf("%+v, %v", r.Problems, err)
			}
		})
	}
}
