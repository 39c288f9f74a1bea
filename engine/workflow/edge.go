package workflow

import (
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/internal/strictyaml"
)

func (c *compiler) readGraph() {
	e := c.partOf("graph", "add `graph:` with $START and each role", "write a map from $START and each role to its edges", maxEdges)
	if e == nil {
		return
	}
	c.graphKey = e
	edges := len(e.Val.Entries)
	for _, f := range e.Val.Entries {
		edges += len(f.Val.Entries) + len(f.Val.Items)
	}
	if edges > maxEdges {
		c.reportKey(e, "divide the workflow", "the graph has more than %d edges", maxEdges)
		return
	}
	for i := range e.Val.Entries {
		c.graph = append(c.graph, c.readEdges(&e.Val.Entries[i]))
	}
}

func (c *compiler) readEdges(f *strictyaml.Entry) fromAt {
	out := fromAt{name: f.Key, key: f, broken: f.Val.Broken || f.Val.Kind == strictyaml.Bad, list: f.Val.Kind == strictyaml.List}
	add := func(edge edgeAt, ok bool) {
		if !ok {
			out.broken = true
			return
		}
		out.edges = append(out.edges, edge)
	}
	switch f.Val.Kind {
	case strictyaml.Map:
		if f.Key == Start {
			c.startKeys(f)
		}
		for _, e := range f.Val.Entries {
			out.keys = append(out.keys, e.Key)
			edge := edgeAt{label: e.Key, at: e.Pos, Edge: Edge{When: When{Kind: OnStatus, Value: e.Key}}}
			if start := f.Key == Start; e.Key == Unit || start && (e.Key == keyNew || e.Key == keyResume) {
				edge.When, edge.resume = When{Kind: Always}, start && e.Key == keyResume
			}
			add(edge, c.readEdge(f.Key, &edge, e.Val))
		}
	case strictyaml.List:
		for i, item := range f.Val.Items {
			edge := edgeAt{label: fmt.Sprintf("#%d", i+1), at: item.Pos, item: true}
			add(edge, c.readEdge(f.Key, &edge, item))
		}
	case strictyaml.Scalar:
		out.broken = true
		fix := "write a map from status to {role, prompt}"
		if to := c.targetName(f.Val); to != "" {
			fix = "write {_: {role: " + to + ", prompt: …}}, or an edge for each status"
		}
		c.reportKey(f, fix, "the edges of %s must be a map, this is %s", f.Key, showScalar(f.Val))
	}
	return out
}

// The keys of $START in the later generations, beside _.
const (
	keyNew    = "new"
	keyResume = "resume"
)

// startKeys looks at which generation $START is of.
func (c *compiler) startKeys(f *strictyaml.Entry) {
	first, fresh := f.Val.Get(Unit), f.Val.Get(keyNew)
	if first != nil && fresh != nil {
		c.reportAmbiguous(Start, first, fresh, "keep one of the two: both say where a thread begins")
	}
	if fresh != nil {
		c.def.AgentSuspends = true
	}
}

// readEdge reads one edge into e, and reports whether it could.
func (c *compiler) readEdge(from string, e *edgeAt, v *strictyaml.Node) bool {
	what := e.describeEdge(from)
	if v.Kind != strictyaml.Map {
		fix := "write {role: …, prompt: …}"
		switch to := c.targetName(v); {
		case to != "":
			fix = "write {role: " + to + ", prompt: …}"
		case v.Kind == strictyaml.List:
			fix = "write one edge, {role: …, prompt: …}: one role works at a time"
		}
		if v.Kind != strictyaml.Bad {
			c.reportEdge(e, fix, "%s must be a map, this is %s", what, showScalar(v))
		}
		return false
	}
	if strings.HasPrefix(e.label, "#") && (v.Get("status") != nil || v.Get("when") != nil) {
		c.reportUnknownKeys(v, what, edgeKeys()...)
		return false // a map of statuses, written as a list: what it means can't be told
	}
	c.reportUnknownKeys(v, what, edgeKeys()...)
	ok := c.readCondition(from, e, v)
	if at := v.Get("role"); at != nil {
		e.to = at.Val
		if at.Val.Kind == strictyaml.List || at.Val.Kind == strictyaml.Map {
			c.problems.Add(at.Val.Pos, 1, "name one role: one works at a time", "`role` of %s must be a name, this is %s", what, at.Val.KindName())
			return false
		}
		e.To, _ = c.textOf(at.Val, "`role` of "+what)
	} else {
		c.reportEdge(e, "add `role:` with the next role, $END or $SUSPEND", "%s has no `role`", what)
	}
	c.readPrompt(from, e, v)
	if at := v.Get("location"); at != nil && !at.Val.IsNull() {
		e.location = at.Val
		var ok bool
		if e.Location, ok = c.textOf(at.Val, "`location` of "+what); ok && strings.TrimSpace(e.Location) == "" {
			c.reportKey(at, "leave it out", "`location` of %s is blank", what)
		}
	}
	c.readApproval(from, e, v)
	c.checkApproval(from, e)
	return ok
}

// edgeKeys are the keys of an edge, in the order of messages.
func edgeKeys() []string { return []string{"role", "prompt", "location", "condition", "approval"} }

// targetName is the name that a value would be as `role` of an edge; empty: it is none.
func (c *compiler) targetName(v *strictyaml.Node) string {
	s, _ := v.Scalar.(string)
	if v.Kind == strictyaml.Scalar && (c.findRole(s) != nil || s == End || s == Suspend) {
		return s
	}
	return ""
}

// readPrompt reads an edge's prompt. Lists are of generations without prompts.
func (c *compiler) readPrompt(from string, e *edgeAt, v *strictyaml.Node) {
	what, at := e.describeEdge(from), v.Get("prompt")
	switch {
	case at != nil && e.item && at.Val.IsNull():
	case at != nil:
		e.prompt = at.Val
		e.Prompt, _ = c.textOf(at.Val, "`prompt` of "+what)
	case from != Start && e.To != End && !e.item:
		c.reportEdge(e, "add `prompt:` with what the next role is to do", "%s has no `prompt`", what)
	}
}
