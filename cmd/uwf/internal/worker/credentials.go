package worker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/redact"
)

// redactorFor is the redactor of a worker. Where agents work in the very checkout that the
// repository's settings are read from, what these allow does not count: an agent may have
// written it in an earlier step.
func redactorFor(ctx context.Context, f *app.Factory, c *config.Config, o Options) (*redact.Redactor, error) {
	red, err := f.Redactor(ctx)
	file := f.ConfigSources().RepoFile
	if err != nil || o.Workspace == "" || f.Job != nil || file == "" {
		return red, err
	}
	if !app.Within(filepath.Dir(file), f.Path(o.Workspace)) {
		return red, nil
	}
	return red.Allowing(c.OwnAllow())
}

// refuseExposure refuses to start agents that could read secrets out of this
// process's environment.
func (w *Worker) refuseExposure() error {
	if w.f.Exposed == nil || w.isTrusted() {
		return nil
	}
	found := redact.FromEnv(w.f.Environ)
	if len(found) == 0 {
		return nil
	}
	return app.Usagef("agents could read %s out of the environment of this process (%w): keep secrets in ~/.uwf/.env instead, or set sandbox: off if you trust the agents with them",
		found[0].Name, w.f.Exposed)
}

// refuseCredentials refuses a working folder whose git configuration holds a
// password or token: agents read every file of their folder. CI jobs that check
// out with the job's token are the usual case.
func (w *Worker) refuseCredentials(ctx context.Context, dir string) error {
	if _, err := os.Lstat(filepath.Join(dir, ".git")); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	settings, err := w.checkoutSettings(ctx, dir)
	if err != nil {
		return &app.UsageError{Err: fmt.Errorf("look for credentials in the git configuration of %s: %w", dir, err)}
	}
	for _, entry := range settings {
		key, value, _ := strings.Cut(entry, "\n")
		found, err := w.redact.Find([]byte(key + "\n" + value))
		if err == nil && len(found) == 0 {
			continue
		}
		var shown any
		if err == nil {
			shown, _, err = w.redact.Value(key) // a URL in it may hold a password itself
		}
		if err != nil {
			return fmt.Errorf("look for credentials in the git configuration of %s: %w", dir, err)
		}
		return app.Usagef("--workspace %s: its git configuration holds a credential (%v: %s), which agents could read; check out without it (persist-credentials: false of actions/checkout), remove it, or leave --workspace away",
			dir, shown, found[0].Name)
	}
	return nil
}

// checkoutSettings are a checkout's own of git: key, a newline, value. What they include is
// among them, since a file outside of the folder is readable as well, and so are those
// of the working tree, which have a file of their own where the others say so.
func (w *Worker) checkoutSettings(ctx context.Context, dir string) ([]string, error) {
	out, err := w.f.Git(ctx, dir, nil, "-c", "safe.directory="+dir, "config", "--local", "--includes", "--null", "--list")
	if err != nil {
		return nil, err
	}
	own := splitNUL(out)
	if !slices.ContainsFunc(own, func(entry string) bool { return strings.HasPrefix(entry, "extensions.worktreeconfig") }) {
		return own, nil
	}
	if out, err = w.f.Git(ctx, dir, nil, "-c", "safe.directory="+dir, "config", "--includes", "--null", "--show-scope", "--list"); err != nil {
		return nil, err
	}
	for pair := range slices.Chunk(splitNUL(out), 2) {
		if pair[0] == "worktree" && len(pair) == 2 {
			own = append(own, pair[1])
		}
	}
	return own, nil
}

// splitNUL are what a NUL ends each.
func splitNUL(out []byte) []string {
	all := strings.Split(string(out), "\x00")
	return all[:len(all)-1]
}
