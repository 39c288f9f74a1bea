// Package attempt reads the tries at a thread's steps that led to none: those that failed,
// those whose jobs died, and the steps that were taken back; and counts what all of it took.
package attempt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/text"
)

// Ledger are the tries at a thread's steps that led to none, and what all of it took.
type Ledger struct {
	store  *gitcas.Store
	thread *reading.Thread
	Role   string // whose step the attempts on the present head were
	// Replaces reports whether a step that is at hand tells all that a dead claim does; nil: none.
	Replaces func(gitcas.Claim) bool
	// AtHand is the attempt's ref of a step that is at hand, if it was kept as one before: it is
	// no failed one, and counts once.
	AtHand string

	Nodes    gitcas.Nodes    // of those that were read
	Failed   []node.Hash     // the error StepNodes of those on the present head
	OnRecord map[string]bool // the refs of those of which the chain tells

	kept map[wire.ID]gitcas.Attempt // those that were read, by their commits
}

// NewLedger is the ledger of a thread; role is the one whose step the attempts on its
// present head were.
func NewLedger(store *gitcas.Store, t *reading.Thread, role string) *Ledger {
	return &Ledger{store: store, thread: t, Role: role, Nodes: gitcas.Nodes{}, OnRecord: map[string]bool{}, kept: map[wire.ID]gitcas.Attempt{}}
}

// CountUsed are what the thread has used so far, failed attempts included: they
// were paid for as well. refs are those at the present step.
func (a *Ledger) CountUsed(ctx context.Context, refs []string) (moderator.Totals, error) {
	t := moderator.TotalsOf(a.thread.Chain.Counts)
	_, failed, err := a.ReadErrorSteps(ctx, a.thread.View, refs)
	if err != nil {
		return t, err
	}
	a.Failed = append(a.thread.PokedStep(), failed...)
	known := slices.Clone(a.Failed)
	for _, s := range a.thread.Chain.Steps {
		a.noteOnRecord(s.Run)
		known = append(known, s.PreviousAttempts...)
	}
	tries, err := view.TriesOf(known, a.readRecord)
	if err != nil {
		return t, err
	}
	for _, s := range tries {
		a.noteOnRecord(s.Run)
	}
	if tries, err = view.TriesOf(a.Failed, a.readRecord); err != nil {
		return t, err
	}
	for _, s := range tries {
		t.Add(s.Role, s.Usage)
	}
	return t, nil
}

// Count is what the thread's steps took with a further one, and with all that this names.
func (a *Ledger) Count(s record.Step) (*record.Counts, error) {
	tries, err := view.TriesOf(s.PreviousAttempts, a.readRecord)
	c := a.thread.Chain.Counts.After(s, lists.Map(tries, func(t gitcas.ChainStep) record.Step { return t.Step }))
	return &c, err
}

// ReadStep reads the StepNode of an attempt, or of a step that was taken back.
func (a *Ledger) ReadStep(h node.Hash) (record.Step, error) {
	return reading.ReadStep(a.nodesWith(h), a.thread.ID, h)
}

// readRecord finds the node of such a step.
func (a *Ledger) readRecord(h node.Hash) (node.Node, error) {
	n, err := a.nodesWith(h)(gitcas.Place{Thread: a.thread.ID}).Get(h)
	if err != nil {
		err = fmt.Errorf("read the earlier attempt %s: %w", h, err)
	}
	return n, err
}

func (a *Ledger) nodesWith(h node.Hash) func(gitcas.Place) node.Getter {
	if a.Nodes[gitcas.Place{Thread: a.thread.ID}][h].Type != "" {
		return a.Nodes.In
	}
	return a.thread.In
}

// readKept reads what an attempt's ref keeps; false: it was purged.
func readKept(ctx context.Context, store *gitcas.Store, v *gitcas.View, ref string) (gitcas.Attempt, bool, error) {
	kept, err := store.ReadAttempt(ctx, v, ref)
	if errors.Is(err, wire.ErrNotFound) || errors.Is(err, node.ErrNotFound) {
		return kept, false, nil
	}
	if err != nil {
		err = fmt.Errorf("read the earlier attempt %s: %w", ref, err)
	}
	return kept, err == nil, err
}

// readOnce is readKept, which reads each commit once.
func (a *Ledger) readOnce(ctx context.Context, v *gitcas.View, ref string) (gitcas.Attempt, bool, error) {
	id, listed := v.Ref(ref)
	if kept, read := a.kept[id]; listed && read {
		return kept, true, nil
	}

	kept, there, err := readKept(ctx, a.store, v, ref)
	if there && err == nil {
		a.kept[id] = kept
	}
	return kept, there, err
}

// ReadErrorSteps reads the error StepNodes of attempts.
func (a *Ledger) ReadErrorSteps(ctx context.Context, v *gitcas.View, refs []string) ([]gitcas.PlacedNode, []node.Hash, error) {
	var nodes []gitcas.PlacedNode
	var hashes []node.Hash
	for _, ref := range refs {
		kept, there, err := a.readOnce(ctx, v, ref)
		if err != nil {
			return nil, nil, err
		}
		if !there || ref == a.AtHand && kept.Claim == nil {
			continue // nothing to link, or the step itself is here
		}
		if kept.Claim != nil && a.Replaces != nil && a.Replaces(*kept.Claim) {
			continue // the step itself is here
		}
		if kept.Claim != nil {
			if kept.Nodes, err = a.accountForDead(ctx, kept); err != nil {
				return nil, nil, err
			}
		}
		step, found := ErrorStepOf(kept.Nodes)
		if !found {
			continue
		}
		for _, n := range kept.Nodes {
			a.Nodes.Add(n.Place, n.Hash, n.Node)
		}
		hashes = append(hashes, step)
		nodes = append(nodes, closureOf(kept.Nodes, step)...)
	}
	return nodes, hashes, nil
}

// accountForDead is the error StepNode of a job that died without a word, as far as its
// claim tells. The same claim always gives the same nodes.
func (a *Ledger) accountForDead(ctx context.Context, kept gitcas.Attempt) ([]gitcas.PlacedNode, error) {
	c := life.ClampClaim(*kept.Claim)
	at := time.UnixMilli(c.Renewed)
	reason := life.DescribeDeath(c)
	var own []gitcas.PlacedNode
	var err error
	add := func(n node.Node, h node.Hash, nerr error) node.Hash {
		err = errors.Join(err, nerr)
		own = append(own, gitcas.PlacedNode{Hash: h, Node: n, Place: view.NextPlace(false)})
		return h
	}
	step := record.Step{
		Start: a.thread.Chain.StartHash, Prev: a.thread.LastStep(), Role: a.Role, Agent: unknownAgent, Cwd: a.thread.WorkFolder(),
		Output:      add(record.ErrorOutput{Error: reason, Phase: "agent"}.Node(at)),
		Detail:      add(node.New(node.String, "", at)),
		StartedAtMs: c.Since, CompletedAtMs: max(c.Renewed, c.Since),
		Usage: life.ClaimUsage(c),
		Run:   &record.Run{ID: text.Cut(c.Run, 100), Attempt: c.Attempt},
	}
	var nodes []gitcas.PlacedNode
	if err == nil {
		_, nodes, err = a.thread.View.Complete(ctx, a.thread.ID, step, at, own, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("account for the job of %s.%d, which died: %w", c.Run, c.Attempt, err)
	}
	return nodes, nil
}

// ErrorStepOf finds the error StepNode among an attempt's nodes.
func ErrorStepOf(nodes []gitcas.PlacedNode) (node.Hash, bool) {
	all := nodesOf(nodes)
	for _, n := range nodes {
		if !record.IsStep(n.Node.Type) || n.Place.Of != "" {
			continue
		}
		step, err := record.ParseStep(n.Node)
		if err == nil && all[gitcas.Place{Thread: n.Place.Thread, Of: n.Hash}][step.Output].Type == record.ErrorOutputSchema {
			return n.Hash, true
		}
	}
	return "", false
}

func nodesOf(placed []gitcas.PlacedNode) gitcas.Nodes {
	out := gitcas.Nodes{}
	for _, n := range placed {
		out.Add(n.Place, n.Hash, n.Node)
	}
	return out
}

// closureOf is the error StepNode with the nodes that it needs. Details are not among
// them: they are what else the agent staged.
func closureOf(nodes []gitcas.PlacedNode, root node.Hash) []gitcas.PlacedNode {
	return slices.DeleteFunc(slices.Clone(nodes), func(n gitcas.PlacedNode) bool {
		_, shared := view.Known(n.Hash)
		return !(n.Place == gitcas.Place{} && shared || n.Place.Of == "" && n.Place.Thread != "" && n.Hash == root || n.Place.Of == root && !n.Place.Detail)
	})
}

// CountThread reads what a thread took so far, as a view shows it, and the chain that tells it:
// its steps, the attempts that led to none, those at its next step too, and the steps that were
// taken back. Its workflow may be one that nobody can run any more.
func CountThread(ctx context.Context, store *gitcas.Store, v *gitcas.View, id gitcas.ThreadID) (*reading.Thread, moderator.Totals, error) {
	r := reading.Locate(ctx, v, id)
	var err error
	if r.Chain, err = v.ReadChain(ctx, id); err != nil {
		return nil, moderator.Totals{}, err
	}
	t, err := NewLedger(store, r, life.WaitingRole(r.Entry)).CountUsed(ctx, r.Entry.Attempts)
	return r, t, err
}

// noteOnRecord notes that the chain tells of a run's attempt.
func (a *Ledger) noteOnRecord(run *record.Run) {
	if run != nil {
		a.OnRecord[layout.AttemptRef(a.thread.ID, run.ID, run.Attempt)] = true
	}
}
