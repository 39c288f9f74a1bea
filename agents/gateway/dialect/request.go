package dialect

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// Request is what a client asks of a model.
type Request struct {
	Dialect   Dialect
	Model     string
	Stream    bool
	MaxOutput int // tokens of one answer, thoughts among them; 0: the client did not say
	Choices   int // answers asked for, at least 1
	Tools     []string
	Messages  []Message
	WantUsage bool // the client itself asked for usage in the stream
	// Outside says that the model is to read something that is no part of the
	// request, as a picture by its address: how much that is, its size does not tell.
	Outside bool
	// Dropped names fields and tools that the client sent and the provider does not
	// get: at most 20, on one line each.
	Dropped []string
	// Forced is a dropped tool that the model was to call; empty: none. The provider does
	// not get that choice.
	Forced string

	fields map[string]json.RawMessage // as the provider gets them
	asked  map[string]json.RawMessage // as the client sent them
	order  []string                   // the client's names, in its order
	counts bool                       // Google's countTokens
}

// ErrRequest is wrapped by errors of ParseRequest: the client's mistake.
var ErrRequest = errors.New("request refused")

// ErrTooLarge is wrapped in its place where a request has more parts than are read.
var ErrTooLarge = errors.New("request too large")

// ParseRequest reads a request's body. Only fields that are known to cost nothing
// besides tokens are kept for the provider, see allowed; a body that would take far
// more memory than its size is refused before it is taken apart.
// Google's, whose model is in the path, are for ParseGemini.
func ParseRequest(d Dialect, body []byte) (*Request, error) {
	m, err := parseMembers(body)
	if err != nil {
		return nil, err
	}
	return newRequest(d, textOf(m.fields["model"]), m)
}

func newRequest(d Dialect, model string, m *members) (*Request, error) {
	r := &Request{Dialect: d, Model: model, asked: m.fields, order: m.order}
	if r.Model == "" {
		return nil, fmt.Errorf("%w: \"model\" is missing", ErrRequest)
	}
	if d == Gemini {
		writeGeminiNames(m.fields)
	}
	s := sieve{dialect: d}
	r.fields = s.siftRequest(m.fields)
	r.Dropped, r.Forced = s.dropped, s.forced
	r.readOptions()
	r.Outside = r.Outside || m.outside
	return r, r.readTools()
}

// readOptions reads what the provider is told besides the conversation.
func (r *Request) readOptions() {
	if r.Dialect == Gemini {
		r.readGeminiOptions()
		return
	}
	r.Stream, _ = readField(r.fields["stream"]).(bool)
	r.WantUsage, _ = r.readObject("stream_options")["include_usage"].(bool)
	number := func(name string) int { return intOf(readField(r.fields[name])) }
	r.Choices = max(1, number("n"))
	r.MaxOutput = max(number("max_completion_tokens"), number("max_tokens"), number("max_output_tokens"))
	thoughts := number("thinking_budget") + intOf(r.readObject("thinking")["budget_tokens"]) + intOf(r.readObject("reasoning")["max_tokens"])
	switch {
	case r.Dialect == Messages: // where thoughts are a part of the answer's tokens
		r.MaxOutput = max(r.MaxOutput, thoughts)
	case r.MaxOutput > 0:
		r.MaxOutput += thoughts
	}
	r.Outside = textOf(r.fields["previous_response_id"]) != ""
}

func (r *Request) readObject(name string) object { return asObject(readField(r.fields[name])) }

// conversationFields are the fields of a conversation's text, in all dialects.
var conversationFields = []string{"messages", "system", "input", "instructions", "contents", "systemInstruction", "system_instruction"}

// readAsked reads fields as the client sent them.
func (r *Request) readAsked(names ...string) object {
	o := object{}
	for _, name := range names {
		if raw, ok := r.asked[name]; ok {
			o[name] = readField(raw)
		}
	}
	return o
}

// ReadMessages fills Messages, which takes many times the memory of the conversation.
// Only recordings and replays need them.
func (r *Request) ReadMessages() {
	r.Messages = formatOf(r.Dialect).messages(r.readAsked(conversationFields...))
}

// readTools reads the names of the tools that the client asked for: recordings are compared by
// them.
func (r *Request) readTools() error {
	asked := r.readAsked("tools", "functions")
	for name, tools := range asked {
		if n := len(asList(tools)); n > maxMessages {
			return newTooLongError(name, n)
		}
	}
	r.Tools = toolNames(r.Dialect, asked)
	return nil
}

func newTooLongError(name string, entries int) error {
	return fmt.Errorf("%w: %q has %d entries, more than %d", ErrTooLarge, name, entries, maxMessages)
}

// Body is the request for the provider: what it gets of the client's, with the
// model's own name (which Google has in the path) and, where askUsage is set and the answer is a chat stream, the
// wish for a usage report at its end.
func (r *Request) Body(model string, askUsage bool) []byte {
	out := maps.Clone(r.fields)
	switch {
	case r.counts:
		out["model"] = writeJSON("models/" + strings.TrimPrefix(model, "models/"))
		return joinFields(map[string]json.RawMessage{"generateContentRequest": joinFields(out, r.order)}, nil)
	case r.Dialect == Gemini:
		return joinFields(out, r.order)
	}
	out["model"] = writeJSON(model)
	if askUsage && r.Stream && r.Dialect == Chat {
		options := r.readObject("stream_options")
		if options == nil {
			options = object{}
		}
		options["include_usage"] = true
		out["stream_options"] = writeJSON(options)
	}
	return joinFields(out, r.order)
}

// Endpoint is the path for a model of that name, where it differs by model and request, as
// Google's does; else empty.
func (r *Request) Endpoint(model string) string {
	if r.Dialect != Gemini {
		return ""
	}
	return GeminiPath{Stream: r.Stream, Count: r.counts}.Endpoint(model)
}

func toolNames(d Dialect, o object) []string {
	var names []string
	for _, field := range []string{"tools", "functions"} {
		for _, t := range asList(o[field]) {
			tool := asObject(t)
			if d == Gemini {
				names = append(names, geminiToolNames(tool)...)
				continue
			}
			names = append(names, cmp.Or(asString(asObject(tool["function"])["name"]), asString(tool["name"]), asString(tool["type"])))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func mapRole(s string) string {
	switch s {
	case "developer":
		return "system"
	case "function":
		return "tool"
	}
	return s
}

// flattenContent is the text of a message's content: a string, or a list of parts. A
// part that is no text (an image) stands as its type and a hash, so that another
// image is another request; what a model thought is left out, because clients
// may drop it.
func flattenContent(v any) string {
	switch x := v.(type) {
	case string:
		return x
	case list:
		var parts []string
		for _, p := range x {
			part := asObject(p)
			switch asString(part["type"]) {
			case "text", "input_text", "output_text":
				parts = append(parts, asString(part["text"]))
			case "thinking", "redacted_thinking", "reasoning":
			default:
				parts = append(parts, describePart(p))
			}
		}
		return strings.Join(parts, "\n")
	case nil:
		return ""
	default:
		return describePart(v)
	}
}

func describePart(v any) string {
	kind := cmp.Or(asString(asObject(v)["type"]), "part")
	return fmt.Sprintf("[%s %016x]", kind, xxhash.Sum64(writeJSON(v)))
}
