// Package sweep finds the refs of a store that nobody needs any more: claims of
// jobs that died, attempts of threads that are over, what uwf doctor left. It
// decides and deletes, each ref only at the value that it was judged by; it never
// touches a branch, the state or a working folder.
package sweep

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/lists"
)

// Options say what may go.
type Options struct {
	// OlderThan is how long something must have been over: since its thread ended,
	// or, where that is not known, since it was written.
	OlderThan time.Duration
	// Alive reports whether a claim's job is to be taken for running.
	Alive func(c gitcas.Claim, now time.Time) bool
}

// State is what became of a thread.
type State string

// The states.
const (
	Living  State = "alive"
	Over    State = "ended" // or cancelled, or removed
	Unknown State = "unknown"
)

// Thread is a thread that refs or folders are for.
type Thread struct {
	State State
	Since time.Time // when it ended
}

// Ref is one ref and what is to become of it.
type Ref struct {
	layout.Ref
	Name   string
	ID     wire.ID
	Delete bool
	Why    string
}

// Result is what Plan found.
type Result struct {
	Refs []Ref
	// Threads are those that were asked for, and those that refs are for.
	Threads map[gitcas.ThreadID]Thread
	Store   string    // the store's id
	Now     time.Time // by the server's clock
	// MostRefs is how many refs a push may update, as far as is known.
	MostRefs int
}

// Plan judges every ref below refs/uwf/. more are threads that the caller wants to
// know of besides. It changes nothing.
func Plan(ctx context.Context, store *gitcas.Store, o Options, more ...gitcas.ThreadID) (Result, error) {
	l, err := store.Remote().List(ctx, layout.Refs)
	if err != nil {
		return Result{}, fmt.Errorf("list the store's refs: %w", err)
	}
	// The view is younger than the listing: what a job does meanwhile is seen, or
	// its ref has another value by then.
	v, err := store.Load(ctx)
	if err != nil {
		return Result{}, err
	}
	j := &judge{store: store, v: v, o: o, now: v.Time(), refs: l.Refs}
	if err := j.readThreads(ctx, more); err != nil {
		return Result{}, err
	}
	if err := j.readDates(ctx); err != nil {
		return Result{}, err
	}
	out := Result{Threads: j.known, Store: v.StoreID(), Now: j.now, MostRefs: store.MostRefs(v)}
	for _, name := range slices.Sorted(maps.Keys(l.Refs)) {
		if name != layout.StoreRef {
			out.Refs = append(out.Refs, j.judgeRef(name))
		}
	}
	return out, nil
}

// judge decides about refs.
type judge struct {
	store *gitcas.Store
	v     *gitcas.View
	o     Options
	now   time.Time
	refs  map[string]wire.ID
	known map[gitcas.ThreadID]Thread
	made  map[wire.ID]time.Time // when commits of attempts were made
}

// readThreads looks up what became of the threads that refs are for.
func (j *judge) readThreads(ctx context.Context, more []gitcas.ThreadID) error {
	j.known = map[gitcas.ThreadID]Thread{}
	open := map[gitcas.ThreadID]bool{}
	add := func(id gitcas.ThreadID) {
		if _, alive := j.v.Entry(id); alive {
			j.known[id] = Thread{State: Living}
		} else if id.Valid() {
			j.known[id] = Thread{State: Unknown}
			open[id] = true
		}
	}
	for name := range j.refs {
		add(layout.ParseRef(name).Thread)
	}
	for _, id := range more {
		add(id)
	}
	ended, err := view.FindAllEnded(ctx, j.v, time.Time{}, slices.Collect(maps.Keys(open))...)
	if err != nil {
		return fmt.Errorf("look for threads among the ended ones: %w", err)
	}
	for id, e := range ended {
		j.known[id] = Thread{State: Over, Since: time.UnixMilli(e.CompletedAt)}
	}
	return nil
}

// datesAtOnce bounds one request.
const datesAtOnce = 500

// readDates reads when attempts were made.
func (j *judge) readDates(ctx context.Context) error {
	j.made = map[wire.ID]time.Time{}
	var ids []wire.ID
	for name, id := range j.refs {
		if layout.ParseRef(name).Kind == layout.AttemptKind {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b wire.ID) int { return slices.Compare(a[:], b[:]) })
	for chunk := range slices.Chunk(slices.Compact(ids), datesAtOnce) {
		objs, err := j.store.Remote().Fetch(ctx, wire.FetchRequest{Wants: chunk, Depth: 1, Filter: "tree:0"})
		if errors.Is(err, wire.ErrNotFound) {
			continue // one was deleted meanwhile: these stay this time
		}
		if err != nil {
			return fmt.Errorf("read when attempts were made: %w", err)
		}
		for _, id := range chunk {
			if o, ok := objs[id]; ok && o.Type == plumbing.CommitObject {
				if c, err := gitobj.DecodeCommit(o.Data); err == nil {
					j.made[id] = c.Committer.When
				}
			}
		}
	}
	return nil
}

func (j *judge) judgeRef(name string) Ref {
	r := Ref{Ref: layout.ParseRef(name), Name: name, ID: j.refs[name]}
	switch r.Kind {
	case layout.ClaimKind:
		r.Delete, r.Why = j.judgeClaim(r)
	case layout.AttemptKind:
		r.Delete, r.Why = j.judgeAttempt(r)
	case layout.TrialKind:
		r.Delete, r.Why = true, "uwf doctor made it to try, and was stopped before it removed it"
	default:
		r.Why = "not a kind of ref that this uwf knows"
	}
	return r
}

// judgeClaim: one that counts is nobody's but its job's. A dead one on the head of a
// live thread is counted as a failed attempt by the next step.
func (j *judge) judgeClaim(r Ref) (bool, string) {
	held, ok := j.v.FindClaim(r.Thread)
	if !ok || held.ID != r.ID {
		return false, "it changed while it was looked at"
	}
	if j.o.Alive(held.Claim, j.now) {
		return false, "its job is running"
	}
	entry, alive := j.v.Entry(r.Thread)
	switch {
	case alive && held.Head == entry.Head:
		return false, "its job died; the next step counts it as a failed attempt"
	case alive:
		return true, "its job died, and the thread has moved on"
	}
	return true, "its job died, and its thread is " + j.describeEnd(r.Thread)
}

func (j *judge) describeEnd(id gitcas.ThreadID) string {
	if j.known[id].State == Over {
		return "over"
	}
	return "not known to this store"
}

// judgeAttempt: of a thread that is alive it stays while it is linked, or may still be.
func (j *judge) judgeAttempt(r Ref) (bool, string) {
	made, dated := j.made[r.ID]
	if !dated {
		return false, "when it was made could not be read"
	}
	since := made
	entry, alive := j.v.Entry(r.Thread)
	if alive {
		_, claimed := j.v.FindClaim(r.Thread)
		switch {
		case slices.Contains(entry.Attempts, r.Name):
			return false, "the thread's entry links it"
		case claimed:
			return false, "a job is, or was, at work on its thread"
		case !j.store.Atomic(j.v):
			return false, "it may hold a work commit until the work branch has it"
		}
	} else if t := j.known[r.Thread]; t.State == Over && t.Since.After(since) {
		since = t.Since
	}
	if age := j.now.Sub(since); age < j.o.OlderThan {
		return false, fmt.Sprintf("it is needed by nobody, but younger than %s", formatAge(j.o.OlderThan))
	}
	if alive {
		return true, "its thread has moved on, and nothing links it"
	}
	return true, "its thread is " + j.describeEnd(r.Thread)
}

// formatAge writes a duration as people do: in days where it is whole days.
func formatAge(d time.Duration) string {
	const aDay = 24 * time.Hour
	if d >= aDay && d%aDay == 0 {
		return fmt.Sprintf("%d days", d/aDay)
	}
	return d.String()
}

// Delete deletes the refs that are to go, each only if it still has the value that
// it was judged by, and most of them a push, or fewer where the remote wants that. It returns
// them as they are now: one that somebody moved stays, and says so.
func Delete(ctx context.Context, remote wire.Remote, refs []Ref, most int) ([]Ref, error) {
	out := slices.Clone(refs)
	var todo []int
	for i, r := range out {
		if r.Delete {
			todo = append(todo, i)
		}
	}
	for len(todo) > 0 {
		chunk := todo[:min(max(most, 1), len(todo))]
		updates := lists.Map(chunk, func(i int) wire.RefUpdate { return wire.RefUpdate{Name: out[i].Name, Old: out[i].ID} })
		_, err := remote.Push(ctx, wire.PushRequest{Updates: updates})
		if fewer, ok := wire.RefLimitAfter(err, len(chunk)); ok {
			most = fewer
			continue
		}
		todo = todo[len(chunk):]
		if err = noteStayed(out, chunk, err); err != nil {
			return out, err
		}
	}
	return out, nil
}

// noteStayed notes which refs of a push stayed.
func noteStayed(refs []Ref, chunk []int, err error) error {
	var part *wire.PartialError
	var one *wire.RemoteError
	partly := errors.As(err, &part)
	if lost := errors.As(err, &one) && errors.Is(one, wire.ErrLostRace); err != nil && !partly && !lost {
		return fmt.Errorf("delete refs: %w", err)
	}
	for _, i := range chunk {
		kept := one
		if partly {
			kept = part.Refused[refs[i].Name]
		}
		if kept != nil {
			refs[i].Delete, refs[i].Why = false, describeKept(kept)
		}
	}
	return nil
}

func describeKept(e *wire.RemoteError) string {
	if errors.Is(e, wire.ErrLostRace) {
		return "it changed meanwhile"
	}
	return "the remote refused: " + e.Detail
}
