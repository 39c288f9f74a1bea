package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/runner/ci"
	"github.com/united-workforce/uwf/engine/runner/threadview"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// meddling is a remote that somebody gets in front of the nth request of, until a step's
// claim is won: what a step makes of all that is engine/thread's to test.
type meddling struct {
	wire.Remote
	n, asked int
	over     bool
	meddle   func(op string) error
}

// meddleBefore makes the jobs that come next ask a meddling remote.
func (w *world) meddleBefore(n int, meddle func(op string) error) *meddling {
	m := &meddling{Remote: w.mem, n: n, meddle: meddle}
	w.wrap = func(wire.Remote) wire.Remote { return m }
	w.hook = func(point string) { m.over = m.over || point == "claim" }
	return m
}

func (m *meddling) ask(op string) error {
	if m.over {
		return nil
	}
	if m.asked++; m.asked == m.n {
		return m.meddle(op)
	}
	return nil
}

func (m *meddling) List(ctx context.Context, prefixes ...string) (wire.Listing, error) {
	if err := m.ask("list refs"); err != nil {
		return wire.Listing{}, err
	}
	return m.Remote.List(ctx, prefixes...)
}

func (m *meddling) Fetch(ctx context.Context, req wire.FetchRequest) (wire.Objects, error) {
	if err := m.ask("fetch"); err != nil {
		return nil, err
	}
	return m.Remote.Fetch(ctx, req)
}

func (m *meddling) Push(ctx context.Context, req wire.PushRequest) (time.Time, error) {
	if err := m.ask("push"); err != nil {
		return time.Time{}, err
	}
	return m.Remote.Push(ctx, req)
}

// describe tells what there is to see of all that jobs did.
func (w *world) describe() string {
	var all []string
	for _, e := range w.view().Threads() {
		all = append(all, fmt.Sprintf("%s is %s", e.Key, e.Status))
	}
	for _, e := range w.ended() {
		all = append(all, fmt.Sprintf("%s is %s after %d steps", e.Key, e.Reason, len(e.Steps)))
	}
	slices.Sort(all)
	return fmt.Sprintf("%s; agents ran as %v; answers %q", strings.Join(all, "; "), w.ran, w.replies(7))
}

// How a thread stands that a command is about.
func (w *world) stepOnce()  { w.mustRun(aJob{ev: labeled(7)}) }
func (w *world) stepToEnd() { w.mustRun(aJob{ev: labeled(7), in: ci.Inputs{StepsPerJob: 5}}) }
func (w *world) failStep() {
	w.say = fails
	_, _ = w.run(aJob{ev: labeled(7)})
	w.say = nil
}
func (w *world) suspendByHand() {
	w.stepOnce()
	id, _ := w.only()
	w.ok(w.runner(&aJob{run: "person"}).Engine.Suspend(w.Context(), id, "wait a bit"))
}
func (w *world) askPerson() {
	w.say = func(task.Task) (map[string]any, map[string]string, error) {
		return map[string]any{"$status": "ask", "note": "?"}, nil, nil
	}
	w.stepOnce()
	w.say = nil
}

func (w *world) mustRun(a aJob) ci.Outcome {
	w.Helper()
	out, err := w.run(a)
	w.ok(err)
	return out
}

// A command under which a request to the repository is denied makes the job red, or does
// what it does without that: no answer says what isn't so.
func TestCommandsUnderFaults(t *testing.T) {
	for name, c := range map[string]struct {
		set     func(*world)
		text    string
		attempt int
	}{
		"resume":              {(*world).askPerson, "/uwf resume yes", 1},
		"resume what failed":  {(*world).failStep, "/uwf resume", 1},
		"resume what is over": {(*world).stepToEnd, "/uwf resume once more", 1},
		"retry what failed":   {(*world).failStep, "/uwf retry", 1},
		"retry what waits":    {(*world).suspendByHand, "/uwf retry", 1},
		"cancel":              {(*world).askPerson, "/uwf cancel", 1},
		"fork":                {(*world).stepToEnd, "/uwf fork 1", 1},
		"fork, in a re-run":   {(*world).stepToEnd, "/uwf fork 1", 2},
		"status":              {(*world).stepOnce, "/uwf status", 1},
		"status of the ended": {(*world).stepToEnd, "/uwf status", 1},
		"status of no thread": {func(w *world) { w.mustRun(aJob{ev: labeled(8)}) }, "/uwf status", 1},
		"status of one by id": {(*world).stepToEnd, "/uwf status --thread=01JY0000000000000000000000", 1},
	} {
		t.Run(name, func(t *testing.T) {
			run := func(n int) (string, int, error) {
				w := newWorld(t)
				c.set(w)
				m := w.meddleBefore(n, func(op string) error { return &wire.RemoteError{Op: op, Kind: wire.ErrDenied} })
				_, err := w.run(aJob{ev: w.says(7, "owner", c.text), attempt: c.attempt})
				return w.describe(), m.asked, err
			}
			want, asked, err := run(0)
			if err != nil {
				t.Fatal(err)
			}
			for n := range asked {
				if got, _, err := run(n + 1); got != want && !errors.Is(err, wire.ErrDenied) {
					t.Errorf("request %d of %d is denied: %v\n%s\nwant an error, or\n%s", n+1, asked, err, got, want)
				}
			}
		})
	}
}

// A command that somebody gets in front of is answered, and no job is red for it.
func TestCommandsTooLate(t *testing.T) {
	cancel := func(e *thread.Engine, id gitcas.ThreadID) error {
		_, err := e.Cancel(t.Context(), id, "enough")
		return err
	}
	remove := func(e *thread.Engine, id gitcas.ThreadID) error { return e.Remove(t.Context(), id) }
	poke := func(e *thread.Engine, id gitcas.ThreadID) error { return e.Poke(t.Context(), id, "not so") }
	for name, c := range map[string]struct {
		set       func(*world)
		text      string
		meanwhile func(*thread.Engine, gitcas.ThreadID) error
	}{
		"resume, cancelled":   {(*world).askPerson, "/uwf resume yes", cancel},
		"retry, cancelled":    {(*world).failStep, "/uwf retry", cancel},
		"cancel, cancelled":   {(*world).askPerson, "/uwf cancel", cancel},
		"fork, removed":       {(*world).stepToEnd, "/uwf fork 1", remove},
		"fork, a step less":   {(*world).stepOnce, "/uwf fork 1", poke},
		"resume, and removed": {(*world).stepToEnd, "/uwf resume", remove},
	} {
		t.Run(name, func(t *testing.T) {
			run := func(n int) int {
				w := newWorld(t)
				c.set(w)
				var id gitcas.ThreadID
				if e := w.ended(); len(e) > 0 {
					id = e[0].Thread
				} else {
					id, _ = w.only()
				}
				person := w.runner(&aJob{run: "person"}).Engine.Engine
				m := w.meddleBefore(n, func(string) error {
					_ = c.meanwhile(person, id) // it may come too late itself
					return nil
				})
				if out, err := w.run(aJob{ev: w.says(7, "owner", c.text)}); err != nil {
					t.Errorf("before request %d: the job is red: %v, %+v", n, err, out)
				}
				return m.asked
			}
			for n := range run(0) {
				run(n + 1)
			}
		})
	}
}

// A limit on cost that can't be kept, since a model has no price, is refused before there
// is a thread, and who wants one is told what to do.
func TestCostLimitsNeedPrices(t *testing.T) {
	w := newWorld(t)
	w.prices = errors.New("what the model m costs is unknown: uwf config set --repo models.m.price.input DOLLARS")
	w.limits.CostUSD = 5
	_, err := w.run(aJob{ev: labeled(7)})
	if life.KindOf(err) != life.KindUsage || len(w.view().Threads()) != 0 || len(w.ran) != 0 {
		t.Errorf("%v, threads %v, %d agents ran", err, w.view().Threads(), len(w.ran))
	}
	said := strings.Join(w.replies(7), "\n")
	for _, want := range []string{"a limit of $5 on the thread's cost can't be kept", "uwf config set --repo models.m.price.input DOLLARS"} {
		if !strings.Contains(said, want) {
			t.Errorf("it is not told %q:\n%s", want, said)
		}
	}
	w.prices = nil
	w.mustRun(aJob{ev: labeled(7)})
	w.only()
}

// What a command can't do is answered, and nothing is done.
func TestCommandsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(*world)
		text string
		why  string
	}{
		"help asks for no thread":       {(*world).stepOnce, "/uwf help", "What can be said in a comment"},
		"a path for an agent":           {(*world).askPerson, "/uwf resume --agent=bin/x", "name of an agent"},
		"a command line for an agent":   {(*world).askPerson, "/uwf resume --agent='sh -c id'", "name of an agent"},
		"an id that is none":            {(*world).askPerson, "/uwf resume --thread=x", "no thread here"},
		"an id that nothing has":        {(*world).askPerson, "/uwf resume --thread=01JY0000000000000000000000", "no thread here"},
		"a thread of another issue":     {func(w *world) { w.mustRun(aJob{ev: labeled(8)}) }, "/uwf resume", "no thread here"},
		"resume with no steps":          {(*world).askPerson, "/uwf resume --max-steps=0", "`--max-steps=0`: write a whole number"},
		"resume with half a step":       {(*world).askPerson, "/uwf resume --max-steps=0.5", "`--max-steps=0.5`: write a whole number"},
		"resume with words for tokens":  {(*world).askPerson, "/uwf resume --tokens=many", "`--tokens=many`: write a number"},
		"resume with too much":          {(*world).askPerson, "/uwf resume --cost-usd=1e30", "`--cost-usd=1e30`: write a number"},
		"resume with no time":           {(*world).askPerson, "/uwf resume --wall=3", "`--wall=3`: write a number"},
		"retry what is over":            {(*world).stepToEnd, "/uwf retry", "It is over."},
		"retry what asks":               {(*world).askPerson, "/uwf retry", "It asks something"},
		"cancel what is over":           {(*world).stepToEnd, "/uwf cancel", "It is over already."},
		"fork with less than no steps":  {(*world).stepToEnd, "/uwf fork :-1", "Write `/uwf fork N`"},
		"fork with more than it has":    {(*world).stepToEnd, "/uwf fork 3", "0 to 2"},
		"fork with words":               {(*world).stepToEnd, "/uwf fork one", "Write `/uwf fork N`"},
		"fork twice":                    {(*world).stepToEnd, "/uwf fork 1 1", "Write `/uwf fork N`"},
		"fork with no steps left to do": {(*world).stepToEnd, "/uwf fork 2", "leads to the end"},
		"resume with no price":          {unpriced((*world).askPerson), "/uwf resume --cost-usd=1 yes", "what the model m costs is unknown"},
		"fork with no price":            {unpriced((*world).stepToEnd), "/uwf fork 1 --cost-usd=1", "what the model m costs is unknown"},
		"fork with no limit":            {(*world).stepToEnd, "/uwf fork 1 --max-steps=-1", "`--max-steps=-1`: write a whole number"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c.set(w)
			before, ran := w.describe(), len(w.ran)
			w.command(7, c.text)
			w.replied(7, c.why)
			w.forge.comments[7] = nil
			if got := w.describe(); len(w.ran) != ran || got != before {
				t.Errorf("something was done:\n%s\nbefore:\n%s", got, before)
			}
		})
	}
}

// unpriced sets a world up in which a model has no price.
func unpriced(set func(*world)) func(*world) {
	return func(w *world) {
		set(w)
		w.prices = errors.New("what the model m costs is unknown")
	}
}

// A removed thread is not there, also where a command names it.
func TestCommandMeansNoRemoved(t *testing.T) {
	w := newWorld(t)
	w.stepToEnd()
	id := w.ended()[0].Thread
	w.ok(w.runner(&aJob{run: "person"}).Engine.Remove(t.Context(), id))
	w.command(7, "/uwf status --thread="+string(id))
	w.replied(7, "no thread here")
}

// Of several threads of an issue that are over, the one that ended last is meant.
func TestCommandMeansTheLast(t *testing.T) {
	w := newWorld(t)
	w.stepToEnd()
	w.later(time.Hour)
	w.stepToEnd()
	last := w.ended()[0]
	if out := w.command(7, "/uwf status"); out.Thread != last.Thread {
		t.Errorf("it is thread %s, want %s", out.Thread, last.Thread)
	}
}

// What people let go on is gone on with only where it can be read, and a command that is
// run again has been carried out only where that was read.
func TestCommandCarriedOutUnread(t *testing.T) {
	denied := func(op string) error { return &wire.RemoteError{Op: op, Kind: wire.ErrDenied} }
	for name, c := range map[string]struct {
		set         func(*world)
		text, point string
	}{
		"resume": {(*world).askPerson, "/uwf resume yes", "resume"},
		"retry":  {(*world).failStep, "/uwf retry", "retry"},
		"fork":   {(*world).stepToEnd, "/uwf fork 1", "started"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c.set(w)
			ran := len(w.ran)
			m := w.meddleBefore(0, denied)
			w.hook = func(point string) {
				if point == c.point {
					m.n = m.asked + 1
				}
			}
			_, err := w.run(aJob{ev: w.says(7, "owner", c.text)})
			if !errors.Is(err, wire.ErrDenied) || len(w.ran) != ran {
				t.Errorf("agents ran as %v, the job ended with %v", w.ran, err)
			}
		})
	}
	t.Run("fork, again", func(t *testing.T) {
		for n, over := 1, false; !over; n++ {
			w := newWorld(t)
			w.stepToEnd()
			a := aJob{run: "77", ev: w.says(7, "owner", "/uwf fork 1")}
			w.mustRun(a)
			m := w.meddleBefore(n, denied)
			a.attempt = 2
			_, _ = w.run(a)
			if ended := w.ended(); len(ended) != 2 || len(w.view().Threads()) != 0 {
				t.Errorf("request %d is denied: it forks again: %s", n, w.describe())
			}
			over = m.asked < n
		}
	})
}

// A step that is committed leads to the next job, also where the store can't be read then.
func TestNextJobUnread(t *testing.T) {
	w := newWorld(t)
	m := w.meddleBefore(0, func(op string) error { return &wire.RemoteError{Op: op, Kind: wire.ErrDenied} })
	w.hook = func(point string) {
		if point == "commit" {
			m.n = m.asked + 1
		}
	}
	a := aJob{ev: labeled(7), out: &heard{}}
	out, err := w.run(a)
	if err != nil || len(w.forge.sent) != 1 || len(a.out.warnings) != 0 || out.Notice != "" {
		t.Fatalf("the job ended with %v, %+v; started %v, warned %v", err, out, w.forge.sent, a.out.warnings)
	}
	if d := w.forge.sent[0].inputs; d["comment"] != fmt.Sprint(w.forge.comments[7][0].ID) || !strings.HasPrefix(d["head"], string(out.Head)+"@sha256:") {
		t.Errorf("started with %v", d)
	}
	w.wrap, w.hook = nil, nil
	w.drain()
	w.delivered(7, 2)
}

// A fork of a thread that asks asks the same: people are told, and no agent works.
func TestForkWaits(t *testing.T) {
	w := newWorld(t)
	w.askPerson()
	ran := len(w.ran)
	out := w.command(7, "/uwf fork")
	if out.Status != string(gitcas.StatusSuspended) || len(w.ran) != ran {
		t.Errorf("the outcome is %+v, agents ran as %v", out, w.ran)
	}
	if got := w.stickies(7); len(got) != 2 || !strings.Contains(got[1], string(out.Thread)) {
		t.Errorf("the comments are %q", got)
	}
}

// Without random numbers no thread is begun.
func TestForkWithoutChance(t *testing.T) {
	w := newWorld(t)
	w.stepToEnd()
	a := aJob{ev: w.says(7, "owner", "/uwf fork 1")}
	r := w.runner(&a)
	r.Rand = iotest.ErrReader(errBroken)
	if _, err := r.Run(t.Context(), a.ev); !errors.Is(err, errBroken) || len(w.view().Threads()) != 0 {
		t.Errorf("the job ended with %v", err)
	}
}

// A thread works on its own branch, or on that of the open pull request of this
// repository that it is about. Everything else that its entry names is refused.
func TestMayWorkOn(t *testing.T) {
	const id, other gitcas.ThreadID = "01JD0000000000000000000001", "01JD0000000000000000000002"
	about := func(pull bool, n int) *threadview.Thread {
		return &threadview.Thread{ID: id, Trigger: threadview.Trigger{Pull: pull, Number: n}}
	}
	open := func(repo, name string) forge.Pull {
		return forge.Pull{Number: 7, Open: true, Head: forge.Branch{Repo: repo, Name: name}}
	}
	const theirs = "neither its own nor that of its pull request"
	for name, c := range map[string]struct {
		branch string
		p      *threadview.Thread
		pull   forge.Pull
		fails  string // what the forge does not answer
		commit bool   // the job commits what an agent has done
		why    string // empty: it may
	}{
		"none":                         {branch: ""},
		"its own":                      {branch: layout.WorkBranch(id)},
		"another thread's":             {branch: layout.WorkBranch(other), p: about(false, 7), pull: open("o/r", layout.WorkBranch(other)), why: theirs},
		"its pull request's":           {branch: "topic", p: about(true, 7), pull: open("o/r", "topic")},
		"in other capitals":            {branch: "topic", p: about(true, 7), pull: open("O/R", "topic")},
		"of a thread not seen":         {branch: "topic", pull: open("o/r", "topic"), why: theirs},
		"of another thread's view":     {branch: "topic", p: &threadview.Thread{ID: other, Trigger: about(true, 7).Trigger}, pull: open("o/r", "topic"), why: theirs},
		"of an issue":                  {branch: "topic", p: about(false, 7), pull: open("o/r", "topic"), why: theirs},
		"of no number":                 {branch: "topic", p: about(true, 0), pull: forge.Pull{Open: true, Head: forge.Branch{Repo: "o/r", Name: "topic"}}, why: theirs},
		"the default branch":           {branch: "main", p: about(true, 7), pull: open("o/r", "main"), why: theirs},
		"the state branch":             {branch: "uwf-state", p: about(true, 7), pull: open("o/r", "uwf-state"), why: theirs},
		"no such pull request":         {branch: "topic", p: about(true, 8), pull: open("o/r", "topic"), why: theirs},
		"of another name":              {branch: "topic", p: about(true, 7), pull: open("o/r", "other"), why: theirs},
		"a fork's of the same name":    {branch: "topic", p: about(true, 7), pull: open("stranger/r", "topic"), why: theirs},
		"of a fork that is gone":       {branch: "topic", p: about(true, 7), pull: open("", "topic"), why: theirs},
		"merged":                       {branch: "topic", p: about(true, 7), pull: forge.Pull{Number: 7, Merged: true, Head: forge.Branch{Repo: "o/r", Name: "topic"}}},
		"closed":                       {branch: "topic", p: about(true, 7), pull: forge.Pull{Number: 7, Head: forge.Branch{Repo: "o/r", Name: "topic"}}},
		"closed, and the work is done": {branch: "topic", p: about(true, 7), pull: forge.Pull{Number: 7, Head: forge.Branch{Repo: "o/r", Name: "topic"}}, commit: true},
		"a fork's, the work is done":   {branch: "topic", p: about(true, 7), pull: open("stranger/r", "topic"), commit: true, why: theirs},
		"no default branch known":      {branch: "topic", p: about(true, 7), pull: open("o/r", "topic"), fails: "repository", why: "do it"},
		"no answer":                    {branch: "topic", p: about(true, 7), pull: open("o/r", "topic"), fails: "pull", why: "read pull request #7"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeForge()
			f.pulls = []*forge.Pull{&c.pull}
			f.before = func(op string) error {
				if op == c.fails {
					return fault(forge.ErrUnreachable, false)
				}
				return nil
			}
			a := aJob{}
			j := newJob(newWorld(t).runner(&a), a.ev)
			j.Forge, j.Branch = f, "main"
			if c.fails == "repository" {
				j.Branch, j.Engine.Store = "", gitcas.Open(wiretest.NewMemory(wiretest.MemoryOptions{}), gitcas.Options{})
			}
			if c.commit {
				j.Inputs.Command = ci.CommandCommit
			}
			err := j.steps.checkWorkBranch(t.Context(), id, gitcas.Entry{Work: gitcas.Work{Branch: c.branch}}, c.p)
			switch {
			case c.why == "" && err != nil:
				t.Error(err)
			case c.why != "" && (err == nil || !strings.Contains(err.Error(), c.why)):
				t.Errorf("the error is %v, want %q in it", err, c.why)
			}
		})
	}
}
