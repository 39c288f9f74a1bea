package agents_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// Chat is a whole agent: one conversation with a model, no tools. An agent is one
// conversation; the kit makes no second task of it.
type Chat struct {
	session  *agents.Session
	messages []message
	turns    []any // hashes of the staged turns
	usage    record.Usage
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Run does the task. The prompt says everything: the form of the answer, the role,
// the task, what happened so far. The workspace is the folder s.Workspace, and the
// current one.
func (c *Chat) Run(ctx context.Context, s *agents.Session) (agents.Answer, error) {
	c.session = s
	return c.say(ctx, s.Task.Prompt)
}

// Continue goes on after an answer that did not fit: the complaint is written for
// the model. The kit asks twice, and then has the configured model read the answer.
func (c *Chat) Continue(ctx context.Context, _ *agents.Session, complaint string) (agents.Answer, error) {
	return c.say(ctx, complaint)
}

func (c *Chat) say(ctx context.Context, text string) (agents.Answer, error) {
	c.messages = append(c.messages, message{"user", text})
	reply, err := c.ask(ctx)
	if err != nil {
		return agents.Answer{}, err
	}
	c.messages = append(c.messages, message{"assistant", reply})
	// Turns are staged as they come: what is staged is kept when the agent is killed.
	turn, err := c.session.Stage.Put(record.BuiltinTurnSchema, map[string]any{
		"role": "assistant", "content": reply, "toolCalls": nil, "reasoning": nil,
	})
	if err != nil {
		return agents.Answer{}, err
	}
	c.turns = append(c.turns, string(turn))
	detail, err := c.detail()
	return agents.Answer{Text: reply, Detail: detail, Usage: c.usage}, err
}

// ask calls the model through the gateway, whose address and key are in the
// environment under the names that OpenAI's and Anthropic's clients know. The
// gateway counts what it costs, keeps the budget and repeats what fails for a
// moment.
func (c *Chat) ask(ctx context.Context) (string, error) {
	s := c.session
	if s.Task.Model == nil {
		return "", fmt.Errorf("no model is configured for role %s", s.Task.Role)
	}
	body, err := json.Marshal(map[string]any{"model": s.Task.Model.Alias, "messages": c.messages})
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Getenv("OPENAI_BASE_URL")+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "Bearer "+s.Getenv("OPENAI_API_KEY"))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 8<<20))
	if err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("model %s: %s: %.500s", s.Task.Model.Name, resp.Status, answer)
	}
	var out struct {
		Choices []struct{ Message message }
		Usage   struct {
			In  int64 `json:"prompt_tokens"`
			Out int64 `json:"completion_tokens"`
		}
	}
	if err := json.Unmarshal(answer, &out); err != nil || len(out.Choices) == 0 {
		return "", fmt.Errorf("model %s gave no answer: %.500s", s.Task.Model.Name, answer)
	}
	c.usage.Turns++
	c.usage.InputTokens += out.Usage.In
	c.usage.OutputTokens += out.Usage.Out
	return out.Choices[0].Message.Content, nil
}

// detail tells how the answer came about: `uwf thread step-details` shows it.
func (c *Chat) detail() (node.Hash, error) {
	t := c.session.Task
	return c.session.Stage.Put(record.BuiltinDetailSchema, map[string]any{
		"sessionId": fmt.Sprintf("%s-%d", t.Thread, t.Step), "model": t.Model.Name, "duration": 0,
		"turnCount": len(c.turns), "turns": c.turns,
	})
}

// This is all of main. Built and put on PATH as uwf-chat, it is the agent "chat":
//
//	uwf thread step THREAD-ID --agent chat
func Example() {
	main := func() { os.Exit(agents.Main(&Chat{})) }
	_ = main
}
