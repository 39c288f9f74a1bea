// Package reading reads a thread as a view of the store shows it: its entry, workflow, steps
// and words, and what the moderator makes of them. It changes nothing.
package reading

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/prompt"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/text"
)

// ReadNow reads the thread of a view, be it alive or over.
func (r *Thread) ReadNow(ctx context.Context, live *gitcas.View) error {
	entry, alive := live.Entry(r.ID)
	r.View, r.Entry = live, entry
	if !alive {
		past, ended, err := FindPast(ctx, live, r.ID)
		if err != nil {
			return err
		}
		r.View = past
		r.Entry = gitcas.Entry{Head: ended.Head, Status: gitcas.Status(ended.Reason), PR: ended.PR, Work: ended.Work}
	}
	r.SetNodeSource(ctx, r.View)
	return r.ReadChain(ctx, r.View)
}

// HasStep reports whether a step that some job made is in the thread.
func (r *Thread) HasStep(made record.Step) bool {
	return slices.ContainsFunc(r.Chain.Steps, func(s gitcas.ChainStep) bool { return SameStep(s.Step, made) })
}

// SameStep reports whether a step of the thread is one that some job made.
func SameStep(s, made record.Step) bool {
	return s.Run != nil && *s.Run == *made.Run && s.Output == made.Output && SameHash(s.Prev, made.Prev)
}

// CutAfter leaves of the chain what was there when a head was the thread's.
func (r *Thread) CutAfter(head node.Hash) error {
	if head == r.Chain.StartHash {
		return r.KeepSteps(0)
	}
	for i, s := range r.Chain.Steps {
		if s.Hash == head {
			return r.KeepSteps(i + 1)
		}
	}
	return nil
}

// Results are what the steps decided, as [moderator.Results] says it.
func (r *Thread) Results() []string {
	t, err := r.ModeratorThread()
	if err != nil {
		t = moderator.Thread{Steps: r.Past} // the roles that followed tell most of them
	}
	return moderator.Results(r.Def, t)
}

// LastResult is what the chain's last step decided.
func (r *Thread) LastResult() string {
	if len(r.Past) == 0 {
		return ""
	}
	return text.OneLine(r.Results()[len(r.Past)-1])
}

// SetNodeSource has the thread's nodes read from a view.
func (r *Thread) SetNodeSource(ctx context.Context, v *gitcas.View) {
	r.In = func(p gitcas.Place) node.Getter { return v.In(ctx, p) }
}

// furtherStep is what the runs of a job's second, third … step have behind its first one's.
var furtherStep = lazyregexp.New(`^(-[0-9]{1,9})?$`)

// SteppedBy reports whether the last step is one of this job's, in whatever attempt.
func (r *Thread) SteppedBy(run string) bool {
	n := len(r.Chain.Steps)
	if n == 0 || r.Chain.Steps[n-1].Run == nil {
		return false
	}
	further, ours := strings.CutPrefix(r.Chain.Steps[n-1].Run.ID, run)
	return ours && furtherStep.MatchString(further)
}

// ReadChain reads workflow, steps and outputs of the thread in v.
func (r *Thread) ReadChain(ctx context.Context, v *gitcas.View) error {
	return r.ReadTail(ctx, v, view.WholeChain)
}

// ReadTail is ReadChain of the newest steps alone, at least so many, where these say what the
// moderator has to know.
func (r *Thread) ReadTail(ctx context.Context, v *gitcas.View, least int) error {
	chain, err := v.ReadTail(ctx, r.ID, least)
	if err != nil {
		return err
	}
	r.Chain = chain
	if r.Def, err = workflow.FromNode(chain.Definition, chain.Start.Workflow); err != nil {
		return fmt.Errorf("workflow of thread %s: %w", r.ID, err)
	}
	if chain.Skipped() > 0 && r.needsAll() {
		return r.ReadChain(ctx, v)
	}
	return r.ReadOutputs()
}

// needsAll reports whether the moderator has to know all steps: conditions look at them; and where
// a role works that asked a person says the step before it asked first.
func (r *Thread) needsAll() bool {
	return len(r.Def.Conditions) > 0 ||
		!slices.ContainsFunc(r.Chain.Steps, func(s gitcas.ChainStep) bool { return s.Role != r.Chain.Steps[0].Role })
}

// ReadOutputs reads the outputs of the chain's steps, as the thread's definition wants them.
func (r *Thread) ReadOutputs() (err error) {
	r.Past, err = readOutputs(r.In, r.ID, r.Chain, len(r.Def.Conditions) > 0)
	return err
}

// readOutputs are the steps as the moderator wants them. Only conditions look at the
// StepNodes themselves.
func readOutputs(in func(gitcas.Place) node.Getter, id gitcas.ThreadID, chain gitcas.Chain, withNodes bool) ([]moderator.Output, error) {
	out := make([]moderator.Output, 0, len(chain.Steps))
	for _, s := range chain.Steps {
		g := in(gitcas.Place{Thread: id, Of: s.Hash})
		n, err := g.Get(s.Output)
		if err != nil {
			return nil, fmt.Errorf("output of step %s: %w", s.Hash, err)
		}
		m, _ := n.Payload.(map[string]any)
		o := moderator.Output{Role: s.Role, Output: m}
		if s.Body != nil {
			b, err := g.Get(*s.Body)
			if err != nil {
				return nil, fmt.Errorf("body of step %s: %w", s.Hash, err)
			}
			o.Body, _ = b.Payload.(string)
		}
		if withNodes {
			step, err := in(gitcas.Place{Thread: id}).Get(s.Hash)
			if err != nil {
				return nil, fmt.Errorf("step %s: %w", s.Hash, err)
			}
			o.Node, _ = step.Payload.(map[string]any)
		}
		out = append(out, o)
	}
	return out, nil
}

// WorkFolder is the folder of the work tree that the thread was started for; "." is its top. A
// thread of the predecessor has a path of the machine that started it, which leads
// nowhere here.
func (r *Thread) WorkFolder() string {
	if cwd := r.Chain.Start.Cwd; InWorkTree(cwd) {
		return cwd
	}
	return "."
}

// InWorkTree reports whether a path is one below the work tree's top, as "." is, on every
// system.
func InWorkTree(path string) bool { return fs.ValidPath(path) && !strings.ContainsAny(path, `\:`) }

// HeadOf is the head of a thread whose chain this is.
func HeadOf(c gitcas.Chain) node.Hash {
	if n := len(c.Steps); n > 0 {
		return c.Steps[n-1].Hash
	}
	return c.StartHash
}

// RecordedCommit is where the work stood after the chain's last step; empty where
// the thread has no repository.
func RecordedCommit(c gitcas.Chain) string {
	for i := len(c.Steps) - 1; i >= 0; i-- {
		if w := c.Steps[i].Work; w != nil && w.Commit != "" {
			return w.Commit
		}
	}
	return c.Start.Base
}

// Thread is a thread as a view of the store shows it: its entry, workflow, chain and outputs.
type Thread struct {
	ID    gitcas.ThreadID
	View  *gitcas.View
	Entry gitcas.Entry
	Def   *workflow.Definition
	Chain gitcas.Chain
	Past  []moderator.Output
	In    func(gitcas.Place) node.Getter // finds the thread's nodes
}

// Read reads a thread of a view, alive or past.
func Read(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) (*Thread, error) {
	r := Locate(ctx, v, id)
	if err := r.ReadChain(ctx, v); err != nil {
		return nil, fmt.Errorf("read thread %s: %w", id, err)
	}
	return r, nil
}

// ReadAnywhere reads a thread of a view, or as it was last, with its newest history line.
func ReadAnywhere(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) (t *Thread, ended gitcas.Ended, err error) {
	if _, alive := v.Entry(id); !alive {
		if v, ended, err = FindPast(ctx, v, id); err != nil {
			return nil, ended, err
		}
	}
	t, err = Read(ctx, v, id)
	return t, ended, err
}

// Locate is a thread of a view of which nothing but its entry is read yet.
func Locate(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) *Thread {
	r := &Thread{ID: id, View: v}
	r.SetNodeSource(ctx, v)
	r.Entry, _ = v.Entry(id)
	return r
}

// WorkflowName is the name that a workflow's node gives.
func WorkflowName(ctx context.Context, v *gitcas.View, h node.Hash) (string, error) {
	n, err := v.Get(ctx, h)
	if err != nil {
		return "", fmt.Errorf("read the workflow: %w", err)
	}
	m, _ := n.Payload.(map[string]any)
	name, _ := m["name"].(string)
	return name, nil
}

// FindEnded is the newest history line of a thread that is not alive.
func FindEnded(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) (gitcas.Ended, error) {
	ended, ok, err := v.FindEnded(ctx, id)
	switch {
	case err != nil:
		return ended, fmt.Errorf("look for thread %s among the ended ones: %w", id, err)
	case !ok:
		return ended, life.NewUnknownThreadError(v, id)
	}
	return ended, nil
}

// FindPast is the view in which a thread that is not alive was last, and its newest
// history line.
func FindPast(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) (*gitcas.View, gitcas.Ended, error) {
	ended, err := FindEnded(ctx, v, id)
	if err != nil {
		return nil, ended, err
	}
	past, err := v.LoadEnded(ctx, ended)
	if err != nil {
		return nil, ended, fmt.Errorf("read the ended thread %s: %w", id, err)
	}
	return past, ended, nil
}

// EndLine is the line that history gets of a thread that ends with an entry, which may have
// a step more than was read.
func (r *Thread) EndLine(entry gitcas.Entry, reason string, at time.Time) gitcas.Ended {
	var steps []node.Hash // the store fills in those that were not read
	if r.Chain.Skipped() == 0 {
		steps = lists.Map(r.Chain.Steps, func(s gitcas.ChainStep) node.Hash { return s.Hash })
		if entry.Head != r.Entry.Head {
			steps = append(steps, entry.Head)
		}
	}
	line := gitcas.Ended{
		Thread: r.ID, Workflow: r.Chain.Start.Workflow, Head: entry.Head, CompletedAt: at.UnixMilli(), Reason: reason,
		Key: entry.Key, Steps: steps, PR: entry.PR, Work: entry.Work, Title: entry.Title, By: entry.By,
	}
	if entry.Spent.Month != "" {
		line.Spent = &entry.Spent
	}
	return line
}

// Title is what the thread is about, on one line, as far as its entry or its start says it.
func (r *Thread) Title() string {
	return cmp.Or(r.Entry.Title, r.Chain.Start.Title, TitleOfPrompt(r.Chain.Start.Prompt))
}

// KeepSteps leaves only the first n steps of a chain that was read as a whole.
func (r *Thread) KeepSteps(n int) (err error) {
	r.Chain.Steps, r.Past = r.Chain.Steps[:n:n], r.Past[:n:n]
	r.Chain.Counts, err = r.Chain.Count(layout.ThreadPath(r.ID), r.In(gitcas.Place{Thread: r.ID}).Get)
	return err
}

// PokedStep is the step that the next one does again, if there is one.
func (r *Thread) PokedStep() []node.Hash {
	if r.Entry.Next == nil || r.Entry.Next.Poked == "" {
		return nil
	}
	return []node.Hash{r.Entry.Next.Poked}
}

// ReadStep reads a StepNode of a thread that is not in its chain: an attempt's, or one that
// was taken back.
func ReadStep(in func(gitcas.Place) node.Getter, id gitcas.ThreadID, h node.Hash) (record.Step, error) {
	n, err := in(gitcas.Place{Thread: id}).Get(h)
	var step record.Step
	if err == nil {
		step, err = record.ParseStep(n)
	}
	if err != nil {
		err = fmt.Errorf("read the earlier attempt %s: %w", h, err)
	}
	return step, err
}

// LastStep is the thread's head; nil before the first step.
func (r *Thread) LastStep() *node.Hash {
	n := len(r.Chain.Steps)
	if n == 0 {
		return nil
	}
	return &r.Chain.Steps[n-1].Hash
}

// SameHash compares two references, of which either may be none.
func SameHash(a, b *node.Hash) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// TitleOfPrompt is what a thread without a title is about: the first line of its prompt that
// says something.
func TitleOfPrompt(prompt string) string {
	for line := range strings.Lines(prompt) {
		if title := text.OneLine(strings.TrimLeft(line, "# \t>*-")); title != "" {
			return text.Cut(title, maxTitle)
		}
	}
	return ""
}

// maxTitle bounds a title that is made of a prompt, in bytes.
const maxTitle = 80

// StepNumber is the number of the next step, from 1.
func (r *Thread) StepNumber() int { return r.Chain.Skipped() + len(r.Chain.Steps) + 1 }

// PromptSteps are the thread's steps as a prompt tells them.
func (r *Thread) PromptSteps() []prompt.Step {
	out := lists.Map(r.Past, func(p moderator.Output) prompt.Step {
		return prompt.Step{Role: p.Role, Status: moderator.StatusOf(r.Def, p), Output: p.Output, Body: p.Body}
	})
	for i := range out {
		out[i].Checks = r.Chain.Steps[i].Checks
	}
	return out
}
