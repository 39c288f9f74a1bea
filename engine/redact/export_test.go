package redact

import "slices"

// IsIgnored says that a secret is not searched for by its value.
func IsIgnored(value string) bool {
	return !slices.ContainsFunc(searchedParts(value), func(v string) bool { return !isTrivial(v, DefaultMinLength) })
}

// Shapes names the kinds of secrets that are known by their look alone.
func Shapes() []string {
	var out []string
	for _, s := range builtinShapes() {
		if !slices.Contains(out, s.name) {
			out = append(out, s.name)
		}
	}
	return out
}
