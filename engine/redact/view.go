package redact

import (
	"bytes"
	"sort"
	"unicode/utf16"
	"unicode/utf8"
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
// source at src. Between edits both are the same.
type edit struct{ out, outLen, src, srcLen int }

// source maps a range of the view to the range of the source it came from.
func (v *view) source(from, to int) (int, int) {
	start, _ := v.at(from)
	_, end := v.at(to - 1)
	return start, end
}

func (v *view) at(out int) (from, to int) {
	n := sort.Search(len(v.edits), func(i int) bool { return v.edits[i].out > out }) - 1
	if n < 0 {
		return out, out + 1
	}
	e := v.edits[n]
	if out < e.out+e.outLen {
		return e.src, e.src + e.srcLen
	}
	src := e.src + e.srcLen + out - e.out - e.outLen
	return src, src + 1
}

// decode builds a view: step looks at an escape at src[i:] and returns what it
// stands for and how long it is; 0: it is none; -1: the source ends within it.
func decode(src []byte, trigger string, step func(b []byte) (out []byte, n int)) *view {
	v := &view{text: make([]byte, 0, len(src)), cut: len(src)}
	at := 0
	for at < len(src) {
		i := indexAny(src[at:], trigger)
		if i < 0 {
			break
		}
		i += at
		out, n := step(src[i:])
		if n < 0 {
			v.cut = i
			break
		}
		if n == 0 {
			v.text = append(v.text, src[at:i+1]...)
			at = i + 1
			continue
		}
		v.text = append(v.text, src[at:i]...)
		v.edits = append(v.edits, edit{out: len(v.text), outLen: len(out), src: i, srcLen: n})
		v.text = append(v.text, out...)
		at = i + n
	}
	v.text = append(v.text, src[min(at, v.cut):v.cut]...)
	return v
}

// unbackslash undoes the escapes of JSON, of C-like strings and of shells.
func unbackslash(src []byte) *view {
	return decode(src, `\`, func(b []byte) ([]byte, int) {
		if len(b) < 2 {
			return nil, -1
		}
		switch c := b[1]; c {
		case 'u':
			return unicodeEscape(b)
		case 'x':
			return hexEscape(b, 2)
		case 'n':
			return []byte{'\n'}, 2
		case 'r':
			return []byte{'\r'}, 2
		case 't':
			return []byte{'\t'}, 2
		case 'b':
			return []byte{'\b'}, 2
		case 'f':
			return []byte{'\f'}, 2
		case '\n': // a line of a shell goes on
			return nil, 2
		case '0', '1', '2', '3':
			return octalEscape(b)
		default: // \" \\ \/ and what a shell quotes
			return []byte{c}, 2
		}
	})
}

func unicodeEscape(b []byte) ([]byte, int) {
	r, n := hexDigits(b[2:], 4)
	if n < 4 {
		return literalBackslash(b, 2+n)
	}
	end := 6
	if utf16.IsSurrogate(r) {
		if len(b) < 12 && bytes.HasPrefix([]byte(`\u`), b[6:min(8, len(b))]) {
			return nil, -1
		}
		if len(b) >= 8 && b[6] == '\\' && b[7] == 'u' {
			low, n := hexDigits(b[8:], 4)
			if n < 4 && 8+n == len(b) {
				return nil, -1
			}
			if both := utf16.DecodeRune(r, low); n == 4 && both != utf8.RuneError {
				r, end = both, 12
			}
		}
	}
	return utf8.AppendRune(nil, r), end
}

func hexEscape(b []byte, size int) ([]byte, int) {
	r, n := hexDigits(b[2:], size)
	if n < size {
		return literalBackslash(b, 2+n)
	}
	return []byte{byte(r)}, 2 + size
}

func octalEscape(b []byte) ([]byte, int) {
	value := 0
	for i := 1; i < 4; i++ {
		if i == len(b) {
			return nil, -1
		}
		if b[i] < '0' || b[i] > '7' {
			return []byte{b[1]}, 2
		}
		value = value*8 + int(b[i]-'0')
	}
	return []byte{byte(value)}, 4
}

// literalBackslash is for an escape that stops after n bytes without being one.
func literalBackslash(b []byte, n int) ([]byte, int) {
	if n >= len(b) {
		return nil, -1
	}
	return []byte{b[1]}, 2
}

// hexDigits reads up to size digits and says how many there were.
func hexDigits(b []byte, size int) (value rune, n int) {
	for n < size && n < len(b) {
		d := unhex(b[n])
		if d < 0 {
			break
		}
		value = value<<4 | rune(d)
		n++
	}
	return value, n
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// unpercent undoes percent-encoding, in either case of its digits.
func unpercent(src []byte) *view {
	return decode(src, "%", func(b []byte) ([]byte, int) {
		r, n := hexDigits(b[1:], 2)
		if n == 2 {
			return []byte{byte(r)}, 3
		}
		if 1+n == len(b) {
			return nil, -1
		}
		return nil, 0
	})
}

// unwrap takes out line breaks and the indentation after them.
func unwrap(src []byte) *view {
	return decode(src, "\r\n", func(b []byte) ([]byte, int) {
		n := 1
		for n < len(b) && (b[n] == '\r' || b[n] == '\n' || b[n] == ' ' || b[n] == '\t') {
			n++
		}
		return nil, n
	})
}

// lens is a way to look at a text: one view upon the other.
type lens struct {
	src   []byte
	chain []*view // the first one's source is src
	wraps bool    // line breaks are taken out: shapes would join lines
}

func (l *lens) text() []byte {
	if len(l.chain) == 0 {
		return l.src
	}
	return l.chain[len(l.chain)-1].text
}

func (l *lens) source(from, to int) (int, int) {
	for i := len(l.chain) - 1; i >= 0; i-- {
		from, to = l.chain[i].source(from, to)
	}
	return from, to
}

// cut is where the source ends within an escape, else its length.
func (l *lens) cut() int {
	at := len(l.src)
	for i, v := range l.chain {
		end := v.cut
		if i > 0 && end < len(l.chain[i-1].text) {
			end, _ = (&lens{src: l.src, chain: l.chain[:i]}).source(end, end+1)
		} else if i > 0 {
			continue
		}
		at = min(at, end)
	}
	return at
}

func (l *lens) with(v *view) *lens {
	return &lens{src: l.src, chain: append(l.chain[:len(l.chain):len(l.chain)], v)}
}

// lenses are the ways to look at a text: as it is, without backslash escapes (up
// to three times: JSON in JSON in JSON), without percent-encoding (twice), both,
// and each of these without line breaks. What a text has no sign of is not built.
func lenses(src []byte) []*lens {
	raw := &lens{src: src}
	escaped := raw.repeat(`\`, unbackslash, 3)
	percent := raw.repeat("%", unpercent, 2)
	out := append([]*lens{raw}, escaped...)
	out = append(out, percent...)
	if len(escaped) > 0 {
		out = append(out, escaped[0].repeat("%", unpercent, 2)...)
	}
	if len(percent) > 0 {
		out = append(out, percent[0].repeat(`\`, unbackslash, 1)...)
	}
	for _, l := range out[:len(out):len(out)] {
		if bytes.ContainsAny(l.text(), "\n\r") {
			wrapped := l.with(unwrap(l.text()))
			wrapped.wraps = true
			out = append(out, wrapped)
		}
	}
	return out
}

// repeat undoes an encoding once, twice … while there are signs of it.
func (l *lens) repeat(trigger string, undo func([]byte) *view, times int) []*lens {
	var out []*lens
	for range times {
		if bytes.IndexByte(l.text(), trigger[0]) < 0 {
			break
		}
		l = l.with(undo(l.text()))
		out = append(out, l)
	}
	return out
}

func indexAny(b []byte, chars string) int {
	if len(chars) == 1 {
		return bytes.IndexByte(b, chars[0])
	}
	return bytes.IndexAny(b, chars)
}
