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
		if only := g.onlyEdge(last, step.Role); d.Lists[last] && (only >= 0 || left == 0) {
			if only >= 0 {
				g.Edges[only].Taken++
			}
		} else {
			if d.Lists[last] {
				left--
			}
			next, err := moderator.Next(d, moderator.Thread{Start: t.Start, Steps: t.Steps[:i]})
			if err == nil && (next.Kind != moderator.Run || next.Role == step.Role) {
				g.followDecision(d, last, targetOf(next), next)
			}
			if next.Kind == moderator.End && d.Resume != nil && d.Resume.To == step.Role {
				g.takeEdge(workflow.Start, step.Role, labelResume)
			}
		}
		if n := g.findNode(step.Role); n >= 0 {
			g.Nodes[n].Visits++
		}
		last = step.Role
	}
	next, err := moderator.Next(d, t)
	if err != nil {
		g.noteArrival(last)
		return
	}
	g.followDecision(d, last, targetOf(next), next)
	g.noteArrival(targetOf(next))
}

// onlyEdge is the one edge from a node to another; -1: there is none, or a choice.
func (g *Graph) onlyEdge(from, to string) int {
	f, t, found := g.findNode(from), g.findNode(to), -1
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

// targetOf is the node that a decision leads to.
func targetOf(next moderator.Decision) string {
	switch next.Kind {
	case moderator.End:
		return workflow.End
	case moderator.Suspend:
		return workflow.Suspend
	}
	return next.Role
}

// followDecision counts the edge that a decision took. A role that suspended by itself had
// none: it gets one.
func (g *Graph) followDecision(d *workflow.Definition, from, to string, next moderator.Decision) {
	if next.Kind == moderator.Suspend {
		g.needNode(workflow.Suspend, Suspend)
	}
	if next.Kind == moderator.Suspend && next.Edge.To == "" {
		if !g.takeEdge(from, to, workflow.Suspend) {
			g.addEdge(Edge{From: g.findNode(from), To: g.findNode(to), Label: workflow.Suspend, Taken: 1})
		}
	} else {
		edges := edgesOf(d, from)
		i := slices.IndexFunc(edges, func(e labelled) bool { return e.Edge == next.Edge })
		if i < 0 || !g.takeEdge(from, to, edges[i].label) {
			g.takeEdge(from, to, "") // an only edge has no label
		}
	}
	if next.Kind != moderator.Run {
		if n := g.findNode(to); n >= 0 {
			g.Nodes[n].Visits++
		}
	}
}

// takeEdge counts an edge, and reports whether there is one.
func (g *Graph) takeEdge(from, to, label string) bool {
	f, t := g.findNode(from), g.findNode(to)
	i := slices.IndexFunc(g.Edges, func(e Edge) bool { return e.From == f && e.To == t && e.Label == label })
	if i >= 0 {
		g.Edges[i].Taken++
	}
	return i >= 0
}

// needNode adds a node that the definition doesn't lead to.
func (g *Graph) needNode(name string, kind Kind) {
	if g.findNode(name) < 0 {
		g.Nodes = append(g.Nodes, Node{Name: name, Kind: kind})
	}
}

// addEdge puts an edge behind those of its node.
func (g *Graph) addEdge(e Edge) {
	i := slices.IndexFunc(g.Edges, func(o Edge) bool { return o.From > e.From })
	if i < 0 {
		i = len(g.Edges)
	}
	g.Edges = slices.Insert(g.Edges, i, e)
}

func (g *Graph) noteArrival(name string) {
	if n := g.findNode(name); n >= 0 {
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
