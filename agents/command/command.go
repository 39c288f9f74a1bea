package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/internal/headtail"
	"github.com/united-workforce/uwf/agents/internal/proc"
	"github.com/united-workforce/uwf/agents/internal/rundir"
	"github.com/united-workforce/uwf/agents/sandbox"
	"github.com/united-workforce/uwf/engine/redact"
	"github.com/united-workforce/uwf/internal/text"
)

// The reasons of Result.Stopped, besides that of a context that ended.
var (
	ErrTimeout = proc.ErrTimeout
	ErrOutput  = headtail.ErrTooMuch
	ErrDisk    = errors.New("it used too much of the disk")
)

// What holds where a Command says nothing.
const (
	DefaultMaxOutput = 16 << 10 // bytes
	DefaultMaxDisk   = 8 << 30  // bytes
)

// Options configure a Runner. Self and Environ are required.
type Options struct {
	// Self is this binary's command line. Its main calls agents.RunHelper.
	Self []string
	// Environ is this process's environment, NAME=value. Commands get agents.CleanEnviron
	// of it, changed by the sandbox, and no more.
	Environ []string
	// Sandbox confines commands. Nil: they are not confined, and have this user's HOME.
	Sandbox *sandbox.Sandbox
	// TempDir holds the folders of runs. Empty: the system's.
	TempDir string
	// Redact takes secrets out of what a command prints, before anything of it is cut
	// away. Nil: nothing is taken out.
	Redact *redact.Redactor
	// Now is the clock. Nil: time.Now.
	Now func() time.Time
	// Grace is what a command gets between SIGTERM and SIGKILL. 0: a second.
	Grace time.Duration
}

// Command is one command of a repository. Line or Argv is required, and Dir.
type Command struct {
	Line string   // for sh -c
	Argv []string // instead of Line: a program, on PATH or by a path from Place, and its words

	// Dir is the folder that it may change. Absolute.
	Dir string
	// Place is where it runs: Dir, or a folder below it, absolute or from Dir. Empty: Dir.
	Place string

	// Network is what it may reach. Empty: what the sandbox says; sandbox.GatewayOnly:
	// nothing at all.
	Network sandbox.Network
	// Read and Write are more places that it may use, such as caches. Absolute. See
	// sandbox.Run.
	Read, Write []string
	// Environ is more of its environment, NAME=value.
	Environ []string

	// FillHome fills HOME before the command runs, KeepHome takes what it left there after
	// it. Nil: it begins empty, and is removed. Where commands are not confined, HOME is this
	// user's, and neither is called.
	FillHome, KeepHome func(ctx context.Context, home string) error

	Timeout   time.Duration // 0: none
	MaxOutput int           // bytes kept, half from the beginning and half from the end; 0: DefaultMaxOutput
	// MaxDisk is how many bytes it may write into Dir, Write, HOME and TMPDIR together, as
	// far as they are the run's own; never more than three quarters of what is free. 0:
	// DefaultMaxDisk.
	MaxDisk int64
}

// Result is how a command ended.
type Result struct {
	Code    int            // its exit code; -1 when a signal ended it; 126 or 127 where there is no such program
	Signal  syscall.Signal // the signal that ended it, or 0
	Stopped error          // why it was stopped from here; nil when it ended by itself
	// Output is what it printed on stdout and stderr, redacted, as valid UTF-8 without what
	// a terminal would obey. Where there was too much its middle is left out, and a note
	// says so.
	Output   string
	Duration time.Duration
	CPU      time.Duration // processor time, user and system, of it and all it started, as far as reaped
	Left     int           // how many of its processes outlived it and were ended
	Gaps     []string      // what the sandbox could not enforce, a sentence each
}

// Runner runs commands. It is safe for concurrent use.
type Runner struct {
	o      Options
	runner *proc.Runner
}

// NewRunner returns a Runner.
func NewRunner(o Options) *Runner {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Runner{o: o, runner: proc.NewRunner(sandbox.Getenv(o.Environ, proc.MarkName), slices.Concat(o.Self, []string{proc.WatchName})...)}
}

// RemoveLeftovers removes the folders of runs, of commands and of agents, that killed
// processes left. It ends with ctx, which is no error.
func (r *Runner) RemoveLeftovers(ctx context.Context) error {
	return rundir.RemoveLeftovers(ctx, r.o.TempDir)
}

// Run runs a command to its end. The error says why it could not be run, or what could not
// be cleaned up after it, beside the result then; that it failed or was stopped stands in the
// Result.
func (r *Runner) Run(ctx context.Context, c Command) (Result, error) {
	res, err := r.runCommand(ctx, c)
	if err != nil {
		return res, fmt.Errorf("run the command %q: %w", text.OneLine(c.commandText()), err)
	}
	return res, nil
}

// commandText is the command for people.
func (c Command) commandText() string { return cmp.Or(c.Line, strings.Join(c.Argv, " ")) }

func (r *Runner) runCommand(ctx context.Context, c Command) (res Result, err error) {
	argv, err := c.shellWords()
	if err != nil {
		return res, err
	}
	if c.Dir, c.Place, err = c.resolvePlace(); err != nil {
		return res, err
	}
	run := program{c: c, argv: argv, env: agents.CleanEnviron(r.o.Environ), places: append([]string{c.Dir}, c.Write...)}
	if r.o.Sandbox == nil || r.o.Sandbox.Waives(r.o.Sandbox.Check()) { // which each run says at its start
		return r.runProgram(ctx, run)
	}
	folder, err := rundir.MakeFolder(r.o.TempDir)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, folder.EndRun(), rundir.RemoveFolder(ctx, folder.Path)) }()
	if c.FillHome != nil {
		if err := c.FillHome(ctx, sandbox.HomeOf(folder.Path)); err != nil {
			return res, fmt.Errorf("fill its HOME: %w", err)
		}
	}
	cell, err := r.o.Sandbox.Enter(sandbox.Run{
		Workspace: c.Dir, Base: folder.Path, Argv: argv, Network: c.Network, Read: c.Read, Write: c.Write,
	})
	if r.o.Sandbox.Waives(err) { // the machine could, and these folders can't
		refused := err
		res, err = r.runProgram(ctx, run)
		res.Gaps = []string{"this command ran unconfined: " + refused.Error()}
		return res, err
	}
	if err != nil {
		return res, err
	}
	defer func() {
		err = errors.Join(err, cell.Leave())
		if err == nil && c.KeepHome != nil {
			if err = cell.TakeHome(); err == nil {
				err = c.KeepHome(ctx, sandbox.HomeOf(folder.Path))
			}
		}
	}()
	run.argv, run.env, run.places = cell.Argv, cell.Environ(run.env), append(run.places, folder.Path)
	run.confine = cell.Confined
	res, err = r.runProgram(ctx, run)
	res.Gaps = cell.Gaps
	if hint := cell.ExplainDenial(res.Output); hint != "" && res.Code != 0 {
		res.Output = strings.TrimRight(res.Output, "\n") + "\n" + hint + "\n"
	}
	return res, err
}

// shellWords is the command line for the system. The shell also starts a program with
// words, confined as that will be: no file of a repository is looked at by this process.
func (c Command) shellWords() ([]string, error) {
	switch {
	case strings.TrimSpace(c.Line) != "" && len(c.Argv) == 0:
		return []string{"/bin/sh", "-c", c.Line}, nil
	case c.Line == "" && len(c.Argv) > 0 && c.Argv[0] != "":
		return slices.Concat([]string{"/bin/sh", "-c", `exec "$@"`, "sh"}, c.Argv), nil
	}
	return nil, errors.New("it has to be a line for the shell, or a program with its words; name one")
}

// resolvePlace is the folder that the command may change and the one that it runs in,
// without symlinks.
func (c Command) resolvePlace() (dir, place string, err error) {
	if !filepath.IsAbs(c.Dir) {
		return "", "", fmt.Errorf("its folder %q is no absolute path", c.Dir)
	}
	if dir, err = filepath.EvalSymlinks(c.Dir); err != nil {
		return "", "", fmt.Errorf("find its folder: %w", err)
	}
	place = c.Place
	if !filepath.IsAbs(place) {
		place = filepath.Join(dir, place)
	}
	if place, err = filepath.EvalSymlinks(place); err != nil {
		return "", "", fmt.Errorf("find the place where it runs: %w", err)
	}
	if place != dir && !strings.HasPrefix(place, dir+"/") {
		return "", "", fmt.Errorf("it is to run in %s, which is not within %s; name a folder below that", c.Place, c.Dir)
	}
	return dir, place, nil
}

// program is a command as it is to be started.
type program struct {
	c       Command
	argv    []string
	env     []string // without what the command says itself
	places  []string // that it can fill
	confine func(env []string) ([]string, error)
}

// runProgram runs a program, and bounds what it prints and writes.
func (r *Runner) runProgram(ctx context.Context, p program) (Result, error) {
	env := slices.Concat(p.env, p.c.Environ)
	if p.confine != nil {
		var err error
		if env, err = p.confine(env); err != nil {
			return Result{}, err
		}
	}
	out := newOutput(cmp.Or(p.c.MaxOutput, DefaultMaxOutput), r.o.Redact)
	began := r.o.Now()
	ctx, endWatch := watchDisk(ctx, p.places, cmp.Or(p.c.MaxDisk, DefaultMaxDisk), began)
	got, err := r.runner.Run(ctx, proc.Spec{
		Argv: p.argv, Dir: p.c.Place, Env: env, Stdout: out, Merge: true, Timeout: p.c.Timeout, Grace: r.o.Grace,
	})
	endWatch()
	res := Result{Code: got.Code, Signal: got.Signal, Stopped: got.Stopped, Left: got.Left, CPU: got.CPU, Duration: r.o.Now().Sub(began)}
	var flood error // seen only now, when the last that was held back is written
	res.Output, flood = out.finishOutput()
	if res.Stopped == nil {
		res.Stopped = flood
	}
	res.Stopped = p.c.explainStop(res.Stopped)
	return res, err
}

// explainStop says what can be done about a reason to stop.
func (c Command) explainStop(reason error) error {
	switch {
	case errors.Is(reason, ErrTimeout):
		return fmt.Errorf("%w: it had not ended after %s; give it more time, or less to do", ErrTimeout, c.Timeout)
	case errors.Is(reason, ErrOutput):
		return fmt.Errorf("%w; have it print less, or into a file", ErrOutput)
	}
	return reason
}
