package gitcas

import (
	"fmt"
	"math"

	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/internal/text"
)

// Used is what an entry says of its thread's steps, see statefile.Used.
type Used = statefile.Used

// addUpUsage adds up what the steps of a chain took. What an agent says of itself is
// no number to trust: less than nothing counts as nothing, and nothing overflows.
func (c Chain) addUpUsage() Used {
	if len(c.Steps) == 0 {
		return Used{}
	}
	var all Cost
	for _, s := range c.Steps {
		addUsage(&all, s.Usage)
	}
	return Used{Head: c.Steps[len(c.Steps)-1].Hash, Steps: len(c.Steps), Tokens: all.Tokens, CostUSD: all.CostUSD, Unpriced: all.Unpriced, DurationMs: all.DurationMs}
}

// totalCost adds up what the steps of a chain took, and the failed attempts and the steps that
// were taken back which they name. get finds the thread's records.
func (c Chain) totalCost(get func(node.Hash) (node.Node, error)) (*Cost, error) {
	all := Cost{Steps: len(c.Steps)}
	seen := map[node.Hash]bool{}
	var add func(s record.Step) error
	add = func(s record.Step) error {
		addUsage(&all, s.Usage)
		for _, h := range s.PreviousAttempts {
			if seen[h] {
				continue
			}
			seen[h] = true
			n, err := get(h)
			if err != nil {
				return err
			}
			failed, err := record.ParseStep(n)
			if err != nil {
				return err
			}
			if err := add(failed); err != nil {
				return err
			}
		}
		return nil
	}
	for _, s := range c.Steps {
		if err := add(s.Step); err != nil {
			return nil, fmt.Errorf("what the thread took: %w", err)
		}
	}
	return &all, nil
}

func addUsage(to *Cost, u *record.Usage) {
	if u == nil {
		return
	}
	to.Tokens = addClamped(addClamped(to.Tokens, u.InputTokens), u.OutputTokens)
	to.DurationMs = addClamped(to.DurationMs, u.DurationMs)
	if cost := u.CostUSD; cost > 0 && to.CostUSD+cost <= maxCost {
		to.CostUSD += cost
	}
	to.Unpriced = to.Unpriced || u.Unpriced
}

func addClamped(a, b int64) int64 { return a + min(max(b, 0), maxSum-a) }

// maxSum is what every reader of JSON or YAML keeps.
const maxSum = 1<<53 - 1

// maxCost is where costs are no longer added up, in US dollars.
const maxCost = 1e12

// countedEntries are the entries to set, those with a new head with what their steps
// took. Only nodes that are at hand are asked: where one is not, nothing is said,
// and readers go by the chain.
func (b *builder) countedEntries() map[ThreadID]*Entry {
	out := make(map[ThreadID]*Entry, len(b.c.Threads))
	for id, e := range b.c.Threads {
		out[id] = e
		if e == nil {
			continue
		}
		if _, known := e.Known(); known {
			continue
		}
		c, err := readChain(e.Head, layout.ThreadPath(id), func(h node.Hash) (node.Node, error) { return b.atHand(id, h) })
		if err != nil {
			continue
		}
		with := *e
		with.Used = c.addUpUsage()
		out[id] = &with
	}
	return out
}

// atHand is a node of a thread that need not be fetched.
func (b *builder) atHand(id ThreadID, h node.Hash) (node.Node, error) {
	if n, ok := b.fresh[Place{Thread: id}][h]; ok {
		return n, nil
	}
	d, err := b.baseOf(id)
	f, ok := d.Find(layout.FileOf(h))
	if err != nil || !ok || !b.v.Reader.Has(f.ID) {
		return node.Node{}, node.ErrNotFound
	}
	n, err := b.v.Reader.Node(b.ctx, d.PathOf(f.Name), f.ID, h)
	return n.Node, err
}

// checkUsed compares what an entry says with the chain.
func (f *fsck) checkUsed(v *View, id ThreadID, c Chain) {
	e, _ := v.Entry(id)
	said, known := e.Known()
	if counted := c.addUpUsage(); known && (said.Steps != counted.Steps || said.Tokens != counted.Tokens || said.DurationMs != counted.DurationMs || said.Unpriced != counted.Unpriced || math.Abs(said.CostUSD-counted.CostUSD) > 1e-6) {
		f.addProblem(layout.ThreadsName, "thread %s: it says %d steps, %d tokens, %s and %d ms; its chain has %d, %d, %s and %d",
			id, said.Steps, said.Tokens, text.Dollars(said.CostUSD, said.Unpriced), said.DurationMs,
			counted.Steps, counted.Tokens, text.Dollars(counted.CostUSD, counted.Unpriced), counted.DurationMs)
	}
}
