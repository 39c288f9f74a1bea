package gitserver_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/united-workforce/uwf/gitcas/gitserver"
	"github.com/united-workforce/uwf/internal/gitservertest"
)

// TestNativeGit pushes and clones with git itself, a push larger than git's
// post buffer (which it sends in chunks) among it.
func TestNativeGit(t *testing.T) {
	s := serve(t, gitserver.Options{})
	url, err := s.Init("r.git")
	if err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	git(t, work, "init", "-q", "-b", "main")
	big := make([]byte, 6<<20)
	if _, err := rand.NewChaCha8([32]byte{}).Read(big); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(work, "big"), big, 0o600); err != nil {
		t.Fatal(err)
	}
	git(t, work, "add", ".")
	git(t, work, "commit", "-q", "-m", "first")
	git(t, work, "-c", "http.postBuffer=4096", "push", "-q", url, "main")
	clone := filepath.Join(t.TempDir(), "clone")
	git(t, work, "clone", "-q", url, clone)
	got, err := os.ReadFile(filepath.Join(clone, "big"))
	if err != nil || !bytes.Equal(got, big) {
		t.Fatalf("the clone's file differs (%v)", err)
	}
}

func TestHooksAreOff(t *testing.T) {
	for _, on := range []bool{false, true} {
		s := serve(t, gitserver.Options{Hooks: on})
		url, err := s.Init("r.git")
		if err != nil {
			t.Fatal(err)
		}
		hooks := filepath.Join(s.Dir("r.git"), "hooks")
		if err := os.MkdirAll(hooks, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(hooks, "pre-receive"), []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		work := t.TempDir()
		git(t, work, "init", "-q", "-b", "main")
		git(t, work, "commit", "-q", "--allow-empty", "-m", "first")
		if err := gitCmd(t, work, "push", "-q", url, "main").Run(); (err != nil) != on {
			t.Errorf("hooks %v: push says %v", on, err)
		}
	}
}

func TestAvailable(t *testing.T) {
	if err := gitserver.Available("no-such-git-program"); err == nil {
		t.Error("a missing git is called available")
	}
	fake := filepath.Join(t.TempDir(), "git")
	if err := os.WriteFile(fake, []byte("#!/bin/sh\necho /nonexistent\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := gitserver.Available(fake); !errors.Is(err, gitserver.ErrNoBackend) {
		t.Errorf("a git without http-backend: %v", err)
	}
}

// TestSettings: what the server is told counts, whatever a repository's own file says.
func TestSettings(t *testing.T) {
	for _, value := range []string{"true", "false"} {
		s := serve(t, gitserver.Options{Config: map[string]string{"http.receivepack": value}})
		url, err := s.Init("r.git")
		if err != nil {
			t.Fatal(err)
		}
		git(t, s.Dir("r.git"), "config", "http.receivepack", map[string]string{"true": "false", "false": "true"}[value])
		work := t.TempDir()
		git(t, work, "init", "-q", "-b", "main")
		git(t, work, "commit", "-q", "--allow-empty", "-m", "first")
		if err := gitCmd(t, work, "push", "-q", url, "main").Run(); (err == nil) != (value == "true") {
			t.Errorf("http.receivepack=%s: push says %v", value, err)
		}
	}
}

// TestMakeBare: git takes it for what it makes itself.
func TestMakeBare(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "r.git")
	if err := gitservertest.MakeBare(dir, "trunk"); err != nil {
		t.Fatal(err)
	}
	for want, question := range map[string][]string{
		"true\n":             {"rev-parse", "--is-bare-repository"},
		"refs/heads/trunk\n": {"symbolic-ref", "HEAD"},
		"":                   {"for-each-ref"},
	} {
		if out, err := gitCmd(t, dir, question...).Output(); err != nil || string(out) != want {
			t.Errorf("git %v says %q, %v", question, out, err)
		}
	}
}

// TestCutRequest: a request that breaks off reaches no git program; one of
// them would never end.
func TestCutRequest(t *testing.T) {
	s, err := gitservertest.Serve(t.TempDir(), gitserver.Options{})
	if err != nil {
		t.Skip(err)
	}
	if _, err := s.Init("r.git"); err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", s.URL[len("http://"):])
	if err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprintf(c, "POST /r.git/git-receive-pack HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-git-receive-pack-request\r\nContent-Length: 1000\r\n\r\n0000")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closing the server: %v", err)
	}
}

func TestMiddleware(t *testing.T) {
	s := serve(t, gitserver.Options{Middleware: func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	}})
	resp, err := http.Get(s.URL + "/r.git/info/refs")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusTeapot {
		t.Errorf("status %d", resp.StatusCode)
	}
}

func serve(t *testing.T, o gitserver.Options) *gitservertest.Server {
	t.Helper()
	if err := gitserver.Available(""); err != nil {
		t.Skip(err)
	}
	s, err := gitservertest.Serve(t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func gitCmd(t *testing.T, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "LC_ALL=C",
		"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@example.org", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@example.org",
	}
	return cmd
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	if out, err := gitCmd(t, dir, args...).CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}
