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
	out, err := w.redactValue(v, 0)
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

func (w *walker) redactValue(v any, depth int) (any, error) {
	if depth > maxDepth {
		return nil, ErrTooDeep
	}
	switch v := v.(type) {
	case nil, bool:
		return v, nil
	case string:
		return w.redactText(v)
	case json.Number:
		return w.redactNumber(v, v.String())
	case int:
		return w.redactNumber(v, strconv.Itoa(v))
	case int64:
		return w.redactNumber(v, strconv.FormatInt(v, 10))
	case uint64:
		return w.redactNumber(v, strconv.FormatUint(v, 10))
	case float64:
		return w.redactNumber(v, strconv.FormatFloat(v, 'f', -1, 64))
	case []any:
		return w.redactList(v, depth)
	case map[string]any:
		return w.redactObject(v, depth)
	}
	return w.copyTyped(v)
}

// copyTyped copies the few other types that settings and payloads are made of.
func (w *walker) copyTyped(v any) (any, error) {
	switch v := v.(type) {
	case []string:
		out := make([]string, len(v))
		for i, s := range v {
			clean, err := w.redactText(s)
			if err != nil {
				return nil, err
			}
			out[i] = clean
		}
		return out, nil
	case map[string]string:
		out := make(map[string]string, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			clean, err := w.redactText(v[k])
			if err != nil {
				return nil, err
			}
			name, err := w.redactKey(k, func(name string) bool { _, ok := out[name]; return ok })
			if err != nil {
				return nil, err
			}
			out[name] = clean
		}
		return out, nil
	}
	return nil, fmt.Errorf("%w: %T", ErrType, v)
}

func (w *walker) redactList(v []any, depth int) (any, error) {
	if err := w.spendWork(len(v)); err != nil {
		return nil, err
	}
	out := make([]any, len(v))
	for i, e := range v {
		clean, err := w.redactValue(e, depth+1)
		if err != nil {
			return nil, err
		}
		out[i] = clean
	}
	return out, nil
}

func (w *walker) redactObject(v map[string]any, depth int) (any, error) {
	if err := w.spendWork(len(v)); err != nil {
		return nil, err
	}
	out := make(map[string]any, len(v))
	for _, k := range slices.Sorted(maps.Keys(v)) {
		clean, err := w.redactValue(v[k], depth+1)
		if err != nil {
			return nil, err
		}
		name, err := w.redactKey(k, func(name string) bool { _, ok := out[name]; return ok })
		if err != nil {
			return nil, err
		}
		out[name] = clean
	}
	return out, nil
}

// redactKey redacts a key; two keys that become the same are numbered.
func (w *walker) redactKey(k string, taken func(string) bool) (string, error) {
	name, err := w.redactText(k)
	if err != nil || !taken(name) {
		return name, err
	}
	for n := 2; ; n++ {
		if numbered := fmt.Sprintf("%s#%d", name, n); !taken(numbered) {
			return numbered, nil
		}
	}
}

func (w *walker) redactText(s string) (string, error) {
	if err := w.spendWork(len(s)); err != nil {
		return "", err
	}
	out, n := w.r.String(s)
	w.count += n
	return out, nil
}

// redactNumber keeps a number unless its digits are a known secret.
func (w *walker) redactNumber(v any, text string) (any, error) {
	if err := w.spendWork(len(text)); err != nil {
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

func (w *walker) spendWork(n int) error {
	w.left -= n + 1
	if w.left < 0 {
		return fmt.Errorf("%w (limit %d bytes)", ErrTooLarge, w.r.opts.MaxBytes)
	}
	return nil
}
