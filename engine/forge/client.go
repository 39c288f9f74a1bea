package forge

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/go-github/v62/github"
	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/outage"
)

// Options are what a client is made of.
type Options struct {
	// APIURL is the address of the API, as GITHUB_API_URL has it:
	// https://api.github.com, https://HOST/api/v3 or https://HOST/api/v1. Empty:
	// GitHub's own.
	APIURL string
	// Repository is owner/name, as in GITHUB_REPOSITORY.
	Repository string
	// Token gives the token for each request; nil or an empty answer: none is sent.
	Token func() string
	// Flavour is the kind of forge; empty: as Detect says of the address.
	Flavour Flavour
	// HTTPClient makes the requests; nil: one of its own. Its redirects are not
	// followed: the client has its own rule for them.
	HTTPClient *http.Client
	// Outages says how long a forge is waited for that is away or lets nobody in, whom
	// that is told, and has the clock.
	Outages outage.Policy
}

// Detect tells the kind of forge without asking it: Gitea's API ends in /api/v1,
// and its runners set GITEA_ACTIONS to true in every job.
func Detect(apiURL, giteaActions string) Flavour {
	if giteaActions == "true" || strings.HasSuffix(strings.TrimRight(apiURL, "/"), "/api/v1") {
		return Gitea
	}
	return GitHub
}

// client is a Forge over HTTP. The flavours differ in a few calls only, each of
// which says how.
type client struct {
	*connection
	flavour Flavour
	owner   string
}

// connection makes the requests of a client: with the token, again where that helps, and
// with the forge's refusals told apart.
type connection struct {
	o    Options
	gh   *github.Client
	http *http.Client
}

// name is what GitHub and Gitea allow in names of owners and repositories.
var name = lazyregexp.New(`^[A-Za-z0-9_.-]+$`)

// New makes a client. It makes no request.
func New(o Options) (Forge, error) {
	base, err := baseURL(o.APIURL)
	if err != nil {
		return nil, err
	}
	owner, repo, ok := strings.Cut(o.Repository, "/")
	if !ok || !isName(owner) || !isName(repo) {
		return nil, fmt.Errorf("reach the forge: %q is no repository: write it as owner/name (GITHUB_REPOSITORY)", o.Repository)
	}
	if o.Token == nil {
		o.Token = func() string { return "" }
	}
	o.Outages = o.Outages.WithDefaults()
	c := &connection{o: o, gh: github.NewClient(nil), http: &http.Client{}}
	c.gh.BaseURL, c.gh.UserAgent = base, "uwf"
	if o.HTTPClient != nil {
		*c.http = *o.HTTPClient
	}
	c.http.CheckRedirect = sameHost
	return &client{connection: c, flavour: cmp.Or(o.Flavour, Detect(base.Path, "")), owner: owner}, nil
}

func isName(s string) bool { return name.MatchString(s) && s != "." && s != ".." }

// baseURL is the API's address as go-github wants it: with a slash at its end.
func baseURL(s string) (*url.URL, error) {
	if s == "" {
		s = "https://api.github.com"
	}
	u, err := url.Parse(strings.TrimRight(s, "/") + "/")
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf("reach the forge: the address of its API is not usable; set GITHUB_API_URL to one like https://api.github.com or https://gitea.example.com/api/v1")
	}
	u.RawQuery, u.Fragment = "", ""
	return u, nil
}

// now is the time, for what the forge asks to be waited for.
func (c *connection) now() time.Time { return c.o.Outages.Now() }

// sameHost follows the redirects of a renamed repository for what only reads. It
// never carries the token to another server, and never turns a POST into a GET, as
// the standard library does for a 301.
func sameHost(req *http.Request, via []*http.Request) error {
	first := via[0]
	if first.Method != http.MethodGet || len(via) > 3 || req.URL.Scheme != first.URL.Scheme || req.URL.Host != first.URL.Host {
		return http.ErrUseLastResponse
	}
	return nil
}

// over is the same client by another connection.
func (c *client) over(by *connection) *client {
	return &client{connection: by, flavour: c.flavour, owner: c.owner}
}

// ForgeFlavour is the kind of forge.
func (c *client) ForgeFlavour() Flavour { return c.flavour }
