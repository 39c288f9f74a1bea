package toolsettings

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
}

// list is all that is in a folder: name=content, name→target, name/.
func list(t *testing.T, dir string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
		if err != nil || file == dir {
			return err
		}
		name, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		switch {
		case e.IsDir():
			name += "/"
		case e.Type() == fs.ModeSymlink:
			target, _ := os.Readlink(file)
			name += "→" + target
		default:
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			name += "=" + string(text)
		}
		out = append(out, name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func newAside(t *testing.T) Aside {
	t.Helper()
	top := t.TempDir()
	a := Aside{Workspace: filepath.Join(top, "w"), Dir: filepath.Join(top, "store", "aside")}
	if err := os.MkdirAll(a.Workspace, 0o755); err != nil {
		t.Fatal(err)
	}
	return a
}

func hide(t *testing.T, a Aside) {
	t.Helper()
	if err := a.Hide(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func restore(t *testing.T, a Aside) []string {
	t.Helper()
	own, err := a.Restore(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(a.Dir); err == nil {
		t.Error("the aside is left")
	}
	return own
}

// TestEachIsHidden: every name, at the top and deep, whatever its case, as a file, a folder
// and a link, is gone while agents work, and is as it was afterwards.
func TestEachIsHidden(t *testing.T) {
	for _, name := range hidden {
		for _, as := range []string{name, "a/b/" + name, strings.ToUpper(name), "a/" + strings.ToUpper(name[:2]) + name[2:], "node_modules/x/" + name} {
			for _, kind := range []string{"file", "folder", "link", "broken link"} {
				a := newAside(t)
				write(t, a.Workspace, "kept.txt", "x")
				file := filepath.Join(a.Workspace, as)
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				switch kind {
				case "file":
					write(t, a.Workspace, as, "evil")
				case "folder":
					write(t, a.Workspace, as+"/deep/settings.json", "evil")
				case "link":
					if err := os.Symlink(filepath.Join(a.Workspace, "kept.txt"), file); err != nil {
						t.Fatal(err)
					}
				case "broken link":
					if err := os.Symlink("nowhere", file); err != nil {
						t.Fatal(err)
					}
				}
				before := list(t, a.Workspace)
				hide(t, a)
				if _, err := os.Lstat(file); err == nil {
					t.Errorf("%s as a %s is there", as, kind)
				}
				if _, err := os.Stat(filepath.Join(a.Workspace, "kept.txt")); err != nil {
					t.Error(err)
				}
				if own := restore(t, a); len(own) > 0 || !slices.Equal(before, list(t, a.Workspace)) {
					t.Errorf("%s as a %s: own %q, now %q, was %q", as, kind, own, list(t, a.Workspace), before)
				}
			}
		}
	}
}

// TestOthersStay: what people read, and what only resembles a tool's file.
func TestOthersStay(t *testing.T) {
	for _, name := range []string{
		"AGENTS.md", "CLAUDE.md", "docs/CONTRIBUTING.md", "claude", ".claude.md", "x.mcp.json", ".github/workflows/ci.yml", ".github/CODEOWNERS",
		"hooks", "agents/x.go", "instructions", ".vscode/settings.json", "src/.github", ".env.example", ".git/.claude", "opencode.jsonl",
	} {
		a := newAside(t)
		write(t, a.Workspace, name, "x")
		hide(t, a)
		if _, err := os.Stat(filepath.Join(a.Workspace, name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		restore(t, a)
	}
}

// TestAlso: what one tool alone obeys is hidden from that one.
func TestAlso(t *testing.T) {
	a := newAside(t)
	write(t, a.Workspace, "sub/gemini.md", "x")
	hide(t, a)
	if _, err := os.Stat(filepath.Join(a.Workspace, "sub/gemini.md")); err != nil {
		t.Error(err)
	}
	a.Also = []string{"GEMINI.md"}
	hide(t, a)
	if _, err := os.Stat(filepath.Join(a.Workspace, "sub/gemini.md")); err == nil {
		t.Error("it is there")
	}
	restore(t, a)
	if got := list(t, a.Workspace); !slices.Equal(got, []string{"sub/", "sub/gemini.md=x"}) {
		t.Errorf("%q", got)
	}
}

// TestOwnEdits: what the agent writes in the place of settings is kept, and named.
func TestOwnEdits(t *testing.T) {
	a := newAside(t)
	write(t, a.Workspace, ".claude/settings.json", "old")
	write(t, a.Workspace, ".claude/hooks/h.sh", "old hook")
	write(t, a.Workspace, ".mcp.json", "old")
	write(t, a.Workspace, "sub/.env", "OLD=1")
	write(t, a.Workspace, "gone/.env", "GONE=1")
	hide(t, a)
	write(t, a.Workspace, ".claude/settings.json", "new")
	write(t, a.Workspace, ".claude/skills/s.md", "new skill")
	write(t, a.Workspace, ".mcp.json/now/a/folder", "new")
	if err := os.RemoveAll(filepath.Join(a.Workspace, "gone")); err != nil {
		t.Fatal(err)
	}
	own := restore(t, a)
	if want := []string{".claude", ".mcp.json"}; !slices.Equal(own, want) {
		t.Errorf("own %q, want %q", own, want)
	}
	want := []string{".claude/", ".claude/hooks/", ".claude/hooks/h.sh=old hook", ".claude/settings.json=new", ".claude/skills/", ".claude/skills/s.md=new skill",
		".mcp.json/", ".mcp.json/now/", ".mcp.json/now/a/", ".mcp.json/now/a/folder=new", "gone/", "gone/.env=GONE=1", "sub/", "sub/.env=OLD=1"}
	if got := list(t, a.Workspace); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestLinksLeadNowhere: nothing is written or moved outside of the workspace, whatever the
// agent puts in the place of a folder.
func TestLinksLeadNowhere(t *testing.T) {
	a := newAside(t)
	outside := filepath.Join(filepath.Dir(a.Workspace), "outside")
	write(t, outside, ".claude/settings.json", "of somebody else")
	write(t, a.Workspace, "sub/.env", "X=1")
	write(t, a.Workspace, "sub/f.go", "package sub")
	if err := os.Symlink("../outside", filepath.Join(a.Workspace, "link")); err != nil {
		t.Fatal(err)
	}
	hide(t, a)
	if err := os.RemoveAll(filepath.Join(a.Workspace, "sub")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../outside", filepath.Join(a.Workspace, "sub")); err != nil {
		t.Fatal(err)
	}
	restore(t, a)
	if got, want := list(t, outside), []string{".claude/", ".claude/settings.json=of somebody else"}; !slices.Equal(got, want) {
		t.Errorf("outside: %q", got)
	}
	if got, want := list(t, a.Workspace), []string{"link→../outside", "sub→../outside"}; !slices.Equal(got, want) {
		t.Errorf("workspace: %q", got)
	}
}

// TestAfterAKill: what a killed process hid is put back by the next one, which hides it anew.
func TestAfterAKill(t *testing.T) {
	a := newAside(t)
	write(t, a.Workspace, ".claude/settings.json", "old")
	write(t, a.Workspace, "b/.env", "X=1")
	before := list(t, a.Workspace)
	hide(t, a)
	write(t, a.Workspace, "work.txt", "half done")
	hide(t, a) // of another process, after a kill
	if _, err := os.Lstat(filepath.Join(a.Workspace, ".claude")); err == nil {
		t.Error("it is not hidden again")
	}
	if err := os.Remove(filepath.Join(a.Workspace, "work.txt")); err != nil {
		t.Fatal(err)
	}
	restore(t, a)
	if got := list(t, a.Workspace); !slices.Equal(got, before) {
		t.Errorf("%q, want %q", got, before)
	}
}

// TestOtherFileSystem: where a rename can't lead to, files are copied.
func TestOtherFileSystem(t *testing.T) {
	dir, err := os.MkdirTemp("/dev/shm", "uwf-test-") //nolint:usetesting // another file system is wanted
	if err != nil {
		t.Skip("there is no second file system here")
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	a := newAside(t)
	a.Dir = filepath.Join(dir, "aside")
	write(t, a.Workspace, "x/.claude/settings.json", "old")
	if err := os.Symlink("settings.json", filepath.Join(a.Workspace, "x/.claude/l")); err != nil {
		t.Fatal(err)
	}
	before := list(t, a.Workspace)
	hide(t, a)
	if _, err := os.Lstat(filepath.Join(a.Workspace, "x/.claude")); err == nil {
		t.Error("it is there")
	}
	restore(t, a)
	if got := list(t, a.Workspace); !slices.Equal(got, before) {
		t.Errorf("%q, want %q", got, before)
	}
}
