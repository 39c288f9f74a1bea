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

// globber is the expansion of one pattern, relative to a folder.
type globber struct {
	dir     string
	seen    int
	matches []string
}

var errTooMany = errors.New("the pattern matches too much: name the folder more exactly")

// expandGlob expands a pattern, which is relative to dir, as shells do that know **: it
// stands for any number of folders, and alone for all YAML files in them. Hidden files and
// folders match only where the pattern says so, but for the folders that hold definitions;
// symbolic links are not followed by **. The results are sorted, and relative where the
// pattern is.
func expandGlob(dir, pattern string) ([]string, error) {
	g, name, parts := &globber{dir: dir}, "", strings.Split(filepath.ToSlash(pattern), "/")
	for _, part := range parts {
		if _, err := path.Match(part, ""); err != nil {
			return nil, fmt.Errorf("the pattern %q is malformed: a [ needs its ]", pattern)
		}
	}
	if filepath.IsAbs(pattern) {
		g.dir, name, parts = "", filepath.VolumeName(pattern)+string(filepath.Separator), parts[1:]
	}
	if err := g.matchParts(name, parts); err != nil {
		return nil, err
	}
	slices.Sort(g.matches)
	return slices.Compact(g.matches), nil
}

// matchParts matches parts of a pattern below a name. What can't be read matches nothing, as
// in shells.
func (g *globber) matchParts(name string, parts []string) error {
	at := filepath.Join(g.dir, name)
	if len(parts) == 0 {
		if g.matches = append(g.matches, name); len(g.matches) > maxMatches {
			return errTooMany
		}
		return nil
	}
	part, rest := parts[0], parts[1:]
	if !hasMeta(part) {
		if _, err := os.Stat(filepath.Join(at, part)); err != nil {
			return nil //nolint:nilerr // see above
		}
		return g.matchParts(filepath.Join(name, part), rest)
	}
	if part == "**" {
		if len(rest) == 0 {
			rest = []string{"*.y*ml"}
		}
		if err := g.matchParts(name, rest); err != nil {
			return err
		}
	}
	entries, _ := os.ReadDir(at) // see above
	for _, e := range entries {
		if g.seen++; g.seen > maxSeen {
			return errTooMany
		}
		fits, _ := path.Match(part, e.Name())
		below := rest
		if part == "**" {
			fits, below = e.IsDir(), parts
		}
		if !fits || isHidden(e.Name()) && !strings.HasPrefix(part, ".") {
			continue
		}
		if err := g.matchParts(filepath.Join(name, e.Name()), below); err != nil {
			return err
		}
	}
	return nil
}

// isHidden reports a file or folder that patterns leave out.
func isHidden(name string) bool {
	return strings.HasPrefix(name, ".") && !slices.Contains([]string{".uwf", ".workflow", ".workflows"}, name)
}
