package gateway

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/agents/gateway/dialect"
	"github.com/united-workforce/uwf/agents/gateway/translate"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/outage"
)

// UpstreamError says how a provider failed.
type UpstreamError struct {
	Provider string
	KeyName  string // the variable that holds the key; may be empty
	Status   int    // 0: there was no answer
	Code     string // the provider's own; may be empty
	Message  string
	Err      error // the cause, where there was no answer

	temporary  bool
	unreached  bool          // the request was never sent
	retryAfter time.Duration // as the provider asks
	body       []byte        // as it came, for the client; nil: make one
	refusal    []byte        // what it says of a request that it can't take
}

func (e *UpstreamError) Error() string {
	s := "model provider " + e.Provider
	switch {
	case e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden:
		key := "configured key"
		if e.KeyName != "" {
			key = "key in " + e.KeyName
		}
		s += fmt.Sprintf(" refuses the %s (%s): check that it is whole, for this provider, not revoked, and may use the model (uwf setup takes another, uwf doctor tries it)", key, statusText(e.Status))
	case e.Status == http.StatusNotFound && e.Code == "" && e.Message == "":
		s += " has no API at its base URL (404 Not Found): check baseUrl, which ends in /v1 at most servers"
	case e.Status == http.StatusNotFound:
		s += " answers 404 Not Found: check the model's name in the settings (uwf doctor tries it)"
	case e.Status != 0:
		s += " answers " + statusText(e.Status)
	default:
		s += " gives no answer"
	}
	if e.Code != "" {
		s += ", " + e.Code
	}
	if e.Message != "" {
		s += ": " + e.Message
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// statusText names an HTTP status, as in "429 Too Many Requests".
func statusText(status int) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", status, http.StatusText(status)))
}

func (e *UpstreamError) Unwrap() error { return e.Err }

// newTransport is the gateway's own: no proxy from the environment, no
// keep-alives beyond need.
func newTransport(proxy func(*http.Request) (*url.URL, error)) *http.Transport {
	return &http.Transport{
		Proxy:                 proxy,
		DialContext:           (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:   30 * time.Second,
		IdleConnTimeout:       90 * time.Second,
		MaxIdleConnsPerHost:   8,
		ExpectContinueTimeout: time.Second,
		ForceAttemptHTTP2:     true,
	}
}

// wires are the dialects in which a provider is reached, its own first. Anthropic and Google
// have chat completions beside their own.
func (p Provider) wires() []dialect.Dialect {
	switch {
	case len(p.Wires) > 0:
		return p.Wires
	case p.API == Anthropic:
		return []dialect.Dialect{dialect.Messages, dialect.Chat}
	case p.API == Gemini:
		return []dialect.Dialect{dialect.Gemini, dialect.Chat}
	}
	return []dialect.Dialect{dialect.Chat, dialect.Responses}
}

// servesDialect says whether clients of a dialect are answered, by translation or without.
func (p Provider) servesDialect(d dialect.Dialect) bool {
	_, ok := translate.WireFor(p.wires(), d)
	return ok
}

// speaksDialect says whether a provider itself speaks a dialect.
func (p Provider) speaksDialect(d dialect.Dialect) bool { return slices.Contains(p.wires(), d) }

// paths names the paths by which a provider is reached, for messages.
func (p Provider) paths() string {
	return strings.Join(lists.Map(p.wires(), dialect.Dialect.Path), " or ")
}

// endpointURL is the provider's URL of a path like "/v1/messages".
func (p Provider) endpointURL(d dialect.Dialect, path string) string {
	base := strings.TrimRight(p.BaseURL, "/")
	switch {
	case p.API == Anthropic || d == dialect.Gemini:
		return strings.TrimSuffix(base, "/v1") + path
	case p.API == Gemini:
		return base + "/v1beta/openai" + dialect.TrimVersion(path)
	}
	return base + dialect.TrimVersion(path)
}

// headers of a client's request that the provider gets; everything else stays
// here (cookies, the one-time key, names of machine and user).
func forwardedHeaders() []string {
	return []string{"Accept", "Anthropic-Version", "Anthropic-Beta", "Openai-Beta"}
}

// outgoingHeader are the headers for the provider. Which one carries the key depends on
// the dialect that is spoken there.
func (m *Model) outgoingHeader(client http.Header, d dialect.Dialect) http.Header {
	p, h := m.Provider, http.Header{}
	for _, name := range forwardedHeaders() {
		if v := client.Values(name); len(v) > 0 {
			h[name] = v
		}
	}
	if m.Window <= usualWindow {
		withoutLongContext(h)
	}
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", "uwf")
	own := d == dialect.Messages // Anthropic's
	if own && h.Get("Anthropic-Version") == "" {
		h.Set("Anthropic-Version", "2023-06-01")
	}
	switch {
	case p.Key == "":
	case own:
		h.Set("X-Api-Key", p.Key)
	case d == dialect.Gemini:
		h.Set("X-Goog-Api-Key", p.Key)
	default:
		h.Set("Authorization", "Bearer "+p.Key)
	}
	return h
}

// usualWindow is how many tokens Anthropic's models read at their usual price.
const usualWindow = 200_000

// withoutLongContext takes the wish for a larger window than the model is
// configured with out of Anthropic's list of betas: beyond it all tokens cost more.
func withoutLongContext(h http.Header) {
	const name = "Anthropic-Beta"
	var kept []string
	for _, line := range h[name] {
		for beta := range strings.SplitSeq(line, ",") {
			if beta = strings.TrimSpace(beta); beta != "" && !strings.HasPrefix(strings.ToLower(beta), "context-1m") {
				kept = append(kept, beta)
			}
		}
	}
	if delete(h, name); len(kept) > 0 {
		h.Set(name, strings.Join(kept, ","))
	}
}

// copyIncoming copies the provider's headers that are of use to a client. Cookies
// and the names of the account stay here.
func copyIncoming(to, from http.Header) {
	for name, v := range from {
		switch lower := strings.ToLower(name); {
		case lower == "retry-after", lower == "retry-after-ms", lower == "request-id", lower == "x-request-id",
			strings.HasPrefix(lower, "x-ratelimit-"), strings.HasPrefix(lower, "anthropic-ratelimit-"):
			to[name] = v
		}
	}
}

// readFailure reads an answer that is no 200.
func readFailure(p Provider, status int, h http.Header, body []byte, now time.Time) *UpstreamError {
	e := &UpstreamError{Provider: p.Name, KeyName: p.KeyName, Status: status, temporary: isTemporary(status), body: body}
	e.Code, e.Message = dialect.ErrorMessage(body)
	if status == 400 || status == 422 {
		e.refusal = body
	}
	if e.Code == "" && e.Message == "" {
		e.body = nil // no error that a client would understand
	}
	if len(e.Message) > 1000 {
		e.Message = strings.ToValidUTF8(e.Message[:1000], "") + "…"
	}
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		// Such messages quote parts of the key.
		e.Message, e.body = "", nil
	case status < 400:
		e.Message, e.body = "a redirection, which is not followed: correct the base URL", nil
	case e.Code == "insufficient_quota", h.Get("X-Should-Retry") == "false":
		e.temporary = false
	case h.Get("X-Should-Retry") == "true":
		e.temporary = true
	}
	e.retryAfter = outage.RetryAfter(h, now)
	return e
}

// statusOriginTimeout is Cloudflare's: the provider's own server did not answer in
// time.
const statusOriginTimeout = 524

// isTemporary says whether a status may be another one next time. 529 is
// Anthropic's "overloaded"; 520 to 524 come from Cloudflare.
func isTemporary(status int) bool {
	switch status {
	case 408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, statusOriginTimeout, 529:
		return true
	}
	return false
}

// unreachedFor is how long a provider is tried that no request reached: a name or an
// address that is wrong stays wrong.
const unreachedFor = 30 * time.Second

// errTimeout is the cause of a request that the gateway gave up itself.
var errTimeout = errors.New("no answer in time")
