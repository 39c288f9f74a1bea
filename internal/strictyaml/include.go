package strictyaml

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// includeTag is the one tag of its own that a file may use.
const includeTag = "!include"

// Bounds of includes.
const (
	maxIncludes = 100 // files included
	maxNested   = 8   // files that include one another
)

// includeFile reads the file that an !include names: YAML and JSON as values,
// anything else as text.
func (r *Reader) includeFile(n *yaml.Node, v *Node) *Node {
	if len(r.open) == 0 {
		r.dir, r.open = path.Dir(v.Pos.File.Name), []string{path.Base(v.Pos.File.Name)}
	}
	rel, text, ok := r.fetchInclude(n.Value, v.Pos)
	if !ok {
		return v
	}
	name := path.Join(r.dir, rel)
	switch strings.ToLower(path.Ext(rel)) {
	case ".yaml", ".yml":
		r.open = append(r.open, rel)
		defer func() { r.open = r.open[:len(r.open)-1] }()
		return r.ReadYAML(name, text)
	case ".json":
		return r.ReadJSON(name, text)
	}
	src := &File{Name: name, data: text}
	if !r.admitFile(src) {
		return v
	}
	text = strings.TrimPrefix(text, "\ufeff")
	return &Node{Kind: Scalar, Pos: src.place(1, 1), Scalar: text, Text: text, Quoted: true, block: blockText}
}

// fetchInclude finds the content of an included file.
func (r *Reader) fetchInclude(target string, at Pos) (rel, text string, ok bool) {
	rel = path.Join(path.Dir(r.open[len(r.open)-1]), target)
	r.included++
	length := len(includeTag) + 1 + utf8.RuneCountInString(target)
	if wrong, fix := r.refuseInclude(target, rel); wrong != "" {
		r.report(at, length, fix, "%s", wrong)
		return "", "", false
	}
	data, err := r.Include(rel)
	if err != nil {
		var where *fs.PathError // whose path is said anyway
		if errors.As(err, &where) {
			err = where.Err
		}
		r.report(at, length, folderFix, "!include %q can't be read: %v", target, err)
		return "", "", false
	}
	return rel, string(data), true
}

const folderFix = "name a file below the definition's folder, relative to this file"

// refuseInclude says what is wrong with an include; empty: nothing.
func (r *Reader) refuseInclude(target, rel string) (wrong, fix string) {
	which := fmt.Sprintf("!include %q", target)
	switch {
	case r.Include == nil:
		return "!include can't be used here: there is no folder to include from", "write the value here"
	case target == "":
		return "!include names no file", "write !include FILE"
	case strings.Contains(target, "://"):
		return which + ": only files can be included", "keep a copy of it below the definition's folder"
	case strings.ContainsAny(target, "\\\x00") || path.IsAbs(target):
		return which + " is no relative path with forward slashes", folderFix
	case rel == ".." || strings.HasPrefix(rel, "../"):
		return which + " leads out of the definition's folder", folderFix
	case slices.Contains(r.open, rel):
		return which + ": the file includes itself (" + strings.Join(append(slices.Clone(r.open), rel), " → ") + ")", "remove one of the includes"
	case len(r.open) > maxNested:
		return fmt.Sprintf("!include nests deeper than %d files", maxNested), "include fewer levels"
	case r.included > maxIncludes:
		return fmt.Sprintf("more than %d files are included", maxIncludes), "include less"
	}
	return "", ""
}
