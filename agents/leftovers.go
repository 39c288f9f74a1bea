package agents

import (
	"context"

	"github.com/united-workforce/uwf/agents/internal/rundir"
)

// RemoveLeftovers removes the folders of runs that are over: those of this Spawner, and
// then those that killed processes left, of agents and of commands. Of each it removes a
// part if there is very much in it, and it ends with ctx, which is no error: whoever runs an
// agent here next goes on with the rest.
//
// It is called when the step is over, not before: it may take long, and nothing of the step
// hangs on it.
func (s *Spawner) RemoveLeftovers(ctx context.Context) error {
	s.mu.Lock()
	over := s.over
	s.over = nil
	s.mu.Unlock()
	return rundir.RemoveLeftovers(ctx, s.o.TempDir, over...)
}
