package app

import (
	"context"
	"encoding/hex"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/gitcas/wire"
)

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
		return repoFinder{f}.localBase(ctx, ref)
	case RemoteStore:
		return remoteBase(ctx, remote, ref)
	}
	if ref != "" {
		return "", Usagef("--base %s: %s is in no git repository", ref, f.Dir)
	}
	return "", nil
}

// repoFinder finds the repository here, and what is in it.
type repoFinder struct{ *Factory }

func (f repoFinder) localBase(ctx context.Context, ref string) (string, error) {
	name := ref
	if name == "" {
		name = "HEAD"
	}
	root := f.RepoRoot()
	out, err := f.Git(ctx, root, nil, "-c", "safe.directory="+root, "rev-parse", "--verify", "--quiet", "--end-of-options", name+"^{commit}")
	if errors.Is(err, exec.ErrNotFound) {
		return "", err
	}
	if err != nil {
		if ref == "" {
			return "", nil // a repository without commits
		}
		return "", Usagef("--base %s: no such branch, tag or commit in %s", ref, root)
	}
	return strings.TrimSpace(string(out)), nil
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
	kind, err := f.Git(ctx, root, nil, "-c", "safe.directory="+root, "cat-file", "-t", base+":"+rel)
	if err != nil || strings.TrimSpace(string(kind)) != "tree" {
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
