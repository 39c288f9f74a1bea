package liquid

import (
	"encoding/json"
	"fmt"
	"math"
)

// maxDepth is how deep an output may nest before rendering refuses it.
const maxDepth = 100

// object is a map as the library gets it: it finds keys in it, and writes it as
// JSON where a whole map is written.
type object map[string]any

// Format writes the map as JSON, whatever the verb.
func (o object) Format(s fmt.State, _ rune) {
	text, err := toJSON(map[string]any(o))
	if err != nil {
		text = "{}"
	}
	_, _ = s.Write([]byte(text)) // fmt.State never fails
}

// normaliseData brings an output to what the library understands.
func normaliseData(data map[string]any) (map[string]any, error) {
	out := make(map[string]any, len(data))
	for k, v := range data {
		n, err := plainValue(v, 1)
		if err != nil {
			return nil, err
		}
		out[k] = n
	}
	return out, nil
}

func plainValue(v any, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("the output nests deeper than %d levels", maxDepth)
	}
	switch v := v.(type) {
	case nil, bool, string, int:
		return v, nil
	case int64:
		return int(v), nil
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int(v), nil
		}
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return nil, fmt.Errorf("a number that is infinite or not a number can't be rendered")
		}
		return v, nil
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return int(n), nil
		}
		f, err := v.Float64()
		if err != nil {
			return nil, fmt.Errorf("number %q: %w", v.String(), err)
		}
		return f, nil
	case map[string]any:
		out := make(object, len(v))
		for k, e := range v {
			n, err := plainValue(e, depth+1)
			if err != nil {
				return nil, err
			}
			out[k] = n
		}
		return out, nil
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			n, err := plainValue(e, depth+1)
			if err != nil {
				return nil, err
			}
			out[i] = n
		}
		return out, nil
	}
	return nil, fmt.Errorf("a value of type %T can't be rendered", v)
}
