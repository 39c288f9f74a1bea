package threads

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/internal/testmode"
)

const (
	submoduleFlow = `name: two
description: A developer and a reviewer.
roles:
  dev: {description: d, goal: g, capabilities: [], procedure: p, output: o, checks: [test], frontmatter: {type: object, properties: {$status: {const: done}}, required: [$status]}}
  rev: {description: d, goal: g, capabilities: [], procedure: p, output: o, checks: [test], frontmatter: {type: object, properties: {$status: {const: done}}, required: [$status]}}
graph:
  $START: {_: {role: dev, prompt: begin}}
  dev: {done: {role: rev, prompt: look}}
  rev: {done: {role: $END, prompt: bye}}
`
	done = "    output: \"---\\n$status: done\\n---\\n\"\n"
)

// superproject is a repository with submodules that a server has, and whose owner wants them.
type superproject struct{ *partialClone }

// newSuperproject makes one with the git program of a folder.
func newSuperproject(t *testing.T, git string) superproject {
	t.Helper()
	p := superproject{newPartialClone(t, git)}
	p.write("flow.yaml", submoduleFlow)
	p.write("home/.uwf/config.yaml", "sandbox: auto\nworkspace: {submodules: true}\nchecks: {test: 'cat vendor/lib/menu.c vendor/lib/deep/d.txt && touch vendor/lib/made'}\n")
	for dir := filepath.Join(p.dir, "home"); dir != filepath.Clean(os.TempDir()) && dir != "/"; dir = filepath.Dir(dir) {
		p.check(os.Chmod(dir, 0o755)) // agents may be another user
	}

	deep := p.serveRepo("deep", map[string]string{"d.txt": "deep\n"}, nil)
	lib := p.serveRepo("lib", map[string]string{"menu.c": "soup\n", ".gitmodules": declareModule("deep", "../deep.git")}, map[string]string{"deep": deep})
	p.commitRepo(p.console.Dir, map[string]string{
		".gitmodules": declareModule("vendor/lib", "../lib.git") + declareModule("vendor/gone", "./../gone.git") + declareModule("vendor/local", p.server.Dir("lib.git")),
	}, map[string]string{"vendor/lib": lib, "vendor/gone": lib, "vendor/local": lib, "vendor/unsaid": lib})
	return p
}

func declareModule(path, address string) string {
	return "[submodule \"" + path + "\"]\n\tpath = " + path + "\n\turl = " + address + "\n"
}

// serveRepo makes a repository that the server has, and returns its commit.
func (p superproject) serveRepo(name string, files, modules map[string]string) string {
	p.Helper()
	dir := filepath.Join(p.dir, name)
	p.git("", "init", "-q", "-b", "main", dir)
	commit := p.commitRepo(dir, files, modules)
	p.git("", "clone", "-q", "--bare", dir, p.server.Dir(name+".git"))
	return commit
}

// commitRepo makes a commit of files and submodules, and returns it.
func (p superproject) commitRepo(dir string, files, modules map[string]string) string {
	p.Helper()
	for name, text := range files {
		p.check(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		p.git(dir, "add", name)
	}
	for path, commit := range modules {
		p.git(dir, "update-index", "--add", "--cacheinfo", "160000,"+commit+","+path)
	}
	p.git(dir, "commit", "-q", "-m", "x")
	return p.git(dir, "rev-parse", "HEAD")
}

// runThread runs a thread whose agents do as a script of the mock says, and returns what a person reads.
func (p superproject) runThread(script string) string {
	p.Helper()
	p.write("script.yaml", "steps:\n"+script)
	p.check(os.Chmod(filepath.Join(p.dir, "script.yaml"), 0o644))
	return p.uwf(0, "run", filepath.Join(p.dir, "flow.yaml"), "-p", "x", "--agent", p.mock()).Stderr
}

// TestSubmodules: agents and checks get the files of submodules, also of those in submodules.
// A submodule that can't be fetched is named with the reason. Agents' changes to one are not kept.
func TestSubmodules(t *testing.T) { testmode.EachGit(t, playSubmodules) }

func playSubmodules(t *testing.T, git string) {
	t.Parallel()
	p := newSuperproject(t, git)
	said := p.runThread("  - role: dev\n    write: {d1/f: \"changed\\n\", vendor/lib/menu.c: \"bread\\n\"}\n" + done + "  - role: rev\n" + done)
	for _, want := range []string{
		"not in the agents' folder: 3 submodules (vendor/gone: ", "/gone.git: not found",
		"vendor/local: its address is not one of https or ssh", "vendor/unsaid: .gitmodules of the commit that the thread began from has no such address)",
		"vendor/lib/menu.c is not kept: it lies in the submodule vendor/lib",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not in\n%s", want, said)
		}
	}
	if strings.Contains(said, "test failed") || strings.Contains(said, "made is not kept") {
		t.Errorf("the checks did not see the submodules as committed:\n%s", said)
	}
	if files := p.git(p.console.Dir, "diff", "--name-only", "main", "uwf/"+p.latestThread()); files != "d1/f" {
		t.Errorf("the branch changes %s", files)
	}

	// The next thread needs no server for the same commits.
	p.check(os.Rename(p.server.Dir("lib.git"), p.server.Dir("lib.away")))
	p.check(os.Rename(p.server.Dir("deep.git"), p.server.Dir("deep.away")))
	if said := p.runThread("  - role: dev\n    write: {d1/f: \"other\\n\"}\n" + done + "  - role: rev\n" + done); strings.Contains(said, "vendor/lib") || strings.Contains(said, "test failed") {
		t.Errorf("without the server:\n%s", said)
	}

	// Commands that prepare a workspace see the submodules, and can add files to them.
	p.write("home/.uwf/config.yaml", "workspace: {submodules: true, prepare: [cp vendor/lib/menu.c vendor/lib/made]}\nchecks: {test: cmp vendor/lib/menu.c vendor/lib/made}\n")
	if said := p.runThread("  - role: dev\n" + done + "  - role: rev\n" + done); strings.Count(said, "check: test passed") != 2 {
		t.Errorf("with a prepared workspace:\n%s", said)
	}
}

// TestSubmodulesElsewhere: a role can't have uwf fetch from another address.
func TestSubmodulesElsewhere(t *testing.T) {
	t.Parallel()
	p := newSuperproject(t, filepath.Dir(testmode.NeedGit(t)))
	p.write("home/.uwf/config.yaml", "workspace: {submodules: true}\nchecks: {test: 'true'}\n")
	said := p.runThread("  - role: dev\n    write: {.gitmodules: '[submodule \"vendor/lib\"]\n\n        path = vendor/lib\n\n        url = https://elsewhere.example/lib.git\n\n'}\n" + done + "  - role: rev\n" + done)
	if !strings.Contains(said, "vendor/lib: .gitmodules of the commit that the thread began from has no such address") || strings.Contains(said, "elsewhere.example") {
		t.Errorf("it says\n%s", said)
	}
}

func (p superproject) latestThread() string {
	p.Helper()
	return strings.TrimSpace(p.uwf(0, "thread", "show", "@latest", "--jq", ".thread").Stdout)
}
