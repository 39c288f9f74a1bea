package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	openai "github.com/sashabaranov/go-openai"

	"github.com/united-workforce/uwf/agents/internal/model"
	"github.com/united-workforce/uwf/agents/tools"
	"github.com/united-workforce/uwf/engine/task"
)

// wire is one way of asking a model. A conversation is kept in the form of chat completions;
// a wire puts it into its own. Each has a file.
type wire interface {
	// askOnce makes one model call. room bounds the answer in tokens; 0: nothing does. On the
	// last turn tools are not to be called. An answer that was refused, cut off by a filter or is
	// none is an error.
	askOnce(ctx context.Context, history []openai.ChatCompletionMessage, room int, last bool) (openai.ChatCompletionChoice, openai.Usage, error)
}

// wireOptions are what every wire needs.
type wireOptions struct {
	base, key string // the gateway's, with the version
	transport http.RoundTripper
	model     task.Model
	tools     []tools.Definition
	thread    string // names what providers may keep of its requests
	common    int    // so many bytes of the first message are the same for all roles
}

// ChooseWire is the wire by which a model is asked: Anthropic's own, since only there what is to be
// kept can be said; responses for models that reason, which keep their thoughts from turn to turn
// only there; otherwise chat completions. One that is not served gives way to chat, or to what is.
func ChooseWire(m task.Model) string {
	serves := func(wire string) bool { return slices.Contains(m.Wires, wire) }
	switch {
	case m.API == "anthropic" && (len(m.Wires) == 0 || serves("messages")):
		return "messages"
	case m.Reasoning && serves("responses"):
		return "responses"
	case len(m.Wires) == 0 || serves("chat"):
		return "chat"
	case serves("responses"):
		return "responses"
	case serves("messages"):
		return "messages"
	}
	return "chat"
}

func newWire(o wireOptions) wire {
	switch ChooseWire(o.model) {
	case "messages":
		return &messagesWire{wireOptions: o, raw: map[int][]object{}}
	case "responses":
		return &responsesWire{wireOptions: o, raw: map[int][]object{}}
	}
	return newChatWire(o)
}

// object is a JSON object that is passed on.
type object = map[string]any

// postJSON sends a request and reads the answer. An answer that is no success is an
// *openai.APIError, whatever wire it came by.
func (o wireOptions) postJSON(ctx context.Context, path string, header http.Header, request, into any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("writing the request: %w", err)
	}
	header.Set("Authorization", "Bearer "+o.key)
	header.Set("Content-Type", "application/json")
	status, answer, err := model.Post(ctx, o.base+path, header, o.transport, callTimeout, body)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		var failed struct {
			Error struct {
				Message, Type string
				Code          any
			}
		}
		if json.Unmarshal(answer, &failed) != nil || failed.Error.Message == "" {
			failed.Error.Message = fmt.Sprintf("%.500s", answer)
		}
		return &openai.APIError{HTTPStatusCode: status, Message: failed.Error.Message, Type: failed.Error.Type, Code: failed.Error.Code}
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("its answer is not the JSON of %s, or was cut off: %w", path, err)
	}
	return nil
}

// parseArguments is a call's arguments as an object; what is none becomes an empty one.
func parseArguments(args string) object {
	var out object
	if json.Unmarshal([]byte(args), &out) != nil || out == nil {
		return object{}
	}
	return out
}

// newCall is a tool call in the form of chat completions.
func newCall(id, name, args string) openai.ToolCall {
	return openai.ToolCall{ID: id, Type: openai.ToolTypeFunction, Function: openai.FunctionCall{Name: name, Arguments: args}}
}

// stringIn is the text of a field; empty where it is none.
func stringIn(o object, name string) string {
	s, _ := o[name].(string)
	return s
}
