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
	"time"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/redact"
	"github.com/united-workforce/uwf/internal/lazyregexp"
	"golang.org/x/sys/unix"
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
	settings, err := w.checkoutSettings(ctx, dir)
	if err != nil {
		return err
	}
	for _, s := range settings {
		found, err := w.redact.Find([]byte(s.key + "\n" + s.value))
		if err != nil {
			return fmt.Errorf("look for credentials in the git configuration of %s: %w", dir, err)
		}
		if len(found) > 0 {
			shown, _ := w.redact.String(s.key) // a URL in it may hold a password itself
			return app.Usagef("--workspace %s: its git configuration holds a credential (%s: %s), which agents could read; check out without it (persist-credentials: false of actions/checkout), remove it, or leave --workspace away",
				dir, shown, found[0].Name)
		}
	}
	return nil
}

// setting is one of git's.
type setting struct{ key, value string }

// checkoutSettings are a checkout's own of git; a folder that is no checkout has none. What
// they include is among them, since a file outside of the folder is readable as well, and so
// are those of the working tree, which have a file of their own where the others say so.
func (w *Worker) checkoutSettings(ctx context.Context, dir string) ([]setting, error) {
	if _, err := os.Lstat(filepath.Join(dir, ".git")); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	out, err := app.GitIn(ctx, w.f, app.GitCall{Dir: dir, Args: []string{"config", "--includes", "--null", "--show-scope", "--list"}})
	if err != nil {
		return nil, app.Usagef("--workspace %s: its git configuration can't be read: %w", dir, err)
	}
	var own []setting
	for pair := range slices.Chunk(strings.Split(string(out), "\x00"), 2) { // what comes last is empty
		if scope := pair[0]; len(pair) == 2 && (scope == "local" || scope == "worktree") {
			key, value, _ := strings.Cut(pair[1], "\n")
			own = append(own, setting{key, value})
		}
	}
	return own, nil
}

// TryWorkspace lets agents work in a folder that nobody chose by name, a CI job's
// workspace, if it is fit for it: empty, or a clean checkout without credentials and
// without files that earlier jobs left; began is when this job did, zero if not known. It
// is chosen before Use. Otherwise why says what is against it, and agents work in a
// folder of uwf's own.
func (w *Worker) TryWorkspace(ctx context.Context, dir string, began time.Time) (why string, err error) {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return "it is no folder", nil //nolint:nilerr // that is the answer
	}
	refuseLeftOvers := func(ctx context.Context, dir string) error { return w.refuseLeftOvers(ctx, dir, began) }
	for _, refuse := range []func(context.Context, string) error{w.refuseCredentials, w.refuseStrangeSettings, w.refuseChanges, refuseLeftOvers} {
		err := refuse(ctx, dir)
		if errors.As(err, new(*app.UsageError)) {
			return err.Error(), nil
		}
		if err != nil {
			return "", err
		}
	}
	w.o.Workspace, w.looked = dir, w.f.Path(dir)
	return "", nil
}

// refuseLeftOvers refuses a checkout with a file that git does not track, and that did not
// change since the job began: another job left it. What this job's earlier steps made for
// uwf, such as node_modules, may stay. It judges by ctime, which no program can set. It
// stays out of submodules' settings, so their files count as untracked.
func (w *Worker) refuseLeftOvers(ctx context.Context, dir string, began time.Time) error {
	if _, err := os.Lstat(filepath.Join(dir, ".git")); errors.Is(err, fs.ErrNotExist) {
		return nil // it is empty
	}
	out, err := app.GitIn(ctx, w.f, app.GitCall{Dir: dir, Args: []string{"ls-files", "-z"}})
	if err != nil {
		return app.Usagef("--workspace %s: %w", dir, err)
	}

	tracked := make(map[string]bool)
	for _, name := range app.SplitNames(out) {
		tracked[filepath.FromSlash(name)] = true
	}
	leftOver := errors.New("a file of another job")
	var name string
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		name = strings.TrimPrefix(path, dir+string(filepath.Separator))
		switch {
		case err != nil:
			return err
		case d.IsDir() && name == ".git":
			return fs.SkipDir
		case d.IsDir() || tracked[name]:
			return ctx.Err()
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		if began.IsZero() || !time.Unix(st.Ctim.Unix()).After(began) {
			return leftOver
		}
		return nil
	})

	switch {
	case err == nil || ctx.Err() != nil:
		return ctx.Err()
	case !errors.Is(err, leftOver):
		return app.Usagef("--workspace %s: %w", dir, err)
	case began.IsZero():
		return app.Usagef("--workspace %s holds %.80q, which is in no commit; another job may have left it, since uwf can't find out when this job began", dir, name)
	}
	return app.Usagef("--workspace %s holds %.80q, which is in no commit and was there before this job began: clean the checkout first (clean: true of actions/checkout)", dir, name)
}

// plainSetting is what git and actions/checkout write into a fresh checkout's
// configuration. Other settings can make git run programs, and an agent of an
// earlier job may have written them.
var plainSetting = lazyregexp.New(`^(core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|sparsecheckout|sparsecheckoutcone)|` +
	`remote\.[^.]+\.(url|fetch|promisor|partialclonefilter|tagopt)|branch\..+\.(remote|merge)|user\.(name|email)|init\.defaultbranch|advice\..+|gc\.auto|extensions\.(worktreeconfig|partialclone)|index\.sparse)$`)

// refuseStrangeSettings refuses a checkout with settings that are not plain.
func (w *Worker) refuseStrangeSettings(ctx context.Context, dir string) error {
	settings, err := w.checkoutSettings(ctx, dir)
	if err != nil {
		return err
	}
	for _, s := range settings {
		if !plainSetting.MatchString(s.key) {
			return app.Usagef("--workspace %s: its git configuration sets %.80q, which a fresh checkout doesn't", dir, s.key)
		}
	}
	return nil
}

// runsPrograms are the settings for which looking for changes runs a program.
var runsPrograms = lazyregexp.New(`^(filter\..+\.(clean|process)|protocol\..+)$`)

// refusePrograms refuses a checkout whose git settings name programs that looking for
// changes would run, where agents are confined: they may have written them.
func (w *Worker) refusePrograms(ctx context.Context, dir string) error {
	if w.sandbox == nil {
		return nil
	}
	settings, err := w.checkoutSettings(ctx, dir)
	if err != nil {
		return err
	}
	for _, s := range settings {
		if runsPrograms.MatchString(s.key) {
			return app.Usagef("--workspace %s: its git configuration sets %.80q, with which git runs programs, and confined agents may have written that; take it out, or leave --workspace away", dir, s.key)
		}
		if leadsInto(dir, s.key, s.value, w.f.Getenv("HOME")) {
			return app.Usagef("--workspace %s: its git configuration leads git to files that agents work on (%.80q is %.80q), and git would run what they write there; take it out, or leave --workspace away", dir, s.key, s.value)
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
