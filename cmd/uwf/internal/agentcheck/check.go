package agentcheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/builtin"
	"github.com/united-workforce/uwf/agents/gateway/dialect"
	"github.com/united-workforce/uwf/agents/gateway/translate"
	"github.com/united-workforce/uwf/agents/program"
	"github.com/united-workforce/uwf/agents/sandbox"
	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/doctor"
	"github.com/united-workforce/uwf/cmd/uwf/internal/worker"
	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/text"
)

// CheckOptions are what `uwf agent check` works with.
type CheckOptions struct {
	Factory *app.Factory
	Name    string // empty: the agents in use, and all that are installed
}

// NewCmdCheck makes `uwf agent check`. A runF that is not nil replaces the run.
func NewCmdCheck(f *app.Factory, runF func(context.Context, *CheckOptions) error) *cobra.Command {
	o := &CheckOptions{Factory: f}
	return &cobra.Command{
		Use:   "check [NAME]",
		Short: "Check whether an agent would work here, and how to mend what is missing",
		Long: `Check whether an agent would work here: whether its program is there, of a version that uwf
was tried with, and reached by agents as they are confined; whether the model that it would
get speaks an API that it knows; and whether a run of it gives a step. That run is a whole
one, in an empty folder, but it asks a model that is part of uwf: it needs no key, costs
nothing, and asks nobody's servers. For what is missing it says the command that mends it.

Without NAME it checks the agents that the settings use, and all others that are installed;
only the first are required then.

Exit code 1 if something is missing without which the agent does not work.`,
		Example: `  uwf agent check
  uwf agent check builtin
  uwf agent check --jq '.agents[].findings[] | select(.state != "ok") | .fix'`,
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			s, err := newSurvey(f)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return s.names(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: app.Run(o, runF, checkRun, func(args []string) {
			if len(args) > 0 {
				o.Name = args[0]
			}
		}),
	}
}

// result is what `uwf agent check` prints.
type result struct {
	OK     bool      `json:"ok"`
	Agents []checked `json:"agents"`
}

// checked is one agent.
type checked struct {
	Agent    string           `json:"agent"`
	OK       bool             `json:"ok"`
	Findings []doctor.Finding `json:"findings"`
}

func checkRun(ctx context.Context, o *CheckOptions) error {
	s, err := newSurvey(o.Factory)
	if err != nil {
		return err
	}
	inUse := s.config.AgentsInUse()
	names := s.names()
	if o.Name != "" {
		if !slices.Contains(names, o.Name) {
			return &app.UnknownError{What: "agent", ID: o.Name, Near: app.SuggestNames(o.Name, names), See: "uwf agent list"}
		}
		names = []string{o.Name}
	}
	out := result{OK: true, Agents: []checked{}}
	for _, name := range names {
		a := s.find(name)
		required := o.Name != "" || slices.Contains(inUse, name)
		if !required && (a.err != nil || a.kind == own) {
			continue
		}
		if o.Factory.IO.ErrTTY { // a probe may take half a minute
			o.Factory.Notes().Printf("checking %s …\n", name)
		}
		c := checked{Agent: name, Findings: s.check(ctx, a)}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for i := range c.Findings {
			f := &c.Findings[i]
			f.Required = f.Required && required
			f.Detail, f.Fix = s.clean(f.Detail), s.clean(f.Fix)
		}
		c.OK = !doctor.Failed(c.Findings)
		out.OK = out.OK && c.OK
		out.Agents = append(out.Agents, c)
	}
	return app.ExitAfter(o.Factory.Printer().Print(out, out.write), out.OK, 1)
}

func (r result) write(w *output.Writer) {
	for i, c := range r.Agents {
		if i > 0 {
			w.Println()
		}
		w.Bold(output.Line(c.Agent, maxDetail) + "\n")
		doctor.Text(w, c.Findings)
	}
}

// check makes all checks of an agent. What needs the program is left out where there is none.
func (s *survey) check(ctx context.Context, a *agentFound) []doctor.Finding {
	found := []doctor.Finding{a.checkProgram()}
	if a.err != nil {
		return append(found, s.checkWires(a)...)
	}
	box := worker.NewSandbox(s.f, s.config, s.self, s.config.Sandbox, !s.config.SaysSandbox())
	reach := s.checkReach(ctx, a, &box)
	found = append(found, a.checkVersion(), reach, s.checkLogin(a))
	found = append(found, s.checkWires(a)...)
	found = append(found, s.checkProbe(ctx, a, box, reach.State != doctor.Missing))
	return slices.DeleteFunc(found, func(f doctor.Finding) bool { return f.State == "" })
}

func (a *agentFound) checkProgram() doctor.Finding {
	f := doctor.Finding{Check: "program", State: doctor.OK, Required: true}
	var missing *agents.CommandError
	switch {
	case errors.As(a.err, &missing) && a.kind == foreign:
		f.State, f.Detail, f.Fix = doctor.Missing, missing.Why, a.foreign.Install
	case errors.As(a.err, &missing):
		f.State, f.Detail, f.Fix = doctor.Missing, fmt.Sprintf("agent command %q: %s", missing.Line, missing.Why), missing.Fix
	case a.err != nil:
		f.State, f.Detail, f.Fix = doctor.Missing, a.err.Error(), a.foreign.Install
	case a.kind == own:
		f.Detail = "part of uwf"
	case a.program.Real != a.program.Path:
		f.Detail = a.program.Path + " (" + a.program.Real + ")"
	default:
		f.Detail = a.program.Path
	}
	return f
}

// checkVersion says whether anybody has tried the version. Another one may well work.
func (a *agentFound) checkVersion() doctor.Finding {
	f := doctor.Finding{Check: "version", State: doctor.OK, Detail: a.version}
	r := a.facts.Versions
	in, known := r.Contains(a.version)
	switch {
	case a.kind != foreign:
		return doctor.Finding{}
	case r == program.Range{}:
		f.State, f.Detail = doctor.Unknown, strings.TrimSpace(a.version+" nobody has tried it with uwf")
	case !known:
		f.State, f.Detail = doctor.Unknown, "it says no version"
	case !in:
		f.State, f.Fix = doctor.Unknown, a.foreign.Install
		f.Detail = fmt.Sprintf("%s; tried with uwf: %s", a.version, r)
	}
	return f
}

// checkReach runs the program confined, as the agent is. Where nobody asked for a sandbox and
// there can be none, box is nil afterwards.
func (s *survey) checkReach(ctx context.Context, a *agentFound, box **sandbox.Sandbox) doctor.Finding {
	f := doctor.Finding{Check: "sandbox", State: doctor.OK, Required: true, Detail: "not confined (sandbox: off)"}
	if *box != nil {
		confined, network := (*box).Summary()
		f.Detail = fmt.Sprintf("works %s, network %s", confined, network)
	}
	err := (*box).Check()
	if err != nil && (*box).Waives(err) {
		*box, f.Detail, err = nil, "not confined: "+err.Error(), nil
	}
	var printed, hint string
	if err == nil && a.kind == foreign {
		printed, hint, err = worker.TryProgram(ctx, s.f, *box, a.versionTrial(s))
	}
	if err != nil && (*box).Waives(err) {
		*box, f.Detail = nil, "not confined: "+err.Error()
		printed, hint, err = worker.TryProgram(ctx, s.f, nil, a.versionTrial(s))
	}
	if a.version = cmp.Or(a.version, program.FindVersion(printed)); err == nil {
		return f
	}
	f.State, f.Detail = doctor.Missing, fmt.Sprintf("%s --version does not work as an agent's program: %s", a.foreign.Program, strings.TrimSpace(err.Error()+": "+printed))
	switch {
	case errors.As(err, new(*sandbox.RefusedError)):
		f.Detail = err.Error() // which says what to do
	case *box == nil:
		f.Fix = a.foreign.Install
	default:
		f.Fix = cmp.Or(hint, fmt.Sprintf("install it where every user can read it, or name the folders that it needs in confine.read of ~/.uwf/config.yaml (now: %s)", strings.Join(a.program.Places, ", ")))
	}
	return f
}

// checkLogin says what does not hold for an agent with a login of its own.
func (s *survey) checkLogin(a *agentFound) doctor.Finding {
	switch {
	case a.login != "":
	case a.facts.OwnServers:
		return doctor.Finding{Check: "login", State: doctor.Missing, Required: true, Detail: "it asks its makers' servers alone, and so needs its own login",
			Fix: "set agents." + a.name + ".login: own in ~/.uwf/config.yaml, on a machine of yours (docs/acp.md)"}
	default:
		return doctor.Finding{}
	}
	return doctor.Finding{Check: "login", State: doctor.Unknown, Detail: "login: " + a.login + ": uwf counts and bounds none of what it costs; whether it is taken was not tried"}
}

// checkWires says of each model that the settings give the agent whether it can be asked.
func (s *survey) checkWires(a *agentFound) []doctor.Finding {
	if !a.facts.Asks || a.login != "" || a.facts.OwnServers {
		return nil
	}
	var out []doctor.Finding
	seen := map[string]bool{}
	for _, at := range s.config.PlacesOf(a.name) {
		m, err := s.config.ResolveModel(at.Workflow, at.Role)
		if seen[m.Alias] {
			continue
		}
		seen[m.Alias] = true
		f := doctor.Finding{Check: "wire", Required: true}
		switch {
		case err == nil, errors.Is(err, config.ErrNoKey), errors.As(err, new(*config.WithheldError)):
			f.State, f.Detail, f.Fix = describeWire(a.wiresFor(m), m)
		case errors.Is(err, config.ErrNoModel):
			f.State, f.Detail, f.Fix = doctor.Unknown, "no model is configured", "uwf setup"
		default:
			f.State, f.Detail = doctor.Missing, err.Error()
		}
		if small := a.foreign.CheckWindow(m.Alias, m.Model.Window); small != nil && f.State == doctor.OK {
			f.State, f.Detail = doctor.Missing, small.Error()
		}
		out = append(out, f)
	}
	return out
}

// wiresFor are the wires in which an agent asks a model: uwf's own chooses one.
func (a *agentFound) wiresFor(m config.ResolvedModel) []string {
	if a.foreign.Agent != builtin.Name {
		return a.facts.Wires
	}
	return []string{builtin.ChooseWire(*worker.DescribeModel(m))}
}

// describeWire says how a model's provider answers an agent: in one of the agent's own wires, or
// by translation, and what is lost then.
func describeWire(wires []string, m config.ResolvedModel) (state doctor.State, detail, fix string) {
	served := m.Provider.Wires
	var native []dialect.Dialect
	for _, name := range served {
		if d, ok := dialect.Named(name); ok {
			native = append(native, d)
		}
	}
	provider := fmt.Sprintf("%s: provider %s speaks %s", m.Alias, m.Model.Provider, strings.Join(served, ", "))
	for _, wire := range wires {
		if slices.Contains(served, wire) {
			return doctor.OK, fmt.Sprintf("%s, and the agent %s", provider, wire), ""
		}
	}
	if len(wires) == 0 {
		return doctor.Unknown, provider + "; what the agent speaks is up to its settings", ""
	}
	d, known := dialect.Named(wires[0])
	if _, ok := translate.WireFor(native, d); !ok || !known {
		return doctor.Missing, fmt.Sprintf("%s, and the agent %s; the gateway translates into chat alone", provider, strings.Join(wires, ", ")),
			"give it a model of another provider (uwf config set modelOverrides.WORKFLOW.ROLE NAME), or the role another agent"
	}
	lost := lists.Map(translate.Losses(d), func(l translate.Loss) string { return l.What })
	return doctor.OK, fmt.Sprintf("%s, and the agent %s, which the gateway translates; lost or refused: %s (docs/translation.md)", provider, wires[0], strings.Join(lost, ", ")), ""
}

// checkProbe runs the agent, if there is a point in it.
func (s *survey) checkProbe(ctx context.Context, a *agentFound, box *sandbox.Sandbox, runs bool) doctor.Finding {
	f := doctor.Finding{Check: "probe", State: doctor.Unknown, Required: true}
	switch {
	case a.kind == command:
		f.Detail = "not tried: which model the program asks is its own affair"
		return f
	case !a.facts.Asks:
		f.Detail = "not tried: it asks no model"
		return f
	case a.facts.OwnServers:
		f.Detail = "not tried: it asks its makers' servers alone"
		return f
	case !runs:
		f.Detail = "not tried: it can't be run"
		return f
	}
	p, err := s.probe(ctx, a, box)
	took := text.Took(p.took.Milliseconds())
	switch {
	case err != nil:
		f.State, f.Detail, f.Fix = doctor.Missing, fmt.Sprintf("failed after %s: %s", took, explainProbe(err)), a.foreign.Install
	case p.requests == 0:
		f.State, f.Detail, f.Fix = doctor.Missing, "it gave a step and never asked the model that it was given", a.foreign.Install
	default:
		f.State, f.Detail = doctor.OK, fmt.Sprintf("gave a step in %s, with %s to a model that is part of uwf", took, text.Plural(int(p.requests), "request"))
	}
	return f
}

// explainProbe is why a run gave no step; whose agent it was is known.
func explainProbe(err error) string {
	var failed *task.AgentError
	if !errors.As(err, &failed) {
		return err.Error()
	}
	return strings.TrimSpace(fmt.Sprintf("%s: %v: %s", failed.Reason, failed.Err, failed.Detail))
}
