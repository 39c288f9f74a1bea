package runner

import (
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/gitcas"
)

// Whatever a stranger writes, no job answers: not even what is wrong with a command.
func TestStrangersGetNoAnswer(t *testing.T) {
	for _, body := range []string{
		"/uwf start --model=gpt", "/uwf start --agent='sh -c id'", "/uwf start --max-steps=x", "/uwf start one two", "/uwf start ../x",
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
		_, err = gitcas.Open(w.mem, gitcas.Options{Now: w.now}).Update(t.Context(), v, func(v *gitcas.View) (*gitcas.Change, error) {
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
