package forge

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// ReadRepository is the repository itself.
func (c *client) ReadRepository(ctx context.Context) (r Repository, err error) {
	do := "read the repository " + c.o.Repository
	_, err = c.makeCall(ctx, request{do: do, method: http.MethodGet}, &r)
	if err == nil && r.DefaultBranch == "" {
		err = &CallError{Do: do, Kind: ErrUnreadable, Status: http.StatusOK, Message: "it names no default branch"}
	}
	return r, err
}

// Owners is what a Forge may offer beside its calls: whether the repository belongs to an
// organisation. Known is false where this token may not see whose it is.
type Owners interface {
	IsOwnedByOrganisation(ctx context.Context) (is, known bool, err error)
}

// IsOwnedByOrganisation asks for an organisation of the owner's name. Without one it asks for
// any account of it: a hidden organisation, like a hidden person, is found by neither.
func (c *client) IsOwnedByOrganisation(ctx context.Context) (is, known bool, err error) {
	look := func(below string) error {
		_, err := c.makeCall(ctx, request{do: "look up whether " + c.owner + " is an organisation", method: http.MethodGet, path: below + url.PathEscape(c.owner), root: true}, nil)
		return err
	}
	if err = look("/orgs/"); err == nil {
		return true, true, nil
	}
	if errors.Is(err, ErrNotFound) {
		err = look("/users/")
	}
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrForbidden) {
		return false, false, nil
	}
	return false, err == nil, err
}

// ReadPermission is what a user may do. GitHub gives the job's token an answer; Gitea
// refuses it to all but the owner's, which makes it Unknown.
func (c *client) ReadPermission(ctx context.Context, login string) (Permission, error) {
	if login == "" {
		return Unknown, nil
	}
	var p struct {
		Permission string `json:"permission"`
	}
	_, err := c.makeCall(ctx, request{
		do: "look up what " + login + " may do", method: http.MethodGet,
		path: "/collaborators/" + url.PathEscape(login) + "/permission",
	}, &p)
	switch {
	case errors.Is(err, ErrForbidden):
		return Unknown, nil
	case errors.Is(err, ErrNotFound):
		return None, nil // no such user
	case err != nil:
		return Unknown, err
	}
	switch p.Permission {
	case "owner", "admin", "maintain", "write":
		return Write, nil
	case "triage", "read":
		return Read, nil
	case "none":
		return None, nil
	}
	return Unknown, nil
}

// ReadTokenOwner is whose token this is. Jobs of GitHub are refused; those of Gitea are a user that
// it has built in.
func (c *client) ReadTokenOwner(ctx context.Context) (User, error) {
	do := "look up whose token this is"
	var u user
	if _, err := c.makeCall(ctx, request{do: do, method: http.MethodGet, path: "/user", root: true}, &u); err != nil {
		return User{}, err
	}
	if u.Login == "" {
		return User{}, &CallError{Do: do, Kind: ErrUnreadable, Status: http.StatusOK, Message: "it names no user"}
	}
	return User{Login: u.Login, ID: u.accountID(), Bot: u.Type == "Bot" || u.builtIn()}, nil
}

// MayCreatePulls reports the setting "Allow GitHub Actions to create and approve
// pull requests", which only administrators can read. Gitea has no such setting:
// its jobs may.
func (c *client) MayCreatePulls(ctx context.Context) (may, known bool, err error) {
	if c.flavour == Gitea {
		return true, true, nil
	}
	var s struct {
		May *bool `json:"can_approve_pull_request_reviews"`
	}
	_, err = c.makeCall(ctx, request{do: "read whether jobs may open pull requests", method: http.MethodGet, path: "/actions/permissions/workflow"}, &s)
	if errors.Is(err, ErrForbidden) || errors.Is(err, ErrNotFound) {
		return false, false, nil
	}
	if err != nil || s.May == nil {
		return false, false, err
	}
	return *s.May, true, nil
}

// ListWorkflows are the workflow files that the forge knows.
func (c *client) ListWorkflows(ctx context.Context) ([]Workflow, error) {
	type page struct {
		Workflows []struct{ Path, State string }
	}
	var out []Workflow
	_, err := readPages(ctx, c, request{do: "list the workflows", method: http.MethodGet, path: "/actions/workflows"}, maxPages, func(p page) bool {
		for _, w := range p.Workflows {
			out = append(out, Workflow{Path: w.Path, Active: w.State == "active"})
		}
		return false
	})
	return out, err
}

// WasRunCancelled asks for the run's conclusion.
func (c *client) WasRunCancelled(ctx context.Context, run string) (was, known bool, err error) {
	var r struct {
		Conclusion string `json:"conclusion"`
	}
	_, err = c.makeCall(ctx, request{do: "read run " + run, method: http.MethodGet, path: "/actions/runs/" + url.PathEscape(run)}, &r)
	if errors.Is(err, ErrForbidden) || errors.Is(err, ErrNotFound) {
		return false, false, nil
	}
	return r.Conclusion == "cancelled", err == nil, err
}

// maxNoted is how many cancelled jobs of a run are looked at.
const maxNoted = 5

// ListJobNotes are the annotations of those jobs of a run's attempt that were cancelled.
func (c *client) ListJobNotes(ctx context.Context, run string, attempt int) ([]string, error) {
	if c.flavour == Gitea {
		return nil, nil
	}
	var list struct {
		Jobs []struct {
			ID         int64  `json:"id"`
			Conclusion string `json:"conclusion"`
		} `json:"jobs"`
	}
	path := fmt.Sprintf("/actions/runs/%s/attempts/%d/jobs", url.PathEscape(run), attempt)
	if _, err := c.makeCall(ctx, request{do: "list the jobs of run " + run, method: http.MethodGet, path: path, query: url.Values{"per_page": {"100"}}}, &list); err != nil {
		return nil, err
	}
	var out []string
	asked := 0
	for _, j := range list.Jobs {
		if j.Conclusion != "cancelled" || asked == maxNoted {
			continue
		}
		asked++
		var notes []struct {
			Message string `json:"message"`
		}
		path := fmt.Sprintf("/check-runs/%d/annotations", j.ID) // a job is a check run of the same id
		if _, err := c.makeCall(ctx, request{do: "read what was noted at a job of run " + run, method: http.MethodGet, path: path}, &notes); err != nil {
			return out, err
		}
		for _, n := range notes {
			out = append(out, n.Message)
		}
	}
	return out, nil
}

// SecretLister is what a Forge may offer beside its calls: the names of the secrets that
// jobs of the repository get, its own and its organisation's. Their values can't be
// read by anybody. Known is false where this token can't see all of them.
type SecretLister interface {
	ListSecretNames(ctx context.Context) (names []string, known bool, err error)
}

// ListSecretNames are the names of the repository's secrets.
func (c *client) ListSecretNames(ctx context.Context) (names []string, known bool, err error) {
	type secret struct {
		Name string `json:"name"`
	}
	const own = "/actions/secrets"
	for _, from := range []string{own, "/actions/organization-secrets"} {
		var raw json.RawMessage
		_, err := c.makeCall(ctx, request{do: "list the names of secrets", method: http.MethodGet, path: from, query: url.Values{"per_page": {"100"}, "limit": {"100"}}}, &raw)
		if errors.Is(err, ErrNotFound) && from != own {
			continue // the repository belongs to a person
		}
		if errors.Is(err, ErrForbidden) || errors.Is(err, ErrNotFound) {
			return names, false, nil
		}
		if err != nil {
			return nil, false, err
		}
		// GitHub sends an object with the list, Gitea the list.
		var page struct{ Secrets []secret }
		list := &page.Secrets
		if json.Unmarshal(raw, list) != nil {
			if err := json.Unmarshal(raw, &page); err != nil {
				return nil, false, &CallError{Do: "list the names of secrets", Kind: ErrUnreadable, Cause: err}
			}
		}
		for _, s := range *list {
			names = append(names, s.Name)
		}
	}
	return names, true, nil
}

// FileReader is what a Forge may offer beside its calls: a file of the repository at a commit.
type FileReader interface {
	// ReadFile reads a regular file of at most limit bytes. path has slashes, and commit is the
	// commit's whole hash: what a branch or a tag leads to changes. ErrInvalid: it is another
	// thing, or longer.
	ReadFile(ctx context.Context, path, commit string, limit int) ([]byte, error)
}

// ReadFile asks for the file's content, which both flavours send in base64.
func (c *client) ReadFile(ctx context.Context, path, commit string, limit int) ([]byte, error) {
	var f struct {
		Type, Encoding, Content string
		Size                    int
	}
	do := fmt.Sprintf("read %s of %s at %s", path, c.o.Repository, commit)
	parts := strings.Split(path, "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	_, err := c.makeCall(ctx, request{do: do, method: http.MethodGet, path: "/contents/" + strings.Join(parts, "/"), query: url.Values{"ref": {commit}}}, &f)
	if err != nil {
		return nil, err
	}
	fail := func(kind error, why string) ([]byte, error) {
		return nil, &CallError{Do: do, Kind: kind, Status: http.StatusOK, Message: why}
	}
	if f.Type != "file" {
		return fail(ErrInvalid, fmt.Sprintf("it is no file (%.40q)", f.Type))
	}
	if f.Size > limit {
		return fail(ErrInvalid, fmt.Sprintf("it has %d bytes, and at most %d are taken", f.Size, limit))
	}
	data, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(f.Content, "\n", ""))
	if f.Encoding != "base64" || err != nil || len(data) != f.Size {
		return fail(ErrUnreadable, "its answer does not hold the whole file")
	}
	return data, nil
}

// NoReplyAddress is the address by which a forge knows an account's commits without telling its
// mail address; empty where the server's address is none.
func NoReplyAddress(flavour Flavour, server, login string, id int64) string {
	u, err := url.Parse(server)
	switch {
	case err != nil || u.Hostname() == "":
		return ""
	case flavour == Gitea:
		return login + "@noreply." + u.Hostname()
	case id != 0:
		return fmt.Sprintf("%d+%s@users.noreply.%s", id, login, u.Hostname())
	}
	return login + "@users.noreply." + u.Hostname()
}

// IsBot tells apps and the job's own token by their names, where the payload doesn't.
func IsBot(login string) bool {
	return strings.HasSuffix(login, "[bot]") || login == "gitea-actions" || login == "forgejo-actions"
}
