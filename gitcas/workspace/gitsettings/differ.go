package gitsettings

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/regular"
	"github.com/united-workforce/uwf/internal/text"
)

const (
	maxTold   = 20      // how much of what is new is looked at
	maxListed = 10      // and told
	maxConfig = 1 << 20 // of settings that are read, in bytes
)

// describeDifference says how a part is not as it was: "added NAME", "changed NAME", "removed NAME",
// where NAME is below the part; nothing: it is as it was. Of an entry that was a folder it
// matters only that it is one.
func (r *restorer) describeDifference(p part, info fs.FileInfo) (out []string, err error) {
	was := make(map[string]fsEntry, len(p.Holds))
	for _, t := range p.Holds {
		was[t.Name] = t
	}
	if info != nil && !(p.Entry && info.IsDir() && p.wasType(fs.ModeDir)) {
		err = walkEntry(r.root, p.Path, info, len(p.Holds)+maxTold, func(t fsEntry, in string, size int64) error {
			old, there := was[t.Name]
			delete(was, t.Name)
			if !there {
				out = append(out, strings.TrimSpace("added "+t.Name))
				return nil
			}
			same, err := r.isSame(old, t, in, size)
			if !same {
				out = append(out, strings.TrimSpace("changed "+t.Name))
			}
			return err
		})
	} else if info != nil {
		return nil, nil
	}
	if errors.Is(err, errFull) { // it is replaced in any case
		return append(out[:min(len(out), maxListed-1)], "and more"), nil
	}
	for _, t := range p.Holds {
		if _, left := was[t.Name]; left {
			out = append(out, strings.TrimSpace("removed "+t.Name))
		}
	}
	return out, err
}

// isSame compares an entry with what it was. Whose it is doesn't matter: a workspace may have
// been given back.
func (r *restorer) isSame(was, is fsEntry, in string, size int64) (bool, error) {
	if was.Mode != is.Mode || was.Target != is.Target {
		return false, nil
	}
	if !is.Mode.IsRegular() {
		return true, nil
	}
	if int64(len(was.Data)) != size {
		return false, nil
	}
	now, err := regular.Read(r.root, in, size)
	return bytes.Equal(was.Data, now), err
}

// describePart says what was changed, without values, which may be secret: of settings their
// keys, of folders the names in them.
func (r *restorer) describePart(p part, info fs.FileInfo, differs []string) string {
	switch {
	case info == nil && p.Entry && p.wasType(fs.ModeDir):
		return "was removed: what git had stored there is gone, and only its settings are put back"
	case info == nil:
		return "was removed"
	case len(p.Holds) == 0 && p.Entry:
		return "was made (" + regular.DescribeKind(info.Mode()) + ")"
	case len(p.Holds) > 0 && !p.wasType(info.Mode().Type()):
		return "was made " + regular.DescribeKind(info.Mode())
	case len(p.Holds) > 0 && info.IsDir():
		return listNames("", differs)
	case info.Mode().IsRegular() && strings.HasPrefix(path.Base(p.Path), "config") && info.Size() <= maxConfig:
		var was []byte
		if len(p.Holds) > 0 {
			was = p.Holds[0].Data
		}
		if is, err := regular.Read(r.root, p.Path, info.Size()); err == nil {
			return describeKeys(was, is)
		}
	case len(p.Holds) == 0:
		return "was added"
	}
	return "was changed"
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
	return before + strings.Join(lists.Map(names, func(name string) string { return text.Cut(name, 100) }), ", ") + more
}
