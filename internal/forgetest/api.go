package forgetest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// request is a call of the API with what it takes to answer it. The server is locked
// while it is answered.
type request struct {
	*http.Request
	token *token
	body  []byte
	doc   string // where GitHub's documentation has it
}

// reply is an answer before it is written.
type reply struct {
	status int
	body   any // nil: none; a string is plain text
	header http.Header
}

// noWriter is what Gitea says to a token that may only read, at most calls.
const noWriter = "user should have a permission to write to a repo"

// route is one call of the API.
type route struct {
	pattern string // method and path below repos/OWNER/NAME, or from the root with "/"
	need    string // permissions, "a=write; b=write" meaning either
	doc     string // below docs.github.com/rest/
	do      func(*Server, *request) reply
	only    string // github or gitea; empty: both
	denied  string // Gitea's words for a token that may not; empty: the usual ones
}

// routes are the calls that the flavour knows.
func (s *Server) routes() []route {
	var all []route
	for _, list := range [][]route{repositoryRoutes(), issueRoutes(), labelRoutes(), pullRoutes(), workflowRoutes()} {
		for _, rt := range list {
			if rt.only == "gitea" && !s.o.Gitea || rt.only == "github" && s.o.Gitea {
				continue
			}
			if method, path, _ := strings.Cut(rt.pattern, " "); !strings.HasPrefix(path, "/") {
				rt.pattern = method + " " + strings.TrimSuffix("/repos/{owner}/{repo}/"+path, "/")
			}
			all = append(all, rt)
		}
	}
	return all
}

// find finds the call of a request and puts the path's values into it. The first that
// matches counts: issues/comments/1 is no issue.
func (s *Server) find(r *http.Request) route {
	path := strings.Split(strings.TrimPrefix(r.URL.EscapedPath(), s.prefix()), "/")
	for _, rt := range s.api {
		method, pattern, _ := strings.Cut(rt.pattern, " ")
		if values, ok := match(strings.Split(pattern, "/"), path); ok && method == r.Method {
			for k, v := range values {
				r.SetPathValue(k, v)
			}
			return rt
		}
	}
	return route{do: (*Server).noRoute}
}

// match matches a path's parts with a pattern's: {name} is one, {name...} the rest.
func match(pattern, path []string) (map[string]string, bool) {
	values := map[string]string{}
	for n, p := range pattern {
		name, wild := strings.CutPrefix(p, "{")
		name, rest := strings.CutSuffix(strings.TrimSuffix(name, "}"), "...")
		switch {
		case n >= len(path) || !wild && p != path[n]:
			return nil, false
		case !wild:
			continue
		}
		part := path[n]
		if rest {
			part = strings.Join(path[n:], "/")
		}
		value, err := url.PathUnescape(part)
		if err != nil || value == "" {
			return nil, false
		}
		values[name] = value
		if rest {
			return values, true
		}
	}
	return values, len(path) == len(pattern)
}

// serveAPI answers a call of the API, with its faults, and records it.
func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 10<<20))
	if err != nil {
		http.Error(w, "reading the request failed", http.StatusBadRequest)
		return
	}
	name := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, s.prefix()+"/"), "repos/"+s.Repository())
	name = strings.TrimPrefix(name, "/")
	seen := &witness{ResponseWriter: w}
	defer func() {
		s.mu.Lock()
		t, _ := s.who(r)
		s.mu.Unlock()
		s.record(Call{Method: r.Method, Path: name, Query: r.URL.RawQuery, Body: string(body), Login: t.name(), Status: seen.status})
	}()
	s.common(seen.Header())
	s.faulty(seen, r, false, name, func(w http.ResponseWriter) { s.handle(w, r, body) })
}

func (t *token) name() string {
	if t == nil {
		return ""
	}
	return t.login
}

// common sets the headers of all answers.
func (s *Server) common(h http.Header) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, used := s.now(), len(s.calls)+1
	h.Set("Date", now.Format(http.TimeFormat))
	if s.o.Gitea {
		h.Set("Content-Type", "application/json;charset=utf-8")
		return
	}
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("X-GitHub-Media-Type", "github.v3; format=json")
	h.Set("X-GitHub-Request-Id", fmt.Sprintf("F0E7:%06X:%06X", used, now.Unix()&0xffffff))
	h.Set("X-RateLimit-Limit", "5000")
	h.Set("X-RateLimit-Remaining", strconv.Itoa(max(0, 5000-used)))
	h.Set("X-RateLimit-Used", strconv.Itoa(used))
	h.Set("X-RateLimit-Reset", strconv.FormatInt(now.Unix()+3600, 10))
	h.Set("X-RateLimit-Resource", "core")
}

// handle checks who asks, and answers.
func (s *Server) handle(w http.ResponseWriter, r *http.Request, body []byte) {
	rt := s.find(r)
	s.mu.Lock()
	a := s.serveRoute(rt, &request{Request: r, body: body, doc: "https://docs.github.com/rest/" + rt.doc})
	s.mu.Unlock()
	if !s.o.Gitea && rt.need != "" {
		w.Header().Set("X-Accepted-GitHub-Permissions", rt.need)
	}
	a.write(w)
}

func (a reply) write(w http.ResponseWriter) {
	for k, v := range a.header {
		w.Header()[k] = v
	}
	if a.body == nil {
		w.Header().Del("Content-Type")
		w.WriteHeader(a.status)
		return
	}
	if text, ok := a.body.(string); ok {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(a.status)
		_, _ = w.Write([]byte(text)) // a client that is gone is its own affair
		return
	}
	raw, err := json.Marshal(a.body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(raw) // a client that is gone is its own affair
}

func (s *Server) serveRoute(rt route, q *request) reply {
	var bad bool
	if q.token, bad = s.who(q.Request); bad {
		return s.unauthorized(q, "Bad credentials")
	}
	if owner := q.PathValue("owner"); owner != "" && (!strings.EqualFold(owner, s.o.Owner) || !strings.EqualFold(q.PathValue("repo"), s.o.Name)) {
		return s.notFound(q)
	}
	switch {
	case s.stranger(q) && q.PathValue("repo") != "":
		return s.notFound(q)
	case s.may(q.token, rt.need):
		return rt.do(s, q)
	case q.token == nil && s.o.Private:
		return s.notFound(q)
	case q.token == nil:
		return s.unauthorized(q, "Requires authentication")
	case s.o.Gitea && rt.denied != "":
		return s.fail(q, http.StatusForbidden, rt.denied)
	}
	return s.forbidden(q)
}

// stranger reports somebody who must not know that a private repository is there.
func (s *Server) stranger(q *request) bool {
	return s.o.Private && q.token != nil && !q.token.app && s.state.users[q.token.login] == ""
}

// fail is an error in the forge's own shape.
func (s *Server) fail(q *request, status int, message string, details ...map[string]any) reply {
	if s.o.Gitea {
		return reply{status: status, body: map[string]any{"message": message, "url": s.URL + "/api/swagger"}}
	}
	body := map[string]any{"message": message, "documentation_url": q.doc, "status": strconv.Itoa(status)}
	if len(details) > 0 {
		body["errors"] = details
	}
	return reply{status: status, body: body}
}

// invalid is GitHub's 422 with one entry in errors.
func (s *Server) invalid(q *request, resource, field, code, message string) reply {
	e := map[string]any{"resource": resource, "code": code}
	if field != "" {
		e["field"] = field
	}
	if message != "" {
		e["message"] = message
	}
	return s.fail(q, http.StatusUnprocessableEntity, "Validation Failed", e)
}

func (s *Server) notFound(q *request) reply {
	if s.o.Gitea {
		return s.fail(q, http.StatusNotFound, "not found")
	}
	return s.fail(q, http.StatusNotFound, "Not Found")
}

// noRoute is the answer to a call that the forge does not have.
func (s *Server) noRoute(q *request) reply {
	if s.o.Gitea {
		return reply{status: http.StatusNotFound, body: "404 page not found\n"}
	}
	return s.notFound(q)
}

func (s *Server) unauthorized(q *request, why string) reply {
	if s.o.Gitea {
		if why == "Bad credentials" {
			return s.fail(q, http.StatusUnauthorized, "invalid username, password or token")
		}
		return s.fail(q, http.StatusUnauthorized, "token is required")
	}
	q.doc = "https://docs.github.com/rest"
	return s.fail(q, http.StatusUnauthorized, why)
}

// forbidden is what a token gets that may not do it.
func (s *Server) forbidden(q *request) reply {
	switch {
	case s.o.Gitea:
		return s.fail(q, http.StatusForbidden, "user should have specific permission or be a repo admin")
	case q.token != nil && q.token.app:
		return s.fail(q, http.StatusForbidden, "Resource not accessible by integration")
	}
	return s.fail(q, http.StatusForbidden, "Must have admin rights to Repository.")
}

// decode reads the body of a request.
func (s *Server) decode(q *request, into any) (reply, bool) {
	err := json.Unmarshal(q.body, into)
	if err == nil {
		return reply{}, true
	}
	if s.o.Gitea {
		return s.fail(q, http.StatusUnprocessableEntity, "[]: "+strings.Replace(err.Error(), "unexpected end of JSON input", "unexpected EOF", 1)), false
	}
	return s.fail(q, http.StatusBadRequest, "Problems parsing JSON"), false
}

// number is a number in the path; 0 where it is none.
func (q *request) number(name string) int64 {
	n, err := strconv.ParseInt(q.PathValue(name), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// page cuts a list as the request asks for, and says where the rest is. Gitea calls
// the size of a page limit, and ignores per_page.
func page[T any](s *Server, q *request, list []T) ([]T, http.Header) {
	size, most, key := 30, 100, "per_page"
	if s.o.Gitea {
		most, key = 50, "limit"
	}
	if n, err := strconv.Atoi(q.URL.Query().Get(key)); err == nil && n > 0 {
		size = min(n, most)
	}
	at, err := strconv.Atoi(q.URL.Query().Get("page"))
	if err != nil || at < 1 {
		at = 1
	}
	last := max(1, (len(list)+size-1)/size)
	h := http.Header{}
	var links []string
	for _, rel := range pageLinks(s.o.Gitea, at > 1, at < last) {
		v := q.URL.Query()
		v.Set("page", strconv.Itoa(map[string]int{"prev": at - 1, "next": at + 1, "last": last, "first": 1}[rel]))
		u := url.URL{Path: q.URL.Path, RawQuery: v.Encode()}
		links = append(links, fmt.Sprintf(`<%s%s>; rel="%s"`, s.URL, u.String(), rel))
	}
	if len(links) > 0 {
		between := ", "
		if s.o.Gitea {
			between = ","
		}
		h.Set("Link", strings.Join(links, between))
	}
	if s.o.Gitea {
		h.Set("X-Total-Count", strconv.Itoa(len(list)))
	}
	from := min(len(list), (at-1)*size)
	return list[from:min(len(list), from+size)], h
}

// pageLinks are the pages that the header Link names, in the forge's order.
func pageLinks(gitea, before, after bool) []string {
	order := []string{"prev", "next", "last", "first"}
	if gitea {
		order = []string{"next", "last", "first", "prev"}
	}
	return slices.DeleteFunc(order, func(rel string) bool {
		if rel == "prev" || rel == "first" {
			return !before
		}
		return !after
	})
}
