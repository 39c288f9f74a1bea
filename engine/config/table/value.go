package table

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/united-workforce/uwf/internal/strictyaml"
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
	if s.Kind == ListValue && !strings.HasPrefix(strings.TrimSpace(text), "[") {
		return &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle, Content: []*yaml.Node{textNode(text)}}, nil
	}
	if s.Kind == TextValue || s.Kind == TimeValue || s.Kind == OverrideValue && !strings.HasPrefix(strings.TrimSpace(text), "{") {
		return textNode(text), nil
	}
	if s.Wrong == nil {
		return parseCollection(s.Kind, p, text)
	}
	n := &strictyaml.Node{Kind: strictyaml.Scalar, Text: strings.ReplaceAll(strings.TrimSpace(text), "_", "")}
	if s.Kind == FlagValue {
		n.Text = strings.ToLower(n.Text)
	}
	if wrong := s.Wrong(n); wrong != "" {
		return nil, fmt.Errorf("set %s: %q: %s", p, text, wrong)
	}
	return flowNode(n), nil
}

func textNode(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
}

// flowNode is a value as the library writes it, on one line.
func flowNode(n *strictyaml.Node) *yaml.Node {
	out := &yaml.Node{Kind: yaml.ScalarNode, Value: n.Text}
	switch {
	case n.Kind == strictyaml.Map:
		out.Kind, out.Style = yaml.MappingNode, yaml.FlowStyle
		for _, e := range n.Entries {
			out.Content = append(out.Content, textNode(e.Key), flowNode(e.Val))
		}
	case n.Kind == strictyaml.List:
		out.Kind, out.Style = yaml.SequenceNode, yaml.FlowStyle
		for _, item := range n.Items {
			out.Content = append(out.Content, flowNode(item))
		}
	case n.Quoted:
		out.Style = yaml.DoubleQuotedStyle
	}
	return out
}

// parseCollection reads a list or a mapping.
func parseCollection(kind ValueKind, p Path, text string) (*yaml.Node, error) {
	want, what, example := strictyaml.Map, "mapping", `{"name": "value"}`
	if kind == ListValue {
		want, what, example = strictyaml.List, "list", `["-v", "two words"]`
	}
	r := &strictyaml.Reader{}
	n := r.ReadYAML("", text)
	wrong := "this is " + n.KindName()
	if len(r.Faults) > 0 {
		wrong = r.Faults[0].Message
	} else if n.Kind == want {
		return flowNode(n), nil
	}
	return nil, fmt.Errorf("set %s: give a %s as JSON, such as %s: %s", p, what, example, wrong)
}

// SecretIn gives the path of the first secret that a text sets. The text need not
// be valid.
func (s Setting) SecretIn(data []byte) (Path, bool) {
	r := &strictyaml.Reader{Aliases: true}
	return secretBelow(s, r.ReadYAML("", string(data)), nil)
}

func secretBelow(s Setting, n *strictyaml.Node, p Path) (Path, bool) {
	if s.Secret {
		return p, !n.IsNull()
	}
	for _, e := range n.Entries {
		below, err := s.At(Path{e.Key})
		if err != nil {
			continue
		}
		if found, ok := secretBelow(below, e.Val, append(slices.Clone(p), e.Key)); ok {
			return found, true
		}
	}
	return nil, false
}
