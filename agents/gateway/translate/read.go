package translate

import (
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/lists"
)

// readMessages reads a request of Anthropic's messages.
func (b *builder) readMessages() error {
	b.addSystem(b.readParts(b.asked["system"]))
	for _, v := range listAt(b.asked, "messages") {
		b.readAnthropicMessage(v)
	}
	for _, v := range listAt(b.asked, "tools") {
		kind := textAt(v, "type")
		if kind != "" && kind != "custom" {
			b.lose("tools that only one provider knows: " + kind)
			continue
		}
		b.tools.offer(tool{name: textAt(v, "name")}, textAt(v, "description"), fieldAt(v, "input_schema"))
	}
	b.carryNamed("max_tokens")
	delete(b.fields, "metadata") // the user's id at Anthropic
	if b.fields["service_tier"] == "standard_only" {
		b.fields["service_tier"] = "default"
	}
	b.stopAt(listAt(b.asked, "stop_sequences"))
	thinking := textAt(b.asked, "thinking", "type")
	b.thoughts = thinking != "" && thinking != "disabled" && textAt(b.asked, "thinking", "display") != "omitted"
	for _, format := range []any{b.asked["output_format"], fieldAt(b.asked, "output_config", "format")} {
		if schema := fieldAt(format, "schema"); schema != nil {
			b.answerAs("", schema, nil)
		}
	}
	if flagAt(b.asked, "tool_choice", "disable_parallel_tool_use") {
		b.fields["parallel_tool_calls"] = false
	}
	switch textAt(b.asked, "tool_choice", "type") {
	case "any":
		b.fields["tool_choice"] = "required"
	case "none":
		b.fields["tool_choice"] = "none"
	case "tool":
		return b.chooseTool(tool{name: textAt(b.asked, "tool_choice", "name")})
	}
	return nil
}

// carryNamed carries what a wire has by the same names as chat.
func (b *builder) carryNamed(limit string) {
	names := map[string]string{limit: "max_tokens", "temperature": "temperature", "top_p": "top_p"}
	for _, name := range optionalFields() {
		names[name] = name
	}
	b.carry(b.asked, names)
	b.carry(b.asked["reasoning"], map[string]string{"effort": "reasoning_effort"})
	if b.asked["parallel_tool_calls"] == false {
		b.fields["parallel_tool_calls"] = false
	}
}

// readParts is the text of a content: a text, or a list of parts.
func (b *builder) readParts(v any) string {
	if s, plain := v.(string); plain {
		return s
	}
	parts, _ := v.([]any)
	var texts []string
	for _, part := range parts {
		if said := b.readPart(part); said != "" {
			texts = append(texts, said)
		}
	}
	return strings.Join(texts, "\n")
}

func (b *builder) readPart(part any) string {
	switch kind := textAt(part, "type"); kind {
	case "text", "input_text", "output_text":
		return textAt(part, "text")
	case "refusal":
		return textAt(part, "refusal")
	case "thinking", "redacted_thinking", "reasoning":
		b.lose("what the model thought before")
		return ""
	case "tool_reference":
		return "The tool " + textAt(part, "tool_name") + " is there to be called."
	case "image", "input_image":
		return b.noteImage("an image")
	case "document", "input_file":
		if textAt(part, "source", "type") == "text" {
			return textAt(part, "source", "data")
		}
		return b.noteImage("a file")
	case "search_result":
		return strings.TrimSpace(textAt(part, "title") + "\n" + b.readParts(fieldAt(part, "content")))
	case "":
		return textAt(part, "text")
	default:
		return b.noteImage("a part of the kind " + kind)
	}
}

func (b *builder) readAnthropicMessage(m any) {
	role := textAt(m, "role")
	content, ok := fieldAt(m, "content").([]any)
	if !ok {
		content = []any{object{"type": "text", "text": textAt(m, "content")}}
	}
	var texts []string
	for _, part := range content {
		switch textAt(part, "type") {
		case "tool_use":
			args := "{}"
			if input := fieldAt(part, "input"); input != nil {
				args = encode(input)
			}
			b.addSaid(role, strings.Join(texts, "\n"))
			texts = nil
			b.addCall(textAt(part, "id"), tool{name: textAt(part, "name")}, args)
		case "tool_result":
			said := b.readParts(fieldAt(part, "content"))
			if flagAt(part, "is_error") {
				said = "[the tool failed] " + said
			}
			b.addResult(textAt(part, "tool_use_id"), said)
		default:
			if said := b.readPart(part); said != "" {
				texts = append(texts, said)
			}
		}
	}
	b.addSaid(role, strings.Join(texts, "\n"))
}

// addSaid adds a text by the role of who said it.
func (b *builder) addSaid(role, said string) {
	switch role {
	case "system", "developer":
		b.addSystem(said)
	case "assistant", "model":
		b.addText("assistant", said)
	default:
		b.addText("user", said)
	}
}

// readResponses reads a request of OpenAI's responses.
func (b *builder) readResponses() error {
	whole, added, err := b.o.Items.resolve(b.asked)
	if err != nil {
		return err
	}
	if b.added = added; b.asked["store"] != false {
		b.input = whole
	}
	for _, v := range listAt(b.asked, "tools") {
		b.readResponsesTool("", v)
	}
	b.addSystem(textAt(b.asked, "instructions"))
	for _, v := range whole {
		b.readItem(v)
	}
	b.carryNamed("max_output_tokens")
	b.carry(b.asked["text"], map[string]string{"verbosity": "verbosity"})
	b.thoughts = textAt(b.asked, "reasoning", "summary")+textAt(b.asked, "reasoning", "generate_summary") != ""
	switch format := fieldAt(b.asked, "text", "format"); textAt(format, "type") {
	case "json_schema":
		b.answerAs(textAt(format, "name"), fieldAt(format, "schema"), fieldAt(format, "strict"))
	case "json_object":
		b.answerAs("", nil, nil)
	}
	return b.readToolChoice()
}

func (b *builder) readToolChoice() error {
	choice := b.asked["tool_choice"]
	switch choice {
	case "none", "required":
		b.fields["tool_choice"] = choice
		return nil
	}
	switch kind := textAt(choice, "type"); kind {
	case "":
		return nil
	case "function", "custom":
		return b.chooseTool(b.tools.findNamed(textAt(choice, "namespace"), textAt(choice, "name")))
	case "allowed_tools":
		b.lose("a choice among some of the tools")
		if textAt(choice, "mode") == "required" {
			b.fields["tool_choice"] = "required"
		}
		return nil
	default:
		return fmt.Errorf("%w: the tool %.100q, which tool_choice forces, has no like there", ErrRequest, kind)
	}
}

// readResponsesTool offers a tool, or all of a namespace.
func (b *builder) readResponsesTool(namespace string, v any) {
	name, description := textAt(v, "name"), textAt(v, "description")
	switch kind := textAt(v, "type"); kind {
	case "function", "":
		b.tools.offer(tool{namespace: namespace, name: name}, description, fieldAt(v, "parameters"))
	case "custom":
		if grammar := textAt(v, "format", "definition"); grammar != "" {
			description += "\n\nThe input must follow this " + textAt(v, "format", "syntax") + " grammar:\n" + grammar
		}
		b.tools.offer(tool{namespace, name, true}, description, inputSchema())
	case "namespace":
		for _, inner := range listAt(v, "tools") {
			if textAt(inner, "type") != "namespace" {
				b.readResponsesTool(name, inner)
			}
		}
	default:
		b.lose("tools that only one provider knows: " + kind)
	}
}

func (b *builder) readItem(item any) {
	id := textAt(item, "call_id")
	switch kind := textAt(item, "type"); kind {
	case "message", "":
		b.addSaid(textAt(item, "role"), b.readParts(fieldAt(item, "content")))
	case "reasoning":
		b.lose("what the model thought before")
	case "function_call":
		b.addCall(id, tool{namespace: textAt(item, "namespace"), name: textAt(item, "name")}, textAt(item, "arguments"))
	case "custom_tool_call":
		b.addCall(id, tool{textAt(item, "namespace"), textAt(item, "name"), true}, textAt(item, "input"))
	case "function_call_output", "custom_tool_call_output":
		b.addResult(id, b.readParts(fieldAt(item, "output")))
	default:
		b.lose("items that only one provider knows: " + kind)
	}
}

// readGemini reads a request of Google's generateContent.
func (b *builder) readGemini() error {
	b.readGeminiContent("system", b.asked["systemInstruction"])
	for _, v := range listAt(b.asked, "contents") {
		b.readGeminiContent(textAt(v, "role"), v)
	}
	allowed := listAt(b.asked, "toolConfig", "functionCallingConfig", "allowedFunctionNames")
	for _, t := range listAt(b.asked, "tools") {
		for _, f := range listAt(t, "functionDeclarations") {
			schema := fieldAt(f, "parametersJsonSchema")
			if schema == nil {
				schema = lowerTypes(fieldAt(f, "parameters"))
			}
			b.tools.offer(tool{name: textAt(f, "name")}, textAt(f, "description"), schema)
		}
	}
	b.readGeminiConfig(fieldAt(b.asked, "generationConfig"))
	switch textAt(b.asked, "toolConfig", "functionCallingConfig", "mode") {
	case "NONE":
		b.fields["tool_choice"] = "none"
	case "ANY":
		b.fields["tool_choice"] = "required"
		if len(allowed) == 1 {
			name, _ := allowed[0].(string)
			return b.chooseTool(tool{name: name})
		}
		if len(allowed) > 1 {
			b.lose("a choice among some of the tools")
		}
	}
	return nil
}

func (b *builder) readGeminiConfig(config any) {
	b.carry(config, map[string]string{"temperature": "temperature", "topP": "top_p", "maxOutputTokens": "max_tokens", "seed": "seed",
		"presencePenalty": "presence_penalty", "frequencyPenalty": "frequency_penalty"})
	b.stopAt(listAt(config, "stopSequences"))
	b.thoughts = flagAt(config, "thinkingConfig", "includeThoughts")
	if n := fmt.Sprint(fieldAt(config, "candidateCount")); n != "1" && n != "<nil>" {
		b.lose("more than one candidate")
	}
	schema := fieldAt(config, "responseJsonSchema")
	if schema == nil {
		schema = lowerTypes(fieldAt(config, "responseSchema"))
	}
	if schema != nil || textAt(config, "responseMimeType") == "application/json" {
		b.answerAs("", schema, nil)
	}
}

func (b *builder) readGeminiContent(role string, content any) {
	if s, plain := content.(string); plain {
		content = object{"parts": []any{object{"text": s}}}
	}
	var texts []string
	for _, part := range listAt(content, "parts") {
		called, result := eitherOf(part, "functionCall", "function_call"), eitherOf(part, "functionResponse", "function_response")
		said, isText := fieldAt(part, "text").(string)
		switch {
		case called != nil:
			args := "{}"
			if v := fieldAt(called, "args"); v != nil {
				args = encode(v)
			}
			b.addText("assistant", strings.Join(texts, "\n"))
			texts = nil
			b.addCall(textAt(called, "id"), tool{name: textAt(called, "name")}, args)
		case result != nil:
			b.addResult(b.idOf(textAt(result, "id"), textAt(result, "name")), readGeminiResult(fieldAt(result, "response")))
		case flagAt(part, "thought"):
			b.lose("what the model thought before")
		case isText:
			texts = append(texts, said)
		default:
			texts = append(texts, b.noteImage("an image or file"))
		}
	}
	b.addSaid(role, strings.Join(texts, "\n"))
}

func eitherOf(part any, camel, snake string) any {
	if v := fieldAt(part, camel); v != nil {
		return v
	}
	return fieldAt(part, snake)
}

// idOf finds the call that a result without an id belongs to: the first of that name without
// a result.
func (b *builder) idOf(id, name string) string {
	if id != "" {
		return id
	}
	answered := map[string]bool{}
	for _, m := range b.messages {
		answered[m.answers] = true
	}
	for _, m := range b.messages {
		for _, c := range m.calls {
			if c.name == b.tools.nameOf(tool{name: name}) && !answered[c.id] {
				return c.id
			}
		}
	}
	return ""
}

// readGeminiResult is what a tool said: Google's clients put it into an object.
func readGeminiResult(response any) string {
	o, _ := response.(object)
	for _, name := range []string{"output", "result"} {
		if s, ok := o[name].(string); ok && len(o) == 1 {
			return s
		}
	}
	if response == nil {
		return ""
	}
	return encode(response)
}

var googleType = lazyregexp.New(`^(STRING|NUMBER|INTEGER|BOOLEAN|ARRAY|OBJECT|NULL)$`)

// lowerTypes writes the types of a schema of Google's as JSON Schema has them.
func lowerTypes(v any) any {
	switch x := v.(type) {
	case []any:
		return lists.Map(x, lowerTypes)
	case object:
		out := object{}
		for name, e := range x {
			if s, ok := e.(string); ok && name == "type" && googleType.MatchString(s) {
				out[name] = strings.ToLower(s)
				continue
			}
			out[name] = lowerTypes(e)
		}
		return out
	}
	return v
}
