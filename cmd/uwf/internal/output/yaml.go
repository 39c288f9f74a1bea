package output

import (
	"bytes"
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/united-workforce/uwf/internal/lazyregexp"
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
	restyleNode(&doc)
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

// notTextIn11 is what YAML 1.1 has words for, and the library does not put in quotes by
// itself: merge and value keys, booleans, numbers of base 60. An agent's key << would
// bring what is below it in among ours.
var notTextIn11 = lazyregexp.New(`^(<<|=|(?i:y|n|yes|no|on|off)|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?)$`)

// restyleNode lets the library choose how to write each value, but for text that goes in
// double quotes: with unsafe characters, which can be escaped there, and what some reader
// would take for something else than text.
func restyleNode(n *yaml.Node) {
	n.Style = 0
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
		switch {
		case strings.ContainsFunc(n.Value, leftByJSON), notTextIn11.MatchString(n.Value):
			n.Style = yaml.DoubleQuotedStyle
		case strings.Contains(n.Value, "\n"):
			n.Style = yaml.LiteralStyle
		}
	}
	if len(n.Content) == 0 && n.Kind != yaml.ScalarNode {
		n.Style = yaml.FlowStyle
	}
	for _, c := range n.Content {
		restyleNode(c)
	}
}
