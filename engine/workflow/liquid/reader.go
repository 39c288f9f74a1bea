package liquid

import (
	"fmt"
	"slices"
	"strings"

	"github.com/osteele/liquid/expressions"
	"github.com/osteele/liquid/parser"

	"github.com/united-workforce/uwf/internal/lazyregexp"
)

// Item is a tag that uses names or sets one. Body holds the items inside a block, nil:
// it is none; where it repeats (a loop), Sets is known inside it only.
type Item struct {
	Reads []Read
	// Sets is the name that the tag sets: of assign, capture, for.
	Sets string
	// From is the one name whose value Sets gets, or is an item of (for); nil where
	// it is something else.
	From *Read
	Loop bool
	Body []Item
}

// Read is one use of a name.
type Read struct {
	// Path is the name and the names after its dots; "" stands for an item of a list.
	Path []string
	// Open says that more follows that only the output decides.
	Open bool
	// Asked says that the tag asks whether there is a value, or does without one: if, case,
	// for and assign, and what stands before the filter default.
	Asked bool
	// Offset and Length are in bytes within the template.
	Offset, Length int
}

// String is the name as written, without what only the output decides.
func (r Read) String() string {
	var b strings.Builder
	for i, p := range r.Path {
		switch {
		case p == "":
			b.WriteString("[]")
		case i > 0:
			b.WriteString("." + p)
		default:
			b.WriteString(p)
		}
	}
	return b.String()
}

// reader turns the library's tokens into items, and finds what is wrong, with its
// place. The library knows lines at best, and takes a tag that never ends for text.
type reader struct {
	tokens []parser.Token
	at     int // the next token
	offset int // of it
}

// block is an open block.
type block struct {
	name           string
	offset, length int
	items          []Item
	item           Item // the block's own, of for
	otherwise      bool // its else was there
}

// maxNesting is how deep blocks may lie in one another.
const maxNesting = 32

func blockTags() []string {
	return []string{"capture", "case", "comment", "for", "if", "raw", "unless"}
}

// clauseTags are the tags that divide a block, and the blocks that they divide.
func clauseTags() map[string][]string {
	return map[string][]string{
		"else": {"case", "for", "if", "unless"}, "elsif": {"if", "unless"}, "when": {"case"},
	}
}

func (r *reader) readItems() ([]Item, *SyntaxError) {
	stack := []block{{}}
	for ; r.at < len(r.tokens); r.at++ {
		t := r.tokens[r.at]
		bad := r.readToken(t, &stack)
		if bad != nil {
			return nil, bad
		}
		r.offset += len(t.Source)
	}
	if open := stack[len(stack)-1]; open.name != "" {
		return nil, &SyntaxError{Offset: open.offset, Length: open.length,
			Message: fmt.Sprintf("{%% %s %%} is never closed", open.name), Fix: fmt.Sprintf("close it with {%% end%s %%}", open.name)}
	}
	return stack[0].items, nil
}

func (r *reader) newError(t parser.Token, fix, format string, args ...any) *SyntaxError {
	return &SyntaxError{Offset: r.offset, Length: len(t.Source), Message: fmt.Sprintf(format, args...), Fix: fix}
}

func (r *reader) readToken(t parser.Token, stack *[]block) *SyntaxError {
	top := &(*stack)[len(*stack)-1]
	if top.name == "raw" || top.name == "comment" {
		if t.Type == parser.TagTokenType && t.Name == "end"+top.name {
			*stack = (*stack)[:len(*stack)-1]
		}
		return nil
	}
	if t.Type != parser.TextTokenType && len(t.Source) > maxTag {
		return r.newError(t, "split it", "a tag has %d bytes; the limit is %d", len(t.Source), maxTag)
	}
	switch t.Type {
	case parser.TextTokenType:
		return r.checkText(t)
	case parser.ObjTokenType:
		if bad := r.findMerged(t); bad != nil {
			return bad
		}
		item, bad := r.readOutput(t)
		top.items = append(top.items, item)
		return bad
	case parser.TagTokenType:
		if bad := r.findMerged(t); bad != nil {
			return bad
		}
		return r.readTag(t, stack)
	}
	return nil
}

var tagBegin = lazyregexp.New(`\{[{%]`)

// endOf is what closes the tag that a text begins with.
func endOf(tag string) string {
	if tag[1] == '%' {
		return "%}"
	}
	return "}}"
}

// findMerged finds a tag that ends only where a later one does.
func (r *reader) findMerged(t parser.Token) *SyntaxError {
	inner, end := t.Source[2:], endOf(t.Source)
	if strings.HasPrefix(inner, end) {
		return &SyntaxError{Offset: r.offset, Length: 4, Message: "an empty tag " + t.Source[:4], Fix: "write a name between the braces"}
	}
	next := strings.Index(inner, t.Source[:2])
	if next < 0 || strings.ContainsAny(inner[:next], `"'`) {
		return nil
	}
	return &SyntaxError{Offset: r.offset, Length: len(strings.TrimRight(t.Source[:next+2], " ")),
		Message: fmt.Sprintf("a %s is never closed", t.Source[:2]), Fix: "close it with " + end}
}

// checkText must hold no tag that the library did not see.
func (r *reader) checkText(t parser.Token) *SyntaxError {
	begin := tagBegin.FindString(t.Source)
	if begin == "" {
		return nil
	}
	i := strings.Index(t.Source, begin)
	line, _, _ := strings.Cut(t.Source[i:], "\n")
	bad := &SyntaxError{Offset: r.offset + i, Length: max(len(strings.TrimRight(line, " \t\r")), 1)}
	end := endOf(t.Source[i:])
	switch inner, _, closed := strings.Cut(t.Source[i+2:], end); {
	case closed && strings.TrimSpace(strings.Trim(inner, "-")) == "":
		bad.Message, bad.Fix = fmt.Sprintf("an empty tag %s%s", t.Source[i:i+2], end), "write a name between the braces"
		bad.Length = len(inner) + 4
	case closed && strings.Contains(inner, "\n"):
		bad.Message, bad.Fix = "a tag runs over the end of its line", "write it on one line"
	case closed:
		bad.Message, bad.Fix = fmt.Sprintf("%s%s%s is no tag", t.Source[i:i+2], inner, end), "write {{ name }}, or text between {% raw %} and {% endraw %}"
		bad.Length = len(inner) + 4
	default:
		bad.Message, bad.Fix = fmt.Sprintf("a %s is never closed", t.Source[i:i+2]), "close it with "+end+", or write text between {% raw %} and {% endraw %}"
	}
	return bad
}

// argsAt is where a tag's arguments begin.
func (r *reader) argsAt(t parser.Token) int {
	from := 2
	if t.Name != "" {
		from = strings.Index(t.Source, t.Name) + len(t.Name)
	}
	return r.offset + from + max(strings.Index(t.Source[from:], t.Args), 0)
}

func (r *reader) readOutput(t parser.Token) (Item, *SyntaxError) {
	reads, bad := r.readExpression(t, t.Args, r.argsAt(t))
	return Item{Reads: reads}, bad
}

// readExpression reads the names of an expression and checks that it is one.
func (r *reader) readExpression(t parser.Token, text string, at int) ([]Read, *SyntaxError) {
	reads, bad := readNames(text, at, false)
	if bad != nil {
		return nil, bad
	}
	if err := tryParse(text); err != nil {
		return nil, r.checkExpression(t, text)
	}
	return reads, nil
}

func (r *reader) checkExpression(t parser.Token, text string) *SyntaxError {
	name := strings.TrimSpace(strings.Trim(text, "{}&#^/ "))
	switch {
	case strings.HasPrefix(text, "{"), strings.HasPrefix(text, "&"):
		return r.newError(t, "write {{ "+name+" }}: nothing is escaped", "%s is mustache, and the definition's version has Liquid", t.Source)
	case strings.HasPrefix(text, "#"), strings.HasPrefix(text, "^"), strings.HasPrefix(text, "/"):
		return r.newError(t, "write {% if "+name+" %} … {% endif %}, or {% for item in "+name+" %} … {% endfor %}", "%s is mustache, and the definition's version has Liquid", t.Source)
	case strings.Contains(text, "$"):
		return r.newError(t, "leave the $ field out: an edge is for one status, which you can write as text", "%s: a name in Liquid can't have a $", t.Source)
	case strings.Contains(text, "allow_false:"):
		return r.newError(t, "write {% if name == nil %} … {% else %}{{ name }}{% endif %}", "%s: allow_false is not supported", t.Source)
	case strings.ContainsAny(text, "&?!") && !strings.Contains(text, "!="):
		return r.newError(t, "write `and`, `or`, ==, !=", "%s: not a Liquid expression", t.Source)
	}
	return r.newError(t, "write a name, such as {{ list.first.title | upcase }}", "%s: not a Liquid expression", t.Source)
}

// tryParse is the library's parser without its panics.
func tryParse(text string) error {
	return recoverPanic(func() error { _, err := expressions.Parse(text); return err })
}

func tryStatement(selector, text string) error {
	return recoverPanic(func() error { _, err := expressions.ParseStatement(selector, text); return err })
}

func recoverPanic(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	return f()
}

func (r *reader) readTag(t parser.Token, stack *[]block) *SyntaxError {
	top := &(*stack)[len(*stack)-1]
	switch {
	case slices.Contains(blockTags(), t.Name):
		return r.openBlock(t, stack)
	case strings.HasPrefix(t.Name, "end") && slices.Contains(blockTags(), t.Name[3:]):
		if top.name != t.Name[3:] {
			return r.newError(t, "close the innermost block first, or remove it", "{%% %s %%} closes no block that is open here", t.Name)
		}
		closed := *top
		*stack = (*stack)[:len(*stack)-1]
		outer := &(*stack)[len(*stack)-1]
		closed.item.Body = closed.items
		outer.items = append(outer.items, closed.item)
		return nil
	case clauseTags()[t.Name] != nil:
		if !slices.Contains(clauseTags()[t.Name], top.name) {
			return r.newError(t, "move it into its block", "{%% %s %%} must stand directly inside %s", t.Name, strings.Join(clauseTags()[t.Name], ", "))
		}
		return r.readClause(t, top)
	}
	return r.readSimple(t, *stack)
}

func (r *reader) openBlock(t parser.Token, stack *[]block) *SyntaxError {
	b := block{name: t.Name, offset: r.offset, length: len(t.Source), items: []Item{}}
	if len(*stack) > maxNesting {
		return r.newError(t, "move inner blocks out of the others", "blocks nest deeper than %d levels", maxNesting)
	}
	var bad *SyntaxError
	switch t.Name {
	case "if", "unless", "case":
		b.item.Reads, bad = r.readExpression(t, t.Args, r.argsAt(t))
		b.item.Reads = markAsked(b.item.Reads)
	case "capture":
		if b.item.Sets = t.Args; !isName(t.Args) {
			bad = r.newError(t, "write {% capture name %}", "%s: capture takes one name", t.Source)
		}
	case "for":
		bad = r.readLoop(t, &b.item)
	}
	*stack = append(*stack, b)
	return bad
}

func (r *reader) readLoop(t parser.Token, item *Item) *SyntaxError {
	const fix = "write {% for item in list %}"
	name, rest, _ := strings.Cut(strings.TrimSpace(t.Args), " ")
	rest, in := strings.CutPrefix(strings.TrimLeft(rest, " \t"), "in ")
	if !in || !isName(name) || tryStatement(expressions.LoopStatementSelector, t.Args) != nil {
		return r.newError(t, fix, "%s: not a loop", t.Source)
	}
	at := r.argsAt(t) + len(t.Args) - len(rest)
	isRange := strings.HasPrefix(strings.TrimSpace(rest), "(") && !strings.Contains(rest, "|")
	reads, bad := readNames(rest, at, isRange)
	if bad != nil {
		return bad
	}
	item.Reads, item.Sets, item.Loop = markAsked(reads), name, true
	if len(reads) > 0 && !strings.ContainsAny(rest, "|(") && reads[0].Offset == at+len(rest)-len(strings.TrimLeft(rest, " \t")) {
		item.From = &reads[0]
	}
	return nil
}

func (r *reader) readClause(t parser.Token, top *block) *SyntaxError {
	if top.otherwise {
		return r.newError(t, "move it before {% else %}", "{%% %s %%} after {%% else %%} is never reached", t.Name)
	}
	switch t.Name {
	case "else":
		top.otherwise = true
		if t.Args != "" {
			return r.newError(t, "write {% else %}, or {% elsif … %}", "%s: else takes nothing", t.Source)
		}
		return nil
	case "elsif":
		reads, bad := r.readExpression(t, t.Args, r.argsAt(t))
		top.items = append(top.items, Item{Reads: markAsked(reads)})
		return bad
	}
	reads, bad := readNames(t.Args, r.argsAt(t), false)
	if bad == nil && tryStatement(expressions.WhenStatementSelector, t.Args) != nil {
		bad = r.newError(t, "write {% when \"a\", \"b\" %}", "%s: not a list of values", t.Source)
	}
	top.items = append(top.items, Item{Reads: markAsked(reads)})
	return bad
}

// markAsked marks what a tag reads as asked for.
func markAsked(reads []Read) []Read {
	for i := range reads {
		reads[i].Asked = true
	}
	return reads
}

func (r *reader) readSimple(t parser.Token, stack []block) *SyntaxError {
	top := &stack[len(stack)-1]
	switch t.Name {
	case "assign":
		name, value, _ := strings.Cut(t.Args, "=")
		name = strings.TrimSpace(name)
		if !isName(name) || tryStatement(expressions.AssignStatementSelector, t.Args) != nil {
			return r.newError(t, "write {% assign name = value %}", "%s: not an assignment", t.Source)
		}
		reads, bad := readNames(value, r.argsAt(t)+len(t.Args)-len(value), false)
		item := Item{Reads: markAsked(reads), Sets: name}
		if len(reads) == 1 && strings.TrimSpace(value) == reads[0].String() {
			item.From = &reads[0]
		}
		top.items = append(top.items, item)
		return bad
	case "break", "continue", "cycle":
		if !slices.ContainsFunc(stack, func(b block) bool { return b.name == "for" }) {
			return r.newError(t, "move it between {% for … %} and {% endfor %}", "{%% %s %%} stands outside a loop", t.Name)
		}
		if t.Name == "cycle" && tryStatement(expressions.CycleStatementSelector, t.Args) != nil {
			return r.newError(t, `write {% cycle "a", "b" %}`, "%s: cycle takes texts", t.Source)
		}
		return nil
	case "include", "render", "layout", "section":
		return r.newError(t, "write the text here, or use !include for the whole prompt", "{%% %s %%}: templates can't include others", t.Name)
	}
	known := append(append([]string{"assign", "break", "continue", "cycle"}, blockTags()...), "else", "elsif", "when")
	slices.Sort(known)
	bad := r.newError(t, "known are: "+strings.Join(known, ", "), "{%% %s %%} is no tag", t.Name)
	bad.Name, bad.Known = t.Name, known
	return bad
}
