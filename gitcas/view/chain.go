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

// Chain is a thread as it was worked: its StartNode and its steps, oldest first, or the newest of
// them.
type Chain struct {
	Start     record.Start
	StartHash node.Hash
	StartedAt int64 // when the StartNode was made, in milliseconds; it is not hashed
	Steps     []ChainStep
	// Definition is the workflow with its role schemas, as the StartNode names them.
	Definition node.Map
	// Head is the digest of the last step, or of the StartNode where there is none.
	Head node.Digest
	// Counts is what the steps took, those included that were not read, see [View.ReadTail].
	Counts record.Counts
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

// ReadSummary reads where a thread stands. If its head has counts, that and the StartNode are
// all that it reads, both checked; otherwise it reads the chain.
func (v *View) ReadSummary(ctx context.Context, id layout.ThreadID) (Summary, error) {
	c, err := v.ReadTail(ctx, id, 0)
	return Summary{c.Start, c.StartHash, c.Used()}, err
}

// ReadChain reads a thread's chain from its head and checks it: every link is a step of the
// same start, in one of the thread's own folders, with the SHA-256 that the step after it has
// for it; none stands twice, the first has no predecessor, its counts are those of the steps, and
// the workflow and each step's output and body are there. What these hold is checked when it is
// read, see In.
func (v *View) ReadChain(ctx context.Context, id layout.ThreadID) (Chain, error) {
	return v.ReadTail(ctx, id, WholeChain)
}

// ReadTail is ReadChain of the newest steps alone, at least so many: it leaves out folders with
// older steps. It reads the whole chain if the head doesn't tell what that counts to. What the
// head says of the steps that were left out is believed.
func (v *View) ReadTail(ctx context.Context, id layout.ThreadID, least int) (Chain, error) {
	c, err := v.collectChain(ctx, id, least)
	return c, v.Source.AdviseRestore(v.refs, err)
}

func (v *View) collectChain(ctx context.Context, id layout.ThreadID, least int) (Chain, error) {
	e, ok := v.Entry(id)
	if !ok {
		return Chain{}, fmt.Errorf("%w: %s", ErrUnknownThread, id)
	}
	d, err := v.ThreadFolder(ctx, id)
	if err != nil {
		return Chain{}, err
	}
	get, err := v.Records(ctx, d)
	if err != nil {
		return Chain{}, err
	}

	path := layout.ThreadPath(id)
	c, err := followChain(e.Head, path, get, func(c *Chain) (bool, error) { return v.endsTail(ctx, d, c, least) })
	if err != nil {
		return Chain{}, err
	}
	if err := CheckAttempts(c, path, get); err != nil {
		return Chain{}, err
	}
	if err := c.takeCounts(path, get); err != nil {
		return Chain{}, err
	}

	if c.Definition, err = (&FolderReader{ctx: ctx, v: v}).readWorkflow(id, c.StartHash); err != nil {
		return Chain{}, err
	}
	return c, v.checkOutputs(ctx, id, c, d)
}

// endsTail reports whether a chain, newest step first, needs no older steps: it has enough, and
// the next one is in a folder that was not read. Otherwise it reads that, if it must.
func (v *View) endsTail(ctx context.Context, d *tree.Dir, c *Chain, least int) (bool, error) {
	name := layout.FileOf(*c.Steps[len(c.Steps)-1].Prev)
	if _, here := d.Find(name); here || d.IDOf(layout.OlderDir).IsZero() {
		return false, nil
	}
	if o, there := v.older.Get(d.Object.ID); there && o.folderWith(name) != nil {
		return false, nil
	}
	if len(c.Steps) >= least && c.Steps[0].Counts != nil && c.Steps[len(c.Steps)-1].Counts != nil {
		return true, nil
	}
	_, err := v.readOlder(ctx, d, max(1, (least-len(c.Steps)+layout.KeptSteps-1)/layout.KeptSteps))
	return false, err
}

// Records finds the nodes of chains in a thread's folder, which must be there, and in those with
// its older steps. What is not here of the former is fetched at once.
func (v *View) Records(ctx context.Context, d *tree.Dir) (func(node.Hash) (node.Node, error), error) {
	if err := (prefetcher{v}).fetchNodes(ctx, d); err != nil {
		return nil, err
	}
	return func(h node.Hash) (node.Node, error) {
		in, err := v.FolderOf(ctx, d, h)
		if err != nil {
			return node.Node{}, err
		}
		f, ok := in.Find(layout.FileOf(h))
		if !ok {
			return node.Node{}, tree.Damaged(d.PathOf(layout.FileOf(h)), "the chain needs it, and it is missing")
		}
		return v.readNode(ctx, in.PathOf(f.Name), f.ID, h)
	}, nil
}

// checkOutputs makes sure that what a thread's steps produced is there.
func (v *View) checkOutputs(ctx context.Context, id layout.ThreadID, c Chain, d *tree.Dir) error {
	for _, s := range c.Steps {
		own := layout.Place{Thread: id, Of: s.Hash}
		d, err := v.FolderOf(ctx, d, s.Hash)
		if err != nil {
			return err
		}
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

// WholeChain is more steps than any chain has, for ReadTail.
const WholeChain = maxChain

// maxChain bounds a chain, so that what a hostile branch makes us read is finite.
const maxChain = 100_000

// FollowChain follows prev from head to the start. where names the thread in errors.
func FollowChain(head node.Hash, where string, get func(node.Hash) (node.Node, error)) (Chain, error) {
	return followChain(head, where, get, func(*Chain) (bool, error) { return false, nil })
}

// followChain is FollowChain to a step, not the first one, after which ends says that it is enough.
func followChain(head node.Hash, where string, get func(node.Hash) (node.Node, error), ends func(*Chain) (bool, error)) (Chain, error) {
	c, err := collectSteps(head, where, get, ends)
	if err != nil {
		return Chain{}, err
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
	if k := len(c.Steps); k > 0 && c.Start.Digests != nil && c.Steps[k-1].Digests == nil {
		return Chain{}, newNoDigestsError(where, c.Steps[k-1].Hash)
	}

	slices.Reverse(c.Steps)
	return c, c.checkStart(path, n)
}

// collectSteps reads the steps of a chain, newest first, and the hash of its StartNode.
func collectSteps(head node.Hash, where string, get func(node.Hash) (node.Node, error), ends func(*Chain) (bool, error)) (c Chain, err error) {
	for at := head; ; {
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
			return c, nil
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

		enough := s.Prev == nil
		if !enough {
			enough, err = ends(&c)
		}
		if enough || err != nil {
			c.StartHash = s.Start
			return c, err
		}
		at = *s.Prev
	}
}

// checkStart compares the StartNode with the digests that steps have for it.
func (c *Chain) checkStart(path string, n node.Node) error {
	sum, err := n.Sum()
	for _, s := range c.Steps {
		if err == nil && s.Digests != nil && s.Digests.Start != "" && s.Digests.Start != sum {
			err = newExchangedError(path, "the start of the thread")
		}
	}
	return err
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

// Used is what the steps of a chain took, as an entry says it.
func (c Chain) Used() statefile.Used {
	if len(c.Steps) == 0 {
		return statefile.Used{}
	}
	t := c.Counts.Done
	return statefile.Used{Head: c.Steps[len(c.Steps)-1].Hash, Steps: t.Steps, Tokens: t.Tokens, CostUSD: t.CostUSD, Unpriced: t.Unpriced, DurationMs: t.DurationMs}
}

// Skipped is how many steps before those that were read the chain has.
func (c Chain) Skipped() int { return max(c.Counts.Done.Steps-len(c.Steps), 0) }

// Count is what the steps of a whole chain took, and the tries that they name. get finds the
// thread's records. Counts that a step has must be these.
func (c Chain) Count(where string, get func(node.Hash) (node.Node, error)) (record.Counts, error) {
	var all record.Counts
	for _, s := range c.Steps {
		tries, err := TriesOf(s.PreviousAttempts, get)
		if err != nil {
			return all, fmt.Errorf("what step %s took: %w", s.Hash, err)
		}
		if all = all.After(s.Step, lists.Map(tries, func(t ChainStep) record.Step { return t.Step })); s.Counts != nil && !s.Counts.Equal(all) {
			return all, tree.Damaged(where+"/"+layout.FileOf(s.Hash), "its counts are not those of the steps up to it")
		}
	}
	return all, nil
}

// takeCounts is Count of a chain that is whole; of another one it takes the head's word.
func (c *Chain) takeCounts(where string, get func(node.Hash) (node.Node, error)) (err error) {
	if len(c.Steps) > 0 && c.Steps[0].Prev != nil {
		c.Counts = *c.Steps[len(c.Steps)-1].Counts
		if c.Skipped() < 1 {
			err = tree.Damaged(where+"/"+layout.FileOf(c.StepHashes()[len(c.Steps)-1]), "it counts fewer steps than there are")
		}
		return err
	}
	c.Counts, err = c.Count(where, get)
	return err
}

// maxTries bounds the tries of a step, so that what a hostile branch makes us read is finite.
const maxTries = 10_000

// TriesOf reads tries that led to no step, and those that these name: a step that was taken back has
// some of its own. One that is named twice was two before a purge.
func TriesOf(named []node.Hash, get func(node.Hash) (node.Node, error)) ([]ChainStep, error) {
	var out []ChainStep
	for todo := slices.Clone(named); len(todo) > 0; todo = todo[1:] {
		if len(out) == maxTries {
			return nil, tree.Damaged(layout.FileOf(todo[0]), "a step names more than %d tries", maxTries)
		}
		n, err := get(todo[0])
		if err != nil {
			return nil, err
		}
		s, err := record.ParseStep(n)
		if err != nil {
			return nil, err
		}
		out, todo = append(out, ChainStep{todo[0], n.Timestamp, s}), append(todo, s.PreviousAttempts...)
	}
	return out, nil
}
