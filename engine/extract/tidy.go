package extract

import (
	"fmt"
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
	out := lines
	set := func(i int, l string) {
		if &out[0] == &lines[0] {
			out = append([]string(nil), lines...)
		}
		out[i] = l
	}
	for i, l := range lines {
		if l == "" || l[0] == ' ' || l[0] == '\t' {
			continue
		}
		if htmlComment.MatchString(l) {
			set(i, "")
			continue
		}
		if strings.ContainsAny(l, ":：") && !plainName.MatchString(l) {
			if m := dressedName.FindStringSubmatch(l); m != nil && s.hasField(m[1]) {
				l = m[1] + ": " + m[3]
				set(i, l)
			}
		}
		if !strings.Contains(l, "#") { // spares the rest
			continue
		}
		// A number of an issue would be a comment.
		if m, limited := s.textField(out, i); m != nil && !limited && issueNumber.MatchString(m[4]) && !strings.ContainsRune("\"'[{&*!|>", rune(m[4][0])) {
			set(i, quoteField(m))
		}
	}
	return out
}

// textField takes a line apart that is the whole of a field for text and nothing else; nil:
// it is none. limited: only listed texts fit.
func (s *outputSchema) textField(lines []string, i int) (m []string, limited bool) {
	m = fieldLine.FindStringSubmatch(lines[i])
	if m == nil || m[1] != m[3] || i+1 < len(lines) && isContinued(lines[i+1]) {
		return nil, false
	}
	p, ok := partSchema(s.root, nil, pickProperty(m[2]))
	if !ok || allowedKinds(p)&^kindNull != kindString {
		return nil, false
	}
	_, limited = enumValues(p)
	return m, limited
}

// quoteField is a line that was taken apart, with its value in quotes.
func quoteField(m []string) string {
	return m[1] + m[2] + m[3] + ": " + quoteScalar(strings.TrimSpace(m[4]))
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

var fieldLine = lazyregexp.New(`^("?'?)([^\s"':]+)("?'?):[ \t]+(\S.*)$`)

// repairLines quotes the values that break YAML although they have only one reading:
// on one line, of a field that can only be text (`summary: Fixed: the lock`,
// "note: *very* slow"). It returns the fault it was given where that doesn't help.
func (s *outputSchema) repairLines(lines []string, cause *strictyaml.Fault) (*strictyaml.Node, *strictyaml.Fault) {
	out := append([]string(nil), lines...)
	changed := false
	for i, l := range lines {
		m, _ := s.textField(lines, i)
		if m == nil || !isLoose(strings.TrimSpace(m[4])) {
			continue
		}
		if _, fault := parseYAML(l, 0); fault != nil {
			out[i], changed = quoteField(m), true
		}
	}
	if changed {
		if it, fault := parseYAML(strings.Join(out, "\n"), 0); fault == nil {
			return it, nil
		}
	}
	return nil, cause
}

// isContinued says whether a line may belong to the value of the line before it.
func isContinued(line string) bool {
	return strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "- ")
}

// isLoose says whether a value is text without a second reading: no block, no
// comment, no quotes around the whole.
func isLoose(value string) bool {
	if blockHeader.MatchString(value) || strings.Contains(value, " #") {
		return false
	}
	first, last := value[0], value[len(value)-1]
	return first != '"' && first != '\'' || first != last
}

// quoteScalar writes text as a scalar of YAML in single quotes.
func quoteScalar(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
