package gateway

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/united-workforce/uwf/agents/gateway/dialect"
)

// dial opens a connection to a gateway on loopback.
func dial(t *testing.T, g *Gateway) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(g.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// head is the beginning of a request; its body is up to the caller.
func head(g *Gateway, path string, headers ...string) string {
	return "POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer " + g.key + "\r\n" +
		strings.Join(headers, "\r\n") + "\r\n\r\n"
}

// respond reads what the gateway says on a connection.
func respond(t *testing.T, conn net.Conn) result {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return result{err: err}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return result{resp.StatusCode, resp.Header, string(b), err}
}

// What gets no further whatever its body says is refused before the body is read:
// here it never comes.
func TestRefusedBeforeTheBody(t *testing.T) {
	const length = "Content-Length: 1000000" // less is read and thrown away, to keep the connection
	spend := func(g *Gateway) { g.ledger.settleSpent(spending{}, spending{tokens: 1000, cost: 1}, nil) }
	for name, c := range map[string]struct {
		path    string
		headers []string
		before  func(*Gateway)
		status  int
		says    string
	}{
		"key":                  {"/v1/chat/completions", []string{length, "Authorization: Bearer wrong"}, nil, 401, "key is missing or wrong"},
		"path":                 {"/v1/embeddings", []string{length}, nil, 404, "not served here"},
		"no model there":       {"/v1/messages", []string{length}, nil, 404, "no configured model is reached by /v1/messages; configured are: gpt-test, main"},
		"no model to count":    {"/v1/messages/count_tokens", []string{length}, nil, 404, "no configured model is reached by /v1/messages"},
		"too large":            {"/v1/chat/completions", []string{"Content-Length: 33000000"}, nil, 413, "the request has 33000000 bytes, more than the 8388608 that are taken: shorten the conversation"},
		"compressed":           {"/v1/chat/completions", []string{length, "Content-Encoding: gzip"}, nil, 415, "compressed"},
		"tokens are spent":     {"/v1/chat/completions", []string{length}, spend, 400, "the token budget is spent: 1000 of 1000 tokens"},
		"spent, and too large": {"/v1/chat/completions", []string{"Content-Length: 33000000"}, spend, 400, "the token budget is spent"},
		"cost is unknown":      {"/v1/chat/completions", []string{length}, func(g *Gateway) { g.ledger.settleSpent(spending{}, spending{}, g.models["main"]) }, 400, "what the model gpt-test costs is unknown"},
		"recording failed":     {"/v1/chat/completions", []string{length}, func(g *Gateway) { g.keepError(codeClosed, errors.New("disk full")) }, 400, "disk full"},
		"closing":              {"/v1/chat/completions", []string{length}, func(g *Gateway) { g.mu.Lock(); g.closed = true; g.mu.Unlock() }, 503, "the gateway is closing"},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t, answer(200, chatBody))
			m := u.model(OpenAI)
			if c.path == "/v1/messages" || c.path == "/v1/messages/count_tokens" { // chat would do, by translation
				m.Provider.Wires = []dialect.Dialect{dialect.Responses}
			}
			g := start(t, Options{Models: []Model{m}, Budget: Budget{Tokens: 1000, CostUSD: 5}})
			if c.before != nil {
				g.ledger.running++
				c.before(g)
			}
			conn := dial(t, g)
			request := head(g, c.path, c.headers...)
			if name == "key" {
				request = strings.Replace(request, "Authorization: Bearer "+g.key+"\r\n", "", 1)
			}
			if _, err := io.WriteString(conn, request); err != nil {
				t.Fatal(err)
			}
			if r := respond(t, conn); r.status != c.status || !strings.Contains(r.body, c.says) || r.header.Get("X-Should-Retry") != "false" {
				t.Errorf("%+v", r)
			}
		})
	}
}

// The error of a body that is too large has the form that the client knows.
func TestTooLargeInEachForm(t *testing.T) {
	u := newUpstream(t, answer(200, chatBody))
	claude := u.model(Anthropic)
	claude.Alias = "claude"
	g := start(t, Options{Models: []Model{u.model(OpenAI), claude}, MaxRequest: 1000})
	long := `{"model":"main","x":"` + strings.Repeat("x", 2000) + `"}`
	for _, path := range []string{"/v1/chat/completions", "/v1/responses"} {
		if r := post(t, g, path, long); r.status != 413 {
			t.Errorf("%+v", r)
		} else if code, message := openAIError(t, r); code != codeTooLarge || !strings.Contains(message, "uwf config set gateway.maxBody BYTES") {
			t.Errorf("%s: %s", code, message)
		}
	}
	for _, path := range []string{"/v1/messages", "/v1/messages/count_tokens"} {
		if r := post(t, g, path, long); r.status != 413 {
			t.Errorf("%+v", r)
		} else if kind, message := anthropicError(t, r); kind != "request_too_large" || !strings.Contains(message, "shorten the conversation") {
			t.Errorf("%s: %s", kind, message)
		}
	}
}

// pipe opens a connection in a bubble.
func pipe(t *testing.T, b bubble) net.Conn {
	t.Helper()
	conn, err := b.client.DialContext(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// Few bodies are read at once, however many come: who waits for "100 Continue"
// learns when its turn is.
func TestFewBodiesAreReadAtOnce(t *testing.T) {
	const many = 10
	inBubble(t, OpenAI, Options{}, func(t *testing.T, b bubble) {
		ctx, over := context.WithCancel(t.Context())
		var mu sync.Mutex
		reading := 0
		var all sync.WaitGroup
		for range many {
			conn := pipe(t, b)
			all.Go(func() {
				defer conn.Close()
				if _, err := io.WriteString(conn, head(b.g, "/v1/chat/completions", "Expect: 100-continue", fmt.Sprintf("Content-Length: %d", len(chatRequest)))); err != nil {
					return
				}
				line, err := bufio.NewReader(conn).ReadString('\n')
				if err == nil && strings.Contains(line, "100 Continue") {
					mu.Lock()
					reading++
					mu.Unlock()
				}
				<-ctx.Done()
			})
		}
		synctest.Wait()
		if mu.Lock(); reading != readBodies {
			t.Errorf("%d of %d bodies are read at once", reading, many)
		}
		mu.Unlock()
		time.Sleep(bodyTime + time.Second) // those don't send theirs: the next ones get their turn
		synctest.Wait()
		if mu.Lock(); reading != 2*readBodies {
			t.Errorf("%d bodies were read after %s", reading, bodyTime)
		}
		mu.Unlock()
		over()
		all.Wait()
	}, answer(200, chatBody))
}

// A body that does not come is not waited for.
func TestSlowBodiesAreGivenUp(t *testing.T) {
	inBubble(t, OpenAI, Options{}, func(t *testing.T, b bubble) {
		conn := pipe(t, b)
		defer conn.Close()
		began := time.Now()
		go func() {
			_, _ = io.WriteString(conn, head(b.g, "/v1/chat/completions", "Content-Length: 1000")+chatRequest[:20])
		}()
		if r := respond(t, conn); r.status != http.StatusRequestTimeout || !strings.Contains(r.body, "did not come within 1m0s") || time.Since(began) != time.Minute {
			t.Errorf("%+v after %s", r, time.Since(began))
		}
	}, answer(200, chatBody))
}

// The bodies of all that is under way are bounded together, also those whose length
// was not told; requests of the usual size don't wait for one another.
func TestBodiesUnderWayAreBounded(t *testing.T) {
	const most, many = 2 * leastHeld, 10
	const small = heldBodies * most / leastHeld
	body := func(size int) string {
		return fmt.Sprintf(`{"model":"main","messages":[{"role":"user","content":"%s"}]}`, strings.Repeat("x", size-60))
	}
	for name, c := range map[string]struct {
		body    string
		chunked bool
		want    int
	}{
		"large":          {body(most), false, heldBodies},
		"half as large":  {body(most / 2), false, 2 * heldBodies},
		"small":          {body(1000), false, small},
		"large, chunked": {body(most), true, heldBodies},
		"small, chunked": {body(1000), true, small - 1}, // the next one may be large
	} {
		release := make(chan struct{})
		inBubble(t, OpenAI, Options{MaxRequest: most}, func(t *testing.T, b bubble) {
			release = make(chan struct{})
			var all sync.WaitGroup
			for range many {
				all.Go(func() {
					var from io.Reader = strings.NewReader(c.body)
					if c.chunked {
						from = io.MultiReader(from)
					}
					req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.g.url+"/v1/chat/completions", from)
					if err != nil {
						t.Error(err)
						return
					}
					req.Header.Set("Authorization", "Bearer "+b.g.key)
					resp, err := b.client.RoundTrip(req)
					if err != nil || resp.StatusCode != 200 {
						t.Errorf("%s: %v, %v", name, resp, err)
						return
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				})
			}
			synctest.Wait()
			if n := len(b.u.all()); n != c.want {
				t.Errorf("%s: %d requests are under way, not %d", name, n, c.want)
			}
			close(release)
			all.Wait()
			b.client.CloseIdleConnections()
			if n := len(b.u.all()); n != many {
				t.Errorf("%s: %d requests in all", name, n)
			}
		}, func(w http.ResponseWriter, r *http.Request) { <-release; answer(200, chatBody)(w, r) })
	}
}

// Those that wait for their turn hear when the gateway ends, and a client that goes
// leaves no room taken.
func TestWaitingForATurnEnds(t *testing.T) {
	inBubble(t, OpenAI, Options{MaxRequest: 100}, func(t *testing.T, b bubble) {
		if err := b.g.intake.held.Acquire(t.Context(), heldBodies*100); err != nil {
			t.Fatal(err)
		}
		first, second := make(chan result, 1), make(chan result, 1)
		ctx, hangUp := context.WithCancel(t.Context())
		go func() { first <- sendBy(t, ctx, b.client, b.g, http.MethodPost, "/v1/chat/completions", chatRequest) }()
		synctest.Wait()
		hangUp()
		if r := <-first; r.err == nil {
			t.Errorf("%+v", r)
		}
		go func() {
			second <- sendBy(t, t.Context(), b.client, b.g, http.MethodPost, "/v1/chat/completions", chatRequest)
		}()
		synctest.Wait()
		b.g.stop()
		if r := <-second; r.status != http.StatusServiceUnavailable {
			t.Errorf("%+v", r)
		}
		b.g.intake.held.Release(heldBodies * 100)
		synctest.Wait()
		if !b.g.intake.held.TryAcquire(heldBodies*100) || !b.g.intake.reading.TryAcquire(readBodies) {
			t.Error("room is still taken")
		}
	}, answer(200, chatBody))
}

// chunks writes a body of unknown length: a beginning, a part again and again, an
// end.
func chunks(w io.Writer, begin, part string, n int, end string) error {
	for i := range n + 2 {
		piece := part
		switch i {
		case 0:
			piece = begin
		case n + 1:
			piece = end
		}
		if _, err := fmt.Fprintf(w, "%x\r\n%s\r\n", len(piece), piece); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, "0\r\n\r\n")
	return err
}

// What a hostile request has the gateway allocate is bounded by a few times what
// its body may have, whatever is in it.
func TestMemoryOfHostileRequests(t *testing.T) {
	const mib = 1 << 20
	many := strings.Repeat("{},", 1<<14)
	text := strings.Repeat("x", 1<<16)
	for name, c := range map[string]struct {
		headers          []string
		begin, part, end string
		parts            int
		status           int
		most             uint64 // bytes allocated, ours for sending among them
	}{
		"33 MB":            {[]string{"Content-Length: 33000000"}, "", text, "", 0, 413, mib},
		"33 MB, chunked":   {[]string{"Transfer-Encoding: chunked"}, `{"model":"main","x":"`, text, `"}`, 504, 413, 128 * mib},
		"33 MB of values":  {[]string{"Transfer-Encoding: chunked"}, `{"model":"main","messages":[`, many, `{}]}`, 660, 413, 128 * mib},
		"8 MB of values":   {[]string{"Transfer-Encoding: chunked"}, `{"model":"main","messages":[`, many, `{}]}`, 160, 413, 128 * mib},
		"a million":        {[]string{"Transfer-Encoding: chunked"}, `{"model":"main","messages":[`, many, `{}]}`, 62, 413, 128 * mib},
		"most values":      {[]string{"Transfer-Encoding: chunked"}, `{"model":"main","messages":[{"content":[`, many, `{}]}]}`, 7, 404, 128 * mib},
		"most objects":     {[]string{"Transfer-Encoding: chunked"}, `{"model":"main","messages":[{"content":[`, strings.Repeat(`{"a":0},`, 1<<14), `{}]}]}`, 7, 404, 128 * mib},
		"nested":           {[]string{"Transfer-Encoding: chunked"}, `{"model":"main","messages":`, strings.Repeat("[", 1<<16), `{}]}`, 100, 413, 128 * mib},
		"one text of 8 MB": {[]string{"Transfer-Encoding: chunked"}, `{"model":"main","messages":[{"role":"user","content":"`, text, `"}]}`, 126, 404, 128 * mib},
		"fields":           {[]string{"Transfer-Encoding: chunked"}, `{"model":"main"`, strings.Repeat(`,"a":0`, 1<<14), `}`, 50, 413, 128 * mib},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t, answer(200, chatBody))
			model := u.model(OpenAI)
			model.Alias = "" // what can be read is refused then, before it is sent on
			g := start(t, Options{Models: []Model{model}})
			conn := dial(t, g)
			before := allocated()
			if _, err := io.WriteString(conn, head(g, "/v1/chat/completions", c.headers...)); err != nil {
				t.Fatal(err)
			}
			if c.parts > 0 {
				sent := make(chan struct{})
				defer func() { <-sent }()
				go func() { // the gateway hangs up on what is too much
					defer close(sent)
					_ = chunks(conn, c.begin, c.part, c.parts, c.end)
				}()
			}
			r := respond(t, conn)
			took := allocated() - before
			conn.Close()
			if r.status != c.status {
				t.Errorf("%+v", r)
			}
			if took > c.most {
				t.Errorf("%d KiB were allocated, more than %d", took>>10, c.most>>10)
			}
			t.Logf("%d KiB", took>>10)
		})
	}
}

// allocated is how many bytes this process has allocated so far.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
