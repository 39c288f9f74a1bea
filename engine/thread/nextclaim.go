package thread

import (
	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/gitcas/record"
)

// A job that does several steps of a thread pushes each step together with its claim for
// the next one: pushes are scarce. n steps so take n+1 of them.

// planNext decides, before a step is committed, whether this job takes the next one at
// once: whoever asked for this step says so, and the limits leave something for it.
func (r *stepRun) planNext(next verdict, usage *record.Usage) (*lease.Lease, error) {
	if r.req.Next == nil || next.role == "" {
		return nil, nil
	}
	after := newRun(r.e, r.req)
	after.Entry, after.Def, after.used, after.plan = r.Entry, r.Def, r.used, next.plan
	after.used.Add(r.task.Role, usage)
	if limit := after.limits().Check(after.used, next.role); limit != nil {
		return nil, nil //nolint:nilerr // the next job finds it, and says so
	}
	who, goesOn := r.req.Next()
	if !goesOn {
		return nil, nil
	}
	t := after.terms()
	t.Ahead = r.req.Ahead
	return r.e.leases().New(r.ID, who, t)
}
