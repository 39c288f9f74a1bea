package clitest

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/cli"
)

// Console runs commands of uwf in this process: in a folder, with an environment and
// streams of their own, over Remotes. Its agents run in this process as well, where
// nothing of them needs one of its own. What proves processes (signals, terminals,
// children) is not for it.
type Console struct {
	Remotes *Remotes
	Dir     string
	Environ []string
	Stdin   string
}

// Result is what a command left.
type Result struct {
	Code           int
	Stdout, Stderr string
}

// Run runs one command line, given without the word uwf.
func (c *Console) Run(ctx context.Context, args ...string) Result {
	f, out, errs := c.Factory()
	code := cli.Execute(ctx, f, args)
	return Result{Code: code, Stdout: out.String(), Stderr: errs.String()}
}

// Factory makes a command's Factory, and what the command prints.
func (c *Console) Factory() (f *app.Factory, out, errs *bytes.Buffer) {
	out, errs = &bytes.Buffer{}, &bytes.Buffer{}
	f = app.NewAt(c.Dir, c.Environ, app.IO{In: strings.NewReader(c.Stdin), Out: out, Err: errs})
	f.SelfCommand = []string{"uwf"}
	if self, err := exec.LookPath("uwf"); err == nil {
		f.SelfCommand = []string{self}
	}
	f.DialWire, f.Inside = c.Remotes.DialWire, runInside
	return f, out, errs
}

// runInside runs an agent of this binary here. It is what app.Factory.Inside wants.
func runInside(ctx context.Context, p agents.Program) (code int, ok bool) {
	if len(p.Argv) < 3 || filepath.Base(p.Argv[0]) != "uwf" || p.Argv[1] != "agent" || !slices.Contains([]string{"builtin", "mock"}, p.Argv[2]) {
		return 0, false
	}
	if p.Argv[2] == "mock" && needsProcess(p) {
		return 0, false
	}
	f := app.NewAt(p.Dir, p.Environ, app.IO{In: strings.NewReader(""), Out: p.Stdout, Err: p.Stderr})
	return cli.Execute(ctx, f, p.Argv[1:]), true
}

var processEnds = regexp.MustCompile(`\b(kill|hang|daemon|flood|stdout): `)

// needsProcess says whether a script of the mock agent does what only a process can:
// ending it, hanging in it, leaving another one.
func needsProcess(p agents.Program) bool {
	if len(p.Argv) < 4 {
		return false
	}
	script := p.Argv[3]
	if !filepath.IsAbs(script) {
		script = filepath.Join(agents.Getenv(p.Environ, agents.EnvCallDir), script)
	}
	text, err := os.ReadFile(script)
	return err != nil || processEnds.Match(text)
}
