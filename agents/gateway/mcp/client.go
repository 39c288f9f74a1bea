package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/united-workforce/uwf/agents/gateway/dialect"
	"github.com/united-workforce/uwf/internal/text"
)

// versions of the protocol that are spoken: first the one that has no sessions, in which each
// request says its version, then those that begin with initialize. As far as tools go, they are the same.
var versions = []string{stateless, preferred, "2025-11-25", "2025-03-26"}

const (
	stateless = "2026-07-28"
	preferred = "2025-06-18" // of those with initialize
	metaKey   = "io.modelcontextprotocol/"
)

// Bounds of what a server says to one request.
const (
	maxReply  = 4 << 20  // bytes of an answer
	maxRefuse = 64 << 10 // bytes of an answer of another status than 200
	maxStream = 16 << 20 // bytes of a stream, with all that comes before the answer
	maxWishes = 20       // requests of its own in a stream
	closeTime = 2 * time.Second
)

// session is one with the real server; the zero value: none is open.
type session struct {
	version string
	id      string // may be empty in an open one
}

// errSessionOver: the server does not know the session any more, and has done nothing.
var errSessionOver = errors.New("it does not know the session that it has just opened")

// callServer asks the server, in a session. If the session is over, it opens another one and
// asks again, once.
func (p *Proxy) callServer(ctx context.Context, method string, params map[string]any) (json.RawMessage, error) {
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

// openSession opens a session, unless one is open. As a client the gateway is capable of nothing,
// so that no server has reason to ask it for samples, answers of people or folders.
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
		"protocolVersion": preferred, "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "uwf", "version": "1"},
	})
	s.version, err = chooseVersion(raw, err)
	if err == nil && s.version != stateless {
		err = p.notify(ctx, s, message{Method: "notifications/initialized"})
	}
	if err != nil {
		return session{}, err
	}

	p.mu.Lock()
	p.session = s
	p.mu.Unlock()
	return s, nil
}

// chooseVersion is the version that a server answers initialize with. A server that refuses it
// may speak the version without sessions: it says so, or doesn't know what initialize is.
func chooseVersion(raw json.RawMessage, err error) (string, error) {
	var theirs struct {
		Version   string   `json:"protocolVersion"`
		Supported []string `json:"supported"`
	}
	refused := &RPCError{Data: raw}
	if err != nil && !errors.As(err, &refused) {
		return "", err
	}
	if err := json.Unmarshal(refused.Data, &theirs); err != nil && raw != nil {
		return "", fmt.Errorf("what it says of itself can't be read: %w", err)
	}
	switch {
	case slices.Contains(versions, theirs.Version):
		return theirs.Version, nil
	case refused.Code == codeNoMethod || slices.Contains(theirs.Supported, stateless):
		return stateless, nil
	case err != nil && refused.Code != codeVersion:
		return "", err
	}
	spoken := strings.Join(append(theirs.Supported, theirs.Version), " ")
	return "", fmt.Errorf("it speaks version %.200q of the protocol, and only %v are known here", strings.TrimSpace(spoken), versions)
}

// exchangeMessage sends a request and reads its answer. A session that the answer opens is put into s.
func (p *Proxy) exchangeMessage(ctx context.Context, s *session, method string, params map[string]any) (out json.RawMessage, err error) {
	p.mu.Lock()
	p.nextID++
	id := json.RawMessage(strconv.Itoa(p.nextID))
	p.mu.Unlock()
	if s.version == stateless {
		params = maps.Clone(params)
		params["_meta"] = map[string]any{metaKey + "protocolVersion": stateless, metaKey + "clientCapabilities": map[string]any{}}
	}
	tool, _ := params["name"].(string)
	resp, err := p.postMessage(ctx, *s, message{ID: id, Method: method, Params: encode(params), tool: tool})
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
	req, err := p.newRequest(ctx, s, http.MethodPost, bytes.NewReader(encode(m)))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if s.version == stateless {
		req.Header.Set("Mcp-Method", m.Method)
	}
	if s.version == stateless && m.tool != "" { // settings allow it, so any header can have it
		req.Header.Set("Mcp-Name", m.tool)
	}
	resp, err := p.transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK || len(m.ID) == 0 && resp.StatusCode/100 == 2 || m.Method == "" {
		return resp, nil
	}
	said, err := io.ReadAll(io.LimitReader(resp.Body, maxRefuse))
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		said = nil // the status says enough
	}
	return nil, describeStatus(resp.StatusCode, s, said)
}

// describeStatus is the error of an answer of another status than 200, in words. A session is over
// by 404, and by the 400 of servers that were restarted or speak another version since: they
// have done nothing.
func describeStatus(status int, s session, said []byte) error {
	var m message
	if json.Unmarshal(said, &m) != nil || m.Version != "2.0" || m.Error == nil {
		m.Error = &RPCError{} // it is no answer of JSON-RPC
	}
	names := s.id != "" && (m.Error.Code == codeServer || bytes.Contains(bytes.ToLower(said), []byte("session")))
	switch {
	case status == http.StatusNotFound && s.id != "", status == http.StatusBadRequest && (names || m.Error.Code == codeVersion && s.version != ""):
		return errSessionOver
	case status/100 == 3:
		return fmt.Errorf("it redirects (status %d), which is not followed: correct its url", status)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return fmt.Errorf("it refuses the headers (status %d): check the variables that they take their values from", status)
	case m.Error.Code != 0:
		return m.Error
	}
	_, words := dialect.ErrorMessage(said)
	if words == "" && !json.Valid(said) {
		words = string(said)
	}
	return fmt.Errorf("it answers status %d: %s", status, cmp.Or(text.Cut(text.Line(words), 400), http.StatusText(status)))
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

const refusal = "uwf's gateway asks neither models nor people for a server, and has no folders for it"

// refuseWish answers what a server asks of its client: that it is there, and nothing else.
func (p *Proxy) refuseWish(ctx context.Context, s session, wish message) error {
	answer := message{ID: wish.ID, Error: &RPCError{Code: codeNoMethod, Message: refusal}}
	if wish.Method == "ping" {
		answer.Result, answer.Error = json.RawMessage("{}"), nil
	}
	return p.notify(ctx, s, answer)
}

// notify sends what has no answer.
func (p *Proxy) notify(ctx context.Context, s session, m message) error {
	resp, err := p.postMessage(ctx, s, m)
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
