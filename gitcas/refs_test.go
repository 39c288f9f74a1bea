package gitcas

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/gitserver"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// fiveRefs is a step with a work commit, which an attempt's ref holds too, that lets its claim
// go: as many refs as a change can have.
func fiveRefs(t *testing.T, s *Store, id ThreadID, n int) (*View, *Change) {
	t.Helper()
	sig := gitobj.Signature{Name: "t", Email: "t@example.com", When: time.Unix(int64(n), 0)}
	data, err := gitobj.EncodeCommit(gitobj.Commit{Tree: wire.EmptyTree, Author: sig, Committer: sig, Message: "work\n"})
	if err != nil {
		t.Fatal(err)
	}
	work := wire.NewObject(plumbing.CommitObject, data)
	v := mustLoad(t, s, id)
	claim, objs := view.ClaimUpdate(id, nil, &Claim{Run: "run-1", Attempt: n, Head: mustEntry(t, v, id).Head}, v.Time())
	v = mustPush(t, s, v, &Change{Refs: []wire.RefUpdate{claim}, Objects: objs})
	attempt, objs, err := BuildAttempt(Attempt{Thread: id, Run: "run-1", Attempt: n, Parents: []wire.ID{work.ID}, At: v.Time()})
	if err != nil {
		t.Fatal(err)
	}
	held, _ := v.FindClaim(id)
	release, _ := view.ClaimUpdate(id, &held, nil, v.Time())
	old, _ := v.Ref(layout.Heads + layout.WorkBranch(id))
	c := stepChange(t, v, id, "developer", fmt.Sprint("step ", n))
	c.Refs = []wire.RefUpdate{release, {Name: layout.Heads + layout.WorkBranch(id), Old: old, New: work.ID}, attempt}
	c.Objects = append(objs, wire.PackObject{Object: work})
	return v, c
}

// shortRefs are the refs of a push by the folder that they are in.
func shortRefs(req wire.PushRequest) string {
	var names []string
	for _, u := range req.Updates {
		name := strings.TrimPrefix(strings.TrimPrefix(u.Name, "refs/uwf/"), "refs/heads/")
		name, _, _ = strings.Cut(name, "/")
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

// TestFewRefs: a change of too many refs is pushed again at once, in parts with as many as the
// remote takes, and the next job knows.
func TestFewRefs(t *testing.T) {
	const all = "claims uwf attempts uwf-state store"
	for most, tc := range map[int]struct {
		says          bool
		first, second string
	}{
		0: {true, all, all},
		4: {true, all + "|attempts uwf-state store uwf|claims", "attempts uwf-state store uwf|claims"},
		3: {true, all + "|attempts uwf-state store|uwf claims", "attempts uwf-state store|uwf claims"},
		2: {true, all + "|attempts|uwf-state store|uwf claims", "attempts|uwf-state store|uwf claims"},
		// It doesn't say how many: half, and half again.
		1: {false, all + "|attempts|uwf-state store|uwf-state|store|uwf|claims", "attempts|uwf-state|store|uwf|claims"},
	} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			mem := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})
			id := threadID(1)
			threadWithSteps(t, Open(mem, testOptions()), id, 1)
			bounded := false
			var log []string
			remote := &wrapped{Remote: mem, push: func(req wire.PushRequest, push func() (time.Time, error)) (time.Time, error) {
				log = append(log, shortRefs(req))
				if !bounded || most == 0 || len(req.Updates) <= most {
					return push()
				}
				e := &wire.RemoteError{Op: "push", Kind: wire.ErrTooManyRefs}
				if tc.says {
					e.MostRefs = most
				}
				return time.Time{}, e
			}}
			pushStep := func(n int, want string) *View { // by another job
				t.Helper()
				s := Open(remote, testOptions())
				v, c := fiveRefs(t, s, id, n)
				bounded, log = true, nil
				v, err := s.Update(t.Context(), v, func(v *View) (*Change, error) {
					if len(mustChain(t, v, id).Steps) > n {
						t.Error("it is asked for again although it was taken")
					}
					c.Refs = slices.DeleteFunc(c.Refs, func(u wire.RefUpdate) bool { return v.Refs()[u.Name] == u.New })
					return c, nil
				}, id)
				bounded = false
				if err != nil {
					t.Fatalf("step %d: %v", n, err)
				}
				if len(v.Lagging) > 0 {
					t.Errorf("step %d: lagging %v", n, v.Lagging)
				}
				if got := strings.Join(log, "|"); got != want {
					t.Errorf("step %d is pushed as\n%s, want\n%s", n, got, want)
				}
				fresh := mustLoad(t, s, id)
				if s.MostRefs(fresh) != s.MostRefs(v) || most > 0 && s.MostRefs(fresh) != most || s.Atomic(fresh) != (most == 0 || most >= StepRefs) {
					t.Errorf("step %d: %d refs a push are known, %d noted, atomic %t", n, s.MostRefs(v), s.MostRefs(fresh), s.Atomic(fresh))
				}
				if _, claimed := fresh.FindClaim(id); claimed || fresh.Refs()[layout.Heads+layout.WorkBranch(id)].IsZero() || fresh.Refs()[layout.StoreRef] != fresh.Tip() {
					t.Errorf("step %d left %v", n, fresh.Refs())
				}
				return fresh
			}
			v := pushStep(1, tc.first)
			noted := v.Version
			v = pushStep(2, tc.second)
			if noted.Refs != most || v.Version != noted {
				t.Errorf("VERSION has %+v, then %+v", noted, v.Version)
			}
			mustSound(t, Open(mem, testOptions()))
		})
	}
}

// TestFewRefsOneRefused: what goes after the state branch together is not lost together: a
// work branch that people pushed to lags behind, and the claim goes.
func TestFewRefsOneRefused(t *testing.T) {
	mem := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true, MostRefs: 2})
	s, id := Open(mem, testOptions()), threadID(1)
	threadWithSteps(t, s, id, 1)
	v, c := fiveRefs(t, s, id, 1)
	work := layout.Heads + layout.WorkBranch(id)
	mem.SetRef(work, v.Tip())
	v = mustPush(t, s, v, c)
	if lagging := v.Lagging; len(lagging) != 1 || !errors.Is(lagging[work], ErrLostRace) {
		t.Errorf("lagging %v", lagging)
	}
	if _, claimed := mustLoad(t, s, id).FindClaim(id); claimed || len(mustChain(t, v, id).Steps) != 2 {
		t.Errorf("claimed %t, %d steps", claimed, len(mustChain(t, v, id).Steps))
	}
}

// TestFewRefsOverHTTP: a git server that counts the refs of a push, and says so as GitHub does.
func TestFewRefsOverHTTP(t *testing.T) {
	srv := httpServer(t, gitserver.Options{Hooks: true})
	url, err := srv.Init("few.git")
	if err != nil {
		t.Fatal(err)
	}
	hooks := filepath.Join(srv.Dir("few.git"), "hooks")
	if err := os.MkdirAll(hooks, 0o700); err != nil {
		t.Fatal(err)
	}
	hook := `#!/bin/sh
refs=$(cut -d " " -f 3)
if [ $(echo "$refs" | wc -l) -le 2 ]; then exit 0; fi
for ref in $refs; do
	echo "error: GH013: Repository rule violations found for $ref."
	echo "Review all repository rules at https://github.com/o/r/rules?ref=$ref"
	echo
	echo "- Pushes can not update more than 2 branches or tags."
	echo
done >&2
exit 1
`
	if err := os.WriteFile(filepath.Join(hooks, "pre-receive"), []byte(hook), 0o700); err != nil {
		t.Fatal(err)
	}
	id := threadID(1)
	threadWithSteps(t, Open(dial(t, url), testOptions()), id, 1)
	for n := 1; n <= 2; n++ {
		s := Open(dial(t, url), testOptions())
		if v := mustLoad(t, s); s.Atomic(v) || v.Version.Refs != 2 { // the start has asked
			t.Errorf("before step %d: VERSION has %+v", n, v.Version)
		}
		v, c := fiveRefs(t, s, id, n)
		v = mustPush(t, s, v, c)
		if len(v.Lagging) > 0 {
			t.Errorf("step %d: lagging %v", n, v.Lagging)
		}
		fresh := mustLoad(t, s, id)
		if _, claimed := fresh.FindClaim(id); claimed || fresh.Tip() != v.Tip() || !maps.Equal(fresh.Refs(), v.Refs()) {
			t.Errorf("after step %d: %v, want %v", n, fresh.Refs(), v.Refs())
		}
	}
	if text := runGit(t, srv.Dir("few.git"), "show", DefaultBranch+":"+layout.VersionName); !strings.HasSuffix(text, "\nrefs: 2\n") {
		t.Errorf("VERSION is %q", text)
	}
	mustSound(t, Open(dial(t, url), testOptions()))
}
