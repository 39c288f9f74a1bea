package forge

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/internal/lists"
)

// ListBranchRules are the rules that pushes to a branch meet, which need not exist: those of
// rulesets by their types, and ProtectedBranch for the older protections, whose patterns
// only administrators are shown. known is false where there may be more than this token
// is shown. Gitea has protections alone, and says of a branch that exists whether this
// token's user may push there.
func (c *client) ListBranchRules(ctx context.Context, branch string) (rules []string, known bool, err error) {
	known = true
	if c.flavour == GitHub {
		rules, known, err = c.listRulesets(ctx, branch)
		if err != nil {
			return nil, false, err
		}
	}
	protected, told, err := c.isProtected(ctx, branch)
	if err != nil {
		return nil, false, err
	}
	if protected {
		rules = append(rules, ProtectedBranch)
	}
	return rules, known && told, nil
}

// ProtectedBranch is the rule of a branch that is protected in the older way.
const ProtectedBranch = "protected branch"

// isProtected says whether a protection is in the way of pushes to a branch. Where there is
// no such branch yet, the patterns of all protections tell it.
func (c *client) isProtected(ctx context.Context, branch string) (is, known bool, err error) {
	var b struct {
		Protected bool  `json:"protected"`
		CanPush   *bool `json:"user_can_push"` // Gitea
	}
	_, err = c.makeCall(ctx, request{
		do: "read the branch " + branch, method: http.MethodGet, path: "/branches/" + escapeBranch(branch),
	}, &b)
	switch {
	case errors.Is(err, ErrForbidden):
		return false, false, nil
	case err == nil:
		return b.Protected && (b.CanPush == nil || !*b.CanPush), true, nil
	case !errors.Is(err, ErrNotFound):
		return false, false, err
	}
	list := c.listGitHubProtections
	if c.flavour == Gitea {
		list = c.listGiteaProtections
	}
	patterns, known, err := list(ctx)
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matchesBranch(pattern, branch) }), known, err
}

// listGiteaProtections are the patterns of the protections that stop pushes of everybody.
func (c *client) listGiteaProtections(ctx context.Context) (patterns []string, known bool, err error) {
	var list []struct {
		Rule string `json:"rule_name"`
		Push bool   `json:"enable_push"`
		Some bool   `json:"enable_push_whitelist"` // not for everybody who may write
	}
	_, err = c.makeCall(ctx, request{do: "read the branch protections", method: http.MethodGet, path: "/branch_protections"}, &list)
	if errors.Is(err, ErrForbidden) || errors.Is(err, ErrNotFound) {
		return nil, false, nil // this token is no administrator's
	}
	for _, p := range list {
		if !p.Push || p.Some {
			patterns = append(patterns, p.Rule)
		}
	}
	return patterns, err == nil, err
}

// protectionsQuery asks GitHub, whose REST API tells of protections only branch by branch.
const protectionsQuery = `query($owner: String!, $name: String!) { repository(owner: $owner, name: $name) { viewerCanAdminister
branchProtectionRules(first: 100) { pageInfo { hasNextPage } nodes { pattern restrictsPushes requiresApprovingReviews requiresStatusChecks requiresCommitSignatures lockBranch } } } }`

// listGitHubProtections are the same of GitHub.
func (c *client) listGitHubProtections(ctx context.Context) (patterns []string, known bool, err error) {
	var a struct {
		Data struct {
			Repository struct {
				Admin bool `json:"viewerCanAdminister"`
				Rules struct {
					Page  struct{ HasNextPage bool } `json:"pageInfo"`
					Nodes []struct {
						Pattern                                                                                               string
						RestrictsPushes, RequiresApprovingReviews, RequiresStatusChecks, RequiresCommitSignatures, LockBranch bool
					}
				} `json:"branchProtectionRules"`
			}
		}
		Errors []any
	}
	owner, name, _ := strings.Cut(c.o.Repository, "/")
	_, err = c.makeCall(ctx, request{
		do: "read the branch protections", method: http.MethodPost, path: c.graphQLURL(), safe: true, root: true,
		body: map[string]any{"query": protectionsQuery, "variables": map[string]string{"owner": owner, "name": name}},
	}, &a)
	if errors.Is(err, ErrForbidden) || errors.Is(err, ErrAuth) || errors.Is(err, ErrNotFound) {
		return nil, false, nil
	}
	rules := a.Data.Repository.Rules
	for _, r := range rules.Nodes {
		if r.RestrictsPushes || r.RequiresApprovingReviews || r.RequiresStatusChecks || r.RequiresCommitSignatures || r.LockBranch {
			patterns = append(patterns, r.Pattern)
		}
	}
	// Others than administrators are shown none, or an error beside the data.
	return patterns, err == nil && a.Data.Repository.Admin && len(a.Errors) == 0 && !rules.Page.HasNextPage, err
}

// graphQLURL is GitHub's other API: api.github.com/graphql, and /api/graphql beside /api/v3.
func (c *client) graphQLURL() string {
	u := *c.gh.BaseURL
	if base, ok := strings.CutSuffix(u.Path, "/v3/"); ok {
		u.Path = base + "/graphql"
	} else {
		u.Path += "graphql"
	}
	return u.String()
}

// matchesBranch matches as both forges do: * stays within a part of the name, and ** goes
// beyond it.
func matchesBranch(pattern, branch string) bool {
	m, err := regexp.Compile("^(?:" + wildcards.Replace(regexp.QuoteMeta(pattern)) + ")$")
	return err == nil && m.MatchString(branch) || pattern == branch
}

// wildcards are those of patterns, quoted, as expressions have them.
var wildcards = strings.NewReplacer(`\*\*/`, "(?:.*/)?", `\*\*`, ".*", `\*`, "[^/]*", `\?`, "[^/]", `\[!`, "[^", `\[`, "[", `\]`, "]")

func (c *client) listRulesets(ctx context.Context, branch string) (rules []string, known bool, err error) {
	type rule struct {
		Type string `json:"type"`
	}
	_, err = readPages(ctx, c, request{
		do: "read the rules of the branch " + branch, method: http.MethodGet, path: "/rules/branches/" + escapeBranch(branch),
	}, maxPages, func(list []rule) bool {
		rules = append(rules, lists.Map(list, func(r rule) string { return r.Type })...)
		return false
	})
	if errors.Is(err, ErrForbidden) || errors.Is(err, ErrNotFound) {
		return nil, false, nil // GHES before 3.11, or no right to see them
	}
	slices.Sort(rules)
	return slices.Compact(rules), err == nil, err
}

// escapeBranch keeps the slashes: they are part of the path in these calls.
func escapeBranch(branch string) string {
	parts := strings.Split(branch, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return strings.Join(parts, "/")
}
