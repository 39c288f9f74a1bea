package statefile

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
)

// MaxThreadsFile is the largest threads.yaml that is read, in bytes: some 20,000
// active threads.
const MaxThreadsFile = 8 << 20

// Threads is the content of threads.yaml. It does not change: With returns
// another one. Entries that a change doesn't name keep their bytes.
type Threads struct {
	head  string // comments above the first entry
	lines []threadLine
	index map[ThreadID]int
}

type threadLine struct {
	id    ThreadID
	text  string
	entry Entry
}

// NewThreads returns a file without entries.
func NewThreads() *Threads { return &Threads{index: map[ThreadID]int{}} }

// ParseThreads reads threads.yaml. Every entry is checked; the error names the
// line and matches ErrMalformed.
func ParseThreads(data []byte) (*Threads, error) {
	head, chunks, err := parseChunks(data, MaxThreadsFile)
	if err != nil {
		return nil, err
	}
	t := &Threads{head: head, lines: make([]threadLine, 0, len(chunks))}
	for _, c := range chunks {
		id, err := ParseThreadID(c.key)
		if err != nil {
			return nil, newMalformedError(c.val.line, "%v", err)
		}
		e, err := readEntry(c.val)
		if err != nil {
			return nil, fmt.Errorf("thread %s: %w", id, err)
		}
		t.lines = append(t.lines, threadLine{id, c.text, e})
	}
	t.indexThreads()
	return t, nil
}

func (t *Threads) indexThreads() {
	sort.SliceStable(t.lines, func(i, j int) bool { return t.lines[i].id < t.lines[j].id })
	t.index = make(map[ThreadID]int, len(t.lines))
	for i, l := range t.lines {
		t.index[l.id] = i
	}
}

// Len is the number of threads.
func (t *Threads) Len() int { return len(t.lines) }

// Get returns a thread's entry. What it points to is the caller's own.
func (t *Threads) Get(id ThreadID) (Entry, bool) {
	i, ok := t.index[id]
	if !ok {
		return Entry{}, false
	}
	return t.lines[i].entry.cloneEntry(), true
}

// All returns every entry.
func (t *Threads) All() map[ThreadID]Entry {
	out := make(map[ThreadID]Entry, len(t.lines))
	for _, l := range t.lines {
		out[l.id] = l.entry.cloneEntry()
	}
	return out
}

// IDs returns the threads in order.
func (t *Threads) IDs() []ThreadID {
	out := make([]ThreadID, len(t.lines))
	for i, l := range t.lines {
		out[i] = l.id
	}
	return out
}

// With returns the file with entries set, and those of drop removed. Keys that
// this version doesn't know stay with their entry. The error matches
// ErrUnstorable.
func (t *Threads) With(set map[ThreadID]*Entry, drop ...ThreadID) (*Threads, error) {
	out := &Threads{head: t.head, lines: make([]threadLine, 0, len(t.lines)+len(set))}
	for _, l := range t.lines {
		if _, replaced := set[l.id]; !replaced && !slices.Contains(drop, l.id) {
			out.lines = append(out.lines, l)
		}
	}
	for id, e := range set {
		if slices.Contains(drop, id) {
			continue
		}
		if !id.Valid() || e == nil {
			return nil, fmt.Errorf("%w: thread %q: no id or no entry", ErrUnstorable, id)
		}
		entry := e.cloneEntry()
		if old, ok := t.Get(id); ok && entry.extra == "" {
			entry.extra = old.extra
		}
		line, err := newLine(id, &entry)
		if err != nil {
			return nil, fmt.Errorf("thread %s: %w", id, err)
		}
		out.lines = append(out.lines, line)
	}
	out.indexThreads()
	return out, nil
}

// newLine writes an entry and reads it back: what With returns equals what the
// next reader of the file sees.
func newLine(id ThreadID, e *Entry) (threadLine, error) {
	text, err := writeEntry(id, e)
	if err != nil {
		return threadLine{}, err
	}
	c, err := parseChunk(text, 1)
	if err != nil {
		return threadLine{}, fmt.Errorf("%w: %w", ErrUnstorable, err)
	}
	back, err := readEntry(c.val)
	if err != nil {
		return threadLine{}, fmt.Errorf("%w: %w", ErrUnstorable, err)
	}
	return threadLine{id, text, back}, nil
}

// Encode returns the file, sorted by thread id.
func (t *Threads) Encode() []byte {
	var b strings.Builder
	b.WriteString(t.head)
	for _, l := range t.lines {
		b.WriteString(l.text)
	}
	if len(t.lines) == 0 {
		b.WriteString("{}\n")
	}
	return []byte(b.String())
}

// cloneEntry copies what the entry points to.
func (e Entry) cloneEntry() Entry {
	if e.Next != nil {
		n := *e.Next
		e.Next = &n
	}
	if e.Suspended != nil {
		s := *e.Suspended
		e.Suspended = &s
	}
	if e.Pause != nil {
		p := *e.Pause
		e.Pause = &p
	}
	e.Attempts = slices.Clone(e.Attempts)
	e.Limits = maps.Clone(e.Limits)
	return e
}
