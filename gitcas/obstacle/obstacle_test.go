package obstacle

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/gitserver"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/gitservertest"
	"github.com/united-workforce/uwf/internal/wiretest"
)

const work = "uwf/01JD0000000000000000000001"

// commit is one without files.
func commit(t *testing.T, message string, parents ...wire.ID) wire.Object {
	t.Helper()
	who := gitobj.Signature{Name: "uwf", Email: "uwf@localhost", When: time.Unix(1_700_000_000, 0).UTC()}
	data, err := gitobj.EncodeCommit(gitobj.Commit{Tree: wire.EmptyTree, Parents: parents, Author: who, Committer: who, Message: message + "\n"})
	if err != nil {
		t.Fatal(err)
	}
	return wire.NewObject(plumbing.CommitObject, data)
}

// seed puts a commit on branches of a remote.
func seed(t *testing.T, r wire.Remote, branches ...string) wire.ID {
	t.Helper()
	c := commit(t, "first")
	req := wire.PushRequest{Objects: []wire.PackObject{{Object: wire.NewObject(plumbing.TreeObject, nil)}, {Object: c}}}
	for _, b := range append(branches, "main") {
		req.Updates = append(req.Updates, wire.RefUpdate{Name: "refs/heads/" + b, New: c.ID})
	}
	if _, err := r.Push(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	return c.ID
}

// TestTryBranch asks real servers, each with something in the way: what it is is found out, and
// no ref changes, whether something is in the way or not.
func TestTryBranch(t *testing.T) {
	t.Parallel()
	const unsigned = `while read -r old new ref; do
case $ref in refs/heads/uwf/*) echo "error: GH013: Repository rule violations found for $ref." >&2; echo "- Commits must have verified signatures." >&2; exit 1 ;; esac
done`
	for name, tt := range map[string]struct {
		branches []string
		config   map[string]string
		hook     string
		there    bool // the branch
		want     string
	}{
		"nothing":            {},
		"nothing, a tip":     {there: true},
		"a branch":           {branches: []string{"uwf"}, want: "branch"},
		"hidden refs":        {config: map[string]string{"transfer.hideRefs": "refs/uwf"}, want: "hidden"},
		"signatures":         {hook: unsigned, want: "signature"},
		"signatures, a tip":  {hook: unsigned, there: true, want: "signature"},
		"a hook of its own":  {hook: "echo no >&2; exit 1", want: "rule"},
		"large pushes":       {config: map[string]string{"receive.maxInputSize": "10"}, want: "size"},
		"another state's":    {branches: []string{"x"}},
		"a branch below it":  {branches: []string{work + "/x"}, want: "branch"},
		"deletions are kept": {config: map[string]string{"receive.denyDeletes": "true"}},
		"no rewrites":        {config: map[string]string{"receive.denyNonFastForwards": "true"}},
		"no rewrites, a tip": {config: map[string]string{"receive.denyNonFastForwards": "true"}, there: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, err := gitservertest.Serve(t.TempDir(), gitserver.Options{Hooks: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = srv.Close() })
			url, err := srv.Init("r.git")
			if err != nil {
				t.Fatal(err)
			}
			remotes := map[string]string{"http": url}
			if tt.hook == "" { // git's own server for files runs no hooks
				remotes["file"] = "file://" + srv.Dir("r.git")
			}
			var tip wire.ID
			if first := seed(t, dial(t, url), tt.branches...); tt.there {
				tip = first
				git(t, srv.Dir("r.git"), "update-ref", "refs/heads/"+work, tip.String())
			}
			for key, value := range tt.config {
				git(t, srv.Dir("r.git"), "config", key, value)
			}
			if tt.hook != "" {
				hooks := filepath.Join(srv.Dir("r.git"), "hooks")
				if err := os.MkdirAll(hooks, 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(hooks, "pre-receive"), []byte("#!/bin/sh\n"+tt.hook+"\n"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			before := git(t, srv.Dir("r.git"), "for-each-ref")
			for kind, url := range remotes {
				for _, most := range []int{1, 2, 100} {
					var parents []wire.ID
					if tt.there {
						parents = []wire.ID{tip}
					}
					err := TryBranch(t.Context(), dial(t, url), most, work, tip, commit(t, "asked", parents...))
					o, _ := Of(err)
					want := tt.want
					if most == 1 && want == "signature" || most == 2 && want == "hidden" {
						want = "" // it can't be asked
					}
					if o.Name != want || (err != nil) != (want != "") {
						t.Errorf("%s, %d refs: %q, want %q: %v", kind, most, o.Name, want, err)
					}
					if tt.branches != nil && tt.want == "branch" && !strings.Contains(o.Mend("", ""), "git branch -m "+tt.branches[0]+" add-"+strings.ReplaceAll(tt.branches[0], "/", "-")) {
						t.Errorf("%s: the mend is %q", kind, o.Mend("", ""))
					}
				}
			}
			if after := git(t, srv.Dir("r.git"), "for-each-ref"); after != before {
				t.Errorf("refs before:\n%s\nafter:\n%s", before, after)
			}
		})
	}
}

// TestMendHidden: the command that the list names for hidden refs shows them again.
func TestMendHidden(t *testing.T) {
	srv, err := gitservertest.Serve(t.TempDir(), gitserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close() })
	url, err := srv.Init("r.git")
	if err != nil {
		t.Fatal(err)
	}
	seed(t, dial(t, url))
	ask := func() error { return TryBranch(t.Context(), dial(t, url), 100, work, wire.ZeroID, commit(t, "asked")) }
	git(t, srv.Dir("r.git"), "config", "receive.hideRefs", "refs/uwf")
	o, _ := Of(ask())
	_, command, _ := strings.Cut(o.Mend("", ""), "git config --add transfer.hideRefs '")
	value, _, _ := strings.Cut(command, "'")
	git(t, srv.Dir("r.git"), "config", "--add", "transfer.hideRefs", value)
	if err := ask(); o.Name != "hidden" || err != nil {
		t.Errorf("%q: %v", o.Name, err)
	}
}

// TestFindInTheWay: a listing tells what is in the way of which branch.
func TestFindInTheWay(t *testing.T) {
	for refs, want := range map[string]string{
		"": "", "refs/heads/uwf-state": "", "refs/heads/uwfx refs/heads/x/uwf refs/tags/uwf": "", "refs/heads/uwf/01JD0000000000000000000002": "",
		"refs/heads/uwf": "refs/heads/uwf", "refs/heads/main refs/heads/a": "refs/heads/a", "refs/heads/a/b/c": "refs/heads/a/b/c", "refs/heads/a/b": "",
	} {
		all := map[string]wire.ID{}
		for name := range strings.FieldsSeq(refs) {
			all[name] = wire.EmptyTree
		}
		err := FindInTheWay(all, "file:///x", work, "a/b")
		o, _ := Of(err)
		if (err == nil) != (want == "") || !strings.Contains(o.What, strings.TrimPrefix(want, "refs/heads/")) || err != nil && o.Name != "branch" {
			t.Errorf("%s: %v: %s", refs, err, o.What)
		}
	}
}

// TestKinds: every obstacle of the list is told from the others by its errors, and too many refs
// are none.
func TestKinds(t *testing.T) {
	names := map[string]bool{}
	for _, o := range List() {
		got, ok := Of(fmt.Errorf("x: %w", &wire.RemoteError{Kind: o.kind, InTheWay: "refs/heads/a/b"}))
		if !ok || got.Name != o.Name || names[o.Name] || got.Mend("S", "P") == "" {
			t.Errorf("%s is taken for %+v", o.Name, got)
		}
		names[o.Name] = true
	}
	for _, kind := range []error{nil, wire.ErrTooManyRefs, wire.ErrLostRace, wire.ErrDenied, wire.ErrUnreachable, wire.ErrInvalid, wire.ErrSecretRefused} {
		if o, ok := Of(kind); ok {
			t.Errorf("%v is taken for %s", kind, o.Name)
		}
	}
}

// TestDocs: docs/action.md says what mends each.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/action.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range List() {
		o.name("refs/heads/uwf", "origin")
		if mend := o.Mend("uwf-state", "Settings, Rules"); !strings.Contains(string(page), mend+" |") {
			t.Errorf("docs/action.md lacks %q", mend)
		}
	}
}

// TestTryLeavesRaces: what the push that counts says better is not told.
func TestTryLeavesRaces(t *testing.T) {
	m := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})
	before := m.Refs()
	err := TryBranch(t.Context(), m, 100, work, commit(t, "not there").ID, commit(t, "asked"))
	if err != nil || !maps.Equal(before, m.Refs()) {
		t.Error(err, m.Refs())
	}
}

func dial(t *testing.T, url string) wire.Remote {
	t.Helper()
	r, err := wire.Dial(url, wire.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}
