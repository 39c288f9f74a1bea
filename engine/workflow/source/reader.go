package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/yamlline"
)

// Caps of a definition, includes counted in.
const (
	maxFile     = 1 << 20 // bytes of one file
	maxTotal    = 4 << 20 // bytes of all files
	maxIncludes = 100     // files included
	maxNested   = 8       // files that include one another
	maxDepth    = 64      // nesting of maps and lists
	maxValues   = 100_000 // values in all files
)

// includeTag is the one tag of its own that a definition may use.
const includeTag = "!include"

// Read reads a YAML file and what it includes. Name is the file, slash-separated,
// for messages. Include returns the content of a file for !include, by its
// slash-separated name relative to the folder of name, which is lexically inside
// it; nil: nothing can be included. What is wrong is added to problems; the result
// is nil where nothing could be read, and holds values of KindBad where a part
// could not.
func Read(problems *Problems, name string, data []byte, include func(name string) ([]byte, error)) *Value {
	r := &reader{problems: problems, include: include, dir: path.Dir(name)}
	return r.readFile(name, path.Base(name), data)
}

// reader turns files into values.
type reader struct {
	problems *Problems
	include  func(name string) ([]byte, error)
	dir      string   // the definition's folder, for messages
	open     []string // the files being read, outermost first
	included int
	bytes    int
	values   int
	last     *Value // the scalar read last, whose end is not known yet
	// anchored are the values with anchors that are being read, aliases the places of
	// the aliases that they are read for; both outermost first.
	anchored []*yaml.Node
	aliases  []Pos
	textOver bool // the text of aliases was found to be too much
}

// readFile reads one YAML file. Name is for messages; rel is its path below the
// definition's folder. A nil result has been reported.
func (r *reader) readFile(name, rel string, data []byte) *Value {
	src := newFile(name, data)
	if !r.admitFile(src, data) {
		return nil
	}
	node, ok := r.parseFile(src, data)
	if !ok {
		return nil
	}
	r.open = append(r.open, rel)
	defer func() { r.open = r.open[:len(r.open)-1] }()
	r.last = nil
	v := r.convertNode(node, src, 0)
	r.last = nil
	return v
}

// admitFile checks what can be said about a file before reading it.
func (r *reader) admitFile(src *file, data []byte) bool {
	top := Pos{src, 1, 1}
	r.bytes += len(data)
	switch {
	case len(data) > maxFile:
		r.problems.Add(top, 1, "move long texts to files of their own and !include them",
			"the file has %d bytes; the limit is %d", len(data), maxFile)
	case r.bytes > maxTotal:
		r.problems.Add(top, 1, "include less", "the definition's files have more than %d bytes together", maxTotal)
	case !utf8.Valid(data):
		line, col := 1, 1
		for rest := data; len(rest) > 0; {
			c, size := utf8.DecodeRune(rest)
			if c == utf8.RuneError && size == 1 {
				break
			}
			if col++; c == '\n' {
				line, col = line+1, 1
			}
			rest = rest[size:]
		}
		r.problems.Add(Pos{src, line, col}, 1, "save the file as UTF-8", "the file is not UTF-8")
	default:
		return true
	}
	return false
}

// parseFile reads the one document of a file.
func (r *reader) parseFile(src *file, data []byte) (doc *yaml.Node, ok bool) {
	// The YAML library reports its own inconsistencies by panicking; a definition
	// comes from strangers, so that becomes a problem like any other.
	defer func() {
		if p := recover(); p != nil {
			r.problems.Add(Pos{src, 1, 1}, 1, "simplify the file", "the YAML can't be read: %v", p)
			doc, ok = nil, false
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var first, second yaml.Node
	if err := dec.Decode(&first); err != nil {
		if errors.Is(err, io.EOF) {
			r.problems.Add(Pos{src, 1, 1}, 1, "write a definition with name, description, roles and graph", "the file is empty")
		} else {
			r.reportSyntax(src, err)
		}
		return nil, false
	}
	switch err := dec.Decode(&second); {
	case err == nil:
		r.problems.Add(Pos{src, second.Line, second.Column}, 1, "keep one document, without a second ---", "the file has more than one YAML document")
		return nil, false
	case !errors.Is(err, io.EOF):
		r.reportSyntax(src, err)
		return nil, false
	}
	if first.Kind == yaml.DocumentNode && len(first.Content) == 1 {
		return first.Content[0], true
	}
	return &first, true
}

var unknownAnchor = lazyregexp.New(`^unknown anchor '(.*)' referenced`)

// reportSyntax reports an error of the YAML library, which has a line at best.
func (r *reader) reportSyntax(src *file, err error) {
	line, msg := yamlline.Find(strings.Join(src.lines, "\n"), err)
	at := Pos{src, min(max(line, 1), len(src.lines)), 1}
	if m := unknownAnchor.FindStringSubmatch(msg); m != nil {
		r.problems.Add(src.findText("*"+m[1]), len(m[1])+1, "write &"+m[1]+" before the value that is meant, further up; text that begins with * needs quotes",
			"the alias *%s has no anchor &%s before it", m[1], m[1])
		return
	}
	for at.line > 1 && strings.TrimSpace(src.lineText(at.line)) == "" {
		at.line-- // the end of the file says less than the last line with text
	}
	text := src.lineText(at.line)
	at.col = len([]rune(text)) - len([]rune(strings.TrimLeft(text, " \t"))) + 1
	length := len([]rune(strings.TrimSpace(text)))
	if i := strings.LastIndex(text, ": "); i >= 0 && strings.Contains(msg, "mapping values are not allowed") {
		at.col, length = utf8.RuneCountInString(text[:i])+1, 1
	}
	if i := strings.IndexFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\t' }); i >= 0 && strings.Contains(msg, "control characters") {
		at.col, length = utf8.RuneCountInString(text[:i])+1, 1
	}
	fix := syntaxFix(msg, text)
	if n := src.indentBefore(at.line); n > 0 && strings.Contains(msg, "mapping values are not allowed") {
		fix = fmt.Sprintf("indent it like the line before, by %d spaces; put text that contains \": \" in quotes", n)
	}
	r.problems.Add(at, length, fix, "not valid YAML: %s", msg)
}

// indentBefore is the indentation of the line before, where that is a key with a value
// and the line itself, which seems to be a key too, is indented deeper; 0: not so.
func (s *file) indentBefore(line int) int {
	before, here := s.lineText(line-1), s.lineText(line)
	n := len(before) - len(strings.TrimLeft(before, " "))
	m := len(here) - len(strings.TrimLeft(here, " "))
	if m <= n || !keyWithValue.MatchString(before) || !keyWithValue.MatchString(here) {
		return 0
	}
	return n
}

var keyWithValue = lazyregexp.New(`^ +[\w$-]+: +[^|>\s]`)

// findText is the first place of a text.
func (s *file) findText(text string) Pos {
	for i, line := range s.lines {
		if at := strings.Index(line, text); at >= 0 {
			return Pos{s, i + 1, utf8.RuneCountInString(line[:at]) + 1}
		}
	}
	return Pos{s, 1, 1}
}

func syntaxFix(msg, line string) string {
	trimmed := strings.TrimSpace(line)
	switch {
	case strings.HasPrefix(trimmed, "```"):
		return "remove the lines with ```: a definition is plain YAML"
	case strings.HasPrefix(trimmed, "//") || strings.HasPrefix(trimmed, "/*"):
		return "remove it: comments begin with #, and JSON has none"
	case strings.Contains(line, "\t"):
		return "indent with spaces: YAML doesn't allow tabs"
	case strings.Contains(msg, "mapping values are not allowed"):
		return "put text that contains \": \" in quotes, and check the indentation"
	case strings.Contains(msg, "could not find expected ':'"):
		return "end a key with a colon; indent the lines of a text deeper than its key"
	case strings.Contains(msg, "did not find expected key"), strings.Contains(msg, "block collection"):
		return "check that keys of one map have the same indentation, and that quotes are closed"
	case strings.Contains(msg, "end of stream"):
		return "close the quote or bracket that is still open here"
	case strings.Contains(msg, "cannot start any token"):
		return "put text that begins with @, ` or % in quotes"
	case strings.Contains(msg, "control characters"):
		return "remove the control characters"
	}
	return "check indentation, quotes and brackets here and on the line before"
}

// convertNode reads one node and everything below it.
func (r *reader) convertNode(n *yaml.Node, src *file, depth int) *Value {
	at := Pos{src, n.Line, n.Column}
	v := &Value{Pos: at}
	r.noteEnd(at)
	if r.values++; r.values > maxValues {
		if r.values == maxValues+1 {
			r.problems.Add(r.causeOf(at), 1, "make the definition smaller", "the definition has more than %d values", maxValues)
		}
		return v
	}
	if depth > maxDepth {
		r.problems.Add(r.causeOf(at), 1, "flatten the definition", "values nest deeper than %d levels", maxDepth)
		return v
	}
	if n.Kind == yaml.AliasNode {
		return r.readAlias(n, v, depth)
	}
	if n.Anchor != "" {
		r.anchored = append(r.anchored, n)
		defer func() { r.anchored = r.anchored[:len(r.anchored)-1] }()
	}
	if n.Style&yaml.TaggedStyle != 0 {
		return r.readTagged(n, v)
	}
	switch n.Kind {
	case yaml.MappingNode:
		v.Kind = KindMap
		r.readMapping(n, v, depth)
	case yaml.SequenceNode:
		v.Kind = KindList
		for _, c := range n.Content {
			v.Items = append(v.Items, r.convertNode(c, src, depth+1))
		}
	case yaml.ScalarNode:
		r.readScalar(n, v)
	}
	return v
}

// readAlias reads what an alias stands for, anew: each use counts towards the caps, so that
// a few lines can't become a billion values. Its parts, and texts, keep their places, where
// mistakes in them are mended.
func (r *reader) readAlias(n *yaml.Node, v *Value, depth int) *Value {
	if slices.Contains(r.anchored, n.Alias) {
		r.problems.Add(v.Pos, len(n.Value)+1, "write out what is meant", "the alias *%s stands within what it stands for", n.Value)
		return v
	}
	r.aliases = append(r.aliases, v.Pos)
	defer func() {
		r.aliases = r.aliases[:len(r.aliases)-1]
		r.last = nil // what comes next stands elsewhere
	}()
	out := r.convertNode(n.Alias, v.Pos.src, depth)
	if out.Kind == KindMap || out.Kind == KindList {
		out.Pos = v.Pos // where it does not belong; what is wrong inside of it is mended there
	}
	return out
}

// causeOf is the place to name for what aliases made too much: that of the outermost one.
func (r *reader) causeOf(at Pos) Pos {
	if len(r.aliases) > 0 {
		return r.aliases[0]
	}
	return at
}

// admitText counts text that an alias repeats, as that of a file is, and reports
// whether there may be as much.
func (r *reader) admitText(s string) bool {
	if len(r.aliases) == 0 {
		return true // a part of a file that was counted
	}
	if r.bytes += len(s); r.bytes <= maxTotal {
		return true
	}
	if !r.textOver {
		r.textOver = true
		r.problems.Add(r.aliases[0], 1, "repeat less", "what the aliases stand for, and the definition's files, have more than %d bytes together", maxTotal)
	}
	return false
}

// noteEnd notes where the scalar before a place must have ended.
func (r *reader) noteEnd(at Pos) {
	if r.last != nil && r.last.Pos.src == at.src {
		r.last.end = at
	}
	r.last = nil
}

func (r *reader) readScalar(n *yaml.Node, v *Value) {
	if !r.admitText(n.Value) {
		return
	}
	r.last = v
	v.Kind, v.Text = KindScalar, n.Value
	const quoted = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	if n.Style&quoted != 0 {
		v.Scalar = n.Value
		if n.Style&yaml.LiteralStyle != 0 {
			v.block = blockYAML
		}
		return
	}
	s, ok := scalarOf(n.Value)
	if !ok {
		v.Kind = KindBad
		r.problems.Add(v.Pos, len(n.Value), "put it in quotes if it is text", "%s is no number that JSON has", n.Value)
	}
	v.Scalar = s
}

func (r *reader) readMapping(n *yaml.Node, v *Value, depth int) {
	first := make(map[string]Pos, len(n.Content)/2)
	var merged []*Value
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		at := Pos{v.Pos.src, k.Line, k.Column}
		r.noteEnd(at)
		name, ok := r.readKey(k, at)
		val := r.convertNode(n.Content[i+1], v.Pos.src, depth+1)
		if !ok {
			v.Broken = true
			continue
		}
		if before, dup := first[name]; dup {
			r.problems.Add(at, utf8.RuneCountInString(name), "remove one of the two, or rename it",
				"duplicate key %q: it stands on line %d already", name, before.line)
			continue
		}
		first[name] = at
		if k.Tag == mergeTag {
			merged = append(merged, r.mergedMaps(val, Pos{at.src, n.Content[i+1].Line, n.Content[i+1].Column})...)
			continue
		}
		v.Entries = append(v.Entries, Entry{Key: name, Pos: at, Val: val})
	}
	for _, m := range merged {
		v.Broken = v.Broken || m.Broken || m.Kind == KindBad
		for _, e := range m.Entries {
			if _, there := first[e.Key]; !there { // its own keys go before, and the first map before the second
				first[e.Key] = e.Pos
				v.Entries = append(v.Entries, e)
			}
		}
	}
}

// mergeTag is the tag of the key <<.
const mergeTag = "!!merge"

// mergedMaps are the maps that a key << names, whose value stands at a place: one, or a
// list of them.
func (r *reader) mergedMaps(v *Value, at Pos) []*Value {
	if v.Kind != KindList {
		v = &Value{Kind: KindList, Items: []*Value{v}}
	}
	for _, m := range v.Items {
		if m.Kind != KindMap && m.Kind != KindBad {
			r.problems.Add(at, 1, "name a map by its alias: <<: *name", "the merge key (<<) takes a map, this is %s", m.KindName())
			m.Kind = KindBad
		}
	}
	return v.Items
}

// readKey is the text of a key; false: it can't be one, and what is wrong was reported.
func (r *reader) readKey(k *yaml.Node, at Pos) (string, bool) {
	length := max(utf8.RuneCountInString(k.Value), 1)
	if k.Kind == yaml.AliasNode {
		k, length = k.Alias, length+1
	}
	switch {
	case k.Kind != yaml.ScalarNode:
		r.problems.Add(at, length, "put text with {{ }} or [ ] in quotes", "a key must be text")
	case k.Style&yaml.TaggedStyle != 0:
		r.problems.Add(at, length, "remove the tag", "tags (%s) are not allowed on keys", k.Tag)
	case k.Value == "":
		r.problems.Add(at, 1, "name the key", "a key is empty")
	default:
		return k.Value, r.admitText(k.Value)
	}
	return "", false
}

// readTagged reads a value with an explicit tag.
func (r *reader) readTagged(n *yaml.Node, v *Value) *Value {
	switch {
	case n.Tag == includeTag && n.Kind == yaml.ScalarNode:
		return r.includeFile(n, v)
	case n.Tag == includeTag:
		r.problems.Add(v.Pos, 1, "write one !include for each file", "!include takes the path of one file")
	case n.Tag == "!!str" && n.Kind == yaml.ScalarNode:
		v.Kind, v.Text, v.Scalar = KindScalar, n.Value, n.Value
		r.last = v
	default:
		fix := "remove it; only !include is understood"
		if strings.EqualFold(strings.Trim(n.Tag, "!:"), "include") {
			fix = "did you mean !include?"
		}
		r.problems.Add(v.Pos, utf8.RuneCountInString(n.Tag), fix, "the tag %s is not allowed", n.Tag)
	}
	return v
}

// includeFile reads the file that an !include names: YAML and JSON as values,
// anything else as text.
func (r *reader) includeFile(n *yaml.Node, v *Value) *Value {
	rel, data, ok := r.fetchInclude(n.Value, v.Pos)
	if !ok {
		return v
	}
	name := path.Join(r.dir, rel)
	var out *Value
	switch strings.ToLower(path.Ext(rel)) {
	case ".yaml", ".yml":
		out = r.readFile(name, rel, data)
	case ".json":
		out = r.readJSON(name, data)
	default:
		src := newFile(name, data)
		if r.admitFile(src, data) {
			text := strings.TrimPrefix(string(data), "\ufeff")
			out = &Value{Kind: KindScalar, Pos: Pos{src, 1, 1}, Scalar: text, Text: text, block: blockText}
		}
	}
	if out == nil { // reported
		return v
	}
	return out
}

// fetchInclude finds the content of an included file.
func (r *reader) fetchInclude(target string, at Pos) (rel string, data []byte, ok bool) {
	const folderFix = "name a file below the definition's folder, relative to this file"
	length := len([]rune(includeTag)) + 1 + utf8.RuneCountInString(target)
	rel = path.Join(path.Dir(r.open[len(r.open)-1]), target)
	r.included++
	switch {
	case target == "":
		r.problems.Add(at, length, "write !include FILE", "!include names no file")
		return "", nil, false
	case strings.Contains(target, "://"):
		r.problems.Add(at, length, "keep a copy of it below the definition's folder", "!include %q: only files can be included", target)
		return "", nil, false
	case strings.ContainsAny(target, "\\\x00") || path.IsAbs(target):
		r.problems.Add(at, length, folderFix, "!include %q is no relative path with forward slashes", target)
		return "", nil, false
	case rel == ".." || strings.HasPrefix(rel, "../"):
		r.problems.Add(at, length, folderFix, "!include %q leads out of the definition's folder", target)
		return "", nil, false
	case slices.Contains(r.open, rel):
		r.problems.Add(at, length, "remove one of the includes", "!include %q: the file includes itself (%s)", target, strings.Join(append(slices.Clone(r.open), rel), " → "))
		return "", nil, false
	case len(r.open) > maxNested:
		r.problems.Add(at, length, "include fewer levels", "!include nests deeper than %d files", maxNested)
		return "", nil, false
	case r.included > maxIncludes:
		r.problems.Add(at, length, "include less", "more than %d files are included", maxIncludes)
		return "", nil, false
	case r.include == nil:
		r.problems.Add(at, length, "write the value here", "!include can't be used here: there is no folder to include from")
		return "", nil, false
	}
	data, err := r.include(rel)
	if err != nil {
		var where *fs.PathError // whose path is said anyway
		if errors.As(err, &where) {
			err = where.Err
		}
		r.problems.Add(at, length, folderFix, "!include %q can't be read: %v", target, err)
		return "", nil, false
	}
	return rel, data, true
}
