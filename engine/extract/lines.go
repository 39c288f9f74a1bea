package extract

import (
	"strings"

	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/strictyaml"
)

// textLine is the only line of a value that can only be text: of a field, or of an item of a
// list, at any depth.
type textLine struct {
	line        int
	head, value string // of the line: what stands before the value, and the value
	limited     bool   // only listed texts fit
}

// level is a map or list of a block, whose lines begin at the same column.
type level struct {
	column int
	schema map[string]any
	list   bool
}

// lineWalk follows the lines of a block with the schema at hand, as far as these have a plain
// form: what it can't follow it passes over.
type lineWalk struct {
	levels []level
	opened *level // what a key without a value on its line begins; its column is the key's
	below  int    // lines beyond this column are text; -1: none are
	out    []textLine
}

// fieldLine is a field at the beginning of a line.
var fieldLine = lazyregexp.New(`^("?'?)([^\s"':]+)("?'?):(?:[ \t]+(\S.*))?$`)

// textLines finds the lines of a block that hold one text each.
func (s *outputSchema) textLines(lines []string) []textLine {
	w := &lineWalk{levels: []level{{schema: s.root}}, below: -1}
	for i, l := range lines {
		rest := strings.TrimLeft(l, " ")
		column := len(l) - len(rest)
		if rest == "" || rest[0] == '\t' || w.below >= 0 && column > w.below {
			continue
		}
		next := ""
		if i+1 < len(lines) {
			next = lines[i+1]
		}
		w.below = -1
		if w.enter(column, strings.HasPrefix(rest, "- ")) {
			w.readLine(i, l, column, next)
		}
	}
	return w.out
}

// enter goes to the level of a line; false: it belongs to none that is known.
func (w *lineWalk) enter(column int, item bool) bool {
	if o := w.opened; o != nil && (column > o.column || item && column == o.column) {
		w.levels = append(w.levels, level{column, o.schema, item})
	}
	w.opened = nil
	for n := len(w.levels) - 1; n > 0 && (w.levels[n].column > column || w.levels[n].list && w.levels[n].column == column && !item); n-- {
		w.levels = w.levels[:n]
	}
	at := w.levels[len(w.levels)-1]
	return at.column == column && at.list == item
}

// readLine reads the line i, l, from a column on.
func (w *lineWalk) readLine(i int, l string, column int, next string) {
	at := w.levels[len(w.levels)-1]
	for at.list {
		rest := strings.TrimLeft(l[column+1:], " ")
		p, ok := partSchema(at.schema, nil, pickItems)
		if !ok || rest == "" {
			return
		}
		w.note(textLine{line: i, head: l[:len(l)-len(rest)], value: rest}, p, indentOf(next) > column)
		if isText(p) {
			w.skipBlock(rest, column)
			return
		}
		column = len(l) - len(rest)
		at = level{column, p, strings.HasPrefix(rest, "- ")}
		w.levels = append(w.levels, at)
	}
	m := fieldLine.FindStringSubmatch(l[column:])
	if m == nil || m[1] != m[3] {
		return
	}
	p, ok := partSchema(at.schema, nil, pickProperty(m[2]))
	switch {
	case ok && m[4] == "":
		w.opened = &level{column: column, schema: p}
	case ok:
		continued := indentOf(next) > column || indentOf(next) == column && strings.HasPrefix(strings.TrimLeft(next, " "), "- ")
		w.note(textLine{line: i, head: l[:len(l)-len(m[4])], value: m[4]}, p, continued)
	}
	w.skipBlock(m[4], column)
}

// skipBlock passes over the lines of a block scalar.
func (w *lineWalk) skipBlock(value string, column int) {
	if blockHeader.MatchString(value) {
		w.below = column
	}
}

// note adds a line, if its value is on it as a whole and can only be text.
func (w *lineWalk) note(t textLine, schema map[string]any, continued bool) {
	if continued || !isText(schema) {
		return
	}
	_, t.limited = enumValues(schema)
	w.out = append(w.out, t)
}

func isText(schema map[string]any) bool { return allowedKinds(schema)&^kindNull == kindString }

// indentOf is the column at which a line begins; -1: it is blank.
func indentOf(line string) int {
	rest := strings.TrimLeft(line, " \t")
	if rest == "" {
		return -1
	}
	return len(line) - len(rest)
}

// findLost finds a text that YAML took for the name of a field, which the schema does not have:
// {summary: parses a, b and c}. It would be lost.
func findLost(it *strictyaml.Node, schema map[string]any) *strictyaml.Entry {
	for _, item := range it.Items {
		if p, ok := partSchema(schema, it, pickItems); ok {
			if lost := findLost(item, p); lost != nil {
				return lost
			}
		}
	}
	for i, e := range it.Entries {
		p, ok := partSchema(schema, it, pickProperty(e.Key))
		switch {
		case ok:
			if lost := findLost(e.Val, p); lost != nil {
				return lost
			}
		case it.Flow && e.Val.IsNull() && e.Val.Text == "" && declaresFields(schema):
			return &it.Entries[i]
		}
	}
	return nil
}
