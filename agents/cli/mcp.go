package cli

import (
	"encoding/json"

	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/text"
)

type mcpServer struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

var serverName = lazyregexp.New(`^[A-Za-z0-9_-]+$`)

// readServers reads that list. Names that would be something else in a command line are left
// out; the configuration has none.
func readServers(list string) (out []mcpServer) {
	var all []mcpServer
	if json.Unmarshal([]byte(list), &all) != nil {
		return nil
	}
	for _, m := range all {
		if serverName.MatchString(m.Name) {
			out = append(out, m)
		}
	}
	return out
}

// mcpFile is the file below HOME that lists the servers.
const mcpFile = "uwf-mcp.json"

// serverFile is that file in the form that Claude Code introduced; none: there are no servers.
func serverFile(c call) map[string]string {
	if len(c.MCP) == 0 {
		return nil
	}
	servers := map[string]any{}
	for _, m := range c.MCP {
		servers[m.Name] = map[string]any{"type": "http", "url": m.URL, "headers": map[string]string{"Authorization": "Bearer " + c.Key}}
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
