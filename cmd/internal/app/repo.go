package app

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/regular"
)

// Repo is the git repository that the working directory is in. The zero value
// says that it is in none.
type Repo struct {
	Root string // the working tree's top folder
	Dir  string // the git directory that holds the refs (the main one of linked worktrees)
}

// FindRepo finds the repository around the working directory, without running git.
func (f *Factory) FindRepo() Repo {
	r, _ := f.repo.findOnce(func() (Repo, error) {
		if f.Job != nil {
			return Repo{Root: f.Job.Root}, nil
		}
		return findRepo(f.Dir), nil
	})
	return r
}

// RepoRoot is the top folder of the repository around the working directory;
// empty outside of one.
func (f *Factory) RepoRoot() string { return f.FindRepo().Root }

func findRepo(dir string) Repo {
	for {
		if git, ok := gitDir(filepath.Join(dir, ".git")); ok {
			return Repo{Root: dir, Dir: git}
		}
		up := filepath.Dir(dir)
		if up == dir {
			return Repo{}
		}
		dir = up
	}
}

// gitDir resolves a .git entry: a folder, or the file that a linked worktree or
// a submodule has instead.
func gitDir(entry string) (string, bool) {
	info, err := os.Stat(entry)
	if err != nil {
		return "", false
	}
	if info.IsDir() {
		_, err := os.Stat(filepath.Join(entry, "HEAD"))
		return entry, err == nil
	}
	target, ok := readLine(entry, "gitdir: ")
	if !ok {
		return "", false
	}
	dir := resolvePath(filepath.Dir(entry), target)
	if common, ok := readLine(filepath.Join(dir, "commondir"), ""); ok {
		dir = resolvePath(dir, common)
	}
	return dir, true
}

func resolvePath(base, p string) string {
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(base, p)
}

// readLine reads a small file of one line with that prefix.
func readLine(file, prefix string) (string, bool) {
	b, err := os.ReadFile(file)
	if err != nil || len(b) > 4096 {
		return "", false
	}
	return strings.CutPrefix(strings.TrimRight(string(b), "\r\n"), prefix)
}

// checkedOut names the working tree that has a branch checked out; empty when
// there is none.
func (r Repo) checkedOut(branch string) (string, error) {
	want := "ref: refs/heads/" + branch
	if line, ok := readLine(filepath.Join(r.Dir, "HEAD"), ""); ok && line == want {
		return r.Root, nil
	}
	trees := filepath.Join(r.Dir, "worktrees")
	entries, err := os.ReadDir(trees)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look for linked worktrees: %w", err)
	}
	for _, e := range entries {
		if line, ok := readLine(filepath.Join(trees, e.Name(), "HEAD"), ""); ok && line == want {
			at, _ := readLine(filepath.Join(trees, e.Name(), "gitdir"), "")
			return filepath.Dir(at), nil
		}
	}
	return "", nil
}

// lacksBranch says whether git's files show that there is no branch of that name. It looks at them
// in git's order, so that a branch that is being packed is seen. False: git knows.
func (r Repo) lacksBranch(branch string) bool {
	root, err := os.OpenRoot(r.Dir)
	if err != nil {
		return false
	}
	defer func() { _ = root.Close() }() // only read from
	_, heads := root.Stat("refs/heads")
	_, loose := root.Lstat("refs/heads/" + branch)
	packed, err := regular.Read(root, "packed-refs", 8<<20) // git is faster with larger ones
	return heads == nil && errors.Is(loose, fs.ErrNotExist) &&
		(errors.Is(err, fs.ErrNotExist) || err == nil && !bytes.Contains(packed, []byte(" refs/heads/"+branch+"\n")))
}

// rootVariables name the storage root, in order of precedence. The last two are
// those of earlier versions.
func rootVariables() []string {
	return []string{"UWF_HOME", "UNCAGED_WORKFLOW_STORAGE_ROOT", "WORKFLOW_STORAGE_ROOT"}
}

// StorageRoot is the folder for what belongs to the user and to no repository:
// UWF_HOME, else the variables of earlier versions, else ~/.uwf. It need not
// exist.
func (f *Factory) StorageRoot() (string, error) {
	for _, name := range rootVariables() {
		if v := f.Getenv(name); v != "" {
			return resolvePath(f.Dir, v), nil
		}
	}
	home := f.Getenv("HOME")
	if home == "" {
		return "", Usagef("no storage root: neither UWF_HOME nor HOME is set; set UWF_HOME to a folder of yours")
	}
	return filepath.Join(home, ".uwf"), nil
}

// Base is the commit that a thread's work begins from: the head of this
// repository, or of the remote's default branch where the store is a remote; or
// what ref names there. Without a repository, or in one without commits, it is
// empty: the work begins with an empty folder.
func (f *Factory) Base(ctx context.Context, remote wire.Remote, ref string) (string, error) {
	loc, err := f.Locate(ctx)
	if err != nil {
		return "", err
	}
	switch loc.Kind {
	case RepositoryStore:
		return localBase(ctx, f, ref)
	case RemoteStore:
		return remoteBase(ctx, remote, ref)
	}
	if ref != "" {
		return "", Usagef("--base %s: %s is in no git repository", ref, f.Dir)
	}
	return "", nil
}

func localBase(ctx context.Context, f *Factory, ref string) (string, error) {
	id, err := GitHere(ctx, f, "rev-parse", "--verify", "--quiet", "--end-of-options", cmp.Or(ref, "HEAD")+"^{commit}")
	switch {
	case err == nil && !isCommitID(id):
		return "", fmt.Errorf("read the head of %s: %w", f.RepoRoot(), wire.ErrSHA256)
	case err == nil || errors.Is(err, exec.ErrNotFound):
		return id, err
	case ref == "":
		return "", nil // a repository without commits
	}
	return "", Usagef("--base %s: no such branch, tag or commit in %s", ref, f.RepoRoot())
}

// WorkFolder is a folder of this repository as a path with slashes from its top; empty:
// none was named. Agents work in copies of the commit that the work begins from, so the
// folder has to be in that, where it is this repository's.
func (f *Factory) WorkFolder(ctx context.Context, base, dir string) (string, error) {
	if dir == "" {
		return "", nil
	}
	root := f.RepoRoot()
	if root == "" {
		return "", Usagef("--cwd %s: %s is in no git repository", dir, f.Dir)
	}
	rel, err := filepath.Rel(realPath(root), realPath(f.Path(dir)))
	if err != nil || !filepath.IsLocal(rel) {
		rel, err = filepath.Rel(root, f.Path(dir)) // it is not there, or a link leads out
	}
	if err != nil || !filepath.IsLocal(rel) {
		return "", Usagef("--cwd %s: it is outside of the repository %s; agents work in a copy of that, so name a folder in it (for a copy in a place of your own: uwf thread step --workspace DIR)", dir, root)
	}
	rel = filepath.ToSlash(rel)
	loc, err := f.Locate(ctx)
	if err != nil || loc.Kind != RepositoryStore || rel == "." {
		return rel, err
	}
	kind, err := GitHere(ctx, f, "cat-file", "-t", base+":"+rel)
	if err != nil || kind != "tree" {
		return "", Usagef("--cwd %s: the commit that the work begins from has no folder %s; commit it first", dir, rel)
	}
	return rel, nil
}

func remoteBase(ctx context.Context, remote wire.Remote, ref string) (string, error) {
	if isCommitID(ref) {
		return ref, nil
	}
	l, err := remote.List(ctx, "HEAD")
	if err != nil {
		return "", err
	}
	names := []string{"refs/heads/" + ref, "refs/tags/" + ref}
	if strings.HasPrefix(ref, "refs/") {
		names = append(names, ref)
	}
	if ref == "" {
		if l.Head == "" {
			return "", nil // an empty remote
		}
		names = []string{l.Head}
	}
	if l, err = remote.List(ctx, names...); err != nil {
		return "", err
	}
	for _, n := range names {
		if id, ok := l.Refs[n]; ok {
			return id.String(), nil
		}
	}
	return "", Usagef("--base %s: %s has no such branch or tag", ref, remote.URL())
}

func isCommitID(s string) bool {
	_, err := hex.DecodeString(s)
	return err == nil && len(s) == 40
}
