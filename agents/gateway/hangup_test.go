package gateway

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/united-workforce/uwf/agents/gateway/dialect"
	"github.com/united-workforce/uwf/internal/outage"
)

// spoken is how a request and its answer look in one dialect, streamed or not. The
// request allows 5000 tokens; the answer reports 100 tokens in and 3000 out.
type spoken struct {
	name    string
	api     API
	path    string
	request string
	answer  []string // the whole body, or the events of a stream
}

const (
	askedOut, spokenIn, spokenOut = 5000, 100, 3000

	spokenCost = (spokenIn*1 + spokenOut*10) / 1e6
)

func everyForm() []spoken {
	const ask = `"messages":[{"role":"user","content":"say hello, please"}],"max_tokens":5000}`
	const response = `{"id":"r","object":"response","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hello","annotations":[]}]}],"usage":{"input_tokens":100,"output_tokens":3000}}`
	return []spoken{
		{"chat", OpenAI, "/v1/chat/completions", `{"model":"main",` + ask,
			[]string{strings.Replace(chatBody, `"completion_tokens":20`, `"completion_tokens":3000`, 1)}},
		{"chat stream", OpenAI, "/v1/chat/completions", `{"model":"main","stream":true,` + ask,
			[]string{chunk(`{"content":"hel"}`, "null"), chunk(`{"content":"lo"}`, "stop"), strings.Replace(usageChunk, `"completion_tokens":20`, `"completion_tokens":3000`, 1), doneChunk}},
		{"responses", OpenAI, "/v1/responses", `{"model":"main","input":"say hello","max_output_tokens":5000}`, []string{response}},
		{"responses stream", OpenAI, "/v1/responses", `{"model":"main","stream":true,"input":"say hello","max_output_tokens":5000}`,
			[]string{"event: response.created\ndata: {\"type\":\"response.created\",\"response\":{}}\n\n", "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":" + response + "}\n\n"}},
		{"messages", Anthropic, "/v1/messages", `{"model":"main",` + ask,
			[]string{`{"type":"message","role":"assistant","content":[{"type":"text","text":"hello"}],"stop_reason":"end_turn","usage":{"input_tokens":100,"output_tokens":3000}}`}},
		{"messages stream", Anthropic, "/v1/messages", `{"model":"main","stream":true,` + ask,
			[]string{"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":100,\"output_tokens\":1}}}\n\n",
				"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":3000}}\n\n",
				"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"}},
	}
}

func (s spoken) streams() bool { return len(s.answer) > 1 }

// write sends parts of the answer.
func (s spoken) write(w http.ResponseWriter, parts ...string) {
	if s.streams() {
		events(parts...)(w, nil)
		return
	}
	answer(200, strings.Join(parts, ""))(w, nil)
}

// slowly sends the first events of a stream, and the rest when it may; until the
// gateway hangs up.
func (s spoken) slowly(first int, reached chan<- struct{}, rest <-chan struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if first > 0 {
			s.write(w, s.answer[:first]...)
		}
		close(reached)
		select {
		case <-rest:
			s.write(w, s.answer[first:]...)
		case <-r.Context().Done():
		}
	}
}

// An agent that hangs up after its request was sent, or in the middle of a stream,
// pays for the answer all the same: it is read to its end though nobody gets it.
func TestHangingUpIsCounted(t *testing.T) {
	for _, s := range everyForm() {
		for first := range len(s.answer) {
			reached, rest := make(chan struct{}), make(chan struct{})
			m, calls := &meter{}, make(chan Call, 1)
			inBubble(t, s.api, Options{Meter: m, OnCall: func(c Call) { calls <- c }}, func(t *testing.T, b bubble) {
				reached, rest = make(chan struct{}), make(chan struct{})
				ctx, hangUp := context.WithCancel(t.Context())
				done := make(chan result)
				go func() { done <- sendBy(t, ctx, b.client, b.g, http.MethodPost, s.path, s.request) }()
				<-reached
				synctest.Wait()
				hangUp()
				if r := <-done; r.err == nil {
					t.Errorf("%s: %+v", s.name, r)
				}
				synctest.Wait() // the gateway knows
				close(rest)
				if c := <-calls; c.Out != spokenOut || !c.HungUp || c.Tries != 1 {
					t.Errorf("%s, %d events: %+v", s.name, first, c)
				}
			}, func(w http.ResponseWriter, r *http.Request) { s.slowly(first, reached, rest)(w, r) })
			m.is(t, 1, spokenIn, spokenOut, spokenCost)
		}
	}
}

// The attack: one request after the other is sent and hung up on. The budget ends
// it, and what the provider bills is what was counted.
func TestHangingUpKeepsTheBudget(t *testing.T) {
	s := everyForm()[0]
	var billed atomic.Int64
	var reached, gone chan struct{}
	m := &meter{}
	inBubble(t, OpenAI, Options{Meter: m, Budget: Budget{Tokens: 10_000}}, func(t *testing.T, b bubble) {
		for range 50 {
			reached, gone = make(chan struct{}), make(chan struct{})
			ctx, hangUp := context.WithCancel(t.Context())
			done := make(chan result)
			go func() { done <- sendBy(t, ctx, b.client, b.g, http.MethodPost, s.path, s.request) }()
			select {
			case <-reached:
				hangUp()
				<-done
			case r := <-done:
				if code, _ := openAIError(t, r); code != codeBudget {
					t.Errorf("%+v", r)
				}
				hangUp()
			}
			synctest.Wait()
			close(gone)
			synctest.Wait()
		}
	}, func(w http.ResponseWriter, _ *http.Request) {
		billed.Add(spokenIn + spokenOut)
		close(reached)
		<-gone
		s.write(w, s.answer...)
	})
	if counted := m.in + m.out; counted != billed.Load() || counted != 4*(spokenIn+spokenOut) {
		t.Errorf("%d tokens are counted, %d billed, of 10000", counted, billed.Load())
	}
}

// What is reserved counts where an answer can't be read to its end: when the job
// ends, at once, when the gateway is closed, after a while, and when the answer goes
// on for ever though nobody waits for it.
func TestCutAnswersCountWhatWasReserved(t *testing.T) {
	endless := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			events(": still there\n\n")(w, r)
			select {
			case <-r.Context().Done():
			case <-time.After(time.Minute):
			}
		}
	}
	for _, s := range everyForm() {
		for name, c := range map[string]struct {
			end  func(b bubble, job context.CancelFunc)
			took time.Duration
			then http.HandlerFunc
		}{
			"the job ends":     {func(_ bubble, job context.CancelFunc) { job() }, 0, nil},
			"the gateway ends": {func(b bubble, _ context.CancelFunc) { _ = b.g.Close() }, 10 * time.Second, nil},
			"without an end":   {func(b bubble, _ context.CancelFunc) {}, 10 * time.Minute, endless},
		} {
			if c.then != nil && !s.streams() {
				continue
			}
			t.Run(s.name+", "+name, func(t *testing.T) {
				m := &meter{}
				synctest.Test(t, func(t *testing.T) {
					front, back := newPipes(t), newPipes(t)
					reached := make(chan struct{})
					u := upstreamOn(t, back, func(w http.ResponseWriter, r *http.Request) {
						if s.streams() {
							s.write(w, s.answer[0])
						}
						close(reached)
						if c.then != nil {
							c.then(w, r)
						}
						<-r.Context().Done()
					})
					job, end := context.WithCancel(t.Context())
					defer end()
					o := Options{Models: []Model{u.model(s.api)}, Transport: back.client(), Meter: m}
					g := startOn(job, front, o)
					ctx, hangUp := context.WithCancel(t.Context())
					done := make(chan result)
					go func() { done <- sendBy(t, ctx, front.client(), g, http.MethodPost, s.path, s.request) }()
					<-reached
					hangUp()
					<-done
					synctest.Wait()
					began := time.Now()
					c.end(bubble{g: g}, end)
					g.active.Wait()
					if took := time.Since(began); took < c.took || took > c.took+time.Minute {
						t.Errorf("it took %s", took)
					}
					if err := errors.Join(g.Close(), g.Close()); err != nil {
						t.Error(err)
					}
					u.Close()
				})
				in, cost := dialect.Estimate(len(s.request)), 1.0
				switch {
				case s.name == "messages stream":
					in = spokenIn // the provider had said so
				case s.api == Anthropic:
					cost = 2 // it may have been kept for an hour
				}
				m.is(t, 1, in, askedOut, (float64(in)*cost+askedOut*10)/1e6)
			})
		}
	}
}

// A gateway that is closed reads what is under way to its end, and lets nothing else
// begin: no other try, and no request that waits.
func TestClosingReadsToTheEnd(t *testing.T) {
	s := everyForm()[0]
	reached, rest := make(chan struct{}), make(chan struct{})
	m := &meter{}
	inBubble(t, OpenAI, Options{Meter: m, Budget: Budget{Tokens: 5000}}, func(t *testing.T, b bubble) {
		reached, rest = make(chan struct{}), make(chan struct{})
		first, second, closed := make(chan result, 1), make(chan result, 1), make(chan error)
		go func() { first <- sendBy(t, t.Context(), b.client, b.g, http.MethodPost, s.path, s.request) }()
		<-reached
		go func() { second <- sendBy(t, t.Context(), b.client, b.g, http.MethodPost, s.path, s.request) }()
		synctest.Wait() // it waits for the budget
		go func() { closed <- b.g.Close() }()
		if r := <-second; r.status != http.StatusServiceUnavailable {
			t.Errorf("what waits is answered %+v", r)
		}
		close(rest)
		if r := <-first; r.status != http.StatusOK || r.body != s.answer[0] {
			t.Errorf("what is under way is answered %+v", r)
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
	}, func(w http.ResponseWriter, r *http.Request) { s.slowly(0, reached, rest)(w, r) })
	m.is(t, 1, spokenIn, spokenOut, spokenCost)
}

// A client that is there when the gateway ends is not given half a stream as a whole.
func TestClosingBreaksStreamsOff(t *testing.T) {
	s := everyForm()[1]
	reached, rest := make(chan struct{}), make(chan struct{})
	inBubble(t, OpenAI, Options{}, func(t *testing.T, b bubble) {
		reached, rest = make(chan struct{}), make(chan struct{})
		done := make(chan result)
		go func() { done <- sendBy(t, t.Context(), b.client, b.g, http.MethodPost, s.path, s.request) }()
		<-reached
		synctest.Wait()
		go func() { synctest.Wait(); close(rest) }()
		if err := b.g.Close(); err != nil {
			t.Error(err)
		}
		if r := <-done; r.err == nil {
			t.Errorf("half an answer is taken for a whole: %+v", r)
		}
	}, func(w http.ResponseWriter, r *http.Request) { s.slowly(1, reached, rest)(w, r) })
}

// Tries that were sent and never answered count as much as was reserved, and the
// budget is asked before each: an agent can't have the gateway itself run over it.
func TestRetriesKeepTheBudget(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"hangs":           func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"cut off":         cutOff(nil),
		"gateway timeout": answer(504, `{"error":{"message":"timed out"}}`),
		"origin timeout":  answer(524, `<html>`),
	} {
		m := &meter{}
		inBubble(t, OpenAI, Options{Meter: m, Budget: Budget{Tokens: 9000}, Outages: outage.Policy{For: time.Hour}}, func(t *testing.T, b bubble) {
			s := everyForm()[0]
			r := sendBy(t, t.Context(), b.client, b.g, http.MethodPost, s.path, s.request)
			if code, _ := openAIError(t, r); code != codeBudget {
				t.Errorf("%s: %+v", name, r)
			}
			var spent *BudgetError
			if n := len(b.u.all()); n != 2 || !errors.As(b.g.Err(), &spent) {
				t.Errorf("%s: %d tries, Err is %v", name, n, b.g.Err())
			}
		}, h)
		in := 2 * dialect.Estimate(len(everyForm()[0].request))
		m.is(t, 2, in, 2*askedOut, float64(in+10*2*askedOut)/1e6)
	}
}

// Answers whose usage nobody can read count as much as came, or was reserved.
func TestAnswersWithoutReadableUsage(t *testing.T) {
	long := strings.Repeat("x", 30_000)
	in := func(s spoken) int64 { return dialect.Estimate(len(s.request)) }
	chat, stream := everyForm()[0], everyForm()[1]
	for name, c := range map[string]struct {
		s    spoken
		h    http.HandlerFunc
		o    Options
		want int64 // tokens out
	}{
		"a stream that is none":        {chat, answer(200, "data: "+long), Options{Outages: outage.Policy{For: 1}}, 10_002},
		"larger than is read":          {chat, answer(200, `{"x":"`+long+`"}`), Options{MaxAnswer: 1000}, askedOut},
		"a stream larger than is read": {stream, events(stream.answer[0], chunk(`{"content":"`+long+`"}`, "null")), Options{MaxAnswer: 20_000}, askedOut},
		"more than was asked for, cut": {stream, cutOff(events(stream.answer[0], chunk(`{"content":"`+long+`"}`, "null"))), Options{}, 10_001},
		"cut before its usage":         {stream, cutOff(events(stream.answer[:2]...)), Options{}, askedOut},
		"cut after its usage":          {stream, cutOff(events(stream.answer[:3]...)), Options{}, spokenOut},
		"an error in its place":        {chat, answer(200, `{"error":{"code":502,"message":"busy"}}`), Options{Outages: outage.Policy{For: 1}}, 0},
		"an error as first event":      {stream, events(`data: {"error":{"code":502,"message":"busy"}}` + "\n\n"), Options{Outages: outage.Policy{For: 1}}, 0},
		"ends before its usage":        {stream, events(stream.answer[:2]...), Options{}, 2},
	} {
		m := &meter{}
		inBubble(t, c.s.api, Options{Meter: m, Outages: c.o.Outages, MaxAnswer: c.o.MaxAnswer}, func(t *testing.T, b bubble) {
			sendBy(t, t.Context(), b.client, b.g, http.MethodPost, c.s.path, c.s.request)
		}, c.h)
		wantIn := in(c.s)
		calls := int64(1)
		switch {
		case name == "cut after its usage":
			wantIn = spokenIn
		case strings.HasPrefix(name, "an error"):
			wantIn, calls = 0, 0
		}
		if m.calls != calls || m.in != wantIn || m.out != c.want {
			t.Errorf("%s: %d calls, %d in, %d out; not %d, %d", name, m.calls, m.in, m.out, wantIn, c.want)
		}
	}
}

// What is hung up on is recorded all the same, so that a replay has it.
func TestHangingUpIsRecorded(t *testing.T) {
	s := everyForm()[1]
	reached, rest := make(chan struct{}), make(chan struct{})
	u := newUpstream(t, s.slowly(1, reached, rest))
	file := t.TempDir() + "/c.jsonl"
	calls := make(chan Call, 1)
	g := start(t, Options{Models: []Model{u.model(OpenAI)}, Record: recorder(t, file, 1, "developer"), OnCall: func(c Call) { calls <- c }})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.url+s.path, strings.NewReader(s.request))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+g.key)
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	resp.Body.Close()
	close(rest)
	<-calls
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	g = start(t, Options{Replay: player(t, file, 1, "developer")})
	if r := post(t, g, s.path, s.request); r.status != 200 || collectEvents(dialect.Chat, r.body).Text != "hello" {
		t.Errorf("%+v", r)
	}
}
