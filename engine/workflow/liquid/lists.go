package liquid

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/osteele/liquid/values"
)

// numberOf is a value as the number that JavaScript makes of it.
func numberOf(v any) float64 {
	switch v := v.(type) {
	case int:
		return float64(v)
	case int64:
		return float64(v)
	case float64:
		return v
	case bool:
		if v {
			return 1
		}
		return 0
	case string:
		if strings.TrimSpace(v) == "" {
			return 0
		}
		if n, err := strconv.ParseFloat(strings.TrimSpace(v), 64); err == nil {
			return n
		}
	case nil:
		return 0
	}
	return math.NaN()
}

// countOf is a value as a number that counts something.
func countOf(v any) float64 {
	if n := numberOf(v); !math.IsNaN(n) {
		return n
	}
	return 0
}

// comparing is an operator: texts compare as texts, everything else as numbers.
func comparing(holds func(order int) bool) func(a, b any) bool {
	return func(a, b any) bool {
		if a == nil || b == nil {
			return false
		}
		s, text := a.(string)
		t, texts := b.(string)
		if text && texts {
			return holds(strings.Compare(s, t))
		}
		x, y := numberOf(a), numberOf(b)
		return !math.IsNaN(x) && !math.IsNaN(y) && holds(cmp.Compare(x, y))
	}
}

// divideNumbers is a division without a remainder. By zero it gives a word, as in JavaScript.
func divideNumbers(a, b float64) any {
	q := a / b
	switch {
	case math.IsNaN(q):
		return "NaN"
	case math.IsInf(q, 0):
		return strings.TrimPrefix(fmt.Sprint(q), "+") + "inity"
	}
	return q
}

// roundNumber rounds the decimal digits as they are written: 1.005 to 1.01.
func roundNumber(n float64, places any) float64 {
	by := countOf(places)
	scaled := shiftDecimal(n, by)
	if !(math.Abs(scaled) < 1<<53) {
		return n
	}
	return shiftDecimal(math.Round(scaled), -by) + 0 // not -0
}

// shiftDecimal moves the decimal point. It is NaN if by is no whole number.
func shiftDecimal(n, by float64) float64 {
	digits, power, _ := strings.Cut(strconv.FormatFloat(n, 'e', -1, 64), "e")
	return numberOf(fmt.Sprint(digits, "e", numberOf(power)+by))
}

// itemsOf is a value as a list: a text and an object are one item.
func itemsOf(v any) []any {
	switch rv := reflect.ValueOf(v); {
	case v == nil || v == "":
		return nil
	case rv.Kind() == reflect.Slice:
		out := make([]any, rv.Len())
		for i := range out {
			out[i] = rv.Index(i).Interface()
		}
		return out
	}
	return []any{v}
}

// fieldOf is the value at a path of names with dots.
func fieldOf(v any, path string) any {
	for _, name := range strings.Split(path, ".") {
		m, _ := v.(object)
		v = m[name]
	}
	return v
}

// selectItems keeps the items whose field has the value, or counts as true without one.
func selectItems(list any, field string, want any, keep bool) []any {
	out := []any{}
	for _, item := range itemsOf(list) {
		v := fieldOf(item, field)
		matches := v != nil && v != false
		if want != nil {
			matches = values.Equal(v, want)
		}
		if matches == keep {
			out = append(out, item)
		}
	}
	return out
}

func firstOf(list []any) any {
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

// sumItems adds numbers, or a field of each item.
func sumItems(list any, field string) any {
	sum := 0.0
	for _, item := range itemsOf(list) {
		if field != "" {
			item = fieldOf(item, field)
		}
		sum += countOf(item)
	}
	return sum
}

// slicePart is a part of a list or of a text, none if it would begin before that.
func slicePart(v, start, most any) any {
	list, isList := v.([]any)
	text := []rune(textOf(v))
	size := float64(len(text))
	if isList {
		size = float64(len(list))
	}
	from, length := countOf(start), countOf(cmp.Or(most, 1))
	if from < 0 {
		from += size
	}
	if from < 0 || length < 0 || isList && (start == nil || math.IsNaN(numberOf(start))) {
		size = 0
	}
	at := func(n float64) int { return int(min(max(n, 0), size)) }
	if isList {
		return list[at(from):at(from+length)]
	}
	from = math.Ceil(from)
	return string(text[at(from):at(from+math.Ceil(length))])
}

func replaceLast(s, old, by string) string {
	if i := strings.LastIndex(s, old); i >= 0 {
		return s[:i] + by + s[i+len(old):]
	}
	return s
}
