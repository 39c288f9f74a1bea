package builtin

import (
	"encoding/json"
	"fmt"

	openai "github.com/sashabaranov/go-openai"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// beginConversation writes what the model is told first. A correction goes on in the conversation of
// the run that it corrects, so that the model reads no file again that it has read there. Without
// a record of that run it starts a new conversation.
func (a *Agent) beginConversation(s *agents.Session) error {
	asked, complaint := s.Task.Prompt, ""
	var turns []map[string]any
	if c := s.Task.Corrected; c != nil && c.From > 0 && c.From < len(asked) {
		if turns = readTurns(s.Context, *c); len(turns) > 0 {
			asked, complaint = asked[:c.From], asked[c.From:]
		}
	}

	a.appendMessage(openai.ChatMessageRoleSystem, systemPrompt(a.set))
	a.appendMessage(openai.ChatMessageRoleUser, asked)
	for _, turn := range turns {
		a.replayTurn(turn)
		if err := a.recordTurn(s, turn); err != nil {
			return err
		}
	}
	if complaint != "" {
		a.appendMessage(openai.ChatMessageRoleUser, complaint)
	}
	return nil
}

// readTurns reads the turns that a run has kept; none if one of them can't be read.
func readTurns(c *agents.Context, from task.Corrected) []map[string]any {
	detail, err := c.GetOf(from.Of, from.Detail)
	if err != nil || detail.Type != record.BuiltinDetailSchema {
		return nil
	}
	payload, _ := detail.Payload.(map[string]any)
	hashes, _ := payload["turns"].([]any)
	var out []map[string]any
	for _, h := range hashes {
		name, _ := h.(string)
		n, err := c.GetOf(from.Of, node.Hash(name))
		turn, isObject := n.Payload.(map[string]any)
		if err != nil || n.Type != record.BuiltinTurnSchema || !isObject {
			return nil
		}
		out = append(out, turn)
	}
	return out
}

// replayTurn appends a turn of the record to the conversation. The record has no ids of calls: the
// results of an answer's calls stand behind it in their order.
func (a *Agent) replayTurn(turn map[string]any) {
	content, _ := turn["content"].(string)
	calls, _ := turn["toolCalls"].([]any)
	if turn["role"] == openai.ChatMessageRoleTool {
		a.replayResult(content)
		return
	}
	if content == "" && len(calls) == 0 {
		return // many servers refuse an empty message
	}
	if last := a.history[len(a.history)-1]; last.Role == openai.ChatMessageRoleAssistant {
		a.appendMessage(openai.ChatMessageRoleUser, "Go on.") // what was said here is not in the record
	}
	msg := openai.ChatCompletionMessage{Role: openai.ChatMessageRoleAssistant, Content: content}
	for i, c := range calls {
		call, _ := c.(map[string]any)
		name, _ := call["name"].(string)
		args, _ := call["args"].(string)
		if !json.Valid([]byte(args)) {
			args = "{}" // it was cut, or never was any
		}
		msg.ToolCalls = append(msg.ToolCalls, openai.ToolCall{
			ID: fmt.Sprintf("call_%d_%d", len(a.history), i), Type: openai.ToolTypeFunction, Function: openai.FunctionCall{Name: name, Arguments: args},
		})
	}
	a.history = append(a.history, msg)
}

// replayResult appends the result of the first call of the last answer that has none yet.
func (a *Agent) replayResult(content string) {
	at := len(a.history) - 1
	for a.history[at].Role == openai.ChatMessageRoleTool {
		at--
	}
	calls, done := a.history[at].ToolCalls, len(a.history)-1-at
	if done >= len(calls) {
		return // of a call that was left out of the record
	}
	a.history = append(a.history, openai.ChatCompletionMessage{
		Role: openai.ChatMessageRoleTool, Content: content, ToolCallID: calls[done].ID, Name: calls[done].Function.Name,
	})
}
