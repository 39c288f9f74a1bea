// Package transport carries single requests of the git protocol to a server and
// its answers back: over HTTP, to git's own programs on this machine, and
// through the system's ssh. It does not know what the requests mean.
package transport

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
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
	// Advert asks for the service's advertisement, and sends nothing.
	Advert bool
	// Body makes the request, complete up to and with its last flush or pack, for the
	// capabilities of the server. A transport gives nil if they are in no answer to this call.
	Body func(Caps) ([]byte, error)

	made []byte // by Body
}

// makeBody makes the request for a server that offers something.
func (c *Call) makeBody(offered Caps) (err error) {
	if !c.Advert {
		c.made, err = c.Body(offered)
	}
	return err
}

// Caps are the words in what a server offers to a service: the names of capabilities of version 0
// (gitprotocol-capabilities(5)) or of version 2 (gitprotocol-v2(5)), and their values. Nil: nobody
// knows.
type Caps map[string]bool

// Offers reports whether a server has something, for all that is known.
func (c Caps) Offers(name string) bool { return c == nil || c[name] }

// Add takes a line of capabilities. A repository of SHA-256 is fault.ErrSHA256.
func (c Caps) Add(line string) error {
	for word := range strings.FieldsFuncSeq(line, func(r rune) bool { return r == ' ' || r == '=' }) {
		c[word] = true
	}
	if c["sha256"] {
		return fault.ErrSHA256
	}
	return nil
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
	Exchange(ctx context.Context, c Call) (*Answer, error)
}

// Options say how to reach a repository. The zero value works.
type Options struct {
	// BasicAuth gives the user name and the password or token for HTTP(S). It
	// is asked once, and again after the server refused what it gave. An empty
	// password means that there are no credentials. Credentials go to the
	// remote's own host only and into no message.
	BasicAuth func(ctx context.Context) (user, pass string, err error)
	// HTTPClient is used for HTTP(S); nil: Go's own. Its CheckRedirect is not used.
	HTTPClient *http.Client
	// Env is the environment out of which child processes (git, ssh) get what
	// they need and nothing else; nil means that of this process.
	Env []string
	// SSHCommand is what git's settings say to run in ssh's place (core.sshCommand), for a
	// shell; empty: nothing. GIT_SSH_COMMAND goes before it. Nil: they are not asked.
	SSHCommand func(ctx context.Context) string
	// HostDate asks the host of an ssh remote what time it is, once and only for some
	// seconds; nil means the Date of https://<host>/.
	HostDate func(ctx context.Context, host string) (time.Time, error)
	// Now is the clock for remotes without one of their own (file://, ssh);
	// nil means time.Now.
	Now func() time.Time
	// Timeout is how long a server may be silent in the middle of a request
	// before it counts as unreachable (default 60 seconds).
	Timeout time.Duration
	// Total is how long a request may take in all, however much the server says:
	// progress, keep-alives, hooks at work (default 10 minutes). Each 64 KiB of a
	// request or its answer prolong it by a second, so that a large repository comes
	// over a poor connection. A deadline of the request's context counts besides.
	Total time.Duration
}

func (o Options) withDefaults() Options {
	if o.Env == nil {
		o.Env = os.Environ()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.HostDate == nil {
		o.HostDate = HostDate
	}
	if o.HTTPClient == nil {
		o.HTTPClient = &http.Client{}
	}
	o.Timeout = cmp.Or(o.Timeout, time.Minute)
	o.Total = cmp.Or(o.Total, 10*time.Minute)
	return o
}

// Agent names this program to servers, in requests and as HTTP User-Agent. Some
// servers look for the "git/".
const Agent = "git/uwf"

// MaxRefs is how many bytes a listing of refs may have: some 3 million refs.
const MaxRefs = 256 << 20

// New returns the transport for a URL, an absolute path, or user@host:path.
func New(raw string, o Options) (Transport, error) {
	o = o.withDefaults()
	if filepath.IsAbs(raw) {
		return &fileTransport{path: filepath.Clean(raw), o: o}, nil
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
		return &fileTransport{path: filepath.Clean(p), o: o}, nil
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
