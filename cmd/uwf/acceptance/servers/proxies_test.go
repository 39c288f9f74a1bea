package servers

import (
	"os"
	"path/filepath"
	"strings"
)

// proxy starts a reverse proxy before git's http-backend.
func proxy(program, config string, args ...string) func(*lab) access {
	return func(l *lab) access {
		behind := l.serveHandler(l.backend())
		address := strings.TrimSuffix(strings.TrimPrefix(behind.url, "http://"), "/r.git")
		_, port, _ := strings.Cut(address, ":")
		l.check(os.Chmod(l.dir, 0o777)) //nolint:gosec // squid gives up root
		return l.web(program, config, []string{"%BEHIND%", address, "%BEHINDPORT%", port}, args...)
	}
}

const haproxyConfig = `defaults
	mode http
	option http-buffer-request
	timeout connect 10s
	timeout client 100s
	timeout server 100s
frontend front
	bind 127.0.0.1:%PORT%
	default_backend back
backend back
	server git %BEHIND%
`

const varnishConfig = `vcl 4.0;
backend default { .host = "127.0.0.1"; .port = "%BEHINDPORT%"; }
`

const squidConfig = `http_port 127.0.0.1:%PORT% accel defaultsite=localhost
cache_peer 127.0.0.1 parent %BEHINDPORT% 0 no-query no-digest originserver
http_access allow all
pid_filename %DIR%/squid.pid
cache_log stdio:%DIR%/cache.log
access_log none
coredump_dir %DIR%
pinger_enable off
shutdown_lifetime 0 seconds
`

const h2oConfig = `listen: {host: 127.0.0.1, port: %PORT%}
user: %USER%
hosts:
  default:
    paths:
      "/": {proxy.reverse.url: "http://%BEHIND%/"}
`

// proxyRows are reverse proxies before git's http-backend.
func proxyRows() []row {
	rows := []row{
		{name: "haproxy before it", needs: []string{"haproxy"}, version: []string{"haproxy", "-v"}, serve: proxy("haproxy", haproxyConfig, "-db", "-f", "%CONFIG%")},
		{name: "varnish before it", needs: []string{"varnishd"}, version: []string{"varnishd", "-V"}, serve: serveVarnish},
		{name: "squid before it", needs: []string{"squid"}, version: []string{"squid", "-v"}, serve: proxy("squid", squidConfig, "-N", "-f", "%CONFIG%")},
		{name: "h2o before it", needs: []string{"h2o"}, version: []string{"h2o", "-v"}, serve: proxy("h2o", h2oConfig, "-m", "worker", "-c", "%CONFIG%")},
	}
	for i := range rows {
		rows[i].needs = append(rows[i].needs, "git")
		rows[i].config = append(rows[i].config, "http.receivepack", "true")
	}
	return rows
}

func serveVarnish(l *lab) access {
	return proxy("varnishd", varnishConfig, "-F", "-j", "none", "-n", filepath.Join(l.dir, "varnish"), "-a", "127.0.0.1:%PORT%", "-f", "%CONFIG%", "-s", "malloc,16m")(l)
}
