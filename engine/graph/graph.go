package graph

import (
	"slices"
	"strings"
	"unicode"

	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/internal/lists"
)

// Kind is what a node stands for.
type Kind string

// The kinds of nodes.
const (
	Start   Kind = "start"   // where a thread begins
	Role    Kind = "role"    // a role
	End     Kind = "end"     // where a thread ends
	Suspend Kind = "suspend" // where a person is asked
)

// Node is one place of a graph.
type Node struct {
	Name string `json:"name"`
	Kind Kind   `json:"kind"`
	// Visits is how often the thread was here, Here whether it is now.
	Visits int  `json:"visits,omitempty"`
	Here   bool `json:"here,omitempty"`
}

// Edge leads from one node to another; From and To are places in Graph.Nodes.
type Edge struct {
	From, To int
	// Label is the status or the condition that takes the edge, and whether it needs an
	// approval; empty where there is no choice.
	Label string
	// Taken is how often the thread went this way.
	Taken int
}

// Graph is a workflow to be drawn.
type Graph struct {
	Name string
	// Nodes holds $START first, then the roles in an order in which work flows,
	// then $END and $SUSPEND where something leads there.
	Nodes []Node
	// Edges come in the order of their nodes, and of the definition.
	Edges []Edge
	// Marked says that a thread's path is marked.
	Marked bool
}

// Labels of edges that have none of their own.
const (
	labelElse   = "else"   // after conditions
	labelNew    = "new"    // $START, where there is a resume edge too
	labelResume = "resume" // the edge of $START that a reopened thread takes

	labelApproval = " (approval)" // after the label of an edge that needs one
)

// Of is the graph of a definition, without any marks.
func Of(d *workflow.Definition) *Graph {
	g := &Graph{Name: d.Name, Nodes: []Node{{Name: workflow.Start, Kind: Start}}}
	g.Nodes = append(g.Nodes, lists.Map(orderRoles(d), func(name string) Node { return Node{Name: name, Kind: Role} })...)
	if leadsTo(d, workflow.End) {
		g.Nodes = append(g.Nodes, Node{Name: workflow.End, Kind: End})
	}
	if leadsTo(d, workflow.Suspend) {
		g.Nodes = append(g.Nodes, Node{Name: workflow.Suspend, Kind: Suspend})
	}
	for i := range g.Nodes {
		from := g.Nodes[i].Name
		edges := edgesOf(d, from)
		for _, e := range edges {
			to := g.findNode(e.To)
			if to < 0 || i == to && g.Nodes[i].Kind != Role {
				continue
			}
			label := e.label
			if len(edges) == 1 && e.plain {
				label = ""
			}
			g.Edges = append(g.Edges, Edge{From: i, To: to, Label: label})
		}
	}
	return g
}

// labelled is an edge with the text that it is drawn with. Plain: the text only
// tells it from other edges.
type labelled struct {
	workflow.Edge
	label string
	plain bool
}

// edgesOf lists what leaves a name, the resume edge of $START included.
func edgesOf(d *workflow.Definition, from string) []labelled {
	conditions := slices.ContainsFunc(d.Graph[from], func(e workflow.Edge) bool { return e.When.Kind == workflow.OnCondition })
	var out []labelled
	for _, e := range d.Graph[from] {
		l := labelled{Edge: e, label: e.When.String()}
		if e.When.Kind == workflow.Always {
			l.plain = true
			switch {
			case from == workflow.Start:
				l.label = labelNew
			case conditions:
				l.label = labelElse
			}
		}
		if e.Approval != nil {
			l.label, l.plain = l.label+labelApproval, false
		}
		out = append(out, l)
	}
	if from == workflow.Start && d.Resume != nil {
		out = append(out, labelled{Edge: *d.Resume, label: labelResume})
	}
	return out
}

func leadsTo(d *workflow.Definition, name string) bool {
	for from := range d.Graph {
		if slices.ContainsFunc(edgesOf(d, from), func(e labelled) bool { return e.To == name }) {
			return true
		}
	}
	return false
}

// findNode finds a node by name; -1: there is none.
func (g *Graph) findNode(name string) int {
	return slices.IndexFunc(g.Nodes, func(n Node) bool { return n.Name == name })
}

// maxLabel is the longest name or status that is drawn, in characters.
const maxLabel = 120

// plainName is a name or status on one line. It is stricter than text.IsUnsafe: what is drawn
// has a width, so that lines meet.
func plainName(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "\ufffd")), " ")
	runes := []rune(s)
	if len(runes) > maxLabel {
		runes = append(runes[:maxLabel-1], '…')
	}
	for i, r := range runes {
		if !unicode.IsPrint(r) {
			runes[i] = '·'
		}
	}
	return string(runes)
}
