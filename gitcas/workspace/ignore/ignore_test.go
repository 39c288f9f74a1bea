package ignore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/internal/testmode"
)

func TestIgnored(t *testing.T) {
	for _, c := range []struct {
		rules, path string
		dir, want   bool
	}{
		{"*.o", "a.o", false, true},
		{"*.o", "d/a.o", false, true},
		{"*.o", "a.o.c", false, false},
		{"build", "build", true, true},
		{"build/", "build", false, false},
		{"build/", "x/build", true, true},
		{"/build", "x/build", true, false},
		{"/build", "build", true, true},
		{"a/b", "a/b", false, true},
		{"a/b", "x/a/b", false, false},
		{"**/b", "x/y/b", false, true},
		{"**/b", "b", false, true},
		{"a/**/b", "a/b", false, true},
		{"a/**/b", "a/x/y/b", false, true},
		{"a/**", "a/x/y", false, true},
		{"a/**", "a", true, false},
		{"a**b", "axxb", false, true},
		{"x/a**b", "x/a/b", false, false},
		{"a/*", "a/b", false, true},
		{"a/*", "a/b/c", false, false},
		{"a/*/c", "a/b/c", false, true},
		{"*.o\n!a.o", "a.o", false, false},
		{"!a.o\n*.o", "a.o", false, true},
		{"# x\n#y", "#y", false, false},
		{`\#y`, "#y", false, true},
		{`\!y`, "!y", false, true},
		{"a ", "a", false, true},
		{`a\ `, "a ", false, true},
		{`a\  `, "a ", false, true},
		{"a b", "a b", false, true},
		{"a\r\nb", "a", false, true},
		{"\ufeffa", "a", false, true},
		{"[ab]", "b", false, true},
		{"[!ab]", "c", false, true},
		{"[^ab]", "b", false, false},
		{"[a-c]x", "bx", false, true},
		{"[]a]", "]", false, true},
		{"[a-]", "-", false, true},
		{`[\]]`, "]", false, true},
		{"[[:digit:]]", "7", false, true},
		{"[[:nope:]]", "n", false, false},
		{"[[:alpha:][:digit:]_]x", "_x", false, true},
		{"[a", "[a", false, false},
		{"a?c", "abc", false, true},
		{"d/a?c", "d/a/c", false, false},
		{`a\*`, "a*", false, true},
		{`a\*`, "ab", false, false},
		{"/", "a", true, false},
		{"!", "a", false, false},
		{"a\x00b", "a", false, true},
		{"foo/bar/", "foo/bar", true, true},
		{"foo/bar/", "foo/bar", false, false},
	} {
		if got := ignored(t, folder(t, New(DefaultSteps), "", c.rules), c.path, c.dir); got != c.want {
			t.Errorf("%q on %q (folder %v): %v", c.rules, c.path, c.dir, got)
		}
	}
}

func TestNested(t *testing.T) {
	none := New(DefaultSteps)
	top := folder(t, none, "", "*.log\n/a/x\n")
	a := folder(t, top, "a", "!keep.log\n/y\n")
	for path, want := range map[string]bool{
		"a/keep.log": false, "a/b/keep.log": false, "a/z.log": true, "a/x": true, "a/y": true, "a/b/y": false,
	} {
		if got := ignored(t, a, path, false); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
	if folder(t, a, "a/b", "# nothing\n") != a {
		t.Error("a .gitignore without patterns made new rules")
	}
	if ignored(t, none, "x", false) {
		t.Error("no rules ignored a file")
	}
}

// TestHostilePatterns are ones that take a naive matcher forever. What they take is
// counted: no more than the pattern's length times the path's.
func TestHostilePatterns(t *testing.T) {
	deep := strings.Repeat("a/", 1000)
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{strings.Repeat("*a", 50) + "b", strings.Repeat("a", 200), false},
		{strings.Repeat("*a", 50) + "b", strings.Repeat("a", 200) + "b", true},
		{strings.Repeat("a/**/", 60) + "b", deep + "c", false},
		{strings.Repeat("a/**/", 60) + "b", deep + "b", true},
		{strings.Repeat("**/a*", 40) + "/b", deep + "c", false},
		{strings.Repeat("**/", 1000) + "b/c", deep + "c", false},
		{strings.Repeat("**/", 1000) + "a/c", deep + "c", true},
		{strings.Repeat("**/", 50) + strings.Repeat("b/", 20) + "x", strings.Repeat("b/", 500) + "c", false},
		{strings.Repeat("*[a]?", 40) + "c", strings.Repeat("a", 200), false},
		{"x/" + strings.Repeat("*[!b]", 300), "x/" + strings.Repeat("a", 255), false},
		{strings.Repeat("**/*a", 500) + "/", deep + strings.Repeat("a", 255), false},
		{"*[" + strings.Repeat("[:", 1<<16) + "a]", strings.Repeat("x", 100), false},
	} {
		r := folder(t, New(DefaultSteps), "", c.pattern)
		before := r.spent
		if got := ignored(t, r, c.path, false); got != c.want {
			t.Errorf("%.40q… on a path of %d bytes: %v", c.pattern, len(c.path), got)
		}
		if most := int64(len(c.pattern)*len(c.path) + 1000); r.spent-before > most {
			t.Errorf("%.40q… on a path of %d bytes: %d steps, at most %d were expected", c.pattern, len(c.path), r.spent-before, most)
		}
	}
}

// TestStepsCountBytes: each byte of a pattern that is looked at again is a step, so that what
// a walk may cost is a time, whatever the patterns are.
func TestStepsCountBytes(t *testing.T) {
	const n = 1 << 16
	for _, c := range []struct{ pattern, path string }{
		{"*[" + strings.Repeat("a", n) + "]", strings.Repeat("x", 100)},
		{"*[" + strings.Repeat("a", n) + "?", strings.Repeat("x", 100)},
		{"*[" + strings.Repeat("[:", n/2) + "a]", strings.Repeat("x", 100)},
		{"*[" + strings.Repeat("[:alpha:]", n/9) + "]", strings.Repeat("1", 100)},
		{"x/**/" + strings.Repeat("*", n) + "?b", "x/" + strings.Repeat("a/", 100) + "b"},
	} {
		r := folder(t, New(DefaultSteps), "", c.pattern)
		before := r.spent
		if ignored(t, r, c.path, false) {
			t.Errorf("%.20q… matches", c.pattern)
		}
		if steps := r.spent - before; steps < 99*n {
			t.Errorf("%.20q… on %d bytes: %d steps", c.pattern, len(c.path), steps)
		}
		r = folder(t, New(10*n), "", c.pattern)
		if _, err := r.Ignored(c.path, false); !errors.As(err, new(*CostError)) {
			t.Errorf("%.20q… with few steps: %v", c.pattern, err)
		}
	}
}

// TestManyPatterns: a .gitignore of a megabyte is used like any other where its
// patterns can be looked up, and refused by name where they would have to be compared
// with every file one by one.
func TestManyPatterns(t *testing.T) {
	for _, c := range []struct {
		name, pattern string
		refused       bool
	}{
		{"names", "out%d", false},
		{"names anywhere", "**/out%d/", false},
		{"paths", "/a/out%d", false},
		{"beginnings", "out%d*", true},
		{"ends", "*.o%d", true},
		{"stars", "*x%d*y", true},
		{"paths with stars", "**/x%d/*", true},
		{"sets", "[ab]%d[cd]", true},
		{"negated", "!?x%d*y", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var text strings.Builder
			for i := 0; text.Len() < MaxFile-100; i++ {
				fmt.Fprintf(&text, c.pattern+"\n", i)
			}
			r := folder(t, folder(t, New(20_000_000), "", "*.o\n"), "sub", text.String())
			var err error
			for i := 0; i < 5000 && err == nil; i++ {
				_, err = r.Ignored(fmt.Sprintf("sub/folder-%d/source-file-%d.go", i/100, i), false)
			}
			var cost *CostError
			switch {
			case !c.refused && err != nil:
				t.Error(err)
			case c.refused && (!errors.As(err, &cost) || cost.Folder != "sub" || cost.Patterns != r.count):
				t.Errorf("%v (%+v)", err, cost)
			}
		})
	}
	// Reading them costs, too: a .gitignore in each of ten thousand folders.
	r, err := New(10_000_000), error(nil)
	for i := 0; i < 10_000 && err == nil; i++ {
		_, err = r.Folder(fmt.Sprint(i), []byte(strings.Repeat("# nothing\n", 1000)))
	}
	if !errors.As(err, new(*CostError)) {
		t.Errorf("reading 100 MB of rules: %v", err)
	}
}

// TestLongPattern: a pattern that is longer than any path is compared like any other.
func TestLongPattern(t *testing.T) {
	long := strings.Repeat("a", 5000)
	r := folder(t, New(DefaultSteps), "", long+"\n[b]"+long+"\n"+strings.Repeat("*", 5000)+".o\nx")
	for path, want := range map[string]bool{"x": true, "y": false, "y.o": true, "d/y.o": true, "b": false} {
		if ignored(t, r, path, false) != want {
			t.Errorf("%s: %v", path, !want)
		}
	}
}

// TestLookedUp: patterns that are looked up match what they would one by one.
func TestLookedUp(t *testing.T) {
	pieces := []string{"a", "b", "ab", "*", "**", "/", "?", ".o", "[ab]", `\a`, "!", "a/b"}
	names := []string{"a", "b", "ab", "ba", "a.o", "b.o", ".o", "aab"}
	for seed := range testmode.Seeds(t, 300, 3000) {
		g := rand.New(rand.NewPCG(seed, 1))
		var lines []string
		for range 1 + g.IntN(6) {
			line := ""
			for range 1 + g.IntN(4) {
				line += pieces[g.IntN(len(pieces))]
			}
			lines = append(lines, line)
		}
		r := folder(t, New(DefaultSteps), "", strings.Join(lines, "\n"))
		for range 40 {
			path := names[g.IntN(len(names))]
			for range g.IntN(3) {
				path += "/" + names[g.IntN(len(names))]
			}
			isDir := g.IntN(2) == 0
			if got, want := ignored(t, r, path, isDir), oneByOne(lines, path, isDir); got != want {
				t.Fatalf("seed %d: %q on %q (folder %v): %v, one by one %v", seed, lines, path, isDir, got, want)
			}
		}
	}
}

// oneByOne compares each line by itself, as git does.
func oneByOne(lines []string, path string, isDir bool) bool {
	result := false
	base := path[strings.LastIndexByte(path, '/')+1:]
	for _, line := range lines {
		line, negated := strings.CutPrefix(line, "!")
		line, folder := strings.CutSuffix(line, "/")
		nested := strings.Contains(line, "/")
		line = strings.TrimPrefix(line, "/")
		text := base
		if nested {
			text = path
		}
		if line == "" || folder && !isDir {
			continue
		}
		if n := strings.IndexAny(line+"*", wildcards); nested { // git compares what is literal first
			var same bool
			if text, same = strings.CutPrefix(text, line[:n]); !same {
				continue
			}
			line = line[n:]
		}
		if ok, _ := matchWild(line, text, DefaultSteps); ok {
			result = !negated
		}
	}
	return result
}

func FuzzRules(f *testing.F) {
	f.Add("*.o\n!a[b-c]/**\n", "a/b.o", true)
	f.Add("[[:alpha:]-\\", "x", false)
	f.Add("**/\\/**", "a/b/c", false)
	f.Add("*\\", "\x00", false)
	f.Fuzz(func(t *testing.T, rules, path string, dir bool) {
		for _, in := range []string{"", "a"} {
			r, err := New(1_000_000).Folder(in, []byte(rules))
			if err == nil {
				_, err = r.Ignored("a/"+path, dir)
			}
			if err != nil && !errors.As(err, new(*CostError)) {
				t.Error(err)
			}
		}
	})
}

func folder(t *testing.T, r *Rules, path, text string) *Rules {
	t.Helper()
	sub, err := r.Folder(path, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return sub
}

func ignored(t *testing.T, r *Rules, path string, isDir bool) bool {
	t.Helper()
	yes, err := r.Ignored(path, isDir)
	if err != nil {
		t.Fatal(err)
	}
	return yes
}
