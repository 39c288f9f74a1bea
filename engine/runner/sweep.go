package runner

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/united-workforce/uwf/engine/runner/event"
	"github.com/united-workforce/uwf/engine/runner/picture"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
)

// Bounds on what one job dispatches for others. A thread stays due until the job for it
// has begun, so that jobs which end meanwhile start it again: a job with a thread of its
// own starts one at most, then their number doesn't grow. A scheduled run does nothing
// else.
const (
	sweepMaxHop      = 1
	sweepMax         = 2
	sweepMaxSchedule = 10
	sweepSkip        = 3 // so many that can't be read keep no others back
)

// defaultIdle is how long a thread lies still before its next job counts as lost: far
// longer than a runner takes to begin, on most days.
const defaultIdle = 5 * time.Minute

// idleElsewhere is the same where agents run in jobs that can't claim their thread: it
// lies still for as long as an agent may work.
const idleElsewhere = time.Hour

// sweep starts the next job of threads that nobody works on although they are due:
// their job died, or its dispatch got lost. It never fails a job.
func (j *job) sweep(ctx context.Context) {
	if j.in.Dispatch == DispatchOff {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, effectTime)
	defer cancel()
	idle := j.Idle
	switch {
	case idle == 0 && j.in.Command == CommandCommit:
		idle = idleElsewhere
	case idle == 0:
		idle = defaultIdle
	}
	if j.latest != nil && len(j.due(j.latest, idle)) == 0 {
		return // that view lacks claims of others, which only make fewer threads due
	}
	v, err := j.Engine.Store.Reload(ctx, j.latest)
	if err != nil {
		if !errors.Is(err, gitcas.ErrNoStore) {
			j.warn("threads whose next job got lost could not be looked for", err)
		}
		return
	}
	most := sweepMax
	switch {
	case j.out.Thread != "" || j.in.Thread != "":
		most = sweepMaxHop
	case j.ev.Kind == event.Schedule:
		most = sweepMaxSchedule
	}
	sent := 0
	for _, p := range j.some(j.due(v, idle), most+sweepSkip) {
		if sent == most {
			return
		}
		seen := j.readable(ctx, p.Thread)
		if seen == nil {
			continue
		}
		sent++
		entry, _ := v.Entry(p.Thread)
		n := j.nextOf(p.Thread, node.Pin{Hash: p.Head, Digest: seen.DigestOf(p.Head)}, &picture.Picture{ID: p.Thread, Entry: entry})
		n.store = v.StoreID()
		if err := j.send(ctx, n); err != nil {
			j.warn(fmt.Sprintf("thread %s is due, but its next job could not be started", p.Thread), err)
			return
		}
		j.Out.Notice(fmt.Sprintf("thread %s was due and nobody worked on it: its next job was started", p.Thread))
		j.hook(nil, "dispatched")
	}
}

// readable reads a thread; nil where a job for it could not read it either. Such a job
// would end as it began, and the thread be due again: a job for it after every other job,
// for ever.
func (j *job) readable(ctx context.Context, id gitcas.ThreadID) *picture.Picture {
	v, err := j.Engine.Store.Load(ctx, id)
	var seen *picture.Picture
	if err == nil {
		seen, err = picture.Seen(ctx, v, id)
	}
	if err != nil {
		j.warn(fmt.Sprintf("thread %s is due, but it can't be read, and no job is started for it", id), err)
		return nil
	}
	return seen
}

// due are the threads that wait for a job, but for the one whose next job this one
// has just started.
func (j *job) due(v *gitcas.View, idle time.Duration) []thread.Pending {
	return slices.DeleteFunc(j.Engine.Pending(v, idle), func(p thread.Pending) bool { return j.sent && p.Thread == j.out.Thread })
}

// some picks at most n of the threads, by chance: jobs that end at the same time pick
// different ones.
func (j *job) some(due []thread.Pending, n int) []thread.Pending {
	for i := range min(n, len(due)) {
		var b [4]byte
		if _, err := io.ReadFull(j.Rand, b[:]); err != nil {
			break
		}
		k := i + int(binary.BigEndian.Uint32(b[:])%uint32(len(due)-i))
		due[i], due[k] = due[k], due[i]
	}
	return due[:min(n, len(due))]
}
