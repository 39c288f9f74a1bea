package statefile

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// MaxRegistryFile is the largest registry.yaml that is read, in bytes.
const MaxRegistryFile = 4 << 20

const (
	maxName     = 200
	maxVersions = 10_000
)

// Registry is the content of registry.yaml: workflow names. It does not change:
// With returns another one. Entries that a change doesn't name keep their bytes.
type Registry struct {
	head  string
	lines []registryLine
}

type registryLine struct {
	name  string
	text  string
	entry RegistryEntry
}

// NewRegistry returns a file without entries.
func NewRegistry() *Registry { return &Registry{} }

// ParseRegistry reads registry.yaml. The error names the line and matches
// ErrMalformed.
func ParseRegistry(data []byte) (*Registry, error) {
	head, chunks, err := parseChunks(data, MaxRegistryFile)
	if err != nil {
		return nil, err
	}
	r := &Registry{head: head}
	for _, c := range chunks {
		if !nameOK(c.key) {
			return nil, newMalformedError(c.val.line, "%.60q is no name", c.key)
		}
		e, err := readRegistryEntry(c.val)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.key, err)
		}
		r.lines = append(r.lines, registryLine{c.key, c.text, e})
	}
	r.sortEntries()
	return r, nil
}

func (r *Registry) sortEntries() {
	sort.SliceStable(r.lines, func(i, j int) bool { return r.lines[i].name < r.lines[j].name })
}

// nameOK: a name is shown in terminals and typed by people.
func nameOK(s string) bool {
	return s != "" && textOK(s, maxName) && strings.TrimSpace(s) == s && !strings.ContainsFunc(s, mustEscape)
}

func readRegistryEntry(v value) (RegistryEntry, error) {
	if v.kind == scalar {
		h, err := readHash(v, "hash")
		return RegistryEntry{Hash: h}, err
	}
	var e RegistryEntry
	err := readFields(v, "the entry", func(p pair) (ok bool, err error) {
		switch p.key {
		case "hash":
			e.Hash, err = readHash(p.val, p.key)
		case "timestamp":
			e.Timestamp, err = readInt(p.val, p.key, math.MaxInt64)
		case "history":
			e.History, err = readVersions(p.val)
		default:
			return false, nil
		}
		return true, err
	})
	if err == nil && e.Hash == "" {
		err = newMalformedError(v.line, "no hash")
	}
	return e, err
}

func readVersions(v value) ([]RegistryVersion, error) {
	if v.kind != sequence || len(v.items) > maxVersions {
		return nil, newMalformedError(v.line, "history is no list of at most %d versions", maxVersions)
	}
	var out []RegistryVersion
	for _, item := range v.items {
		var rv RegistryVersion
		err := readFields(item, "history", func(p pair) (ok bool, err error) {
			switch p.key {
			case "hash":
				rv.Hash, err = readHash(p.val, "history.hash")
			case "timestamp":
				rv.Timestamp, err = readInt(p.val, "history.timestamp", math.MaxInt64)
			default:
				return false, nil
			}
			return true, err
		})
		if err != nil {
			return nil, err
		}
		if rv.Hash == "" {
			return nil, newMalformedError(item.line, "history: no hash")
		}
		out = append(out, rv)
	}
	return out, nil
}

// All returns every entry.
func (r *Registry) All() map[string]RegistryEntry {
	out := make(map[string]RegistryEntry, len(r.lines))
	for _, l := range r.lines {
		e := l.entry
		e.History = slices.Clone(e.History)
		out[l.name] = e
	}
	return out
}

// With returns the file with entries set; a nil entry removes the name. The error
// matches ErrUnstorable.
func (r *Registry) With(set map[string]*RegistryEntry) (*Registry, error) {
	out := &Registry{head: r.head}
	for _, l := range r.lines {
		if _, replaced := set[l.name]; !replaced {
			out.lines = append(out.lines, l)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		e := set[name]
		if e == nil {
			continue
		}
		text, err := writeRegistryEntry(name, e)
		if err != nil {
			return nil, err
		}
		kept := *e
		kept.History = slices.Clone(e.History)
		out.lines = append(out.lines, registryLine{name, text, kept})
	}
	out.sortEntries()
	return out, nil
}

func writeRegistryEntry(name string, e *RegistryEntry) (string, error) {
	if !nameOK(name) || !e.Hash.Valid() || e.Timestamp < 0 || len(e.History) > maxVersions ||
		slices.ContainsFunc(e.History, func(v RegistryVersion) bool { return !v.Hash.Valid() || v.Timestamp < 0 }) {
		return "", fmt.Errorf("%w: registry entry %.60q", ErrUnstorable, name)
	}
	if e.Timestamp == 0 && len(e.History) == 0 {
		return writeWord(name) + ": " + writeCode(string(e.Hash)) + "\n", nil
	}
	var b strings.Builder
	b.WriteString(writeWord(name) + ":\n  hash: " + writeCode(string(e.Hash)) + "\n")
	if e.Timestamp != 0 {
		b.WriteString("  timestamp: " + strconv.FormatInt(e.Timestamp, 10) + "\n")
	}
	if len(e.History) > 0 {
		b.WriteString("  history:\n")
	}
	for _, v := range e.History {
		b.WriteString("    - hash: " + writeCode(string(v.Hash)) + "\n")
		if v.Timestamp != 0 {
			b.WriteString("      timestamp: " + strconv.FormatInt(v.Timestamp, 10) + "\n")
		}
	}
	return b.String(), nil
}

// Encode returns the file, sorted by name.
func (r *Registry) Encode() []byte {
	var b strings.Builder
	b.WriteString(r.head)
	for _, l := range r.lines {
		b.WriteString(l.text)
	}
	if len(r.lines) == 0 {
		b.WriteString("{}\n")
	}
	return []byte(b.String())
}
