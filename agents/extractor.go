package agents

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"github.com/united-workforce/uwf/agents/gateway"
	"github.com/united-workforce/uwf/agents/internal/model"
	"github.com/united-workforce/uwf/agents/sandbox"
	"github.com/united-workforce/uwf/engine/extract"
	"github.com/united-workforce/uwf/gitcas/record"
)

const (
	// extractTimeout is the time for one reply of the model that reads a report.
	extractTimeout = 5 * time.Minute
	// reportShare is how much of a model's window the report may take; the rest is
	// for the schema and the reply.
	reportShare = 0.5
	// bytesPerToken is a cautious guess; real text has three to four.
	bytesPerToken = 3
)

// ErrNoExtract: no model may read the answer, because none is configured for it.
var ErrNoExtract = errors.New("no model is set for reading answers (modelOverrides.extract, or a model named extract)")

// Extractor has a model read an answer that the agent could not put into the form
// which its role needs. It is the last resort after the corrections. The model is
// asked through the gateway of the run, which counts what it costs.
type Extractor struct {
	Context   *Context
	Environ   []string
	Transport http.RoundTripper // nil: http.DefaultTransport
}

// Extracted is what the model found, and what it cost.
type Extracted struct {
	Result extract.Result
	Model  string
	Usage  record.Usage
}

// Enabled reports whether there is a model to ask.
func (e Extractor) Enabled() bool {
	return e.Context.Task.Extract != nil && sandbox.Getenv(e.Environ, gateway.EnvURL) != ""
}

// Read asks the model for the fields of an answer, and once more when its reply
// does not fit. What the fields say is checked like any answer's. Usage is set
// also when there is an error.
func (e Extractor) Read(ctx context.Context, text string) (Extracted, error) {
	var out Extracted
	if !e.Enabled() {
		return out, ErrNoExtract
	}
	out.Model = e.Context.Task.Extract.Name
	if strings.TrimSpace(text) == "" {
		return out, errors.New("reading the answer by a model: it is empty")
	}
	if len(text) > MaxAnswer {
		return out, fmt.Errorf("reading the answer by model %s: it has %d bytes, and at most %d are stored", out.Model, len(text), MaxAnswer)
	}
	q, err := e.newQuestion(text)
	if err != nil {
		return out, err
	}
	talk, err := e.openTalk(q)
	if err != nil {
		return out, err
	}
	for tries := 1; ; tries++ {
		reply, err := talk.askModel(ctx)
		out.Usage = talk.usage
		if err != nil {
			return out, fmt.Errorf("reading the answer by model %s: %w", out.Model, err)
		}
		if out.Result, err = q.Reply(reply); err == nil {
			return out, nil
		}
		if tries == 2 || errors.Is(err, extract.ErrUnsaid) || errors.Is(err, extract.ErrSchema) {
			return out, fmt.Errorf("reading the answer by model %s: %w", out.Model, err)
		}
		talk.appendMessage(openai.ChatMessageRoleAssistant, cmp.Or(reply, "{}")) // an empty message is refused
		talk.appendMessage(openai.ChatMessageRoleUser, extract.ReplyComplaint(err))
	}
}

func (e Extractor) newQuestion(text string) (extract.Question, error) {
	t := e.Context.Task
	schema, err := e.Context.OutputSchema()
	if err != nil {
		return extract.Question{}, err
	}
	return extract.Question{
		Report: text, Schema: schema, Statuses: t.Statuses, StatusOptional: t.StatusOptional, Suspends: t.Suspends,
		Room: int(float64(t.Extract.Window) * reportShare * bytesPerToken),
	}, nil
}

// extractTalk is the conversation with the model.
type extractTalk struct {
	client  *openai.Client
	request openai.ChatCompletionRequest
	forms   []*openai.ChatCompletionResponseFormat // left to try, the strictest first
	usage   record.Usage
}

func (e Extractor) openTalk(q extract.Question) (*extractTalk, error) {
	system, message, err := q.Texts()
	if err != nil {
		return nil, err
	}
	schema, err := json.Marshal(q.ReplySchema())
	if err != nil {
		return nil, fmt.Errorf("writing the schema of the reply: %w", err)
	}
	talk := &extractTalk{
		client:  model.NewClient(sandbox.Getenv(e.Environ, gateway.EnvURL)+"/v1", sandbox.Getenv(e.Environ, gateway.EnvKey), e.Transport, extractTimeout),
		request: openai.ChatCompletionRequest{Model: cmp.Or(e.Context.Task.Extract.Alias, e.Context.Task.Extract.Name)},
		forms: []*openai.ChatCompletionResponseFormat{
			{Type: openai.ChatCompletionResponseFormatTypeJSONSchema, JSONSchema: &openai.ChatCompletionResponseFormatJSONSchema{
				Name: "fields_of_the_report", Schema: json.RawMessage(schema),
			}},
			{Type: openai.ChatCompletionResponseFormatTypeJSONObject},
			nil,
		},
	}
	talk.appendMessage(openai.ChatMessageRoleSystem, system)
	talk.appendMessage(openai.ChatMessageRoleUser, message)
	return talk, nil
}

func (t *extractTalk) appendMessage(role, text string) {
	t.request.Messages = append(t.request.Messages, openai.ChatCompletionMessage{Role: role, Content: text})
}

// askModel makes one model call. Where the provider refuses the form of the reply, it
// is asked for a looser one, and by words alone in the end.
func (t *extractTalk) askModel(ctx context.Context) (string, error) {
	for {
		t.request.ResponseFormat = t.forms[0]
		resp, err := t.client.CreateChatCompletion(ctx, t.request)
		if err == nil {
			return t.takeReply(resp)
		}
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		if len(t.forms) == 1 || !refusesForm(err) {
			return "", err
		}
		t.forms = t.forms[1:]
	}
}

// refusesForm: a server that does not know response_format, or not this one, says
// so in words of its own; what the gateway itself refuses stays refused.
func refusesForm(err error) bool {
	status := 0
	var request *openai.RequestError // a body that is no error of OpenAI's form
	var api *openai.APIError
	switch {
	case errors.As(err, &api):
		if code, ok := api.Code.(string); ok && gateway.IsOwnCode(code) {
			return false
		}
		status = api.HTTPStatusCode
	case errors.As(err, &request):
		status = request.HTTPStatusCode
	}
	return status == http.StatusBadRequest || status == http.StatusUnprocessableEntity || status == http.StatusNotImplemented
}

func (t *extractTalk) takeReply(resp openai.ChatCompletionResponse) (string, error) {
	t.usage.Turns++
	t.usage.InputTokens += int64(resp.Usage.PromptTokens)
	t.usage.OutputTokens += int64(resp.Usage.CompletionTokens)
	choice, err := model.TakeChoice(resp)
	if err == nil && choice.FinishReason == openai.FinishReasonLength {
		err = errors.New("its reply was cut off at the output limit")
	}
	return choice.Message.Content, err
}
