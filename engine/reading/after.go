package reading

import (
	"context"

	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// ReadAfter reads a thread as it will be after a change that begins it, takes a step back,
// adds one, as an import does, or only sets its entry.
func ReadAfter(ctx context.Context, v *gitcas.View, c *gitcas.Change, id gitcas.ThreadID, entry gitcas.Entry) (*Thread, error) {
	r := Locate(ctx, v, id)
	var err error
	if _, alive := v.Entry(id); alive {
		err = r.ReadChain(ctx, v)
	} else {
		err = r.readNewStart(ctx, v, c, entry.Head)
	}
	if err != nil {
		return nil, err
	}
	r.Entry = entry
	if err := r.CutAfter(entry.Head); err != nil {
		return nil, err
	}
	if HeadOf(r.Chain) == entry.Head {
		return r, nil
	}
	return r, r.addNewStep(c, entry.Head)
}

// addNewStep adds the step that a change brings.
func (r *Thread) addNewStep(c *gitcas.Change, head node.Hash) error {
	nodes := gitcas.Nodes{}
	for _, n := range c.Nodes {
		nodes.Add(n.Place, n.Hash, n.Node)
	}
	n, err := nodes.In(gitcas.Place{Thread: r.ID}).Get(head)
	if err != nil {
		return err
	}
	step, err := record.ParseStep(n)
	if err != nil {
		return err
	}
	added := gitcas.Chain{Steps: []gitcas.ChainStep{{Hash: head, Step: step}}}
	past, err := readOutputs(nodes.In, r.ID, added, true)
	if err != nil {
		return err
	}
	r.Chain.Steps = append(r.Chain.Steps, added.Steps...)
	if step.Counts != nil {
		r.Chain.Counts = *step.Counts
	}
	r.Past = append(r.Past, past...)
	return nil
}

// readNewStart reads the thread's StartNode among the nodes of a change.
func (r *Thread) readNewStart(ctx context.Context, v *gitcas.View, c *gitcas.Change, head node.Hash) error {
	shared, first := node.Map{}, node.Node{}
	for _, n := range c.Nodes {
		switch n.Place {
		case gitcas.Place{}:
			shared[n.Hash] = n.Node
		case gitcas.Place{Thread: r.ID}:
			first = n.Node
		}
	}
	start, err := record.ParseStart(first)
	if err != nil {
		return err
	}
	r.Chain = gitcas.Chain{Start: start, StartHash: head}
	r.Def, err = workflow.FromNode(node.First{shared, v.Getter(ctx)}, start.Workflow)
	return err
}
