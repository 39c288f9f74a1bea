// Package program looks at an installed program: where it really lies, which folders it needs to
// read, and of which version it is. It runs nothing.
package program

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/internal/lazyregexp"
)

// Program is one that was found.
type Program struct {
	Path string // as it was found, absolute
	Real string // without symlinks
	// Places are the files and folders, without symlinks, that it needs to read beside the
	// system's: its own file, the node_modules or virtual environment that it lies in, and what
	// runs it, where it is a script.
	Places []string
	// Version is what its package says, without running it; empty where none does.
	Version string
}

// Locate looks at the program in a file. Find looks up programs by name, for scripts whose
// first line says "env NAME"; its error leaves that one out.
func Locate(file string, find func(name string) (string, error)) (Program, error) {
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		return Program{}, err
	}
	p := Program{Path: file, Real: real, Places: placesOf(real), Version: versionOf(real)}
	if runs := interpreterOf(real); runs != "" {
		if !filepath.IsAbs(runs) {
			if runs, err = find(runs); err != nil {
				return p, nil //nolint:nilerr // the program itself will say so
			}
		}
		if real, err := filepath.EvalSymlinks(runs); err == nil {
			p.Places = append(p.Places, placesOf(real)...)
		}
	}
	slices.Sort(p.Places)
	p.Places = slices.Compact(p.Places)
	return p, nil
}

const modules = "/node_modules/"

// placesOf are what a file needs to read. Packages of npm need those beside them: programs for
// one platform each, and what they depend on.
func placesOf(real string) []string {
	if before, _, ok := strings.Cut(real, modules); ok {
		return []string{real, before + strings.TrimSuffix(modules, "/")}
	}
	if env := filepath.Dir(filepath.Dir(real)); isFile(filepath.Join(env, "pyvenv.cfg")) {
		return []string{real, env}
	}
	return []string{real}
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// versionOf reads the version of the package that a file belongs to; where there is none, the
// name of the file or of a folder above may be one, as installers of vendors have it.
func versionOf(real string) string {
	if i := strings.LastIndex(real, modules); i >= 0 {
		top := real[:i+len(modules)]
		for dir := filepath.Dir(real); len(dir) > len(top); dir = filepath.Dir(dir) {
			b, err := os.ReadFile(filepath.Join(dir, "package.json"))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			var pkg struct{ Version string }
			if err == nil && json.Unmarshal(b, &pkg) == nil && pkg.Version != "" {
				return pkg.Version
			}
		}
		return ""
	}
	for name := real; name != "/" && name != "."; name = filepath.Dir(name) {
		if base := filepath.Base(name); versionName.MatchString(base) {
			return base
		}
	}
	return ""
}

var (
	versionName    = lazyregexp.New(`^v?\d+\.\d+\.\d+$`)
	versionPrinted = lazyregexp.New(`\d+\.\d+\.\d+`)
)

// FindVersion finds the version in what a program prints when it is asked for it; empty: there
// is none.
func FindVersion(printed string) string { return versionPrinted.FindString(printed) }

// interpreterOf is the program that runs a script, from its first line; empty: it is no script.
func interpreterOf(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	line, err := bufio.NewReaderSize(f, 256).ReadSlice('\n')
	if err != nil {
		return ""
	}
	rest, ok := strings.CutPrefix(string(line), "#!")
	words := strings.Fields(rest)
	if !ok || len(words) == 0 {
		return ""
	}
	if filepath.Base(words[0]) != "env" {
		return words[0]
	}
	for _, word := range words[1:] {
		if !strings.HasPrefix(word, "-") && !strings.Contains(word, "=") {
			return word
		}
	}
	return ""
}
