package worker

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/toolsettings"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/internal/text"
)

// AsideRoot is the folder below the storage root with the settings of coding tools that are out
// of the way of agents.
func AsideRoot(root string) string { return filepath.Join(root, "aside") }

// newAside is where the settings of coding tools in the working folder are kept while such a
// tool works there. It is found again by the folder's path.
func (w *Worker) newAside() (toolsettings.Aside, error) {
	root, err := w.f.StorageRoot()
	dir := w.folder.dir
	return toolsettings.Aside{Workspace: dir, Dir: filepath.Join(AsideRoot(root), fmt.Sprintf("%.8x", sha256.Sum256([]byte(dir))))}, err
}

// hidingToolSettings runs an agent. Where that is a program of somebody else's, what such
// programs obey in the workspace is out of their way meanwhile, and back before anybody looks
// at what was made. What the agent wrote in its place is the role's work, and told.
func (w *Worker) hidingToolSettings(ctx context.Context, t task.Task, s *agents.Spawner, run func() (task.Draft, error)) (task.Draft, error) {
	foreign, p, ok, err := s.FindForeign(cmp.Or(t.Command, t.Agent))
	if !ok || err != nil {
		return run() // which says what is wrong
	}
	failed := func(d task.Draft, reason string, err error) (task.Draft, error) {
		return d, &task.AgentError{Agent: t.Agent, Reason: reason, Err: err}
	}
	aside, err := w.newAside()
	if aside.Also = foreign.Hide; err == nil {
		err = aside.Hide(ctx)
	}
	if err != nil {
		return failed(task.Draft{}, "it can't be started", err)
	}
	if why := foreign.DescribeVersion(p.Version); why != "" {
		w.noticeOnce(why)
	}
	draft, err := run()
	ctx, cancel := withPutBackTime(ctx)
	defer cancel()
	own, rerr := aside.Restore(ctx)
	if rerr != nil {
		return failed(draft, "what it was not to see can't be put back", errors.Join(rerr, err))
	}
	if len(own) > 0 {
		w.logEvent(thread.Event{Kind: "notice", Thread: t.Thread, Step: t.Step, Role: t.Role, Text: fmt.Sprintf(
			"the role %s wrote settings of coding tools, which are kept and took no effect on %s: %s", t.Role, foreign.Program, text.Cut(strings.Join(own, ", "), 300))})
	}
	return draft, err
}
