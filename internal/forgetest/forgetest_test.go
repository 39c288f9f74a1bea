package forgetest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-github/v62/github"
	"github.com/united-workforce/uwf/internal/forgetest"
)

const workflow = `name: uwf
on:
  issues: {types: [labeled]}
  workflow_dispatch:
    inputs:
      thread: {description: the thread, required: true}
      head: {description: its head}
jobs: {}
`

// flavours runs a test with a server of each flavour that has a first commit.
func flavours(t *testing.T, o forgetest.Options, test func(*testing.T, *forgetest.Server)) {
	t.Helper()
	for _, gitea := range []bool{false, true} {
		name := "github"
		if gitea {
			name = "gitea"
		}
		t.Run(name, func(t *testing.T) {
			o := o
			o.Gitea = gitea
			s := forgetest.Start(t, o)
			s.MustCommit(t, "main", "Begin", map[string]string{"README.md": "# Demo\n", ".github/workflows/uwf.yml": workflow})
			test(t, s)
		})
	}
}

func client(t *testing.T, s *forgetest.Server, token string) *github.Client {
	t.Helper()
	c := github.NewClient(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}})
	if token != "" {
		c = c.WithAuthToken(token)
	}
	base, err := url.Parse(s.APIURL + "/")
	check(t, err)
	c.BaseURL = base
	return c
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// status is the HTTP status of an answer, and the forge's words.
func status(t *testing.T, err error) (int, string) {
	t.Helper()
	var e *github.ErrorResponse
	if !errors.As(err, &e) {
		t.Fatalf("no error of the forge: %v", err)
	}
	words := e.Message
	for _, more := range e.Errors {
		words += " | " + more.Resource + " " + more.Field + " " + more.Code + " " + more.Message
	}
	return e.Response.StatusCode, words
}

func isGitea(s *forgetest.Server) bool { return strings.HasSuffix(s.APIURL, "/api/v1") }

func TestComments(t *testing.T) {
	flavours(t, forgetest.Options{Private: true}, func(t *testing.T, s *forgetest.Server) {
		c, ctx := client(t, s, s.JobToken(forgetest.JobPermissions())), t.Context()
		n := s.OpenIssue("alice", "It breaks", "Sometimes.")
		for k := range 45 {
			s.PostComment("alice", n, fmt.Sprint("comment ", k))
		}
		made, _, err := c.Issues.CreateComment(ctx, "octo", "demo", n, &github.IssueComment{Body: github.String("ours")})
		check(t, err)
		_, _, err = c.Issues.EditComment(ctx, "octo", "demo", made.GetID(), &github.IssueComment{Body: github.String("changed")})
		check(t, err)
		var all []string
		pages := 0
		o := &github.IssueListCommentsOptions{ListOptions: github.ListOptions{PerPage: 20}}
		for {
			list, resp, err := c.Issues.ListComments(ctx, "octo", "demo", n, o)
			check(t, err)
			pages++
			for _, one := range list {
				all = append(all, one.GetUser().GetLogin()+": "+one.GetBody())
			}
			if resp.NextPage == 0 {
				break
			}
			o.Page = resp.NextPage
		}
		who, want := "github-actions[bot]", 3
		if isGitea(s) {
			who, want = "gitea-actions", 1
		}
		if len(all) != 46 || all[0] != "alice: comment 0" || all[45] != who+": changed" || pages != want {
			t.Errorf("%d comments in %d pages: %v", len(all), pages, all)
		}
		_, err = c.Issues.DeleteComment(ctx, "octo", "demo", made.GetID())
		check(t, err)
		_, _, err = c.Issues.EditComment(ctx, "octo", "demo", made.GetID(), &github.IssueComment{Body: github.String("x")})
		if code, _ := status(t, err); code != http.StatusNotFound {
			t.Errorf("a comment that is gone: %d", code)
		}
		if got := s.Comments(n); len(got) != 45 {
			t.Errorf("%d comments are left", len(got))
		}
	})
}

func TestLabels(t *testing.T) {
	flavours(t, forgetest.Options{}, func(t *testing.T, s *forgetest.Server) {
		c, ctx := client(t, s, s.JobToken(forgetest.JobPermissions())), t.Context()
		n := s.OpenIssue("alice", "It breaks", "")
		_, _, err := c.Issues.CreateLabel(ctx, "octo", "demo", &github.Label{Name: github.String("uwf"), Color: github.String("00ff00")})
		check(t, err)
		_, _, err = c.Issues.CreateLabel(ctx, "octo", "demo", &github.Label{Name: github.String("uwf"), Color: github.String("00ff00")})
		if isGitea(s) {
			check(t, err)
			_, _, err = c.Issues.AddLabelsToIssue(ctx, "octo", "demo", n, []string{"uwf"})
			if code, _ := status(t, err); code != http.StatusUnprocessableEntity {
				t.Errorf("a plain list: %d", code)
			}
			req, err := c.NewRequest("POST", fmt.Sprintf("repos/octo/demo/issues/%d/labels", n), map[string][]string{"labels": {"uwf", "unknown"}})
			check(t, err)
			var labels []*github.Label
			_, err = c.Do(ctx, req, &labels)
			check(t, err)
			if len(labels) != 1 || labels[0].GetName() != "uwf" {
				t.Errorf("labels: %v", labels)
			}
			_, err = c.Issues.RemoveLabelForIssue(ctx, "octo", "demo", n, "uwf")
			if code, _ := status(t, err); code != http.StatusUnprocessableEntity {
				t.Errorf("a label by name: %d", code)
			}
			_, err = c.Issues.RemoveLabelForIssue(ctx, "octo", "demo", n, fmt.Sprint(labels[0].GetID()))
			check(t, err)
		} else {
			if code, words := status(t, err); code != http.StatusUnprocessableEntity || !strings.Contains(words, "already_exists") {
				t.Errorf("a label twice: %d %s", code, words)
			}
			labels, _, err := c.Issues.AddLabelsToIssue(ctx, "octo", "demo", n, []string{"uwf", "a/b"})
			check(t, err)
			if len(labels) != 2 {
				t.Errorf("labels: %v", labels)
			}
			for _, name := range []string{"uwf", "a%2Fb"} { // go-github leaves names as they are
				_, err = c.Issues.RemoveLabelForIssue(ctx, "octo", "demo", n, name)
				check(t, err)
			}
			_, err = c.Issues.RemoveLabelForIssue(ctx, "octo", "demo", n, "uwf")
			if code, words := status(t, err); code != http.StatusNotFound || words != "Label does not exist" {
				t.Errorf("a label that isn't there: %d %s", code, words)
			}
		}
		if got := s.FindIssue(n).Labels; len(got) != 0 {
			t.Errorf("labels are left: %v", got)
		}
	})
}

func TestIssue(t *testing.T) {
	flavours(t, forgetest.Options{}, func(t *testing.T, s *forgetest.Server) {
		c := client(t, s, s.JobToken(forgetest.JobPermissions()))
		n := s.OpenIssue("alice", "It breaks", "Sometimes.")
		got, _, err := c.Issues.Get(t.Context(), "octo", "demo", n)
		if isGitea(s) {
			var e *json.UnmarshalTypeError
			if !errors.As(err, &e) { // the owner is a text there
				t.Errorf("an issue of Gitea: %v, %v", got, err)
			}
			return
		}
		check(t, err)
		if got.GetTitle() != "It breaks" || got.GetUser().GetLogin() != "alice" || got.IsPullRequest() || got.GetState() != "open" {
			t.Errorf("issue: %v", got)
		}
		_, _, err = c.Issues.Get(t.Context(), "octo", "demo", 99)
		if code, _ := status(t, err); code != http.StatusNotFound {
			t.Errorf("no issue: %d", code)
		}
	})
}

func TestPulls(t *testing.T) {
	flavours(t, forgetest.Options{}, func(t *testing.T, s *forgetest.Server) {
		c, ctx := client(t, s, s.JobToken(forgetest.JobPermissions())), t.Context()
		open := func(head, base string) (*github.PullRequest, error) {
			p, _, err := c.PullRequests.Create(ctx, "octo", "demo", &github.NewPullRequest{Title: &head, Head: &head, Base: &base})
			return p, err
		}
		base, err := s.Git("rev-parse", "main")
		check(t, err)
		_, err = s.Git("branch", "uwf/1", base)
		check(t, err)
		refused := func(head, base string, github, gitea int, words string) {
			t.Helper()
			_, err := open(head, base)
			want := github
			if isGitea(s) {
				want = gitea
			}
			code, got := status(t, err)
			if code != want || !isGitea(s) && !strings.Contains(got, words) {
				t.Errorf("%s into %s: %d %s", head, base, code, got)
			}
		}
		refused("uwf/1", "nowhere", 422, 404, "base invalid")
		refused("nothing", "main", 422, 404, "head invalid")
		if !isGitea(s) {
			refused("uwf/1", "main", 422, 0, "No commits between main and uwf/1")
		}
		sha := s.MustCommit(t, "uwf/1", "Work", map[string]string{"a.txt": "a\n"})
		p, err := open("uwf/1", "main")
		check(t, err)
		if p.GetHead().GetRef() != "uwf/1" || p.GetHead().GetSHA() != sha || p.GetHead().GetRepo().GetFullName() != "octo/demo" {
			t.Errorf("pull request: %v", p.GetHead())
		}
		refused("uwf/1", "main", 422, 409, "A pull request already exists for octo:uwf/1.")
		s.MustCommit(t, "uwf/2", "Work", map[string]string{"b.txt": "b\n"})
		list, _, err := c.PullRequests.List(ctx, "octo", "demo", &github.PullRequestListOptions{Head: "octo:uwf/2", State: "all"})
		check(t, err)
		if want := map[bool]int{false: 0, true: 1}[isGitea(s)]; len(list) != want {
			t.Errorf("%d pull requests of a branch without one, want %d", len(list), want)
		}
		title := "Better"
		_, _, err = c.PullRequests.Edit(ctx, "octo", "demo", p.GetNumber(), &github.PullRequest{Title: &title})
		check(t, err)
		if got := s.Pulls(); len(got) != 1 || got[0].Title != "Better" || got[0].Pull.Head != "uwf/1" {
			t.Errorf("pulls: %+v", got)
		}
		s.SetPullsAllowed(false)
		if !isGitea(s) {
			refused("uwf/2", "main", 403, 0, "GitHub Actions is not permitted to create or approve pull requests.")
		}
	})
}

func TestPermission(t *testing.T) {
	flavours(t, forgetest.Options{}, func(t *testing.T, s *forgetest.Server) {
		s.SetPermission("alice", "maintain")
		s.SetPermission("bob", "")
		c := client(t, s, s.JobToken(forgetest.JobPermissions()))
		got, _, err := c.Repositories.GetPermissionLevel(t.Context(), "octo", "demo", "alice")
		if isGitea(s) {
			if code, _ := status(t, err); code != http.StatusForbidden {
				t.Errorf("somebody's permission: %d", code)
			}
			return
		}
		check(t, err)
		if got.GetPermission() != "write" {
			t.Errorf("permission: %v", got)
		}
		got, _, err = c.Repositories.GetPermissionLevel(t.Context(), "octo", "demo", "bob")
		check(t, err)
		if got.GetPermission() != "read" {
			t.Errorf("a stranger in a public repository: %v", got)
		}
		for _, who := range []string{"nobody", "dependabot[bot]"} {
			_, _, err = c.Repositories.GetPermissionLevel(t.Context(), "octo", "demo", who)
			if code, _ := status(t, err); code != http.StatusNotFound {
				t.Errorf("%s: %d", who, code)
			}
		}
	})
}

func TestDispatch(t *testing.T) {
	flavours(t, forgetest.Options{}, func(t *testing.T, s *forgetest.Server) {
		c, ctx := client(t, s, s.JobToken(forgetest.JobPermissions())), t.Context()
		send := func(file, ref string, inputs map[string]any) error {
			_, err := c.Actions.CreateWorkflowDispatchEventByFileName(ctx, "octo", "demo", file, github.CreateWorkflowDispatchEventRequest{Ref: ref, Inputs: inputs})
			return err
		}
		check(t, send("uwf.yml", "main", map[string]any{"thread": "1", "head": "2"}))
		for _, tt := range []struct {
			file, ref string
			inputs    map[string]any
			github    string // why it is refused, after the status
			gitea     string // empty: it is taken
		}{
			{"other.yml", "main", nil, "404 Not Found", `404 workflow "other.yml" doesn't exist`},
			{"uwf.yml", "gone", nil, "422 No ref found for: gone", `404 ref "gone" doesn't exist`},
			{"uwf.yml", "", nil, "422 No ref found for: ", "422 [Ref]: Required"},
			{"uwf.yml", "main", map[string]any{"thread": "1", "odd": "2"}, `422 Unexpected inputs provided: ["odd"]`, ""},
			{"uwf.yml", "main", map[string]any{"head": "2"}, "422 Required input 'thread' not provided", ""},
			{"uwf.yml", "main", map[string]any{"thread": 1}, "422 Invalid request.\n\nFor 'inputs/thread', 1 is not a string.", "422 []: json: cannot unmarshal number"},
		} {
			err := send(tt.file, tt.ref, tt.inputs)
			want := tt.github
			if isGitea(s) {
				want = tt.gitea
			}
			if want == "" {
				check(t, err)
			} else if code, words := status(t, err); !strings.HasPrefix(fmt.Sprint(code, " ", words), want) {
				t.Errorf("%+v: %d %s, want %s", tt, code, words, want)
			}
		}
		got := s.TakeDispatches()
		if want := map[bool]int{false: 1, true: 3}[isGitea(s)]; len(got) != want || fmt.Sprint(got[0].Inputs) != "map[head:2 thread:1]" || got[0].Workflow != "uwf.yml" {
			t.Errorf("dispatches: %+v", got)
		}
		if isGitea(s) && (fmt.Sprint(got[1].Inputs) != "map[head: thread:1]" || fmt.Sprint(got[2].Inputs) != "map[head:2 thread:]") {
			t.Errorf("the inputs are those of the file: %+v", got)
		}
		if again := s.TakeDispatches(); len(again) != 0 {
			t.Errorf("taken twice: %v", again)
		}
		s.DisableWorkflow("uwf.yml", true)
		if code, _ := status(t, send("uwf.yml", "main", map[string]any{"thread": "1"})); code != map[bool]int{false: 422, true: 403}[isGitea(s)] {
			t.Errorf("a disabled workflow: %d", code)
		}
	})
}

func TestRunDetails(t *testing.T) {
	for details, want := range map[forgetest.RunDetails]int{forgetest.DetailsGiven: 200, forgetest.DetailsIgnored: 204, forgetest.DetailsRefused: 422} {
		s := forgetest.Start(t, forgetest.Options{RunDetails: details})
		s.MustCommit(t, "main", "Begin", map[string]string{".github/workflows/uwf.yml": workflow})
		c := client(t, s, s.JobToken(forgetest.JobPermissions()))
		req, err := c.NewRequest("POST", "repos/octo/demo/actions/workflows/uwf.yml/dispatches", map[string]any{
			"ref": "main", "inputs": map[string]string{"thread": "1"}, "return_run_details": true,
		})
		check(t, err)
		var run struct {
			ID int64 `json:"workflow_run_id"`
		}
		resp, err := c.Do(t.Context(), req, &run)
		if resp.StatusCode != want || (run.ID != 0) != (want == 200) {
			t.Errorf("%d: %d, run %d, %v", details, resp.StatusCode, run.ID, err)
		}
	}
}

func TestWhoMayWhat(t *testing.T) {
	flavours(t, forgetest.Options{Private: true}, func(t *testing.T, s *forgetest.Server) {
		n, ctx := s.OpenIssue("alice", "It breaks", ""), t.Context()
		say := func(token string) (int, string) {
			c := client(t, s, token)
			_, resp, err := c.Issues.CreateComment(ctx, "octo", "demo", n, &github.IssueComment{Body: github.String("x")})
			if err == nil {
				return resp.StatusCode, ""
			}
			return status(t, err)
		}
		for _, tt := range []struct {
			name, token   string
			github, gitea int
			words         string
		}{
			{"none", "", 404, 404, "Not Found"},
			{"wrong", "ghs_wrong", 401, 401, "Bad credentials"},
			{"read", s.JobToken(forgetest.ReadPermissions()), 403, 201, "Resource not accessible by integration"},
			{"nothing", s.JobToken(nil), 403, 403, "Resource not accessible by integration"},
			{"job", s.JobToken(forgetest.JobPermissions()), 201, 201, ""},
			{"owner", s.UserToken("octo"), 201, 201, ""},
			{"stranger", s.UserToken("eve"), 404, 404, ""},
		} {
			code, words := say(tt.token)
			want := tt.github
			if isGitea(s) {
				want = tt.gitea
			}
			if code != want || !isGitea(s) && !strings.Contains(words, tt.words) {
				t.Errorf("%s: %d %s, want %d", tt.name, code, words, want)
			}
		}
	})
}

func TestLimits(t *testing.T) {
	s := forgetest.Start(t, forgetest.Options{})
	c, ctx := client(t, s, s.JobToken(forgetest.JobPermissions())), t.Context()
	s.Inject(forgetest.Fault{Answer: forgetest.SecondaryLimit(7 * time.Second)})
	_, _, err := c.Repositories.Get(ctx, "octo", "demo")
	var second *github.AbuseRateLimitError
	if !errors.As(err, &second) || second.GetRetryAfter() != 7*time.Second {
		t.Errorf("secondary limit: %v", err)
	}
	c = client(t, s, s.JobToken(forgetest.JobPermissions())) // go-github remembers limits
	s.Inject(forgetest.Fault{Path: "issues/*", Answer: forgetest.PrimaryLimit(time.Now().Add(time.Hour))})
	_, _, err = c.Repositories.Get(ctx, "octo", "demo")
	check(t, err)
	_, _, err = c.Issues.Get(ctx, "octo", "demo", 1)
	var first *github.RateLimitError
	if !errors.As(err, &first) {
		t.Errorf("primary limit: %v", err)
	}
}

func TestFaults(t *testing.T) {
	s := forgetest.Start(t, forgetest.Options{})
	c, ctx := client(t, s, s.JobToken(forgetest.JobPermissions())), t.Context()
	n := s.OpenIssue("alice", "It breaks", "")
	say := func() error {
		_, _, err := c.Issues.CreateComment(ctx, "octo", "demo", n, &github.IssueComment{Body: github.String("x")})
		return err
	}
	s.Inject(forgetest.Fault{Method: "POST", Path: "issues/*/comments", After: 1, Lost: true})
	s.Inject(forgetest.Fault{Method: "POST", Path: "issues/*/comments", After: 2, Cut: true}) // the lost one is no turn of it
	check(t, say())
	for _, want := range []int{2, 3, 3} {
		err := say()
		if got := len(s.Comments(n)); got != want || (want == 3) != (err == nil) && got != 3 {
			t.Errorf("%d comments, want %d: %v", got, want, err)
		}
	}
	if got := s.Count("POST", "issues/"); got != 4 {
		t.Errorf("%d calls", got)
	}
	var came sync.WaitGroup
	came.Add(1)
	gate := make(chan struct{})
	s.Inject(forgetest.Fault{Before: func(*http.Request) { came.Done(); <-gate }})
	done := make(chan error)
	go func() { done <- say() }()
	came.Wait()
	if len(s.Comments(n)) != 3 {
		t.Error("it was done before it was let through")
	}
	close(gate)
	check(t, <-done)
}

// git runs git as a job does, with a token in the address.
func git(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), "git", args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_TERMINAL_PROMPT=0", "LC_ALL=C",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func withToken(s *forgetest.Server, token string) string {
	return strings.Replace(s.CloneURL(), "http://", "http://x-access-token:"+token+"@", 1)
}

func TestGit(t *testing.T) {
	flavours(t, forgetest.Options{Private: true}, func(t *testing.T, s *forgetest.Server) {
		dir := t.TempDir()
		if out, err := git(t, dir, "clone", "-q", s.CloneURL(), "none"); err == nil {
			t.Errorf("cloned without a token: %s", out)
		}
		job := withToken(s, s.JobToken(forgetest.JobPermissions()))
		out, err := git(t, dir, "clone", "-q", strings.TrimSuffix(job, ".git"), "work")
		if err != nil {
			t.Fatal(out)
		}
		work := filepath.Join(dir, "work")
		commit := func(name, text string) {
			t.Helper()
			check(t, os.MkdirAll(filepath.Dir(filepath.Join(work, name)), 0o700))
			check(t, os.WriteFile(filepath.Join(work, name), []byte(text), 0o600))
			for _, args := range [][]string{{"add", "-A"}, {"commit", "-q", "-m", "Change " + name}} {
				if out, err := git(t, work, args...); err != nil {
					t.Fatal(out)
				}
			}
		}
		commit("a.txt", "a")
		refused := func(url, branch, words string) {
			t.Helper()
			out, err := git(t, work, "push", url, "HEAD:refs/heads/"+branch)
			if err == nil || !strings.Contains(out, words) {
				t.Errorf("push to %s: %v: %s", branch, err, out)
			}
		}
		refused(withToken(s, s.JobToken(forgetest.ReadPermissions())), "x", "403")
		refused(withToken(s, "ghs_wrong"), "x", "Authentication failed")
		if out, err := git(t, work, "push", job, "HEAD:refs/heads/x", "HEAD:refs/uwf/store"); err != nil {
			t.Fatal(out)
		}
		s.Protect("locked/*", "pull_request")
		if isGitea(s) {
			refused(job, "locked/1", "Internal Server Error (no message for end users)")
			refused(withToken(s, s.UserToken("octo")), "locked/1", "Not allowed to push to protected branch locked/1")
		} else {
			refused(job, "locked/1", "Changes must be made through a pull request.")
		}
		s.RefuseSecrets("hunter2")
		commit("b.txt", "password hunter2")
		refused(job, "y", "Push cannot contain secrets")
		if !isGitea(s) {
			refused(job, "y", "push declined due to repository rule violations")
		}
		if out, err := git(t, work, "reset", "-q", "--hard", "HEAD^"); err != nil {
			t.Fatal(out)
		}
		commit(".github/workflows/evil.yml", "on: push\n")
		if isGitea(s) {
			return
		}
		refused(job, "z", "refusing to allow a GitHub App to create or update workflow `.github/workflows/evil.yml` without `workflows` permission")
		if out, err := git(t, work, "push", withToken(s, s.UserToken("octo")), "HEAD:refs/heads/z"); err != nil {
			t.Errorf("a person's push: %s", out)
		}
	})
}

func TestLostPush(t *testing.T) {
	s := forgetest.Start(t, forgetest.Options{})
	s.MustCommit(t, "main", "Begin", map[string]string{"a.txt": "a\n"})
	dir := t.TempDir()
	url := withToken(s, s.JobToken(forgetest.JobPermissions()))
	if out, err := git(t, dir, "clone", "-q", url, "work"); err != nil {
		t.Fatal(out)
	}
	s.Inject(forgetest.Fault{Git: true, Path: "git-receive-pack", Lost: true})
	if out, err := git(t, filepath.Join(dir, "work"), "push", url, "HEAD:refs/heads/x"); err == nil {
		t.Errorf("the reply was not lost: %s", out)
	}
	if _, err := s.Git("rev-parse", "--verify", "refs/heads/x"); err != nil {
		t.Error("the push was not done")
	}
}

// TestEvents: go-github reads the events of both flavours, and Gitea's label event
// has no label.
func TestEvents(t *testing.T) {
	flavours(t, forgetest.Options{}, func(t *testing.T, s *forgetest.Server) {
		n := s.OpenIssue("alice", "It breaks", "")
		e := s.PutLabel("alice", n, "uwf")
		var got struct {
			Action  string
			Label   *struct{ Name string }
			Changes struct {
				Added []struct{ Name string } `json:"added_labels"`
			}
			Issue  struct{ Number int }
			Sender struct{ Login string }
		}
		check(t, json.Unmarshal(e.Payload, &got))
		if e.Name != "issues" || got.Issue.Number != n || got.Sender.Login != "alice" {
			t.Errorf("event: %s", e.Payload)
		}
		if isGitea(s) {
			if got.Action != "label_updated" || got.Label != nil || len(got.Changes.Added) != 1 {
				t.Errorf("event: %s", e.Payload)
			}
		} else if got.Action != "labeled" || got.Label == nil || got.Label.Name != "uwf" {
			t.Errorf("event: %s", e.Payload)
		}
		if e := s.PostComment("bob", n, "/uwf status"); e.Name != "issue_comment" || e.Actor != "bob" {
			t.Errorf("event: %+v", e)
		}
	})
}

// TestRefs: what the server reads of a repository by itself is what git says, packed
// or not.
func TestRefs(t *testing.T) {
	s := forgetest.Start(t, forgetest.Options{})
	c, ctx := client(t, s, ""), t.Context()
	wantSize := func(size int) {
		t.Helper()
		r, _, err := c.Repositories.Get(ctx, "octo", "demo")
		check(t, err)
		if r.GetSize() != size {
			t.Errorf("its size is %d, not %d", r.GetSize(), size)
		}
	}
	wantSize(0)
	branches := []string{"main", "uwf/a/b", "uwf/c"}
	for _, b := range branches {
		s.MustCommit(t, b, "m", map[string]string{"f": b})
	}
	for _, packed := range []bool{false, true} {
		if packed {
			_, err := s.Git("pack-refs", "--all")
			check(t, err)
			wantSize(24)
			s.MustCommit(t, "main", "m", map[string]string{"f": "newer than the packed one"})
		}
		wantSize(24)
		for _, b := range branches {
			want, err := s.Git("rev-parse", "refs/heads/"+b)
			check(t, err)
			r, _, err := c.Git.GetRef(ctx, "octo", "demo", "heads/"+b)
			check(t, err)
			if got := r.GetObject().GetSHA(); got != want {
				t.Errorf("packed %v: %s is %s, not %s", packed, b, got, want)
			}
		}
		if _, _, err := c.Git.GetRef(ctx, "octo", "demo", "heads/uwf"); err == nil {
			t.Errorf("packed %v: a folder of branches is one", packed)
		}
	}
}
