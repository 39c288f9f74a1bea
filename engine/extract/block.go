package extract

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// maxBlocks is how many parts of an answer are tried; the frontmatter is at its
// beginning.
const maxBlocks = 500

// block is the frontmatter of an answer.
type block struct {
	fields        *item
	line          int // of the answer, where the fields begin
	before, after string
}

// document is an answer by lines.
type document struct {
	lines  []string
	schema *outputSchema
	first  int    // index of the first line that is part of the answer
	inCode []bool // by line: inside a code fence, or one of its two fences
}

// candidate is a part of the document that may be the frontmatter.
type candidate struct {
	open, close int // indices of the lines that hold it; close == len(lines): not closed
	from, to    int // the lines between, without a code fence around them
	indent      int
	wrapped     bool // a line of a code fence stands right before open
	fence       bool // it is a code fence itself
}

// findBlock looks for the frontmatter in the order of how certain it is: "---"
// outside of code, a JSON object that begins the answer, what stands in code.
func findBlock(text string, s *outputSchema) (*block, error) {
	d := newDocument(text, s)
	found := d.dashed()
	var missed error
	for _, outside := range []bool{true, false} {
		for _, c := range found {
			if outside == (d.inCode[c.open] && !d.leads(c)) {
				continue
			}
			b, err := d.read(c)
			if b != nil || errors.Is(err, errOurs) {
				return b, unwrapOurs(err)
			}
			if missed == nil {
				missed = err
			}
		}
		if outside {
			if b, err := d.bareJSON(); b != nil || err != nil {
				return b, err
			}
		}
	}
	if b, err := d.coded(); b != nil || err != nil {
		return b, err
	}
	if missed == nil {
		missed = &Error{Reason: ErrMissing, Detail: "no line of the answer is --- alone"}
	}
	return nil, missed
}

var codeFenceLine = regexp.MustCompile("^ {0,3}(```+|~~~+)[ \t]*([A-Za-z]*)[^`]*$")

// codeFence takes the line of a code fence apart: the whole, its marks, its
// language. It is nil for every other line.
func codeFence(line string) []string {
	if !strings.Contains(line, "```") && !strings.Contains(line, "~~~") { // spares the expression
		return nil
	}
	return codeFenceLine.FindStringSubmatch(line)
}

func isCodeFence(line string) bool { return codeFence(line) != nil }

func newDocument(text string, s *outputSchema) *document {
	d := &document{lines: strings.Split(text, "\n"), schema: s}
	d.first = skipThought(d.lines)
	d.inCode = make([]bool, len(d.lines))
	mark := ""
	for i := d.first; i < len(d.lines); i++ {
		m := codeFence(d.lines[i])
		switch {
		case m != nil && mark == "":
			mark = m[1]
			d.inCode[i] = true
		case m != nil && m[2] == "" && strings.HasPrefix(m[1], mark):
			mark = ""
			d.inCode[i] = true
		default:
			d.inCode[i] = mark != ""
		}
	}
	return d
}

// skipThought is the index of the first line after a leading <think> block: what
// a model tries out there is not its answer.
func skipThought(lines []string) int {
	start := 0
	for start < len(lines) && strings.TrimSpace(lines[start]) == "" {
		start++
	}
	if start == len(lines) {
		return 0
	}
	for _, tag := range []string{"think", "thinking"} {
		if !strings.HasPrefix(strings.TrimSpace(lines[start]), "<"+tag+">") {
			continue
		}
		for i := start; i < len(lines); i++ {
			_, rest, ok := strings.Cut(lines[i], "</"+tag+">")
			if !ok {
				continue
			}
			if rest = strings.TrimSpace(rest); rest == "" {
				return i + 1
			}
			lines[i] = rest // the answer begins behind the tag
			return i
		}
	}
	return 0
}

// dashed are the blocks between lines that are --- alone.
func (d *document) dashed() []candidate {
	var out []candidate
	for i := d.first; i < len(d.lines) && len(out) < maxBlocks; i++ {
		indent, ok := fence(d.lines[i])
		if !ok {
			continue
		}
		c := candidate{open: i, from: i + 1, close: len(d.lines), indent: indent}
		for j := i + 1; j < len(d.lines); j++ {
			if at, ok := fence(d.lines[j]); ok && at == indent {
				c.close = j
				break
			}
		}
		c.to = c.close
		c.wrapped = i > d.first && isCodeFence(d.lines[i-1])
		out = append(out, c)
	}
	return out
}

// fence says whether a line is --- alone, and how far it is indented (as Markdown
// allows: up to three spaces).
func fence(line string) (indent int, ok bool) {
	trimmed := strings.TrimLeft(line, " ")
	indent = len(line) - len(trimmed)
	return indent, indent <= 3 && strings.TrimRight(trimmed, " \t\r") == "---"
}

// leads says whether nothing but the line of a code fence stands before a block.
func (d *document) leads(c candidate) bool {
	if !c.wrapped {
		return false
	}
	return strings.TrimSpace(strings.Join(d.lines[d.first:c.open-1], "")) == ""
}

// errOurs marks an error of a block that is certainly meant as the frontmatter.
var errOurs = errors.New("this block")

type oursError struct{ err error }

func (e *oursError) Error() string        { return e.err.Error() }
func (e *oursError) Is(target error) bool { return target == errOurs }
func (e *oursError) Unwrap() error        { return e.err }

func unwrapOurs(err error) error {
	if o := (*oursError)(nil); errors.As(err, &o) {
		return o.err
	}
	return err
}

// read parses a candidate. The error of one that is not certainly the frontmatter
// is only what to say when there is no other.
func (d *document) read(c candidate) (*block, error) {
	from, to := c.from, c.to
	if !c.fence {
		from, to = stripCode(d.lines, from, to)
	}
	lines, straight := dedent(d.lines[from:to], c.indent)
	ours := straight && d.looksOurs(lines)
	fail := func(reason error, line int, detail string) (*block, error) {
		e := &Error{Reason: reason, Line: line, Detail: detail}
		if ours {
			return nil, &oursError{e}
		}
		return nil, e
	}
	if c.close == len(d.lines) {
		if !ours {
			return fail(ErrMissing, c.open+1, "one line is --- alone; the fields need one before and one after them")
		}
		return fail(ErrUnclosed, c.open+1, "the line --- that ends it is missing; the answer may be cut off")
	}
	text := strings.Join(lines, "\n")
	if !d.schema.mentioned(text) {
		return fail(ErrMissing, c.open+1, "none of the fields between the lines --- is in the schema")
	}
	if len(text) > MaxBlock {
		return fail(ErrTooLarge, c.open+1, fmt.Sprintf("the frontmatter has %d bytes, the limit is %d: put long text under it", len(text), MaxBlock))
	}
	it, err := parseBlock(text)
	if err != nil {
		it, err = d.schema.repair(lines, err)
	}
	if err != nil {
		e := (*syntaxError)(nil)
		if !errors.As(err, &e) {
			e = &syntaxError{detail: err.Error()}
		}
		return fail(ErrSyntax, from+max(e.line, 1), e.detail)
	}
	if it == nil || it.kind != mapping {
		return fail(ErrMissing, c.open+1, "what stands between the lines --- is no list of fields (name: value)")
	}
	if !d.schema.anyField(it) {
		return fail(ErrMissing, c.open+1, "none of the fields between the lines --- is in the schema")
	}
	return d.block(c, it, from+1), nil
}

func (d *document) block(c candidate, it *item, line int) *block {
	before, after := d.lines[d.first:c.open], d.lines[min(c.close+1, len(d.lines)):]
	if c.wrapped {
		before = before[:len(before)-1]
		after = closeCode(after)
	}
	return &block{fields: it, line: line, before: strings.Join(before, "\n"), after: strings.Join(after, "\n")}
}

// looksOurs says whether a line begins like a field of the schema: then a block
// that can't be read is a broken frontmatter and not prose between two rules.
func (d *document) looksOurs(lines []string) bool {
	object := strings.HasPrefix(strings.TrimSpace(strings.Join(lines, "\n")), "{")
	for _, l := range lines {
		if !object && (strings.HasPrefix(l, " ") || strings.HasPrefix(l, "\t")) {
			continue // inside a field
		}
		name, _, ok := strings.Cut(l, ":")
		name = strings.Trim(strings.TrimLeft(strings.TrimSpace(name), "{"), " \t\"'")
		if ok && len(d.schema.fields) > 0 && d.schema.names(name) {
			return true
		}
	}
	return false
}

// mentioned is a quick look before the text is parsed.
func (s *outputSchema) mentioned(text string) bool {
	return len(s.fields) == 0 || slices.ContainsFunc(s.fields, func(name string) bool { return strings.Contains(text, name) })
}

func (s *outputSchema) anyField(it *item) bool {
	for _, k := range it.keys {
		if s.names(k) {
			return true
		}
	}
	return false
}

// dedent takes the indentation of the opening line off every line; straight is
// false where a line has less.
func dedent(lines []string, indent int) (out []string, straight bool) {
	if indent == 0 {
		return lines, true
	}
	out = make([]string, len(lines))
	for i, l := range lines {
		if strings.TrimSpace(l) == "" {
			continue
		}
		if len(l) < indent || strings.TrimSpace(l[:indent]) != "" {
			return lines, false
		}
		out[i] = l[indent:]
	}
	return out, true
}

// stripCode takes off a code fence that stands inside the lines ---.
func stripCode(lines []string, from, to int) (int, int) {
	a, b := from, to-1
	for a < to && strings.TrimSpace(lines[a]) == "" {
		a++
	}
	for b > a && strings.TrimSpace(lines[b]) == "" {
		b--
	}
	if a < b && isCodeFence(lines[a]) && bareFence(lines[b]) {
		return a + 1, b
	}
	return from, to
}

func bareFence(line string) bool {
	m := codeFence(line)
	return m != nil && m[2] == ""
}

// closeCode takes away the end of the code fence that was opened before the
// frontmatter: right after it, or as the last line of the answer.
func closeCode(lines []string) []string {
	fences, last := 0, -1
	for i, l := range lines {
		if strings.TrimSpace(l) == "" {
			continue
		}
		if last < 0 && bareFence(l) {
			return lines[i+1:]
		}
		last = i
		if isCodeFence(l) {
			fences++
		}
	}
	if last >= 0 && fences%2 == 1 && bareFence(lines[last]) {
		return lines[:last]
	}
	return lines
}

// bareJSON reads an answer that begins with a JSON object.
func (d *document) bareJSON() (*block, error) {
	text := strings.Join(d.lines[d.first:], "\n")
	start := len(text) - len(strings.TrimLeft(text, " \t\r\n"))
	if !strings.HasPrefix(text[start:], "{") {
		return nil, nil
	}
	line := d.first + 1 + strings.Count(text[:start], "\n")
	it, rest, err := parseJSON(text[start:])
	if err != nil {
		e := (*syntaxError)(nil)
		if !errors.As(err, &e) {
			e = &syntaxError{detail: err.Error()}
		}
		if !d.looksOurs(d.lines[d.first:]) && !e.final {
			return nil, nil // braces in prose
		}
		return nil, &Error{Reason: ErrSyntax, Line: line + max(e.line-1, 0), Detail: e.detail}
	}
	if !d.schema.anyField(it) {
		return nil, nil
	}
	if size := len(text) - start - len(rest); size > MaxBlock {
		return nil, &Error{Reason: ErrTooLarge, Line: line, Detail: fmt.Sprintf("the JSON object has %d bytes, the limit is %d: put long text under it", size, MaxBlock)}
	}
	return &block{fields: it, line: line, after: rest}, nil
}

// coded reads a code fence that holds nothing but the fields. Two that say
// different things are an error: one of them may be an example.
func (d *document) coded() (*block, error) {
	var found *block
	var source string
	for _, c := range d.fences() {
		b, err := d.read(c)
		if errors.Is(err, errOurs) {
			return nil, unwrapOurs(err)
		}
		if err != nil || !d.complete(b.fields) {
			continue
		}
		text := strings.TrimSpace(strings.Join(d.lines[c.from:c.to], "\n"))
		if found == nil {
			found, source = b, text
			if strings.TrimSpace(b.before) == "" {
				return found, nil
			}
			continue
		}
		if text != source {
			return nil, &Error{Reason: ErrSyntax, Line: b.line, Detail: "two code blocks hold fields, and they differ: write them once, between lines that are ---"}
		}
	}
	return found, nil
}

// complete says whether a mapping has the field that makes it an output: the
// status, or, without one in the schema, any.
func (d *document) complete(it *item) bool {
	key := d.schema.statusKey()
	if key == "" {
		return len(d.schema.fields) > 0
	}
	for _, k := range it.keys {
		if k == key {
			return true
		}
	}
	return false
}

// fences are the code fences whose language may be that of fields.
func (d *document) fences() []candidate {
	var out []candidate
	for i := d.first; i < len(d.lines) && len(out) < maxBlocks; i++ {
		m := codeFence(d.lines[i])
		if m == nil {
			continue
		}
		c := candidate{open: i, from: i + 1, close: len(d.lines), fence: true}
		for j := i + 1; j < len(d.lines); j++ {
			if e := codeFence(d.lines[j]); e != nil && e[2] == "" && strings.HasPrefix(e[1], m[1]) {
				c.close = j
				break
			}
		}
		c.to = c.close
		switch strings.ToLower(m[2]) {
		case "", "yaml", "yml", "json", "frontmatter":
			out = append(out, c)
		}
		i = c.close
	}
	return out
}

var fieldLine = regexp.MustCompile(`^("?'?)([^\s"':]+)("?'?):[ \t]+(\S.*)$`)

// repair quotes the values that break YAML although they have only one reading:
// on one line, of a field that can only be text (`summary: Fixed: the lock`,
// "note: *very* slow"). It returns the error it was given where that doesn't help.
func (s *outputSchema) repair(lines []string, cause error) (*item, error) {
	if e := (*syntaxError)(nil); errors.As(cause, &e) && e.final {
		return nil, cause
	}
	out := append([]string(nil), lines...)
	changed := false
	for i, l := range lines {
		m := fieldLine.FindStringSubmatch(l)
		if m == nil || m[1] != m[3] || i+1 < len(lines) && continues(lines[i+1]) {
			continue
		}
		value := strings.TrimSpace(m[4])
		p, ok := part(s.root, nil, property(m[2]))
		if !ok || allowed(p)&^kindNull != kindString || !loose(value) {
			continue
		}
		if _, err := parseYAML(l); err == nil {
			continue
		}
		out[i] = m[1] + m[2] + m[3] + ": " + quote(value)
		changed = true
	}
	if !changed {
		return nil, cause
	}
	it, err := parseYAML(strings.Join(out, "\n"))
	if err != nil {
		return nil, cause
	}
	return it, nil
}

// continues says whether a line may belong to the value of the line before it.
func continues(line string) bool {
	return strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "- ")
}

// loose says whether a value is text without a second reading: no block, no
// comment, no quotes around the whole.
func loose(value string) bool {
	if strings.HasPrefix(value, "|") || strings.HasPrefix(value, ">") || strings.Contains(value, " #") {
		return false
	}
	first, last := value[0], value[len(value)-1]
	return first != '"' && first != '\'' || first != last
}

// quote writes text as a scalar of YAML in single quotes.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
