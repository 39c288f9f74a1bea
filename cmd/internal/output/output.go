// Package output prints the results of commands: as JSON or YAML for programs, as
// text for people. What comes from agents, users or the store can hold anything,
// so whatever is printed as text goes through one filter that makes terminal
// escapes visible instead of effective. It never decides what to print.
package output

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/text"
	"gopkg.in/yaml.v3"
)

// Format is how results are printed.
type Format string

// The formats. Auto is text on a terminal and JSON elsewhere.
const (
	Auto Format = ""
	JSON Format = "json"
	YAML Format = "yaml"
	Text Format = "text"
)

// ParseFormat reads the value of --format.
func ParseFormat(s string) (Format, error) {
	switch f := Format(s); f {
	case Auto, JSON, YAML, Text:
		return f, nil
	}
	return "", fmt.Errorf("unknown format %q: use json, yaml or text", s)
}

// Printer prints to one stream.
type Printer struct {
	Out    io.Writer
	Format Format
	TTY    bool // Out is a terminal
	Color  bool // Out may be coloured
	// Zone is where the person is who reads text; nil: UTC. Programs get UTC always.
	Zone *time.Location
	// Query is applied to results, which are printed as what comes out of it; nil:
	// none.
	Query *Query
	// Seen is told each result before it is printed; nil: nobody. For tests.
	Seen func(v any)
}

// Chosen is the format that results are printed in, never Auto.
func (p Printer) Chosen() Format {
	switch {
	case p.Query != nil:
		return JSON
	case p.Format != Auto:
		return p.Format
	case p.TTY:
		return Text
	}
	return JSON
}

// Or is the printer for results that are meant in another format: f where none was asked
// for.
func (p Printer) Or(f Format) Printer {
	if p.Format == Auto {
		p.Format = f
	}
	return p
}

// Print prints one result. v is marshalled as encoding/json does it, unless the
// format is text: then text writes it.
func (p Printer) Print(v any, text func(*Writer)) error {
	if p.Seen != nil {
		p.Seen(v)
	}
	if p.Query != nil {
		return p.printQuery(v)
	}
	var b []byte
	var err error
	switch p.Chosen() {
	case Text:
		w := p.Text()
		text(w)
		return w.Flush()
	case YAML:
		b, err = encodeYAML(v)
	default:
		b, err = encodeJSON(v)
	}
	if err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	if _, err := p.Out.Write(b); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return nil
}

// Text is a writer of filtered text to the printer's stream, for output that
// goes on for a while. Flush tells whether all was written.
func (p Printer) Text() *Writer {
	return &Writer{Zone: cmp.Or(p.Zone, time.UTC), out: p.Out, color: p.Color}
}

// encodeJSON writes indented JSON. HTML's characters stay readable; characters
// that a terminal acts on are written as escapes, which mean the same in JSON.
func encodeJSON(v any) ([]byte, error) {
	b, err := text.IndentJSON(v)
	if slices.ContainsFunc(b, func(c byte) bool { return c >= 0x7f }) {
		b = []byte(escapeUnsafe(string(b)))
	}
	return append(b, '\n'), err
}

// leftByJSON reports whether a character is unsafe and written by JSON as it is, which
// escapes C0 alone.
func leftByJSON(r rune) bool { return r >= 0x7f && text.IsUnsafe(r) }

// escapeUnsafe rewrites unsafe characters as \uXXXX. In JSON and in double quotes
// of YAML these are the same text.
func escapeUnsafe(s string) string {
	if !strings.ContainsFunc(s, leftByJSON) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if leftByJSON(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

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
