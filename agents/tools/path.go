package tools

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/gitcas/gitobj"
)

// maxLinks is how many symlinks one path may go through.
const maxLinks = 40

// cleanPath turns what a model wrote into a path relative to the workspace, with
// slashes. Absolute paths are taken when they lie inside.
func (s *Set) cleanPath(p string) (string, error) {
	if p == "" {
		return "", errors.New("the path is empty; use \".\" for the workspace itself")
	}
	if strings.ContainsRune(p, 0) {
		return "", fmt.Errorf("%q is no path", p)
	}
	if filepath.IsAbs(p) {
		rel, err := filepath.Rel(s.dir, p)
		if err != nil {
			return "", err
		}
		p = rel
	}
	if p = path.Clean(p); !filepath.IsLocal(p) {
		return "", fmt.Errorf("%s is outside of the workspace; paths are relative to it", p)
	}
	return p, nil
}

// resolvePath returns the path that p leads to with no symlink in it. The last
// component need not exist; nothing on the way may be `.git`.
func (s *Set) resolvePath(p string) (string, error) {
	p, err := s.cleanPath(p)
	if err != nil {
		return "", err
	}
	todo := strings.Split(p, "/")
	var done []string
	for links := 0; len(todo) > 0; {
		name := todo[0]
		todo = todo[1:]
		switch {
		case name == "." || name == "":
			continue
		case name == "..":
			if len(done) == 0 {
				return "", fmt.Errorf("%s leads out of the workspace", p)
			}
			done = done[:len(done)-1]
			continue
		case isGit(name):
			return "", fmt.Errorf("%s: the repository's own data (.git) is not to be touched; uwf commits what you change", p)
		}
		here := strings.Join(append(done, name), "/")
		info, err := s.root.Lstat(here)
		if errors.Is(err, fs.ErrNotExist) {
			return s.resolveMissing(p, here, todo)
		}
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			done = append(done, name)
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("%s goes through more than %d symlinks", p, maxLinks)
		}
		target, err := s.root.Readlink(here)
		if err != nil {
			return "", err
		}
		if filepath.IsAbs(target) {
			return "", fmt.Errorf("%s leads out of the workspace (to %s)", p, target)
		}
		todo = append(strings.Split(target, "/"), todo...)
	}
	if len(done) == 0 {
		return ".", nil
	}
	return strings.Join(done, "/"), nil
}

// resolveMissing is the end of resolve where a component does not exist: nothing below
// it can be a symlink, but it may still try to climb, or to make a `.git`.
func (s *Set) resolveMissing(p, here string, rest []string) (string, error) {
	for _, name := range rest {
		if name == ".." || isGit(name) {
			return "", fmt.Errorf("%s: no such file or folder, and none that could be made", p)
		}
	}
	return path.Join(append([]string{here}, rest...)...), nil
}

// isGit recognises a repository's folder by every name that some file system
// takes for it. Git refuses the same ones.
func isGit(name string) bool { return gitobj.CheckName(name) != nil }
