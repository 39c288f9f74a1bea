package cassette

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode"

	"gopkg.in/yaml.v3"

	"github.com/united-workforce/uwf/agents/gateway/dialect"
)

// Encode writes a cassette as Parse reads it.
func Encode(c *Cassette) ([]byte, error) {
	root := newMapping("version", plainNode(strconv.Itoa(Version)))
	if c.Note != "" {
		addPair(root, "note", textNode(c.Note))
	}
	seq := &yaml.Node{Kind: yaml.SequenceNode}
	for _, e := range c.Entries {
		seq.Content = append(seq.Content, entryNode(e))
	}
	addPair(root, "entries", seq)
	return encodeNode(root)
}

func encodeNode(n *yaml.Node) ([]byte, error) {
	var buf bytes.Buffer
	enc := yaml.NewEncoder(&buf)
	enc.SetIndent(2)
	if err := enc.Encode(n); err != nil {
		return nil, err
	}
	if err := enc.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

func entryNode(e Entry) *yaml.Node {
	n := newMapping()
	if e.Step > 0 {
		addPair(n, "step", plainNode(strconv.Itoa(e.Step)))
	}
	addPair(n, "role", textNode(e.Role))
	addPair(n, "turn", plainNode(strconv.Itoa(e.Turn)))
	if e.Match != nil {
		addPair(n, "match", matchNode(e.Match))
	}
	if e.Request != nil {
		addPair(n, "request", requestNode(e.Request))
	}
	addPair(n, "answer", answerNode(e.Answer))
	return n
}

func matchNode(m *Match) *yaml.Node {
	n := newMapping()
	addTexts(n, "contains", m.Contains, 0)
	addTexts(n, "tools", m.Tools, yaml.FlowStyle)
	addText(n, "model", m.Model)
	return n
}

func requestNode(r *Request) *yaml.Node {
	n := newMapping("post", textNode(r.Path))
	addText(n, "model", r.Model)
	if r.Stream {
		addPair(n, "stream", plainNode("true"))
	}
	addTexts(n, "tools", r.Tools, yaml.FlowStyle)
	if r.Continues {
		addPair(n, "continues", plainNode("true"))
	}
	if len(r.Messages) > 0 {
		seq := &yaml.Node{Kind: yaml.SequenceNode}
		for _, m := range r.Messages {
			item := newMapping("role", textNode(m.Role))
			addText(item, "text", m.Text)
			addCalls(item, m.Calls)
			seq.Content = append(seq.Content, item)
		}
		addPair(n, "messages", seq)
	}
	return n
}

func answerNode(a Answer) *yaml.Node {
	n := newMapping()
	if a.Status != 200 && a.Status != 0 {
		addPair(n, "status", plainNode(strconv.Itoa(a.Status)))
	}
	addText(n, "text", a.Text)
	addCalls(n, a.Calls)
	addText(n, "finish", a.Finish)
	addText(n, "body", a.Body)
	addText(n, "events", a.Events)
	addText(n, "error", a.Error)
	if u := usageNode(a.Usage); len(u.Content) > 0 {
		addPair(n, "usage", u)
	}
	return n
}

func usageNode(u dialect.Usage) *yaml.Node {
	n := newMapping()
	n.Style = yaml.FlowStyle
	number := func(key string, v int64, set bool) {
		if set {
			addPair(n, key, plainNode(strconv.FormatInt(v, 10)))
		}
	}
	number("in", u.In, u.HasIn)
	number("out", u.Out, u.HasOut)
	number("cacheRead", u.CacheRead, u.CacheRead > 0)
	number("cacheWrite", u.CacheWrite, u.CacheWrite > 0)
	if u.HasCost {
		addPair(n, "costUsd", plainNode(strconv.FormatFloat(u.CostUSD, 'f', -1, 64)))
	}
	return n
}

func addCalls(n *yaml.Node, calls []dialect.Call) {
	if len(calls) == 0 {
		return
	}
	seq := &yaml.Node{Kind: yaml.SequenceNode}
	for _, c := range calls {
		item := newMapping()
		addText(item, "id", c.ID)
		addPair(item, "name", textNode(c.Name))
		addPair(item, "args", argsNode(c.Args))
		seq.Content = append(seq.Content, item)
	}
	addPair(n, "calls", seq)
}

// argsNode shows a JSON object as a mapping where reading that mapping gives the
// same object back, and anything else as the text that it is.
func argsNode(args string) *yaml.Node {
	dec := json.NewDecoder(strings.NewReader(args))
	dec.UseNumber()
	var v map[string]any
	if err := dec.Decode(&v); err != nil || v == nil {
		return textNode(args)
	}
	n := valueNode(v)
	again := (&parser{}).parseArgs(n)
	if dialect.CanonicalArgs(again) != dialect.CanonicalArgs(args) {
		return textNode(args)
	}
	return n
}

func valueNode(v any) *yaml.Node {
	switch x := v.(type) {
	case map[string]any:
		n := newMapping()
		for _, k := range sortedKeys(x) {
			n.Content = append(n.Content, textNode(k), valueNode(x[k]))
		}
		return n
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for _, e := range x {
			n.Content = append(n.Content, valueNode(e))
		}
		return n
	case string:
		return textNode(x)
	case json.Number:
		tag := "!!int"
		if strings.ContainsAny(string(x), ".eE") {
			tag = "!!float"
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: string(x)}
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(x)}
	default:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
	}
}

func newMapping(pairs ...any) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for i := 0; i+1 < len(pairs); i += 2 {
		key, _ := pairs[i].(string)
		value, _ := pairs[i+1].(*yaml.Node)
		addPair(n, key, value)
	}
	return n
}

func addPair(n *yaml.Node, key string, value *yaml.Node) {
	n.Content = append(n.Content, plainNode(key), value)
}

func addText(n *yaml.Node, key, text string) {
	if text != "" {
		addPair(n, key, textNode(text))
	}
}

func addTexts(n *yaml.Node, key string, texts []string, style yaml.Style) {
	if len(texts) == 0 {
		return
	}
	seq := &yaml.Node{Kind: yaml.SequenceNode, Style: style}
	for _, t := range texts {
		item := textNode(t)
		if style == yaml.FlowStyle && item.Style == yaml.LiteralStyle {
			item.Style = yaml.DoubleQuotedStyle
		}
		seq.Content = append(seq.Content, item)
	}
	addPair(n, key, seq)
}

// plainNode is a scalar that needs no quotes: a known word or a number.
func plainNode(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: s} }

// textNode is a text of any content: several lines as a block, which a reviewer
// can read, unless the block form could not give the same text back.
func textNode(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	if strings.Contains(s, "\n") {
		n.Style = yaml.DoubleQuotedStyle
		if blockSafe(s) {
			n.Style = yaml.LiteralStyle
		}
	}
	return n
}

// blockSafe is stricter than YAML: no leading space or empty line (they need an
// indentation indicator, which readers get wrong), nothing unprintable.
func blockSafe(s string) bool {
	if s[0] == ' ' || s[0] == '\t' || s[0] == '\n' || strings.TrimSpace(s) == "" {
		return false
	}
	for _, r := range s {
		if r != '\n' && r != '\t' && (!unicode.IsPrint(r) || r == unicode.ReplacementChar) {
			return false
		}
	}
	return true
}
