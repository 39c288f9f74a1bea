package gateway

import (
	"bytes"
	"cmp"
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
	"github.com/united-workforce/uwf/internal/outage"
)

// exchange is one request of a client on its way to a model and back.
type exchange struct {
	g        *Gateway
	w        http.ResponseWriter
	request  *dialect.Request
	sent     *dialect.Request // as the provider gets it: request, or what that is translated to
	foreign  *foreignAnswer   // nil: the provider speaks the client's dialect
	size     int              // bytes of the client's body, and of the former answers that it refers to
	header   http.Header
	path     string
	model    *Model
	free     bool // costs nothing and is not recorded
	started  time.Time
	expected dialect.Usage // at most, by one try
	reserved spending
	turn     int // of the recording
	askUsage bool

	tries  int
	outage *outage.Outage // nil: the provider has not failed
	try    try
	wrote  bool         // the client has got something
	raw    bytes.Buffer // what the client got, while recording
	status int          // given to the client
	err    error        // why it was no 200

	spent    dialect.Usage // by all tries, with what is known of its cost
	unpriced bool          // it cost more
	atMost   int64         // see Call.AtMost
}

// try is one request to the provider.
type try struct {
	held   bool // there is room reserved for it
	sent   bool // the provider has all of it
	came   bool // an answer of status 200 began
	ended  bool // the provider has said all that it has to say
	failed bool // which is that it failed
	answer dialect.Answer
}

// askUntilAnswered asks the provider until there is an answer to pass on. It goes on for a
// client that has hung up, but asks no further time for it.
func (x *exchange) askUntilAnswered(client context.Context) {
	for {
		if !x.reserveTry(client) {
			return
		}
		x.tries++
		err := x.askOnce(client)
		x.settleTry()
		if err == nil {
			x.g.noteProvider(nil)
			return
		}
		if !x.waitForRetry(client, err) {
			return
		}
	}
}

// waitForRetry waits until it is time to ask again after a failure. Where it is not asked
// again, it has told the client and again is false.
func (x *exchange) waitForRetry(client context.Context, err error) (again bool) {
	var u *UpstreamError
	switch {
	case client.Err() != nil:
		x.abandonExchange(err)
		return false
	case !errors.As(err, &u): // the request itself can't be sent
		x.refuseAsked(codeRequest, err)
		return false
	case x.wrote:
		x.cutStream(u)
		return false
	case x.askUsage && bytes.Contains(u.refusal, []byte("stream_options")):
		x.askUsage = false // this server does not know the wish for usage
		return true
	case x.adaptRequest(u.refusal):
		return true
	}
	if x.outage == nil { // the first try may have hung for long: that is no part of it
		x.outage = x.g.o.Outages.Begin()
	}
	x.g.noteProvider(u) // the agent's time may be over before the wait is
	if !u.temporary || u.unreached && x.outage.Lasted() >= unreachedFor {
		x.passFailure(u)
		return false
	}
	switch err := x.outage.WaitToRetry(client, u, u.retryAfter); {
	case err == nil:
		return true
	case client.Err() != nil:
		x.abandonExchange(err)
	default: // there is no time for it
		x.passFailure(u)
	}
	return false
}

// reserveTry lets a try begin once the budget has room for it. Where it has none, it
// has told the client and ok is false.
func (x *exchange) reserveTry(client context.Context) (ok bool) {
	x.try = try{}
	if x.free {
		return true
	}
	err := x.g.ledger.reserveBudget(client, x.reserved)
	switch {
	case err == nil:
	case errors.As(err, new(*BudgetError)):
		x.g.keepError(codeBudget, err)
		x.refuseAsked(codeBudget, err)
		return false
	default:
		x.abandonExchange(err)
		return false
	}
	x.try.held = true
	if x.g.o.Record != nil && x.turn == 0 {
		x.turn = x.g.o.Record.Begin()
	}
	return true
}

// refuseAsked tells the client that there is no answer, and why.
func (x *exchange) refuseAsked(code string, err error) {
	x.status, x.err, x.wrote = http.StatusBadRequest, err, true
	x.g.refuseRequest(x.w, x.request.Dialect, x.status, code, err.Error())
}

// abandonExchange ends an exchange whose client is gone, or whose gateway closes.
func (x *exchange) abandonExchange(err error) {
	x.err = err
	if x.wrote {
		x.breakConnection()
		return
	}
	x.status, x.wrote = http.StatusServiceUnavailable, true
	x.g.answerClosing(x.w, x.request.Dialect)
}

// askOnce asks the provider once. Whatever it returns as an error, the client has got
// nothing, unless wrote is set. The client may go; the end of the gateway alone
// ends the request to the provider, which is paid for from the moment it is sent.
func (x *exchange) askOnce(client context.Context) error {
	x.clearHeaders()
	ctx, cancel := context.WithCancelCause(x.g.upstream)
	defer cancel(nil)
	timer := time.AfterFunc(answerTime, func() { cancel(errTimeout) })
	defer timer.Stop()

	body := x.sent.Body(x.model.Name, x.askUsage)
	path := x.sent.Endpoint(x.model.Name)
	if path == "" {
		path = x.sent.Dialect.Path()
		if x.free {
			path = x.path
		}
	}
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(i httptrace.WroteRequestInfo) { sent.Store(i.Err == nil) },
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, x.model.Provider.endpointURL(x.sent.Dialect, path), bytes.NewReader(body))
	if err != nil {
		return x.newUnanswered(err)
	}
	req.Header = x.model.outgoingHeader(x.header, x.sent.Dialect)
	// RoundTrip and not a Client: redirections would take the key elsewhere.
	resp, err := x.g.transport.RoundTrip(req)
	x.try.sent = sent.Load() || err == nil
	if err != nil {
		u := x.newUnanswered(causeOf(ctx, err))
		u.unreached = !sent.Load()
		return u
	}
	defer resp.Body.Close()
	return x.receiveAnswer(ctx, resp, &patience{client: client, timer: timer, now: x.g.o.Now})
}

// patience is how long an answer may take, event by event.
type patience struct {
	client context.Context
	timer  *time.Timer
	now    func() time.Time
	left   time.Time // when the client was seen to be gone
}

// allowNextEvent gives the next event its time. The rest of a stream that nobody waits
// for has a time of its own, after which it is given up.
func (p *patience) allowNextEvent() error {
	p.timer.Reset(eventTime)
	if p.client.Err() == nil {
		return nil
	}
	now := p.now()
	if p.left.IsZero() {
		p.left = now
	}
	if now.Sub(p.left) >= answerTime {
		return errTimeout
	}
	return nil
}

// causeOf prefers the gateway's own reason to the transport's words for it.
func causeOf(ctx context.Context, err error) error {
	if c := context.Cause(ctx); c != nil {
		return c
	}
	return err
}

func (x *exchange) newUnanswered(err error) *UpstreamError {
	return &UpstreamError{Provider: x.model.Provider.Name, Err: err, temporary: true}
}

func (x *exchange) receiveAnswer(ctx context.Context, resp *http.Response, p *patience) error {
	if resp.StatusCode != http.StatusOK {
		// What stands between here and the provider may have lost patience with an
		// answer that is still being written, and paid for.
		x.try.ended = resp.StatusCode != http.StatusGatewayTimeout && resp.StatusCode != statusOriginTimeout
		body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		if err != nil {
			body = nil
		}
		copyIncoming(x.w.Header(), resp.Header)
		return readFailure(x.model.Provider, resp.StatusCode, resp.Header, x.hideKey(body), x.g.o.Now())
	}
	x.try.came = true
	copyIncoming(x.w.Header(), resp.Header)
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err == nil && kind == "text/event-stream" {
		return x.passStream(ctx, resp.Body, p)
	}
	return x.passWhole(ctx, resp.Body)
}

// clearHeaders forgets what a former try left.
func (x *exchange) clearHeaders() {
	for name := range x.w.Header() {
		x.w.Header().Del(name)
	}
}

// hideKey takes the provider's key out of what it sent.
func (x *exchange) hideKey(b []byte) []byte {
	key := x.model.Provider.Key
	if len(key) < 6 || !bytes.Contains(b, []byte(key)) {
		return b
	}
	return bytes.ReplaceAll(b, []byte(key), []byte("[key removed]"))
}

// passWhole passes a whole answer on.
func (x *exchange) passWhole(ctx context.Context, from io.Reader) error {
	body, err := io.ReadAll(io.LimitReader(from, x.g.o.MaxAnswer+1))
	x.try.answer.Bytes = len(body) // until it is read
	if err != nil {
		return x.newUnanswered(causeOf(ctx, err))
	}
	if int64(len(body)) > x.g.o.MaxAnswer {
		return x.newTooLargeError()
	}
	x.try.ended = true
	body = x.hideKey(body)
	if !x.free {
		a, err := dialect.ParseAnswer(x.sent.Dialect, body)
		if err != nil {
			if !errors.Is(err, dialect.ErrAnswer) { // it says so itself
				x.try.failed, x.try.answer = true, dialect.Answer{}
			}
			return x.errorInside(err)
		}
		x.try.answer = a
		if body, err = x.translateWhole(body); err != nil {
			return x.newUnusableError(err)
		}
	}
	if !x.recordExchange(http.StatusOK, body) {
		return nil // the client was told
	}
	x.settleTry()
	x.status, x.wrote = http.StatusOK, true
	writeAnswer(x.w, http.StatusOK, dialect.ContentType(false), body)
	return nil
}

func (x *exchange) newTooLargeError() *UpstreamError {
	return &UpstreamError{Provider: x.model.Provider.Name, Status: http.StatusOK,
		Message: fmt.Sprintf("the answer is larger than %d bytes", x.g.o.MaxAnswer)}
}

// newUnusableError is about an answer that came whole and can't be given to the client: the
// same request may well get the like again.
func (x *exchange) newUnusableError(err error) *UpstreamError {
	return &UpstreamError{Provider: x.model.Provider.Name, Status: http.StatusBadGateway, Message: err.Error()}
}

// errorInside is an error that came with status 200.
func (x *exchange) errorInside(err error) *UpstreamError {
	u := &UpstreamError{Provider: x.model.Provider.Name, Status: http.StatusBadGateway, Message: err.Error(), temporary: true}
	if s, ok := errors.AsType[*dialect.StreamError](err); ok {
		u.Code, u.Message, u.temporary = s.Code, s.Message, s.Temporary()
		if status, err := strconv.Atoi(s.Code); err == nil && status >= 400 && status < 600 {
			u.Status, u.Code = status, ""
		}
	}
	return u
}

// passStream passes events on as they come. A client that has hung up gets none, but
// the rest is read for what it costs.
func (x *exchange) passStream(ctx context.Context, from io.Reader, p *patience) error {
	events := dialect.NewEventReader(from, int(min(x.g.o.MaxAnswer, 16<<20)))
	collector := dialect.NewCollector(x.sent.Dialect)
	x.foreign.beginStream()
	var total int64
	for !collector.Ended() {
		ev, err := events.Next()
		if errors.Is(err, io.EOF) || err != nil && collector.Done() {
			x.try.ended = collector.Done() && (errors.Is(err, io.EOF) || x.try.answer.Usage.HasOut)
			break // servers hang up when they have said what they have to
		}
		if err == nil {
			err = p.allowNextEvent()
		}
		if err != nil {
			return x.newUnanswered(causeOf(ctx, err))
		}
		ev.Raw, ev.Data = x.hideKey(ev.Raw), x.hideKey(ev.Data)
		if total += int64(len(ev.Raw)); total > x.g.o.MaxAnswer {
			return x.newTooLargeError()
		}
		usageOnly := collector.Add(ev)
		x.try.answer = collector.AnswerSoFar()
		if err := collector.Err(); err != nil {
			x.try.ended, x.try.failed = true, true
			return x.errorInside(err)
		}
		if usageOnly && x.askUsage && !x.request.WantUsage && x.foreign == nil {
			continue // the client did not ask for it, and may stumble over it
		}
		if collector.Ended() {
			x.try.ended = true
			x.settleTry()
		}
		x.passEvent(p.client, x.foreign.translateEvent(ev.Raw, x.try.answer))
	}
	if !collector.Done() {
		return x.newUnanswered(fmt.Errorf("the stream was cut before its end: %w", io.ErrUnexpectedEOF))
	}
	if err := x.endForeign(p.client); err != nil {
		return x.newUnusableError(err)
	}
	x.recordExchange(http.StatusOK, x.raw.Bytes()) // in a failure the next request is refused
	if p.client.Err() != nil {
		x.breakConnection() // where the gateway closes, the client may be there and lack some
	}
	return nil
}

// passEvent gives the client an event.
func (x *exchange) passEvent(client context.Context, event []byte) {
	if len(event) == 0 {
		return
	}
	if !x.wrote {
		x.w.Header().Set("Content-Type", dialect.ContentType(true))
		x.w.Header().Set("Cache-Control", "no-cache")
		x.status, x.wrote = http.StatusOK, true
		x.w.WriteHeader(http.StatusOK)
	}
	if x.g.o.Record != nil {
		x.raw.Write(event)
	}
	if client.Err() != nil {
		return
	}
	if _, err := x.w.Write(event); err == nil { // else it is going
		http.NewResponseController(x.w).Flush()
	}
}

// recordExchange hands the exchange to the recorder. In a failure the client gets an
// error in place of the answer, where it has got none yet, and ok is false.
func (x *exchange) recordExchange(status int, raw []byte) (ok bool) {
	if x.g.o.Record == nil || x.free {
		return true
	}
	answer := x.try.answer
	if status == http.StatusOK {
		answer = x.readGiven(answer, raw)
		answer.Usage = completeUsage(answer.Usage, x.size, answer.Bytes)
		if cost, known := x.model.costOf(answer.Usage); known {
			answer.Usage.CostUSD, answer.Usage.HasCost = cost, true
		}
	}
	err := x.g.o.Record.Finish(x.turn, cassette.Exchange{
		Request: x.request, Status: status, Answer: answer, Raw: raw,
	})
	if err == nil {
		return true
	}
	x.g.keepError(codeRecord, err)
	if !x.wrote {
		x.refuseAsked(codeRecord, err)
	}
	return false
}

// passFailure passes a failure on: as the provider put it, where a client can read it.
func (x *exchange) passFailure(u *UpstreamError) {
	x.g.noteProvider(u)
	x.err = u
	status, body := u.Status, u.body
	if status < 400 {
		status = http.StatusBadGateway
	}
	if body == nil || x.foreign != nil { // which is in the provider's form
		body = dialect.ErrorBody(x.request.Dialect, status, codeProvider, u.Error())
	}
	if !x.recordExchange(status, body) {
		return
	}
	x.status = status
	x.w.Header().Set("X-Should-Retry", "false") // that was done here
	writeAnswer(x.w, status, dialect.ContentType(false), body)
}

// cutStream ends a stream that broke after the client had got some of it: with an
// error event, and without the end that a whole answer has.
func (x *exchange) cutStream(u *UpstreamError) {
	x.g.noteProvider(u)
	x.err = u
	//nolint:errcheck // the connection is closed next, whatever the client got of this
	x.w.Write(dialect.ErrorEvent(x.request.Dialect, http.StatusBadGateway, codeProvider, u.Error()))
	x.breakConnection()
}

// breakConnection closes the client's connection, so that an answer that has begun is not
// taken for whole.
func (x *exchange) breakConnection() {
	conn := http.NewResponseController(x.w)
	if conn.Flush() != nil {
		return // it is closed
	}
	if c, _, err := conn.Hijack(); err == nil {
		c.Close()
	}
}

// settleTry counts what the try cost, once and whatever became of it: before the
// client gets the end of its answer, so that it is counted when the client goes on.
func (x *exchange) settleTry() {
	if !x.try.held {
		return
	}
	x.try.held = false
	if x.try.came && x.try.ended && !x.try.failed {
		x.g.noteEnding(x.try.answer, cmp.Or(x.request.MaxOutput, x.model.MaxOutput))
	}
	u := x.chargeOf()
	tokens := u.In + u.Out
	cost, priced := x.model.costOf(u)
	priced = priced || tokens == 0
	var unknown *Model
	if !priced && x.g.o.Replay == nil { // where nothing is paid
		unknown = x.model
	}
	x.g.ledger.settleSpent(x.reserved, spending{tokens: tokens, cost: cost}, unknown)
	x.spent.In, x.spent.Out, x.spent.CostUSD = x.spent.In+u.In, x.spent.Out+u.Out, x.spent.CostUSD+cost
	x.unpriced = x.unpriced || !priced
	if !x.try.ended {
		x.atMost += u.Out
	}
	if tokens > 0 {
		x.g.meterUsage(u.In, u.Out, cost, priced)
	}
}

// chargeOf is what the try counts for: what the provider says; where it was not read
// to its end, as much as was reserved.
func (x *exchange) chargeOf() dialect.Usage {
	switch t := &x.try; {
	case t.failed && t.answer.Usage == (dialect.Usage{}) && t.answer.Bytes == 0:
		return dialect.Usage{} // it did not get to work
	case t.ended && t.came:
		return completeUsage(t.answer.Usage, x.size, t.answer.Bytes)
	case t.ended || !t.sent:
		return dialect.Usage{}
	default:
		return atLeast(x.expected, t.answer)
	}
}

// reportCall tells OnCall how it went.
func (x *exchange) reportCall(client context.Context) {
	if x.g.o.OnCall == nil {
		return
	}
	x.g.o.OnCall(Call{
		Path: x.path, Model: x.request.Model, Status: x.status, Tries: x.tries, Stream: x.request.Stream,
		In: x.spent.In, Out: x.spent.Out, CostUSD: x.spent.CostUSD, Duration: x.g.o.Now().Sub(x.started), Err: x.err,
		Answer: x.try.answer, Unpriced: x.unpriced, AtMost: x.atMost, HungUp: client.Err() != nil, Dropped: x.g.noteNewNames(x.request.Dropped),
	})
}
