package acp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// server is the server's side in a test: it reads lines of the client and prints its own.
type server struct {
	in  *bufio.Reader
	out io.WriteCloser
}

// next is the client's next message.
func (s *server) next() (m received, err error) {
	line, err := s.in.ReadBytes('\n')
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(line, &m)
}

// print prints lines; that nobody reads them any more is not the server's business.
func (s *server) print(lines ...string) {
	for _, line := range lines {
		_, _ = io.WriteString(s.out, line+"\n")
	}
}

// startServer runs a server and a client of it. The server's error fails the test.
func startServer(t *testing.T, serve func(*server) error) *Client {
	t.Helper()
	fromServer, serverOut := io.Pipe()
	serverIn, toServer := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := serve(&server{in: bufio.NewReader(serverIn), out: serverOut})
		_ = serverOut.Close()
		_ = serverIn.Close()
		done <- err
	}()
	c := NewClient(fromServer, toServer)
	t.Cleanup(func() {
		c.Close()
		_ = fromServer.Close()
		_ = toServer.Close()
		if err := <-done; err != nil && !errors.Is(err, io.EOF) {
			t.Error("server:", err)
		}
	})
	return c
}

// readRecording reads a recording: "> " the client's line, "< " the server's.
func readRecording(t testing.TB, name string) []string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "recorded", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

// replay is a server that says what a real one said, once it was told what that was told.
func replay(lines []string) func(*server) error {
	return func(s *server) error {
		for i, line := range lines {
			if said, ok := strings.CutPrefix(line, "< "); ok {
				s.print(said)
				continue
			}
			var want received
			if err := json.Unmarshal([]byte(line[2:]), &want); err != nil {
				return fmt.Errorf("line %d: %w", i+1, err)
			}
			got, err := s.next()
			if err != nil {
				return err
			}
			if got.Method != want.Method || string(got.ID) != string(want.ID) || !sameJSON(told(got), told(want)) {
				return fmt.Errorf("line %d: the client said %s %s %s, recorded is %s", i+1, got.Method, got.ID, told(got), line)
			}
		}
		return nil
	}
}

// told is what matters of a message to a server: not who the client is, nor how it words an error.
func told(m received) json.RawMessage {
	switch {
	case m.Method == "initialize":
		return json.RawMessage(`"hello"`)
	case m.Error != nil:
		return json.RawMessage(fmt.Sprint(m.Error.Code))
	case m.Method != "":
		return m.Params
	}
	return m.Result
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// begin opens a session.
func begin(ctx context.Context, c *Client, mode, meta string) error {
	if err := c.Initialize(ctx); err != nil {
		return err
	}
	if err := c.StartSession(ctx, "/workspace", nil, "", json.RawMessage(meta)); err != nil {
		return err
	}
	if mode == "" {
		return nil
	}
	return c.SetMode(ctx, mode)
}
