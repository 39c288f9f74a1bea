package reading

import (
	"context"
	"fmt"

	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// ReadAfter reads a thread as it will be after a change that begins it, takes a step back,
// adds one, or only sets its entry.
func ReadAfter(ctx context.Context, v *gitcas.View, c *gitcas.Change, id gitcas.ThreadID, entry gitcas.Entry) (*Thread, error) {
	r := Locate(ctx, v, id)
	var err error
	if _, alive := v.Entry(id); alive {
		err = r.ReadChain(ctx, v)
	} else {
		err = r.readNewStart(ctx, v, c)
	}
	if err != nil {
		return nil, err
	}
	r.Entry = entry
	if entry.Head == r.Chain.StartHash {
		r.KeepSteps(0)
	}
	for n := range r.Chain.Steps {
		if r.Chain.Steps[n].Hash == entry.Head {
			r.KeepSteps(n + 1)
			break
		}
	}
	if HeadOf(r.Chain) == entry.Head {
		return r, nil
	}
	return r, r.addNewStep(c, entry.Head)
}

// readNewStart reads the thread's StartNode among the nodes of a change.
func (r *Thread) readNewStart(ctx context.Context, v *gitcas.View, c *gitcas.Change) error {
	nodes := placedNodes(c)
	for h, n := range nodes[gitcas.Place{Thread: r.ID}] {
		if !record.IsStart(n.Type) {
			continue
		}
		start, err := record.ParseStart(n)
		if err != nil {
			return err
		}
		r.Chain = gitcas.Chain{Start: start, StartHash: h}
		r.Def, err = workflow.FromNode(node.First{nodes[gitcas.Place{}], v.Getter(ctx)}, start.Workflow)
		return err
	}
	return fmt.Errorf("%w: the start of thread %s", node.ErrNotFound, r.ID)
}

func placedNodes(c *gitcas.Change) gitcas.Nodes {
	nodes := gitcas.Nodes{}
	for _, n := range c.Nodes {
		nodes.Add(n.Place, n.Hash, n.Node)
	}
	return nodes
}

// addNewStep adds the step that a change brings.
func (r *Thread) addNewStep(c *gitcas.Change, head node.Hash) error {
	nodes := placedNodes(c)
	n, err := nodes.In(gitcas.Place{Thread: r.ID}).Get(head)
	if err != nil {
		return err
	}
	step, err := record.ParseStep(n)
	if err != nil {
		return err
	}
	if n, err = nodes.In(gitcas.Place{Thread: r.ID, Of: head}).Get(step.Output); err != nil {
		return err
	}
	output, _ := n.Payload.(map[string]any)
	r.Chain.Steps = append(r.Chain.Steps, gitcas.ChainStep{Hash: head, Step: step})
	r.Past = append(r.Past, moderator.Output{Role: step.Role, Output: output})
	return nil
}
