package step

import (
	"fmt"

	"github.com/united-workforce/uwf/engine/step/unpushed"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// keepOnDisk keeps the sealed step on this machine, as far as that can be done: where it
// can't, it is pushed all the same.
func (r *keeper) keepOnDisk(s *sealed) {
	if r.e.Unpushed == nil {
		return
	}
	n, h, err := s.step.Node(r.Lease.ServerTime())
	if err != nil {
		r.emitNotice("the step is not kept on this machine until it is pushed: " + err.Error())
		return
	}
	u := unpushed.Step{
		Store: r.View.StoreID(), Thread: r.ID, Entry: r.Entry, Nonce: r.Lease.Nonce(),
		Handle: h, Nodes: map[node.Hash]node.Node{h: n}, Model: story.ModelOf(r.task, s.step.Usage),
		Work: unpushed.Work{From: r.from},
	}
	for _, n := range s.nodes {
		u.Nodes[n.Hash] = n.Node
	}
	if !r.snap.Unchanged {
		u.Work.Commit, u.Work.Objects = r.snap.Commit, wire.Objects{}
		for _, o := range r.snap.Objects {
			u.Work.Objects.Add(o.Object)
		}
	}
	if err := r.e.Unpushed.Write(u); err != nil {
		r.emitNotice(err.Error())
		return
	}
	r.onDisk = true
	r.e.Reached("on-disk")
}

// dropFromDisk deletes the sealed step, which is on the remote.
func (r *keeper) dropFromDisk() {
	if !r.onDisk {
		return
	}
	if err := r.e.Unpushed.Remove(r.View.StoreID(), r.ID, r.sealedUnder()); err != nil {
		r.emitNotice("what is on the remote by now could not be deleted on this machine: " + err.Error())
		return
	}
	r.onDisk = false
}

// sealedUnder is the nonce of the claim under which the step was made.
func (r *agentRun) sealedUnder() string {
	if r.brought != nil {
		return r.brought.Nonce
	}
	return r.Lease.Nonce()
}

// diskPath is where the sealed step is on disk.
func (r *agentRun) diskPath() string {
	return r.e.Unpushed.Path(r.View.StoreID(), r.ID, r.sealedUnder())
}

// setAside moves a file that can't be brought in out of the way of the steps to come.
func (r *keeper) setAside(path string, why error) {
	to, err := r.e.Unpushed.SetAside(path)
	if err != nil {
		r.emitNotice(fmt.Sprintf("%v; nor can it be moved out of the way: %v", why, err))
		return
	}
	r.onDisk = false
	r.emitNotice(fmt.Sprintf("a step that was sealed on this machine, and not pushed, can't be brought in: %v; it is in %s", why, to))
}
