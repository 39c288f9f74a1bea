package setup

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	engine "github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/redact"
)

const key = "not-a-real-key-471108"

func clean(t *testing.T) func(string) string {
	t.Helper()
	red, err := redact.New(redact.Options{Secrets: []redact.Secret{{Name: "key", Value: key}}})
	if err != nil {
		t.Fatal(err)
	}
	return func(s string) string { s, _ = red.String(s); return s }
}

const good = `{"choices":[{"message":{"content":"ok"},"finish_reason":"length"}]}`

// answers is a provider that always answers the same.
func answers(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func openai(msg, code string) string {
	b, _ := json.Marshal(map[string]any{"error": map[string]any{"message": msg, "code": code, "type": "invalid_request_error"}})
	return string(b)
}

// Every way in which a provider can refuse is told from the others, with what to do.
func TestAnswers(t *testing.T) {
	for _, x := range []struct {
		name     string
		provider string
		handler  http.HandlerFunc
		kind     string
		says     []string
	}{
		{"good", "openai", answers(200, good), "", nil},
		{"wrong key", "openai", answers(401, openai("Incorrect API key provided: not-a-re**********1108.", "invalid_api_key")), KindKey, []string{"the key in OPENAI_API_KEY (the environment) (401)", "revoked"}},
		{"token without the right", "github-models", answers(401, `Unauthorized`), KindKey, []string{"models: read"}},
		{"forbidden", "openai", answers(403, openai("Country not supported", "unsupported_country")), KindForbidden, []string{"403", "Country not supported"}},
		{"forbidden, with a part of the key", "openai", answers(403, openai("Key not-a-re***1108 may not do this", "")), KindForbidden, []string{"Key may not do this"}},
		{"forbidden to a token", "github-models", answers(403, `{"error":{"code":"no_access","message":"No access to model"}}`), KindForbidden, []string{"permissions: models: read"}},
		{"no such model", "openai", answers(404, openai("The model `gpt-9` does not exist", "model_not_found")), KindModel, []string{"has no model gpt-4.2", "did you mean --model gpt-4.1?"}},
		{"no such model, as 400", "openrouter", answers(400, openai("gpt-4.2 is not a valid model ID", "")), KindModel, []string{"no model"}},
		{"model that is not pulled", "ollama", answers(404, `{"error":{"message":"model \"gpt-4.2\" not found, try pulling it first","type":"api_error"}}`), KindModel, []string{"ollama pull gpt-4.2"}},
		{"no such path", "custom", answers(404, `404 page not found`), KindPath, []string{"/chat/completions (404)", "ends in /v1"}},
		{"a web page", "custom", answers(200, `<html>hello</html>`, "Content-Type", "text/html"), KindAnswer, []string{"a web page", "ends in /v1"}},
		{"no JSON", "custom", answers(200, `ok`), KindAnswer, []string{"no JSON"}},
		{"other JSON", "custom", answers(200, `{"hello": 1}`), KindAnswer, []string{"no answer of a model"}},
		{"no choices", "custom", answers(200, `{"choices": []}`), KindAnswer, []string{"no answer of a model"}},
		{"nothing", "custom", answers(200, ``), KindAnswer, []string{"no JSON"}},
		{"too much", "custom", answers(200, strings.Repeat("x", 2<<20)), KindAnswer, []string{"more than"}},
		{"an error with 200", "openrouter", answers(200, `{"error":{"message":"No endpoints found","code":404}}`), KindRequest, []string{"No endpoints found"}},
		{"sent on", "custom", answers(301, ``, "Location", "https://elsewhere.example/v1?key="+key), KindPath, []string{"elsewhere.example", "a key is not sent on"}},
		{"too many", "openai", answers(429, openai("Rate limit reached", "rate_limit_exceeded"), "Retry-After", "17"), KindRate, []string{"429", "wait 17 seconds"}},
		{"nothing left", "openai", answers(429, openai("You exceeded your current quota", "insufficient_quota")), KindQuota, []string{"nothing left to spend", "buy credit"}},
		{"payment", "openrouter", answers(402, openai("Insufficient credits", "")), KindQuota, []string{"402"}},
		{"credit balance", "anthropic", answers(400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low"}}`), KindQuota, []string{"nothing left"}},
		{"bad request", "openai", answers(400, openai("messages: wrong \x1b[31m"+key, "")), KindRequest, []string{"400", "[redacted:key]"}},
		{"server", "openai", answers(503, `overloaded`), KindRequest, []string{"503", "later"}},
		{"proxy wants a password", "openai", answers(407, ``), KindRequest, []string{"HTTPS_PROXY"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			mux := http.NewServeMux()
			mux.HandleFunc("/v1/models", answers(200, `{"data":[{"id":"gpt-4.1"},{"id":"other"}]}`))
			mux.HandleFunc("/", x.handler)
			s := httptest.NewServer(mux)
			defer s.Close()
			kind := engine.OpenAI
			base := s.URL + "/v1"
			if x.provider == "anthropic" {
				kind, base = engine.Anthropic, s.URL
			}
			p := Prober{Client: NewClient(s.Client().Transport), Clean: clean(t)}
			err := p.Test(t.Context(), Target{Provider: x.provider, Kind: kind, BaseURL: base, Model: "gpt-4.2", Key: key, KeyName: "OPENAI_API_KEY (the environment)", Chat: true})
			check(t, err, x.kind, x.says)
		})
	}
}

func check(t *testing.T, err error, kind string, says []string) {
	t.Helper()
	var fail *Failure
	if kind == "" {
		if err != nil {
			t.Errorf("error %v", err)
		}
		return
	}
	if !errors.As(err, &fail) || fail.Kind != kind {
		t.Fatalf("error %#v", err)
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("doesn't say %q: %v", s, err)
		}
	}
	if fail.Do == "" {
		t.Errorf("doesn't say what to do: %v", err)
	}
	for _, part := range []string{key, key[:8], key[len(key)-4:], "\x1b"} {
		if strings.Contains(err.Error(), part) {
			t.Errorf("says %q: %v", part, err)
		}
	}
}

// What is sent: the key where the protocol has it, the model, few tokens; with the
// other field where the model knows that alone.
func TestRequests(t *testing.T) {
	for _, x := range []struct {
		t              Target
		path, hdr, val string
		field          string
	}{
		{Target{Kind: engine.OpenAI, Model: "gpt-4.1", Key: key}, "/chat/completions", "Authorization", "Bearer " + key, maxTokens},
		{Target{Kind: engine.OpenAI, Model: "openai/gpt-5.1", Key: key}, "/chat/completions", "Authorization", "Bearer " + key, "retry"},
		{Target{Kind: engine.OpenAI, Model: "new-one", Key: key}, "/chat/completions", "Authorization", "Bearer " + key, "retry"},
		{Target{Kind: engine.OpenAI, Model: "qwen3"}, "/chat/completions", "Authorization", "", maxTokens},
		{Target{Kind: engine.Anthropic, Model: "claude", Key: key}, "/v1/messages", "X-Api-Key", key, maxTokens},
		{Target{Kind: engine.Anthropic, Model: "claude", Key: key, Chat: true}, "/v1/chat/completions", "Authorization", "Bearer " + key, maxTokens},
	} {
		asked := 0
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked++
			var doc map[string]any
			if err := json.NewDecoder(r.Body).Decode(&doc); err != nil {
				t.Error(err)
			}
			want := x.field
			if want == "retry" {
				if want = maxCompletionTokens; asked == 1 {
					answers(400, openai("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", "unsupported_parameter"))(w, r)
					return
				}
			}
			if r.URL.Path != x.path || r.Header.Get(x.hdr) != x.val || doc["model"] != x.t.Model || doc[want] != float64(16) {
				t.Errorf("%+v: %s %q %v", x.t, r.URL.Path, r.Header.Get(x.hdr), doc)
			}
			body := good
			if strings.HasSuffix(x.path, "messages") {
				body = `{"type":"message","content":[]}`
			}
			answers(200, body)(w, r)
		}))
		x.t.BaseURL = s.URL
		if err := (Prober{Client: NewClient(s.Client().Transport), Clean: clean(t)}).Test(t.Context(), x.t); err != nil {
			t.Errorf("%+v: %v", x.t, err)
		}
		s.Close()
	}
}

// Where there is no answer at all.
func TestNoAnswer(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := closed.Addr().String()
	_ = closed.Close()
	plain := httptest.NewServer(answers(200, good))
	defer plain.Close()
	secure := httptest.NewTLSServer(answers(200, good))
	secure.Config.ErrorLog = nil
	defer secure.Close()
	cutting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = c.Close()
		}
	}))
	defer cutting.Close()
	refusing := httptest.NewServer(answers(http.StatusForbidden, "no"))
	defer refusing.Close()
	via := func(address string) func(*http.Request) (*url.URL, error) {
		return func(*http.Request) (*url.URL, error) { return url.Parse(address) }
	}
	nowhere := func(err error) http.RoundTripper {
		return &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, err }}
	}
	otherName := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: secure.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "other.example"}}
	gone := []string{"refused", "ollama is not running", "no way", "unknown certificate", "another name's certificate", "no TLS", "proxy is not there"}
	for _, x := range []struct {
		name, provider, base string
		transport            http.RoundTripper
		proxy                func(*http.Request) (*url.URL, error)
		kind                 string
		says                 []string
	}{
		{"refused", "custom", "http://" + refused, nil, nil, KindUnreachable, []string{refused + " can't be reached", "refused"}},
		{"ollama is not running", "ollama", "http://" + refused, nil, nil, KindUnreachable, []string{"ollama serve"}},
		{"unknown name", "custom", "https://api.opnai.example", nowhere(&net.DNSError{Err: "no such host", Name: "api.opnai.example", IsNotFound: true}), nil, KindUnreachable, []string{"api.opnai.example: no such host", "slip of the finger"}},
		{"silent name server", "custom", "https://api.example", nowhere(&net.DNSError{Err: "timeout", Name: "api.example", IsTimeout: true}), nil, KindUnreachable, []string{"timeout"}},
		{"silent", "custom", "https://api.example", nowhere(context.DeadlineExceeded), nil, KindUnreachable, []string{"did not answer"}},
		{"no way", "custom", "https://api.example", nowhere(&net.OpError{Op: "dial", Err: errors.New("network is unreachable")}), nil, KindUnreachable, []string{"network is unreachable"}},
		{"cut off", "custom", cutting.URL, nil, nil, KindUnreachable, []string{"EOF"}},
		{"unknown certificate", "custom", secure.URL, &http.Transport{}, nil, KindUnreachable, []string{"signed by unknown authority", "SSL_CERT_FILE"}},
		{"another name's certificate", "custom", secure.URL, otherName, nil, KindUnreachable, []string{"not other.example"}},
		{"no TLS", "custom", strings.Replace(plain.URL, "http", "https", 1), &http.Transport{}, nil, KindUnreachable, []string{"server gave HTTP response", "http://"}},
		{"TLS where none is expected", "custom", strings.Replace(secure.URL, "https", "http", 1), nil, nil, KindRequest, []string{"HTTP request to an HTTPS server"}},
		{"proxy is not there", "custom", "https://api.example", nil, via("http://" + refused), KindUnreachable, []string{"HTTPS_PROXY", "NO_PROXY"}},
		{"proxy refuses", "custom", "https://api.example", nil, via(refusing.URL), KindUnreachable, []string{"Forbidden", "NO_PROXY"}},
		{"no address", "custom", "http://[", nil, nil, KindAddress, []string{"is no address"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			transport := x.transport
			if transport == nil {
				transport = &http.Transport{Proxy: x.proxy}
			}
			p := Prober{Client: NewClient(transport), Clean: clean(t)}
			target := Target{Provider: x.provider, Kind: engine.OpenAI, BaseURL: x.base, Model: "m", Key: key, KeyName: "K"}
			check(t, p.Test(t.Context(), target), x.kind, x.says)
			// A run begins where that may pass by itself, and not where it can't.
			if err := p.Reach(t.Context(), target); slices.Contains(gone, x.name) {
				check(t, err, x.kind, x.says)
			} else if err != nil {
				t.Errorf("a run would be refused: %v", err)
			}
		})
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupted"))
	if err := (Prober{Client: NewClient(nil), Clean: clean(t)}).Test(ctx, Target{BaseURL: plain.URL}); err == nil || err.Error() != "interrupted" {
		t.Errorf("interrupted: %v", err)
	}
}

// A server that never ends its answer does not hold the test up for good: the
// client's deadline counts for the body too.
func TestSlowBody(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = fmt.Fprint(w, "{")
		w.(http.Flusher).Flush()
		cancel(errors.New("enough"))
		<-r.Context().Done()
	}))
	defer s.Close()
	if err := (Prober{Client: NewClient(s.Client().Transport), Clean: clean(t)}).Test(ctx, Target{BaseURL: s.URL}); err == nil || err.Error() != "enough" {
		t.Errorf("error %v", err)
	}
}

// TestReachOllama: only a list of models says that one is not there, and Ollama takes names in any case.
func TestReachOllama(t *testing.T) {
	for body, missing := range map[string]bool{
		`{"data": [{"id": "small:latest"}]}`: true,
		`{"data": []}`:                       true,
		`{"data": [{"id": "m:latest"}]}`:     false,
		`{"data": [{"id": "M"}]}`:            false,
		"<html>models</html>":                false,
		`{"data": [{"id": "small`:            false,
		"":                                   false,
	} {
		srv := httptest.NewServer(answers(http.StatusOK, body))
		err := Prober{Client: NewClient(nil), Clean: clean(t)}.Reach(t.Context(), Target{Provider: ollama, BaseURL: srv.URL, Model: "m"})
		srv.Close()
		if (err != nil) != missing || missing && !strings.Contains(err.Error(), "ollama pull m") {
			t.Errorf("%s: %v", body, err)
		}
	}
}
