package runner

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/runner/ci"
	"github.com/united-workforce/uwf/engine/runner/event"
	"github.com/united-workforce/uwf/engine/runner/report"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/gitcas/wire"
)

const stateRef = "refs/heads/uwf-state"

// setRef moves a ref by hand; the zero id deletes it.
func (w *world) setRef(name string, to wire.ID) {
	w.Helper()
	_, err := w.mem.Push(w.Context(), wire.PushRequest{Updates: []wire.RefUpdate{{Name: name, Old: w.mem.Refs()[name], New: to}}})
	w.ok(err)
}

// commitByHand commits a file to the state branch, as somebody without uwf does.
func (w *world) commitByHand(path, text string) {
	w.Helper()
	tip := w.mem.Refs()[stateRef]
	o, _ := w.mem.Get(tip)
	c, err := gitobj.DecodeCommit(o.Data)
	w.ok(err)
	blob := wire.NewObject(plumbing.BlobObject, []byte(text))
	w.mem.AddObjects(blob)
	c.Tree, c.Parents, c.Message = w.withFile(c.Tree, strings.Split(path, "/"), blob.ID), []wire.ID{tip}, "by hand"
	data, err := gitobj.EncodeCommit(c)
	w.ok(err)
	commit := wire.NewObject(plumbing.CommitObject, data)
	w.mem.AddObjects(commit)
	w.setRef(stateRef, commit.ID)
}

// withFile is a folder with a file in it.
func (w *world) withFile(tree wire.ID, path []string, blob wire.ID) wire.ID {
	w.Helper()
	o, _ := w.mem.Get(tree)
	list, err := gitobj.DecodeTree(o.Data)
	w.ok(err)
	i := slices.IndexFunc(list, func(e gitobj.Entry) bool { return e.Name == path[0] })
	switch {
	case len(path) > 1:
		list[i].ID = w.withFile(list[i].ID, path[1:], blob)
	case i >= 0:
		list[i].ID = blob
	default:
		list = append(list, gitobj.Entry{Name: path[0], Mode: filemode.Regular, ID: blob})
	}
	data, err := gitobj.EncodeTree(list)
	w.ok(err)
	made := wire.NewObject(plumbing.TreeObject, data)
	w.mem.AddObjects(made)
	return made.ID
}

// damages are ways to break the store of a thread whose next job is due. Each says what
// its comment has to say then.
func damages() map[string]func(w *world) (says []string, unread bool) {
	restore := func(w *world) []string {
		return []string{"damaged", "git fetch ", w.mem.Refs()["refs/uwf/store"].String() + ":" + stateRef}
	}
	return map[string]func(w *world) ([]string, bool){
		"deleted": func(w *world) ([]string, bool) {
			w.setRef(stateRef, wire.ID{})
			return restore(w), false
		},
		"set back": func(w *world) ([]string, bool) {
			o, _ := w.mem.Get(w.mem.Refs()[stateRef])
			c, err := gitobj.DecodeCommit(o.Data)
			w.ok(err)
			w.setRef(stateRef, c.Parents[0])
			return append(restore(w), "git push --force "), false
		},
		"overwritten": func(w *world) ([]string, bool) {
			w.commitByHand("threads.yaml", "{")
			return restore(w), false
		},
		"a broken node": func(w *world) ([]string, bool) {
			id, e := w.only()
			w.commitByHand(fmt.Sprintf("threads/%s/%s.json", id, e.Head), "{}")
			return restore(w), false
		},
		"a broken node, by uwf": func(w *world) ([]string, bool) {
			id, e := w.only()
			w.commitByHand(fmt.Sprintf("threads/%s/%s.json", id, e.Head), "{}")
			w.setRef("refs/uwf/store", w.mem.Refs()[stateRef])
			return []string{"damaged", ".json"}, false
		},
		"a format of tomorrow": func(w *world) ([]string, bool) {
			v := w.view()
			w.commitByHand("VERSION", "format: 9\nstore: "+v.StoreID()+"\n")
			w.setRef("refs/uwf/store", w.mem.Refs()[stateRef])
			return []string{"damaged", "Use a newer uwf."}, true
		},
		"all gone": func(w *world) ([]string, bool) {
			w.setRef(stateRef, wire.ID{})
			w.setRef("refs/uwf/store", wire.ID{})
			return []string{"damaged", "from a clone that has it"}, true
		},
	}
}

// says checks that a text says all of it.
func (w *world) tells(where, text string, all []string) {
	w.Helper()
	for _, want := range all {
		if !strings.Contains(text, want) {
			w.Errorf("%s doesn't say %q: %.400s", where, want, text)
		}
	}
}

// Whatever brings a job to a damaged store: it is red, the issue says what is wrong and
// what mends it, and once it is mended the thread goes on.
func TestDamageIsTold(t *testing.T) {
	for name, damage := range damages() {
		for _, by := range []string{"hop", "label", "assignment", "retry", "status", "resume", "schedule"} {
			t.Run(name+"/"+by, func(t *testing.T) {
				w := newWorld(t)
				_, err := w.run(aJob{ev: labeled(7)})
				w.ok(err)
				d, _ := w.forge.take()
				before := w.mem.Refs()
				w.later(time.Hour)
				says, unread := damage(w)
				if name == "all gone" && by != "hop" {
					t.Skip("nobody can know that there was a store")
				}
				ev, asked := map[string]event.Event{
					"hop": manual(d), "label": labeled(7), "schedule": scheduled(),
					"assignment": {Name: "issues", Kind: event.Assigned, Sender: event.User{Login: "owner"}, Subject: issue(7, "uwf"), Assignee: "owner"},
				}[by], by == "label" || by == "assignment"
				if ev.Name == "" {
					ev, asked = w.says(7, "owner", "/uwf "+by), true
				}
				out, err := w.run(aJob{run: "42", ev: ev})
				if d, sent := w.forge.take(); sent && by == "schedule" { // it reads no threads: their jobs do
					out, err = w.hop(d)
				}
				if codeOf(err) != 5 {
					t.Errorf("the job ended with %v: %+v", err, out)
				}
				if by == "label" { // its rescue adds nothing
					_, _ = w.after(ci.CommandRescue, "42", ev, failed)
				}
				asked = asked && (unread || ev.Command != nil)
				if got := w.stickies(7); !unread || by == "hop" {
					if len(got) != 1 {
						t.Fatalf("the comments are %q", got)
					}
					w.tells("the comment", got[0], says)
				}
				if got := w.replies(7); asked && len(got) != 1 || !asked && len(got) != 0 {
					t.Fatalf("the answers are %q", got)
				} else if asked {
					w.tells("the answer", got[0], says[1:])
				}
				if len(w.ran) != 1 || len(w.forge.sent) != 0 {
					t.Errorf("agents ran as %v, sent %v", w.ran, w.forge.sent)
				}
				for _, ref := range []string{stateRef, "refs/uwf/store"} {
					w.setRef(ref, before[ref])
				}
				w.command(7, "/uwf retry")
				w.drain()
				w.delivered(7, 2)
			})
		}
	}
}

// A scheduled job starts that of a broken thread too, which is red and makes it wait: no
// other one is started.
func TestOneBrokenThread(t *testing.T) {
	w := newWorld(t)
	_, err := w.run(aJob{ev: labeled(7)})
	w.ok(err)
	id, e := w.only()
	_, err = w.run(aJob{ev: labeled(8)})
	w.ok(err)
	w.forge.sent = nil
	w.later(time.Hour)
	w.commitByHand(fmt.Sprintf("threads/%s/%s.json", id, e.Head), "{}")
	var red []int // in each round
	for range 4 {
		w.sweepRun()
		red = append(red, 0)
		for d, ok := w.forge.take(); ok; d, ok = w.forge.take() {
			if _, err := w.hop(d); d.inputs["thread"] == string(id) && codeOf(err) == 5 {
				red[len(red)-1]++
			}
		}
		w.later(time.Hour)
	}
	// Another thread's job writes on top of it in the first round.
	if red[0] == 0 || red[2] != 0 || red[3] != 0 {
		t.Errorf("red jobs: %v", red)
	}
	if _, e := w.only(); e.Status != gitcas.StatusSuspended || !strings.Contains(e.Suspended.Reason, ".json") {
		t.Errorf("the entry is %+v", e)
	}
	if _, err := w.run(aJob{ev: w.says(9, "owner", "/uwf help")}); err != nil {
		t.Errorf("a job about something else ended with %v", err)
	}
}

// The id of the comment, which anybody may have written who can push the state branch,
// leads to somebody else's: nothing is written there.
func TestDamageOnSomebodyElsesIssue(t *testing.T) {
	w := newWorld(t)
	_, err := w.run(aJob{ev: labeled(7)})
	w.ok(err)
	d, _ := w.forge.take()
	w.forge.comments[3] = []forge.Comment{{ID: 3, Number: 3, Author: "alice", Body: "I can reproduce it."}}
	d.inputs["comment"] = "3"
	damages()["a format of tomorrow"](w)
	if _, err := w.hop(d); codeOf(err) != 5 {
		t.Errorf("the job ended with %v", err)
	}
	if got := w.forge.comments[3]; len(got) != 1 || got[0].Body != "I can reproduce it." {
		t.Errorf("#3 says %v", got)
	}
}

// A schedule that finds the same damage each time says so once.
func TestDamageIsToldOnce(t *testing.T) {
	w := newWorld(t)
	for _, n := range []int{7, 8} {
		_, err := w.run(aJob{ev: labeled(n)})
		w.ok(err)
	}
	w.forge.sent = nil
	w.later(time.Hour)
	w.setRef(stateRef, wire.ID{})
	for n := range 3 {
		before := len(w.forge.log)
		if _, err := w.run(aJob{ev: scheduled()}); codeOf(err) != 5 {
			t.Fatalf("the job ended with %v", err)
		}
		wrote := slices.ContainsFunc(w.forge.log[before:], func(op string) bool { return op == "update-comment" || op == "create-comment" })
		if wrote != (n == 0) {
			t.Errorf("run %d: %v", n, w.forge.log[before:])
		}
	}
	for _, n := range []int{7, 8} {
		if got := w.stickies(n); len(got) != 1 || !strings.Contains(got[0], "damaged") {
			t.Errorf("#%d says %q", n, got)
		}
	}
}

// protected is a remote whose state branch jobs may not push to.
type protected struct{ wire.Remote }

func (p protected) Push(ctx context.Context, req wire.PushRequest) (time.Time, error) {
	for _, u := range req.Updates {
		if u.Name == stateRef {
			return time.Time{}, &wire.RemoteError{Op: "push", URL: "https://forge.example/o/r.git", Ref: u.Name, Kind: wire.ErrProtected, Detail: "pre-receive hook declined"}
		}
	}
	return p.Remote.Push(ctx, req)
}

// A state branch that jobs may not push to is told, with the page that mends it, and each
// command gets its answer.
func TestProtectedIsTold(t *testing.T) {
	asks := func(w *world) {
		w.say = func(task.Task) (map[string]any, map[string]string, error) {
			return map[string]any{"$status": "ask", "note": "?"}, nil, nil
		}
	}
	for name, c := range map[string]struct {
		before func(w *world) // what the first job meets
		ev     func(w *world) event.Event
		sticky bool // the thread's comment tells, not an answer
		first  bool // there is no thread yet
	}{
		"the first label":  {ev: func(*world) event.Event { return labeled(7) }, first: true},
		"/uwf start":       {ev: func(w *world) event.Event { return w.says(7, "owner", "/uwf start") }, first: true},
		"a hop":            {ev: func(w *world) event.Event { d, _ := w.forge.take(); return manual(d) }, sticky: true},
		"/uwf retry":       {ev: func(w *world) event.Event { return w.says(7, "owner", "/uwf retry") }, sticky: true},
		"retry, failed":    {before: func(w *world) { w.say = fails }, ev: func(w *world) event.Event { return w.says(7, "owner", "/uwf retry") }},
		"resume, failed":   {before: func(w *world) { w.say = fails }, ev: func(w *world) event.Event { return w.says(7, "owner", "/uwf resume\nlook") }},
		"/uwf resume":      {before: asks, ev: func(w *world) event.Event { return w.says(7, "owner", "/uwf resume\nyes") }},
		"/uwf cancel":      {ev: func(w *world) event.Event { return w.says(7, "owner", "/uwf cancel") }},
		"/uwf fork":        {ev: func(w *world) event.Event { return w.says(7, "owner", "/uwf fork 0") }},
		"limit at the hop": {before: func(w *world) { w.limits.MaxSteps = 1 }, ev: func(w *world) event.Event { d, _ := w.forge.take(); return manual(d) }, sticky: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if c.before != nil {
				c.before(w)
			}
			if !c.first {
				_, _ = w.run(aJob{ev: labeled(7)}) // it may fail
			}
			w.wrap = func(r wire.Remote) wire.Remote { return protected{r} }
			w.forge.comments[7] = slices.DeleteFunc(w.forge.comments[7], func(c forge.Comment) bool { return strings.Contains(c.Body, "reply") })
			a := aJob{ev: c.ev(w)}
			if _, err := w.run(a); codeOf(err) == 0 {
				t.Error("the job is green")
			}
			says := []string{"pre-receive hook declined", "uwf-state", "https://forge.example/o/r/settings/rules", "uwf doctor"}
			if c.sticky {
				got := w.stickies(7)
				if len(got) != 1 || len(w.replies(7)) != 0 {
					t.Fatalf("the comments are %q, the answers %q", got, w.replies(7))
				}
				w.tells("the comment", got[0], says)
				return
			}
			if got := w.replies(7); len(got) != 1 {
				t.Fatalf("the answers are %q", got)
			}
			w.tells("the answer", w.replies(7)[0], says)
		})
	}
}

// /uwf retry gets an answer in every state of a thread: the thread's comment says what
// follows, or there is one of its own.
func TestRetryIsAnswered(t *testing.T) {
	started := func(w *world) { _, _ = w.run(aJob{ev: labeled(7)}) } // it may fail
	for name, c := range map[string]struct {
		state func(w *world)
		says  string // an answer of its own; empty: the thread goes on
	}{
		"none at all":       {func(*world) {}, "there is no thread here"},
		"its job is coming": {started, ""},
		"its job got lost":  {func(w *world) { started(w); w.forge.sent = nil; w.later(time.Hour) }, ""},
		"its job died":      {func(w *world) { started(w); w.hold("", time.Hour) }, ""},
		"running":           {func(w *world) { started(w); w.hold("", 0) }, "Another job is working on it."},
		"taken":             {func(w *world) { started(w); w.hold("", 0) }, ""},
		"taken from nobody": {started, ""},
		"taken, but it asks": {func(w *world) {
			w.say = func(task.Task) (map[string]any, map[string]string, error) {
				return map[string]any{"$status": "ask", "note": "Which?"}, nil, nil
			}
			started(w)
			w.hold("", 0)
		}, "it waits for a person"},
		"failed": {func(w *world) { w.say = fails; started(w); w.say = nil }, ""},
		"asks": {func(w *world) {
			w.say = func(task.Task) (map[string]any, map[string]string, error) {
				return map[string]any{"$status": "ask", "note": "Which?"}, nil, nil
			}
			started(w)
		}, "answer with `/uwf resume`"},
		"stranded": {func(w *world) {
			w.forge.before = func(op string) error {
				if op == "dispatch" {
					return fault(forge.ErrForbidden, false)
				}
				return nil
			}
			started(w)
			w.forge.before = nil
		}, ""},
		"limited":   {func(w *world) { w.limits.MaxSteps = 1; started(w); w.drain() }, ""},
		"ended":     {func(w *world) { started(w); w.drain() }, "It is over"},
		"cancelled": {func(w *world) { started(w); w.command(7, "/uwf cancel") }, "It is over"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c.state(w)
			w.forge.mu.Lock()
			written := len(w.forge.log)
			w.forge.mu.Unlock()
			say := "/uwf retry"
			if strings.HasPrefix(name, "taken") {
				say += " --take"
			}
			_, err := w.run(aJob{ev: w.says(7, "owner", say)})
			if err != nil && name != "limited" {
				t.Errorf("the job ended with %v", err)
			}
			if c.says != "" {
				w.replied(7, c.says)
				return
			}
			wrote := slices.ContainsFunc(w.forge.log[written:], func(op string) bool { return op == "update-comment" || op == "create-comment" })
			if !wrote || len(w.replies(7)) != 0 {
				t.Errorf("it was not answered: %v, %q", w.forge.log[written:], w.replies(7))
			}
		})
	}
}

// hold makes a claim on the one thread, of a job that was last heard of a while ago.
func (w *world) hold(purpose string, ago time.Duration) {
	w.Helper()
	id, e := w.only()
	at := w.now()
	claim := &gitcas.Claim{Run: "99", Attempt: 1, Host: "elsewhere", Head: e.Head, For: purpose, Since: at.Add(-ago).UnixMilli(), Renewed: at.Add(-ago).UnixMilli()}
	upd, objs := view.ClaimUpdate(id, nil, claim, at)
	_, err := w.mem.Push(w.Context(), wire.PushRequest{Updates: []wire.RefUpdate{upd}, Objects: objs})
	w.ok(err)
}

// Where another job takes the thread at the same moment, who asked is told so.
func TestRetryThatComesTooLate(t *testing.T) {
	w := newWorld(t)
	_, err := w.run(aJob{ev: labeled(7)})
	w.ok(err)
	d, _ := w.forge.take()
	ev := w.says(7, "owner", "/uwf retry")
	first := true
	w.wrap = func(r wire.Remote) wire.Remote {
		if !first {
			return r
		}
		first = false
		return &overtaken{Remote: r, by: func() {
			_, err := w.hop(d)
			w.ok(err)
		}}
	}
	_, err = w.run(aJob{ev: ev})
	w.ok(err)
	if got := w.replies(7); len(got) != 1 || !strings.Contains(got[0], "nothing was done") {
		t.Errorf("the answers are %q", got)
	}
	w.delivered(7, 2)
}

// overtaken is a remote at which somebody else is quicker with the first push.
type overtaken struct {
	wire.Remote
	by func()
}

func (o *overtaken) Push(ctx context.Context, req wire.PushRequest) (time.Time, error) {
	if by := o.by; by != nil {
		o.by = nil
		by()
	}
	return o.Remote.Push(ctx, req)
}

// Errors that may pass are answered, too: who asks in vain is not left waiting.
func TestRetryDuringAnOutage(t *testing.T) {
	w := newWorld(t)
	_, err := w.run(aJob{ev: labeled(7)})
	w.ok(err)
	w.wrap = func(r wire.Remote) wire.Remote { return away{r} }
	if _, err := w.run(aJob{ev: w.says(7, "owner", "/uwf retry")}); codeOf(err) == 0 {
		t.Error("the job is green")
	}
	w.replied(7, "may be over soon")
}

type away struct{ wire.Remote }

func (away) List(context.Context, ...string) (wire.Listing, error) {
	return wire.Listing{}, &wire.RemoteError{Op: "list refs", Kind: wire.ErrUnreachable, Detail: "connection refused"}
}

// A job that died shows as such at the next look, and so does one that never came.
func TestLostJobsShow(t *testing.T) {
	for name, c := range map[string]struct {
		died  bool // in its step; else it never came
		look  func(w *world)
		says  string
		again string
	}{
		"died, a status":       {true, func(w *world) { w.askStatus() }, "The job for step 2 died; nothing was heard of it after", "/uwf retry"},
		"not there, a status":  {false, func(w *world) { w.askStatus() }, "The job for step 2 has not begun; it has been due since", "/uwf retry"},
		"refused, by a sweep":  {false, func(w *world) { w.refuseDispatch(); w.sweepRun() }, "The job for step 2 has not begun; it has been due since", "/uwf retry"},
		"on its way, a status": {false, func(w *world) { w.ahead = 0; w.command(7, "/uwf status") }, "the job for it is on its way", "/uwf retry"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			_, err := w.run(aJob{ev: labeled(7)})
			w.ok(err)
			w.forge.sent = nil
			if c.died {
				w.hold("", 0)
			}
			w.later(time.Hour)
			c.look(w)
			if got := w.stickies(7); len(got) != 1 || !strings.Contains(got[0], c.says) || !strings.Contains(got[0], c.again) {
				t.Errorf("the comment says %q, want %q and %q", got, c.says, c.again)
			}
		})
	}
}

// A delivery whose job died is one.
func TestLostDeliveryShows(t *testing.T) {
	w := newWorld(t)
	if !w.killed(aJob{ev: labeled(7), in: ci.Inputs{StepsPerJob: 5}}, "deliver-claimed", 1) {
		t.Fatal("the job was not killed")
	}
	if _, e := w.only(); !e.Deliver {
		t.Fatalf("the entry is %+v", e)
	}
	w.later(time.Hour)
	w.askStatus()
	if got := w.stickies(7); len(got) != 1 || !strings.Contains(got[0], "All steps are done, but the job that delivers the result died") {
		t.Errorf("the comment says %q", got)
	}
	w.command(7, "/uwf retry")
	w.delivered(7, 2)
}

// askStatus asks how the thread is, in a job that starts no others.
func (w *world) askStatus() {
	w.Helper()
	_, err := w.run(aJob{ev: w.says(7, "owner", "/uwf status"), in: ci.Inputs{Dispatch: ci.DispatchOff}})
	w.ok(err)
}

func (w *world) refuseDispatch() {
	w.forge.before = func(op string) error {
		if op == "dispatch" {
			return fault(forge.ErrForbidden, false)
		}
		return nil
	}
}

// What the forge said is what it said; our own words, and git's, are not put into its mouth.
func TestWhoseWords(t *testing.T) {
	const forges = "This is what the forge said:"
	w := newWorld(t)
	w.refuseDispatch()
	_, err := w.run(aJob{ev: labeled(7)})
	if got := w.stickies(7); err == nil || len(got) != 1 || !strings.Contains(got[0], forges) {
		t.Errorf("%v: %q", err, got)
	}
	w = newWorld(t)
	a := aJob{ev: labeled(7)}
	r := w.runner(&a)
	r.Job.WorkflowFile = ""
	_, err = r.Run(t.Context(), a.ev)
	if got := w.stickies(7); err == nil || len(got) != 1 || strings.Contains(got[0], forges) || !strings.Contains(got[0], "GITHUB_WORKFLOW_REF") {
		t.Errorf("%v: %q", err, got)
	}
	if p := (report.Failure{Phase: "deliver"}); p.ByForge {
		t.Error("a failure is the forge's by default")
	}
}

// Tries count on, also after a person let the step be tried again.
func TestTriesCount(t *testing.T) {
	w := newWorld(t)
	w.say = fails
	_, _ = w.run(aJob{ev: labeled(7)})
	for _, want := range []string{"nothing goes on by itself", "This was try 2, and try 1 since", "This was try 3, and try 1 since"} {
		if got := w.stickies(7); len(got) != 1 || !strings.Contains(got[0], want) {
			t.Fatalf("the comment says %q, want %q", got, want)
		}
		_, _ = w.run(aJob{ev: w.says(7, "owner", "/uwf retry")})
	}
	if _, e := w.only(); e.Head == (node.Hash("")) || len(e.Attempts) != 4 {
		t.Errorf("the entry is %+v", e)
	}
	w.command(7, "/uwf status")
	if got := w.stickies(7); !strings.Contains(got[0], "for the 4th time") {
		t.Errorf("the comment says %q", got)
	}
}
