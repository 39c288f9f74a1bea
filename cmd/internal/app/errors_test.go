package app

import (
	"errors"
	"fmt"
	"testing"

	"github.com/united-workforce/uwf/engine/deadline"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/workbranch"
	"github.com/united-workforce/uwf/gitcas"
)

func TestErrorsSayWhatToDo(t *testing.T) {
	limit := moderator.Limits{Tokens: 5}.Check(moderator.Totals{Tokens: 7}, "a")
	failed := func(change func(*life.FailedError)) error {
		e := &life.FailedError{Thread: "T", Role: "a", Phase: "agent", Attempt: "R", Show: "git show R", Err: errors.New("x")}
		change(e)
		return e
	}
	waits := func(role, reason string, change func(*gitcas.Entry)) error {
		e := gitcas.Entry{Status: gitcas.StatusSuspended, Suspended: &gitcas.Suspended{Role: role, Reason: reason}}
		change(&e)
		return life.NewWaitingError("T", e)
	}
	asIs := func(*gitcas.Entry) {}
	moved := life.Refuse(life.Step, "T", "x")
	moved.Kept, moved.Show = "R", "git show R"
	for want, err := range map[string]error{
		"step of thread T failed (role a, agent): x\nthe thread has not moved; what there is was kept: git show R\ntry again: uwf thread step T":     failed(func(*life.FailedError) {}),
		"step of thread T failed (role a, agent): x\nwhether the thread has moved is not known; look: uwf thread show T":                             failed(func(e *life.FailedError) { e.Unsure = true }),
		"can't step thread T: x\nthis job's work was kept: git show R":                                                                               moved,
		"thread T waits for a person (role a): why?\nanswer: uwf thread resume T -p \"…\"":                                                           waits("a", "why?", asIs),
		"thread T waits for a person (role a): limit tokens reached: x\nraise it: uwf thread resume T --tokens N":                                    waits("a", "limit tokens reached: x", asIs),
		"thread T waits for a person: why?\nlet it go on: uwf thread resume T":                                                                       waits("", "why?", asIs),
		"thread T waits for a person (role a): 3 attempts at this step failed\ntry again: uwf thread retry T":                                        waits("a", "3 attempts at this step failed", func(e *gitcas.Entry) { e.Attempts = make([]string, 3) }),
		"thread T waits for a person (role a): " + life.PausedByPerson + "\nlet it go on: uwf thread resume T":                                       waits("a", life.PausedByPerson, asIs),
		"no thread \"T\" (see: uwf thread list --all)":                                                                                               &life.UnknownThreadError{Thread: "T"},
		"thread T can't go on: x\ncorrect the definition, store it, start another thread, and cancel this one: uwf thread cancel T":                  life.NewStuckError("T", 0, errors.New("x")),
		"thread T can't go on: x\nhave its last step done again: uwf thread poke T -p \"…\"\nor begin another thread before it: uwf thread fork T:1": life.NewStuckError("T", 2, errors.New("x")),
		"agent m: it died: y\nlast words": &task.AgentError{Agent: "m", Reason: "it died", Detail: "last words", Err: errors.New("y")},
		"thread T has ended, but could not be delivered: x\nnobody tries again by itself\nlet it be tried: uwf thread retry T":        life.NewUndeliveredError("T", true, errors.New("x")),
		"x\nif whoever it is is dead: uwf thread retry --take T":                                                                      life.Advise(errors.New("x"), life.Verb{For: "if whoever it is is dead", Do: life.Take, Thread: "T"}),
		"x\nsee what was changed: uwf fsck --history":                                                                                 fmt.Errorf("%w", life.Advise(errors.New("x"), life.Verb{For: "see what was changed", Do: life.Check})),
		"x\nbegin another: uwf thread fork T":                                                                                         life.Advise(errors.New("x"), life.Verb{For: "begin another", Do: life.Fork, Thread: "T", Steps: -1}),
		"branch b was changed by people in files that the agent changed too (f, g); merge them on the branch, then resume the thread": &workbranch.DivergedError{Branch: "b", Overlap: []string{"f", "g"}},
		"branch b is at 2, which does not contain 1, the thread's last recorded commit; merge or reset the branch to a descendant of it, then resume the thread; or resume it with --take-branch, to go on from the branch as it is": &workbranch.DivergedError{Branch: "b", Recorded: "1", Tip: "2"},
		"step of thread T was stopped (role a): interrupted: a person stopped it\nthe thread has not moved; what there is was kept: git show R\nit counts as no failed attempt; go on: uwf thread step T": failed(func(e *life.FailedError) {
			e.Phase, e.Err = life.PhaseStopped, fmt.Errorf("interrupted: %w", deadline.ErrStopped)
		}),
		"step of thread T failed (role a, agent): x\nthe thread has not moved; what there is was kept: git show R\nit has failed 3 times, and waits for your word: uwf thread retry T":                                                failed(func(e *life.FailedError) { e.Tries = 3 }),
		"thread T: limit tokens reached: the thread has used 7 tokens of 5; raise limits.tokens to go on\nraise it (where the configuration or the workflow sets it, there first: the lowest counts): uwf thread resume T --tokens N": life.NewLimitError("T", limit),
	} {
		if got := Message(err); got != want {
			t.Errorf("\n%s\nwant\n%s", got, want)
		}
	}
}
