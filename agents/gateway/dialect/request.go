package dialect

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// Request is what a client asks of a model.
type Request struct {
	Dialect   Dialect
	Model     string
	Stream    bool
	MaxOutput int // tokens; 0: the client did not say
	Choices   int // answers asked for, at least 1
	Tools     []string
	Messages  []Message
	WantUsage bool // the client itself asked for usage in the stream

	fields map[string]json.RawMessage
}

// ErrRequest is wrapped by every error of ParseRequest: the client's mistake.
var ErrRequest = errors.New("request refused")

// ParseRequest reads a request's body. It refuses what would let a client reach
// a model that it did not name in "model" (OpenRouter's "models"), or be
// answered where nobody counts ("background"), and names that differ from known
// ones in case only, which some servers read as the same.
func ParseRequest(d Dialect, body []byte) (*Request, error) {
	r := &Request{Dialect: d}
	if err := decodeInto(body, &r.fields); err != nil {
		return nil, fmt.Errorf("%w: the body is no JSON object: %w", ErrRequest, err)
	}
	if r.fields == nil {
		return nil, fmt.Errorf("%w: the body is no JSON object", ErrRequest)
	}
	for name := range r.fields {
		if err := checkField(name); err != nil {
			return nil, err
		}
	}
	v, err := decode(body)
	if err != nil {
		return nil, fmt.Errorf("%w: the body is no JSON object: %w", ErrRequest, err)
	}
	o := obj(v)
	if empty(o["model"]) {
		return nil, fmt.Errorf("%w: \"model\" is missing", ErrRequest)
	}
	if !empty(o["background"]) {
		return nil, fmt.Errorf("%w: \"background\" is not supported: ask without it", ErrRequest)
	}
	r.Model = str(o["model"])
	r.Stream, _ = o["stream"].(bool)
	r.Choices = max(1, intOf(o["n"]))
	r.WantUsage, _ = obj(o["stream_options"])["include_usage"].(bool)
	r.MaxOutput = max(intOf(o["max_completion_tokens"]), intOf(o["max_tokens"]), intOf(o["max_output_tokens"]))
	r.Tools = toolNames(o)
	switch d {
	case Chat:
		r.Messages = chatMessages(o)
	case Responses:
		r.Messages = responsesMessages(o)
	case Messages:
		r.Messages = anthropicMessages(o)
	}
	return r, nil
}

func checkField(name string) error {
	for _, known := range []string{"model", "stream", "stream_options", "background", "n",
		"max_tokens", "max_completion_tokens", "max_output_tokens"} {
		if name != known && strings.EqualFold(name, known) {
			return fmt.Errorf("%w: unknown field %q (did you mean %q?)", ErrRequest, name, known)
		}
	}
	if strings.EqualFold(name, "models") {
		return fmt.Errorf("%w: a list of fallback \"models\" is not supported: name one \"model\"", ErrRequest)
	}
	return nil
}

// Body is the request for the provider: as the client wrote it, but for the
// model's name and, where askUsage is set and the answer is a chat stream, the
// wish for a usage report at its end.
func (r *Request) Body(model string, askUsage bool) ([]byte, error) {
	out := make(map[string]json.RawMessage, len(r.fields)+1)
	for k, v := range r.fields {
		out[k] = v
	}
	name, err := encode(model)
	if err != nil {
		return nil, err
	}
	out["model"] = name
	if askUsage && r.Stream && r.Dialect == Chat {
		options := map[string]json.RawMessage{}
		if raw, ok := out["stream_options"]; ok && string(raw) != "null" {
			if err := decodeInto(raw, &options); err != nil {
				return nil, fmt.Errorf("%w: \"stream_options\" is no object", ErrRequest)
			}
		}
		options["include_usage"] = json.RawMessage("true")
		if out["stream_options"], err = encode(options); err != nil {
			return nil, err
		}
	}
	return encode(out)
}

func toolNames(o object) []string {
	var names []string
	for _, field := range []string{"tools", "functions"} {
		for _, t := range arr(o[field]) {
			tool := obj(t)
			name := str(obj(tool["function"])["name"])
			if name == "" {
				name = str(tool["name"])
			}
			if name == "" {
				name = str(tool["type"])
			}
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func chatMessages(o object) []Message {
	var out []Message
	for _, v := range arr(o["messages"]) {
		m := obj(v)
		msg := Message{Role: role(str(m["role"])), Text: flatten(m["content"])}
		for _, c := range arr(m["tool_calls"]) {
			msg.Calls = append(msg.Calls, chatCall(obj(c)))
		}
		out = append(out, msg)
	}
	return out
}

func chatCall(c object) Call {
	f := obj(c["function"])
	return Call{ID: str(c["id"]), Name: str(f["name"]), Args: str(f["arguments"])}
}

func anthropicMessages(o object) []Message {
	var out []Message
	if s := flatten(o["system"]); s != "" {
		out = append(out, Message{Role: "system", Text: s})
	}
	for _, v := range arr(o["messages"]) {
		m := obj(v)
		msg := Message{Role: role(str(m["role"]))}
		if _, plain := m["content"].(string); plain {
			msg.Text = flatten(m["content"])
			out = append(out, msg)
			continue
		}
		var rest list
		for _, b := range arr(m["content"]) {
			block := obj(b)
			switch str(block["type"]) {
			case "tool_result":
				out = append(out, Message{Role: "tool", Text: flatten(block["content"])})
			case "tool_use":
				msg.Calls = append(msg.Calls, anthropicCall(block))
			default:
				rest = append(rest, b)
			}
		}
		msg.Text = flatten(rest)
		if msg.Text != "" || len(msg.Calls) > 0 {
			out = append(out, msg)
		}
	}
	return out
}

func anthropicCall(block object) Call {
	c := Call{ID: str(block["id"]), Name: str(block["name"]), Args: "{}"}
	if b, err := encode(block["input"]); err == nil && block["input"] != nil {
		c.Args = string(b)
	}
	return c
}

func responsesMessages(o object) []Message {
	var out []Message
	if s := str(o["instructions"]); s != "" {
		out = append(out, Message{Role: "system", Text: s})
	}
	if s, ok := o["input"].(string); ok {
		return append(out, Message{Role: "user", Text: s})
	}
	for _, v := range arr(o["input"]) {
		item := obj(v)
		switch str(item["type"]) {
		case "reasoning":
		case "function_call":
			call := Call{ID: str(item["call_id"]), Name: str(item["name"]), Args: str(item["arguments"])}
			if n := len(out); n > 0 && out[n-1].Role == "assistant" {
				out[n-1].Calls = append(out[n-1].Calls, call)
				continue
			}
			out = append(out, Message{Role: "assistant", Calls: []Call{call}})
		case "function_call_output":
			out = append(out, Message{Role: "tool", Text: flatten(item["output"])})
		case "message", "":
			out = append(out, Message{Role: role(str(item["role"])), Text: flatten(item["content"])})
		default:
			out = append(out, Message{Role: "item", Text: placeholder(item)})
		}
	}
	return out
}

func role(s string) string {
	switch s {
	case "developer":
		return "system"
	case "function":
		return "tool"
	}
	return s
}

// flatten is the text of a message's content: a string, or a list of parts. A
// part that is no text (an image) stands as its type and a hash, so that another
// image is another request; what a model thought is left out, because clients
// may drop it.
func flatten(v any) string {
	switch x := v.(type) {
	case string:
		return x
	case list:
		var parts []string
		for _, p := range x {
			part := obj(p)
			switch str(part["type"]) {
			case "text", "input_text", "output_text":
				parts = append(parts, str(part["text"]))
			case "thinking", "redacted_thinking", "reasoning":
			default:
				parts = append(parts, placeholder(p))
			}
		}
		return strings.Join(parts, "\n")
	case nil:
		return ""
	default:
		return placeholder(v)
	}
}

func placeholder(v any) string {
	kind := str(obj(v)["type"])
	if kind == "" {
		kind = "part"
	}
	b, err := encode(v)
	if err != nil {
		return "[" + kind + "]"
	}
	return fmt.Sprintf("[%s %016x]", kind, xxhash.Sum64(b))
}
