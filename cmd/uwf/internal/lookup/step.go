package lookup

import (
	"context"
	"errors"
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
	if r.hash != "" {
		return findHash(ctx, store, r.hash)
	}
	t, err := r.thread.Find(ctx, store)
	if err != nil {
		return nil, err
	}
	s := &Step{Thread: t, N: r.n}
	if s.Chain, err = t.View.Chain(ctx, t.ID); err != nil {
		return nil, err
	}
	if r.n > len(s.Chain.Steps) {
		return nil, app.Usagef("thread %s has %d steps, there is no step %d (see: uwf thread steps %s)", t.ID, len(s.Chain.Steps), r.n, t.ID)
	}
	return s, nil
}

func findHash(ctx context.Context, store *gitcas.Store, h node.Hash) (*Step, error) {
	v, err := store.Load(ctx)
	if err != nil {
		return nil, err
	}
	found, err := store.Find(ctx, v, h)
	if errors.Is(err, node.ErrNotFound) {
		return nil, &app.UnknownError{What: "step", ID: string(h), Near: app.Near(string(h), knownHeads(v)), See: "uwf thread steps THREAD"}
	}
	if err != nil {
		return nil, err
	}
	id := found.Place.Thread
	if !isStep(found.Node) || id == "" {
		return nil, app.Usagef("node %s is no step (see: uwf cas get %s)", h, h)
	}
	if found.Ended == nil {
		if v, err = store.Reload(ctx, v, id); err != nil {
			return nil, err
		}
	}
	t, err := readThread(ctx, store, v, candidate{id: id, ended: found.Ended})
	if err != nil {
		return nil, err
	}
	s := &Step{Thread: t}
	if s.Chain, err = t.View.Chain(ctx, id); err != nil {
		return nil, err
	}
	s.N = 1 + slices.IndexFunc(s.Chain.Steps, func(c gitcas.ChainStep) bool { return c.Hash == h })
	if s.N == 0 {
		return nil, app.Usagef("node %s is kept in thread %s, but is no step of its chain: it was replaced, or failed (see: uwf cas get %s)", h, id, h)
	}
	return s, nil
}

// knownHeads are the hashes that are known without reading any thread.
func knownHeads(v *gitcas.View) []string {
	var out []string
	for _, e := range v.Threads() {
		out = append(out, string(e.Head))
	}
	return out
}
