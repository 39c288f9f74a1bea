package cassette

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// parseFields walks a mapping. Names that known does not have, and names that come
// twice, are problems.
func (p *parser) parseFields(n *yaml.Node, known map[string]func(*yaml.Node)) {
	if !p.checkPlain(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		p.addProblem(n, "fields are expected here (%s)", strings.Join(sortedNames(known), ", "))
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		f, ok := known[k.Value]
		switch {
		case k.Kind != yaml.ScalarNode || !ok:
			p.addProblem(k, "unknown field %q; known here: %s", k.Value, strings.Join(sortedNames(known), ", "))
		case seen[k.Value]:
			p.addProblem(k, "field %q stands here twice", k.Value)
		default:
			f(v)
		}
		seen[k.Value] = true
	}
}

func sortedNames(known map[string]func(*yaml.Node)) []string {
	var out []string
	for k := range known {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// checkPlain refuses what makes a YAML text mean more than it shows.
func (p *parser) checkPlain(n *yaml.Node) bool {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		p.addProblem(n, "anchors and aliases are not allowed")
	case n.Style&yaml.TaggedStyle != 0:
		p.addProblem(n, "tags like %s are not allowed", n.Tag)
	default:
		return true
	}
	return false
}

func (p *parser) parseItems(n *yaml.Node, f func(*yaml.Node)) {
	if !p.checkPlain(n) || isNull(n) {
		return
	}
	if n.Kind != yaml.SequenceNode {
		p.addProblem(n, "a list is expected here")
		return
	}
	for _, item := range n.Content {
		f(item)
	}
}

func (p *parser) parseTexts(n *yaml.Node) []string {
	var out []string
	p.parseItems(n, func(n *yaml.Node) { out = append(out, p.parseText(n)) })
	return out
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// parseText is a scalar as it is written: 007 stays "007", yes stays "yes".
func (p *parser) parseText(n *yaml.Node) string {
	if !p.checkPlain(n) || isNull(n) {
		return ""
	}
	if n.Kind != yaml.ScalarNode {
		p.addProblem(n, "a text is expected here")
		return ""
	}
	return n.Value
}

func (p *parser) parseInt(n *yaml.Node) int {
	s := p.parseText(n)
	v, err := strconv.Atoi(s)
	if err != nil || v < 0 || v > 1<<40 {
		p.addProblem(n, "a whole number is expected here, not %q", s)
		return 0
	}
	return v
}

func (p *parser) parsePositive(n *yaml.Node) int {
	v := p.parseInt(n)
	if v < 1 {
		p.addProblem(n, "a number from 1 is expected here")
	}
	return v
}

func (p *parser) parseDollars(n *yaml.Node) float64 {
	s := p.parseText(n)
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(v) || v < 0 || v > 1e6 {
		p.addProblem(n, "an amount in US dollars is expected here, not %q", s)
		return 0
	}
	return v
}

func (p *parser) parseBool(n *yaml.Node) bool {
	switch s := p.parseText(n); s {
	case "true":
		return true
	case "false":
		return false
	default:
		p.addProblem(n, "true or false is expected here, not %q", s)
		return false
	}
}

// parseValue is a YAML value as JSON means it: numbers only where the text is a JSON
// number, so that 0777 and dates stay texts.
func (p *parser) parseValue(n *yaml.Node) any {
	if !p.checkPlain(n) {
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		out := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := p.parseText(n.Content[i])
			if _, twice := out[k]; twice {
				p.addProblem(n.Content[i], "field %q stands here twice", k)
			}
			out[k] = p.parseValue(n.Content[i+1])
		}
		return out
	case yaml.SequenceNode:
		out := []any{}
		for _, item := range n.Content {
			out = append(out, p.parseValue(item))
		}
		return out
	case yaml.ScalarNode:
		return parseScalar(n)
	}
	return nil
}

func parseScalar(n *yaml.Node) any {
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
