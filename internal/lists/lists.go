// Package lists makes a list of another one, value by value.
package lists

// Map is what a function gives for each value of a list, in its order.
func Map[List ~[]In, In, Out any](list List, of func(In) Out) []Out {
	out := make([]Out, len(list))
	for i, e := range list {
		out[i] = of(e)
	}
	return out
}
