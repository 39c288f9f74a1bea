package gitcas

import (
	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/view"
)

// moveOlder moves the older steps of a thread out of its folder, so many at once as the folder
// keeps at least, as long as it has twice as many: what a job reads of a thread does not grow.
// Steps that are not at hand stay where they are.
func (b *builder) moveOlder(id ThreadID) error {
	steps, first := b.stepsAtHand(id)
	for ; first > 0 && len(steps) >= 2*layout.KeptSteps; first += layout.KeptSteps {
		rest := len(steps) - layout.KeptSteps
		moved := map[node.Hash]bool{}
		for _, s := range steps[rest:] {
			moved[s.Hash] = true
			if s.Answer != nil {
				moved[*s.Answer] = true // as a person said it
			}
			tries, err := view.TriesOf(s.PreviousAttempts, func(h node.Hash) (node.Node, error) { return b.readAtHand(id, h) })
			if _, fresh := b.fresh[Place{Thread: id}][s.Hash]; fresh || err != nil {
				return nil //nolint:nilerr // see above
			}
			for _, t := range tries {
				moved[t.Hash] = true
			}
		}
		edit, to := b.edit.At(layout.ThreadPath(id)), layout.OlderSteps(first)
		err := b.visitSteps(b.threads[id], moved, first, first+layout.KeptSteps-1, func(folder string, e gitobj.Entry) {
			edit.At(folder).Set(gitobj.Entry{Name: e.Name})
			edit.At(to).At(folder).Set(e)
		})
		if err != nil {
			return err
		}
		steps = steps[:rest]
	}
	return nil
}
