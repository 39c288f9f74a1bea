package threads

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
	"github.com/united-workforce/uwf/internal/testmode"
)

// TestGoldenThreads: the commands that look at threads take those that any version
// has written, put into a repository by git itself. That the threads go on is
// engine/thread's test.
func TestGoldenThreads(t *testing.T) {
	testmode.NeedGit(t)
	files, err := filepath.Glob("../../../../engine/thread/testdata/golden/*.txtar")
	if err != nil || len(files) < 6 {
		t.Fatalf("%d golden files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			parts := map[string][]byte{}
			for _, f := range a.Files {
				parts[f.Name] = f.Data
			}
			var facts map[string]struct {
				Status string
				Steps  []struct{ Hash, Role string }
			}
			if err := json.Unmarshal(parts["facts.json"], &facts); err != nil {
				t.Fatal(err)
			}
			g := goldenRepo(t, parts["store"])
			g.must("fsck", "--history")
			listed := g.must("thread", "list", "--all")
			for id, want := range facts {
				if !strings.Contains(listed, id) {
					t.Errorf("thread %s is not listed", id)
				}
				var shown struct{ Steps int }
				g.json(&shown, "thread", "show", id)
				var list struct{ Steps []struct{ Hash, Role string } }
				g.json(&list, "thread", "steps", id)
				steps := list.Steps[1:] // after the start
				if shown.Steps != len(want.Steps) || len(steps) != len(want.Steps) {
					t.Errorf("thread %s: %d steps shown, %d listed, want %d", id, shown.Steps, len(steps), len(want.Steps))
				}
				for i := range min(len(steps), len(want.Steps)) {
					if steps[i] != want.Steps[i] {
						t.Errorf("thread %s, step %d is %v, want %v", id, i+1, steps[i], want.Steps[i])
					}
				}
				g.must("thread", "read", id)
			}
		})
	}
}

// golden is a repository with a golden store.
type golden struct {
	*testing.T
	console clitest.Console
}

func goldenRepo(t *testing.T, stream []byte) *golden {
	t.Helper()
	dir := t.TempDir()
	g := &golden{t, clitest.Console{Remotes: &clitest.Remotes{}, Dir: dir, Environ: []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C",
	}}}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"fast-import", "--quiet", "--done"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env, cmd.Stdin = dir, g.console.Environ, bytes.NewReader(stream)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return g
}

// must runs a command that goes well, and returns what it prints.
func (g *golden) must(args ...string) string {
	g.Helper()
	res := g.console.Run(g.Context(), args...)
	if res.Code != 0 {
		g.Fatalf("uwf %s: exit code %d\n%s%s", strings.Join(args, " "), res.Code, res.Stdout, res.Stderr)
	}
	return res.Stdout
}

func (g *golden) json(to any, args ...string) {
	g.Helper()
	if err := json.Unmarshal([]byte(g.must(args...)), to); err != nil {
		g.Fatal(err)
	}
}
