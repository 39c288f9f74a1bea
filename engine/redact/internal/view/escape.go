package view

import (
	"bytes"
	"html"
	"strconv"
	"strings"
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

// letters are the escapes of one letter, and controls what they stand for.
const (
	letters  = "nrtbfva"
	controls = "\n\r\t\b\f\v\a"
)

func readBackslash(b []byte) ([]byte, int) {
	if len(b) < 2 {
		return nil, -1
	}
	c := b[1]
	if i := strings.IndexByte(letters, c); i >= 0 {
		return []byte{controls[i]}, 2
	}
	switch {
	case c == 'u' && len(b) > 2 && b[2] == '{':
		return bracedEscape(b)
	case c == 'u':
		return digitsEscape(b, 4)
	case c == 'U': // as Go and Python have it
		return digitsEscape(b, 8)
	case c == 'x':
		return digitsEscape(b, 2)
	case c == '\n': // a line of a shell goes on
		return nil, 2
	case c >= '0' && c <= '3':
		return octalEscape(b)
	}
	return []byte{c}, 2 // \" \\ \/ and what a shell quotes
}

// digitsEscape is \x41, \u0041 or \U00000041.
func digitsEscape(b []byte, size int) ([]byte, int) {
	r, n := hexDigits(b[2:], size)
	switch {
	case n < size && 2+n == len(b):
		return nil, -1
	case n < size:
		return []byte{b[1]}, 2
	case size == 2:
		return []byte{byte(r)}, 4
	case size == 4 && utf16.IsSurrogate(r):
		return surrogateEscape(b, r)
	}
	return utf8.AppendRune(nil, r), 2 + size
}

// surrogateEscape is \ud83d\ude00: half a character, and the other half where it follows.
func surrogateEscape(b []byte, high rune) ([]byte, int) {
	sign, rest := []byte(`\u`), b[6:]
	low, n := rune(0), 0
	if bytes.HasPrefix(rest, sign) {
		low, n = hexDigits(rest[2:], 4)
	}
	switch both := utf16.DecodeRune(high, low); {
	case bytes.HasPrefix(sign, rest), n < 4 && bytes.HasPrefix(rest, sign) && 2+n == len(rest):
		return nil, -1
	case n == 4 && both != utf8.RuneError:
		return utf8.AppendRune(nil, both), 12
	}
	return utf8.AppendRune(nil, high), 6
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
