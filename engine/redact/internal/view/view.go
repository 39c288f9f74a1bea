// Package view undoes the encodings in which a text may hold another, one upon the
// other, and leads back from what is found there to where it came from. It is pure.
package view

import (
	"bytes"
	"sort"
)

// view is a text with one kind of encoding undone, and the way back: which bytes
// of the source each of its bytes stands for.
type view struct {
	text  []byte
	edits []edit
	// cut is where the source ends in the middle of an escape, else its length.
	// The view ends there.
	cut int
}

// edit says that outLen bytes of the view at out stand for srcLen bytes of the
// source at src; with each, every byte of them for that many bytes of the source.
// Between edits both are the same.
type edit struct{ out, outLen, src, srcLen, each int }

// sourceRange maps a range of the view to the range of the source it came from.
func (v *view) sourceRange(from, to int) (int, int) {
	start, _ := v.sourceAt(from)
	_, end := v.sourceAt(to - 1)
	return start, end
}

func (v *view) sourceAt(out int) (from, to int) {
	n := sort.Search(len(v.edits), func(i int) bool { return v.edits[i].out > out }) - 1
	if n < 0 {
		return out, out + 1
	}
	e := v.edits[n]
	switch {
	case out >= e.out+e.outLen:
		src := e.src + e.srcLen + out - e.out - e.outLen
		return src, src + 1
	case e.each > 0:
		src := e.src + (out-e.out)*e.each
		return src, min(src+e.each, e.src+e.srcLen)
	}
	return e.src, e.src + e.srcLen
}

// escape looks at an escape at the beginning of b and returns what it stands for and
// how long it is; 0: it is none; -1: b ends within it, which does not happen where b
// is final.
type escape func(b []byte, final bool) (out []byte, n int)

// newView builds a view of src without its escapes, each of which begins with trigger;
// nil: there are none.
func newView(src []byte, trigger byte, final bool, step escape) *view {
	v := &view{cut: len(src)}
	at, from := 0, 0 // what is copied, what is looked at
	for {
		i := bytes.IndexByte(src[from:], trigger)
		if i < 0 {
			break
		}
		i += from
		out, n := step(src[i:], final)
		if n < 0 {
			v.cut = i
			break
		}
		if n == 0 {
			from = i + 1
			continue
		}
		if v.text == nil {
			v.text = make([]byte, 0, len(src))
		}
		v.text = append(v.text, src[at:i]...)
		v.edits = append(v.edits, edit{out: len(v.text), outLen: len(out), src: i, srcLen: n})
		v.text = append(v.text, out...)
		at, from = i+n, i+n
	}
	if len(v.edits) == 0 && v.cut == len(src) {
		return nil
	}
	v.text = append(v.text, src[at:v.cut]...)
	return v
}

// Lens is a way to look at a text: one view upon the other.
type Lens struct {
	src   []byte
	chain []*view // the first one's source is src
}

// Of is a text as it is.
func Of(src []byte) *Lens { return &Lens{src: src} }

// Text is the text as it looks.
func (l *Lens) Text() []byte {
	if len(l.chain) == 0 {
		return l.src
	}
	return l.chain[len(l.chain)-1].text
}

// Source is the text that is looked at.
func (l *Lens) Source() []byte { return l.src }

// Range maps a range of Text to the range of Source that it came from.
func (l *Lens) Range(from, to int) (int, int) {
	for i := len(l.chain) - 1; i >= 0; i-- {
		from, to = l.chain[i].sourceRange(from, to)
	}
	return from, min(to, len(l.src))
}

// Cut is where Source ends within an escape, else its length.
func (l *Lens) Cut() int {
	at := len(l.src)
	for i, v := range l.chain {
		end := v.cut
		if i > 0 && end < len(l.chain[i-1].text) {
			end, _ = (&Lens{src: l.src, chain: l.chain[:i]}).Range(end, end+1)
		} else if i > 0 {
			continue
		}
		at = min(at, end)
	}
	return at
}

// undoRepeated undoes an encoding once, twice … while there are signs of it.
func (l *Lens) undoRepeated(times int, undo func(src []byte, final bool) *view, final bool) []*Lens {
	var out []*Lens
	for range times {
		v := undo(l.Text(), final)
		if v == nil {
			break
		}
		l = &Lens{src: l.src, chain: append(l.chain[:len(l.chain):len(l.chain)], v)}
		out = append(out, l)
	}
	return out
}

// Lenses are the ways to look at a text: as it is; without backslash escapes (up to
// three times: JSON in JSON in JSON); without percent-encoding (twice); without HTML
// entities (twice); some of these upon another; and the UTF-16 in it in each of these
// ways. What a text has no sign of is not built. final: nothing follows the text.
func Lenses(src []byte, final bool) []*Lens {
	raw := Of(src)
	out := raw.undoEncodings(final)
	for _, wide := range raw.undoRepeated(1, narrowUTF16, final) {
		out = append(out, wide.undoEncodings(final)...)
	}
	return out
}

func (l *Lens) undoEncodings(final bool) []*Lens {
	escaped := l.undoRepeated(3, undoBackslash, final)
	percent := l.undoRepeated(2, undoPercent, final)
	entities := l.undoRepeated(2, undoEntities, final)
	out := append([]*Lens{l}, escaped...)
	out = append(out, percent...)
	out = append(out, entities...)
	if len(escaped) > 0 {
		out = append(out, escaped[0].undoRepeated(2, undoPercent, final)...)
		out = append(out, escaped[0].undoRepeated(1, undoEntities, final)...)
	}
	if len(percent) > 0 {
		out = append(out, percent[0].undoRepeated(1, undoBackslash, final)...)
	}
	if len(entities) > 0 {
		out = append(out, entities[0].undoRepeated(1, undoBackslash, final)...)
	}
	return out
}
