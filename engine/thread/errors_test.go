package thread_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/wire"
)

func TestCodeOf(t *testing.T) {
	remote := func(kind error) error { return &wire.RemoteError{Op: "push", URL: "memory:", Kind: kind} }
	damaged := &gitcas.DamagedError{What: "threads.yaml", Kind: gitcas.ErrContent}
	for name, c := range map[string]struct {
		err  error
		want life.Kind
	}{
		"nothing":                         {nil, 0},
		"failed":                          {&life.FailedError{Err: errors.New("x")}, 1},
		"failed, the remote was away":     {&life.FailedError{Err: remote(wire.ErrUnreachable)}, 1},
		"failed, the thread was not ours": {&life.FailedError{Err: &life.DeedError{Kind: life.KindNotYours}}, 1},
		"failed on a damaged store":       {&life.FailedError{Err: damaged}, 5},
		"usage":                           {life.Usagef("x"), 2},
		"unknown thread":                  {&life.UnknownThreadError{}, 2},
		"invalid definition":              {&workflow.InvalidError{}, 2},
		"no definition":                   {fmt.Errorf("x: %w", workflow.ErrNoWorkflow), 2},
		"no store":                        {gitcas.ErrNoStore, 2},
		"bad id":                          {fmt.Errorf("%w: x", gitcas.ErrInvalid), 2},
		"suspended":                       {&life.DeedError{Kind: life.KindSuspended}, 3},
		"not ours":                        {&life.DeedError{Kind: life.KindNotYours}, 4},
		"claimed":                         {life.RefuseClaimed(life.Step, "", gitcas.Claim{}), 4},
		"damaged":                         {damaged, 5},
		"another store":                   {&gitcas.DamagedError{Kind: gitcas.ErrOtherStore}, 5},
		"a node is missing":               {fmt.Errorf("x: %w", node.ErrNotFound), 5},
		"unreachable":                     {remote(wire.ErrUnreachable), 5},
		"denied":                          {remote(wire.ErrDenied), 5},
		"lost races until the end":        {remote(wire.ErrLostRace), 1},
		"interrupted":                     {context.Canceled, 1},
		"interrupted in a request":        {errors.Join(remote(wire.ErrUnreachable), context.Canceled), 1},
		"limit":                           {life.NewLimitError("", errors.New("x")), 6},
		"without its secret":              {thread.CleanError(findsAll{}, life.NewLimitError("", errors.New("y"))), 6},
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
