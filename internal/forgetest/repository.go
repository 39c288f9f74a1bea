package forgetest

import (
	"cmp"
	"encoding/base64"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"
)

func repositoryRoutes() []route {
	return []route{
		{pattern: "GET ", need: "metadata=read", doc: "repos/repos#get-a-repository", do: (*Server).getRepository},
		{pattern: "GET collaborators/{login}/permission", need: "metadata=read", doc: "collaborators/collaborators#get-repository-permissions-for-a-user", do: (*Server).getPermission},
		{pattern: "GET branches/{branch...}", need: "contents=read", doc: "branches/branches#get-a-branch", do: (*Server).getBranch},
		{pattern: "GET contents/{path...}", need: "contents=read", doc: "repos/contents#get-repository-content", do: (*Server).getContents},
		{pattern: "GET git/ref/{ref...}", need: "contents=read", doc: "git/refs#get-a-reference", do: (*Server).getRef, only: "github"},
		{pattern: "GET rules/branches/{branch...}", need: "metadata=read", doc: "repos/rules#get-rules-for-a-branch", do: (*Server).getRules, only: "github"},
		{pattern: "GET actions/secrets", need: "administration=read", do: (*Server).listSecrets, only: "gitea", denied: "user should be the owner of the repo"},
		{pattern: "GET branch_protections", need: "administration=read", do: (*Server).getProtections, only: "gitea"},
		{pattern: "GET actions/permissions", need: "administration=read", doc: "actions/permissions#get-github-actions-permissions-for-a-repository", do: (*Server).getActions, only: "github"},
		{pattern: "GET actions/permissions/workflow", need: "administration=read", doc: "actions/permissions#get-default-workflow-permissions-for-a-repository", do: (*Server).getJobs, only: "github"},
		{pattern: "GET /user", doc: "users/users#get-the-authenticated-user", do: (*Server).getUser},
		{pattern: "GET /orgs/{login}", do: (*Server).getOrganisation, only: "gitea"},
		{pattern: "GET /users/{login}", do: (*Server).getAccount, only: "gitea"},
		{pattern: "GET /version", do: (*Server).getVersion, only: "gitea"},
		{pattern: "GET /meta", doc: "meta/meta#get-github-meta-information", do: (*Server).getMeta, only: "github"},
		{pattern: "GET /rate_limit", doc: "rate-limit/rate-limit#get-rate-limit-status-for-the-authenticated-user", do: (*Server).getLimit, only: "github"},
	}
}

func (s *Server) getRepository(q *request) reply {
	if q.token == nil && s.o.Private {
		return s.notFound(q)
	}
	return reply{status: http.StatusOK, body: s.repository()}
}

// repository is the repository as both flavours show it, in answers and events.
func (s *Server) repository() map[string]any {
	html := s.URL + "/" + s.Repository()
	m := map[string]any{
		"id": 1, "name": s.o.Name, "full_name": s.Repository(), "owner": s.user(s.o.Owner),
		"private": s.o.Private, "html_url": html, "description": nil, "fork": false,
		"url": s.APIURL + "/repos/" + s.Repository(), "clone_url": html + ".git",
		"default_branch": s.state.branch, "archived": false, "has_issues": true,
		"created_at": s.stamp(time.Time{}), "updated_at": s.stamp(time.Time{}),
	}
	if s.o.Gitea {
		m["description"] = ""
		m["empty"] = s.empty()
		m["original_url"], m["mirror"], m["size"] = "", false, 24
		m["has_pull_requests"], m["has_actions"], m["internal"] = true, true, false
		return m
	}
	m["node_id"], m["visibility"], m["disabled"] = "R_kgDOAAAAAQ", "public", false
	m["size"] = 24
	if s.empty() {
		m["size"] = 0
	}
	if s.o.Private {
		m["visibility"] = "private"
	}
	return m
}

// stamp is a time as both flavours write it.
func (s *Server) stamp(t time.Time) string {
	if t.IsZero() {
		t = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	}
	return t.UTC().Format(time.RFC3339)
}

// user is somebody as both flavours show them.
func (s *Server) user(login string) map[string]any {
	s.know(login)
	id := s.state.ids[login]
	m := map[string]any{"login": login, "id": id, "html_url": s.URL + "/" + login, "avatar_url": s.URL + "/avatars/" + login}
	if s.o.Gitea {
		if login == s.bot() {
			m["id"] = -2
		}
		m["username"], m["full_name"], m["email"] = login, "", login+"@noreply.localhost"
		if login == s.bot() {
			m["full_name"] = "Gitea Actions"
		}
		return m // only administrators are told more, and people of themselves
	}
	m["node_id"], m["type"], m["site_admin"] = "U_kgDOAAAAAQ", "User", false
	m["url"] = s.APIURL + "/users/" + login
	if name, ok := strings.CutSuffix(login, "[bot]"); ok {
		m["type"], m["html_url"] = "Bot", s.URL+"/apps/"+name
	}
	return m
}

// getPermission: GitHub tells everybody's, but only of people; Gitea tells a job's
// token nothing, and others only their own or, to admins, all.
func (s *Server) getPermission(q *request) reply {
	login := q.PathValue("login")
	if s.o.Gitea {
		return s.giteaPermission(q, login)
	}
	role, known := s.state.users[login]
	if !known || strings.HasSuffix(login, "[bot]") {
		return s.fail(q, http.StatusNotFound, login+" is not a user")
	}
	if role == "" {
		role = "read"
		if s.o.Private {
			role = "none"
		}
	}
	// The older field knows no triage and no maintain.
	permission := map[string]string{"triage": "read", "maintain": "write"}[role]
	return reply{status: http.StatusOK, body: map[string]any{
		"permission": or(permission, role), "role_name": role, "user": s.user(login),
	}}
}

func (s *Server) giteaPermission(q *request, login string) reply {
	if q.token == nil || q.token.app || q.token.login != login && s.state.users[q.token.login] != "admin" {
		return s.fail(q, http.StatusForbidden, "Only admins can query all permissions, repo admins can query all repo permissions, collaborators can query only their own")
	}
	role, known := s.state.users[login]
	if !known {
		return s.fail(q, http.StatusNotFound, "user does not exist [uid: 0, name: "+login+"]")
	}
	switch role {
	case "":
		role = "none"
		if !s.o.Private {
			role = "read"
		}
	case "admin":
		if login == s.o.Owner {
			role = "owner"
		}
	}
	return reply{status: http.StatusOK, body: map[string]any{"permission": role, "role_name": role, "user": s.user(login)}}
}

func (s *Server) getBranch(q *request) reply {
	name := q.PathValue("branch")
	sha := s.rev(name)
	if sha == "" {
		if s.o.Gitea {
			return s.notFound(q)
		}
		return s.fail(q, http.StatusNotFound, "Branch not found")
	}
	// GitHub calls a branch protected for both kinds of rules.
	protected := len(s.rulesOf(name)) > 0
	if s.o.Gitea {
		// A job's token is told that it may not, even where it may.
		may := !protected && q.token != nil && !q.token.app && s.may(q.token, "contents=write")
		return reply{status: http.StatusOK, body: map[string]any{
			"name": name, "commit": map[string]any{"id": sha}, "protected": protected,
			"user_can_push": may, "user_can_merge": may, "required_approvals": 0, "effective_branch_protection_name": "",
		}}
	}
	return reply{status: http.StatusOK, body: map[string]any{
		"name": name, "commit": map[string]any{"sha": sha}, "protected": protected,
		"protection": map[string]any{"enabled": false},
	}}
}

// getContents is a file, a folder or a link at a commit or a branch.
func (s *Server) getContents(q *request) reply {
	name, at := q.PathValue("path"), q.URL.Query().Get("ref")
	list, err := s.Git("ls-tree", "--full-tree", at, "--", name)
	mode, rest, found := strings.Cut(list, " ")
	if err != nil || !found {
		return s.notFound(q)
	}
	kind := map[string]string{"040000": "dir", "120000": "symlink", "160000": "submodule"}[mode]
	if kind == "dir" {
		return reply{status: http.StatusOK, body: []any{}}
	}
	sha := strings.Fields(rest)[1]
	text, err := s.Git("cat-file", "blob", sha)
	if err != nil {
		return s.fail(q, http.StatusInternalServerError, err.Error())
	}
	if text != "" {
		text += "\n" // which Git takes off
	}
	content := base64.StdEncoding.EncodeToString([]byte(text))
	if n := len(content) / 2; !s.o.Gitea { // in lines
		content = content[:n] + "\n" + content[n:] + "\n"
	}
	entry := map[string]any{
		"type": cmp.Or(kind, "file"), "name": path.Base(name), "path": name, "sha": sha, "size": len(text),
		"encoding": "base64", "content": content,
	}
	if kind != "" {
		entry["encoding"], entry["content"] = nil, nil
	}
	return reply{status: http.StatusOK, body: entry}
}

func (s *Server) getRef(q *request) reply {
	ref := "refs/" + q.PathValue("ref")
	sha := s.ref(ref)
	if sha == "" {
		return s.notFound(q)
	}
	return reply{status: http.StatusOK, body: map[string]any{
		"ref": ref, "url": s.APIURL + "/repos/" + s.Repository() + "/git/" + ref,
		"object": map[string]any{"type": "commit", "sha": sha},
	}}
}

func (s *Server) rulesOf(branch string) []rule {
	var list []rule
	for _, r := range s.state.rules {
		if ok, err := path.Match(r.branch, branch); err == nil && ok {
			list = append(list, r)
		}
	}
	return list
}

func (s *Server) getRules(q *request) reply {
	list := []map[string]any{}
	for _, r := range s.rulesOf(q.PathValue("branch")) {
		if r.kind == protection {
			continue
		}
		list = append(list, map[string]any{"type": r.kind, "ruleset_source_type": "Repository", "ruleset_source": s.Repository(), "ruleset_id": 42})
	}
	return reply{status: http.StatusOK, body: list}
}

// listSecrets: the repository has none.
func (s *Server) listSecrets(*request) reply {
	return reply{status: http.StatusOK, body: []any{}, header: http.Header{"X-Total-Count": {"0"}}}
}

func (s *Server) getProtections(*request) reply {
	list := []map[string]any{}
	for _, r := range s.state.rules {
		list = append(list, map[string]any{"rule_name": r.branch, "branch_name": r.branch, "enable_push": false})
	}
	return reply{status: http.StatusOK, body: list}
}

func (s *Server) getActions(*request) reply {
	return reply{status: http.StatusOK, body: map[string]any{"enabled": true, "allowed_actions": "all"}}
}

func (s *Server) getJobs(*request) reply {
	return reply{status: http.StatusOK, body: map[string]any{
		"default_workflow_permissions": "read", "can_approve_pull_request_reviews": !s.state.noPulls,
	}}
}

func (s *Server) getUser(q *request) reply {
	switch {
	case q.token == nil:
		return s.unauthorized(q, "Requires authentication")
	case q.token.app && !s.o.Gitea:
		return s.forbidden(q)
	}
	return reply{status: http.StatusOK, body: s.user(q.token.login)}
}

func (s *Server) getOrganisation(q *request) reply {
	login := q.PathValue("login")
	if !s.o.Organisation || login != s.o.Owner {
		return s.fail(q, http.StatusNotFound, "GetOrgByName")
	}
	m := s.user(login)
	return reply{status: http.StatusOK, body: map[string]any{"id": m["id"], "name": login, "username": login, "full_name": "", "visibility": "public"}}
}

// getAccount is a person or an organisation.
func (s *Server) getAccount(q *request) reply {
	login := q.PathValue("login")
	if _, known := s.state.users[login]; !known {
		return s.fail(q, http.StatusNotFound, "user redirect does not exist [name: "+login+"]")
	}
	return reply{status: http.StatusOK, body: s.user(login)}
}

func (s *Server) getVersion(*request) reply {
	return reply{status: http.StatusOK, body: map[string]any{"version": "1.26.0"}}
}

func (s *Server) getMeta(*request) reply {
	return reply{status: http.StatusOK, body: map[string]any{"verifiable_password_authentication": false, "installed_version": "3.19.0"}}
}

func (s *Server) getLimit(*request) reply {
	core := map[string]any{"limit": 5000, "used": len(s.calls), "remaining": 5000 - len(s.calls), "reset": s.now().Unix() + 3600}
	return reply{status: http.StatusOK, body: map[string]any{"resources": map[string]any{"core": core}, "rate": core}}
}

// has reports that a list of labels holds a name, without regard to case.
func has(list []string, name string) bool {
	return slices.ContainsFunc(list, func(l string) bool { return strings.EqualFold(l, name) })
}
