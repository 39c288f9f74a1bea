package forge_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/internal/forgetest"
	"github.com/united-workforce/uwf/internal/outage"
)

// outages is a policy whose clock tests need not wait for.
func outages() outage.Policy {
	var slept atomic.Int64
	return outage.Policy{
		Now:   func() time.Time { return time.Now().Add(time.Duration(slept.Load())) },
		Sleep: func(_ context.Context, d time.Duration) error { slept.Add(int64(d)); return nil },
	}
}

func dial(t *testing.T, s *forgetest.Server, token string) forge.Forge {
	t.Helper()
	f, err := forge.New(forge.Options{APIURL: s.APIURL, Repository: s.Repository(), Token: func() string { return token }, Outages: outages()})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// both runs a test against both flavours of the fake, with a job's token.
func both(t *testing.T, test func(*testing.T, *forgetest.Server, forge.Forge)) {
	t.Helper()
	for name, gitea := range map[string]bool{"github": false, "gitea": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := forgetest.Start(t, forgetest.Options{Gitea: gitea})
			s.MustCommit(t, "main", "Begin", map[string]string{"README.md": "# Demo\n", ".github/workflows/uwf.yml": flow})
			f := dial(t, s, s.JobToken(forgetest.JobPermissions()))
			if string(f.ForgeFlavour()) != name {
				t.Fatalf("flavour %s", f.ForgeFlavour())
			}
			test(t, s, f)
		})
	}
}

const flow = `name: uwf
on:
  workflow_dispatch:
    inputs: {thread: {type: string}, head: {type: string}}
jobs: {step: {runs-on: ubuntu-latest, steps: [{run: "true"}]}}
`

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func no(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantKind(t *testing.T, err, kind error) *forge.CallError {
	t.Helper()
	var e *forge.CallError
	if !errors.Is(err, kind) || !errors.As(err, &e) {
		t.Fatalf("%v, want %v", err, kind)
	}
	return e
}

func TestRepository(t *testing.T) {
	both(t, func(t *testing.T, s *forgetest.Server, f forge.Forge) {
		r := must[forge.Repository](t)(f.ReadRepository(t.Context()))
		if r.FullName != "octo/demo" || r.DefaultBranch != "main" || r.Empty || r.URL != s.URL+"/octo/demo" {
			t.Errorf("%+v", r)
		}
		if n := len(s.Calls()); n != 1 {
			t.Errorf("%d calls", n)
		}
	})
}

func TestIssuesAndComments(t *testing.T) {
	both(t, func(t *testing.T, s *forgetest.Server, f forge.Forge) {
		ctx := t.Context()
		n := s.OpenIssue("alice", "It breaks", "Sometimes.")
		s.PutLabel("alice", n, "bug")
		is1 := must[forge.Issue](t)(f.ReadIssue(ctx, n))
		if is1.Number != n || is1.Title != "It breaks" || is1.Body != "Sometimes." || is1.Author != "alice" || is1.AuthorID <= 0 || !is1.Open || fmt.Sprint(is1.Labels) != "[bug]" {
			t.Errorf("%+v", is1)
		}
		_, err := f.ReadIssue(ctx, 999)
		wantKind(t, err, forge.ErrNotFound)

		closed := s.OpenIssue("alice", "Done", "")
		s.CloseIssue(closed)
		if is := must[forge.Issue](t)(f.ReadIssue(ctx, closed)); is.Open || is.ClosedAt.IsZero() || (is.ClosedBy == "") != (f.ForgeFlavour() == forge.Gitea) {
			t.Errorf("%+v", is)
		}
		s.DeleteIssue(closed)
		_, err = f.ReadIssue(ctx, closed)
		if e := wantKind(t, err, forge.ErrNotFound); (e.Status == http.StatusGone) != (f.ForgeFlavour() == forge.GitHub) {
			t.Errorf("a deleted issue: %v", err)
		}

		// More than a page on either forge.
		for i := range 120 {
			s.PostComment("alice", n, fmt.Sprintf("comment %d", i))
		}
		made := must[forge.Comment](t)(f.CreateComment(ctx, n, "ours & <b> „ä“"))
		list := must[[]forge.Comment](t)(f.ListComments(ctx, n))
		if len(list) != 121 || list[0].Body != "comment 0" || list[0].AuthorID != is1.AuthorID || list[120] != made || made.Body != "ours & <b> „ä“" || made.URL == "" {
			t.Fatalf("%d comments, the last %+v, ours %+v", len(list), list[len(list)-1], made)
		}
		no(t, f.UpdateComment(ctx, made.ID, "changed"))
		if list = must[[]forge.Comment](t)(f.ListComments(ctx, n)); list[120].Body != "changed" {
			t.Errorf("%+v", list[120])
		}
		if got := must[forge.Comment](t)(f.ReadComment(ctx, made.ID)); got != list[120] {
			t.Errorf("%+v", got)
		}
		no(t, f.DeleteComment(ctx, made.ID))
		no(t, f.DeleteComment(ctx, made.ID))
		_, err = f.ReadComment(ctx, made.ID)
		wantKind(t, err, forge.ErrNotFound)
		wantKind(t, f.UpdateComment(ctx, made.ID, "again"), forge.ErrNotFound)
		before := len(s.Calls())
		_, err = f.CreateComment(ctx, n, strings.Repeat("ä", forge.MaxBody+1))
		wantKind(t, err, forge.ErrInvalid)
		wantKind(t, f.UpdateComment(ctx, 1, strings.Repeat("ä", forge.MaxBody+1)), forge.ErrInvalid)
		if len(s.Calls()) != before {
			t.Error("a text that is too long was sent")
		}
	})
}

func isBot(login string) bool { return login == "github-actions[bot]" || login == "gitea-actions" }

// TestReviewComment: a comment on a line is none of the issue's comments.
func TestReviewComment(t *testing.T) {
	both(t, func(t *testing.T, s *forgetest.Server, f forge.Forge) {
		ctx := t.Context()
		n := s.OpenPull("alice", "Fix it", "", forgetest.Pull{Head: "main", Base: "main"})
		if f.ForgeFlavour() == forge.Gitea {
			before := len(s.Calls())
			_, err := f.ReadLineComment(ctx, 5)
			if e := wantKind(t, err, forge.ErrNotFound); e.Message == "" || len(s.Calls()) != before {
				t.Errorf("%v, %d calls", e, len(s.Calls())-before)
			}
			return
		}
		s.PostComment("bob", n, "on the whole")
		said := read(t, s.SayOnLine("bob", n, "/uwf retry"))
		got := must[forge.Comment](t)(f.ReadLineComment(ctx, said.Comment.ID))
		if want := (forge.Comment{ID: said.Comment.ID, Body: "/uwf retry", Author: "bob", AuthorID: said.Sender.ID, URL: said.Comment.HTMLURL, Number: n, Created: got.Created}); got != want || got.Created.IsZero() || got.URL == "" || got.AuthorID <= 0 {
			t.Errorf("%+v, want %+v", got, want)
		}
		_, err := f.ReadComment(ctx, got.ID)
		wantKind(t, err, forge.ErrNotFound)
		list := must[[]forge.Comment](t)(f.ListComments(ctx, n))
		if len(list) != 1 || list[0].Body != "on the whole" {
			t.Errorf("%+v", list)
		}
		_, err = f.ReadLineComment(ctx, list[0].ID)
		wantKind(t, err, forge.ErrNotFound)
		s.DeleteComment(got.ID)
		_, err = f.ReadLineComment(ctx, got.ID)
		wantKind(t, err, forge.ErrNotFound)
	})
}

// told is what the payload of an event says of users and its comment.
type told struct {
	Sender, Assignee account
	Issue            struct{ User account }
	Pull             struct{ User account } `json:"pull_request"`
	Comment          struct {
		ID      int64
		HTMLURL string `json:"html_url"`
		User    account
	}
}

type account struct {
	Login string
	ID    int64
}

func read(t *testing.T, e forgetest.Event) (p told) {
	t.Helper()
	no(t, json.Unmarshal(e.Payload, &p))
	return p
}

// TestUsers: a token's user, and the same id for them wherever they show.
func TestUsers(t *testing.T) {
	both(t, func(t *testing.T, s *forgetest.Server, f forge.Forge) {
		ctx := t.Context()
		s.SetPermission("alice", "write")
		alice := dial(t, s, s.UserToken("alice"))
		n := s.OpenIssue("bob", "It breaks", "")
		first := read(t, s.PutLabel("alice", n, "uwf"))
		me := must[forge.User](t)(alice.ReadTokenOwner(ctx))
		if me.Login != "alice" || me.ID <= 0 || me.Bot || me.ID == first.Issue.User.ID {
			t.Fatalf("%+v", me)
		}
		made := must[forge.Comment](t)(alice.CreateComment(ctx, n, "hello"))
		pull := s.OpenPull("alice", "Fix it", "", forgetest.Pull{Head: "main", Base: "main"})
		said, labeled, assigned := read(t, s.PostComment("alice", n, "/uwf retry")), read(t, s.PutLabel("bob", pull, "uwf")), read(t, s.Assign("bob", n, "alice"))
		opened, asPull := must[forge.Issue](t)(f.ReadIssue(ctx, pull)), must[forge.Pull](t)(f.ReadPull(ctx, pull))
		for where, got := range map[string]account{
			"the sender":                  first.Sender,
			"who dispatched":              read(t, s.Manual("alice", "uwf.yml", nil)).Sender,
			"who pushed":                  read(t, s.Push("alice")).Sender,
			"who commented, in the event": said.Comment.User,
			"the comment's sender":        said.Sender,
			"who opened it, in the event": labeled.Pull.User,
			"who commented":               {made.Author, made.AuthorID},
			"who opened it":               {opened.Author, opened.AuthorID},
			"who opened the pull request": {asPull.Author, asPull.AuthorID},
		} {
			if got != (account{"alice", me.ID}) {
				t.Errorf("%s: %+v, want %+v", where, got, me)
			}
		}
		if f.ForgeFlavour() == forge.GitHub && assigned.Assignee != (account{"alice", me.ID}) {
			t.Errorf("the assignee: %+v, want %+v", assigned.Assignee, me)
		}
		if bob := must[forge.User](t)(dial(t, s, s.UserToken("bob")).ReadTokenOwner(ctx)); bob.ID != first.Issue.User.ID || bob.ID != labeled.Sender.ID || bob.ID != assigned.Sender.ID {
			t.Errorf("%+v", bob)
		}
	})
}

// TestMe: whose token it is where it is nobody's.
func TestMe(t *testing.T) {
	both(t, func(t *testing.T, s *forgetest.Server, f forge.Forge) {
		ctx := t.Context()
		me, err := f.ReadTokenOwner(ctx)
		if f.ForgeFlavour() == forge.Gitea {
			if want := (forge.User{Login: "gitea-actions", Bot: true}); err != nil || me != want {
				t.Errorf("a job's: %+v %v, want %+v", me, err, want)
			}
		} else if e := wantKind(t, err, forge.ErrForbidden); !strings.Contains(e.Message, "not accessible by integration") {
			t.Errorf("a job's: %v", e)
		}
		_, err = dial(t, s, "").ReadTokenOwner(ctx)
		wantKind(t, err, forge.ErrAuth)
		ended := s.UserToken("alice")
		s.Revoke(ended)
		_, err = dial(t, s, ended).ReadTokenOwner(ctx)
		wantKind(t, err, forge.ErrAuth)
		for _, c := range s.Calls() {
			if c.Path != "user" {
				t.Errorf("%s %s", c.Method, c.Path)
			}
		}
	})
}

func TestLabels(t *testing.T) {
	both(t, func(t *testing.T, s *forgetest.Server, f forge.Forge) {
		ctx := t.Context()
		n := s.OpenIssue("alice", "It breaks", "")
		l := forge.Label{Name: "uwf failed/1", Color: "b60205", Description: "it failed"}
		no(t, f.EnsureLabel(ctx, l))
		no(t, f.EnsureLabel(ctx, l))
		count := 0
		for _, have := range s.Labels() {
			if have.Name == l.Name && strings.TrimPrefix(have.Color, "#") == l.Color && have.Description == l.Description {
				count++
			}
		}
		if count != 1 {
			t.Errorf("the label is there %d times: %+v", count, s.Labels())
		}
		no(t, f.AddLabel(ctx, n, l))
		no(t, f.AddLabel(ctx, n, l))
		other := forge.Label{Name: "uwf-waiting", Color: "fbca04"}
		no(t, f.AddLabel(ctx, n, other)) // which the repository does not have yet
		if got := s.FindIssue(n).Labels; fmt.Sprint(got) != "[uwf failed/1 uwf-waiting]" {
			t.Errorf("%q", got)
		}
		no(t, f.RemoveLabel(ctx, n, l.Name))
		no(t, f.RemoveLabel(ctx, n, l.Name))
		no(t, f.RemoveLabel(ctx, n, "never was"))
		if got := s.FindIssue(n).Labels; fmt.Sprint(got) != "[uwf-waiting]" {
			t.Errorf("%q", got)
		}
	})
}

func TestPulls(t *testing.T) {
	both(t, func(t *testing.T, s *forgetest.Server, f forge.Forge) {
		ctx := t.Context()
		const branch = "uwf/01JY0000000000000000000000"
		if _, found, err := f.FindPull(ctx, branch); found || err != nil {
			t.Fatal(found, err)
		}
		grow := func(branch string) {
			_, err := s.Git("branch", branch, "main")
			no(t, err)
			s.MustCommit(t, branch, "Work", map[string]string{branch + ".txt": "a\n"})
		}
		grow(branch)
		for i := range 60 { // more than a page of Gitea's
			name := fmt.Sprintf("other/%d", i)
			if i == 0 {
				grow(name)
			}
			s.OpenPull("alice", name, "", forgetest.Pull{Head: name, Base: "main"})
		}
		made := must[forge.Pull](t)(f.CreatePull(ctx, forge.NewPull{Title: "Fix it", Body: "Fixes #1", Head: branch, Base: "main", Draft: true}))
		if made.Number == 0 || !made.Open || made.Merged || made.Head.Name != branch || made.Head.Repo != "octo/demo" || !isBot(made.Author) || made.Base.Name != "main" || made.Head.SHA == "" {
			t.Errorf("%+v", made)
		}
		_, err := f.CreatePull(ctx, forge.NewPull{Title: "Again", Head: branch, Base: "main"})
		wantKind(t, err, forge.ErrExists)
		no(t, f.UpdatePull(ctx, made.Number, "Fix it well", "Fixes #1 and more"))
		theirs, ok, err := f.FindPull(ctx, "other/59")
		if err != nil || !ok || theirs.Author != "alice" || theirs.AuthorID <= 0 {
			t.Errorf("%+v %v %v", theirs, ok, err)
		}
		if p := must[forge.Pull](t)(f.ReadPull(ctx, theirs.Number)); p != theirs {
			t.Errorf("%+v, want %+v", p, theirs)
		}
		found, ok, err := f.FindPull(ctx, branch)
		if err != nil || !ok || found.Number != made.Number || found.Body != "Fixes #1 and more" || !strings.HasSuffix(found.Title, "Fix it well") {
			t.Errorf("%+v %v %v", found, ok, err)
		}
		if draft := strings.HasPrefix(found.Title, "WIP: "); draft != (f.ForgeFlavour() == forge.Gitea) {
			t.Errorf("title of a draft: %q", found.Title)
		}
		s.CloseIssue(made.Number)
		if found, ok, err = f.FindPull(ctx, branch); err != nil || !ok || found.Open || found.Number != made.Number {
			t.Errorf("closed: %+v %v %v", found, ok, err)
		}
		if p := must[forge.Pull](t)(f.ReadPull(ctx, made.Number)); p.Open || p.Body != "Fixes #1 and more" {
			t.Errorf("%+v", p)
		}
		again := must[forge.Pull](t)(f.CreatePull(ctx, forge.NewPull{Title: "Anew", Head: branch, Base: "main"}))
		if found, ok, err = f.FindPull(ctx, branch); err != nil || !ok || found.Number != again.Number || !found.Open {
			t.Errorf("the open one is wanted: %+v %v %v", found, ok, err)
		}
		s.SetPullsAllowed(false)
		if f.ForgeFlavour() == forge.GitHub {
			_, err = f.CreatePull(ctx, forge.NewPull{Title: "No", Head: "other/0", Base: "main"})
			if e := wantKind(t, err, forge.ErrForbidden); !strings.Contains(e.Error(), "not permitted to create") {
				t.Error(e)
			}
			s.SetPullsAllowed(true)
			_, err := s.Git("branch", "same", "main")
			no(t, err)
			_, err = f.CreatePull(ctx, forge.NewPull{Title: "Nothing", Head: "same", Base: "main"})
			wantKind(t, err, forge.ErrNoChanges)
		}
	})
}

func TestPermission(t *testing.T) {
	both(t, func(t *testing.T, s *forgetest.Server, f forge.Forge) {
		s.SetPermission("alice", "write")
		s.SetPermission("max", "maintain")
		s.SetPermission("bob", "read")
		s.SetPermission("tri", "triage")
		for login, want := range map[string]forge.Permission{"alice": forge.Write, "max": forge.Write, "bob": forge.Read, "tri": forge.Read, "nobody-knows": forge.None, "": forge.Unknown, "../../user": forge.None} {
			if f.ForgeFlavour() == forge.Gitea {
				want = forge.Unknown // the job's token is not told
			}
			got, err := f.ReadPermission(t.Context(), login)
			if err != nil || got != want {
				t.Errorf("%q: %v %v, want %v", login, got, err, want)
			}
		}
	})
}

func TestDispatch(t *testing.T) {
	both(t, func(t *testing.T, s *forgetest.Server, f forge.Forge) {
		ctx := t.Context()
		no(t, f.DispatchWorkflow(ctx, "uwf.yml", "main", map[string]string{"thread": "T", "head": "H"}))
		sent := s.TakeDispatches()
		if len(sent) != 1 || fmt.Sprint(sent[0].Inputs) != "map[head:H thread:T]" {
			t.Errorf("%+v", sent)
		}
		wantKind(t, f.DispatchWorkflow(ctx, "other.yml", "main", nil), forge.ErrNotFound)
		many := map[string]string{}
		for i := range forge.MaxInputs + 1 {
			many[fmt.Sprint(i)] = "x"
		}
		before := len(s.Calls())
		wantKind(t, f.DispatchWorkflow(ctx, "uwf.yml", "main", many), forge.ErrInvalid)
		wantKind(t, f.DispatchWorkflow(ctx, "uwf.yml", "main", map[string]string{"thread": strings.Repeat("x", 65536)}), forge.ErrInvalid)
		if len(s.Calls()) != before {
			t.Error("what no forge takes was sent")
		}
		err := f.DispatchRepository(ctx, "uwf-step", map[string]string{"thread": "T"})
		if f.ForgeFlavour() == forge.Gitea {
			wantKind(t, err, forge.ErrNotFound)
			return
		}
		no(t, err)
		wantKind(t, f.DispatchWorkflow(ctx, "uwf.yml", "main", map[string]string{"unknown": "x"}), forge.ErrInvalid)
	})
}

func TestSettings(t *testing.T) {
	both(t, func(t *testing.T, s *forgetest.Server, f forge.Forge) {
		ctx := t.Context()
		flows := must[[]forge.Workflow](t)(f.ListWorkflows(ctx))
		if len(flows) != 1 || flows[0] != (forge.Workflow{Path: ".github/workflows/uwf.yml", Active: true}) {
			t.Errorf("%+v", flows)
		}
		s.DisableWorkflow("uwf.yml", true)
		if flows = must[[]forge.Workflow](t)(f.ListWorkflows(ctx)); len(flows) != 1 || flows[0].Active {
			t.Errorf("%+v", flows)
		}
		rules, known, err := f.ListBranchRules(ctx, "uwf-state")
		if err != nil || known || len(rules) > 0 { // it is not there yet, and a job's token sees no patterns
			t.Errorf("%v %v %v", rules, known, err)
		}
		may, known, err := f.MayCreatePulls(ctx)
		if err != nil || known != (f.ForgeFlavour() == forge.Gitea) {
			t.Errorf("a job's token: %v %v %v", may, known, err)
		}
		if f.ForgeFlavour() == forge.Gitea {
			return
		}
		s.SetPermission("root", "admin")
		s.SetPullsAllowed(false)
		may, known, err = dial(t, s, s.UserToken("root")).MayCreatePulls(ctx)
		if may || !known || err != nil {
			t.Errorf("an administrator's token: %v %v %v", may, known, err)
		}
	})
}

// TestJobNotes: what was noted at the cancelled jobs of one attempt of a run.
func TestJobNotes(t *testing.T) {
	both(t, func(t *testing.T, s *forgetest.Server, f forge.Forge) {
		s.AddJob("7", 1, "cancelled", "The run was canceled by @eve.")
		s.AddJob("7", 2, "success", "Node.js 16 is old.")
		s.AddJob("7", 2, "cancelled", "The run was canceled by @alice.", "The operation was canceled.")
		notes, err := f.ListJobNotes(t.Context(), "7", 2)
		want := "[The run was canceled by @alice. The operation was canceled.]"
		if f.ForgeFlavour() == forge.Gitea {
			want = "[]"
		}
		if err != nil || fmt.Sprint(notes) != want {
			t.Errorf("%q %v", notes, err)
		}
		for run, want := range map[string][2]bool{"7": {true, true}, "8": {false, true}, "9": {false, false}} {
			s.AddJob("8", 1, "failure")
			if was, known, err := f.WasRunCancelled(t.Context(), run); was != want[0] || known != want[1] || err != nil {
				t.Errorf("run %s: cancelled %v, known %v, %v", run, was, known, err)
			}
		}
	})
}

// TestListIssues: open issues with a label, no pull requests, and none where no label is of that name.
func TestListIssues(t *testing.T) {
	both(t, func(t *testing.T, s *forgetest.Server, f forge.Forge) {
		numbers := func() (all []int) {
			for _, i := range must[[]forge.Issue](t)(f.ListIssues(t.Context(), "uwf")) {
				all = append(all, i.Number)
				if i.Updated.IsZero() || !i.Open {
					t.Errorf("%+v", i)
				}
			}
			return all
		}
		plain, closed, wanted := s.OpenIssue("alice", "a", ""), s.OpenIssue("alice", "b", ""), s.OpenIssue("alice", "c", "")
		if got := numbers(); got != nil {
			t.Errorf("nobody has the label, and there are %v", got)
		}
		pull := s.OpenPull("alice", "d", "", forgetest.Pull{Head: "x", Base: "main"})
		for _, n := range []int{closed, wanted, pull} {
			s.PutLabel("alice", n, "uwf")
		}
		s.PutLabel("alice", plain, "bug")
		s.CloseIssue(closed)
		if got := numbers(); len(got) != 1 || got[0] != wanted {
			t.Errorf("got %v, want %d", got, wanted)
		}
	})
}

// TestReadFile: a file at a commit, whole, and nothing else.
func TestReadFile(t *testing.T) {
	both(t, func(t *testing.T, s *forgetest.Server, f forge.Forge) {
		text := strings.Repeat("sandbox: require # ä\n", 40)
		old := s.MustCommit(t, "main", "Policy", map[string]string{"org/a policy.yaml": text})
		s.MustCommit(t, "main", "Another", map[string]string{"org/a policy.yaml": "sandbox: off\n"})
		read := func(f forge.Forge, path, commit string, limit int) (string, error) {
			data, err := f.(forge.FileReader).ReadFile(t.Context(), path, commit, limit)
			return string(data), err
		}
		if got, err := read(f, "org/a policy.yaml", old, len(text)); err != nil || got != text {
			t.Errorf("%q %v", got, err)
		}
		_, err := read(f, "org/a policy.yaml", old, len(text)-1)
		if e := wantKind(t, err, forge.ErrInvalid); !strings.Contains(e.Message, fmt.Sprintf("it has %d bytes, and at most %d are taken", len(text), len(text)-1)) {
			t.Error(err)
		}
		for _, path := range []string{"org/none.yaml", "org/a policy.yaml/x"} {
			_, err = read(f, path, old, 10)
			wantKind(t, err, forge.ErrNotFound)
		}
		_, err = read(f, "org/a policy.yaml", strings.Repeat("0", 40), 10)
		wantKind(t, err, forge.ErrNotFound)
		_, err = read(f, "org", old, 10)
		wantKind(t, err, forge.ErrUnreadable)
		for answer, kind := range map[string]error{
			`{"type":"symlink","target":"x"}`:                                     forge.ErrInvalid,
			`{"type":"file","size":3,"encoding":"none","content":""}`:             forge.ErrUnreadable,
			`{"type":"file","size":3,"encoding":"base64","content":"YWI="}`:       forge.ErrUnreadable,
			`{"type":"file","size":2,"encoding":"base64","content":"no base 64"}`: forge.ErrUnreadable,
		} {
			s.Inject(forgetest.Fault{Path: "contents/org/*", Times: 1, Answer: forgetest.Answer{Status: 200, Body: answer}})
			_, err = read(f, "org/any", old, 10)
			wantKind(t, err, kind)
		}
	})
}

// TestBranchRules: rules hold by pattern, also for a branch that is not there yet. Who can't
// see all of them does not hear that there are none.
func TestBranchRules(t *testing.T) {
	both(t, func(t *testing.T, s *forgetest.Server, f forge.Forge) {
		s.SetPermission("root", "admin")
		admin := dial(t, s, s.UserToken("root"))
		check := func(f forge.Forge, branch, want string, known bool) {
			t.Helper()
			rules, k, err := f.ListBranchRules(t.Context(), branch)
			if err != nil || k != known || fmt.Sprint(rules) != want {
				t.Errorf("%s: %v %v %v, want %s %v", branch, rules, k, err, want, known)
			}
		}
		check(f, "uwf/1", "[]", false)
		check(admin, "uwf/1", "[]", true)
		s.ProtectBranches("uwf/**")
		s.ProtectBranches("release/*")
		check(f, "uwf/1", "[]", false)
		check(admin, "uwf/1", "[protected branch]", true)
		check(admin, "uwf-state", "[]", true)
		check(admin, "release/1/2", "[]", true)
		if f.ForgeFlavour() == forge.GitHub {
			s.Protect("uwf-*", "pull_request")
			check(f, "uwf-state", "[pull_request]", false)
			check(admin, "uwf-state", "[pull_request]", true)
		}
	})
}

// TestTokens: what a token may not do, and one that has ended.
func TestTokens(t *testing.T) {
	both(t, func(t *testing.T, s *forgetest.Server, f forge.Forge) {
		ctx := t.Context()
		n := s.OpenIssue("alice", "It breaks", "")
		reader := dial(t, s, s.JobToken(forgetest.ReadPermissions()))
		err := reader.AddLabel(ctx, n, forge.Label{Name: "x", Color: "ffffff"})
		e := wantKind(t, err, forge.ErrForbidden)
		if f.ForgeFlavour() == forge.GitHub && !strings.Contains(e.Need, "issues=write") {
			t.Errorf("what the token needs: %q", e.Need)
		}
		token := s.JobToken(forgetest.JobPermissions())
		s.Revoke(token)
		_, err = dial(t, s, token).ReadRepository(ctx)
		wantKind(t, err, forge.ErrAuth)
		if strings.Contains(err.Error(), token) {
			t.Error("the token shows")
		}
	})
}

// TestFaults: what may pass is tried again, and nothing is done twice.
func TestFaults(t *testing.T) {
	both(t, func(t *testing.T, s *forgetest.Server, f forge.Forge) {
		ctx := t.Context()
		n := s.OpenIssue("alice", "It breaks", "")
		s.Inject(forgetest.Fault{Answer: forgetest.Broken(502), Times: 2})
		must[forge.Issue](t)(f.ReadIssue(ctx, n))
		s.Inject(forgetest.Fault{Answer: forgetest.SecondaryLimit(time.Second), Times: 2})
		made := must[forge.Comment](t)(f.CreateComment(ctx, n, "once"))
		_, err := s.Git("branch", "work", "main")
		no(t, err)
		s.MustCommit(t, "work", "Work", map[string]string{"a": "b\n"})
		for name, fault := range map[string]forgetest.Fault{
			"lost reply": {Method: "POST", Lost: true}, "no reply": {Method: "POST", Cut: true}, "bad gateway": {Method: "POST", Answer: forgetest.Broken(502)},
		} {
			s.Inject(fault)
			must[forge.Comment](t)(f.CreateComment(ctx, n, name))
			s.Inject(fault)
			p := must[forge.Pull](t)(f.CreatePull(ctx, forge.NewPull{Title: name, Head: "work", Base: "main"}))
			no(t, f.UpdatePull(ctx, p.Number, p.Title, "another"))
			if all := s.Pulls(); all[len(all)-1].Number != p.Number || slices.ContainsFunc(all[:len(all)-1], func(i forgetest.Issue) bool { return i.Open }) {
				t.Errorf("%s: pull request %d, of %+v", name, p.Number, all)
			}
			s.CloseIssue(p.Number)
			s.Inject(fault)
			no(t, f.EnsureLabel(ctx, forge.Label{Name: name, Color: "ffffff"}))
		}
		s.Inject(forgetest.Fault{Method: "PATCH", Lost: true})
		no(t, f.UpdateComment(ctx, made.ID, "changed"))
		s.Inject(forgetest.Fault{Method: "DELETE", Lost: true})
		no(t, f.DeleteComment(ctx, made.ID))
		s.Inject(forgetest.Fault{Cut: true, Times: -1})
		_, err = f.ReadIssue(ctx, n)
		wantKind(t, err, forge.ErrUnreachable)
		s.ClearFaults()
		if list := must[[]forge.Comment](t)(f.ListComments(ctx, n)); len(list) != 3 || len(s.Labels()) != 3 {
			t.Errorf("%+v, %+v", list, s.Labels())
		}
	})
}
