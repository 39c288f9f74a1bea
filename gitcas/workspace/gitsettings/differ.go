package gitsettings

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/united-workforce/uwf/internal/text"
)

// isAbsent says that nothing is there, or that a file stands where a folder was on the way.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// describeDifference says how a part is not as it was: "added NAME", "changed NAME", "removed NAME",
// where NAME is below the part; nothing: it is as it was.
func (r *restorer) describeDifference(p part, info fs.FileInfo) ([]string, error) {
	was := make(map[string]thing, len(p.Holds))
	for _, t := range p.Holds {
		was[t.Name] = t
	}
	var out []string
	seen := map[string]bool{}
	if info != nil {
		err := walkThing(r.root, p.Path, "", info, len(p.Holds)+maxTold, func(t thing, in string) error {
			old, there := was[t.Name]
			seen[t.Name] = true
			if !there {
				out = append(out, strings.TrimSpace("added "+t.Name))
				return nil
			}
			same, err := r.isSame(old, t, in)
			if err == nil && !same {
				out = append(out, strings.TrimSpace("changed "+t.Name))
			}
			return err
		})
		switch {
		case errors.Is(err, errFull): // it is replaced in any case
			return append(out[:min(len(out), maxListed-1)], "and more"), nil
		case err != nil:
			return nil, err
		}
	}
	for _, t := range p.Holds {
		if !seen[t.Name] {
			out = append(out, strings.TrimSpace("removed "+t.Name))
		}
	}
	return out, nil
}

const (
	maxTold   = 20 // how much of what is new is looked at
	maxListed = 10 // and told
)

// isSame compares a thing with what it was. Whose it is doesn't matter: a workspace may have
// been given back.
func (r *restorer) isSame(was, is thing, in string) (bool, error) {
	if was.Mode != is.Mode || was.Target != is.Target || was.Size != is.Size {
		return false, nil
	}
	if !is.Mode.IsRegular() {
		return true, nil
	}
	old, err := r.k.readCopy(was)
	if err != nil {
		return false, err
	}
	now, err := readFile(r.root, in, is.Size)
	return bytes.Equal(old, now), err
}

// readFile reads a regular file of a size that is known.
func readFile(root *os.Root, at string, size int64) ([]byte, error) {
	if size > maxBytes {
		return nil, fmt.Errorf("%w: %s has %d bytes", ErrTooMuch, at, size)
	}
	return root.ReadFile(at)
}

// tellPart says what was changed, without values, which may be secret: of settings their
// keys, of folders the names in them.
func (k *Kept) tellPart(root *os.Root, p part, info fs.FileInfo, differs []string) string {
	switch {
	case info == nil:
		return "was removed"
	case len(p.Holds) > 0 && p.Holds[0].Mode.Type() != info.Mode().Type():
		return "was made " + describeKind(info)
	case info.IsDir() && len(p.Holds) > 0:
		return listNames("", differs)
	case !info.Mode().IsRegular() || !strings.HasPrefix(path.Base(p.Path), "config"):
		if len(p.Holds) == 0 {
			return "was added"
		}
		return "was changed"
	}
	var was []byte
	if len(p.Holds) > 0 {
		was, _ = k.readCopy(p.Holds[0]) // it could be read before
	}
	const most = 1 << 20
	if info.Size() > most || len(was) > most {
		return "was changed"
	}
	is, err := root.ReadFile(p.Path)
	if err != nil {
		return "was changed"
	}
	return describeKeys(was, is)
}

// describeKeys says which settings differ.
func describeKeys(was, is []byte) string {
	old, now := parseSettings(was), parseSettings(is)
	var set, unset []string
	for key, values := range now {
		if !slices.Equal(values, old[key]) {
			set = append(set, key)
		}
	}
	for key := range old {
		if _, there := now[key]; !there {
			unset = append(unset, key)
		}
	}
	slices.Sort(set)
	slices.Sort(unset)
	var parts []string
	if len(set) > 0 {
		parts = append(parts, listNames("sets ", set))
	}
	if len(unset) > 0 {
		parts = append(parts, listNames("no longer sets ", unset))
	}
	if len(parts) == 0 {
		return "was rewritten"
	}
	return strings.Join(parts, "; ")
}

// parseSettings are the settings of a file, each with all its values as they are written, near
// enough to say what was changed: git alone knows them exactly.
func parseSettings(data []byte) map[string][]string {
	all := map[string][]string{}
	section := ""
	for line := range strings.Lines(strings.ReplaceAll(string(data), "\\\n", "")) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "["); ok {
			name, after, _ := strings.Cut(rest, "]")
			if kind, _, quoted := strings.Cut(name, `"`); quoted {
				var sub string // in which a bracket may stand
				sub, after, _ = strings.Cut(rest[len(kind)+1:], `"]`)
				name = strings.TrimSpace(kind) + "." + sub
			}
			section, line = sectionName(name), strings.TrimSpace(after)
		}
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		key = section + "." + strings.ToLower(strings.TrimSpace(key))
		all[key] = append(all[key], strings.Trim(strings.TrimSpace(value), `"`))
	}
	return all
}

// sectionName is a section in the form that git prints: only the part before the first
// dot has no case.
func sectionName(name string) string {
	kind, sub, ok := strings.Cut(name, ".")
	if !ok {
		return strings.ToLower(kind)
	}
	return strings.ToLower(kind) + "." + sub
}

// submodulePaths are the folders that a .gitmodules file names.
func submodulePaths(data []byte) []string {
	var out []string
	for key, values := range parseSettings(data) {
		if strings.HasPrefix(key, "submodule.") && strings.HasSuffix(key, ".path") {
			out = append(out, values...)
		}
	}
	slices.Sort(out)
	return out[:min(len(out), maxDirs)]
}

// listNames names things, as many as anybody reads.
func listNames(before string, names []string) string {
	more := ""
	if n := len(names) - maxListed; n > 0 {
		names, more = names[:maxListed], fmt.Sprintf(" and %d more", n)
	}
	short := make([]string, len(names))
	for i, name := range names {
		short[i] = text.Cut(name, 100)
	}
	return before + strings.Join(short, ", ") + more
}

// describeKind is what a thing is, for messages.
func describeKind(info fs.FileInfo) string {
	switch {
	case info == nil:
		return "nothing"
	case info.IsDir():
		return "a folder"
	case info.Mode().IsRegular():
		return "a file"
	case info.Mode().Type() == fs.ModeSymlink:
		return "a link"
	}
	return "a special file"
}
