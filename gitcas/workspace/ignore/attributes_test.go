package ignore

import (
	"errors"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/internal/testmode"
)

var wanted = []string{"text", "eol", "crlf", "filter", "working-tree-encoding", "binary", "diff", "m1", "m2"}

// attributeFile makes a random .gitattributes.
func attributeFile(r *rand.Rand) string {
	pick := func(s ...string) string { return s[r.Intn(len(s))] }
	var text string
	for range r.Intn(8) {
		text += pick("", "", "", "/", "**/", "d/", "e/")
		text += pick("*", "a", "*.o", "a*", "?", "[ab]*", "d/**", "**/b", "*.t*", `"q\"x"`, `"a b"`, "a/", "x.txt", `\a`, "!a", "[attr]m1", "[attr]m2", "[attr]", "# c", `"\303\244"`)
		for range r.Intn(4) {
			text += pick(" ", "\t", "  ") + pick("", "-", "!", "")
			text += pick("text", "eol", "crlf", "filter", "binary", "m1", "m2", "working-tree-encoding") + pick("", "", "=lf", "=auto", "=crlf", "=x", "=")
		}
		text += pick("\n", "\n", "\r\n", " \n")
	}
	return text
}

// TestAttributesLikeGit compares look-ups with git check-attr.
func TestAttributesLikeGit(t *testing.T) { testmode.EachGit(t, compareAttributes) }

func compareAttributes(t *testing.T, git string) {
	paths := []string{"a", "b", "x.o", "a.o", "x.txt", "q\"x", "a b", "ä", "d/a", "d/b", "d/x.txt", "d/e/a", "d/e/b", "d/e/a.o", "d/e/x.txt", "e/a", "d/e/f/b"}
	compared := 0
	for seed := range testmode.Seeds(t, 30, 300) {
		r := rand.New(rand.NewSource(int64(seed)))
		dir := t.TempDir()
		run := func(args ...string) string {
			c := exec.Command(filepath.Join(git, "git"), args...)
			c.Dir, c.Stdin = dir, strings.NewReader(strings.Join(paths, "\x00"))
			c.Env = append(os.Environ(), "GIT_ATTR_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
			out, err := c.Output()
			if err != nil {
				t.Fatal(args, err)
			}
			return string(out)
		}
		run("init", "-q", ".")
		ours := map[string]*Attributes{}
		above := NewAttributes(DefaultSteps, wanted...)
		for _, folder := range []string{"", "d", "d/e"} {
			text := attributeFile(r)
			in := filepath.Join(dir, folder)
			if err := errors.Join(os.MkdirAll(in, 0o755), os.WriteFile(filepath.Join(in, ".gitattributes"), []byte(text), 0o644)); err != nil {
				t.Fatal(err)
			}
			own, err := above.Folder(folder, []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			above, ours[folder] = own, own
		}
		theirs := strings.Split(run(append([]string{"check-attr", "-z", "--stdin"}, wanted...)...), "\x00")
		for i := 0; i+2 < len(theirs); i += 3 {
			at, name, want := theirs[i], theirs[i+1], theirs[i+2]
			folder := path.Dir(at)
			for folder != "." && ours[folder] == nil {
				folder = path.Dir(folder)
			}
			found, err := ours[strings.TrimPrefix(folder, ".")].Lookup(at)
			if err != nil {
				t.Fatal(err)
			}
			got, there := found[name]
			if !there {
				got = "unspecified"
			}
			if got != want {
				t.Fatalf("seed %d: %s of %q is %q, git says %q in %s", seed, name, at, got, want, dir)
			}
			compared++
		}
	}
	t.Log(compared, "look-ups compared")
}

// TestCostlyAttributes: hostile files end in an error that names their folder, soon.
func TestCostlyAttributes(t *testing.T) {
	var chain strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&chain, "[attr]m%d m%d\n", i, i+1)
	}
	chain.WriteString("* m0\n")
	for name, text := range map[string]string{
		"macros in a row":     chain.String(),
		"macros in a circle":  "[attr]a b\n[attr]b a\n* a\n",
		"many lines":          strings.Repeat("* text\n", MaxFile/7),
		"many assignments":    "* " + strings.Repeat("a ", 1000) + "\n",
		"costly patterns":     strings.Repeat(strings.Repeat("*a", 100)+"b text\n", 4000),
		"macros of one macro": "[attr]m text eol crlf\n" + strings.Repeat("* m m m m m m m m m m m m\n", 1000),
	} {
		t.Run(name, func(t *testing.T) {
			top := NewAttributes(DefaultSteps/100, "text")
			a, err := top.Folder("d", []byte(text))
			if name == "macros in a row" || name == "macros in a circle" {
				a, err = top.Folder("", []byte(text))
			}
			for i := 0; err == nil && i < 200_000; i++ {
				_, err = a.Lookup("d/" + strings.Repeat("a", 200))
				if name == "macros in a circle" {
					break
				}
			}
			var cost *CostError
			switch {
			case name == "macros in a circle":
				if err != nil {
					t.Error(err)
				}
			case !errors.As(err, &cost):
				t.Errorf("no end: %v, %d steps are left", err, a.work.left)
			}
		})
	}
}

// FuzzAttributes: no text makes reading or looking up fail otherwise than by its cost, and what
// is found are wanted names.
func FuzzAttributes(f *testing.F) {
	for seed := range int64(20) {
		f.Add(attributeFile(rand.New(rand.NewSource(seed))), "d/a.o")
	}
	f.Add("[attr]a a b\n* a -a !a\n\"\\\"\\303\" text=\"x\"\n", "a")
	f.Fuzz(func(t *testing.T, text, path string) {
		a := NewAttributes(1_000_000, "text", "eol")
		for _, folder := range []string{"", "d"} {
			var err error
			if a, err = a.Folder(folder, []byte(text)); err != nil {
				checkCost(t, err)
				return
			}
		}
		found, err := a.Lookup(path)
		checkCost(t, err)
		for name, value := range found {
			if name != "text" && name != "eol" || value == unspecified {
				t.Errorf("%s is %q", name, value)
			}
		}
	})
}

func checkCost(t *testing.T, err error) {
	t.Helper()
	var cost *CostError
	if err != nil && !errors.As(err, &cost) {
		t.Fatal(err)
	}
}
