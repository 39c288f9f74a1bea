package agents

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/agents/gateway"
	"github.com/united-workforce/uwf/agents/gateway/mcp"
)

// realMCP is a server or a client of npm.
type realMCP struct {
	*testing.T
	bin  string
	addr string // of a server
	stop func()
	said *strings.Builder
}

// testMCP puts the gateway between real servers and real clients of the Model Context Protocol.
func testMCP(t *testing.T, bin string) {
	for _, mode := range []string{"stateless", "reject"} {
		t.Run("server, legacy "+mode, func(t *testing.T) {
			m := newRealMCP(t, bin)
			m.serve("testdata/mcp.mjs", "server", mode)
			p, told := m.proxy("add")
			m.asks(p, "tools/list", `{}`, `"name":"add"`)
			m.asks(p, "tools/call", `{"name":"add","arguments":{"a":40,"b":2}}`, `"text":"sum 42"`)
			m.restart("testdata/mcp.mjs", "server", mode)
			m.asks(p, "tools/call", `{"name":"add","arguments":{"a":1,"b":2}}`, `"text":"sum 3"`)
			if len(*told) > 0 {
				t.Errorf("%q", *told)
			}
		})
	}
	t.Run("server-everything", func(t *testing.T) {
		m := newRealMCP(t, bin)
		program := filepath.Join(bin, "..", "@modelcontextprotocol/server-everything/dist/index.js")
		m.serve(program, "streamableHttp")
		p, told := m.proxy("echo", "simulate-research-query")
		m.asks(p, "tools/call", `{"name":"echo","arguments":{"message":"one"}}`, "one")
		m.restart(program, "streamableHttp")
		m.asks(p, "tools/call", `{"name":"echo","arguments":{"message":"two"}}`, "two")
		if len(*told) != 1 || !strings.Contains((*told)[0], "simulate-research-query runs as a task alone") {
			t.Errorf("%q", *told)
		}
	})

	for _, c := range []struct{ mode, version string }{{"sdk", ""}, {"legacy", "2025-11-25"}, {"auto", "2026-07-28"}, {"pinned", "2026-07-28"}} {
		t.Run("client "+c.mode, func(t *testing.T) {
			m := newRealMCP(t, bin)
			m.serve("testdata/mcp.mjs", "server", "reject")
			p, _ := m.proxy("add")
			g, err := gateway.Start(t.Context(), gateway.Options{Sides: map[string]gateway.Side{mcp.PathOf("real"): p}})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := g.Close(); err != nil {
					t.Error(err)
				}
			}()
			key := strings.TrimPrefix(g.AccessEnv()[1], gateway.EnvKey+"=")
			client := newRealMCP(t, bin)
			cmd := client.command("testdata/mcp.mjs", "client", c.mode, g.URL()+mcp.PathOf("real"), key)
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v: %s", err, client.said)
			}
			for _, want := range []string{`"tools":["add"]`, `"text":"sum 42"`, `the tool \"drop\" is not there`, c.version} {
				if !strings.Contains(client.said.String(), want) {
					t.Errorf("%s lacks %s", client.said, want)
				}
			}
		})
	}
}

func newRealMCP(t *testing.T, bin string) *realMCP {
	t.Helper()
	m := &realMCP{T: t, bin: bin, said: &strings.Builder{}}
	t.Cleanup(func() {
		if m.stop != nil {
			m.stop()
		}
	})
	return m
}

func (m *realMCP) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(m.Context(), filepath.Join(m.bin, "node"), args...)
	_, port, _ := net.SplitHostPort(m.addr) // a client has none
	cmd.Env = append(os.Environ(), "UWF_AGENTS_BIN="+m.bin, "PORT="+port)
	cmd.Stdout, cmd.Stderr = m.said, m.said
	return cmd
}

// serve starts a server and waits until it listens.
func (m *realMCP) serve(args ...string) {
	m.Helper()
	if m.addr == "" {
		l, err := (&net.ListenConfig{}).Listen(m.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			m.Fatal(err)
		}
		m.addr = l.Addr().String()
		if err := l.Close(); err != nil {
			m.Fatal(err)
		}
	}
	cmd := m.command(args...)
	if err := cmd.Start(); err != nil {
		m.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it is killed
		close(ended)
	}()
	m.stop = func() {
		_ = cmd.Process.Kill() // it may have ended
		<-ended
	}
	ctx, cancel := context.WithTimeout(m.Context(), deadline)
	defer cancel()
	for {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", m.addr)
		if err == nil {
			_ = c.Close()
			return
		}
		select {
		case <-ended:
			m.Fatalf("the server has ended: %s", m.said)
		case <-ctx.Done():
			m.Fatalf("nobody listens: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (m *realMCP) restart(args ...string) {
	m.Helper()
	m.stop()
	m.serve(args...)
}

// proxy is the gateway's for tools that are pinned as the server has them.
func (m *realMCP) proxy(tools ...string) (*mcp.Proxy, *[]string) {
	m.Helper()
	told, pins := &[]string{}, map[string]string{}
	open := func(tell func(string)) *mcp.Proxy {
		p, err := mcp.New(mcp.Options{Name: "real", URL: "http://" + m.addr + "/mcp", Tools: tools, Pins: pins, Tell: tell,
			PinCommand: func(tool, definition string) string { pins[tool] = definition; return "" }})
		if err != nil {
			m.Fatal(err)
		}
		m.Cleanup(p.Close)
		return p
	}
	m.asks(open(func(string) {}), "tools/list", `{}`, `"tools":[]`)
	return open(func(s string) { *told = append(*told, s) }), told
}

func (m *realMCP) asks(p *mcp.Proxy, method, params, want string) {
	m.Helper()
	ask := func(ctx context.Context, _ []byte, ask func(context.Context) ([]byte, error)) ([]byte, error) {
		return ask(ctx)
	}
	r := p.AnswerSide(m.Context(), fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params), ask)
	if !strings.Contains(string(r.Body), want) {
		m.Errorf("%s %s: %s lacks %s", method, params, r.Body, want)
	}
}
