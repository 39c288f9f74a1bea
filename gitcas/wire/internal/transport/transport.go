// Package transport carries single requests of the git protocol to a server and
// its answers back: over HTTP, to git's own programs on this machine, and
// through the system's ssh. It does not know what the requests mean.
package transport

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/united-workforce/uwf/gitcas/wire/internal/fault"
)

// The two services of a git server.
const (
	UploadPack  = "git-upload-pack"
	ReceivePack = "git-receive-pack"
)

// Call is one request to a service.
type Call struct {
	Service string
	// V2 asks for protocol version 2.
	V2 bool
	// Advert asks for the service's advertisement (version 0) and sends nothing.
	Advert bool
	// Body is the request, complete up to and with its last flush or pack.
	Body []byte
	// Needs names a capability without which the body must not be sent, where
	// the transport reads the advertisement anyway.
	Needs string
}

// Answer is what came back, and the server's time of it. Finish must be called
// once the answer was read, with the error met; it frees everything and gives
// back the error to report, which may say more than the one met.
type Answer struct {
	io.Reader
	At time.Time
	// Guessed: At is this machine's clock, and nobody knows the server's.
	Guessed bool
	Finish  func(error) error
}

// Transport carries calls to one repository. An error that wraps
// fault.ErrRefused says that the server is there but doesn't take the call in
// that form; other errors wrap a kind of fault.
type Transport interface {
	// URL names the repository, without credentials.
	URL() string
	Call(ctx context.Context, c Call) (*Answer, error)
	// Direct reports whether a push never needs its advertisement read first.
	Direct() bool
	// Close frees idle connections.
	Close() error
}

// Options say how to reach a repository; all must be set but BasicAuth,
// HTTPClient and HostDate.
type Options struct {
	BasicAuth  func(ctx context.Context) (user, pass string, err error)
	HTTPClient *http.Client
	// HostDate asks a host that is reached by ssh what time it is; nil: HostDate.
	HostDate func(ctx context.Context, host string) (time.Time, error)
	Env      []string // what children's environments are picked from
	Now      func() time.Time
	Silence  time.Duration // the longest one
	Total    time.Duration // the longest call, but for what a second each leastRate bytes prolong it
	RefBytes int64         // bounds an advertisement
	Agent    string        // the User-Agent
}

// New returns the transport for a URL, an absolute path, or user@host:path.
func New(raw string, o Options) (Transport, error) {
	if filepath.IsAbs(raw) {
		return newFileTransport(raw, o), nil
	}
	if !strings.Contains(raw, "://") {
		if s, ok := scpLike(raw); ok {
			return newSSHTransport(s, o)
		}
		return nil, fmt.Errorf("%w: it is neither a URL nor an absolute path nor user@host:path", fault.ErrInvalid)
	}
	u, err := url.Parse(raw)
	if err != nil {
		// The error of url.Parse repeats the URL, which may hold a password.
		return nil, fmt.Errorf("%w: it is no URL", fault.ErrInvalid)
	}
	switch u.Scheme {
	case "http", "https":
		return newHTTPTransport(u, o)
	case "file":
		if u.Host != "" && u.Host != "localhost" {
			return nil, fmt.Errorf("%w: a file:// URL on another host, %q", fault.ErrInvalid, u.Host)
		}
		p := filepath.FromSlash(u.Path)
		if runtime.GOOS == "windows" {
			p = strings.TrimPrefix(p, `\`)
		}
		if !filepath.IsAbs(p) || strings.ContainsRune(p, 0) {
			return nil, fmt.Errorf("%w: a file:// URL needs an absolute path", fault.ErrInvalid)
		}
		return newFileTransport(p, o), nil
	case "ssh", "git+ssh", "ssh+git":
		return newSSHTransport(sshTarget{
			user: u.User.Username(), host: u.Hostname(), port: u.Port(), path: sshPath(u.Path),
		}, o)
	}
	return nil, fmt.Errorf("%w: scheme %q: use https, ssh or file", fault.ErrInvalid, u.Scheme)
}

// sshPath gives a URL's path the meaning git gives it: /~user is a home.
func sshPath(p string) string {
	if strings.HasPrefix(p, "/~") {
		return p[1:]
	}
	return p
}

// scpLike reads user@host:path. A colon after a slash belongs to a path, and
// two colons name one of git's remote helpers, which are not run.
func scpLike(s string) (sshTarget, bool) {
	host, path, ok := strings.Cut(s, ":")
	if !ok || host == "" || path == "" || path[0] == ':' || strings.ContainsAny(host, `/\`) {
		return sshTarget{}, false
	}
	var t sshTarget
	if user, h, ok := strings.Cut(host, "@"); ok {
		t.user, host = user, h
	}
	t.host, t.path = strings.Trim(host, "[]"), path
	return t, true
}

// CleanURL is a URL as it may be shown: without user, password and query.
func CleanURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme == "" {
		if i := strings.LastIndexByte(raw, '@'); i >= 0 && strings.Contains(raw, "://") {
			return "…" + fault.OneLine(raw[i:])
		}
		return fault.OneLine(raw)
	}
	if u.Scheme == "http" || u.Scheme == "https" {
		u.User = nil
	} else if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	u.RawQuery, u.Fragment = "", ""
	return u.String()
}
