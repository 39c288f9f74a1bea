// Package patch makes the record of what a step changed: a unified diff where that is
// small enough, else counts, and hashes of the lines that were added, by which a line can
// be traced to its step after the work branch is gone. It is pure.
package patch

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	fdiff "github.com/go-git/go-git/v5/plumbing/format/diff"
	"github.com/go-git/go-git/v5/utils/diff"
	"github.com/sergi/go-diff/diffmatchpatch"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
)

// Bounds of a patch.
const (
	MaxFiles = 2_000     // files that are listed
	MaxDiff  = 256 << 10 // bytes of the diff
	MaxText  = 4 << 20   // bytes of a file that is compared
	maxAll   = 32 << 20  // bytes of all of them
	maxLines = 5_000     // lines between the first and the last that differ; the time grows with their square
	maxKept  = 20_000    // lines whose hashes are kept, the first ones
)

// maxTime is how long files are compared; those that are left then are only listed. A job
// that is told to end has seven seconds for all that it still has to do.
const maxTime = 2 * time.Second

// Side is one version of a file. The zero value: the file isn't there.
type Side struct {
	ID   plumbing.Hash
	Mode filemode.FileMode
	// Data is the content; nil where it could not be read, or is too large.
	Data []byte
}

// File is one file that was changed.
type File struct {
	Path     string
	Old, New Side
}

// CollectFiles are the files that a snapshot changed, with their contents as far as they can be
// had; the error says why not all could. read fetches those that are not among the objects
// of the snapshot.
func CollectFiles(objects []wire.PackObject, changes []workspace.Change, read func([]wire.ID) (map[wire.ID][]byte, error)) ([]File, error) {
	data := make(map[wire.ID][]byte, len(objects))
	for _, o := range objects {
		data[o.ID] = o.Data
	}
	var missing []wire.ID
	for _, c := range changes[:min(len(changes), MaxFiles)] {
		if c.OldMode == filemode.Submodule {
			data[c.Old] = fmt.Appendf(nil, "Subproject commit %s\n", c.Old) // as git shows it
		}
		if c.OldData != nil {
			data[c.Old] = c.OldData
		}
		if c.Size > MaxText || LooksBinary(data[newBlob(c)]) {
			continue // the old version would change nothing
		}
		for _, id := range []wire.ID{c.Old, newBlob(c)} {
			if _, ok := data[id]; !ok && !id.IsZero() {
				data[id] = nil
				missing = append(missing, id)
			}
		}
	}
	got, err := read(missing)
	maps.Copy(data, got)
	files := make([]File, len(changes))
	for i, c := range changes {
		now := newBlob(c)
		files[i] = File{
			Path: c.Path,
			Old:  Side{ID: c.Old, Mode: c.OldMode, Data: data[c.Old]},
			New:  Side{ID: now, Mode: c.Mode, Data: data[now]},
		}
	}
	return files, err
}

// newBlob is the new content of a file; zero where it was deleted.
func newBlob(c workspace.Change) wire.ID {
	if c.Kind == workspace.Deleted {
		return wire.ZeroID
	}
	return c.Blob
}

// Make makes the patch of files that are sorted by path, compared with the commit base.
// now is the clock.
func Make(base string, files []File, now func() time.Time) record.Patch {
	out := record.Patch{Base: base, Files: make([]record.PatchFile, 0, min(len(files), MaxFiles))}
	out.More = max(len(files)-MaxFiles, 0)
	end := now().Add(maxTime)
	all := make(patches, 0, len(files))
	whole := out.More == 0
	read, kept := 0, 0
	for _, f := range files[:min(len(files), MaxFiles)] {
		left := end.Sub(now())
		if read += len(f.Old.Data) + len(f.New.Data); read > maxAll || left <= 0 {
			f.Old.Data, f.New.Data = nil, nil
		}
		p := compareFile(f, left)
		all = append(all, p)
		whole = whole && p.known
		file := record.PatchFile{Path: f.Path, Change: p.changeKind()}
		if p.known && !p.binary {
			file.Counted, file.Added, file.Removed = true, p.countLines(fdiff.Add), p.countLines(fdiff.Delete)
		}
		out.Files = append(out.Files, file)
	}
	if whole {
		if text, ok := all.encodeDiff(); ok {
			out.Diff = text
			return out
		}
	}
	for i, p := range all {
		lines := p.hashAddedLines()
		out.Files[i].Lines = lines[:min(len(lines), maxKept-kept)]
		kept += len(out.Files[i].Lines)
	}
	return out
}

// Write writes the unified diff of files that are sorted by path, however long it is, and says
// how many lines each gained and lost. A file that is no text, or too large, is named alone; one
// that takes too long to compare is shown as wholly replaced.
func Write(to io.Writer, files []File, now func() time.Time) ([]record.PatchFile, error) {
	end := now().Add(maxTime)
	var all patches
	var out []record.PatchFile
	for _, f := range files {
		p := compareFile(f, max(end.Sub(now()), time.Millisecond))
		if !p.known && f.Old.isReadable() && f.New.isReadable() {
			before, old, new, after := trimCommonLines(string(f.Old.Data), string(f.New.Data))
			p.addChunk(before, fdiff.Equal)
			p.addChunk(old, fdiff.Delete)
			p.addChunk(new, fdiff.Add)
			p.addChunk(after, fdiff.Equal)
			p.known = true
		}
		p.binary = p.binary || !p.known
		all, out = append(all, p), append(out, record.PatchFile{
			Path: f.Path, Change: p.changeKind(), Counted: !p.binary, Added: p.countLines(fdiff.Add), Removed: p.countLines(fdiff.Delete),
		})
	}
	return out, all.encode(to)
}

// ID is the patch id of files that are sorted by path, in hexadecimal digits. Two commits have the
// same one if they change the same lines with the same lines around them, wherever in the files:
// git patch-id --verbatim tells the same pairs apart, by other numbers. Files that are not text
// are told apart by their content.
func ID(files []File, now func() time.Time) (string, error) {
	var diff strings.Builder
	stats, err := Write(&diff, files, now)

	sum := sha256.New()
	for line := range strings.Lines(diff.String()) {
		if !strings.HasPrefix(line, "@@ ") && !strings.HasPrefix(line, "index ") {
			_, _ = io.WriteString(sum, line)
		}
	}

	for i, f := range stats {
		if !f.Counted {
			_, _ = fmt.Fprintln(sum, files[i].Old.ID, files[i].New.ID)
		}
	}

	return hex.EncodeToString(sum.Sum(nil)), err
}

// compared is one file with what the comparison found. It is what go-git writes diffs of.
type compared struct {
	file          File
	known, binary bool
	chunks        []fdiff.Chunk
}

// compareFile compares a file's versions within a time.
func compareFile(f File, within time.Duration) compared {
	p := compared{file: f, known: f.Old.isReadable() && f.New.isReadable()}
	switch {
	case LooksBinary(f.Old.Data) || LooksBinary(f.New.Data):
		p.known, p.binary = true, true
		return p
	case !p.known:
		return p
	}
	before, old, now, after := trimCommonLines(string(f.Old.Data), string(f.New.Data))
	if old != "" && now != "" && max(strings.Count(old, "\n"), strings.Count(now, "\n")) > maxLines {
		p.known = false
		return p
	}
	p.addChunk(before, fdiff.Equal)
	for _, d := range diff.DoWithTimeout(old, now, within) {
		p.addChunk(d.Text, map[diffmatchpatch.Operation]fdiff.Operation{
			diffmatchpatch.DiffEqual: fdiff.Equal, diffmatchpatch.DiffInsert: fdiff.Add, diffmatchpatch.DiffDelete: fdiff.Delete,
		}[d.Type])
	}
	p.addChunk(after, fdiff.Equal)
	return p
}

func (p *compared) addChunk(text string, op fdiff.Operation) {
	if text != "" {
		p.chunks = append(p.chunks, chunk{text, op})
	}
}

// trimCommonLines takes from two texts the lines that they begin and end with alike.
func trimCommonLines(old, now string) (before, oldRest, nowRest, after string) {
	same := 0
	for n := range min(len(old), len(now)) {
		if old[n] != now[n] {
			break
		}
		if old[n] == '\n' {
			same = n + 1
		}
	}
	before, old, now = old[:same], old[same:], now[same:]
	same = 0
	for n := 1; n <= min(len(old), len(now)) && old[len(old)-n] == now[len(now)-n]; n++ {
		// A line begins here: what is before it ends with the line before.
		if atLine := func(s string) bool { return len(s) == n || s[len(s)-n-1] == '\n' }; atLine(old) && atLine(now) {
			same = n
		}
	}
	return before, old[:len(old)-same], now[:len(now)-same], old[len(old)-same:]
}

func (s Side) isReadable() bool { return s.ID.IsZero() || s.Data != nil && len(s.Data) <= MaxText }

// LooksBinary: a zero byte, as git looks for it, or no UTF-8, which no node can hold.
func LooksBinary(data []byte) bool { return bytes.IndexByte(data, 0) >= 0 || !utf8.Valid(data) }

func (p compared) changeKind() string {
	switch {
	case p.file.Old.ID.IsZero():
		return record.FileAdded
	case p.file.New.ID.IsZero():
		return record.FileDeleted
	}
	return record.FileModified
}

// countLines says how many lines were added or taken away.
func (p compared) countLines(op fdiff.Operation) (n int) {
	for _, c := range p.chunks {
		if c.Type() == op {
			n += strings.Count(c.Content(), "\n")
			if !strings.HasSuffix(c.Content(), "\n") {
				n++
			}
		}
	}
	return n
}

// hashAddedLines gives those of the lines that were added.
func (p compared) hashAddedLines() (out []string) {
	for _, c := range p.chunks {
		if c.Type() != fdiff.Add {
			continue
		}
		for line := range strings.Lines(c.Content()) {
			out = append(out, HashOf(strings.TrimSuffix(line, "\n")))
		}
	}
	return out
}

// HashOf is the hash by which a patch without a diff has a line: the first 16 hexadecimal
// digits of its SHA-256.
func HashOf(line string) string {
	sum := sha256.Sum256([]byte(line))
	return hex.EncodeToString(sum[:8])
}

// IsBinary implements fdiff.FilePatch.
func (p compared) IsBinary() bool { return p.binary }

// Files implements fdiff.FilePatch.
func (p compared) Files() (from, to fdiff.File) {
	if !p.file.Old.ID.IsZero() {
		from = side{p.file.Old, p.file.Path}
	}
	if !p.file.New.ID.IsZero() {
		to = side{p.file.New, p.file.Path}
	}
	return from, to
}

// Chunks implements fdiff.FilePatch.
func (p compared) Chunks() []fdiff.Chunk { return p.chunks }

type chunk struct {
	text string
	op   fdiff.Operation
}

// Content implements fdiff.Chunk.
func (c chunk) Content() string { return c.text }

// Type implements fdiff.Chunk.
func (c chunk) Type() fdiff.Operation { return c.op }

type side struct {
	s    Side
	path string
}

// Hash implements fdiff.File.
func (s side) Hash() plumbing.Hash { return s.s.ID }

// Mode implements fdiff.File.
func (s side) Mode() filemode.FileMode { return s.s.Mode }

// Path implements fdiff.File. go-git quotes no names: encode puts in what is to be quoted.
func (s side) Path() string {
	if quoteName("", s.path) != s.path {
		return nameLater
	}
	return s.path
}

// nameLater stands in a file's header where its quoted name goes.
const nameLater = "?"

type patches []compared

// FilePatches implements fdiff.Patch.
func (p patches) FilePatches() []fdiff.FilePatch {
	out := make([]fdiff.FilePatch, len(p))
	for i := range p {
		out[i] = p[i]
	}
	return out
}

// Message implements fdiff.Patch.
func (p patches) Message() string { return "" }

// encode writes the unified diff, with names quoted as git quotes them. Only a file's header has
// its name: up to the first hunk.
func (p patches) encode(to io.Writer) error {
	for i := range p {
		var b strings.Builder
		if err := fdiff.NewUnifiedEncoder(&b, fdiff.DefaultContextLines).Encode(p[i : i+1]); err != nil {
			return err
		}

		head, hunks := b.String(), ""
		if at := strings.Index(head, "\n@@ "); at >= 0 {
			head, hunks = head[:at], head[at:]
		}
		if path := p[i].file.Path; quoteName("", path) != path {
			head = strings.NewReplacer("a/"+nameLater, quoteName("a/", path), "b/"+nameLater, quoteName("b/", path)).Replace(head)
		}
		if _, err := io.WriteString(to, head+hunks); err != nil {
			return err
		}
	}
	return nil
}

// quoteName is a name behind a prefix as git writes it with core.quotePath=false: in quotes where
// it has control characters, quotes or backslashes.
func quoteName(prefix, name string) string {
	var b strings.Builder
	for _, c := range []byte(name) {
		switch at := strings.IndexByte("\a\b\t\n\v\f\r\"\\", c); {
		case at >= 0:
			b.WriteString(`\` + `abtnvfr"\`[at:at+1])
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	if b.Len() == len(name) {
		return prefix + name
	}
	return `"` + prefix + b.String() + `"`
}

// encodeDiff makes the unified diff, unless it is too long.
func (p patches) encodeDiff() (string, bool) {
	size := 0
	for _, f := range p {
		for _, c := range f.chunks {
			if c.Type() != fdiff.Equal {
				size += len(c.Content())
			}
		}
	}
	if size > MaxDiff { // which need not be made to be seen
		return "", false
	}
	var b strings.Builder
	err := p.encode(&b)
	return b.String(), err == nil && b.Len() <= MaxDiff
}
