// Package lists makes a list of another one, value by value.
package lists

// Filter returns the values of a list for which a function is true, in its order; nil if there are
// none.
func Filter[List ~[]E, E any](list List, keep func(E) bool) List {
	var out List
	for _, e := range list {
		if keep(e) {
			out = append(out, e)
		}
	}
	return out
}

// Map is what a function gives for each value of a list, in its order.
func Map[List ~[]In, In, Out any](list List, of func(In) Out) []Out {
	out := make([]Out, len(list))
	for i, e := range list {
		out[i] = of(e)
	}
	return out
}
