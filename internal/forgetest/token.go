package forgetest

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"strings"
)

// Permissions of a token by GitHub's names: contents, issues, pull_requests, actions,
// checks, administration: read or write. What is not named is none; metadata is always read.
type Permissions map[string]string

// JobPermissions are those that a job of the shipped workflow asks for.
func JobPermissions() Permissions {
	return Permissions{"contents": "write", "issues": "write", "pull_requests": "write", "actions": "write"}
}

// ReadPermissions are those of a job that may change nothing.
func ReadPermissions() Permissions {
	return Permissions{"contents": "read", "issues": "read", "pull_requests": "read", "actions": "read"}
}

type token struct {
	login string
	// app: a job's own token, not a person's.
	app   bool
	perms Permissions
}

// JobToken makes a token as a job gets it.
func (s *Server) JobToken(p Permissions) string {
	return s.addToken(token{login: s.bot(), app: true, perms: maps.Clone(p)})
}

// UserToken makes a token of a person, who may do with it what they may do in the
// repository.
func (s *Server) UserToken(login string) string { return s.addToken(token{login: login}) }

// Revoke ends a token, as the end of its job does.
func (s *Server) Revoke(tok string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.state.tokens, tok)
}

func (s *Server) addToken(t token) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.know(t.login)
	kind := "ghs"
	if !t.app {
		kind = "ghp"
	}
	tok := fmt.Sprintf("%s_forgetest%026d", kind, s.id())
	s.state.tokens[tok] = &t
	return tok
}

// bot is who a job's token is.
func (s *Server) bot() string {
	if s.o.Gitea {
		return "gitea-actions"
	}
	return "github-actions[bot]"
}

// secretOf is the token of a request; ok is false where it carries none.
func secretOf(r *http.Request) (secret string, ok bool) {
	kind, rest, found := strings.Cut(r.Header.Get("Authorization"), " ")
	if !found {
		return "", false
	}
	switch strings.ToLower(kind) {
	case "bearer", "token":
		return strings.TrimSpace(rest), true
	case "basic":
		raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(rest))
		if err != nil {
			return "", true
		}
		user, pass, _ := strings.Cut(string(raw), ":")
		if pass == "" || pass == "x-oauth-basic" {
			return user, true
		}
		return pass, true
	}
	return "", true
}

// who finds the token of a request: nil without one, bad where it is none of ours.
func (s *Server) who(r *http.Request) (t *token, bad bool) {
	secret, ok := secretOf(r)
	if !ok {
		return nil, false
	}
	t = s.state.tokens[secret]
	return t, t == nil
}

// may reports that a token reaches one of the permissions "a=write; b=write".
func (s *Server) may(t *token, need string) bool {
	for one := range strings.SplitSeq(need, ";") {
		name, level, _ := strings.Cut(strings.TrimSpace(one), "=")
		if name == "" || rank(s.level(t, name)) >= rank(level) {
			return true
		}
	}
	return false
}

// level is how far a token goes with one permission.
func (s *Server) level(t *token, name string) string {
	public := "none"
	if !s.o.Private && name != "administration" {
		public = "read"
	}
	if t == nil {
		return public
	}
	if name == "metadata" {
		return "read"
	}
	own := t.perms[name]
	if !t.app {
		own = userLevel(s.state.users[t.login], name)
	}
	if rank(own) > rank(public) {
		return own
	}
	return public
}

// userLevel is what somebody with a role in the repository may do.
func userLevel(role, name string) string {
	switch {
	case role == "admin":
		return "write"
	case name == "administration":
		return "none"
	case role == "maintain", role == "write":
		return "write"
	case role == "triage" && (name == "issues" || name == "pull_requests"):
		return "write"
	case role == "triage", role == "read":
		return "read"
	}
	return "none"
}

func rank(level string) int {
	switch level {
	case "read":
		return 1
	case "write":
		return 2
	}
	return 0
}
