package record

import (
	"fmt"
	"reflect"

	"github.com/united-workforce/uwf/gitcas/node"
)

// What became of a file, as PatchFile.Change has it.
const (
	FileAdded    = "added"
	FileModified = "modified"
	FileDeleted  = "deleted"
)

// Patch is what a step changed on the work branch, compared with the commit that it began
// from. It outlives the branch.
type Patch struct {
	Base  string // the commit; empty: there was none
	Files []PatchFile
	More  int // how many files more were changed
	// Diff is the unified diff of all files, as `git apply` takes it, but for secrets that
	// were taken out of it; empty: there is too much of it, or it could not be made.
	Diff string
}

// PatchFile is one file of a Patch.
type PatchFile struct {
	Path   string // slashes, relative to the repository
	Change string // FileAdded, FileModified or FileDeleted
	// Counted: Added and Removed are known. They are not for files that are no text.
	Counted        bool
	Added, Removed int // lines
	// Lines are, where there is no diff, the lines that were added: of each the first 16
	// hexadecimal digits of the SHA-256 of the line without its end.
	Lines []string
}

// patch is a Patch as its node has it: lines are counted, or not there.
type patch struct {
	Base  string      `payload:"base"`
	Files []patchFile `payload:"files"`
	More  int         `payload:"more,optional"`
	Diff  string      `payload:"diff,optional"`
}

type patchFile struct {
	Path    string   `payload:"path"`
	Change  string   `payload:"change" oneof:"added modified deleted"`
	Added   *int     `payload:"added,optional"`
	Removed *int     `payload:"removed,optional"`
	Lines   []string `payload:"lines,optional"`
}

// Payload is what the node of the patch holds.
func (p Patch) Payload() map[string]any {
	out := patch{Base: p.Base, More: p.More, Diff: p.Diff}
	for _, f := range p.Files {
		file := patchFile{Path: f.Path, Change: f.Change, Lines: f.Lines}
		if f.Counted {
			file.Added, file.Removed = &f.Added, &f.Removed
		}
		out.Files = append(out.Files, file)
	}
	m, _ := toPayload(reflect.ValueOf(out))
	return m
}

// ParsePatch reads a patch, see ParseStart.
func ParsePatch(n node.Node) (Patch, error) {
	var in patch
	if err := readRecord("Patch", n, n.Type == PatchSchema, false, &in); err != nil {
		return Patch{}, err
	}
	p := Patch{Base: in.Base, More: in.More, Diff: in.Diff}
	for _, f := range in.Files {
		file := PatchFile{Path: f.Path, Change: f.Change, Counted: f.Added != nil, Lines: f.Lines}
		if (f.Added == nil) != (f.Removed == nil) {
			return Patch{}, fmt.Errorf("%w: a file of a Patch has lines added or removed, and does not say which", ErrNotRecord)
		}
		if file.Counted {
			file.Added, file.Removed = *f.Added, *f.Removed
		}
		p.Files = append(p.Files, file)
	}
	return p, nil
}
