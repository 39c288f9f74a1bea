package redact

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Value replaces all secrets in a JSON-like value and says how many there were:
// in strings, in map keys, and in numbers that are a known secret (which become
// strings). The input is not changed. Nesting over 256 levels is ErrTooDeep, more
// than MaxBytes of text is ErrTooLarge, and a type that JSON has no counterpart
// for is ErrType: what can't be searched is never let through.
func (r *Redactor) Value(v any) (any, int, error) {
	w := &walker{r: r, left: r.opts.MaxBytes}
	out, err := w.value(v, 0)
	if err != nil {
		return nil, 0, fmt.Errorf("redact a value: %w", err)
	}
	return out, w.count, nil
}

// walker redacts one value; left is how many bytes it may still look at.
type walker struct {
	r     *Redactor
	left  int
	count int
}

func (w *walker) value(v any, depth int) (any, error) {
	if depth > maxDepth {
		return nil, ErrTooDeep
	}
	switch v := v.(type) {
	case nil, bool:
		return v, nil
	case string:
		return w.text(v)
	case json.Number:
		return w.number(v, v.String())
	case int:
		return w.number(v, strconv.Itoa(v))
	case int64:
		return w.number(v, strconv.FormatInt(v, 10))
	case uint64:
		return w.number(v, strconv.FormatUint(v, 10))
	case float64:
		return w.number(v, strconv.FormatFloat(v, 'f', -1, 64))
	case []any:
		return w.list(v, depth)
	case map[string]any:
		return w.object(v, depth)
	}
	return w.typed(v)
}

// typed copies the few other types that settings and payloads are made of.
func (w *walker) typed(v any) (any, error) {
	switch v := v.(type) {
	case []string:
		out := make([]string, len(v))
		for i, s := range v {
			clean, err := w.text(s)
			if err != nil {
				return nil, err
			}
			out[i] = clean
		}
		return out, nil
	case map[string]string:
		out := make(map[string]string, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			clean, err := w.text(v[k])
			if err != nil {
				return nil, err
			}
			name, err := w.key(k, func(name string) bool { _, ok := out[name]; return ok })
			if err != nil {
				return nil, err
			}
			out[name] = clean
		}
		return out, nil
	}
	return nil, fmt.Errorf("%w: %T", ErrType, v)
}

func (w *walker) list(v []any, depth int) (any, error) {
	if err := w.spend(len(v)); err != nil {
		return nil, err
	}
	out := make([]any, len(v))
	for i, e := range v {
		clean, err := w.value(e, depth+1)
		if err != nil {
			return nil, err
		}
		out[i] = clean
	}
	return out, nil
}

func (w *walker) object(v map[string]any, depth int) (any, error) {
	if err := w.spend(len(v)); err != nil {
		return nil, err
	}
	out := make(map[string]any, len(v))
	for _, k := range slices.Sorted(maps.Keys(v)) {
		clean, err := w.value(v[k], depth+1)
		if err != nil {
			return nil, err
		}
		name, err := w.key(k, func(name string) bool { _, ok := out[name]; return ok })
		if err != nil {
			return nil, err
		}
		out[name] = clean
	}
	return out, nil
}

// key redacts a key; two keys that become the same are numbered.
func (w *walker) key(k string, taken func(string) bool) (string, error) {
	name, err := w.text(k)
	if err != nil || !taken(name) {
		return name, err
	}
	for n := 2; ; n++ {
		if numbered := fmt.Sprintf("%s#%d", name, n); !taken(numbered) {
			return numbered, nil
		}
	}
}

func (w *walker) text(s string) (string, error) {
	if err := w.spend(len(s)); err != nil {
		return "", err
	}
	out, n := w.r.String(s)
	w.count += n
	return out, nil
}

// number keeps a number unless its digits are a known secret.
func (w *walker) number(v any, text string) (any, error) {
	if err := w.spend(len(text)); err != nil {
		return nil, err
	}
	if !w.r.digits {
		return v, nil
	}
	if out, n := w.r.String(text); n > 0 {
		w.count += n
		return out, nil
	}
	return v, nil
}

func (w *walker) spend(n int) error {
	w.left -= n + 1
	if w.left < 0 {
		return fmt.Errorf("%w (limit %d bytes)", ErrTooLarge, w.r.opts.MaxBytes)
	}
	return nil
}
