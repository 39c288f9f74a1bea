package gitcas

import (
	"context"
	"fmt"
	"slices"

	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// Chain is a thread as it was worked: its StartNode and its steps, oldest first.
type Chain struct {
	Start     record.Start
	StartHash node.Hash
	Steps     []ChainStep
}

// ChainStep is one step of a chain.
type ChainStep struct {
	Hash node.Hash
	record.Step
}

// Summary is what a thread's entry and head say of it.
type Summary struct {
	Start     record.Start
	StartHash node.Hash
	Used      Used // its head is empty before the first step
}

// Summary reads where a thread stands, at a cost that does not grow with it. Of a
// long thread it reads head and StartNode, both checked, and takes the entry's
// word for what the steps used; of any other it reads the chain.
func (v *View) Summary(ctx context.Context, id ThreadID) (Summary, error) {
	s, err := v.summary(ctx, id)
	return s, v.s.advise(v.refs, err)
}

func (v *View) summary(ctx context.Context, id ThreadID) (Summary, error) {
	if !v.long(id) {
		c, err := v.chain(ctx, id)
		return Summary{c.Start, c.StartHash, c.used()}, err
	}
	e, _ := v.Entry(id)
	d, err := v.folder(ctx, id)
	if err != nil {
		return Summary{}, err
	}
	head, err := v.nodeIn(ctx, d, threadPath(id), e.Head)
	if err != nil {
		return Summary{}, err
	}
	step, err := record.ParseStep(head)
	if err != nil {
		return Summary{}, contentErr(d.at(nodeFile(e.Head)), err)
	}
	out := Summary{StartHash: step.Start, Used: e.Used}
	start, err := v.nodeIn(ctx, d, threadPath(id), step.Start)
	if err != nil {
		return Summary{}, err
	}
	if out.Start, err = record.ParseStart(start); err != nil {
		return Summary{}, contentErr(d.at(nodeFile(step.Start)), err)
	}
	return out, v.checkRefs(Chain{Start: out.Start, Steps: []ChainStep{{e.Head, step}}}, d)
}

// Chain reads a thread's chain from its head and checks it: every link is a step
// of the same start, in the thread's own folder, none twice, the first has no
// predecessor, and each one's output and body are there.
func (v *View) Chain(ctx context.Context, id ThreadID) (Chain, error) {
	c, err := v.chain(ctx, id)
	return c, v.s.advise(v.refs, err)
}

func (v *View) chain(ctx context.Context, id ThreadID) (Chain, error) {
	e, ok := v.Entry(id)
	if !ok {
		return Chain{}, fmt.Errorf("%w: %s", ErrUnknownThread, id)
	}
	d, err := v.folder(ctx, id)
	if err != nil {
		return Chain{}, err
	}
	if err := v.fetchNodes(ctx, d); err != nil {
		return Chain{}, err
	}
	c, err := readChain(e.Head, threadPath(id), func(h node.Hash) (node.Node, error) {
		return v.nodeIn(ctx, d, threadPath(id), h)
	})
	if err != nil {
		return Chain{}, err
	}
	return c, v.checkRefs(c, d)
}

// nodeIn reads a node of a chain, which must be in the thread's folder.
func (v *View) nodeIn(ctx context.Context, d *dir, path string, h node.Hash) (node.Node, error) {
	f, ok := d.get(nodeFile(h))
	if !ok {
		return node.Node{}, content(path+"/"+nodeFile(h), "the chain needs it, and it is missing")
	}
	return v.read(ctx, d.at(f.Name), f.ID, h)
}

// checkRefs makes sure that the thread's workflow and what its steps produced are
// there.
func (v *View) checkRefs(c Chain, d *dir) error {
	if !v.has(d, c.Start.Workflow) {
		return content("cas/"+nodeFile(c.Start.Workflow), "it is the thread's workflow, and it is missing")
	}
	for _, s := range c.Steps {
		for _, h := range []*node.Hash{&s.Output, s.Body} {
			if h != nil && !v.has(d, *h) {
				return content(d.at(nodeFile(*h)), fmt.Sprintf("step %s refers to it, and it is missing", s.Hash))
			}
		}
	}
	return nil
}

// has reports whether a thread in folder d can refer to a node.
func (v *View) has(d *dir, h node.Hash) bool {
	_, own := d.get(nodeFile(h))
	_, shared := v.cas.get(nodeFile(h))
	_, known := v.s.known[h]
	return own || shared || known
}

// maxChain bounds a chain, so that what a hostile branch makes us read is finite.
const maxChain = 100_000

// readChain follows prev from head to the start. where names the thread in errors.
func readChain(head node.Hash, where string, get func(node.Hash) (node.Node, error)) (Chain, error) {
	var c Chain
	at := head
	for c.StartHash == "" {
		path := where + "/" + nodeFile(at)
		if len(c.Steps) > maxChain {
			return Chain{}, content(path, "the chain runs in a circle, or is endless")
		}
		n, err := get(at)
		if err != nil {
			return Chain{}, err
		}
		if record.IsStart(n.Type) {
			if len(c.Steps) > 0 {
				return Chain{}, content(path, "a step names the StartNode as its predecessor")
			}
			c.StartHash = at
			break
		}
		s, err := record.ParseStep(n)
		if err != nil {
			return Chain{}, contentErr(path, err)
		}
		if len(c.Steps) > 0 && s.Start != c.Steps[0].Start {
			return Chain{}, content(path, fmt.Sprintf("its start is %s, that of the step after it %s", s.Start, c.Steps[0].Start))
		}
		c.Steps = append(c.Steps, ChainStep{at, s})
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
	if c.Start, err = record.ParseStart(n); err != nil {
		return Chain{}, contentErr(where+"/"+nodeFile(c.StartHash), err)
	}
	slices.Reverse(c.Steps)
	return c, nil
}

// hashes are the steps' hashes, oldest first.
func (c Chain) hashes() []node.Hash {
	out := make([]node.Hash, len(c.Steps))
	for i, s := range c.Steps {
		out[i] = s.Hash
	}
	return out
}
