package attempt

import (
	"slices"

	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// MaxErrorText bounds what an attempt says of its error, in bytes.
const MaxErrorText = 32 << 10

// Writer moves the ref of one job's attempt. The zero Writer is ready.
type Writer struct {
	kept map[wire.ID]string // values that the ref was given, and what they hold
}

// Update moves the ref of an attempt on from old. What is there already must not
// get lost, such as the work commit of a push that was taken in part: it becomes a
// parent of the new commit. What says what the attempt holds, so that a try whose
// reply was lost is recognised: then there is no update, and its name is empty.
func (w *Writer) Update(old wire.ID, what string, a gitcas.Attempt) (wire.RefUpdate, []wire.PackObject, error) {
	if !old.IsZero() {
		if w.kept[old] == what {
			return wire.RefUpdate{}, nil, nil
		}
		a.Parents = append(slices.Clone(a.Parents), old)
	}
	upd, objs, err := gitcas.BuildAttempt(a)
	if err != nil {
		return upd, nil, err
	}
	upd.Old = old
	if w.kept == nil {
		w.kept = map[wire.ID]string{}
	}
	w.kept[upd.New] = what
	return upd, objs, nil
}

// AddTo puts the ref of an attempt into a change, as a view shows it, with the objects of
// its work.
func (w *Writer) AddTo(c *gitcas.Change, v *gitcas.View, what string, a gitcas.Attempt, objs []wire.PackObject) error {
	old, _ := v.Ref(layout.AttemptRef(a.Thread, a.Run, a.Attempt))
	upd, more, err := w.Update(old, what, a)
	if err != nil || upd.Name == "" {
		return err
	}
	c.Refs = append(c.Refs, upd)
	c.Objects = append(append(c.Objects, objs...), more...)
	return nil
}
