package worker

import (
	"net/http"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/agents/gateway"
	"github.com/united-workforce/uwf/agents/gateway/fetch"
	"github.com/united-workforce/uwf/engine/task"
)

// addSides adds what the gateway serves besides models, and returns the variables that tell
// agents of it. A replay serves what the recording was made with, whatever is configured here.
func (w *Worker) addSides(o *gateway.Options, t task.Task) (env []string) {
	o.Sides = map[string]gateway.Side{}
	hosts := w.config.FetchHosts()
	if w.player != nil {
		hosts = nil
		if w.player.OffersTool(t.Role, fetch.Tool) || slices.Contains(w.player.AsidePaths(t.Role), fetch.Path) {
			hosts = []string{"those of the recording"}
		}
	}
	if len(hosts) > 0 {
		o.Sides[fetch.Path] = fetch.New(fetch.Options{Hosts: hosts, Proxy: http.ProxyFromEnvironment})
		env = append(env, fetch.EnvHosts+"="+strings.Join(hosts, ","))
	}
	return env
}
