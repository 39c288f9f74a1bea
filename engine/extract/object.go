package extract

import (
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/internal/strictyaml"
)

// bareJSON reads an answer that begins with a JSON object.
func (d *document) bareJSON() (*block, error) {
	text := strings.Join(d.lines[d.first:], "\n")
	start := len(text) - len(strings.TrimLeft(text, " \t\r\n"))
	if !strings.HasPrefix(text[start:], "{") {
		return nil, nil
	}
	line := d.first + 1 + strings.Count(text[:start], "\n")
	it, rest, fault := parseObject(text[start:], line-1)
	if fault != nil {
		if !d.looksOurs(d.lines[d.first:]) && !fault.Final {
			return nil, nil // braces in prose
		}
		return nil, &Error{Reason: ErrSyntax, Line: fault.At.Line, Detail: fault.Error()}
	}
	if !d.schema.anyField(it) {
		return nil, nil
	}
	if size := len(text) - start - len(rest); size > MaxBlock {
		return nil, &Error{Reason: ErrTooLarge, Line: line, Detail: fmt.Sprintf("the JSON object has %d bytes, the limit is %d: put long text under it", size, MaxBlock)}
	}
	return &block{fields: it, line: line, after: rest}, nil
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
// code and has the status. Two that differ are an error.
func (d *document) proseJSON() (*block, error) {
	var found *block
	var source string
	text := strings.Join(d.lines, "\n")
	tries, at := 0, 0
	for i, l := range d.lines {
		start := at
		at += len(l) + 1
		if i < d.first || d.inCode[i] || d.hidden[i] || !strings.HasPrefix(l, "{") || tries == maxBlocks {
			continue
		}
		if found != nil && start < len(text)-len(found.after) {
			continue // inside of the one before
		}
		tries++
		it, rest, fault := parseJSON(text[start:], i)
		if fault != nil || !d.isComplete(it) || len(text)-start-len(rest) > MaxBlock {
			continue
		}
		object := text[start : len(text)-len(rest)]
		if found != nil && object != source {
			return nil, &Error{Reason: ErrSyntax, Line: i + 1, Detail: "two JSON objects hold fields, and they differ: write the fields once, between lines that are ---"}
		}
		if found == nil {
			found, source = &block{fields: it, line: i + 1, before: strings.Join(d.visibleLines(d.lines[d.first:i]), "\n"), after: rest}, object
		}
	}
	return found, nil
}
