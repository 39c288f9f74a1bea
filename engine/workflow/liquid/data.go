package liquid

import (
	"fmt"

	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/lists"
)

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
		return node.MapObject[object](v, liquidForm)
	case []any:
		return lists.Map(v, liquidForm)
	}
	return v
}
