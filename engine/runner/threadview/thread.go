// Package threadview reads a thread as it is shown to people: what started it, its chain
// and what its steps put out. It decides nothing.
package threadview

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/united-workforce/uwf/engine/attempt"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/runner/report"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/lists"
)

// Thread is a thread as it is shown.
type Thread struct {
	ID      gitcas.ThreadID
	Entry   gitcas.Entry
	Chain   gitcas.Chain
	Def     *workflow.Definition
	Past    moderator.Thread
	Trigger Trigger
	// Said are the words of people, the oldest first.
	Said []report.Said
	// unmetered says of each step that a job which died at it used nobody knows what.
	unmetered []bool
}

// Load is a thread of a view, alive or past.
func Load(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) (*Thread, error) {
	chain, err := v.ReadChain(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("read thread %s: %w", id, err)
	}
	def, err := workflow.FromNode(chain.Definition, chain.Start.Workflow)
	if err != nil {
		return nil, fmt.Errorf("workflow of thread %s: %w", id, err)
	}
	entry, _ := v.Entry(id)
	return Build(func(p gitcas.Place) node.Getter { return v.In(ctx, p) }, id, entry, def, chain)
}

// FromTask is a thread whose next step an agent is about to do. All of
// it comes from the task: nothing is read again.
func FromTask(t task.Task) (*Thread, error) {
	g := t.Nodes.In(gitcas.Place{Thread: t.Thread})
	chain := gitcas.Chain{StartHash: t.Start}
	n, err := g.Get(t.Start)
	if err == nil {
		chain.Start, err = record.ParseStart(n)
	}
	if err != nil {
		return nil, fmt.Errorf("start of thread %s: %w", t.Thread, err)
	}
	for at := t.Prev; at != nil; {
		var s record.Step
		n, err := g.Get(*at)
		if err == nil {
			s, err = record.ParseStep(n)
		}
		if err != nil || len(chain.Steps) > t.Step {
			return nil, fmt.Errorf("step %s of thread %s can't be read: %w", *at, t.Thread, err)
		}
		chain.Steps = append(chain.Steps, gitcas.ChainStep{Hash: *at, Step: s})
		at = s.Prev
	}
	slices.Reverse(chain.Steps)
	return Build(t.Nodes.In, t.Thread, t.Entry, t.Definition, chain)
}

// Build puts a thread together. in finds the thread's nodes.
func Build(in func(gitcas.Place) node.Getter, id gitcas.ThreadID, entry gitcas.Entry, def *workflow.Definition, chain gitcas.Chain) (*Thread, error) {
	p := &Thread{ID: id, Entry: entry, Def: def, Chain: chain, Trigger: ReadTrigger(chain.Start.Trigger)}
	var err error
	payload := func(of, h node.Hash) any {
		n, gerr := in(gitcas.Place{Thread: id, Of: of}).Get(h)
		if gerr != nil && err == nil {
			err = fmt.Errorf("node %s of thread %s: %w", h, id, gerr)
		}
		return n.Payload
	}
	p.Past.Start, _ = payload("", chain.StartHash).(map[string]any)
	for _, s := range chain.Steps {
		o := moderator.Output{Role: s.Role}
		o.Output, _ = payload(s.Hash, s.Output).(map[string]any)
		o.Node, _ = payload("", s.Hash).(map[string]any)
		if s.Body != nil {
			o.Body, _ = payload(s.Hash, *s.Body).(string)
		}
		p.Past.Steps = append(p.Past.Steps, o)
	}
	if err == nil {
		err = p.readWords(in)
	}
	for _, s := range chain.Steps {
		before, _ := attempt.ReadLinkedTo(in, id, s.Step) // what can't be read is no reason to show nothing
		p.unmetered = append(p.unmetered, slices.ContainsFunc(before, attempt.Summary.IsUnmetered))
	}
	return p, err
}

// readWords reads what people said before the steps, and to the next one.
func (p *Thread) readWords(in func(gitcas.Place) node.Getter) error {
	add := func(step int, of, h node.Hash) error {
		words, err := reading.ReadAnswer(in, p.ID, of, h)
		p.Said = append(p.Said, lists.Map(words, func(w record.Word) report.Said { return report.Said{Step: step, Word: w} })...)
		return err
	}
	for i, s := range p.Chain.Steps {
		if s.Answer == nil {
			continue
		}
		if err := add(i+1, s.Hash, *s.Answer); err != nil {
			return err
		}
	}
	if n := p.Entry.Next; n != nil && n.Answer != "" {
		return add(len(p.Chain.Steps)+1, n.Answer, n.Answer)
	}
	return nil
}

// Head is the thread's head, with its digest.
func (p *Thread) Head() node.Pin {
	return node.Pin{Hash: p.Entry.Head, Digest: p.DigestOf(p.Entry.Head)}
}

// DigestOf is the digest of a record if it is the head of the chain; else it is empty.
func (p *Thread) DigestOf(head node.Hash) node.Digest {
	last := p.Chain.StartHash
	if n := len(p.Chain.Steps); n > 0 {
		last = p.Chain.Steps[n-1].Hash
	}
	if last != head {
		return ""
	}
	return p.Chain.Head
}

// Steps are the rows of the table.
func (p *Thread) Steps() []report.Step {
	out := make([]report.Step, 0, len(p.Chain.Steps))
	commit := p.Chain.Start.Base
	results := moderator.Results(p.Def, p.Past)
	for i, s := range p.Chain.Steps {
		row := report.Step{
			N: i + 1, Role: s.Role, Agent: s.Agent, Result: results[i],
			Took: time.Duration(max(s.CompletedAtMs-s.StartedAtMs, 0)) * time.Millisecond, Attempts: len(s.PreviousAttempts), Unmetered: p.unmetered[i], Checks: s.Checks, Notes: s.Notes,
		}
		if u := s.Usage; u != nil {
			row.Tokens, row.CostUSD, row.Unpriced = u.InputTokens+u.OutputTokens, u.CostUSD, u.Unpriced
		}
		if w := s.Work; w != nil && w.Commit != commit {
			row.Commit, commit = w.Commit, w.Commit
		}
		out = append(out, row)
	}
	return out
}

// Asks reports whether a suspended thread waits for the answer to an agent's question:
// the last step says so.
func (p *Thread) Asks() bool {
	n := len(p.Past.Steps)
	if n == 0 || p.Entry.Suspended == nil || p.Entry.Next != nil {
		return false
	}
	return p.Entry.Suspended.Role == p.Past.Steps[n-1].Role
}

// WorkBranch is the branch that the thread works on.
func (p *Thread) WorkBranch() string { return cmp.Or(p.Entry.Work.Branch, layout.WorkBranch(p.ID)) }
