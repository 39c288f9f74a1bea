package worker

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/agents/gateway"
	"github.com/united-workforce/uwf/agents/gateway/fetch"
	"github.com/united-workforce/uwf/agents/gateway/mcp"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/internal/lists"
)

// sides are what a gateway serves besides models.
type sides struct {
	hosts   []string // that pages are fetched of
	servers []string // of MCP, by name
	open    []*mcp.Proxy
}

// openSides adds what is configured to the gateway's options. A replay serves what the
// recording was made with, whatever is configured here.
func (w *Worker) openSides(o *gateway.Options, t task.Task) *sides {
	s := &sides{hosts: w.config.FetchHosts(), servers: w.config.MCPServers()}
	if w.player != nil {
		s.useRecorded(w.player.AsidePaths(t.Role), w.player.OffersTool(t.Role, fetch.Tool))
	}
	o.Sides = map[string]gateway.Side{}
	if len(s.hosts) > 0 {
		o.Sides[fetch.Path] = fetch.New(fetch.Options{Hosts: s.hosts, Proxy: http.ProxyFromEnvironment})
	}
	notice := func(text string) {
		w.logEvent(thread.Event{Kind: "notice", Thread: t.Thread, Step: t.Step, Role: t.Role, Text: text})
	}
	s.servers = slices.DeleteFunc(s.servers, func(name string) bool {
		p := mcp.Options{Name: name, Tell: notice}
		var err error
		if w.player == nil {
			m := w.config.MCP[name]
			p.URL, p.Tools, p.Pins, p.Proxy = m.URL, m.Tools, m.Pins, http.ProxyFromEnvironment
			p.PinCommand = func(tool, definition string) string { return w.config.PinCommand(name, tool, definition) }
			p.Headers, err = w.config.MCPHeaders(name)
		}
		proxy, unusable := mcp.New(p)
		if err = errors.Join(err, unusable); err != nil { // as with a model whose key is not set
			notice(err.Error() + "; agents go without its tools")
			return true
		}
		s.open = append(s.open, proxy)
		o.Sides[mcp.PathOf(name)] = proxy
		return false
	})
	return s
}

// useRecorded serves what a role's recording was made with.
func (s *sides) useRecorded(paths []string, fetches bool) {
	s.hosts, s.servers = nil, nil
	if fetches || slices.Contains(paths, fetch.Path) {
		s.hosts = []string{"those of the recording"}
	}
	for _, path := range paths {
		if name := mcp.NameAt(path); name != "" {
			s.servers = append(s.servers, name)
		}
	}
}

// environ are the variables that tell agents of it. base is the gateway's root.
func (s *sides) environ(base string) (env []string) {
	if len(s.hosts) > 0 {
		env = append(env, fetch.EnvHosts+"="+strings.Join(s.hosts, ","))
	}
	if len(s.servers) == 0 {
		return env
	}
	list := lists.Map(s.servers, func(name string) mcp.Address { return mcp.Address{Name: name, URL: base + mcp.PathOf(name)} })
	b, err := json.Marshal(list)
	if err != nil { // names and addresses can be written
		return env
	}
	return append(env, mcp.EnvServers+"="+string(b))
}

// close ends the sessions with servers.
func (s *sides) close() {
	for _, p := range s.open {
		p.Close()
	}
}
