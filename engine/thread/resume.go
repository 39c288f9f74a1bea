package thread

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/engine/workbranch"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/internal/text"
)

// ResumeRequest lets a thread go on.
type ResumeRequest struct {
	Thread gitcas.ThreadID
	// Text is what the role that works next is told; it may be empty.
	Text string
	// Written is when the text was, where that is known; an answer that is older than the
	// question is none.
	Written time.Time
	// Limits are limits of the thread's own to raise.
	Limits map[string]float64
	// TakeBranch has it go on from its work branch as it is now, whatever became of its commits.
	TakeBranch bool
}

// Resume lets a suspended thread go on: the role that waits is told the text. A
// thread that has ended goes on by its workflow's `resume` edge; one that was
// cancelled never does. A pause that has not taken effect yet is taken back. Of a thread
// that does not wait the limits can be raised.
func (e *Engine) Resume(ctx context.Context, req ResumeRequest) error {
	if err := life.CheckLimits(req.Limits); err != nil {
		return err
	}
	text, err := cleanWords(e.Redact, "answer", req.Text)
	if err != nil {
		return err
	}
	req.Text = text
	v, err := e.Store.Load(ctx, req.Thread)
	if err != nil {
		return fmt.Errorf("resume thread %s: %w", req.Thread, err)
	}
	if err := e.checkRaisedCost(ctx, v, req); err != nil {
		return err
	}
	if entry, _ := v.Entry(req.Thread); entry.Status == gitcas.StatusActive && req.Text == "" && len(req.Limits) > 0 {
		return e.raiseLimits(ctx, v, req)
	}
	r := &resumption{e: e, req: req, by: e.identifySpeaker(ctx, v, req.Thread)}
	if v, err = e.Update(ctx, v, func(v *gitcas.View) (*gitcas.Change, error) { return r.buildChange(ctx, v) }, req.Thread); err != nil {
		return err
	}
	e.Reached("resume")
	e.tellLowerLimits(ctx, v, req)
	return nil
}

// raiseLimits raises limits of a thread that does not wait.
func (e *Engine) raiseLimits(ctx context.Context, v *gitcas.View, req ResumeRequest) error {
	if _, err := e.Judge(ctx, v, req.Thread, life.Raise); err != nil {
		return err
	}
	err := e.withClaim(ctx, v, req.Thread, forDeed(life.Raise), func(_ *gitcas.View, entry *gitcas.Entry) (c *gitcas.Change, err error) {
		entry.Limits, err = life.RaiseLimits(entry.Limits, req.Limits)
		return story.SetEntry(&gitcas.Change{}, req.Thread, *entry, "limits raised", "", e.By), err
	})
	if err == nil {
		e.tellLowerLimits(ctx, v, req)
	}
	return err
}

// tellLowerLimits says where a raised limit has no effect, because the configuration or
// the workflow sets a lower one.
func (e *Engine) tellLowerLimits(ctx context.Context, v *gitcas.View, req ResumeRequest) {
	if len(req.Limits) == 0 {
		return
	}
	t, err := reading.Read(ctx, v, req.Thread)
	if err != nil {
		return // the next step will say
	}
	own, now := life.OwnLimits(req.Limits), LimitsOf(e.Settings, t)
	for _, l := range []struct {
		name  string
		lower bool
		value any
	}{
		{"maxSteps", now.MaxSteps < own.MaxSteps, now.MaxSteps},
		{"maxStepsPerRole", now.MaxStepsPerRole < own.MaxStepsPerRole, now.MaxStepsPerRole},
		{"tokens", now.Tokens < own.Tokens, now.Tokens},
		{"costUsd", now.CostUSD < own.CostUSD, now.CostUSD},
		{"wall", now.Wall < own.Wall, now.Wall},
	} {
		if l.lower {
			e.Emit(Event{Kind: "notice", Thread: req.Thread, Text: fmt.Sprintf("limit %s stays %v: the configuration or the workflow sets it, and the lowest counts", l.name, l.value)})
		}
	}
}

// checkRaisedCost refuses a limit on cost that can't be kept.
func (e *Engine) checkRaisedCost(ctx context.Context, v *gitcas.View, req ResumeRequest) error {
	if req.Limits["costUsd"] == 0 {
		return nil
	}
	t, _, err := reading.ReadAnywhere(ctx, v, req.Thread)
	if err != nil {
		return nil //nolint:nilerr // what follows says it
	}
	return CheckCostLimit(e.Settings, t.Def, req.Limits)
}

// resumption is one Resume, over all its tries.
type resumption struct {
	e   *Engine
	req ResumeRequest
	by  *story.Person
	// since is what the last try wrote; 0: there was none.
	since int64
	// before is the entry that the text is an answer to; of an ended thread only its
	// head.
	before gitcas.Entry
}

func (r *resumption) refuseResume(reason string, next ...life.Verb) error {
	return life.Refuse(life.Resume, r.req.Thread, reason, next...)
}

// buildChange is the push that resumes the thread, as v allows it.
func (r *resumption) buildChange(ctx context.Context, v *gitcas.View) (*gitcas.Change, error) {
	entry, alive := v.Entry(r.req.Thread)
	if r.since != 0 && !life.SameThread(entry, r.before) && (alive || r.before.Status != "") {
		return nil, r.refuseChanged() // what it asks now is another question, or none
	}
	s, err := r.e.Judge(ctx, v, r.req.Thread, life.Resume)
	if err != nil {
		return nil, err
	}
	if state := s.FindState(); r.req.TakeBranch && state != life.Suspended && state != life.Undelivered {
		return nil, r.refuseResume("its work branch is only taken as it is while it waits for a person")
	}
	how := map[life.State]func(context.Context, *gitcas.View, gitcas.Entry) (*gitcas.Change, error){
		life.Ended: r.reopenEnded, life.ToDeliver: r.reopenUndelivered, life.Undelivered: r.deliverAgain,
		life.Pausing: r.withdrawPause, life.Suspended: r.continueThread,
	}
	return how[s.FindState()](ctx, v, entry)
}

func (r *resumption) refuseChanged() error {
	return r.refuseResume("it changed meanwhile", life.NewLookAgainVerb(r.req.Thread))
}

// withdrawPause takes back a pause that a running step does not know of yet.
func (r *resumption) withdrawPause(_ context.Context, _ *gitcas.View, entry gitcas.Entry) (*gitcas.Change, error) {
	if r.req.Text != "" {
		return nil, r.refuseResume("it is still at work on a step, and pauses after that; without a text the pause is taken back now")
	}
	entry.Pause = nil
	return r.buildCommit("pause taken back", entry), nil
}

// continueThread resumes a suspended thread.
func (r *resumption) continueThread(ctx context.Context, v *gitcas.View, entry gitcas.Entry) (*gitcas.Change, error) {
	t, err := reading.Read(ctx, v, r.req.Thread)
	if err != nil {
		return nil, err
	}
	question, err := r.readQuestion(t)
	if err != nil {
		return nil, err
	}
	words, err := t.PendingWords()
	if err != nil {
		return nil, err
	}
	r.since, r.before = life.NextTime(v, entry), entry
	if entry.Limits, err = life.RaiseLimits(entry.Limits, r.req.Limits); err != nil {
		return nil, err
	}
	life.LetGoOn(&entry, life.WaitingRole(entry), r.since, r.by.OnRecord())
	c, err := r.takeBranch(v, entry, "resumed: "+text.OneLine(entry.Next.Role))
	if err != nil {
		return nil, err
	}
	return c, r.addAnswer(c, v, entry.Next, question, words)
}

// readQuestion reads what the role asked that waits; empty: it asked nothing. To let it go
// on without an answer is refused, and so is an answer to something else: one that is
// older than the question, or that was given before.
func (r *resumption) readQuestion(t *reading.Thread) (string, error) {
	if said, err := t.HasHeard(r.by.OnRecord()); err != nil || said {
		return "", cmp.Or(err, r.refuseRepeat())
	}
	d, err := t.AskModerator()
	if err != nil || d.Kind != moderator.Suspend || len(t.PokedStep()) > 0 {
		return "", nil //nolint:nilerr // the next step will say
	}
	asked := time.UnixMilli(t.Chain.Steps[len(t.Chain.Steps)-1].CompletedAtMs).Truncate(time.Second)
	answered := t.Entry.Next != nil && t.Entry.Next.Answer != ""
	answer := life.Verb{For: "answer what it asks now", Do: life.Resume, Thread: r.req.Thread, Needs: life.NeedsText}
	switch {
	case !r.req.Written.IsZero() && r.req.Written.Before(asked):
		return "", r.refuseResume("it was written before role "+text.OneLine(d.Role)+" asked: "+text.OneLine(d.Reason), answer)
	case strings.TrimSpace(r.req.Text) == "" && !answered:
		return "", r.refuseResume("role "+text.OneLine(d.Role)+" asks something, and this is no answer: "+text.OneLine(d.Reason), answer)
	}
	return text.Cut(d.Reason, life.MaxReason), nil
}

func (r *resumption) refuseRepeat() error {
	return r.refuseResume("what this comment says was said to it before; write another one")
}

// addAnswer adds what the person says to the change that lets the thread go on.
func (r *resumption) addAnswer(c *gitcas.Change, v *gitcas.View, next *gitcas.Next, question string, before []record.Word) error {
	if strings.TrimSpace(r.req.Text) == "" {
		question = "" // it answers nothing
	}
	word := record.Word{Do: record.DoResume, Role: next.Role, Question: question, Text: r.req.Text, By: r.by.OnRecord(), AtMs: r.since}
	words, err := appendWord(r.req.Thread, life.Resume, before, word)
	if err != nil {
		return err
	}
	next.Answer, err = answerChange(c, v, r.req.Thread, record.Answer{Words: words})
	return err
}

func (r *resumption) buildCommit(subject string, entry gitcas.Entry) *gitcas.Change {
	return story.SetEntry(&gitcas.Change{}, r.req.Thread, entry, subject, r.req.Text, r.by)
}

// deliverAgain lets the delivery of a suspended thread be tried again. All roles are
// done: nobody is told the text, it only stands in the commit.
func (r *resumption) deliverAgain(_ context.Context, v *gitcas.View, entry gitcas.Entry) (*gitcas.Change, error) {
	var err error
	if entry.Limits, err = life.RaiseLimits(entry.Limits, r.req.Limits); err != nil {
		return nil, err
	}
	r.before = entry
	life.DeliverAgain(v, &entry)
	r.since = entry.Since
	return r.takeBranch(v, entry, "resumed: delivery")
}

// takeBranch is buildCommit. If the person says so, the tip of the work branch is the thread's
// commit from then on, and the message has the commit that it replaces.
func (r *resumption) takeBranch(v *gitcas.View, entry gitcas.Entry, subject string) (*gitcas.Change, error) {
	if !r.req.TakeBranch {
		return r.buildCommit(subject, entry), nil
	}
	before := entry.Work.Commit
	entry.Work = workbranch.Of(r.req.Thread, entry)
	tip := workbranch.Tip(v, entry.Work)
	if tip.IsZero() {
		return nil, r.refuseResume(fmt.Sprintf("its work branch %s is not there; without --take-branch it is made again", entry.Work.Branch))
	}
	entry.Work.Commit = tip.String()
	c := r.buildCommit(subject, entry)
	c.Trailers = append(c.Trailers, gitcas.Trailer{Key: "Uwf-Took-Branch", Value: fmt.Sprintf("%s at %s instead of %s", entry.Work.Branch, tip, cmp.Or(before, "none"))})
	return c, nil
}

// reopenUndelivered lets an ended thread go on by its workflow's `resume` edge instead of being
// delivered now. A job that delivers it finds its claim gone.
func (r *resumption) reopenUndelivered(ctx context.Context, v *gitcas.View, entry gitcas.Entry) (*gitcas.Change, error) {
	t, err := reading.Read(ctx, v, r.req.Thread)
	if err != nil {
		return nil, err
	}
	d, err := r.decideReopened(t)
	if err != nil {
		return nil, err
	}
	r.before = entry
	c, err := r.nextRole(v, entry, d.Role)
	if err == nil {
		dropClaim(c, v, r.req.Thread)
	}
	return c, err
}

// reopenEnded brings an ended thread back: its folder as it was, and the role of the
// `resume` edge next.
func (r *resumption) reopenEnded(ctx context.Context, v *gitcas.View, _ gitcas.Entry) (*gitcas.Change, error) {
	t, ended, err := reading.ReadAnywhere(ctx, v, r.req.Thread)
	switch {
	case err != nil:
		return nil, err
	case r.since != 0 && ended.Head != r.before.Head:
		return nil, r.refuseChanged()
	}
	r.before.Head = ended.Head
	d, err := r.decideReopened(t)
	if err != nil {
		return nil, err
	}
	return r.makeAlive(ctx, v, t, ended, d.Role)
}

// decideReopened asks the moderator which role goes on after the end.
func (r *resumption) decideReopened(t *reading.Thread) (moderator.Decision, error) {
	if said, err := t.HasHeard(r.by.OnRecord()); err != nil || said {
		return moderator.Decision{}, cmp.Or(err, r.refuseRepeat())
	}
	fork := life.Standing{Thread: r.req.Thread, Ended: t.EndLine(t.Entry, "", t.View.Time())}.Next(life.Resume)
	d, err := t.AskReopened(r.req.Text)
	switch {
	case errors.Is(err, moderator.ErrNoResumeEdge):
		return d, r.refuseResume(fmt.Sprintf("it has ended, and workflow %s has no `resume` edge under $START that says which role goes on", t.Def.Name), fork...)
	case err != nil:
		return d, fmt.Errorf("resume thread %s: %w", r.req.Thread, err)
	case d.Kind != moderator.Run:
		return d, r.refuseResume("the `resume` edge of its workflow leads to no role", fork...)
	}
	return d, nil
}

// makeAlive is the push that brings the thread back.
func (r *resumption) makeAlive(ctx context.Context, v *gitcas.View, t *reading.Thread, ended gitcas.Ended, role string) (*gitcas.Change, error) {
	id, entry := r.req.Thread, t.Entry
	if other, taken := FindByKey(v, entry.Key); taken {
		return nil, r.refuseResume(fmt.Sprintf("thread %s has its key %q by now: go on with that one, or cancel it first", other, entry.Key))
	}
	entry.PR = cmp.Or(entry.PR, ended.PR)
	c, err := r.nextRole(v, entry, role)
	if err != nil {
		return nil, err
	}
	c.Reopen = []gitcas.Ended{ended}
	story.AddPage(c, layout.IndexPath(id), story.WithTries(ctx, t, *c.Threads[id]).WriteIndex())
	upd, err := r.e.Branches().RestoreRef(ctx, v, workbranch.Of(id, entry))
	if err != nil {
		return nil, err
	}
	c.Refs = append(c.Refs, upd...)
	return c, nil
}

// nextRole is the push after which a role goes on with an ended thread.
func (r *resumption) nextRole(v *gitcas.View, entry gitcas.Entry, role string) (*gitcas.Change, error) {
	var err error
	if entry.Limits, err = life.RaiseLimits(entry.Limits, r.req.Limits); err != nil {
		return nil, err
	}
	r.since = life.NextTime(v, entry)
	life.ReopenEnded(&entry, role, r.since, r.by.OnRecord())
	c := r.buildCommit("resumed after the end: "+text.OneLine(role), entry)
	return c, r.addAnswer(c, v, entry.Next, "", nil)
}

// appendWord adds a word to what people have said to a thread. A thread may be made to wait
// again before the role that asked could work (attempts, limits, the work branch): what it
// was told then still holds. No word with a text is ever dropped: who approves does so
// with all that was said.
func appendWord(id gitcas.ThreadID, d life.Deed, before []record.Word, w record.Word) ([]record.Word, error) {
	words := slices.Concat(before, []record.Word{w})
	for len(words) > record.MaxWords {
		i := slices.IndexFunc(words, func(w record.Word) bool { return strings.TrimSpace(w.Text) == "" && w.Do != record.DoPoke })
		if i < 0 {
			break
		}
		words = slices.Delete(words, i, i+1)
	}
	if size := reading.TextSize(words); len(words) > record.MaxWords || size > reading.MaxPrompt {
		return nil, life.Refuse(d, id, fmt.Sprintf("people have said %d things with %d bytes to it since its last step, and that is as much as one step is told", len(words)-1, size-len(w.Text)),
			life.Verb{For: "let it work", Do: life.Step, Thread: id}, life.Verb{For: "or begin another thread from its steps", Do: life.Fork, Thread: id, Steps: -1})
	}
	return words, nil
}

// answerChange adds an answer to a change, in the place where it waits for the next
// step, and returns its hash.
func answerChange(c *gitcas.Change, v *gitcas.View, id gitcas.ThreadID, a record.Answer) (node.Hash, error) {
	n, h, err := a.Node(v.Time())
	if err != nil {
		return "", fmt.Errorf("what thread %s is told: %w", id, err)
	}
	schema, _ := view.Known(record.AnswerSchema)
	c.Nodes = append(c.Nodes,
		gitcas.PlacedNode{Hash: h, Node: n, Place: gitcas.Place{Thread: id, Of: h}},
		gitcas.PlacedNode{Hash: record.AnswerSchema, Node: schema})
	return h, nil
}
