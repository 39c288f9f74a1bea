// Package strictyaml reads YAML and JSON that other people and programs write, into values
// that know their place. It reads scalars by YAML 1.2, and refuses what makes a file read
// differently from how it looks or costs more than its size: a second document, duplicate
// keys, unknown tags, deep nesting, and anchors, aliases and merge keys but for readers
// that allow them. It never opens a file itself and knows nothing of what is in one.
package strictyaml

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// What one Reader reads at most, in all its files.
const (
	MaxFile   = 1 << 20 // bytes of one file, where Reader.MaxFile says nothing else
	MaxTotal  = 4 << 20 // bytes of all files, and of what aliases repeat
	MaxDepth  = 64      // lists and maps inside each other
	maxValues = 100_000
)

// Fault is something that is wrong in a file: the Len characters at a place.
type Fault struct {
	At           Pos
	Len          int
	Message, Fix string
	// Final says that the meaning is clear and refused: it is not to be read another way.
	Final bool
}

// Error is the message with what to do, without the place.
func (f Fault) Error() string { return f.Message + "; " + f.Fix }

// Reader reads files that belong together. The zero Reader is for single ones, of
// strangers: it refuses anchors, aliases, merge keys and !include.
type Reader struct {
	// Report is told all that is wrong; nil: Faults has it.
	Report func(Fault)
	Faults []Fault
	// MaxFile is how many bytes a file may have; 0: the constant of that name.
	MaxFile int
	// Above is how many lines stand above the text that is read, for faults.
	Above int
	// Aliases says that anchors, aliases and merge keys are read as what they stand for.
	Aliases bool
	// Include returns the content of a file for !include, by its slash-separated name
	// relative to the folder of the first file, which is lexically inside it; nil: nothing
	// can be included.
	Include func(name string) ([]byte, error)

	dir      string   // the first file's folder, for messages
	open     []string // the files being read, outermost first
	included int
	bytes    int
	values   int
	last     *Node // the scalar read last, whose end is not known yet
	// anchored are the values with anchors that are being read, aliases the places of
	// the aliases that they are read for; both outermost first.
	anchored []*yaml.Node
	aliases  []Pos
	textOver bool // the text of aliases was found to be too much
}

func (r *Reader) report(at Pos, length int, fix, format string, args ...any) {
	r.reportFault(Fault{At: at, Len: length, Fix: fix, Message: fmt.Sprintf(format, args...)})
}

// reportFinal reports what is understood and not wanted.
func (r *Reader) reportFinal(at Pos, length int, fix, format string, args ...any) {
	r.reportFault(Fault{At: at, Len: length, Fix: fix, Message: fmt.Sprintf(format, args...), Final: true})
}

func (r *Reader) reportFault(f Fault) {
	f.At.Line += r.Above
	if r.Report != nil {
		r.Report(f)
		return
	}
	r.Faults = append(r.Faults, f)
}

// ReadYAML reads the one YAML document of a text. Name is for messages. A text without a
// document is an empty value; one that can't be read is of kind Bad, which was reported.
func (r *Reader) ReadYAML(name, text string) *Node {
	src := &File{Name: name, data: text}
	out := &Node{Pos: src.place(1, 1)}
	if !r.admitFile(src) {
		return out
	}
	switch doc, fault := parseDocument(src); {
	case fault != nil:
		r.reportFault(*fault)
	case doc == nil:
		out.Kind = Scalar
	default:
		r.last = nil
		out = r.convertNode(doc.Content[0], src, 0)
		r.last = nil
	}
	return out
}

// admitFile checks what can be said about a file before reading it.
func (r *Reader) admitFile(src *File) bool {
	limit := cmp.Or(r.MaxFile, MaxFile)
	r.bytes += len(src.data)
	switch valid := strings.ToValidUTF8(src.data, "\xff"); {
	case len(src.data) > limit:
		r.report(src.place(1, 1), 1, "move long texts to files of their own", "the file has %d bytes; the limit is %d", len(src.data), limit)
	case r.bytes > max(limit, MaxTotal):
		r.report(src.place(1, 1), 1, "include less", "the files have more than %d bytes together", MaxTotal)
	case valid != src.data:
		before, _, _ := strings.Cut(valid, "\xff")
		line := before[strings.LastIndexByte(before, '\n')+1:]
		r.report(src.place(1+strings.Count(before, "\n"), 1+utf8.RuneCountInString(line)), 1, "save the file as UTF-8", "the file is not UTF-8")
	default:
		return true
	}
	return false
}

// ParseDocument parses the one document of a text for who writes it again; nil: the text
// has none.
func ParseDocument(text string) (*yaml.Node, error) {
	doc, fault := parseDocument(&File{data: text})
	if fault != nil {
		return nil, fmt.Errorf("line %d: %w", fault.At.Line, fault)
	}
	return doc, nil
}

func parseDocument(src *File) (doc *yaml.Node, fault *Fault) {
	// The library reports its own inconsistencies by panicking; what it reads comes from
	// strangers, so that becomes a fault like any other.
	defer func() {
		if p := recover(); p != nil {
			doc, fault = nil, &Fault{At: src.place(1, 1), Len: 1, Message: fmt.Sprintf("the YAML can't be read: %v", p), Fix: "simplify it"}
		}
	}()
	dec := yaml.NewDecoder(strings.NewReader(src.data))
	var first, second yaml.Node
	if err := dec.Decode(&first); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, syntaxFault(src, err)
	}
	if err := dec.Decode(&second); err == nil {
		return nil, &Fault{At: src.place(second.Line, second.Column), Len: 1, Message: "the file has more than one YAML document", Fix: "keep one document, without a second ---"}
	} else if !errors.Is(err, io.EOF) {
		return nil, syntaxFault(src, err)
	}
	return &first, nil
}

// convertNode reads one node and everything below it.
func (r *Reader) convertNode(n *yaml.Node, src *File, depth int) *Node {
	v := &Node{Pos: src.place(n.Line, n.Column)}
	r.noteEnd(v.Pos)
	if !r.countValue(r.causeOf(v.Pos), depth) {
		return v
	}
	if n.Kind == yaml.AliasNode {
		return r.readAlias(n, v, depth)
	}
	if n.Anchor != "" {
		if !r.Aliases {
			r.report(v.Pos, len(n.Anchor)+1, "write the value out; text that begins with & needs quotes", "the anchor &%s is not read here", n.Anchor)
			return v
		}
		r.anchored = append(r.anchored, n)
		defer func() { r.anchored = r.anchored[:len(r.anchored)-1] }()
	}
	if n.Style&yaml.TaggedStyle != 0 {
		return r.readTagged(n, v)
	}
	switch n.Kind {
	case yaml.MappingNode:
		v.Kind, v.Flow = Map, n.Style&yaml.FlowStyle != 0
		r.readMapping(n, v, depth)
	case yaml.SequenceNode:
		v.Kind = List
		for _, c := range n.Content {
			v.Items = append(v.Items, r.convertNode(c, src, depth+1))
		}
	case yaml.ScalarNode:
		r.readScalar(n, v)
	}
	return v
}

// countValue counts one value, and reports whether there may be one more, as deep as that.
func (r *Reader) countValue(at Pos, depth int) bool {
	r.values++
	switch {
	case r.values == maxValues+1:
		r.reportFinal(at, 1, "make it smaller", "there are more than %d values", maxValues)
	case depth > MaxDepth:
		r.reportFinal(at, 1, "flatten it", "values nest deeper than %d levels", MaxDepth)
	}
	return r.values <= maxValues && depth <= MaxDepth
}

// readAlias reads what an alias stands for, anew: each use counts towards the caps, so that
// a few lines can't become a billion values. Its parts, and texts, keep their places, where
// mistakes in them are mended.
func (r *Reader) readAlias(n *yaml.Node, v *Node, depth int) *Node {
	switch {
	case !r.Aliases:
		r.report(v.Pos, len(n.Value)+1, "write the value out; text that begins with * needs quotes", "the alias *%s is not read here", n.Value)
		return v
	case slices.Contains(r.anchored, n.Alias):
		r.report(v.Pos, len(n.Value)+1, "write out what is meant", "the alias *%s stands within what it stands for", n.Value)
		return v
	}
	r.aliases = append(r.aliases, v.Pos)
	defer func() {
		r.aliases = r.aliases[:len(r.aliases)-1]
		r.last = nil // what comes next stands elsewhere
	}()
	out := r.convertNode(n.Alias, v.Pos.File, depth)
	if out.Kind == Map || out.Kind == List {
		out.Pos = v.Pos // where it does not belong; what is wrong inside of it is mended there
	}
	return out
}

// causeOf is the place to name for what aliases made too much: that of the outermost one.
func (r *Reader) causeOf(at Pos) Pos {
	if len(r.aliases) > 0 {
		return r.aliases[0]
	}
	return at
}

// admitText counts text that an alias repeats, as that of a file is, and reports
// whether there may be as much.
func (r *Reader) admitText(s string) bool {
	if len(r.aliases) == 0 {
		return true // a part of a file that was counted
	}
	if r.bytes += len(s); r.bytes <= MaxTotal {
		return true
	}
	if !r.textOver {
		r.textOver = true
		r.report(r.aliases[0], 1, "repeat less", "what the aliases stand for, and the files, have more than %d bytes together", MaxTotal)
	}
	return false
}

// noteEnd notes where the scalar before a place must have ended.
func (r *Reader) noteEnd(at Pos) {
	if r.last != nil && r.last.Pos.File == at.File {
		r.last.end = at
	}
	r.last = nil
}

func (r *Reader) readScalar(n *yaml.Node, v *Node) {
	if !r.admitText(n.Value) {
		return
	}
	r.last = v
	v.Kind, v.Text, v.Scalar = Scalar, n.Value, n.Value
	v.Quoted = n.Style&^yaml.FlowStyle != 0
	if n.Style&yaml.LiteralStyle != 0 {
		v.block = blockYAML
	}
	if !v.Quoted {
		v.Scalar = scalarOf(n.Value)
	}
}

func (r *Reader) readMapping(n *yaml.Node, v *Node, depth int) {
	first := make(map[string]Pos, len(n.Content)/2)
	var merged []*Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		at := v.Pos.File.place(k.Line, k.Column)
		r.noteEnd(at)
		name, ok := r.readKey(k, at)
		val := r.convertNode(n.Content[i+1], v.Pos.File, depth+1)
		if !ok {
			v.Broken = true
			continue
		}
		if !r.noteKey(first, name, at) {
			continue
		}
		if k.Tag == mergeTag {
			merged = append(merged, r.mergedMaps(val, at.File.place(n.Content[i+1].Line, n.Content[i+1].Column))...)
			continue
		}
		v.Entries = append(v.Entries, Entry{Key: name, Pos: at, Val: val})
	}
	for _, m := range merged {
		v.Broken = v.Broken || m.Broken || m.Kind == Bad
		for _, e := range m.Entries {
			if _, there := first[e.Key]; !there { // its own keys go before, and the first map before the second
				first[e.Key] = e.Pos
				v.Entries = append(v.Entries, e)
			}
		}
	}
}

// noteKey notes where a key of a map stands; false: it stood there before.
func (r *Reader) noteKey(first map[string]Pos, key string, at Pos) bool {
	if before, twice := first[key]; twice {
		r.reportFinal(at, utf8.RuneCountInString(key), "remove one of the two, or rename it", "duplicate key %q: it stands on line %d already", key, before.Line+r.Above)
		return false
	}
	first[key] = at
	return true
}

// mergeTag is the tag of the key <<.
const mergeTag = "!!merge"

// mergedMaps are the maps that a key << names, whose value stands at a place: one, or a
// list of them.
func (r *Reader) mergedMaps(v *Node, at Pos) []*Node {
	if v.Kind != List {
		v = &Node{Kind: List, Items: []*Node{v}}
	}
	for _, m := range v.Items {
		if m.Kind != Map && m.Kind != Bad {
			r.report(at, 1, "name a map by its alias: <<: *name", "the merge key (<<) takes a map, this is %s", m.KindName())
			m.Kind = Bad
		}
	}
	return v.Items
}

// readKey is the text of a key; false: it can't be one, and what is wrong was reported.
func (r *Reader) readKey(k *yaml.Node, at Pos) (string, bool) {
	length := max(utf8.RuneCountInString(k.Value), 1)
	if k.Kind == yaml.AliasNode && r.Aliases {
		k, length = k.Alias, length+1
	}
	switch {
	case k.Kind != yaml.ScalarNode:
		r.reportFinal(at, length, "put text with {{ }} or [ ] in quotes", "a key must be text")
	case k.Style&yaml.TaggedStyle != 0:
		r.report(at, length, "remove the tag", "tags (%s) are not allowed on keys", k.Tag)
	case !r.Aliases && (k.Anchor != "" || k.Tag == mergeTag):
		r.reportFinal(at, length, "write the value out", "anchors and merge keys are not read here")
	case k.Value == "":
		r.report(at, 1, "name the key", "a key is empty")
	default:
		return k.Value, r.admitText(k.Value)
	}
	return "", false
}

// readTagged reads a value with an explicit tag.
func (r *Reader) readTagged(n *yaml.Node, v *Node) *Node {
	switch {
	case n.Tag == includeTag && n.Kind == yaml.ScalarNode:
		return r.includeFile(n, v)
	case n.Tag == includeTag:
		r.report(v.Pos, 1, "write one !include for each file", "!include takes the path of one file")
	case n.Tag == "!!str" && n.Kind == yaml.ScalarNode:
		v.Kind, v.Text, v.Scalar, v.Quoted = Scalar, n.Value, n.Value, true
		r.last = v
	default:
		fix := "remove it; text that begins with ! needs quotes"
		if strings.EqualFold(strings.Trim(n.Tag, "!:"), "include") {
			fix = "did you mean !include?"
		}
		r.report(v.Pos, utf8.RuneCountInString(n.Tag), fix, "the tag %s is not allowed", n.Tag)
	}
	return v
}
