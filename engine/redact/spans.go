package redact

import (
	"bytes"
	"slices"
)

// span is one stretch of the text that must not be seen.
type span struct {
	from, to int
	name     string
	known    bool
}

// spans are all secrets in b, sorted, without overlaps.
func (r *Redactor) spans(b []byte) []span { return r.raw(b, nil) }

// raw is spans; hold, where given, is called with each position from which the
// text may be the beginning of a secret that goes on after its end.
func (r *Redactor) raw(b []byte, hold func(at int)) []span {
	if len(b) < keySize && hold == nil {
		return nil
	}
	f := &finder{r: r, zones: r.zones(b), hold: hold}
	for _, l := range lenses(b) {
		f.look(l)
	}
	f.match(b)
	return merge(f.spans)
}

// finder gathers what one search finds.
type finder struct {
	r     *Redactor
	zones []span
	spans []span
	hold  func(at int)
}

func (f *finder) look(l *lens) {
	text := l.text()
	done := 0 // shapes inside a match of a shape are that match
	hit := func(at int, lit *literal) {
		if lit.shape >= 0 {
			if !l.wraps && at >= done {
				done = f.shape(l, at, lit, done)
			}
			return
		}
		if l.wraps && len(lit.text) < minWrapped {
			return
		}
		from, to := at, at+len(lit.text)
		if lit.left && from > 0 && base64Char(text[from-1]) {
			from--
		}
		if lit.right && to < len(text) && base64Char(text[to]) {
			to++
		} else if lit.right && to == len(text) && f.hold != nil {
			f.holdAt(l, from)
		}
		f.add(l, from, to, f.r.secretName(lit.secret), true)
	}
	if f.hold == nil {
		f.r.index.scan(text, hit, nil)
		return
	}
	lineEnd := l.wraps || bytes.HasSuffix(l.src, []byte{'\n'})
	f.r.index.scan(text, hit, func(at int) {
		// A line that is complete is not held for a few characters at its end.
		if !lineEnd || len(text)-at >= 4 {
			if at > 0 && base64Char(text[at-1]) { // it may hold bits of the value
				at--
			}
			f.holdAt(l, at)
		}
	})
	if n := len(text); n > 0 && !lineEnd && f.r.index.lefts && base64Char(text[n-1]) {
		f.holdAt(l, n-1)
	}
	if cut := l.cut(); cut < len(l.src) {
		f.hold(cut)
	}
}

func (f *finder) holdAt(l *lens, at int) {
	from, _ := l.source(at, at+1)
	f.hold(from)
}

func (f *finder) shape(l *lens, at int, lit *literal, done int) int {
	text := l.text()
	s := f.r.shapes[lit.shape]
	m := s.match(text, at, len(lit.text))
	if m.more && f.hold != nil {
		f.holdAt(l, at)
	}
	if !m.ok {
		return done
	}
	f.add(l, m.from, m.to, s.name, false)
	return m.to
}

// match applies the patterns of the options, to the text as it is.
func (f *finder) match(b []byte) {
	for _, p := range f.r.patterns {
		for _, m := range p.re.FindAllSubmatchIndex(b, -1) {
			from, to := m[2*p.group], m[2*p.group+1]
			if from < 0 { // the group "secret" took no part
				from, to = m[0], m[1]
			}
			f.add(&lens{src: b}, from, to, p.name, false)
		}
	}
}

func (f *finder) add(l *lens, from, to int, name string, known bool) {
	if to <= from {
		return
	}
	if len(f.r.allow) > 0 && f.r.allow[string(l.text()[from:to])] {
		return
	}
	from, to = l.source(from, to)
	if !known && f.inZone(from, to) {
		return
	}
	f.spans = append(f.spans, span{from: from, to: to, name: name, known: known})
}

func (f *finder) inZone(from, to int) bool {
	n, found := slices.BinarySearchFunc(f.zones, from, func(z span, at int) int { return z.from - at })
	if !found {
		n--
	}
	return n >= 0 && f.zones[n].from <= from && to <= f.zones[n].to
}

// zones are the placeholders that this Redactor writes: they hold no secret.
func (r *Redactor) zones(b []byte) []span {
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
	if n < len(r.index.names) {
		return r.index.names[n]
	}
	return "" // while names are being chosen
}

// merge sorts spans and joins those that overlap; a known secret gives its name.
func merge(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int {
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
		out[last].to = max(out[last].to, s.to)
		if s.known && !out[last].known {
			out[last].name, out[last].known = s.name, true
		}
	}
	return out
}

func base64Char(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		c == '+' || c == '/' || c == '-' || c == '_'
}
