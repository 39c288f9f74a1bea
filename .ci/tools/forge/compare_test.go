package forge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	runnerv1 "code.gitea.io/actions-proto-go/runner/v1"
	"github.com/united-workforce/uwf/internal/forgetest"
)

// Workflow files of the repository that both forges have. The first two are started
// to get jobs' tokens with two sorts of permissions.
var comparedFiles = map[string]string{
	"README.md": "# Demo\n",
	".github/workflows/uwf.yml": `name: uwf
on:
  workflow_dispatch:
    inputs: {thread: {type: string}, head: {type: string}}
jobs:
  step:
    permissions: {contents: write, issues: write, pull-requests: write, actions: write}
    runs-on: ubuntu-latest
    steps: [{run: "true"}]
`,
	".github/workflows/reader.yml": `name: reader
on: workflow_dispatch
jobs:
  step:
    permissions: {contents: read, issues: read, pull-requests: read, actions: read}
    runs-on: ubuntu-latest
    steps: [{run: "true"}]
`,
	".github/workflows/plain.yml": `name: plain
on: release
jobs: {step: {runs-on: ubuntu-latest, steps: [{run: "true"}]}}
`,
	".github/workflows/off.yml": `name: "off"
on: workflow_dispatch
jobs: {step: {runs-on: ubuntu-latest, steps: [{run: "true"}]}}
`,
}

// side is one of the two forges, with what the other calls otherwise.
type side struct {
	api    string
	url    string
	tokens map[string]string // by whose they are; job and reader are jobs'
	ids    map[string]string // what {name} stands for in calls
}

// exchange is a call of the API that both forges are asked.
type exchange struct {
	name   string
	who    string // nobody: without a token
	method string
	path   string // below the repository, below the API with "/"; {name} is an id
	body   string
	status int
	// keep gives a name to what a field of the answer says.
	keep map[string]string
}

// exchanges are all calls that engine/forge makes of a Gitea, in the cases that it
// tells apart. They are made in this order: what one made, the next ones find.
func exchanges() []exchange {
	long := strings.Repeat("ä", 65537)
	return []exchange{
		{name: "repository", who: "job", method: "GET", status: 200},
		{name: "repository, read only", who: "reader", method: "GET", status: 200},
		{name: "repository, no token", who: "nobody", method: "GET", status: 404},
		{name: "repository, a token of nobody's", who: "wrong", method: "GET", status: 401},
		{name: "repository, a stranger", who: "bob", method: "GET", status: 404},
		{name: "another repository", who: "job", method: "GET", path: "/repos/octo/none", status: 404},

		{name: "file", who: "job", method: "GET", path: "contents/.github/workflows/plain.yml?ref=main", status: 200},

		{name: "permission, a job asks", who: "job", method: "GET", path: "collaborators/alice/permission", status: 403},
		{name: "permission, a job asks for the owner's", who: "job", method: "GET", path: "collaborators/octo/permission", status: 403},
		{name: "permission, a job asks for nobody's", who: "job", method: "GET", path: "collaborators/nobody-knows/permission", status: 403},
		{name: "permission, one's own", who: "alice", method: "GET", path: "collaborators/alice/permission", status: 200},
		{name: "permission, somebody else's", who: "alice", method: "GET", path: "collaborators/octo/permission", status: 403},
		{name: "permission, the owner asks", who: "octo", method: "GET", path: "collaborators/alice/permission", status: 200},
		{name: "permission, the owner's own", who: "octo", method: "GET", path: "collaborators/octo/permission", status: 200},
		{name: "permission, of a stranger", who: "octo", method: "GET", path: "collaborators/bob/permission", status: 200},
		{name: "permission, of nobody", who: "octo", method: "GET", path: "collaborators/nobody-knows/permission", status: 404},
		{name: "permission, no token", who: "nobody", method: "GET", path: "collaborators/alice/permission", status: 404},

		{name: "whose token, a job's", who: "job", method: "GET", path: "/user", status: 200},
		{name: "whose token, a person's", who: "alice", method: "GET", path: "/user", status: 200},
		{name: "whose token, without one", who: "nobody", method: "GET", path: "/user", status: 401},
		{name: "whose token, nobody's", who: "wrong", method: "GET", path: "/user", status: 401},
		{name: "organisation, a person's name", who: "job", method: "GET", path: "/orgs/octo", status: 404},
		{name: "organisation, a person asks", who: "alice", method: "GET", path: "/orgs/octo", status: 404},
		{name: "account, a job asks", who: "job", method: "GET", path: "/users/octo", status: 200},
		{name: "account, a person asks", who: "alice", method: "GET", path: "/users/octo", status: 200},
		{name: "account, nobody's", who: "alice", method: "GET", path: "/users/nobody-knows", status: 404},

		{name: "issue", who: "job", method: "GET", path: "issues/1", status: 200},
		{name: "issue, read only", who: "reader", method: "GET", path: "issues/1", status: 200},
		{name: "issue, none", who: "job", method: "GET", path: "issues/999", status: 404},
		{name: "comments", who: "job", method: "GET", path: "issues/1/comments?limit=50&per_page=100", status: 200},
		{name: "comments, the next page", who: "job", method: "GET", path: "issues/1/comments?limit=1&page=2&per_page=1", status: 200},
		{name: "comments, of none", who: "job", method: "GET", path: "issues/999/comments", status: 500},
		{name: "comment", who: "job", method: "GET", path: "issues/comments/{said}", status: 200},
		{name: "comment, none", who: "job", method: "GET", path: "issues/comments/99999", status: 404},
		{name: "make a comment", who: "job", method: "POST", path: "issues/1/comments", body: `{"body":"ours & <b> „ä“"}`, status: 201, keep: map[string]string{"made": "id"}},
		{name: "make a comment, empty", who: "job", method: "POST", path: "issues/1/comments", body: `{"body":""}`, status: 422},
		{name: "make a comment, too long for GitHub", who: "job", method: "POST", path: "issues/1/comments", body: `{"body":"` + long + `"}`, status: 201},
		{name: "make a comment, no issue", who: "job", method: "POST", path: "issues/999/comments", body: `{"body":"x"}`, status: 500},
		{name: "make a comment, no JSON", who: "job", method: "POST", path: "issues/1/comments", body: `{`, status: 422},
		{name: "make a comment, read only", who: "reader", method: "POST", path: "issues/1/comments", body: `{"body":"read only"}`, status: 201, keep: map[string]string{"read": "id"}},
		{name: "make a comment, no token", who: "nobody", method: "POST", path: "issues/1/comments", body: `{"body":"x"}`, status: 404},
		{name: "change a comment", who: "job", method: "PATCH", path: "issues/comments/{made}", body: `{"body":"changed"}`, status: 200},
		{name: "change a comment, empty", who: "job", method: "PATCH", path: "issues/comments/{made}", body: `{"body":""}`, status: 422},
		{name: "change a comment, none", who: "job", method: "PATCH", path: "issues/comments/99999", body: `{"body":"x"}`, status: 404},
		{name: "change a comment, somebody else's", who: "job", method: "PATCH", path: "issues/comments/{said}", body: `{"body":"corrected"}`, status: 200},
		{name: "change a comment, somebody else's, read only", who: "reader", method: "PATCH", path: "issues/comments/{said}", body: `{"body":"x"}`, status: 403},
		{name: "change a comment, one's own, read only", who: "reader", method: "PATCH", path: "issues/comments/{read}", body: `{"body":"x"}`, status: 200},
		{name: "delete a comment, somebody else's, read only", who: "reader", method: "DELETE", path: "issues/comments/{said}", status: 403},
		{name: "delete a comment", who: "job", method: "DELETE", path: "issues/comments/{made}", status: 204},
		{name: "delete a comment again", who: "job", method: "DELETE", path: "issues/comments/{made}", status: 404},

		{name: "labels", who: "job", method: "GET", path: "labels?limit=50&per_page=100", status: 200},
		{name: "labels, a page", who: "job", method: "GET", path: "labels?limit=1&per_page=100", status: 200},
		{name: "make a label", who: "job", method: "POST", path: "labels", body: `{"name":"uwf failed/1","color":"#b60205","description":"it failed"}`, status: 201, keep: map[string]string{"failed": "id"}},
		{name: "make a label again", who: "job", method: "POST", path: "labels", body: `{"name":"uwf failed/1","color":"#b60205","description":"it failed"}`, status: 201},
		{name: "make a label, no name", who: "job", method: "POST", path: "labels", body: `{"color":"#b60205"}`, status: 422},
		{name: "make a label, no color", who: "job", method: "POST", path: "labels", body: `{"name":"grey"}`, status: 422},
		{name: "make a label, a bad color", who: "job", method: "POST", path: "labels", body: `{"name":"x","color":"blue"}`, status: 422},
		{name: "make a label, read only", who: "reader", method: "POST", path: "labels", body: `{"name":"x","color":"#b60205"}`, status: 403},
		{name: "labels of an issue", who: "job", method: "GET", path: "issues/1/labels", status: 200},
		{name: "labels of no issue", who: "job", method: "GET", path: "issues/999/labels", status: 404},
		{name: "put a label on", who: "job", method: "POST", path: "issues/1/labels", body: `{"labels":[{failed}]}`, status: 200},
		{name: "put a label on again", who: "job", method: "POST", path: "issues/1/labels", body: `{"labels":[{failed}]}`, status: 200},
		{name: "put a label on, unknown", who: "job", method: "POST", path: "issues/1/labels", body: `{"labels":[99999]}`, status: 200},
		{name: "put a label on by name", who: "job", method: "POST", path: "issues/1/labels", body: `{"labels":["bug","unknown"]}`, status: 200},
		{name: "put a label on, a plain list", who: "job", method: "POST", path: "issues/1/labels", body: `["bug"]`, status: 422},
		{name: "put a label on, an object", who: "job", method: "POST", path: "issues/1/labels", body: `{"labels":[{}]}`, status: 400},
		{name: "put a label on, no issue", who: "job", method: "POST", path: "issues/999/labels", body: `{"labels":[{failed}]}`, status: 404},
		{name: "put a label on, read only", who: "reader", method: "POST", path: "issues/1/labels", body: `{"labels":[{failed}]}`, status: 403},
		{name: "take a label off", who: "job", method: "DELETE", path: "issues/1/labels/{failed}", status: 204},
		{name: "take a label off again", who: "job", method: "DELETE", path: "issues/1/labels/{failed}", status: 204},
		{name: "take a label off, unknown", who: "job", method: "DELETE", path: "issues/1/labels/99999", status: 422},
		{name: "take a label off by name", who: "job", method: "DELETE", path: "issues/1/labels/bug", status: 422},
		{name: "take a label off, no issue", who: "job", method: "DELETE", path: "issues/999/labels/{failed}", status: 404},
		{name: "take a label off, read only", who: "reader", method: "DELETE", path: "issues/1/labels/{failed}", status: 403},

		{name: "pull requests, none", who: "job", method: "GET", path: "pulls?state=open&head=octo:work&sort=recentupdate&direction=desc&limit=50&per_page=100", status: 200},
		{name: "open a pull request", who: "job", method: "POST", path: "pulls", body: `{"title":"Fix it","body":"Fixes #1","head":"work","base":"main"}`, status: 201, keep: map[string]string{"pull": "number"}},
		{name: "open a pull request again", who: "job", method: "POST", path: "pulls", body: `{"title":"Again","body":"","head":"work","base":"main"}`, status: 409},
		{name: "open a pull request, a draft", who: "job", method: "POST", path: "pulls", body: `{"title":"WIP: Fix it","body":"","head":"a/b","base":"main"}`, status: 201, keep: map[string]string{"draft": "number"}},
		{name: "open a pull request, no changes", who: "job", method: "POST", path: "pulls", body: `{"title":"Nothing","body":"","head":"same","base":"main"}`, status: 201, keep: map[string]string{"empty": "number"}},
		{name: "open a pull request, the same branch", who: "job", method: "POST", path: "pulls", body: `{"title":"Nothing","body":"","head":"main","base":"main"}`, status: 422},
		{name: "open a pull request, no such head", who: "job", method: "POST", path: "pulls", body: `{"title":"Nothing","body":"","head":"none","base":"main"}`, status: 404},
		{name: "open a pull request, no such base", who: "job", method: "POST", path: "pulls", body: `{"title":"Nothing","body":"","head":"work","base":"none"}`, status: 404},
		{name: "open a pull request, no title", who: "job", method: "POST", path: "pulls", body: `{"title":"","body":"","head":"other","base":"main"}`, status: 422},
		{name: "open a pull request, read only", who: "reader", method: "POST", path: "pulls", body: `{"title":"Other","body":"","head":"other","base":"main"}`, status: 403},
		{name: "pull requests", who: "job", method: "GET", path: "pulls?state=open&head=octo:work&sort=recentupdate&direction=desc&limit=50&per_page=100", status: 200},
		{name: "pull requests, a page", who: "job", method: "GET", path: "pulls?state=open&limit=1&page=2", status: 200},
		{name: "pull requests, closed", who: "job", method: "GET", path: "pulls?state=closed&sort=recentupdate&limit=50", status: 200},
		{name: "pull requests, read only", who: "reader", method: "GET", path: "pulls?state=all&limit=50", status: 200},
		{name: "pull request", who: "job", method: "GET", path: "pulls/{pull}", status: 200},
		{name: "pull request as an issue", who: "job", method: "GET", path: "issues/{pull}", status: 200},
		{name: "pull request, none", who: "job", method: "GET", path: "pulls/999", status: 404},
		{name: "pull request that is an issue", who: "job", method: "GET", path: "pulls/1", status: 404},
		{name: "comment on a pull request", who: "job", method: "POST", path: "issues/{pull}/comments", body: `{"body":"x"}`, status: 201},
		{name: "change a pull request", who: "job", method: "PATCH", path: "pulls/{pull}", body: `{"title":"Fix it well","body":"Fixes #1 and more"}`, status: 201},
		{name: "change a pull request, none", who: "job", method: "PATCH", path: "pulls/999", body: `{"title":"x","body":"x"}`, status: 404},
		{name: "change a pull request, read only", who: "reader", method: "PATCH", path: "pulls/{draft}", body: `{"title":"x","body":"x"}`, status: 201},
		{name: "close a pull request", who: "octo", method: "PATCH", path: "pulls/{pull}", body: `{"state":"closed"}`, status: 201},
		{name: "pull request, closed", who: "job", method: "GET", path: "pulls/{pull}", status: 200},
		{name: "pull requests, one closed", who: "job", method: "GET", path: "pulls?state=closed&sort=recentupdate&limit=50", status: 200},

		{name: "branch", who: "job", method: "GET", path: "branches/work", status: 200},
		{name: "branch with a slash", who: "job", method: "GET", path: "branches/a/b", status: 200},
		{name: "branch, none", who: "job", method: "GET", path: "branches/none", status: 404},
		{name: "branch, protected", who: "job", method: "GET", path: "branches/kept", status: 200},
		{name: "rules, which Gitea has not", who: "job", method: "GET", path: "rules/branches/main", status: 404},
		{name: "settings of jobs, which Gitea has not", who: "job", method: "GET", path: "actions/permissions/workflow", status: 404},

		{name: "workflows", who: "job", method: "GET", path: "actions/workflows?limit=50&page=1&per_page=100", status: 200},
		{name: "workflows, read only", who: "reader", method: "GET", path: "actions/workflows", status: 200},
		{name: "dispatch", who: "job", method: "POST", path: "actions/workflows/uwf.yml/dispatches?return_run_details=true", body: `{"ref":"main","inputs":{"thread":"T","head":"H"}}`, status: 200},
		{name: "dispatch without details", who: "job", method: "POST", path: "actions/workflows/uwf.yml/dispatches", body: `{"ref":"main","inputs":{"thread":"T","head":"H"}}`, status: 204},
		{name: "dispatch, the branch's full name", who: "job", method: "POST", path: "actions/workflows/uwf.yml/dispatches", body: `{"ref":"refs/heads/main"}`, status: 204},
		{name: "dispatch, an unknown input", who: "job", method: "POST", path: "actions/workflows/uwf.yml/dispatches", body: `{"ref":"main","inputs":{"unknown":"x"}}`, status: 204},
		{name: "dispatch, no such file", who: "job", method: "POST", path: "actions/workflows/none.yml/dispatches", body: `{"ref":"main"}`, status: 404},
		{name: "dispatch, no such branch", who: "job", method: "POST", path: "actions/workflows/uwf.yml/dispatches", body: `{"ref":"none"}`, status: 404},
		{name: "dispatch, no branch", who: "job", method: "POST", path: "actions/workflows/uwf.yml/dispatches", body: `{}`, status: 422},
		{name: "dispatch, no trigger", who: "job", method: "POST", path: "actions/workflows/plain.yml/dispatches", body: `{"ref":"main"}`, status: 204},
		{name: "dispatch, disabled", who: "job", method: "POST", path: "actions/workflows/off.yml/dispatches", body: `{"ref":"main"}`, status: 403},
		{name: "dispatch, read only", who: "reader", method: "POST", path: "actions/workflows/uwf.yml/dispatches", body: `{"ref":"main"}`, status: 403},
		{name: "repository dispatch, which Gitea has not", who: "job", method: "POST", path: "dispatches", body: `{"event_type":"uwf-step"}`, status: 404},

		{name: "secrets, a job asks", who: "job", method: "GET", path: "actions/secrets?limit=100&per_page=100", status: 403},
		{name: "secrets, the owner asks", who: "octo", method: "GET", path: "actions/secrets?limit=100&per_page=100", status: 200},
		{name: "secrets of an organisation", who: "octo", method: "GET", path: "actions/organization-secrets?limit=100&per_page=100", status: 404},
	}
}

// compare asks the fake forge and the real one the same, in equal states.
func (s *site) compare() {
	real, end := s.addCompared()
	defer end()
	fake := s.addFake()
	for _, x := range exchanges() {
		a, b := fake.ask(s, x), real.ask(s, x)
		if b.status != x.status {
			s.Errorf("%s: Gitea answers %d, want %d: %.300s", x.name, b.status, x.status, b.body)
		}
		for _, d := range differences(fake, real, a, b) {
			s.Errorf("%s: %s", x.name, d)
		}
		fake.remember(s, x, a)
		real.remember(s, x, b)
	}
	// What a push to a protected branch is told, by a job and by its owner.
	for _, who := range []string{"job", "octo"} {
		a, b := fake.push(s, who, "kept"), real.push(s, who, "kept")
		if a != b || !strings.Contains(a, "pre-receive hook declined") {
			s.Errorf("a push to a protected branch by %s: the fake says\n%s\nGitea\n%s", who, a, b)
		}
	}
}

// push pushes a commit to a branch, and returns what the forge says of it.
func (d *side) push(s *site, who, branch string) string {
	s.Helper()
	dir := s.TempDir()
	url := strings.Replace(d.url, "://", "://x-access-token:"+d.tokens[who]+"@", 1) + "/octo/compared.git"
	r := &repository{site: s}
	_, err := r.tryGit(dir, "clone", "--quiet", "--branch", branch, url, "clone")
	mustDo(s, err)
	dir = filepath.Join(dir, "clone")
	_, err = r.tryGit(dir, "commit", "--quiet", "--allow-empty", "--message", "More")
	mustDo(s, err)
	if _, err = r.tryGit(dir, "push", "--quiet", url, "HEAD:"+branch); err == nil {
		s.Fatalf("%s may push to %s of %s", who, branch, d.url)
	}
	var said []string
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimSpace(line[max(0, strings.Index(line, "remote: ")):]) // git's own words may stand before
		if strings.HasPrefix(line, "remote: ") && line != "remote: error:" || strings.HasPrefix(line, "! [") {
			said = append(said, line)
		}
	}
	return strings.Join(said, "\n")
}

// addCompared makes the repository on Gitea, where two jobs run until the end.
func (s *site) addCompared() (made *side, end func()) {
	s.Helper()
	r := s.addRepository("octo", "compared", true, comparedFiles)
	r.allow("alice", "write")
	for _, branch := range []string{"work", "a/b", "other", "kept"} {
		r.commit("octo", branch, "Work", map[string]string{strings.ReplaceAll(branch, "/", "-") + ".txt": "a\n"})
	}
	r.call("octo", http.MethodPost, r.path("branches"), map[string]string{"new_branch_name": "same", "old_branch_name": "main"}, nil)
	r.call("octo", http.MethodPost, r.path("branch_protections"), map[string]any{"rule_name": "kept", "enable_push": false}, nil)
	made = &side{api: s.URL + "/api/v1", url: s.URL, ids: map[string]string{}, tokens: maps.Clone(s.tokens)}
	n := r.openIssueSaying("alice", "It breaks", "Sometimes.")
	r.putLabel("alice", n, "bug")
	var said struct{ ID int64 }
	r.call("alice", http.MethodPost, r.path(fmt.Sprintf("issues/%d/comments", n)), map[string]string{"body": "Really."}, &said)
	made.ids["said"] = fmt.Sprint(said.ID)
	runs := r.addRunner()
	var tasks []*runnerv1.Task
	for who, file := range map[string]string{"job": "uwf.yml", "reader": "reader.yml"} {
		r.call("octo", http.MethodPost, r.path("actions/workflows/"+file+"/dispatches"), map[string]string{"ref": "main"}, nil)
		r.waitUntil("the job can be fetched", func() bool {
			task := runs.fetch()
			if task == nil {
				return false
			}
			made.tokens[who] = task.GetContext().GetFields()["token"].GetStringValue()
			tasks = append(tasks, task)
			return true
		})
	}
	r.call("octo", http.MethodPut, r.path("actions/workflows/off.yml/disable"), nil, nil)
	made.tokens["wrong"] = strings.Repeat("0", 40)
	return made, func() {
		for _, task := range tasks {
			runs.finish(task, &job{result: "success"})
		}
	}
}

func (r *repository) openIssueSaying(login, title, body string) int {
	r.Helper()
	var made struct{ Number int }
	r.call(login, http.MethodPost, r.path("issues"), map[string]string{"title": title, "body": body}, &made)
	return made.Number
}

// addFake makes the same repository on the fake forge.
func (s *site) addFake() *side {
	s.Helper()
	f := forgetest.Start(s.T, forgetest.Options{Gitea: true, Owner: "octo", Name: "compared", Private: true})
	f.MustCommit(s, "main", "Begin", comparedFiles)
	for _, branch := range []string{"work", "a/b", "other", "kept", "same"} {
		_, err := f.Git("branch", branch, "main")
		mustDo(s, err)
		if branch != "same" {
			f.MustCommit(s, branch, "Work", map[string]string{strings.ReplaceAll(branch, "/", "-") + ".txt": "a\n"})
		}
	}
	f.SetPermission("alice", "write")
	f.SetPermission("bob", "")
	f.Protect("kept", "update")
	f.DisableWorkflow("off.yml", true)
	n := f.OpenIssue("alice", "It breaks", "Sometimes.")
	f.PutLabel("alice", n, "bug")
	f.PostComment("alice", n, "Really.")
	return &side{
		api: f.APIURL, url: f.URL, ids: map[string]string{"said": fmt.Sprint(f.Comments(n)[0].ID)},
		tokens: map[string]string{
			"job": f.JobToken(forgetest.JobPermissions()), "reader": f.JobToken(forgetest.ReadPermissions()),
			"octo": f.UserToken("octo"), "alice": f.UserToken("alice"), "bob": f.UserToken("bob"), "wrong": strings.Repeat("0", 40),
		},
	}
}

var placeholder = regexp.MustCompile(`\{[a-z]+\}`)

// fill puts this side's ids into a text.
func (d *side) fill(text string) string {
	return placeholder.ReplaceAllStringFunc(text, func(name string) string { return d.ids[strings.Trim(name, "{}")] })
}

// ask makes a call of one side.
func (d *side) ask(s *site, x exchange) answer {
	s.Helper()
	path, below := strings.CutPrefix(x.path, "/")
	if !below {
		path = strings.TrimSuffix("repos/octo/compared/"+x.path, "/")
	}
	var body any
	if x.body != "" {
		body = d.fill(x.body)
	}
	return ask(s.T, d.tokens[x.who], x.method, d.api+"/"+d.fill(path), body)
}

// remember keeps what later calls name.
func (d *side) remember(s *site, x exchange, a answer) {
	s.Helper()
	for name, field := range x.keep {
		var m map[string]any
		decoder := json.NewDecoder(bytes.NewReader(a.body))
		decoder.UseNumber()
		if err := decoder.Decode(&m); err != nil || m[field] == nil {
			s.Fatalf("%s: the answer of %s has no %s: %.300s", x.name, d.url, field, a.body)
		}
		d.ids[name] = fmt.Sprint(m[field])
	}
}

// headers are those that engine/forge reads, or that tell what it reads.
var headers = []string{"Content-Type", "Link", "X-Total-Count", "Retry-After", "Location"}

// differences are those of the fake's answer from the real one's. The fake may leave
// fields out; what it says has to be what Gitea says.
func differences(fake, real *side, a, b answer) []string {
	var list []string
	if a.status != b.status {
		list = append(list, fmt.Sprintf("the fake answers %d %.300s, Gitea %d %.300s", a.status, a.body, b.status, b.body))
		return list
	}
	for _, name := range headers {
		if x, y := fake.neutral(a.header.Get(name)), real.neutral(b.header.Get(name)); x != y {
			list = append(list, fmt.Sprintf("header %s: the fake says %q, Gitea %q", name, x, y))
		}
	}
	if len(a.body) == 0 || len(b.body) == 0 {
		if len(a.body) != len(b.body) {
			list = append(list, fmt.Sprintf("the fake says %.300q, Gitea %.300q", a.body, b.body))
		}
		return list
	}
	return append(list, fieldDifferences(fake, real, a.body, b.body)...)
}

// fieldDifferences are those of the fields that the fake's text has.
func fieldDifferences(fake, real *side, a, b []byte) []string {
	var list []string
	var x, y any
	noA, noB := json.Unmarshal(a, &x), json.Unmarshal(b, &y)
	if noA != nil || noB != nil {
		if !bytes.Equal(a, b) {
			list = append(list, fmt.Sprintf("the fake says %.300q, Gitea %.300q", a, b))
		}
		return list
	}
	walk("", x, y, func(at string, x, y any) {
		if !chance(at) && fake.neutral(fmt.Sprint(x)) != real.neutral(fmt.Sprint(y)) || fmt.Sprintf("%T", x) != fmt.Sprintf("%T", y) {
			list = append(list, fmt.Sprintf("%s: the fake says %.200v (%T), Gitea %.200v (%T)", at, x, x, y, y))
		}
	})
	return list
}

var (
	number = regexp.MustCompile(`\d+`)
	byTime = regexp.MustCompile(`(?:^|\.)(?:[a-z_]*_at|avatar_url|email|sha|size|merge_base|mergeable)$|(?:^|\.)commit\.id$`)
)

// chance reports a field whose value is none of the two's choice.
func chance(at string) bool { return byTime.MatchString(at) }

// neutral is a text without what differs between two forges in equal states: their
// addresses and the numbers that they give out.
func (d *side) neutral(text string) string {
	return number.ReplaceAllString(strings.ReplaceAll(text, d.url, "URL"), "N")
}

// missing is what stands for a field that is not there.
type missing struct{}

// walk calls back with each value of x and what y has in its place.
func walk(at string, x, y any, each func(at string, x, y any)) {
	switch x := x.(type) {
	case map[string]any:
		y, ok := y.(map[string]any)
		if !ok {
			each(at, x, y)
			return
		}
		for _, name := range slices.Sorted(maps.Keys(x)) {
			other, ok := y[name]
			if !ok {
				other = missing{}
			}
			walk(strings.TrimPrefix(at+"."+name, "."), x[name], other, each)
		}
	case []any:
		y, ok := y.([]any)
		if !ok || len(x) != len(y) {
			each(at, x, y)
			return
		}
		for i := range x {
			walk(fmt.Sprintf("%s[%d]", at, i), x[i], y[i], each)
		}
	default:
		each(at, x, y)
	}
}
