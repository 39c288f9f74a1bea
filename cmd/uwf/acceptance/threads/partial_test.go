package threads

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
	"github.com/united-workforce/uwf/gitcas/gitserver"
	"github.com/united-workforce/uwf/internal/gitservertest"
	"github.com/united-workforce/uwf/internal/testmode"
)

const (
	partialFlow = `name: one
description: A developer.
roles:
  dev: {description: d, goal: g, capabilities: [], procedure: p, output: o, frontmatter: {type: object, properties: {$status: {const: done}}, required: [$status]}}
graph:
  $START: {_: {role: dev, prompt: begin}}
  dev: {done: {role: $END, prompt: bye}}
`
	partialScript = `steps:
  - role: dev
    write: {d1/f: "changed\n"}
    output: "---\n$status: done\n---\n"
`
)

// partialClone is a partial clone of a repository on a server, and a person in it.
type partialClone struct {
	*testing.T
	dir     string
	server  *gitservertest.Server
	console clitest.Console

	mu     sync.Mutex
	agents map[string]bool // the programs that asked the server
}

// newPartialClone clones with the git program of a folder, by these arguments.
func newPartialClone(t *testing.T, git string, args ...string) *partialClone {
	t.Helper()
	p := &partialClone{T: t, dir: t.TempDir(), agents: make(map[string]bool)}
	home := filepath.Join(p.dir, "home")
	p.console.Environ = []string{
		"PATH=" + git + string(filepath.ListSeparator) + os.Getenv("PATH"), "HOME=" + home, "UWF_HOME=" + filepath.Join(home, ".uwf"), "LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1",
	}
	p.write("home/.gitconfig", "[user]\n\tname = Pat\n\temail = pat@example.com\n")
	p.write("flow.yaml", partialFlow)
	p.write("script.yaml", partialScript)

	full := filepath.Join(p.dir, "full")
	p.git("", "init", "-q", "-b", "main", full)
	for _, version := range []string{"one", "two"} {
		for _, name := range []string{"top", "d1/f", "d1/g", "d2/deep/f"} {
			p.write("full/"+name, name+" "+version+"\n")
		}
		p.git(full, "add", "-A")
		p.git(full, "commit", "-q", "-m", version)
	}
	bare := filepath.Join(p.dir, "served", "full.git")
	p.git("", "clone", "-q", "--bare", full, bare)
	p.git(bare, "config", "uploadpack.allowFilter", "true")
	p.git(bare, "config", "uploadpack.allowAnySHA1InWant", "true")
	var err error
	p.server, err = gitservertest.Serve(filepath.Join(p.dir, "served"), gitserver.Options{Middleware: p.noteAgents})
	p.check(err)
	t.Cleanup(func() { _ = p.server.Close() })
	p.console.Dir = filepath.Join(p.dir, "clone")
	// Not over HTTP: a git that was just built may lack that.
	served := "file://" + filepath.ToSlash(p.server.Dir("full.git"))
	p.git("", append(append([]string{"clone", "-q", "--no-local"}, args...), served, p.console.Dir)...)
	p.git(p.console.Dir, "remote", "set-url", "origin", p.server.URL+"/full.git")
	return p
}

func (p *partialClone) noteAgents(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.agents[r.UserAgent()] = true
		p.mu.Unlock()
		h.ServeHTTP(w, r)
	})
}

func (p *partialClone) check(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func (p *partialClone) write(name, text string) {
	p.Helper()
	path := filepath.Join(p.dir, filepath.FromSlash(name))
	p.check(os.MkdirAll(filepath.Dir(path), 0o700))
	p.check(os.WriteFile(path, []byte(text), 0o600))
}

func (p *partialClone) git(dir string, args ...string) string {
	p.Helper()
	cmd := exec.CommandContext(p.Context(), filepath.Join(strings.TrimPrefix(strings.SplitN(p.console.Environ[0], string(filepath.ListSeparator), 2)[0], "PATH="), "git"), args...)
	cmd.Dir, cmd.Env = dir, p.console.Environ
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// uwf runs a command of uwf in the clone.
func (p *partialClone) uwf(code int, args ...string) clitest.Result {
	p.Helper()
	res := p.console.Run(p.Context(), args...)
	if res.Code != code {
		p.Fatalf("uwf %v: exit code %d, want %d\n%s%s", args, res.Code, code, res.Stdout, res.Stderr)
	}
	return res
}

func (p *partialClone) mock() string { return "uwf agent mock " + filepath.Join(p.dir, "script.yaml") }

// refs are those of the clone that uwf made.
func (p *partialClone) refs() string {
	p.Helper()
	return p.git(p.console.Dir, "for-each-ref", "--format=%(refname)", "refs/uwf", "refs/heads/uwf*")
}

// TestPartialClone: threads kept in a partial clone work, whatever it lacks. uwf fetches the
// rest itself, and no git does.
func TestPartialClone(t *testing.T) {
	testmode.EachGit(t, func(t *testing.T, git string) {
		for name, tt := range map[string]struct{ clone, run []string }{
			"sparse":       {clone: []string{"--filter=blob:none", "--sparse"}},
			"no checkout":  {clone: []string{"--filter=blob:none", "--no-checkout"}},
			"treeless":     {clone: []string{"--filter=tree:0", "--no-checkout"}},
			"older commit": {clone: []string{"--filter=blob:none"}, run: []string{"--base", "HEAD~1"}},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				p := newPartialClone(t, git, tt.clone...)
				flow := filepath.Join(p.dir, "flow.yaml")
				p.agents = make(map[string]bool)
				res := p.uwf(0, append([]string{"run", flow, "-p", "x", "--agent", p.mock()}, tt.run...)...)
				diff := p.uwf(0, "thread", "diff", "@latest").Stdout
				if !strings.Contains(diff, "\n-d1/f ") || !strings.Contains(diff, "\n+changed\n") {
					t.Errorf("the diff is\n%s", diff)
				}
				for agent := range p.agents {
					if agent != "git/uwf" {
						t.Errorf("%s asked the server", agent)
					}
				}
				var ran struct{ Thread string }
				p.check(json.Unmarshal([]byte(res.Stdout), &ran))
				if names := p.git(p.console.Dir, "ls-tree", "-r", "--name-only", "uwf/"+ran.Thread); names != "d1/f\nd1/g\nd2/deep/f\ntop" {
					t.Errorf("the branch has\n%s", names)
				}
				p.git(p.console.Dir, "fsck", "--connectivity-only")
			})
		}
	})
}

// TestPartialCloneOfNobody: if the promisor remote is away, or lacks the files too, no thread
// begins, and no step of one takes an attempt.
func TestPartialCloneOfNobody(t *testing.T) {
	t.Parallel()
	git := testmode.NeedGit(t)
	const help = "\nget all files with git fetch --refetch --no-filter origin, or keep threads on that remote: uwf config set --repo state.remote origin"
	p := newPartialClone(t, filepath.Dir(git), "--filter=blob:none", "--no-checkout")
	packs := filepath.Join(p.console.Dir, ".git", "objects", "pack")
	flow := filepath.Join(p.dir, "flow.yaml")
	says := func(res clitest.Result, why string) {
		t.Helper()
		if !regexp.MustCompile(`this partial clone lacks 4 files, and its remote origin does not give them: fetch http\S+/full\.git: `+why).MatchString(res.Stderr) || !strings.Contains(res.Stderr, help) {
			t.Errorf("uwf says %s", res.Stderr)
		}
	}
	served := p.server.Dir("full.git")
	p.check(os.Rename(served, served+".away"))
	says(p.uwf(5, "thread", "start", flow, "-p", "x"), "not found")
	if refs := p.refs(); refs != "" {
		t.Errorf("there is %s", refs)
	}

	p.check(os.Rename(served+".away", served))
	before, err := os.ReadDir(packs)
	p.check(err)
	var started struct{ Thread string }
	p.check(json.Unmarshal([]byte(p.uwf(0, "thread", "start", flow, "-p", "x").Stdout), &started))
	after, err := os.ReadDir(packs)
	p.check(err)
	for _, e := range after { // as git gc may
		if !strings.Contains(fmt.Sprint(before), e.Name()) {
			p.check(os.Remove(filepath.Join(packs, e.Name())))
		}
	}
	p.check(os.Rename(served, served+".away"))
	says(p.uwf(1, "thread", "step", started.Thread, "--agent", p.mock()), "not found")
	if refs := p.refs(); strings.Contains(refs, "attempts") || strings.Contains(refs, "claims") {
		t.Errorf("there is %s", refs)
	}
}
