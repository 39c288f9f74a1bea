package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/united-workforce/uwf/gitcas/wire/internal/fault"
	"github.com/united-workforce/uwf/internal/outage"
)

// httpTransport speaks the smart HTTP protocol (gitprotocol-http(5)).
type httpTransport struct {
	o      Options
	client *http.Client
	shown  string

	base *url.URL

	mu   sync.Mutex
	user string
	pass string
	have bool // user and pass are known
}

func newHTTPTransport(u *url.URL, o Options) (*httpTransport, error) {
	if u.Hostname() == "" {
		return nil, fmt.Errorf("%w: no host", fault.ErrInvalid)
	}
	base := *u
	t := &httpTransport{o: o, base: &base, shown: CleanURL(u.String())}
	if pass, ok := u.User.Password(); ok && o.BasicAuth == nil {
		t.user, t.pass, t.have = u.User.Username(), pass, true
	}
	base.User, base.RawQuery, base.Fragment = nil, "", ""
	base.Path, base.RawPath = strings.TrimRight(base.Path, "/"), strings.TrimRight(base.RawPath, "/")
	client := *o.HTTPClient
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	t.client = &client
	return t, nil
}

func (t *httpTransport) URL() string { return t.shown }

// maxRedirects bounds how often one call is sent elsewhere.
const maxRedirects = 3

func (t *httpTransport) Exchange(ctx context.Context, c Call) (*Answer, error) {
	// A person may have to type them: a server's silence is counted from then on.
	if _, _, err := t.askCredentials(ctx); err != nil {
		return nil, t.hidePassword(err)
	}
	if err := c.makeBody(nil); err != nil {
		return nil, err
	}
	w := newWatch(ctx, t.o)
	a, err := t.sendCall(w, c)
	if err != nil {
		err = w.explainBreak(err)
		w.stopWatch()
		return nil, t.hidePassword(err)
	}
	return a, nil
}

func (t *httpTransport) sendCall(w *watch, c Call) (*Answer, error) {
	base := t.base
	for range maxRedirects + 1 {
		resp, err := t.sendRequest(w, c, base) //nolint:bodyclose // accept hands it on to the answer, which closes it
		if err != nil {
			return nil, err
		}
		if resp.StatusCode < 300 || resp.StatusCode > 399 {
			return t.acceptResponse(w, c, resp)
		}
		base, err = followRedirect(base, c, resp)
		discardBody(resp.Body)
		if err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%w: redirected more than %d times", fault.ErrUnreadable, maxRedirects)
}

// callURL is the URL of a call below the repository's.
func callURL(base *url.URL, c Call) *url.URL {
	if !c.Advert {
		return base.JoinPath(c.Service)
	}
	u := base.JoinPath("info", "refs")
	u.RawQuery = "service=" + c.Service
	return u
}

// followRedirect gives the repository's new URL. Only the same host is followed,
// never from https down to http: credentials and pushes go nowhere else.
func followRedirect(base *url.URL, c Call, resp *http.Response) (*url.URL, error) {
	to, err := resp.Location()
	if err != nil {
		return nil, fmt.Errorf("%w: status %s without a valid Location", fault.ErrUnreadable, resp.Status)
	}
	same := to.Scheme == base.Scheme && to.Host == base.Host
	upgrade := base.Scheme == "http" && to.Scheme == "https" && to.Hostname() == base.Hostname()
	if !same && !upgrade {
		return nil, fmt.Errorf("%w: the server redirects to another host, %s: if that is right, use that address", fault.ErrDenied, CleanURL(to.String()))
	}
	tail := strings.TrimPrefix(callURL(base, c).Path, base.Path)
	path, ok := strings.CutSuffix(to.Path, tail)
	if !ok {
		return nil, fmt.Errorf("%w: the server redirects to %s, which is no git repository", fault.ErrUnreadable, CleanURL(to.String()))
	}
	return &url.URL{Scheme: to.Scheme, Host: to.Host, Path: path}, nil
}

func (t *httpTransport) sendRequest(w *watch, c Call, base *url.URL) (*http.Response, error) {
	method, body := http.MethodPost, func() (io.ReadCloser, error) {
		return io.NopCloser(&watched{bytes.NewReader(c.made), w}), nil
	}
	if c.Advert {
		method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(w.ctx, method, callURL(base, c).String(), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("%w: no valid URL", fault.ErrInvalid)
	}
	if !c.Advert {
		req.Body, _ = body()
		req.GetBody = body
		req.ContentLength = int64(len(c.made))
		req.Header.Set("Content-Type", "application/x-"+c.Service+"-request")
		req.Header.Set("Accept", "application/x-"+c.Service+"-result")
	}
	if c.Service == UploadPack {
		// Reading twice does no harm: lets the client try again when a kept
		// connection turns out to be closed. (The header itself is not sent.)
		req.Header["Idempotency-Key"] = []string{}
	}
	if c.V2 {
		req.Header.Set("Git-Protocol", "version=2")
	}
	req.Header.Set("User-Agent", Agent)
	user, pass, err := t.askCredentials(w.ctx)
	if err != nil {
		return nil, err
	}
	if pass != "" {
		req.SetBasicAuth(user, pass)
	}
	resp, err := t.client.Do(req)
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err // without the method and the URL, which the caller adds
		}
		return nil, fault.Dialing(err)
	}
	return resp, nil
}

// askCredentials asks for them once, and waits as long as for a call in all.
func (t *httpTransport) askCredentials(ctx context.Context) (user, pass string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.have || t.o.BasicAuth == nil {
		return t.user, t.pass, nil
	}
	asking, cancel := context.WithTimeout(ctx, t.o.Total)
	defer cancel()
	user, pass, err = t.o.BasicAuth(asking)
	if err != nil && asking.Err() != nil && ctx.Err() == nil {
		return "", "", fmt.Errorf("%w: nobody gave credentials within %s", fault.ErrDenied, t.o.Total)
	}
	if err != nil {
		return "", "", fmt.Errorf("%w: no credentials: %w", fault.ErrDenied, err)
	}
	t.user, t.pass, t.have = user, pass, true
	return user, pass, nil
}

// hidePassword keeps the password out of an error, whoever put it there.
func (t *httpTransport) hidePassword(err error) error {
	t.mu.Lock()
	pass := t.pass
	t.mu.Unlock()
	if len(pass) < 4 || !strings.Contains(err.Error(), pass) {
		return err
	}
	return fmt.Errorf("%w: %s", fault.KindOf(err), strings.ReplaceAll(err.Error(), pass, "***"))
}

// acceptResponse turns a response into an answer, or into what its status says.
func (t *httpTransport) acceptResponse(w *watch, c Call, resp *http.Response) (*Answer, error) {
	body := &watched{resp.Body, w}
	if err := t.checkStatus(c, resp, body); err != nil {
		discardBody(resp.Body)
		return nil, err
	}
	want := "application/x-" + c.Service + "-result"
	if c.Advert {
		want = "application/x-" + c.Service + "-advertisement"
	}
	if got, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); got != want {
		discardBody(resp.Body)
		return nil, fmt.Errorf("%w: the server answers with %q and not with git's protocol", fault.ErrUnreadable, fault.OneLine(resp.Header.Get("Content-Type")))
	}
	at, err := http.ParseTime(resp.Header.Get("Date"))
	guessed := err != nil
	if guessed {
		at = t.o.Now()
	}
	return &Answer{Reader: body, At: at, Guessed: guessed, Finish: func(err error) error {
		if err == nil {
			drainReader(body)
		}
		err = w.explainBreak(err)
		w.stopWatch()
		cerr := resp.Body.Close()
		if err == nil && cerr != nil && c.Service == UploadPack {
			return fault.Reading(cerr)
		}
		if err != nil {
			return t.hidePassword(err)
		}
		return nil
	}}, nil
}

// checkStatus gives an error for every status but 200.
func (t *httpTransport) checkStatus(c Call, resp *http.Response, body io.Reader) error {
	code := resp.StatusCode
	if code == http.StatusOK {
		return nil
	}
	detail := fmt.Sprintf("HTTP status %s", fault.OneLine(resp.Status))
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind == "text/plain" {
		text, _ := io.ReadAll(io.LimitReader(body, 2048))
		if s := fault.OneLine(string(text)); s != "" {
			detail += ": " + s
		}
	}
	kind := fault.ErrUnreadable
	switch {
	case code == http.StatusUnauthorized:
		t.mu.Lock()
		asked := t.pass != ""
		if t.o.BasicAuth != nil {
			t.have = false // it may give others next time
		}
		t.mu.Unlock()
		if !asked {
			detail += " (no credentials were given)"
		}
		kind = fault.ErrDenied
	case hookSaysNo(c, detail):
		kind = fault.ErrProtected
	case code == http.StatusTooManyRequests, code == http.StatusRequestTimeout, code >= 500 && code != http.StatusNotImplemented,
		code == http.StatusForbidden && resp.Header.Get("Retry-After") != "":
		err := fmt.Errorf("%w: %s", fault.ErrUnreachable, detail)
		return &fault.LaterError{After: outage.RetryAfter(resp.Header, t.o.Now()), Err: err}
	case code == http.StatusForbidden:
		kind = fault.ErrDenied
	case code == http.StatusNotFound, code == http.StatusGone:
		kind = fault.ErrNotFound
	case code == http.StatusRequestEntityTooLarge:
		kind, detail = fault.ErrTooLarge, fmt.Sprintf("the push of %d bytes is too large for the server: %s", len(c.made), detail)
	case code >= 400:
		kind = fault.ErrRefused
	}
	return fmt.Errorf("%w: %s", kind, detail)
}

// hookSaysNo reports whether a server's error is that a hook of its refuses a push: it
// would again.
func hookSaysNo(c Call, detail string) bool {
	return c.Service == ReceivePack && strings.Contains(detail, "hook declined")
}

// drainMax is how much of an answer is read after its end, so that the
// connection can be used again.
const drainMax = 4 << 10

func drainReader(r io.Reader) { _, _ = io.CopyN(io.Discard, r, drainMax) }

func discardBody(b io.ReadCloser) {
	drainReader(b)
	_ = b.Close()
}
