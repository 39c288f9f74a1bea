package ocastest

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/gitcas/node"
)

// Generation is one of the forms that records and workflows had in the json-cas era. Whose
// nodes were seen, or follow from the sources of these weeks, are FirstGeneration to
// FourthGeneration; MixedGeneration stands for builds between two of them.
type Generation int

// The generations.
const (
	FirstGeneration  Generation = iota + 1 // no titles; system prompts; lists with conditions
	SecondGeneration                       // the same with titles
	ThirdGeneration                        // goal, capabilities, procedure, output and meta
	FourthGeneration                       // frontmatter; status maps; a step has its edge's prompt
	MixedGeneration                        // status maps with meta; texts and times of a step in nodes of their own
)

// EarlyStore is a store of the json-cas era: its nodes are below a meta-schema of their own.
type EarlyStore struct {
	Nodes map[node.Hash]node.Node
	Meta  node.Hash
	// Lists are the files of the storage root, by name.
	Lists map[string]string
	err   error
	ticks int64
}

// NewEarly makes a store with nothing but a meta-schema that is described like this.
func NewEarly(description string) *EarlyStore {
	s := &EarlyStore{Nodes: map[node.Hash]node.Node{}, Lists: map[string]string{}}
	meta := map[string]any{"type": "object", "description": description}
	s.Meta, s.err = node.SelfHash(meta)
	s.Nodes[s.Meta] = node.Node{Type: s.Meta, Payload: meta, Timestamp: at.UnixMilli()}
	return s
}

// Put adds a node. Each is a second younger than the one before.
func (s *EarlyStore) Put(typ node.Hash, payload any) node.Hash {
	p, err := node.Normalize(payload)
	n := node.Node{Type: typ, Payload: p}
	h, err2 := n.ComputeHash()
	s.err = errors.Join(s.err, err, err2)
	if _, there := s.Nodes[h]; !there {
		s.ticks++
		n.Timestamp = at.UnixMilli() + 1000*s.ticks
		s.Nodes[h] = n
	}
	return h
}

// putSchema adds the schema of objects with these fields and no others: a field's name ends
// with * where it is a reference. Those after an empty name are optional.
func (s *EarlyStore) putSchema(title string, fields ...string) node.Hash {
	properties, required, optional := map[string]any{}, []any{}, false
	for _, f := range fields {
		if f == "" {
			optional = true
			continue
		}
		name, isRef := strings.CutSuffix(f, "*")
		properties[name] = map[string]any{}
		if isRef {
			properties[name] = map[string]any{"anyOf": []any{map[string]any{"type": "string", "format": "cas_ref"}, map[string]any{"type": "null"}}}
		}
		if !optional {
			required = append(required, name)
		}
	}
	out := map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
	if title != "" {
		out["title"] = title
	}
	return s.Put(s.Meta, out)
}

// PutWorkflow adds a workflow of a generation: developer, then reviewer, who ends it or
// sends it back. It returns the types of their outputs.
func (s *EarlyStore) PutWorkflow(g Generation) (flow, developer, reviewer node.Hash) {
	key := map[bool]string{true: "$status", false: "status"}[g == FourthGeneration]
	output := func(statuses ...any) node.Hash {
		properties := map[string]any{"summary": map[string]any{"type": "string"}, "approved": map[string]any{"type": "boolean"}}
		if g >= FourthGeneration {
			properties[key] = map[string]any{"type": "string", "enum": statuses}
		}
		return s.Put(s.Meta, map[string]any{"type": "object", "properties": properties})
	}
	developer, reviewer = output("done"), output("approved", "rejected")
	field := map[bool]string{true: "frontmatter", false: "meta"}[g == FourthGeneration]
	role := func(out node.Hash) map[string]any {
		if g < ThirdGeneration {
			return map[string]any{"description": "d", "systemPrompt": "Do it.", "outputSchema": string(out)}
		}
		return map[string]any{"description": "d", "goal": "Do it.", "capabilities": []any{"git"}, "procedure": "p", "output": "o", field: string(out)}
	}
	edge := func(to string, condition any) any { return map[string]any{"role": to, "condition": condition} }
	graph := map[string]any{
		"$START": []any{edge("developer", nil)}, "developer": []any{edge("reviewer", nil)},
		"reviewer": []any{edge("developer", "notApproved"), edge("$END", nil)},
	}
	payload := map[string]any{"name": "early", "description": "d", "graph": graph, "roles": map[string]any{"developer": role(developer), "reviewer": role(reviewer)}}
	if g < FourthGeneration {
		payload["conditions"] = map[string]any{"notApproved": map[string]any{"description": "c", "expression": "steps[-1].output.approved = false"}}
	} else {
		edge := func(to, prompt string) any { return map[string]any{"role": to, "prompt": prompt} }
		payload["graph"] = map[string]any{
			"$START": map[string]any{"_": edge("developer", "Begin.")}, "developer": map[string]any{"done": edge("reviewer", "Check: {{summary}}")},
			"reviewer": map[string]any{"approved": edge("$END", ""), "rejected": edge("developer", "Again.")},
		}
	}
	return s.Put(s.putFlowSchema(g), payload), developer, reviewer
}

func (s *EarlyStore) putFlowSchema(g Generation) node.Hash {
	ref := map[string]any{"type": "string", "format": "cas_ref"}
	roles := map[string]any{"additionalProperties": map[string]any{"properties": map[string]any{"outputSchema": ref, "meta": ref, "frontmatter": ref}}}
	out := map[string]any{"type": "object", "properties": map[string]any{"name": map[string]any{}, "description": map[string]any{}, "roles": roles, "graph": map[string]any{}, "conditions": map[string]any{}}, "additionalProperties": false}
	if g > FirstGeneration {
		out["title"] = "Workflow"
	}
	return s.Put(s.Meta, out)
}

// Verdict is what a reviewer says of a developer's step.
type Verdict bool

// PutThread adds a thread in which a developer and a reviewer take turns, with these
// verdicts, and returns its head.
func (s *EarlyStore) PutThread(g Generation, prompt string, verdicts ...Verdict) node.Hash {
	flow, developer, reviewer := s.PutWorkflow(g)
	titles := []string{"", ""}
	if g > FirstGeneration {
		titles = []string{"StartNode", "StepNode"}
	}
	start := s.Put(s.putSchema(titles[0], "workflow*", "prompt"), map[string]any{"workflow": string(flow), "prompt": prompt})
	fields := []string{"start*", "prev*", "role", "output*", "detail*", "agent", ""}
	if g == FourthGeneration {
		fields = append(fields, "edgePrompt")
	}
	if g == MixedGeneration {
		fields = append(fields, "cwd*", "startedAtMs", "completedAtMs*", "assembledPrompt")
	}
	stepType, text, number := s.putSchema(titles[1], fields...), s.Put(s.Meta, map[string]any{"type": "string"}), s.Put(s.Meta, map[string]any{"type": "integer"})
	head, prev := start, any(nil)
	step := func(role string, typ node.Hash, output map[string]any) {
		payload := map[string]any{"start": string(start), "prev": prev, "role": role, "output": string(s.Put(typ, output)), "detail": string(s.Put(text, "raw output of "+role)), "agent": "uwf-hermes"}
		switch g {
		case FourthGeneration:
			payload["edgePrompt"] = "Go on."
		case MixedGeneration:
			payload["cwd"], payload["completedAtMs"] = string(s.Put(text, "/home/someone/p")), string(s.Put(number, 9000))
			payload["startedAtMs"], payload["assembledPrompt"] = 8000, "all of the prompt"
		}
		head = s.Put(stepType, payload)
		prev = string(head)
	}
	key := map[bool]string{true: "$status", false: "status"}[g == FourthGeneration]
	for i, ok := range verdicts {
		made := map[string]any{"summary": fmt.Sprintf("try %d of %s", i, prompt)}
		verdict := map[string]any{"approved": bool(ok)}
		if g >= FourthGeneration {
			made[key], verdict[key] = "done", map[Verdict]string{true: "approved", false: "rejected"}[ok]
		}
		step("developer", developer, made)
		step("reviewer", reviewer, verdict)
	}
	return head
}

// File is a node's file.
func (s *EarlyStore) File(h node.Hash) ([]byte, error) {
	return (&Store{Nodes: s.Nodes}).File(h)
}

// Write makes the storage root dir: the lists, and cas/ with the nodes.
func (s *EarlyStore) Write(dir string) error {
	errs := []error{s.err, os.MkdirAll(filepath.Join(dir, "cas"), 0o700)}
	for h := range maps.Keys(s.Nodes) {
		b, err := s.File(h)
		errs = append(errs, err, os.WriteFile(filepath.Join(dir, "cas", string(h)+".bin"), b, 0o600))
	}
	for name, text := range s.Lists {
		errs = append(errs, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return errors.Join(errs...)
}
