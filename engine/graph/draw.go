package graph

import (
	"fmt"
	"slices"
	"strings"
)

// TextOptions say how a graph is drawn as text.
type TextOptions struct {
	// Width is how many columns there are; fewer than MinWidth count as MinWidth.
	Width int
	// ASCII draws lines with - | + instead of line characters. Names stay as they
	// are.
	ASCII bool
}

// MinWidth is the narrowest drawing, in columns.
const MinWidth = 20

// Columns of a drawing.
const (
	spine     = 2  // where the lines below a box begin
	laneWidth = 3  // of a line that leads past other boxes
	laneGap   = 2  // before the first of them
	leftMin   = 36 // what labels get before lines do
)

// Text draws the graph for a terminal: boxes from top to bottom, below each what
// leads on from there. The straight way down is an arrow; the others are lines at
// the right that end at the side of a box, all that lead to one box in one line. A
// line that doesn't fit, and those to $END and $SUSPEND, are arrows to a name.
func (g *Graph) Text(o TextOptions) string {
	d := &drawing{g: g, width: max(o.Width, MinWidth), pen: unicodePen()}
	if o.ASCII {
		d.pen = asciiPen()
	}
	d.orderColumns()
	lanes := d.lineTargets()
	for fit := len(lanes); ; fit-- {
		d.assignLanes(lanes, fit)
		d.left = d.width
		if fit > 0 {
			d.left -= laneGap + laneWidth*d.used
		}
		d.buildRows()
		if natural := d.naturalWidth(); fit == 0 || natural <= d.left && !d.wrapped || d.left >= leftMin {
			return d.paintLanes()
		}
	}
}

// drawing is a graph on its way to text.
type drawing struct {
	g     *Graph
	width int
	pen   pen

	column []int // of nodes, top to bottom: places in g.Nodes
	lane   map[int]int
	used   int // lanes
	left   int // columns for boxes and labels

	rows    []row
	wrapped bool
}

// row is one line of boxes and labels, and the line that begins or ends there: the
// one to the node target, by its place in g.Nodes.
type row struct {
	text   string
	target int // -1: none
	into   bool
}

// orderColumns puts the nodes that get a box into their order: all but $SUSPEND, and
// $END only below a box that leads there, or where nothing else could show it.
func (d *drawing) orderColumns() {
	for i, n := range d.g.Nodes {
		if n.Kind == Start || n.Kind == Role {
			d.column = append(d.column, i)
		}
	}
	if end := slices.IndexFunc(d.g.Nodes, func(n Node) bool { return n.Kind == End }); end >= 0 {
		last := d.column[len(d.column)-1]
		if slices.ContainsFunc(d.g.Edges, func(e Edge) bool { return e.From == last && e.To == end }) {
			d.column = append(d.column, end)
		}
	}
}

// bundle is all edges from one node to another.
type bundle struct {
	from, to int // places in g.Nodes
	labels   []string
}

// edgesFrom lists where a node leads, each target once. The one below it comes last.
func (d *drawing) edgesFrom(from, below int) []bundle {
	var out []bundle
	for _, e := range d.g.Edges {
		if e.From != from {
			continue
		}
		i := slices.IndexFunc(out, func(b bundle) bool { return b.to == e.To })
		if i < 0 {
			i, out = len(out), append(out, bundle{from: from, to: e.To})
		}
		if label := withCount(e.Label, e.Taken, true); label != "" {
			out[i].labels = append(out[i].labels, label)
		}
	}
	if i := slices.IndexFunc(out, func(b bundle) bool { return b.to == below }); i >= 0 {
		straight := out[i]
		out = append(slices.Delete(out, i, i+1), straight)
	}
	return out
}

// span is a line past boxes: the boxes that it touches, as places in the column.
type span struct {
	to       int // place in g.Nodes
	from, up int // first and last place in the column
}

// lineTargets lists the targets that lines lead to, the shortest line first.
func (d *drawing) lineTargets() []span {
	var out []span
	for at, from := range d.column {
		for _, b := range d.edgesFrom(from, d.nodeBelow(at)) {
			to := slices.Index(d.column, b.to)
			if b.to == d.nodeBelow(at) || to < 0 || d.g.Nodes[b.to].Kind != Role {
				continue
			}
			i := slices.IndexFunc(out, func(s span) bool { return s.to == b.to })
			if i < 0 {
				i, out = len(out), append(out, span{to: b.to, from: to, up: to})
			}
			out[i].from, out[i].up = min(out[i].from, at), max(out[i].up, at)
		}
	}
	slices.SortStableFunc(out, func(a, b span) int { return (a.up - a.from) - (b.up - b.from) })
	return out
}

// nodeBelow is the node below a place in the column; -1: none.
func (d *drawing) nodeBelow(at int) int {
	if at+1 < len(d.column) {
		return d.column[at+1]
	}
	return -1
}

// assignLanes gives the first n lines their lanes: the first from the left that is free
// all the way.
func (d *drawing) assignLanes(spans []span, n int) {
	d.lane, d.used = map[int]int{}, 0
	var taken [][]span
	for _, s := range spans[:n] {
		lane := slices.IndexFunc(taken, func(others []span) bool {
			return !slices.ContainsFunc(others, func(o span) bool { return s.from <= o.up && o.from <= s.up })
		})
		if lane < 0 {
			lane, taken = len(taken), append(taken, nil)
		}
		taken[lane] = append(taken[lane], s)
		d.lane[s.to] = lane
	}
	d.used = len(taken)
}

// buildRows makes the rows.
func (d *drawing) buildRows() {
	d.rows, d.wrapped = nil, false
	for at, i := range d.column {
		d.drawBox(i, at > 0 && d.leadsBelow(at-1))
		d.drawEdges(i, d.nodeBelow(at))
	}
}

// leadsBelow reports whether the node at a place leads to the one below it.
func (d *drawing) leadsBelow(at int) bool {
	return slices.ContainsFunc(d.g.Edges, func(e Edge) bool { return e.From == d.column[at] && e.To == d.nodeBelow(at) })
}

func (d *drawing) addRow(text string) { d.rows = append(d.rows, row{text: text, target: -1}) }

// drawBox draws a node: a role with a frame, a double one where the thread stands.
func (d *drawing) drawBox(i int, above bool) {
	n := d.g.Nodes[i]
	name := withCount(n.Name, n.Visits, n.Kind == Role)
	if n.Kind != Role {
		if n.Here {
			name += " " + d.pen.here
		}
		d.addRow(name)
		return
	}
	frame := d.pen.frame
	if n.Here {
		frame = d.pen.double
	}
	lines := d.wrapLabel(name, d.left-4)
	inner := 3
	for _, l := range lines {
		inner = max(inner, columnsOf(l))
	}
	if len(d.rows) > 0 && !above {
		d.addRow("")
	}
	d.addRow(frame.corners[0] + strings.Repeat(frame.across, inner+2) + frame.corners[1])
	for k, l := range lines {
		d.addRow(frame.down + " " + l + strings.Repeat(" ", inner-columnsOf(l)) + " " + frame.down)
		if _, has := d.lane[i]; has && k == 0 {
			d.rows[len(d.rows)-1].target, d.rows[len(d.rows)-1].into = i, true
		}
	}
	joint := frame.across
	if slices.ContainsFunc(d.g.Edges, func(e Edge) bool { return e.From == i }) {
		joint = frame.joint
	}
	d.addRow(frame.corners[2] + strings.Repeat(frame.across, spine-1) + joint + strings.Repeat(frame.across, inner+2-spine) + frame.corners[3])
}

// drawEdges draws what leads on from a node.
func (d *drawing) drawEdges(from, below int) {
	out := d.edgesFrom(from, below)
	margin := strings.Repeat(" ", spine)
	for k, b := range out {
		branch, more := d.pen.tee, d.pen.down
		if k == len(out)-1 {
			branch, more = d.pen.corner, " "
		}
		if b.to == below {
			d.drawStraight(margin, strings.Join(b.labels, ", "))
			continue
		}
		_, has := d.lane[b.to]
		text := strings.Join(b.labels, ", ")
		if !has {
			to := d.g.Nodes[b.to].Name
			if d.g.Nodes[b.to].Here && d.g.Nodes[b.to].Kind != Role {
				to += " " + d.pen.here
			}
			text = strings.TrimSpace(text + " " + d.pen.arrow + " " + plainName(to))
		}
		lines := d.wrapLabel(text, d.left-spine-3)
		for j, l := range lines {
			switch {
			case j == 0 && l == "":
				d.addRow(margin + branch)
			case j == 0:
				d.addRow(margin + branch + d.pen.across + " " + l)
			default:
				d.addRow(margin + more + "  " + l)
			}
			if has && j == 0 {
				d.rows[len(d.rows)-1].target = b.to
			}
		}
	}
}

func (d *drawing) drawStraight(margin, label string) {
	if label != "" {
		for _, l := range d.wrapLabel(label, d.left-spine-2) {
			d.addRow(margin + d.pen.down + " " + l)
		}
	}
	d.addRow(margin + d.pen.tip)
}

func (d *drawing) wrapLabel(text string, width int) []string {
	lines := wrapText(text, max(width, 1))
	d.wrapped = d.wrapped || len(lines) > 1
	return lines
}

// naturalWidth is how wide the rows are.
func (d *drawing) naturalWidth() int {
	w := 0
	for _, r := range d.rows {
		w = max(w, columnsOf(r.text))
	}
	return w
}

// stretch is the line to one node: a column, from its first row to its last.
type stretch struct{ target, col, first, last int }

// paintLanes puts the lanes beside the rows.
func (d *drawing) paintLanes() string {
	base := d.naturalWidth() + laneGap
	var lines []stretch
	for target, lane := range d.lane {
		touches := func(r row) bool { return r.target == target }
		s := stretch{target: target, col: base + laneWidth*(lane+1) - 1, first: slices.IndexFunc(d.rows, touches)}
		for i, r := range d.rows {
			if touches(r) {
				s.last = i
			}
		}
		lines = append(lines, s)
	}
	var b strings.Builder
	for i, r := range d.rows {
		line := r.text
		for col := columnsOf(r.text); col < base+laneWidth*d.used; col++ {
			line += d.cellAt(lines, i, col)
		}
		fmt.Fprintln(&b, strings.TrimRight(line, " "))
	}
	return b.String()
}

// cellAt is what stands in a column beside a row's text: a part of the line that begins or
// ends in the row, or of one that leads past it.
func (d *drawing) cellAt(lines []stretch, i, col int) string {
	r, own, past := d.rows[i], stretch{col: -1}, false
	for _, s := range lines {
		if s.target == r.target {
			own = s
		}
		past = past || s.col == col && s.first < i && i < s.last
	}
	begin := col == columnsOf(r.text)
	switch {
	case col > own.col && past:
		return d.pen.down
	case col > own.col, begin && !r.into && !d.endsInJoint(r.text):
		return " "
	case begin && r.into:
		return d.pen.back
	case col == own.col && past:
		return d.pen.join
	case col == own.col && i < own.last:
		return d.pen.top
	case col == own.col && i > own.first:
		return d.pen.bottom
	case past:
		return d.pen.cross
	}
	return d.pen.across
}

// endsInJoint reports whether a line ends where edges meet, as that of an edge without a
// label does: it goes on without a gap.
func (d *drawing) endsInJoint(text string) bool {
	return strings.HasSuffix(text, d.pen.tee) || strings.HasSuffix(text, d.pen.corner)
}
