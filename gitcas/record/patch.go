package record

import (
	"time"

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

// Node makes the node, see Start.Node for at.
func (p Patch) Node(at time.Time) (node.Node, node.Hash, error) {
	return node.New(PatchSchema, p.Payload(), at)
}

// Payload is what the node holds.
func (p Patch) Payload() map[string]any {
	files := make([]any, len(p.Files))
	for i, f := range p.Files {
		m := map[string]any{"path": f.Path, "change": f.Change}
		if f.Counted {
			m["added"], m["removed"] = int64(f.Added), int64(f.Removed)
		}
		if len(f.Lines) > 0 {
			lines := make([]any, len(f.Lines))
			for j, l := range f.Lines {
				lines[j] = l
			}
			m["lines"] = lines
		}
		files[i] = m
	}
	out := map[string]any{"base": p.Base, "files": files}
	if p.More > 0 {
		out["more"] = int64(p.More)
	}
	if p.Diff != "" {
		out["diff"] = p.Diff
	}
	return out
}

// ParsePatch reads a patch, see ParseStart.
func ParsePatch(n node.Node) (Patch, error) {
	r := openNode("Patch", n, n.Type == PatchSchema)
	p := Patch{Base: r.readText("base"), Diff: r.optionalText("diff")}
	if r.hasField("more") {
		p.More = int(r.readInteger("more"))
	}
	v, _ := r.takeField("files")
	list, ok := v.([]any)
	r.checkField(ok, "files", "a list")
	for _, e := range list {
		m, _ := e.(map[string]any)
		o := &reader{what: "file of a Patch", m: m}
		f := PatchFile{Path: o.readText("path"), Change: o.readText("change")}
		o.checkField(f.Change == FileAdded || f.Change == FileModified || f.Change == FileDeleted, "change", "added, modified or deleted")
		if f.Counted = o.hasField("added") && o.hasField("removed"); f.Counted {
			f.Added, f.Removed = int(o.readInteger("added")), int(o.readInteger("removed"))
		}
		f.Lines = o.readTexts("lines")
		p.Files = append(p.Files, f)
		r.takeComplaint(o)
	}
	return p, r.firstComplaint()
}

// readTexts reads a list of texts that may be missing.
func (r *reader) readTexts(field string) []string {
	if !r.hasField(field) {
		return nil
	}
	v, _ := r.takeField(field)
	list, ok := v.([]any)
	r.checkField(ok, field, "a list of texts")
	out := make([]string, 0, len(list))
	for _, e := range list {
		s, ok := e.(string)
		r.checkField(ok, field, "a list of texts")
		out = append(out, s)
	}
	return out
}
