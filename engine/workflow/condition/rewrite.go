package condition

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/recolabs/gnata"
)

// maxRange is how many items all ranges of one evaluation may make. The library makes
// a range before anything can ask how large it is.
const maxRange = 1_000_000

// rangeName is the function that stands in for the operator "..".
const rangeName = "uwf_range"

// edit replaces length bytes of an expression at an offset.
type edit struct {
	at, length int
	text       string
}

// rewriteSource writes what the library does otherwise than jsonata in other words:
// descending sorts, which put items without the field last, ranges, and texts.
func rewriteSource(expression string) string {
	tokens := scanTokens(expression)
	var texts, edits []edit
	for i := range tokens {
		if isToken(tokens, i, "&") {
			texts = append(texts, textEdits(tokens, i)...)
		}
	}
	expression = applyEdits(expression, texts)
	tokens = scanTokens(expression)
	for i := range tokens {
		switch {
		case isToken(tokens, i, "^") && isToken(tokens, i+1, "("):
			edits = append(edits, sortEdits(expression, tokens, i+2)...)
		case isToken(tokens, i, ".."):
			edits = append(edits, rangeEdits(tokens, i)...)
		}
	}
	return applyEdits(expression, edits)
}

func applyEdits(expression string, edits []edit) string {
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Compare(a.at, b.at) })

	var out strings.Builder
	at := 0
	for _, e := range edits {
		out.WriteString(expression[at:e.at] + e.text)
		at = e.at + e.length
	}
	return out.String() + expression[at:]
}

// sortEdits sorts by whether there is a value before each descending term.
func sortEdits(expression string, tokens []token, i int) []edit {
	var edits []edit
	for i < len(tokens) {
		end := partEnd(tokens, i, 1)
		if end == len(tokens) {
			break
		}
		if isToken(tokens, i, ">") {
			term := expression[tokens[i].at+1 : tokens[end].at]
			edits = append(edits, edit{at: tokens[i].at, text: ">($exists(" + term + ") ? 1 : 0), "})
		}
		if tokens[end].text != "," {
			break
		}
		i = end + 1
	}
	return edits
}

// rangeEdits makes a call of the range whose operator is the i-th token.
func rangeEdits(tokens []token, i int) []edit {
	from, to := partEnd(tokens, i-1, -1), partEnd(tokens, i+1, 1)
	if from < 0 || to == len(tokens) || from+1 >= i || i+1 >= to {
		return nil
	}
	return []edit{
		{at: tokens[from+1].at, text: "$" + rangeName + "("},
		{at: tokens[i].at, length: 2, text: ","},
		{at: tokens[to].at, text: ")"},
	}
}

// textOperators end an operand of "&".
const textOperators = "& + - = != < > <= >= ~> and or in ? : ?: ?? := .. ; | ^"

// textEdits has $string make the texts of both sides of the i-th token, which is "&": what
// the operator makes of a value has no limit. A sign's operand is a number,
// and the library knows no parent (%) in an argument.
func textEdits(tokens []token, i int) []edit {
	var edits []edit
	ends := strings.Fields(textOperators)
	for _, side := range [][2]int{{partEnd(tokens, i-1, -1, ends...) + 1, i}, {i + 1, partEnd(tokens, i+1, 1, ends...)}} {
		from, to := side[0], side[1]
		parent := slices.ContainsFunc(tokens[from:to], func(t token) bool { return t.text == "%" })
		if from == to || from+1 == to && tokens[from].kind == quoted || parent {
			continue
		}
		if last := tokens[to-1]; from > i || from == 0 || !strings.Contains("&+-", tokens[from-1].text) {
			edits = append(edits, edit{at: tokens[from].at, text: "$string("}, edit{at: last.at + last.length, text: ")"})
		}
	}
	return edits
}

// partEnd is the comma or bracket that ends the part of a list with the i-th token,
// forwards or backwards, or one of the operators. It is beyond the tokens if nothing does.
func partEnd(tokens []token, i, step int, operators ...string) int {
	depth := 0
	for ; i >= 0 && i < len(tokens); i += step {
		if tokens[i].kind != other && !isWord(tokens, i) {
			continue
		}
		switch opens, closes := strings.Contains("([{", tokens[i].text), strings.Contains(")]}", tokens[i].text); {
		case depth == 0 && (tokens[i].text == "," || slices.Contains(operators, tokens[i].text) || closes && step > 0 || opens && step < 0):
			return i
		case opens:
			depth += step
		case closes:
			depth -= step
		}
	}
	return i
}

// rangeOf is the operator "..", charged to the budget before it makes anything.
func rangeOf(b *budget) gnata.CustomFunc {
	return func(args []any, _ any) (any, error) {
		var ends [2]float64
		for i := range ends {
			if i >= len(args) || args[i] == nil {
				return nil, nil
			}
			n, ok := numberOf(args[i])
			if !ok || n != math.Trunc(n) {
				return nil, fmt.Errorf("T2003: the ends of a range must be whole numbers, not %v", args[i])
			}
			ends[i] = n
		}
		count := ends[1] - ends[0] + 1
		if count <= 0 {
			return nil, nil
		}
		if count > float64(maxRange-b.ranges) {
			b.err = fmt.Errorf("%w: its ranges have more than %d items; make them shorter", ErrTooLarge, maxRange)
			return nil, b.err
		}
		b.ranges += int(count)
		out := make([]any, int(count))
		for i := range out {
			out[i] = ends[0] + float64(i)
		}
		return out, nil
	}
}

func numberOf(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case json.Number:
		f, err := v.Float64()
		return f, err == nil
	}
	return 0, false
}

// countingFunctions answer with a number for whatever they are given.
func countingFunctions() []string {
	return []string{"$count", "$length", "$sum", "$max", "$min", "$average", "$number", "$floor", "$ceil", "$round", "$abs"}
}

// differences are the places that the library evaluates otherwise than jsonata.
func differences(tokens []token) []SyntaxError {
	var out []SyntaxError
	for i, t := range tokens {
		var message, fix string
		switch {
		case isToken(tokens, i, "*") && isToken(tokens, i-1, "."):
			message, fix = ".* is not supported", "name the fields, or use $each(…, function($v, $k) {…})"
		case i > 0 && isToken(tokens, i-1, "[") && afterValue(tokens[:i-1]) && isPosition(tokens, i):
			message, fix = "a number in [ ] is a position, and this number depends on the item", "compare it: ["+t.text+"(…) > 0]"
		default:
			continue
		}
		out = append(out, SyntaxError{Offset: t.at, Length: t.length, Message: message, Fix: fix})
	}
	return out
}

// isPosition reports whether a predicate is one call that counts something of the item.
func isPosition(tokens []token, i int) bool {
	if !slices.Contains(countingFunctions(), tokens[i].text) || !isToken(tokens, i+1, "(") {
		return false
	}
	end := partEnd(tokens, i+2, 1)
	for end < len(tokens) && tokens[end].text == "," {
		end = partEnd(tokens, end+1, 1)
	}
	return isToken(tokens, end+1, "]") && tokens[i+2].kind == name && tokens[i+2].text != "steps"
}
