package agents

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/agents/sandbox"
	"github.com/united-workforce/uwf/engine/task"
)

// runConfined runs the process in its sandbox, where there is one. The workspace is
// its owner's again when it returns, however the run ended.
func (s *Spawner) runConfined(ctx context.Context, t task.Task, r run) (task.Draft, error) {
	unconfined := func() (task.Draft, error) {
		if r.foreign != nil {
			if err := errors.Join(r.foreign.makeHome(), r.foreign.fillHome()); err != nil {
				return task.Draft{}, s.newAgentError(t, "its HOME can't be made", "", err)
			}
		}
		return s.runProcess(ctx, t, r.folders, r.argv, s.childEnviron(t, r, nil))
	}
	if s.o.Sandbox == nil || s.o.Sandbox.Waives(s.o.Sandbox.Check()) {
		return unconfined()
	}
	if s.o.FillHome != nil {
		if err := s.o.FillHome(ctx, sandbox.HomeOf(r.base)); err != nil {
			return task.Draft{}, s.newAgentError(t, "its HOME can't be filled", "", err)
		}
	}
	read, shared := r.foreign.openedPlaces()
	cell, err := s.o.Sandbox.Enter(sandbox.Run{
		Workspace: s.taskFolder(t), Own: s.o.OwnFolder, Base: r.base, Context: r.context, Stage: r.stage,
		Argv: r.argv, Files: s.ownFiles(r.argv), Ports: loopbackPorts(r.model), Read: read, Shared: shared,
	})
	if s.o.Sandbox.Waives(err) { // the machine could, and these folders can't
		if s.o.Gaps != nil {
			s.o.Gaps([]string{"this agent runs unconfined: " + err.Error()})
		}
		return unconfined()
	}
	if err != nil {
		return task.Draft{}, s.newAgentError(t, "it can't be confined", "", err)
	}
	if s.o.Gaps != nil && len(cell.Gaps) > 0 {
		s.o.Gaps(cell.Gaps)
	}
	env, err := cell.Confined(s.childEnviron(t, r, cell))
	if err == nil {
		err = r.foreign.fillHome()
	}
	var draft task.Draft
	if err == nil {
		draft, err = s.runProcess(ctx, t, r.folders, cell.Argv, env)
	}
	if failed, ok := errors.AsType[*task.AgentError](err); ok {
		failed.Detail = strings.TrimRight(failed.Detail+"\n"+cell.ExplainDenial(failed.Detail), "\n")
	}
	if lerr := cell.Leave(); lerr != nil && err == nil {
		err = s.newAgentError(t, "its workspace can't be taken back", draft.Stderr, lerr)
	}
	return draft, err
}

// taskFolder is everything that a task may change.
func (s *Spawner) taskFolder(t task.Task) string {
	if s.o.Folder == nil {
		return t.Workspace
	}
	return cmp.Or(s.o.Folder(), t.Workspace)
}

// ownFiles are the files that a command line names: a script, its settings.
// Folders are not: whoever wants an agent to read one says so in the settings.
func (s *Spawner) ownFiles(argv []string) []string {
	var out []string
	for _, word := range argv[1:] {
		if !filepath.IsAbs(word) {
			word = filepath.Join(s.o.Dir, word)
		}
		if info, err := os.Stat(word); err == nil && info.Mode().IsRegular() {
			out = append(out, word)
		}
	}
	return out
}

// loopbackPorts are the ports of this machine in the URLs of an environment
// (NAME=value): where the agent finds its model.
func loopbackPorts(environ []string) []uint16 {
	var out []uint16
	for _, kv := range environ {
		_, value, _ := strings.Cut(kv, "=")
		u, err := url.Parse(value)
		if err != nil || u.Hostname() != "127.0.0.1" && u.Hostname() != "localhost" && u.Hostname() != "::1" {
			continue
		}
		if port, err := strconv.ParseUint(u.Port(), 10, 16); err == nil && !slices.Contains(out, uint16(port)) {
			out = append(out, uint16(port))
		}
	}
	return out
}
