package acp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/united-workforce/uwf/internal/text"
)

const (
	// maxLine bounds one message of a server, in bytes: tools' output comes in them.
	maxLine = 8 << 20
	// maxLines bounds what a server may print in all. Every few words of a model are a line.
	maxLines = 1 << 20
	// maxStray bounds the lines that are no messages, and the answers to nobody.
	maxStray = 1000
	// maxQueued bounds the messages that a server has not read yet.
	maxQueued = 64
	// maxID bounds the id of a server's request, in bytes.
	maxID = 256
)

// methodNotFound is the JSON-RPC code for a method that there is not.
const methodNotFound = -32601

// message is one of JSON-RPC 2.0: a request has a method and an id, a notification a method
// alone, an answer an id alone.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  any             `json:"result,omitempty"`
	Error   *RPCError       `json:"error,omitempty"`
}

// received is a message as it came.
type received struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *RPCError       `json:"error"`
}

// RPCError is an answer that is an error.
type RPCError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *RPCError) Error() string {
	said := text.Cut(text.Line(e.Message), 500)
	if len(e.Data) > 0 && string(e.Data) != "null" {
		said += " " + text.Cut(text.Line(string(e.Data)), 500)
	}
	return fmt.Sprintf("error %d: %s", e.Code, said)
}

// conn is a connection to a server: one message a line, both ways. One goroutine uses it.
type conn struct {
	// serve is given what the server asks or tells. The answer to a request is nil where
	// there is no such method.
	serve func(m received) any

	lines  chan []byte // what the server printed; closed at its end
	ended  error       // why; set before lines is closed
	queue  chan []byte // what the server is to read
	quit   chan struct{}
	closed sync.Once
	lastID int64
	stray  int
	odd    string // the first line that is no message
}

// openConn reads a server's output and writes its input until closeConn, or the end of the
// output, whose error says why it ended.
func openConn(r io.Reader, w io.Writer) *conn {
	c := &conn{lines: make(chan []byte), queue: make(chan []byte, maxQueued), quit: make(chan struct{})}
	go c.readLines(r)
	go c.writeQueue(w)
	return c
}

// closeConn lets go of the server; who owns the two streams closes them, too.
func (c *conn) closeConn() { c.closed.Do(func() { close(c.quit) }) }

func (c *conn) readLines(r io.Reader) {
	defer close(c.lines)
	in := bufio.NewReaderSize(r, 64<<10)
	for range maxLines {
		line, err := readLine(in)
		if len(bytes.TrimSpace(line)) > 0 {
			select {
			case c.lines <- line:
			case <-c.quit:
				return
			}
		}
		if err != nil {
			c.ended = err
			return
		}
	}
	c.ended = fmt.Errorf("it printed more than %d lines; give the role less to do", maxLines)
}

// readLine reads a line, without its end; the last one may come with an error.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > maxLine {
			return nil, fmt.Errorf("it printed a line of more than %d bytes", maxLine)
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// writeQueue writes in a goroutine of its own, since a server may read nothing before its
// own output was read.
func (c *conn) writeQueue(w io.Writer) {
	for {
		select {
		case line := <-c.queue:
			if _, err := w.Write(line); err != nil {
				return // the end of its output says better why it is gone
			}
		case <-c.quit:
			return
		}
	}
}

// postMessage queues a message for the server.
func (c *conn) postMessage(m message) error {
	m.Version = "2.0"
	line, err := text.EncodeJSON(m)
	if err != nil {
		return err
	}
	select {
	case c.queue <- append(line, '\n'):
		return nil
	default:
		return fmt.Errorf("it has not read the last %d messages", maxQueued)
	}
}

// notifyServer sends a notification.
func (c *conn) notifyServer(method string, params any) error {
	return c.postMessage(message{Method: method, Params: params})
}

// callServer sends a request and waits for its answer.
func (c *conn) callServer(ctx context.Context, method string, params, result any) error {
	id, err := c.sendRequest(method, params)
	if err != nil {
		return err
	}
	return c.awaitAnswer(ctx, id, result)
}

// sendRequest sends a request and returns its id.
func (c *conn) sendRequest(method string, params any) (string, error) {
	c.lastID++
	id := strconv.FormatInt(c.lastID, 10)
	return id, c.postMessage(message{ID: json.RawMessage(id), Method: method, Params: params})
}

// awaitAnswer waits for the answer to a request and serves the server meanwhile. The error is an
// *RPCError where the answer is one.
func (c *conn) awaitAnswer(ctx context.Context, id string, result any) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case line, ok := <-c.lines:
			if !ok {
				return c.explainEnd()
			}
			m, err := c.takeLine(line, id)
			switch {
			case err != nil:
				return err
			case m == nil:
			case m.Error != nil:
				return m.Error
			default:
				return decodeResult(m.Result, result)
			}
		}
	}
}

// takeLine serves one line of the server; it returns the message that is the answer waited for.
func (c *conn) takeLine(line []byte, id string) (*received, error) {
	var m received
	// Not strict about the version: servers are told apart by what they say.
	if err := text.DecodeJSON(line, &m); err != nil {
		return nil, c.countStray(line)
	}
	asks := len(m.ID) > 0 && string(m.ID) != "null"
	switch {
	case m.Method != "" && asks && len(m.ID) <= maxID:
		return nil, c.answerRequest(m)
	case m.Method != "" && !asks:
		c.serve(m)
		return nil, nil
	case m.Method == "" && string(m.ID) == id:
		return &m, nil
	}
	return nil, c.countStray(line)
}

// answerRequest answers a request of the server.
func (c *conn) answerRequest(m received) error {
	if result := c.serve(m); result != nil {
		return c.postMessage(message{ID: m.ID, Result: result})
	}
	return c.postMessage(message{ID: m.ID, Error: &RPCError{Code: methodNotFound, Message: "uwf does not offer this method"}})
}

// countStray counts what makes no sense here. A few are no reason to end: programs print
// warnings where they should not, and answers come late.
func (c *conn) countStray(line []byte) error {
	if c.stray++; c.odd == "" {
		c.odd = text.OneLine(string(line[:min(len(line), 1000)]))
	}
	if c.stray > maxStray {
		return fmt.Errorf("it printed more than %d lines that are no messages of the protocol, the first is %q; is this the command of an ACP server?", maxStray, c.odd)
	}
	return nil
}

// explainEnd says why a server gives no answers any more.
func (c *conn) explainEnd() error {
	err := c.ended
	if errors.Is(err, io.EOF) {
		err = errors.New("it ended, or closed its output")
	}
	if c.odd != "" {
		return fmt.Errorf("%w; among what it printed is no message of the protocol: %q", err, c.odd)
	}
	return err
}

func decodeResult(b json.RawMessage, result any) error {
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(b, result); err != nil {
		return fmt.Errorf("its answer can't be read: %w", err)
	}
	return nil
}
