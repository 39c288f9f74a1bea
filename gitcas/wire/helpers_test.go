package wire_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/gitserver"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/gitservertest"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// entry is one line of a tree under construction.
type entry struct {
	mode, name string
	id         wire.ID
}

func blob(s string) wire.Object { return wire.NewObject(plumbing.BlobObject, []byte(s)) }

func file(name string, o wire.Object) entry { return entry{"100644", name, o.ID} }
func dir(name string, o wire.Object) entry  { return entry{"40000", name, o.ID} }

func tree(es ...entry) wire.Object {
	key := func(e entry) string {
		if e.mode == "40000" {
			return e.name + "/"
		}
		return e.name
	}
	sort.Slice(es, func(i, j int) bool { return key(es[i]) < key(es[j]) })
	var b bytes.Buffer
	for _, e := range es {
		fmt.Fprintf(&b, "%s %s\x00", e.mode, e.name)
		b.Write(e.id[:])
	}
	return wire.NewObject(plumbing.TreeObject, b.Bytes())
}

func commit(msg string, t wire.Object, parents ...wire.Object) wire.Object {
	var b bytes.Buffer
	fmt.Fprintf(&b, "tree %s\n", t.ID)
	for _, p := range parents {
		fmt.Fprintf(&b, "parent %s\n", p.ID)
	}
	fmt.Fprintf(&b, "author t <t@example.org> 1700000000 +0000\ncommitter t <t@example.org> 1700000000 +0000\n\n%s\n", msg)
	return wire.NewObject(plumbing.CommitObject, b.Bytes())
}

func plain(objs ...wire.Object) []wire.PackObject {
	out := make([]wire.PackObject, len(objs))
	for i, o := range objs {
		out[i] = wire.PackObject{Object: o}
	}
	return out
}

// bed is one remote under test and what the test may do to it from outside.
type bed struct {
	remote wire.Remote
	redial func() wire.Remote
	// dir is the bare repository on disk; empty for the one in memory.
	dir string
}

// beds are all kinds of remote that must behave alike.
func beds() map[string]func(t *testing.T) *bed {
	return map[string]func(t *testing.T) *bed{
		"memory": func(*testing.T) *bed {
			m := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})
			return &bed{remote: m, redial: func() wire.Remote { return m }}
		},
		"http": func(t *testing.T) *bed { return httpBed(t, gitserver.Options{}, wire.DialOptions{}) },
		"file": func(t *testing.T) *bed {
			d := bare(t)
			return dialBed(t, "file://"+filepath.ToSlash(d), d, wire.DialOptions{})
		},
		"ssh": func(t *testing.T) *bed {
			d := bare(t)
			return dialBed(t, "ssh://git@example.org"+filepath.ToSlash(d), d, wire.DialOptions{Env: sshEnv(t, true)})
		},
		"ssh v0": func(t *testing.T) *bed {
			d := bare(t)
			return dialBed(t, "git@example.org:"+filepath.ToSlash(d), d, wire.DialOptions{Env: sshEnv(t, false)})
		},
	}
}

func dialBed(t *testing.T, url, dir string, o wire.DialOptions) *bed {
	t.Helper()
	if o.HostDate == nil {
		o.HostDate = func(context.Context, string) (time.Time, error) { return time.Time{}, errors.ErrUnsupported }
	}
	dial := func() wire.Remote {
		r, err := wire.Dial(url, o)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	return &bed{remote: dial(), redial: dial, dir: dir}
}

func httpBed(t *testing.T, so gitserver.Options, o wire.DialOptions) *bed {
	t.Helper()
	if err := gitserver.Available(""); err != nil {
		t.Skip(err)
	}
	s, err := gitservertest.Serve(t.TempDir(), so)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	url, err := s.Init("r.git")
	if err != nil {
		t.Fatal(err)
	}
	return dialBed(t, url, s.Dir("r.git"), o)
}

func bare(t *testing.T) string {
	t.Helper()
	d := filepath.Join(t.TempDir(), "r.git")
	if err := gitservertest.MakeBare(d, "main"); err != nil {
		t.Fatal(err)
	}
	return d
}

// sshEnv is an environment whose ssh runs the remote command on this machine.
// Protocol version 2 gets through only where v2 is set, as with servers that
// accept the variable and those that don't.
func sshEnv(t *testing.T, v2 bool) []string {
	t.Helper()
	d := t.TempDir()
	drop := "unset GIT_PROTOCOL"
	if v2 {
		drop = ":"
	}
	script := `#!/bin/sh
for last; do prev="$this"; this="$last"; done
case " $* " in *" -o BatchMode=yes "*) ;; *) echo "not in batch mode" >&2; exit 9;; esac
case "$prev" in git@example.org|example.org) ;; *) echo "ssh: Could not resolve hostname $prev: Name or service not known" >&2; exit 255;; esac
` + drop + `
export GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0=uploadpack.allowFilter GIT_CONFIG_VALUE_0=true
export GIT_CONFIG_KEY_1=safe.directory GIT_CONFIG_VALUE_1='*' GIT_CONFIG_GLOBAL=/dev/null
if [ -x "$HOME/before" ]; then "$HOME/before"; fi
exec sh -c "$this"
`
	writeFile(t, filepath.Join(d, "ssh"), script, 0o700)
	return []string{"PATH=" + d + ":" + os.Getenv("PATH"), "HOME=" + d}
}

func writeFile(t *testing.T, name, content string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "LC_ALL=C",
		"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@example.org", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@example.org",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(bytes.TrimSpace(out))
}

// push pushes and fails the test when it is refused.
func push(t *testing.T, r wire.Remote, updates []wire.RefUpdate, objs ...wire.PackObject) {
	t.Helper()
	before := time.Now()
	at, err := r.Push(t.Context(), wire.PushRequest{Updates: updates, Objects: objs, Atomic: true})
	if err != nil {
		t.Fatalf("push: %v", err)
	}
	wantNow(t, before, at)
}

// wantNow checks that a server on this machine told the time of a call which began
// at before and is over; HTTP tells whole seconds.
func wantNow(t *testing.T, before, at time.Time) {
	t.Helper()
	if now := time.Now(); at.Before(before.Truncate(time.Second)) || at.After(now) {
		t.Errorf("the server's clock says %v, between %v and %v", at, before, now)
	}
}

func list(t *testing.T, r wire.Remote, prefixes ...string) wire.Listing {
	t.Helper()
	l, err := r.List(t.Context(), prefixes...)
	if err != nil {
		t.Fatalf("list: %v", err)
	}
	return l
}

func fetch(t *testing.T, r wire.Remote, req wire.FetchRequest) wire.Objects {
	t.Helper()
	objs, err := r.Fetch(t.Context(), req)
	if err != nil {
		t.Fatalf("fetch: %v", err)
	}
	for id, o := range objs {
		if got := plumbing.ComputeHash(o.Type, o.Data); got != id || o.ID != id {
			t.Fatalf("object %s is really %s", id, got)
		}
	}
	return objs
}

func cancelled(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// wantKind checks that an error matches that kind and no other.
func wantKind(t *testing.T, err, kind error, what string) {
	t.Helper()
	var e *wire.RemoteError
	if !errors.As(err, &e) {
		t.Errorf("%s: the error is %v, want %v", what, err, kind)
		return
	}
	for _, k := range []error{
		wire.ErrLostRace, wire.ErrDenied, wire.ErrProtected, wire.ErrSecretRefused, wire.ErrNotFound,
		wire.ErrUnreachable, wire.ErrUnreadable, wire.ErrNotAtomic, wire.ErrInvalid, wire.ErrReadOnly, wire.ErrNoProgram,
	} {
		if errors.Is(err, k) != errors.Is(k, kind) {
			t.Errorf("%s: the error is %q, want %v", what, err, kind)
			return
		}
	}
}

// creation is a push that makes one branch.
func creation() wire.PushRequest {
	tr := tree()
	c := commit("c", tr)
	return wire.PushRequest{Updates: []wire.RefUpdate{{Name: "refs/heads/a", New: c.ID}}, Objects: plain(tr, c)}
}
