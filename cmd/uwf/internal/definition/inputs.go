package definition

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/lists"
)

// Stdin is the argument that means stdin.
const Stdin = "-"

// Inputs are the files that arguments mean: each once, in the order of the
// arguments. What can't be found is said once for each argument, and doesn't keep
// the others from being checked.
type Inputs struct {
	Files  []string
	Failed []workflow.Problem // arguments and files that can't be checked at all
}

// FindInputs expands arguments: files, folders, patterns, names, and - for stdin. None:
// all definitions in the repository's folders.
func (r *Resolver) FindInputs(args []string) (*Inputs, error) {
	in := &Inputs{}
	if len(args) == 0 {
		list, err := r.Places()
		if err != nil {
			return nil, err
		}
		for _, p := range list {
			in.addFiles(p.File)
		}
		if len(list) == 0 {
			return nil, app.Usagef("no definitions in .uwf/workflows, .workflow or .workflows: name the files to check")
		}
	}
	for _, arg := range args {
		if err := r.addInput(in, arg); err != nil {
			return nil, err
		}
	}
	return in, nil
}

func (in *Inputs) addFiles(files ...string) {
	for _, f := range files {
		if !slices.Contains(in.Files, f) {
			in.Files = append(in.Files, f)
		}
	}
}

func (in *Inputs) addProblem(file, fix, format string, args ...any) {
	in.Failed = append(in.Failed, workflow.Problem{File: file, Message: fmt.Sprintf(format, args...), Fix: fix})
}

func (r *Resolver) addInput(in *Inputs, arg string) error {
	info, err := os.Stat(r.Full(arg))
	switch {
	case arg == Stdin:
		in.addFiles(Stdin)
	case arg == "":
		in.addProblem("", "name a file", "an argument is empty")
	case isBundle(arg):
		in.addProblem(arg, "see Bundles in docs/import.md", "it %s", aBundle)
	case err == nil && info.IsDir():
		return r.addFolder(in, arg, true)
	case err == nil:
		in.addFiles(arg)
	case hasMeta(arg):
		return r.addPattern(in, arg)
	case workflow.KindOfRef(arg) == workflow.RefName:
		return r.addNamed(in, arg)
	case !isMissing(err):
		in.addProblem(arg, "check the file's permissions", "can't be read: %v", Reason(err))
	default:
		fix := "check the path"
		names, _ := expandGlob(filepath.Dir(r.Full(arg)), "*.y*ml")
		if near := workflow.Suggest(filepath.Base(arg), names); near != "" {
			fix = fmt.Sprintf("did you mean %s?", filepath.Join(filepath.Dir(arg), near))
		}
		in.addProblem(arg, fix, "no such file")
	}
	return nil
}

// Reason is a system's error without the path that is said anyway.
func Reason(err error) error {
	if path, ok := errors.AsType[*os.PathError](err); ok {
		return path.Err
	}
	return err
}

func (r *Resolver) addNamed(in *Inputs, name string) error {
	file, err := r.Find(name)
	if err != nil {
		return err
	}
	if file != "" {
		in.addFiles(file)
		return nil
	}
	files, err := r.Files()
	if err != nil {
		return err
	}
	fix := "name a file, or put the definition into .uwf/workflows"
	if near := app.SuggestNames(name, slices.Collect(maps.Keys(files))); len(near) > 0 {
		fix = "did you mean " + strings.Join(near, ", ") + "?"
	}
	in.addProblem(name, fix, "no such file, and no workflow of this name in the folders")
	return nil
}

func (r *Resolver) addPattern(in *Inputs, pattern string) error {
	found, err := expandGlob(r.Dir, pattern)
	if err != nil {
		in.addProblem(pattern, "correct the pattern", "%v", err)
		return nil
	}
	if len(found) == 0 {
		in.addProblem(pattern, "check the pattern; ** stands for any number of folders", "nothing matches the pattern")
	}
	for _, file := range found {
		if there, _ := isFile(r.Full(file)); there {
			in.addFiles(file)
		} else if err := r.addFolder(in, file, false); err != nil {
			return err
		}
	}
	return nil
}

// addFolder adds the definitions in a folder: YAML files that look like one, and those
// that are the index of a folder in it; of a repository's top, what its definition
// folders hold. Named: that there are none is a mistake.
func (r *Resolver) addFolder(in *Inputs, dir string, named bool) error {
	entries, err := os.ReadDir(r.Full(dir))
	if err != nil {
		in.addProblem(dir, "check the folder's permissions", "can't be read: %v", Reason(err))
		return nil
	}
	var list []string
	for _, e := range entries {
		for _, file := range []string{e.Name(), filepath.Join(e.Name(), "index.yaml"), filepath.Join(e.Name(), "index.yml")} {
			file = filepath.Join(dir, file)
			ext := filepath.Ext(file)
			if there, _ := isFile(r.Full(file)); there && (ext == ".yaml" || ext == ".yml") && looksLikeDefinition(r.Full(file)) {
				list = append(list, file)
			}
		}
	}
	for _, sub := range workflow.Folders(".") {
		found, err := r.placesIn(filepath.Join(r.Full(dir), filepath.FromSlash(sub)))
		if err != nil {
			return err
		}
		list = append(list, lists.Map(found, func(p Place) string { return p.File })...)
	}
	if len(list) == 0 && named {
		in.addProblem(dir, "name a folder with *.yaml definitions, or files", "the folder holds no definitions")
	}
	in.addFiles(list...)
	return nil
}

// definitionKey is a key that only definitions have, at the beginning of a line or
// of JSON.
var definitionKey = lazyregexp.New(`(?m)(^|[{,]\s*)["']?(roles|graph)["']?\s*:`)

// looksLikeDefinition tells definitions from other YAML in the same folder:
// scripts, schemas, parts that definitions include. What can't be read counts, so
// that it is reported.
func looksLikeDefinition(file string) bool {
	data, err := app.ReadRegular(file, MaxSize)
	return err != nil || definitionKey.Match(data)
}

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
