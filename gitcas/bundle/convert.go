package bundle

import (
	"context"
	"fmt"
	"time"

	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// Heads are the hashes that a thread's StartNode and steps go out with, oldest first.
func Heads(ctx context.Context, t Thread, workflow Workflow) ([]node.Hash, error) {
	return (&converter{ctx: ctx, t: t, workflow: workflow}).convertThread()
}

// converter makes a thread's records what the TypeScript uwf knows, from the oldest on: each
// refers to those before it.
type converter struct {
	ctx      context.Context
	t        Thread
	workflow Workflow
	done     map[node.Hash]node.Hash // records, by the hash that they have in the store; empty: being converted
	nodes    node.Map                // all that goes out; nil: only the hashes are asked for
	// The workflow, as the store has it and as it goes out.
	flow, form node.Hash
}

// convertThread converts a thread's records, those of earlier attempts included. It gives the
// hashes of its StartNode and steps.
func (c *converter) convertThread() (heads []node.Hash, err error) {
	c.done = map[node.Hash]node.Hash{}
	chain, err := c.t.View.ReadChain(c.ctx, c.t.ID)
	if err != nil {
		return nil, err
	}
	for _, h := range append([]node.Hash{chain.StartHash}, chain.StepHashes()...) {
		to, err := c.convertRecord(h)
		if err != nil {
			return nil, fmt.Errorf("convert %s of thread %s: %w", h, c.t.ID, err)
		}
		heads = append(heads, to)
	}
	return heads, nil
}

func (c *converter) convertRecord(h node.Hash) (to node.Hash, err error) {
	if to, there := c.done[h]; there {
		if to == "" {
			return "", fmt.Errorf("step %s is one of its own earlier attempts", h)
		}
		return to, nil
	}
	c.done[h] = ""
	n, err := c.t.View.In(c.ctx, gitcas.Place{Thread: c.t.ID}).Get(h)
	if err != nil {
		return "", err
	}
	if record.IsStart(n.Type) {
		to, err = c.convertStart(h, n)
	} else {
		to, err = c.convertStep(h, n)
	}
	c.done[h] = to
	return to, err
}

func (c *converter) convertStart(h node.Hash, n node.Node) (node.Hash, error) {
	s, err := record.ParseStart(n)
	if err != nil {
		return "", err
	}
	var form node.Node
	shared := c.t.View.Getter(c.ctx)
	c.flow = s.Workflow
	if c.form, form, err = c.workflow(shared, c.flow); err != nil {
		return "", err
	}
	refs, err := c.t.View.Source.Schemas.Refs(shared, form)
	if err == nil {
		err = c.collectNode(gitcas.Place{}, c.form, form, refs...)
	}
	if err == nil && (n.Type == record.OwnStartSchema || c.form != c.flow) {
		n, h, err = record.Start{Workflow: c.form, Prompt: s.Prompt, Cwd: s.Cwd}.Node(time.UnixMilli(n.Timestamp))
	}
	if err != nil {
		return "", err
	}
	return h, c.collectNode(gitcas.Place{}, h, n)
}

func (c *converter) convertStep(h node.Hash, n node.Node) (node.Hash, error) {
	s, err := record.ParseStep(n)
	if err != nil {
		return "", err
	}
	at, refs := gitcas.Place{Thread: c.t.ID, Of: h, Detail: true}, []node.Hash{s.Output, s.Detail}
	if s.AssembledPrompt != nil {
		refs = append(refs, *s.AssembledPrompt)
	}
	records := []*node.Hash{&s.Start}
	if s.Prev != nil {
		records = append(records, s.Prev)
	}
	for i := range s.PreviousAttempts {
		records = append(records, &s.PreviousAttempts[i])
	}
	changed := record.IsOwnStep(n.Type)
	for _, r := range records {
		to, err := c.convertRecord(*r)
		if err != nil {
			return "", err
		}
		changed = changed || to != *r
		*r = to
	}
	if changed {
		if n, h, err = s.ForPeers(time.UnixMilli(n.Timestamp)); err != nil {
			return "", err
		}
	}
	return h, c.collectNode(at, h, n, refs...)
}

// collectNode gathers a node, and its type and what it refers to in a place, with all that these
// refer to.
func (c *converter) collectNode(at gitcas.Place, h node.Hash, n node.Node, refs ...node.Hash) error {
	if c.nodes == nil {
		return nil
	}
	err := putNode(c.nodes, h, n)
	for _, h := range append(refs, n.Type) {
		if err == nil {
			err = c.t.View.Walk(c.ctx, at, h, func(_ gitcas.Place, h node.Hash, n node.Node) error { return putNode(c.nodes, h, n) })
		}
	}
	return err
}
