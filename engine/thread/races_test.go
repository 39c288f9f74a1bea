package thread_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// TestPausedWhilePoked: a pause that is asked for while somebody pokes or retries is
// left to them, and must not get lost.
func TestPausedWhilePoked(t *testing.T) {
	for _, deed := range []string{"poke", "retry"} {
		t.Run(deed, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.start()
				f.steps("r1")
				answer := f.agent
				f.agent = f.fails
				_, err := f.step("f")
				f.code(err, life.KindFailed)
				f.agent = answer
				f.hook = func(point string) {
					if point == deed+" claimed" {
						f.hook = nil
						f.ok(f.engine("other", 1).Pause(f.Context(), testThread, "let me look"))
					}
				}
				f.ok(f.deed(deed))
				runs := len(f.runs)
				_, err = f.step("r2")
				f.says(f.code(err, life.KindSuspended), "let me look")
				if len(f.runs) != runs {
					f.Error("it ran")
				}
				f.sound()
				f.ok(f.deed("resume"))
				f.steps("r3")
			})
		})
	}
}

// TestPokedUnderAnothersClaim: whoever was so slow that its claim was taken over, or cleared
// away, changes nothing and leaves the other one's claim alone.
func TestPokedUnderAnothersClaim(t *testing.T) {
	for name, meanwhile := range map[string]func(f *fixture){
		"taken over": func(f *fixture) { f.claimBy(f.other(0)) },
		"cleared away": func(f *fixture) {
			held, _ := f.view().FindClaim(testThread)
			upd, _ := view.ClaimUpdate(testThread, &held, nil, time.Now())
			_, err := f.mem.Push(f.Context(), wire.PushRequest{Updates: []wire.RefUpdate{upd}})
			f.ok(err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.start()
				f.steps("r1")
				var claim wire.ID
				before := f.entry()
				f.hook = func(point string) {
					if point == "poke claimed" {
						meanwhile(f)
						held, _ := f.view().FindClaim(testThread)
						claim = held.ID
					}
				}
				f.says(f.code(f.deed("poke"), life.KindNotYours), "it changed meanwhile")
				if held, _ := f.view().FindClaim(testThread); held.ID != claim || !life.SameThread(f.entry(), before) {
					f.Errorf("claim %s, want %s; entry %+v", held.ID, claim, f.entry())
				}
			})
		})
	}
}

// TestResumeAnswersWhatWasAsked: whoever loses a race against another answer, or gets no
// reply, must not answer the next question, nor bring a thread back that has ended meanwhile.
func TestResumeAnswersWhatWasAsked(t *testing.T) {
	for name, c := range map[string]struct {
		before, meanwhile func(f *fixture)
		lost              bool // only the reply: the push is taken
		status            string
	}{
		"another question": {func(f *fixture) { f.ok(f.deed("suspend")) }, func(f *fixture) { f.ok(f.deed("resume")); f.ok(f.deed("suspend")) }, false, "suspended"},
		"to its end":       {func(f *fixture) { f.ok(f.deed("suspend")) }, func(f *fixture) { f.ok(f.deed("resume")); f.steps("x") }, false, "ended"},
		"its own way":      {func(f *fixture) { f.ok(f.deed("suspend")) }, func(f *fixture) { f.steps("x") }, true, "ended"},
		"after its end":    {func(f *fixture) { f.steps("r2") }, func(f *fixture) { f.ok(f.deed("resume")); f.steps("x") }, false, "ended"},
		"ended again":      {func(f *fixture) { f.steps("r2") }, func(f *fixture) { f.steps("x") }, true, "ended"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.start()
				f.steps("r1")
				c.before(f)
				once := func(string, wire.PushRequest) error {
					f.remote.after = nil
					f.remote.setBefore(nil)
					c.meanwhile(f)
					return unreachable()
				}
				if f.remote.after = once; !c.lost {
					f.remote.after = nil
					f.remote.setBefore(func(op string, req wire.PushRequest) error {
						if op != "push" {
							return nil
						}
						return once(op, req)
					})
				}
				err := f.engine("late", 1).Resume(f.Context(), thread.ResumeRequest{Thread: testThread, Text: "only to the first question"})
				if c.lost {
					f.ok(err) // it was the answer to the first question, which is over
				} else {
					f.says(f.code(err, life.KindNotYours), "changed meanwhile")
				}
				if got := f.status(); got != c.status {
					f.Errorf("it is %s", got)
				}
				f.sound()
			})
		})
	}
}

// TestAnswersOfNobody: what an entry names as a person's answer is read as hostile.
func TestAnswersOfNobody(t *testing.T) {
	for name, answer := range map[string]func(f *fixture) node.Hash{
		"no text": func(f *fixture) node.Hash { return f.entry().Workflow },
		"too long": func(f *fixture) node.Hash {
			n, h, err := node.New(node.String, strings.Repeat("x", reading.MaxPrompt+1), f.engine("x", 1).Clock.Now())
			f.ok(err)
			e := f.entry()
			_, err = f.store().Push(f.Context(), f.view(), &gitcas.Change{
				Subject: "by hand", Threads: map[gitcas.ThreadID]*gitcas.Entry{testThread: &e},
				Nodes: []gitcas.PlacedNode{{Hash: h, Node: n, Place: gitcas.Place{Thread: testThread, Of: h}}},
			})
			f.ok(err)
			return h
		},
	} {
		for _, status := range []gitcas.Status{gitcas.StatusActive, gitcas.StatusSuspended} {
			t.Run(fmt.Sprintf("%s, %s", name, status), func(t *testing.T) {
				inBubble(t, func(f *fixture) {
					f.start()
					f.steps("r1")
					f.ok(f.deed("suspend"))
					f.ok(f.deed("resume"))
					h := answer(f)
					f.edit(func(e *gitcas.Entry) { e.Next.Answer, e.Status = h, status })
					runs := len(f.runs)
					var err error
					if status == gitcas.StatusActive {
						_, err = f.step("r2")
					} else {
						err = f.deed("resume")
					}
					f.says(f.code(err, life.KindDamaged), string(h), "fork")
					if len(f.runs) != runs {
						f.Error("it ran")
					}
					f.unclaimed()
				})
			})
		}
	}
}
