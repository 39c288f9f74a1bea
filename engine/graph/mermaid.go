package graph

import (
	"fmt"
	"strings"
	"unicode"
)

// MermaidSize is the longest text that Mermaid draws with its default settings,
// which are those of forges; MermaidEdges is how many edges it draws.
const (
	MermaidSize  = 50_000
	MermaidEdges = 500
)

// Mermaid is the graph as a Mermaid flowchart of at most limit bytes (0:
// MermaidSize). What is too large is drawn with less: first labels become shorter,
// then edges between the same two nodes become one, then only what the thread has
// touched stays, then only a sentence. Names and statuses can hold anything: all
// but letters, digits and single separators is written as character codes, and no
// name is ever used as an id.
func (g *Graph) Mermaid(limit int) string {
	if limit <= 0 {
		limit = MermaidSize
	}
	for _, detail := range []detail{{label: maxLabel}, {label: 24}, {label: 24, merge: true}, {label: 24, merge: true, taken: true}} {
		edges := g.pickEdges(detail)
		if len(edges) > MermaidEdges || detail.taken && !g.Marked {
			continue
		}
		if s := g.writeMermaid(edges, detail); len(s) <= limit {
			return s
		}
	}
	return fmt.Sprintf("flowchart TD\n  n0[\"%d roles and %d edges are too many to draw here\"]\n", g.countRoles(), len(g.Edges))
}

func (g *Graph) countRoles() int {
	n := 0
	for _, node := range g.Nodes {
		if node.Kind == Role {
			n++
		}
	}
	return n
}

// detail is how much of a graph is drawn.
type detail struct {
	label int  // characters of a label
	merge bool // edges between the same two nodes are one
	taken bool // only what the thread has touched
}

// pickEdges is the edges that are drawn.
func (g *Graph) pickEdges(d detail) []Edge {
	var out []Edge
	at := map[[2]int]int{}
	for _, e := range g.Edges {
		if d.taken && e.Taken == 0 {
			continue
		}
		key := [2]int{e.From, e.To}
		if i, seen := at[key]; seen && d.merge {
			out[i].Taken += e.Taken
			if e.Label != "" {
				out[i].Label += ", " + e.Label
			}
			continue
		}
		at[key] = len(out)
		out = append(out, e)
	}
	return out
}

func (g *Graph) writeMermaid(edges []Edge, d detail) string {
	drawn := map[int]bool{}
	for i, n := range g.Nodes {
		drawn[i] = !d.taken || n.Visits > 0 || n.Here
	}
	for _, e := range edges {
		drawn[e.From], drawn[e.To] = true, true
	}
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	var here, been []string
	for i, n := range g.Nodes {
		if !drawn[i] {
			continue
		}
		shape := [2]string{"[", "]"}
		switch n.Kind {
		case Start, End:
			shape = [2]string{"([", "])"}
		case Suspend:
			shape = [2]string{"{{", "}}"}
		}
		fmt.Fprintf(&b, "  n%d%s\"%s\"%s\n", i, shape[0], mermaidText(withCount(cutText(n.Name, d.label), n.Visits, n.Kind == Role)), shape[1])
		switch id := fmt.Sprintf("n%d", i); {
		case n.Here:
			here = append(here, id)
		case n.Visits > 0:
			been = append(been, id)
		}
	}
	var taken []string
	for i, e := range edges {
		arrow := "-->"
		if g.Marked && e.Taken == 0 {
			arrow = "-.->"
		}
		label := ""
		if text := withCount(cutText(e.Label, d.label), e.Taken, true); text != "" {
			label = fmt.Sprintf("|\"%s\"|", mermaidText(text))
		}
		fmt.Fprintf(&b, "  n%d %s%s n%d\n", e.From, arrow, label, e.To)
		if e.Taken > 0 {
			taken = append(taken, fmt.Sprint(i))
		}
	}
	writeStyle(&b, here, been, taken)
	return b.String()
}

// writeStyle marks the way and the place in colours that can be told apart on a light
// and on a dark page, and by their lines alone.
func writeStyle(b *strings.Builder, here, been, taken []string) {
	if len(been) > 0 {
		fmt.Fprintf(b, "  classDef been stroke:#2da44e,stroke-width:2px\n  class %s been\n", strings.Join(been, ","))
	}
	if len(here) > 0 {
		fmt.Fprintf(b, "  classDef here stroke:#bf8700,stroke-width:4px\n  class %s here\n", strings.Join(here, ","))
	}
	if len(taken) > 0 {
		fmt.Fprintf(b, "  linkStyle %s stroke:#2da44e,stroke-width:3px\n", strings.Join(taken, ","))
	}
}

// withCount is a name or label, and how often it was met.
func withCount(s string, n int, counted bool) string {
	if s = plainName(s); !counted || n == 0 {
		return s
	}
	return strings.TrimSpace(fmt.Sprintf("%s ×%d", s, n))
}

// cutText is the beginning of a text.
func cutText(s string, limit int) string {
	if runes := []rune(s); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return s
}

// mermaidText writes a text for between double quotes. Mermaid looks for comments,
// directives, Markdown, icons, links, formulas and HTML in labels, and for some
// words (style, classDef) with a colon after them in whole lines; none of these can
// be made of letters, digits, and separators that stand alone between them. A line
// that holds "direction LR" anywhere counts as that command, whatever is around it.
func mermaidText(s string) string {
	var b strings.Builder
	runes := []rune(s)
	word := func(i int) bool {
		return i >= 0 && i < len(runes) && (unicode.IsLetter(runes[i]) || unicode.IsDigit(runes[i]))
	}
	for i, r := range runes {
		switch {
		case word(i), strings.ContainsRune("-_.", r) && word(i-1) && word(i+1):
			b.WriteRune(r)
		case r == ' ' && !strings.HasSuffix(strings.ToLower(b.String()), "direction"):
			b.WriteByte(' ')
		case unicode.IsMark(r) && i > 0 && (word(i-1) || unicode.IsMark(runes[i-1])):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "#%d;", r)
		}
	}
	return b.String()
}
