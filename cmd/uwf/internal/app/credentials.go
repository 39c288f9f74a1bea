package app

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"

	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/redact"
)

// tokenUser is the user name that forges take together with a token.
const tokenUser = "x-access-token"

// credentials finds what a remote or a forge asks for.
type credentials struct{ *Factory }

// basicAuth gives the credentials for an HTTP(S) remote: the job's GITHUB_TOKEN
// when the remote is on the forge that the job runs on, else what git's credential
// helpers know of that server. Both are bound to a server, because the URL may come
// from a repository's own file. Without any the remote is tried without.
func (f credentials) basicAuth(remote string) func(context.Context) (string, string, error) {
	u, err := url.Parse(remote)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return nil
	}
	if _, ok := u.User.Password(); ok {
		return nil // the URL brings its own
	}
	return func(ctx context.Context) (string, string, error) {
		if c, ok := f.known.takeAnswer(remote); ok {
			return c.user, c.pass, nil
		}
		if t := f.Getenv("GITHUB_TOKEN"); t != "" && f.isForge(u) {
			return tokenUser, t, nil
		}
		return f.fillCredential(ctx, u)
	}
}

// remoteSecrets are the passwords and tokens that lead to the store's remote: an
// agent that gets to know one must not be able to write it into the store. What is
// asked for here is not asked for again when the remote is used.
func (f credentials) remoteSecrets(ctx context.Context) ([]redact.Secret, error) {
	loc, err := f.Locate(ctx)
	if err != nil {
		return nil, err
	}
	if u, err := url.Parse(loc.URL); err == nil && u.User != nil {
		pass, _ := u.User.Password()
		return []redact.Secret{{Name: remoteSecret, Value: pass}}, nil
	}
	ask := f.basicAuth(loc.URL)
	if ask == nil {
		return nil, nil
	}
	user, pass, err := ask(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for credentials of %s: %w", loc.Branch, err)
	}
	f.known.putAnswer(loc.URL, credential{user, pass})
	return []redact.Secret{{Name: remoteSecret, Value: pass}}, nil
}

// remoteSecret is what stands in the place of a remote's password.
const remoteSecret = "git-password"

// credential is what a remote is asked with.
type credential struct{ user, pass string }

// answers are credentials that were looked up before they are needed. Each is
// given out once: who asks again was refused with it.
type answers struct {
	mu sync.Mutex
	of map[string]credential
}

func (a *answers) putAnswer(remote string, c credential) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of == nil {
		a.of = map[string]credential{}
	}
	a.of[remote] = c
}

func (a *answers) takeAnswer(remote string) (credential, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c, ok := a.of[remote]
	delete(a.of, remote)
	return c, ok
}

// isForge reports whether a URL is on the server that the job's token is for. A
// token is never sent anywhere else, nor in the clear unless the forge itself is
// reached so.
func (f credentials) isForge(u *url.URL) bool {
	s, err := url.Parse(f.forgeURL())
	return err == nil && s.Scheme == u.Scheme && strings.EqualFold(s.Host, u.Host)
}

// forgeURL is the server that the token of the environment is for.
func (f credentials) forgeURL() string {
	return cmp.Or(f.Getenv("GITHUB_SERVER_URL"), "https://github.com")
}

// fillCredential asks git's credential helpers: those of the user and the system, in no
// repository, since a repository's own settings may be an agent's; its own ones only
// where the user's settings say so. That they know nothing is no error: the server then
// says whether it wants to know more.
func (f credentials) fillCredential(ctx context.Context, u *url.URL) (user, pass string, err error) {
	var ask bytes.Buffer
	for _, kv := range [][2]string{{"protocol", u.Scheme}, {"host", u.Host}, {"path", strings.TrimPrefix(u.Path, "/")}, {"username", u.User.Username()}} {
		if kv[1] != "" && !strings.ContainsAny(kv[1], "\n\x00") {
			ask.WriteString(kv[0] + "=" + kv[1] + "\n")
		}
	}
	ask.WriteString("\n")
	c, err := f.Config()
	if err != nil {
		return "", "", err
	}
	in := ""
	if c.State.CredentialHelper == config.CredentialsOfRepository {
		in = f.RepoRoot()
	}
	out, err := f.Git(ctx, in, ask.Bytes(), "credential", "fill")
	if ctx.Err() != nil {
		return "", "", context.Cause(ctx)
	}
	if err == nil {
		user, pass = parseCredential(out)
	}
	return user, pass, nil
}

// parseCredential reads what git credential fill prints.
func parseCredential(out []byte) (user, pass string) {
	for line := range strings.Lines(string(out)) {
		k, v, _ := strings.Cut(strings.TrimRight(line, "\r\n"), "=")
		switch k {
		case "username":
			user = v
		case "password":
			pass = v
		}
	}
	return user, pass
}
