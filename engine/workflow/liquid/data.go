package liquid

import "fmt"

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

// liquidForm is normal data as the library understands it.
func liquidForm(v any) any {
	switch v := v.(type) {
	case int64:
		return int(v)
	case map[string]any:
		out := make(object, len(v))
		for k, e := range v {
			out[k] = liquidForm(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = liquidForm(e)
		}
		return out
	}
	return v
}
