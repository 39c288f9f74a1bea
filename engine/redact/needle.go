package redact

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/united-workforce/uwf/internal/commitmsg"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/markdown"
	"github.com/united-workforce/uwf/internal/text"
)

// Purged stands in the place of a text that a Needle took out.
const Purged = "[purged]"

// ErrNeedle: a text that can't be looked for. The error says why, and never what
// the text is.
var ErrNeedle = errors.New("this text can't be purged")

// leastCut is how much of a text that was cut off counts as a part of it, in
// bytes without white space.
const leastCut = 8

// Needle finds texts wherever and however they stand, to take them out of what
// was written long ago: in every form that a Redactor knows, with other white
// space than they had, and cut off by whoever shortened what held them. It is
// immutable and safe for concurrent use.
type Needle struct {
	r *Redactor
	// heads and tails are the texts without white space, read forwards and
	// backwards.
	heads, tails []piece
}

// NewNeedle makes a Needle of texts. A text that would be found in ordinary words,
// that is too long, or that Purged itself holds is ErrNeedle; num says which one of
// them it is, from 0.
func NewNeedle(texts []string) (n *Needle, num int, err error) {
	n = &Needle{}
	var secrets []Secret
	for i, text := range texts {
		if err := checkNeedle(text); err != nil {
			return nil, i, err
		}
		variants := textVariants(text) // New takes each once
		secrets = append(secrets, lists.Map(variants, func(v string) Secret { return Secret{Name: "purge", Value: v} })...)
		// Messages are cut once they are quiet, and pages escape what was cut.
		quiet := commitmsg.Quiet(text)
		for _, form := range slices.Compact([]string{text, quiet, markdown.Escape(text), markdown.Escape(quiet)}) {
			if flat := withoutSpace([]byte(form)); len(flat) > leastCut {
				n.heads = append(n.heads, newPiece(flat))
				back := slices.Clone(flat)
				slices.Reverse(back)
				n.tails = append(n.tails, newPiece(back))
			}
		}
	}
	if n.r, err = New(Options{Secrets: secrets, NoShapes: true}); err != nil {
		// What New says of a value never quotes it.
		return nil, 0, fmt.Errorf("%w: %w", ErrNeedle, err)
	}
	return n, 0, nil
}

func checkNeedle(text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return fmt.Errorf("%w: it is empty", ErrNeedle)
	case len(text) > maxValue:
		return fmt.Errorf("%w: it has %d bytes, more than %d; give a part of it that stands nowhere else", ErrNeedle, len(text), maxValue)
	case !utf8.ValidString(text):
		return fmt.Errorf("%w: it is not UTF-8, and nothing in the store is anything else", ErrNeedle)
	case isTrivial(strings.TrimSpace(text), DefaultMinLength):
		return fmt.Errorf("%w: it is shorter than %d bytes, or a word that stands everywhere; give more of what is around it", ErrNeedle, DefaultMinLength)
	case strings.Contains(Purged, strings.TrimSpace(text)), strings.Contains(text, Purged), strings.Contains(text, open):
		return fmt.Errorf("%w: it is, or holds, what stands in the place of texts that were taken out", ErrNeedle)
	}
	return nil
}

// textVariants are a text, and what those make of it who write messages and pages:
// white space in one line, no tabs, no control characters.
func textVariants(s string) []string {
	plain := text.Lines(s)
	out := []string{s, plain, strings.ReplaceAll(plain, "\t", "    ")}
	if one := text.Line(plain); !isTrivial(one, DefaultMinLength) {
		out = append(out, one)
	}
	return out
}

// Replace takes the texts out of s: with gives what stands in the place of each
// (nil: Purged). It returns how many there were; 0: s is returned as it is.
func (n *Needle) Replace(s string, with func(found string) string) (string, int) {
	if with == nil {
		with = func(string) string { return Purged }
	}
	b, count := []byte(s), 0
	// What stands left and right of a text that is gone may be one itself.
	for range 8 {
		spans := mergeSpans(append(n.r.findSpans(b), n.findCuts(b)...))
		if len(spans) == 0 {
			break
		}
		count += len(spans)
		was := b
		b = replaceSpans(was, spans, func(x span) string { return with(string(was[x.from:x.to])) })
	}
	if count == 0 {
		return s, 0
	}
	return string(b), count
}

// findCuts finds beginnings of texts where b ends or was cut, and ends of them where
// it begins or goes on after a cut.
func (n *Needle) findCuts(b []byte) []span {
	if len(n.heads) == 0 {
		return nil
	}
	var out []span
	for _, edge := range findEdges(b) {
		for i := range n.heads {
			if from := n.heads[i].matchBefore(b[:edge.to]); from >= 0 {
				out = append(out, span{from: from, to: edge.to, kind: known})
			}
			if to := n.tails[i].matchAfter(b[edge.from:]); to >= 0 {
				out = append(out, span{from: edge.from, to: edge.from + to, kind: known})
			}
		}
	}
	return out
}

// edge is a place where a text may have been cut: what is left of to, and right
// of from.
type edge struct{ to, from int }

// maxEdges bounds the places that are looked at in one text.
const maxEdges = 1000

func findEdges(b []byte) []edge {
	out := []edge{{to: len(b), from: len(b)}, {}}
	for _, mark := range []string{"…", "..."} { // of who shortens a text
		for at := 0; len(out) < maxEdges; {
			i := bytes.Index(b[at:], []byte(mark))
			if i < 0 {
				break
			}
			out = append(out, edge{to: at + i, from: at + i + len(mark)})
			at += i + len(mark)
		}
	}
	return out
}

// piece is a text of which the beginning is looked for at the end of others. fail
// is the table of Knuth, Morris and Pratt: for each length the longest shorter
// beginning that the text up to there ends with.
type piece struct {
	text []byte
	fail []int32
}

func newPiece(text []byte) piece {
	p := piece{text: text, fail: make([]int32, len(text)+1)}
	k := int32(0)
	for i := 1; i < len(text); i++ {
		for k > 0 && text[i] != text[k] {
			k = p.fail[k]
		}
		if text[i] == text[k] {
			k++
		}
		p.fail[i+1] = k
	}
	return p
}

// overlapLength is the length of the longest beginning of the text, but not all of it,
// that bytes end with.
func (p piece) overlapLength(b []byte) int {
	k := int32(0)
	for _, c := range b {
		if int(k) == len(p.text) {
			k = p.fail[k]
		}
		for k > 0 && c != p.text[k] {
			k = p.fail[k]
		}
		if c == p.text[k] {
			k++
		}
	}
	if int(k) == len(p.text) {
		k = p.fail[k]
	}
	return int(k)
}

// matchBefore returns from where on b is a beginning of the text, white space aside;
// -1: it doesn't end so.
func (p piece) matchBefore(b []byte) int { return p.matchEdge(b, len(b)-1, -1) }

// matchAfter returns up to where b is an end of the text, which the piece has
// backwards; -1: it doesn't begin so.
func (p piece) matchAfter(b []byte) int {
	if end := p.matchEdge(b, 0, 1); end >= 0 {
		return end + 1
	}
	return -1
}

// matchEdge is where the beginning of the text begins that is read from b[i] on in steps of
// 1 or -1, the last byte first; -1: there is none that is long enough.
func (p piece) matchEdge(b []byte, i, step int) int {
	var flat []byte
	var at []int
	for ; i >= 0 && i < len(b) && len(flat) < len(p.text)-1; i += step {
		if !isSpace(b[i]) {
			flat, at = append(flat, b[i]), append(at, i)
		}
	}
	slices.Reverse(flat)
	if k := p.overlapLength(flat); k >= leastCut {
		return at[k-1]
	}
	return -1
}

func withoutSpace(b []byte) []byte {
	return slices.DeleteFunc(slices.Clone(b), isSpace)
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }
