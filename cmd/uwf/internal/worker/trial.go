package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/sandbox"
	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/internal/removal"
)

// Trial is a program that is run to see whether agents could, such as one that says its version.
type Trial struct {
	Argv    []string // the first word is an absolute path
	Environ []string // NAME=value; no more of it is used than agents get
	Read    []string // what the program needs to read beside itself
}

const (
	// trialTime bounds a program that says its version.
	trialTime = 30 * time.Second
	// maxPrinted is how much is kept of what it prints, in bytes.
	maxPrinted = 64 << 10
)

// TryProgram runs a program as agents are run: in an empty workspace, with a HOME of its own,
// without this process's secrets, and confined by box, if that is not nil. hint is the setting
// that would open what it is denied, if that can be told.
func TryProgram(ctx context.Context, f *app.Factory, box *sandbox.Sandbox, t Trial) (printed, hint string, err error) {
	workspace, err := MakeTrialFolder(f)
	if err != nil {
		return "", "", err
	}
	base, err := os.MkdirTemp("", "uwf-trial-")
	defer func() {
		ctx := context.WithoutCancel(ctx)
		err = errors.Join(err, removal.Tree(ctx, workspace, 0), removal.Tree(ctx, base, 0))
	}()
	run := sandbox.Run{
		Workspace: workspace, Base: base, Context: filepath.Join(base, "context"), Stage: filepath.Join(base, "stage"), Argv: t.Argv, Read: t.Read,
	}
	if err := errors.Join(err, os.Mkdir(run.Context, 0o700), os.Mkdir(run.Stage, 0o700)); err != nil {
		return "", "", fmt.Errorf("make folders to try %s in: %w", t.Argv[0], err)
	}
	if box == nil {
		home, temp := sandbox.HomeOf(base), sandbox.TempOf(base)
		if err := errors.Join(os.Mkdir(home, 0o700), os.Mkdir(temp, 0o700)); err != nil {
			return "", "", err
		}
		env := slices.DeleteFunc(agents.CleanEnviron(t.Environ), func(kv string) bool { return strings.HasPrefix(kv, "XDG_") })
		printed, err = runTrial(ctx, workspace, t.Argv, append(env, "HOME="+home, "TMPDIR="+temp))
		return printed, "", err
	}
	cell, err := box.Enter(run)
	if err != nil {
		return "", "", err
	}
	defer func() { err = errors.Join(err, cell.Leave()) }()
	env, err := cell.Confined(cell.Environ(agents.CleanEnviron(t.Environ)))
	if err != nil {
		return "", "", err
	}
	printed, err = runTrial(ctx, workspace, cell.Argv, env)
	return printed, strings.Trim(cell.ExplainDenial(printed), "[]"), err
}

// MakeTrialFolder makes a workspace that nothing is in, beside uwf's own folder, where agents'
// are: not every user gets there. Whoever made it removes it.
func MakeTrialFolder(f *app.Factory) (string, error) {
	root, err := f.StorageRoot()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(filepath.Dir(root), ".uwf-trial-")
	if err != nil {
		return "", fmt.Errorf("make an empty workspace: %w", err)
	}
	return dir, nil
}

// ErrTrialTime says that a trial took too long to tell anything.
var ErrTrialTime = fmt.Errorf("it had not ended after %s", trialTime)

// runTrial runs a program until it ends or its time is over, with all that it has started in its
// group.
func runTrial(ctx context.Context, dir string, argv, env []string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, trialTime, ErrTrialTime)
	defer cancel()
	out := &beginning{most: maxPrinted}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = dir, env, out, out, time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err := cmd.Run()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return string(out.text), err
}

// beginning keeps the beginning of what is printed.
type beginning struct {
	text []byte
	most int
}

// Write implements io.Writer. It refuses nothing: the rest is dropped.
func (b *beginning) Write(p []byte) (int, error) {
	b.text = append(b.text, p[:min(len(p), max(b.most-len(b.text), 0))]...)
	return len(p), nil
}
