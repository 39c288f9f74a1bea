package rewrite

import (
	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/wire"
)

// Sizes of what is held in memory, in bytes. They are variables of a Rewriter so
// that tests can make them small.
const (
	// heldBytes is the most that a plan keeps for the push. What is more is made
	// a second time, and sent bit by bit.
	heldBytes = 64 << 20
	// stageBytes is how much one of these pushes carries.
	stageBytes = 24 << 20
)

// writer takes the new objects.
type writer struct {
	objs  []wire.PackObject
	size  int64 // of objs, with what they are deltas against
	total int64
	made  map[wire.ID]struct{}
	limit int64 // objs are thrown away when they are more; 0: never
	over  bool
}

func newWriter(limit int64) *writer {
	return &writer{made: map[wire.ID]struct{}{}, limit: limit}
}

// putObject takes an object that replaces old.
func (w *writer) putObject(t plumbing.ObjectType, data []byte, old *wire.Object) wire.ID {
	o := wire.NewObject(t, data)
	if _, there := w.made[o.ID]; there {
		return o.ID
	}
	w.made[o.ID] = struct{}{}
	w.total += int64(len(data))
	if w.over {
		return o.ID
	}
	p := wire.PackObject{Object: o}
	w.size += int64(len(data))
	// Small objects compress as well alone; a base would be held in memory too.
	if old != nil && len(data) > 1<<10 {
		p.Base = old
		w.size += int64(len(old.Data))
	}
	w.objs = append(w.objs, p)
	if w.limit > 0 && w.size > w.limit {
		w.objs, w.size, w.over = nil, 0, true
	}
	return o.ID
}

// takeObjects gives the objects away.
func (w *writer) takeObjects() []wire.PackObject {
	objs := w.objs
	w.objs, w.size = nil, 0
	return objs
}
