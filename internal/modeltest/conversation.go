package modeltest

import (
	"strings"

	"github.com/united-workforce/uwf/internal/lazyregexp"
)

type (
	object = map[string]any
	list   = []any
)

// field is a field of that type, its zero value where there is none.
func field[T any](o object, name string) T {
	v, _ := o[name].(T)
	return v
}

// objects are the objects of a list.
func objects(v any) []object {
	var found []object
	all, _ := v.(list)
	for _, v := range all {
		if o, ok := v.(object); ok {
			found = append(found, o)
		}
	}
	return found
}

// conversation is what every wire says in its own way.
type conversation struct {
	messages []message
	tools    []tool
}

// message is one of them. tool says that it holds a tool's result.
type message struct {
	role, text string
	tool       bool
}

// tool is one that the model is offered: its schema, and the name space that responses
// puts some into.
type tool struct {
	name, space string
	schema      object
}

func readConversation(w Wire, asked object) conversation {
	switch w {
	case Chat:
		return readChat(asked)
	case Messages:
		return readMessages(asked)
	case Responses:
		return readResponses(asked)
	}
	return readGemini(asked)
}

// readText is the text of a content: a string, or parts.
func readText(content any) string {
	if s, ok := content.(string); ok {
		return s
	}
	var parts []string
	for _, p := range objects(content) {
		for _, name := range []string{"text", "content"} {
			if s, ok := p[name].(string); ok {
				parts = append(parts, s)
				break
			}
		}
	}
	return strings.Join(parts, "\n")
}

func readChat(asked object) (c conversation) {
	for _, m := range objects(asked["messages"]) {
		role := field[string](m, "role")
		c.messages = append(c.messages, message{role: role, text: readText(m["content"]), tool: role == "tool"})
	}
	for _, t := range objects(asked["tools"]) {
		f := field[object](t, "function")
		c.tools = append(c.tools, tool{name: field[string](f, "name"), schema: field[object](f, "parameters")})
	}
	return c
}

func readMessages(asked object) (c conversation) {
	c.messages = append(c.messages, message{role: "system", text: readText(asked["system"])})
	for _, m := range objects(asked["messages"]) {
		result := false
		for _, p := range objects(m["content"]) {
			result = result || p["type"] == "tool_result"
		}
		c.messages = append(c.messages, message{role: field[string](m, "role"), text: readText(m["content"]), tool: result})
	}
	for _, t := range objects(asked["tools"]) {
		c.tools = append(c.tools, tool{name: field[string](t, "name"), schema: field[object](t, "input_schema")})
	}
	return c
}

func readResponses(asked object) (c conversation) {
	c.messages = append(c.messages, message{role: "system", text: field[string](asked, "instructions")})
	if s, ok := asked["input"].(string); ok {
		c.messages = append(c.messages, message{role: "user", text: s})
	}
	for _, m := range objects(asked["input"]) {
		switch kind := field[string](m, "type"); {
		case kind == "" || kind == "message":
			c.messages = append(c.messages, message{role: field[string](m, "role"), text: readText(m["content"])})
		case strings.HasSuffix(kind, "output"):
			c.messages = append(c.messages, message{role: "tool", text: readText(m["output"]), tool: true})
		}
	}
	for _, t := range objects(asked["tools"]) {
		for _, inner := range objects(t["tools"]) {
			c.tools = append(c.tools, tool{name: field[string](inner, "name"), space: field[string](t, "name"), schema: field[object](inner, "parameters")})
		}
		c.tools = append(c.tools, tool{name: field[string](t, "name"), schema: field[object](t, "parameters")})
	}
	return c
}

func readGemini(asked object) (c conversation) {
	c.messages = append(c.messages, message{role: "system", text: readText(field[object](asked, "systemInstruction")["parts"])})
	for _, m := range objects(asked["contents"]) {
		role := strings.Replace(field[string](m, "role"), "model", "assistant", 1)
		result := false
		for _, p := range objects(m["parts"]) {
			result = result || p["functionResponse"] != nil
		}
		c.messages = append(c.messages, message{role: role, text: readText(m["parts"]), tool: result})
	}
	for _, t := range objects(asked["tools"]) {
		for _, f := range objects(t["functionDeclarations"]) {
			schema, ok := f["parametersJsonSchema"].(object)
			if !ok {
				schema = field[object](f, "parameters")
			}
			c.tools = append(c.tools, tool{name: field[string](f, "name"), schema: schema})
		}
	}
	return c
}

// hasResult says whether a tool has answered.
func (c conversation) hasResult() bool {
	for _, m := range c.messages {
		if m.tool {
			return true
		}
	}
	return false
}

// countAnswers counts what the model said with that in it.
func (c conversation) countAnswers(part string) (n int) {
	for _, m := range c.messages {
		if m.role == "assistant" && strings.Contains(m.text, part) {
			n++
		}
	}
	return n
}

// joinText joins what was said by a role, by all for "".
func (c conversation) joinText(role string) string {
	var all []string
	for _, m := range c.messages {
		if (role == "" || m.role == role) && !(role == "user" && m.tool) {
			all = append(all, m.text)
		}
	}
	return strings.Join(all, "\n")
}

// findTool is the first tool of a name.
func (c conversation) findTool(name *lazyregexp.Regexp) *tool {
	for i := range c.tools {
		if name.MatchString(c.tools[i].name) {
			return &c.tools[i]
		}
	}
	return nil
}
