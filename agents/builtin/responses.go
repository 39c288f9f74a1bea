package builtin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"

	openai "github.com/sashabaranov/go-openai"
)

// responsesWire asks by OpenAI's responses, which alone let a model that reasons go on from
// its thoughts: the items of each answer are given back in the next request, the thoughts
// sealed by the provider, which stores nothing of the conversation itself.
// https://platform.openai.com/docs/guides/reasoning
type responsesWire struct {
	wireOptions
	raw map[int][]object // the items of the model's answers, by their place in the history
}

type responsesRequest struct {
	Model        string   `json:"model"`
	Instructions string   `json:"instructions,omitempty"`
	Input        []object `json:"input"`
	Tools        []object `json:"tools,omitempty"`
	ToolChoice   string   `json:"tool_choice,omitempty"`
	MaxOutput    int      `json:"max_output_tokens,omitempty"`
	Include      []string `json:"include"`
	Store        bool     `json:"store"`
	CacheKey     string   `json:"prompt_cache_key,omitempty"`
}

type responsesAnswer struct {
	Status     string   `json:"status"`
	Output     []object `json:"output"`
	Incomplete struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Error *struct {
		Message string `json:"message"`
	} `json:"error"`
	Usage struct {
		Input  int `json:"input_tokens"`
		Output int `json:"output_tokens"`
	} `json:"usage"`
}

// askOnce implements wire.
func (w *responsesWire) askOnce(ctx context.Context, history []openai.ChatCompletionMessage, room int, last bool) (openai.ChatCompletionChoice, openai.Usage, error) {
	req := responsesRequest{
		Model: cmp.Or(w.model.Alias, w.model.Name), MaxOutput: room, CacheKey: w.thread, Include: []string{"reasoning.encrypted_content"},
	}
	for _, t := range w.tools {
		req.Tools = append(req.Tools, object{"type": "function", "name": t.Name, "description": t.Description, "parameters": t.Parameters, "strict": false})
	}
	if last && len(req.Tools) > 0 {
		req.ToolChoice = "none"
	}
	req.Instructions, req.Input = w.writeItems(history)
	var a responsesAnswer
	if err := w.postJSON(ctx, "/responses", http.Header{}, req, &a); err != nil {
		return openai.ChatCompletionChoice{}, openai.Usage{}, err
	}
	choice, err := a.readChoice()
	w.raw[len(history)] = a.Output
	return choice, openai.Usage{PromptTokens: a.Usage.Input, CompletionTokens: a.Usage.Output}, err
}

// writeItems puts the conversation into items.
func (w *responsesWire) writeItems(history []openai.ChatCompletionMessage) (instructions string, items []object) {
	for i, m := range history {
		switch m.Role {
		case openai.ChatMessageRoleSystem:
			instructions += m.Content
		case openai.ChatMessageRoleTool:
			items = append(items, object{"type": "function_call_output", "call_id": m.ToolCallID, "output": m.Content})
		case openai.ChatMessageRoleAssistant:
			items = append(items, writeOutput(m, w.raw[i])...)
		default:
			items = append(items, object{"type": "message", "role": m.Role, "content": m.Content})
		}
	}
	return instructions, items
}

// writeOutput are the items of an answer as they came, but for the arguments of calls, which
// the history may have dropped.
func writeOutput(m openai.ChatCompletionMessage, raw []object) (out []object) {
	calls := m.ToolCalls
	for _, item := range raw {
		if stringIn(item, "type") == "function_call" && len(calls) > 0 {
			changed := maps.Clone(item)
			changed["call_id"], changed["arguments"] = calls[0].ID, calls[0].Function.Arguments
			item, calls = changed, calls[1:]
		}
		out = append(out, item)
	}
	return out
}

// readChoice takes the answer apart.
func (a responsesAnswer) readChoice() (openai.ChatCompletionChoice, error) {
	choice := openai.ChatCompletionChoice{Message: openai.ChatCompletionMessage{Role: openai.ChatMessageRoleAssistant}, FinishReason: openai.FinishReasonStop}
	msg := &choice.Message
	for _, item := range a.Output {
		switch stringIn(item, "type") {
		case "message":
			msg.Content += textsIn(item["content"], "text")
			msg.Refusal += textsIn(item["content"], "refusal")
		case "reasoning":
			msg.ReasoningContent += textsIn(item["summary"], "text")
		case "function_call":
			msg.ToolCalls = append(msg.ToolCalls, newCall(stringIn(item, "call_id"), stringIn(item, "name"), stringIn(item, "arguments")))
			choice.FinishReason = openai.FinishReasonToolCalls
		}
	}
	switch {
	case a.Error != nil:
		return choice, fmt.Errorf("it failed: %.500s", a.Error.Message)
	case msg.Refusal != "":
		return choice, fmt.Errorf("it refused to answer: %.200q", msg.Refusal)
	case a.Status == "incomplete" && a.Incomplete.Reason == "max_output_tokens":
		choice.FinishReason = openai.FinishReasonLength
	case a.Status == "incomplete" && a.Incomplete.Reason == "content_filter":
		return choice, errors.New("it refused to answer: its content filter")
	case a.Status != "completed":
		return choice, fmt.Errorf("it gave an answer of status %.40q (%.100q): it may be cut off", a.Status, a.Incomplete.Reason)
	}
	return choice, nil
}

// textsIn joins the texts under a name of a list's objects.
func textsIn(list any, name string) string {
	out := ""
	parts, _ := list.([]any)
	for _, p := range parts {
		o, _ := p.(object)
		out += stringIn(o, name)
	}
	return out
}
