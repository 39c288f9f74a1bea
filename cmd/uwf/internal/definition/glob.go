package definition

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Bounds of one pattern.
const (
	maxSeen    = 200_000 // entries of folders
	maxMatches = 5_000
)

// hasMeta reports whether an argument is a pattern.
func hasMeta(arg string) bool { return strings.ContainsAny(arg, "*?[") }

// globber is the expansion of one pattern.
type globber struct {
	seen    int
	matches []string
}

var errTooMany = errors.New("the pattern matches too much: name the folder more exactly")

// expandGlob expands a pattern, which is relative to dir, as shells do that know **: it
// stands for any number of folders. Hidden files and folders match only where the
// pattern says so, but for the folders that hold definitions; symbolic links are not
// followed by **. The results are sorted, and relative where the pattern is.
func expandGlob(dir, pattern string) ([]string, error) {
	slash := filepath.ToSlash(pattern)
	for part := range strings.SplitSeq(slash, "/") {
		if _, err := path.Match(part, ""); err != nil {
			return nil, fmt.Errorf("the pattern %q is malformed: a [ needs its ]", pattern)
		}
	}
	base, rest := "", slash
	if filepath.IsAbs(pattern) {
		base = filepath.VolumeName(pattern) + "/"
		rest = strings.TrimLeft(strings.TrimPrefix(slash, filepath.ToSlash(filepath.VolumeName(pattern))), "/")
		dir = ""
	}
	g := &globber{}
	if err := g.matchParts(dir, base, strings.Split(rest, "/")); err != nil {
		return nil, err
	}
	slices.Sort(g.matches)
	return slices.Compact(g.matches), nil
}

// matchParts matches parts of a pattern below name, which is relative to dir.
func (g *globber) matchParts(dir, name string, parts []string) error {
	for len(parts) > 0 && (parts[0] == "" || parts[0] == ".") {
		parts = parts[1:]
	}
	if len(parts) == 0 {
		if g.matches = append(g.matches, filepath.FromSlash(name)); len(g.matches) > maxMatches {
			return errTooMany
		}
		return nil
	}
	part, rest := parts[0], parts[1:]
	if part == "**" {
		return g.matchAny(dir, name, rest)
	}
	if !hasMeta(part) {
		next := path.Join(name, part)
		if !fileExists(filepath.Join(dir, filepath.FromSlash(next))) {
			return nil
		}
		return g.matchParts(dir, next, rest)
	}
	return g.visitEntries(dir, name, func(e os.DirEntry) error {
		if ok, _ := path.Match(part, e.Name()); !ok || isHidden(e.Name()) && !strings.HasPrefix(part, ".") {
			return nil
		}
		if len(rest) > 0 && !isDir(filepath.Join(dir, filepath.FromSlash(name), e.Name())) {
			return nil
		}
		return g.matchParts(dir, path.Join(name, e.Name()), rest)
	})
}

// matchAny matches ** and what comes after it. As the last part it means all YAML files.
func (g *globber) matchAny(dir, name string, rest []string) error {
	if len(rest) == 0 {
		rest = []string{"*.y*ml"}
	}
	if err := g.matchParts(dir, name, rest); err != nil {
		return err
	}
	return g.visitEntries(dir, name, func(e os.DirEntry) error {
		if !e.IsDir() || isHidden(e.Name()) {
			return nil
		}
		return g.matchAny(dir, path.Join(name, e.Name()), rest)
	})
}

func (g *globber) visitEntries(dir, name string, visit func(os.DirEntry) error) error {
	entries, err := os.ReadDir(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		return nil //nolint:nilerr // a folder that can't be read matches nothing, as in shells
	}
	for _, e := range entries {
		if g.seen++; g.seen > maxSeen {
			return errTooMany
		}
		if err := visit(e); err != nil {
			return err
		}
	}
	return nil
}

// isHidden reports a file or folder that patterns leave out.
func isHidden(name string) bool {
	return strings.HasPrefix(name, ".") && !slices.Contains([]string{".uwf", ".workflow", ".workflows"}, name)
}

// fileExists reports that something is there that can be looked at.
func fileExists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

func isDir(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.IsDir()
}
