// Package agentcheck is `uwf agent list` and `uwf agent check`: which agents roles can be given
// to, which programs of somebody else's they run, and whether such a program would work as an
// agent here, down to a run of it against a model that is part of this package. It needs no key,
// and asks nobody's servers.
package agentcheck

import (
	"context"
	"maps"
	"slices"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/program"
	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/agent"
	"github.com/united-workforce/uwf/cmd/uwf/internal/worker"
	"github.com/united-workforce/uwf/engine/config"
)

// kind is what an agent is.
type kind string

const (
	own     kind = "own"     // a part of this binary alone
	foreign kind = "foreign" // a part of this binary that runs a program of somebody else's
	command kind = "command" // a program that speaks the protocol of agents itself
)

// survey knows where agents are looked for.
type survey struct {
	f       *app.Factory
	config  *config.Config
	self    []string
	options agents.Options
	spawner *agents.Spawner
}

func newSurvey(f *app.Factory) (*survey, error) {
	c, err := f.Config()
	if err != nil {
		return nil, err
	}
	self, err := f.Self()
	if err != nil {
		return nil, err
	}
	o := worker.SpawnerOptions(f, c, self)
	return &survey{f: f, config: c, self: self, options: o, spawner: agents.NewSpawner(o)}, nil
}

// names are those of all agents: of this binary, and then of the settings.
func (s *survey) names() []string {
	out := slices.DeleteFunc(agent.Names(), func(name string) bool { return name == agent.ACPName }) // without a program it is none
	more := slices.AppendSeq(s.config.AgentsInUse(), maps.Keys(s.config.Agents))
	slices.Sort(more)
	for _, name := range more {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// agentFound is what was found of an agent.
type agentFound struct {
	name    string
	kind    kind
	facts   agent.Facts
	foreign agents.Foreign
	program program.Program
	version string // empty: it is not known yet, or there is none
	login   string // config.OwnLogin, config.JobLogin, or empty
	err     error  // why it can't be run
}

func (s *survey) find(name string) *agentFound {
	a := &agentFound{name: name, kind: command, login: s.config.Agents[name].Login}
	var ok bool
	a.foreign, a.program, ok, a.err = s.spawner.FindForeign(name)
	switch {
	case ok:
		a.kind = foreign
	case a.foreign.Agent != "":
		a.kind = own
	}
	a.facts, _ = agent.FindFacts(a.foreign.Agent)
	a.version = output.Line(a.program.Version, maxVersion)
	return a
}

// maxVersion is how much of a version is shown, in characters: a package says what it likes.
const maxVersion = 40

// askVersion asks the program for its version, where no package says it.
func (a *agentFound) askVersion(ctx context.Context, s *survey) {
	if a.kind != foreign || a.err != nil || a.version != "" {
		return
	}
	printed, _, _ := worker.TryProgram(ctx, s.f, nil, a.versionTrial(s)) // none is what it says then
	a.version = program.FindVersion(printed)
}

// versionTrial asks the program for its version.
func (a *agentFound) versionTrial(s *survey) worker.Trial {
	return worker.Trial{Argv: []string{a.program.Path, "--version"}, Environ: s.f.Environ, Read: append([]string{a.program.Path}, a.program.Places...)}
}

// maxDetail is how much is shown of what others say, in characters.
const maxDetail = 600

// clean makes what others say one line without secrets.
func (s *survey) clean(said string) string { return output.Line(s.f.CleanMessage(said), maxDetail) }
