package thread_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/united-workforce/uwf/engine/deadline"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/engine/workbranch"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/wire"
)

func TestCodeOf(t *testing.T) {
	remote := func(kind error) error { return &wire.Error{Op: "push", URL: "memory:", Kind: kind} }
	damaged := &gitcas.DamagedError{What: "threads.yaml", Kind: gitcas.ErrContent}
	for name, c := range map[string]struct {
		err  error
		want life.Kind
	}{
		"nothing":                         {nil, 0},
		"failed":                          {&life.FailedError{Err: errors.New("x")}, 1},
		"failed, the remote was away":     {&life.FailedError{Err: remote(wire.ErrUnreachable)}, 1},
		"failed, the thread was not ours": {&life.FailedError{Err: &life.NotYoursError{}}, 1},
		"failed on a damaged store":       {&life.FailedError{Err: damaged}, 5},
		"usage":                           {&life.UsageError{Msg: "x"}, 2},
		"unknown thread":                  {&life.UnknownThreadError{}, 2},
		"invalid definition":              {&workflow.InvalidError{}, 2},
		"no definition":                   {fmt.Errorf("x: %w", workflow.ErrNoWorkflow), 2},
		"no store":                        {gitcas.ErrNoStore, 2},
		"bad id":                          {fmt.Errorf("%w: x", gitcas.ErrInvalid), 2},
		"suspended":                       {&life.SuspendedError{}, 3},
		"not ours":                        {&life.NotYoursError{}, 4},
		"claimed":                         {&life.NotYoursError{Cause: &life.ClaimedError{}}, 4},
		"damaged":                         {damaged, 5},
		"another store":                   {&gitcas.DamagedError{Kind: gitcas.ErrOtherStore}, 5},
		"a node is missing":               {fmt.Errorf("x: %w", node.ErrNotFound), 5},
		"unreachable":                     {remote(wire.ErrUnreachable), 5},
		"denied":                          {remote(wire.ErrDenied), 5},
		"lost races until the end":        {remote(wire.ErrLostRace), 1},
		"interrupted":                     {context.Canceled, 1},
		"interrupted in a request":        {errors.Join(remote(wire.ErrUnreachable), context.Canceled), 1},
		"limit":                           {&life.LimitError{Err: errors.New("x")}, 6},
		"without its secret":              {(&thread.Engine{Redact: findsAll{}}).CleanError(&life.LimitError{Err: errors.New("y")}), 6},
		"anything else":                   {errors.New("x"), 1},
	} {
		if got := life.KindOf(c.err); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
		if c.err != nil {
			if got := life.KindOf(fmt.Errorf("wrapped: %w", c.err)); got != c.want {
				t.Errorf("%s, wrapped: %d, want %d", name, got, c.want)
			}
		}
	}
}

// findsAll takes everything for a secret.
type findsAll struct{ noSecrets }

func (findsAll) Value(any) (any, int, error) { return "***", 1, nil }

func TestErrorsSayWhatToDo(t *testing.T) {
	const tooMany = "3 attempts at this step failed: see uwf thread show T; try again with: uwf thread retry T"
	for want, err := range map[string]error{
		"step of thread T failed (role a, agent): x\nthe thread has not moved; what there is was kept: git show R\ntry again with: uwf thread step T":                                                                                                                                    &life.FailedError{Thread: "T", Role: "a", Phase: "agent", Attempt: "R", Err: errors.New("x")},
		"step of thread T failed (role a, commit): x\nwhether the thread has moved is not known; look with: uwf thread show T":                                                                                                                                                           &life.FailedError{Thread: "T", Role: "a", Phase: "commit", Err: errors.New("x"), Unsure: true},
		"thread T is not ours to step: x\nthis job's work was kept: git show R":                                                                                                                                                                                                          &life.NotYoursError{Thread: "T", Reason: "x", Kept: "R"},
		"thread T waits for a person (role a): why?\nanswer with: uwf thread resume T -p \"…\"":                                                                                                                                                                                          &life.SuspendedError{Thread: "T", Role: "a", Reason: "why?"},
		"step of thread T was stopped (role a): interrupted: a person stopped it\nthe thread has not moved; what there is was kept: git show R\nit counts as no failed attempt; go on with: uwf thread step T":                                                                           &life.FailedError{Thread: "T", Role: "a", Phase: life.PhaseStopped, Attempt: "R", Err: fmt.Errorf("interrupted: %w", deadline.ErrStopped), Stopped: true},
		"step of thread T failed (role a, agent): x\nthe thread has not moved; what there is was kept: git fetch o R && git show FETCH_HEAD\nit has failed 3 times, and waits for your word: uwf thread retry T":                                                                         &life.FailedError{Thread: "T", Role: "a", Phase: "agent", Attempt: "R", Err: errors.New("x"), Tries: 3, Show: "git fetch o R && git show FETCH_HEAD"},
		"thread T waits for a person (role a): limit tokens reached: x\nraise it with: uwf thread resume T --max-tokens N":                                                                                                                                                               &life.SuspendedError{Thread: "T", Role: "a", Reason: "limit tokens reached: x"},
		"thread T waits for a person: why?\nlet it go on with: uwf thread resume T":                                                                                                                                                                                                      &life.SuspendedError{Thread: "T", Reason: "why?"},
		"thread T waits for a person (role a): " + tooMany + "\ntry again with: uwf thread retry T":                                                                                                                                                                                      &life.SuspendedError{Thread: "T", Role: "a", Reason: tooMany},
		"thread T: limit tokens reached: the thread has used 7 tokens of 5; raise limits.tokens to go on\nmake it wait with: uwf thread step T\nthen raise it with: uwf thread resume T --max-tokens N; where the configuration or the workflow sets it, there first: the lowest counts": &life.LimitError{Thread: "T", Err: moderator.Limits{Tokens: 5}.Check(moderator.Totals{Tokens: 7}, "a"), Ahead: true},
		"no thread T in this store (see: uwf thread list --all)":                                                                                                                                                                                                                         &life.UnknownThreadError{Thread: "T"},
		"branch b was changed by people in files that the agent changed too (f, g); merge them on the branch, then resume the thread":                                                                                                                                                    &workbranch.DivergedError{Branch: "b", Overlap: []string{"f", "g"}},
		"branch b is at 2, which does not contain 1, the thread's last recorded commit; merge or reset the branch to a descendant of it, then resume the thread":                                                                                                                         &workbranch.DivergedError{Branch: "b", Recorded: "1", Tip: "2"},
		"thread T: limit tokens reached: the thread has used 7 tokens of 5; raise limits.tokens to go on\nraise it with: uwf thread resume T --max-tokens N; where the configuration or the workflow sets it, there first: the lowest counts":                                            &life.LimitError{Thread: "T", Err: moderator.Limits{Tokens: 5}.Check(moderator.Totals{Tokens: 7}, "a")},
		"thread T can't go on: x\ncorrect the definition (uwf workflow validate), store it, and start another thread; cancel this one: uwf thread cancel T":                                                                                                                              &life.StuckError{Thread: "T", Err: errors.New("x")},
		"agent m: it died: y\nlast words": &task.AgentError{Agent: "m", Reason: "it died", Detail: "last words", Err: errors.New("y")},
	} {
		if got := err.Error(); got != want {
			t.Errorf("\n%s\nwant\n%s", got, want)
		}
	}
}
