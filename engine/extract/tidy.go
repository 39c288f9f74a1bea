package extract

import (
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/strictyaml"
)

var (
	// dressedName is a name at the beginning of a line, with the signs that models
	// put around names and in the place of the colon.
	dressedName = lazyregexp.New("^[*`\"'“”‘’\\\\]*([$A-Za-z_][$A-Za-z0-9_.-]*)[*`\"'“”‘’]*[ \u00a0]*([:：])(?:\\*\\*|__)?[ \u00a0]*(.*)$")
	// plainName is a name as YAML wants it.
	plainName = lazyregexp.New(`^(?:"[^"]*"|'[^']*'|[^\s"'*` + "`" + `“”‘’\\:：]+):(?:[ \t]|$)`)
	// htmlComment is a line that holds nothing else.
	htmlComment = lazyregexp.New(`^\s*<!--.*-->\s*$`)
	// issueNumber is a text that YAML takes for a comment: "fixes #12".
	issueNumber = lazyregexp.New(`(?:^|[ \t])#[0-9]`)
	// blockHeader begins a block scalar.
	blockHeader = lazyregexp.New(`^[|>][-+0-9]{0,2}[ \t]*(?:#.*)?$`)
)

// tidyLines writes the lines of a block as YAML wants them where they have one reading
// only: a known name with quotes, stars, a no-break space or a wide colon around
// it, and numbers of issues that would be comments. Lines keep their places.
func (s *outputSchema) tidyLines(lines []string) []string {
	if len(s.fields) == 0 {
		return lines
	}

	out := s.plainNames(lines)
	if !strings.Contains(strings.Join(lines, "\n"), "#") { // spares the rest
		return out
	}

	for _, t := range s.textLines(out) {
		// A number of an issue would be a comment.
		if !t.limited && issueNumber.MatchString(t.value) && !strings.ContainsRune("\"'[{&*!|>", rune(t.value[0])) {
			out[t.line] = t.head + quoteScalar(strings.TrimSpace(t.value))
		}
	}
	return out
}

// plainNames copies the lines, with plain names in place of dressed ones. If YAML reads all fields
// by itself, it copies them as they are: a line can begin within a text.
func (s *outputSchema) plainNames(lines []string) []string {
	out, changed := slices.Clone(lines), false
	for i, l := range lines {
		if l == "" || l[0] == ' ' || l[0] == '\t' {
			continue
		}
		if htmlComment.MatchString(l) {
			out[i] = ""
			continue
		}
		if strings.ContainsAny(l, ":：") && !plainName.MatchString(l) {
			if m := dressedName.FindStringSubmatch(l); m != nil && s.hasField(m[1]) {
				out[i], changed = m[1]+": "+m[3], true
			}
		}
	}

	if changed && s.readsAll(lines, out) {
		return slices.Clone(lines)
	}
	return out
}

// readsAll reports whether YAML reads the lines as fields that are all in the schema, or can read
// them only as long as they are not changed.
func (s *outputSchema) readsAll(lines, changed []string) bool {
	it, fault := parseYAML(strings.Join(lines, "\n"), 0)
	if fault != nil || it.Kind != strictyaml.Map {
		return false
	}

	unknown := slices.ContainsFunc(it.Entries, func(e strictyaml.Entry) bool { return !s.hasField(e.Key) })
	_, fault = parseYAML(strings.Join(changed, "\n"), 0)
	return !unknown || fault != nil
}

// almostFence is a line that is meant as --- and is not.
var almostFence = lazyregexp.New(`^\s*(?:--|-{4,}|\*{3,}|={3,}|\.{3}|[—–]{1,3}|\+{3}|---\s*[A-Za-z]+)\s*$`)

// maxLooked is how many lines are looked at for a better message.
const maxLooked = 2000

// explainUnclosed says why a block has no end.
func (d *document) explainUnclosed(c candidate) string {
	for i := c.from; i < min(len(d.lines), c.from+maxLooked); i++ {
		if almostFence.MatchString(d.lines[i]) {
			return fmt.Sprintf("no line --- ends it; line %d is %q, and only --- alone counts", i+1, strings.TrimSpace(d.lines[i]))
		}
	}
	return "the line --- that ends it is missing; the answer may be cut off"
}

// explainMissing says why there is no block at all.
func (d *document) explainMissing() *OutputError {
	e := &OutputError{Reason: ErrMissing, Detail: "no line of the answer is --- alone"}
	for i := d.first; i < min(len(d.lines), d.first+maxLooked); i++ {
		if d.inCode[i] || d.hidden[i] {
			continue
		}
		if almostFence.MatchString(d.lines[i]) {
			e.Line, e.Detail = i+1, fmt.Sprintf("the line %q is not ---, and only --- alone counts", strings.TrimSpace(d.lines[i]))
			break
		}
		if m := dressedName.FindStringSubmatch(d.lines[i]); m != nil && m[1] == d.schema.statusKey() {
			e.Line, e.Detail = i+1, fmt.Sprintf("the field %s stands there, but no line --- before it", m[1])
			break
		}
	}
	return e
}

// repairLines quotes the values that break YAML although they have only one reading:
// on one line, of a field or list item that can only be text (`summary: Fixed: the lock`,
// "- `a.go`: new"). It returns the fault it was given where that doesn't help.
func (s *outputSchema) repairLines(lines []string, cause *strictyaml.Fault) (*strictyaml.Node, *strictyaml.Fault) {
	out := append([]string(nil), lines...)
	changed := false
	for _, t := range s.textLines(lines) {
		meant, only := onlyText(strings.TrimSpace(t.value))
		if !only {
			continue
		}
		if _, fault := parseYAML("k: "+t.value, 0); fault != nil {
			out[t.line], changed = t.head+quoteScalar(meant), true
		}
	}
	if changed {
		if it, fault := parseYAML(strings.Join(out, "\n"), 0); fault == nil {
			return it, nil
		}
	}
	return nil, cause
}

var (
	// goodEscape is a backslash in double quotes that YAML reads as an escape.
	goodEscape = lazyregexp.New(`\\[0abtnvfre "/\\N_LPxuU\t]`)
	// quotedWords is text that begins and ends with words in quotes: "a" is now "b".
	quotedWords = lazyregexp.New(`^"[^"\s](?:[^"]*[^"\s])?"(?:[\s,.;:!?)/-][^"]*)?(?:[\s(/-]"[^"\s](?:[^"]*[^"\s])?"(?:[\s,.;:!?)/-][^"]*)?)*$`)
)

// onlyText is the text that a value means; only is false where it has a second reading: a block,
// a comment, quotes around the whole. Between double quotes a backslash is text if YAML
// knows none of the escapes there.
func onlyText(value string) (meant string, only bool) {
	if blockHeader.MatchString(value) || strings.Contains(value, " #") {
		return "", false
	}
	first, last := value[0], value[len(value)-1]
	if first != '"' && first != '\'' || first != last {
		return value, true
	}
	inner := strings.Trim(value, value[:1])
	switch {
	case first == '\'':
		return "", false
	case strings.Contains(inner, `"`):
		return value, quotedWords.MatchString(value)
	}
	return inner, value == `"`+inner+`"` && strings.Contains(inner, `\`) && !goodEscape.MatchString(inner)
}

// quoteScalar writes text as a scalar of YAML in single quotes.
func quoteScalar(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
