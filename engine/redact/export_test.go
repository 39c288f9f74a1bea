package redact

import "slices"

// IsIgnored says that a secret is not searched for by its value.
func IsIgnored(value string) bool {
	return !slices.ContainsFunc(searchedParts(value), func(v string) bool { return !isTrivial(v, DefaultMinLength) })
}
