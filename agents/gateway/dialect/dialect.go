// Package dialect reads and writes the four ways in which model APIs speak over
// HTTP: OpenAI chat completions, OpenAI responses, Anthropic messages and Google's
// generateContent, as one JSON body or as server-sent events. It turns a request into what identifies it
// (model, messages, tool names), an answer into text, tool calls and usage, and
// back. It never opens a connection, and it never logs.
package dialect

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Dialect is one way of speaking to a model.
type Dialect int

// The dialects, by the path that clients use.
const (
	Chat      Dialect = iota // POST /v1/chat/completions (OpenAI-compatible)
	Responses                // POST /v1/responses (OpenAI)
	Messages                 // POST /v1/messages (Anthropic)
	Gemini                   // POST /v1beta/models/MODEL:generateContent and :streamGenerateContent (Google)
)

// format is how a dialect puts what all of them say: it reads into Messages and an Answer,
// and writes out of a Reply, so that a program needs to know these alone. A dialect is one
// file with its format.
type format struct {
	path     string                                        // below an API's root, without the version
	messages func(request object) []Message                // of a request
	answer   func(c *Collector, body object)               // a plain answer
	event    func(c *Collector, kind string, event object) // a part of one that is streamed
	body     func(r Reply) object
	stream   func(head Reply, wantUsage bool, buf *bytes.Buffer) eventStream
	// ends are the dialect's words for why an answer ended, the usual one first.
	ends []end
}

type end struct{ theirs, ours string }

func formatOf(d Dialect) format {
	return [...]format{Chat: chatFormat(), Responses: responsesFormat(), Messages: messagesFormat(), Gemini: geminiFormat()}[d]
}

// ForPath finds the dialect of a request path. The leading "/v1" may be missing,
// because clients differ in whether their base URL holds it. Google's is any of the paths
// that ParseGeminiPath reads, but for countTokens.
func ForPath(path string) (Dialect, bool) {
	if g, ok := ParseGeminiPath(path); ok {
		return Gemini, !g.Count
	}
	for d := Chat; d <= Messages; d++ {
		if formatOf(d).path == TrimVersion(path) {
			return d, true
		}
	}
	return Chat, false
}

// TrimVersion takes a leading "/v1" off a path, so that "/v1/models" and
// "/models" are one.
func TrimVersion(path string) string {
	if rest, ok := strings.CutPrefix(path, "/v1"); ok && strings.HasPrefix(rest, "/") {
		return rest
	}
	return path
}

// Named is the dialect of a short name, as settings have it.
func Named(name string) (Dialect, bool) {
	for d := Chat; d <= Gemini; d++ {
		if d.Name() == name {
			return d, true
		}
	}
	return Chat, false
}

// Name is the dialect's short name, as settings have it.
func (d Dialect) Name() string {
	return [...]string{Chat: "chat", Responses: "responses", Messages: "messages", Gemini: "gemini"}[d]
}

// Path is the dialect's path with its version, as in "/v1/chat/completions". Google's has
// "{model}" where the model stands.
func (d Dialect) Path() string {
	if d == Gemini {
		return geminiPath
	}
	return "/v1" + formatOf(d).path
}

// readEnd is why an answer ended, by the dialect's word for it; what is not known stays.
func (f format) readEnd(word string) string {
	for _, e := range f.ends {
		if e.theirs == word {
			return e.ours
		}
	}
	return word
}

// writeEnd is the dialect's word for why an answer ended.
func (f format) writeEnd(finish string) string {
	for _, e := range f.ends {
		if e.ours == finish {
			return e.theirs
		}
	}
	return finish
}

// Message is one message of a conversation, the same in every dialect. A tool's
// result is a message of the role "tool"; "developer" is read as "system".
type Message struct {
	Role  string `json:"role"`
	Text  string `json:"text,omitempty"`
	Calls []Call `json:"calls,omitempty"` // tool calls of an assistant message
}

// Call is one tool call.
type Call struct {
	ID   string `json:"id,omitempty"`
	Name string `json:"name"`
	Args Args   `json:"args,omitempty"`
	// Custom: a call of a tool of OpenAI's that takes any text, which Args is. Namespace is
	// where such a tool or function stands; empty: nowhere.
	Custom    bool   `json:"custom,omitempty"`
	Namespace string `json:"namespace,omitempty"`
}

// Args is the JSON text of a call's arguments, or whatever a model wrote in its place. As
// JSON it is the object that it is; else a text.
type Args string

// MarshalJSON implements json.Marshaler.
func (a Args) MarshalJSON() ([]byte, error) {
	if json.Valid([]byte(a)) && strings.HasPrefix(strings.TrimSpace(string(a)), "{") {
		return []byte(a), nil
	}
	return json.Marshal(string(a))
}

// UnmarshalJSON implements json.Unmarshaler.
func (a *Args) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) != nil {
		text = string(b)
	}
	*a = Args(text)
	return nil
}

// BrokenArgs is the name under which a client that takes objects alone gets arguments that are
// none. The model then reads what it wrote, in the tool's complaint or in its own call. Without
// them the tool would run on its defaults.
const BrokenArgs = "uwf_arguments_are_no_json_object"

// toObject is the object that the arguments are; nothing at all stands for an empty one.
func (a Args) toObject() object {
	v, err := decodeJSON([]byte(a.Canonical()))
	if o := asObject(v); err == nil && o != nil {
		return o
	}
	return object{BrokenArgs: string(a)}
}

// Usage is what an answer cost, in tokens. In holds every input token, those
// read from or written to a prompt cache too; CacheRead and CacheWrite say how
// many of them these were, and CacheHour how many of those written are kept for an
// hour, which costs more.
type Usage struct {
	In, Out               int64
	Reasoning             int64 // those of Out that the model thought, where its provider says
	CacheRead, CacheWrite int64
	CacheHour             int64
	CostUSD               float64 // as the provider itself says; see HasCost
	HasCost               bool
	HasIn, HasOut         bool // false: the provider did not say
}

// Estimate is a number of tokens that a text of n bytes hardly ever exceeds:
// a token for three bytes, rounded up.
func Estimate(n int) int64 { return int64(n+2) / 3 }

// Canonical is the text of the arguments with sorted keys and no spaces, for comparing.
// Text that is no JSON is returned as it is; nothing at all stands for an empty object.
func (a Args) Canonical() string {
	if strings.TrimSpace(string(a)) == "" {
		return "{}"
	}
	v, err := decodeJSON([]byte(a))
	if err != nil {
		return string(a)
	}
	return string(writeJSON(v))
}
