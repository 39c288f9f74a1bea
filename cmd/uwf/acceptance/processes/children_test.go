package processes

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/agents/sandbox"
	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
)

// loggedMain is uwf, and first adds its first argument to the file of its starts beside its own.
// A confined agent can't write there.
func loggedMain() {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	if log, err := os.OpenFile(self+".starts", os.O_APPEND|os.O_WRONLY, 0); err == nil {
		_, _ = log.WriteString(os.Args[1] + "\n") // a start that is missing fails the test
		_ = log.Close()
	}
	clitest.FaultyMain()
}

// childrenLab is a lab whose uwf and git write down their starts.
type childrenLab struct {
	*machine
	git, uwf string // the files
	env      []string
}

// TestChildrenOfAStep pins which processes of git and uwf a step starts, agent and remote apart.
// Each costs it milliseconds, and there are at most four.
func TestChildrenOfAStep(t *testing.T) {
	t.Parallel()
	const answer = `"---\n$status: more\npart: 1\n---\n"`
	lab := newLab(t, loop, "steps: ["+strings.Repeat("{output: "+answer+"}, ", 4)+"]", nil)
	l := lab.childrenLab()
	mode, helpers := "auto", []string{"thread", "process-watch", "sandbox-exec"}
	if !sandbox.Probe().Usable() {
		mode, helpers = "off", helpers[:2]
	}
	id := l.startThread()

	for _, c := range []struct {
		name, url, settings string
		want                []string
	}{
		{"http", l.url, "", []string{"config"}},
		{"http with a helper", l.url, "[credential]\n\thelper = \"!true\"\n", []string{"config", "credential"}},
		{"file", "file://" + l.server.Dir("r.git"), "[credential]\n\thelper = \"!true\"\n", []string{"config"}},
		{"ssh", "ssh://localhost" + l.server.Dir("r.git"), "[credential]\n\thelper = \"!true\"\n", []string{"config"}},
	} {
		lab.git(l.clone, "remote", "set-url", "origin", c.url)
		l.write(filepath.Join(l.path("home"), ".gitconfig"), c.settings)
		git, uwf := l.runStep(id, mode)
		if !slices.Equal(git, c.want) || !slices.Equal(uwf, helpers) {
			t.Errorf("over %s: git %v, want %v; uwf %v, want %v", c.name, git, c.want, uwf, helpers)
		}
	}
}

// childrenLab puts a git that logs first on PATH, and an ssh that calls the server's git here.
func (l *lab) childrenLab() *childrenLab {
	l.Helper()
	program, err := exec.LookPath("uwf-logged")
	l.check(err)
	git, err := exec.LookPath("git")
	l.check(err)
	c := &childrenLab{machine: l.machine("a"), git: l.path("git.starts"), uwf: program + ".starts"}

	bin := l.path("bin")
	for name, text := range map[string]string{
		"git": "echo \"$@\" >>'" + c.git + "'\nGIT_CONFIG_NOSYSTEM=1 exec '" + git + "' \"$@\"\n",
		"ssh": "shift $(($# - 1))\nPATH='" + filepath.Dir(git) + "':$PATH exec sh -c \"$1\"\n",
	} {
		l.write(filepath.Join(bin, name), "#!/bin/sh\n"+text)
		l.check(os.Chmod(filepath.Join(bin, name), 0o700))
	}
	c.env = append(l.baseEnv(), "PATH="+bin+":"+os.Getenv("PATH"), "UWF_HOME="+c.home, "GIT_SSH="+filepath.Join(bin, "ssh"), "GIT_SSH_VARIANT=simple")
	return c
}

// runStep runs a runStep, and returns the verbs of the git and uwf that it started. What git does as
// the remote is left out: its calls are counted as requests.
func (l *childrenLab) runStep(id, mode string) (git, uwf []string) {
	l.Helper()
	l.check(os.WriteFile(l.git, nil, 0o600))
	l.check(os.WriteFile(l.uwf, nil, 0o600))
	cmd := exec.CommandContext(l.Context(), "uwf-logged", "thread", "step", id, "--agent", "uwf agent mock '"+l.script+"'", "--sandbox", mode)
	cmd.Dir, cmd.Env = l.clone, l.env
	if out, err := cmd.CombinedOutput(); err != nil {
		l.Fatalf("%v: %s", err, out)
	}

	for line := range strings.Lines(l.listStarted(l.git)) {
		words := strings.Fields(line)
		for len(words) > 1 && strings.HasPrefix(words[0], "-") { // -c KEY=VALUE, -C FOLDER
			words = words[2:]
		}
		remote := words[0] == "upload-pack" || words[0] == "receive-pack" || strings.Contains(line, `^hook\.`)
		if !remote {
			git = append(git, words[0])
		}
	}
	for _, verb := range strings.Fields(l.listStarted(l.uwf)) {
		if verb != "agent" {
			uwf = append(uwf, verb)
		}
	}
	return git, uwf
}

func (l *childrenLab) listStarted(file string) string {
	l.Helper()
	b, err := os.ReadFile(file)
	l.check(err)
	return string(b)
}
