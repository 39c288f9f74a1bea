package table

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/united-workforce/uwf/internal/yamlline"
)

const (
	// MaxFile is how many bytes a file may have.
	MaxFile     = 1 << 20
	maxProblems = 50
)

// Reader takes the settings out of one file and gathers what is wrong with it.
type Reader struct {
	File     string
	Problems []Problem
	// Origins says where each value stands: path → file:line:column.
	Origins map[string]string
}

// Problem notes what is wrong with a node.
func (r *Reader) Problem(n *yaml.Node, path, fix, format string, args ...any) {
	if len(r.Problems) < maxProblems {
		r.Problems = append(r.Problems, Problem{File: r.File, Line: n.Line, Col: n.Column, Path: path,
			Message: fmt.Sprintf(format, args...), Fix: fix})
	}
}

// Document parses the one YAML document of a file; nil: it is empty.
func (r *Reader) Document(data []byte) (root *yaml.Node) {
	bad := func(line int, text string) *yaml.Node {
		r.Problems = append(r.Problems, Problem{File: r.File, Line: line, Col: 1, Message: "not YAML: " + text})
		return nil
	}
	defer func() {
		// The library reports through panics; one that it doesn't catch itself is a
		// file that can't be read, no more.
		if recover() != nil {
			root = bad(1, "it can't be read")
		}
	}()
	if len(data) > MaxFile {
		return bad(1, fmt.Sprintf("the file has %d bytes, the limit is %d", len(data), MaxFile))
	}
	dec := yaml.NewDecoder(strings.NewReader(strings.TrimPrefix(string(data), "\ufeff")))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil
		}
		line, text := yamlline.Find(string(data), err)
		return bad(max(line, 1), text)
	}
	switch err := dec.Decode(&more); {
	case err == nil:
		return bad(more.Line, "there is more than one document in it")
	case !errors.Is(err, io.EOF):
		line, text := yamlline.Find(string(data), err)
		return bad(max(line, 1), text)
	}
	if len(doc.Content) == 0 || Nothing(doc.Content[0]) {
		return nil
	}
	return doc.Content[0]
}

// Nothing says whether a node is nothing, as after a key without a value.
func Nothing(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Style == 0 && (n.Value == "" || n.Value == "~" || n.Value == "null")
}

// readEntries walks a mapping; keys that stand twice, anchors and the like are
// problems. An empty value is an empty mapping.
func (r *Reader) readEntries(n *yaml.Node, path string, each func(key string, k, v *yaml.Node)) {
	if Nothing(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		r.Problem(n, path, "", "must be a mapping (name: value), not %s", kindName(n))
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		switch {
		case k.Kind != yaml.ScalarNode || k.Value == "<<" && k.Style == 0:
			r.Problem(k, path, "", "only plain names can be keys")
		case isSpecial(k) || isSpecial(v):
			r.Problem(v, Join(path, k.Value), "write the value out", "anchors, aliases and tags are not read")
		case seen[k.Value]:
			r.Problem(k, Join(path, k.Value), "keep one of them", "stands twice")
		default:
			seen[k.Value] = true
			each(k.Value, k, v)
		}
	}
}

func isSpecial(n *yaml.Node) bool {
	return n.Kind == yaml.AliasNode || n.Anchor != "" || n.Style&yaml.TaggedStyle != 0
}

// readObject reads a mapping whose keys are all known.
func (r *Reader) readObject(n *yaml.Node, path string, s Setting) {
	r.readEntries(n, path, func(key string, k, v *yaml.Node) {
		i := slices.IndexFunc(s.Fields, func(f Field) bool { return f.Name == key })
		if i < 0 {
			r.Problem(k, Join(path, key), s.adviceFor(key), "unknown key")
			return
		}
		if !Nothing(v) {
			r.Origins[Join(path, key)] = r.position(v)
			s.Fields[i].Read(r, v, Join(path, key))
		}
	})
}

// adviceFor says what may be meant by a key that an object doesn't have.
func (s Setting) adviceFor(key string) string {
	if instead, ok := s.Retired[key]; ok {
		return instead
	}
	var names []string
	for _, f := range s.Fields {
		names = append(names, f.Name)
	}
	if near := Suggest(key, names); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "known here: " + strings.Join(slices.Sorted(slices.Values(names)), ", ")
}

// Named reads a mapping whose keys are names that people choose.
func (r *Reader) Named(n *yaml.Node, path string, each func(name string, v *yaml.Node, path string)) {
	r.readEntries(n, path, func(name string, k, v *yaml.Node) {
		if name == "" {
			r.Problem(k, path, "", "a name can't be empty")
			return
		}
		r.Origins[Join(path, name)] = r.position(k)
		each(name, v, Join(path, name))
	})
}

func (r *Reader) position(n *yaml.Node) string {
	return fmt.Sprintf("%s:%d:%d", r.File, n.Line, n.Column)
}

// textInto reads a scalar as it is written.
func (r *Reader) textInto(into *string) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		if n.Kind != yaml.ScalarNode {
			r.Problem(n, path, "", "must be text, not %s", kindName(n))
			return
		}
		*into = n.Value
	}
}

func (r *Reader) oneOf(into *string, allowed ...string) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		if !slices.Contains(allowed, n.Value) { // a list has no value
			r.Problem(n, path, "", "must be one of %s", strings.Join(allowed, ", "))
			return
		}
		*into = n.Value
	}
}

func (r *Reader) boolInto(into *bool) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		switch {
		case n.Kind == yaml.ScalarNode && strings.EqualFold(n.Value, "true"):
			*into = true
		case n.Kind == yaml.ScalarNode && strings.EqualFold(n.Value, "false"):
			*into = false
		default:
			r.Problem(n, path, "", "must be true or false")
		}
	}
}

func (r *Reader) intInto(into *int64, least, most int64) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		v, err := strconv.ParseInt(strings.ReplaceAll(n.Value, "_", ""), 10, 64)
		if err != nil || v < least || v > most {
			r.Problem(n, path, "", "must be a whole number from %d to %d", least, most)
			return
		}
		*into = v
	}
}

func (r *Reader) numberInto(into *float64) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		v, err := strconv.ParseFloat(n.Value, 64)
		if err != nil || !(v >= 0 && v <= 1e12) {
			r.Problem(n, path, "", "must be a number, 0 or more")
			return
		}
		*into = v
	}
}

func (r *Reader) durationInto(into *time.Duration) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		v, _ := time.ParseDuration(n.Value) // 0 where it is none
		if v <= 0 {
			r.Problem(n, path, "", "must be a time such as 90s, 30m or 6h")
			return
		}
		*into = v
	}
}

func (r *Reader) textsInto(into *[]string) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		if n.Kind != yaml.SequenceNode {
			r.Problem(n, path, "", "must be a list, not %s", kindName(n))
			return
		}
		for i, c := range n.Content {
			var s string
			at := fmt.Sprintf("%s[%d]", path, i)
			if isSpecial(c) {
				r.Problem(c, at, "write the value out", "anchors, aliases and tags are not read")
				continue
			}
			r.textInto(&s)(c, at)
			*into = append(*into, s)
		}
	}
}

func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	return "text"
}

// Join adds a key to a dotted path; a key that holds a dot or the like is quoted.
func Join(path, key string) string {
	key = Path{key}.String()
	if path == "" {
		return key
	}
	return path + "." + key
}
