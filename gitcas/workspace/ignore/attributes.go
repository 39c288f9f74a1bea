package ignore

import (
	"slices"
	"strings"
)

// Attributes are those that hold in one folder: the lines of its own .gitattributes, and
// those of the folders above it. The macros are those of the top folder, as in git.
type Attributes struct {
	source
	above *Attributes
	lines []attributeLine

	// wanted are the names that a look-up answers.
	wanted []string
	macros map[string][]assignment
}

// attributeLine is one line of a .gitattributes: what matches the pattern has the values.
type attributeLine struct {
	pattern pattern
	values  []assignment
}

type assignment struct{ name, value string }

// The values that an attribute has without a text: "name" and "-name".
const (
	Set   = "set"
	Unset = "unset"
)

// unspecified is the value of "!name", which hides what other lines say.
const unspecified = "!"

const (
	// maxAttributeLine is git's: it leaves out longer lines.
	maxAttributeLine = 2048

	// lineSteps and assignmentSteps are what a kept line and a tried assignment cost. A line takes
	// some hundred bytes of memory, and a hostile folder may have any number of them.
	lineSteps       = 500
	assignmentSteps = 20
)

// NewAttributes returns attributes that say nothing. All that are made of them with Folder
// answer for the wanted names, and may take so many steps together, as those of [New] may.
func NewAttributes(steps int64, wanted ...string) *Attributes {
	binary := []assignment{{"diff", Unset}, {"merge", Unset}, {"text", Unset}}
	return &Attributes{
		source: newSource(&work{left: steps}, ""), wanted: wanted,
		macros: map[string][]assignment{"binary": binary},
	}
}

// Folder returns the attributes for the folder at path (slashes, empty for the top), given
// the content of its .gitattributes. An error is a *CostError.
func (a *Attributes) Folder(path string, content []byte) (*Attributes, error) {
	sub := &Attributes{source: newSource(a.work, path), above: a, wanted: a.wanted, macros: a.macros}
	if err := sub.countSteps(int64(len(content))); err != nil {
		return nil, err
	}

	text := strings.TrimPrefix(string(content), "\ufeff")
	for line := range strings.SplitSeq(text, "\n") {
		line, _, _ = strings.Cut(line, "\x00")
		line = strings.TrimLeft(line, blanks)
		if line == "" || line[0] == '#' || len(line) >= maxAttributeLine {
			continue
		}
		sub.count++
		if err := sub.countSteps(lineSteps); err != nil {
			return nil, err
		}
		sub.addLine(line, path == "")
	}
	return sub, nil
}

// blanks part the words of a line.
const blanks = " \t\r"

// addLine takes a line with a pattern, or at the top one that defines a macro. As git does, it
// leaves out lines with a negated pattern, or with a name that no attribute may have.
func (a *Attributes) addLine(line string, top bool) {
	name, rest := cutPattern(line)
	macro, isMacro := strings.CutPrefix(name, "[attr]")
	isMacro = isMacro && macro != "" // else it is a pattern
	values, ok := parseValues(rest)
	switch {
	case !ok:
	case !isMacro:
		a.addPattern(name, values)
	case top && isAttribute(macro):
		a.macros[macro] = values
	}
}

// addPattern adds a line, unless its pattern matches no file.
func (a *Attributes) addPattern(name string, values []assignment) {
	if strings.HasPrefix(name, "!") || strings.HasSuffix(name, "/") {
		return
	}
	one := Rules{plain: map[string]rank{}}
	one.addLine(name)
	for _, p := range one.wild {
		a.lines = append(a.lines, attributeLine{p, values})
	}
	for text := range one.plain {
		head, nested := strings.CutPrefix(text, "/")
		a.lines = append(a.lines, attributeLine{pattern{head: head, nested: nested}, values})
	}
}

// cutPattern parts a line into its pattern, which may be quoted, and the rest.
func cutPattern(line string) (name, rest string) {
	if name, rest, ok := unquoteName(line); ok {
		return name, rest
	}
	return cutWord(line)
}

// cutWord parts a line at its first blank.
func cutWord(line string) (word, rest string) {
	end := strings.IndexAny(line, blanks)
	if end < 0 {
		return line, ""
	}
	return line[:end], line[end:]
}

// unquoteName reads a name in quotes, with the escapes of git's unquote_c_style.
func unquoteName(line string) (name, rest string, ok bool) {
	if line == "" || line[0] != '"' {
		return "", "", false
	}
	var out []byte
	for i := 1; i < len(line); i++ {
		switch line[i] {
		case '"':
			return string(out), line[i+1:], true
		case '\\':
			c, length := unescapeByte(line[i+1:])
			if length == 0 {
				return "", "", false
			}
			out = append(out, c)
			i += length
		default:
			out = append(out, line[i])
		}
	}
	return "", "", false
}

// unescapeByte reads what stands behind a backslash: a letter, or three octal digits. A length of
// 0 means that it is neither.
func unescapeByte(text string) (c byte, length int) {
	const letters, bytes = `abfnrtv\"`, "\a\b\f\n\r\t\v\\\""
	if text == "" {
		return 0, 0
	}
	if i := strings.IndexByte(letters, text[0]); i >= 0 {
		return bytes[i], 1
	}
	if len(text) < 3 || text[0] > '3' {
		return 0, 0
	}
	for _, digit := range []byte(text[:3]) {
		if digit < '0' || digit > '7' {
			return 0, 0
		}
		c = c<<3 | (digit - '0')
	}
	return c, 3
}

// parseValues reads "name", "-name", "!name" and "name=value". It is not ok if a name is
// one that git gives no attribute.
func parseValues(text string) (values []assignment, ok bool) {
	words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(blanks, r) })
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		switch {
		case strings.HasPrefix(name, "-"):
			name, value = name[1:], Unset
		case strings.HasPrefix(name, "!"):
			name, value = name[1:], unspecified
		case name == word:
			value = Set
		}
		if !isAttribute(name) {
			return nil, false
		}
		values = append(values, assignment{name, value})
	}
	return values, true
}

// isAttribute reports whether an attribute may have that name.
func isAttribute(name string) bool {
	const letters = "-._0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return name != "" && name[0] != '-' && strings.Trim(name, letters) == ""
}

// Lookup returns the wanted attributes of the file at path (from the top, with slashes):
// [Set], [Unset] or a text. It leaves out those that no line gives the file. An error is a
// *CostError.
func (a *Attributes) Lookup(path string) (map[string]string, error) {
	found := map[string]string{}
	for in := a; in != nil; in = in.above {
		name, ok := strings.CutPrefix(path, in.prefix)
		if !ok {
			continue
		}
		if err := in.matchLines(name, found); err != nil {
			return nil, err
		}
	}
	for name, value := range found {
		if value == unspecified || !slices.Contains(a.wanted, name) {
			delete(found, name)
		}
	}
	return found, nil
}

// matchLines adds to found what the lines of one file say, the last one first.
func (a *Attributes) matchLines(name string, found map[string]string) error {
	base := name[strings.LastIndexByte(name, '/')+1:]
	for i := len(a.lines) - 1; i >= 0; i-- {
		p := &a.lines[i].pattern
		text := base
		if p.nested {
			text = name
		}
		ok, steps := p.matchText(text, a.work.left)
		if err := a.countSteps(steps); err != nil {
			return err
		}
		if !ok {
			continue
		}
		if err := a.addValues(found, a.lines[i].values); err != nil {
			return err
		}
	}
	return nil
}

// addValues adds the values that are not known yet, and what macros among them stand for. Each
// macro is expanded once for a file, so macros that name one another come to an end.
func (a *Attributes) addValues(found map[string]string, values []assignment) error {
	if err := a.countSteps(assignmentSteps * int64(len(values))); err != nil {
		return err
	}
	for _, v := range slices.Backward(values) {
		macro, isMacro := a.macros[v.name]
		if !isMacro && !slices.Contains(a.wanted, v.name) {
			continue
		}
		if _, known := found[v.name]; known {
			continue
		}
		found[v.name] = v.value
		if !isMacro || v.value != Set {
			continue
		}
		if err := a.addValues(found, macro); err != nil {
			return err
		}
	}
	return nil
}
