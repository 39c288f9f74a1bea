package graph

import (
	"fmt"
	"strings"
)

// DOT is the graph in the language of Graphviz.
func (g *Graph) DOT() string {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n", dotText(g.Name))
	for i, n := range g.Nodes {
		shape := "box"
		switch n.Kind {
		case Start, End:
			shape = "oval"
		case Suspend:
			shape = "hexagon"
		}
		mark := ""
		switch {
		case n.Here:
			mark = ", peripheries=2, penwidth=2"
		case n.Visits > 0:
			mark = ", penwidth=2"
		}
		fmt.Fprintf(&b, "  n%d [label=%s, shape=%s%s]\n", i, dotText(withCount(n.Name, n.Visits, n.Kind == Role)), shape, mark)
	}
	for _, e := range g.Edges {
		mark := ""
		switch {
		case e.Taken > 0:
			mark = ", penwidth=2"
		case g.Marked:
			mark = ", style=dashed"
		}
		fmt.Fprintf(&b, "  n%d -> n%d [label=%s%s]\n", e.From, e.To, dotText(withCount(e.Label, e.Taken, true)), mark)
	}
	b.WriteString("}\n")
	return b.String()
}

// dotText quotes a text. Graphviz reads backslashes in labels as line breaks and
// variables, and ampersands as HTML entities.
func dotText(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `&`, `&amp;`).Replace(plainName(s)) + `"`
}
