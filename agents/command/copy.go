package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/united-workforce/uwf/agents/internal/rundir"
)

// InFolder makes a throw-away folder, has something done in it, and removes it. A very large
// one is removed in part, and that of a killed process not at all: RemoveLeftovers goes on
// with it.
func (r *Runner) InFolder(ctx context.Context, do func(ctx context.Context, dir string) error) (err error) {
	folder, err := rundir.MakeFolder(r.o.TempDir)
	if err != nil {
		return fmt.Errorf("make a folder for a copy: %w", err)
	}
	defer func() { err = errors.Join(err, folder.EndRun(), rundir.RemoveFolder(ctx, folder.Path)) }()
	dir := filepath.Join(folder.Path, "copy")
	if err = errors.Join(os.Mkdir(dir, 0o700), r.o.Sandbox.AllowTraverse(folder.Path)); err != nil {
		return fmt.Errorf("make a folder for a copy: %w", err)
	}
	return do(ctx, dir)
}

// RunOnCopy runs commands in a throw-away folder that fill fills, one after the other; each
// command's Dir is that folder, whatever it says. A command that fails keeps none of the others
// from running, but one that can't be run does, and so does the end of ctx. The results are
// those of the commands that ran.
func (r *Runner) RunOnCopy(ctx context.Context, fill func(ctx context.Context, dir string) error, commands ...Command) (results []Result, err error) {
	err = r.InFolder(ctx, func(ctx context.Context, dir string) error {
		if err := fill(ctx, dir); err != nil {
			return fmt.Errorf("fill the copy that commands are run on: %w", err)
		}
		for _, c := range commands {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			c.Dir = dir
			res, err := r.Run(ctx, c)
			if err != nil {
				return err
			}
			results = append(results, res)
		}
		return nil
	})
	return results, err
}
