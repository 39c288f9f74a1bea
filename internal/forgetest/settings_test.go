package forgetest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/google/go-github/v62/github"
	"github.com/united-workforce/uwf/internal/forgetest"
)

// get asks for a path below the repository, and decodes the answer.
func get(t *testing.T, c *github.Client, path string, into any) int {
	t.Helper()
	req, err := c.NewRequest("GET", "repos/octo/demo"+path, nil)
	check(t, err)
	resp, err := c.Do(t.Context(), req, into)
	if resp == nil {
		t.Fatal(err)
	}
	return resp.StatusCode
}

func TestRepository(t *testing.T) {
	flavours(t, forgetest.Options{Private: true, Branch: "main"}, func(t *testing.T, s *forgetest.Server) {
		c := client(t, s, s.JobToken(forgetest.JobPermissions()))
		r, resp, err := c.Repositories.Get(t.Context(), "octo", "demo")
		check(t, err)
		if r.GetFullName() != "octo/demo" || r.GetDefaultBranch() != "main" || !r.GetPrivate() || r.GetOwner().GetLogin() != "octo" {
			t.Errorf("repository: %v", r)
		}
		limited := resp.Header.Get("X-RateLimit-Remaining") != "" && resp.Header.Get("X-GitHub-Request-Id") != ""
		if limited == isGitea(s) || isGitea(s) == (resp.Header.Get("X-Accepted-GitHub-Permissions") == "metadata=read") {
			t.Errorf("headers: %v", resp.Header)
		}
		if code := get(t, c, "/nonsense", nil); code != http.StatusNotFound {
			t.Errorf("an unknown call: %d", code)
		}
		_, _, err = c.Repositories.Get(t.Context(), "octo", "other")
		if code, _ := status(t, err); code != http.StatusNotFound {
			t.Errorf("another repository: %d", code)
		}
	})
}

// TestSettings: a job's token can't read the repository's settings, its admin's can;
// Gitea has none of them.
func TestSettings(t *testing.T) {
	flavours(t, forgetest.Options{}, func(t *testing.T, s *forgetest.Server) {
		s.SetPullsAllowed(false)
		s.Protect("main", "pull_request")
		job, admin := client(t, s, s.JobToken(forgetest.JobPermissions())), client(t, s, s.UserToken("octo"))
		const jobs = "/actions/permissions/workflow"
		var setting struct {
			May *bool `json:"can_approve_pull_request_reviews"`
		}
		var rules []struct{ Type string }
		if isGitea(s) {
			for _, path := range []string{jobs, "/rules/branches/main", "/git/ref/heads/main"} {
				if code := get(t, admin, path, nil); code != http.StatusNotFound {
					t.Errorf("%s: %d", path, code)
				}
			}
			return
		}
		if code := get(t, job, jobs, nil); code != http.StatusForbidden {
			t.Errorf("a job's token reads settings: %d", code)
		}
		if code := get(t, admin, jobs, &setting); code != http.StatusOK || setting.May == nil || *setting.May {
			t.Errorf("settings: %d %v", code, setting)
		}
		if code := get(t, job, "/rules/branches/main", &rules); code != http.StatusOK || len(rules) != 1 || rules[0].Type != "pull_request" {
			t.Errorf("rules: %d %v", code, rules)
		}
		if code := get(t, job, "/rules/branches/other", &rules); code != http.StatusOK || len(rules) != 0 {
			t.Errorf("rules of another branch: %d %v", code, rules)
		}
	})
}

func TestWorkflows(t *testing.T) {
	flavours(t, forgetest.Options{}, func(t *testing.T, s *forgetest.Server) {
		s.DisableWorkflow("uwf.yml", true)
		c := client(t, s, s.JobToken(forgetest.JobPermissions()))
		var list struct {
			Total     int                            `json:"total_count"`
			Workflows []struct{ Path, State string } `json:"workflows"`
		}
		if code := get(t, c, "/actions/workflows", &list); code != http.StatusOK || list.Total != 1 ||
			list.Workflows[0].Path != ".github/workflows/uwf.yml" || list.Workflows[0].State != "disabled_manually" {
			t.Errorf("workflows: %d %+v", code, list)
		}
	})
}

func TestRepositoryDispatch(t *testing.T) {
	flavours(t, forgetest.Options{}, func(t *testing.T, s *forgetest.Server) {
		payload := json.RawMessage(`{"thread": "1"}`)
		send := func(p forgetest.Permissions) error {
			_, _, err := client(t, s, s.JobToken(p)).Repositories.Dispatch(t.Context(), "octo", "demo", github.DispatchRequestOptions{EventType: "uwf-step", ClientPayload: &payload})
			return err
		}
		err := send(forgetest.JobPermissions())
		if isGitea(s) {
			if code, _ := status(t, err); code != http.StatusNotFound {
				t.Errorf("Gitea has no such call: %d", code)
			}
			return
		}
		if code, _ := status(t, send(forgetest.Permissions{"contents": "read"})); code != http.StatusForbidden {
			t.Errorf("a token that reads: %d", code)
		}
		got := s.TakeDispatches()
		if len(got) != 1 || got[0].Type != "uwf-step" || got[0].Payload["thread"] != "1" {
			t.Fatalf("dispatches: %+v", got)
		}
		if e := s.Dispatched(got[0]); e.Name != "repository_dispatch" || e.Actor != "github-actions[bot]" {
			t.Errorf("event: %+v", e)
		}
	})
}

// TestPullOfFork: a fork's pull request names its repository, and is found by its
// owner.
func TestPullOfFork(t *testing.T) {
	flavours(t, forgetest.Options{}, func(t *testing.T, s *forgetest.Server) {
		c := client(t, s, s.JobToken(forgetest.JobPermissions()))
		n := s.OpenPull("eve", "Mine", "", forgetest.Pull{Head: "main", Fork: "eve/demo", SHA: "0123456789012345678901234567890123456789"})
		p, _, err := c.PullRequests.Get(t.Context(), "octo", "demo", n)
		check(t, err)
		if p.GetHead().GetRepo().GetFullName() != "eve/demo" || p.GetBase().GetRepo().GetFullName() != "octo/demo" || p.GetHead().GetSHA()[:4] != "0123" {
			t.Errorf("pull request: %v", p)
		}
		if isGitea(s) {
			var found struct{ Number int }
			if code := get(t, c, "/pulls/main/eve:main", &found); code != http.StatusOK || found.Number != n {
				t.Errorf("by its branches: %d %v", code, found)
			}
		}
	})
}

func TestCommit(t *testing.T) {
	s := forgetest.Start(t, forgetest.Options{})
	s.MustCommit(t, "main", "One", map[string]string{"a": "1\n", "b/c": "2\n"})
	s.MustCommit(t, "main", "Two", map[string]string{"a": "", "d": "3\n"})
	files, err := s.Git("ls-tree", "-r", "--name-only", "main")
	check(t, err)
	if files != "b/c\nd" {
		t.Errorf("files: %q", files)
	}
}

// TestAtOnce is for the race detector: everything at the same time.
func TestAtOnce(t *testing.T) {
	s := forgetest.Start(t, forgetest.Options{})
	n := s.OpenIssue("alice", "It breaks", "")
	var wg sync.WaitGroup
	const each = 5
	for k := range 8 {
		c := client(t, s, s.JobToken(forgetest.JobPermissions()))
		wg.Go(func() {
			for range each {
				body := fmt.Sprint("from ", k)
				if _, _, err := c.Issues.CreateComment(t.Context(), "octo", "demo", n, &github.IssueComment{Body: &body}); err != nil {
					t.Error(err)
				}
				s.PutLabel("alice", n, fmt.Sprint("l", k))
				s.Comments(n)
				s.Calls()
			}
		})
	}
	wg.Wait()
	seen := map[int64]bool{}
	for _, c := range s.Comments(n) {
		seen[c.ID] = true
	}
	if len(seen) != 8*each || len(s.Labels()) != 8 || s.Count("POST", "issues/") != 8*each {
		t.Errorf("%d comments, %d labels, %d calls", len(seen), len(s.Labels()), s.Count("POST", "issues/"))
	}
}
