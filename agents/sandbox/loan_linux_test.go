package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// rooted is a place on a machine where agents have a user of their own.
func rooted(t *testing.T) *place {
	t.Helper()
	if r := Probe(); !r.Root {
		t.Skipf("NOT TESTED: this process can't give files to others: %s", r)
	}
	return newPlace(t)
}

// A run gets the workspace and what this process put into it; afterwards all of it
// is its owner's, what the agent made included. Files of others, those with another
// name outside and those behind symlinks are never touched.
func TestWorkspaceIsLentAndGivenBack(t *testing.T) {
	p := rooted(t)
	const other = 4711
	p.must(os.MkdirAll(p.path("workspace/a/b"), 0o700))
	p.write("workspace/a/b/ours.txt", "restored by uwf")
	p.write("workspace/a/theirs.txt", "x")
	p.must(os.Chown(p.path("workspace/a/theirs.txt"), other, other))
	p.must(os.Symlink(p.path("outside/secret.txt"), p.path("workspace/link")))
	p.must(os.Symlink(p.outside, p.path("workspace/folder")))
	p.must(os.Link(p.path("outside/victim.txt"), p.path("workspace/two-names")))
	p.must(unix.Mkfifo(p.path("workspace/fifo"), 0o600))
	outside := fmt.Sprint(p.ownership(p.outside))

	c, err := p.enter("/bin/true")
	p.must(err)
	agent := p.report.UID
	want := map[string]int{
		".": agent, "own.txt": agent, "a": agent, "a/b": agent, "a/b/ours.txt": agent, "a/theirs.txt": other,
		"link": agent, "folder": agent, "fifo": agent, "two-names": 0,
	}
	if got := p.ownership(p.workspace); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("lent:\n%v\nwant\n%v", got, want)
	}
	p.write("workspace/made", "by the agent")
	p.must(os.Chown(p.path("workspace/made"), agent, agent))
	p.must(os.Mkdir(p.path("workspace/closed"), 0o700))
	p.must(os.Chown(p.path("workspace/closed"), agent, agent))
	p.must(c.Leave())
	p.must(c.Leave())
	for name, uid := range p.ownership(p.workspace) {
		want := owner
		switch name {
		case "a/theirs.txt":
			want = other
		case "two-names":
			want = 0
		}
		if uid != want {
			t.Errorf("given back: %s belongs to %d, want %d", name, uid, want)
		}
	}
	if got := fmt.Sprint(p.ownership(p.outside)); got != outside {
		t.Errorf("outside changed: %v, was %v", got, outside)
	}
}

// What an agent marks setuid loses the mark when it becomes its owner's.
func TestSetuidDoesNotComeBack(t *testing.T) {
	p := rooted(t)
	p.must(os.Chown(p.workspace, 0, 0))
	if got := p.confined("suid file", p.path("workspace/tool")); got.code != 0 {
		t.Fatal(got.text)
	}
	info, err := os.Stat(p.path("workspace/tool"))
	p.must(err)
	if info.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 || p.ownership(p.workspace)["tool"] != 0 {
		t.Errorf("%s belongs to %v", info.Mode(), p.ownership(p.workspace))
	}
}

// A workspace that a killed job left to the agents' user goes to its parent's owner.
func TestWorkspaceOfAKilledJob(t *testing.T) {
	p := rooted(t)
	_, err := p.enter("/bin/true")
	p.must(err)
	p.must(os.Chown(p.dir, owner, owner))
	c, err := p.enter("/bin/true")
	p.must(err)
	p.must(c.Leave())
	if got := p.ownership(p.workspace); got["."] != owner || got["own.txt"] != owner {
		t.Errorf("it belongs to %v", got)
	}
}

// In a workspace of root's, with agents that are root in name, a file with another
// name outside stays root's.
func TestHardLinkOfRootStaysRoots(t *testing.T) {
	p := rooted(t)
	p.options.Mode = Auto
	p.must(os.Link(p.path("outside/victim.txt"), p.path("workspace/two-names")))
	p.must(os.Chmod(p.dir, 0o700))
	if got := p.program("/bin/sh", "-c", "echo new > made"); got.code != 0 {
		t.Fatal(got.text)
	}
	got := p.ownership(p.workspace)
	if got["two-names"] != 0 || got["made"] != owner || got["."] != owner {
		t.Errorf("given back: %v", got)
	}
}

// Folders below each other without end are refused with a word, not with a crash.
func TestDeepWorkspace(t *testing.T) {
	p := rooted(t)
	deep := p.workspace
	for range 30 {
		deep = filepath.Join(deep, strings.TrimSuffix(strings.Repeat("d/", 20), "/"))
		p.must(os.MkdirAll(deep, 0o700))
	}
	if _, err := p.enter("/bin/true"); err == nil || !strings.Contains(err.Error(), "levels deep") {
		t.Errorf("error %v", err)
	}
	if got := p.ownership(p.workspace)["own.txt"]; got != owner {
		t.Errorf("own.txt was left to %d", got)
	}
}

// Files in a workspace of uwf's own stay with the agents' user, so that a second run changes
// none of them; files with another name outside and those behind symlinks are never touched.
func TestOwnWorkspaceStaysLent(t *testing.T) {
	p := ownPlace(t)
	agent := p.report.UID
	p.must(os.MkdirAll(p.path("workspace/a/b"), 0o700))
	p.write("workspace/a/b/ours.txt", "restored by uwf")
	p.write("workspace/a/former.txt", "x")
	p.must(os.Chown(p.path("workspace/a/former.txt"), 4711, 4711)) // the agents' user once
	p.must(os.Symlink(p.path("outside/secret.txt"), p.path("workspace/link")))
	p.must(os.Link(p.path("outside/victim.txt"), p.path("workspace/two-names")))
	outside := fmt.Sprint(p.ownership(p.outside))
	if got := p.program("/bin/sh", "-c", "echo new > made && ln made linked && chmod 0777 ."); got.code != 0 {
		t.Fatal(got.text)
	}
	want := map[string]int{
		".": 0, "own.txt": agent, "a": agent, "a/b": agent, "a/b/ours.txt": agent, "a/former.txt": agent,
		"link": agent, "two-names": 0, "made": agent, "linked": agent,
	}
	if got := p.ownership(p.workspace); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("after a run:\n%v\nwant\n%v", got, want)
	}
	if got := fmt.Sprint(p.ownership(p.outside)); got != outside {
		t.Errorf("outside changed: %v, was %v", got, outside)
	}

	before := p.changeTime("a/b/ours.txt")
	p.write("workspace/restored", "by uwf")
	if got := p.program("/bin/sh", "-c", "echo more >> restored && echo more >> linked"); got.code != 0 {
		t.Error(got.text)
	}
	if got := p.changeTime("a/b/ours.txt"); got != before {
		t.Errorf("a file that stays the agents' was touched: ctime %v, was %v", got, before)
	}
}

// Between runs no process of the agents' user gets into a workspace of uwf's own, whatever mode
// the agent gave it.
func TestOwnWorkspaceIsClosed(t *testing.T) {
	p := ownPlace(t)
	look := func() error {
		cmd := exec.Command("/bin/cat", p.path("workspace/own.txt"))
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(p.report.UID), Gid: uint32(p.report.GID)}}
		return cmd.Run()
	}
	c, err := p.enter("/bin/true")
	p.must(err)
	p.must(os.Chmod(p.workspace, 0o777))
	if err := look(); err != nil {
		t.Errorf("control: %v during the run", err)
	}
	p.must(c.Leave())
	p.must(c.Leave())
	if err := look(); err == nil {
		t.Error("the agents' user reads the workspace after the run")
	}
}

// Agents that are root in name get what agents with a user of their own left.
func TestOwnWorkspaceChangesUser(t *testing.T) {
	p := ownPlace(t)
	if got := p.program("/bin/sh", "-c", "mkdir d && echo new > d/made"); got.code != 0 {
		t.Fatal(got.text)
	}
	p.options.Mode = Auto
	p.must(os.Chmod(p.dir, 0o700))
	if got := p.program("/bin/sh", "-c", "echo more >> d/made"); got.code != 0 {
		t.Error(got.text)
	}
}

// ownPlace is a rooted one whose workspace is uwf's own.
func ownPlace(t *testing.T) *place {
	t.Helper()
	p := rooted(t)
	p.own = true
	p.must(os.Chown(p.workspace, 0, 0))
	return p
}

// changeTime is when a file of the workspace was last changeTime in any way.
func (p *place) changeTime(name string) unix.Timespec {
	p.Helper()
	var st unix.Stat_t
	p.must(unix.Lstat(filepath.Join(p.workspace, name), &st))
	return st.Ctim
}
