package cli

import "github.com/united-workforce/uwf/internal/text"

// mcpFile is the file below HOME that lists the servers.
const mcpFile = "uwf-mcp.json"

// serverFile is that file in the form that Claude Code introduced; none: there are no servers. Qwen
// Code and Gemini have another name for the address: to them url is a server that speaks HTTP+SSE.
func serverFile(c call, address string) map[string]string {
	if len(c.MCP) == 0 {
		return nil
	}
	servers := map[string]any{}
	for _, m := range c.MCP {
		servers[m.Name] = map[string]any{"type": "http", address: m.URL, "headers": map[string]string{"Authorization": "Bearer " + c.Key}}
	}
	return map[string]string{mcpFile: writeJSON(map[string]any{"mcpServers": servers})}
}

// writeJSON writes what was built here of texts, and so can be written.
func writeJSON(v any) string {
	b, err := text.EncodeJSON(v)
	if err != nil {
		return "{}"
	}
	return string(b)
}
