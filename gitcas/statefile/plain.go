package statefile

import (
	"slices"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/internal/strictyaml"
)

// parsePlain reads the narrow YAML that this package writes: block mappings and
// sequences, plain words and double-quoted strings on one line. Anything else is
// not an error but not ok: the caller then asks a real YAML parser. Whatever it
// accepts, yaml.v3 reads in the same way (a fuzz test says so).
func parsePlain(text string, line int) (value, bool) {
	p := plain{text: text, line: line - 1}
	if !p.nextLine() || p.indent != 0 {
		return value{}, false
	}
	v, ok := p.readBlock(0, 0)
	if !ok || !p.end {
		return value{}, false
	}
	return v, true
}

// plain holds one line at a time.
type plain struct {
	text   string
	line   int
	indent int
	rest   string // the line after its indentation
	end    bool
}

// nextLine goes to the next line that is neither blank nor a comment.
func (p *plain) nextLine() bool {
	for p.text != "" {
		line, rest, _ := strings.Cut(p.text, "\n")
		p.text = rest
		p.line++
		body := strings.TrimLeft(line, " ")
		if body == "" || body[0] == '#' {
			continue
		}
		p.indent, p.rest = len(line)-len(body), body
		return true
	}
	p.end = true
	return false
}

// readBlock reads the mapping or sequence whose lines stand at indent.
func (p *plain) readBlock(indent, depth int) (value, bool) {
	if depth > strictyaml.MaxDepth {
		return value{}, false
	}
	if strings.HasPrefix(p.rest, "- ") {
		return p.readList(indent, depth)
	}
	v := value{line: p.line, kind: mapping, pairs: make([]pair, 0, pairsAt(depth))}
	for !p.end && p.indent == indent {
		key, rest, ok := plainKey(p.rest)
		if !ok || hasKey(v.pairs, key) {
			return value{}, false
		}
		item, ok := p.readAfterKey(rest, indent, depth)
		if !ok {
			return value{}, false
		}
		v.pairs = append(v.pairs, pair{key, item})
	}
	return v, p.end || p.indent < indent
}

// readAfterKey reads what follows a key: a scalar on the same line, or a block below.
func (p *plain) readAfterKey(rest string, indent, depth int) (value, bool) {
	line := p.line
	if rest != "" {
		text, str, ok := plainScalar(rest)
		p.nextLine()
		return value{line: line, text: text, str: str}, ok && (p.end || p.indent <= indent)
	}
	if !p.nextLine() || p.indent <= indent {
		return value{line: line}, true // null
	}
	return p.readBlock(p.indent, depth+1)
}

func (p *plain) readList(indent, depth int) (value, bool) {
	v := value{line: p.line, kind: sequence}
	for !p.end && p.indent == indent && strings.HasPrefix(p.rest, "- ") {
		line := p.line
		// An item is a block of its own, two columns further in.
		p.indent, p.rest = indent+2, p.rest[2:]
		if strings.HasPrefix(p.rest, " ") || strings.HasPrefix(p.rest, "-") {
			return value{}, false
		}
		if text, str, ok := plainScalar(p.rest); ok {
			v.items = append(v.items, value{line: line, text: text, str: str})
			if p.nextLine() && p.indent > indent {
				return value{}, false
			}
			continue
		}
		item, ok := p.readBlock(indent+2, depth+1)
		if !ok {
			return value{}, false
		}
		v.items = append(v.items, item)
	}
	return v, p.end || p.indent < indent
}

func hasKey(pairs []pair, key string) bool {
	return slices.ContainsFunc(pairs, func(p pair) bool { return p.key == key })
}

// plainKey reads `word:` or `"text":` at the beginning of a line, and what
// follows it without the space between.
func plainKey(s string) (key, rest string, ok bool) {
	if strings.HasPrefix(s, `"`) {
		end := quotedEnd(s)
		if end < 0 {
			return "", "", false
		}
		if key, ok = unquoteText(s[:end]); !ok {
			return "", "", false
		}
		s = s[end:]
	} else {
		end := strings.IndexByte(s, ':')
		if end < 0 || !isWord(s[:end]) {
			return "", "", false
		}
		key, s = s[:end], s[end:]
	}
	switch {
	case key == "" || len(key) > maxPlainKey: // the whole reader says what is wrong with that
		return "", "", false
	case s == ":":
		return key, "", true
	case strings.HasPrefix(s, ": ") && len(s) > 2 && s[2] != ' ':
		return key, s[2:], true
	}
	return "", "", false
}

// maxPlainKey stays far below the 1,024 characters that YAML allows for a key on
// one line.
const maxPlainKey = 200

// plainScalar reads a whole rest of a line: a word, or a double-quoted string.
func plainScalar(s string) (text string, str, ok bool) {
	if strings.HasPrefix(s, `"`) {
		if quotedEnd(s) != len(s) {
			return "", false, false
		}
		text, ok = unquoteText(s)
		return text, true, ok
	}
	return s, false, isWord(s)
}

// isWord reports whether s means the same plain and alone in every YAML: no
// spaces and no indicators.
func isWord(s string) bool {
	if s == "" || !isAlnum(s[0]) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !isAlnum(c) && c != '/' && c != '.' && c != '-' && c != '@' && c != '+' {
			return false
		}
	}
	return true
}

func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '_'
}

// quotedEnd is the offset behind the closing quote of the string that s begins
// with, or -1.
func quotedEnd(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

// unquoteText reads a double-quoted string with the escapes that quote writes.
func unquoteText(s string) (string, bool) {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return "", false
	}
	s = s[1 : len(s)-1]
	if strings.ContainsFunc(s, mustEscape) {
		return "", false
	}
	if strings.IndexByte(s, '\\') < 0 {
		return s, true
	}
	var b strings.Builder
	for s != "" {
		i := strings.IndexByte(s, '\\')
		if i < 0 {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:i])
		if s = s[i+1:]; s == "" {
			return "", false
		}
		c := s[0]
		s = s[1:]
		switch c {
		case '"', '\\':
			b.WriteByte(c)
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case 'u':
			if len(s) < 4 {
				return "", false
			}
			n, err := strconv.ParseUint(s[:4], 16, 16)
			if err != nil || n >= 0xd800 && n < 0xe000 {
				return "", false
			}
			b.WriteRune(rune(n))
			s = s[4:]
		default:
			return "", false
		}
	}
	return b.String(), true
}

// mustEscape reports whether r is never written as it is: control characters, what
// some YAML readers take for a line break, the byte order mark, non-characters.
func mustEscape(r rune) bool {
	switch {
	case r < ' ', r >= 0x7f && r < 0xa0, r == 0x2028, r == 0x2029, r == 0xfeff, r == 0xfffe, r == 0xffff:
		return true
	}
	return false
}

// quoteText writes s as a double-quoted string on one line.
func quoteText(s string) string {
	var b strings.Builder
	b.Grow(len(s) + 2)
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case mustEscape(r):
			b.WriteString(`\u`)
			hex := strconv.FormatUint(uint64(r), 16)
			b.WriteString("0000"[len(hex):])
			b.WriteString(hex)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// writeWord writes text plain where every YAML reads it as that text, else quoted.
func writeWord(s string) string {
	if !isWord(s) || !isLetter(s[0]) {
		return quoteText(s)
	}
	switch strings.ToLower(s) {
	case "null", "true", "false", "yes", "no", "on", "off", "y", "n":
		return quoteText(s)
	}
	return s
}

func isLetter(c byte) bool { return c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' }

// writeCode writes a hash, a thread id or a commit id. They are words that begin with
// a digit; only those that a YAML reader takes for a number are quoted.
func writeCode(s string) string {
	if !isWord(s) {
		return quoteText(s)
	}
	digits := strings.Count(s, "e") + strings.Count(s, "E") // one E makes a float
	if digits > 1 {
		return s
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && c != 'e' && c != 'E' {
			return s
		}
	}
	return quoteText(s)
}

// pairsAt is about how many keys a mapping has at that depth: the file's chunk
// one, an entry some, what is in an entry two.
func pairsAt(depth int) int {
	switch depth {
	case 0:
		return 1
	case 1:
		return 6
	}
	return 2
}
