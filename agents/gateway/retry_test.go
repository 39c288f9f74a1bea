package gateway

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/united-workforce/uwf/agents/gateway/dialect"
	"github.com/united-workforce/uwf/internal/outage"
)

// sleeper notes how long the gateway would have waited. Its clock stands still else.
type sleeper struct {
	mu    sync.Mutex
	now   time.Time
	waits []time.Duration
}

func newSleeper() *sleeper { return &sleeper{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

func (s *sleeper) sleep(_ context.Context, d time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now, s.waits = s.now.Add(d), append(s.waits, d)
	return nil
}

// policy is p with this clock, and the longest waits.
func (s *sleeper) policy(p outage.Policy) outage.Policy {
	p.Sleep, p.Jitter = s.sleep, func() float64 { return 1 }
	p.Now = func() time.Time {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.now
	}
	return p
}

func TestRetries(t *testing.T) {
	now := newSleeper().now
	ok := answer(200, chatBody)
	rateLimit := `{"error":{"message":"Rate limit reached","type":"requests","param":null,"code":"rate_limit_exceeded"}}`
	for _, c := range []struct {
		name   string
		first  http.HandlerFunc
		waited time.Duration // 0: no other try
	}{
		{"429 with seconds", answer(429, rateLimit, "Retry-After", "7"), 7 * time.Second},
		{"429 with milliseconds", answer(429, rateLimit, "Retry-After-Ms", "4500", "Retry-After", "9"), 4500 * time.Millisecond},
		{"429 with a date", answer(429, rateLimit, "Retry-After", now.Add(5*time.Second).Format(http.TimeFormat)), 5 * time.Second},
		{"429 with a past date", answer(429, rateLimit, "Retry-After", now.Add(-time.Hour).Format(http.TimeFormat)), 3 * time.Second},
		{"429 with nonsense", answer(429, rateLimit, "Retry-After", "soon"), 3 * time.Second},
		{"429 for an hour", answer(429, rateLimit, "Retry-After", "3600"), 0},
		{"429 for ever", answer(429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`), 0},
		{"500", answer(500, `{"error":{"message":"oops","type":"server_error"}}`), 3 * time.Second},
		{"502 with HTML", answer(502, "<html>Bad gateway</html>"), 3 * time.Second},
		{"529 of Anthropic", answer(529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), 3 * time.Second},
		{"500, not to be retried", answer(500, `{"error":{"message":"oops","type":"server_error"}}`, "X-Should-Retry", "false"), 0},
		{"400, to be retried", answer(400, `{"error":{"message":"oops"}}`, "X-Should-Retry", "true"), 3 * time.Second},
		{"400", answer(400, `{"error":{"message":"too long","type":"invalid_request_error","code":"context_length_exceeded"}}`), 0},
		{"501", answer(501, ``), 0},
		{"redirection", answer(302, ``, "Location", "http://127.0.0.1:1/"), 0},
		{"connection cut", cutOff(nil), 3 * time.Second},
		{"200 cut in the middle", cutOff(answer(200, chatBody[:40], "Content-Length", "1000")), 3 * time.Second},
		{"200 with HTML", answer(200, "<html>"), 3 * time.Second},
		{"200 with OpenRouter's error", answer(200, `{"error":{"code":502,"message":"Provider returned error"}}`), 3 * time.Second},
		{"200 with a final error", answer(200, `{"error":{"code":402,"message":"Insufficient credits"}}`), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := newUpstream(t, c.first, ok)
			s := newSleeper()
			g := start(t, Options{Models: []Model{u.model(OpenAI)}, Outages: s.policy(outage.Policy{}), Now: func() time.Time { return now }})
			r := post(t, g, "/v1/chat/completions", chatRequest)
			if c.waited == 0 {
				if len(s.waits) != 0 || r.status < 400 {
					t.Errorf("%d after waits %v", r.status, s.waits)
				}
				openAIError(t, r)
				var up *UpstreamError
				if !errors.As(g.Err(), &up) {
					t.Errorf("Err is %v", g.Err())
				}
				return
			}
			if r.status != 200 || r.body != chatBody || len(s.waits) != 1 || s.waits[0] != c.waited {
				t.Errorf("%d after waits %v", r.status, s.waits)
			}
			if r.header.Get("Retry-After") != "" || g.Err() != nil {
				t.Errorf("the failed try shows: %v, %v", r.header, g.Err())
			}
		})
	}
}

func TestRetriesAreBounded(t *testing.T) {
	body := `{"error":{"message":"Overloaded","type":"server_error"}}`
	u := newUpstream(t, answer(503, body))
	s := newSleeper()
	m := &meter{}
	g := start(t, Options{Models: []Model{u.model(OpenAI)}, Outages: s.policy(outage.Policy{For: 2 * time.Minute}), Meter: m})
	r := post(t, g, "/v1/chat/completions", chatRequest)
	if r.status != 503 || r.body != body || r.header.Get("X-Should-Retry") != "false" || len(u.all()) != len(s.waits)+1 {
		t.Errorf("%d %s after %d tries", r.status, r.body, len(u.all()))
	}
	sec := time.Second
	if want := []time.Duration{3 * sec, 6 * sec, 12 * sec, 24 * sec, 48 * sec}; !slices.Equal(s.waits, want) {
		t.Errorf("the waits are %v, want %v", s.waits, want)
	}
	m.is(t, 0, 0, 0, 0)
	var up *UpstreamError
	if !errors.As(g.Err(), &up) || up.Status != 503 || up.Message != "Overloaded" {
		t.Errorf("Err is %v", g.Err())
	}
}

// A provider that fails for half a minute costs time, and no step.
func TestShortOutageIsWaitedOut(t *testing.T) {
	down := answer(500, `{"error":{"message":"oops","type":"server_error"}}`)
	u := newUpstream(t, down, down, down, down, down, down, answer(200, chatBody))
	s := newSleeper()
	g := start(t, Options{Models: []Model{u.model(OpenAI)}, Outages: s.policy(outage.Policy{})})
	if r := post(t, g, "/v1/chat/completions", chatRequest); r.status != 200 || r.body != chatBody || g.Err() != nil {
		t.Errorf("%d %s after waits %v: %v", r.status, r.body, s.waits, g.Err())
	}
}

// Who asks to be asked again soon, and fails all the same, is not asked for ever, and not
// each second.
func TestRetryAfterIsNoFlood(t *testing.T) {
	u := newUpstream(t, answer(429, `{"error":{"message":"busy"}}`, "Retry-After", "1"))
	s := newSleeper()
	g := start(t, Options{Models: []Model{u.model(OpenAI)}, Outages: s.policy(outage.Policy{})})
	if r := post(t, g, "/v1/chat/completions", chatRequest); r.status != 429 || len(s.waits) > 60 || s.waits[len(s.waits)-1] < 15*time.Second {
		t.Errorf("%d after %d waits: %v", r.status, len(s.waits), s.waits)
	}
}

func TestUnreachableProvider(t *testing.T) {
	u := newUpstream(t, answer(200, chatBody))
	model := u.model(OpenAI)
	u.Close()
	s := newSleeper()
	g := start(t, Options{Models: []Model{model}, Outages: s.policy(outage.Policy{})})
	r := post(t, g, "/v1/chat/completions", chatRequest)
	code, message := openAIError(t, r)
	if r.status != 502 || code != codeProvider || !strings.Contains(message, "test gives no answer") || len(s.waits) != 4 {
		t.Errorf("%d %s after waits %v: %s", r.status, code, s.waits, message)
	}
}

func TestWaitingEndsWithTheClient(t *testing.T) {
	u := newUpstream(t, answer(503, `{}`))
	ctx, cancel := context.WithCancel(t.Context())
	g := start(t, Options{Models: []Model{u.model(OpenAI)}, Outages: outage.Policy{Now: time.Now, Sleep: func(c context.Context, _ time.Duration) error {
		cancel()
		<-c.Done()
		return c.Err()
	}}})
	if r := send(t, ctx, g, http.MethodPost, "/v1/chat/completions", chatRequest); r.err == nil {
		t.Errorf("%+v", r)
	}
	if err := g.Close(); err != nil || len(u.all()) != 1 {
		t.Errorf("%v, %d tries", err, len(u.all()))
	}
	// An agent whose time is over while an outage is waited out ends with the reason.
	var up *UpstreamError
	if !errors.As(g.Err(), &up) || up.Status != 503 {
		t.Errorf("Err is %v", g.Err())
	}
}

// A pipes is a network within a synctest bubble: whoever waits on it waits for
// nothing but time, which then passes at once.
type pipes struct {
	conns chan net.Conn
	ended context.Context
	end   context.CancelFunc
}

func newPipes(t *testing.T) *pipes {
	p := &pipes{conns: make(chan net.Conn)}
	p.ended, p.end = context.WithCancel(t.Context())
	return p
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.ended.Done():
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error { p.end(); return nil }

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// client reaches what listens on these pipes.
func (p *pipes) client() *http.Transport {
	return &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		select {
		case p.conns <- theirs:
			return ours, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
}

// A bubble is a gateway and its provider between pipes, and a client of it.
type bubble struct {
	g      *Gateway
	u      *upstream
	client *http.Transport
}

// inBubble runs a test in a synctest bubble and closes the gateway.
func inBubble(t *testing.T, api API, o Options, run func(*testing.T, bubble), handlers ...http.HandlerFunc) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		front, back := newPipes(t), newPipes(t)
		b := bubble{u: upstreamOn(t, back, handlers...), client: front.client()}
		o.Models, o.Transport, o.Outages.Sleep = []Model{b.u.model(api)}, back.client(), func(context.Context, time.Duration) error { return nil }
		b.g = startOn(t.Context(), front, o)
		run(t, b)
		if err := b.g.Close(); err != nil {
			t.Error(err)
		}
		b.u.Close()
	})
}

// inTime asks such a gateway, and says how long it took by the bubble's clock.
func inTime(t *testing.T, request string, m Meter, handlers ...http.HandlerFunc) (r result, tries int, took time.Duration) {
	t.Helper()
	inBubble(t, OpenAI, Options{Meter: m}, func(t *testing.T, b bubble) {
		began := time.Now()
		r = sendBy(t, t.Context(), b.client, b.g, http.MethodPost, "/v1/chat/completions", request)
		tries, took = len(b.u.all()), time.Since(began)
	}, handlers...)
	return r, tries, took
}

func TestHangingProviderIsGivenUp(t *testing.T) {
	m := &meter{}
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	r, tries, took := inTime(t, chatRequest, m, hang, answer(200, chatBody))
	if r.status != 200 || tries != 2 || took != 10*time.Minute {
		t.Errorf("%+v, %d tries in %v", r, tries, took)
	}
	// The provider may be at it still: what was reserved for the first try is counted.
	in := dialect.Estimate(len(chatRequest))
	m.is(t, 2, 100+in, 20+defaultOutput, chatCost+float64(in+10*defaultOutput)/1e6)
}

func TestStreamsAreRetriedBeforeTheirFirstByte(t *testing.T) {
	whole := events(chunk(`{"content":"hello"}`, "stop"), doneChunk)
	for name, first := range map[string]http.HandlerFunc{
		"cut before the first event": cutOff(events()),
		"overloaded":                 events(`data: {"error":{"message":"busy","code":"server_error"}}` + "\n\n"),
		"empty":                      events(),
	} {
		u := newUpstream(t, first, whole)
		g := start(t, Options{Models: []Model{u.model(OpenAI)}})
		if r := post(t, g, "/v1/chat/completions", streamRequest); r.status != 200 || !strings.HasSuffix(r.body, doneChunk) || len(u.all()) != 2 {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
}

func TestStreamsThatBreakAreNoSuccess(t *testing.T) {
	begun := chunk(`{"content":"`+strings.Repeat("z", 300)+`"}`, "null")
	for name, c := range map[string]struct {
		h   http.HandlerFunc
		out int64 // what the provider may have written: as much as was reserved, unless it says that it stopped
	}{
		"connection cut":        {cutOff(events(begun)), defaultOutput},
		"ends early":            {events(begun), defaultOutput},
		"error in the middle":   {events(begun, `data: {"error":{"code":502,"message":"busy"},"choices":[]}`+"\n\n", doneChunk), 100},
		"one event of a finger": {events(begun, "data: {\"choices\":[{\"delta\":{\"con"), defaultOutput},
	} {
		u := newUpstream(t, c.h)
		m := &meter{}
		g := start(t, Options{Models: []Model{u.model(OpenAI)}, Meter: m})
		r := post(t, g, "/v1/chat/completions", streamRequest)
		if r.status != 200 || !errors.Is(r.err, io.ErrUnexpectedEOF) || !strings.HasPrefix(r.body, begun) || !strings.Contains(r.body, `data: {"error":`) {
			t.Errorf("%s: %d, %v\n%s", name, r.status, r.err, r.body)
		}
		if n := len(u.all()); n != 1 {
			t.Errorf("%s: %d tries after the client got something", name, n)
		}
		in := dialect.Estimate(len(streamRequest))
		m.is(t, 1, in, c.out, float64(in+10*c.out)/1e6)
		var up *UpstreamError
		if !errors.As(g.Err(), &up) {
			t.Errorf("%s: Err is %v", name, g.Err())
		}
	}
}

func TestSilentStreamsAreCut(t *testing.T) {
	r, tries, took := inTime(t, streamRequest, &meter{}, func(w http.ResponseWriter, r *http.Request) {
		for range 3 { // each is a sign of life
			time.Sleep(4 * time.Minute)
			events(chunk(`{"content":"a"}`, "null"))(w, r)
		}
		<-r.Context().Done()
	})
	if r.err == nil || !strings.Contains(r.body, errTimeout.Error()) || tries != 1 || took != 17*time.Minute {
		t.Errorf("%v %s, %d tries in %v", r.err, r.body, tries, took)
	}
}

func TestHugeAnswersAreRefused(t *testing.T) {
	u := newUpstream(t, answer(200, `{"x":"`+strings.Repeat("x", 5000)+`"}`), events("data: "+strings.Repeat("x", 5000)))
	g := start(t, Options{Models: []Model{u.model(OpenAI)}, MaxAnswer: 1000, Outages: outage.Policy{For: 1}})
	for _, body := range []string{chatRequest, streamRequest} {
		r := post(t, g, "/v1/chat/completions", body)
		if _, message := openAIError(t, r); r.status != 502 || !strings.Contains(message, "1000 bytes") {
			t.Errorf("%d %s", r.status, message)
		}
	}
}

// No part of a provider's key reaches a client, whatever the provider sends.
func TestKeysStayHere(t *testing.T) {
	leak := "Incorrect API key provided: " + providerKey
	masked := `{"error":{"message":"Incorrect API key provided: ` + providerKey[:8] + `****","type":"invalid_request_error","code":"invalid_api_key"}}`
	for name, h := range map[string]http.HandlerFunc{
		"401":       answer(401, masked),
		"403":       answer(403, `{"error":{"message":"`+leak+`"}}`),
		"400":       answer(400, `{"error":{"message":"`+leak+`"}}`),
		"200":       answer(200, strings.Replace(chatBody, "hello", leak, 1)),
		"in a text": answer(500, leak),
		"header":    answer(400, `{"error":{"message":"no"}}`, "X-Debug", leak),
		"stream":    events(chunk(`{"content":"`+leak+`"}`, "stop"), doneChunk),
		"event":     events(`data: {"error":{"message":"` + leak + `","code":400}}` + "\n\n"),
	} {
		u := newUpstream(t, h)
		var calls []Call
		g := start(t, Options{Models: []Model{u.model(OpenAI)}, OnCall: func(c Call) { calls = append(calls, c) }})
		r := post(t, g, "/v1/chat/completions", streamRequest)
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		all := r.body
		for k, v := range r.header {
			all += k + strings.Join(v, "")
		}
		if err := g.Err(); err != nil {
			all += err.Error()
		}
		if len(calls) != 1 || calls[0].Err != nil && strings.Contains(calls[0].Err.Error(), providerKey) {
			t.Errorf("%s: %+v", name, calls)
		}
		if strings.Contains(all, providerKey) || strings.Contains(all, providerKey[:8]+"*") {
			t.Errorf("%s: the key is in %s", name, all)
		}
	}
	u := newUpstream(t, answer(401, masked))
	g := start(t, Options{Models: []Model{u.model(OpenAI)}})
	if _, message := openAIError(t, post(t, g, "/v1/chat/completions", chatRequest)); !strings.Contains(message, "test refuses the configured key") {
		t.Errorf("%s", message)
	}
	// Whoever reads it is told which key it is, and what tries it again.
	named := u.model(OpenAI)
	named.Provider.KeyName = "TEST_KEY"
	g = start(t, Options{Models: []Model{named}})
	if _, message := openAIError(t, post(t, g, "/v1/chat/completions", chatRequest)); !strings.Contains(message, "test refuses the key in TEST_KEY (401 Unauthorized): check that it is whole") || !strings.Contains(message, "uwf doctor") {
		t.Errorf("%s", message)
	}
	u = newUpstream(t, answer(404, `{"error":{"message":"The model m does not exist","code":"model_not_found"}}`))
	g = start(t, Options{Models: []Model{u.model(OpenAI)}})
	post(t, g, "/v1/chat/completions", chatRequest)
	if err := g.Err(); err == nil || !strings.Contains(err.Error(), "check the model's name in the settings (uwf doctor tries it), model_not_found: The model m does not exist") {
		t.Errorf("%v", err)
	}
}
