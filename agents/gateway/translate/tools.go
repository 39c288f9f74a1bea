package translate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/agents/gateway/dialect"
	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/text"
)

// tool is one by the client's names for it.
type tool struct {
	namespace, name string
	custom          bool // it takes a text: OpenAI's custom tools
}

// tools gives each tool a name that chat takes: letters, digits, _ and -, at most 64.
type tools struct {
	offered []any // as chat has them
	names   map[tool]string
	byName  map[string]tool
}

func newTools() *tools { return &tools{names: map[tool]string{}, byName: map[string]tool{}} }

var unfit = lazyregexp.New(`[^a-zA-Z0-9_-]`)

const maxName = 64

// nameOf is the chat name of a tool, made where it is new.
func (t *tools) nameOf(of tool) string {
	if name, ok := t.names[of]; ok {
		return name
	}
	base := of.name
	if of.namespace != "" {
		base = of.namespace + "__" + of.name
	}
	base = unfit.ReplaceAllString(base, "_")
	if base == "" {
		base = "tool"
	}
	name := base[:min(len(base), maxName)]
	for n := 2; ; n++ {
		if _, taken := t.byName[name]; !taken {
			break
		}
		suffix := fmt.Sprintf("_%d", n)
		name = base[:min(len(base), maxName-len(suffix))] + suffix
	}
	t.names[of], t.byName[name] = name, of
	return name
}

// offer adds a function to what the model may call. schema may be nil.
func (t *tools) offer(of tool, description string, schema any) {
	if _, ok := t.names[of]; ok && slices.ContainsFunc(t.offered, func(v any) bool { return textAt(v, "function", "name") == t.names[of] }) {
		return // a name twice is an error there
	}
	function := object{"name": t.nameOf(of)}
	if description != "" {
		function["description"] = description
	}
	if schema != nil {
		function["parameters"] = schema
	}
	t.offered = append(t.offered, object{"type": "function", "function": function})
}

// isOffered says whether the model may call a tool.
func (t *tools) isOffered(of tool) bool {
	return slices.ContainsFunc(t.offered, func(v any) bool { return textAt(v, "function", "name") == t.names[of] && t.names[of] != "" })
}

// findNamed is a tool by its name alone, whichever kind it has.
func (t *tools) findNamed(namespace, name string) tool {
	if of := (tool{namespace, name, true}); t.isOffered(of) {
		return of
	}
	return tool{namespace: namespace, name: name}
}

// inputSchema is that of a custom tool, as a function.
func inputSchema() object {
	return object{"type": "object", "properties": object{"input": object{"type": "string"}}, "required": []any{"input"}}
}

// readCall is a call of the model's by the client's name.
func (t *tools) readCall(c dialect.Call) dialect.Call {
	of, known := t.byName[c.Name]
	if !known {
		return c // the client says what it does not know
	}
	c.Name, c.Namespace, c.Custom = of.name, of.namespace, of.custom
	if of.custom {
		var in struct{ Input *string }
		if json.Unmarshal([]byte(c.Args), &in) == nil && in.Input != nil {
			c.Args = dialect.Args(*in.Input)
		}
	}
	return c
}

// isObject says whether a text is a JSON object, as the arguments of a call are.
func isObject(s string) bool {
	var o object
	return text.DecodeJSON([]byte(s), &o) == nil && o != nil
}

// argsOf is what a call of the client's history has as its arguments in chat.
func argsOf(of tool, args string) string {
	switch {
	case of.custom:
		return encode(object{"input": args})
	case strings.TrimSpace(args) == "":
		return "{}"
	}
	return args
}
