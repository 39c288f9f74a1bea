package config

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

const (
	maxFile     = 1 << 20 // bytes of one file
	maxProblems = 50
)

// reader takes the settings out of one file and gathers what is wrong with it.
type reader struct {
	file     string
	problems []Problem
	origins  map[string]string
}

func (r *reader) problem(n *yaml.Node, path, fix, format string, args ...any) {
	if len(r.problems) < maxProblems {
		r.problems = append(r.problems, Problem{File: r.file, Line: n.Line, Col: n.Column, Path: path,
			Message: fmt.Sprintf(format, args...), Fix: fix})
	}
}

var yamlLine = regexp.MustCompile(`^yaml: line (\d+): `)

// document parses the one YAML document of a file; nil: it is empty.
func (r *reader) document(data []byte) (root *yaml.Node) {
	bad := func(line int, text string) *yaml.Node {
		r.problems = append(r.problems, Problem{File: r.file, Line: line, Col: 1, Message: "not YAML: " + text})
		return nil
	}
	defer func() {
		// The library reports through panics; one that it doesn't catch itself is a
		// file that can't be read, no more.
		if recover() != nil {
			root = bad(1, "it can't be read")
		}
	}()
	if len(data) > maxFile {
		return bad(1, fmt.Sprintf("the file has %d bytes, the limit is %d", len(data), maxFile))
	}
	dec := yaml.NewDecoder(strings.NewReader(strings.TrimPrefix(string(data), "\ufeff")))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil
		}
		text, line := err.Error(), 1
		if m := yamlLine.FindStringSubmatch(text); m != nil {
			line, _ = strconv.Atoi(m[1]) // digits
			text = text[len(m[0]):]
		}
		return bad(line, strings.TrimPrefix(text, "yaml: "))
	}
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		return bad(max(more.Line, 1), "there is more than one document in it")
	}
	if len(doc.Content) == 0 || nothing(doc.Content[0]) {
		return nil
	}
	return doc.Content[0]
}

func nothing(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Style == 0 && (n.Value == "" || n.Value == "~" || n.Value == "null")
}

// entries walks a mapping; keys that stand twice, anchors and the like are
// problems. An empty value is an empty mapping.
func (r *reader) entries(n *yaml.Node, path string, each func(key string, k, v *yaml.Node)) {
	if nothing(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		r.problem(n, path, "", "must be a mapping (name: value), not %s", kindName(n))
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		switch {
		case k.Kind != yaml.ScalarNode || k.Value == "<<" && k.Style == 0:
			r.problem(k, path, "", "only plain names can be keys")
		case special(k) || special(v):
			r.problem(v, join(path, k.Value), "write the value out", "anchors, aliases and tags are not read")
		case seen[k.Value]:
			r.problem(k, join(path, k.Value), "keep one of them", "stands twice")
		default:
			seen[k.Value] = true
			each(k.Value, k, v)
		}
	}
}

func special(n *yaml.Node) bool {
	return n.Kind == yaml.AliasNode || n.Anchor != "" || n.Style&yaml.TaggedStyle != 0
}

// object reads a mapping whose keys are all known.
func (r *reader) object(n *yaml.Node, path string, s setting) {
	r.entries(n, path, func(key string, k, v *yaml.Node) {
		i := slices.IndexFunc(s.fields, func(f field) bool { return f.name == key })
		if i < 0 {
			r.problem(k, join(path, key), s.adviceFor(key), "unknown key")
			return
		}
		if !nothing(v) {
			r.origins[join(path, key)] = r.at(v)
			s.fields[i].read(r, v, join(path, key))
		}
	})
}

// adviceFor says what may be meant by a key that an object doesn't have.
func (s setting) adviceFor(key string) string {
	if instead, ok := s.retired[key]; ok {
		return instead
	}
	var names []string
	for _, f := range s.fields {
		names = append(names, f.name)
	}
	if near := suggest(key, names); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "known here: " + strings.Join(slices.Sorted(slices.Values(names)), ", ")
}

// named reads a mapping whose keys are names that people choose.
func (r *reader) named(n *yaml.Node, path string, each func(name string, v *yaml.Node, path string)) {
	r.entries(n, path, func(name string, k, v *yaml.Node) {
		if name == "" {
			r.problem(k, path, "", "a name can't be empty")
			return
		}
		r.origins[join(path, name)] = r.at(k)
		each(name, v, join(path, name))
	})
}

func (r *reader) at(n *yaml.Node) string { return fmt.Sprintf("%s:%d:%d", r.file, n.Line, n.Column) }

// text reads a scalar as it is written.
func (r *reader) text(into *string) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		if n.Kind != yaml.ScalarNode {
			r.problem(n, path, "", "must be text, not %s", kindName(n))
			return
		}
		*into = n.Value
	}
}

func (r *reader) oneOf(into *string, allowed ...string) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		if n.Kind != yaml.ScalarNode || !slices.Contains(allowed, n.Value) {
			r.problem(n, path, "", "must be one of %s", strings.Join(allowed, ", "))
			return
		}
		*into = n.Value
	}
}

func (r *reader) boolean(into *bool) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		switch {
		case n.Kind == yaml.ScalarNode && strings.EqualFold(n.Value, "true"):
			*into = true
		case n.Kind == yaml.ScalarNode && strings.EqualFold(n.Value, "false"):
			*into = false
		default:
			r.problem(n, path, "", "must be true or false")
		}
	}
}

func (r *reader) integer(into *int64, least, most int64) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		v, err := strconv.ParseInt(strings.ReplaceAll(n.Value, "_", ""), 10, 64)
		if n.Kind != yaml.ScalarNode || err != nil || v < least || v > most {
			r.problem(n, path, "", "must be a whole number from %d to %d", least, most)
			return
		}
		*into = v
	}
}

func (r *reader) number(into *float64) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		v, err := strconv.ParseFloat(n.Value, 64)
		if n.Kind != yaml.ScalarNode || err != nil || !(v >= 0 && v <= 1e12) {
			r.problem(n, path, "", "must be a number, 0 or more")
			return
		}
		*into = v
	}
}

func (r *reader) duration(into *time.Duration) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		v, err := time.ParseDuration(n.Value)
		if n.Kind != yaml.ScalarNode || err != nil || v <= 0 {
			r.problem(n, path, "", "must be a time such as 90s, 30m or 6h")
			return
		}
		*into = v
	}
}

func (r *reader) texts(into *[]string) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		if n.Kind != yaml.SequenceNode {
			r.problem(n, path, "", "must be a list, not %s", kindName(n))
			return
		}
		for i, c := range n.Content {
			var s string
			at := fmt.Sprintf("%s[%d]", path, i)
			if special(c) {
				r.problem(c, at, "write the value out", "anchors, aliases and tags are not read")
				continue
			}
			r.text(&s)(c, at)
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

// join adds a key to a dotted path; a key that holds a dot or the like is quoted.
func join(path, key string) string {
	key = Path{key}.String()
	if path == "" {
		return key
	}
	return path + "." + key
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
