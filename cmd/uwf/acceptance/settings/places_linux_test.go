package settings

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// nobody is a user who owns nothing.
const nobody = 65534

// newStranger is a person for whom a read-only folder is one: another user, where the tests run as
// root, who may write everywhere.
func newStranger(t *testing.T) *person {
	top := t.TempDir()
	p := &person{T: t, dir: filepath.Join(top, "repo")}
	p.environ = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(top, "home"), "GIT_CONFIG_NOSYSTEM=1"}
	for _, dir := range []string{"home", "repo"} {
		if err := os.Mkdir(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if os.Geteuid() == 0 {
		p.becomeNobody(top)
	}
	p.begin()
	return p
}

// becomeNobody gives a person's folders to a user who may write nowhere else, and to whom the
// program must be given: that of the tests lies where only root may go.
func (p *person) becomeNobody(top string) {
	p.Helper()
	found, err := exec.LookPath("uwf")
	if err != nil {
		p.Fatal(err)
	}
	bin := filepath.Join(top, "bin")
	err = errors.Join(os.Chmod(filepath.Dir(top), 0o755), os.Chmod(top, 0o755), os.Mkdir(bin, 0o755),
		// By a program of its own: what this process writes, a child of another test may still have open.
		exec.CommandContext(p.Context(), "cp", found, filepath.Join(bin, "uwf")).Run(),
		os.Chown(p.dir, nobody, nobody), os.Chown(filepath.Join(top, "home"), nobody, nobody))
	if err != nil {
		p.Fatal(err)
	}
	p.as = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	p.environ = append(p.environ[1:], "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	try := exec.CommandContext(p.Context(), filepath.Join(bin, "uwf"), "version")
	try.SysProcAttr = p.as
	if out, err := try.CombinedOutput(); err != nil {
		p.Skipf("NOT TESTED: nothing is read-only for root, and no other user can run a program here: %v %s", err, out)
	}
}

// close makes folders read-only, or with open writable again; all below them too.
func (p *person) close(mode fs.FileMode, tops ...string) {
	p.Helper()
	for _, top := range tops {
		err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				err = os.Chmod(path, mode)
			}
			return err
		})
		if err != nil {
			p.Fatal(err)
		}
	}
}

// files are what lies in the repository, the index and the refs.
func (p *person) files() string {
	p.Helper()
	_, status, _ := p.types("", "git", "status", "--porcelain", "--untracked-files=all")
	_, index, _ := p.types("", "git", "ls-files", "--stage")
	_, refs, _ := p.types("", "git", "for-each-ref")
	_, words, _ := p.types("", "sh", "-c", "tail -n +1 *.txt")
	return status + index + refs + words
}

// solvedScript plays solve-issue: a.txt becomes two.
const solvedScript = `steps:
  - {role: planner, output: "---\n$status: ready\nplan: p\nfiles: [a.txt]\n---\n"}
  - {role: developer, write: {a.txt: "two\n"}, output: "---\n$status: done\nsummary: s\ntests: t\n---\n"}
  - {role: reviewer, output: "---\n$status: approved\nsummary: s\n---\n"}
`

// README's run and what follows it, in places that are not as they should be: what can't be done
// is said with what to do, and then nothing was done.
func TestPlaces(t *testing.T) {
	run := []string{"uwf", "run", "-p", readmePrompt, "--agent", "uwf agent mock ../solved.yaml", "--trust", "none", "--format", "text"}
	apply := []string{"uwf", "thread", "apply", "@latest", "--yes"}
	for name, try := range map[string]func(p *person){
		"a dirty tree": func(p *person) {
			p.put("b.txt", "mine\n")
			p.expects(0, run, "", "agents see what is committed: not your 1 changed file")
			p.expects(0, apply, "", "")
			if got := p.files(); !strings.Contains(got, " M a.txt\n M b.txt\n") || !strings.Contains(got, "two\n") || !strings.Contains(got, "mine\n") {
				p.Errorf("the tree is %s", got)
			}
		},
		"a conflict on apply": func(p *person) {
			p.put("a.txt", "mine\n")
			p.expects(0, run, "", "")
			p.expectsNothing(2, apply, "can't be applied to this checkout, and nothing was changed:\n  a.txt")
			p.put("a.txt", "one\n")
			p.expects(0, apply, "", "")
		},
		"a pipe": func(p *person) {
			p.environ = append(p.environ, "TERM=xterm-256color")
			_, out, errs := p.types("", run...)
			if strings.ContainsAny(out+errs, "\x1b\r") || !strings.Contains(errs, "\nstep 1  planner works (mock): ") || !strings.Contains(errs, "\nstep 3  reviewer → approved") {
				p.Errorf("it prints no plain lines: %q %q", out, errs)
			}
		},
		"no remote": func(p *person) {
			p.expects(0, run, "take it here:  uwf thread apply", "")
			if _, out, _ := p.types("", "uwf", "thread", "show", "@latest", "--format", "text"); strings.Contains(out, "thread pr") {
				p.Errorf("a pull request is advised: %s", out)
			}
			p.expectsNothing(2, []string{"uwf", "thread", "pr", "@latest"}, "there can be no pull request: this repository has no remote origin; take the changes by uwf thread apply ")
			p.expects(0, apply, "", "")
		},
		"a folder that is read-only": func(p *person) {
			p.expects(0, run, "", "")
			p.close(0o555, p.dir)
			p.close(0o755, filepath.Join(p.dir, ".git"))
			defer p.close(0o755, p.dir)
			p.expectsNothing(2, apply, "permission denied")
			p.expectsNothing(2, []string{"uwf", "init", "--provider", "openai"}, ".github/workflows can't be written: permission denied; let yourself write into the repository's folder, then run uwf init again")
			p.expectsNothing(2, []string{"uwf", "workflow", "new"}, "write .uwf/workflows/solve-issue.yaml: mkdirat .uwf: permission denied; let this user write in "+p.dir)
			p.expects(0, run, "take it here:", "") // a thread has a folder of its own
		},
		"a repository that is read-only": func(p *person) {
			p.close(0o555, p.dir)
			defer p.close(0o755, p.dir)
			p.expectsNothing(5, run, "the repository can't be written where it lies: ")
			p.expectsNothing(5, run, "let this user write there, or keep threads elsewhere (state.remote in .uwf/config.yaml; outside of a repository: UWF_HOME)")
		},
		"a home that is read-only": func(p *person) {
			home := filepath.Join(p.dir, "..", "home")
			p.close(0o555, home)
			defer p.close(0o755, home)
			for _, argv := range [][]string{run, {"uwf", "setup", "--provider", "ollama", "--no-test"}} {
				p.expectsNothing(1, argv, "permission denied\nuwf keeps what is yours in ")
				p.expectsNothing(1, argv, "or set UWF_HOME to a folder where it may")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newStranger(t)
			p.put("a.txt", "one\n")
			p.put("b.txt", "one\n")
			p.put("../solved.yaml", solvedScript)
			p.types("", "git", "add", ".")
			p.types("", "git", "commit", "--quiet", "--message=second")
			try(p)
		})
	}
}

func (p *person) put(name, text string) {
	p.Helper()
	file := filepath.Join(p.dir, name)
	err := os.WriteFile(file, []byte(text), 0o644)
	if err == nil && p.as != nil {
		err = os.Chown(file, nobody, nobody)
	}
	if err != nil {
		p.Fatal(err)
	}
}

// expects types a command, which ends with that code and says words on stdout and stderr.
func (p *person) expects(want int, argv []string, stdout, stderr string) {
	p.Helper()
	code, out, errs := p.types("", argv...)
	if code != want || !strings.Contains(out, stdout) || !strings.Contains(errs, stderr) {
		p.Errorf("%v: exit code %d\n%s\n%s\nwant %d, %q, %q", argv, code, out, errs, want, stdout, stderr)
	}
}

// expectsNothing is expects of a command that must change nothing.
func (p *person) expectsNothing(want int, argv []string, stderr string) {
	p.Helper()
	before := p.files()
	p.expects(want, argv, "", stderr)
	if after := p.files(); after != before {
		p.Errorf("%v changed the repository from\n%s\nto\n%s", argv, before, after)
	}
}
