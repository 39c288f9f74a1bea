package view

import (
	"context"
	"fmt"
	"slices"

	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/gitcas/tree"
	"github.com/united-workforce/uwf/internal/lists"
)

// Chain is a thread as it was worked: its StartNode and its steps, oldest first.
type Chain struct {
	Start     record.Start
	StartHash node.Hash
	StartedAt int64 // when the StartNode was made, in milliseconds; it is not hashed
	Steps     []ChainStep
	// Definition is the workflow with its role schemas, as the StartNode names them.
	Definition node.Map
	// Head is the digest of the last step, or of the StartNode where there is none.
	Head node.Digest
}

// ChainStep is one step of a chain.
type ChainStep struct {
	Hash      node.Hash
	Timestamp int64 // when the node was made, in milliseconds; it is not hashed
	record.Step
}

// Summary is what a thread's entry and head say of it.
type Summary struct {
	Start     record.Start
	StartHash node.Hash
	Used      statefile.Used // its head is empty before the first step
}

// ReadSummary reads where a thread stands, at a cost that does not grow with it. Of a
// long thread it reads head and StartNode, both checked, and takes the entry's
// word for what the steps used; of any other it reads the chain.
func (v *View) ReadSummary(ctx context.Context, id layout.ThreadID) (Summary, error) {
	s, err := v.collectSummary(ctx, id)
	return s, v.Source.AdviseRestore(v.refs, err)
}

func (v *View) collectSummary(ctx context.Context, id layout.ThreadID) (Summary, error) {
	e, _ := v.Entry(id)
	if !isLong(e) {
		c, err := v.collectChain(ctx, id)
		return Summary{c.Start, c.StartHash, c.AddUpUsage()}, err
	}
	d, err := v.ThreadFolder(ctx, id)
	if err != nil {
		return Summary{}, err
	}
	head, err := v.nodeIn(ctx, d, layout.ThreadPath(id), e.Head)
	if err != nil {
		return Summary{}, err
	}
	step, err := record.ParseStep(head)
	if err != nil {
		return Summary{}, tree.DamagedBy(d.PathOf(layout.FileOf(e.Head)), err)
	}
	out := Summary{StartHash: step.Start, Used: e.Used}
	start, err := v.nodeIn(ctx, d, layout.ThreadPath(id), step.Start)
	if err != nil {
		return Summary{}, err
	}
	if out.Start, err = record.ParseStart(start); err != nil {
		return Summary{}, tree.DamagedBy(d.PathOf(layout.FileOf(step.Start)), err)
	}
	return out, nil
}

// ReadChain reads a thread's chain from its head and checks it: every link is a step of the
// same start, in the thread's own folder, with the SHA-256 that the step after it has
// for it; none stands twice, the first has no predecessor, and the workflow and each
// step's output and body are there. What these hold is checked when it is read, see In.
func (v *View) ReadChain(ctx context.Context, id layout.ThreadID) (Chain, error) {
	c, err := v.collectChain(ctx, id)
	return c, v.Source.AdviseRestore(v.refs, err)
}

func (v *View) collectChain(ctx context.Context, id layout.ThreadID) (Chain, error) {
	e, ok := v.Entry(id)
	if !ok {
		return Chain{}, fmt.Errorf("%w: %s", ErrUnknownThread, id)
	}
	d, err := v.ThreadFolder(ctx, id)
	if err != nil {
		return Chain{}, err
	}
	get, err := v.Records(ctx, d, layout.ThreadPath(id))
	if err != nil {
		return Chain{}, err
	}
	c, err := FollowChain(e.Head, layout.ThreadPath(id), get)
	if err != nil {
		return Chain{}, err
	}
	if err := CheckAttempts(c, layout.ThreadPath(id), get); err != nil {
		return Chain{}, err
	}
	if c.Definition, err = (&FolderReader{ctx: ctx, v: v}).readWorkflow(id, c.StartHash); err != nil {
		return Chain{}, err
	}
	return c, checkOutputs(id, c, d)
}

// Records finds the nodes of chains in a thread's folder, at path. What is not here of that is
// fetched at once.
func (v *View) Records(ctx context.Context, d *tree.Dir, path string) (func(node.Hash) (node.Node, error), error) {
	if err := (prefetcher{v}).fetchNodes(ctx, d); err != nil {
		return nil, err
	}
	return func(h node.Hash) (node.Node, error) { return v.nodeIn(ctx, d, path, h) }, nil
}

// nodeIn reads a node of a chain, which must be in the thread's folder.
func (v *View) nodeIn(ctx context.Context, d *tree.Dir, path string, h node.Hash) (node.Node, error) {
	f, ok := d.Find(layout.FileOf(h))
	if !ok {
		return node.Node{}, tree.Damaged(path+"/"+layout.FileOf(h), "the chain needs it, and it is missing")
	}
	return v.readNode(ctx, d.PathOf(f.Name), f.ID, h)
}

// checkOutputs makes sure that what a thread's steps produced is there.
func checkOutputs(id layout.ThreadID, c Chain, d *tree.Dir) error {
	for _, s := range c.Steps {
		own := layout.Place{Thread: id, Of: s.Hash}
		for _, r := range s.Refs() {
			if r.To != record.ToOwn {
				continue
			}
			_, here := d.Find(own.File(r.Hash))
			_, flow := c.Definition[r.Hash]
			if _, known := known()[r.Hash]; !here && !flow && !known {
				return tree.Damaged(own.Path(r.Hash), "it is the %s of step %s, and it is missing", r.Field, s.Hash)
			}
		}
	}
	return nil
}

// maxChain bounds a chain, so that what a hostile branch makes us read is finite.
const maxChain = 100_000

// FollowChain follows prev from head to the start. where names the thread in errors.
func FollowChain(head node.Hash, where string, get func(node.Hash) (node.Node, error)) (Chain, error) {
	var c Chain
	at := head
	for c.StartHash == "" {
		path := where + "/" + layout.FileOf(at)
		if len(c.Steps) > maxChain {
			return Chain{}, tree.Damaged(path, "the chain runs in a circle, or is endless")
		}
		n, err := get(at)
		if err != nil {
			return Chain{}, err
		}
		if err := c.compareDigest(path, n); err != nil {
			return Chain{}, err
		}
		if record.IsStart(n.Type) {
			if len(c.Steps) > 0 {
				return Chain{}, tree.Damaged(path, "a step names the StartNode as its predecessor")
			}
			c.StartHash = at
			break
		}
		s, err := record.ParseStep(n)
		if err != nil {
			return Chain{}, tree.DamagedBy(path, err)
		}
		if len(c.Steps) > 0 {
			if err := checkFollows(path, s, c.Steps[len(c.Steps)-1]); err != nil {
				return Chain{}, err
			}
		}
		c.Steps = append(c.Steps, ChainStep{at, n.Timestamp, s})
		if s.Prev == nil {
			c.StartHash = s.Start
			break
		}
		at = *s.Prev
	}
	n, err := get(c.StartHash)
	if err != nil {
		return Chain{}, err
	}
	path := where + "/" + layout.FileOf(c.StartHash)
	if c.Start, err = record.ParseStart(n); err != nil {
		return Chain{}, tree.DamagedBy(path, err)
	}
	c.StartedAt = n.Timestamp
	if k := len(c.Steps); k > 0 {
		first := c.Steps[k-1]
		if c.Start.Digests != nil && first.Digests == nil {
			return Chain{}, newNoDigestsError(where, first.Hash)
		}
		if first.Digests != nil {
			if err := checkDigest(path, n, first.Digests.Start, "the start of the thread"); err != nil {
				return Chain{}, err
			}
		}
	}
	slices.Reverse(c.Steps)
	return c, nil
}

// compareDigest compares a node with the digest that the step after it has for it; of the
// head it notes the digest.
func (c *Chain) compareDigest(path string, n node.Node) (err error) {
	k := len(c.Steps)
	if k == 0 {
		c.Head, err = n.Sum()
		return err
	}
	after := c.Steps[k-1]
	if after.Digests == nil {
		return nil
	}
	return checkDigest(path, n, after.Digests.Prev, "the step before "+string(after.Hash))
}

// checkFollows checks a step against the one that comes after it.
func checkFollows(path string, s record.Step, after ChainStep) error {
	switch {
	case s.Start != after.Start:
		return tree.Damaged(path, "its start is %s, that of the step after it %s", s.Start, after.Start)
	case s.Digests != nil && after.Digests == nil:
		return newNoDigestsError(path[:len(path)-len(layout.FileOf(after.Hash))-1], after.Hash)
	}
	return nil
}

// newNoDigestsError is the error for a step that has no digests, though one before it has.
func newNoDigestsError(where string, h node.Hash) error {
	return tree.Damaged(where+"/"+layout.FileOf(h), "it has no digests, and what comes before it in the chain has: uwf did not write it")
}

// checkDigest makes sure that a node is the one that a digest is of.
func checkDigest(path string, n node.Node, want node.Digest, what string) error {
	got, err := n.Sum()
	if err == nil && got != want {
		err = newExchangedError(path, what)
	}
	return err
}

// CheckAttempts checks the earlier attempts that the steps name, and those that these
// name: a step that was taken back has some of its own.
func CheckAttempts(c Chain, where string, get func(node.Hash) (node.Node, error)) error {
	seen := map[node.Hash]bool{}
	todo := lists.Map(c.Steps, func(s ChainStep) record.Step { return s.Step })
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, r := range s.Refs() {
			if r.Field != "previousAttempts" {
				continue
			}
			path := where + "/" + layout.FileOf(r.Hash)
			n, err := get(r.Hash)
			if err != nil {
				return err
			}
			if r.Digest != "" {
				if err := checkDigest(path, n, r.Digest, "an earlier attempt"); err != nil {
					return err
				}
			}
			if seen[r.Hash] {
				continue
			}
			seen[r.Hash] = true
			earlier, err := record.ParseStep(n)
			if err != nil {
				return tree.DamagedBy(path, err)
			}
			todo = append(todo, earlier)
		}
	}
	return nil
}

// StepHashes are the steps' hashes, oldest first.
func (c Chain) StepHashes() []node.Hash {
	return lists.Map(c.Steps, func(s ChainStep) node.Hash { return s.Hash })
}

// AddUpUsage adds up what the steps of a chain took. What an agent says of itself is
// no number to trust: less than nothing counts as nothing, and nothing overflows.
func (c Chain) AddUpUsage() statefile.Used {
	if len(c.Steps) == 0 {
		return statefile.Used{}
	}
	var all statefile.Cost
	for _, s := range c.Steps {
		addUsage(&all, s.Usage)
	}
	return statefile.Used{Head: c.Steps[len(c.Steps)-1].Hash, Steps: len(c.Steps), Tokens: all.Tokens, CostUSD: all.CostUSD, Unpriced: all.Unpriced, DurationMs: all.DurationMs}
}

// TotalCost adds up what the steps of a chain took, and the failed attempts and the steps that
// were taken back which they name. get finds the thread's records.
func (c Chain) TotalCost(get func(node.Hash) (node.Node, error)) (*statefile.Cost, error) {
	all := statefile.Cost{Steps: len(c.Steps)}
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

// addUsage adds what a step took. Sums of tokens and time are clamped to maxSum; a cost that
// would take the sum above maxCost is left out, since it can't be believed.
func addUsage(to *statefile.Cost, u *record.Usage) {
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
