package graph

import (
	"slices"

	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/internal/lists"
)

// orderRoles lists the roles so that work flows down: each as it is first met on a walk that
// goes as deep as it can, and from there to where it is easier to follow. Roles that nothing
// leads to, which only a damaged definition has, come last.
func orderRoles(d *workflow.Definition) []string {
	var list []string
	var walk func(from string)
	walk = func(from string) {
		for _, e := range edgesOf(d, from) {
			if _, role := d.Roles[e.To]; role && !slices.Contains(list, e.To) {
				list = append(list, e.To)
				walk(e.To)
			}
		}
	}
	walk(workflow.Start)
	if len(list) <= maxSifted {
		list = siftRoles(list, listArcs(d, list))
	}
	for _, name := range d.RoleNames() {
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// maxSifted bounds the work of siftRoles.
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

// siftRoles moves each role of a list to its best place, until none moves.
func siftRoles(list []string, arcs []arc) []string {
	order := make([]int, len(list)) // places in the list, top to bottom
	for i := range order {
		order[i] = i
	}
	best := effortOf(order, arcs)
	for moved, rounds := true, 0; moved && rounds < 4; rounds++ {
		moved = false
		for _, item := range slices.Clone(order) {
			without := slices.DeleteFunc(slices.Clone(order), func(o int) bool { return o == item })
			for at := range len(order) {
				try := slices.Insert(slices.Clone(without), at, item)
				if e := effortOf(try, arcs); e < best {
					best, order, moved = e, try, true
				}
			}
		}
	}
	return lists.Map(order, func(o int) string { return list[o] })
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
