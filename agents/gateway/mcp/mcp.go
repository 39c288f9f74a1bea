// Package mcp passes agents' calls on to servers of the Model Context Protocol that trusted
// settings name. To agents a Proxy is a server of its own, without sessions or streams
// (Streamable HTTP with JSON answers); to the real server it is a client that adds the
// headers, and refuses whatever a server may want of one. It speaks the protocol's versions
// with sessions and the one without, on both sides. Agents see the tools that are
// allowed, and of these only what a person has pinned: name, description and input schema.
package mcp

import (
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
	"github.com/united-workforce/uwf/engine/redact"
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

// Options of a Proxy. A replay needs Name alone.
type Options struct {
	Name    string
	URL     string
	Headers map[string]string // with their values, which no agent and no log gets to see
	Tools   []string          // that are allowed
	Pins    map[string]string // tool → its definition, as PinCommand gets it
	// Tell is told, once, what is left out and why, in a sentence.
	Tell func(string)
	// PinCommand is the command that pins a tool's definition, which is JSON.
	PinCommand func(tool, definition string) string
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
	secrets   *redact.Redactor // of the headers' values

	listing sync.Mutex // held while the tools are listed
	opening sync.Mutex // held while a session is opened
	mu      sync.Mutex
	session session
	nextID  int
	tools   []Tool // what agents get, once it is listed
	listed  bool
}

var _ gateway.Side = (*Proxy)(nil)

// New makes a Proxy; Close ends it. Headers whose values can't be taken out of what a server
// says are an error.
func New(o Options) (*Proxy, error) {
	if o.Limit == nil {
		o.Limit = func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeoutCause(ctx, callTime, fmt.Errorf("no answer within %s", callTime))
		}
	}
	var secrets []redact.Secret
	for name, v := range o.Headers {
		_, word, _ := strings.Cut(v, " ") // "Bearer …"
		secrets = append(secrets, redact.Secret{Name: name, Value: v}, redact.Secret{Name: name, Value: word})
	}
	known, err := redact.New(redact.Options{Secrets: secrets, NoShapes: true})
	if err != nil {
		return nil, fmt.Errorf("MCP server %s: the values of its headers: %w", o.Name, err)
	}
	return &Proxy{o: o, secrets: known, transport: &http.Transport{
		Proxy: o.Proxy, TLSHandshakeTimeout: 30 * time.Second, IdleConnTimeout: 90 * time.Second, MaxResponseHeaderBytes: 64 << 10,
	}}, nil
}

// message is one of JSON-RPC 2.0, as asked or as answered.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *RPCError       `json:"error,omitempty"`

	tool      string // that a request calls
	stateless bool   // the answer is to a request in the version without sessions
}

// RPCError is what JSON-RPC has for failures.
type RPCError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *RPCError) Error() string { return e.Message }

// The codes of JSON-RPC and of the protocol that are used here.
const (
	codeInvalid  = -32600 // no request
	codeNoMethod = -32601
	codeParams   = -32602
	codeServer   = -32000 // the real server failed
	codeVersion  = -32022 // it does not speak a version
)

// AnswerSide implements gateway.Side.
func (p *Proxy) AnswerSide(ctx context.Context, body []byte, keep gateway.Keep) gateway.SideReply {
	var m message
	err := json.Unmarshal(body, &m)
	var asks struct {
		Version string `json:"protocolVersion"` // of initialize
		Meta    struct {
			Version string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	}
	_ = json.Unmarshal(m.Params, &asks) // they may be of another kind
	version := asks.Meta.Version
	switch {
	case err != nil || m.Version != "2.0" || m.Method == "" && len(m.Result) == 0 && m.Error == nil:
		return p.newReply(message{ID: json.RawMessage("null"), Error: &RPCError{Code: codeInvalid, Message: "this is no request of JSON-RPC 2.0, one and not a list"}}, "")
	case len(m.ID) == 0 || m.Method == "": // notifications, and answers to what was never asked
		return gateway.SideReply{Status: http.StatusAccepted, About: p.o.Name + ": " + text.OneLine(m.Method)}
	case version != "" && !slices.Contains(versions, version):
		return p.newReply(message{ID: m.ID, Error: &RPCError{codeVersion, fmt.Sprintf("uwf does not speak version %.40q of the protocol", version),
			encode(map[string]any{"supported": versions, "requested": version})}}, m.Method)
	}
	out := message{ID: m.ID, stateless: version == stateless}
	switch m.Method {
	case "initialize", "server/discover":
		out.Result = p.describeSelf(m.Method, asks.Version)
	case "ping":
		out.Result = json.RawMessage("{}")
	case "tools/list":
		out.Result, out.Error = p.keepCall(ctx, keep, map[string]any{"method": m.Method}, p.listForAgent)
	case "tools/call":
		return p.answerCall(ctx, out, m.Params, keep)
	default:
		out.Error = &RPCError{Code: codeNoMethod, Message: fmt.Sprintf("%.80q is not passed on to MCP servers: tools alone are", m.Method)}
	}
	return p.newReply(out, m.Method)
}

// answerCall answers a call of a tool.
func (p *Proxy) answerCall(ctx context.Context, out message, params json.RawMessage, keep gateway.Keep) gateway.SideReply {
	const method = "tools/call"
	var call struct {
		Name      string         `json:"name"`
		Arguments map[string]any `json:"arguments,omitempty"`
	}
	if err := text.DecodeJSON(params, &call); err != nil || call.Name == "" {
		out.Error = &RPCError{Code: codeParams, Message: "a call has the name of a tool, and its arguments as an object"}
		return p.newReply(out, method)
	}

	out.Result, out.Error = p.keepCall(ctx, keep, map[string]any{"method": method, "params": call}, func(ctx context.Context) (json.RawMessage, error) {
		tools, err := p.loadTools(ctx)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(tools, func(t Tool) bool { return t.Name == call.Name }) {
			return nil, &RPCError{Code: codeParams, Message: fmt.Sprintf("MCP server %s: the tool %.80q is not there, not allowed or not pinned", p.o.Name, call.Name)}
		}
		asks := map[string]any{"name": call.Name}
		if call.Arguments != nil {
			asks["arguments"] = call.Arguments
		}
		return p.callServer(ctx, method, asks)
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
	said, err := keep(ctx, encode(question), func(ctx context.Context) ([]byte, error) {
		ctx, cancel := p.o.Limit(ctx)
		defer cancel()
		result, err := ask(ctx)
		return encode(p.newOutcome(ctx, result, err)), nil
	})
	var out outcome
	if err == nil {
		err = json.Unmarshal(said, &out)
	}
	if err != nil {
		return nil, &RPCError{Code: codeServer, Message: err.Error()}
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
	code := codeServer
	said := fmt.Sprintf("MCP server %s: %v", p.o.Name, err)
	if own, ok := errors.AsType[*RPCError](err); ok {
		code, said = own.Code, own.Message
	}
	said, _ = p.secrets.String(said)
	return outcome{Error: &RPCError{Code: code, Message: text.Cut(said, maxMessage)}}
}

// maxMessage bounds the message of an error, in bytes.
const maxMessage = 2000

// cleanResult takes the headers' values out of a result, and what is meant for programs alone.
func (p *Proxy) cleanResult(raw json.RawMessage) (json.RawMessage, error) {
	var v map[string]any
	if err := text.DecodeJSON(raw, &v); err != nil {
		return nil, fmt.Errorf("its result is no object: %w", err)
	}
	if kind, _ := v["resultType"].(string); kind != "" && kind != "complete" {
		return nil, fmt.Errorf("it wants something before it answers (%.40q): "+refusal, kind)
	}
	delete(v, "_meta")
	delete(v, "resultType")
	clean, _, err := p.secrets.Value(v)
	return encode(clean), err
}

func (p *Proxy) newReply(m message, about string) gateway.SideReply {
	m.Version = "2.0"
	var result map[string]any
	if m.stateless && text.DecodeJSON(m.Result, &result) == nil { // it wants to hear that nothing is missing or can be cached
		result["resultType"], result["ttlMs"], result["cacheScope"] = "complete", 0, "private"
		m.Result = encode(result)
	}
	r := gateway.SideReply{Status: http.StatusOK, Body: encode(m), About: p.o.Name + ": " + about}
	if m.Error != nil {
		r.Err = m.Error
	}
	return r
}

// describeSelf answers initialize and server/discover. What the real server says of itself stays
// there: it would go into prompts unseen.
func (p *Proxy) describeSelf(method, version string) json.RawMessage {
	self := map[string]any{"name": p.o.Name, "version": "uwf"}
	out := map[string]any{"capabilities": map[string]any{"tools": map[string]any{}}}
	if method == "server/discover" {
		out["supportedVersions"], out["_meta"] = versions, map[string]any{metaKey + "serverInfo": self}
		return encode(out)
	}
	if !slices.Contains(versions[1:], version) {
		version = preferred
	}
	out["protocolVersion"], out["serverInfo"] = version, self
	return encode(out)
}

// encode writes names, versions and what was read from JSON, which can always be written.
func encode(v any) json.RawMessage {
	b, _ := text.EncodeJSON(v)
	return b
}
