package setup

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/output"
	engine "github.com/united-workforce/uwf/engine/config"
)

// Failure says why a provider can't be asked, and what to do. It holds nothing of
// the key.
type Failure struct {
	Kind   string // one of the Kind… below
	Status int    // of HTTP; 0: there was no answer
	What   string
	Do     string
}

func (e *Failure) Error() string {
	if e.Do == "" {
		return e.What
	}
	return e.What + "; " + e.Do
}

// The kinds of failures.
const (
	KindAddress     = "address"     // it is none
	KindDNS         = "dns"         // the host's name is not known
	KindRefused     = "refused"     // nothing listens there
	KindUnreachable = "unreachable" // no way to it, or the connection broke
	KindTLS         = "tls"         // the certificate, or no TLS at all
	KindProxy       = "proxy"       // between here and there
	KindTimeout     = "timeout"     // no answer in time
	KindKey         = "key"         // 401
	KindForbidden   = "forbidden"   // 403
	KindPath        = "path"        // 404 of the address, or it redirects
	KindModel       = "model"       // 404 of the model
	KindRate        = "rate"        // 429
	KindQuota       = "quota"       // 429 or 402: nothing is left to spend
	KindRequest     = "request"     // 400 and the like
	KindServer      = "server"      // 5xx
	KindAnswer      = "answer"      // not what a model answers
	kindLimitField  = "limit field" // 400: the model knows another field
)

func baseAdvice(t Target) string {
	if t.Kind == engine.Anthropic {
		return "check " + t.addressBy() + ": for Anthropic's protocol it ends before /v1, as in https://api.anthropic.com"
	}
	return "check " + t.addressBy() + ": it usually ends in /v1, as in https://api.openai.com/v1"
}

// explainUnreached explains why there was no answer.
func (p Prober) explainUnreached(t Target, req *http.Request, err error) *Failure {
	host := req.URL.Host
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case p.isProxyError(req, err):
		return &Failure{Kind: KindProxy, What: fmt.Sprintf("the proxy on the way to %s does not work: %s", host, p.cleanWords(rootCause(err).Error())),
			Do: "check HTTPS_PROXY and HTTP_PROXY, or add the host to NO_PROXY"}
	case errors.As(err, &dns) && !dns.IsTimeout:
		return &Failure{Kind: KindDNS, What: fmt.Sprintf("the name %s is not known (DNS)", dns.Name), Do: "check " + t.addressBy() + " for a slip of the finger, and the network"}
	case isTLS(err):
		return p.explainTLS(t, host, err)
	case errors.Is(err, syscall.ECONNREFUSED):
		do := "check the address and the port, and that the server runs"
		if t.Provider == ollama {
			do = "start it (ollama serve), or say where it listens with " + t.addressBy()
		}
		return &Failure{Kind: KindRefused, What: fmt.Sprintf("nothing listens on %s: the connection was refused", host), Do: do}
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &op) && op.Timeout(), errors.As(err, &dns):
		return &Failure{Kind: KindTimeout, What: fmt.Sprintf("%s did not answer within %s", host, probeTime), Do: "check the address, the network and a firewall; a model on this machine may still be loading: try again"}
	}
	return &Failure{Kind: KindUnreachable, What: fmt.Sprintf("%s can't be reached: %s", host, p.cleanWords(rootCause(err).Error())), Do: "check the network and the address"}
}

// rootCause is the innermost error: the outer ones repeat the address.
func rootCause(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}

// isProxyError says whether an error is one of the proxy on the way.
func (p Prober) isProxyError(req *http.Request, err error) bool {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Op == "proxyconnect"
	}
	if p.Proxy == nil || isTLS(err) || errors.Is(err, context.DeadlineExceeded) || req.URL.Scheme != "https" {
		return false
	}
	// What a proxy says to CONNECT comes as the bare text of its status.
	via, perr := p.Proxy(req)
	return perr != nil || via != nil
}

func isTLS(err error) bool {
	var record tls.RecordHeaderError
	var verify *tls.CertificateVerificationError
	var alert tls.AlertError
	return errors.As(err, &record) || errors.As(err, &verify) || errors.As(err, &alert) || errors.Is(err, http.ErrSchemeMismatch)
}

func (p Prober) explainTLS(t Target, host string, err error) *Failure {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var record tls.RecordHeaderError
	f := &Failure{Kind: KindTLS, What: fmt.Sprintf("no secure connection to %s: %s", host, p.cleanWords(rootCause(err).Error())), Do: "check the address"}
	switch {
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		f.What, f.Do = fmt.Sprintf("%s does not speak TLS", host), "write http:// if that server is on this machine; a key should not go anywhere else without TLS"
	case errors.As(err, &unknown):
		f.What = fmt.Sprintf("the certificate of %s is signed by nobody whom this machine trusts", host)
		f.Do = "is something between here and there, as in companies? Then let SSL_CERT_FILE name its certificate"
	case errors.As(err, &name):
		f.What, f.Do = fmt.Sprintf("the certificate of %s is for another name", host), "check "+t.addressBy()
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		f.What, f.Do = fmt.Sprintf("the certificate of %s has expired, or this machine's clock is wrong", host), "check the clock"
	}
	return f
}

// explainRefused explains an answer that is no success.
func (p Prober) explainRefused(t Target, res answer) *Failure {
	said, code := serverWords(res.body)
	f := &Failure{Status: res.status}
	lower := strings.ToLower(code + " " + said)
	switch {
	case res.status == http.StatusUnauthorized:
		p.wrongKey(t, f)
	case res.status == http.StatusForbidden:
		f.Kind, f.What = KindForbidden, p.quoteServer(t, "does not allow this (403)", said)
		f.Do = "check what the key may do, and whether the account may use " + t.Model
		if t.Provider == githubModels {
			f.Do = "give the token the right to read models: permissions: models: read in a job, the Models permission of a personal token"
		}
	case res.status == http.StatusPaymentRequired, strings.Contains(lower, "insufficient_quota"), strings.Contains(lower, "credit balance"), strings.Contains(lower, "exceeded your current quota"):
		f.Kind, f.What = KindQuota, p.quoteServer(t, fmt.Sprintf("took the key, but there is nothing left to spend (%d)", res.status), said)
		f.Do = "buy credit or raise the limit in the provider's console, or choose another provider"
	case res.status == http.StatusTooManyRequests:
		f.Kind, f.What = KindRate, p.quoteServer(t, "has had too many requests (429)", said)
		f.Do = "the key works: wait" + retryAfter(res.retryAfter) + " and run it again, or leave the test out with --no-test"
	case p.isLimitField(lower):
		f.Kind, f.What = kindLimitField, p.quoteServer(t, "refused the request", said)
	case res.status == http.StatusBadRequest && said == "" && bytes.Contains(res.body, []byte("HTTPS")):
		f.Kind, f.What, f.Do = KindTLS, fmt.Sprintf("%s speaks TLS only", t.BaseURL), "write https:// instead of http://"
	case aboutModel(res.status, lower):
		f.Kind, f.What = KindModel, p.quoteServer(t, "has no model "+t.Model, said)
		f.Do = "choose another with " + t.modelBy() + " NAME"
		if t.Provider == ollama {
			f.Do = "pull it first: ollama pull " + t.Model
		}
	case res.status == http.StatusNotFound, res.status == http.StatusMethodNotAllowed:
		f.Kind, f.What, f.Do = KindPath, fmt.Sprintf("there is nothing at %s (%d)", t.pageURL(t.chatPage()), res.status), baseAdvice(t)
	case res.status >= 300 && res.status < 400:
		f.Kind, f.What = KindPath, fmt.Sprintf("%s sends on to another address (%d): %s", t.pageURL(t.chatPage()), res.status, p.cleanWords(res.location))
		f.Do = "give the address itself with " + t.addressBy() + "; a key is not sent on"
	case res.status == http.StatusProxyAuthRequired:
		f.Kind, f.What, f.Do = KindProxy, "the proxy wants a user and a password (407)", "put them into HTTPS_PROXY, or add the host to NO_PROXY"
	case res.status >= 500:
		f.Kind, f.What, f.Do = KindServer, p.quoteServer(t, fmt.Sprintf("has a problem of its own (%d)", res.status), said), "try again later"
	default:
		f.Kind, f.What, f.Do = KindRequest, p.quoteServer(t, fmt.Sprintf("refused the request (%d)", res.status), said), "check the model and the address"
	}
	return f
}

func (p Prober) wrongKey(t Target, f *Failure) {
	f.Kind = KindKey
	// What the server says is not repeated: some say parts of the key.
	if t.Key == "" {
		f.What, f.Do = fmt.Sprintf("%s wants a key (401)", t.Provider), "give one: "+cmp.Or(t.KeyBy, "--api-key-env NAME, or --api-key - and the key on stdin")
		return
	}
	f.What = fmt.Sprintf("%s does not take the key in %s (401)", t.Provider, t.KeyName)
	f.Do = "check that it is whole, for this provider, and not revoked"
	if t.Provider == githubModels {
		f.Do += "; a job's token needs permissions: models: read"
	}
}

func (p Prober) isLimitField(said string) bool {
	return strings.Contains(said, maxCompletionTokens) || strings.Contains(said, "unsupported parameter") && strings.Contains(said, maxTokens)
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
		return "", ""
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
	models := p.listModels(ctx, t)
	if near := app.Near(t.Model, models); len(near) > 0 {
		f.Do = fmt.Sprintf("did you mean %s %s? %s", t.modelBy(), near[0], f.Do)
		return
	}
	if len(models) > 0 {
		f.Do += ": there are " + output.Line(p.Clean(strings.Join(models[:min(len(models), 5)], ", ")), 200)
		if len(models) > 5 {
			f.Do += fmt.Sprintf(" and %d more", len(models)-5)
		}
	}
}

const (
	ollama       = "ollama"
	githubModels = "github-models"
	custom       = "custom"
)
