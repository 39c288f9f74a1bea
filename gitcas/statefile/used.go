package statefile

import (
	"math"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/gitcas/node"
)

// Used is what a thread's steps took, up to the head that it names. It is there so
// that a list of threads need not read their chains; the chain is what counts. In
// an entry with another head it says nothing: whoever moved the head does not know
// of it.
type Used struct {
	Head       node.Hash
	Steps      int
	Tokens     int64 // in and out
	CostUSD    float64
	Unpriced   bool // it cost more: of some tokens nobody knows the price
	DurationMs int64
}

// Known is what the entry says of the thread's steps; false where it says nothing
// that holds for its head.
func (e Entry) Known() (Used, bool) { return e.Used, e.Head != "" && e.Used.Head == e.Head }

func readUsed(v value) (Used, error) {
	var u Used
	err := readFields(v, "used", func(p pair) (ok bool, err error) {
		switch p.key {
		case "head":
			u.Head, err = readHash(p.val, "used.head")
		case "steps":
			var n int64
			n, err = readInt(p.val, "used.steps", math.MaxInt32)
			u.Steps = int(n)
		case "tokens":
			u.Tokens, err = readInt(p.val, "used.tokens", math.MaxInt64)
		case "durationMs":
			u.DurationMs, err = readInt(p.val, "used.durationMs", math.MaxInt64)
		case "costUsd":
			u.CostUSD, err = readAmount(p.val, "used.costUsd")
		case "unpriced":
			u.Unpriced, err = readTrue(p.val, "used.unpriced")
		default:
			return false, nil
		}
		return true, err
	})
	return u, err
}

func readAmount(v value, what string) (float64, error) {
	n, err := strconv.ParseFloat(v.text, 64)
	if err != nil || v.str || !amountOK(n) || strings.ContainsAny(v.text, "xX_") {
		return 0, newMalformedError(v.line, "%s: %.40q is no amount", what, v.text)
	}
	return n, nil
}

// readTrue reads what is written only where it is so.
func readTrue(v value, what string) (bool, error) {
	if v.text != "true" || v.str {
		return false, newMalformedError(v.line, "%s: %.40q is not true", what, v.text)
	}
	return true, nil
}

func amountOK(n float64) bool { return n >= 0 && n <= maxAmount }

// maxAmount is more than anyone has, in US dollars.
const maxAmount = 1e15

func (u Used) isValid() bool {
	return u.Head == "" || u.Steps >= 0 && u.Steps <= math.MaxInt32 && u.Tokens >= 0 && u.DurationMs >= 0 && amountOK(u.CostUSD)
}

// writeUsed leaves out what does not hold for the head.
func (e *Entry) writeUsed(b *strings.Builder, line func(indent, key, val string)) {
	u, known := e.Known()
	if !known {
		return
	}
	b.WriteString("  used:\n")
	line("    ", "head", writeCode(string(u.Head)))
	line("    ", "steps", strconv.Itoa(u.Steps))
	line("    ", "tokens", strconv.FormatInt(u.Tokens, 10))
	line("    ", "durationMs", strconv.FormatInt(u.DurationMs, 10))
	if u.CostUSD != 0 {
		line("    ", "costUsd", strconv.FormatFloat(u.CostUSD, 'f', -1, 64))
	}
	if u.Unpriced {
		line("    ", "unpriced", "true")
	}
}
