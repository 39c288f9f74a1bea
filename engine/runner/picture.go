package runner

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/runner/report"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// picture is a thread as it is shown. It decides nothing.
type picture struct {
	id      gitcas.ThreadID
	entry   gitcas.Entry
	chain   gitcas.Chain
	def     *workflow.Definition
	past    moderator.Thread
	trigger trigger
}

// seen is the picture of a thread of a view, alive or past.
func seen(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) (*picture, error) {
	chain, err := v.Chain(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("read thread %s: %w", id, err)
	}
	def, err := workflow.FromNode(v.Getter(ctx), chain.Start.Workflow)
	if err != nil {
		return nil, fmt.Errorf("workflow of thread %s: %w", id, err)
	}
	entry, _ := v.Entry(id)
	return draw(v.Getter(ctx), id, entry, def, chain)
}

// claimed is the picture of a thread whose next step an agent is about to do. All of
// it comes from the task: nothing is read again.
func claimed(t thread.Task) (*picture, error) {
	g := node.Map(t.Nodes)
	chain := gitcas.Chain{StartHash: t.Start}
	n, err := g.Get(t.Start)
	if err != nil {
		return nil, fmt.Errorf("start of thread %s: %w", t.Thread, err)
	}
	if chain.Start, err = record.ParseStart(n); err != nil {
		return nil, fmt.Errorf("start of thread %s: %w", t.Thread, err)
	}
	for at := t.Prev; at != nil; {
		n, err := g.Get(*at)
		if err != nil {
			return nil, fmt.Errorf("step of thread %s: %w", t.Thread, err)
		}
		s, err := record.ParseStep(n)
		if err != nil || len(chain.Steps) > t.Step {
			return nil, fmt.Errorf("step %s of thread %s can't be read: %w", *at, t.Thread, err)
		}
		chain.Steps = append(chain.Steps, gitcas.ChainStep{Hash: *at, Step: s})
		at = s.Prev
	}
	slices.Reverse(chain.Steps)
	return draw(g, t.Thread, t.Entry, t.Definition, chain)
}

// draw puts a picture together.
func draw(g node.Getter, id gitcas.ThreadID, entry gitcas.Entry, def *workflow.Definition, chain gitcas.Chain) (*picture, error) {
	p := &picture{id: id, entry: entry, def: def, chain: chain, trigger: readTrigger(chain.Start.Trigger)}
	var err error
	payload := func(h node.Hash) any {
		n, gerr := g.Get(h)
		if gerr != nil && err == nil {
			err = fmt.Errorf("node %s of thread %s: %w", h, id, gerr)
		}
		return n.Payload
	}
	p.past.Start, _ = payload(chain.StartHash).(map[string]any)
	for _, s := range chain.Steps {
		o := moderator.Output{Role: s.Role}
		o.Output, _ = payload(s.Output).(map[string]any)
		o.Node, _ = payload(s.Hash).(map[string]any)
		if s.Body != nil {
			o.Body, _ = payload(*s.Body).(string)
		}
		p.past.Steps = append(p.past.Steps, o)
	}
	return p, err
}

// view is what the report is made of, in one state.
func (j *job) view(p *picture, state report.State) report.Thread {
	t := report.Thread{
		ID: string(p.id), Workflow: p.def.Name, State: state, Definition: p.def, Past: p.past,
		Steps: steps(p), Subject: p.trigger.Number, SubjectPull: p.trigger.Pull, Links: j.links(p), Now: j.Now(),
	}
	if n := p.entry.Next; n != nil {
		t.Role, t.Since = n.Role, time.UnixMilli(n.Since)
	}
	if s := p.entry.Suspended; s != nil {
		t.Question, t.Role = s.Reason, cmp.Or(s.Role, t.Role)
	}
	limits := thread.Effective(j.Engine.Settings.Limits(p.def.Name), p.def, p.entry.Limits)
	t.MaxTokens, t.MaxCostUSD, t.MaxSteps = limits.Tokens, limits.CostUSD, limits.MaxSteps
	for _, s := range t.Steps {
		t.Tokens += s.Tokens
		t.CostUSD += s.CostUSD
	}
	if n := len(p.past.Steps); n > 0 {
		last := p.past.Steps[n-1]
		t.Last = &report.Output{Role: last.Role, Status: moderator.StatusOf(p.def, last), Fields: last.Output, Body: last.Body}
	}
	return t
}

// steps are the rows of the table.
func steps(p *picture) []report.Step {
	out := make([]report.Step, 0, len(p.chain.Steps))
	commit := p.chain.Start.Base
	for i, s := range p.chain.Steps {
		row := report.Step{
			N: i + 1, Role: s.Role, Agent: s.Agent, Result: cmp.Or(moderator.StatusOf(p.def, p.past.Steps[i]), workflow.Unit),
			Took: time.Duration(max(s.CompletedAtMs-s.StartedAtMs, 0)) * time.Millisecond, Attempts: len(s.PreviousAttempts),
		}
		if u := s.Usage; u != nil {
			row.Tokens, row.CostUSD = u.InputTokens+u.OutputTokens, u.CostUSD
		}
		if w := s.Work; w != nil && w.Commit != commit {
			row.Commit, commit = w.Commit, w.Commit
		}
		out = append(out, row)
	}
	return out
}

// links are the addresses on the forge.
func (j *job) links(p *picture) report.Links {
	l := report.Links{
		Repo: j.Job.repoURL(), Run: j.Job.runURL(), Gitea: j.gitea(), StateBranch: j.Job.StateBranch,
		WorkBranch: p.entry.Work.Branch,
	}
	if p.trigger.Number > 0 && j.sticky != nil && j.sticky.id > 0 {
		l.Comment = fmt.Sprintf("%s#issuecomment-%d", l.IssueURL(p.trigger.Number), j.sticky.id)
	}
	return l
}
