package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/united-workforce/uwf/agents/gateway/cassette"
	"github.com/united-workforce/uwf/agents/gateway/dialect"
)

// exchange is one request of a client on its way to a model and back.
type exchange struct {
	g        *Gateway
	w        http.ResponseWriter
	request  *dialect.Request
	size     int // bytes of the client's body
	header   http.Header
	path     string
	model    *Model
	free     bool // costs nothing and is not recorded
	started  time.Time
	reserved spending
	turn     int // of the recording
	askUsage bool

	tries  int
	outage outage
	lost   int64          // input tokens of tries that were sent and never answered
	answer dialect.Answer // of the last try, as far as it came
	came   bool           // an answer of status 200 began
	wrote  bool           // the client has got something
	raw    bytes.Buffer   // what the client got, while recording
	status int            // given to the client
	err    error          // why it was no 200

	settled bool
	spent   dialect.Usage // with its cost, once settled
}

// run asks the provider until there is an answer to pass on.
func (x *exchange) run(ctx context.Context) {
	for {
		x.tries++
		err := x.try(ctx)
		if err == nil {
			x.g.provider(nil)
			return
		}
		var u *UpstreamError
		switch {
		case errors.Is(err, errGone) || ctx.Err() != nil:
			x.abandon(err)
			return
		case !errors.As(err, &u): // the request itself can't be sent
			x.err, x.status = err, http.StatusBadRequest
			x.g.refuse(x.w, x.request.Dialect, x.status, codeRequest, err.Error())
			return
		case x.wrote:
			x.cut(u)
			return
		}
		if x.askUsage && u.noOptions {
			x.askUsage = false // this server does not know the wish for usage
			continue
		}
		wait := x.g.backoff(x.tries, u.retryAfter)
		if !u.temporary || wait > x.g.o.MaxWait || x.outage.lasts(x.g.o.Now(), wait) > x.g.patience(u) {
			x.give(u)
			return
		}
		x.g.provider(u) // the agent's time may be over before the wait is
		if err := x.g.o.Sleep(ctx, wait); err != nil {
			x.abandon(err)
			return
		}
	}
}

// errGone: the client has closed its connection.
var errGone = errors.New("the client is gone")

// abandon ends an exchange whose client is gone, or whose gateway closes.
func (x *exchange) abandon(err error) {
	x.err = err
	if !x.wrote {
		x.status, x.wrote = http.StatusServiceUnavailable, true
		x.g.closing(x.w, x.request.Dialect)
	}
}

// try asks the provider once. Whatever it returns as an error, the client has
// got nothing, unless wrote is set.
func (x *exchange) try(parent context.Context) error {
	x.clearHeaders()
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	timer := time.AfterFunc(x.g.o.Timeout, func() { cancel(errTimeout) })
	defer timer.Stop()

	body, err := x.request.Body(x.model.Name, x.askUsage)
	if err != nil {
		return err
	}
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(i httptrace.WroteRequestInfo) { sent.Store(i.Err == nil) },
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, x.model.Provider.endpoint(x.path), bytes.NewReader(body))
	if err != nil {
		return x.unanswered(err)
	}
	req.Header = x.model.Provider.outgoing(x.header, x.request.Dialect)
	// RoundTrip and not a Client: redirections would take the key elsewhere.
	resp, err := x.g.transport.RoundTrip(req)
	if err != nil {
		if sent.Load() {
			x.lost += dialect.Estimate(x.size) // the provider may have worked on it
		}
		u := x.unanswered(cause(ctx, err))
		u.unreached = !sent.Load()
		return u
	}
	defer resp.Body.Close()
	return x.receive(ctx, resp, func() { timer.Reset(x.g.o.IdleTimeout) })
}

// cause prefers the gateway's own reason to the transport's words for it.
func cause(ctx context.Context, err error) error {
	if c := context.Cause(ctx); c != nil {
		return c
	}
	return err
}

func (x *exchange) unanswered(err error) *UpstreamError {
	return &UpstreamError{Provider: x.model.Provider.Name, Err: err, temporary: true}
}

func (x *exchange) receive(ctx context.Context, resp *http.Response, alive func()) error {
	if resp.StatusCode != http.StatusOK {
		body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		if err != nil {
			body = nil
		}
		incoming(x.w.Header(), resp.Header)
		return failure(x.model.Provider, resp.StatusCode, resp.Header, x.scrub(body), x.g.o.Now())
	}
	x.came, x.answer = true, dialect.Answer{}
	incoming(x.w.Header(), resp.Header)
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err == nil && kind == "text/event-stream" {
		return x.stream(ctx, resp.Body, alive)
	}
	return x.plain(ctx, resp.Body)
}

// clearHeaders forgets what a former try left.
func (x *exchange) clearHeaders() {
	for name := range x.w.Header() {
		x.w.Header().Del(name)
	}
}

// scrub takes the provider's key out of what it sent.
func (x *exchange) scrub(b []byte) []byte {
	key := x.model.Provider.Key
	if len(key) < 6 || !bytes.Contains(b, []byte(key)) {
		return b
	}
	return bytes.ReplaceAll(b, []byte(key), []byte("[key removed]"))
}

// plain passes a whole answer on.
func (x *exchange) plain(ctx context.Context, from io.Reader) error {
	body, err := io.ReadAll(io.LimitReader(from, x.g.o.MaxAnswer+1))
	if err != nil {
		x.lost += dialect.Estimate(x.size)
		return x.unanswered(cause(ctx, err))
	}
	if int64(len(body)) > x.g.o.MaxAnswer {
		return x.tooLarge()
	}
	body = x.scrub(body)
	if !x.free {
		if x.answer, err = dialect.ParseAnswer(x.request.Dialect, body); err != nil {
			return x.inside(err)
		}
	}
	if !x.record(http.StatusOK, body) {
		return nil // the client was told
	}
	x.settle()
	x.status, x.wrote = http.StatusOK, true
	write(x.w, http.StatusOK, dialect.ContentType(false), body)
	return nil
}

func (x *exchange) tooLarge() *UpstreamError {
	return &UpstreamError{Provider: x.model.Provider.Name, Status: http.StatusOK,
		Message: fmt.Sprintf("the answer is larger than %d bytes", x.g.o.MaxAnswer)}
}

// inside is an error that came with status 200.
func (x *exchange) inside(err error) *UpstreamError {
	u := &UpstreamError{Provider: x.model.Provider.Name, Status: http.StatusBadGateway, Message: err.Error(), temporary: true}
	var s *dialect.StreamError
	if errors.As(err, &s) {
		u.Code, u.Message, u.temporary = s.Code, s.Message, s.Temporary()
		if status, err := strconv.Atoi(s.Code); err == nil && status >= 400 && status < 600 {
			u.Status, u.Code = status, ""
		}
	}
	return u
}

// stream passes events on as they come.
func (x *exchange) stream(ctx context.Context, from io.Reader, alive func()) error {
	events := dialect.NewEventReader(from, int(min(x.g.o.MaxAnswer, 16<<20)))
	collector := dialect.NewCollector(x.request.Dialect)
	flush := http.NewResponseController(x.w)
	var total int64
	for !collector.Ended() {
		ev, err := events.Next()
		if errors.Is(err, io.EOF) || err != nil && collector.Done() {
			break // clients hang up when they have what they need
		}
		if err != nil {
			return x.unanswered(cause(ctx, err))
		}
		alive()
		ev.Raw, ev.Data = x.scrub(ev.Raw), x.scrub(ev.Data)
		if total += int64(len(ev.Raw)); total > x.g.o.MaxAnswer {
			return x.tooLarge()
		}
		usageOnly := collector.Add(ev)
		x.answer = collector.Answer()
		if err := collector.Err(); err != nil {
			return x.inside(err)
		}
		if usageOnly && x.askUsage && !x.request.WantUsage {
			continue // the client did not ask for it, and may stumble over it
		}
		if collector.Ended() {
			x.settle()
		}
		if err := x.pass(ev.Raw, flush); err != nil && !collector.Done() {
			return err
		}
	}
	if !collector.Done() {
		return x.unanswered(fmt.Errorf("the stream was cut before its end: %w", io.ErrUnexpectedEOF))
	}
	x.record(http.StatusOK, x.raw.Bytes()) // in a failure the next request is refused
	return nil
}

func (x *exchange) pass(event []byte, flush *http.ResponseController) error {
	if !x.wrote {
		x.w.Header().Set("Content-Type", dialect.ContentType(true))
		x.w.Header().Set("Cache-Control", "no-cache")
		x.status, x.wrote = http.StatusOK, true
		x.w.WriteHeader(http.StatusOK)
	}
	if x.g.o.Record != nil {
		x.raw.Write(event)
	}
	if _, err := x.w.Write(event); err != nil {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	if err := flush.Flush(); err != nil {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	return nil
}

// record hands the exchange to the recorder. In a failure the client gets an
// error in place of the answer, where it has got none yet, and ok is false.
func (x *exchange) record(status int, raw []byte) (ok bool) {
	if x.g.o.Record == nil || x.free {
		return true
	}
	answer := x.answer
	if status == http.StatusOK {
		answer.Usage = complete(answer.Usage, x.size, answer.Bytes)
		if cost, known := x.model.cost(answer.Usage); known {
			answer.Usage.CostUSD, answer.Usage.HasCost = cost, true
		}
	}
	err := x.g.o.Record.Finish(x.turn, cassette.Exchange{
		Path: x.path, Request: x.request, Status: status, Answer: answer, Raw: raw,
	})
	if err == nil {
		return true
	}
	x.g.fail(err)
	if !x.wrote {
		x.status, x.err, x.wrote = http.StatusBadRequest, err, true
		x.g.refuse(x.w, x.request.Dialect, http.StatusBadRequest, codeRecord, err.Error())
	}
	return false
}

// give passes a failure on: as the provider put it, where a client can read it.
func (x *exchange) give(u *UpstreamError) {
	x.g.provider(u)
	x.err = u
	status, body := u.Status, u.body
	if status < 400 {
		status = http.StatusBadGateway
	}
	if body == nil {
		body = dialect.ErrorBody(x.request.Dialect, status, codeProvider, u.Error())
	}
	if !x.record(status, body) {
		return
	}
	x.settle()
	x.status = status
	x.w.Header().Set("X-Should-Retry", "false") // that was done here
	write(x.w, status, dialect.ContentType(false), body)
}

// cut ends a stream that broke after the client had got some of it: with an
// error event, and without the end that a whole answer has.
func (x *exchange) cut(u *UpstreamError) {
	x.g.provider(u)
	x.err = u
	x.settle()
	flush := http.NewResponseController(x.w)
	//nolint:errcheck // the connection is closed next, whatever the client got of this
	x.w.Write(dialect.ErrorEvent(x.request.Dialect, http.StatusBadGateway, codeProvider, u.Error()))
	flush.Flush()
	if conn, _, err := flush.Hijack(); err == nil {
		conn.Close()
	}
}

// settle counts what the exchange cost, once and whatever became of it: before
// the client gets the end of its answer, so that it is counted when the client
// goes on.
func (x *exchange) settle() {
	if x.free || x.settled {
		return
	}
	x.settled = true
	known := true
	if x.came {
		x.spent = complete(x.answer.Usage, x.size, x.answer.Bytes)
	}
	x.spent.In += x.lost
	tokens := x.spent.In + x.spent.Out
	if tokens > 0 {
		x.spent.CostUSD, known = x.model.cost(x.spent)
	}
	x.g.ledger.settle(x.reserved, spending{tokens: tokens, cost: x.spent.CostUSD}, known)
	if x.g.o.Meter != nil && tokens > 0 {
		x.g.o.Meter.Add(x.spent.In, x.spent.Out, x.spent.CostUSD)
	}
}

// report tells OnCall how it went.
func (x *exchange) report() {
	if x.g.o.OnCall == nil {
		return
	}
	x.g.o.OnCall(Call{
		Path: x.path, Model: x.request.Model, Status: x.status, Tries: x.tries, Stream: x.request.Stream,
		In: x.spent.In, Out: x.spent.Out, CostUSD: x.spent.CostUSD, Duration: x.g.o.Now().Sub(x.started), Err: x.err,
	})
}
