package app

import (
	"net/http"
	"net/url"
)

// Proxy is the proxy that the process's environment names for a request to a
// provider (HTTPS_PROXY, HTTP_PROXY, NO_PROXY, also in small letters). This machine
// itself is never reached through one. It is the standard library's reading: of the
// environment in which the process was started.
func (f *Factory) Proxy(req *http.Request) (*url.URL, error) { return http.ProxyFromEnvironment(req) }
