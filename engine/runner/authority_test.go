package runner

import (
	"cmp"
	"errors"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/runner/ci"
	"github.com/united-workforce/uwf/engine/runner/event"
)

// none checks that nothing was started, by a job that was green and said why.
func (w *world) none(a aJob, why string) {
	w.Helper()
	a.out = &heard{}
	out, err := w.run(a)
	w.ok(err)
	if !strings.Contains(out.Notice, why) {
		w.Errorf("the notice is %q, want %q in it", out.Notice, why)
	}
	if refs := w.mem.Refs(); len(w.ran) > 0 || len(w.forge.sent) > 0 || refs["refs/heads/uwf-state"] != (gitcasID{}) {
		w.Errorf("something was started: %v %v %v", w.ran, w.forge.sent, refs)
	}
	if len(a.out.errors) > 0 {
		w.Errorf("a green job has errors: %v", a.out.errors)
	}
}

func TestWhoMay(t *testing.T) {
	ev := func(change func(*event.Event)) event.Event {
		e := labeled(7)
		change(&e)
		return e
	}
	for name, c := range map[string]struct {
		ev      event.Event
		perm    forge.Permission
		allow   []string
		job     ci.Job
		attempt int
		why     string // empty: allowed
	}{
		"writer":                     {ev: labeled(7), perm: forge.Write},
		"reader":                     {ev: labeled(7), perm: forge.Read, why: "can't write"},
		"reader, even if named":      {ev: labeled(7), perm: forge.Read, allow: []string{"owner"}, why: "can't write"},
		"nobody":                     {ev: labeled(7), perm: forge.None, why: "can't write"},
		"unknown":                    {ev: labeled(7), why: "can't find out"},
		"unknown, named":             {ev: labeled(7), allow: []string{"owner"}},
		"unknown, another is named":  {ev: labeled(7), allow: []string{"Owner", "owner2", ""}, why: "can't find out"},
		"no sender":                  {ev: ev(func(e *event.Event) { e.Sender = event.User{} }), perm: forge.Write, allow: []string{""}, why: "doesn't say"},
		"bot":                        {ev: ev(func(e *event.Event) { e.Sender = event.User{Login: "renovate[bot]", Bot: true} }), perm: forge.Write, why: "is a bot"},
		"bot by its name alone":      {ev: ev(func(e *event.Event) { e.Sender = event.User{Login: "renovate[bot]"} }), perm: forge.Write, why: "is a bot"},
		"bot, named":                 {ev: ev(func(e *event.Event) { e.Sender = event.User{Login: "renovate[bot]", Bot: true} }), allow: []string{"renovate[bot]"}},
		"job's own token":            {ev: ev(func(e *event.Event) { e.Sender = event.User{Login: "gitea-actions"} }), perm: forge.Write, why: "is a bot"},
		"re-run by a writer":         {ev: labeled(7), perm: forge.Write, attempt: 2, job: ci.Job{Actor: "owner", TriggeringActor: "owner"}},
		"re-run by somebody else":    {ev: labeled(7), perm: forge.Write, attempt: 2, job: ci.Job{Actor: "owner", TriggeringActor: "reader"}, why: "reader can't write"},
		"re-run by an unknown":       {ev: labeled(7), perm: forge.Write, attempt: 2, job: ci.Job{Actor: "owner", TriggeringActor: "ghost"}, why: "can't find out whether ghost"},
		"first attempt names nobody": {ev: labeled(7), perm: forge.Write, job: ci.Job{Actor: "owner", TriggeringActor: "reader"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.forge.perms["owner"] = c.perm
			a := aJob{ev: c.ev, in: ci.Inputs{Allow: c.allow}, job: c.job, attempt: c.attempt}
			if c.why != "" {
				w.none(a, c.why)
				return
			}
			_, err := w.run(a)
			w.ok(err)
			if len(w.ran) != 1 {
				t.Errorf("agents ran as %v", w.ran)
			}
		})
	}
}

// Where nobody can tell what people may do, the owner of a personal repository is let in,
// by login and id; nobody else is, who only looks like them.
func TestOwnerOfAPersonalRepository(t *testing.T) {
	const id = 7
	owner := event.User{Login: "o", ID: id}
	for name, c := range map[string]struct {
		sender event.User
		repo   event.Repo
		token  string // whose it is; empty: a job's own
		forge  func(f *fakeForge)
		why    string // empty: let in
	}{
		"the owner":                       {sender: owner, repo: event.Repo{Owner: owner}},
		"somebody else":                   {sender: event.User{Login: "alice", ID: 8}, repo: event.Repo{Owner: owner}, why: "can't find out whether alice"},
		"the login, another id":           {sender: event.User{Login: "o", ID: 8}, repo: event.Repo{Owner: owner}, why: "can't find out"},
		"the id, another login":           {sender: event.User{Login: "renamed", ID: id}, repo: event.Repo{Owner: owner}, why: "can't find out"},
		"the login in capitals":           {sender: event.User{Login: "O", ID: id}, repo: event.Repo{Owner: owner}, why: "can't find out"},
		"no ids":                          {sender: event.User{Login: "o"}, repo: event.Repo{Owner: event.User{Login: "o"}}, token: "helper", why: "can't find out"},
		"an organisation's name":          {sender: owner, repo: event.Repo{Owner: owner, Organisation: true}, why: "can't find out"},
		"the owner of another repository": {sender: event.User{Login: "x", ID: 9}, repo: event.Repo{Owner: event.User{Login: "x", ID: 9}}, why: "can't find out"},
		"nobody is said to own it":        {sender: owner, why: "can't find out"},
		"a bot that owns it":              {sender: event.User{Login: "o", ID: id, Bot: true}, repo: event.Repo{Owner: event.User{Login: "o", ID: id, Bot: true}}, why: "is a bot"},
		"the job's own user":              {sender: event.User{Login: "gitea-actions"}, repo: event.Repo{Owner: event.User{Login: "gitea-actions"}}, why: "is a bot"},
		"with a token of the owner's":     {sender: owner, repo: event.Repo{Owner: owner}, token: "o", why: "can't find out"},
		"nobody knows whose token it is":  {sender: owner, repo: event.Repo{Owner: owner}, forge: func(f *fakeForge) { f.flavour = forge.GitHub }, why: "can't find out"},
		"known to read only":              {sender: owner, repo: event.Repo{Owner: owner}, forge: func(f *fakeForge) { f.perms["o"] = forge.Read }, why: "can't write"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, kind := range []event.Kind{event.Labeled, event.Comment} {
				w := newWorld(t)
				w.forge.flavour, w.forge.author = forge.Gitea, cmp.Or(c.token, "gitea-actions")
				if c.forge != nil {
					c.forge(w.forge)
				}
				ev := labeled(7)
				if kind == event.Comment {
					ev = w.says(7, c.sender.Login, "/uwf start")
					ev.CommentAuthor = c.sender
					w.forge.said[0].AuthorID = c.sender.ID
				}
				ev.Sender, ev.Repo = c.sender, c.repo
				if c.why != "" {
					w.none(aJob{ev: ev}, c.why)
					continue
				}
				_, err := w.run(aJob{ev: ev})
				w.ok(err)
				if len(w.ran) != 1 {
					t.Errorf("agents ran as %v", w.ran)
				}
			}
		})
	}
}

// Whose token it is can't be asked at the moment: that is no "no" either.
func TestOwnerCantBeAsked(t *testing.T) {
	w := newWorld(t)
	w.forge.flavour, w.forge.author = forge.Gitea, "gitea-actions"
	w.forge.before = func(op string) error {
		if op == "me" {
			return fault(forge.ErrUnreachable, false)
		}
		return nil
	}
	ev := labeled(7)
	ev.Sender = event.User{Login: "o", ID: 7}
	ev.Repo.Owner = ev.Sender
	if _, err := w.run(aJob{ev: ev}); !errors.Is(err, forge.ErrUnreachable) || len(w.ran) != 0 {
		t.Errorf("the job ended with %v, agents ran as %v", err, w.ran)
	}
}

// A label or an assignment that nobody can look up the right for is answered, once an
// issue; what is known to be a stranger's is not.
func TestLabelOfAnUnknown(t *testing.T) {
	assigned := func(n int, login string) event.Event {
		return event.Event{Name: "issues", Kind: event.Assigned, Sender: event.User{Login: login}, Subject: issue(n, "uwf"), Assignee: "uwf"}
	}
	put := func(n int, login string) event.Event {
		ev := labeled(n)
		ev.Sender = event.User{Login: login}
		return ev
	}
	w := newWorld(t)
	for _, ev := range []event.Event{put(7, "ghost"), put(7, "ghoul"), assigned(7, "ghost"), w.says(7, "ghost", "/uwf start")} {
		w.none(aJob{ev: ev}, "can't find out")
	}
	w.replied(7, "🔒 The label uwf needs write permission on this repository, and `ghost` doesn't have it")
	w.replied(7, "(allow: ghost, below with: of the workflow file)")
	w.none(aJob{ev: assigned(8, "ghost")}, "can't find out")
	w.replied(8, "🔒 An assignment needs")
	ev := put(9, "ghost")
	ev.Added = []string{"bug"}
	w.none(aJob{ev: ev}, "the label is not uwf")
	w.none(aJob{ev: put(9, "reader")}, "can't write")
	w.none(aJob{ev: assigned(9, "renovate[bot]")}, "is a bot")
	w.none(aJob{ev: event.Event{Kind: event.Plain, Sender: event.User{Login: "ghost"}, Subject: issue(9)}, in: ci.Inputs{Prompt: "do it"}}, "can't find out")
	if got := w.forge.comments[9]; len(got) != 0 {
		t.Errorf("#9 was answered: %v", got)
	}
}

// What can't be asked at the moment is no "no": the job is red, and can be run again.
func TestPermissionCantBeAsked(t *testing.T) {
	w := newWorld(t)
	w.forge.before = func(op string) error {
		if op == "permission" {
			return fault(forge.ErrUnreachable, false)
		}
		return nil
	}
	for _, ev := range []event.Event{labeled(7), w.says(7, "owner", "/uwf start")} {
		if _, err := w.run(aJob{ev: ev}); !errors.Is(err, forge.ErrUnreachable) {
			t.Errorf("%s: the job ended with %v", ev.Name, err)
		}
	}
	if len(w.ran) != 0 {
		t.Error("an agent ran")
	}
}

// For a comment its author counts, and whoever else had a hand in it.
func TestCommentAuthority(t *testing.T) {
	w := newWorld(t)
	ev := w.says(7, "reader", "/uwf start")
	ev.Sender = event.User{Login: "owner"}
	w.none(aJob{ev: ev}, "reader can't write")
	ev = w.says(7, "owner", "/uwf start")
	ev.Sender = event.User{Login: "reader"}
	w.none(aJob{ev: ev}, "reader can't write")
	if len(w.forge.comments[7]) != 0 {
		t.Errorf("a stranger made the job comment: %v", w.forge.comments[7])
	}
	ev = w.says(7, "ghost", "/uwf start")
	w.none(aJob{ev: ev}, "can't find out")
	if len(w.forge.comments[7]) != 1 || !strings.Contains(w.forge.comments[7][0].Body, "allow") {
		t.Errorf("nobody says how to be let in: %v", w.forge.comments[7])
	}
}

// A pull request from a fork never gets an agent, whatever the payload says of it.
func TestForks(t *testing.T) {
	for name, head := range map[string]forge.Branch{
		"fork": {Repo: "stranger/r", Name: "topic"}, "fork that is gone": {Name: "topic"},
		"default branch": {Repo: "o/r", Name: "main"}, "state branch": {Repo: "o/r", Name: "uwf-state"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.forge.pulls = append(w.forge.pulls, &forge.Pull{Number: 7, Open: true, Head: head})
			ev := labeled(7)
			ev.Name = "pull_request_target"
			ev.Subject.Pull = true
			w.none(aJob{ev: ev}, "pull request #7")
			if len(w.forge.comments[7]) != 1 {
				t.Errorf("nobody is told: %v", w.forge.comments[7])
			}
		})
	}
}

// A pull request of this repository is worked on, on its own branch, and gets no second
// one.
func TestOwnPullRequest(t *testing.T) {
	w := newWorld(t)
	base := w.branch("topic", map[string]string{"README": "hello\n", "topic": "1\n"})
	w.forge.pulls = append(w.forge.pulls, &forge.Pull{Number: 7, Open: true, Title: "Theirs", Body: "theirs", Head: forge.Branch{Repo: "O/R", Name: "topic"}})
	ev := labeled(7)
	ev.Name, ev.Subject.Pull = "pull_request", true
	_, err := w.run(aJob{ev: ev})
	w.ok(err)
	if _, e := w.only(); e.Key != "two/pr/7" || e.Work.Branch != "topic" {
		t.Errorf("the entry is %+v", e)
	}
	w.drain()
	ended := w.ended()
	if len(w.forge.pulls) != 1 || len(ended) != 1 || ended[0].PR != 7 {
		t.Errorf("pulls %v, ended %v", w.forge.pulls, ended)
	}
	if p := w.forge.pulls[0]; p.Title != "Theirs" || p.Body != "theirs" {
		t.Errorf("the pull request says %q, %q now", p.Title, p.Body)
	}
	if tip := w.mem.Refs()["refs/heads/topic"]; tip == base || tip.String() != ended[0].Work.Commit {
		t.Errorf("topic is at %s, the thread ended at %s", tip, ended[0].Work.Commit)
	}
	if got := w.stickies(7); len(got) != 1 {
		t.Errorf("the comments are %q", got)
	}
}

func TestRouting(t *testing.T) {
	assigned := func(to string, labels ...string) event.Event {
		return event.Event{Name: "issues", Kind: event.Assigned, Sender: event.User{Login: "owner"}, Subject: issue(7, labels...), Assignee: to}
	}
	plain := event.Event{Name: "push", Kind: event.Plain, Sender: event.User{Login: "owner"}}
	byReader := plain
	byReader.Sender.Login = "reader"
	closed := labeled(7)
	closed.Subject.Open = false
	other := labeled(7)
	other.Added = []string{"bug"}
	shout := labeled(7)
	shout.Added = []string{"bug", "UWF"}
	for name, c := range map[string]struct {
		ev  event.Event
		say string // in its place, what owner comments
		in  ci.Inputs
		why string // empty: a thread starts
		key string
	}{
		"none":                       {ev: event.Event{Kind: event.None, Why: "a label was taken off"}, why: "a label was taken off"},
		"another label":              {ev: other, why: "the label is not uwf"},
		"label in capitals":          {ev: shout, key: "two/issue/7"},
		"own label":                  {ev: other, in: ci.Inputs{Label: "bug"}, key: "two/issue/7"},
		"closed":                     {ev: closed, why: "#7 is closed"},
		"assigned to uwf":            {ev: assigned("uwf"), key: "two/issue/7"},
		"assigned to the app":        {ev: assigned("uwf[bot]"), key: "two/issue/7"},
		"assigned to a named bot":    {ev: assigned("our-bot"), in: ci.Inputs{Allow: []string{"our-bot"}}, key: "two/issue/7"},
		"assigned to a person":       {ev: assigned("reader"), in: ci.Inputs{Allow: []string{"reader"}}, why: "not uwf"},
		"assigned, with the label":   {ev: assigned("reader", "uwf"), key: "two/issue/7"},
		"push":                       {ev: plain, why: "neither a thread nor a prompt"},
		"push with a prompt":         {ev: plain, in: ci.Inputs{Prompt: "do it"}, key: "run/42/step"},
		"push of a stranger":         {ev: byReader, in: ci.Inputs{Prompt: "do it"}, why: "can't write"},
		"schedule":                   {ev: event.Event{Kind: event.Schedule}, why: "looked for threads"},
		"schedule with a prompt":     {ev: event.Event{Kind: event.Schedule}, in: ci.Inputs{Prompt: "do it"}, key: "run/42/step"},
		"by hand, with a prompt":     {ev: event.Event{Kind: event.Manual, Sender: event.User{Login: "owner"}, Inputs: map[string]string{"prompt": "do it"}}, key: "run/42/step"},
		"by a token, with a prompt":  {ev: event.Event{Kind: event.Manual, Sender: event.User{Login: "github-actions[bot]", Bot: true}, Inputs: map[string]string{"prompt": "do it"}}, why: "is a bot"},
		"somebody's dispatch event":  {ev: event.Event{Kind: event.Dispatch, Action: "other", Sender: event.User{Login: "owner"}, Inputs: map[string]string{"prompt": "do it"}}, why: "neither"},
		"run: a trigger":             {ev: labeled(7), in: ci.Inputs{Command: ci.CommandRun}, why: "no step to do yet"},
		"a comment without command":  {ev: event.Event{Kind: event.Comment, Subject: issue(7)}, why: "no command"},
		"a command on nothing":       {ev: event.Event{Kind: event.Comment, Command: &event.Command{Verb: "status"}}, why: "no command"},
		"a command without a thread": {say: "/uwf resume", why: "no thread here"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := aJob{run: "42", ev: c.ev, in: c.in}
			if c.say != "" {
				a.ev = w.says(7, "owner", c.say)
			}
			if c.why != "" {
				w.none(a, c.why)
				return
			}
			_, err := w.run(a)
			w.ok(err)
			if _, e := w.only(); e.Key != c.key {
				t.Errorf("the key is %q, want %q", e.Key, c.key)
			}
		})
	}
}

// A thread that a dispatch names has to be there.
func TestUnknownThread(t *testing.T) {
	w := newWorld(t)
	_, err := w.run(aJob{ev: labeled(7)})
	w.ok(err)
	_, err = w.run(aJob{ev: manual(dispatched{inputs: map[string]string{"thread": "01JY0000000000000000000000"}})})
	if codeOf(err) != 2 {
		t.Errorf("exit %d: %v", codeOf(err), err)
	}
	_, err = w.run(aJob{ev: manual(dispatched{inputs: map[string]string{"thread": "../x"}})})
	if codeOf(err) != 2 {
		t.Errorf("exit %d: %v", codeOf(err), err)
	}
}

type gitcasID = plumbing.Hash
