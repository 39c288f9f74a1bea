package thread

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/text"
)

// attempts are the tries at a thread's steps that led to none, and what all of it took.
type attempts struct {
	store  *gitcas.Store
	thread *Thread
	role   string // whose step the attempts on the present head were
	// replaces reports whether a step that is at hand tells all that a dead claim does; nil: none.
	replaces func(gitcas.Claim) bool

	nodes    gitcas.Nodes    // of those that were read
	failed   []node.Hash     // the error StepNodes of those on the present head
	onRecord map[string]bool // the refs of those of which the chain tells
}

func attemptsOf(store *gitcas.Store, t *Thread, role string) *attempts {
	return &attempts{store: store, thread: t, role: role, nodes: gitcas.Nodes{}, onRecord: map[string]bool{}}
}

// totals are what the thread has used so far, failed attempts included: they
// were paid for as well. refs are those at the present step.
func (a *attempts) totals(ctx context.Context, refs []string) (moderator.Totals, error) {
	var t moderator.Totals
	_, failed, err := a.earlierAttempts(ctx, a.thread.v, refs)
	if err != nil {
		return t, err
	}
	failed = append(a.thread.poked(), failed...)
	a.failed = slices.Clone(failed)
	for _, s := range a.thread.chain.Steps {
		a.noteOnRecord(s.Run)
		t.Add(s.Role, s.Usage)
		failed = append(failed, s.PreviousAttempts...)
	}
	// A step that was taken back has previous attempts of its own.
	seen := map[node.Hash]bool{}
	for len(failed) > 0 {
		h := failed[0]
		failed = failed[1:]
		if seen[h] {
			continue
		}
		seen[h] = true
		step, err := a.earlier(h)
		if err != nil {
			return t, err
		}
		a.noteOnRecord(step.Run)
		t.Add(step.Role, step.Usage)
		failed = append(failed, step.PreviousAttempts...)
	}
	return t, nil
}

// earlier reads the StepNode of an attempt, or of a step that was taken back.
func (a *attempts) earlier(h node.Hash) (record.Step, error) {
	records := gitcas.Place{Thread: a.thread.id}
	n, ok := a.nodes[records][h]
	if !ok {
		var err error
		if n, err = a.thread.in(records).Get(h); err != nil {
			return record.Step{}, fmt.Errorf("read the earlier attempt %s: %w", h, err)
		}
	}
	step, err := record.ParseStep(n)
	if err != nil {
		return step, fmt.Errorf("read the earlier attempt %s: %w", h, err)
	}
	return step, nil
}

// earlierAttempts reads the error StepNodes of attempts.
func (a *attempts) earlierAttempts(ctx context.Context, v *gitcas.View, refs []string) ([]gitcas.PlacedNode, []node.Hash, error) {
	var nodes []gitcas.PlacedNode
	var hashes []node.Hash
	for _, ref := range refs {
		kept, err := a.store.ReadAttempt(ctx, v, ref)
		if errors.Is(err, wire.ErrNotFound) || errors.Is(err, node.ErrNotFound) {
			continue // purged: nothing to link
		}
		if err != nil {
			return nil, nil, fmt.Errorf("read the earlier attempt %s: %w", ref, err)
		}
		if kept.Claim != nil && a.replaces != nil && a.replaces(*kept.Claim) {
			continue // the step itself is here
		}
		if kept.Claim != nil {
			if kept.Nodes, err = a.obituary(ctx, kept); err != nil {
				return nil, nil, err
			}
		}
		step, found := errorStepOf(kept.Nodes)
		if !found {
			continue
		}
		for _, n := range kept.Nodes {
			a.nodes.Add(n.Place, n.Hash, n.Node)
		}
		hashes = append(hashes, step)
		nodes = append(nodes, closure(kept.Nodes, step)...)
	}
	return nodes, hashes, nil
}

// obituary is the error StepNode of a job that died without a word, as far as its
// claim tells. The same claim always gives the same nodes.
func (a *attempts) obituary(ctx context.Context, kept gitcas.Attempt) ([]gitcas.PlacedNode, error) {
	c := life.ClampClaim(*kept.Claim)
	at := time.UnixMilli(c.Renewed)
	reason := life.DescribeDeath(c)
	var own []gitcas.PlacedNode
	var err error
	add := func(n node.Node, h node.Hash, nerr error) node.Hash {
		err = errors.Join(err, nerr)
		own = append(own, gitcas.PlacedNode{Hash: h, Node: n, Place: gitcas.NextPlace(false)})
		return h
	}
	step := record.Step{
		Start: a.thread.chain.StartHash, Prev: a.thread.lastStep(), Role: a.role, Agent: "unknown", Cwd: a.thread.cwd(),
		Output:      add(record.ErrorOutput{Error: reason, Phase: "agent"}.Node(at)),
		Detail:      add(node.New(node.String, "", at)),
		StartedAtMs: c.Since, CompletedAtMs: max(c.Renewed, c.Since),
		Usage: life.ClaimUsage(c),
		Run:   &record.Run{ID: text.Cut(c.Run, 100), Attempt: c.Attempt},
	}
	var nodes []gitcas.PlacedNode
	if err == nil {
		_, nodes, err = a.thread.v.Complete(ctx, a.thread.id, step, at, own, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("account for the job of %s.%d, which died: %w", c.Run, c.Attempt, err)
	}
	return nodes, nil
}

// errorStepOf finds the error StepNode among an attempt's nodes.
func errorStepOf(nodes []gitcas.PlacedNode) (node.Hash, bool) {
	types := map[gitcas.Place]map[node.Hash]node.Hash{}
	for _, n := range nodes {
		if types[n.Place] == nil {
			types[n.Place] = map[node.Hash]node.Hash{}
		}
		types[n.Place][n.Hash] = n.Node.Type
	}
	for _, n := range nodes {
		if !record.IsStep(n.Node.Type) || n.Place.Of != "" {
			continue
		}
		step, err := record.ParseStep(n.Node)
		if err == nil && types[gitcas.Place{Thread: n.Place.Thread, Of: n.Hash}][step.Output] == record.ErrorOutputSchema {
			return n.Hash, true
		}
	}
	return "", false
}

// closure is the error StepNode with the nodes that it needs. Details are not among
// them: they are what else the agent staged.
func closure(nodes []gitcas.PlacedNode, root node.Hash) []gitcas.PlacedNode {
	var out []gitcas.PlacedNode
	for _, n := range nodes {
		_, shared := gitcas.Known(n.Hash)
		switch {
		case n.Place == gitcas.Place{}:
			if shared {
				out = append(out, n)
			}
		case n.Place.Of == "" && n.Hash == root, n.Place.Of == root && !n.Place.Detail:
			out = append(out, n)
		}
	}
	return out
}

// Used is what a thread took so far, as a view shows it: its steps, the attempts that led
// to none, those at its next step too, and the steps that were taken back.
func Used(ctx context.Context, store *gitcas.Store, v *gitcas.View, id gitcas.ThreadID) (moderator.Totals, error) {
	_, t, err := readUsed(ctx, store, v, id)
	return t, err
}

// readUsed reads what a thread took, and the chain that tells it. Its workflow may be one
// that nobody can run any more.
func readUsed(ctx context.Context, store *gitcas.Store, v *gitcas.View, id gitcas.ThreadID) (*Thread, moderator.Totals, error) {
	r := locateThread(ctx, v, id)
	var err error
	if r.chain, err = v.Chain(ctx, id); err != nil {
		return nil, moderator.Totals{}, err
	}
	t, err := attemptsOf(store, r, life.WaitingRole(r.entry)).totals(ctx, r.entry.Attempts)
	return r, t, err
}

// noteOnRecord notes that the chain tells of a run's attempt.
func (a *attempts) noteOnRecord(run *record.Run) {
	if run != nil {
		a.onRecord[gitcas.AttemptRef(a.thread.id, run.ID, run.Attempt)] = true
	}
}
