package gitcas

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/gitcas/gitserver"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/gitservertest"
	"github.com/united-workforce/uwf/internal/testmode"
)

// bareRepo makes a bare repository and returns its folder.
func bareRepo(t testing.TB, config ...string) string {
	t.Helper()
	testmode.NeedGit(t)
	dir := filepath.Join(t.TempDir(), "store.git")
	if err := gitservertest.MakeBare(dir, "main"); err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(config); i += 2 {
		runGit(t, dir, "config", config[i], config[i+1])
	}
	return dir
}

func runGit(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C",
		"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@example.com", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@example.com"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func dial(t testing.TB, url string) wire.Remote {
	t.Helper()
	r, err := wire.Dial(url, wire.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// some are the tests of the suite that real git passes in every run: a rule that we
// broke ourselves shows in memory, and each of these takes a hundred processes.
func some(names ...string) []string {
	if testmode.HasProcesses() {
		return nil // all
	}
	return names
}

func TestFile(t *testing.T) {
	suite(t, func(t *testing.T) wire.Remote { return dial(t, "file://"+bareRepo(t)) }, some("thread")...)
}

func httpServer(t testing.TB, o gitserver.Options) *gitservertest.Server {
	t.Helper()
	testmode.NeedGit(t)
	if err := gitserver.Available(""); err != nil {
		t.Skip(err)
	}
	srv, err := gitservertest.Serve(t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
	return srv
}

func TestHTTP(t *testing.T) {
	srv := httpServer(t, gitserver.Options{})
	suite(t, func(t *testing.T) wire.Remote {
		url, err := srv.Init(filepath.Base(t.TempDir()) + "-" + filepath.Base(t.Name()) + ".git")
		if err != nil {
			t.Fatal(err)
		}
		return dial(t, url)
	}, some("thread", "end", "lost race")...)
}

// TestPoorServer: one without filters and without atomic pushes.
func TestPoorServer(t *testing.T) {
	srv := httpServer(t, gitserver.Options{Config: map[string]string{"uploadpack.allowFilter": "false", "receive.advertiseAtomic": "false"}})
	n, names := 0, some("claims")
	if names == nil {
		names = []string{"init twice", "thread", "end", "claims"}
	}
	suite(t, func(t *testing.T) wire.Remote {
		n++
		url, err := srv.Init(fmt.Sprintf("r%d.git", n))
		if err != nil {
			t.Fatal(err)
		}
		return dial(t, url)
	}, names...)
}

// TestNativeGit: git itself finds nothing wrong with what we push, and shows a
// thread as the README says.
func TestNativeGit(t *testing.T) {
	dir := bareRepo(t)
	s := Open(dial(t, "file://"+dir), Options{})
	id, other := threadID(1), threadID(2)
	threadWithSteps(t, s, id, 2)
	threadWithSteps(t, s, other, 1)
	v := mustLoad(t, s, id)
	c := stepChange(t, v, id, "reviewer", "all\n\nUwf-Thread: forged")
	c.Trailers = []Trailer{{Key: "Uwf-Thread", Value: string(id)}, {Key: "Uwf-Step", Value: "3"}}
	v = mustPush(t, s, v, c)
	mustPush(t, s, v, endChange(t, v, id, "the end"))
	runGit(t, dir, "fsck", "--strict", "--full")
	got := strings.Split(strings.TrimSpace(runGit(t, dir, "log", "--format=%an <%ae> %s|%(trailers:key=Uwf-Thread,valueonly,separator=%x2C)", DefaultBranch, "--", layout.ThreadPath(id))), "\n")
	want := []string{
		"archived, ended · " + id.Short() + "|" + string(id), "reviewer → done|", "reviewer → done|" + string(id),
		"developer → done|", "developer → done|", "started · prompt of " + string(id) + "|" + string(id),
	}
	for i := range want {
		want[i] = "uwf <uwf@localhost> " + want[i]
	}
	if !slices.Equal(got, want) {
		t.Errorf("git log shows\n%q\nwant\n%q", got, want)
	}
	if body := runGit(t, dir, "log", "-1", "--skip=2", "--format=%B", DefaultBranch); !strings.Contains(body, "\n    Uwf-Thread: forged\n") || !strings.Contains(body, "\n[skip ci]\n") {
		t.Errorf("the message is\n%s", body)
	}
	// A clone holds what is alive, as plain files.
	if page := runGit(t, dir, "show", DefaultBranch+":"+layout.ThreadPath(other)+"/pages/01-developer.md"); !strings.Contains(page, string(other)) {
		t.Errorf("the page is %q", page)
	}
}

// TestSSH: a stand-in for ssh runs on this machine what it is to run on the host.
func TestSSH(t *testing.T) {
	testmode.NeedGit(t)
	ssh := filepath.Join(t.TempDir(), "ssh")
	script := "#!/bin/sh\nfor last; do :; done\nexec sh -c \"$last\"\n"
	if err := os.WriteFile(ssh, []byte(script), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	names := []string{"thread"}
	if testmode.HasProcesses() {
		names = []string{"thread", "claims", "unanswered"}
	}
	suite(t, func(t *testing.T) wire.Remote {
		r, err := wire.Dial("host.invalid:"+bareRepo(t), wire.DialOptions{Env: append(os.Environ(), "GIT_SSH="+ssh)})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}, names...)
}
