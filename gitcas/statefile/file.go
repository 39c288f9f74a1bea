package statefile

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/internal/lists"
)

// File is a YAML file with an entry a key: threads.yaml and registry.yaml. It does not
// change: With returns another one. Entries that a change doesn't name keep their bytes.
type File[K ~string, E any] struct {
	is    *fileKind[K, E]
	head  string // comments above the first entry
	lines []fileLine[K, E]
}

// fileLine is an entry as it stands in the file. extra are the lines of keys that this
// version doesn't know: they are carried along, so that an older uwf loses nothing that a
// newer one wrote.
type fileLine[K ~string, E any] struct {
	key         K
	text, extra string
	entry       E
}

// fileKind is what tells the files apart.
type fileKind[K ~string, E any] struct {
	maxBytes int
	checkKey func(K) error
	writeKey func(string) string
	// fields are those of an entry. The first one must be there; alone it is what an
	// entry in the short form holds, and brief what else a long one would say then.
	fields fields[E]
	brief  string
	// keepUnknown: keys that no field has are carried along, not refused.
	keepUnknown bool
	// settle leaves out of an entry what is not written, and fills in what always is.
	settle func(*E)
	// clone copies what an entry points to.
	clone func(E) E
}

func (k *fileKind[K, E]) parseFile(data []byte) (*File[K, E], error) {
	head, chunks, err := parseChunks(data, k.maxBytes)
	if err != nil {
		return nil, err
	}
	f := &File[K, E]{k, head, make([]fileLine[K, E], len(chunks))}
	for i, c := range chunks {
		if err := k.checkKey(K(c.key)); err != nil {
			return nil, newMalformedError(c.val.line, "%v", err)
		}
		f.lines[i].key, f.lines[i].text = K(c.key), c.text
		if err := k.readEntry(&f.lines[i], c.val); err != nil {
			return nil, fmt.Errorf("%s: %w", c.key, err)
		}
	}
	f.sortLines()
	return f, nil
}

// readEntry reads the value of a key: the first field alone, or a mapping.
func (k *fileKind[K, E]) readEntry(l *fileLine[K, E], v value) error {
	var err error
	switch {
	case v.kind == scalar:
		err = k.fields[0].read(&l.entry, v)
	case v.kind == sequence:
		err = newMalformedError(v.line, "an entry is a hash or a mapping")
	case k.keepUnknown:
		var unknown []pair
		unknown, err = k.fields.readKnown(&l.entry, v, "the entry")
		l.extra = renderPairs(unknown, "  ")
	default:
		err = k.fields.readMapping(&l.entry, v, "the entry")
	}
	if err != nil {
		return err
	}
	if first := k.fields[0]; first.write(&l.entry, "") == "" {
		return newMalformedError(v.line, "no %s", first.name)
	}
	k.settle(&l.entry)
	return nil
}

// newLine writes an entry and reads it back: what With returns equals what the next
// reader of the file sees. One that would be read back as another one is refused.
func (k *fileKind[K, E]) newLine(key K, e E, extra string) (fileLine[K, E], error) {
	fail := func(err error) (fileLine[K, E], error) {
		return fileLine[K, E]{}, fmt.Errorf("%w: the entry %.60q: %v", ErrUnstorable, key, err) //nolint:errorlint // it isn't the file that is malformed
	}
	if err := k.checkKey(key); err != nil {
		return fail(err)
	}
	e = k.clone(e)
	k.settle(&e)
	text := k.fields.writeBlock(&e, "") + extra
	if bare := k.fields[0].write(&e, ""); text == "\n  "+k.fields[0].name+":"+bare+k.brief {
		text = bare
	}
	c, err := parseChunk(k.writeKey(string(key))+":"+text, 1)
	if err != nil {
		return fail(fmt.Errorf("it could not be read back: %w", err))
	}
	l := fileLine[K, E]{key: key, text: c.text}
	if err := k.readEntry(&l, c.val); err != nil {
		return fail(fmt.Errorf("it could not be read back: %w", err))
	}
	is, was := reflect.ValueOf(l.entry), reflect.ValueOf(e)
	for i := range is.NumField() {
		if !reflect.DeepEqual(is.Field(i).Interface(), was.Field(i).Interface()) {
			return fail(fmt.Errorf("%s would be read back as something else", is.Type().Field(i).Name))
		}
	}
	return l, nil
}

func (f *File[K, E]) sortLines() {
	slices.SortStableFunc(f.lines, func(a, b fileLine[K, E]) int { return strings.Compare(string(a.key), string(b.key)) })
}

func (f *File[K, E]) find(key K) (int, bool) {
	return slices.BinarySearchFunc(f.lines, key, func(l fileLine[K, E], key K) int { return strings.Compare(string(l.key), string(key)) })
}

// Keys are the keys in order.
func (f *File[K, E]) Keys() []K {
	return lists.Map(f.lines, func(l fileLine[K, E]) K { return l.key })
}

// Get returns an entry. What it points to is the caller's own.
func (f *File[K, E]) Get(key K) (E, bool) {
	i, ok := f.find(key)
	if !ok {
		return *new(E), false
	}
	return f.is.clone(f.lines[i].entry), true
}

// All returns every entry.
func (f *File[K, E]) All() map[K]E {
	out := make(map[K]E, len(f.lines))
	for _, l := range f.lines {
		out[l.key] = f.is.clone(l.entry)
	}
	return out
}

// With returns the file with entries set; a nil one is removed. Keys that this version
// doesn't know stay with their entry. The error matches ErrUnstorable.
func (f *File[K, E]) With(set map[K]*E) (*File[K, E], error) {
	out := &File[K, E]{f.is, f.head, make([]fileLine[K, E], 0, len(f.lines)+len(set))}
	for _, l := range f.lines {
		if _, replaced := set[l.key]; !replaced {
			out.lines = append(out.lines, l)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(set)) {
		if set[key] == nil {
			continue
		}
		extra := ""
		if i, ok := f.find(key); ok {
			extra = f.lines[i].extra
		}
		l, err := f.is.newLine(key, *set[key], extra)
		if err != nil {
			return nil, err
		}
		out.lines = append(out.lines, l)
	}
	out.sortLines()
	return out, nil
}

// Map returns the file with each entry as edit gives it back, and with text applied to
// what no field holds: comments, and keys that this version doesn't know. An entry that
// neither changes keeps its bytes; another one is written anew, without its comments. The
// error matches ErrUnstorable.
func (f *File[K, E]) Map(edit func(K, E) E, text func(string) string) (*File[K, E], error) {
	out := &File[K, E]{f.is, text(f.head), make([]fileLine[K, E], 0, len(f.lines))}
	for _, l := range f.lines {
		e := edit(l.key, f.is.clone(l.entry))
		if !reflect.DeepEqual(e, l.entry) || text(l.text) != l.text {
			var err error
			if l, err = f.is.newLine(l.key, e, text(l.extra)); err != nil {
				return nil, err
			}
		}
		out.lines = append(out.lines, l)
	}
	return out, nil
}

// Encode returns the file, sorted by key.
func (f *File[K, E]) Encode() []byte {
	var b strings.Builder
	b.WriteString(f.head)
	for _, l := range f.lines {
		b.WriteString(l.text)
	}
	if len(f.lines) == 0 {
		b.WriteString("{}\n")
	}
	return []byte(b.String())
}
