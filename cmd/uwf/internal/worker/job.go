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
		if why, err = w.whyUnfit(ctx, dir); why != "" || err != nil {
			return why, err
		}
	}
	w.o.Workspace, w.looked = dir, w.f.Path(dir)
	return "", nil
}

// whyUnfit says what is against a checkout.
func (w *Worker) whyUnfit(ctx context.Context, dir string) (string, error) {
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
	settings, err := w.checkoutSettings(ctx, dir)
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
	settings, err := w.checkoutSettings(ctx, dir)
	if err != nil {
		return app.Usagef("--workspace %s: %w", dir, err)
	}
	for _, entry := range settings {
		key, value, _ := strings.Cut(entry, "\n")
		if runsPrograms.MatchString(key) {
			return app.Usagef("--workspace %s: its git configuration sets %.80q, with which git runs programs, and confined agents may have written that; take it out, or leave --workspace away", dir, key)
		}
		if leadsInto(dir, key, value, w.f.Getenv("HOME")) {
			return app.Usagef("--workspace %s: its git configuration leads git to files that agents work on (%.80q is %.80q), and git would run what they write there; take it out, or leave --workspace away", dir, key, value)
		}
	}
	return nil
}

// leadsElsewhere are the settings that name files with more settings, or a folder of hooks.
var leadsElsewhere = lazyregexp.New(`^(core\.hookspath|include\.path|includeif\..+\.path)$`)

// leadsInto says whether a setting leads git into a checkout, but for the hooks that it has
// anyway. What agents change there is their work, and not put back.
func leadsInto(dir, key, value, home string) bool {
	if !leadsElsewhere.MatchString(key) || value == "" {
		return false
	}
	path := filepath.FromSlash(value)
	if below, ok := strings.CutPrefix(value, "~/"); ok {
		path = filepath.Join(home, filepath.FromSlash(below))
	} else if strings.HasPrefix(value, "~") {
		return false // somebody else's home
	}
	if !filepath.IsAbs(path) {
		from := dir
		if key != "core.hookspath" { // relative to the file that it stands in
			from = filepath.Join(dir, ".git")
		}
		path = filepath.Join(from, path)
	}
	return app.Within(path, dir) && path != filepath.Join(dir, ".git", "hooks")
}
