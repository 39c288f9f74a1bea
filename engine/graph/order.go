package graph

import (
	"slices"

	"github.com/united-workforce/uwf/engine/workflow"
)

// orderRoles lists the roles so that work flows down. Of several walks through the
// graph the one is taken that is easiest to follow; then each role moves to where
// it is easier still. Roles that nothing leads to, which only a damaged definition
// has, come last.
func orderRoles(d *workflow.Definition) []string {
	list := walkRoles(d, false)
	arcs := listArcs(d, list)
	best := placesIn(list, list)
	for _, other := range [][]string{walkRoles(d, true), flowOrder(d)} {
		if o := placesIn(list, other); effortOf(o, arcs) < effortOf(best, arcs) {
			best = o
		}
	}
	if len(list) <= maxSifted {
		best = siftRoles(best, arcs)
	}
	out := make([]string, 0, len(d.Roles))
	for _, i := range best {
		out = append(out, list[i])
	}
	for _, name := range d.RoleNames() {
		if !slices.Contains(list, name) {
			out = append(out, name)
		}
	}
	return out
}

// placesIn says where in a list the names of another stand.
func placesIn(list, other []string) []int {
	at := make(map[string]int, len(list))
	for i, name := range list {
		at[name] = i
	}
	out := make([]int, len(other))
	for i, name := range other {
		out[i] = at[name]
	}
	return out
}

// walkRoles lists the roles that can be reached, each when it is first met on a walk
// that goes as deep as it can, by the first edge or by the last.
func walkRoles(d *workflow.Definition, last bool) []string {
	var out []string
	depthFirst(d, !last, func(name string) { out = append(out, name) }, func(string) {})
	return out[1:] // without $START
}

// flowOrder lists each role before those that it leads to, as far as loops allow.
func flowOrder(d *workflow.Definition) []string {
	var out []string
	depthFirst(d, false, func(string) {}, func(name string) { out = append(out, name) })
	slices.Reverse(out)
	return out[1:]
}

// depthFirst goes through the roles that can be reached.
func depthFirst(d *workflow.Definition, firstEdge bool, enter, leave func(string)) {
	type frame struct {
		name string
		next []string
	}
	seen := map[string]bool{}
	open := func(name string) frame {
		seen[name] = true
		enter(name)
		var next []string // taken from the end
		for _, e := range edgesOf(d, name) {
			next = append(next, e.To)
		}
		if firstEdge {
			slices.Reverse(next)
		}
		return frame{name, next}
	}
	for stack := []frame{open(workflow.Start)}; len(stack) > 0; {
		top := &stack[len(stack)-1]
		if len(top.next) == 0 {
			leave(top.name)
			stack = stack[:len(stack)-1]
			continue
		}
		to := top.next[len(top.next)-1]
		top.next = top.next[:len(top.next)-1]
		if _, role := d.Roles[to]; role && !seen[to] {
			stack = append(stack, open(to))
		}
	}
}

// maxSifted bounds the work of sift.
const maxSifted = 40

// arc is an edge between places of a list.
type arc struct{ from, to int }

// listArcs lists who leads to whom, each pair once. $START stands at -1, $END behind
// the last.
func listArcs(d *workflow.Definition, list []string) []arc {
	at := map[string]int{workflow.Start: -1, workflow.End: len(list)}
	for i, name := range list {
		at[name] = i
	}
	var out []arc
	for _, from := range append([]string{workflow.Start}, list...) {
		for _, e := range edgesOf(d, from) {
			if to, ok := at[e.To]; ok && to != at[from] && !slices.Contains(out, arc{at[from], to}) {
				out = append(out, arc{at[from], to})
			}
		}
	}
	return out
}

// siftRoles moves each role to its best place, until none moves. Order holds places in a
// list, top to bottom.
func siftRoles(order []int, arcs []arc) []int {
	best := effortOf(order, arcs)
	for range 4 {
		moved := false
		for _, item := range slices.Clone(order) {
			without := slices.DeleteFunc(slices.Clone(order), func(o int) bool { return o == item })
			for at := range len(order) {
				try := slices.Insert(slices.Clone(without), at, item)
				if e := effortOf(try, arcs); e < best {
					best, order, moved = e, try, true
				}
			}
		}
		if !moved {
			break
		}
	}
	return order
}

// effortOf is how hard an order is to follow: an edge to the next role is easy, one
// that skips roles is harder, one that leads up more so.
func effortOf(order []int, arcs []arc) int {
	const next, far, back = -8, 5, 4
	place := make([]int, len(order))
	for i, o := range order {
		place[o] = i
	}
	sum := 0
	for _, a := range arcs {
		switch {
		case a.from < 0:
			sum += 100 * place[a.to]
		case a.to == len(order):
			if place[a.from] == len(order)-1 {
				sum += next
			}
		case place[a.to] == place[a.from]+1:
			sum += next
		case place[a.to] > place[a.from]:
			sum += min(place[a.to]-place[a.from]-1, far)
		default:
			sum += back + min(place[a.from]-place[a.to], far)
		}
	}
	return sum
}
