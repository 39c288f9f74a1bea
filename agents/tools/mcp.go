package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/united-workforce/uwf/internal/text"
)

// mcpPrefix is what names of tools of MCP servers begin with: mcp__<server>__<tool>.
const mcpPrefix = "mcp__"

// maxMCP bounds an answer of the gateway for an MCP server, in bytes: it takes no more itself.
const maxMCP = 6 << 20

// AddServers offers the tools of MCP servers that the gateway passes calls on to. list is JSON,
// [{name, url}]; empty: there are none. The gateway's servers know no sessions, so that nothing
// is said before the list of tools is asked for. A server that can't be asked is an error: which
// tools there would be nobody knows.
func (s *Set) AddServers(ctx context.Context, list string) error {
	var servers []struct{ Name, URL string }
	if list == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(list), &servers); err != nil {
		return fmt.Errorf("read the list of MCP servers: %w", err)
	}
	for _, server := range servers {
		u, err := url.Parse(server.URL)
		if err != nil || !strings.HasPrefix(server.URL, s.o.Gateway.URL) {
			return fmt.Errorf("the MCP server %q is not at uwf's gateway", server.Name)
		}
		var found struct {
			Tools []struct {
				Name        string          `json:"name"`
				Description string          `json:"description"`
				InputSchema json.RawMessage `json:"inputSchema"`
			} `json:"tools"`
		}
		if err := s.callMCP(ctx, u.Path, "tools/list", nil, &found); err != nil {
			return fmt.Errorf("%w; mend it, or take it out of mcp in the settings", err)
		}
		for _, t := range found.Tools {
			s.tools = append(s.tools, remoteTool(mcpPrefix+server.Name+"__"+strings.ReplaceAll(t.Name, ".", "_"), t.Description, t.InputSchema, u.Path, t.Name))
		}
	}
	return nil
}

// remoteTool is a tool whose calls a server does.
func remoteTool(name, description string, schema json.RawMessage, path, remote string) tool {
	return tool{
		Definition: Definition{Name: name, Description: description, Parameters: schema},
		call: func(s *Set, ctx context.Context, args []byte) (string, error) {
			in, err := decodeArguments[map[string]any](args)
			if err != nil {
				return "", err
			}
			var out mcpResult
			if err := s.callMCP(ctx, path, "tools/call", map[string]any{"name": remote, "arguments": in}, &out); err != nil {
				return "", err
			}
			if out.IsError {
				return "", errors.New(out.describeContent())
			}
			return out.describeContent(), nil
		},
	}
}

// callMCP asks one thing of a server, by JSON-RPC 2.0.
func (s *Set) callMCP(ctx context.Context, path, method string, params, into any) error {
	question, err := text.EncodeJSON(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return err
	}
	var answer struct {
		Result json.RawMessage `json:"result"`
		Error  json.RawMessage `json:"error"`
	}
	if err := s.o.Gateway.askGateway(ctx, path, question, maxMCP, &answer); err != nil {
		return err
	}
	if len(answer.Error) > 0 {
		return errors.New(readError(answer.Error))
	}
	if err := json.Unmarshal(answer.Result, into); err != nil {
		return fmt.Errorf("what %s answers to %s can't be read: %w", path, method, err)
	}
	return nil
}

// mcpResult is what a tool of a server gave.
type mcpResult struct {
	Content []struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		URI      string `json:"uri"`
		MIME     string `json:"mimeType"`
		Resource *struct {
			URI  string `json:"uri"`
			Text string `json:"text"`
		} `json:"resource"`
	} `json:"content"`
	Structured json.RawMessage `json:"structuredContent"`
	IsError    bool            `json:"isError"`
}

// describeContent is a result as text; what is none is named.
func (r *mcpResult) describeContent() string {
	var parts []string
	for _, c := range r.Content {
		switch {
		case c.Type == "text":
			parts = append(parts, c.Text)
		case c.Type == "resource" && c.Resource != nil && c.Resource.Text != "":
			parts = append(parts, c.Resource.Text)
		case c.Type == "resource_link":
			parts = append(parts, "[a link: "+c.URI+"]")
		default:
			parts = append(parts, fmt.Sprintf("[left out: %.20s %.80s]", c.Type, c.MIME))
		}
	}
	if len(parts) == 0 && len(r.Structured) > 0 {
		return string(r.Structured)
	}
	return strings.Join(parts, "\n")
}
