package table

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// ParseValue reads a value as people type it for the setting at a path: texts as
// they are, numbers, times, true and false; lists and mappings as JSON or YAML, a
// list also as a single text. What it gives is checked by Check, not here.
func (s Setting) ParseValue(p Path, text string) (*yaml.Node, error) {
	s, err := s.At(p)
	if err != nil {
		return nil, err
	}
	if !utf8.ValidString(text) {
		return nil, fmt.Errorf("set %s: the value is no UTF-8 text", p)
	}
	switch s.Kind {
	case TextValue, TimeValue:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}, nil
	case FlagValue, WholeValue, NumberValue:
		return plainScalar(s.Kind, p, text)
	case OverrideValue:
		if !strings.HasPrefix(strings.TrimSpace(text), "{") {
			return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}, nil
		}
	case ListValue:
		if !strings.HasPrefix(strings.TrimSpace(text), "[") {
			one := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
			return &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: yaml.FlowStyle, Content: []*yaml.Node{one}}, nil
		}
	}
	return parseCollection(s.Kind, p, text)
}

func plainScalar(kind ValueKind, p Path, text string) (*yaml.Node, error) {
	text = strings.TrimSpace(text)
	n := &yaml.Node{Kind: yaml.ScalarNode, Value: text}
	var err error
	switch kind {
	case FlagValue:
		n.Value = strings.ToLower(text)
		if n.Value != "true" && n.Value != "false" {
			return nil, fmt.Errorf("set %s: %q: write true or false", p, text)
		}
		n.Tag = "!!bool"
	case WholeValue:
		_, err = strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 10, 64)
		n.Tag, n.Value = "!!int", strings.ReplaceAll(text, "_", "")
	default:
		var v float64
		v, err = strconv.ParseFloat(text, 64)
		n.Tag, n.Value = "!!float", strconv.FormatFloat(v, 'f', -1, 64)
		if !strings.Contains(n.Value, ".") {
			n.Tag = "!!int"
		}
		if math.IsNaN(v) || math.IsInf(v, 0) { // words that Go takes for numbers
			err = strconv.ErrRange
		}
	}
	if err != nil {
		return nil, fmt.Errorf("set %s: %q is no %s", p, text, kind)
	}
	return n, nil
}

// parseCollection reads a list or a mapping.
func parseCollection(kind ValueKind, p Path, text string) (*yaml.Node, error) {
	want, what, example := byte('{'), "mapping", `{"name": "value"}`
	if kind == ListValue {
		want, what, example = '[', "list", `["-v", "two words"]`
	}
	bad := func(why string) (*yaml.Node, error) {
		return nil, fmt.Errorf("set %s: give a %s as JSON, such as %s: %s", p, what, example, why)
	}
	trimmed := strings.TrimSpace(text)
	if trimmed == "" || trimmed[0] != want {
		return bad(fmt.Sprintf("it must begin with %q", want))
	}
	r := &Reader{File: "the value"}
	n := r.Document([]byte(trimmed))
	if n == nil {
		if len(r.Problems) > 0 {
			return bad(r.Problems[0].Message)
		}
		return bad("it is empty")
	}
	if !jsonLike(n) {
		return bad("anchors, aliases and tags are not read")
	}
	makeFlow(n)
	return n, nil
}

// jsonLike says whether a node holds nothing but what JSON can hold.
func jsonLike(n *yaml.Node) bool {
	if isSpecial(n) {
		return false
	}
	return !slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return !jsonLike(c) })
}

// makeFlow makes a node one line, without comments.
func makeFlow(n *yaml.Node) {
	n.HeadComment, n.LineComment, n.FootComment = "", "", ""
	if n.Kind != yaml.ScalarNode {
		n.Style = yaml.FlowStyle
	}
	for _, c := range n.Content {
		makeFlow(c)
	}
}

// SecretIn gives the path of the first secret that a text sets. The text need not
// be valid.
func (s Setting) SecretIn(data []byte) (Path, bool) {
	root := (&Reader{}).Document(data)
	if root == nil {
		return nil, false
	}
	return secretBelow(s, root, nil)
}

func secretBelow(s Setting, n *yaml.Node, p Path) (Path, bool) {
	if s.Secret {
		return p, !Nothing(n)
	}
	for i := 0; i+1 < len(n.Content) && n.Kind == yaml.MappingNode; i += 2 {
		key := n.Content[i].Value
		below, err := s.At(Path{key})
		if err != nil {
			continue
		}
		if found, ok := secretBelow(below, n.Content[i+1], append(slices.Clone(p), key)); ok {
			return found, true
		}
	}
	return nil, false
}
