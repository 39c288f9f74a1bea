package wire

import (
	"context"
	"net/http"
	"os"
	"time"

	"github.com/united-workforce/uwf/gitcas/wire/internal/pack"
	"github.com/united-workforce/uwf/gitcas/wire/internal/transport"
)

// DialOptions say how to reach a remote. The zero value works.
type DialOptions struct {
	// BasicAuth gives the user name and the password or token for HTTP(S). It
	// is asked once, and again after the server refused what it gave. An empty
	// password means that there are no credentials. Credentials go to the
	// remote's own host only and into no message.
	BasicAuth func(ctx context.Context) (user, pass string, err error)
	// HTTPClient is used for HTTP(S); nil means a client of the remote's own,
	// which Close frees. Its CheckRedirect is not used.
	HTTPClient *http.Client
	// Env is the environment out of which child processes (git, ssh) get what
	// they need and nothing else; nil means that of this process.
	Env []string
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
	// Limits bound what is read.
	Limits Limits
}

const (
	defaultTimeout = 60 * time.Second
	defaultTotal   = 10 * time.Minute
)

func (o DialOptions) withDefaults() DialOptions {
	if o.Env == nil {
		o.Env = os.Environ()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.Total <= 0 {
		o.Total = defaultTotal
	}
	o.Limits = o.Limits.withDefaults()
	return o
}

// Dial returns the remote at a URL without contacting it. It takes http://,
// https://, file:// and ssh:// URLs, absolute paths, and the short form of ssh,
// user@host:path. The result also implements io.Closer, which frees idle
// connections.
func Dial(rawURL string, o DialOptions) (Remote, error) {
	o = o.withDefaults()
	t, err := transport.New(rawURL, transport.Options{
		BasicAuth: o.BasicAuth, HTTPClient: o.HTTPClient, HostDate: o.HostDate, Env: o.Env, Now: o.Now, Silence: o.Timeout, Total: o.Total, RefBytes: o.Limits.Refs, Agent: agent,
	})
	if err != nil {
		return nil, NewError("open", transport.CleanURL(rawURL), err)
	}
	return &remote{t: t, o: o}, nil
}

// Limits bound what is read from a server. Zero values mean the defaults.
type Limits struct {
	// Object is the largest object, in bytes (default 128 MiB).
	Object int64
	// Total is how many bytes of objects and deltas one fetch may hold
	// (default 1 GiB).
	Total int64
	// Count is how many objects one fetch may hold (default 2,000,000).
	Count int
	// Refs is how many bytes a listing of refs may have (default 256 MiB: some
	// 3 million refs).
	Refs int64
}

func (l Limits) withDefaults() Limits {
	if l.Object <= 0 {
		l.Object = 128 << 20
	}
	if l.Total <= 0 {
		l.Total = 1 << 30
	}
	if l.Count <= 0 {
		l.Count = 2_000_000
	}
	if l.Refs <= 0 {
		l.Refs = 256 << 20
	}
	return l
}

func (l Limits) packLimits() pack.Limits {
	return pack.Limits{Object: l.Object, Total: l.Total, Count: l.Count}
}
