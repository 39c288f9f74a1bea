package cli

import (
	"encoding/json"

	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/text"
)

// EnvMCP lists the MCP servers that the gateway passes requests on to, as JSON: [{name, url}].
const EnvMCP = "UWF_MCP"

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

// writeJSON writes what was built here of texts, and so can be written.
func writeJSON(v any) string {
	b, err := text.EncodeJSON(v)
	if err != nil {
		return "{}"
	}
	return string(b)
}
