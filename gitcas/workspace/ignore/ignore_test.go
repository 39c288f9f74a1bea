package ignore

import (
	"strings"
	"testing"
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
		var r *Rules
		if got := r.Folder("", []byte(c.rules)).Ignored(c.path, c.dir); got != c.want {
			t.Errorf("%q on %q (folder %v): %v", c.rules, c.path, c.dir, got)
		}
	}
}

func TestNested(t *testing.T) {
	var none *Rules
	top := none.Folder("", []byte("*.log\n/a/x\n"))
	a := top.Folder("a", []byte("!keep.log\n/y\n"))
	for path, want := range map[string]bool{
		"a/keep.log": false, "a/b/keep.log": false, "a/z.log": true, "a/x": true, "a/y": true, "a/b/y": false,
	} {
		if got := a.Ignored(path, false); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
	if a.Folder("a/b", []byte("# nothing\n")) != a {
		t.Error("a .gitignore without patterns made new rules")
	}
	if none.Ignored("x", false) {
		t.Error("no rules ignored a file")
	}
}

// TestHostilePatterns are ones that take a naive matcher forever: it would never end.
func TestHostilePatterns(t *testing.T) {
	name := strings.Repeat("a", 200)
	for _, p := range []string{
		strings.Repeat("*a", 50) + "b", strings.Repeat("a/**/", 60) + "b", strings.Repeat("**/a*", 40) + "/b", strings.Repeat("*[a]?", 40) + "c",
	} {
		var r *Rules
		rules := r.Folder("", []byte(p))
		rules.Ignored(name, false)
		rules.Ignored(strings.Repeat("a/", 100)+"c", false)
	}
}

func FuzzRules(f *testing.F) {
	f.Add("*.o\n!a[b-c]/**\n", "a/b.o", true)
	f.Add("[[:alpha:]-\\", "x", false)
	f.Add("**/\\/**", "a/b/c", false)
	f.Fuzz(func(_ *testing.T, rules, path string, dir bool) {
		var r *Rules
		r.Folder("", []byte(rules)).Ignored(path, dir)
		r.Folder("a", []byte(rules)).Ignored("a/"+path, dir)
	})
}
