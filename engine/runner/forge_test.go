package runner

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"sync"

	"github.com/united-workforce/uwf/engine/forge"
)

// fakeForge is a forge in memory. Faults are asked before each call, and after it:
// the second is an answer that got lost.
type fakeForge struct {
	mu       sync.Mutex
	flavour  forge.Flavour
	trunk    string
	perms    map[string]forge.Permission
	issues   map[int]*forge.Issue
	comments map[int][]forge.Comment
	lines    []forge.Comment // on lines of pull requests
	said     []forge.Comment // people's own, which nobody lists here
	pulls    []*forge.Pull
	sent     []dispatched // not yet taken
	author   string       // who comments
	lastID   int64
	calls    int
	log      []string
	before   func(op string) error
	after    func(op string) error
	// repoBranch is the default branch as the API names it, where git names another.
	repoBranch string
	notes      []string // at the jobs that were cancelled
	cancelled  []string // runs
}

type dispatched struct {
	file, ref string
	inputs    map[string]string
}

func newFakeForge() *fakeForge {
	return &fakeForge{
		flavour: forge.GitHub, trunk: "main", author: "github-actions[bot]", lastID: 100,
		perms: map[string]forge.Permission{"owner": forge.Write, "reader": forge.Read}, issues: map[int]*forge.Issue{}, comments: map[int][]forge.Comment{},
	}
}

// do is one call.
func (f *fakeForge) do(op string, act func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	f.log = append(f.log, op)
	if f.before != nil {
		if err := f.before(op); err != nil {
			return err
		}
	}
	if err := act(); err != nil {
		return err
	}
	if f.after != nil {
		return f.after(op)
	}
	return nil
}

func fault(kind error, unsure bool) error {
	return &forge.CallError{Do: "do it", Kind: kind, Status: 500, Unsure: unsure}
}

func (f *fakeForge) ForgeFlavour() forge.Flavour { return f.flavour }
func (f *fakeForge) Calls() int                  { f.mu.Lock(); defer f.mu.Unlock(); return f.calls }

func (f *fakeForge) ReadRepository(context.Context) (r forge.Repository, err error) {
	err = f.do("repository", func() error {
		r = forge.Repository{FullName: "o/r", DefaultBranch: f.trunk}
		if f.repoBranch != "" {
			r.DefaultBranch = f.repoBranch
		}
		return nil
	})
	return r, err
}

func (f *fakeForge) ReadPermission(_ context.Context, login string) (p forge.Permission, err error) {
	err = f.do("permission", func() error { p = f.perms[login]; return nil })
	return p, err
}

// userID is the id of the account with a login; those that Gitea has built in have none.
func userID(login string) int64 {
	if login == "gitea-actions" || login == "forgejo-actions" {
		return 0
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(login)) // never fails
	return int64(h.Sum32()) + 1
}

// ReadTokenOwner is who comments. GitHub tells no job whose its token is.
func (f *fakeForge) ReadTokenOwner(context.Context) (u forge.User, err error) {
	err = f.do("me", func() error {
		if f.flavour == forge.GitHub && forge.IsBot(f.author) {
			return &forge.CallError{Do: "look up whose token this is", Kind: forge.ErrForbidden, Status: 403, Message: "Resource not accessible by integration"}
		}
		u = forge.User{Login: f.author, ID: userID(f.author), Bot: forge.IsBot(f.author)}
		return nil
	})
	return u, err
}

func (f *fakeForge) issue(n int) *forge.Issue {
	if f.issues[n] == nil {
		f.issues[n] = &forge.Issue{Number: n, Open: true}
	}
	return f.issues[n]
}

func (f *fakeForge) ReadIssue(_ context.Context, n int) (i forge.Issue, err error) {
	err = f.do("issue", func() error { i = *f.issue(n); return nil })
	return i, err
}

func (f *fakeForge) ListComments(_ context.Context, n int) (out []forge.Comment, err error) {
	err = f.do("comments", func() error { out = slices.Clone(f.comments[n]); return nil })
	return out, err
}

func (f *fakeForge) ReadComment(_ context.Context, id int64) (c forge.Comment, err error) {
	err = f.do("comment", func() error {
		if i := slices.IndexFunc(f.said, func(c forge.Comment) bool { return c.ID == id }); i >= 0 {
			c = f.said[i]
			return nil
		}
		return f.each(id, func(list []forge.Comment, i int) []forge.Comment { c = list[i]; return list })
	})
	return c, err
}

func (f *fakeForge) ReadLineComment(_ context.Context, id int64) (c forge.Comment, err error) {
	err = f.do("review-comment", func() error {
		i := slices.IndexFunc(f.lines, func(c forge.Comment) bool { return c.ID == id })
		if i < 0 || f.flavour == forge.Gitea {
			return &forge.CallError{Do: fmt.Sprintf("comment %d on a line", id), Kind: forge.ErrNotFound}
		}
		c = f.lines[i]
		return nil
	})
	return c, err
}

func (f *fakeForge) CreateComment(_ context.Context, n int, body string) (c forge.Comment, err error) {
	err = f.do("create-comment", func() error {
		f.lastID++
		c = forge.Comment{ID: f.lastID, Number: n, Body: body, Author: f.author, AuthorID: userID(f.author)}
		f.comments[n] = append(f.comments[n], c)
		return nil
	})
	return c, err
}

func (f *fakeForge) each(id int64, act func(list []forge.Comment, i int) []forge.Comment) error {
	for n, list := range f.comments {
		if i := slices.IndexFunc(list, func(c forge.Comment) bool { return c.ID == id }); i >= 0 {
			f.comments[n] = act(list, i)
			return nil
		}
	}
	return &forge.CallError{Do: fmt.Sprintf("comment %d", id), Kind: forge.ErrNotFound, Status: 404}
}

func (f *fakeForge) UpdateComment(_ context.Context, id int64, body string) error {
	return f.do("update-comment", func() error {
		return f.each(id, func(list []forge.Comment, i int) []forge.Comment { list[i].Body = body; return list })
	})
}

func (f *fakeForge) DeleteComment(_ context.Context, id int64) error {
	return f.do("delete-comment", func() error {
		_ = f.each(id, func(list []forge.Comment, i int) []forge.Comment { return slices.Delete(slices.Clone(list), i, i+1) })
		return nil
	})
}

func (f *fakeForge) EnsureLabel(context.Context, forge.Label) error {
	return f.do("ensure-label", func() error { return nil })
}

func (f *fakeForge) AddLabel(_ context.Context, n int, l forge.Label) error {
	return f.do("add-label", func() error {
		if i := f.issue(n); !slices.Contains(i.Labels, l.Name) {
			i.Labels = append(i.Labels, l.Name)
		}
		return nil
	})
}

func (f *fakeForge) RemoveLabel(_ context.Context, n int, name string) error {
	return f.do("remove-label", func() error {
		i := f.issue(n)
		i.Labels = slices.DeleteFunc(i.Labels, func(l string) bool { return l == name })
		return nil
	})
}

func (f *fakeForge) ReadPull(_ context.Context, n int) (p forge.Pull, err error) {
	err = f.do("pull", func() error {
		for _, q := range f.pulls {
			if q.Number == n {
				p = *q
				return nil
			}
		}
		return &forge.CallError{Do: "read", Kind: forge.ErrNotFound, Status: 404}
	})
	return p, err
}

func (f *fakeForge) FindPull(_ context.Context, branch string) (p forge.Pull, ok bool, err error) {
	err = f.do("find-pull", func() error {
		for _, q := range f.pulls {
			if q.Head.Name == branch && (!ok || q.Open) {
				p, ok = *q, true
			}
		}
		return nil
	})
	return p, ok, err
}

func (f *fakeForge) CreatePull(_ context.Context, n forge.NewPull) (p forge.Pull, err error) {
	err = f.do("create-pull", func() error {
		for _, q := range f.pulls {
			if q.Head.Name == n.Head && q.Open {
				return &forge.CallError{Do: "open", Kind: forge.ErrExists, Status: 422}
			}
		}
		f.lastID++
		p = forge.Pull{
			Number: int(f.lastID), Title: n.Title, Body: n.Body, Author: f.author, AuthorID: userID(f.author), Open: true,
			Head: forge.Branch{Repo: "o/r", Name: n.Head}, Base: forge.Branch{Repo: "o/r", Name: n.Base},
		}
		f.pulls = append(f.pulls, &p)
		return nil
	})
	return p, err
}

func (f *fakeForge) UpdatePull(_ context.Context, number int, title, body string) error {
	return f.do("update-pull", func() error {
		for _, q := range f.pulls {
			if q.Number == number {
				q.Title, q.Body = title, body
			}
		}
		return nil
	})
}

func (f *fakeForge) DispatchWorkflow(_ context.Context, file, ref string, inputs map[string]string) error {
	return f.do("dispatch", func() error {
		want := f.trunk
		if f.repoBranch != "" {
			want = f.repoBranch
		}
		if ref != want {
			return &forge.CallError{Do: "dispatch", Kind: forge.ErrInvalid, Status: 422}
		}
		f.sent = append(f.sent, dispatched{file, ref, maps.Clone(inputs)})
		return nil
	})
}

func (f *fakeForge) DispatchRepository(_ context.Context, _ string, payload map[string]string) error {
	return f.do("dispatch", func() error {
		f.sent = append(f.sent, dispatched{inputs: maps.Clone(payload)})
		return nil
	})
}

func (f *fakeForge) ListJobNotes(context.Context, string, int) (out []string, err error) {
	err = f.do("job-notes", func() error { out = f.notes; return nil })
	return out, err
}
func (f *fakeForge) WasRunCancelled(_ context.Context, run string) (was, known bool, err error) {
	err = f.do("run", func() error { was, known = slices.Contains(f.cancelled, run), true; return nil })
	return was, known, err
}

func (f *fakeForge) ListIssues(_ context.Context, label string) (out []forge.Issue, err error) {
	err = f.do("issues", func() error {
		for _, n := range slices.Sorted(maps.Keys(f.issues)) {
			if i := f.issues[n]; i.Open && slices.Contains(i.Labels, label) {
				out = append(out, *i)
			}
		}
		return nil
	})
	return out, err
}

func (f *fakeForge) ListWorkflows(context.Context) ([]forge.Workflow, error) { return nil, nil }
func (f *fakeForge) MayCreatePulls(context.Context) (bool, bool, error)      { return true, true, nil }
func (f *fakeForge) ListBranchRules(context.Context, string) ([]string, bool, error) {
	return nil, false, nil
}

// take removes the oldest dispatch.
func (f *fakeForge) take() (dispatched, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.sent) == 0 {
		return dispatched{}, false
	}
	d := f.sent[0]
	f.sent = f.sent[1:]
	return d, true
}
