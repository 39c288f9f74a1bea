package thread_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// awayRemote is a remote that is away for a while from the first request on that it is told to
// be away at.
type awayRemote struct {
	wire.Remote
	t     *testing.T
	kind  awayKind
	lasts time.Duration
	at    requests

	mu       sync.Mutex
	from     time.Time // zero: it has not been away yet
	notUntil time.Time // when it wants to be asked again
	pushed   time.Time // when it was last pushed to in vain
}

// awayKind is how a remote is away. Status codes, resets and the like are told apart in
// package wire (TestOutages): what is left of them here is whether a push was taken, how long
// the remote asks to wait, and how long it is until it is known that there is no answer.
type awayKind struct {
	taken  bool
	after  time.Duration
	hangs  time.Duration
	pushes bool // it lets reads through
}

var awayKinds = map[string]awayKind{
	"refused (500, 502, 503, reset before it was read)":   {},
	"refused for 30 s (429, 503 with Retry-After)":        {after: 30 * time.Second},
	"taken, not answered (reset, half a reply, 502, 504)": {taken: true},
	"a hang":                        {hangs: time.Minute},
	"a hang, but taken":             {taken: true, hangs: time.Minute},
	"taken, and a 429 said":         {taken: true, after: 30 * time.Second},
	"reads, but takes no pushes":    {pushes: true},
	"reads, but no pushes for 30 s": {pushes: true, after: 30 * time.Second},
}

// begin reports whether the remote is away for this request.
func (r *awayRemote) begin(op string, req wire.PushRequest) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if r.from.IsZero() && r.at(op, req) {
		r.from = now
	}
	away := !r.from.IsZero() && now.Before(r.from.Add(r.lasts)) && (op == "push" || !r.kind.pushes)
	if now.Before(r.notUntil) && (op == "push" || !r.kind.pushes) {
		r.t.Errorf("%s %s before the remote wants to be asked", op, r.notUntil.Sub(now))
	}
	if away && op == "push" {
		if !r.pushed.IsZero() && now.Sub(r.pushed) < 2*time.Second {
			r.t.Errorf("two pushes within %s", now.Sub(r.pushed))
		}
		r.pushed = now
	}
	return away
}

// fail is the answer of a remote that is away.
func (r *awayRemote) fail(ctx context.Context, op string) error {
	if r.kind.hangs > 0 {
		select {
		case <-time.After(r.kind.hangs):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notUntil = time.Now().Add(r.kind.after)
	return &wire.RemoteError{Op: op, URL: "memory:", Kind: wire.ErrUnreachable, RetryAfter: r.kind.after}
}

func (r *awayRemote) List(ctx context.Context, prefixes ...string) (wire.Listing, error) {
	if r.begin("list", wire.PushRequest{}) {
		return wire.Listing{}, r.fail(ctx, "list")
	}
	return r.Remote.List(ctx, prefixes...)
}

func (r *awayRemote) Fetch(ctx context.Context, req wire.FetchRequest) (wire.Objects, error) {
	if r.begin("fetch", wire.PushRequest{}) {
		return nil, r.fail(ctx, "fetch")
	}
	return r.Remote.Fetch(ctx, req)
}

func (r *awayRemote) Push(ctx context.Context, req wire.PushRequest) (time.Time, error) {
	if !r.begin("push", req) {
		return r.Remote.Push(ctx, req)
	}
	if r.kind.taken {
		if at, err := r.Remote.Push(ctx, req); err != nil { // it refuses before it breaks off
			return at, err
		}
	}
	return time.Time{}, r.fail(ctx, "push")
}

// requests tells requests apart; it may count them.
type requests func(op string, req wire.PushRequest) bool

// awayAt are the requests of a step that an outage begins at, and what is done meanwhile.
var awayAt = map[string]struct {
	at func() requests
	// do does it with r1 and checks it; nil: one step that must go well.
	do func(f *fixture)
	// pieces: only where pushes are not atomic such a request is made.
	pieces bool
}{
	"read":                 {at: func() requests { return func(op string, _ wire.PushRequest) bool { return op == "list" } }},
	"read of the thread":   {at: func() requests { return func(op string, _ wire.PushRequest) bool { return op == "fetch" } }},
	"claim":                {at: func() requests { return nth(1, claims) }},
	"re-check":             {at: func() requests { return after(claims) }},
	"renewal":              {at: func() requests { return nth(2, claims) }, do: workLong},
	"commit":               {at: func() requests { return nth(1, commits) }},
	"after the commit":     {at: func() requests { return after(commits) }, pieces: true},
	"attempt of a failure": {at: func() requests { return nth(1, keeps) }, do: failOnce},
	"release of a failure": {at: func() requests { return nth(1, releases) }, do: failOnce},
	"release":              {at: func() requests { return nth(1, releases) }, do: letGo},
}

// claims: it makes or renews a claim, alone.
func claims(req wire.PushRequest) bool {
	return len(req.Updates) == 1 && touches(req, "claims") && !req.Updates[0].New.IsZero()
}

// commits: it moves the state branch.
func commits(req wire.PushRequest) bool { return touches(req, "refs/heads/uwf-state") }

// keeps: it keeps an attempt.
func keeps(req wire.PushRequest) bool { return touches(req, "attempts") }

// releases: it deletes a claim.
func releases(req wire.PushRequest) bool {
	return slices.ContainsFunc(req.Updates, func(u wire.RefUpdate) bool { return strings.Contains(u.Name, "claims") && u.New.IsZero() })
}

// nth is the n-th push of a kind.
func nth(n int, is func(wire.PushRequest) bool) requests {
	return func(op string, req wire.PushRequest) bool {
		if op == "push" && is(req) {
			n--
		}
		return n == 0
	}
}

// after is the first request after a push of a kind.
func after(is func(wire.PushRequest) bool) requests {
	seen := false
	return func(op string, req wire.PushRequest) bool {
		was := seen
		seen = seen || op == "push" && is(req)
		return was
	}
}

// workLong is a step whose agent works for a quarter of an hour.
func workLong(f *fixture) {
	agent := f.agent
	f.agent = func(ctx context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
		select {
		case <-time.After(15 * time.Minute):
		case <-ctx.Done():
			return task.Draft{}, context.Cause(ctx)
		}
		if held, ok := f.view().FindClaim(testThread); !ok || held.Renewed <= held.Since {
			f.Errorf("after a quarter of an hour the claim is %+v", held)
		}
		return agent(ctx, t, m)
	}
	f.steps("r1")
}

// letGo has a step whose thread changes while it is claimed, and one that is done.
func letGo(f *fixture) {
	change := func(s gitcas.Status) { f.edit(func(e *gitcas.Entry) { e.Status = s }) }
	f.hook = func(point string) {
		if point == "claim" {
			change(gitcas.StatusSuspended)
		}
	}
	_, err := f.step("r0")
	f.code(err, life.KindNotYours)
	f.hook = nil
	f.unclaimed()
	change(gitcas.StatusActive)
	f.steps("r1")
}

// failOnce has a step whose agent pays and gives up, and one that is done.
func failOnce(f *fixture) {
	agent := f.agent
	f.agent = f.fails
	_, err := f.step("r0")
	f.code(err, life.KindFailed)
	if a := f.attempt("r0", 1); len(a.Nodes) == 0 {
		f.Error("nothing was kept of the agent that failed")
	}
	f.unclaimed()
	f.runs, f.agent = nil, agent
	f.steps("r1")
	if got := f.totals().Tokens; got != 121 {
		f.Errorf("%d tokens are counted, with those of the agent that failed", got)
	}
}

// TestOutages: however a remote is away, whenever that begins in a step, and for how long: the
// step is done, its agent ran once, and what was claimed is let go.
func TestOutages(t *testing.T) {
	for name, p := range awayAt {
		for how, kind := range awayKinds {
			for _, lasts := range []time.Duration{time.Second, 10 * time.Second, time.Minute, 5 * time.Minute} {
				for _, atomic := range []bool{true, false} {
					if atomic && p.pieces || kind.pushes && strings.HasPrefix(name, "read") {
						continue
					}
					t.Run(fmt.Sprintf("%s/%s/%s/atomic %t", name, how, lasts, atomic), func(t *testing.T) {
						bubble(t, atomic, func(f *fixture) {
							f.disk = &memoryDisk{}
							f.start()
							away := &awayRemote{Remote: f.mem, t: t, kind: kind, lasts: lasts, at: p.at()}
							f.remote.Remote = away
							if p.do != nil {
								p.do(f)
							} else {
								f.steps("r1")
							}
							if away.from.IsZero() {
								f.Fatal("the remote was never away")
							}
							f.paid(1)
							f.unclaimed()
							f.kept()
							if c := f.chain(); len(c.Steps) != 1 || *c.Steps[0].Run != (record.Run{ID: "r1", Attempt: 1}) {
								f.Errorf("the thread has the steps %+v", c.Steps)
							}
						})
					})
				}
			}
		}
	}
}

// TestLostReplyOfTwoRefs: the claim whose reply was lost is the job's own, also where the ref of
// the attempt that went out with it was moved on since, by a job that was not dead after all.
func TestLostReplyOfTwoRefs(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		f.claimBy(f.other(7 * time.Hour))
		done := false
		f.remote.after = func(_ string, req wire.PushRequest) error {
			if done || !touches(req, "claims") {
				return nil
			}
			done = true
			upd, objs, err := gitcas.BuildAttempt(gitcas.Attempt{Thread: testThread, Run: "other", Attempt: 1, Error: "late"})
			f.ok(err)
			upd.Old = f.mem.Refs()[upd.Name]
			_, err = f.mem.Push(f.Context(), wire.PushRequest{Updates: []wire.RefUpdate{upd}, Objects: objs})
			f.ok(err)
			return unreachable()
		}
		_, err := f.step("r1")
		f.ok(err)
		f.paid(1)
		f.unclaimed()
	})
}
