package table

import (
	"fmt"
	"slices"

	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/strictyaml"
	"github.com/united-workforce/uwf/internal/text"
)

const maxProblems = 50

// Reader takes the settings out of one file and gathers what is wrong with it.
type Reader struct {
	File     string
	Problems []Problem
	// Origins says where each value stands: path → file:line:column.
	Origins map[string]string
}

// NoteProblem notes what is wrong with a value. What can't be read was noted before.
func (r *Reader) NoteProblem(n *strictyaml.Node, path, fix, format string, args ...any) {
	if len(r.Problems) < maxProblems && n.Kind != strictyaml.Bad {
		r.Problems = append(r.Problems, Problem{File: r.File, Line: n.Pos.Line, Col: n.Pos.Col, Path: path,
			Message: fmt.Sprintf(format, args...), Fix: fix})
	}
}

// Read reads a file by a table.
func (r *Reader) Read(data []byte, s Setting) {
	r.Origins = map[string]string{}
	y := &strictyaml.Reader{}
	root := y.ReadYAML(r.File, string(data))
	for _, f := range y.Faults[:min(len(y.Faults), maxProblems)] {
		r.Problems = append(r.Problems, Problem{File: r.File, Line: f.At.Line, Col: f.At.Col, Message: f.Message, Fix: f.Fix})
	}
	if !root.IsNull() {
		s.ReadInto(r, root, "")
	}
}

// readEntries walks a mapping. An empty value is an empty mapping.
func (r *Reader) readEntries(n *strictyaml.Node, path string, each func(e strictyaml.Entry, path string)) {
	if n.Kind != strictyaml.Map && !n.IsNull() {
		r.NoteProblem(n, path, "", "must be a map (name: value), this is %s", n.KindName())
	}
	for _, e := range n.Entries {
		each(e, Join(path, e.Key))
	}
}

// keyOf is the place of a key, for what is wrong with it.
func keyOf(e strictyaml.Entry) *strictyaml.Node {
	return &strictyaml.Node{Kind: strictyaml.Scalar, Pos: e.Pos, Text: e.Key}
}

// readObject reads a mapping whose keys are all known.
func (r *Reader) readObject(n *strictyaml.Node, path string, s Setting) {
	r.readEntries(n, path, func(e strictyaml.Entry, at string) {
		i := slices.IndexFunc(s.Fields, func(f Field) bool { return f.Name == e.Key })
		switch {
		case i < 0:
			r.NoteProblem(keyOf(e), at, s.adviceFor(e.Key), "unknown key")
		case !e.Val.IsNull():
			r.Origins[at] = r.position(e.Val.Pos)
			s.Fields[i].ReadInto(r, e.Val, at)
		}
	})
}

// adviceFor says what may be meant by a key that an object doesn't have.
func (s Setting) adviceFor(key string) string {
	if instead, ok := s.Retired[key]; ok {
		return instead
	}
	names := lists.Map(s.Fields, func(f Field) string { return f.Name })
	slices.Sort(names)
	return text.DidYouMean(key, names, text.KnownAre(names))
}

// readNamed reads a mapping whose keys are names that people choose.
func (r *Reader) readNamed(n *strictyaml.Node, path string, s Setting) {
	r.readEntries(n, path, func(e strictyaml.Entry, path string) {
		r.Origins[path] = r.position(e.Pos)
		s.Entry(e.Key).ReadInto(r, e.Val, path)
	})
}

func (r *Reader) position(at strictyaml.Pos) string {
	return fmt.Sprintf("%s:%d:%d", r.File, at.Line, at.Col)
}

// Join adds a key to a dotted path; a key that holds a dot or the like is quoted.
func Join(path, key string) string {
	key = Path{key}.String()
	if path == "" {
		return key
	}
	return path + "." + key
}
