package builtin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/tools"
	"github.com/united-workforce/uwf/engine/task"
)

const (
	callTimeout = 15 * time.Minute
	maxShrinks  = 3 // times that a request is made smaller when it is refused as too long
)

// ErrNoModel: the agent was started without a model.
var ErrNoModel = errors.New("no model is configured for this role; set a provider and defaultModel in .uwf/config.yaml, or run `uwf setup`")

// chat is one model behind the gateway.
type chat struct {
	wire   wire
	model  task.Model
	window *window
}

func newChat(s *agents.Session, transport http.RoundTripper, defs []tools.Definition) (*chat, error) {
	base := s.Getenv(EnvBaseURL)
	if s.Task.Model == nil || base == "" {
		return nil, ErrNoModel
	}
	c := &chat{model: *s.Task.Model, window: &window{size: s.Task.Model.Window, maxOutput: s.Task.Model.MaxOutput, ratio: 1}}
	for _, d := range defs {
		c.window.fixed += len(d.Name) + len(d.Description) + len(d.Parameters)
	}
	c.wire = newWire(wireOptions{
		base: strings.TrimRight(base, "/"), key: s.Getenv(EnvKey), transport: transport, model: c.model, tools: defs,
		thread: string(s.Task.Thread), common: s.Task.CommonBytes,
	})
	return c, nil
}

// resultLimit is how large one tool result may be, in bytes: a quarter of the
// window, so that several fit; 0 is the tools' own limit.
func resultLimit(m *task.Model) int {
	if m == nil || m.Window <= 0 {
		return 0
	}
	const ownLimit = 48 << 10
	return min(ownLimit, max(2<<10, m.Window*bytesPerToken/4))
}

// nextMessage asks the model for its next message. It drops what no longer fits from
// history, in place. On the last turn tools are not to be called.
func (c *chat) nextMessage(ctx context.Context, history []openai.ChatCompletionMessage, last bool) (openai.ChatCompletionChoice, openai.Usage, error) {
	for shrinks := 0; ; shrinks++ {
		room, err := c.window.fitHistory(history)
		if err != nil {
			return openai.ChatCompletionChoice{}, openai.Usage{}, err
		}
		choice, used, err := c.wire.askOnce(ctx, history, room, last)
		if err == nil || used.PromptTokens > 0 { // it was answered
			c.window.learnRatio(history, used.PromptTokens)
			if err != nil {
				err = fmt.Errorf("model %s: %w", c.model.Name, err)
			}
			choice.Message.Role = openai.ChatMessageRoleAssistant
			return choice, used, err
		}
		if tooLong(err) && shrinks < maxShrinks && c.window.shrinkHistory(history) {
			continue
		}
		return openai.ChatCompletionChoice{}, openai.Usage{}, c.explainFailure(ctx, err)
	}
}

// explainFailure says why there is no response.
func (c *chat) explainFailure(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if api, ok := errors.AsType[*openai.APIError](err); ok && api.HTTPStatusCode != 0 {
		return fmt.Errorf("model %s: HTTP %d: %s", c.model.Name, api.HTTPStatusCode, api.Message)
	}
	return fmt.Errorf("model %s: %w", c.model.Name, err)
}

// tooLong recognises that a request was refused because of its length: its code at
// OpenAI, its words elsewhere.
func tooLong(err error) bool {
	var api *openai.APIError
	if !errors.As(err, &api) {
		return false
	}
	if code, ok := api.Code.(string); ok && (code == "context_length_exceeded" || code == "tokens_limit_reached") {
		return true
	}
	if api.HTTPStatusCode != http.StatusBadRequest && api.HTTPStatusCode != http.StatusRequestEntityTooLarge {
		return false
	}
	msg := strings.ToLower(api.Message)
	return strings.Contains(msg, "context length") || strings.Contains(msg, "context window") ||
		strings.Contains(msg, "too large for model") || strings.Contains(msg, "maximum context") ||
		strings.Contains(msg, "prompt is too long") // Anthropic
}
