//go:build unix

package wire_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/gitcas/wire"
)

// fakePrograms is an environment in which a program is replaced by a script.
func fakePrograms(t *testing.T, name, script string) []string {
	t.Helper()
	d := t.TempDir()
	writeFile(t, filepath.Join(d, name), "#!/bin/sh\n"+script+"\n", 0o700)
	return []string{"PATH=" + d + ":/usr/bin:/bin", "HOME=" + d, "GITHUB_TOKEN=must-not-arrive", "GIT_DIR=/nowhere", "SSH_AUTH_SOCK=/agent"}
}

// TestCheckedOutBranch: a branch that someone has checked out is not moved
// under their feet, whatever the repository allows.
func TestCheckedOutBranch(t *testing.T) {
	d := t.TempDir()
	gitIn(t, d, "init", "-q", "-b", "uwf-state")
	gitIn(t, d, "commit", "-q", "--allow-empty", "-m", "first")
	gitIn(t, d, "config", "receive.denyCurrentBranch", "updateInstead")
	r := dialBed(t, d, "", wire.DialOptions{}).remote
	const ref = "refs/heads/uwf-state"
	tip := list(t, r, ref).Refs[ref]
	tr := tree()
	c := commit("second", tr)
	_, err := r.Push(t.Context(), wire.PushRequest{
		Atomic:  true,
		Updates: []wire.RefUpdate{{Name: ref, Old: tip, New: c.ID}, {Name: "refs/heads/other", New: c.ID}},
		Objects: plain(tr, c),
	})
	wantKind(t, err, wire.ErrProtected, "push to the checked-out branch")
	var e *wire.RemoteError
	if errors.As(err, &e) && (e.Ref != ref || !strings.Contains(e.Detail, "checked out")) {
		t.Errorf("ref %q, detail %q", e.Ref, e.Detail)
	}
	push(t, r, []wire.RefUpdate{{Name: "refs/heads/other", New: c.ID}}, plain(tr, c)...)
}

// TestLocalHooks: hooks of a local repository do not run for its state.
func TestLocalHooks(t *testing.T) {
	d := bare(t)
	hooks := filepath.Join(d, "hooks")
	if err := os.MkdirAll(hooks, 0o700); err != nil {
		t.Fatal(err)
	}
	ran := filepath.Join(t.TempDir(), "ran")
	for _, h := range []string{"pre-receive", "update", "post-receive", "post-update", "reference-transaction"} {
		writeFile(t, filepath.Join(hooks, h), "#!/bin/sh\ntouch "+ran+"\nexit 1\n", 0o700)
	}
	gitIn(t, d, "config", "core.hooksPath", hooks)
	history(t, dialBed(t, "file://"+d, d, wire.DialOptions{}).remote, "refs/heads/main", 1)
	if _, err := os.Stat(ran); err == nil {
		t.Error("a hook ran")
	}
}

func TestNoSuchRepository(t *testing.T) {
	empty := t.TempDir()
	ssh := wire.DialOptions{Env: sshEnv(t, true)}
	for url, tc := range map[string]struct {
		o    wire.DialOptions
		kind error
	}{
		"file://" + empty + "/none.git":       {wire.DialOptions{}, wire.ErrNotFound},
		"file://" + empty:                     {wire.DialOptions{}, wire.ErrNotFound},
		empty + "/none":                       {wire.DialOptions{}, wire.ErrNotFound},
		"ssh://git@example.org" + empty:       {ssh, wire.ErrNotFound},
		"git@example.org:" + empty + "/it's!": {ssh, wire.ErrNotFound},
		"git@example.com:x.git":               {ssh, wire.ErrUnreachable},
	} {
		r := dialBed(t, url, "", tc.o).remote
		_, err := r.List(t.Context(), "refs/")
		wantKind(t, err, tc.kind, "list "+url)
		_, err = r.Fetch(t.Context(), wire.FetchRequest{Wants: []wire.ID{blob("x").ID}, Depth: 1, Filter: "tree:1"})
		wantKind(t, err, tc.kind, "fetch "+url)
		tr := tree()
		c := commit("c", tr)
		_, err = r.Push(t.Context(), wire.PushRequest{Updates: []wire.RefUpdate{{Name: "refs/heads/a", New: c.ID}}, Objects: plain(tr, c)})
		wantKind(t, err, tc.kind, "push "+url)
		_, err = r.Atomic(t.Context())
		wantKind(t, err, tc.kind, "atomic "+url)
	}
}

func TestNoGit(t *testing.T) {
	for _, url := range []string{"file:///x.git", "ssh://example.org/x.git"} {
		r := dialBed(t, url, "", wire.DialOptions{Env: []string{"PATH=" + t.TempDir() + "::relative"}}).remote
		_, err := r.List(t.Context(), "refs/")
		wantKind(t, err, wire.ErrNoProgram, "no program for "+url)
		if err != nil && !strings.Contains(err.Error(), "is not on PATH") {
			t.Errorf("the message is %v", err)
		}
	}
}

// TestReadOnly: a repository whose files git may not write is said to be that, at once,
// and no race that is tried again or rule that somebody could change.
func TestReadOnly(t *testing.T) {
	env := restrictedGit(t)
	for _, part := range []string{"objects", "refs/heads"} {
		d := bare(t)
		openTo(t, d)
		r := dialBed(t, d, "", wire.DialOptions{Env: env}).remote
		part := filepath.Join(d, part)
		if err := os.Chmod(part, 0o555); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(part, 0o777) }) // else it could not be removed
		tr := tree()
		c := commit("c", tr)
		_, err := r.Push(t.Context(), wire.PushRequest{Atomic: true, Updates: []wire.RefUpdate{{Name: "refs/heads/a", New: c.ID}}, Objects: plain(tr, c)})
		wantKind(t, err, wire.ErrReadOnly, "push without "+part)
	}
}

// restrictedGit is an environment whose git heeds the rights of files, also where root
// runs the tests: then it is nobody's.
func restrictedGit(t *testing.T) []string {
	t.Helper()
	env := []string{"PATH=" + os.Getenv("PATH")}
	if os.Getuid() != 0 {
		return env
	}
	as := []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}
	if err := exec.Command(as[0], append(as[1:], "git", "version")...).Run(); err != nil {
		t.Skipf("root may write everything, and can't be another user: %v", err)
	}
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	script := strings.Join(as, " ") + ` "` + git + `" "$@"`
	programs := fakePrograms(t, "git", "exec "+script)
	dir := strings.TrimPrefix(strings.Split(programs[0], ":")[0], "PATH=")
	return []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
}

// openTo lets everybody write a folder, and come to it.
func openTo(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		return os.Chmod(path, 0o777)
	})
	for up := filepath.Dir(dir); err == nil && up != filepath.Clean(os.TempDir()) && up != "/"; up = filepath.Dir(up) {
		err = os.Chmod(up, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestChildEnvironment: children get what they need and nothing else, as variables and as arguments.
func TestChildEnvironment(t *testing.T) {
	for program, tc := range map[string]struct {
		url           string
		wants, absent []string
	}{
		"git": {"file:///x.git",
			[]string{"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C", "GIT_PROTOCOL=version=2", "core.hooksPath=/dev/null", "safe.directory=/x.git"},
			[]string{"HOME=", "GITHUB_TOKEN", "GIT_DIR", "SSH_AUTH_SOCK"}},
		"ssh": {"ssh://example.org/x.git",
			[]string{"HOME=", "SSH_AUTH_SOCK=/agent", "LC_ALL=C", "GIT_PROTOCOL=version=2"},
			[]string{"GITHUB_TOKEN", "GIT_DIR"}},
	} {
		seen := filepath.Join(t.TempDir(), "env")
		r := dialBed(t, tc.url, "", wire.DialOptions{Env: fakePrograms(t, program, "(env; echo \"$@\") >> "+seen+"; exit 1")}).remote
		if _, err := r.List(t.Context(), "refs/"); err == nil {
			t.Errorf("%s: the fake program was believed", program)
		}
		b, err := os.ReadFile(seen)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range tc.wants {
			if !strings.Contains(string(b), s) {
				t.Errorf("%s has no %s in its environment and arguments", program, s)
			}
		}
		for _, s := range tc.absent {
			if strings.Contains(string(b), s) {
				t.Errorf("%s has %s in its environment and arguments", program, s)
			}
		}
	}
}

func TestSSHCommand(t *testing.T) {
	d := bare(t)
	env := sshEnv(t, true)
	wrapper := filepath.Join(t.TempDir(), "my ssh")
	writeFile(t, wrapper, "#!/bin/sh\n[ \"$1\" = -F ] && [ \"$2\" = 'some file' ] || exit 3\nshift 2\nexec ssh \"$@\"\n", 0o700)
	cmd := append(env, "GIT_SSH_COMMAND='"+wrapper+"' -F 'some file'")
	list(t, dialBed(t, "ssh://git@example.org:2222"+d, d, wire.DialOptions{Env: cmd}).remote, "refs/")
	settings := wire.DialOptions{
		Env:        append(env, "GIT_SSH=/nowhere/ssh"),
		SSHCommand: func(context.Context) string { return "'" + wrapper + "' -F 'some file'" },
	}
	list(t, dialBed(t, "ssh://git@example.org"+d, d, settings).remote, "refs/")
	settings.Env = append(cmd, "GIT_SSH=/nowhere/ssh")
	settings.SSHCommand = func(context.Context) string { return "/nowhere/ssh" }
	list(t, dialBed(t, "ssh://git@example.org"+d, d, settings).remote, "refs/")
	plainSSH := filepath.Join(t.TempDir(), "plain")
	writeFile(t, plainSSH, "#!/bin/sh\nexec ssh \"$@\"\n", 0o700)
	list(t, dialBed(t, "example.org:"+d, d, wire.DialOptions{Env: append(env, "GIT_SSH="+plainSSH)}).remote, "refs/")
}

// TestSSHTime: ssh tells no time. That of its host is asked for once; where nobody says it,
// this machine's is a guess.
func TestSSHTime(t *testing.T) {
	here := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, known := range []bool{true, false} {
		d, asked := bare(t), 0
		r := dialBed(t, "ssh://git@example.org:2222"+d, d, wire.DialOptions{
			Env: sshEnv(t, true), Now: func() time.Time { return here },
			HostDate: func(_ context.Context, host string) (time.Time, error) {
				if asked++; host != "example.org" {
					t.Errorf("%s was asked", host)
				}
				if !known {
					return time.Time{}, errors.ErrUnsupported
				}
				return here.Add(time.Hour), nil
			},
		}).remote
		want := here
		if known {
			want = here.Add(time.Hour)
		}
		for range 2 {
			if l := list(t, r, "refs/"); !l.Time.Equal(want) || l.TimeGuessed == known {
				t.Errorf("known %v: it is %s, guessed %v", known, l.Time, l.TimeGuessed)
			}
		}
		if at, err := r.Push(t.Context(), creation()); err != nil || !at.Equal(want) {
			t.Errorf("known %v: pushed at %s, %v", known, at, err)
		}
		if asked != 1 {
			t.Errorf("the host was asked %d times", asked)
		}
	}
}

// TestHangingChild: a child that hangs is killed with everything it started.
func TestHangingChild(t *testing.T) {
	for program, url := range map[string]string{"git": "file:///x.git", "ssh": "ssh://example.org/x.git"} {
		pids := filepath.Join(t.TempDir(), "pids")
		env := fakePrograms(t, program, "sleep 1000 &\necho $! $$ >> "+pids+"\nwait")
		r := dialBed(t, url, "", wire.DialOptions{Env: env}).remote
		ctx, cancel := context.WithCancel(t.Context())
		go func() { // once it hangs
			for started(pids) == nil {
				time.Sleep(time.Millisecond)
			}
			cancel()
		}()
		_, err := r.Push(ctx, creation())
		if !errors.Is(err, wire.ErrUnreachable) || !errors.Is(err, context.Canceled) {
			t.Errorf("hanging %s, cancelled: %v", program, err)
		}
		r = dialBed(t, url, "", wire.DialOptions{Env: env, Timeout: 150 * time.Millisecond}).remote
		_, err = r.List(t.Context(), "refs/")
		wantKind(t, err, wire.ErrUnreachable, "hanging "+program)
		for _, pid := range started(pids) {
			waitForEnd(pid)
		}
	}
}

// TestTalkingChild: git and ssh that pass on for ever what the other side says are
// killed, with everything they started.
func TestTalkingChild(t *testing.T) {
	for program, url := range map[string]string{"git": "file:///x.git", "ssh": "ssh://user@example.org/x.git"} {
		for op, words := range talk {
			t.Run(program+" "+op, func(t *testing.T) {
				begin := words[0]
				if program == "ssh" && op != "atomic" {
					greeting := pkt("version 2\n") + "0000"
					if op == "push" {
						greeting = pkt(strings.Repeat("0", 40)+" capabilities^{}\x00report-status atomic\n") + "0000"
					}
					begin = greeting + begin
				}
				said := filepath.Join(t.TempDir(), "said")
				writeFile(t, said, begin, 0o600)
				writeFile(t, said+"-again", words[1], 0o600)
				pids := filepath.Join(t.TempDir(), "pids")
				env := fakePrograms(t, program, "sleep 1000 &\necho $! $$ >> "+pids+"\ncat "+said+"\nwhile :; do cat "+said+"-again; sleep 0.01; done")
				r := dialBed(t, url, "", wire.DialOptions{Env: env, Total: 200 * time.Millisecond}).remote
				err := operations(r)[op](t.Context())
				wantTooLong(t, err, "200ms", op)
				if !strings.Contains(fmt.Sprint(err), r.URL()) {
					t.Errorf("the message is %v", err)
				}
				for _, pid := range started(pids) {
					waitForEnd(pid)
				}
			})
		}
	}
}

// started are the processes that a program wrote down.
func started(pids string) []string {
	b, err := os.ReadFile(pids)
	if err != nil || !strings.HasSuffix(string(b), "\n") {
		return nil
	}
	return strings.Fields(string(b))
}

// waitForEnd waits until a process is gone, or only waits to be collected by its
// parent: being killed takes the kernel a moment. One that was not killed hangs the
// test. Where there is no /proc nothing can be said.
func waitForEnd(pid string) {
	for {
		b, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil || strings.Contains(string(b), ") Z ") {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// TestChattyChild: a child that fails after writing much on both outputs.
func TestChattyChild(t *testing.T) {
	script := "i=0; while [ $i -lt 5000 ]; do echo noise-noise-noise-noise >&2; i=$((i+1)); done; echo 'fatal: no space left on device' >&2; exit 128"
	r := dialBed(t, "file:///x.git", "", wire.DialOptions{Env: fakePrograms(t, "git", script)}).remote
	tr := tree()
	c := commit("c", tr)
	_, err := r.Push(t.Context(), wire.PushRequest{Updates: []wire.RefUpdate{{Name: "refs/heads/a", New: c.ID}}, Objects: plain(tr, c)})
	wantKind(t, err, wire.ErrUnreachable, "full disk")
	if err != nil && (!strings.Contains(err.Error(), "no space left") || len(err.Error()) > 2000) {
		t.Errorf("the message is %q", err)
	}
}
