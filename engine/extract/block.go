package extract

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/strictyaml"
)

// maxBlocks is how many parts of an answer are tried; the frontmatter is at its
// beginning.
const maxBlocks = 500

// block is the frontmatter of an answer.
type block struct {
	fields        *strictyaml.Node
	line          int // of the answer, where the fields begin
	before, after string
	text          string // the fields as they are written
}

// document is an answer by lines.
type document struct {
	lines  []string
	schema *outputSchema
	first  int          // index of the first line of the answer: not blank, and no thought
	inCode []bool       // by line: inside a code fence, or one of its two fences
	hidden []bool       // by line: inside of what a model thought aloud
	fences []candidate  // the code fences whose language may be that of fields
	missed *OutputError // what to say where there is no block
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
func findBlock(text string, s *outputSchema) (*block, *OutputError) {
	d := newDocument(text, s)
	dashed := d.dashedBlocks()
	for _, look := range []func() (*block, *OutputError){
		func() (*block, *OutputError) { return d.firstBlock(dashed, false) },
		d.bareJSON,
		func() (*block, *OutputError) { return d.firstBlock(dashed, true) },
		d.findCoded, d.proseJSON,
	} {
		if b, err := look(); b != nil || err != nil {
			return b, err
		}
	}
	return nil, cmp.Or(d.missed, d.explainMissing())
}

// firstBlock is the first block that can be read, of those inside or outside of code. One
// that is certainly meant and can't be read is an error.
func (d *document) firstBlock(found []candidate, inCode bool) (*block, *OutputError) {
	for i, c := range found {
		if inCode != (d.inCode[c.open] && !d.isLeading(c)) {
			continue
		}
		b, err := d.parseCandidate(c)
		if b != nil {
			return d.refuseDraft(b, found[i+1:])
		}
		if err.ours {
			return nil, err
		}
		d.missed = cmp.Or(d.missed, err)
	}
	return nil, nil
}

// maxLater is how many further blocks are held against the first.
const maxLater = 20

// refuseDraft refuses a frontmatter that stands after prose when a later one has another
// status: a draft and its correction look like that. At the beginning of an answer
// the first one counts, whatever the report quotes.
func (d *document) refuseDraft(b *block, later []candidate) (*block, *OutputError) {
	status := d.statusOf(b.fields)
	if status == "" || strings.TrimSpace(b.before) == "" {
		return b, nil
	}
	for _, c := range later[:min(len(later), maxLater)] {
		if d.inCode[c.open] {
			continue
		}
		if other, _ := d.parseCandidate(c); other != nil && d.statusOf(other.fields) != "" && d.statusOf(other.fields) != status {
			return nil, &OutputError{Reason: ErrSyntax, Line: other.line, Detail: "two blocks between lines --- hold fields, and they differ: write the fields once, at the beginning"}
		}
	}
	return b, nil
}

// statusOf is the status of a mapping as it was written.
func (d *document) statusOf(it *strictyaml.Node) string {
	if e := it.Get(d.schema.statusKey()); e != nil && e.Val.Kind == strictyaml.Scalar {
		return bareWord(e.Val.Text)
	}
	return ""
}

var codeFenceLine = lazyregexp.New("^ {0,3}(```+|~~~+)[ \t]*([A-Za-z]*)[^`]*$")

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
	d.hidden, d.inCode = hideThoughts(d.lines), make([]bool, len(d.lines))
	for d.first < len(d.lines) && (d.hidden[d.first] || strings.TrimSpace(d.lines[d.first]) == "") {
		d.first++
	}
	for i := d.first; i < len(d.lines); i++ {
		begin := codeFence(d.lines[i])
		if d.hidden[i] || begin == nil {
			continue
		}
		c := candidate{open: i, from: i + 1, to: i + 1, fence: true}
		for d.inCode[i] = true; c.to < len(d.lines); c.to++ {
			d.inCode[c.to] = !d.hidden[c.to]
			if end := codeFence(d.lines[c.to]); end != nil && end[2] == "" && strings.HasPrefix(end[1], begin[1]) && !d.hidden[c.to] {
				break
			}
		}
		c.close, i = c.to, c.to
		if slices.Contains([]string{"", "yaml", "yml", "json", "frontmatter"}, strings.ToLower(begin[2])) && len(d.fences) < maxBlocks {
			d.fences = append(d.fences, c)
		}
	}
	return d
}

// dashedBlocks are the blocks between lines that are --- alone.
func (d *document) dashedBlocks() []candidate {
	var out []candidate
	for i := d.first; i < len(d.lines) && len(out) < maxBlocks; i++ {
		indent, ok := d.dashLine(i)
		if !ok || indent > d.maxIndent() && i != d.first {
			continue
		}
		c := candidate{open: i, from: i + 1, close: len(d.lines), indent: min(indent, d.indentBelow(i))}
		for j := i + 1; j < len(d.lines); j++ {
			if at, ok := d.dashLine(j); ok && at == c.indent {
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

// indentBelow is how far the first line under a fence is indented that is not blank. A
// model that begins its answer with a space has indented the fence alone: then it is
// the fields that say where the block stands.
func (d *document) indentBelow(fence int) int {
	for _, line := range d.lines[fence+1:] {
		if strings.TrimSpace(line) != "" {
			return len(line) - len(strings.TrimLeft(line, " "))
		}
	}
	return 0
}

// maxIndent is how far a fence may be indented that does not begin the answer: as
// Markdown allows, up to three spaces, and further where nothing else is found.
func (d *document) maxIndent() int {
	if d.schema.loose {
		return 16
	}
	return 3
}

// dashLine says whether a line is --- alone, and how far it is indented.
func (d *document) dashLine(i int) (indent int, ok bool) {
	line := d.lines[i]
	if !strings.Contains(line, "---") || d.hidden[i] {
		return 0, false
	}
	trimmed := strings.TrimLeft(line, " ")
	indent = len(line) - len(trimmed)
	return indent, strings.TrimFunc(trimmed, isInvisible) == "---"
}

// isInvisible are the characters that nobody sees beside a line ---.
func isInvisible(r rune) bool {
	switch r {
	case ' ', '\t', '\r', '\u00a0', '\u200b', '\u2060', '\ufeff':
		return true
	}
	return false
}

// isLeading says whether nothing but the line of a code fence stands before a block.
func (d *document) isLeading(c candidate) bool {
	if !c.wrapped {
		return false
	}
	return strings.TrimSpace(strings.Join(d.lines[d.first:c.open-1], "")) == ""
}

// parseCandidate parses a candidate. The error of one that is not certainly the frontmatter
// is only what to say when there is no other.
func (d *document) parseCandidate(c candidate) (*block, *OutputError) {
	from, to := c.from, c.to
	if !c.fence {
		from, to = stripCode(d.lines, from, to)
	}
	lines, straight := dedentLines(d.lines[from:to], c.indent)
	lines = d.schema.tidyLines(lines)
	ours := straight && d.looksOurs(lines)
	fail := func(reason error, line int, detail string) (*block, *OutputError) {
		return nil, &OutputError{Reason: reason, Line: line, Detail: detail, ours: ours}
	}
	if c.close == len(d.lines) {
		if almost := d.explainMissing(); !ours && almost.Line > 0 && almost.Line <= c.open {
			return nil, almost
		}
		if !ours {
			return fail(ErrMissing, c.open+1, "one line is --- alone; the fields need one before and one after them")
		}
		return fail(ErrUnclosed, c.open+1, d.explainUnclosed(c))
	}
	text := strings.Join(lines, "\n")
	if !d.schema.isMentioned(text) {
		return fail(ErrMissing, c.open+1, "none of the fields between the lines --- is in the schema")
	}
	if len(text) > MaxBlock {
		return fail(ErrTooLarge, c.open+1, fmt.Sprintf("the frontmatter has %d bytes, the limit is %d: put long text under it", len(text), MaxBlock))
	}
	it, fault := parseFields(text, from)
	if fault != nil && !fault.Final {
		it, fault = d.schema.repairLines(lines, fault)
	}
	if fault != nil {
		return fail(ErrSyntax, fault.At.Line, fault.Error())
	}
	if it.Kind != strictyaml.Map {
		return fail(ErrMissing, c.open+1, "what stands between the lines --- is no list of fields (name: value)")
	}
	if !d.schema.anyField(it) {
		return fail(ErrMissing, c.open+1, "none of the fields between the lines --- is in the schema")
	}
	return d.newBlock(c, it, from+1), nil
}

func (d *document) newBlock(c candidate, it *strictyaml.Node, line int) *block {
	before, after := d.lines[d.first:c.open], d.lines[min(c.close+1, len(d.lines)):]
	if c.wrapped {
		before = before[:len(before)-1]
		after = closeCode(after)
	}
	before, after = unwrapTags(d.visibleLines(before), after)
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
		if ok && len(d.schema.fields) > 0 && d.schema.hasField(name) {
			return true
		}
	}
	return false
}

// isMentioned is a quick look before the text is parsed.
func (s *outputSchema) isMentioned(text string) bool {
	return len(s.fields) == 0 || s.loose || slices.ContainsFunc(s.fields, func(name string) bool { return strings.Contains(text, name) })
}

func (s *outputSchema) anyField(it *strictyaml.Node) bool {
	return slices.ContainsFunc(it.Entries, func(e strictyaml.Entry) bool { return s.hasField(e.Key) })
}

// dedentLines takes the indentation of the opening line off every line; straight is
// false where a line has less.
func dedentLines(lines []string, indent int) (out []string, straight bool) {
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

// findCoded reads a code fence that holds nothing but the fields.
func (d *document) findCoded() (*block, *OutputError) {
	var found []*block
	for _, c := range d.fences {
		b, err := d.parseCandidate(c)
		switch {
		case err != nil && err.ours:
			return nil, err
		case err != nil || !d.isComplete(b.fields):
		case len(found) == 0 && strings.TrimSpace(b.before) == "":
			return b, nil
		default:
			b.text = strings.TrimSpace(strings.Join(d.lines[c.from:c.to], "\n"))
			found = append(found, b)
		}
	}
	return agreeingBlocks(found, "code blocks")
}

// agreeingBlocks is the first of several blocks. Two that say different things are an error:
// one of them may be an example.
func agreeingBlocks(found []*block, what string) (*block, *OutputError) {
	if len(found) == 0 {
		return nil, nil
	}
	for _, b := range found {
		if b.text != found[0].text {
			return nil, &OutputError{Reason: ErrSyntax, Line: b.line, Detail: "two " + what + " hold fields, and they differ: write the fields once, between lines that are ---"}
		}
	}
	return found[0], nil
}

// isComplete says whether a mapping has the field that makes it an output: the
// status, or, without one in the schema, any.
func (d *document) isComplete(it *strictyaml.Node) bool {
	key := d.schema.statusKey()
	if key == "" {
		return len(d.schema.fields) > 0
	}
	return slices.ContainsFunc(it.Entries, func(e strictyaml.Entry) bool {
		return e.Key == key || d.schema.loose && foldName(e.Key) == foldName(key)
	})
}
