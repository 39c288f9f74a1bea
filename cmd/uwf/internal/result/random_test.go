package result

import (
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/internal/testmode"
)

// TestApplyRandom: random work in random checkouts. What apply leaves is what git makes of it where
// the person has committed everything and merges; or it refuses, and nothing has changed. It never
// refuses what meets nothing of the person's.
func TestApplyRandom(t *testing.T) {
	testmode.EachGit(t, func(t *testing.T, git string) {
		applied, merged, refused := 0, 0, 0
		for seed := range testmode.Seeds(t, 30, 300) {
			g := chooser{rand.New(rand.NewPCG(seed, 36))} //nolint:gosec // chosen by a seed
			p := newPerson(t, git)
			switch outcome := p.applyRandom(g, seed%3 == 0); {
			case outcome == "refused":
				refused++
			case outcome == "merged":
				merged++
				applied++
			default:
				applied++
			}
			if err := os.RemoveAll(p.home); err != nil {
				t.Fatal(err)
			}
			if t.Failed() {
				return
			}
		}
		t.Logf("%d applied, %d of them merged; %d refused", applied, merged, refused)
		if applied < refused && applied+refused > 10 {
			t.Error("it refuses more than it applies")
		}
	})
}

// A chooser chooses what is in a checkout.
type chooser struct{ *rand.Rand }

func (g chooser) pick(of ...string) string { return of[g.IntN(len(of))] }

func (g chooser) path() string {
	return g.pick("", "", "d/", "d/e/", "b.txt/") + g.pick("a", "b.txt", "c.u", "d", "é", "new\nline", `q"uo\te`, "sp ace.txt", "run")
}

// text is a file with a few changed lines.
func (g chooser) text(base string) string {
	if base == "" || strings.HasPrefix(base, "-> ") {
		base = strings.Repeat("line\n", 3) + numbers
	}
	lines := strings.Split(base, "\n")
	lines[g.IntN(len(lines))] = g.pick("one", "zwei", "", "trois")
	return strings.Join(lines, "\n")
}

// change is the new content of a file, or what person.commitAs takes for a link, a program or none.
func (g chooser) change(base string) string {
	switch g.IntN(8) {
	case 0:
		return "gone"
	case 1:
		return "-> " + g.pick("a", "d/b.txt")
	case 2:
		return "* " + g.text(strings.TrimPrefix(base, "* "))
	}
	return g.text(base)
}

// edit changes some files of a tree so that it is one still.
func (g chooser) edit(files map[string]string, n int) map[string]string {
	changes := map[string]string{}
	for range n {
		path := g.path()
		now := map[string]string{}
		maps.Copy(now, files)
		maps.Copy(now, changes)
		text := g.change(now[path])
		if now[path] == "gone" {
			continue
		}
		if now[path] == "" && text == "gone" {
			continue
		}
		if text != "gone" {
			for other, is := range now {
				if is != "gone" && (strings.HasPrefix(other, path+"/") || strings.HasPrefix(path, other+"/")) {
					changes[other] = "gone"
				}
			}
		}
		changes[path] = text
	}
	for path := range changes {
		if _, was := files[path]; changes[path] == "gone" && !was {
			delete(changes, path)
		}
	}
	return changes
}

// applyRandom makes a checkout, work and changes of the person's, and compares what apply does.
func (p *person) applyRandom(g chooser, apart bool) string {
	p.Helper()
	base := g.edit(nil, 8)
	base[".gitattributes"] = g.pick("\n", "[a-z]* text=auto\n", "*.txt text eol=crlf\n", "*.u text working-tree-encoding=UTF-16LE-BOM\n", "[a-z]* text eol=crlf\n")
	p.sh(p.dir, "git commit -q --allow-empty -m none")
	commit := p.commitAs(base)
	settings := "git config core.autocrlf " + g.pick("false", "true", "input") + "; git config core.fileMode " + g.pick("true", "false") +
		"; git reset -q --hard " + commit + g.pick("", "", "; git sparse-checkout init --cone; git sparse-checkout set d/e")
	p.sh(p.dir, settings)
	sparse := strings.Contains(settings, "sparse")
	work := g.edit(base, 1+g.IntN(4))
	tip := p.commitAs(work)
	if apart {
		p.sh(p.dir, "echo mine >apart; echo more >apart2; git add apart2")
	} else {
		p.changeSome(g, base, work)
	}

	before, kept := p.files(p.dir), p.gitFolder()
	conflicts, err := p.apply(tip, false)
	var said *app.GitError
	if errors.As(err, &said) { // such as a file whose encoding is not the one of its attribute
		conflicts = []string{said.Error()}
	} else if err != nil {
		p.Errorf("%v", err)
	}
	after := p.files(p.dir)
	if p.gitFolder() != kept {
		p.Error("the index, refs or objects were changed")
	}
	if len(conflicts) > 0 {
		if !maps.Equal(before, after) {
			p.Errorf("refused for %q, and files are not as before", conflicts)
		}
		if apart {
			p.Errorf("refused, and the person has changed nothing there: %q", conflicts)
		}
		return "refused"
	}
	return p.compareWithMerge(before, after, work, tip, sparse)
}

// changeSome is a person at work: edits, new files and staged ones, commits.
func (p *person) changeSome(g chooser, base, work map[string]string) {
	p.Helper()
	paths := slices.Sorted(maps.Keys(base))
	paths = append(paths, slices.Sorted(maps.Keys(work))...)
	for range 1 + g.IntN(3) {
		path := filepath.Join(p.dir, paths[g.IntN(len(paths))])
		info, err := os.Lstat(path)
		switch {
		case g.IntN(6) == 0:
			_ = os.Remove(path)
		case err == nil && info.Mode().IsRegular() && filepath.Base(path) != ".gitattributes":
			data, err := os.ReadFile(path)
			if err != nil {
				p.Fatal(err)
			}
			if filepath.Ext(path) != ".u" { // its encoding is not chosen here
				ending := g.pick("\n", "\n", "\r\n")
				data = []byte(strings.ReplaceAll(string(data), g.pick("7\n", "2\n", "line\n"), "mine"+ending))
			}
			if err := os.WriteFile(path, data, info.Mode()); err != nil {
				p.Fatal(err)
			}
		case err != nil:
			_ = os.MkdirAll(filepath.Dir(path), 0o755)
			_ = os.WriteFile(path, []byte(g.text("")), 0o600)
		}
	}
	switch g.IntN(4) {
	case 0:
		p.sh(p.dir, "git add -A . 2>/dev/null || git add --sparse -A .")
	case 1:
		p.sh(p.dir, "git commit -qam mine --allow-empty")
	}
}

// compareWithMerge has git merge the work in a copy of the checkout where all is committed. Here
// all files but the work's are as before, and those are as git has them.
func (p *person) compareWithMerge(before, after, work map[string]string, tip string, sparse bool) string {
	p.Helper()
	copied := filepath.Join(p.home, "copy")
	p.sh(p.home, "cp -a repo/.git copy.git; mkdir copy; mv copy.git copy/.git")
	for path, text := range before {
		p.write(filepath.Join(copied, path), text)
	}
	script := "git config core.fsmonitor false; "
	if sparse {
		script += "git sparse-checkout disable; "
	}
	script += "git add -A . 2>/dev/null; git commit -qm all --allow-empty 2>/dev/null; git merge -q -s recursive -X no-renames --no-commit --no-ff " + tip + " >../said 2>&1 || { cat ../said; git status --short; }"
	if said := p.sh(copied, script); said != "" && !strings.Contains(said, "Already up to date") {
		p.Errorf("applied, and git has conflicts:\n%s", said)
	}
	want := p.files(copied)
	fileMode := p.sh(p.dir, "git config core.fileMode") == "true"
	for _, path := range slices.Sorted(maps.Keys(mergeKeys(before, after, work))) {
		expected, is := want[path], after[path]
		if _, ours := work[path]; !ours {
			expected = before[path]
		}
		if !fileMode {
			expected, is = strings.TrimPrefix(expected, "* "), strings.TrimPrefix(is, "* ")
		}
		if is != expected {
			p.Errorf("%s is %s, want %s (before: %s; the thread: %s)", strconv.Quote(path), strconv.Quote(is), strconv.Quote(expected), strconv.Quote(before[path]), strconv.Quote(work[path]))
		}
	}
	for path := range work {
		if before[path] != "" && work[path] != "gone" && after[path] != before[path] && strings.Contains(after[path], "mine") {
			return "merged"
		}
	}
	return "applied"
}

func mergeKeys(all ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range all {
		maps.Copy(out, m)
	}
	return out
}

// write writes a file as person.files describes it, at the time of the one in the checkout.
func (p *person) write(path, text string) {
	p.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.Fatal(err)
	}
	if target, ok := strings.CutPrefix(text, "-> "); ok {
		if err := os.Symlink(target, path); err != nil {
			p.Fatal(err)
		}
		return
	}
	mode := os.FileMode(0o644)
	if data, ok := strings.CutPrefix(text, "* "); ok {
		text, mode = data, 0o755
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil { //nolint:gosec // as git would
		p.Fatal(err)
	}
}
