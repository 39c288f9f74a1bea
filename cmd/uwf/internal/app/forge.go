package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/united-workforce/uwf/gitcas/wire"
)

// Dial reaches a git remote with the credentials that stores are reached with. It
// makes no request yet.
func (f *Factory) Dial(remote string) (wire.Remote, error) {
	r, err := storeOpener{f}.dialWire(remote)
	if err != nil {
		return nil, err
	}
	return logOpener{f}.logSessions(r), nil
}

// RemoteURL is the address of a remote of the repository, by its name, or of a URL
// as it is.
func (f *Factory) RemoteURL(ctx context.Context, remote string) (string, error) {
	return storeOpener{f}.remoteURL(ctx, remote)
}

// Token is the environment's token for the API of the forge at that address. A token goes
// to its own server alone, which GITHUB_SERVER_URL names (https://github.com without it);
// unsent says of which token that is so, and why; empty: there is none.
func (f *Factory) Token(u *url.URL) (token, unsent string) {
	for _, name := range []string{"GITHUB_TOKEN", "GH_TOKEN"} {
		switch t := f.Getenv(name); {
		case t == "":
		case (credentials{f}).isForge(u):
			return t, ""
		case unsent == "":
			unsent = fmt.Sprintf("%s was not sent: it is for %s", name, credentials{f}.forgeURL())
		}
	}
	return "", unsent
}

// Password is what git's credential helpers have for a remote, which forges take as a
// token; empty: nothing. When the remote is used they are not asked again.
func (f *Factory) Password(ctx context.Context, remote string) (string, error) {
	u, err := url.Parse(remote)
	if err != nil {
		return "", errors.New("the remote's address can't be read") // it may hold a password
	}
	if u.Scheme != "https" && u.Scheme != "http" {
		return "", nil
	}
	if pass, ok := u.User.Password(); ok {
		return pass, nil
	}
	user, pass, err := credentials{f}.fillCredential(ctx, u)
	if err == nil && pass != "" {
		f.known.putAnswer(remote, credential{user, pass})
	}
	return pass, err
}

// Proxy is the proxy that the process's environment names for a request to a
// provider (HTTPS_PROXY, HTTP_PROXY, NO_PROXY, also in small letters). This machine
// itself is never reached through one. It is the standard library's reading: of the
// environment in which the process was started.
func (f *Factory) Proxy(req *http.Request) (*url.URL, error) { return http.ProxyFromEnvironment(req) }
