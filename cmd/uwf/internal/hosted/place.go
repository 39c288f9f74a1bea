// Package hosted is about where a repository is on a forge: what its remote's address says,
// where the forge's API is, and the token that a person of this machine has for it.
package hosted

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/engine/forge"
)

// Place is a repository on a forge.
type Place struct {
	Server     *url.URL // https://github.com
	Repository string   // owner/name
	Remote     string   // the address that it was read from; empty: none
}

// URL is the repository's page.
func (p Place) URL() string { return p.serverURL() + "/" + p.Repository }

func (p Place) serverURL() string { return strings.TrimRight(p.Server.String(), "/") }

// Of reads where a remote's address leads to: over HTTPS, ssh or in ssh's short
// form. A file or a folder is on no forge.
func Of(remote string) (Place, error) {
	given := remote
	host, rest, short := strings.Cut(remote, ":")
	if short && !strings.HasPrefix(rest, "//") && !strings.ContainsAny(host, `/\`) && len(host) > 1 {
		remote = "ssh://" + host + "/" + strings.TrimPrefix(rest, "/")
	}
	u, err := url.Parse(remote)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" && u.Scheme != "ssh" {
		if err == nil && u.User != nil { // its password is shown to nobody
			given = u.Redacted()
		}
		return Place{}, fmt.Errorf("%q is not the address of a repository on a forge", given)
	}
	parts := strings.Split(strings.Trim(strings.TrimSuffix(strings.TrimRight(u.Path, "/"), ".git"), "/"), "/")
	if len(parts) < 2 || parts[len(parts)-1] == "" || parts[len(parts)-2] == "" {
		return Place{}, fmt.Errorf("%q names no owner and repository", u.Redacted())
	}
	n := len(parts) - 2
	server := &url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/" + strings.Join(parts[:n], "/")}
	if n == 0 {
		server.Path = ""
	}
	if u.Scheme == "ssh" {
		server.Scheme, server.Host = "https", u.Hostname()
	}
	return Place{Server: server, Repository: strings.Join(parts[n:], "/"), Remote: given}, nil
}

// Find is [Of] with a host's real name, as ssh -G prints it, where the person's ssh settings have
// an alias for it: people with two accounts do that. An address as the real name leaves the alias.
func Find(ctx context.Context, f *app.Factory, remote string) (Place, error) {
	p, err := Of(remote)
	if err != nil || p.IsGitHub() || p.isByHTTP() {
		return p, err
	}

	for line := range strings.Lines(askProgram(ctx, f, "ssh", "-G", "--", p.Server.Host)) {
		name, ok := strings.CutPrefix(strings.TrimSpace(line), "hostname ")
		if name == "ssh.github.com" { // by which github.com is reached on port 443
			name = "github.com"
		}
		if ok && net.ParseIP(name) == nil {
			p.Server.Host = name
		}
	}
	return p, nil
}

// isByHTTP reports whether git reaches the place by HTTP.
func (p Place) isByHTTP() bool {
	return strings.HasPrefix(p.Remote, "https:") || strings.HasPrefix(p.Remote, "http:")
}

// Other is the forge at a place whose API uwf does not speak, as far as its host's name says it;
// empty: none that is known.
func (p Place) Other() string {
	host := strings.ToLower(p.Server.Hostname())
	if strings.HasSuffix("."+host, ".dev.azure.com") || strings.HasSuffix(host, ".visualstudio.com") {
		return "Azure DevOps"
	}
	words := strings.FieldsFunc(host, func(c rune) bool { return c == '.' || c == '-' })
	for _, name := range []string{"GitLab", "Bitbucket"} {
		if slices.Contains(words, strings.ToLower(name)) {
			return name
		}
	}
	return ""
}

// FindOther is Other for who can ask: a Gitea may have any name.
func (p Place) FindOther(ctx context.Context, c *http.Client) string {
	name := p.Other()
	if name == "" {
		return ""
	}
	if gitea, err := p.IsGitea(ctx, c); gitea && err == nil {
		return ""
	}
	return name
}

// API finds the address of the forge's API, and its flavour. Servers that are neither
// GitHub's nor those of this job are asked whether they are a Gitea.
func (p Place) API(ctx context.Context, getenv func(string) string, c *http.Client) (string, forge.Flavour) {
	if api := getenv("GITHUB_API_URL"); api != "" && sameServer(getenv("GITHUB_SERVER_URL"), p.Server) {
		return api, forge.Detect(api, getenv("GITEA_ACTIONS"))
	}
	if api := p.githubAPI(); api != "" {
		return api, forge.GitHub
	}
	if gitea, err := p.IsGitea(ctx, c); gitea && err == nil {
		return p.serverURL() + "/api/v1", forge.Gitea
	}
	return p.serverURL() + "/api/v3", forge.GitHub
}

// githubAPI is the address of the API of GitHub's own servers; empty for all others.
func (p Place) githubAPI() string {
	host := strings.ToLower(p.Server.Host)
	switch {
	case host == "github.com":
		return "https://api.github.com"
	case strings.HasSuffix(host, ".ghe.com"):
		return "https://api." + host
	}
	return ""
}

// IsGitHub says whether a place is on GitHub's own servers, by their names.
func (p Place) IsGitHub() bool { return p.githubAPI() != "" }

func sameServer(server string, u *url.URL) bool {
	s, err := url.Parse(server)
	return err == nil && s.Scheme == u.Scheme && strings.EqualFold(s.Host, u.Host)
}

// askTime bounds the question what a server is. Somebody waits for the answer.
const askTime = 5 * time.Second

// IsGitea reports whether a place is on a Gitea or Forgejo: GitHub's own servers are not,
// all others are asked for their version, as only those tell it. No token is sent, and what
// another server says does not count. The error says that one did not answer.
func (p Place) IsGitea(ctx context.Context, c *http.Client) (bool, error) {
	if p.githubAPI() != "" {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.serverURL()+"/api/v1/version", nil)
	if err != nil {
		return false, err
	}
	own := *c
	own.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		if req.URL.Hostname() != via[0].URL.Hostname() || len(via) > 3 {
			return http.ErrUseLastResponse
		}
		return nil
	}
	res, err := own.Do(req)
	if err != nil {
		if at, ok := errors.AsType[*url.Error](err); ok {
			err = at.Err // without the address, which who asks knows
		}
		return false, err
	}
	defer func() { _ = res.Body.Close() }() // only read from
	var v struct {
		Version string `json:"version"`
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	if res.StatusCode >= http.StatusInternalServerError {
		return false, fmt.Errorf("%s answers %s", p.serverURL(), res.Status)
	}
	return err == nil && res.StatusCode == http.StatusOK && json.Unmarshal(body, &v) == nil && v.Version != "", err
}

// Client reaches a repository's forge with the token of whoever works on this machine.
type Client struct {
	Factory *app.Factory
	HTTP    *http.Client
	// GHToken asks the gh program for a token; empty: it has none.
	GHToken func(ctx context.Context, host string) string
}

// NewClient makes one that uses the network as this machine does.
func NewClient(f *app.Factory) Client {
	return Client{
		Factory: f, HTTP: &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}},
		GHToken: func(ctx context.Context, host string) string {
			return strings.TrimSpace(askProgram(ctx, f, "gh", "auth", "token", "--hostname", host))
		},
	}
}

// ErrNoToken: nobody is logged in at the forge here.
var ErrNoToken = errors.New("there is no token for the forge's API, so permissions and settings are not known")

// patience is how long a forge is waited for where somebody waits for the answer, and can
// mostly do without it.
const patience = 20 * time.Second

// Forge is the forge of a place. It makes no request but those that find the API.
func (c Client) Forge(ctx context.Context, p Place) (forge.Forge, error) {
	f := c.Factory
	token, err := c.findToken(ctx, p)
	if err != nil {
		return nil, err
	}
	api, flavour := p.API(ctx, f.Getenv, c.HTTP)
	outages := f.Outages()
	if outages.Until.IsZero() {
		outages.Until = f.Now().Add(patience)
	}
	return forge.New(forge.Options{
		APIURL: api, Repository: p.Repository, Token: func() string { return token }, Flavour: flavour, HTTPClient: c.HTTP,
		Outages: outages,
	})
}

// findToken is the environment's for that server, else what gh has for it, else git's
// credential helpers.
func (c Client) findToken(ctx context.Context, p Place) (string, error) {
	token, unsent := c.Factory.Token(p.Server)
	if token != "" {
		return token, nil
	}
	if token = c.GHToken(ctx, p.Server.Host); token != "" {
		return token, nil
	}
	at := p.Server.String()
	if p.isByHTTP() {
		at = p.Remote
	}
	token, err := c.Factory.Password(ctx, at)
	switch {
	case err != nil:
		return "", fmt.Errorf("look for a token for %s: %w", p.Server, err)
	case token == "" && unsent != "":
		return "", fmt.Errorf("%w; %s, and this is %s", ErrNoToken, unsent, p.Server)
	case token == "":
		return "", ErrNoToken
	}
	return token, nil
}

// askProgram is what a program prints; nothing where it isn't here, or fails.
func askProgram(ctx context.Context, f *app.Factory, name string, args ...string) string {
	program, environ, err := f.Program(name)
	if err != nil {
		return "" // it is not installed
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = os.TempDir(), environ, time.Second // of no repository
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return string(out)
}
