package strictyaml

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/lists"
)

// Kind is what a value is.
type Kind uint8

// The kinds of values.
const (
	Bad    Kind = iota // already reported: say nothing more about it
	Scalar             // nil, bool, int64, float64 or string
	Map
	List
)

// Node is one value of YAML or JSON and where it stands.
type Node struct {
	Kind    Kind
	Pos     Pos
	Scalar  any     // of a scalar: what it means by itself
	Text    string  // a scalar as written, without quotes
	Quoted  bool    // of a scalar: it is text, whatever it looks like
	Entries []Entry // of a map, in the file's order
	Items   []*Node // of a list
	Flow    bool    // of a map: it stands in braces
	// Broken says that a key of the map could not be read, which was reported: what
	// seems to be missing may be that.
	Broken bool
	end    Pos // where the next value begins, if that is known
	block  block
}

// block says how the lines of a text stand in the file.
type block uint8

const (
	notBlock  block = iota // its lines can't be told apart
	blockYAML              // | : from the line after its place on
	blockText              // an included file: from its place on
)

// Entry is one key of a map, with the key's place.
type Entry struct {
	Key string
	Pos Pos
	Val *Node
}

// Get finds a key. Nil: not there.
func (n *Node) Get(key string) *Entry {
	if n == nil || n.Kind != Map {
		return nil
	}
	for i := range n.Entries {
		if n.Entries[i].Key == key {
			return &n.Entries[i]
		}
	}
	return nil
}

// IsNull reports a value that is there but empty.
func (n *Node) IsNull() bool { return n.Kind == Scalar && n.Scalar == nil }

// Commented reports a value that is empty because the rest of its line is a comment.
func (n *Node) Commented() bool {
	line := []rune(n.Pos.File.lineText(n.Pos.Line))
	return n.IsNull() && n.Pos.Col >= 1 && n.Pos.Col-1 <= len(line) && strings.HasPrefix(strings.TrimSpace(string(line[n.Pos.Col-1:])), "#")
}

// Plain is the value without places: nil, bool, int64, float64, string, []any
// and map[string]any.
func (n *Node) Plain() any {
	switch n.Kind {
	case Map:
		out := make(map[string]any, len(n.Entries))
		for _, e := range n.Entries {
			out[e.Key] = e.Val.Plain()
		}
		return out
	case List:
		return lists.Map(n.Items, (*Node).Plain)
	}
	return n.Scalar
}

// Of is the value that plain is, of the types that Plain gives. It stands nowhere.
func Of(plain any) *Node {
	n := &Node{Kind: Scalar, Pos: Pos{File: &File{}}, Scalar: plain}
	switch p := plain.(type) {
	case map[string]any:
		n.Kind, n.Scalar = Map, nil
		for _, key := range slices.Sorted(maps.Keys(p)) {
			n.Entries = append(n.Entries, Entry{Key: key, Pos: n.Pos, Val: Of(p[key])})
		}
	case []any:
		n.Kind, n.Scalar = List, nil
		for _, item := range p {
			n.Items = append(n.Items, Of(item))
		}
	case nil:
	default:
		n.Text = fmt.Sprint(p)
	}
	return n
}

// KindName is what a person would call the value.
func (n *Node) KindName() string {
	switch n.Kind {
	case Map:
		return "a map"
	case List:
		return "a list"
	}
	switch s := n.Scalar.(type) {
	case nil:
		return "nothing"
	case bool:
		return "the boolean " + strconv.FormatBool(s)
	case int64, float64:
		return "the number " + n.Text
	}
	return "text"
}

// scalarOf reads an unquoted scalar by the core schema of YAML 1.2: yes, no, on, off, dates
// and 1_000 are text; 0777 is a decimal number. Numbers that JSON doesn't have are text.
func scalarOf(text string) any {
	switch text {
	case "", "~", "null", "Null", "NULL":
		return nil
	case "true", "True", "TRUE":
		return true
	case "false", "False", "FALSE":
		return false
	}
	if n, ok := Number(text); ok {
		return n
	}
	return text
}

var (
	wholeNumber = lazyregexp.New(`^[-+]?[0-9]+$`)
	otherBase   = lazyregexp.New(`^0(?:o[0-7]+|x[0-9a-fA-F]+)$`)
	decimal     = lazyregexp.New(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
)

// IsWhole says whether a text is a whole number, of any size.
func IsWhole(text string) bool { return wholeNumber.MatchString(text) }

// Number reads a number as YAML 1.2 writes it: an int64 where it is whole and exact in every
// JSON reader, else a float64.
func Number(text string) (any, bool) {
	const exact = 1 << 53
	switch {
	case text == "" || !strings.Contains("+-.0123456789", text[:1]): // spares the expressions
		return nil, false
	case IsWhole(text):
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > -exact && n < exact {
			return n, true
		}
	case otherBase.MatchString(text):
		n, err := strconv.ParseInt(text, 0, 64)
		return n, err == nil && n < exact
	case !decimal.MatchString(text):
		return nil, false
	}
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil && !math.IsInf(f, 0)
}
