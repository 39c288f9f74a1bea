package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/gateway/mcp"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/text"
)

// protocolVersion is the version of the protocol that is spoken here.
const protocolVersion = 1

// authRequired is the protocol's code for a server that wants a login first.
const authRequired = -32000

// cancelWait is how long a server has for its answer after session/cancel: less than an agent
// has between SIGTERM and SIGKILL.
const cancelWait = 300 * time.Millisecond

// Policy answers the requests for permission.
type Policy string

const (
	// AllowTools allows what the server asks for, once where it can be told so: the sandbox
	// is what bounds an agent that nobody watches.
	AllowTools Policy = "allow"
	// RejectTools refuses it.
	RejectTools Policy = "reject"
)

// optionKinds are the kinds of options that a policy chooses, best first.
var optionKinds = map[Policy][]string{
	AllowTools:  {"allow_once", "allow_always"},
	RejectTools: {"reject_once", "reject_always"},
}

// Client is a conversation with one server of the Agent Client Protocol, in one session. One
// goroutine uses it.
type Client struct {
	// Policy answers requests for permission. Empty: AllowTools.
	Policy Policy
	// Progress is told what the server's tools do, a line each. Nil: nobody is.
	Progress func(line string)
	// Environ is the server's environment: a login that reads a variable in it needs nobody.
	Environ []string

	conn      *conn
	logins    []login // that the server offers
	takesHTTP bool    // MCP servers over HTTP
	session   string
	offered   []string // modes
	cancelled bool
	answer    answer
	title     string // of the tool call that was told last
}

// NewClient talks to a server by its output and its input. Both are the caller's to close,
// after Close.
func NewClient(output io.Reader, input io.Writer) *Client {
	c := &Client{conn: openConn(output, input)}
	c.conn.serve = c.serveServer
	return c
}

// Close lets go of the server.
func (c *Client) Close() { c.conn.closeConn() }

// login is a way to log in. The kind env_var reads variables, which the draft of the protocol had
// and codex-acp has.
type login struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Type string `json:"type"`
	Vars []struct {
		Name     string `json:"name"`
		Optional bool   `json:"optional"`
	} `json:"vars"`
}

// isReady says whether the login reads variables alone, and has them.
func (l login) isReady(environ []string) bool {
	for _, v := range l.Vars {
		isSet := func(e string) bool { return strings.HasPrefix(e, v.Name+"=") && e != v.Name+"=" }
		if !v.Optional && !slices.ContainsFunc(environ, isSet) {
			return false
		}
	}
	return l.Type == "env_var" && len(l.Vars) > 0
}

// LoginError: the server wants a login before it works.
type LoginError struct {
	Methods []string // what it offers
	Err     error
}

func (e *LoginError) Error() string {
	return fmt.Sprintf("it wants a login (%v; it offers: %s): give it the gateway's key in the form that it knows, by the agent's env, or, where it talks to its own servers only, set login: own for this agent in ~/.uwf/config.yaml",
		e.Err, strings.Join(e.Methods, ", "))
}

func (e *LoginError) Unwrap() error { return e.Err }

// StopError: the server ended its turn without an answer.
type StopError struct{ Reason string }

func (e *StopError) Error() string {
	why, ok := stopReasons[e.Reason]
	if !ok {
		why = "uwf knows no such reason; only end_turn is an answer"
	}
	return fmt.Sprintf("it stopped with %q: %s", text.OneLine(e.Reason), why)
}

// endTurn is the one stop reason that is an answer.
const endTurn = "end_turn"

var stopReasons = map[string]string{
	"max_tokens":        "the model's answer was cut off; raise maxOutput of the model, or give the role less to do",
	"max_turn_requests": "it asked its model as often as it may in one turn; give the role less to do, or raise that limit in the program's own settings",
	"refusal":           "the model refused; change the prompt, or give the role another model",
	"cancelled":         "it was cancelled, though uwf did not ask for it; run the step again",
}

// ErrEmpty: the server's turn ended without words.
var ErrEmpty = errors.New("it ended its turn without an answer; look at its log, and at what its model answered")

// Initialize begins the conversation.
func (c *Client) Initialize(ctx context.Context) error {
	var got struct {
		ProtocolVersion   int `json:"protocolVersion"`
		AgentCapabilities struct {
			MCP struct {
				HTTP bool `json:"http"`
			} `json:"mcpCapabilities"`
		} `json:"agentCapabilities"`
		AuthMethods []login `json:"authMethods"`
	}
	off := map[string]any{"fs": map[string]bool{"readTextFile": false, "writeTextFile": false}, "terminal": false}
	if err := c.callMethod(ctx, "initialize", map[string]any{
		"protocolVersion": protocolVersion, "clientCapabilities": off, "clientInfo": map[string]string{"name": "uwf", "version": "1"},
	}, &got); err != nil {
		return err
	}
	if got.ProtocolVersion != protocolVersion {
		return fmt.Errorf("it speaks version %d of the Agent Client Protocol, uwf version %d; install a version of the program that speaks it", got.ProtocolVersion, protocolVersion)
	}
	c.takesHTTP = got.AgentCapabilities.MCP.HTTP
	c.logins = got.AuthMethods[:min(len(got.AuthMethods), 20)]
	return nil
}

// StartSession starts the session, in a folder. MCP servers, which take a key, are left out where
// the server takes none over HTTP. Meta is a JSON object for extensions of the protocol; nil: there is none.
// If the server wants a login, and one reads variables that it has, StartSession logs in and asks again, once.
func (c *Client) StartSession(ctx context.Context, dir string, servers []mcp.Address, key string, meta json.RawMessage) error {
	list := []any{}
	for _, m := range servers {
		if c.takesHTTP {
			header := map[string]string{"name": "Authorization", "value": "Bearer " + key}
			list = append(list, map[string]any{"type": "http", "name": m.Name, "url": m.URL, "headers": []any{header}})
		}
	}
	params := map[string]any{"cwd": dir, "mcpServers": list}
	if len(meta) > 0 {
		params["_meta"] = meta
	}
	var got struct {
		SessionID string `json:"sessionId"`
		Modes     struct {
			Available []struct {
				ID string `json:"id"`
			} `json:"availableModes"`
		} `json:"modes"`
	}
	err := c.callMethod(ctx, "session/new", params, &got)
	ready := slices.IndexFunc(c.logins, func(l login) bool { return l.isReady(c.Environ) })
	if errors.As(err, new(*LoginError)) && ready >= 0 {
		if err = c.callMethod(ctx, "authenticate", map[string]any{"methodId": c.logins[ready].ID}, nil); err == nil {
			err = c.callMethod(ctx, "session/new", params, &got)
		}
	}
	if err != nil {
		return err
	}
	if got.SessionID == "" {
		return errors.New("session/new: its answer names no session")
	}
	c.session = got.SessionID
	for _, m := range got.Modes.Available[:min(len(got.Modes.Available), 50)] {
		c.offered = append(c.offered, text.OneLine(m.ID))
	}
	return nil
}

// SetMode sets the mode of the session.
func (c *Client) SetMode(ctx context.Context, mode string) error {
	if len(c.offered) > 0 && !slices.Contains(c.offered, mode) {
		return fmt.Errorf("it has no mode %q: it has %s", mode, strings.Join(c.offered, ", "))
	}
	return c.callMethod(ctx, "session/set_mode", map[string]any{"sessionId": c.session, "modeId": mode}, nil)
}

// Prompt asks for one turn and returns its answer. When ctx ends, the server is told to
// cancel and given a moment for it.
func (c *Client) Prompt(ctx context.Context, prompt string) (string, error) {
	const method = "session/prompt"
	c.answer = answer{}
	id, err := c.conn.sendRequest(method, map[string]any{
		"sessionId": c.session, "prompt": []any{map[string]string{"type": "text", "text": prompt}},
	})
	if err != nil {
		return "", c.explainError(method, err)
	}
	var got struct {
		StopReason string `json:"stopReason"`
	}
	err = c.conn.awaitAnswer(ctx, id, &got)
	if ctx.Err() != nil {
		c.cancelPrompt(ctx, id)
		return "", context.Cause(ctx)
	}
	if err != nil {
		return "", c.explainError(method, err)
	}
	if got.StopReason != endTurn {
		return "", &StopError{Reason: got.StopReason}
	}
	said := c.answer.String()
	if strings.TrimSpace(said) == "" {
		return "", ErrEmpty
	}
	return cutPreamble(said), nil
}

// cancelPrompt tells the server to cancel its turn and waits for that, but not for long.
func (c *Client) cancelPrompt(ctx context.Context, id string) {
	c.cancelled = true
	if c.conn.notifyServer("session/cancel", map[string]any{"sessionId": c.session}) != nil {
		return // it reads nothing: its end comes by other means
	}
	wait, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelWait)
	defer stop()
	_ = c.conn.awaitAnswer(wait, id, nil) // whatever it says: it is ended next
}

// callMethod is callServer with an error that says what was called.
func (c *Client) callMethod(ctx context.Context, method string, params, result any) error {
	return c.explainError(method, c.conn.callServer(ctx, method, params, result))
}

// explainError says what was being done when an error came.
func (c *Client) explainError(method string, err error) error {
	if rpc, ok := errors.AsType[*RPCError](err); ok && rpc.Code == authRequired {
		err = &LoginError{Methods: lists.Map(c.logins, func(l login) string { return text.OneLine(l.Name) }), Err: rpc}
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", method, err)
}

// serveServer takes what the server asks or tells; it is the serve of its connection.
func (c *Client) serveServer(m received) any {
	switch m.Method {
	case "session/update":
		c.takeUpdate(m.Params)
	case "session/request_permission":
		return c.decidePermission(m.Params)
	}
	return nil
}

// toolCall is what is read of a tool call.
type toolCall struct {
	Title string `json:"title"`
}

// takeUpdate takes what the server tells of its turn. Updates of other kinds, such as plans,
// commands, thoughts and its own count of tokens, change no answer: they are passed over.
func (c *Client) takeUpdate(params json.RawMessage) {
	var got struct {
		SessionID string `json:"sessionId"`
		Update    struct {
			Kind      string          `json:"sessionUpdate"`
			MessageID string          `json:"messageId"`
			Content   json.RawMessage `json:"content"`
			toolCall
		} `json:"update"`
	}
	if json.Unmarshal(params, &got) != nil || got.SessionID != c.session {
		return
	}
	switch u := got.Update; u.Kind {
	case "agent_message_chunk":
		var content struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		if json.Unmarshal(u.Content, &content) == nil && content.Type == "text" {
			c.answer.addWords(u.MessageID, content.Text)
		}
	case "tool_call", "tool_call_update":
		c.passTool(u.toolCall)
	}
}

// passTool forgets what was said before a tool call: it was no answer.
func (c *Client) passTool(call toolCall) {
	c.answer = answer{}
	if title := text.OneLine(call.Title); title != "" && title != c.title && c.Progress != nil {
		c.title = title
		c.Progress(title)
	}
}

// decidePermission answers a request for permission by the policy.
func (c *Client) decidePermission(params json.RawMessage) any {
	var got struct {
		SessionID string   `json:"sessionId"`
		Call      toolCall `json:"toolCall"`
		Options   []struct {
			ID   string `json:"optionId"`
			Kind string `json:"kind"`
		} `json:"options"`
	}
	refused := map[string]any{"outcome": map[string]string{"outcome": "cancelled"}}
	if json.Unmarshal(params, &got) != nil || got.SessionID != c.session || c.cancelled {
		return refused
	}
	c.passTool(got.Call)
	policy := c.Policy
	if policy == "" {
		policy = AllowTools
	}
	for _, kind := range optionKinds[policy] {
		for _, o := range got.Options {
			if o.Kind == kind {
				return map[string]any{"outcome": map[string]string{"outcome": "selected", "optionId": o.ID}}
			}
		}
	}
	return refused
}

// answer collects the words of a turn since its last tool call.
type answer struct {
	text    strings.Builder
	message string // id of the message that the last words are of
}

// addWords adds words. What is more than an answer may have is dropped: the kit refuses it, and
// says so to the agent.
func (a *answer) addWords(message, words string) {
	if a.message != message && a.text.Len() > 0 && !strings.HasSuffix(a.text.String(), "\n") {
		words = "\n" + words
	}
	a.message = message
	a.text.WriteString(words[:min(len(words), max(agents.MaxAnswer+1-a.text.Len(), 0))])
}

func (a *answer) String() string { return strings.ToValidUTF8(a.text.String(), "\uFFFD") }
