package record

import (
	"time"

	"github.com/united-workforce/uwf/gitcas/node"
)

// Node makes the StartNode, with the peers' schema where no field of our own is
// set. at is when it was made; it is not part of the hash.
func (s Start) Node(at time.Time) (node.Node, node.Hash, error) {
	typ := StartSchema
	p := map[string]any{"workflow": s.Workflow, "prompt": s.Prompt, "cwd": s.Cwd}
	if s.Trigger != nil {
		typ, p["trigger"] = OwnStartSchema, s.Trigger
	}
	if s.Base != "" {
		typ, p["base"] = OwnStartSchema, s.Base
	}
	if s.Title != "" {
		typ, p["title"] = OwnStartSchema, s.Title
	}
	if s.By != nil {
		typ, p["by"] = OwnStartSchema, s.By.toPayload()
	}
	if s.Digests != nil {
		typ, p["digests"] = OwnStartSchema, map[string]any{"workflow": string(s.Digests.Workflow)}
	}
	return node.New(typ, p, at)
}

// Node makes the StepNode, with the peers' schema where no field of our own is
// set. at is when it was made; it is not part of the hash.
func (s Step) Node(at time.Time) (node.Node, node.Hash, error) {
	p := map[string]any{
		"start": s.Start, "prev": s.Prev, "role": s.Role, "output": s.Output, "detail": s.Detail,
		"agent": s.Agent, "edgePrompt": s.EdgePrompt, "cwd": s.Cwd,
		"startedAtMs": s.StartedAtMs, "completedAtMs": s.CompletedAtMs,
	}
	if s.AssembledPrompt != nil {
		p["assembledPrompt"] = *s.AssembledPrompt
	}
	typ := StepSchema
	if s.addOwn(p) {
		typ = OwnStepSchema
	}
	return node.New(typ, p, at)
}

// addOwn adds the fields that the peers' StepNode doesn't have, and reports
// whether there were any.
func (s Step) addOwn(p map[string]any) bool {
	before := len(p)
	if s.Body != nil {
		p["body"] = *s.Body
	}
	if u := s.Usage; u != nil {
		usage := map[string]any{
			"turns": u.Turns, "inputTokens": u.InputTokens, "outputTokens": u.OutputTokens,
			"durationMs": u.DurationMs, "costUsd": u.CostUSD,
		}
		if u.Unpriced {
			usage["unpriced"] = true
		}
		p["usage"] = usage
	}
	if w := s.Work; w != nil {
		p["work"] = map[string]any{"branch": w.Branch, "commit": w.Commit}
	}
	if len(s.PreviousAttempts) > 0 {
		p["previousAttempts"] = s.PreviousAttempts
	}
	if r := s.Run; r != nil {
		p["run"] = map[string]any{"id": r.ID, "attempt": r.Attempt}
	}
	s.addDecided(p)
	if s.Digests != nil {
		p["digests"] = s.Digests.toPayload()
	}
	return len(p) > before
}

// addDecided adds who let the step happen, and what came of it beside the output.
func (s Step) addDecided(p map[string]any) {
	if s.By != nil {
		p["by"] = s.By.toPayload()
	}
	if s.Answer != nil {
		p["answer"] = *s.Answer
	}
	if s.Patch != nil {
		p["patch"] = *s.Patch
	}
	if len(s.Checks) == 0 {
		return
	}
	list := make([]any, len(s.Checks))
	for i, c := range s.Checks {
		list[i] = map[string]any{"name": c.Name, "status": c.Status, "exitCode": c.ExitCode, "durationMs": c.DurationMs}
	}
	p["checks"] = list
}

// toPayload is the field of the StepNode.
func (d StepDigests) toPayload() map[string]any {
	p := map[string]any{}
	for field, digest := range map[string]node.Digest{
		"start": d.Start, "prev": d.Prev, "output": d.Output, "detail": d.Detail, "assembledPrompt": d.AssembledPrompt, "body": d.Body,
		"answer": d.Answer, "patch": d.Patch,
	} {
		if digest != "" {
			p[field] = string(digest)
		}
	}
	if len(d.PreviousAttempts) > 0 {
		list := make([]any, len(d.PreviousAttempts))
		for i, digest := range d.PreviousAttempts {
			list[i] = string(digest)
		}
		p["previousAttempts"] = list
	}
	return p
}

// ErrorOutput is the output of a step that failed. Phase, which may be empty,
// says where: "agent", "extract", "seal".
type ErrorOutput struct {
	Error string
	Phase string
}

// Node makes the output node, see Start.Node for at.
func (o ErrorOutput) Node(at time.Time) (node.Node, node.Hash, error) {
	p := map[string]any{"$status": "error", "error": o.Error}
	if o.Phase != "" {
		p["phase"] = o.Phase
	}
	return node.New(ErrorOutputSchema, p, at)
}

// SuspendOutput is the output by which a role asks for a person.
type SuspendOutput struct{ Reason string }

// Node makes the output node, see Start.Node for at.
func (o SuspendOutput) Node(at time.Time) (node.Node, node.Hash, error) {
	return node.New(SuspendOutputSchema, map[string]any{"$status": "$SUSPEND", "reason": o.Reason}, at)
}
