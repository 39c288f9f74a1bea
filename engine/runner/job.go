package runner

import (
	"context"

	"github.com/united-workforce/uwf/engine/runner/event"
)

// job is one Run.
type job struct {
	*Runner
	ev  event.Event
	out Outcome
}

func newJob(r *Runner, ev event.Event) *job { return &job{Runner: r, ev: ev} }

func (j *job) run(context.Context) (Outcome, error) { return j.out, nil }
