package edit

import (
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// text is a document with the places of its nodes. Its methods answer ok = false
// where they meet a spelling that they don't know.
type text struct {
	s     string
	lines []int // offset of each line's beginning
	eol   string
	step  int // columns of one level
	root  *yaml.Node
}

func newText(s string, root *yaml.Node) *text {
	t := &text{s: s, lines: []int{0}, eol: "\n", step: 2, root: root}
	for i := range len(s) {
		if s[i] == '\n' {
			t.lines = append(t.lines, i+1)
		}
	}
	if strings.Contains(s, "\r\n") {
		t.eol = "\r\n"
	}
	if root != nil && root.Style&yaml.FlowStyle == 0 {
		for i := 1; i < len(root.Content); i += 2 {
			v := root.Content[i]
			if v.Kind == yaml.MappingNode && v.Style&yaml.FlowStyle == 0 && len(v.Content) > 0 && v.Column > root.Column {
				t.step = v.Content[0].Column - root.Column
				break
			}
		}
	}
	return t
}

// offsetOf is where a node begins.
func (t *text) offsetOf(n *yaml.Node) (int, bool) {
	if n.Line < 1 || n.Line > len(t.lines) {
		return 0, false
	}
	at := t.lines[n.Line-1]
	for range n.Column - 1 {
		if at >= len(t.s) || t.s[at] == '\n' {
			return 0, false
		}
		_, size := utf8.DecodeRuneInString(t.s[at:])
		at += size
	}
	return at, true
}

// spliceChange makes a change in the text.
func (t *text) spliceChange(c Change) (string, bool) {
	if t.root == nil {
		return t.beginDocument(c)
	}
	m := t.root
	var last *yaml.Node // the mapping above m's entry that would be left empty
	lastAt, path := -1, c.Path
	for {
		i, err := findKey(m, path[0])
		if err != nil {
			return "", false
		}
		if i < 0 {
			return t.insertEntry(m, path, c.Value)
		}
		if c.Value == nil && (last == nil || len(m.Content) > 2) {
			last, lastAt = m, i // removing what is below may empty all from here on
		}
		v := m.Content[i+1]
		switch {
		case len(path) == 1 && c.Value == nil:
			return t.cutEntry(last, lastAt)
		case len(path) == 1:
			return t.replaceValue(m, i, c.Value)
		case isEmpty(v):
			return t.fillValue(m, i, path[1:], c.Value)
		}
		m, path = v, path[1:]
	}
}

// beginDocument writes the first entry of a document.
func (t *text) beginDocument(c Change) (string, bool) {
	body, ok := t.blockLines(c.Path, c.Value, 0)
	if !ok || strings.TrimSpace(withoutComments(t.s)) != "" {
		return "", false
	}
	return t.endLine(t.s) + body, true
}

func withoutComments(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		if !strings.HasPrefix(strings.TrimSpace(line), "#") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// endLine ends the last line of a text, if it has one that is open.
func (t *text) endLine(s string) string {
	if s == "" || strings.HasSuffix(s, "\n") {
		return s
	}
	return s + t.eol
}

// blockLines is an entry as lines of a block mapping.
func (t *text) blockLines(path []string, v *yaml.Node, indent int) (string, bool) {
	var b strings.Builder
	for i, key := range path {
		k, ok := writeInline(newScalar(key))
		if !ok {
			return "", false
		}
		b.WriteString(strings.Repeat(" ", indent+i*t.step) + k + ":")
		if i < len(path)-1 {
			b.WriteString(t.eol)
		}
	}
	value, ok := writeBeside(v)
	return b.String() + " " + value + t.eol, ok
}

// flowPair is an entry of a flow mapping.
func flowPair(path []string, v *yaml.Node) (string, bool) {
	value, ok := writeInline(v)
	for i := len(path) - 1; i >= 0 && ok; i-- {
		var k string
		k, ok = writeInline(newScalar(path[i]))
		value = k + ": " + value
		if i > 0 {
			value = "{" + value + "}"
		}
	}
	return value, ok
}

// insertEntry adds an entry at the end of a mapping.
func (t *text) insertEntry(m *yaml.Node, path []string, v *yaml.Node) (string, bool) {
	if m.Style&yaml.FlowStyle != 0 {
		return t.insertFlow(m, path, v)
	}
	if len(m.Content) < 2 || !t.isAlone(m.Content[0]) {
		return "", false
	}
	body, ok := t.blockLines(path, v, m.Content[0].Column-1)
	if !ok {
		return "", false
	}
	at, ok := t.entryEnd(m, len(m.Content)-2)
	if !ok {
		return "", false
	}
	return t.endLine(t.s[:at]) + body + t.s[at:], true
}

func (t *text) insertFlow(m *yaml.Node, path []string, v *yaml.Node) (string, bool) {
	body, ok := flowPair(path, v)
	if !ok {
		return "", false
	}
	start, ok := t.offsetOf(m)
	if !ok {
		return "", false
	}
	end, ok := t.flowEnd(start)
	if !ok {
		return "", false
	}
	if len(m.Content) == 0 {
		return t.s[:start+1] + body + t.s[start+1:], true
	}
	last, ok := t.valueEnd(m.Content[len(m.Content)-1])
	if !ok {
		last = end - 1
	}
	return t.s[:last] + ", " + body + t.s[last:], true
}

// fillValue puts an entry below a key that has no value.
func (t *text) fillValue(m *yaml.Node, i int, path []string, v *yaml.Node) (string, bool) {
	k, old := m.Content[i], m.Content[i+1]
	colon, ok := t.colonAfter(k)
	if !ok {
		return "", false
	}
	after := colon + 1
	if old.Value != "" { // ~ or null, written out
		at, ok := t.offsetOf(old)
		if !ok || at < after || strings.TrimLeft(t.s[after:at], " \t") != "" {
			return "", false
		}
		after = at + len(old.Value)
	}
	if m.Style&yaml.FlowStyle != 0 {
		body, ok := flowPair(path, v)
		return t.s[:colon+1] + " {" + body + "}" + t.s[after:], ok
	}
	body, ok := t.blockLines(path, v, k.Column-1+t.step)
	if !ok || !t.isAlone(k) {
		return "", false
	}
	end := len(t.s)
	if nl := strings.IndexByte(t.s[after:], '\n'); nl >= 0 {
		end = after + nl + 1
	}
	return t.endLine(t.s[:colon+1]+t.s[after:end]) + body + t.s[end:], true
}

// replaceValue writes another value in the place of one.
func (t *text) replaceValue(m *yaml.Node, i int, v *yaml.Node) (string, bool) {
	k, old := m.Content[i], m.Content[i+1]
	render := writeBeside
	if m.Style&yaml.FlowStyle != 0 {
		render = writeInline
	}
	value, ok := render(v)
	if !ok {
		return "", false
	}
	if end, ok := t.valueEnd(old); ok {
		start, ok := t.offsetOf(old)
		return t.s[:start] + value + t.s[end:], ok
	}
	colon, ok := t.colonAfter(k)
	if !ok {
		return "", false
	}
	if isEmpty(old) && old.Value == "" {
		return t.s[:colon+1] + " " + value + t.s[colon+1:], true
	}
	if m.Style&yaml.FlowStyle != 0 {
		return "", false
	}
	// A value of several lines: all of them go, but a remark beside the key stays.
	end, ok := t.entryEnd(m, i)
	if !ok {
		return "", false
	}
	remark := ""
	line, _, _ := strings.Cut(t.s[colon+1:end], "\n")
	if rest := strings.TrimSpace(line); strings.HasPrefix(rest, "#") {
		remark = " " + rest
	}
	tail := ""
	if strings.HasSuffix(t.s[:end], "\n") {
		tail = t.eol
	}
	return t.s[:colon+1] + " " + value + remark + tail + t.s[end:], true
}

// cutEntry takes an entry out.
func (t *text) cutEntry(m *yaml.Node, i int) (string, bool) {
	start, ok := t.offsetOf(m.Content[i])
	if !ok {
		return "", false
	}
	if m.Style&yaml.FlowStyle == 0 {
		end, ok := t.entryEnd(m, i)
		if !ok || !t.isAlone(m.Content[i]) {
			return "", false
		}
		return t.s[:t.lines[m.Content[i].Line-1]] + t.s[end:], true
	}
	end, ok := t.valueEnd(m.Content[i+1])
	if !ok {
		return "", false
	}
	rest := strings.TrimLeft(t.s[end:], " \t")
	switch {
	case strings.HasPrefix(rest, ","):
		return t.s[:start] + strings.TrimLeft(rest[1:], " \t"), true
	case i > 0:
		before := strings.TrimRight(t.s[:start], " \t\r\n")
		if !strings.HasSuffix(before, ",") {
			return "", false
		}
		return before[:len(before)-1] + t.s[end:], true
	}
	return t.s[:start] + t.s[end:], true
}
