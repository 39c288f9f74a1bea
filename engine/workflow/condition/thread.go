package condition

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	"github.com/recolabs/gnata"

	"github.com/united-workforce/uwf/internal/text"
)

// maxThread is the largest thread that conditions can look at, in bytes of JSON.
const maxThread = 64 << 20

// Step is one step of a thread.
type Step struct {
	Role   string
	Output map[string]any
	// Body is the markdown under the output's frontmatter.
	Body string
	// Node is the StepNode's payload, as far as it is known.
	Node map[string]any
}

// Thread is what conditions look at. It is safe for concurrent use.
type Thread struct {
	data        any
	first, last map[string]any // the outputs by role
	parts       atomic.Int64   // that conditions evaluated
	spent       atomic.Int64   // nanoseconds that they took
	measure     measure
}

// spendBudget adds an evaluation to what conditions used. The error says that it is too
// much altogether.
func (t *Thread) spendBudget(b *budget) error {
	parts, spent := t.parts.Add(int64(b.parts)), time.Duration(t.spent.Add(int64(b.now().Sub(b.begin))))
	switch {
	case parts > maxAllParts:
		return fmt.Errorf("%w: all conditions of this step together evaluate more than %d parts; go through fewer items", ErrTimeout, maxAllParts)
	case spent > maxAllTime:
		return fmt.Errorf("%w: all conditions of this step together took %v", ErrTimeout, spent.Round(time.Millisecond))
	}
	return nil
}

// NewThread prepares a thread for conditions: {start, steps}, steps oldest first.
// Each step has its StepNode's fields, the output itself in the place of its hash,
// and its body as content.
func NewThread(start map[string]any, steps []Step) (*Thread, error) {
	list := make([]any, len(steps))
	for i, s := range steps {
		one := maps.Clone(s.Node)
		if one == nil {
			one = map[string]any{}
		}
		output := s.Output
		if output == nil {
			output = map[string]any{}
		}
		one["role"], one["output"], one["content"] = s.Role, output, nil
		if s.Body != "" {
			one["content"] = s.Body
		}
		list[i] = one
	}
	if start == nil {
		start = map[string]any{}
	}
	data, err := decodeValue(map[string]any{"start": start, "steps": list})
	if err != nil {
		return nil, fmt.Errorf("preparing a thread of %d steps for conditions: %w", len(steps), err)
	}
	t := &Thread{data: data, first: map[string]any{}, last: map[string]any{}, measure: measure{time.Now, time.After, maxMemory}}
	outputs, _ := getField(data, "steps").([]any)
	for i, s := range steps {
		if i >= len(outputs) {
			break
		}
		output := getField(outputs[i], "output")
		if _, seen := t.first[s.Role]; !seen {
			t.first[s.Role] = output
		}
		t.last[s.Role] = output
	}
	return t, nil
}

// decodeValue brings Go data to the form that the library works with.
func decodeValue(v any) (any, error) {
	data, err := text.EncodeJSON(v)
	if err != nil {
		return nil, err
	}
	if len(data) > maxThread {
		return nil, fmt.Errorf("%w: %d bytes, the limit is %d", ErrTooLarge, len(data), maxThread)
	}
	return gnata.DecodeJSON(data)
}

// getField is a field of the library's ordered map.
func getField(v any, key string) any {
	m, ok := v.(interface{ Get(string) (any, bool) })
	if !ok {
		return nil
	}
	field, _ := m.Get(key)
	return field
}

// customFunctions are $first and $last, and what stands in the place of the functions
// that conditions can't use. The scan of an expression refuses those by name; this
// holds where they are reached some other way.
func (t *Thread) customFunctions(b *budget) map[string]gnata.CustomFunc {
	out := map[string]gnata.CustomFunc{
		"first": outputOf("first", t.first), "last": outputOf("last", t.last), "distinct": distinctValues,
		rangeName: rangeOf(b),
	}
	for name, why := range refusedFunctions() {
		out[name] = func([]any, any) (any, error) { return nil, fmt.Errorf("$%s %s", name, why) }
	}
	return out
}

func outputOf(name string, outputs map[string]any) gnata.CustomFunc {
	return func(args []any, _ any) (any, error) {
		if len(args) != 1 {
			return nil, fmt.Errorf("$%s takes one role's name, not %d arguments", name, len(args))
		}
		role, ok := args[0].(string)
		if !ok && args[0] != nil {
			return nil, fmt.Errorf("$%s takes a role's name, such as $%s(\"coder\"), and got another value", name, name)
		}
		return outputs[role], nil
	}
}

// distinctValues is $distinct in linear time; the library's compares every pair.
func distinctValues(args []any, _ any) (any, error) {
	if len(args) != 1 {
		return nil, errors.New("$distinct takes one list")
	}
	list, ok := args[0].([]any)
	if !ok || len(list) < 2 {
		return args[0], nil
	}
	seen := make(map[string]bool, len(list))
	out := make([]any, 0, len(list))
	for _, v := range list {
		key, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("$distinct: %w", err)
		}
		if !seen[string(key)] {
			seen[string(key)] = true
			out = append(out, v)
		}
	}
	if len(out) == 1 {
		return out[0], nil
	}
	return out, nil
}
