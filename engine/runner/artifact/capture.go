package artifact

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/engine/deadline"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/engine/step/screen"
	"github.com/united-workforce/uwf/engine/step/seal"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
	"github.com/united-workforce/uwf/internal/text"
)

// interrupted is how long the artifact of an agent that was interrupted may take:
// an agent has to be gone after five seconds.
const interrupted = 3 * time.Second

// Captured keeps what the agent of an engine did. It stands in the place of the agent, and
// of its folder, of which it remembers the commit that it was restored to.
type Captured struct {
	step.Folder
	agent  task.Agent
	redact thread.Redactor
	read   screen.Read
	clock  deadline.Clock
	base   wire.ID
	a      *Artifact
}

// Capture stands between an engine and its agent, and keeps what the agent does, or
// why it failed, for an artifact, beside what the engine makes of it. What it keeps is
// sealed by the engine's own rules and with its redactor: the job that commits doesn't
// know the secrets of the one that runs the agent. The engine should work on a Mirror.
func Capture(e *step.Stepper) *Captured {
	c := &Captured{agent: e.Agent, Folder: e.Folder, redact: e.Redact, read: e.ReadBlobs, clock: e.Clock}
	e.Agent, e.Folder = c, c
	return c
}

// Artifact is what the agent did; ok is false when none has run.
func (c *Captured) Artifact() (a Artifact, ok bool) {
	if c.a == nil {
		return Artifact{}, false
	}
	return *c.a, true
}

// Restore makes the folder equal to a commit.
func (c *Captured) Restore(ctx context.Context, commit wire.ID) error {
	err := c.Folder.Restore(ctx, commit)
	if err == nil {
		c.base = commit
	}
	return err
}

// Run implements task.Agent.
func (c *Captured) Run(ctx context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
	d, err := c.agent.Run(ctx, t, m)
	keep := ctx
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		keep, cancel = context.WithTimeout(context.WithoutCancel(ctx), interrupted)
		defer cancel()
	}
	a := c.makeArtifact(keep, t, m, d, err)
	c.a = &a
	return d, err
}

// makeArtifact makes the artifact. What can't be kept makes it one of a failure: then
// the second job says so, instead of committing half of a step.
func (c *Captured) makeArtifact(ctx context.Context, t task.Task, m *task.Meter, d task.Draft, failed error) Artifact {
	s := c.newSealer(t, d)
	a := Artifact{
		Thread: t.Thread, Head: headOf(t), Step: t.Step, Role: t.Role, Agent: t.Agent, Answer: answerOf(t),
		Stderr: c.redactText(d.Stderr, s), Usage: sumUsage(t, m, d),
	}
	a.Usage.DurationMs = max(c.clock.Now().UnixMilli()-t.StartedAtMs, 0)
	if failed == nil {
		failed = c.sealStep(&a, t, d, s)
	}
	var err error
	if a.Files, err = c.listChanges(ctx); failed == nil {
		failed = err
	}
	if failed != nil {
		s = c.newSealer(t, d)
		s.Salvage(ctx)
		a.Failure, a.Handle, a.Nodes = c.newFailure(failed, s), "", nodesOf(s)
	}
	return a
}

// headOf is the head that the task's step will follow.
func headOf(t task.Task) node.Hash {
	if t.Prev != nil {
		return *t.Prev
	}
	return t.Start
}

// answerOf is what people have said to a task's thread.
func answerOf(t task.Task) node.Hash {
	if t.Entry.Next == nil {
		return ""
	}
	return t.Entry.Next.Answer
}

// sumUsage is what the meter counted, and what the agent says itself where it did not
// use the gateway for its work.
func sumUsage(t task.Task, m *task.Meter, d task.Draft) record.Usage {
	u := m.Usage()
	if u.Turns == 0 || t.Model == nil && t.Extract != nil {
		u.Turns = max(u.Turns, d.Usage.Turns)
		u.InputTokens, u.OutputTokens = max(u.InputTokens, d.Usage.InputTokens), max(u.OutputTokens, d.Usage.OutputTokens)
		u.CostUSD, u.Unpriced = max(u.CostUSD, d.Usage.CostUSD), u.Unpriced || d.Usage.Unpriced
	}
	return u
}

func (c *Captured) newSealer(t task.Task, d task.Draft) *seal.Sealer {
	return seal.New(d.Nodes, t.Nodes, c.redact, c.clock.Now())
}

func nodesOf(s *seal.Sealer) map[node.Hash]node.Node {
	out := map[node.Hash]node.Node{}
	for _, n := range s.Nodes() {
		out[n.Hash] = n.Node
	}
	return out
}

// sealStep puts the agent's step into the artifact. The engine of the second job
// checks it again: here only what leaves this job matters.
func (c *Captured) sealStep(a *Artifact, t task.Task, d task.Draft, s *seal.Sealer) error {
	if len(d.Nodes) > seal.MaxDrafts {
		return fmt.Errorf("the agent staged %d nodes; at most %d are taken", len(d.Nodes), seal.MaxDrafts)
	}
	n, ok := d.Nodes[d.Handle]
	if !ok {
		return fmt.Errorf("the agent printed %q, which is not among the %d nodes it staged", clipText(string(d.Handle)), len(d.Nodes))
	}
	child, err := record.ParseStep(n)
	if err != nil {
		return fmt.Errorf("the agent's handle %s is no StepNode: %w", d.Handle, err)
	}
	out := record.Step{
		Start: child.Start, Prev: child.Prev, Role: child.Role, Agent: child.Agent,
		StartedAtMs: t.StartedAtMs, CompletedAtMs: max(c.clock.Now().UnixMilli(), t.StartedAtMs), Cwd: t.Cwd, Usage: child.Usage,
	}
	if out.Output, err = s.Node(child.Output, false); err != nil {
		return fmt.Errorf("output: %w", err)
	}
	if child.Body != nil {
		h, err := s.Text(*child.Body)
		if err != nil {
			return fmt.Errorf("body: %w", err)
		}
		out.Body = &h
	}
	if out.Detail, err = s.Node(child.Detail, true); err != nil {
		return fmt.Errorf("detail: %w", err)
	}
	for _, name := range []*string{&out.Role, &out.Agent, &out.Cwd} {
		if *name, err = s.Clean(*name); err != nil {
			return err
		}
	}
	step, h, err := out.Node(c.clock.Now())
	if err != nil {
		return fmt.Errorf("step node: %w", err)
	}
	a.Nodes, a.Handle = nodesOf(s), h
	a.Nodes[h] = step
	return nil
}

// listChanges lists what the agent changed. As in the engine, one file with a known secret keeps
// all of them here, and one that may hold a token is left out.
func (c *Captured) listChanges(ctx context.Context) ([]workspace.Edit, error) {
	req := workspace.SnapshotRequest{Message: "artifact", When: c.clock.Now()}
	if !c.base.IsZero() {
		req.Parents = []wire.ID{c.base}
	}
	snap, err := c.Snapshot(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("read what the agent changed: %w", err)
	}
	if len(snap.Changes) > maxFiles {
		return nil, fmt.Errorf("the agent changed %d files; at most %d go from job to job", len(snap.Changes), maxFiles)
	}
	err = screen.Search(ctx, snap, c.redact, c.read)
	var found *screen.FoundError
	if err != nil && (!errors.As(err, &found) || found.Known()) {
		return nil, err
	}
	var without []string
	if found != nil {
		without = found.Paths()
	}
	out, readErr := c.editsOf(ctx, snap, without)
	return out, errors.Join(err, readErr)
}

// editsOf are the changes of a snapshot, but for some files.
func (c *Captured) editsOf(ctx context.Context, snap workspace.Snapshot, without []string) ([]workspace.Edit, error) {
	blobs := make(map[wire.ID][]byte, len(snap.Objects))
	for _, o := range snap.Objects {
		blobs[o.ID] = o.Data
	}
	var out []workspace.Edit
	for _, change := range snap.Changes {
		if slices.Contains(without, change.Path) {
			continue
		}
		e := workspace.Edit{Path: change.Path, Mode: change.Mode, Old: change.Old}
		if change.Kind != workspace.Deleted {
			data, ok := blobs[change.Blob]
			if !ok { // the same content as another file's
				var err error
				if data, err = workspace.Content(ctx, c.Dir(), change); err != nil {
					return nil, err
				}
			}
			e.Data = data
		}
		out = append(out, e)
	}
	return out, nil
}

func (c *Captured) newFailure(err error, s *seal.Sealer) *Failure {
	var agent *task.AgentError
	f := &Failure{Reason: err.Error()}
	if errors.As(err, &agent) {
		f.Reason, f.Detail = agent.Reason, agent.Detail
		if agent.Err != nil {
			f.Reason += ": " + agent.Err.Error()
		}
	}
	f.Reason, f.Detail = c.redactText(f.Reason, s), c.redactText(f.Detail, s)
	if f.Reason == "" {
		f.Reason = "the agent failed and did not say why"
	}
	return f
}

// redactText is a text without secrets, short enough for an artifact.
func (c *Captured) redactText(s string, with *seal.Sealer) string {
	out, err := with.Clean(strings.ToValidUTF8(s, "\uFFFD"))
	if err != nil {
		return "the text could not be checked for secrets and was left out"
	}
	return text.Cut(out, maxText/2)
}
