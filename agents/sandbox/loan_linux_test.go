package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
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
