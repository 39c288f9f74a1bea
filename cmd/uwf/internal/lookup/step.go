package lookup

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
)

// Step is one step of a thread's chain.
type Step struct {
	*Thread
	Chain gitcas.Chain
	N     int // from 1
}

// Node is the step's own record.
func (s *Step) Node() gitcas.ChainStep { return s.Chain.Steps[s.N-1] }

// StepRef is what an argument says of a step, before any store was asked: its
// hash, or a thread and a number.
type StepRef struct {
	hash   node.Hash
	thread Ref
	n      int
}

// ParseStep reads a STEP argument: THREAD:N, N from 1, or a step's hash.
func ParseStep(arg string) (StepRef, error) {
	thread, num, ok := strings.Cut(arg, ":")
	if !ok {
		if h := node.Hash(strings.ToUpper(arg)); h.Valid() {
			return StepRef{hash: h}, nil
		}
		return StepRef{}, app.Usagef("%.80q is no step: write THREAD:N, as in 01JY0000000000000000000000:2 or %s:2, or the step's hash", arg, Latest)
	}
	ref, err := Parse(thread)
	if err != nil {
		return StepRef{}, err
	}
	n, err := strconv.Atoi(num)
	if err != nil || n < 1 {
		return StepRef{}, app.Usagef("%.80q is no step: %q is no number from 1", arg, num)
	}
	return StepRef{thread: ref, n: n}, nil
}

// FindStep reads the step that an argument names, and its thread.
func FindStep(ctx context.Context, open Open, arg string) (*Step, error) {
	r, err := ParseStep(arg)
	if err != nil {
		return nil, err
	}
	store, err := open(ctx)
	if err != nil {
		return nil, err
	}
	return r.Find(ctx, store)
}

// Find reads the step, and its thread.
func (r StepRef) Find(ctx context.Context, store *gitcas.Store) (*Step, error) {
	s := &Step{N: r.n}
	var err error
	if r.hash == "" {
		s.Thread, err = r.thread.Find(ctx, store)
	} else {
		s.Thread, err = readThreadOf(ctx, store, r.hash)
	}
	if err != nil {
		return nil, err
	}
	if s.Chain, err = s.View.Chain(ctx, s.ID); err != nil {
		return nil, err
	}
	if r.hash != "" {
		s.N = 1 + slices.IndexFunc(s.Chain.Steps, func(c gitcas.ChainStep) bool { return c.Hash == r.hash })
	}
	switch {
	case s.N == 0:
		return nil, app.Usagef("node %s is kept in thread %s, but is no step of its chain: it was replaced, or failed (see: uwf cas get %s)", r.hash, s.ID, r.hash)
	case s.N > len(s.Chain.Steps):
		return nil, app.Usagef("thread %s has %d steps, there is no step %d (see: uwf thread steps %s)", s.ID, len(s.Chain.Steps), s.N, s.ID)
	}
	return s, nil
}

// readThreadOf reads the thread that a step is in.
func readThreadOf(ctx context.Context, store *gitcas.Store, h node.Hash) (*Thread, error) {
	v, err := store.Load(ctx)
	if err != nil {
		return nil, err
	}
	c, err := findStep(ctx, store, v, h)
	if err != nil {
		return nil, err
	}
	return readCandidate(ctx, store, v, c)
}
