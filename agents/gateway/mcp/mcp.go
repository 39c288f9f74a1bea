// Package mcp passes agents' calls on to servers of the Model Context Protocol that trusted
// settings name. To agents a Proxy is a server of its own, without sessions or streams
// (Streamable HTTP with JSON answers); to the real server it is a client that adds the
// headers, and refuses whatever a server may want of one. Agents see the tools that are
// allowed, and of these only what a person has pinned: name, description and input schema.
package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/united-workforce/uwf/agents/gateway"
	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/text"
)

// EnvServers is the variable that tells agents of the servers, as the JSON of []Address. They
// are asked with the gateway's key.
const EnvServers = "UWF_MCP"

// Address is where agents reach a server through the gateway.
type Address struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

// ReadAddresses reads what EnvServers holds. Names that would be something else in a command line
// are left out; the configuration has none.
func ReadAddresses(list string) []Address {
	var all []Address
	if json.Unmarshal([]byte(list), &all) != nil {
		return nil
	}
	return slices.DeleteFunc(all, func(a Address) bool { return !serverName.MatchString(a.Name) })
}

var serverName = lazyregexp.New(`^[A-Za-z0-9_-]+$`)

// PathOf is where a gateway serves a server.
func PathOf(name string) string { return pathPrefix + name }

const pathPrefix = "/mcp/"

// NameAt is the server that is served at a path; empty: none is.
func NameAt(path string) string {
	name, ok := strings.CutPrefix(path, pathPrefix)
	if !ok {
		return ""
	}
	return name
}

// Options of a Proxy. In a replay Name alone is needed.
type Options struct {
	Name    string
	URL     string
	Headers map[string]string // with their values, which no agent and no log gets to see
	Tools   []string          // that are allowed
	Pins    map[string]string // tool → Sum of its definition
	// Tell is told, once, what is left out and why, in a sentence.
	Tell func(string)
	// PinCommand is the command that pins a tool.
	PinCommand func(tool, sum string) string
	Proxy      func(*http.Request) (*url.URL, error) // nil: none
	// Limit gives one call its time. Nil: two minutes.
	Limit func(context.Context) (context.Context, context.CancelFunc)
}

const callTime = 2 * time.Minute

// Proxy passes calls on to one server. It implements gateway.Side: a question is a message of
// JSON-RPC.
type Proxy struct {
	o         Options
	transport *http.Transport
	secrets   *strings.Replacer

	listing sync.Mutex // held while the tools are listed
	opening sync.Mutex // held while a session is opened
	mu      sync.Mutex
	session session
	nextID  int
	tools   []Tool // what agents get, once it is listed
	listed  bool
}

var _ gateway.Side = (*Proxy)(nil)

// New makes a Proxy; Close ends it.
func New(o Options) *Proxy {
	if o.Limit == nil {
		o.Limit = func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeoutCause(ctx, callTime, fmt.Errorf("no answer within %s", callTime))
		}
	}
	var hide []string
	for _, v := range o.Headers {
		_, word, _ := strings.Cut(v, " ") // "Bearer …"
		for _, secret := range []string{v, word} {
			if len(secret) >= 6 { // shorter ones are parts of words
				hide = append(hide, secret, "[header removed]")
			}
		}
	}
	return &Proxy{o: o, secrets: strings.NewReplacer(hide...), transport: &http.Transport{
		Proxy: o.Proxy, TLSHandshakeTimeout: 30 * time.Second, IdleConnTimeout: 90 * time.Second, MaxResponseHeaderBytes: 64 << 10,
	}}
}

// message is one of JSON-RPC 2.0, as asked or as answered.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *RPCError       `json:"error,omitempty"`
}

// RPCError is what JSON-RPC has for failures.
type RPCError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *RPCError) Error() string { return e.Message }

// The codes of JSON-RPC that are used here.
const (
	codeInvalid  = -32600 // no request
	codeNoMethod = -32601
	codeParams   = -32602
	codeServer   = -32000 // the real server failed
)

// AnswerSide implements gateway.Side.
func (p *Proxy) AnswerSide(ctx context.Context, body []byte, keep gateway.Keep) gateway.SideReply {
	var m message
	err := json.Unmarshal(body, &m)
	switch {
	case err != nil || m.Version != "2.0" || m.Method == "" && len(m.Result) == 0 && m.Error == nil:
		return p.newReply(message{ID: json.RawMessage("null"), Error: &RPCError{codeInvalid, "this is no request of JSON-RPC 2.0, one and not a list"}}, "")
	case len(m.ID) == 0 || m.Method == "": // notifications, and answers to what was never asked
		return gateway.SideReply{Status: http.StatusAccepted, About: p.o.Name + ": " + text.OneLine(m.Method)}
	}
	out := message{ID: m.ID}
	switch m.Method {
	case "initialize":
		out.Result = p.describeSelf(m.Params)
	case "ping":
		out.Result = json.RawMessage("{}")
	case "tools/list":
		out.Result, out.Error = p.keepCall(ctx, keep, map[string]any{"method": m.Method}, p.listForAgent)
	case "tools/call":
		return p.answerCall(ctx, m, keep)
	default:
		out.Error = &RPCError{codeNoMethod, fmt.Sprintf("%.80q is not passed on to MCP servers: tools alone are", m.Method)}
	}
	return p.newReply(out, m.Method)
}

// answerCall answers a call of a tool.
func (p *Proxy) answerCall(ctx context.Context, m message, keep gateway.Keep) gateway.SideReply {
	out := message{ID: m.ID}
	var call struct {
		Name      string         `json:"name"`
		Arguments map[string]any `json:"arguments,omitempty"`
	}
	if err := text.DecodeJSON(m.Params, &call); err != nil || call.Name == "" {
		out.Error = &RPCError{codeParams, "a call has the name of a tool, and its arguments as an object"}
		return p.newReply(out, m.Method)
	}
	out.Result, out.Error = p.keepCall(ctx, keep, map[string]any{"method": m.Method, "params": call}, func(ctx context.Context) (json.RawMessage, error) {
		tools, err := p.loadTools(ctx)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(tools, func(t Tool) bool { return t.Name == call.Name }) {
			return nil, &RPCError{codeParams, fmt.Sprintf("MCP server %s: the tool %.80q is not there, not allowed or not pinned", p.o.Name, call.Name)}
		}
		return p.callServer(ctx, m.Method, call)
	})
	return p.newReply(out, text.OneLine(call.Name))
}

// outcome is a result or an error, as it is recorded.
type outcome struct {
	Result json.RawMessage `json:"result,omitempty"`
	Error  *RPCError       `json:"error,omitempty"`
}

// keepCall has a question answered by ask, or by a recording of that.
func (p *Proxy) keepCall(ctx context.Context, keep gateway.Keep, question any, ask func(context.Context) (json.RawMessage, error)) (json.RawMessage, *RPCError) {
	asked, err := text.EncodeJSON(question)
	if err != nil {
		return nil, &RPCError{codeParams, err.Error()}
	}
	said, err := keep(ctx, asked, func(ctx context.Context) ([]byte, error) {
		ctx, cancel := p.o.Limit(ctx)
		defer cancel()
		result, err := ask(ctx)
		return text.EncodeJSON(p.newOutcome(ctx, result, err))
	})
	var out outcome
	if err == nil {
		err = json.Unmarshal(said, &out)
	}
	if err != nil {
		return nil, &RPCError{codeServer, err.Error()}
	}
	return out.Result, out.Error
}

// newOutcome is what agents are told, without what is in the headers.
func (p *Proxy) newOutcome(ctx context.Context, result json.RawMessage, err error) outcome {
	var clean json.RawMessage
	if err == nil {
		clean, err = p.cleanResult(result)
	}
	if err == nil {
		return outcome{Result: clean}
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	var own *RPCError
	if errors.As(err, &own) {
		return outcome{Error: &RPCError{own.Code, text.Cut(p.secrets.Replace(own.Message), maxMessage)}}
	}
	return outcome{Error: &RPCError{codeServer, text.Cut(p.secrets.Replace(fmt.Sprintf("MCP server %s: %v", p.o.Name, err)), maxMessage)}}
}

// maxMessage bounds the message of an error, in bytes.
const maxMessage = 2000

// cleanResult takes the headers' values out of a result, and what is meant for programs alone.
func (p *Proxy) cleanResult(raw json.RawMessage) (json.RawMessage, error) {
	var v map[string]any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("its result is no object: %w", err)
	}
	delete(v, "_meta")
	return text.EncodeJSON(p.hideSecrets(v))
}

func (p *Proxy) hideSecrets(v any) any {
	switch v := v.(type) {
	case string:
		return p.secrets.Replace(v)
	case []any:
		for i := range v {
			v[i] = p.hideSecrets(v[i])
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, x := range v {
			out[p.secrets.Replace(name)] = p.hideSecrets(x)
		}
		return out
	}
	return v
}

func (p *Proxy) newReply(m message, about string) gateway.SideReply {
	m.Version = "2.0"
	b, err := text.EncodeJSON(m)
	r := gateway.SideReply{Status: http.StatusOK, Body: b, About: p.o.Name + ": " + about, Err: err}
	if m.Error != nil {
		r.Err = errors.Join(err, m.Error)
	}
	return r
}

// describeSelf answers a client's initialize. What the real server says of itself stays there:
// it would go into prompts unseen.
func (p *Proxy) describeSelf(params json.RawMessage) json.RawMessage {
	var asks struct {
		Version string `json:"protocolVersion"`
	}
	if json.Unmarshal(params, &asks) != nil || !slices.Contains(versions[:], asks.Version) {
		asks.Version = versions[0]
	}
	b, err := text.EncodeJSON(map[string]any{
		"protocolVersion": asks.Version, "capabilities": map[string]any{"tools": map[string]any{}},
		"serverInfo": map[string]any{"name": p.o.Name, "version": "uwf"},
	})
	if err != nil { // names and versions can be written
		return nil
	}
	return b
}
