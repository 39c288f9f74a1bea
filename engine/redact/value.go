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
	case json.Number, int, int64, uint64:
		return w.redactNumber(v, fmt.Sprint(v))
	case float64:
		return w.redactNumber(v, strconv.FormatFloat(v, 'f', -1, 64))
	case []any:
		return w.redactList(v, depth)
	case map[string]any:
		return w.redactObject(v, depth)
	}
	return nil, fmt.Errorf("%w: %T", ErrType, v)
}

func (w *walker) redactList(v []any, depth int) (any, error) {
	if err := w.spendWork(len(v)); err != nil {
		return nil, err
	}
	out := make([]any, len(v))
	for i, e := range v {
		var err error
		if out[i], err = w.redactValue(e, depth+1); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// redactObject redacts keys, too; two that become the same are numbered.
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
		name, err := w.redactText(k)
		if err != nil {
			return nil, err
		}
		numbered := name
		for n := 2; ; n++ {
			if _, taken := out[numbered]; !taken {
				break
			}
			numbered = fmt.Sprintf("%s#%d", name, n)
		}
		out[numbered] = clean
	}
	return out, nil
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
