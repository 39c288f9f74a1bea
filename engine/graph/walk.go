package graph

import (
	"slices"

	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/workflow"
)

// maxDecided is how many conditions of a long thread are decided again: each looks
// at the whole thread before it.
const maxDecided = 40

// Mark marks the way that a thread has taken so far, and where it stands now: at
// the role that works next, at $END, or at $SUSPEND. Steps that no edge explains (a
// role that was asked once more, or worked after a person's answer) count as visits
// alone. Where conditions choose, and only one edge leads to the role that worked
// next, that was the one; where several do, the first maxDecided times are told
// apart.
func (g *Graph) Mark(d *workflow.Definition, t moderator.Thread) {
	g.Marked = true
	g.Nodes[0].Visits++
	last, left := workflow.Start, maxDecided
	for i, step := range t.Steps {
		if only := g.only(last, step.Role); d.Lists[last] && (only >= 0 || left == 0) {
			if only >= 0 {
				g.Edges[only].Taken++
			}
		} else {
			if d.Lists[last] {
				left--
			}
			next, err := moderator.Next(d, moderator.Thread{Start: t.Start, Steps: t.Steps[:i]})
			if err == nil && (next.Kind != moderator.Run || next.Role == step.Role) {
				g.follow(d, last, target(next), next)
			}
			if next.Kind == moderator.End && d.Resume != nil && d.Resume.To == step.Role {
				g.take(workflow.Start, step.Role, labelResume)
			}
		}
		if n := g.node(step.Role); n >= 0 {
			g.Nodes[n].Visits++
		}
		last = step.Role
	}
	next, err := moderator.Next(d, t)
	if err != nil {
		g.arrive(last)
		return
	}
	g.follow(d, last, target(next), next)
	g.arrive(target(next))
}

// only is the one edge from a node to another; -1: there is none, or a choice.
func (g *Graph) only(from, to string) int {
	f, t, found := g.node(from), g.node(to), -1
	for i, e := range g.Edges {
		if e.From == f && e.To == t {
			if found >= 0 {
				return -1
			}
			found = i
		}
	}
	return found
}

// target is the node that a decision leads to.
func target(next moderator.Decision) string {
	switch next.Kind {
	case moderator.End:
		return workflow.End
	case moderator.Suspend:
		return workflow.Suspend
	}
	return next.Role
}

// follow counts the edge that a decision took. A role that suspended by itself had
// none: it gets one.
func (g *Graph) follow(d *workflow.Definition, from, to string, next moderator.Decision) {
	if next.Kind == moderator.Suspend {
		g.need(workflow.Suspend, Suspend)
	}
	if next.Kind == moderator.Suspend && next.Edge.To == "" {
		if !g.take(from, to, workflow.Suspend) {
			g.add(Edge{From: g.node(from), To: g.node(to), Label: workflow.Suspend, Taken: 1})
		}
	} else {
		edges := edgesOf(d, from)
		i := slices.IndexFunc(edges, func(e labelled) bool { return e.Edge == next.Edge })
		if i < 0 || !g.take(from, to, edges[i].label) {
			g.take(from, to, "") // an only edge has no label
		}
	}
	if next.Kind != moderator.Run {
		if n := g.node(to); n >= 0 {
			g.Nodes[n].Visits++
		}
	}
}

// take counts an edge, and reports whether there is one.
func (g *Graph) take(from, to, label string) bool {
	f, t := g.node(from), g.node(to)
	i := slices.IndexFunc(g.Edges, func(e Edge) bool { return e.From == f && e.To == t && e.Label == label })
	if i >= 0 {
		g.Edges[i].Taken++
	}
	return i >= 0
}

// need adds a node that the definition doesn't lead to.
func (g *Graph) need(name string, kind Kind) {
	if g.node(name) < 0 {
		g.Nodes = append(g.Nodes, Node{Name: name, Kind: kind})
	}
}

// add puts an edge behind those of its node.
func (g *Graph) add(e Edge) {
	i := slices.IndexFunc(g.Edges, func(o Edge) bool { return o.From > e.From })
	if i < 0 {
		i = len(g.Edges)
	}
	g.Edges = slices.Insert(g.Edges, i, e)
}

func (g *Graph) arrive(name string) {
	if n := g.node(name); n >= 0 {
		g.Nodes[n].Here = true
	}
}

// Here is the name of the node where the thread stands; empty where none is marked.
func (g *Graph) Here() string {
	for _, n := range g.Nodes {
		if n.Here {
			return n.Name
		}
	}
	return ""
}
