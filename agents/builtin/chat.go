package builtin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/internal/model"
	"github.com/united-workforce/uwf/agents/tools"
	"github.com/united-workforce/uwf/engine/task"
)

const (
	callTimeout = 15 * time.Minute
	maxShrinks  = 3 // times that a request is made smaller when it is refused as too long
)

// ErrNoModel: the agent was started without a model.
var ErrNoModel = errors.New("no model is configured for this role; set a provider and defaultModel in .uwf/config.yaml, or run `uwf setup`")

// chat is one model behind an OpenAI-compatible base URL.
type chat struct {
	client *openai.Client
	model  task.Model
	tools  []openai.Tool
	window *window
	// allTokens: answers are limited by max_completion_tokens.
	allTokens bool
	toggled   bool // a server has said which of the two it takes
}

func newChat(s *agents.Session, transport http.RoundTripper) (*chat, error) {
	base := s.Getenv(EnvBaseURL)
	if s.Task.Model == nil || base == "" {
		return nil, ErrNoModel
	}
	return &chat{
		client: model.NewClient(strings.TrimRight(base, "/"), s.Getenv(EnvKey), transport, callTimeout), model: *s.Task.Model, allTokens: limitsAllTokens(s.Task.Model.Name),
		window: &window{size: s.Task.Model.Window, maxOutput: s.Task.Model.MaxOutput, ratio: 1},
	}, nil
}

// setTools sets the tools that the model may call.
func (c *chat) setTools(defs []tools.Definition) {
	for _, d := range defs {
		c.tools = append(c.tools, openai.Tool{
			Type:     openai.ToolTypeFunction,
			Function: &openai.FunctionDefinition{Name: d.Name, Description: d.Description, Parameters: d.Parameters},
		})
		c.window.fixed += len(d.Name) + len(d.Description) + len(d.Parameters)
	}
}

// resultLimit is how large one tool result may be, in bytes: a quarter of the
// window, so that several fit; 0 is the tools' own limit.
func (c *chat) resultLimit() int {
	if c.model.Window <= 0 {
		return 0
	}
	const ownLimit = 48 << 10
	return min(ownLimit, max(2<<10, c.model.Window*bytesPerToken/4))
}

// nextMessage asks the model for its next message. It drops what no longer fits from
// history, in place. On the last turn tools are not to be called.
func (c *chat) nextMessage(ctx context.Context, history []openai.ChatCompletionMessage, last bool) (openai.ChatCompletionChoice, openai.Usage, error) {
	for shrinks := 0; ; shrinks++ {
		room, err := c.window.fitHistory(history)
		if err != nil {
			return openai.ChatCompletionChoice{}, openai.Usage{}, err
		}
		resp, err := c.client.CreateChatCompletion(ctx, c.newRequest(history, room, last))
		if err == nil {
			c.window.learnRatio(history, resp.Usage.PromptTokens)
			choice, err := model.TakeChoice(resp)
			if err != nil {
				err = fmt.Errorf("model %s: %w", c.model.Name, err)
			}
			choice.Message.Role = openai.ChatMessageRoleAssistant
			return choice, resp.Usage, err
		}
		if !c.toggled && wrongLimit(err) {
			c.allTokens, c.toggled = !c.allTokens, true
			shrinks--
			continue
		}
		if tooLong(err) && shrinks < maxShrinks && c.window.shrinkHistory(history) {
			continue
		}
		return openai.ChatCompletionChoice{}, openai.Usage{}, c.explainFailure(ctx, err)
	}
}

func (c *chat) newRequest(history []openai.ChatCompletionMessage, room int, last bool) openai.ChatCompletionRequest {
	req := openai.ChatCompletionRequest{Model: cmp.Or(c.model.Alias, c.model.Name), Messages: history, Tools: c.tools}
	if last && len(c.tools) > 0 {
		// The tools stay in the request: some servers refuse a history with calls
		// of tools that are not offered.
		req.ToolChoice = "none"
	}
	if c.allTokens {
		req.MaxCompletionTokens = room
	} else {
		req.MaxTokens = room //nolint:staticcheck // most other servers know only this one
	}
	return req
}

// wrongLimit recognises that a server takes the other of the two fields that
// limit an answer. The client library itself refuses one for some names.
func wrongLimit(err error) bool {
	if errors.Is(err, openai.ErrReasoningModelMaxTokensDeprecated) {
		return true
	}
	var api *openai.APIError
	if !errors.As(err, &api) || api.HTTPStatusCode != http.StatusBadRequest && api.HTTPStatusCode != http.StatusUnprocessableEntity {
		return false
	}
	param := ""
	if api.Param != nil {
		param = *api.Param
	}
	text := param + " " + api.Message
	return (strings.Contains(text, "max_tokens") || strings.Contains(text, "max_completion_tokens")) && !tooLong(err)
}

// limitsAllTokens: OpenAI's reasoning models refuse max_tokens, and others don't
// know its successor.
func limitsAllTokens(model string) bool {
	if i := strings.LastIndexByte(model, '/'); i >= 0 {
		model = model[i+1:]
	}
	for _, p := range []string{"o1", "o3", "o4", "gpt-5", "gpt-6"} {
		if strings.HasPrefix(model, p) {
			return true
		}
	}
	return false
}

// explainFailure says why there is no response.
func (c *chat) explainFailure(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	var api *openai.APIError
	if errors.As(err, &api) && api.HTTPStatusCode != 0 {
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
		strings.Contains(msg, "too large for model") || strings.Contains(msg, "maximum context")
}
