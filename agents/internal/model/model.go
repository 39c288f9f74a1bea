// Package model asks a model through the gateway, with bounds for whoever asks: it never
// retries, never follows a redirect and never reads without end.
package model

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	openai "github.com/sashabaranov/go-openai"
)

// maxResponse is the largest response that is read, in bytes.
const maxResponse = 8 << 20

// NewClient is a client of an OpenAI-compatible base URL. A nil transport is
// http.DefaultTransport.
func NewClient(base, key string, transport http.RoundTripper, timeout time.Duration) *openai.Client {
	cfg := openai.DefaultConfig(key)
	cfg.BaseURL = base
	cfg.HTTPClient = newHTTPClient(transport, timeout)
	return openai.NewClientWithConfig(cfg)
}

// Post sends a JSON body to an address and reads the whole answer, within the same bounds.
func Post(ctx context.Context, url string, header http.Header, transport http.RoundTripper, timeout time.Duration, body []byte) (status int, answer []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header = header
	resp, err := newHTTPClient(transport, timeout).Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

func newHTTPClient(transport http.RoundTripper, timeout time.Duration) *http.Client {
	return &http.Client{
		Transport: limited{cmp.Or(transport, http.DefaultTransport)}, Timeout: timeout,
		// A redirect would carry the conversation somewhere else.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// limited bounds responses.
type limited struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, maxResponse), resp.Body}
	return resp, nil
}

// TakeChoice takes the answer out of a response: one that is none is an error, never an
// empty text.
func TakeChoice(resp openai.ChatCompletionResponse) (openai.ChatCompletionChoice, error) {
	if len(resp.Choices) == 0 {
		return openai.ChatCompletionChoice{}, errors.New("it gave an answer without choices")
	}
	choice := resp.Choices[0]
	switch choice.FinishReason {
	case "", openai.FinishReasonNull:
		return choice, errors.New("it gave an answer without finish_reason: it may be cut off")
	case openai.FinishReasonContentFilter:
		return choice, errors.New("it refused to answer: its content filter")
	}
	if choice.Message.Refusal != "" {
		return choice, fmt.Errorf("it refused to answer: %.200q", choice.Message.Refusal)
	}
	return choice, nil
}
