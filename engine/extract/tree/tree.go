// Package tree reads YAML and JSON into values that keep how they were written:
// what a scalar means depends on the schema, which this package doesn't know. It
// is pure, and refuses what a model must not be able to do: anchors, aliases, tags,
// duplicate keys, deep nesting.
package tree

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/yamlline"
)

// Kind is what a value is made of.
type Kind uint8

// The kinds.
const (
	Scalar Kind = iota
	List
	Mapping
)

// MaxDepth is how many levels of lists and mappings are read.
const MaxDepth = 32

// Item is a value as it was written: scalars keep their text, because what it
// means depends on the schema.
type Item struct {
	Kind  Kind
	Text  string // of a scalar
	Plain bool   // without quotes: it may be a number, a boolean or null
	Keys  []string
	Kids  []*Item // of a list, or one for each of Keys
	Line  int     // in the text, from 1
}

// SyntaxError is a problem at a line of a text.
type SyntaxError struct {
	Line   int // from 1; 0: unknown
	Detail string
	Final  bool // the meaning is clear and refused: not to be read another way
}

func (e *SyntaxError) Error() string { return e.Detail }

// Clip shortens text from a model for a message, at a character.
func Clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// Parse reads a block as JSON when it begins like an object, else as YAML. It
// is nil when there is nothing in it.
func Parse(text string) (*Item, error) {
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		it, rest, err := ParseJSON(text)
		if err == nil && strings.TrimSpace(rest) == "" {
			return it, nil
		}
		if e := (*SyntaxError)(nil); errors.As(err, &e) && e.Final {
			return nil, err
		}
		// A flow mapping of YAML may begin in the same way.
		if it, yamlErr := ParseYAML(text); yamlErr == nil || err == nil {
			return it, yamlErr
		}
		return nil, err
	}
	return ParseYAML(text)
}

// ParseYAML reads one YAML document without anchors, aliases and tags.
func ParseYAML(text string) (it *Item, err error) {
	// The library reports through panics; one that it doesn't catch itself must
	// not end a job because of what a model wrote.
	defer func() {
		if p := recover(); p != nil {
			it, err = nil, &SyntaxError{Detail: "the YAML can't be read"}
		}
	}()
	dec := yaml.NewDecoder(strings.NewReader(text))
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		line, detail := yamlline.Find(text, err)
		return nil, &SyntaxError{Line: line, Detail: Clip(detail, 200)}
	}
	var more yaml.Node
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		line := more.Line
		if err != nil {
			line, _ = yamlline.Find(text, err)
		}
		return nil, &SyntaxError{Line: line, Detail: "there is more than one YAML document"}
	}
	if len(doc.Content) == 0 {
		return nil, nil
	}
	return fromYAML(doc.Content[0], 0)
}

func fromYAML(n *yaml.Node, depth int) (*Item, error) {
	fail := func(final bool, format string, args ...any) (*Item, error) {
		return nil, &SyntaxError{Line: n.Line, Detail: fmt.Sprintf(format, args...), Final: final}
	}
	switch {
	case depth > MaxDepth:
		return fail(true, "it is nested deeper than %d levels", MaxDepth)
	case n.Kind == yaml.AliasNode:
		return fail(false, "aliases (*%s) are not read; put text that begins with * in quotes", Clip(n.Value, 40))
	case n.Anchor != "":
		return fail(false, "anchors (&%s) are not read; put text that begins with & in quotes", Clip(n.Anchor, 40))
	case n.Style&yaml.TaggedStyle != 0 && n.Tag != "!!str":
		return fail(false, "tags (%s) are not read; put text that begins with ! in quotes", Clip(n.Tag, 40))
	}
	it := &Item{Line: n.Line}
	switch n.Kind {
	case yaml.ScalarNode:
		it.Text, it.Plain = n.Value, n.Style&^yaml.FlowStyle == 0
	case yaml.SequenceNode:
		it.Kind = List
		for _, c := range n.Content {
			kid, err := fromYAML(c, depth+1)
			if err != nil {
				return nil, err
			}
			it.Kids = append(it.Kids, kid)
		}
	case yaml.MappingNode:
		it.Kind = Mapping
		seen := map[string]bool{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := n.Content[i]
			if _, err := fromYAML(k, depth+1); err != nil {
				return nil, err
			}
			if k.Kind != yaml.ScalarNode || k.Value == "<<" && k.Style == 0 {
				return fail(true, "only plain names can be keys")
			}
			if seen[k.Value] {
				return nil, &SyntaxError{Line: k.Line, Detail: fmt.Sprintf("the key %q stands twice", Clip(k.Value, 80)), Final: true}
			}
			seen[k.Value] = true
			kid, err := fromYAML(n.Content[i+1], depth+1)
			if err != nil {
				return nil, err
			}
			it.Keys, it.Kids = append(it.Keys, k.Value), append(it.Kids, kid)
		}
	default:
		return fail(true, "it holds something that is neither text, list nor mapping")
	}
	return it, nil
}

// ParseJSON reads one JSON value at the beginning of text and returns what stands
// behind it.
func ParseJSON(text string) (*Item, string, error) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	r := &jsonReader{dec: dec, text: text}
	it, err := r.readValue(0)
	if err != nil {
		if e := (*SyntaxError)(nil); errors.As(err, &e) {
			return nil, "", e
		}
		detail := err.Error()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			detail = "the JSON object is not closed; the answer may be cut off"
		}
		return nil, "", &SyntaxError{Line: r.lineNumber(), Detail: Clip(detail, 200)}
	}
	return it, text[dec.InputOffset():], nil
}

type jsonReader struct {
	dec  *json.Decoder
	text string
}

func (r *jsonReader) lineNumber() int {
	return 1 + strings.Count(r.text[:min(int(r.dec.InputOffset()), len(r.text))], "\n")
}

func (r *jsonReader) readValue(depth int) (*Item, error) {
	if depth > MaxDepth {
		return nil, &SyntaxError{Line: r.lineNumber(), Detail: fmt.Sprintf("it is nested deeper than %d levels", MaxDepth), Final: true}
	}
	tok, err := r.dec.Token()
	if err != nil {
		return nil, err
	}
	it := &Item{Line: r.lineNumber()}
	switch t := tok.(type) {
	case string:
		it.Text = t
	case json.Number:
		it.Text, it.Plain = t.String(), true
	case bool:
		it.Text, it.Plain = strconv.FormatBool(t), true
	case nil:
		it.Text, it.Plain = "null", true
	case json.Delim:
		return it, r.readCollection(it, t, depth)
	}
	return it, nil
}

func (r *jsonReader) readCollection(it *Item, open json.Delim, depth int) error {
	it.Kind = List
	seen := map[string]bool{}
	if open == '{' {
		it.Kind = Mapping
	}
	for r.dec.More() {
		if it.Kind == Mapping {
			tok, err := r.dec.Token()
			if err != nil {
				return err
			}
			k, _ := tok.(string) // the decoder lets nothing else be a key
			if seen[k] {
				return &SyntaxError{Line: r.lineNumber(), Detail: fmt.Sprintf("the key %q stands twice", Clip(k, 80)), Final: true}
			}
			seen[k] = true
			it.Keys = append(it.Keys, k)
		}
		kid, err := r.readValue(depth + 1)
		if err != nil {
			return err
		}
		it.Kids = append(it.Kids, kid)
	}
	_, err := r.dec.Token() // the closing bracket
	return err
}

var (
	intText   = lazyregexp.New(`^[-+]?[0-9]+$`)
	octalText = lazyregexp.New(`^0o[0-7]+$`)
	hexText   = lazyregexp.New(`^0x[0-9a-fA-F]+$`)
	floatText = lazyregexp.New(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
)

// Natural is what a scalar means by itself: the core schema of YAML 1.2, without
// infinities, which no output can hold.
func (it *Item) Natural() any {
	if !it.Plain {
		return it.Text
	}
	switch it.Text {
	case "", "~", "null", "Null", "NULL":
		return nil
	case "true", "True", "TRUE":
		return true
	case "false", "False", "FALSE":
		return false
	}
	if n, ok := Number(it.Text); ok {
		return n
	}
	return it.Text
}

// IsInteger says whether a text is a whole number, of any size.
func IsInteger(text string) bool { return intText.MatchString(text) }

// Number reads the numbers of YAML 1.2: whole ones as int64 where they are exact
// in every JSON reader, else float64.
func Number(text string) (any, bool) {
	const exact = 1 << 53
	switch {
	case intText.MatchString(text):
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > -exact && n < exact {
			return n, true
		}
	case octalText.MatchString(text), hexText.MatchString(text):
		n, err := strconv.ParseInt(text, 0, 64)
		return n, err == nil && n < exact
	case !floatText.MatchString(text):
		return nil, false
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) {
		return nil, false
	}
	return f, true
}

// ParseText parses a JSON value of one kind that was put into a text.
func ParseText(text string, open byte) (*Item, bool) {
	trimmed := bytes.TrimSpace([]byte(text))
	if len(trimmed) == 0 || trimmed[0] != open {
		return nil, false
	}
	it, rest, err := ParseJSON(string(trimmed))
	return it, err == nil && strings.TrimSpace(rest) == ""
}
