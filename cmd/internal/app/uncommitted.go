package app

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/internal/text"
)

// Uncommitted is what no commit of the checkout around the working directory holds, by paths
// with slashes from its top.
type Uncommitted struct {
	Tracked   []string // changed, added to the index, or gone
	Untracked []string // not ignored; a folder that holds nothing else ends in a slash
}

// FindUncommitted asks git what is in no commit. Outside of a repository there is nothing.
func FindUncommitted(ctx context.Context, f *Factory) (u Uncommitted, err error) {
	if f.RepoRoot() == "" || f.Job != nil {
		return u, nil
	}
	entries, err := listOfGit(ctx, f, "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=normal", "--ignore-submodules=all")
	for _, entry := range entries {
		switch {
		case len(entry) < 4:
		case entry[:2] == "??":
			u.Untracked = append(u.Untracked, entry[3:])
		default:
			u.Tracked = append(u.Tracked, entry[3:])
		}
	}
	return u, err
}

// listOfGit is what git lists in the repository around the working directory, by -z.
func listOfGit(ctx context.Context, f *Factory, args ...string) ([]string, error) {
	root := f.RepoRoot()
	out, err := f.Git(ctx, root, nil, append([]string{"-c", "safe.directory=" + root}, args...)...)
	return slices.DeleteFunc(strings.Split(string(out), "\x00"), func(s string) bool { return s == "" }), err
}

// FindUntracked is which untracked files of the checkout some paths name: files or folders,
// relative to the working directory. What git ignores is none of them.
func FindUntracked(ctx context.Context, f *Factory, paths []string) ([]string, error) {
	var out []string
	for _, p := range paths {
		rel, err := filepath.Rel(realPath(f.RepoRoot()), realPath(f.Path(p)))
		if err != nil || !filepath.IsLocal(rel) {
			return nil, Usagef("%s lies outside of the repository", p)
		}
		found, err := listOfGit(ctx, f, "ls-files", "--others", "--exclude-standard", "-z", "--", ":(top,literal)"+filepath.ToSlash(rel))
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, Usagef("%s: there is no untracked file of that name that git doesn't ignore", p)
		}
		out = append(out, found...)
	}
	return out, nil
}

// Describe counts what agents do not see; empty: they see everything.
func (u Uncommitted) Describe() string {
	var parts []string
	if n := len(u.Tracked); n > 0 {
		parts = append(parts, text.Plural(n, "changed file"))
	}
	if n := len(u.Untracked); n > 0 {
		parts = append(parts, text.Plural(n, "untracked file"))
	}
	return strings.Join(parts, " and ")
}
