package modeltest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// Wire is a dialect in which models are asked.
type Wire string

// The wires: POST /v1/chat/completions, /v1/responses, /v1/messages, and Google's
// /v1beta/models/MODEL:generateContent. The folders before them do not matter.
const (
	Chat      Wire = "chat"
	Responses Wire = "responses"
	Messages  Wire = "messages"
	Gemini    Wire = "gemini"
)

// InputTokens and OutputTokens are what every answer is said to have taken.
const (
	InputTokens  = 1200
	OutputTokens = 34
)

// Request is one request that came in. Status is what it was answered with: 0 while it is
// not, -1 where the client went first.
type Request struct {
	Method string
	URL    *url.URL
	Header http.Header
	Body   []byte
	Wire   Wire
	Status int
}

// Server is the provider. The zero value speaks all wires and takes every key. Its fields
// are set before the first request.
type Server struct {
	// Wires are those that it speaks, all where there are none. Others are not found.
	Wires []Wire
	// Key is the only one that it takes, whichever header or parameter brings it; "" for
	// all.
	Key string
	// Models are those that it lists. It answers for every one.
	Models []string
	// Roles are marks by the name of a role: as if they stood in each prompt of uwf's for it.
	Roles map[string]string
	// Cost is what chat completions say that each answer cost, in US dollars, as OpenRouter
	// does; 0: they say nothing.
	Cost float64

	mu       sync.Mutex
	requests []*Request
	changed  chan struct{} // closed when requests change
}

// Requests are those so far, in the order in which they came.
func (s *Server) Requests() []Request {
	requests, _ := s.look()
	return requests
}

func (s *Server) look() ([]Request, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	all := make([]Request, len(s.requests))
	for i, r := range s.requests {
		all[i] = *r
	}
	return all, s.changed
}

// Await waits until the requests so far are what is waited for.
func (s *Server) Await(ctx context.Context, enough func([]Request) bool) error {
	for {
		requests, changed := s.look()
		if enough(requests) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waiting for requests to the model, %d so far: %w", len(requests), ctx.Err())
		}
	}
}

// change changes what is known of requests, and wakes who waits for that.
func (s *Server) change(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	rec := &Request{Method: r.Method, URL: r.URL, Header: r.Header.Clone(), Body: body, Wire: findWire(r.URL.Path)}
	var number int
	s.change(func() { s.requests = append(s.requests, rec); number = len(s.requests) })
	reply := s.answer(r, rec, number)
	if reply == nil {
		<-r.Context().Done()
		s.change(func() { rec.Status = -1 })
		return
	}
	s.change(func() { rec.Status = reply.status })
	w.Header().Set("Content-Type", reply.kind)
	w.Header().Set("Request-Id", fmt.Sprintf("req_%d", number))
	w.WriteHeader(reply.status)
	// Who doesn't listen any more has what he wanted.
	_, _ = w.Write(reply.body)
	if reply.cut {
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler) // how net/http is told to drop a connection
	}
}

type reply struct {
	status int
	kind   string
	body   []byte
	cut    bool
}

// answer is what a request is answered with, nil for nothing as long as the client waits.
func (s *Server) answer(r *http.Request, rec *Request, number int) *reply {
	path := r.URL.Path
	switch {
	case s.Key != "" && !hasKey(r, s.Key):
		return refuse(rec.Wire, http.StatusUnauthorized, "Incorrect API key provided")
	case r.Method == http.MethodGet && strings.HasSuffix(path, "/models"):
		return jsonReply(http.StatusOK, s.listModels())
	case strings.HasSuffix(path, "/count_tokens"):
		return jsonReply(http.StatusOK, object{"input_tokens": (len(rec.Body) + 3) / 4})
	case strings.HasSuffix(path, ":countTokens"):
		return jsonReply(http.StatusOK, object{"totalTokens": (len(rec.Body) + 3) / 4})
	case r.Method != http.MethodPost || rec.Wire == "" || len(s.Wires) > 0 && !slices.Contains(s.Wires, rec.Wire):
		return refuse(rec.Wire, http.StatusNotFound, "no such path "+path)
	}
	var asked object
	if err := json.Unmarshal(rec.Body, &asked); err != nil {
		return refuse(rec.Wire, http.StatusBadRequest, "the request is no JSON object: "+err.Error())
	}
	c := readConversation(rec.Wire, asked)
	if role := yourRole.FindStringSubmatch(c.joinText("user")); role != nil {
		c.messages = append(c.messages, message{role: "user", text: s.Roles[role[1]]})
	}
	does := decide(c)
	switch {
	case does.refuse != 0:
		return refuse(rec.Wire, does.refuse, fmt.Sprintf("fake failure %d", does.refuse))
	case does.hang:
		return nil
	}
	model := field[string](asked, "model")
	if rec.Wire == Gemini {
		model, _, _ = strings.Cut(path[strings.LastIndexByte(path, '/')+1:], ":")
	}
	whole, events := writeAnswer(rec.Wire, turn{number: number, model: model, action: does, usage: wantsUsage(asked), cost: s.Cost})
	if rec.Wire == Gemini && !strings.Contains(path, ":stream") || rec.Wire != Gemini && !field[bool](asked, "stream") {
		return jsonReply(http.StatusOK, whole)
	}
	if does.cut {
		events = events[:1]
	}
	return &reply{status: http.StatusOK, kind: "text/event-stream", body: bytes.Join(events, nil), cut: does.cut}
}

func findWire(path string) Wire {
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		return Chat
	case strings.HasSuffix(path, "/responses"):
		return Responses
	case strings.HasSuffix(path, "/messages"):
		return Messages
	case strings.HasSuffix(path, ":generateContent"), strings.HasSuffix(path, ":streamGenerateContent"):
		return Gemini
	}
	return ""
}

func hasKey(r *http.Request, key string) bool {
	return slices.Contains([]string{
		strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), r.Header.Get("X-Api-Key"),
		r.Header.Get("X-Goog-Api-Key"), r.URL.Query().Get("key"),
	}, key)
}

func (s *Server) listModels() object {
	data := list{}
	for _, m := range s.Models {
		data = append(data, object{"id": m, "object": "model", "type": "model", "display_name": m, "created": 1, "owned_by": "fake"})
	}
	return object{"object": "list", "data": data, "has_more": false}
}

func wantsUsage(asked object) bool {
	return field[bool](field[object](asked, "stream_options"), "include_usage")
}

func jsonReply(status int, v object) *reply {
	return &reply{status: status, kind: "application/json", body: marshal(v)}
}

// marshal is for what this package makes, which is all JSON has a form for.
func marshal(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// refuse answers with an error in the wire's form: OpenAI's, Anthropic's or Google's.
func refuse(w Wire, status int, message string) *reply {
	names, known := errorNames[status]
	if !known {
		names = [3]string{"invalid_request_error", "not_found_error", "NOT_FOUND"}
	}
	switch w {
	case Messages:
		return jsonReply(status, object{"type": "error", "error": object{"type": names[1], "message": message}})
	case Gemini:
		return jsonReply(status, object{"error": object{"code": status, "message": message, "status": names[2]}})
	}
	return jsonReply(status, object{"error": object{"message": message, "type": names[0], "param": nil, "code": "fake_failure"}})
}

// errorNames are what OpenAI's, Anthropic's and Google's references call a status.
var errorNames = map[int][3]string{
	400: {"invalid_request_error", "invalid_request_error", "INVALID_ARGUMENT"},
	401: {"invalid_request_error", "authentication_error", "UNAUTHENTICATED"},
	403: {"invalid_request_error", "permission_error", "PERMISSION_DENIED"},
	429: {"rate_limit_error", "rate_limit_error", "RESOURCE_EXHAUSTED"},
	500: {"server_error", "api_error", "INTERNAL"},
	529: {"server_error", "overloaded_error", "UNAVAILABLE"},
}
