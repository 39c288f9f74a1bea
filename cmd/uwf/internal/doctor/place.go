package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/united-workforce/uwf/engine/forge"
)

// Place is a repository on a forge.
type Place struct {
	Server     *url.URL // https://github.com
	Repository string   // owner/name
}

// URL is the repository's page.
func (p Place) URL() string { return strings.TrimRight(p.Server.String(), "/") + "/" + p.Repository }

// PlaceOf reads where a remote's address leads to: over HTTPS, ssh or in ssh's short
// form. A file or a folder is on no forge.
func PlaceOf(remote string) (Place, error) {
	none := fmt.Errorf("%q is not the address of a repository on a forge", remote)
	host, rest, short := strings.Cut(remote, ":")
	if short && !strings.HasPrefix(rest, "//") && !strings.ContainsAny(host, `/\`) && len(host) > 1 {
		remote = "ssh://" + host + "/" + strings.TrimPrefix(rest, "/")
	}
	u, err := url.Parse(remote)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" && u.Scheme != "ssh" {
		if err == nil && u.User != nil { // its password is shown to nobody
			none = fmt.Errorf("%q is not the address of a repository on a forge", u.Redacted())
		}
		return Place{}, none
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
	return Place{Server: server, Repository: strings.Join(parts[n:], "/")}, nil
}

// API finds the address of the forge's API, and its flavour. Servers that are neither
// GitHub's nor those of this job are asked whether they are a Gitea.
func (p Place) API(ctx context.Context, getenv func(string) string, c *http.Client) (string, forge.Flavour) {
	gitea := getenv("GITEA_ACTIONS")
	if api := getenv("GITHUB_API_URL"); api != "" && sameServer(getenv("GITHUB_SERVER_URL"), p.Server) {
		return api, forge.Detect(api, gitea)
	}
	host := strings.ToLower(p.Server.Host)
	switch {
	case host == "github.com":
		return "https://api.github.com", forge.GitHub
	case strings.HasSuffix(host, ".ghe.com"):
		return "https://api." + host, forge.GitHub
	}
	base := strings.TrimRight(p.Server.String(), "/")
	if isGitea(ctx, base, c) {
		return base + "/api/v1", forge.Gitea
	}
	return base + "/api/v3", forge.GitHub
}

func sameServer(server string, u *url.URL) bool {
	s, err := url.Parse(server)
	return err == nil && s.Scheme == u.Scheme && strings.EqualFold(s.Host, u.Host)
}

// isGitea asks a server for its version, as only Gitea and Forgejo tell it. No token
// is sent.
func isGitea(ctx context.Context, base string, c *http.Client) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/api/v1/version", nil)
	if err != nil {
		return false
	}
	res, err := c.Do(req)
	if err != nil {
		return false
	}
	defer func() { _ = res.Body.Close() }() // only read from
	var v struct {
		Version string `json:"version"`
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	return err == nil && res.StatusCode == http.StatusOK && json.Unmarshal(body, &v) == nil && v.Version != ""
}
