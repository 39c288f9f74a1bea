package app

import (
	"context"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/internal/text"
)

// Uncommitted is what no commit of the checkout around the working directory holds, by paths
// with slashes from its top.
type Uncommitted struct {
	Tracked   []string // changed, added to the index, or gone
	Unmerged  []string // of Tracked, with a conflict that nobody has resolved
	Untracked []string // not ignored; a folder that holds nothing else ends in a slash
}

// FindUncommitted asks git what is in no commit. Outside of a repository there is nothing.
func FindUncommitted(ctx context.Context, f *Factory) (u Uncommitted, err error) {
	if f.RepoRoot() == "" || f.Job != nil {
		return u, nil
	}
	if err := refuseSpecial(f.RepoRoot()); err != nil {
		return u, err
	}
	args := []string{"status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=normal", "--ignore-submodules=all"}
	out, err := GitIn(ctx, f, GitCall{Dir: f.RepoRoot(), Args: args})
	for _, entry := range SplitNames(out) { // two letters, a space and a path each
		state, path := entry[:2], entry[3:]
		switch {
		case state == "??":
			u.Untracked = append(u.Untracked, path)
			continue
		case strings.Contains(state, "U") || state == "AA" || state == "DD":
			u.Unmerged = append(u.Unmerged, path)
		}
		u.Tracked = append(u.Tracked, path)
	}
	return u, err
}

// refuseSpecial names a special file that git would read as its rules. Git opens a pipe of that
// name and waits until somebody writes into it.
func refuseSpecial(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // git says so, if it matters
		}
		switch name := d.Name(); {
		case name == ".git" && d.IsDir():
			return fs.SkipDir
		case (name == ".gitignore" || name == ".gitattributes") && d.Type()&^fs.ModeSymlink != 0 && !d.IsDir():
			return Usagef("%s is a special file, and git would wait for it: remove it", path)
		}
		return nil
	})
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
		listed, err := GitIn(ctx, f, GitCall{Dir: f.RepoRoot(), Args: []string{"ls-files", "--others", "--exclude-standard", "-z", "--", ":(top,literal)" + filepath.ToSlash(rel)}})
		if err != nil {
			return nil, err
		}
		found := SplitNames(listed)
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
