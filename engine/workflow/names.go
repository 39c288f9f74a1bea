package workflow

import (
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/text"
)

// maxName is the longest name of a workflow or role, in bytes: it becomes part of
// file names.
const maxName = 64

// definitionFolders are where definitions live, relative to a folder between the working
// directory and the repository's root, in order of precedence.
func definitionFolders() []string { return []string{".uwf/workflows", ".workflow", ".workflows"} }

func fileExtensions() []string { return []string{".yaml", ".yml"} }

// Layouts lists how a definition called name may lie in a folder, in order of
// precedence: as a file, or as the index of a folder of its own.
func Layouts(name string) []string {
	var out []string
	for _, file := range []string{name, name + "/index"} {
		out = append(out, lists.Map(fileExtensions(), func(ext string) string { return file + ext })...)
	}
	return out
}

// Folders lists the folders that hold definitions, in order of precedence. Dir and
// the results are as in Candidates.
func Folders(dir string) []string {
	var out []string
	for d := path.Clean(dir); ; d = path.Dir(d) {
		out = append(out, lists.Map(definitionFolders(), func(f string) string { return path.Join(d, f) })...)
		if d == "." || d == "/" || strings.HasPrefix(d, "..") {
			return out
		}
	}
}

// RefKind is what a reference to a workflow looks like.
type RefKind uint8

// The kinds of references, in the order in which they are tried.
const (
	RefHash RefKind = iota // a node's hash
	RefPath                // a file
	RefName                // a name: a definition's folder, else the registry
)

// KindOfRef says what a workflow reference looks like, without looking anything up.
func KindOfRef(ref string) RefKind {
	if node.Hash(ref).Valid() {
		return RefHash
	}
	if strings.ContainsAny(ref, `/\`) || slices.Contains(fileExtensions(), path.Ext(ref)) {
		return RefPath
	}
	return RefName
}

// Candidates lists the files that may hold the definition called name, in order
// of precedence. Dir is the working directory relative to the repository's root,
// slash-separated, "." for the root itself; the results are relative to the root.
// A name that can't be a definition's has no candidates.
func Candidates(name, dir string) []string {
	if CheckName(name) != "" {
		return nil
	}
	var out []string
	for _, folder := range Folders(dir) {
		out = append(out, lists.Map(Layouts(name), func(file string) string { return path.Join(folder, file) })...)
	}
	return out
}

// CheckName says what is wrong with a name of a workflow or role; nothing: "".
// Names become file names, titles and parts of commit subjects.
func CheckName(name string) string {
	switch {
	case name == "":
		return "is empty"
	case name == Unit || strings.HasPrefix(name, "$"):
		return "is reserved"
	case !utf8.ValidString(name):
		return "is no valid UTF-8"
	case len(name) > maxName:
		return "is longer than 64 bytes"
	}
	for i, r := range name {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || (i > 0 && (r == '-' || r == '_' || r == '.')) {
			continue
		}
		if i == 0 {
			return "doesn't begin with a letter or digit"
		}
		return "has a character other than letters, digits, - _ and ."
	}
	return ""
}

// Suggest returns the candidate that a mistyped name most likely means; "" where
// none is close.
func Suggest(name string, candidates []string) string { return text.Suggest(name, candidates) }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
