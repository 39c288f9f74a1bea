package lookup

import (
	"context"

	"github.com/united-workforce/uwf/engine/attempt"
	"github.com/united-workforce/uwf/gitcas"
)

// Attempts are the tries at the thread's next step that led to none.
func (t *Thread) Attempts(ctx context.Context) ([]attempt.Summary, error) {
	list, err := attempt.ReadAll(ctx, t.Store, t.View, t.ID, t.Entry)
	return inUTC(list), err
}

// AttemptsBefore are the tries that led to no step, before one did.
func (t *Thread) AttemptsBefore(ctx context.Context, step gitcas.ChainStep) ([]attempt.Summary, error) {
	if len(step.PreviousAttempts) == 0 {
		return nil, nil
	}
	list, err := attempt.ReadLinkedTo(t.In(ctx), t.ID, step.Step)
	return inUTC(list), err
}

// inUTC gives times as all times are printed.
func inUTC(list []attempt.Summary) []attempt.Summary {
	for i := range list {
		list[i].At = list[i].At.UTC()
	}
	return list
}
