package statefile

import (
	"fmt"
	"reflect"
	"slices"
)

// Map returns the file with each entry as edit gives it back, and with text
// applied to what no field holds: comments, and keys that this version doesn't
// know. An entry that neither changes keeps its bytes; another one is written
// anew, without its comments. The error matches ErrUnstorable.
func (t *Threads) Map(edit func(ThreadID, Entry) Entry, text func(string) string) (*Threads, error) {
	out := &Threads{head: text(t.head), lines: make([]threadLine, 0, len(t.lines))}
	for _, l := range t.lines {
		e := edit(l.id, l.entry.cloneEntry())
		e.extra = text(l.entry.extra)
		if reflect.DeepEqual(e, l.entry) && text(l.text) == l.text {
			out.lines = append(out.lines, l)
			continue
		}
		line, err := newLine(l.id, &e)
		if err != nil {
			return nil, fmt.Errorf("thread %s: %w", l.id, err)
		}
		out.lines = append(out.lines, line)
	}
	out.indexThreads()
	return out, nil
}

// Map is Threads.Map for registry.yaml.
func (r *Registry) Map(edit func(name string, e RegistryEntry) RegistryEntry, text func(string) string) (*Registry, error) {
	out := &Registry{head: text(r.head), lines: make([]registryLine, 0, len(r.lines))}
	for _, l := range r.lines {
		old := l.entry
		old.History = slices.Clone(old.History)
		e := edit(l.name, old)
		if reflect.DeepEqual(e, l.entry) && text(l.text) == l.text {
			out.lines = append(out.lines, l)
			continue
		}
		written, err := writeRegistryEntry(l.name, &e)
		if err != nil {
			return nil, err
		}
		out.lines = append(out.lines, registryLine{l.name, written, e})
	}
	return out, nil
}
