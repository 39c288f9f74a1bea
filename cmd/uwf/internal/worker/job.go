package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/internal/lazyregexp"
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
	w.o.Workspace, w.looked = dir, w.f.Path(dir)
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
	if key, err := w.strangeSetting(ctx, dir); key != "" || err != nil {
		return fmt.Sprintf("its git configuration sets %s, which a fresh checkout doesn't", key), err
	}
	if err := w.refuseChanges(ctx, dir); errors.As(err, &usage) {
		return "it holds changes that are in no commit", nil
	} else if err != nil {
		return "", err
	}
	return "", nil
}

// plainSetting is what git and actions/checkout write into a fresh checkout's
// configuration. Other settings can make git run programs, and an agent of an
// earlier job may have written them.
var plainSetting = lazyregexp.New(`^(core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|sparsecheckout|sparsecheckoutcone)|` +
	`remote\.[^.]+\.(url|fetch|promisor|partialclonefilter|tagopt)|branch\..+\.(remote|merge)|user\.(name|email)|init\.defaultbranch|advice\..+|gc\.auto|extensions\.(worktreeconfig|partialclone)|index\.sparse)$`)

// strangeSetting is the first setting of a checkout that is not plain.
func (w *Worker) strangeSetting(ctx context.Context, dir string) (string, error) {
	settings, err := w.settings(ctx, dir)
	if err != nil {
		return "", err
	}
	for _, entry := range settings {
		if key, _, _ := strings.Cut(entry, "\n"); !plainSetting.MatchString(key) {
			return fmt.Sprintf("%.80q", key), nil
		}
	}
	return "", nil
}

// runsPrograms are the settings for which looking for changes runs a program.
var runsPrograms = lazyregexp.New(`^(filter\..+\.(clean|process)|protocol\..+)$`)

// refusePrograms refuses a checkout whose git settings name programs that looking for
// changes would run, where agents are confined: they may have written them.
func (w *Worker) refusePrograms(ctx context.Context, dir string) error {
	if _, err := os.Lstat(filepath.Join(dir, ".git")); err != nil || w.sandbox == nil {
		return nil //nolint:nilerr // without a checkout there is nothing to look at
	}
	settings, err := w.settings(ctx, dir)
	if err != nil {
		return app.Usagef("--workspace %s: %w", dir, err)
	}
	for _, entry := range settings {
		if key, _, _ := strings.Cut(entry, "\n"); runsPrograms.MatchString(key) {
			return app.Usagef("--workspace %s: its git configuration sets %.80q, with which git runs programs, and confined agents may have written that; take it out, or leave --workspace away", dir, key)
		}
	}
	return nil
}
