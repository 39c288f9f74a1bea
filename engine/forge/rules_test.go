package forge

import (
	"net/http"
	"testing"
)

func TestMatchesBranch(t *testing.T) {
	for _, c := range []struct {
		pattern, branch string
		want            bool
	}{
		{"uwf-state", "uwf-state", true}, {"uwf*", "uwf-state", true}, {"*", "uwf-state", true}, {"*", "uwf/1", false},
		{"*/*", "uwf/1", true}, {"**/*", "uwf/1", true}, {"**/*", "uwf-state", true}, {"**", "uwf/1", true}, {"uwf/*", "uwf/1", true},
		{"uwf/*", "uwf/1/2", false}, {"uwf/**", "uwf/1/2", true}, {"uwf-[a-s]tate", "uwf-state", true}, {"uwf-[!s]tate", "uwf-state", false},
		{"uwf?state", "uwf-state", true}, {"uwf?1", "uwf/1", false}, {"uwf.state", "uwf-state", false}, {"main", "uwf-state", false},
		{"[", "[", true}, {"[z-a]", "x", false}, {"", "x", false}, {"uwf-state*", "uwf-state", true},
	} {
		if got := matchesBranch(c.pattern, c.branch); got != c.want {
			t.Errorf("%q and %q: %v", c.pattern, c.branch, got)
		}
	}
}

// What GitHub's other API answers when it does not tell is not taken for "none".
func TestProtectionsUntold(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		known  bool
	}{
		"no administrator": {200, `{"data":{"repository":{"viewerCanAdminister":false,"branchProtectionRules":{"nodes":[]}}}}`, false},
		"an administrator": {200, `{"data":{"repository":{"viewerCanAdminister":true,"branchProtectionRules":{"nodes":[]}}}}`, true},
		"an error":         {200, `{"data":{"repository":{"viewerCanAdminister":true,"branchProtectionRules":null}},"errors":[{"type":"FORBIDDEN","message":"Resource not accessible by integration"}]}`, false},
		"more than a page": {200, `{"data":{"repository":{"viewerCanAdminister":true,"branchProtectionRules":{"pageInfo":{"hasNextPage":true},"nodes":[]}}}}`, false},
		"nothing":          {200, `{"data":{"repository":null}}`, false},
		"refused":          {403, `{"message":"Resource not accessible by integration"}`, false},
		"not there":        {404, `{"message":"Not Found"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			asked := false
			f, _ := serve(t, Options{APIURL: "/api/v3"}, func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/api/graphql":
					asked = true
					reply(w, c.status, c.body)
				case "/api/v3/repos/octo/demo/rules/branches/uwf/1":
					reply(w, 200, `[]`)
				default:
					reply(w, 404, `{"message":"Branch not found"}`)
				}
			})
			if rules, known, err := f.ListBranchRules(t.Context(), "uwf/1"); err != nil || known != c.known || len(rules) > 0 || !asked {
				t.Errorf("%v %v %v, asked: %v", rules, known, err, asked)
			}
		})
	}
}
