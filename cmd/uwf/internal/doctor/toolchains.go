package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/sandbox"
	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/worker"
	"github.com/united-workforce/uwf/engine/config"
)

// ErrNoTool says that a program is not installed.
var ErrNoTool = errors.New("it is not installed")

// checkTools says of each toolchain that is installed whether agents can use it.
func (e *examination) checkTools(ctx context.Context) {
	for _, words := range [][]string{{"node", "--version"}, {"python3", "--version"}, {"go", "version"}, {"cargo", "--version"}} {
		printed, hint, err := e.o.TryTool(ctx, words...)
		printed = strings.TrimSpace(printed)
		last := output.Line(printed[strings.LastIndexByte(printed, '\n')+1:], maxToolLine)
		switch {
		case errors.Is(err, ErrNoTool):
		case err == nil:
			e.addFindings(words[0], Finding{State: OK, Detail: "works confined: " + last})
		default:
			e.addFindings(words[0], findLacking("does not work confined: "+cmp.Or(last, err.Error()),
				cmp.Or(hint, "name the folders that it needs in confine.read of ~/.uwf/config.yaml, or install it where every user can read it")))
		}
	}
}

const (
	// maxToolLine is how much is shown of what a tool says, in characters.
	maxToolLine = 300
	// toolTime bounds a tool that says its version.
	toolTime = 30 * time.Second
)

// tryConfined runs a program of this machine as agents would, in an empty workspace beside
// uwf's own folder, where theirs are: not every user gets there.
func tryConfined(ctx context.Context, f *app.Factory, c *config.Config, words []string) (printed, hint string, err error) {
	program, environ, err := f.Program(words[0])
	if err != nil {
		return "", "", ErrNoTool
	}
	self, err := f.Self()
	root, rerr := f.StorageRoot()
	if err := errors.Join(err, rerr); err != nil {
		return "", "", err
	}
	workspace, err := os.MkdirTemp(filepath.Dir(root), ".uwf-doctor-")
	base, berr := os.MkdirTemp("", "uwf-doctor-")
	if err := errors.Join(err, berr); err != nil {
		return "", "", fmt.Errorf("make a workspace for %s: %w", words[0], err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(workspace), os.RemoveAll(base)) }()
	run := sandbox.Run{
		Workspace: workspace, Base: base, Context: filepath.Join(base, "context"), Stage: filepath.Join(base, "stage"),
		Argv: append([]string{program}, words[1:]...),
	}
	if err := errors.Join(os.Mkdir(run.Context, 0o700), os.Mkdir(run.Stage, 0o700)); err != nil {
		return "", "", err
	}
	cell, err := worker.NewSandbox(f, c, self, c.Sandbox, false).Enter(run)
	if err != nil {
		return "", "", err
	}
	defer func() { err = errors.Join(err, cell.Leave()) }()
	env, err := cell.Confined(cell.Environ(agents.CleanEnviron(environ)))
	if err != nil {
		return "", "", err
	}
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, cell.Argv[0], cell.Argv[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = workspace, env, time.Second
	out, err := cmd.CombinedOutput()
	return string(out), strings.Trim(cell.ExplainDenial(string(out)), "[]"), err
}
