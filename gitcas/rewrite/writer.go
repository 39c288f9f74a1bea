package rewrite

import (
	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/wire"
)

// writer keeps the new objects until they are pushed.
type writer struct {
	objs  []wire.PackObject
	total int64 // bytes
	made  map[wire.ID]bool
}

// putObject takes an object that replaces old.
func (w *writer) putObject(t plumbing.ObjectType, data []byte, old *wire.Object) wire.ID {
	o := wire.NewObject(t, data)
	if w.made[o.ID] {
		return o.ID
	}
	w.made[o.ID] = true
	w.total += int64(len(data))
	p := wire.PackObject{Object: o}
	// Small objects compress as well alone; a base would be held in memory too.
	if old != nil && len(data) > 1<<10 {
		p.Base = old
	}
	w.objs = append(w.objs, p)
	return o.ID
}
