package cassette

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// fields walks a mapping. Names that known does not have, and names that come
// twice, are problems.
func (p *parser) fields(n *yaml.Node, known map[string]func(*yaml.Node)) {
	if !p.plain(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		p.fail(n, "fields are expected here (%s)", strings.Join(names(known), ", "))
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		f, ok := known[k.Value]
		switch {
		case k.Kind != yaml.ScalarNode || !ok:
			p.fail(k, "unknown field %q; known here: %s", k.Value, strings.Join(names(known), ", "))
		case seen[k.Value]:
			p.fail(k, "field %q stands here twice", k.Value)
		default:
			f(v)
		}
		seen[k.Value] = true
	}
}

func names(known map[string]func(*yaml.Node)) []string {
	var out []string
	for k := range known {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// plain refuses what makes a YAML text mean more than it shows.
func (p *parser) plain(n *yaml.Node) bool {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		p.fail(n, "anchors and aliases are not allowed")
	case n.Style&yaml.TaggedStyle != 0:
		p.fail(n, "tags like %s are not allowed", n.Tag)
	default:
		return true
	}
	return false
}

func (p *parser) items(n *yaml.Node, f func(*yaml.Node)) {
	if !p.plain(n) || isNull(n) {
		return
	}
	if n.Kind != yaml.SequenceNode {
		p.fail(n, "a list is expected here")
		return
	}
	for _, item := range n.Content {
		f(item)
	}
}

func (p *parser) texts(n *yaml.Node) []string {
	var out []string
	p.items(n, func(n *yaml.Node) { out = append(out, p.text(n)) })
	return out
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// text is a scalar as it is written: 007 stays "007", yes stays "yes".
func (p *parser) text(n *yaml.Node) string {
	if !p.plain(n) || isNull(n) {
		return ""
	}
	if n.Kind != yaml.ScalarNode {
		p.fail(n, "a text is expected here")
		return ""
	}
	return n.Value
}

func (p *parser) int(n *yaml.Node) int {
	s := p.text(n)
	v, err := strconv.Atoi(s)
	if err != nil || v < 0 || v > 1<<40 {
		p.fail(n, "a whole number is expected here, not %q", s)
		return 0
	}
	return v
}

func (p *parser) positive(n *yaml.Node) int {
	v := p.int(n)
	if v < 1 {
		p.fail(n, "a number from 1 is expected here")
	}
	return v
}

func (p *parser) dollars(n *yaml.Node) float64 {
	s := p.text(n)
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(v) || v < 0 || v > 1e6 {
		p.fail(n, "an amount in US dollars is expected here, not %q", s)
		return 0
	}
	return v
}

func (p *parser) bool(n *yaml.Node) bool {
	switch s := p.text(n); s {
	case "true":
		return true
	case "false":
		return false
	default:
		p.fail(n, "true or false is expected here, not %q", s)
		return false
	}
}

// value is a YAML value as JSON means it: numbers only where the text is a JSON
// number, so that 0777 and dates stay texts.
func (p *parser) value(n *yaml.Node) any {
	if !p.plain(n) {
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		out := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := p.text(n.Content[i])
			if _, twice := out[k]; twice {
				p.fail(n.Content[i], "field %q stands here twice", k)
			}
			out[k] = p.value(n.Content[i+1])
		}
		return out
	case yaml.SequenceNode:
		out := []any{}
		for _, item := range n.Content {
			out = append(out, p.value(item))
		}
		return out
	case yaml.ScalarNode:
		return scalar(n)
	}
	return nil
}

func scalar(n *yaml.Node) any {
	switch n.Tag {
	case "!!null":
		return nil
	case "!!bool":
		if n.Value == "true" || n.Value == "false" {
			return n.Value == "true"
		}
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) {
			return json.Number(n.Value)
		}
	}
	return n.Value
}
