package forgetest

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

func pullRoutes() []route {
	const doc = "pulls/pulls#"
	return []route{
		{pattern: "GET pulls", need: "pull_requests=read", doc: doc + "list-pull-requests", do: (*Server).listPulls},
		{pattern: "POST pulls", need: "pull_requests=write", doc: doc + "create-a-pull-request", do: (*Server).createPull, denied: "user must be a collaborator"},
		{pattern: "GET pulls/{n}", need: "pull_requests=read", doc: doc + "get-a-pull-request", do: (*Server).getPull},
		{pattern: "GET pulls/comments/{id}", need: "pull_requests=read", doc: "pulls/comments#get-a-review-comment-for-a-pull-request", do: (*Server).getLineComment, only: "github"},
		{pattern: "PATCH pulls/{n}", need: "pull_requests=write", doc: doc + "update-a-pull-request", do: (*Server).editPull, only: "github"},
		{pattern: "PATCH pulls/{n}", need: "pull_requests=read", do: (*Server).editPull, only: "gitea"},
		{pattern: "GET pulls/{base}/{head...}", need: "pull_requests=read", do: (*Server).getPullOf, only: "gitea"},
	}
}

// pulls are all pull requests, newest first.
func (s *Server) pulls() []*Issue {
	var list []*Issue
	for _, n := range slices.Backward(slices.Sorted(maps.Keys(s.state.issues))) {
		if i := s.state.issues[n]; i.Pull != nil {
			list = append(list, i)
		}
	}
	return list
}

// listPulls: Gitea ignores head, and calls base base_branch.
func (s *Server) listPulls(q *request) reply {
	v := q.URL.Query()
	want, base, head := or(v.Get("state"), "open"), v.Get("base"), v.Get("head")
	if s.o.Gitea {
		base, head = v.Get("base_branch"), ""
	}
	var found []*Issue
	for _, i := range s.pulls() {
		switch {
		case want != "all" && (want == "open") != i.Open:
		case base != "" && base != i.Pull.Base:
		case strings.Contains(head, ":") && !strings.EqualFold(head, s.headLabel(i.Pull)):
		default:
			found = append(found, i)
		}
	}
	part, header := page(s, q, found)
	list := []map[string]any{}
	for _, i := range part {
		m := s.showPull(i)
		if s.o.Gitea && len(i.Assignees) == 0 {
			m["assignees"] = nil
		}
		list = append(list, m)
	}
	return reply{status: http.StatusOK, body: list, header: header}
}

// headLabel is owner:branch.
func (s *Server) headLabel(p *Pull) string {
	owner, _, _ := strings.Cut(or(p.Fork, s.Repository()), "/")
	return owner + ":" + p.Head
}

func (s *Server) getPull(q *request) reply {
	i := s.state.issues[int(q.number("n"))]
	if i == nil || i.Pull == nil {
		return s.notFound(q)
	}
	return reply{status: http.StatusOK, body: s.showPull(i)}
}

// getPullOf is Gitea's look-up by branches.
func (s *Server) getPullOf(q *request) reply {
	head := q.PathValue("head")
	for _, i := range s.pulls() {
		own := i.Pull.Fork == "" && i.Pull.Head == head
		if i.Pull.Base == q.PathValue("base") && (own || s.headLabel(i.Pull) == head) {
			return reply{status: http.StatusOK, body: s.showPull(i)}
		}
	}
	return s.notFound(q)
}

func (s *Server) showPull(i *Issue) map[string]any {
	m := s.showIssue(i)
	for _, k := range []string{"pull_request", "repository", "repository_url", "pin_order", "closed_by"} {
		delete(m, k)
	}
	p := i.Pull
	m["url"] = fmt.Sprintf("%s/repos/%s/pulls/%d", s.APIURL, s.Repository(), i.Number)
	m["draft"], m["merged"], m["merged_at"], m["mergeable"] = p.Draft, p.Merged, nil, true
	m["head"], m["base"] = s.showSide(p.Head, p.Fork, or(p.SHA, s.rev(p.Head))), s.showSide(p.Base, "", s.rev(p.Base))
	if p.Merged {
		m["merged_at"] = s.stamp(i.closed)
	}
	if s.o.Gitea {
		for _, k := range []string{"original_author", "original_author_id", "ref"} {
			delete(m, k)
		}
		m["url"], m["assignees"] = m["html_url"], s.users(i.Assignees)
		m["merge_base"], m["is_locked"], m["mergeable"] = s.rev(p.Base), false, !p.Draft
	}
	return m
}

// getLineComment: their ids are none of issues/comments.
func (s *Server) getLineComment(q *request) reply {
	id := q.number("id")
	n := slices.IndexFunc(s.state.lines, func(c *Comment) bool { return c.ID == id })
	if n < 0 {
		return s.notFound(q)
	}
	return reply{status: http.StatusOK, body: s.showLineComment(s.state.lines[n])}
}

// showLineComment is a comment on the first line of the repository's README.md.
func (s *Server) showLineComment(c *Comment) map[string]any {
	i := s.state.issues[c.Issue]
	pull := s.showIssue(i)
	self := fmt.Sprintf("%s/repos/%s/pulls", s.APIURL, s.Repository())
	sha := or(i.Pull.SHA, s.rev(i.Pull.Head))
	return map[string]any{
		"id": c.ID, "node_id": "PRRC_kwDOAAAAAQ", "pull_request_review_id": c.ID, "author_association": "NONE",
		"body": c.Body, "user": s.user(c.Author), "created_at": s.stamp(c.created), "updated_at": s.stamp(c.created),
		"url": fmt.Sprintf("%s/comments/%d", self, c.ID), "pull_request_url": fmt.Sprintf("%s/%d", self, i.Number),
		"html_url": fmt.Sprintf("%s#discussion_r%d", pull["html_url"], c.ID),
		"path":     "README.md", "diff_hunk": "@@ -0,0 +1 @@\n+# Demo", "side": "RIGHT", "line": 1, "position": 1,
		"commit_id": sha, "original_commit_id": sha, "original_line": 1, "original_position": 1,
	}
}

func (s *Server) showSide(branch, fork, sha string) map[string]any {
	owner, _, _ := strings.Cut(or(fork, s.Repository()), "/")
	m := map[string]any{"label": owner + ":" + branch, "ref": branch, "sha": sha, "user": s.user(owner), "repo": s.repository()}
	if s.o.Gitea {
		m["label"], m["repo_id"] = branch, 1
		delete(m, "user")
	}
	if fork != "" {
		other := s.repository()
		other["id"], other["full_name"], other["fork"] = 2, fork, true
		other["owner"] = s.user(owner)
		m["repo"] = other
	}
	return m
}

type newPull struct {
	Title, Body, Head, Base string
	Draft                   bool
}

func (s *Server) createPull(q *request) reply {
	var in newPull
	if no, ok := s.decode(q, &in); !ok {
		return no
	}
	// GitHub takes owner:branch too.
	in.Head = strings.TrimPrefix(in.Head, s.o.Owner+":")
	no, ok := s.checkGitHub(q, in)
	if s.o.Gitea {
		no, ok = s.checkGitea(q, in)
	}
	if !ok {
		return no
	}
	i := s.addIssue(q.token.login, in.Title, in.Body)
	i.Pull = &Pull{Head: in.Head, Base: in.Base, Draft: in.Draft}
	s.markDraft(i)
	return reply{status: http.StatusCreated, body: s.showPull(i)}
}

// markDraft makes a draft of a pull request with such a title, as Gitea does.
func (s *Server) markDraft(i *Issue) {
	if s.o.Gitea {
		i.Pull.Draft = strings.HasPrefix(i.Title, "WIP:") || strings.HasPrefix(i.Title, "[WIP]")
	}
}

// openFor is the open pull request of two branches.
func (s *Server) openFor(head, base string) *Issue {
	for _, i := range s.pulls() {
		if i.Open && i.Pull.Fork == "" && i.Pull.Head == head && i.Pull.Base == base {
			return i
		}
	}
	return nil
}

func (s *Server) checkGitHub(q *request, in newPull) (reply, bool) {
	switch {
	case q.token.app && s.state.noPulls:
		return s.fail(q, http.StatusForbidden, "GitHub Actions is not permitted to create or approve pull requests."), false
	case in.Title == "":
		return s.invalid(q, "Issue", "title", "missing_field", ""), false
	case s.rev(in.Base) == "":
		return s.invalid(q, "PullRequest", "base", "invalid", ""), false
	case s.rev(in.Head) == "":
		return s.invalid(q, "PullRequest", "head", "invalid", ""), false
	case s.openFor(in.Head, in.Base) != nil:
		return s.invalid(q, "PullRequest", "", "custom", "A pull request already exists for "+s.o.Owner+":"+in.Head+"."), false
	}
	if ahead, err := s.Git("rev-list", "--count", "refs/heads/"+in.Base+"..refs/heads/"+in.Head); err != nil || ahead == "0" {
		return s.invalid(q, "PullRequest", "", "custom", "No commits between "+in.Base+" and "+in.Head), false
	}
	if _, err := s.Git("merge-base", "refs/heads/"+in.Base, "refs/heads/"+in.Head); err != nil {
		return s.invalid(q, "PullRequest", "", "custom", "The "+in.Head+" branch has no history in common with "+in.Base), false
	}
	return reply{}, true
}

func (s *Server) checkGitea(q *request, in newPull) (reply, bool) {
	if in.Title == "" {
		return s.fail(q, http.StatusUnprocessableEntity, "[Title]: Required"), false
	}
	if in.Head == in.Base {
		return s.fail(q, http.StatusUnprocessableEntity, "Invalid PullRequest: There are no changes between the head and the base"), false
	}
	if s.rev(in.Base) == "" || s.rev(in.Head) == "" {
		return s.fail(q, http.StatusNotFound, "not found"), false
	}
	if old := s.openFor(in.Head, in.Base); old != nil {
		return s.fail(q, http.StatusConflict, fmt.Sprintf("pull request already exists for these targets [id: %d, issue_id: %d, head_repo_id: 1, base_repo_id: 1, head_branch: %s, base_branch: %s]",
			old.id, old.Number, in.Head, in.Base)), false
	}
	return reply{}, true
}

// editPull: Gitea answers 201, and lets everybody change their own.
func (s *Server) editPull(q *request) reply {
	i := s.state.issues[int(q.number("n"))]
	if i == nil || i.Pull == nil {
		return s.notFound(q)
	}
	if s.o.Gitea && q.token.name() != i.Author && !s.may(q.token, "pull_requests=write") {
		return reply{status: http.StatusForbidden}
	}
	var in struct{ Title, Body, State, Base *string }
	if no, ok := s.decode(q, &in); !ok {
		return no
	}
	i.edit(in.Title, in.Body, in.State, s.now())
	s.markDraft(i)
	if in.Base != nil {
		i.Pull.Base = *in.Base
	}
	status := http.StatusOK
	if s.o.Gitea {
		status = http.StatusCreated
	}
	return reply{status: status, body: s.showPull(i)}
}
