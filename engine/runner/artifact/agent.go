package artifact

import (
	"context"
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
	if why := h.checkTask(t); why != "" { // what is in it is of another step
		return task.Draft{}, &task.AgentError{Agent: t.Agent, Reason: why}
	}
	d := h.a.asDraft()
	fail := func(err error, format string, args ...any) (task.Draft, error) {
		return d, &task.AgentError{Agent: t.Agent, Reason: fmt.Sprintf(format, args...), Err: err}
	}
	if len(h.a.Files) > 0 {
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
		return d, &task.AgentError{Agent: t.Agent, Reason: f.Reason, Detail: f.Detail}
	}
	return d, nil
}

// checkTask says why the artifact is not of this task.
func (h *handover) checkTask(t task.Task) string {
	a := h.a
	const again = "run the first job again"
	for _, c := range []struct{ what, got, want, hint string }{
		{"thread", string(a.Thread), string(t.Thread), again},
		{"head", string(a.Head), string(headOf(t)), again},
		{"step", fmt.Sprint(a.Step), fmt.Sprint(t.Step), again},
		{"role", a.Role, t.Role, again},
		{"agent", a.Agent, t.Agent, "give the inputs agent and config alike in both jobs"},
		{"answer", string(a.Answer), string(answerOf(t)), "people have said something else to the thread since the agent began"},
	} {
		if c.got != c.want {
			return "the artifact is of another step: its " + c.what + " is " + clipText(c.got) + ", wanted " + clipText(c.want) + ": " + c.hint
		}
	}
	return ""
}

// listPaths lists the first few paths.
func listPaths(paths []string) string {
	const most = 10
	if len(paths) > most {
		return strings.Join(paths[:most], ", ") + fmt.Sprintf(" and %d more", len(paths)-most)
	}
	return strings.Join(paths, ", ")
}
