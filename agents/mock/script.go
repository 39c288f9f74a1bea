package mock

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/text"
	"github.com/united-workforce/uwf/internal/yamlline"
)

// maxScript bounds a script, in bytes.
const maxScript = 4 << 20

// Script is what the mock agent plays.
type Script struct {
	Entries []Entry
	// InOrder says that the first entry is the thread's first step, and so on. Such are
	// the scripts of the TypeScript uwf.
	InOrder bool
}

// Entry is what happens in one step. The package comment describes the fields.
type Entry struct {
	Line  int  // where it stands in the script
	plain bool // it has a role and one output, and nothing else

	Role    string // "": any
	Step    int    // 0: any
	Visit   int    // 0: any
	Attempt int    // 0: any

	Outputs  []string
	Delay    time.Duration
	Write    map[string]string
	Delete   []string
	Commands []string
	Usage    record.Usage
	Stderr   string
	Stdout   string
	Size     int
	Flood    int
	Daemon   bool
	Stage    map[string]string
	Hang     bool
	Exit     *int
	Kill     bool
	Handle   *string
	Extract  bool
	As       As
}

// As is what a lying step says of itself; empty fields tell the truth.
type As struct {
	Role, Agent string
	Start, Prev node.Hash
}

// Moment is what an entry's conditions are held against.
type Moment struct {
	Role                 string
	Step, Visit, Attempt int
}

// Pick returns the first entry whose conditions hold; of a script that is played in order,
// the one of the step, which must be of its role.
func (s Script) Pick(m Moment) (Entry, error) {
	if s.InOrder {
		return s.inOrder(m)
	}
	for _, e := range s.Entries {
		if (e.Role == "" || e.Role == m.Role) && matchesIndex(e.Step, m.Step) && matchesIndex(e.Visit, m.Visit) && matchesIndex(e.Attempt, m.Attempt) {
			return e, nil
		}
	}
	return Entry{}, fmt.Errorf("the script has no entry for role %s at step %d (visit %d, attempt %d); add one", m.Role, m.Step, m.Visit, m.Attempt)
}

// inOrder returns the entry of the step. That it is of another role means that the
// workflow went another way than the script's author thought.
func (s Script) inOrder(m Moment) (Entry, error) {
	if m.Step > len(s.Entries) {
		return Entry{}, fmt.Errorf("the script, which is played in order, ends after %s: it has no entry for step %d, of role %s; add one", text.Plural(len(s.Entries), "step"), m.Step, m.Role)
	}
	e := s.Entries[m.Step-1]
	if e.Role != "" && e.Role != m.Role {
		return Entry{}, fmt.Errorf("the script, which is played in order, has role %s for step %d (line %d), and it is the turn of %s", e.Role, m.Step, e.Line, m.Role)
	}
	return e, nil
}

// comesInOrder reports a script of the TypeScript uwf: each entry has a role and an output
// and nothing else, and a role comes again, which by its role alone would never be played.
func comesInOrder(entries []Entry) bool {
	seen, again := map[string]bool{}, false
	for _, e := range entries {
		if !e.plain || e.Role == "" {
			return false
		}
		again = again || seen[e.Role]
		seen[e.Role] = true
	}
	return again
}

func matchesIndex(want, have int) bool { return want == 0 || want == have }

// ScriptError lists everything that is wrong with a script, each with its place.
type ScriptError struct{ Problems []string }

func (e *ScriptError) Error() string { return "mock script: " + strings.Join(e.Problems, "\n") }

// Parse reads a script. Name is used in errors, which are a *ScriptError.
func Parse(name string, b []byte) (Script, error) {
	p := &parser{name: name}
	var s Script
	if root := p.parseDocument(b); root != nil {
		p.parseMapping(root, map[string]func(*yaml.Node){
			"steps": func(n *yaml.Node) {
				p.parseList(n, func(n *yaml.Node) { s.Entries = append(s.Entries, p.parseEntry(n)) })
			},
		})
		if len(p.problems) == 0 && len(s.Entries) == 0 {
			p.addProblem(root, "no steps; a script is a mapping with the list \"steps\"")
		}
	}
	if len(p.problems) > 0 {
		return Script{}, &ScriptError{Problems: p.problems}
	}
	s.InOrder = comesInOrder(s.Entries)
	return s, nil
}

// parser reads YAML through its nodes, so that every complaint has a place.
type parser struct {
	name     string
	problems []string
}

func (p *parser) addProblem(n *yaml.Node, format string, args ...any) {
	p.problems = append(p.problems, fmt.Sprintf("%s:%d:%d: %s", p.name, n.Line, n.Column, fmt.Sprintf(format, args...)))
}

// parseDocument returns the root of the one document that b must hold.
func (p *parser) parseDocument(b []byte) *yaml.Node {
	whole := &yaml.Node{Line: 1, Column: 1}
	if len(b) > maxScript {
		p.addProblem(whole, "larger than %d bytes", maxScript)
		return nil
	}
	d := yaml.NewDecoder(bytes.NewReader(b))
	var doc, more yaml.Node
	switch err := d.Decode(&doc); {
	case errors.Is(err, io.EOF):
		p.addProblem(whole, "the script is empty")
		return nil
	case err != nil:
		return p.addSyntaxError(b, err)
	}
	switch err := d.Decode(&more); {
	case err == nil:
		p.addProblem(&more, "more than one document")
		return nil
	case !errors.Is(err, io.EOF):
		return p.addSyntaxError(b, err)
	}
	if len(doc.Content) != 1 || !p.checkSimple(doc.Content[0]) {
		return nil
	}
	return doc.Content[0]
}

// addSyntaxError says where the YAML can't be read.
func (p *parser) addSyntaxError(b []byte, err error) *yaml.Node {
	line, message := yamlline.Find(string(b), err)
	p.addProblem(&yaml.Node{Line: max(line, 1), Column: 1}, "not valid YAML: %s", message)
	return nil
}

// checkSimple refuses anchors, aliases and tags in the whole tree, before anything
// follows them.
func (p *parser) checkSimple(n *yaml.Node) bool {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		p.addProblem(n, "anchors and aliases are not allowed")
		return false
	}
	if n.Style&yaml.TaggedStyle != 0 {
		p.addProblem(n, "tags such as %s are not allowed", n.Tag)
		return false
	}
	ok := true
	for _, c := range n.Content {
		ok = p.checkSimple(c) && ok
	}
	return ok
}

func (p *parser) parseMapping(n *yaml.Node, fields map[string]func(*yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		p.addProblem(n, "must be a mapping")
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		set, ok := fields[key.Value]
		switch {
		case !ok:
			p.addProblem(key, "unknown key %q; there are: %s", key.Value, strings.Join(sortedKeys(fields), ", "))
		case seen[key.Value]:
			p.addProblem(key, "key %q is there twice", key.Value)
		default:
			set(value)
		}
		seen[key.Value] = true
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (p *parser) parseList(n *yaml.Node, item func(*yaml.Node)) {
	if n.Kind != yaml.SequenceNode {
		p.addProblem(n, "must be a list")
		return
	}
	for _, c := range n.Content {
		item(c)
	}
}

func (p *parser) parseEntry(n *yaml.Node) Entry {
	e := Entry{Line: n.Line}
	p.parseMapping(n, map[string]func(*yaml.Node){
		"role":     p.textInto(&e.Role),
		"step":     p.numberInto(&e.Step, 1),
		"visit":    p.numberInto(&e.Visit, 1),
		"attempt":  p.numberInto(&e.Attempt, 1),
		"output":   func(n *yaml.Node) { e.Outputs = p.parseTexts(n, true) },
		"delay":    p.durationInto(&e.Delay),
		"write":    p.textMap(&e.Write),
		"delete":   func(n *yaml.Node) { e.Delete = p.parseTexts(n, false) },
		"commands": func(n *yaml.Node) { e.Commands = p.parseTexts(n, false) },
		"usage":    func(n *yaml.Node) { e.Usage = p.parseUsage(n) },
		"stderr":   p.textInto(&e.Stderr),
		"stdout":   p.textInto(&e.Stdout),
		"size":     p.numberInto(&e.Size, 1),
		"flood":    p.numberInto(&e.Flood, 1),
		"daemon":   p.flagInto(&e.Daemon),
		"stage":    p.textMap(&e.Stage),
		"hang":     p.flagInto(&e.Hang),
		"extract":  p.flagInto(&e.Extract),
		"exit":     func(n *yaml.Node) { e.Exit = new(int); p.numberInto(e.Exit, 0)(n) },
		"kill":     p.flagInto(&e.Kill),
		"handle":   func(n *yaml.Node) { e.Handle = new(string); p.textInto(e.Handle)(n) },
		"as": func(n *yaml.Node) {
			p.parseMapping(n, map[string]func(*yaml.Node){
				"role": p.textInto(&e.As.Role), "agent": p.textInto(&e.As.Agent),
				"start": p.hashInto(&e.As.Start), "prev": p.hashInto(&e.As.Prev),
			})
		},
	})
	e.plain = len(n.Content) == 4 && e.Role != "" && len(e.Outputs) == 1
	if e.Exit != nil && *e.Exit > 255 {
		p.addProblem(n, "exit code %d; the highest is 255", *e.Exit)
	}
	if len(e.Outputs) == 0 && e.Exit == nil && !e.Hang && !e.Kill && n.Kind == yaml.MappingNode {
		p.addProblem(n, "an entry needs an output, or one of exit, hang, kill")
	}
	return e
}

func (p *parser) parseUsage(n *yaml.Node) (u record.Usage) {
	var turns, in, out int
	priced := false
	p.parseMapping(n, map[string]func(*yaml.Node){
		"turns": p.numberInto(&turns, 0), "inputTokens": p.numberInto(&in, 0), "outputTokens": p.numberInto(&out, 0),
		"costUsd": func(n *yaml.Node) {
			priced = true
			if err := n.Decode(&u.CostUSD); err != nil || !(u.CostUSD >= 0 && u.CostUSD < 1e9) {
				p.addProblem(n, "%q is no amount in US dollars", n.Value)
			}
		},
	})
	u.Turns, u.InputTokens, u.OutputTokens, u.Unpriced = turns, int64(in), int64(out), !priced && in+out > 0
	return u
}

func (p *parser) checkScalar(n *yaml.Node, tag, what string) bool {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == tag {
		return true
	}
	p.addProblem(n, "must be %s", what)
	return false
}

func (p *parser) textInto(to *string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if p.checkScalar(n, "!!str", "text; put it in quotes") {
			*to = n.Value
		}
	}
}

func (p *parser) flagInto(to *bool) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if p.checkScalar(n, "!!bool", "true or false") {
			if err := n.Decode(to); err != nil {
				p.addProblem(n, "%v", err)
			}
		}
	}
}

func (p *parser) numberInto(to *int, least int) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if !p.checkScalar(n, "!!int", "a whole number") {
			return
		}
		if err := n.Decode(to); err != nil || *to < least {
			p.addProblem(n, "must be a whole number from %d", least)
		}
	}
}

func (p *parser) durationInto(to *time.Duration) func(*yaml.Node) {
	return func(n *yaml.Node) {
		d, err := time.ParseDuration(n.Value) // lists and mappings have no value
		if err != nil || d < 0 {
			p.addProblem(n, "must be a duration such as 250ms or 2s")
			return
		}
		*to = d
	}
}

func (p *parser) hashInto(to *node.Hash) func(*yaml.Node) {
	return func(n *yaml.Node) {
		h, err := node.ParseHash(n.Value) // lists and mappings have no value
		if err != nil {
			p.addProblem(n, "must be a node's hash, 13 characters")
			return
		}
		*to = h
	}
}

func (p *parser) parseTexts(n *yaml.Node, single bool) (out []string) {
	if single && n.Kind == yaml.ScalarNode {
		var s string
		p.textInto(&s)(n)
		return []string{s}
	}
	p.parseList(n, func(n *yaml.Node) {
		var s string
		p.textInto(&s)(n)
		out = append(out, s)
	})
	return out
}

func (p *parser) textMap(to *map[string]string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind != yaml.MappingNode {
			p.addProblem(n, "must be a mapping of file names to text")
			return
		}
		*to = map[string]string{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i].Value
			if _, ok := (*to)[key]; ok {
				p.addProblem(n.Content[i], "key %q is there twice", key)
			}
			var s string
			p.textInto(&s)(n.Content[i+1])
			(*to)[key] = s
		}
	}
}
