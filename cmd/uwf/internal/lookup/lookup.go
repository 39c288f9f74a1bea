// Package lookup finds the thread or step that an argument names: by its whole id,
// by the beginning of one, as @latest, as THREAD:N or by a step's hash; alive or
// ended. It only reads.
package lookup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/engine/attempt"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/lists"
)

// Latest names the thread that was started last.
const Latest = "@latest"

// MinPrefix is the least number of characters of an id that name a thread, of its beginning or
// of its end. Ids begin with their time, so fewer would only ever be ambiguous; the end is
// random.
const MinPrefix = 4

// Open opens the store.
type Open func(context.Context) (*gitcas.Store, error)

// Thread is a thread as it stands: alive on the tip, or ended.
type Thread struct {
	ID    gitcas.ThreadID
	Entry gitcas.Entry
	Ended *gitcas.Ended // nil while it is alive
	Store *gitcas.Store
	View  *gitcas.View // the thread is readable through it
}

// In finds the thread's nodes by their place.
func (t *Thread) In(ctx context.Context) func(gitcas.Place) node.Getter {
	return func(p gitcas.Place) node.Getter { return t.View.In(ctx, p) }
}

// Status is a thread's status as people see it.
func (t *Thread) Status() string {
	if t.Ended != nil {
		return t.Ended.Reason
	}
	return StatusOf(t.View, t.ID, t.Entry)
}

// The statuses that no entry says: a claim that counts makes a thread running, a
// failed attempt at its next step failed.
const (
	Running = string(life.Running)
	Failed  = string(life.Failed)
)

// StatusOf is a live thread's status as people see it.
func StatusOf(v *gitcas.View, id gitcas.ThreadID, e gitcas.Entry) string {
	s := life.Standing{Thread: id, Alive: true, Entry: e}
	if c, works := life.WorkingClaim(v, id, e); works {
		s.Claim = &c.Claim
	}
	return s.Status()
}

// Job is the claim of the job that works on a thread, as it is printed.
type Job struct {
	Run     string    `json:"run"`
	Attempt int       `json:"attempt"`
	Host    string    `json:"host"`
	Since   time.Time `json:"since"`
	Renewed time.Time `json:"renewed"`
	Tokens  int64     `json:"tokens"` // charged so far
	// Ahead: it is not the run at work, but the one that started that.
	Ahead bool `json:"ahead,omitempty"`
}

// JobOf is the job that holds a claim.
func JobOf(c gitcas.Held) Job {
	return Job{c.Run, c.Attempt, c.Host, time.UnixMilli(c.Since).UTC(), time.UnixMilli(c.Renewed).UTC(), c.Tokens, c.Ahead}
}

// HasWork reports whether the thread's work branch is on the remote: a thread that edited
// nothing has none, and that of one that has ended may be gone.
func (t *Thread) HasWork(ctx context.Context) (bool, error) {
	if t.Entry.Work.Branch == "" {
		return false, nil
	}
	ref := "refs/heads/" + t.Entry.Work.Branch
	if t.Ended == nil {
		_, there := t.View.Ref(ref)
		return there, nil
	}
	l, err := t.Store.Remote().List(ctx, ref)
	if err != nil {
		return false, fmt.Errorf("look for the work of thread %s: %w", t.ID, err)
	}
	return !l.Refs[ref].IsZero(), nil
}

// Results are what the thread's steps decided, as [moderator.Results] says it. If the workflow
// is not one that this version knows, the outputs and roles alone tell them.
func (t *Thread) Results(ctx context.Context) ([]string, error) {
	r := reading.Locate(ctx, t.View, t.ID)
	err := r.ReadChain(ctx, t.View)
	if errors.Is(err, workflow.ErrNoWorkflow) {
		r.Def = &workflow.Definition{}
		err = r.ReadOutputs()
	}
	if err != nil {
		return nil, err
	}
	return r.Results(), nil
}

// Attempts are the tries at the thread's next step that led to none.
func (t *Thread) Attempts(ctx context.Context) ([]attempt.Summary, error) {
	return attempt.ReadAll(ctx, t.Store, t.View, t.ID, t.Entry)
}

// AttemptsBefore are the tries that led to no step, before one did.
func (t *Thread) AttemptsBefore(ctx context.Context, step gitcas.ChainStep) ([]attempt.Summary, error) {
	if len(step.PreviousAttempts) == 0 {
		return nil, nil
	}
	return attempt.ReadLinkedTo(t.In(ctx), t.ID, step.Step)
}

// Ref is what an argument says of a thread, before any store was asked.
type Ref struct{ text string }

// Parse reads a THREAD argument: a whole id, the beginning or the end of one, @latest, or the
// hash of one of its steps. Small letters will do.
func Parse(arg string) (Ref, error) {
	if arg == Latest {
		return Ref{arg}, nil
	}
	if thread, n, ok := strings.Cut(arg, ":"); ok && n != "" {
		if _, err := Parse(thread); err == nil {
			return Ref{}, app.Usagef("%q names a step: write the thread alone, %s", arg, thread)
		}
	}
	text := strings.ToUpper(arg)
	if !isPrefix(text) && !isSuffix(text) && !node.Hash(text).Valid() {
		return Ref{}, app.Usagef("%.80q is no thread id: write its 26 characters of 0-9 and A-Z, the first or the last %d or more of them, or %s (see: uwf thread list --all)", arg, MinPrefix, Latest)
	}
	if len(text) < MinPrefix {
		return Ref{}, app.Usagef("%q is too little of a thread id: write at least %d characters of it (see: uwf thread list --all)", arg, MinPrefix)
	}
	return Ref{text}, nil
}

// RefTo names a thread whose id is known.
func RefTo(id gitcas.ThreadID) Ref { return Ref{string(id)} }

// isPrefix reports whether a text is the beginning of a thread id, or a whole one.
func isPrefix(s string) bool {
	return s != "" && len(s) <= len(filler) && gitcas.ThreadID(s+filler[len(s):]).Valid()
}

// isSuffix reports whether a text is the end of a thread id. What has the form of a step's hash is
// taken for one.
func isSuffix(s string) bool {
	return s != "" && len(s) < len(filler) && !node.Hash(s).Valid() && gitcas.ThreadID(filler[len(s):]+s).Valid()
}

// filler makes an id of its beginning, or of its end: the lowest one.
const filler = "00000000000000000000000000"

// isWhole reports whether the ref is an id that needs no looking up.
func (r Ref) isWhole() bool { return len(r.text) == len(filler) }

// ID is the id that a ref stands for. A whole one is taken as it is: who acts on
// the thread finds out whether it is there.
func (r Ref) ID(ctx context.Context, store *gitcas.Store) (gitcas.ThreadID, error) {
	if r.isWhole() {
		return gitcas.ThreadID(r.text), nil
	}
	v, err := store.Load(ctx)
	if err != nil {
		return "", err
	}
	return r.Resolve(ctx, v)
}

// Resolve is ID for who has read the store already.
func (r Ref) Resolve(ctx context.Context, v *gitcas.View) (gitcas.ThreadID, error) {
	if r.isWhole() {
		return gitcas.ThreadID(r.text), nil
	}
	c, err := r.resolveRef(ctx, v)
	return c.id, err
}

// FindThread reads a thread, alive or ended.
func (r Ref) FindThread(ctx context.Context, store *gitcas.Store) (*Thread, error) {
	if id := gitcas.ThreadID(r.text); r.isWhole() {
		v, err := store.Load(ctx, id)
		if err != nil {
			return nil, err
		}
		return readThread(ctx, store, v, candidate{id: id})
	}
	v, err := store.Load(ctx)
	if err != nil {
		return nil, err
	}
	c, err := r.resolveRef(ctx, v)
	if err != nil {
		return nil, err
	}
	return readCandidate(ctx, store, v, c)
}

// readCandidate is readThread through a view that was loaded for no thread.
func readCandidate(ctx context.Context, store *gitcas.Store, v *gitcas.View, c candidate) (*Thread, error) {
	if c.ended == nil {
		var err error
		if v, err = store.Reload(ctx, v, c.id); err != nil {
			return nil, err
		}
	}
	return readThread(ctx, store, v, c)
}

// readThread makes a Thread of an id, through a view that was loaded for it.
func readThread(ctx context.Context, store *gitcas.Store, v *gitcas.View, c candidate) (*Thread, error) {
	t := &Thread{ID: c.id, Store: store, View: v, Ended: c.ended}
	var alive bool
	if t.Entry, alive = v.Entry(c.id); alive {
		t.Ended = nil
		return t, nil
	}
	if t.Ended == nil {
		e, ok, err := v.FindEnded(ctx, c.id)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, newUnknownError(ctx, v, string(c.id))
		}
		t.Ended = &e
	}
	e := *t.Ended
	t.Entry = gitcas.Entry{Head: e.Head, Workflow: e.Workflow, Key: e.Key, Work: e.Work, PR: e.PR}
	var err error
	t.View, err = v.LoadEnded(ctx, e)
	return t, err
}

// Load opens the store and reads it.
func Load(ctx context.Context, open Open) (*gitcas.Store, *gitcas.View, error) {
	store, err := open(ctx)
	if err != nil {
		return nil, nil, err
	}
	v, err := store.Load(ctx)
	return store, v, err
}

// Find reads the thread that an argument names.
func Find(ctx context.Context, open Open, arg string) (*Thread, error) {
	r, err := Parse(arg)
	if err != nil {
		return nil, err
	}
	store, err := open(ctx)
	if err != nil {
		return nil, err
	}
	return r.FindThread(ctx, store)
}

// candidate is a thread that a ref may stand for.
type candidate struct {
	id    gitcas.ThreadID
	ended *gitcas.Ended // nil: alive
}

// grace is how far clocks may be apart, when a thread's end is compared with the
// time that its id says.
const grace = 24 * time.Hour

// maxListed is how many threads an error about an ambiguous beginning names.
const maxListed = 8

// resolveRef finds what a beginning, or @latest, stands for. Live threads go first:
// only where none fits is the history of the ended ones read.
func (r Ref) resolveRef(ctx context.Context, v *gitcas.View) (candidate, error) {
	if r.text == Latest {
		return findLatest(ctx, v)
	}
	begins := func(id gitcas.ThreadID) bool { return isPrefix(r.text) && strings.HasPrefix(string(id), r.text) }
	ends := func(id gitcas.ThreadID) bool { return isSuffix(r.text) && strings.HasSuffix(string(id), r.text) }
	var fits []candidate
	for id := range v.Threads() {
		if begins(id) || ends(id) {
			fits = append(fits, candidate{id: id})
		}
	}
	var err error
	if len(fits) == 0 && isPrefix(r.text) { // none ended before the first moment that such an id stands for
		fits, err = findEnded(ctx, v, historyStart(v, gitcas.ThreadID(r.text+filler[len(r.text):]).Time()), begins)
	}
	if len(fits) == 0 && err == nil && isSuffix(r.text) {
		fits, err = findEnded(ctx, v, v.Time().Add(-suffixAge), ends)
	}
	if err != nil {
		return candidate{}, err
	}
	switch len(fits) {
	case 0:
		return r.byStep(ctx, v)
	case 1:
		return fits[0], nil
	}
	return candidate{}, newAmbiguousError(r.text, fits)
}

// suffixAge is how long ago a thread may have ended to be found by the end of its id, which tells
// nothing of its time.
const suffixAge = 90 * 24 * time.Hour

// findEnded are the ended threads that are meant, of those that ended since then.
func findEnded(ctx context.Context, v *gitcas.View, from time.Time, isMeant func(gitcas.ThreadID) bool) ([]candidate, error) {
	var fits []candidate
	err := v.History(ctx, from, func(e gitcas.Ended) error {
		if isMeant(e.Thread) {
			fits = append(fits, candidate{id: e.Thread, ended: &e})
		}
		return nil
	})
	return fits, err
}

// historyStart is where to begin with the history for a thread that was started then.
// A time to come says nothing: it would skip today.
func historyStart(v *gitcas.View, started time.Time) time.Time {
	if now := v.Time(); started.After(now) {
		started = now
	}
	return started.Add(-grace)
}

// byStep finds the thread of a step's hash, which may be taken for the beginning
// of an id.
func (r Ref) byStep(ctx context.Context, v *gitcas.View) (candidate, error) {
	if h := node.Hash(r.text); h.Valid() {
		c, err := findStep(ctx, v, h)
		if err == nil || app.ExitCodeOf(err) != app.CodeUsage {
			return c, err
		}
	}
	return candidate{}, newUnknownError(ctx, v, r.text)
}

// findStep finds the thread in which a hash is that of a StepNode.
func findStep(ctx context.Context, v *gitcas.View, h node.Hash) (candidate, error) {
	found, err := gitcas.Find(ctx, v, h)
	switch {
	case errors.Is(err, node.ErrNotFound):
		var heads []string // what is known without reading any thread
		for _, e := range v.Threads() {
			heads = append(heads, string(e.Head))
		}
		return candidate{}, &app.UnknownError{What: "step", ID: string(h), Near: app.SuggestNames(string(h), heads), See: "uwf thread steps THREAD"}
	case err == nil && (!record.IsStep(found.Node.Type) && !record.IsStart(found.Node.Type) || found.Place.Thread == ""):
		err = app.Usagef("node %s is no step (see: uwf cas get %s)", h, h)
	}
	return candidate{found.Place.Thread, found.Ended}, err
}

// findLatest finds the thread that was started last: ids begin with their time. The history is read from its end
// on until what comes had ended before the best one was started.
func findLatest(ctx context.Context, v *gitcas.View) (candidate, error) {
	var best candidate
	for id := range v.Threads() {
		if id > best.id {
			best = candidate{id: id}
		}
	}
	from := time.Time{}
	if best.id != "" {
		from = historyStart(v, best.id.Time())
	}
	err := v.History(ctx, from, func(e gitcas.Ended) error {
		if best.id != "" && time.UnixMilli(e.CompletedAt).Before(best.id.Time().Add(-grace)) {
			return gitcas.ErrStop
		}
		if e.Thread > best.id {
			best = candidate{id: e.Thread, ended: &e}
		}
		return nil
	})
	if err == nil && best.id == "" {
		err = app.Usagef("there is no thread yet, so none is the latest; start one with: uwf thread start WORKFLOW -p \"…\"")
	}
	return best, err
}

func newAmbiguousError(text string, fits []candidate) error {
	ids := lists.Map(fits, func(c candidate) string { return string(c.id) })
	slices.Sort(ids)
	ids = slices.Compact(ids)
	shown := strings.Join(ids[:min(len(ids), maxListed)], ", ")
	if len(ids) > maxListed {
		shown += ", …"
	}
	return app.Usagef("%q names %d threads: %s: write more of it", text, len(ids), shown)
}

// maxNearRead is how many ended threads are read for suggestions.
const maxNearRead = 1000

// newUnknownError is the error for an id that nothing has, with what is near: among the
// live threads and those that ended after its time.
func newUnknownError(ctx context.Context, v *gitcas.View, text string) error {
	var ids []string
	for id := range v.Threads() {
		ids = append(ids, string(id))
	}
	from, alive := gitcas.ThreadID(text+filler[min(len(text), len(filler)):]).Time(), len(ids)
	// A history that can't be read is no reason to hide that the id is unknown.
	_ = v.History(ctx, historyStart(v, from), func(e gitcas.Ended) error {
		ids = append(ids, string(e.Thread))
		if len(ids) == alive+maxNearRead {
			return gitcas.ErrStop
		}
		return nil
	})
	return &app.UnknownError{What: "thread", ID: text, Near: app.SuggestNames(text, ids), See: "uwf thread list --all"}
}

// Step is one step of a thread's chain.
type Step struct {
	*Thread
	Chain gitcas.Chain
	N     int // from 1
}

// Node is the step's own record.
func (s *Step) Node() gitcas.ChainStep { return s.Chain.Steps[s.N-1] }

// StepRef is what an argument says of a step, before any store was asked: its
// hash, or a thread and a number.
type StepRef struct {
	hash   node.Hash
	thread Ref
	n      int
}

// ParseStep reads a STEP argument: THREAD:N, N from 1, or a step's hash.
func ParseStep(arg string) (StepRef, error) {
	thread, num, ok := strings.Cut(arg, ":")
	if !ok {
		if h, err := node.ReadHash(arg); err == nil {
			return StepRef{hash: h}, nil
		}
		return StepRef{}, app.Usagef("%.80q is no step: write THREAD:N, as in 01JY0000000000000000000000:2 or %s:2, or the step's hash", arg, Latest)
	}
	ref, err := Parse(thread)
	if err != nil {
		return StepRef{}, err
	}
	n, err := strconv.Atoi(num)
	if err != nil || n < 1 {
		return StepRef{}, app.Usagef("%.80q is no step: %q is no number from 1", arg, num)
	}
	return StepRef{thread: ref, n: n}, nil
}

// ErrStart is the error of a hash that is of the start of a thread, before all steps; the thread is
// returned with it, as step 0.
var ErrStart = errors.New("it is the start")

// FindStep reads the step that an argument names, and its thread.
func FindStep(ctx context.Context, open Open, arg string) (*Step, error) {
	r, err := ParseStep(arg)
	if err != nil {
		return nil, err
	}
	store, err := open(ctx)
	if err != nil {
		return nil, err
	}
	return r.LocateStep(ctx, store)
}

// LocateStep reads the step, and its thread.
func (r StepRef) LocateStep(ctx context.Context, store *gitcas.Store) (*Step, error) {
	s := &Step{N: r.n}
	var err error
	if r.hash == "" {
		s.Thread, err = r.thread.FindThread(ctx, store)
	} else {
		s.Thread, err = readThreadOf(ctx, store, r.hash)
	}
	if err != nil {
		return nil, err
	}
	if s.Chain, err = s.View.ReadChain(ctx, s.ID); err != nil {
		return nil, err
	}
	if r.hash != "" {
		s.N = 1 + slices.IndexFunc(s.Chain.Steps, func(c gitcas.ChainStep) bool { return c.Hash == r.hash })
	}
	switch {
	case s.N == 0 && r.hash == s.Chain.StartHash:
		return s, app.Usagef("node %s is no step: %w of thread %s (see: uwf thread steps %s)", r.hash, ErrStart, s.ID, s.ID)
	case s.N == 0:
		return nil, app.Usagef("node %s is kept in thread %s, but is no step of its chain: it was replaced, or failed (see: uwf cas get %s)", r.hash, s.ID, r.hash)
	case s.N > len(s.Chain.Steps):
		return nil, app.Usagef("thread %s has %d steps, there is no step %d (see: uwf thread steps %s)", s.ID, len(s.Chain.Steps), s.N, s.ID)
	}
	return s, nil
}

// readThreadOf reads the thread that a step is in.
func readThreadOf(ctx context.Context, store *gitcas.Store, h node.Hash) (*Thread, error) {
	v, err := store.Load(ctx)
	if err != nil {
		return nil, err
	}
	c, err := findStep(ctx, v, h)
	if err != nil {
		return nil, err
	}
	return readCandidate(ctx, store, v, c)
}
