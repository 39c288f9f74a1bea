package runner

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/runner/event"
	"github.com/united-workforce/uwf/engine/runner/report"
	"github.com/united-workforce/uwf/engine/runner/sanitize"
	"github.com/united-workforce/uwf/engine/runner/threadview"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
)

// buildRequest puts together what a new thread begins with; nil: there is to be none, and
// the reason has been told.
func (j *intake) buildRequest(ctx context.Context, a wantedThread) (*thread.StartRequest, error) {
	def, err := j.definitions.Resolve(ctx, a.workflow)
	if err != nil {
		return nil, err
	}
	g, err := j.findWorkBase(ctx, a.subject, def.Definition)
	if err != nil || g == nil {
		return nil, err
	}
	key := a.key
	if key == "" {
		key = threadview.SubjectKey(a.subject.Pull, a.subject.Number)
	}
	if !strings.HasPrefix(key, "run/") {
		key = def.Definition.Name + "/" + key
	}
	id, err := j.newID()
	if err != nil {
		return nil, err
	}
	trigger := j.newTrigger(a.subject, g)
	trigger.Former = j.findFormerPull(ctx, a.subject)
	req := &thread.StartRequest{
		ID: id, Workflow: def.Hash, Nodes: def.Nodes, Prompt: j.writePrompt(a), Base: g.base, Branch: g.branch, Key: key,
		Trigger: trigger.Payload(), Limits: a.limits,
	}
	if a.subject != nil {
		req.Title = sanitize.Line(a.subject.Title)
	}
	if n := j.Inputs.MaxSteps; n > 0 && a.limits["maxSteps"] == 0 {
		req.Limits = map[string]float64{"maxSteps": float64(n)}
		maps.Copy(req.Limits, a.limits)
	}
	return req, nil
}

// maxFormer is how many earlier threads about an issue are looked up.
const maxFormer = 10

// findFormerPull is the pull request that the newest earlier thread about an issue led to; 0:
// none. Such threads are found by their comments, so that no history is read for an issue
// that never had one. What the comments say is not believed: the history has to say it.
func (j *intake) findFormerPull(ctx context.Context, s *event.Subject) int {
	if s == nil || s.Pull || s.Quiet {
		return 0
	}
	list, err := j.Forge.ListComments(ctx, s.Number)
	var ids []gitcas.ThreadID
	for _, c := range slices.Backward(list) {
		id, ok := report.FindMarker(c.Body)
		if t := gitcas.ThreadID(id); ok && t.Valid() && len(ids) < maxFormer {
			ids = append(ids, t)
		}
	}
	pull := 0
	if err == nil && len(ids) > 0 {
		pull, err = j.findPullInHistory(ctx, ids, threadview.SubjectKey(s.Pull, s.Number))
	}
	if err != nil {
		j.Warn(fmt.Sprintf("earlier threads about #%d could not be looked for", s.Number), err)
	}
	return pull
}

// findPullInHistory is the pull request of that one of the threads that ended last, of those that are
// about a subject and have one. Ids are what somebody wrote into a comment: they don't
// make a job read more history than a command may.
func (j *intake) findPullInHistory(ctx context.Context, ids []gitcas.ThreadID, subject string) (pull int, err error) {
	v, err := j.finder.loadStore(ctx)
	if v == nil {
		return 0, err
	}
	from := slices.MinFunc(ids, func(a, b gitcas.ThreadID) int { return a.Time().Compare(b.Time()) }).Time()
	if back := v.Time().Add(-searchBack); from.Before(back) {
		from = back
	}
	line, err := j.finder.searchHistory(ctx, v, from, func(e gitcas.Ended) bool {
		return e.PR != 0 && slices.Contains(ids, e.Thread) && threadview.IsAbout(e.Key, subject)
	})
	if line == nil {
		return 0, err
	}
	return line.PR, err
}

// workBase is where a thread's work begins.
type workBase struct {
	base   string
	branch string // a pull request's own; empty: one of the thread's
	// author wrote the issue or pull request; where approvals depend on it, as the forge
	// says.
	author   string
	authorID int64
}

// findWorkBase finds out where the work begins: at the default branch, or on the pull
// request's own branch. Whose branch that is, the forge is asked and not the payload.
// Nil: nowhere, which has been told.
func (j *intake) findWorkBase(ctx context.Context, s *event.Subject, def *workflow.Definition) (*workBase, error) {
	if s != nil && !s.Open {
		if j.Event.Command != nil {
			j.PostAnswer(ctx, s.Number, "It is closed: open it again first.")
		}
		return nil, j.FinishOK(fmt.Sprintf("#%d is closed", s.Number))
	}
	trunk, err := j.DefaultBranch(ctx)
	if err != nil {
		return nil, err
	}
	if s == nil {
		base, err := j.base(ctx, trunk)
		return &workBase{base: base}, err
	}
	if !s.Pull {
		g := &workBase{author: s.Author, authorID: s.AuthorID}
		if def.NeedsApproval() { // then it matters who wrote it
			issue, err := j.Forge.ReadIssue(ctx, s.Number)
			if err != nil {
				return nil, fmt.Errorf("read issue #%d: %w", s.Number, err)
			}
			g.author, g.authorID = issue.Author, issue.AuthorID
		}
		g.base, err = j.base(ctx, trunk)
		return g, err
	}
	pull, err := j.Forge.ReadPull(ctx, s.Number)
	if err != nil {
		return nil, fmt.Errorf("read pull request #%d: %w", s.Number, err)
	}
	why := ""
	switch head := pull.Head; {
	case !strings.EqualFold(head.Repo, j.Job.Repository):
		why = "its branch is in another repository, and no agent ever runs on the branch of a fork"
	case !pull.Open:
		why = "it is closed"
	case head.Name == trunk || head.Name == j.Job.StateBranch:
		why = fmt.Sprintf("its branch is %s, on which no agent works", head.Name)
	}
	if why != "" {
		j.PostAnswer(ctx, s.Number, fmt.Sprintf("uwf doesn't work on this pull request: %s.", why))
		return nil, j.FinishOK(fmt.Sprintf("pull request #%d: %s", s.Number, why))
	}
	base, err := j.base(ctx, pull.Head.Name)
	return &workBase{base: base, branch: pull.Head.Name, author: pull.Author, authorID: pull.AuthorID}, err
}

// writePrompt is the prompt: what the inputs or the command say, then the subject's text.
// All of it is shown to agents as text from outside.
func (j *intake) writePrompt(a wantedThread) string {
	var parts []string
	if s := a.subject; s != nil {
		what := "Issue"
		if s.Pull {
			what = "Pull request"
		}
		parts = append(parts, fmt.Sprintf("# %s #%d: %s", what, s.Number, sanitize.Line(s.Title)))
		if body := strings.TrimSpace(sanitize.Incoming(s.Body)); body != "" {
			parts = append(parts, body)
		}
	}
	if more := strings.TrimSpace(a.more); more != "" {
		if len(parts) > 0 {
			more = "## What is wanted\n\n" + more
		}
		parts = append(parts, more)
	}
	return strings.Join(parts, "\n\n")
}
