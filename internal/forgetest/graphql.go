package forgetest

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
)

// graphQL is where GitHub Enterprise Server has its other API.
const graphQL = "/api/graphql"

// serveGraphQL answers the one query that uwf asks: for the branch protections. Its shape
// is that of GitHub's schema (Repository.branchProtectionRules, viewerCanAdminister); who
// may not administrate the repository is shown none of them.
func (s *Server) serveGraphQL(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Query     string
		Variables struct{ Owner, Name string }
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err == nil {
		err = json.Unmarshal(body, &q)
	}
	s.mu.Lock()
	t, bad := s.who(r)
	a := s.protectionRules(&request{Request: r, token: t, body: body, doc: "https://docs.github.com/graphql"}, bad || t == nil, err == nil && strings.Contains(q.Query, "branchProtectionRules("), q.Variables.Owner+"/"+q.Variables.Name)
	s.mu.Unlock()
	s.common(w.Header())
	a.write(w)
	s.record(Call{Method: r.Method, Path: "graphql", Body: string(body), Login: t.name(), Status: a.status})
}

func (s *Server) protectionRules(q *request, nobody, known bool, repository string) reply {
	switch {
	case nobody:
		return s.unauthorized(q, "This endpoint requires you to be authenticated.")
	case !known:
		return reply{status: http.StatusOK, body: map[string]any{"errors": []any{map[string]any{"message": "A query attribute must be specified and must be a string."}}}}
	case !strings.EqualFold(repository, s.Repository()):
		return reply{status: http.StatusOK, body: map[string]any{"data": map[string]any{"repository": nil},
			"errors": []any{map[string]any{"type": "NOT_FOUND", "message": "Could not resolve to a Repository with the name '" + repository + "'."}}}}
	}
	admin := s.may(q.token, "administration=read")
	nodes := []map[string]any{}
	for _, r := range s.state.rules {
		if admin && r.kind == protection {
			nodes = append(nodes, map[string]any{
				"pattern": r.branch, "restrictsPushes": true, "requiresApprovingReviews": false, "requiresStatusChecks": false,
				"requiresCommitSignatures": false, "lockBranch": false,
			})
		}
	}
	return reply{status: http.StatusOK, body: map[string]any{"data": map[string]any{"repository": map[string]any{
		"viewerCanAdminister":   admin,
		"branchProtectionRules": map[string]any{"pageInfo": map[string]any{"hasNextPage": false}, "nodes": nodes},
	}}}}
}
