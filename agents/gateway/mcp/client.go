package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/united-workforce/uwf/agents/gateway/dialect"
	"github.com/united-workforce/uwf/internal/text"
)

// versions of the protocol that are spoken, the one that is asked for first. They are the
// same as far as tools go.
var versions = [...]string{"2025-06-18", "2025-11-25", "2025-03-26"}

// Bounds of what a server says to one request.
const (
	maxReply  = 4 << 20  // bytes of an answer
	maxStream = 16 << 20 // bytes of a stream, with all that comes before the answer
	maxWishes = 20       // requests of its own in a stream
	closeTime = 2 * time.Second
)

// session is one with the real server; the zero value: none is open.
type session struct {
	version string
	id      string // may be empty in an open one
}

// errSessionOver: the server does not know the session any more.
var errSessionOver = errors.New("the session is over")

// callServer asks the server, in a session. One that is over is opened anew, once, as the
// protocol demands.
func (p *Proxy) callServer(ctx context.Context, method string, params any) (json.RawMessage, error) {
	for again := false; ; again = true {
		s, err := p.openSession(ctx)
		if err != nil {
			return nil, err
		}
		out, err := p.exchangeMessage(ctx, &s, method, params)
		if again || !errors.Is(err, errSessionOver) {
			return out, err
		}
		p.dropSession(s)
	}
}

// dropSession forgets a session that is over, unless another one has taken its place.
func (p *Proxy) dropSession(over session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session == over {
		p.session = session{}
	}
}

// openSession opens one, where none is open. As a client it is capable of nothing, so that no
// server has reason to ask it for samples, answers of people or folders.
func (p *Proxy) openSession(ctx context.Context) (session, error) {
	p.opening.Lock()
	defer p.opening.Unlock()
	p.mu.Lock()
	s := p.session
	p.mu.Unlock()
	if s.version != "" {
		return s, nil
	}
	raw, err := p.exchangeMessage(ctx, &s, "initialize", map[string]any{
		"protocolVersion": versions[0], "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "uwf", "version": "1"},
	})
	if err != nil {
		return session{}, err
	}
	var hello struct {
		Version string `json:"protocolVersion"`
	}
	if err := json.Unmarshal(raw, &hello); err != nil {
		return session{}, fmt.Errorf("what it says of itself can't be read: %w", err)
	}
	for _, known := range versions {
		if hello.Version == known {
			s.version = known
		}
	}
	if s.version == "" {
		return session{}, fmt.Errorf("it speaks version %.40q of the protocol, and only %v are known here", hello.Version, versions)
	}
	resp, err := p.postMessage(ctx, s, message{Method: "notifications/initialized"})
	if err != nil {
		return session{}, err
	}
	if err := resp.Body.Close(); err != nil {
		return session{}, err
	}
	p.mu.Lock()
	p.session = s
	p.mu.Unlock()
	return s, nil
}

// exchangeMessage sends a request and reads its answer. A session that the answer opens is put into s.
func (p *Proxy) exchangeMessage(ctx context.Context, s *session, method string, params any) (out json.RawMessage, err error) {
	p.mu.Lock()
	p.nextID++
	id := json.RawMessage(strconv.Itoa(p.nextID))
	p.mu.Unlock()
	b, err := text.EncodeJSON(params)
	if err != nil {
		return nil, err
	}
	resp, err := p.postMessage(ctx, *s, message{ID: id, Method: method, Params: b})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	if method == "initialize" {
		s.id = resp.Header.Get("Mcp-Session-Id")
	}
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case err == nil && kind == "application/json":
		return readAnswer(resp.Body, id)
	case err == nil && kind == "text/event-stream":
		return p.readStream(ctx, *s, resp.Body, id)
	}
	return nil, fmt.Errorf("it answers %s with %.80q, which is neither JSON nor a stream of events: is its url right?", method, resp.Header.Get("Content-Type"))
}

// postMessage sends a message. Redirections are not followed: they would take the headers elsewhere.
func (p *Proxy) postMessage(ctx context.Context, s session, m message) (*http.Response, error) {
	m.Version = "2.0"
	b, err := text.EncodeJSON(m)
	if err != nil {
		return nil, err
	}
	req, err := p.newRequest(ctx, s, http.MethodPost, bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := p.transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK || len(m.ID) == 0 && resp.StatusCode/100 == 2 || m.Method == "" {
		return resp, nil
	}
	said, err := io.ReadAll(io.LimitReader(resp.Body, maxMessage))
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		said = nil // the status says enough
	}
	return nil, describeStatus(resp.StatusCode, s, said)
}

func describeStatus(status int, s session, said []byte) error {
	switch {
	case status == http.StatusNotFound && s.id != "":
		return errSessionOver
	case status/100 == 3:
		return fmt.Errorf("it redirects (status %d), which is not followed: correct its url", status)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return fmt.Errorf("it refuses the headers (status %d): check the variables that they take their values from", status)
	}
	return fmt.Errorf("it answers status %d: %s", status, text.Cut(text.Line(string(said)), 400))
}

func (p *Proxy) newRequest(ctx context.Context, s session, method string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, p.o.URL, body)
	if err != nil {
		return nil, err
	}
	for name, value := range p.o.Headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("User-Agent", "uwf")
	if s.version != "" {
		req.Header.Set("Mcp-Protocol-Version", s.version)
	}
	if s.id != "" {
		req.Header.Set("Mcp-Session-Id", s.id)
	}
	return req, nil
}

// readAnswer reads the answer to a request from a body that is nothing else.
func readAnswer(from io.Reader, id json.RawMessage) (json.RawMessage, error) {
	b, err := io.ReadAll(io.LimitReader(from, maxReply+1))
	if err != nil {
		return nil, fmt.Errorf("read its answer: %w", err)
	}
	if len(b) > maxReply {
		return nil, fmt.Errorf("its answer has more than %d bytes", maxReply)
	}
	var m message
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, fmt.Errorf("its answer can't be read: %w", err)
	}
	return m.takeResult(id)
}

// takeResult is the result of the answer to a request.
func (m *message) takeResult(id json.RawMessage) (json.RawMessage, error) {
	switch {
	case m.Error != nil:
		return nil, m.Error
	case !bytes.Equal(m.ID, id):
		return nil, fmt.Errorf("its answer is to request %.40s and not to %s", m.ID, id)
	case len(m.Result) == 0:
		return nil, errors.New("its answer has no result")
	}
	return m.Result, nil
}

// readStream reads events until the answer comes. What the server tells by the way is dropped,
// and what it asks for is refused.
func (p *Proxy) readStream(ctx context.Context, s session, from io.Reader, id json.RawMessage) (json.RawMessage, error) {
	events := dialect.NewEventReader(io.LimitReader(from, maxStream), maxReply)
	for wishes := 0; ; {
		ev, err := events.Next()
		if err != nil {
			return nil, fmt.Errorf("its stream ends before the answer: %w", err)
		}
		var m message
		if len(ev.Data) == 0 { // a comment
			continue
		}
		if err := json.Unmarshal(ev.Data, &m); err != nil {
			return nil, fmt.Errorf("its stream can't be read: %w", err)
		}
		switch {
		case m.Method == "":
			return m.takeResult(id)
		case len(m.ID) > 0:
			if wishes++; wishes > maxWishes {
				return nil, errors.New("it asks without end in the place of answering")
			}
			if err := p.refuseWish(ctx, s, m); err != nil {
				return nil, err
			}
		}
	}
}

// refuseWish answers what a server asks of its client: that it is there, and nothing else.
func (p *Proxy) refuseWish(ctx context.Context, s session, wish message) error {
	answer := message{ID: wish.ID, Error: &RPCError{codeNoMethod, "uwf's gateway asks neither models nor people for a server, and has no folders for it"}}
	if wish.Method == "ping" {
		answer.Result, answer.Error = json.RawMessage("{}"), nil
	}
	resp, err := p.postMessage(ctx, s, answer)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// Close ends the session. A server that does not hear of it ends it by itself.
func (p *Proxy) Close() {
	p.mu.Lock()
	s := p.session
	p.session = session{}
	p.mu.Unlock()
	defer p.transport.CloseIdleConnections()
	if s.id == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	req, err := p.newRequest(ctx, s, http.MethodDelete, nil)
	if err != nil {
		return
	}
	if resp, err := p.transport.RoundTrip(req); err == nil {
		_ = resp.Body.Close() // whatever it says
	}
}
