package output

import (
	"bytes"
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"
)

// encodeYAML writes what encodeJSON would as YAML: same keys, same order. JSON is
// YAML, so the library reads it and writes it again as blocks.
func encodeYAML(v any) ([]byte, error) {
	b, err := encodeJSON(v)
	if err != nil {
		return nil, err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(b, &doc); err != nil {
		return nil, fmt.Errorf("turn JSON into YAML: %w", err)
	}
	restyle(&doc)
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(&doc); err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	if err := e.Close(); err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	return []byte(escapeUnsafe(out.String())), nil
}

// restyle lets the library choose how to write each value, but for text with
// unsafe characters: that goes in double quotes, where they can be escaped.
func restyle(n *yaml.Node) {
	n.Style = 0
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
		switch {
		case strings.ContainsFunc(n.Value, leftByJSON):
			n.Style = yaml.DoubleQuotedStyle
		case strings.Contains(n.Value, "\n"):
			n.Style = yaml.LiteralStyle
		}
	}
	if len(n.Content) == 0 && n.Kind != yaml.ScalarNode {
		n.Style = yaml.FlowStyle
	}
	for _, c := range n.Content {
		restyle(c)
	}
}
