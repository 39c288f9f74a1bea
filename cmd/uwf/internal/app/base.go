package app

import (
	"context"
	"encoding/hex"
	"errors"
	"os/exec"
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
		return f.localBase(ctx, ref)
	case RemoteStore:
		return remoteBase(ctx, remote, ref)
	}
	if ref != "" {
		return "", Usagef("--base %s: %s is in no git repository", ref, f.Dir)
	}
	return "", nil
}

func (f *Factory) localBase(ctx context.Context, ref string) (string, error) {
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
