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

// totals are what the thread has used so far, failed attempts included: they
// were paid for as well. refs are those at the present step.
func (r *stepRun) totals(ctx context.Context, refs []string) (moderator.Totals, error) {
	var t moderator.Totals
	_, failed, err := r.earlierAttempts(ctx, r.v, refs)
	if err != nil {
		return t, err
	}
	failed = append(r.poked(), failed...)
	r.failedBefore = slices.Clone(failed)
	for _, s := range r.chain.Steps {
		r.noteOnRecord(s.Run)
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
		step, err := r.earlier(h)
		if err != nil {
			return t, err
		}
		r.noteOnRecord(step.Run)
		t.Add(step.Role, step.Usage)
		failed = append(failed, step.PreviousAttempts...)
	}
	return t, nil
}

// Used is what a thread took so far, as a view shows it: its steps, the attempts that led
// to none, those at its next step too, and the steps that were taken back.
func Used(ctx context.Context, store *gitcas.Store, v *gitcas.View, id gitcas.ThreadID) (moderator.Totals, error) {
	_, t, err := (&Engine{Store: store}).readUsed(ctx, v, id)
	return t, err
}

// readUsed reads what a thread took, and the chain that tells it. Its workflow may be one
// that nobody can run any more.
func (e *Engine) readUsed(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) (*stepRun, moderator.Totals, error) {
	r := newRun(e, StepRequest{Thread: id})
	r.v = v
	r.look(ctx, v)
	r.entry, _ = v.Entry(id)
	var err error
	if r.chain, err = v.Chain(ctx, id); err != nil {
		return nil, moderator.Totals{}, err
	}
	r.plan.role = life.WaitingRole(r.entry) // whose attempts are linked
	t, err := r.totals(ctx, r.entry.Attempts)
	return r, t, err
}

// earlier reads the StepNode of an attempt, or of a step that was taken back.
func (r *stepRun) earlier(h node.Hash) (record.Step, error) {
	records := gitcas.Place{Thread: r.id}
	n, ok := r.attemptNodes[records][h]
	if !ok {
		var err error
		if n, err = r.in(records).Get(h); err != nil {
			return record.Step{}, fmt.Errorf("read the earlier attempt %s: %w", h, err)
		}
	}
	step, err := record.ParseStep(n)
	if err != nil {
		return step, fmt.Errorf("read the earlier attempt %s: %w", h, err)
	}
	return step, nil
}

// poked is the step that the next one does again, if there is one.
func (r *stepRun) poked() []node.Hash {
	if r.entry.Next == nil || r.entry.Next.Poked == "" {
		return nil
	}
	return []node.Hash{r.entry.Next.Poked}
}

// countDead adds the attempts of which this job knows only since it has the claim to what was
// used, those whose claims it found dead and those that were not linked: nothing of them was
// known when the limits were checked first.
func (r *stepRun) countDead(ctx context.Context) error {
	if r.plan.role == "" || r.plan.suspend != "" {
		return nil
	}
	known := len(r.entry.Attempts)
	if err := r.linkUnlinked(ctx); err != nil {
		return err
	}
	held, _ := r.lease.Current()
	if len(held.Died) == 0 && len(r.entry.Attempts) == known {
		return nil
	}
	var err error
	if r.used, err = r.totals(ctx, life.AppendAttempts(r.entry.Attempts, life.DeadRefs(r.id, held.Died)...)); err == nil {
		r.plan.limit = r.limits().Check(r.used, r.plan.role)
	}
	return err
}

// earlierAttempts reads the error StepNodes of attempts.
func (r *stepRun) earlierAttempts(ctx context.Context, v *gitcas.View, refs []string) ([]gitcas.PlacedNode, []node.Hash, error) {
	var nodes []gitcas.PlacedNode
	var hashes []node.Hash
	for _, ref := range refs {
		a, err := r.e.Store.ReadAttempt(ctx, v, ref)
		if errors.Is(err, wire.ErrNotFound) || errors.Is(err, node.ErrNotFound) {
			continue // purged: nothing to link
		}
		if err != nil {
			return nil, nil, fmt.Errorf("read the earlier attempt %s: %w", ref, err)
		}
		if a.Claim != nil && r.brought.replaces(*a.Claim) {
			continue // the step itself is here
		}
		if a.Claim != nil {
			if a.Nodes, err = r.obituary(ctx, a); err != nil {
				return nil, nil, err
			}
		}
		step, found := errorStepOf(a.Nodes)
		if !found {
			continue
		}
		for _, n := range a.Nodes {
			r.attemptNodes.Add(n.Place, n.Hash, n.Node)
		}
		hashes = append(hashes, step)
		nodes = append(nodes, closure(a.Nodes, step)...)
	}
	return nodes, hashes, nil
}

// obituary is the error StepNode of a job that died without a word, as far as its
// claim tells. The same claim always gives the same nodes.
func (r *stepRun) obituary(ctx context.Context, a gitcas.Attempt) ([]gitcas.PlacedNode, error) {
	c := life.ClampClaim(*a.Claim)
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
		Start: r.chain.StartHash, Prev: r.lastStep(), Role: r.plan.role, Agent: "unknown", Cwd: r.cwd(),
		Output:      add(record.ErrorOutput{Error: reason, Phase: "agent"}.Node(at)),
		Detail:      add(node.New(node.String, "", at)),
		StartedAtMs: c.Since, CompletedAtMs: max(c.Renewed, c.Since),
		Usage: life.ClaimUsage(c),
		Run:   &record.Run{ID: text.Cut(c.Run, 100), Attempt: c.Attempt},
	}
	var nodes []gitcas.PlacedNode
	if err == nil {
		_, nodes, err = r.v.Complete(ctx, r.id, step, at, own, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("account for the job of %s.%d, which died: %w", c.Run, c.Attempt, err)
	}
	return nodes, nil
}

// lastStep is the thread's head; nil before the first step.
func (r *stepRun) lastStep() *node.Hash {
	n := len(r.chain.Steps)
	if n == 0 {
		return nil
	}
	return &r.chain.Steps[n-1].Hash
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
