package step

import (
	"context"
	"errors"
	"fmt"

	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/internal/text"
)

// runAgent runs the agent while the claim is renewed beside it. Its error is the
// step's: the attempt has been kept by then.
func (r *run) runAgent(ctx context.Context) (task.Draft, error) {
	agentCtx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r.Lease.Budget = r.task.Budget
	stopRenewal := r.Renew(ctx, &r.meter, stop)
	defer stopRenewal()

	r.e.Emit(thread.Event{Kind: "agent", Thread: r.ID, Step: r.StepNumber(), Role: r.task.Role, Agent: r.task.Agent, Text: r.task.EdgePrompt})
	r.task.Timeout = r.Lease.AgentTime(r.task.Timeout)
	draft, err := r.announceAndRun(agentCtx)
	stopRenewal()
	r.tellPutBack(draft.PutBack)
	switch {
	case errors.Is(context.Cause(agentCtx), lease.ErrLost):
		return draft, r.loseThread(ctx, "agent", draft, "it was taken over, suspended or cancelled while the agent ran")
	case err != nil && ctx.Err() != nil:
		return draft, r.failStep(ctx, "agent", draft, fmt.Errorf("interrupted: %w", context.Cause(ctx)))
	case err != nil:
		return draft, r.failStep(ctx, "agent", draft, err)
	}
	return draft, nil
}

// announceAndRun tells the caller what is to be done, and has the agent do it.
func (r *agentRun) announceAndRun(ctx context.Context) (task.Draft, error) {
	if r.req.OnClaimed != nil {
		if err := r.req.OnClaimed(ctx, r.task); err != nil {
			return task.Draft{}, err
		}
	}
	return r.e.Agent.Run(ctx, r.task, &r.meter)
}

// maxPutBack bounds a line of what was put back, in bytes.
const maxPutBack = 1_000

// tellPutBack tells what the agent changed of what git obeys. It may have put a secret
// even into the name of a setting.
func (r *agentRun) tellPutBack(lines []string) {
	for _, line := range lines {
		clean, _, err := r.e.Redact.Value(line)
		said, ok := clean.(string)
		if err != nil || !ok {
			said = "something that could not be checked for secrets"
		}
		said = text.Cut(text.Line(said), maxPutBack)
		r.putBack = append(r.putBack, said)
		r.emitNotice("what git obeys in the workspace was changed by the agent, and put back: " + said)
	}
}
