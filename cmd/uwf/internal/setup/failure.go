package setup

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	engine "github.com/united-workforce/uwf/engine/config"
)

// Failure says why a provider can't be asked, and what to do. It holds nothing of
// the key.
type Failure struct {
	Kind string // one of the Kind… below
	What string
	Do   string

	cause error // of what never came to an answer
}

func (e *Failure) Error() string { return e.What + "; " + e.Do }

// The kinds of failures.
const (
	KindAddress     = "address"     // it is none
	KindUnreachable = "unreachable" // no way to it: its name, the connection, TLS, a proxy
	KindKey         = "key"         // 401
	KindForbidden   = "forbidden"   // 403
	KindPath        = "path"        // 404 of the address, or it redirects
	KindModel       = "model"       // 404 of the model
	KindRate        = "rate"        // 429
	KindQuota       = "quota"       // 429 or 402: nothing is left to spend
	KindRequest     = "request"     // any other refusal
	KindAnswer      = "answer"      // not what a model answers
	kindLimitField  = "limit field" // 400: the model knows another field
)

func baseAdvice(t Target) string {
	if t.Kind == engine.Anthropic {
		return "check " + t.addressBy() + ": for Anthropic's protocol it ends before /v1, as in https://api.anthropic.com"
	}
	if t.Kind == engine.Gemini {
		return "check " + t.addressBy() + ": for Google's protocol it ends before /v1beta, as in https://generativelanguage.googleapis.com"
	}
	return "check " + t.addressBy() + ": it usually ends in /v1, as in https://api.openai.com/v1"
}

// explainUnreached explains why there was no answer.
func (p Prober) explainUnreached(t Target, req *http.Request, err error) *Failure {
	cause := rootCause(err)
	f := &Failure{Kind: KindUnreachable, cause: err, What: fmt.Sprintf("%s can't be reached: %s", req.URL.Host, p.cleanWords(cause.Error())),
		Do: "check " + t.addressBy() + " for a slip of the finger, the network, a firewall, and HTTPS_PROXY or NO_PROXY where there is a proxy"}
	var op *net.OpError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED) && t.Provider == ollama:
		f.Do = "start it (ollama serve), or say where it listens with " + t.addressBy()
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &op) && op.Timeout():
		f.What = fmt.Sprintf("%s did not answer within %s", req.URL.Host, probeTime)
		f.Do += "; a model on this machine may still be loading: try again"
	case errors.As(err, new(*tls.CertificateVerificationError)):
		f.Do = "check " + t.addressBy() + " and this machine's clock; where something between here and there has a certificate of its own, as in companies, let SSL_CERT_FILE name it"
	case errors.Is(err, http.ErrSchemeMismatch):
		f.Do = "write http:// if that server is on this machine; a key should not go anywhere else without TLS"
	}
	return f
}

// rootCause is the innermost error: the outer ones repeat the address.
func rootCause(err error) error {
	for next := err; next != nil; next = errors.Unwrap(next) {
		err = next
	}
	return err
}

// explainRefused explains an answer that is no success.
func (p Prober) explainRefused(t Target, res answer) *Failure {
	said, code := serverWords(res.body)
	lower := strings.ToLower(code + " " + said)
	f := &Failure{Kind: KindRequest, Do: "check the model and the address"}
	what := "refused the request"
	switch {
	case res.status == http.StatusUnauthorized:
		return t.explainKey()
	case res.status == http.StatusForbidden:
		f.Kind, what, f.Do = KindForbidden, "does not allow this", "check what the key may do, and whether the account may use "+t.Model
		if t.Provider == githubModels {
			f.Do = "give the token the right to read models: permissions: models: read in a job, the Models permission of a personal token"
		}
	case res.status == http.StatusPaymentRequired, strings.Contains(lower, "insufficient_quota"), strings.Contains(lower, "credit balance"), strings.Contains(lower, "exceeded your current quota"):
		f.Kind, what, f.Do = KindQuota, "took the key, but there is nothing left to spend", "buy credit or raise the limit in the provider's console, or choose another provider"
	case res.status == http.StatusTooManyRequests:
		f.Kind, what, f.Do = KindRate, "has had too many requests", "the key works: wait"+retryAfter(res.retryAfter)+" and run it again, or leave the test out with --no-test"
	case strings.Contains(lower, maxCompletionTokens), strings.Contains(lower, "unsupported parameter") && strings.Contains(lower, maxTokens):
		f.Kind = kindLimitField
	case aboutModel(res.status, lower):
		f.Kind, what, f.Do = KindModel, "has no model "+t.Model, "choose another with "+t.modelBy()+" NAME"
		if t.Provider == ollama {
			f.Do = "pull it first: ollama pull " + t.Model
		}
	case res.status == http.StatusNotFound, res.status == http.StatusMethodNotAllowed:
		return &Failure{Kind: KindPath, What: fmt.Sprintf("there is nothing at %s (%d)", t.pageURL(t.chatPage()), res.status), Do: baseAdvice(t)}
	case res.status >= 300 && res.status < 400:
		return &Failure{Kind: KindPath, What: fmt.Sprintf("%s sends on to another address (%d): %s", t.pageURL(t.chatPage()), res.status, p.cleanWords(res.location)),
			Do: "give the address itself with " + t.addressBy() + "; a key is not sent on"}
	case res.status == http.StatusProxyAuthRequired:
		what, f.Do = "could not be reached through the proxy, which wants a user and a password", "put them into HTTPS_PROXY, or add the host to NO_PROXY"
	case res.status >= 500:
		what, f.Do = "has a problem of its own", "try again later"
	}
	f.What = p.quoteServer(t, fmt.Sprintf("%s (%d)", what, res.status), said)
	return f
}

// explainKey explains an answer that takes no key, or not this one. What the server says is
// not repeated: some say parts of the key.
func (t Target) explainKey() *Failure {
	if t.Key == "" {
		return &Failure{Kind: KindKey, What: t.Provider + " wants a key (401)", Do: "give one: " + cmp.Or(t.KeyBy, "--api-key-env NAME, or --api-key - and the key on stdin")}
	}
	f := &Failure{Kind: KindKey, What: fmt.Sprintf("%s does not take the key in %s (401)", t.Provider, t.KeyName), Do: "check that it is whole, for this provider, and not revoked"}
	if t.Provider == githubModels {
		f.Do += "; a job's token needs permissions: models: read"
	}
	return f
}

func aboutModel(status int, said string) bool {
	if status != http.StatusNotFound && status != http.StatusBadRequest && status != http.StatusUnprocessableEntity {
		return false
	}
	return strings.Contains(said, "model_not_found") || strings.Contains(said, "unknown_model") ||
		strings.Contains(said, "model") && (strings.Contains(said, "not found") || strings.Contains(said, "does not exist") ||
			strings.Contains(said, "not_found") || strings.Contains(said, "not a valid model") || strings.Contains(said, "unknown model"))
}

func retryAfter(seconds string) string {
	if seconds == "" || len(seconds) > 9 || strings.Trim(seconds, "0123456789") != "" {
		return ""
	}
	return " " + seconds + " seconds"
}

// serverWords are the message and the code in an error's body.
func serverWords(body []byte) (message, code string) {
	var doc struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
	}
	if json.Unmarshal(body, &doc) != nil {
		if body = bytes.TrimSpace(body); bytes.HasPrefix(body, []byte("<")) {
			return "", "" // a web page
		}
		return string(body), ""
	}
	var inner struct {
		Message string `json:"message"`
		Code    any    `json:"code"`
		Type    string `json:"type"`
	}
	var text string
	switch {
	case json.Unmarshal(doc.Error, &inner) == nil:
		code, _ = inner.Code.(string)
		return inner.Message, code + " " + inner.Type
	case json.Unmarshal(doc.Error, &text) == nil:
		return text, ""
	}
	return doc.Message, ""
}

// quoteServer puts a server's words behind our own.
func (p Prober) quoteServer(t Target, what, said string) string {
	if said = p.cleanWords(said); said == "" {
		return t.Provider + " " + what
	}
	return fmt.Sprintf("%s %s: %q", t.Provider, what, said)
}

// cleanWords makes a server's text fit to be shown: one line, without secrets, and
// without words that were half hidden already.
func (p Prober) cleanWords(s string) string {
	s = output.Line(p.Clean(s), 200)
	fields := slices.DeleteFunc(strings.Fields(s), func(w string) bool { return strings.Contains(w, "***") })
	return strings.Join(fields, " ")
}

// suggestModels looks for models with a name that is near.
func (p Prober) suggestModels(ctx context.Context, t Target, f *Failure) {
	f.nameModels(p, t, p.listModels(ctx, t))
}

// nameModels names models that there are, in place of one that there is not.
func (e *Failure) nameModels(p Prober, t Target, models []string) {
	if near := app.SuggestNames(t.Model, models); len(near) > 0 {
		e.Do = fmt.Sprintf("did you mean %s %s? %s", t.modelBy(), near[0], e.Do)
		return
	}
	if len(models) > 0 {
		e.Do += ": there are " + output.Line(p.Clean(strings.Join(models[:min(len(models), 5)], ", ")), 200)
		if len(models) > 5 {
			e.Do += fmt.Sprintf(" and %d more", len(models)-5)
		}
	}
}

const (
	ollama       = "ollama"
	githubModels = "github-models"
	custom       = "custom"
)
