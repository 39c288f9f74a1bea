package extract

import (
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/internal/strictyaml"
)

// bareJSON reads an answer that begins with a JSON object.
func (d *document) bareJSON() (*block, *OutputError) {
	text := strings.TrimLeft(strings.Join(d.lines[d.first:], "\n"), " \t")
	if !strings.HasPrefix(text, "{") {
		return nil, nil
	}
	it, rest, fault := parseObject(text, d.first)
	size := len(text) - len(rest)
	switch {
	case fault != nil && !d.looksOurs(d.lines[d.first:]) && !fault.Final:
		return nil, nil // braces in prose
	case fault != nil:
		return nil, &OutputError{Reason: ErrSyntax, Line: fault.At.Line, Detail: fault.Error()}
	case !d.schema.anyField(it):
		return nil, nil
	case size > MaxBlock:
		return nil, &OutputError{Reason: ErrTooLarge, Line: d.first + 1, Detail: fmt.Sprintf("the JSON object has %d bytes, the limit is %d: put long text under it", size, MaxBlock)}
	}
	return &block{fields: it, line: d.first + 1, after: rest}, nil
}

// parseObject reads an object at the beginning of text, as JSON, or as YAML where
// it ends with its line, or with a line that is } alone: commas too many, names
// without quotes.
func parseObject(text string, above int) (it *strictyaml.Node, rest string, fault *strictyaml.Fault) {
	it, rest, fault = parseJSON(text, above)
	if fault == nil || fault.Final {
		return it, rest, fault
	}
	end := -1
	if first, _, _ := strings.Cut(text, "\n"); strings.HasSuffix(strings.TrimSpace(first), "}") {
		end = len(first)
	} else if at := strings.Index(text, "\n}"); at >= 0 {
		end = at + 2
	}
	if end < 0 || end > MaxBlock {
		return nil, "", fault
	}
	lenient, yamlFault := parseYAML(text[:end], above) // a mapping: it begins with a brace
	if yamlFault != nil {
		return nil, "", fault
	}
	return lenient, text[end:], nil
}

// proseJSON reads the one JSON object in a text that begins a line outside of
// code and has the status.
func (d *document) proseJSON() (*block, *OutputError) {
	var found []*block
	text := strings.Join(d.lines, "\n")
	tries, at, end := 0, 0, 0
	for i, l := range d.lines {
		start := at
		at += len(l) + 1
		if i < d.first || d.inCode[i] || d.hidden[i] || !strings.HasPrefix(l, "{") || tries == maxBlocks || start < end {
			continue // the last: inside of the one before
		}
		tries++
		it, rest, fault := parseJSON(text[start:], i)
		if fault != nil || !d.isComplete(it) || len(text)-start-len(rest) > MaxBlock {
			continue
		}
		end = len(text) - len(rest)
		found = append(found, &block{fields: it, line: i + 1, before: strings.Join(d.visibleLines(d.lines[d.first:i]), "\n"), after: rest, text: text[start:end]})
	}
	return agreeingBlocks(found, "JSON objects")
}
