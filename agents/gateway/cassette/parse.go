package cassette

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/united-workforce/uwf/agents/gateway/dialect"
	"github.com/united-workforce/uwf/internal/yamlline"
)

// Load reads a cassette from a file.
func Load(file string) (*Cassette, error) {
	b, err := readFile(file)
	if err != nil {
		return nil, err
	}
	return Parse(file, b)
}

func readFile(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read cassette: %w", err)
	}
	b, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("read cassette: %w", err)
	}
	return b, nil
}

// Parse reads a cassette. name stands in messages. The error holds one
// *ParseError for each problem (at most twenty).
func Parse(name string, b []byte) (*Cassette, error) {
	c, _, err := parseCassette(name, b)
	return c, err
}

// parseCassette returns the document's root too, for changing it in place.
func parseCassette(name string, b []byte) (*Cassette, *yaml.Node, error) {
	if len(b) > MaxSize {
		return nil, nil, &ParseError{File: name, Problem: fmt.Sprintf("larger than %d bytes", MaxSize)}
	}
	dec := yaml.NewDecoder(bytes.NewReader(b))
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		return nil, nil, syntaxError(name, b, err)
	}
	p := &parser{file: name}
	c := p.parseRoot(&doc)
	var more yaml.Node
	if err := dec.Decode(&more); err == nil {
		p.addProblem(&more, "a cassette is one YAML document; this is the second")
	} else if !errors.Is(err, io.EOF) {
		return nil, nil, syntaxError(name, b, err)
	}
	if len(p.problems) > 0 {
		return nil, nil, errors.Join(p.problems...)
	}
	return c, &doc, nil
}

// syntaxError turns the YAML library's text into a ParseError with its line.
func syntaxError(name string, text []byte, err error) error {
	if errors.Is(err, io.EOF) {
		return &ParseError{File: name, Problem: "empty: at least \"version: 1\" is needed"}
	}
	line, problem := yamlline.Find(string(text), err)
	return &ParseError{File: name, Line: line, Problem: "not valid YAML: " + problem}
}

// parser walks the YAML nodes, so that every problem has its line.
type parser struct {
	file     string
	problems []error
}

const maxProblems = 20

func (p *parser) addProblem(n *yaml.Node, format string, args ...any) {
	if len(p.problems) < maxProblems {
		p.problems = append(p.problems, &ParseError{File: p.file, Line: n.Line, Column: n.Column, Problem: fmt.Sprintf(format, args...)})
	}
}

func (p *parser) parseRoot(doc *yaml.Node) *Cassette {
	c := &Cassette{File: p.file}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		p.addProblem(doc, "not a YAML document")
		return c
	}
	root := doc.Content[0]
	version := false
	p.parseFields(root, map[string]func(*yaml.Node){
		"version": func(n *yaml.Node) {
			version = true
			if v := p.parseInt(n); v != Version {
				p.addProblem(n, "version %s is not known here: this program reads version %d", n.Value, Version)
			}
		},
		"note": func(n *yaml.Node) { c.Note = p.parseText(n) },
		"entries": func(n *yaml.Node) {
			p.parseItems(n, func(n *yaml.Node) { c.Entries = append(c.Entries, p.parseEntry(n)) })
		},
	})
	if !version && len(p.problems) == 0 {
		p.addProblem(root, "\"version: %d\" is missing", Version)
	}
	p.numberTurns(c)
	return c
}

// numberTurns gives entries without a turn their place, and refuses turns that are not
// 1, 2, 3… within their step and role.
func (p *parser) numberTurns(c *Cassette) {
	type key struct {
		step int
		role string
	}
	next := map[key]int{}
	for i := range c.Entries {
		e := &c.Entries[i]
		k := key{e.Step, e.Role}
		next[k]++
		if e.Turn == 0 {
			e.Turn = next[k]
		}
		if e.Turn != next[k] {
			p.addProblem(&yaml.Node{Line: e.Line}, "turn %d of role %s where turn %d is due: turns of a step count 1, 2, 3… in file order", e.Turn, e.Role, next[k])
			next[k] = e.Turn
		}
	}
}

func (p *parser) parseEntry(n *yaml.Node) Entry {
	e := Entry{Line: n.Line}
	answered := false
	p.parseFields(n, map[string]func(*yaml.Node){
		"step":    func(n *yaml.Node) { e.Step = p.parsePositive(n) },
		"role":    func(n *yaml.Node) { e.Role = p.parseText(n) },
		"turn":    func(n *yaml.Node) { e.Turn = p.parsePositive(n) },
		"request": func(n *yaml.Node) { e.Request = p.parseRequest(n) },
		"match":   func(n *yaml.Node) { e.Match = p.parseMatch(n) },
		"answer":  func(n *yaml.Node) { answered = true; e.Answer = p.parseAnswer(n) },
	})
	if n.Kind != yaml.MappingNode {
		return e
	}
	if e.Role == "" {
		p.addProblem(n, "an entry needs a \"role\"")
	}
	if !answered {
		p.addProblem(n, "an entry needs an \"answer\"")
	}
	if e.Request != nil && e.Match != nil {
		p.addProblem(n, "an entry has \"request\" (exact) or \"match\" (loose), not both")
	}
	return e
}

func (p *parser) parseRequest(n *yaml.Node) *Request {
	r := &Request{}
	p.parseFields(n, map[string]func(*yaml.Node){
		"post":      func(n *yaml.Node) { r.Path = p.parseText(n) },
		"model":     func(n *yaml.Node) { r.Model = p.parseText(n) },
		"stream":    func(n *yaml.Node) { r.Stream = p.parseBool(n) },
		"tools":     func(n *yaml.Node) { r.Tools = p.parseTexts(n) },
		"continues": func(n *yaml.Node) { r.Continues = p.parseBool(n) },
		"messages": func(n *yaml.Node) {
			p.parseItems(n, func(n *yaml.Node) { r.Messages = append(r.Messages, p.parseMessage(n)) })
		},
	})
	slices.Sort(r.Tools)
	if _, ok := dialect.ForPath(r.Path); !ok && n.Kind == yaml.MappingNode {
		p.addProblem(n, "\"post\" must be %s, %s or %s", dialect.Chat.Path(), dialect.Responses.Path(), dialect.Messages.Path())
	}
	return r
}

func (p *parser) parseMatch(n *yaml.Node) *Match {
	m := &Match{}
	p.parseFields(n, map[string]func(*yaml.Node){
		"contains": func(n *yaml.Node) { m.Contains = p.parseTexts(n) },
		"tools":    func(n *yaml.Node) { m.Tools = p.parseTexts(n) },
		"model":    func(n *yaml.Node) { m.Model = p.parseText(n) },
	})
	return m
}

func (p *parser) parseMessage(n *yaml.Node) dialect.Message {
	var m dialect.Message
	p.parseFields(n, map[string]func(*yaml.Node){
		"role":  func(n *yaml.Node) { m.Role = p.parseText(n) },
		"text":  func(n *yaml.Node) { m.Text = p.parseText(n) },
		"calls": func(n *yaml.Node) { p.parseItems(n, func(n *yaml.Node) { m.Calls = append(m.Calls, p.parseCall(n)) }) },
	})
	return m
}

func (p *parser) parseCall(n *yaml.Node) dialect.Call {
	c := dialect.Call{Args: "{}"}
	p.parseFields(n, map[string]func(*yaml.Node){
		"id":   func(n *yaml.Node) { c.ID = p.parseText(n) },
		"name": func(n *yaml.Node) { c.Name = p.parseText(n) },
		"args": func(n *yaml.Node) { c.Args = p.parseArgs(n) },
	})
	if c.Name == "" && n.Kind == yaml.MappingNode {
		p.addProblem(n, "a call needs a \"name\"")
	}
	return c
}

// parseArgs reads a mapping as a JSON object, or a text as it is.
func (p *parser) parseArgs(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode {
		return p.parseText(n)
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(p.parseValue(n)); err != nil {
		p.addProblem(n, "arguments that are no JSON: %v", err)
		return "{}"
	}
	return string(bytes.TrimSpace(buf.Bytes()))
}

func (p *parser) parseAnswer(n *yaml.Node) Answer {
	var a Answer
	forms := map[string]bool{}
	form := func(name string, f func(*yaml.Node)) func(*yaml.Node) {
		return func(n *yaml.Node) { forms[name] = true; f(n) }
	}
	p.parseFields(n, map[string]func(*yaml.Node){
		"status": func(n *yaml.Node) { a.Status = p.parsePositive(n) },
		"text":   form("text", func(n *yaml.Node) { a.Text = p.parseText(n) }),
		"calls": form("text", func(n *yaml.Node) {
			p.parseItems(n, func(n *yaml.Node) { a.Calls = append(a.Calls, p.parseCall(n)) })
		}),
		"finish": form("text", func(n *yaml.Node) { a.Finish = p.parseFinish(n) }),
		"body":   form("body", func(n *yaml.Node) { a.Body = p.parseText(n) }),
		"events": form("events", func(n *yaml.Node) { a.Events = p.parseText(n) }),
		"error":  form("error", func(n *yaml.Node) { a.Error = p.parseText(n) }),
		"usage":  func(n *yaml.Node) { a.Usage = p.parseUsage(n) },
	})
	if len(forms) > 1 {
		p.addProblem(n, "an answer has one of text (with calls and finish), body, events and error")
	}
	if a.Status == 0 {
		a.Status = 200
		if a.Error != "" {
			a.Status = 400
		}
	}
	if a.Status > 599 || (a.Error != "") != (a.Status >= 400 && a.Body == "") {
		p.addProblem(n, "status %d does not fit: an error (or body) has 400 to 599, any other answer 200", a.Status)
	}
	return a
}

func (p *parser) parseFinish(n *yaml.Node) string {
	switch s := p.parseText(n); s {
	case "", dialect.FinishStop, dialect.FinishCalls, dialect.FinishLength, dialect.FinishFilter:
		return s
	default:
		p.addProblem(n, "finish is stop, calls, length or filter, not %q", s)
		return ""
	}
}

func (p *parser) parseUsage(n *yaml.Node) dialect.Usage {
	var u dialect.Usage
	p.parseFields(n, map[string]func(*yaml.Node){
		"in":         func(n *yaml.Node) { u.In, u.HasIn = int64(p.parseInt(n)), true },
		"out":        func(n *yaml.Node) { u.Out, u.HasOut = int64(p.parseInt(n)), true },
		"cacheRead":  func(n *yaml.Node) { u.CacheRead = int64(p.parseInt(n)) },
		"cacheWrite": func(n *yaml.Node) { u.CacheWrite = int64(p.parseInt(n)) },
		"costUsd":    func(n *yaml.Node) { u.CostUSD, u.HasCost = p.parseDollars(n), true },
	})
	return u
}
