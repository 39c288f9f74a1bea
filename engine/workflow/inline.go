package workflow

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/internal/strictyaml"
	"github.com/united-workforce/uwf/internal/text"
)

// maxInlined bounds the values of a schema whose references were replaced.
const maxInlined = 20_000

// A schema that other tools wrote has references, and notes that nodes do not hold. Where it
// is included as a file, references into that file are replaced by what they stand for, and
// the notes are left out; a warning lists these. The guard walk then checks the result like
// any other schema.

// inliner replaces the references of one included file.
type inliner struct {
	*compiler
	root    *strictyaml.Node
	open    []opened       // the references that are being replaced, the outermost first
	values  int            // made so far
	dropped map[string]int // keywords that were left out
	broken  bool           // reported: the schema can't be used
}

// opened is a reference, and what it names.
type opened struct {
	name string
	to   *strictyaml.Node
}

// inlineFile is the schema of an included file, without references; ok is false if a mistake
// was reported. e is the key with the !include.
func (c *compiler) inlineFile(e *strictyaml.Entry, what string) (out *strictyaml.Node, ok bool) {
	in := &inliner{compiler: c, root: e.Val, dropped: map[string]int{}}
	if wrapped := e.Val.Get("schema"); wrapped != nil && wrapped.Val.Kind == strictyaml.Map && (e.Val.Get("strict") != nil || e.Val.Get("name") != nil) {
		in.root = wrapped.Val // as OpenAI's response_format has it
	}
	out = in.inline(in.root)
	if names := slices.Sorted(maps.Keys(in.dropped)); len(names) > 0 && !in.broken {
		for i, name := range names {
			if n := in.dropped[name]; n > 1 {
				names[i] = fmt.Sprintf("%s (%d times)", name, n)
			}
		}
		unchecked := ""
		if in.dropped["format"] > 0 {
			unchecked = "; no format is checked: use `pattern` where one must hold"
		}
		c.warnings.Add(e.Pos, len(e.Key), "remove them from "+in.root.Pos.File.Name, "the schema of %s is stored without %s%s", what, strings.Join(names, ", "), unchecked)
	}
	return out, !in.broken
}

// isDropped reports a keyword that says nothing about which values fit, and that nodes do not
// hold.
func isDropped(e strictyaml.Entry) bool {
	switch e.Key {
	case "$schema", "$id", "id", "discriminator", "contentMediaType", "contentEncoding":
		return true
	case "format":
		return e.Val.Text != "ocas_ref" && e.Val.Text != "cas_ref"
	}
	return strings.HasPrefix(e.Key, "x-")
}

// inline is a schema with its references replaced.
func (in *inliner) inline(n *strictyaml.Node) *strictyaml.Node {
	if in.values++; in.values > maxInlined && !in.broken {
		in.fail(n, "write fewer references, or a smaller schema", "the references make more than %d schemas of it", maxInlined)
	}
	if n.Kind != strictyaml.Map || in.broken {
		return n
	}
	if n.Pos.File != in.root.Pos.File { // included by the file
		defer func(outer *strictyaml.Node) { in.root = outer }(in.root)
		in.root = n
	}
	out := *n
	out.Entries = nil
	for _, e := range n.Entries {
		switch {
		case e.Key == "$defs" || e.Key == "definitions" || e.Key == "$ref":
			continue // replaced where it is meant
		case isDropped(e):
			in.dropped[e.Key]++
			continue
		case e.Key == "nullable":
			continue // by addNull
		}
		e.Val = in.inlineUnder(e)
		out.Entries = append(out.Entries, e)
	}
	if null := n.Get("nullable"); null != nil && null.Val.Scalar == true {
		addNull(&out)
	}
	if ref := n.Get("$ref"); ref != nil {
		return in.follow(*ref, &out)
	}
	return &out
}

// inlineUnder is what stands under a keyword, with the references in it replaced.
func (in *inliner) inlineUnder(e strictyaml.Entry) *strictyaml.Node {
	out := *e.Val
	switch e.Key {
	case "items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames":
		return in.inline(e.Val)
	case "properties", "patternProperties":
		out.Entries = slices.Clone(out.Entries)
		for i := range out.Entries {
			out.Entries[i].Val = in.inline(out.Entries[i].Val)
		}
	case "anyOf", "oneOf", "allOf":
		out.Items = slices.Clone(out.Items)
		for i := range out.Items {
			out.Items[i] = in.inline(out.Items[i])
		}
	}
	return &out
}

// follow is what a reference stands for, together with what stands beside it.
func (in *inliner) follow(ref strictyaml.Entry, beside *strictyaml.Node) *strictyaml.Node {
	name := ref.Val.Text
	target, local := in.find(name)
	switch {
	case in.broken:
	case !local:
		in.fail(ref.Val, "copy the schema into this file, below $defs", "%q refers to another file", name)
	case target == nil:
		in.fail(ref.Val, "correct the name, or add the schema", "%q names nothing in the file", name)
	case target == in.root || slices.ContainsFunc(in.open, func(o opened) bool { return o.to == target }):
		way := ""
		for _, o := range in.open {
			way += o.name + " → "
		}
		in.fail(ref.Val, "limit how deep it goes: write the inner levels out", "a schema has no end: %s%s", way, name)
	}
	if in.broken {
		return beside
	}
	in.open = append(in.open, opened{name, target})
	out := in.inline(target)
	in.open = in.open[:len(in.open)-1]
	if len(beside.Entries) == 0 || out.Kind != strictyaml.Map {
		return out
	}
	all := strictyaml.Entry{Key: "allOf", Pos: ref.Pos, Val: &strictyaml.Node{Kind: strictyaml.List, Pos: ref.Val.Pos, Items: []*strictyaml.Node{out}}}
	if !slices.ContainsFunc(beside.Entries, func(e strictyaml.Entry) bool { return !isNote(e.Key) }) {
		merged := *out
		merged.Entries = slices.DeleteFunc(slices.Clone(out.Entries), func(e strictyaml.Entry) bool { return beside.Get(e.Key) != nil })
		merged.Entries = append(merged.Entries, beside.Entries...)
		return &merged
	}
	if old := beside.Get("allOf"); old != nil && old.Val.Kind == strictyaml.List {
		old.Val.Items = append(old.Val.Items, out)
		return beside
	}
	beside.Entries = append(beside.Entries, all)
	return beside
}

// isNote reports a keyword that says nothing about which values fit.
func isNote(key string) bool {
	return slices.Contains([]string{"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment"}, key)
}

// find is the value that a reference names; nil: nothing in the file. local is false for
// one that leads elsewhere.
func (in *inliner) find(ref string) (target *strictyaml.Node, local bool) {
	pointer, local := strings.CutPrefix(ref, "#")
	if !local || pointer != "" && pointer[0] != '/' {
		return nil, local
	}
	return in.root.Find(pointer), true
}

// fail reports why the file is no schema that can be used.
func (in *inliner) fail(at *strictyaml.Node, fix, format string, args ...any) {
	in.broken = true
	in.reportValue(at, fix, "%s", text.Cut(fmt.Sprintf(format, args...), 400))
}

// addNull lets a schema hold null, as `nullable: true` says it.
func addNull(n *strictyaml.Node) {
	null := func() *strictyaml.Node {
		return &strictyaml.Node{Kind: strictyaml.Scalar, Pos: n.Pos, Scalar: "null", Text: "null", Quoted: true}
	}
	if t := n.Get("type"); t != nil && t.Val.Kind == strictyaml.Scalar {
		t.Val = &strictyaml.Node{Kind: strictyaml.List, Pos: t.Val.Pos, Items: []*strictyaml.Node{t.Val, null()}}
	}
}
