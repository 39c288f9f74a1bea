package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cmd/internal/app"
	engine "github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/internal/lists"
)

// Scope says whose file is changed.
type Scope string

// The scopes.
const (
	User Scope = "user" // config.yaml below the storage root
	Repo Scope = "repo" // .uwf/config.yaml
)

// File is one settings file that can be changed.
type File struct {
	Scope   Scope
	Path    string
	factory *app.Factory
}

// Private refuses to put a secret into the file where it would be committed: a
// storage root can lie in a repository as well.
func (x *File) Private(ctx context.Context) error {
	root := x.factory.RepoRoot()
	rel, err := filepath.Rel(root, x.Path)
	inside := root != "" && err == nil && filepath.IsLocal(rel)
	if !inside {
		return nil
	}
	if _, err := app.GitHere(ctx, x.factory, "check-ignore", "--quiet", "--", x.Path); err == nil {
		return nil
	}
	return app.Usagef("%s lies in the repository %s, which does not ignore it: a key in it would be committed; add it to .gitignore, or let UWF_HOME name a folder elsewhere", x.Path, root)
}

// OpenEnv names the file of variables below the storage root.
func OpenEnv(f *app.Factory) (*File, error) {
	out, err := OpenFile(f, User)
	if err == nil {
		out.Path = f.ConfigSources().EnvFile
	}
	return out, err
}

// OpenFile names the file of a scope. It need not exist.
func OpenFile(f *app.Factory, scope Scope) (*File, error) {
	s := f.ConfigSources()
	if scope == User {
		_, err := f.StorageRoot()
		return &File{scope, s.HomeFile, f}, err
	}
	if f.RepoRoot() == "" {
		return nil, app.Usagef("--repo: %s is in no git repository; leave --repo out to change your own settings", f.Dir)
	}
	return &File{scope, cmp.Or(s.RepoFile, s.HomeFile), f}, nil // the home folder may be a repository itself
}

const (
	lockPause = 50 * time.Millisecond
	lockTries = 60
)

// Apply changes the file: it is checked, alone and together with all other
// sources, before it is written, and written whole or not at all. changed is false
// where the file says all that already; then it is not touched.
func (x *File) Apply(ctx context.Context, change func(old []byte) ([]byte, error)) (changed bool, err error) {
	return x.Rewrite(ctx, func(old []byte) ([]byte, error) {
		text, err := change(old)
		if err != nil {
			return nil, app.Usagef("%s: %w (see: uwf config validate)", x.Path, err)
		}
		if string(text) == string(old) {
			return text, nil
		}
		return text, x.checkText(ctx, old, text)
	})
}

// Rewrite puts another text in the place of the file's, whole or not at all, while
// nobody else does. Where both are the same, the file is not touched.
func (x *File) Rewrite(ctx context.Context, text func(old []byte) ([]byte, error)) (changed bool, err error) {
	target, err := x.targetPath()
	if err != nil {
		return false, err
	}
	lock, err := x.lockFile(ctx, target)
	if err != nil {
		return false, err
	}
	defer func() {
		if !changed { // else it has become the file
			err = errors.Join(err, os.Remove(lock.Name()))
		}
	}()
	fresh, err := x.freshText(target, text)
	if err == nil && fresh != nil {
		_, err = lock.Write(fresh)
	}
	if err = errors.Join(err, lock.Sync(), lock.Close()); err != nil || fresh == nil {
		return false, err
	}
	if err := os.Rename(lock.Name(), target); err != nil {
		return false, fmt.Errorf("write %s: %w", x.Path, err)
	}
	return true, nil
}

// freshText is the new text; nil where nothing changes.
func (x *File) freshText(target string, text func([]byte) ([]byte, error)) ([]byte, error) {
	old, err := app.ReadRegular(target, maxFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("change %s: %w", x.Path, err)
	}
	out, err := text(old)
	if err != nil || string(out) == string(old) {
		return nil, err
	}
	return out, nil
}

const maxFile = 1 << 20

// targetPath is the file that is written: behind symbolic links, which stay.
func (x *File) targetPath() (string, error) {
	dir := filepath.Dir(x.Path)
	mode := fs.FileMode(0o700)
	if x.Scope == Repo {
		mode = 0o755
	}
	if err := os.MkdirAll(dir, mode); err != nil {
		return "", fmt.Errorf("make the folder of %s: %w", x.Path, err)
	}
	target, err := filepath.EvalSymlinks(x.Path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(x.Path); err == nil {
			return "", app.Usagef("%s is a symbolic link to nothing: make the file that it points to, or remove the link", x.Path)
		}
		if dir, err = filepath.EvalSymlinks(dir); err == nil {
			target = filepath.Join(dir, filepath.Base(x.Path))
		}
	}
	if err != nil {
		return "", fmt.Errorf("find %s: %w", x.Path, err)
	}
	if x.Scope == Repo {
		// A checkout may come from anybody: it must not choose what is overwritten.
		root, err := filepath.EvalSymlinks(x.factory.RepoRoot())
		if err != nil {
			return "", fmt.Errorf("find %s: %w", x.factory.RepoRoot(), err)
		}
		if rel, err := filepath.Rel(root, target); err != nil || !filepath.IsLocal(rel) {
			return "", app.Usagef("%s leads out of the repository, to %s: change that file itself", x.Path, target)
		}
	}
	return target, nil
}

// lockFile makes the new file beside the old one. While it is there, nobody else
// changes the old one.
func (x *File) lockFile(ctx context.Context, target string) (*os.File, error) {
	mode := fs.FileMode(0o600)
	if x.Scope == Repo {
		mode = 0o644
		if info, err := os.Stat(target); err == nil {
			mode = info.Mode().Perm()
		}
	}
	name := target + ".lock"
	for try := 0; ; try++ {
		file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode) //nolint:gosec // the settings' own folder
		if err == nil {
			return file, file.Chmod(mode)
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("change %s: %w", x.Path, err)
		}
		if try == lockTries {
			return nil, fmt.Errorf("change %s: another process is changing it; if none is, remove %s", x.Path, name)
		}
		if err := x.factory.Outages().WithDefaults().Sleep(ctx, lockPause); err != nil {
			return nil, err
		}
	}
}

// checkText refuses a text that brings a mistake which was not there before, or a
// secret into a repository.
func (x *File) checkText(ctx context.Context, old, text []byte) error {
	before := map[string]bool{}
	for _, p := range x.findProblems(old) {
		before[problemKey(p)] = true
	}
	var fresh []string
	for _, p := range x.findProblems(text) {
		if !before[problemKey(p)] {
			p.File, p.Line = x.Path, 0
			fresh = append(fresh, p.String())
		}
	}
	if len(fresh) > 0 {
		return app.Usagef("nothing was changed: %s", strings.Join(fresh, "\n"))
	}
	path, secret := engine.HasSecret(text)
	was, had := engine.HasSecret(old)
	if !secret || had && was.String() == path.String() {
		return nil
	}
	if x.Scope != Repo {
		return x.Private(ctx)
	}
	return app.Usagef("nothing was changed: %s is secret, and %s is for everybody who can read the repository: use apiKeyEnv and the variable's name, or --user", path, x.Path)
}

func problemKey(p engine.Problem) string { return p.File + "\x00" + p.Path + "\x00" + p.Message }

// findProblems are all that there are with this text as the file.
func (x *File) findProblems(text []byte) []engine.Problem {
	s := x.factory.ConfigSources()
	read := s.ReadFile
	s.ReadFile = func(name string) ([]byte, error) {
		if name != x.Path {
			return read(name)
		}
		if len(text) == 0 {
			return nil, fs.ErrNotExist
		}
		return text, nil
	}
	c, err := engine.Load(s)
	var invalid *engine.InvalidError
	switch {
	case errors.As(err, &invalid):
		return invalid.Problems
	case err != nil:
		return []engine.Problem{{File: x.Path, Message: err.Error()}}
	}
	return lists.Map(c.WithheldProviders(), func(p engine.Withheld) engine.Problem { return p.Problem })
}
