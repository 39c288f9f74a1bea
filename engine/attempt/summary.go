package attempt

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// Summary is one try at a step that led to no step, as it is shown.
type Summary struct {
	Ref     string        `json:"ref,omitempty"`  // what keeps it; empty: only its node is linked
	Hash    node.Hash     `json:"hash,omitempty"` // its StepNode, where it has one
	Run     string        `json:"run"`
	Attempt int           `json:"attempt"`
	Role    string        `json:"role,omitempty"`
	Agent   string        `json:"agent,omitempty"`
	Phase   string        `json:"phase,omitempty"` // where it failed, "deliver" after the end; "stopped" and "poked": it did not, but was stopped by a person, or taken back; "interrupted": its job was ended
	Error   string        `json:"error,omitempty"`
	At      time.Time     `json:"at"` // UTC
	Usage   *record.Usage `json:"usage,omitempty"`
	Claim   bool          `json:"claim,omitempty"` // its job died without a word: only the claim tells of it
}

// ReadAll reads the failed attempts at a thread's next step, in the order in which
// they were linked, and the step that was taken back for it. Those of the steps
// before are linked from these, see StepAttempts.
func ReadAll(ctx context.Context, store *gitcas.Store, v *gitcas.View, id gitcas.ThreadID, entry gitcas.Entry) ([]Summary, error) {
	var out []Summary
	if entry.Next != nil && entry.Next.Poked != "" {
		a, err := readLinked(func(p gitcas.Place) node.Getter { return v.In(ctx, p) }, id, entry.Next.Poked)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	for _, ref := range entry.Attempts {
		a, there, err := readKept(ctx, store, v, ref)
		if err != nil {
			return nil, err
		}
		if !there {
			out = append(out, Summary{Ref: ref, Run: a.Run, Attempt: a.Attempt, Error: "it is not there any more"})
			continue
		}
		shown := describeAttempt(ref, a)
		if entry.Deliver { // no step is left to be tried
			shown.Phase = life.ForDelivery
		}
		out = append(out, shown)
	}
	return out, nil
}

func describeAttempt(ref string, a gitcas.Attempt) Summary {
	out := Summary{Ref: ref, Run: a.Run, Attempt: a.Attempt, Error: a.Error, At: a.At.UTC()}
	if a.Claim != nil {
		c := life.ClampClaim(*a.Claim)
		out.Run, out.Claim, out.Phase, out.Error = c.Run, true, "agent", life.DescribeDeath(c)
		out.At, out.Usage = time.UnixMilli(c.Renewed).UTC(), life.ClaimUsage(c)
		return out
	}
	h, ok := ErrorStepOf(a.Nodes)
	if !ok {
		return out
	}
	// What an attempt holds was checked when it was read.
	if linked, err := readLinked(nodesOf(a.Nodes).In, a.Thread, h); err == nil {
		linked.Ref = ref
		return linked
	}
	return out
}

// ReadLinkedTo reads what a step links as its previous attempts: the failed ones,
// and steps that were taken back for it.
func ReadLinkedTo(in func(gitcas.Place) node.Getter, id gitcas.ThreadID, step record.Step) ([]Summary, error) {
	var out []Summary
	for _, h := range step.PreviousAttempts {
		a, err := readLinked(in, id, h)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// unknownAgent stands for the agent of a job that died: its claim doesn't name it.
const unknownAgent = "unknown"

// IsUnmetered reports the attempt of a job that died, and whose claim tells nothing of what it used.
func (a Summary) IsUnmetered() bool {
	return a.Agent == unknownAgent && (a.Usage == nil || a.Usage.InputTokens+a.Usage.OutputTokens == 0)
}

// readLinked is an attempt as its StepNode tells of it.
func readLinked(in func(gitcas.Place) node.Getter, id gitcas.ThreadID, h node.Hash) (Summary, error) {
	step, err := reading.ReadStep(in, id, h)
	if err != nil {
		return Summary{}, err
	}
	a := Summary{Hash: h, Role: step.Role, Agent: step.Agent, At: time.UnixMilli(step.CompletedAtMs).UTC(), Usage: step.Usage}
	if step.Run != nil {
		a.Run, a.Attempt = step.Run.ID, step.Run.Attempt
	}
	output, err := in(gitcas.Place{Thread: id, Of: h}).Get(step.Output)
	if err != nil {
		return Summary{}, fmt.Errorf("read the earlier attempt %s: %w", h, err)
	}
	m, _ := output.Payload.(map[string]any)
	if output.Type != record.ErrorOutputSchema {
		a.Phase = "poked"
		return a, nil
	}
	a.Phase, _ = m["phase"].(string)
	a.Error, _ = m["error"].(string)
	return a, nil
}

// HasDied reports whether an attempt that a ref keeps only tells that its job died, or was
// interrupted.
func HasDied(ctx context.Context, store *gitcas.Store, v *gitcas.View, ref string) (bool, error) {
	a, there, err := readKept(ctx, store, v, ref)
	return there && (a.Claim != nil || PhaseOf(a) == life.PhaseInterrupted), err
}

// PhaseOf is where an attempt failed, as it says itself.
func PhaseOf(a gitcas.Attempt) string {
	for _, n := range a.Nodes {
		if out, ok := n.Node.Payload.(map[string]any); ok && n.Node.Type == record.ErrorOutputSchema {
			phase, _ := out["phase"].(string)
			return phase
		}
	}
	return ""
}

// MaxErrorText bounds what an attempt says of its error, in bytes.
const MaxErrorText = 32 << 10

// Writer moves the ref of one job's attempt. The zero Writer is ready.
type Writer struct {
	kept map[wire.ID]string // values that the ref was given, and what they hold
}

// Update moves the ref of an attempt on from old. What is there already must not
// get lost, such as the work commit of a push that was taken in part: it becomes a
// parent of the new commit. What says what the attempt holds, so that a try whose
// reply was lost is recognised: then there is no update, and its name is empty.
func (w *Writer) Update(old wire.ID, what string, a gitcas.Attempt) (wire.RefUpdate, []wire.PackObject, error) {
	if !old.IsZero() {
		if w.kept[old] == what {
			return wire.RefUpdate{}, nil, nil
		}
		a.Parents = append(slices.Clone(a.Parents), old)
	}
	upd, objs, err := gitcas.BuildAttempt(a)
	if err != nil {
		return upd, nil, err
	}
	upd.Old = old
	if w.kept == nil {
		w.kept = map[wire.ID]string{}
	}
	w.kept[upd.New] = what
	return upd, objs, nil
}

// AddTo puts the ref of an attempt into a change, as a view shows it, with the objects of
// its work.
func (w *Writer) AddTo(c *gitcas.Change, v *gitcas.View, what string, a gitcas.Attempt, objs []wire.PackObject) error {
	old, _ := v.Ref(layout.AttemptRef(a.Thread, a.Run, a.Attempt))
	upd, more, err := w.Update(old, what, a)
	if err != nil || upd.Name == "" {
		return err
	}
	c.Refs = append(c.Refs, upd)
	c.Objects = append(append(c.Objects, objs...), more...)
	return nil
}
