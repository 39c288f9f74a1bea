package gitsettings

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// nest makes folders in one another.
func nest(t *testing.T, dir string, depth int) {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o755))
	fd, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	must(t, err)
	for range depth {
		must(t, unix.Mkdirat(fd, "d", 0o755))
		next, err := unix.Openat(fd, "d", unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		must(t, errors.Join(err, unix.Close(fd)))
		fd = next
	}
	must(t, unix.Close(fd))
}

// TestEntries: what is named .git is again what it was, a folder, a file, a link or
// nothing, and nothing outside of the folder is written through a link.
func TestEntries(t *testing.T) {
	const outside = "outside" // beside the folder
	whole := func(t *testing.T, dir string) {
		write(t, dir, ".git/HEAD", "ref: refs/heads/main\n")
		write(t, dir, ".git/config", "[core]\n\tbare = false\n")
	}
	file := func(t *testing.T, dir string) { write(t, dir, ".git", "gitdir: ../elsewhere\n") }
	none := func(t *testing.T, dir string) { write(t, dir, "f", "x") }
	apart := func(t *testing.T, dir string) {
		write(t, dir, ".git", "gitdir: stored/here\n")
		write(t, dir, "stored/here/HEAD", "x")
		write(t, dir, "stored/here/config", "[core]\n")
	}
	tree := func(t *testing.T, dir string) { // a linked working tree of a repository in the same folder
		write(t, dir, ".git", "gitdir: "+filepath.Join(dir, "main/.git/worktrees/w")+"\n")
		write(t, dir, "main/.git/worktrees/w/HEAD", "x")
		write(t, dir, "main/.git/worktrees/w/commondir", "../..\n")
		write(t, dir, "main/.git/config", "[core]\n")
	}
	link := func(t *testing.T, dir string) {
		write(t, dir, "stored/HEAD", "x")
		write(t, dir, "stored/config", "[core]\n")
		must(t, os.Symlink("stored", filepath.Join(dir, ".git")))
	}
	away := func(t *testing.T, dir string) { must(t, os.RemoveAll(filepath.Join(dir, ".git"))) }
	for _, c := range []struct {
		name   string
		begin  func(t *testing.T, dir string)
		attack func(t *testing.T, dir string)
		says   string
	}{
		{"a folder made a link out", whole, func(t *testing.T, dir string) {
			away(t, dir)
			must(t, os.Symlink("../"+outside, filepath.Join(dir, ".git")))
		}, ".git was made a symlink"},
		{"a folder made an absolute link", whole, func(t *testing.T, dir string) {
			away(t, dir)
			must(t, os.Symlink(filepath.Join(filepath.Dir(dir), outside), filepath.Join(dir, ".git")))
		}, ".git was made a symlink"},
		{"a folder made a link in", whole, func(t *testing.T, dir string) {
			must(t, os.Rename(filepath.Join(dir, ".git"), filepath.Join(dir, "moved")))
			must(t, os.Symlink("moved", filepath.Join(dir, ".git")))
		}, ".git was made a symlink"},
		{"a folder made a file", whole, func(t *testing.T, dir string) { away(t, dir); file(t, dir) }, ".git was made a file"},
		{"a folder removed", whole, away, ".git was removed: what git had stored there is gone"},
		{"a file changed", file, func(t *testing.T, dir string) { write(t, dir, ".git", "gitdir: evil\n") }, ".git was changed"},
		{"a file made a folder", file, func(t *testing.T, dir string) { away(t, dir); whole(t, dir) }, ".git was made a folder"},
		{"a file made a link", file, func(t *testing.T, dir string) {
			away(t, dir)
			must(t, os.Symlink("../"+outside, filepath.Join(dir, ".git")))
		}, ".git was made a symlink"},
		{"a file removed", file, away, ".git was removed"},
		{"none made a folder", none, whole, ".git was made (a folder)"},
		{"none made a deep folder", none, func(t *testing.T, dir string) { nest(t, filepath.Join(dir, ".git"), 500) }, ".git was made (a folder)"},
		{"none made a file", none, file, ".git was made (a file)"},
		{"none made a link", none, func(t *testing.T, dir string) { must(t, os.Symlink("../"+outside, filepath.Join(dir, ".git"))) }, ".git was made (a symlink)"},
		{"what a file leads to", apart, func(t *testing.T, dir string) { write(t, dir, "stored/here/config", "[evil]\n\tx = y\n") }, "stored/here/config sets evil.x"},
		{"what a file leads to, as a link", apart, func(t *testing.T, dir string) {
			must(t, os.RemoveAll(filepath.Join(dir, "stored/here")))
			must(t, os.Symlink("../../"+outside, filepath.Join(dir, "stored/here")))
		}, "stored/here was made a symlink"},
		{"what a working tree leads to", tree, func(t *testing.T, dir string) { write(t, dir, "main/.git/config", "[evil]\n\tx = y\n") }, "main/.git/config sets evil.x"},
		{"what a link leads to", link, func(t *testing.T, dir string) { write(t, dir, "stored/config", "[evil]\n\tx = y\n") }, "stored/config sets evil.x"},
		{"a link that leads elsewhere", link, func(t *testing.T, dir string) {
			away(t, dir)
			must(t, os.Symlink("../"+outside, filepath.Join(dir, ".git")))
		}, ".git was changed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			top := t.TempDir()
			dir, store := filepath.Join(top, "w"), filepath.Join(top, "store")
			for _, name := range []string{"config", "hooks/pre-commit", "HEAD"} {
				write(t, filepath.Join(top, outside), name, "of somebody else")
			}
			c.begin(t, dir)
			before, others := listing(t, dir), listing(t, filepath.Join(top, outside))
			config, _ := os.ReadFile(filepath.Join(dir, ".git/config"))
			k, err := Keep(dir, nil, store)
			must(t, err)
			c.attack(t, dir)
			changed, err := k.PutBack(context.Background())
			must(t, err)
			after := listing(t, dir)
			if c.name == "a folder removed" || strings.HasPrefix(c.name, "a folder made") {
				delete(before, ".git/HEAD") // it is what git stores
			}
			compare(t, before, after)
			if now, _ := os.ReadFile(filepath.Join(dir, ".git/config")); string(now) != string(config) && !strings.Contains(c.name, "leads to, as") {
				t.Errorf(".git/config is %q, and was %q", now, config)
			}
			compare(t, others, listing(t, filepath.Join(top, outside)))
			for _, name := range []string{"config", "hooks/pre-commit", "HEAD"} {
				if text, err := os.ReadFile(filepath.Join(top, outside, name)); err != nil || string(text) != "of somebody else" {
					t.Errorf("%s of somebody else is %q %v", name, text, err)
				}
			}
			if told := strings.Join(changed, "\n"); !strings.Contains(told, c.says) {
				t.Errorf("it says:\n%s", told)
			}
			left, err := os.ReadDir(dir)
			must(t, err)
			for _, e := range left {
				if strings.HasPrefix(e.Name(), ".uwf-tmp-") {
					t.Errorf("%s is left", e.Name())
				}
			}
		})
	}
}

// TestOtherEntries: a checkout that lies deeper in the folder is kept as well.
func TestOtherEntries(t *testing.T) {
	top := t.TempDir()
	dir, store := filepath.Join(top, "w"), filepath.Join(top, "store")
	write(t, dir, "sub/own/.git/config", "[core]\n")
	k, err := Keep(dir, []string{"sub/own/.git"}, store)
	must(t, err)
	write(t, dir, "sub/own/.git/config", "[credential]\n\thelper = evil\n")
	changed, err := k.PutBack(context.Background())
	if told := strings.Join(changed, "\n"); err != nil || !strings.Contains(told, "sub/own/.git/config sets credential.helper") {
		t.Errorf("%s %v", told, err)
	}
	if text, _ := os.ReadFile(filepath.Join(dir, "sub/own/.git/config")); string(text) != "[core]\n" {
		t.Errorf("%q", text)
	}
}

// die lets go of the copies as the system does for a process that is killed.
func (k *Kept) die(t *testing.T) {
	t.Helper()
	must(t, k.lock.Close())
}

var errKilled = errors.New("killed")

// TestKilled: wherever the process dies, settings are whole, the old ones or the new ones,
// and the next process completes it.
func TestKilled(t *testing.T) {
	for n := 0; ; n++ {
		top := t.TempDir()
		dir, store := filepath.Join(top, "w"), filepath.Join(top, "store")
		write(t, dir, ".git/config", "[core]\n\tbare = false\n")
		write(t, dir, ".git/hooks/pre-commit", "exit 0")
		write(t, dir, ".git/info/attributes", "*.bin -diff")
		before := listing(t, dir)
		k, err := Keep(dir, nil, store)
		must(t, err)
		whole, err := os.ReadFile(filepath.Join(dir, ".git/config"))
		must(t, err)
		write(t, dir, ".git/config", "[core]\n\tfsmonitor = evil\n")
		evil, err := os.ReadFile(filepath.Join(dir, ".git/config"))
		must(t, err)
		write(t, dir, ".git/hooks/pre-commit", "evil")
		must(t, os.Remove(filepath.Join(dir, ".git/info/attributes")))
		left := n
		k.step = func(string, string) error {
			if left--; left < 0 {
				return errKilled
			}
			return nil
		}
		_, err = k.putBack(context.Background())
		if err != nil && !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		if now, err := os.ReadFile(filepath.Join(dir, ".git/config")); err != nil || string(now) != string(whole) && string(now) != string(evil) {
			t.Errorf("killed at change %d: .git/config is %q %v", n, now, err)
		}
		k.die(t)
		all, rerr := Recover(context.Background(), store)
		must(t, rerr)
		compare(t, before, listing(t, dir))
		if err != nil && (len(all) != 1 || all[0].Folder != dir || len(all[0].Changed) == 0) {
			t.Errorf("killed at change %d: %+v", n, all)
		}
		if entries, _ := os.ReadDir(store); len(entries) > 0 {
			t.Errorf("copies are left: %v", entries)
		}
		if err == nil {
			if n < 6 {
				t.Errorf("there were only %d changes", n)
			}
			return
		}
	}
}

// TestRecover: what living processes keep is left alone, what dead ones kept is put back,
// and what is no copy is nobody's business.
func TestRecover(t *testing.T) {
	top := t.TempDir()
	store := filepath.Join(top, "store")
	if all, err := Recover(context.Background(), store); len(all) > 0 || err != nil {
		t.Errorf("without a store: %v %v", all, err)
	}
	keep := func(name string) *Kept {
		t.Helper()
		write(t, filepath.Join(top, name), ".git/config", "[core]\n")
		k, err := Keep(filepath.Join(top, name), nil, store)
		must(t, err)
		write(t, filepath.Join(top, name), ".git/config", "[evil]\n")
		return k
	}
	alive, dead, untouched, gone := keep("alive"), keep("dead"), keep("untouched"), keep("gone")
	write(t, filepath.Join(top, "untouched"), ".git/config", "[core]\n")
	must(t, os.RemoveAll(filepath.Join(top, "gone")))
	for _, k := range []*Kept{dead, untouched, gone} {
		k.die(t)
	}
	write(t, store, "note", "x")
	write(t, store, "folder/x", "x")
	write(t, store, "begun"+newSuffix, `{"id":"x","fold`) // it died before it had written all
	all, err := Recover(context.Background(), store)
	if err != nil || len(all) != 1 || all[0].Folder != filepath.Join(top, "dead") || !strings.Contains(fmt.Sprint(all[0].Changed), "was rewritten") {
		t.Errorf("%+v %v", all, err)
	}
	if text, _ := os.ReadFile(filepath.Join(top, "alive/.git/config")); string(text) != "[evil]\n" {
		t.Error("what a living process keeps was put back")
	}
	if text, _ := os.ReadFile(filepath.Join(top, "dead/.git/config")); string(text) != "[core]\n" {
		t.Errorf("%q", text)
	}
	if _, err := alive.PutBack(context.Background()); err != nil {
		t.Error(err)
	}
	if entries, _ := os.ReadDir(store); len(entries) != 2 {
		t.Errorf("left: %v", entries)
	}
}

// TestRecoverDamaged: copies that can't be read are named, and kept.
func TestRecoverDamaged(t *testing.T) {
	for name, damage := range map[string]func(file string) error{
		"no manifest":     func(file string) error { return os.WriteFile(file, []byte("{"), 0o600) },
		"nothing":         func(file string) error { return os.Truncate(file, 0) },
		"half a manifest": func(file string) error { return os.Truncate(file, 100) },
	} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			dir, store := filepath.Join(top, "w"), filepath.Join(top, "store")
			write(t, dir, ".git/config", "[core]\n")
			k, err := Keep(dir, nil, store)
			must(t, err)
			write(t, dir, ".git/config", "[evil]\n") // of the same size
			must(t, damage(k.file))
			k.die(t)
			for range 2 {
				if _, err := Recover(context.Background(), store); err == nil || !strings.Contains(err.Error(), "look at") {
					t.Errorf("%v", err)
				}
			}
			if _, err := Keep(dir, nil, store); err == nil {
				t.Error("an agent may work beside them")
			}
		})
	}
}

// TestOneAtATime: while one agent works in a folder, what it wrote is not kept as what was
// there before another.
func TestOneAtATime(t *testing.T) {
	top := t.TempDir()
	dir, store := filepath.Join(top, "w"), filepath.Join(top, "store")
	write(t, dir, ".git/config", "[core]\n")
	first, err := Keep(dir, nil, store)
	must(t, err)
	write(t, dir, ".git/config", "[evil]\n")
	must(t, os.Symlink("w", filepath.Join(top, "link")))
	for _, name := range []string{dir, filepath.Join(top, "link")} {
		if _, err := Keep(name, nil, store); !errors.Is(err, ErrBusy) {
			t.Errorf("%s: %v", name, err)
		}
		if !Busy(name, store) {
			t.Errorf("%s is not busy", name)
		}
	}
	first.die(t) // then it is put back first
	if Busy(dir, store) || Busy(filepath.Join(top, "none"), store) || Busy(top, store) {
		t.Error("a folder is busy where nobody is at work")
	}
	second, err := Keep(dir, nil, store)
	must(t, err)
	write(t, dir, ".git/config", "[evil]\n")
	if _, err := second.PutBack(context.Background()); err != nil {
		t.Error(err)
	}
	if text, _ := os.ReadFile(filepath.Join(dir, ".git/config")); string(text) != "[core]\n" {
		t.Errorf("%q", text)
	}
}

// TestTooMuch: what can't be put back whole is refused before an agent works.
func TestTooMuch(t *testing.T) {
	for name, fill := range map[string]func(t *testing.T, dir string){
		"many hooks": func(t *testing.T, dir string) {
			for i := range maxEntries {
				write(t, dir, fmt.Sprint(".git/hooks/", i), "")
			}
		},
		"large hooks": func(t *testing.T, dir string) {
			write(t, dir, ".git/hooks/x", "")
			must(t, os.Truncate(filepath.Join(dir, ".git/hooks/x"), maxBytes+1))
		},
		"deep hooks": func(t *testing.T, dir string) { nest(t, filepath.Join(dir, ".git/hooks"), 100) },
		"a FIFO among hooks": func(t *testing.T, dir string) {
			write(t, dir, ".git/hooks/x", "")
			must(t, unix.Mkfifo(filepath.Join(dir, ".git/hooks/fifo"), 0o600))
		},
		"deep modules": func(t *testing.T, dir string) { nest(t, filepath.Join(dir, ".git/modules"), 100) },
		"many worktrees": func(t *testing.T, dir string) {
			for i := range maxDirs {
				write(t, dir, fmt.Sprint(".git/worktrees/", i, "/HEAD"), "")
			}
		},
		"many submodules": func(t *testing.T, dir string) {
			var text strings.Builder
			for i := range maxDirs {
				write(t, dir, fmt.Sprint("s/", i, "/.git/HEAD"), "")
				fmt.Fprintf(&text, "[submodule \"%d\"]\n\tpath = s/%d\n", i, i)
			}
			write(t, dir, ".gitmodules", text.String())
		},
		"submodules in a circle": func(t *testing.T, dir string) {
			write(t, dir, ".gitmodules", "[submodule \"x\"]\n\tpath = l\n[submodule \"y\"]\n\tpath = ../..\n[submodule \"z\"]\n\tpath = .\n")
			must(t, os.Symlink(".", filepath.Join(dir, "l")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			dir, store := filepath.Join(top, "w"), filepath.Join(top, "store")
			write(t, dir, ".git/config", "[core]\n")
			fill(t, dir)
			k, err := Keep(dir, nil, store)
			if name == "submodules in a circle" {
				must(t, err)
				_, err = k.PutBack(context.Background())
				must(t, err)
				return
			}
			if err == nil || !errors.Is(err, ErrTooMuch) && !errors.Is(err, errFull) {
				t.Error(err)
			}
			if left, _ := os.ReadDir(store); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// TestReplacedGoes: what was replaced is kept until the next time something is.
func TestReplacedGoes(t *testing.T) {
	top := t.TempDir()
	dir, store := filepath.Join(top, "w"), filepath.Join(top, "store")
	write(t, dir, ".git/config", "[core]\n")
	for i := range 3 {
		k, err := Keep(dir, nil, store)
		must(t, err)
		write(t, dir, ".git/config", fmt.Sprint("[evil", i, "]\n"))
		nest(t, filepath.Join(dir, ".git/hooks"), 500)
		_, err = k.PutBack(context.Background())
		must(t, err)
	}
	found, err := filepath.Glob(filepath.Join(dir, ".git", replacedPrefix+"*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v %v", found, err)
	}
	if text, _ := os.ReadFile(filepath.Join(found[0], "config")); string(text) != "[evil2]\n" {
		t.Errorf("%q", text)
	}
}

// TestOwner: what root puts back belongs to whom it belonged.
func TestOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away")
	}
	top := t.TempDir()
	dir, store := filepath.Join(top, "w"), filepath.Join(top, "store")
	write(t, dir, ".git/config", "[core]\n")
	write(t, dir, ".git/hooks/x", "x")
	for _, name := range []string{".git", ".git/config", ".git/hooks", ".git/hooks/x"} {
		must(t, os.Chown(filepath.Join(dir, name), 1234, 1235))
	}
	k, err := Keep(dir, nil, store)
	must(t, err)
	must(t, os.RemoveAll(filepath.Join(dir, ".git")))
	_, err = k.PutBack(context.Background())
	must(t, err)
	for _, name := range []string{".git", ".git/config", ".git/hooks", ".git/hooks/x"} {
		var st unix.Stat_t
		if err := unix.Lstat(filepath.Join(dir, name), &st); err != nil || st.Uid != 1234 || st.Gid != 1235 {
			t.Errorf("%s: %d:%d %v", name, st.Uid, st.Gid, err)
		}
	}
}

// TestEndlessEntry: a .git that isn't to be there is out of git's way, however much is in
// it and however little time is left.
func TestEndlessEntry(t *testing.T) {
	top := t.TempDir()
	dir, store := filepath.Join(top, "w"), filepath.Join(top, "store")
	write(t, dir, "f", "x")
	k, err := Keep(dir, nil, store)
	must(t, err)
	nest(t, filepath.Join(dir, ".git"), 100)
	ctx, cancel := context.WithDeadline(context.Background(), time.Unix(0, 0))
	defer cancel()
	if changed, err := k.PutBack(ctx); err != nil || len(changed) != 1 {
		t.Errorf("%v %v", changed, err)
	}
	if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
		t.Error("it is still there")
	}
}
