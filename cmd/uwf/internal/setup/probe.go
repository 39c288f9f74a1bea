package setup

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cmd/internal/app"
	engine "github.com/united-workforce/uwf/engine/config"
)

// Target is what a connection is tested with.
type Target struct {
	Provider string
	Kind     engine.Kind
	BaseURL  string
	Model    string
	Key      string // empty: none is sent
	KeyName  string // for messages: the variable, or where the key came from
	Chat     bool   // over chat completions: the provider does not speak the protocol of its kind

	// ModelBy, AddressBy and KeyBy are what sets the model, the address and the key, for
	// advice; empty: the flags of uwf setup.
	ModelBy, AddressBy, KeyBy string
}

func (t Target) modelBy() string   { return cmp.Or(t.ModelBy, "--model") }
func (t Target) addressBy() string { return cmp.Or(t.AddressBy, "--base-url") }

// Prober tests connections.
type Prober struct {
	Client *http.Client
	Clean  func(string) string // takes secrets out of what a server says
}

const (
	probeTime = 30 * time.Second
	maxAnswer = 1 << 20
)

// NewProber makes a Prober that reaches providers as this process is told to.
func NewProber(f *app.Factory) Prober {
	return Prober{Clean: f.CleanMessage, Client: NewClient(&http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second, DisableKeepAlives: true, ForceAttemptHTTP2: true,
	})}
}

// NewClient makes a client that follows no redirect: a key must not go elsewhere.
func NewClient(transport http.RoundTripper) *http.Client {
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Test asks the model for one word. The error is a *Failure, or the context's.
func (p Prober) Test(ctx context.Context, t Target) error {
	tctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	fail := p.askOnce(tctx, t, maxTokens)
	if fail != nil && fail.Kind == kindLimitField {
		fail = p.askOnce(tctx, t, maxCompletionTokens)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if fail == nil {
		return nil
	}
	if fail.Kind == KindModel {
		p.suggestModels(tctx, t, fail)
	}
	return fail
}

// Reach looks whether there is a server at all, and whether Ollama has the model, at no cost and
// without the key. The error is a *Failure; what may pass by itself is none, nor is a server that is
// slower than ctx lasts: that is left to who asks it in earnest.
func (p Prober) Reach(ctx context.Context, t Target) error {
	t.Key = ""
	res, fail := p.sendRequest(ctx, t, http.MethodGet, "/models", nil)
	if fail != nil {
		var op *net.OpError
		certificate := errors.As(fail.cause, new(*tls.CertificateVerificationError)) || errors.Is(fail.cause, http.ErrSchemeMismatch)
		if ctx.Err() == nil && (certificate || errors.As(fail.cause, &op) && !op.Timeout() && (op.Op == "dial" || op.Op == "proxyconnect")) {
			return fail
		}
		return nil
	}
	if t.Provider != ollama || res.status != http.StatusOK || !json.Valid(res.body) {
		return nil
	}
	names := readModels(res.body)
	for i, name := range names {
		names[i] = strings.TrimSuffix(name, ":latest") // the tag that it takes a bare name for
	}
	if slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, strings.TrimSuffix(t.Model, ":latest")) }) {
		return nil
	}
	fail = &Failure{Kind: KindModel, What: t.Provider + " has no model " + t.Model, Do: "pull it first: ollama pull " + t.Model}
	fail.nameModels(p, t, names)
	return fail
}

// isNative says whether the provider's own protocol is Anthropic's and is used.
func (t Target) isNative() bool { return t.Kind == engine.Anthropic && !t.Chat }

// pageURL is the address of one of the provider's pages.
func (t Target) pageURL(page string) string {
	base := strings.TrimRight(t.BaseURL, "/")
	switch t.Kind {
	case engine.Anthropic:
		base += "/v1"
	case engine.Gemini: // its OpenAI-compatible address
		base += "/v1beta/openai"
	}
	return base + page
}

func (t Target) chatPage() string {
	if t.isNative() {
		return "/messages"
	}
	return "/chat/completions"
}

// The fields that limit an answer: models that reason know the second alone, and say so.
const (
	maxTokens           = "max_tokens"
	maxCompletionTokens = "max_completion_tokens"
)

// askOnce makes the one tiny request.
func (p Prober) askOnce(ctx context.Context, t Target, limit string) *Failure {
	body, err := json.Marshal(map[string]any{
		"model": t.Model, limit: 16,
		"messages": []map[string]string{{"role": "user", "content": "Say ok."}},
	})
	if err != nil {
		return &Failure{Kind: KindAnswer, What: err.Error(), Do: baseAdvice(t)}
	}
	res, fail := p.sendRequest(ctx, t, http.MethodPost, t.chatPage(), body)
	if fail != nil {
		return fail
	}
	if res.status != http.StatusOK {
		return p.explainRefused(t, res)
	}
	return p.checkAnswer(t, res)
}

// answer is what a server said.
type answer struct {
	status      int
	contentType string
	location    string
	retryAfter  string
	body        []byte
}

func (p Prober) sendRequest(ctx context.Context, t Target, method, page string, body []byte) (answer, *Failure) {
	req, err := http.NewRequestWithContext(ctx, method, t.pageURL(page), bytes.NewReader(body))
	if err != nil {
		return answer{}, &Failure{Kind: KindAddress, What: fmt.Sprintf("%s is no address: %v", t.BaseURL, err), Do: "write it as https://api.example.com/v1"}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	switch {
	case t.isNative():
		req.Header.Set("Anthropic-Version", "2023-06-01")
		req.Header.Set("X-Api-Key", t.Key)
	case t.Key != "":
		req.Header.Set("Authorization", "Bearer "+t.Key)
	}
	res, err := p.Client.Do(req)
	if err != nil {
		return answer{}, p.explainUnreached(t, req, err)
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err = errors.Join(err, res.Body.Close()); err != nil {
		return answer{}, p.explainUnreached(t, req, err)
	}
	if len(text) > maxAnswer {
		return answer{}, &Failure{Kind: KindAnswer, What: fmt.Sprintf("%s answered with more than %d bytes", t.BaseURL, maxAnswer), Do: baseAdvice(t)}
	}
	return answer{status: res.StatusCode, contentType: res.Header.Get("Content-Type"), location: res.Header.Get("Location"), retryAfter: res.Header.Get("Retry-After"), body: text}, nil
}

// checkAnswer looks for an answer of a model in what came with 200.
func (p Prober) checkAnswer(t Target, res answer) *Failure {
	var doc struct {
		Choices []json.RawMessage `json:"choices"`
		Content []json.RawMessage `json:"content"`
		Type    string            `json:"type"`
		Error   json.RawMessage   `json:"error"`
	}
	err := json.Unmarshal(res.body, &doc)
	if err == nil && (len(doc.Choices) > 0 || t.isNative() && doc.Type == "message") {
		return nil
	}
	if err == nil && len(doc.Error) > 0 && string(doc.Error) != "null" {
		res.status = http.StatusBadRequest // OpenRouter says some errors with 200
		return p.explainRefused(t, res)
	}
	what := "an answer that is no JSON"
	if strings.Contains(res.contentType, "html") || bytes.HasPrefix(bytes.TrimSpace(res.body), []byte("<")) {
		what = "a web page"
	} else if err == nil {
		what = "JSON that is no answer of a model"
	}
	return &Failure{Kind: KindAnswer, What: fmt.Sprintf("%s gave %s", t.pageURL(t.chatPage()), what), Do: baseAdvice(t)}
}

// listModels asks for the names of the provider's models.
func (p Prober) listModels(ctx context.Context, t Target) []string {
	res, fail := p.sendRequest(ctx, t, http.MethodGet, "/models", nil)
	if fail != nil || res.status != http.StatusOK {
		return nil
	}
	return readModels(res.body)
}

// readModels reads the names out of a list of models.
func readModels(body []byte) []string {
	var doc struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &doc) != nil {
		return nil
	}
	var out []string
	for _, m := range doc.Data {
		if m.ID != "" && len(m.ID) < 200 {
			out = append(out, m.ID)
		}
	}
	return out
}
