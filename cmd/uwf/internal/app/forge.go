package app

import (
	"context"
	"net/url"

	"github.com/united-workforce/uwf/gitcas/wire"
)

// Dial reaches a git remote with the credentials that stores are reached with. It
// makes no request yet.
func (f *Factory) Dial(remote string) (wire.Remote, error) {
	r, err := f.dialWire(remote)
	if err != nil {
		return nil, err
	}
	return f.logged(r), nil
}

// RemoteURL is the address of a remote of the repository, by its name, or of a URL
// as it is.
func (f *Factory) RemoteURL(ctx context.Context, remote string) (string, error) {
	return f.remoteURL(ctx, remote)
}

// Token is a token for the API of the forge at that address: the environment's for
// the forge that it is for, else the password that git's credential helpers have for
// the address, which forges take as a token. Empty: there is none.
func (f *Factory) Token(ctx context.Context, u *url.URL) (string, error) {
	if f.isForge(u) {
		for _, name := range []string{"GITHUB_TOKEN", "GH_TOKEN"} {
			if t := f.Getenv(name); t != "" {
				return t, nil
			}
		}
	}
	if u.Scheme != "https" && u.Scheme != "http" {
		return "", nil
	}
	_, pass, err := f.fillCredential(ctx, u)
	return pass, err
}
