package builtin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"

	openai "github.com/sashabaranov/go-openai"

	"github.com/united-workforce/uwf/internal/text"
)

// messagesWire asks by Anthropic's messages. What the provider is to keep is marked with
// cache_control, in at most four places: after tools and system prompt; after what is common
// to all roles; and after each of the last two turns, since the provider looks back no more
// than 20 blocks from a mark for what it has kept, and one turn may have more.
// https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching
type messagesWire struct {
	wireOptions
	raw map[int][]object // the blocks of the model's messages, thinking among them, by their place in the history
}

type messagesRequest struct {
	Model     string   `json:"model"`
	MaxTokens int      `json:"max_tokens"`
	System    []object `json:"system,omitempty"`
	Tools     []object `json:"tools,omitempty"`
	Messages  []turn   `json:"messages"`
}

// turn is one message, all that one side says before the other.
type turn struct {
	Role    string   `json:"role"`
	Content []object `json:"content"`
}

type messagesAnswer struct {
	Type       string   `json:"type"`
	Content    []object `json:"content"`
	StopReason string   `json:"stop_reason"`
	Usage      struct {
		Input      int `json:"input_tokens"`
		CacheRead  int `json:"cache_read_input_tokens"`
		CacheWrite int `json:"cache_creation_input_tokens"`
		Output     int `json:"output_tokens"`
	} `json:"usage"`
}

// askOnce implements wire. On the last turn the model is told by words alone not to call
// tools: a tool_choice would make the provider forget the conversation that it keeps.
func (w *messagesWire) askOnce(ctx context.Context, history []openai.ChatCompletionMessage, room int, _ bool) (openai.ChatCompletionChoice, openai.Usage, error) {
	req := messagesRequest{Model: cmp.Or(w.model.Alias, w.model.Name), MaxTokens: cmp.Or(room, w.model.MaxOutput, defaultReply)}
	for _, t := range w.tools {
		req.Tools = append(req.Tools, object{"name": t.Name, "description": t.Description, "input_schema": t.Parameters})
	}
	req.System, req.Messages = w.writeTurns(history)
	markKept(req)
	var a messagesAnswer
	if err := w.postJSON(ctx, "/messages", http.Header{"Anthropic-Version": {"2023-06-01"}}, req, &a); err != nil {
		return openai.ChatCompletionChoice{}, openai.Usage{}, err
	}
	used := openai.Usage{PromptTokens: a.Usage.Input + a.Usage.CacheRead + a.Usage.CacheWrite, CompletionTokens: a.Usage.Output}
	choice, err := a.readChoice()
	w.raw[len(history)] = a.Content
	return choice, used, err
}

// writeTurns puts the conversation into blocks.
func (w *messagesWire) writeTurns(history []openai.ChatCompletionMessage) (system []object, turns []turn) {
	add := func(role string, blocks ...object) {
		if n := len(turns); n > 0 && turns[n-1].Role == role {
			turns[n-1].Content = append(turns[n-1].Content, blocks...)
			return
		}
		turns = append(turns, turn{Role: role, Content: blocks})
	}
	for i, m := range history {
		switch m.Role {
		case openai.ChatMessageRoleSystem:
			system = append(system, textBlock(m.Content))
		case openai.ChatMessageRoleTool:
			add("user", object{"type": "tool_result", "tool_use_id": m.ToolCallID, "content": m.Content})
		case openai.ChatMessageRoleAssistant:
			add("assistant", writeBlocks(m, w.raw[i])...)
		default:
			common := 0
			if len(turns) == 0 && w.common > 0 && w.common < len(m.Content) {
				common = w.common
				add("user", textBlock(m.Content[:common]))
			}
			add("user", textBlock(m.Content[common:]))
		}
	}
	return system, turns
}

func textBlock(text string) object { return object{"type": "text", "text": text} }

// writeBlocks are the blocks of a message of the model, as they came: its thoughts are sealed,
// and to be given back unchanged. Only the arguments of calls are the history's, which may have
// dropped them.
func writeBlocks(m openai.ChatCompletionMessage, raw []object) (out []object) {
	if raw == nil {
		if strings.TrimSpace(m.Content) != "" {
			out = append(out, textBlock(m.Content))
		}
		for _, c := range m.ToolCalls {
			out = append(out, object{"type": "tool_use", "id": c.ID, "name": c.Function.Name, "input": parseArguments(c.Function.Arguments)})
		}
		return out
	}
	calls := m.ToolCalls
	for _, b := range raw {
		switch kind := stringIn(b, "type"); {
		case kind == "text" && strings.TrimSpace(stringIn(b, "text")) == "": // is refused
		case kind == "tool_use" && len(calls) > 0:
			out = append(out, object{"type": kind, "id": calls[0].ID, "name": calls[0].Function.Name, "input": parseArguments(calls[0].Function.Arguments)})
			calls = calls[1:]
		default:
			out = append(out, b)
		}
	}
	return out
}

// markKept marks what the provider is to keep.
func markKept(req messagesRequest) {
	mark := func(blocks []object, i int) {
		if i < 0 || i >= len(blocks) {
			return
		}
		b := object{"cache_control": object{"type": "ephemeral"}}
		maps.Copy(b, blocks[i])
		blocks[i] = b
	}
	mark(req.System, len(req.System)-1)
	if first := req.Messages[0].Content; len(first) > 1 {
		mark(first, 0)
	}
	for i, left := len(req.Messages)-1, 2; i >= 0 && left > 0; i-- {
		if t := req.Messages[i]; t.Role == "user" {
			mark(t.Content, len(t.Content)-1)
			left--
		}
	}
}

// readChoice takes the answer apart.
func (a messagesAnswer) readChoice() (openai.ChatCompletionChoice, error) {
	choice := openai.ChatCompletionChoice{Message: openai.ChatCompletionMessage{Role: openai.ChatMessageRoleAssistant}}
	msg := &choice.Message
	for _, b := range a.Content {
		switch stringIn(b, "type") {
		case "text":
			msg.Content += stringIn(b, "text")
		case "thinking":
			msg.ReasoningContent += stringIn(b, "thinking")
		case "tool_use":
			args, err := text.EncodeJSON(b["input"])
			if err != nil || b["input"] == nil {
				args = []byte("{}")
			}
			msg.ToolCalls = append(msg.ToolCalls, newCall(stringIn(b, "id"), stringIn(b, "name"), string(args)))
		}
	}
	switch {
	case a.Type != "message":
		return choice, fmt.Errorf("it gave an answer that is no message, but %.40q", a.Type)
	case a.StopReason == "":
		return choice, errors.New("it gave an answer without stop_reason: it may be cut off")
	}
	switch a.StopReason {
	case "end_turn", "stop_sequence", "pause_turn":
		choice.FinishReason = openai.FinishReasonStop
	case "tool_use":
		choice.FinishReason = openai.FinishReasonToolCalls
	case "max_tokens", "model_context_window_exceeded":
		choice.FinishReason = openai.FinishReasonLength
	case "refusal":
		return choice, fmt.Errorf("it refused to answer: %.200q", msg.Content)
	default:
		return choice, fmt.Errorf("it stopped for a reason that is not known here: %.40q", a.StopReason)
	}
	return choice, nil
}
