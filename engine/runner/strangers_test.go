package runner

import (
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/runner/ci"
	"github.com/united-workforce/uwf/engine/runner/event"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas"
)

// Whatever a stranger writes, no job answers: not even what is wrong with a command.
func TestStrangersGetNoAnswer(t *testing.T) {
	for _, body := range []string{
		"/uwf start --cost-usd=x", "/uwf start --agent='sh -c id'", "/uwf start --max-steps=x", "/uwf start one two", "/uwf start ../x",
		"/uwf help", "/uwf status", "/uwf resume --max-steps=-1", "/uwf cancel", "/uwf fork 9", "/uwf retry --thread=x",
	} {
		w := newWorld(t)
		w.none(aJob{ev: w.says(7, "reader", body)}, "can't write")
		if len(w.forge.comments[7]) != 0 {
			t.Errorf("%s: a stranger made the job comment: %v", body, w.forge.comments[7])
		}
	}
}

// Limits of a command are whole, and not beyond what a thread can have: none of them
// silently becomes no limit.
func TestStartWithOddLimits(t *testing.T) {
	for _, n := range []string{"0.5", "Inf", "1e30", "NaN", "-1", "0"} {
		w := newWorld(t)
		w.none(aJob{ev: w.says(7, "owner", "/uwf start --max-steps="+n)}, "write a whole number")
	}
}

// The id of the comment is read from the state branch: one that leads to somebody
// else's comment is not believed, and the thread's own is found by its marker.
func TestCommentOfSomebodyElse(t *testing.T) {
	for _, body := range []string{"I can reproduce it.", "> <!-- uwf:thread=ID -->\nquoted", "<!-- uwf:thread=01JY0000000000000000000000 -->\nof another thread"} {
		w := newWorld(t)
		_, err := w.run(aJob{ev: labeled(7)})
		w.ok(err)
		id, _ := w.only()
		theirs := forge.Comment{ID: 3, Author: "alice", Body: strings.ReplaceAll(body, "ID", string(id))}
		w.forge.comments[3] = []forge.Comment{theirs}
		v := w.view(id)
		_, err = gitcas.Open(w.mem, gitcas.Options{Now: w.now, Sleep: w.sleep}).Update(t.Context(), v, func(v *gitcas.View) (*gitcas.Change, error) {
			e, _ := v.Entry(id)
			e.Comment = theirs.ID
			return &gitcas.Change{Subject: "hostile", Threads: map[gitcas.ThreadID]*gitcas.Entry{id: &e}}, nil
		}, id)
		w.ok(err)
		d, _ := w.forge.take()
		d.inputs["comment"] = "3"
		w.forge.sent = append(w.forge.sent, d)
		w.drain()
		if got := w.forge.comments[3]; len(got) != 1 || got[0] != theirs {
			t.Errorf("alice's comment is %+v now", got)
		}
		w.delivered(7, 2)
	}
}

// Where nobody can tell who may write, it is said how to be let in: once, however many
// commands strangers give.
func TestUnknownAreToldOnce(t *testing.T) {
	w := newWorld(t)
	for _, login := range []string{"ghost", "ghoul", "ghost"} {
		w.none(aJob{ev: w.says(7, login, "/uwf start")}, "can't find out")
	}
	if got := w.forge.comments[7]; len(got) != 1 || !strings.Contains(got[0].Body, "allow") {
		t.Errorf("%d answers: %v", len(got), got)
	}
	w.none(aJob{ev: w.says(8, "ghost", "/uwf start")}, "can't find out")
	if got := w.forge.comments[8]; len(got) != 1 {
		t.Errorf("on another issue there are %d answers", len(got))
	}
}

// A pull request that a person opened from the thread's branch is taken for the
// thread's, but says what they wrote.
func TestPullOfAPerson(t *testing.T) {
	w := newWorld(t)
	_, err := w.run(aJob{ev: labeled(7)})
	w.ok(err)
	_, e := w.only()
	w.forge.pulls = append(w.forge.pulls, &forge.Pull{Number: 9, Open: true, Title: "Theirs", Body: "theirs", Head: forge.Branch{Repo: "o/r", Name: e.Work.Branch}})
	w.drain()
	if p := w.forge.pulls; len(p) != 1 || p[0].Title != "Theirs" || p[0].Body != "theirs" {
		t.Errorf("the pull requests are %+v", p)
	}
	if e := w.ended(); len(e) != 1 || e[0].PR != 9 {
		t.Errorf("ended %+v", e)
	}
}

// What stands in the issue counts when the thread starts. Whatever becomes of it, or of
// the comments on it, no agent reads it, also where another event brings it along.
func TestTextIsFrozen(t *testing.T) {
	w := newWorld(t)
	var read []string
	w.say = func(t task.Task) (map[string]any, map[string]string, error) {
		read = append(read, t.Prompt)
		if t.Role == "a" {
			return map[string]any{"$status": "done"}, map[string]string{"a": "1\n"}, nil
		}
		return map[string]any{"$status": "approved"}, nil, nil
	}
	_, err := w.run(aJob{ev: labeled(7)})
	w.ok(err)
	i := w.forge.issue(7)
	i.Title, i.Body = "Evil title", "Evil body"
	w.forge.comments[7] = append(w.forge.comments[7], forge.Comment{ID: 9, Author: "stranger", Body: "Evil comment"})
	for _, ev := range []event.Event{labeled(7), w.says(7, "owner", "/uwf start"), w.says(7, "owner", "/uwf retry")} {
		ev.Subject.Title, ev.Subject.Body = i.Title, i.Body
		_, err := w.run(aJob{ev: ev})
		w.ok(err)
		if len(w.view().Threads()) == 0 {
			break
		}
	}
	w.drain()
	if e := w.delivered(7, 2); strings.Contains(w.prompt(e), "Evil") {
		t.Errorf("the thread's text is %q", w.prompt(e))
	}
	if len(read) != 2 {
		t.Fatalf("%d prompts", len(read))
	}
	for _, p := range read {
		if !strings.Contains(p, "Please mend it.") || strings.Contains(p, "Evil") {
			t.Errorf("an agent reads: %s", p)
		}
	}
	if p := w.forge.pulls[0]; strings.Contains(p.Title+p.Body, "Evil") {
		t.Errorf("the pull request says %+v", p)
	}
}

// Who asks in vain is told why.
func TestVainCommands(t *testing.T) {
	w := newWorld(t)
	ev := w.says(7, "owner", "/uwf start")
	ev.Subject.Open = false
	w.none(aJob{ev: ev}, "is closed")
	w.replied(7, "open it again")

	w = newWorld(t)
	w.hook = func(p string) {
		if p == "claim" {
			w.hook = nil
			_, err := w.run(aJob{ev: w.says(7, "owner", "/uwf retry")})
			w.ok(err)
		}
	}
	_, err := w.run(aJob{ev: labeled(7)})
	w.ok(err)
	w.replied(7, "Another job is working on it.")
	w.drain()
	w.delivered(7, 2)
}

// The pull request that a thread works on is closed, or merged, before its end: no agent works
// on until a person says so, and nobody is told that it has the changes.
func TestPullClosedMeanwhile(t *testing.T) {
	for _, merged := range []bool{false, true} {
		w := newWorld(t)
		what := map[bool]string{false: "#7 was closed", true: "#7 was merged"}[merged]
		w.branch("topic", map[string]string{"README": "hello\n", "topic": "1\n"})
		pull := &forge.Pull{Number: 7, Open: true, Title: "Theirs", Body: "theirs", Head: forge.Branch{Repo: "o/r", Name: "topic"}}
		w.forge.pulls = append(w.forge.pulls, pull)
		ev := labeled(7)
		ev.Name, ev.Subject.Pull = "pull_request", true
		_, err := w.run(aJob{ev: ev})
		w.ok(err)
		// Before an agent works: it doesn't.
		pull.Open, pull.Merged, pull.ClosedAt = false, merged, w.now()
		d, _ := w.forge.take()
		_, err = w.hop(d)
		w.ok(err)
		w.waits(1, "pull request "+what)
		pull.Open, pull.Merged = true, false
		w.later(time.Minute)
		// While the last one works.
		w.say = func(task.Task) (map[string]any, map[string]string, error) {
			w.later(time.Minute)
			pull.Open, pull.Merged, pull.ClosedAt = false, merged, w.now()
			return map[string]any{"$status": "approved"}, nil, nil
		}
		_, err = w.run(aJob{ev: w.says(7, "owner", "/uwf retry --thread="+string(first(w.only())))})
		w.ok(err)
		w.waits(2, "pull request "+what)
		w.later(time.Minute)
		_, err = w.run(aJob{ev: w.says(7, "owner", "/uwf resume --thread="+string(first(w.only())))})
		w.ok(err)
		if got := w.stickies(7); len(got) != 1 || !strings.Contains(got[0], what) || !strings.Contains(got[0], "compare/main...topic") {
			t.Errorf("the comment says %q, want %q", got, what)
		}
		if e := w.ended(); len(e) != 1 || e[0].PR != 0 || len(w.forge.pulls) != 1 {
			t.Errorf("ended %+v, pull requests %v", e, w.forge.pulls)
		}
	}
}

// The branch that a thread works on is read from the state branch, too: nobody gets a
// job's token to push to a branch that theirs can't.
func TestBranchOfSomebodyElse(t *testing.T) {
	for _, branch := range []string{"main", "uwf-state", "release"} {
		for _, ended := range []bool{false, true} {
			w := newWorld(t)
			before := w.branch("release", map[string]string{"README": "hello\n"})
			_, err := w.run(aJob{ev: labeled(7)})
			w.ok(err)
			id, was := w.only()
			_, err = gitcas.Open(w.mem, gitcas.Options{Now: w.now, Sleep: w.sleep}).Update(t.Context(), w.view(id), func(v *gitcas.View) (*gitcas.Change, error) {
				e, _ := v.Entry(id)
				e.Work.Branch = branch
				if !ended { // the commit fits the branch
					e.Work.Commit = w.mem.Refs()["refs/heads/"+branch].String()
				} else {
					e.Status, e.Next, e.Deliver = gitcas.StatusEnded, nil, true
				}
				return &gitcas.Change{Subject: "hostile", Threads: map[gitcas.ThreadID]*gitcas.Entry{id: &e}}, nil
			}, id)
			w.ok(err)
			refs := w.mem.Refs()
			d, _ := w.forge.take()
			if _, err := w.hop(d); codeOf(err) == 0 || !strings.Contains(err.Error(), "may not work on the branch") {
				t.Errorf("%s, ended %v: %v", branch, ended, err)
			}
			if now := w.mem.Refs(); now["refs/heads/main"] != refs["refs/heads/main"] || now["refs/heads/release"] != before || len(w.ran) != 1 {
				t.Errorf("%s was written, or an agent ran: %v (%v)", branch, w.ran, was.Head)
			}
			w.later(time.Hour)
			w.sweepRun()
			if len(w.forge.sent) != 0 {
				t.Errorf("another job was started: %v", w.forge.sent)
			}
		}
	}
}

// A pull request that is a fork's is not worked on, although this repository has a branch
// of the same name.
func TestBranchOfAFork(t *testing.T) {
	w := newWorld(t)
	w.branch("topic", map[string]string{"README": "hello\n"})
	pull := &forge.Pull{Number: 7, Open: true, Head: forge.Branch{Repo: "o/r", Name: "topic"}}
	w.forge.pulls = []*forge.Pull{pull}
	ev := labeled(7)
	ev.Name, ev.Subject.Pull = "pull_request", true
	_, err := w.run(aJob{ev: ev})
	w.ok(err)
	tip := w.mem.Refs()["refs/heads/topic"]
	pull.Head.Repo = "stranger/r"
	w.drain()
	if now := w.mem.Refs()["refs/heads/topic"]; len(w.ran) != 1 || now != tip {
		t.Errorf("agents ran as %v, topic is at %s, was at %s", w.ran, now, tip)
	}
	if got := w.stickies(7); len(got) != 1 || !strings.Contains(got[0], "may not work on the branch") {
		t.Errorf("the comments are %q", got)
	}
}

func first(id gitcas.ThreadID, _ gitcas.Entry) gitcas.ThreadID { return id }

// A title is plain text on a forge: agents read all of it. What a body hides they don't read,
// but they are told of it.
func TestTitleIsPlainText(t *testing.T) {
	for _, title := range []string{"[Bug]: Segfault", "<!-- a --> in &lt;b&gt; is lost", "![a](b)"} {
		w := newWorld(t)
		var read string
		w.say = func(t task.Task) (map[string]any, map[string]string, error) {
			read = t.Prompt
			return map[string]any{"$status": "done"}, nil, nil
		}
		ev := labeled(7)
		ev.Subject.Title, ev.Subject.Body = title, "Seen<!-- hidden -->"
		_, err := w.run(aJob{ev: ev})
		w.ok(err)
		if want := "# Issue #7: " + title + "\n\nSeen\n\n(1 part that readers do not see was left out.)"; !strings.Contains(read, want) {
			t.Errorf("%q is not in the prompt:\n%s", want, read)
		}
		if _, e := w.only(); e.Title != title {
			t.Errorf("%q: the thread's title is %q", title, e.Title)
		}
	}
}

// The input prompt may hold a stranger's Markdown: what nobody sees there is left out, and told.
func TestPromptHidesNothing(t *testing.T) {
	w := newWorld(t)
	var read string
	w.say = func(t task.Task) (map[string]any, map[string]string, error) {
		read = t.Prompt
		return map[string]any{"$status": "done"}, nil, nil
	}
	_, err := w.run(aJob{ev: event.Event{Kind: event.Schedule, Name: "schedule"}, in: ci.Inputs{Prompt: "Write <!-- x -->into a.html\u200b"}})
	w.ok(err)
	if want := "\nWrite into a.html\n\n(1 part that readers do not see was left out.)"; !strings.Contains(read, want) {
		t.Errorf("%q is not in the prompt:\n%s", want, read)
	}
}
