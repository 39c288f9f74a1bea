package builtin

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	openai "github.com/sashabaranov/go-openai"

	"github.com/united-workforce/uwf/agents/internal/model"
)

// chatWire asks by chat completions, which nearly every server has. Those that keep what
// requests begin with do so by themselves.
type chatWire struct {
	wireOptions
	client  *openai.Client
	offered []openai.Tool
	// allTokens: answers are limited by max_completion_tokens.
	allTokens bool
	toggled   bool // a server has said which of the two it takes
}

func newChatWire(o wireOptions) *chatWire {
	w := &chatWire{wireOptions: o, client: model.NewClient(o.base, o.key, o.transport, callTimeout), allTokens: limitsAllTokens(o.model.Name)}
	for _, d := range o.tools {
		w.offered = append(w.offered, openai.Tool{
			Type:     openai.ToolTypeFunction,
			Function: &openai.FunctionDefinition{Name: d.Name, Description: d.Description, Parameters: d.Parameters},
		})
	}
	return w
}

// askOnce implements wire.
func (w *chatWire) askOnce(ctx context.Context, history []openai.ChatCompletionMessage, room int, last bool) (openai.ChatCompletionChoice, openai.Usage, error) {
	resp, err := w.client.CreateChatCompletion(ctx, w.newRequest(history, room, last))
	if err != nil && !w.toggled && wrongLimit(err) {
		w.allTokens, w.toggled = !w.allTokens, true
		resp, err = w.client.CreateChatCompletion(ctx, w.newRequest(history, room, last))
	}
	if err != nil {
		return openai.ChatCompletionChoice{}, openai.Usage{}, err
	}
	choice, err := model.TakeChoice(resp)
	return choice, resp.Usage, err
}

func (w *chatWire) newRequest(history []openai.ChatCompletionMessage, room int, last bool) openai.ChatCompletionRequest {
	req := openai.ChatCompletionRequest{Model: cmp.Or(w.model.Alias, w.model.Name), Messages: history, Tools: w.offered}
	if last && len(w.offered) > 0 {
		// The tools stay in the request: some servers refuse a history with calls
		// of tools that are not offered.
		req.ToolChoice = "none"
	}
	if w.allTokens {
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
	return slices.ContainsFunc([]string{"o1", "o3", "o4", "gpt-5", "gpt-6"}, func(p string) bool { return strings.HasPrefix(model, p) })
}
