package extract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

type itemKind uint8

const (
	scalar itemKind = iota
	list
	mapping
)

// item is a value as it was written: scalars keep their text, because what it
// means depends on the schema.
type item struct {
	kind  itemKind
	text  string // of a scalar
	plain bool   // without quotes: it may be a number, a boolean or null
	keys  []string
	kids  []*item // of a list, or one for each of keys
	line  int     // in the block, from 1
}

// syntaxError is a problem at a line of a block.
type syntaxError struct {
	line   int // from 1; 0: unknown
	detail string
	final  bool // the meaning is clear and refused: not to be read another way
}

func (e *syntaxError) Error() string { return e.detail }

// parseBlock reads a block as JSON when it begins like an object, else as YAML. It
// is nil when there is nothing in it.
func parseBlock(text string) (*item, error) {
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		it, rest, err := parseJSON(text)
		if err == nil && strings.TrimSpace(rest) == "" {
			return it, nil
		}
		if e := (*syntaxError)(nil); errors.As(err, &e) && e.final {
			return nil, err
		}
		// A flow mapping of YAML may begin in the same way.
		if it, yamlErr := parseYAML(text); yamlErr == nil || err == nil {
			return it, yamlErr
		}
		return nil, err
	}
	return parseYAML(text)
}

// parseYAML reads one YAML document without anchors, aliases and tags.
func parseYAML(text string) (it *item, err error) {
	// The library reports through panics; one that it doesn't catch itself must
	// not end a job because of what a model wrote.
	defer func() {
		if p := recover(); p != nil {
			it, err = nil, &syntaxError{detail: "the YAML can't be read"}
		}
	}()
	dec := yaml.NewDecoder(strings.NewReader(text))
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		return nil, yamlError(err)
	}
	var more yaml.Node
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, &syntaxError{line: more.Line, detail: "there is more than one YAML document"}
	}
	if len(doc.Content) == 0 {
		return nil, nil
	}
	return fromYAML(doc.Content[0], 0)
}

var yamlLine = regexp.MustCompile(`^yaml: line (\d+): `)

func yamlError(err error) error {
	text := err.Error()
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		line, _ := strconv.Atoi(m[1]) // digits: it can't fail but by size
		return &syntaxError{line: line, detail: clip(text[len(m[0]):], 200)}
	}
	return &syntaxError{detail: clip(strings.TrimPrefix(text, "yaml: "), 200)}
}

func fromYAML(n *yaml.Node, depth int) (*item, error) {
	fail := func(final bool, format string, args ...any) (*item, error) {
		return nil, &syntaxError{line: n.Line, detail: fmt.Sprintf(format, args...), final: final}
	}
	switch {
	case depth > maxDepth:
		return fail(true, "it is nested deeper than %d levels", maxDepth)
	case n.Kind == yaml.AliasNode:
		return fail(false, "aliases (*%s) are not read; put text that begins with * in quotes", clip(n.Value, 40))
	case n.Anchor != "":
		return fail(false, "anchors (&%s) are not read; put text that begins with & in quotes", clip(n.Anchor, 40))
	case n.Style&yaml.TaggedStyle != 0 && n.Tag != "!!str":
		return fail(false, "tags (%s) are not read; put text that begins with ! in quotes", clip(n.Tag, 40))
	}
	it := &item{line: n.Line}
	switch n.Kind {
	case yaml.ScalarNode:
		it.text, it.plain = n.Value, n.Style&^yaml.FlowStyle == 0
	case yaml.SequenceNode:
		it.kind = list
		for _, c := range n.Content {
			kid, err := fromYAML(c, depth+1)
			if err != nil {
				return nil, err
			}
			it.kids = append(it.kids, kid)
		}
	case yaml.MappingNode:
		it.kind = mapping
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
				return nil, &syntaxError{line: k.Line, detail: fmt.Sprintf("the key %q stands twice", clip(k.Value, 80)), final: true}
			}
			seen[k.Value] = true
			kid, err := fromYAML(n.Content[i+1], depth+1)
			if err != nil {
				return nil, err
			}
			it.keys, it.kids = append(it.keys, k.Value), append(it.kids, kid)
		}
	default:
		return fail(true, "it holds something that is neither text, list nor mapping")
	}
	return it, nil
}

// parseJSON reads one JSON value at the beginning of text and returns what stands
// behind it.
func parseJSON(text string) (*item, string, error) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	r := &jsonReader{dec: dec, text: text}
	it, err := r.value(0)
	if err != nil {
		if e := (*syntaxError)(nil); errors.As(err, &e) {
			return nil, "", e
		}
		detail := err.Error()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			detail = "the JSON object is not closed; the answer may be cut off"
		}
		return nil, "", &syntaxError{line: r.line(), detail: clip(detail, 200)}
	}
	return it, text[dec.InputOffset():], nil
}

type jsonReader struct {
	dec  *json.Decoder
	text string
}

func (r *jsonReader) line() int {
	return 1 + strings.Count(r.text[:min(int(r.dec.InputOffset()), len(r.text))], "\n")
}

func (r *jsonReader) value(depth int) (*item, error) {
	if depth > maxDepth {
		return nil, &syntaxError{line: r.line(), detail: fmt.Sprintf("it is nested deeper than %d levels", maxDepth), final: true}
	}
	tok, err := r.dec.Token()
	if err != nil {
		return nil, err
	}
	it := &item{line: r.line()}
	switch t := tok.(type) {
	case string:
		it.text = t
	case json.Number:
		it.text, it.plain = t.String(), true
	case bool:
		it.text, it.plain = strconv.FormatBool(t), true
	case nil:
		it.text, it.plain = "null", true
	case json.Delim:
		return it, r.collection(it, t, depth)
	}
	return it, nil
}

func (r *jsonReader) collection(it *item, open json.Delim, depth int) error {
	it.kind = list
	seen := map[string]bool{}
	if open == '{' {
		it.kind = mapping
	}
	for r.dec.More() {
		if it.kind == mapping {
			tok, err := r.dec.Token()
			if err != nil {
				return err
			}
			k, ok := tok.(string)
			if !ok {
				return &syntaxError{line: r.line(), detail: "only strings can be keys"}
			}
			if seen[k] {
				return &syntaxError{line: r.line(), detail: fmt.Sprintf("the key %q stands twice", clip(k, 80)), final: true}
			}
			seen[k] = true
			it.keys = append(it.keys, k)
		}
		kid, err := r.value(depth + 1)
		if err != nil {
			return err
		}
		it.kids = append(it.kids, kid)
	}
	_, err := r.dec.Token() // the closing bracket
	return err
}

var (
	intText   = regexp.MustCompile(`^[-+]?[0-9]+$`)
	octalText = regexp.MustCompile(`^0o[0-7]+$`)
	hexText   = regexp.MustCompile(`^0x[0-9a-fA-F]+$`)
	floatText = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
)

// natural is what a scalar means by itself: the core schema of YAML 1.2, without
// infinities, which no output can hold.
func (it *item) natural() any {
	if !it.plain {
		return it.text
	}
	switch it.text {
	case "", "~", "null", "Null", "NULL":
		return nil
	case "true", "True", "TRUE":
		return true
	case "false", "False", "FALSE":
		return false
	}
	if n, ok := number(it.text); ok {
		return n
	}
	return it.text
}

// number reads the numbers of YAML 1.2: whole ones as int64 where they are exact
// in every JSON reader, else float64.
func number(text string) (any, bool) {
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

// jsonText parses a JSON value of one kind that was put into a text.
func jsonText(text string, open byte) (*item, bool) {
	trimmed := bytes.TrimSpace([]byte(text))
	if len(trimmed) == 0 || trimmed[0] != open {
		return nil, false
	}
	it, rest, err := parseJSON(string(trimmed))
	return it, err == nil && strings.TrimSpace(rest) == ""
}
