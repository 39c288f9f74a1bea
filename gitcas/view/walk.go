package view

import (
	"context"
	"errors"
	"fmt"

	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// Walk visits a node, found in at, and all that it reaches, by references and types,
// each once, parents before children. Each reference is followed where it leads: from a
// record to records of its thread, and to what is stored under its hash. A node that is missing ends
// the walk with an error that names who refers to it; so does an error of visit, but for
// node.ErrSkip, which keeps it from following that node's references.
func (v *View) Walk(ctx context.Context, at layout.Place, root node.Hash, visit func(layout.Place, node.Hash, node.Node) error) error {
	type item struct {
		at         layout.Place
		hash, from node.Hash
	}
	stack := []item{{at: at, hash: root}}
	seen := map[ref]bool{}      // where it has been
	told := map[node.Pin]bool{} // what was visited: the same node may lie in several places
	for len(stack) > 0 {
		it := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[ref{it.at, it.hash}] {
			continue
		}
		seen[ref{it.at, it.hash}] = true
		n, err := v.In(ctx, it.at).Get(it.hash)
		if err != nil {
			if it.from != "" {
				err = fmt.Errorf("referred to by %s: %w", it.from, err)
			}
			return fmt.Errorf("walk from %s: %w", root, err)
		}
		sum, err := n.Sum()
		if err != nil {
			return fmt.Errorf("walk from %s: node %s: %w", root, it.hash, err)
		}
		if pin := (node.Pin{Hash: it.hash, Digest: sum}); !told[pin] {
			told[pin] = true
			if err := visit(it.at, it.hash, n); errors.Is(err, node.ErrSkip) {
				continue
			} else if err != nil {
				return err
			}
		}
		refs, err := v.refsOf(ctx, it.at, it.hash, n)
		if err != nil {
			return fmt.Errorf("walk from %s: node %s: %w", root, it.hash, err)
		}
		for i := len(refs) - 1; i >= 0; i-- {
			stack = append(stack, item{refs[i].at, refs[i].hash, it.hash})
		}
	}
	return nil
}

// ref is a reference, and where it leads.
type ref struct {
	at   layout.Place
	hash node.Hash
}

// refsOf are a node's type and references.
func (v *View) refsOf(ctx context.Context, at layout.Place, h node.Hash, n node.Node) ([]ref, error) {
	if at.Thread == "" || !record.IsRecord(n.Type) {
		refs, err := v.Source.Schemas.Refs(v.In(ctx, at), n)
		out := []ref{{at, n.Type}}
		for _, h := range refs {
			out = append(out, ref{at, h})
		}
		return out, err
	}
	refs, _, err := record.RefsOf(n)
	out := []ref{{layout.Place{}, n.Type}}
	for _, r := range refs {
		to := layout.Place{}
		switch r.To {
		case record.ToRecord:
			to = layout.Place{Thread: at.Thread}
		case record.ToOwn, record.ToDetail:
			to = layout.Place{Thread: at.Thread, Of: h, Detail: true}
		}
		out = append(out, ref{to, r.Hash})
	}
	return out, err
}
