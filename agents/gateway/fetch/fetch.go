// Package fetch gets pages of the web for agents, from the gateway's process: https GET of
// hosts that are listed, from addresses of the public internet. An agent chooses the URL, and
// whoever answers is not trusted either: the name is resolved once, every address of it is
// checked, and a checked one is dialled; each redirection goes through all of it again. No
// cookies, no keys, no other headers are sent, and what comes back is bounded text.
package fetch

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/united-workforce/uwf/agents/gateway"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/text"
)

// Path is where a gateway serves a Fetcher, and EnvHosts the variable that tells agents so:
// the hosts that it may be asked for, with commas between them.
const (
	Path     = "/fetch"
	EnvHosts = "UWF_FETCH_HOSTS"
)

// Tool is what the builtin agent calls it; recordings are known by that.
const Tool = "fetch_url"

// Limits.
const (
	MaxURL       = 2 << 10   // bytes of an URL
	maxRedirects = 5         // that are followed
	maxBody      = 1 << 20   // bytes that are read of an answer, unpacked
	maxText      = 256 << 10 // bytes of text that are given
	fetchTime    = 30 * time.Second
)

// Options of a Fetcher. Hosts is what is allowed; the rest may be left out, and is there
// for what stands between uwf and the net, and for tests.
type Options struct {
	// Hosts are names (docs.example.com), names below a name (*.example.com), or "*" for
	// every one.
	Hosts []string
	// Proxy says which proxy a request would have to go through; nil: none does. Through a
	// proxy nothing is fetched: the proxy would choose the address.
	Proxy   func(*http.Request) (*url.URL, error)
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	Dial    func(ctx context.Context, network, address string) (net.Conn, error)
	TLS     *tls.Config
	// Limit gives one fetch, all its redirections included, its time. Nil: 30 seconds.
	Limit func(context.Context) (context.Context, context.CancelFunc)
}

// Fetcher fetches pages. It implements gateway.Side: a question is {"url": …}, and the
// answer a Result.
type Fetcher struct{ o Options }

var _ gateway.Side = (*Fetcher)(nil)

// New makes a Fetcher.
func New(o Options) *Fetcher {
	if o.Resolve == nil {
		o.Resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{Timeout: 10 * time.Second}).DialContext
	}
	if o.Limit == nil {
		o.Limit = func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeoutCause(ctx, fetchTime, fmt.Errorf("it took longer than %s", fetchTime))
		}
	}
	return &Fetcher{o}
}

// Result is what came of a fetch, as JSON. Either Error is set, or the others are.
type Result struct {
	URL    string `json:"url,omitempty"` // that answered, after redirections
	Status int    `json:"status,omitempty"`
	Type   string `json:"type,omitempty"` // media type, without parameters
	Text   string `json:"text,omitempty"`
	Cut    bool   `json:"cut,omitempty"` // there is more than Text has
	Error  string `json:"error,omitempty"`
}

// Question is what an agent asks.
type Question struct {
	URL string `json:"url"`
}

// AnswerSide implements gateway.Side.
func (f *Fetcher) AnswerSide(ctx context.Context, body []byte, keep gateway.Keep) gateway.SideReply {
	var q Question
	if err := node.DecodeJSON(body, &q); err != nil || q.URL == "" {
		return refuseQuestion(http.StatusBadRequest, errors.New(`fetch: ask with a JSON object: {"url": "https://…"}`))
	}
	question, err := json.Marshal(q) // one spelling for recordings
	if err != nil {
		return refuseQuestion(http.StatusBadRequest, err)
	}
	var failure error
	answer, err := keep(ctx, question, func(ctx context.Context) ([]byte, error) {
		r, err := f.fetchPage(ctx, q.URL)
		if err != nil {
			failure, r = err, Result{Error: err.Error()}
		}
		return text.EncodeJSON(r)
	})
	if err != nil {
		return refuseQuestion(http.StatusBadGateway, err)
	}
	return gateway.SideReply{Status: http.StatusOK, Body: answer, About: hostOf(q.URL), Err: failure}
}

func refuseQuestion(status int, err error) gateway.SideReply {
	b, merr := text.EncodeJSON(Result{Error: err.Error()})
	return gateway.SideReply{Status: status, Body: b, Err: errors.Join(err, merr)}
}

// hostOf is what the log says of an URL: the rest may hold what was meant for its host alone.
func hostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return text.OneLine(u.Hostname())
}

// fetchPage gets an URL and follows redirections. Its errors say which URL could not be
// fetched, and are for the model.
func (f *Fetcher) fetchPage(ctx context.Context, raw string) (Result, error) {
	ctx, cancel := f.o.Limit(ctx)
	defer cancel()
	var from *url.URL
	for hop := 0; ; hop++ {
		u, err := checkURL(from, raw)
		if err == nil {
			err = f.allowHost(u.Hostname())
		}
		if err != nil {
			if from != nil {
				err = fmt.Errorf("%s redirects to what is not allowed: %w", from.Hostname(), err)
			}
			return Result{}, err
		}
		if hop > maxRedirects {
			return Result{}, fmt.Errorf("%s redirects for the %dth time, and no more are followed", from.Hostname(), hop)
		}
		r, next, err := f.fetchHop(ctx, u)
		// A server that hears of the end may finish its answer in haste, so that it looks whole.
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return Result{}, fmt.Errorf("fetch %s: %w", u.Hostname(), cmp.Or(context.Cause(ctx), err))
		}
		if next == "" {
			return r, nil
		}
		from, raw = u, next
	}
}

// fetchHop asks one host once. next is where it redirects to; empty: it has answered.
func (f *Fetcher) fetchHop(ctx context.Context, u *url.URL) (r Result, next string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return Result{}, "", err
	}
	// Nothing else is said: no cookies, no referrer.
	req.Header.Set("User-Agent", "uwf")
	req.Header.Set("Accept", "text/html, text/plain, application/json, text/*;q=0.9, */*;q=0.1")
	if f.o.Proxy != nil {
		switch proxy, err := f.o.Proxy(req); {
		case err != nil:
			return Result{}, "", fmt.Errorf("the proxy's address can't be read: %w", err)
		case proxy != nil:
			return Result{}, "", errors.New("this machine reaches it through a proxy, which would choose the address itself; where it can be reached directly, add its name to NO_PROXY")
		}
	}
	addrs, err := f.resolvePublic(ctx, u.Hostname())
	if err != nil {
		return Result{}, "", err
	}
	resp, err := f.transportTo(addrs).RoundTrip(req) // no Client: it would follow redirections
	if err != nil {
		return Result{}, "", err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	if to := resp.Header.Get("Location"); isRedirect(resp.StatusCode) && to != "" {
		return Result{}, to, nil
	}
	r, err = readResult(resp)
	r.URL = u.String()
	return r, "", err
}

func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// transportTo is a transport for one request, which dials these addresses and no others,
// whatever the URL's name leads to by now.
func (f *Fetcher) transportTo(addrs []netip.Addr) *http.Transport {
	return &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: f.o.TLS.Clone(), MaxResponseHeaderBytes: 64 << 10,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			var errs []error
			for _, a := range addrs {
				conn, err := f.o.Dial(ctx, network, netip.AddrPortFrom(a, httpsPort).String())
				if err == nil {
					return conn, nil
				}
				errs = append(errs, err)
			}
			return nil, errors.Join(errs...)
		},
	}
}
