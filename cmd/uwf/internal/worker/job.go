package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
)

// WorkIn lets agents work in a folder that nobody chose by name, a CI job's
// workspace, if it is fit for it: empty, or a clean checkout without credentials. It
// is chosen before Use. Otherwise why says what is against it, and agents work in a
// folder of uwf's own.
func (w *Worker) WorkIn(ctx context.Context, dir string) (why string, err error) {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return "it is no folder", nil //nolint:nilerr // that is the answer
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("look into the workspace: %w", err)
	}
	if len(entries) > 0 {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err != nil {
			return "it holds files and is no git checkout", nil //nolint:nilerr // that is the answer
		}
		if why, err = w.unfit(ctx, dir); why != "" || err != nil {
			return why, err
		}
	}
	w.o.Workspace = dir
	return "", nil
}

// unfit says what is against a checkout.
func (w *Worker) unfit(ctx context.Context, dir string) (string, error) {
	var usage *app.UsageError
	if err := w.refuseCredentials(ctx, dir); errors.As(err, &usage) {
		return "its git configuration holds a credential, or can't be read (check out with persist-credentials: false)", nil
	} else if err != nil {
		return "", err
	}
	if err := w.refuseChanges(ctx, dir); errors.As(err, &usage) {
		return "it holds changes that are in no commit", nil
	} else if err != nil {
		return "", err
	}
	return "", nil
}
