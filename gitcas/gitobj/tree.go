package gitobj

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/wire"
)

// idSize is the length of an object id in a tree, in bytes.
const idSize = len(wire.ZeroID)

// Entry is one line of a tree.
type Entry struct {
	Name string
	Mode filemode.FileMode
	ID   wire.ID
}

// IsDir reports whether the entry is a tree.
func (e Entry) IsDir() bool { return e.Mode == filemode.Dir }

// DecodeTree reads the content of a tree. It takes what git can check out
// anywhere and nothing else: known modes, names that [CheckEntry] passes, git's
// order, no name twice (also not as file and folder), no zero ids. The error
// matches [ErrMalformed] or [ErrBadName]. Names share memory with one copy of
// data.
func DecodeTree(data []byte) ([]Entry, error) {
	if len(data) == 0 {
		return nil, nil
	}
	text := string(data)
	entries := make([]Entry, 0, len(data)/(idSize+16)+1)
	for pos := 0; pos < len(text); {
		e, next, err := decodeEntry(text, pos)
		if err != nil {
			return nil, err
		}
		if n := len(entries); n > 0 && compareEntries(entries[n-1], e) >= 0 {
			return nil, fmt.Errorf("%w: tree: %q is out of order", ErrMalformed, e.Name)
		}
		if e.IsDir() && hasFile(entries, e.Name) {
			return nil, fmt.Errorf("%w: tree: %q is there twice", ErrMalformed, e.Name)
		}
		entries = append(entries, e)
		pos = next
	}
	return entries, nil
}

func decodeEntry(text string, pos int) (Entry, int, error) {
	mode, _, ok := strings.Cut(text[pos:min(len(text), pos+8)], " ")
	if !ok {
		return Entry{}, 0, fmt.Errorf("%w: tree: no mode at byte %d", ErrMalformed, pos)
	}
	m, ok := modes[mode]
	if !ok {
		return Entry{}, 0, fmt.Errorf("%w: tree: unknown mode %q at byte %d", ErrMalformed, mode, pos)
	}
	start := pos + len(mode) + 1
	end := strings.IndexByte(text[start:], 0)
	if end < 0 || start+end+1+idSize > len(text) {
		return Entry{}, 0, fmt.Errorf("%w: tree: cut off at byte %d", ErrMalformed, pos)
	}
	e := Entry{Name: text[start : start+end], Mode: m}
	next := start + end + 1 + idSize
	copy(e.ID[:], text[next-idSize:next])
	if err := CheckEntry(e.Name, e.Mode); err != nil {
		return Entry{}, 0, fmt.Errorf("tree: %w", err)
	}
	if e.ID.IsZero() {
		return Entry{}, 0, fmt.Errorf("%w: tree: %q has the zero id", ErrMalformed, e.Name)
	}
	return e, next, nil
}

// modes are the modes that git writes, as it writes them. Old programs padded that of folders.
var modes = map[string]filemode.FileMode{
	"100644": filemode.Regular, "40000": filemode.Dir, "040000": filemode.Dir, "100755": filemode.Executable,
	"120000": filemode.Symlink, "160000": filemode.Submodule, "100664": filemode.Deprecated,
}

// hasFile reports whether the sorted entries hold one that is no folder and has
// that name.
func hasFile(entries []Entry, name string) bool {
	_, found := slices.BinarySearchFunc(entries, Entry{Name: name, Mode: filemode.Regular}, compareEntries)
	return found
}

// compareEntries is git's order of a tree: bytewise, folders as if their name
// ended with a slash.
func compareEntries(a, b Entry) int {
	n := min(len(a.Name), len(b.Name))
	if c := strings.Compare(a.Name[:n], b.Name[:n]); c != 0 {
		return c
	}
	return int(nameByte(a, n)) - int(nameByte(b, n))
}

// nameByte is the byte of the sort key at i: 0 stands for its end.
func nameByte(e Entry, i int) byte {
	switch {
	case i < len(e.Name):
		return e.Name[i]
	case e.IsDir():
		return '/'
	}
	return 0
}

// EncodeTree writes entries as the content of a tree, in git's order. It does
// not change the slice. It refuses names that [CheckEntry] refuses, names that
// are there twice, modes that git doesn't know and zero ids.
func EncodeTree(entries []Entry) ([]byte, error) {
	sorted := entries
	if !slices.IsSortedFunc(entries, compareEntries) {
		sorted = slices.Clone(entries)
		slices.SortFunc(sorted, compareEntries)
	}
	size := 0
	for _, e := range sorted {
		size += len(e.Name) + idSize + 8
	}
	b := make([]byte, 0, size)
	for i, e := range sorted {
		if err := CheckEntry(e.Name, e.Mode); err != nil {
			return nil, fmt.Errorf("tree: %w", err)
		}
		mode := strconv.FormatUint(uint64(e.Mode), 8)
		if _, known := modes[mode]; !known {
			return nil, fmt.Errorf("%w: tree: %q has the unknown mode %o", ErrMalformed, e.Name, uint32(e.Mode))
		}
		if e.ID.IsZero() {
			return nil, fmt.Errorf("%w: tree: %q has the zero id", ErrMalformed, e.Name)
		}
		if i > 0 && sorted[i-1].Name == e.Name || e.IsDir() && hasFile(sorted[:i], e.Name) {
			return nil, fmt.Errorf("%w: tree: %q is there twice", ErrMalformed, e.Name)
		}
		b = append(b, mode...)
		b = append(b, ' ')
		b = append(b, e.Name...)
		b = append(b, 0)
		b = append(b, e.ID[:]...)
	}
	return b, nil
}
