package gitcas

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/gitcas/gitserver"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/outage"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// TestLostRacesThatAreNone: a push that keeps losing races while no ref moves was refused, and the
// error has the server's words. It is tried again if the words name a lock or another value, or if
// others do move the branch.
func TestLostRacesThatAreNone(t *testing.T) {
	for name, tc := range map[string]struct {
		said  string
		moves bool
		kind  error
		words string
	}{
		"hidden refs":   {"cannot lock ref 'refs/uwf/store': reference already exists", false, wire.ErrHidden, "the server lists no refs/uwf/store, though it has it"},
		"other words":   {"stale info", false, wire.ErrProtected, "stale info"},
		"a lock":        {"cannot lock ref 'refs/heads/uwf-state': Unable to create '/r.git/refs/heads/uwf-state.lock': File exists.", false, ErrLostRace, "others were faster"},
		"JGit's lock":   {"failed to lock", false, ErrLostRace, "others were faster"},
		"another value": {"cannot lock ref 'refs/uwf/store': is at 1111111 but expected 2222222", false, ErrLostRace, "others were faster"},
		"others' steps": {"stale info", true, ErrLostRace, "others were faster"},
	} {
		t.Run(name, func(t *testing.T) {
			mem := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})
			threadWithSteps(t, Open(mem, testOptions()), threadID(1), 0)
			threadWithSteps(t, Open(mem, testOptions()), threadID(2), 0)

			o := testOptions()
			at := time.Unix(1_800_000_000, 0)
			began := at
			o.Now, o.Jitter = func() time.Time { return at }, func() float64 { return 1 }
			o.Sleep = func(_ context.Context, d time.Duration) error { at = at.Add(d); return nil }
			o.RetryFor = 2 * time.Minute

			s := Open(&wrapped{Remote: mem, push: func(wire.PushRequest, func() (time.Time, error)) (time.Time, error) {
				at = at.Add(time.Second)
				if tc.moves {
					other := Open(mem, testOptions())
					v := mustLoad(t, other, threadID(2))
					mustPush(t, other, v, stepChange(t, v, threadID(2), "a", "b"))
				}
				return time.Time{}, &wire.RemoteError{Op: "push", Ref: "refs/uwf/store", Kind: wire.ErrLostRace, Detail: tc.said}
			}}, o)

			v := mustLoad(t, s, threadID(1))
			_, err := s.Update(t.Context(), v, func(v *View) (*Change, error) { return stepChange(t, v, threadID(1), "a", "b"), nil }, threadID(1))
			if !errors.Is(err, tc.kind) || !strings.Contains(err.Error(), tc.words) || errors.Is(err, ErrUnsure) {
				t.Errorf("the error is %v", err)
			}
			if took := at.Sub(began); errors.Is(tc.kind, wire.ErrProtected) && (took < leastUnmoved || took > 4*leastUnmoved) {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// TestNotGiven: what a server doesn't give is not called damaged: neither an ended thread nor, by
// fsck, the store.
func TestNotGiven(t *testing.T) {
	mem := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})
	s := Open(mem, testOptions())
	id := threadID(1)
	v := threadWithSteps(t, s, id, 1)
	v = mustPush(t, s, v, endChange(t, v, id, "done"))
	line := findLine(t, s, v, id)
	stingy := Open(&wrapped{Remote: mem, fetch: func(req wire.FetchRequest) error {
		for _, want := range req.Wants {
			if want.String() == line.Commit {
				return &wire.RemoteError{Op: "fetch", Kind: wire.ErrNotGiven}
			}
		}
		return nil
	}}, testOptions())

	v = mustLoad(t, stingy)
	if _, err := v.LoadEnded(t.Context(), line); !errors.Is(err, wire.ErrNotGiven) || errors.Is(err, ErrDamaged) {
		t.Errorf("the ended thread: %v", err)
	}
	r, err := stingy.Fsck(t.Context(), true)
	if err != nil || !r.OK() || len(r.Unread) == 0 || !strings.Contains(r.Unread[0].Why, "gives only what a ref leads to") {
		t.Errorf("fsck: %+v, %v", r, err)
	}
}

// TestInitRefused: a server that ends without a report, as git does where a reference-transaction
// hook says no, refuses. That is no outage.
func TestInitRefused(t *testing.T) {
	srv := httpServer(t, gitserver.Options{Hooks: true})
	url, err := srv.Init("r.git")
	if err != nil {
		t.Fatal(err)
	}
	hooks := filepath.Join(srv.Dir("r.git"), "hooks")
	if err := os.MkdirAll(hooks, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(hooks, "reference-transaction"), []byte("#!/bin/sh\n! grep -q refs/uwf/store\n"), 0o700); err != nil {
		t.Fatal(err)
	}

	remote, err := wire.Dial(url, wire.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	o := testOptions()
	told := 0
	o.Waiting = func(outage.Wait) { told++ }
	_, err = Open(remote, o).Init(t.Context())
	if !errors.Is(err, wire.ErrProtected) || !strings.Contains(err.Error(), "the server ends without a report") || told != 1 {
		t.Errorf("told %d times, %v", told, err)
	}
}
