package forgetest

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// maxBody is the most characters of a body on GitHub.
const maxBody = 65536

func issueRoutes() []route {
	const read, write = "issues=read; pull_requests=read", "issues=write; pull_requests=write"
	const comments = "issues/comments#"
	return []route{
		{pattern: "GET issues", need: read, doc: "issues/issues#list-repository-issues", do: (*Server).listIssues},
		{pattern: "GET issues/{n}", need: read, doc: "issues/issues#get-an-issue", do: (*Server).getIssue},
		{pattern: "PATCH issues/{n}", need: write, doc: "issues/issues#update-an-issue", do: (*Server).editIssue},
		{pattern: "GET issues/comments/{id}", need: read, doc: comments + "get-an-issue-comment", do: (*Server).getComment},
		{pattern: "PATCH issues/comments/{id}", need: write, doc: comments + "update-an-issue-comment", do: (*Server).editComment, only: "github"},
		{pattern: "PATCH issues/comments/{id}", need: read, do: (*Server).editComment, only: "gitea"},
		{pattern: "DELETE issues/comments/{id}", need: write, doc: comments + "delete-an-issue-comment", do: (*Server).deleteComment, only: "github"},
		{pattern: "DELETE issues/comments/{id}", need: read, do: (*Server).deleteComment, only: "gitea"},
		{pattern: "GET issues/{n}/comments", need: read, doc: comments + "list-issue-comments", do: (*Server).listComments},
		{pattern: "POST issues/{n}/comments", need: write, doc: comments + "create-an-issue-comment", do: (*Server).createComment, only: "github"},
		{pattern: "POST issues/{n}/comments", need: read, do: (*Server).createComment, only: "gitea"},
	}
}

// issue is the issue of a request, and whether it may be reached: a token for issues
// alone doesn't reach pull requests.
func (s *Server) issue(q *request, level string) (*Issue, reply, bool) {
	n := int(q.number("n"))
	i := s.state.issues[n]
	switch {
	case i != nil:
	case s.state.gone[n] && !s.o.Gitea:
		return nil, s.fail(q, http.StatusGone, "This issue was deleted"), false
	default:
		return nil, s.notFound(q), false
	}
	return s.reach(q, i, level)
}

// reach says no without a word on Gitea.
func (s *Server) reach(q *request, i *Issue, level string) (*Issue, reply, bool) {
	need := "issues=" + level
	if i.Pull != nil {
		need = "pull_requests=" + level
		if !s.o.Gitea {
			need += "; issues=" + level
		}
	}
	switch {
	case s.may(q.token, need):
		return i, reply{}, true
	case s.o.Gitea:
		return nil, reply{status: http.StatusForbidden}, false
	}
	return nil, s.forbidden(q), false
}

func (s *Server) listIssues(q *request) reply {
	want := or(q.URL.Query().Get("state"), "open")
	labels := strings.FieldsFunc(q.URL.Query().Get("labels"), func(r rune) bool { return r == ',' })
	if s.o.Gitea { // names that it doesn't know it leaves out
		labels = slices.DeleteFunc(labels, func(l string) bool { return s.label(l) == nil })
	}
	hidden := func(i *Issue) bool {
		lacks := func(l string) bool { return !slices.Contains(i.Labels, l) }
		if !s.o.Gitea {
			return slices.ContainsFunc(labels, lacks)
		}
		kind := q.URL.Query().Get("type")
		return len(labels) > 0 && !slices.ContainsFunc(labels, func(l string) bool { return !lacks(l) }) ||
			kind == "issues" && i.Pull != nil || kind == "pulls" && i.Pull == nil
	}
	var found []*Issue
	for _, n := range slices.Backward(slices.Sorted(maps.Keys(s.state.issues))) {
		if i := s.state.issues[n]; (want == "all" || (want == "open") == i.Open) && !hidden(i) {
			found = append(found, i)
		}
	}
	part, header := page(s, q, found)
	list := []map[string]any{}
	for _, i := range part {
		list = append(list, s.showIssue(i))
	}
	return reply{status: http.StatusOK, body: list, header: header}
}

func (s *Server) getIssue(q *request) reply {
	i, no, ok := s.issue(q, "read")
	if !ok {
		return no
	}
	return reply{status: http.StatusOK, body: s.showIssue(i)}
}

func (s *Server) editIssue(q *request) reply {
	i, no, ok := s.issue(q, "write")
	if !ok {
		return no
	}
	var in struct{ Title, Body, State *string }
	if no, ok := s.decode(q, &in); !ok {
		return no
	}
	i.edit(in.Title, in.Body, in.State, s.now())
	status := http.StatusOK
	if s.o.Gitea {
		status = http.StatusCreated
	}
	return reply{status: status, body: s.showIssue(i)}
}

func (i *Issue) edit(title, body, state *string, now time.Time) {
	if title != nil {
		i.Title = *title
	}
	if body != nil {
		i.Body = *body
	}
	if state != nil {
		i.Open, i.closed = *state == "open", now
	}
}

// showIssue is an issue as the flavour shows it.
func (s *Server) showIssue(i *Issue) map[string]any {
	state, kind := "open", "issues"
	if !i.Open {
		state = "closed"
	}
	if i.Pull != nil {
		kind = "pull"
		if s.o.Gitea {
			kind = "pulls"
		}
	}
	html := fmt.Sprintf("%s/%s/%s/%d", s.URL, s.Repository(), kind, i.Number)
	self := fmt.Sprintf("%s/repos/%s/issues/%d", s.APIURL, s.Repository(), i.Number)
	m := map[string]any{
		"id": i.id, "url": self, "html_url": html, "number": i.Number, "title": i.Title, "body": i.Body,
		"user": s.user(i.Author), "labels": s.showLabels(i.Labels), "state": state, "comments": s.countComments(i.Number),
		"assignee": nil, "assignees": s.users(i.Assignees), "milestone": nil,
		"created_at": s.stamp(i.created), "updated_at": s.stamp(s.updated(i)), "closed_at": nil,
	}
	if !i.Open {
		m["closed_at"] = s.stamp(i.closed)
	}
	if len(i.Assignees) > 0 {
		m["assignee"] = s.user(i.Assignees[0])
	}
	if s.o.Gitea {
		s.giteaIssue(m, i, html)
		return m
	}
	if i.Body == "" {
		m["body"] = nil
	}
	m["node_id"], m["locked"], m["author_association"], m["state_reason"], m["closed_by"] = "I_kwDOAAAAAQ", false, "NONE", nil, nil
	if !i.Open {
		m["closed_by"] = s.user(s.o.Owner)
	}
	m["repository_url"], m["comments_url"] = s.APIURL+"/repos/"+s.Repository(), self+"/comments"
	if i.Pull != nil {
		m["draft"] = i.Pull.Draft
		m["pull_request"] = map[string]any{
			"url": fmt.Sprintf("%s/repos/%s/pulls/%d", s.APIURL, s.Repository(), i.Number), "html_url": html, "merged_at": nil,
		}
	}
	return m
}

// updated is when an issue changed last.
func (s *Server) updated(i *Issue) time.Time {
	at := i.created
	for _, c := range s.state.comments {
		if c.Issue == i.Number && c.created.After(at) {
			at = c.created
		}
	}
	if i.labeled.After(at) {
		return i.labeled
	}
	return at
}

// giteaIssue adds what only Gitea has; the repository's owner is a name there.
func (s *Server) giteaIssue(m map[string]any, i *Issue, html string) {
	m["original_author"], m["original_author_id"], m["ref"], m["assets"] = "", 0, "", []any{}
	m["is_locked"], m["due_date"], m["pin_order"] = false, nil, 0
	m["pull_request"] = nil
	if len(i.Assignees) == 0 {
		m["assignees"] = nil
	}
	if i.Pull != nil {
		m["pull_request"] = map[string]any{"merged": i.Pull.Merged, "merged_at": nil, "draft": i.Pull.Draft, "html_url": html}
	}
	m["repository"] = map[string]any{"id": 1, "name": s.o.Name, "owner": s.o.Owner, "full_name": s.Repository()}
}

func (s *Server) users(logins []string) []map[string]any {
	list := []map[string]any{}
	for _, l := range logins {
		list = append(list, s.user(l))
	}
	return list
}

func (s *Server) countComments(n int) int {
	count := 0
	for _, c := range s.state.comments {
		if c.Issue == n {
			count++
		}
	}
	return count
}

// commented is the issue of a request about its comments. Gitea fails where there is
// none.
func (s *Server) commented(q *request, level string) (*Issue, reply, bool) {
	i, no, ok := s.issue(q, level)
	if s.o.Gitea && no.status == http.StatusNotFound {
		no = s.fail(q, http.StatusInternalServerError, "")
	}
	return i, no, ok
}

// listComments: Gitea shows all of them whatever page was asked for.
func (s *Server) listComments(q *request) reply {
	i, no, ok := s.commented(q, "read")
	if !ok {
		return no
	}
	var all []*Comment
	for _, c := range s.state.comments {
		if c.Issue == i.Number {
			all = append(all, c)
		}
	}
	part, header := all, http.Header{}
	if s.o.Gitea {
		header.Set("X-Total-Count", fmt.Sprint(len(all)))
	} else {
		part, header = page(s, q, all)
	}
	list := []map[string]any{}
	for _, c := range part {
		list = append(list, s.showComment(c))
	}
	return reply{status: http.StatusOK, body: list, header: header}
}

func (s *Server) showComment(c *Comment) map[string]any {
	i := s.state.issues[c.Issue]
	issue := s.showIssue(i)
	m := map[string]any{
		"id": c.ID, "body": c.Body, "user": s.user(c.Author),
		"html_url":  fmt.Sprintf("%s#issuecomment-%d", issue["html_url"], c.ID),
		"issue_url": issue["url"], "created_at": s.stamp(c.created), "updated_at": s.stamp(c.created),
	}
	if s.o.Gitea {
		m["original_author"], m["original_author_id"], m["assets"] = "", 0, []any{}
		m["pull_request_url"], m["issue_url"] = "", issue["html_url"]
		if i.Pull != nil {
			m["pull_request_url"], m["issue_url"] = issue["html_url"], ""
		}
		return m
	}
	m["node_id"], m["author_association"] = "IC_kwDOAAAAAQ", "NONE"
	m["url"] = fmt.Sprintf("%s/repos/%s/issues/comments/%d", s.APIURL, s.Repository(), c.ID)
	return m
}

// bodyOf reads the body of a comment, which may be neither empty nor too long.
func (s *Server) bodyOf(q *request) (string, reply, bool) {
	var in struct{ Body string }
	if no, ok := s.decode(q, &in); !ok {
		return "", no, false
	}
	switch {
	case in.Body == "" && s.o.Gitea:
		return "", s.fail(q, http.StatusUnprocessableEntity, "[Body]: Required"), false
	case in.Body == "":
		return "", s.invalid(q, "IssueComment", "data", "unprocessable", "Body cannot be blank"), false
	case utf8.RuneCountInString(in.Body) > maxBody && !s.o.Gitea:
		return "", s.invalid(q, "IssueComment", "data", "unprocessable", "Body is too long (maximum is 65536 characters)"), false
	}
	return in.Body, reply{}, true
}

func (s *Server) createComment(q *request) reply {
	level := "write"
	if s.o.Gitea {
		level = "read"
		if q.token == nil {
			return s.unauthorized(q, "")
		}
	}
	i, no, ok := s.commented(q, level)
	if !ok {
		return no
	}
	body, no, ok := s.bodyOf(q)
	if !ok {
		return no
	}
	c := s.addComment(q.token.login, i.Number, body)
	return reply{status: http.StatusCreated, body: s.showComment(c)}
}

// commentOf is the comment of a request that wants to change it. Gitea lets everybody
// change their own.
func (s *Server) commentOf(q *request, level string) (*Comment, reply, bool) {
	c := s.comment(q.number("id"))
	if c == nil {
		return nil, s.notFound(q), false
	}
	if s.o.Gitea && level == "write" && q.token != nil && q.token.login == c.Author {
		level = "read"
	}
	_, no, ok := s.reach(q, s.state.issues[c.Issue], level)
	return c, no, ok
}

func (s *Server) getComment(q *request) reply {
	c, no, ok := s.commentOf(q, "read")
	if !ok {
		return no
	}
	return reply{status: http.StatusOK, body: s.showComment(c)}
}

func (s *Server) editComment(q *request) reply {
	c, no, ok := s.commentOf(q, "write")
	if !ok {
		return no
	}
	body, no, ok := s.bodyOf(q)
	if !ok {
		return no
	}
	c.Body, c.Bodies = body, append(c.Bodies, body)
	return reply{status: http.StatusOK, body: s.showComment(c)}
}

func (s *Server) deleteComment(q *request) reply {
	c, no, ok := s.commentOf(q, "write")
	if !ok {
		return no
	}
	s.state.comments = slices.DeleteFunc(s.state.comments, func(o *Comment) bool { return o == c })
	return reply{status: http.StatusNoContent}
}
