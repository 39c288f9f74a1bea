package config

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/config/table"
	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/strictyaml"
	"github.com/united-workforce/uwf/internal/text"
)

// MCPServer is a server whose tools agents get through uwf's gateway.
type MCPServer struct {
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers,omitempty"` // name → what it is made of: "Bearer ${VARIABLE}"
	Tools   []string          `json:"tools"`
	Pins    map[string]string `json:"pins,omitempty"` // tool → its definition, as JSON
}

var (
	mcpName     = lazyregexp.New(`^[a-z][a-z0-9-]{0,31}$`)
	mcpTool     = lazyregexp.New(`^[A-Za-z0-9_.-]{1,56}$`)
	headerName  = lazyregexp.New(`^[A-Za-z][A-Za-z0-9-]{0,63}$`)
	headerValue = lazyregexp.New(`^([A-Za-z]+ )?\$\{([A-Za-z_][A-Za-z0-9_]{0,127})\}$`)
)

// maxToolName is how long the name of a tool may be together with its server's: models' APIs
// take 64 characters, and mcp__ and __ are put around them.
const maxToolName = 57

func mcpSettings(name string, m *MCPServer, keep func()) table.Setting {
	return table.Object("A server of the Model Context Protocol, reached by HTTP.",
		table.Field{Name: "url", Setting: table.Text("Its address: https://mcp.example.com/mcp.", &m.URL)},
		table.Field{Name: "headers", Setting: table.Texts("Headers that it gets, by name. Agents see none of them.", "A variable that holds the value, with or without a word before it: Bearer ${DOCS_TOKEN}. Never the value itself.", &m.Headers)},
		table.Field{Name: "tools", Setting: table.List("The tools that agents may use.", &m.Tools)},
		table.Field{Name: "pins", Setting: table.Texts("What these tools are, by their names. A tool that is not pinned, or is no longer what was pinned, is left out, and the run says how it is pinned.", "Its description and input schema, as JSON: what the run shows.", &m.Pins)},
	).Then(func(r *table.Reader, n *strictyaml.Node, path string) {
		note := func(key, fix, format string, args ...any) {
			r.NoteProblem(valueOf(n, key), table.Join(path, key), fix, format, args...)
		}
		if !mcpName.MatchString(name) {
			r.NoteProblem(n, path, "begin with a letter, and use a-z, 0-9 and -", "%.80q can't be the name of a server", name)
		}
		if why := checkServerURL(m.URL); why != "" {
			note("url", "", "%s", why)
		}
		for _, h := range sortedKeys(m.Headers) {
			// What stands there may be a key: it is not repeated.
			if !headerName.MatchString(h) || !headerValue.MatchString(m.Headers[h]) {
				note("headers", "write a variable that holds the value, as in Authorization: Bearer ${DOCS_TOKEN}", "the header %.64q is not made of a variable", h)
			}
		}
		for _, tool := range m.Tools {
			if !mcpTool.MatchString(tool) || len(name)+len(tool) > maxToolName {
				note("tools", "a shorter name of the server leaves more room", "%.80q can't be the name of a tool here: letters, digits, _, - and ., at most %d together with the server's name", tool, maxToolName)
			}
		}
		for _, tool := range sortedKeys(m.Pins) {
			var definition map[string]any
			if text.DecodeJSON([]byte(m.Pins[tool]), &definition) != nil {
				note("pins", "take it out, and the run says what to write", "the pin of %.80q is no definition of a tool as JSON", tool)
			}
		}
		keep()
	})
}

// checkServerURL says what is wrong with a server's address; empty: nothing.
func checkServerURL(raw string) string {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return "url must be an address such as https://mcp.example.com/mcp"
	case u.User != nil || u.Fragment != "":
		return "url can't hold a user, a password or a fragment"
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		return "url must begin with https://: what the server says, and its headers, would pass unencrypted"
	}
	return ""
}

// lookupHeaders looks up the variables that headers are made of.
func (l *loader) lookupHeaders(c *Config) {
	c.variables = map[string]string{}
	for _, m := range c.MCP {
		for _, template := range m.Headers {
			if parts := headerValue.FindStringSubmatch(template); parts != nil { // else it is a problem already
				c.variables[parts[2]] = strings.TrimSpace(l.valueInEnv(parts[2]))
			}
		}
	}
}

// MCPHeaders are the headers of a server with their values. A variable that is not set, or
// whose value no header can have, is an error.
func (c *Config) MCPHeaders(server string) (map[string]string, error) {
	out := map[string]string{}
	for _, h := range sortedKeys(c.MCP[server].Headers) {
		m := headerValue.FindStringSubmatch(c.MCP[server].Headers[h])
		value := c.variables[m[2]]
		if value == "" {
			return nil, fmt.Errorf("MCP server %s: the variable %s is not set, which its header %s is made of", server, m[2], h)
		}
		if !text.IsLine(value) {
			return nil, fmt.Errorf("MCP server %s: the variable %s holds what no header can: more than a line", server, m[2])
		}
		out[h] = m[1] + value
	}
	return out, nil
}

// MCPServers are the names of the servers.
func (c *Config) MCPServers() []string { return slices.Sorted(maps.Keys(c.MCP)) }

// PinCommand is the command that pins a tool of a server, in the file that names the server.
func (c *Config) PinCommand(server, tool, definition string) string {
	at := table.Join("mcp", server)
	flag := ""
	if file, _, _ := splitOrigin(c.Origins[at]); c.shared != "" && file == c.shared {
		flag = "--repo "
	}
	return fmt.Sprintf("uwf config set %s%s %s", flag, text.ShellWord(table.Join(at+".pins", tool)), text.ShellWord(definition))
}
