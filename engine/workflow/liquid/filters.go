package liquid

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/osteele/liquid/filters"
	"github.com/osteele/liquid/render"

	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/text"
)

// refusedFilters are standard filters that a template can't use, why, and what to do.
func refusedFilters() map[string][2]string {
	return map[string][2]string{
		"date":    {"it can read the clock", "have the role give the date as text"},
		"type":    {"it names types of uwf's own language", "leave it out"},
		"inspect": {"json does the same", "use json"},
	}
}

// Filters lists the names of the filters that templates can use.
func Filters() []string { return slices.Clone(filterNames()) }

var filterNames = sync.OnceValue(func() []string {
	all := dictionary{add: map[string]any{}}
	all.takeFilters()
	return slices.Sorted(maps.Keys(all.add))
})

// dictionary takes the standard filters, and ours in the place of those that cost
// more than they look like or fail on ordinary text.
type dictionary struct{ add map[string]any }

// AddFilter takes one of the library's filters.
func (d dictionary) AddFilter(name string, fn any) { d.add[name] = fn }

func (d dictionary) takeFilters() {
	filters.AddStandardFilters(d)
	for name := range refusedFilters() {
		delete(d.add, name)
	}
	d.add["join"] = joinList
	d.add["replace"] = replaceText
	d.add["uniq"] = uniqueItems
	d.add["json"] = toJSON
	d.add["capitalize"] = capitalizeText
	d.add["truncate"] = truncateText
	d.add["truncatewords"] = truncateWords
	d.add["newline_to_br"] = func(s string) string { return strings.ReplaceAll(s, "\n", "<br />\n") }
	d.add["divided_by"] = divideNumbers
	d.add["round"] = roundNumber
	d.add["slice"] = slicePart
	d.add["sum"] = sumItems
	d.add["replace_last"] = replaceLast
	d.add["where"] = func(list any, field string, want any) []any { return selectItems(list, field, want, true) }
	d.add["reject"] = func(list any, field string, want any) []any { return selectItems(list, field, want, false) }
	d.add["find"] = func(list any, field string, want any) any { return firstOf(selectItems(list, field, want, true)) }
	d.add["has"] = func(list any, field string, want any) bool { return len(selectItems(list, field, want, true)) > 0 }
	d.add["push"] = func(list, item any) []any { return append(itemsOf(list), item) }
	d.add["at_least"] = math.Max
	d.add["at_most"] = math.Min
}

// takeOperators adds the filters that rewriteText writes for operators.
func (d dictionary) takeOperators() {
	d.add[rangeEnd] = func(v any) int { return int(math.Ceil(countOf(v))) }
	for operator, name := range comparisons() {
		d.add[name] = comparing(map[string]func(int) bool{
			"<": func(n int) bool { return n < 0 }, "<=": func(n int) bool { return n <= 0 },
			">": func(n int) bool { return n > 0 }, ">=": func(n int) bool { return n >= 0 },
		}[operator])
	}
}

// addFilters gives cfg the filters, each charged to the budget.
func addFilters(cfg *render.Config, b *budget) {
	all := dictionary{add: map[string]any{}}
	all.takeFilters()
	all.takeOperators()
	for name, fn := range all.add {
		f := reflect.ValueOf(fn)
		cfg.AddFilter(name, reflect.MakeFunc(tolerantType(f.Type()), func(args []reflect.Value) []reflect.Value {
			b.spendOrPanic(0)
			for i := range args {
				args[i] = convertArgument(args[i], f.Type().In(i))
			}
			out := f.Call(args)
			b.spendOrPanic(sizeOf(out[0]))
			return out
		}).Interface())
	}
}

var (
	anyType  = reflect.TypeFor[any]()
	listType = reflect.TypeFor[[]any]()
)

// tolerantType is a filter's type that takes any value for a list, a number or a text.
// The library would fail on another kind, after the step was paid.
func tolerantType(t reflect.Type) reflect.Type {
	var in, out []reflect.Type
	for i := range t.NumIn() {
		p := t.In(i)
		if p == listType || p.Kind() == reflect.Float64 || p.Kind() == reflect.String {
			p = anyType
		}
		in = append(in, p)
	}
	for i := range t.NumOut() {
		out = append(out, t.Out(i))
	}
	return reflect.FuncOf(in, out, false)
}

// convertArgument makes of a value what a filter takes, as liquidjs does.
func convertArgument(v reflect.Value, to reflect.Type) reflect.Value {
	switch {
	case v.Type() == to:
		return v
	case to == listType:
		return reflect.ValueOf(itemsOf(v.Interface()))
	case to.Kind() == reflect.String:
		return reflect.ValueOf(textOf(v.Interface()))
	}
	return reflect.ValueOf(countOf(v.Interface()))
}

// sizeOf is about what a value takes that a filter made.
func sizeOf(v reflect.Value) int {
	for v.Kind() == reflect.Interface && !v.IsNil() {
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.String:
		return v.Len()
	case reflect.Slice:
		return v.Len() * 16
	}
	return 16
}

var errTooMuch = errors.New("the result is too long")

func joinList(list []any, sep any) (string, error) {
	var out strings.Builder
	s := textOf(cmp.Or(sep, " "))
	for i, v := range list {
		if v == nil {
			continue
		}
		if i > 0 && out.Len() > 0 {
			out.WriteString(s)
		}
		out.WriteString(textOf(v))
		if out.Len() > maxBytes {
			return "", errTooMuch
		}
	}
	return out.String(), nil
}

// textOf is a value as a template writes it.
func textOf(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []any:
		var out strings.Builder
		for _, item := range v {
			if out.WriteString(textOf(item)); out.Len() > maxBytes {
				panic(errTooMuch) // Render recovers it
			}
		}
		return out.String()
	}
	return fmt.Sprint(v)
}

func replaceText(s, old, by string) (string, error) {
	if strings.Count(s, old) > maxBytes/(len(by)+16) {
		return "", errTooMuch
	}
	return strings.Join(strings.Split(s, old), by), nil
}

func uniqueItems(list []any) ([]any, error) {
	seen := make(map[string]bool, len(list))
	var out []any
	for _, v := range list {
		key, err := toJSON(v)
		if err != nil {
			return nil, err
		}
		if !seen[key] {
			seen[key] = true
			out = append(out, v)
		}
	}
	return out, nil
}

func toJSON(v any) (string, error) {
	out, err := text.EncodeJSON(v)
	if len(out) > maxBytes {
		return "", errTooMuch
	}
	return string(out), err
}

func capitalizeText(s string) string {
	_, n := utf8.DecodeRuneInString(s)
	return strings.ToUpper(s[:n]) + strings.ToLower(s[n:])
}

var spaces = lazyregexp.New(`[\s\p{Z}]+`)

// truncateWords shortens text to so many words. White space at the end counts as one.
func truncateWords(s string, most, ellipsis any) string {
	words := strings.Split(spaces.ReplaceAllString(strings.TrimLeftFunc(s, unicode.IsSpace), " "), " ")
	n := max(countOf(cmp.Or(most, 15)), 1)
	if float64(len(words)) < n {
		return strings.Join(words, " ")
	}
	return strings.Join(words[:int(n)], " ") + textOf(cmp.Or(ellipsis, "..."))
}

// truncateText shortens text to so many characters, the ellipsis among them.
func truncateText(s string, most, ellipsis any) string {
	n, end, runes := countOf(cmp.Or(most, 50)), textOf(cmp.Or(ellipsis, "...")), []rune(s)
	if float64(len(runes)) <= math.Ceil(n) {
		return s
	}
	return string(runes[:int(math.Ceil(max(n-float64(utf8.RuneCountInString(end)), 0)))]) + end
}
