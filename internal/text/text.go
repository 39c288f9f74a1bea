// Package text shortens texts and words amounts: one way for all who print. It is pure.
package text

import (
	"fmt"
	"unicode/utf8"
)

// Cut shortens s to at most n bytes, at the boundary of a character, with an ellipsis
// where something is missing; n is 3 at least.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const mark = "…"
	n -= len(mark)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + mark
}

// Dollars is a cost: "$0.0123", "$0.00" for none. Of some of it nobody may know the
// price: "at least $0.0123", or "cost unknown" where none is known.
func Dollars(usd float64, unpriced bool) string {
	amount := fmt.Sprintf("$%.4f", usd)
	switch {
	case !(usd > 0) && unpriced: // NaN too
		return "cost unknown"
	case !(usd > 0):
		return "$0.00"
	case usd < 0.0001:
		amount = "$0.0001"
	}
	if unpriced {
		return "at least " + amount
	}
	return amount
}

// Plural is a number of things: "1 step", "2 steps".
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
