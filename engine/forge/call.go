package forge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/go-github/v62/github"
	"github.com/united-workforce/uwf/internal/outage"
	"github.com/united-workforce/uwf/internal/text"
)

const (
	// maxAnswer is the largest answer that is read, in bytes. A page of 100 comments
	// of the greatest size is smaller.
	maxAnswer = 40 << 20
	// tryTime bounds one request and its answer.
	tryTime = time.Minute
	// secondaryPause is what GitHub asks for where it limits without saying for how
	// long.
	secondaryPause = time.Minute
)

// request is one call of the API.
type request struct {
	do     string // for errors: "create a pull request for uwf/01J…"
	method string
	path   string // below the repository; begins with "/" unless it is empty
	root   bool   // path is below the API instead, or an address
	query  url.Values
	body   any
	text   string // the longest text of the body, which no forge takes above MaxBody
	// safe: making it twice does what making it once does, or little harm, although it is a POST.
	safe bool
	// find looks whether the request was carried out, once nobody knows, and reads what it made into
	// makeCall's out. If it finds nothing, the request is made again. Nil: nothing can be looked for.
	find func(*connection) (found bool, err error)
}

// isRepeatable: nothing happens twice if the call is made again after an answer that
// got lost. Our PATCHes replace whole texts.
func (r request) isRepeatable() bool { return r.safe || r.method != http.MethodPost }

// response is what the forge said, of whatever status.
type response struct {
	status int
	header http.Header
	body   []byte
}

// makeCall makes a request, again where that helps, and decodes the answer into out
// (nil: it is not read).
func (c *connection) makeCall(ctx context.Context, r request, out any) (response, error) {
	if n := utf8.RuneCountInString(r.text); n > MaxBody {
		return response{}, &CallError{Do: r.do, Kind: ErrInvalid, Message: fmt.Sprintf("the text has %d characters; %d are allowed", n, MaxBody)}
	}
	o := c.o.Outages.Begin()
	for {
		a, err := c.tryOnce(ctx, r)
		var fail *CallError
		if err != nil {
			fail = c.unreachedError(ctx, r, err)
		} else if fail = c.judgeAnswer(r, a); fail == nil {
			fail = c.decodeAnswer(r, a, out)
		}
		look := fail != nil && fail.Unsure && !fail.final && r.find != nil
		switch {
		case fail == nil:
			return a, nil
		case !fail.isPassing() && !look:
			return a, fail
		}
		if err := o.WaitToRetry(ctx, fail, fail.Retry); err != nil {
			return a, err
		}
		if !look {
			continue
		}
		meanwhile := *c
		meanwhile.o.Outages = o.Rest()
		switch found, err := r.find(&meanwhile); {
		case err != nil:
			return a, errors.Join(fail, err)
		case found:
			return a, nil
		}
	}
}

// tryOnce makes the request once.
func (c *connection) tryOnce(ctx context.Context, r request) (response, error) {
	req, err := c.gh.NewRequest(r.method, c.requestURL(r), r.body)
	if err != nil {
		return response{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	if token := c.o.Token(); token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := c.http.Do(req.WithContext(ctx))
	if err != nil {
		return response{}, err
	}
	defer func() { _ = res.Body.Close() }() // it was read whole, or the call failed
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return response{}, err
	}
	if len(body) > maxAnswer {
		return response{}, fmt.Errorf("the answer is longer than %d bytes", maxAnswer)
	}
	return response{status: res.StatusCode, header: res.Header, body: body}, nil
}

// requestURL is where a request goes, relative to the API's own.
func (c *connection) requestURL(r request) string {
	u := "repos/" + c.o.Repository + r.path
	if r.root {
		u = strings.TrimPrefix(r.path, "/")
	}
	if len(r.query) > 0 {
		u += "?" + r.query.Encode()
	}
	return u
}

func (c *connection) decodeAnswer(r request, a response, out any) *CallError {
	if out == nil || a.status == http.StatusNoContent {
		return nil
	}
	if err := json.Unmarshal(a.body, out); err != nil {
		return &CallError{Do: r.do, Kind: ErrUnreadable, Status: a.status, Message: "its answer is not what was asked for", Cause: err, Unsure: !r.isRepeatable()}
	}
	return nil
}

// unreachedError is the error of a request that got no answer.
func (c *connection) unreachedError(ctx context.Context, r request, err error) *CallError {
	fail := &CallError{Do: r.do, Kind: ErrUnreachable, Message: c.maskToken(unwrapURLError(err).Error()), Cause: err}
	if ctx.Err() != nil {
		fail.Cause, fail.final = context.Cause(ctx), true
		fail.Message = fail.Cause.Error()
	}
	fail.Unsure = !r.isRepeatable() && !neverSent(err)
	return fail
}

// neverSent: the request did not leave this machine.
func neverSent(err error) bool {
	var op *net.OpError
	return errors.As(err, new(*net.DNSError)) || errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect")
}

// unwrapURLError leaves out what repeats method and address.
func unwrapURLError(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// maskToken takes the token out of a text: some servers repeat what they were sent.
func (c *connection) maskToken(s string) string {
	if token := c.o.Token(); len(token) > 3 {
		s = strings.ReplaceAll(s, token, "***")
	}
	return s
}

// judgeAnswer is the error that an answer stands for; nil: it is a success.
func (c *connection) judgeAnswer(r request, a response) *CallError {
	if a.status >= 200 && a.status < 300 {
		return nil
	}
	said, rate := c.readMessage(a)
	fail := &CallError{Do: r.do, Status: a.status, Message: said, Need: neededPermission(a.header)}
	switch {
	case a.status >= 300 && a.status < 400:
		fail.Kind, fail.Message = ErrNotFound, c.movedTo(a)
	case rate:
		fail.Kind, fail.Retry = ErrLimited, c.limitedFor(a)
	case a.status == http.StatusUnauthorized:
		fail.Kind = ErrAuth
	case a.status == http.StatusForbidden:
		fail.Kind = ErrForbidden
	case a.status == http.StatusNotFound, a.status == http.StatusGone:
		fail.Kind = ErrNotFound
	case a.status >= 500, a.status == http.StatusRequestTimeout:
		fail.Kind, fail.Unsure, fail.Retry = ErrUnreachable, !r.isRepeatable(), outage.RetryAfter(a.header, c.now())
	default:
		fail.Kind = ErrInvalid
	}
	if !errors.Is(fail, ErrForbidden) && !errors.Is(fail, ErrNotFound) {
		fail.Need = "" // the header comes with every answer
	}
	return fail
}

func (c *connection) movedTo(a response) string {
	to := c.maskToken(a.header.Get("Location"))
	if u, err := url.Parse(to); err == nil {
		u.User, u.RawQuery = nil, ""
		to = u.String()
	}
	return fmt.Sprintf("it has moved to %q, and what changes something does not follow; was the repository renamed? Use its new name", to)
}

// readMessage are the forge's own, and whether they mean that too much was asked for.
func (c *connection) readMessage(a response) (said string, limited bool) {
	res := &http.Response{StatusCode: a.status, Header: a.header, Body: io.NopCloser(strings.NewReader(string(a.body)))}
	err := github.CheckResponse(res)
	var primary *github.RateLimitError
	var secondary *github.AbuseRateLimitError
	var plain *github.ErrorResponse
	switch {
	case errors.As(err, &primary):
		said, limited = primary.Message, true
	case errors.As(err, &secondary):
		said, limited = secondary.Message, true
	case errors.As(err, &plain):
		said = plain.Message
		for _, e := range plain.Errors {
			said += formatDetail(e)
		}
	}
	if a.status == http.StatusTooManyRequests {
		limited = true
	}
	if a.status == http.StatusForbidden {
		limited = limited || a.header.Get("Retry-After") != "" || strings.Contains(strings.ToLower(said), "rate limit")
	}
	return c.maskToken(oneLine(said)), limited
}

// formatDetail is one of the reasons below a message.
func formatDetail(e github.Error) string {
	switch {
	case e.Message != "":
		return ": " + e.Message
	case e.Code != "":
		return fmt.Sprintf(": %s (%s)", strings.TrimSpace(e.Resource+" "+e.Field), e.Code)
	}
	return ""
}

// oneLine makes a server's text fit for a message.
func oneLine(s string) string { return text.Cut(text.Line(s), 500) }

// limitedFor is how long to wait, by GitHub's rules: Retry-After; where nothing is
// left, until the limit begins anew; else a minute.
func (c *connection) limitedFor(a response) time.Duration {
	if after := outage.RetryAfter(a.header, c.now()); after > 0 {
		return after
	}
	if a.header.Get("X-RateLimit-Remaining") == "0" {
		if n, err := strconv.ParseInt(a.header.Get("X-RateLimit-Reset"), 10, 64); err == nil {
			// Its clock and ours may differ by a second.
			return max(time.Unix(n, 0).Sub(c.now())+time.Second, time.Second)
		}
	}
	return secondaryPause
}

// neededPermission is the permission that GitHub wants for a call: the first of those that
// would do.
func neededPermission(h http.Header) string {
	first, _, _ := strings.Cut(h.Get("X-Accepted-GitHub-Permissions"), ";")
	return oneLine(first)
}

// readPages reads a list, page after page, up to limit pages, until each says that it
// is enough. more: the list goes on.
func readPages[Page any](ctx context.Context, c *client, r request, limit int, each func(Page) (enough bool)) (more bool, err error) {
	if r.query == nil {
		r.query = url.Values{}
	}
	// GitHub's word and Gitea's for the same; each ignores the other's.
	r.query.Set("per_page", "100")
	r.query.Set("limit", "50")
	for page := 1; page <= limit; page++ {
		if page > 1 {
			r.query.Set("page", strconv.Itoa(page))
		}
		var p Page
		a, err := c.makeCall(ctx, r, &p)
		// The address of the next page is not used: behind a proxy, Gitea names itself as it
		// is reached from elsewhere.
		if err != nil || each(p) || !strings.Contains(strings.Join(a.header.Values("Link"), ","), `rel="next"`) {
			return false, err
		}
	}
	return true, nil
}
