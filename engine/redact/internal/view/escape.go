package view

import (
	"bytes"
	"html"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// undoBackslash undoes the escapes of JSON, of C-like strings and of shells.
func undoBackslash(src []byte, final bool) *view {
	return newView(src, '\\', final, func(b []byte, final bool) ([]byte, int) {
		out, n := readBackslash(b)
		if n < 0 && final {
			return b[:1], 1
		}
		return out, n
	})
}

func readBackslash(b []byte) ([]byte, int) {
	if len(b) < 2 {
		return nil, -1
	}
	switch c := b[1]; c {
	case 'u':
		if len(b) > 2 && b[2] == '{' {
			return bracedEscape(b)
		}
		return unicodeEscape(b)
	case 'U':
		return wideEscape(b)
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
	case 'v':
		return []byte{'\v'}, 2
	case 'a':
		return []byte{'\a'}, 2
	case '\n': // a line of a shell goes on
		return nil, 2
	case '0', '1', '2', '3':
		return octalEscape(b)
	default: // \" \\ \/ and what a shell quotes
		return []byte{c}, 2
	}
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

// bracedEscape is \u{41}, as JavaScript and Rust have it.
func bracedEscape(b []byte) ([]byte, int) {
	r, n := hexDigits(b[3:], 6)
	switch {
	case 3+n == len(b):
		return nil, -1
	case n == 0 || b[3+n] != '}':
		return []byte{b[1]}, 2
	}
	return utf8.AppendRune(nil, r), 4 + n
}

// wideEscape is \U00000041, as Go and Python have it.
func wideEscape(b []byte) ([]byte, int) {
	r, n := hexDigits(b[2:], 8)
	if n < 8 {
		return literalBackslash(b, 2+n)
	}
	return utf8.AppendRune(nil, r), 10
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
		d := hexDigit(b[n])
		if d < 0 {
			break
		}
		value = value<<4 | rune(d)
		n++
	}
	return value, n
}

func hexDigit(c byte) int {
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

// undoPercent undoes percent-encoding, in either case of its digits.
func undoPercent(src []byte, final bool) *view {
	return newView(src, '%', final, func(b []byte, final bool) ([]byte, int) {
		r, n := hexDigits(b[1:], 2)
		if n == 2 {
			return []byte{byte(r)}, 3
		}
		if 1+n == len(b) && !final {
			return nil, -1
		}
		return nil, 0
	})
}

// maxEntity is the length of the longest entity that is undone, in bytes. A number may
// have any number of zeros before it.
const maxEntity = 40

// undoEntities undoes HTML's entities: numbers, in either base, with or without the
// semicolon at their end, and names with one.
func undoEntities(src []byte, final bool) *view { return newView(src, '&', final, readEntity) }

func readEntity(b []byte, final bool) ([]byte, int) {
	window := b[:min(len(b), maxEntity)]
	n, class := 1, isNameChar
	if bytes.HasPrefix(window[1:], []byte("#")) {
		n, class = 2, isDigit
		if len(window) > 2 && (window[2] == 'x' || window[2] == 'X') {
			n, class = 3, isHexDigit
		}
	}
	start := n
	for n < len(window) && class(window[n]) {
		n++
	}
	switch {
	case n == len(b) && !final && n < maxEntity:
		return nil, -1
	case n == start:
		return nil, 0
	case n < len(window) && window[n] == ';':
		n++
	case start == 1: // a name without an end
		return nil, 0
	}
	if start == 1 {
		text := html.UnescapeString(string(window[:n]))
		if text == string(window[:n]) {
			return nil, 0
		}
		return []byte(text), n
	}
	base := map[int]int{2: 10, 3: 16}[start]
	value, err := strconv.ParseUint(string(bytes.TrimSuffix(window[start:n], []byte(";"))), base, 31)
	if err != nil {
		return nil, 0
	}
	return utf8.AppendRune(nil, rune(value)), n
}

func isDigit(c byte) bool    { return c >= '0' && c <= '9' }
func isHexDigit(c byte) bool { return hexDigit(c) >= 0 }
func isNameChar(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'z' }

// leastWide is how many zero bytes in a row, each after another one that is none, make
// a text UTF-16.
const leastWide = 3

// narrowUTF16 is the UTF-16 in a text, of either byte order, as far as it is Latin-1, in
// UTF-8. What holds no zero byte is left out of the view.
func narrowUTF16(src []byte, final bool) *view {
	v := &view{cut: len(src)}
	for at := 0; ; {
		i := bytes.IndexByte(src[at:], 0)
		if i < 0 {
			break
		}
		i += at
		end := i
		for end+2 < len(src) && src[end+2] == 0 && src[end+1] != 0 {
			end += 2
		}
		at = end + 1
		if (end-i)/2+1 >= leastWide || !final && end+2 >= len(src) {
			from := i - 1
			if i == 0 || src[i-1] == 0 {
				from = i + 1
			}
			v.addWide(src, from, min(end+2, len(src)))
		}
	}
	if len(v.edits) == 0 {
		return nil
	}
	return v
}

// addWide adds the characters of src[from:to], which are every second byte: those
// that are not zero. The byte before the first zero is one in UTF-16LE, the byte after
// the last one in UTF-16BE.
func (v *view) addWide(src []byte, from, to int) {
	if len(v.text) > 0 {
		v.text = append(v.text, '\n') // two texts
	}
	for i := from; i < to; i += 2 {
		last := len(v.edits) - 1
		size := min(2, to-i)
		switch {
		case src[i] >= utf8.RuneSelf:
			v.edits = append(v.edits, edit{out: len(v.text), outLen: 2, src: i, srcLen: size})
			v.text = utf8.AppendRune(v.text, rune(src[i]))
			continue
		case i > from && v.edits[last].each > 0:
			v.edits[last].outLen++
			v.edits[last].srcLen += size
		default:
			v.edits = append(v.edits, edit{out: len(v.text), outLen: 1, src: i, srcLen: size, each: 2})
		}
		v.text = append(v.text, src[i])
	}
}
