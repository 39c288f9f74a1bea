package edit

import (
	"strings"

	"gopkg.in/yaml.v3"
)

// isAlone says whether a key is the first thing on its line.
func (t *text) isAlone(k *yaml.Node) bool {
	at, ok := t.offsetOf(k)
	return ok && strings.TrimLeft(t.s[t.lines[k.Line-1]:at], " ") == ""
}

// colonAfter is the offset of the colon after a key.
func (t *text) colonAfter(k *yaml.Node) (int, bool) {
	end, ok := t.valueEnd(k)
	if !ok {
		return 0, false
	}
	for end < len(t.s) && (t.s[end] == ' ' || t.s[end] == '\t') {
		end++
	}
	return end, end < len(t.s) && t.s[end] == ':'
}

// entryEnd is the offset after the last line of an entry of a block mapping: before
// blank lines and before comments that are not indented more than its key.
func (t *text) entryEnd(m *yaml.Node, i int) (int, bool) {
	k, v := m.Content[i], m.Content[i+1]
	indent := k.Column - 1
	dashes := v.Kind == yaml.SequenceNode && v.Style&yaml.FlowStyle == 0
	end := k.Line // lines before it belong to the entry
	for n := k.Line; n < len(t.lines); n++ {
		line := t.lineAt(n)
		content := strings.TrimLeft(line, " ")
		depth := len(line) - len(content)
		content = strings.TrimRight(content, " \t\r\n")
		switch {
		case content == "":
			continue
		case depth > indent, dashes && depth == indent && (content == "-" || strings.HasPrefix(content, "- ")):
			end = n + 1
			continue
		case strings.HasPrefix(content, "#"):
			continue
		}
		break // a line that is not the entry's: whatever follows isn't either
	}
	if end >= len(t.lines) {
		return len(t.s), true
	}
	return t.lines[end], true
}

func (t *text) lineAt(n int) string {
	if n+1 < len(t.lines) {
		return t.s[t.lines[n]:t.lines[n+1]]
	}
	return t.s[t.lines[n]:]
}

// valueEnd is the offset after a value that is written in flow style, quotes, or
// plainly on one line.
func (t *text) valueEnd(n *yaml.Node) (int, bool) {
	at, ok := t.offsetOf(n)
	if !ok || at >= len(t.s) || isSpecial(n) {
		return 0, false
	}
	switch {
	case n.Kind != yaml.ScalarNode:
		if n.Style&yaml.FlowStyle == 0 {
			return 0, false
		}
		return t.flowEnd(at)
	case n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		return t.quoteEnd(at)
	case n.Style != 0 || n.Value == "" || !strings.HasPrefix(t.s[at:], n.Value):
		return 0, false
	}
	return at + len(n.Value), true
}

// quoteEnd is the offset after a quoted text.
func (t *text) quoteEnd(at int) (int, bool) {
	quote := t.s[at]
	if quote != '"' && quote != '\'' {
		return 0, false
	}
	for i := at + 1; i < len(t.s); i++ {
		switch {
		case t.s[i] == '\\' && quote == '"':
			i++
		case t.s[i] == quote && quote == '\'' && i+1 < len(t.s) && t.s[i+1] == '\'':
			i++
		case t.s[i] == quote:
			return i + 1, true
		}
	}
	return 0, false
}

// flowEnd is the offset after a collection in brackets or braces.
func (t *text) flowEnd(at int) (int, bool) {
	if at >= len(t.s) || t.s[at] != '{' && t.s[at] != '[' {
		return 0, false
	}
	depth := 0
	for i := at; i < len(t.s); i++ {
		before := t.s[i-min(i, 1)]
		switch c := t.s[i]; {
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return i + 1, true
			}
		case (c == '"' || c == '\'') && strings.IndexByte(" \t\r\n,:{[", before) >= 0:
			end, ok := t.quoteEnd(i)
			if !ok {
				return 0, false
			}
			i = end - 1
		case c == '#' && strings.IndexByte(" \t\r\n", before) >= 0:
			nl := strings.IndexByte(t.s[i:], '\n')
			if nl < 0 {
				return 0, false
			}
			i += nl
		}
	}
	return 0, false
}
