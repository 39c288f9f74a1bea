package artifact

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas/workspace"
)

// Agent hands over what an artifact holds, to the engine whose folder that is: it
// makes the changes in the folder and returns the draft. The engine then checks,
// redacts, seals and commits both as it does with every agent's.
//
// A task that the artifact is not of is refused with nothing changed. Files that
// people changed meanwhile are refused too, but only after the agent's version was
// put into the folder, so that the engine keeps it with the attempt.
func Agent(a Artifact, folder step.Folder) task.Agent { return &handover{a, folder} }

type handover struct {
	a      Artifact
	folder step.Folder
}

// Run implements task.Agent.
func (h *handover) Run(ctx context.Context, t task.Task, _ *task.Meter) (task.Draft, error) {
	fail := func(err error, format string, args ...any) (task.Draft, error) {
		return h.a.Draft, &task.AgentError{Agent: t.Agent, Reason: fmt.Sprintf(format, args...), Err: err}
	}
	if err := h.checkTask(t); err != nil {
		d, _ := fail(nil, "")
		d.Nodes = nil // they are of another step
		return d, &task.AgentError{Agent: t.Agent, Reason: err.Error()}
	}
	if len(h.a.Files) > 0 {
		if h.folder == nil {
			return fail(nil, "its artifact changes %d files, and this job has no folder for them", len(h.a.Files))
		}
		dir := h.folder.Dir()
		over, err := workspace.Overlap(ctx, dir, h.a.Files)
		if err != nil {
			return fail(err, "its changes can't be compared with the work branch")
		}
		if err := workspace.Apply(dir, h.a.Files); err != nil {
			return fail(err, "its changes can't be made")
		}
		if len(over) > 0 {
			return fail(nil, "while the agent worked, people changed files on the work branch that it changed too (%s); its version is kept with this attempt: retry to let it work on the new ones", listPaths(over))
		}
	}
	if f := h.a.Failure; f != nil {
		return h.a.Draft, &task.AgentError{Agent: t.Agent, Reason: f.Reason, Detail: f.Detail}
	}
	return h.a.Draft, nil
}

// checkTask reports why the artifact is not of this task.
func (h *handover) checkTask(t task.Task) error {
	a := h.a
	for _, c := range []struct{ what, got, want string }{
		{"thread", string(a.Thread), string(t.Thread)},
		{"head", string(a.Head), string(headOf(t))},
		{"step", fmt.Sprint(a.Step), fmt.Sprint(t.Step)},
		{"role", a.Role, t.Role},
		{"agent", a.Agent, t.Agent},
		{"answer", string(a.Answer), string(answerOf(t))},
	} {
		if c.got != c.want {
			hint := "run the first job again"
			if c.what == "agent" {
				hint = "give the inputs agent and config alike in both jobs"
			}
			if c.what == "answer" {
				hint = "people have said something else to the thread since the agent began"
			}
			return errors.New("the artifact is of another step: its " + c.what + " is " + clipText(c.got) + ", wanted " + clipText(c.want) + ": " + hint)
		}
	}
	return nil
}

// listPaths lists the first few paths.
func listPaths(paths []string) string {
	const most = 10
	if len(paths) > most {
		return strings.Join(paths[:most], ", ") + fmt.Sprintf(" and %d more", len(paths)-most)
	}
	return strings.Join(paths, ", ")
}
