package redact

import (
	"bytes"
	"slices"

	"github.com/united-workforce/uwf/engine/redact/internal/literal"
	"github.com/united-workforce/uwf/engine/redact/internal/view"
)

// span is one stretch of the text that must not be seen.
type span struct {
	from, to int
	name     string
	kind     kind
	pattern  bool   // of the options
	sum      string // of a shape; empty where nobody asked for it
}

// kind is how certain it is that something is a secret.
type kind int

const (
	guess kind = iota // what stands around it says so
	token             // it has the look of a token, or of a pattern of the options
	known
)

// findSpans are all secrets in b, sorted, without overlaps.
func (r *Redactor) findSpans(b []byte) []span { return r.findRaw(b, false, nil) }

// findRaw is spans; hold, where given, is called with each position from which the
// text may be the beginning of a secret that goes on after its end. sums: the spans
// have sums.
func (r *Redactor) findRaw(b []byte, sums bool, hold func(at int)) []span {
	if len(b) < literal.KeySize && hold == nil {
		return nil
	}
	f := &finder{r: r, zones: r.findPlaceholders(b), sums: sums, hold: hold}
	for _, l := range view.Lenses(b, hold == nil) {
		f.searchLens(l)
	}
	f.matchPatterns(b)
	return mergeSpans(f.spans)
}

// finder gathers what one search finds.
type finder struct {
	r     *Redactor
	zones []span
	spans []span
	sums  bool
	hold  func(at int)
}

func (f *finder) searchLens(l *view.Lens) {
	text := l.Text()
	// Shapes inside a match of a shape are that match, unless they are more certain.
	var done [known]int
	hit := func(at, end int, lit *literal.Literal) {
		switch {
		case lit.Shape < 0:
			f.addKnown(l, at, end, lit)
		case at >= slices.Max(done[f.r.shapes[lit.Shape].kind:]):
			f.addShape(l, at, lit, &done)
		}
	}
	if f.hold == nil {
		f.r.index.Scan(text, hit, nil)
		return
	}
	lineEnd := bytes.HasSuffix(l.Source(), []byte{'\n'})
	f.r.index.Scan(text, hit, func(at, size int) {
		// A line that is complete is not held for a few characters at its end.
		if !lineEnd || size >= 4 {
			if at > 0 && base64Char(text[at-1]) { // it may hold bits of the value
				at--
			}
			f.holdAt(l, at)
		}
	})
	if n := len(text); n > 0 && !lineEnd && f.r.index.Lefts() && base64Char(text[n-1]) {
		f.holdAt(l, n-1)
	}
	if cut := l.Cut(); cut < len(l.Source()) {
		f.hold(cut)
	}
}

// addKnown takes a form of a secret at text[from:to] of a lens, and the characters beside it
// that hold bits of the value.
func (f *finder) addKnown(l *view.Lens, from, to int, lit *literal.Literal) {
	text := l.Text()
	start := from
	if lit.Left && from > 0 && base64Char(text[from-1]) {
		from--
	}
	if lit.Right {
		next, open := literal.Next(text, to)
		if next < len(text) && base64Char(text[next]) {
			to = next + 1
		}
		if open && f.hold != nil {
			f.holdAt(l, start)
		}
	}
	f.addSpan(l, span{from: from, to: to, name: f.r.secretName(lit.Secret), kind: known})
}

func (f *finder) holdAt(l *view.Lens, at int) {
	from, _ := l.Range(at, at+1)
	f.hold(from)
}

func (f *finder) addShape(l *view.Lens, at int, lit *literal.Literal, done *[known]int) {
	text := l.Text()
	s := f.r.shapes[lit.Shape]
	m := s.match(text, at, len(lit.Text))
	if m.more && f.hold != nil {
		f.holdAt(l, at)
	}
	if m.ok {
		f.addSpan(l, span{from: m.from, to: m.to, name: s.name, kind: s.kind})
		done[s.kind] = m.to
	}
}

// matchPatterns applies the patterns of the options, to the text as it is.
func (f *finder) matchPatterns(b []byte) {
	for _, p := range f.r.patterns {
		for _, m := range p.re.FindAllSubmatchIndex(b, -1) {
			from, to := m[2*p.group], m[2*p.group+1]
			if from < 0 { // the group "secret" took no part
				from, to = m[0], m[1]
			}
			f.addSpan(view.Of(b), span{from: from, to: to, name: p.name, kind: token, pattern: true})
		}
	}
}

func (f *finder) addSpan(l *view.Lens, s span) {
	if s.to <= s.from {
		return
	}
	if text := l.Text()[s.from:s.to]; f.sums && s.kind != known || len(f.r.allow.sums) > 0 {
		s.sum = sumOf(text)
	}
	if f.r.allow.isAllowed(string(l.Text()[s.from:s.to]), s.sum) {
		return
	}
	s.from, s.to = l.Range(s.from, s.to)
	if s.kind != known && f.inZone(s.from, s.to) {
		return
	}
	f.spans = append(f.spans, s)
}

func (f *finder) inZone(from, to int) bool {
	n, found := slices.BinarySearchFunc(f.zones, from, func(z span, at int) int { return z.from - at })
	if !found {
		n--
	}
	return n >= 0 && f.zones[n].from <= from && to <= f.zones[n].to
}

// findPlaceholders are the placeholders that this Redactor writes: they hold no secret.
func (r *Redactor) findPlaceholders(b []byte) []span {
	var out []span
	for at := 0; ; {
		i := bytes.Index(b[at:], []byte(open))
		if i < 0 {
			return out
		}
		from := at + i
		at = from + len(open)
		end := bytes.IndexByte(b[at:min(len(b), at+70)], ']')
		if end >= 0 && r.names[string(b[at:at+end])] {
			at += end + 1
			out = append(out, span{from: from, to: at})
		}
	}
}

func (r *Redactor) secretName(n int) string {
	if n < len(r.secretNames) {
		return r.secretNames[n]
	}
	return "" // while names are being chosen
}

// mergeSpans sorts spans and joins those that overlap; the most certain gives its name.
func mergeSpans(spans []span) []span {
	slices.SortStableFunc(spans, func(a, b span) int {
		if a.from != b.from {
			return a.from - b.from
		}
		return b.to - a.to
	})
	var out []span
	for _, s := range spans {
		last := len(out) - 1
		if last < 0 || s.from >= out[last].to {
			out = append(out, s)
			continue
		}
		s.from, s.to = out[last].from, max(out[last].to, s.to)
		if s.kind > out[last].kind {
			out[last] = s
		}
		out[last].to = s.to
	}
	return out
}

func base64Char(c byte) bool { return dashChar(c) || c == '+' || c == '/' }
