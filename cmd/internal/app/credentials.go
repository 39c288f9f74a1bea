package app

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/redact"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// tokenUser is the user name that forges take together with a token.
const tokenUser = "x-access-token"

// newCredentialSource makes what gives the credentials for an HTTP(S) remote: the job's GITHUB_TOKEN
// when the remote is on the forge that the job runs on, else what git's credential
// helpers know of that server. Both are bound to a server, because the URL may come
// from a repository's own file. Without any the remote is tried without.
func newCredentialSource(f *Factory, remote string) func(context.Context) (string, string, error) {
	u, err := url.Parse(remote)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return nil
	}
	if _, ok := u.User.Password(); ok {
		return nil // the URL brings its own
	}
	return func(ctx context.Context) (string, string, error) {
		if v, ok := f.known.LoadAndDelete(remote); ok {
			c, _ := v.(credential)
			return c.user, c.pass, nil
		}
		if t := f.Getenv("GITHUB_TOKEN"); t != "" && isForge(f, u) {
			return tokenUser, t, nil
		}
		return fillCredential(ctx, f, u)
	}
}

// remoteSecrets are the passwords and tokens that lead to the store's remote: an
// agent that gets to know one must not be able to write it into the store. What is
// asked for here is not asked for again when the remote is used.
func remoteSecrets(ctx context.Context, f *Factory) ([]redact.Secret, error) {
	loc, err := f.Locate(ctx)
	if err != nil {
		return nil, err
	}
	if u, err := url.Parse(loc.URL); err == nil && u.User != nil {
		pass, _ := u.User.Password()
		return []redact.Secret{{Name: remoteSecret, Value: pass}}, nil
	}
	ask := newCredentialSource(f, loc.URL)
	if ask == nil {
		return nil, nil
	}
	user, pass, err := ask(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for credentials of %s: %w", loc.Branch, err)
	}
	f.known.Store(loc.URL, credential{user, pass})
	return []redact.Secret{{Name: remoteSecret, Value: pass}}, nil
}

// remoteSecret is what stands in the place of a remote's password.
const remoteSecret = "git-password"

// credential is what a remote is asked with.
type credential struct{ user, pass string }

// isForge reports whether a URL is on the server that the job's token is for. A
// token is never sent anywhere else, nor in the clear unless the forge itself is
// reached so.
func isForge(f *Factory, u *url.URL) bool {
	s, err := url.Parse(forgeURL(f))
	return err == nil && s.Scheme == u.Scheme && strings.EqualFold(s.Host, u.Host)
}

// forgeURL is the server that the token of the environment is for.
func forgeURL(f *Factory) string {
	return cmp.Or(f.Getenv("GITHUB_SERVER_URL"), "https://github.com")
}

// fillCredential asks git's credential helpers: those of the user and the system, in no
// repository, since a repository's own settings may be an agent's; its own ones only
// where the user's settings say so. That they know nothing is no error: the server then
// says whether it wants to know more.
func fillCredential(ctx context.Context, f *Factory, u *url.URL) (user, pass string, err error) {
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
	if all, err := readSettings(ctx, f); err == nil && !all.hasKey("credential.", in != "") {
		return "", "", nil // git would have nobody to ask
	}
	out, err := f.Git(ctx, GitCall{Dir: in, Stdin: ask.Bytes(), Args: []string{"credential", "fill"}})
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

// Dial reaches a git remote with the credentials that stores are reached with. It
// makes no request yet.
func (f *Factory) Dial(remote string) (wire.Remote, error) {
	r, err := f.DialAs(remote, newCredentialSource(f, remote))
	if err != nil {
		return nil, err
	}
	return logSessions(f, r), nil
}

// Token is the environment's token for the API of the forge at that address. A token goes
// to its own server alone, which GITHUB_SERVER_URL names (https://github.com without it);
// unsent says of which token that is so, and why; empty: there is none.
func (f *Factory) Token(u *url.URL) (token, unsent string) {
	for _, name := range []string{"GITHUB_TOKEN", "GH_TOKEN"} {
		switch t := f.Getenv(name); {
		case t == "":
		case isForge(f, u):
			return t, ""
		case unsent == "":
			unsent = fmt.Sprintf("%s was not sent: it is for %s", name, forgeURL(f))
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
	user, pass, err := fillCredential(ctx, f, u)
	if err == nil && pass != "" {
		f.known.Store(remote, credential{user, pass})
	}
	return pass, err
}

// Redactor knows the secrets of the configuration, of the environment and of the
// store's remote. It is made once.
func (f *Factory) Redactor(ctx context.Context) (*redact.Redactor, error) {
	return f.redactor.findOnce(func() (*redact.Redactor, error) { return makeRedactor(ctx, f) })
}

func makeRedactor(ctx context.Context, f *Factory) (*redact.Redactor, error) {
	red, err := localRedactor(f)
	if err != nil {
		return nil, err
	}
	remote, err := remoteSecrets(ctx, f)
	if err != nil {
		return nil, err
	}
	if red, err = red.With(remote...); err != nil {
		return nil, &UsageError{Err: fmt.Errorf("redact: %w", err)}
	}
	f.Log().Redact(red) // it knows the remote's password too
	return red, nil
}

func localRedactor(f *Factory) (*redact.Redactor, error) {
	c, err := f.Config()
	if err != nil {
		return nil, err
	}
	red, err := redact.New(c.RedactOptions())
	if err != nil {
		return nil, &UsageError{Err: fmt.Errorf("redact: %w", err)}
	}
	return red, nil
}

// CleanMessage takes secrets out of a message. Where the configuration can't be
// read it knows those of the environment.
func (f *Factory) CleanMessage(msg string) string {
	red := f.redactor.value
	if red == nil {
		var err error
		if red, err = localRedactor(f); err != nil {
			if red, err = redact.New(redact.Options{Secrets: redact.FromEnv(f.Environ)}); err != nil {
				return "a message that could not be searched for secrets was left out"
			}
		}
	}
	clean, _ := red.String(msg)
	return clean
}

// CheckNoSecret refuses a value that holds a known secret. It is for what is stored as
// it is: redacted it would be something else.
func (f *Factory) CheckNoSecret(ctx context.Context, what string, v any) error {
	red, err := f.Redactor(ctx)
	if err != nil {
		return err
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("check %s for secrets: %w", what, err)
	}
	found, err := red.Find(b)
	if err != nil {
		return fmt.Errorf("check %s for secrets: %w", what, err)
	}
	for _, s := range found {
		if s.Known {
			return Usagef("%s holds a secret (%s); take it out: what is stored can be read by everybody who can read the repository", what, s.Name)
		}
	}
	return nil
}
