package translate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/agents/gateway/dialect"
	"github.com/united-workforce/uwf/internal/text"
)

// object is a JSON object as it is read.
type object = map[string]any

// fieldAt is what stands below v at a path of names; nil where there is nothing.
func fieldAt(v any, path ...string) any {
	for _, name := range path {
		o, _ := v.(object)
		v = o[name]
	}
	return v
}

func textAt(v any, path ...string) string {
	s, _ := fieldAt(v, path...).(string)
	return s
}

func listAt(v any, path ...string) []any {
	l, _ := fieldAt(v, path...).([]any)
	return l
}

func flagAt(v any, path ...string) bool {
	b, _ := fieldAt(v, path...).(bool)
	return b
}

// encode writes what was read as JSON, or built here: it can be written.
func encode(v any) string {
	b, err := text.EncodeJSON(v)
	if err != nil {
		return "null"
	}
	return string(b)
}

// message is one of chat.
type message struct {
	role    string
	texts   []string
	calls   []call
	answers string // id of the call that it is the result of
}

type call struct{ id, name, args string }

// builder makes a chat request out of a client's.
type builder struct {
	asked    object
	fields   object // of the chat request, besides messages and tools
	system   []string
	messages []message
	tools    *tools
	lost     []string
	thoughts bool
	calls    int // made up ids
	o        Options
	added    int   // see Translation
	input    []any // see Translation
}

func newBuilder(asked object, o Options) *builder {
	return &builder{asked: asked, fields: object{}, tools: newTools(), o: o}
}

// lose notes something that chat has no place for.
func (b *builder) lose(what string) {
	if !slices.Contains(b.lost, what) {
		b.lost = append(b.lost, what)
	}
}

// optionalFields are those of chat that not every server knows. They cost or save money, or say
// who asks; a request is the same without them.
func optionalFields() []string {
	return []string{"service_tier", "prompt_cache_key", "prompt_cache_retention", "store", "metadata", "user", "safety_identifier", "verbosity"}
}

// carry copies fields that chat has by another name, or by the same.
func (b *builder) carry(from any, names map[string]string) {
	for theirs, ours := range names {
		if v := fieldAt(from, theirs); v != nil && !slices.Contains(b.o.Refused, ours) {
			b.fields[ours] = v
		}
	}
}

// addSystem adds what the model is told. Many servers take that only before all else; what
// comes after the model's first answer becomes the user's words, marked as what it is.
func (b *builder) addSystem(said string) {
	switch {
	case said == "":
	case slices.ContainsFunc(b.messages, func(m message) bool { return m.role == "assistant" }):
		b.addText("user", "<system>\n"+said+"\n</system>")
	default:
		b.system = append(b.system, said)
	}
}

func (b *builder) addText(role, said string) {
	if said == "" {
		return
	}
	if role != "user" {
		m := b.lastAnswer()
		m.texts = append(m.texts, said)
		return
	}
	b.messages = append(b.messages, message{role: role, texts: []string{said}})
}

// lastAnswer is the model's message that is still being read: calls and text of one turn are
// one message in chat.
func (b *builder) lastAnswer() *message {
	if n := len(b.messages); n == 0 || b.messages[n-1].role != "assistant" {
		b.messages = append(b.messages, message{role: "assistant"})
	}
	return &b.messages[len(b.messages)-1]
}

func (b *builder) addCall(id string, of tool, args string) {
	if id == "" {
		id = b.makeID()
	}
	m := b.lastAnswer()
	m.calls = append(m.calls, call{id, b.tools.nameOf(of), argsOf(of, args)})
}

func (b *builder) makeID() string {
	b.calls++
	return fmt.Sprintf("call_uwf_%d", b.calls)
}

func (b *builder) addResult(id, said string) {
	if said == "" {
		said = "(no output)"
	}
	b.messages = append(b.messages, message{role: "tool", texts: []string{said}, answers: id})
}

// noteImage stands for what the model can't see.
func (b *builder) noteImage(kind string) string {
	b.lose("images and files")
	return fmt.Sprintf("[%s is left out here: this model is reached by a way that takes text alone]", kind)
}

// pairResults puts each result right behind its call, as chat servers ask for: a call
// without one gets a note, and a result without a call becomes the user's words.
func (b *builder) pairResults() []message {
	waiting := map[string][]int{} // by id, where results stand that no call has taken
	for i, m := range b.messages {
		if m.role == "tool" {
			waiting[m.answers] = append(waiting[m.answers], i)
		}
	}
	var out []message
	taken := map[int]bool{}
	for i, m := range b.messages {
		switch {
		case taken[i]:
			continue
		case m.role == "tool":
			m = message{role: "user", texts: []string{"[the result of a tool call that is not in this conversation]\n" + m.texts[0]}}
		}
		out = append(out, m)
		for _, c := range m.calls {
			result := message{role: "tool", answers: c.id, texts: []string{"(no result of this call is known)"}}
			all := waiting[c.id]
			for len(all) > 0 && all[0] < i {
				all = all[1:]
			}
			if len(all) > 0 {
				result, taken[all[0]], all = b.messages[all[0]], true, all[1:]
			}
			waiting[c.id] = all
			out = append(out, result)
		}
	}
	return out
}

// writeMessages is the conversation as chat has it.
func (b *builder) writeMessages() []any {
	var out []any
	if len(b.system) > 0 {
		out = append(out, object{"role": "system", "content": strings.Join(b.system, "\n\n")})
	}
	for _, m := range b.pairResults() {
		o := object{"role": m.role, "content": strings.Join(m.texts, "\n")}
		if m.role == "tool" {
			o["tool_call_id"] = m.answers
		}
		if len(m.calls) > 0 {
			if len(m.texts) == 0 {
				o["content"] = nil
			}
			var calls []any
			for _, c := range m.calls {
				calls = append(calls, object{"id": c.id, "type": "function", "function": object{"name": c.name, "arguments": c.args}})
			}
			o["tool_calls"] = calls
		}
		out = append(out, o)
	}
	return out
}

// writeChat is the chat request.
func (b *builder) writeChat(r *dialect.Request, o Options) (object, error) {
	messages := b.writeMessages()
	if len(messages) == 0 {
		return nil, fmt.Errorf("%w: the request has no message", ErrRequest)
	}
	b.fields["model"], b.fields["messages"], b.fields["stream"] = r.Model, messages, r.Stream
	if len(b.tools.offered) > 0 {
		b.fields["tools"] = b.tools.offered
	} else {
		delete(b.fields, "tool_choice")
		delete(b.fields, "parallel_tool_calls")
	}
	limit, ok := b.fields["max_tokens"].(json.Number)
	if n, err := limit.Int64(); ok && err == nil && o.MaxOutput > 0 && n > int64(o.MaxOutput) {
		b.fields["max_tokens"] = o.MaxOutput // a server refuses what its model can't do
	}
	return b.fields, nil
}

// chooseTool is the choice of one tool; an error where the model does not get it.
func (b *builder) chooseTool(of tool) error {
	if !b.tools.isOffered(of) {
		return fmt.Errorf("%w: the tool %.100q, which the model is to call, is none that it gets", ErrRequest, of.name)
	}
	b.fields["tool_choice"] = object{"type": "function", "function": object{"name": b.tools.nameOf(of)}}
	return nil
}

// answerAs asks for an answer by a JSON schema; nil: for any JSON object.
func (b *builder) answerAs(name string, schema any, strict any) {
	if schema == nil {
		b.fields["response_format"] = object{"type": "json_object"}
		return
	}
	if name == "" {
		name = "answer"
	}
	format := object{"name": name, "schema": schema}
	if strict != nil {
		format["strict"] = strict
	}
	b.fields["response_format"] = object{"type": "json_schema", "json_schema": format}
}

// stopAt takes the texts that end an answer; chat takes four.
func (b *builder) stopAt(words []any) {
	if len(words) > 4 {
		b.lose("more than four stop sequences")
		words = words[:4]
	}
	if len(words) > 0 {
		b.fields["stop"] = words
	}
}
