// Package clitest runs uwf for tests: in this process, in scripts, with faults, over
// remotes that a test keeps.
package clitest

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/sandbox"
	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/cli"
	"github.com/united-workforce/uwf/internal/lazyregexp"
)

// Console runs commands of uwf in this process: in a folder, with an environment and
// streams of their own, over Remotes, or over all remotes as they are where it is nil.
// Its agents run in this process as well, where nothing of them needs one of its own.
// What proves processes (signals, terminals, children) is not for it.
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

// RunJob is RunFaulty for a job of a forge, whose log is all that it prints.
func (c *Console) RunJob(ctx context.Context, args ...string) (Result, error) {
	f, out, _ := c.Factory()
	f.IO.Err = out
	if err := meetFaults(f); err != nil {
		return Result{}, err
	}
	code := cli.Execute(ctx, f, args)
	return Result{Code: code, Stdout: out.String()}, nil
}

// RunFaulty is Run with the faults that the environment names, but for those that end
// the process.
func (c *Console) RunFaulty(ctx context.Context, args ...string) (Result, error) {
	f, out, errs := c.Factory()
	if err := meetFaults(f); err != nil {
		return Result{}, err
	}
	code := cli.Execute(ctx, f, args)
	return Result{Code: code, Stdout: out.String(), Stderr: errs.String()}, nil
}

// Printed is what a command and its agents printed, which may do so at the same time.
type Printed struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (p *Printed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

// String is all of it so far.
func (p *Printed) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// Factory makes a command's Factory, and what the command prints.
func (c *Console) Factory() (f *app.Factory, out, errs *Printed) {
	out, errs = &Printed{}, &Printed{}
	f = app.NewAt(c.Dir, c.Environ, app.IO{In: strings.NewReader(c.Stdin), Out: out, Err: errs})
	f.SelfCommand = []string{"uwf"}
	if self, err := exec.LookPath("uwf"); err == nil {
		f.SelfCommand = []string{self}
	}
	f.Inside = runInside
	chooseSandbox(f)
	if c.Remotes != nil {
		f.DialWire = c.Remotes.DialWire
	}
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

var processEnds = lazyregexp.New(`\b(kill|hang|daemon|flood|stdout): `)

// needsProcess says whether a script of the mock agent does what only a process can:
// ending it, hanging in it, leaving another one.
func needsProcess(p agents.Program) bool {
	if len(p.Argv) < 4 {
		return false
	}
	script := p.Argv[3]
	if !filepath.IsAbs(script) {
		script = filepath.Join(sandbox.Getenv(p.Environ, agents.EnvCallDir), script)
	}
	text, err := os.ReadFile(script)
	return err != nil || processEnds.Match(text)
}
