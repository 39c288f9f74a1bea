package liquid

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/osteele/liquid/filters"
	"github.com/osteele/liquid/render"

	"github.com/united-workforce/uwf/internal/text"
)

// refusedFilters are standard filters that a template can't use, and why.
func refusedFilters() map[string]string {
	return map[string]string{
		"date":    "it can read the clock: let the role give the date as it is to be shown",
		"type":    "it shows how uwf is made, not what the output holds",
		"inspect": "use json",
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
}

// addFilters gives cfg the filters, each charged to the budget.
func addFilters(cfg *render.Config, b *budget) {
	all := dictionary{add: map[string]any{}}
	all.takeFilters()
	for name, fn := range all.add {
		f := reflect.ValueOf(fn)
		cfg.AddFilter(name, reflect.MakeFunc(f.Type(), func(args []reflect.Value) []reflect.Value {
			b.spendOrPanic(0)
			out := f.Call(args)
			b.spendOrPanic(sizeOf(out[0]))
			return out
		}).Interface())
	}
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

func joinList(list []any, sep func(string) string) (string, error) {
	var out strings.Builder
	s := sep(" ")
	for i, v := range list {
		if v == nil {
			continue
		}
		if i > 0 && out.Len() > 0 {
			out.WriteString(s)
		}
		out.WriteString(fmt.Sprint(v))
		if out.Len() > maxBytes {
			return "", errTooMuch
		}
	}
	return out.String(), nil
}

func replaceText(s, old, by string) (string, error) {
	if n := strings.Count(s, old); n > 0 && len(by) > 0 && n > maxBytes/len(by) {
		return "", errTooMuch
	}
	return strings.ReplaceAll(s, old, by), nil
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
	return strings.ToUpper(s[:n]) + s[n:]
}

// truncateText shortens text to so many characters, the ellipsis among them.
func truncateText(s string, length func(int) int, ellipsis func(string) string) string {
	n, end := length(50), []rune(ellipsis("..."))
	runes := []rune(s)
	if len(runes) <= n {
		return s
	}
	return string(runes[:max(n-len(end), 0)]) + string(end)
}
