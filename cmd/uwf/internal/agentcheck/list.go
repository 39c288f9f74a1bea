package agentcheck

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/agents/program"
	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
)

// ListOptions are what `uwf agent list` works with.
type ListOptions struct{ Factory *app.Factory }

// NewCmdList makes `uwf agent list`. A runF that is not nil replaces the run.
func NewCmdList(f *app.Factory, runF func(context.Context, *ListOptions) error) *cobra.Command {
	o := &ListOptions{Factory: f}
	return &cobra.Command{
		Use:   "list",
		Short: "List the agents that roles can be given to, and the programs behind them",
		Long: `List the agents that roles can be given to: those of this binary, and those that the
settings name. Of one that runs a program of somebody else's it says where that is, of
which version, and whether uwf was tried with that version; or how to install it.
The version is what the program's package says; where none does, the program is asked for
it (--version), in an empty folder, with a HOME of its own and without your secrets.`,
		Example: "  uwf agent list\n  uwf agent list --jq '.[] | select(.installed) | .name'",
		Args:    cobra.NoArgs,
		RunE:    app.Run(o, runF, listRun, func([]string) {}),
	}
}

// listed is one agent in the list.
type listed struct {
	Name      string         `json:"name"`
	Title     string         `json:"title,omitempty"`
	Kind      kind           `json:"kind"`
	Program   string         `json:"program,omitempty"`
	RealPath  string         `json:"realPath,omitempty"`
	Installed bool           `json:"installed"`
	Install   string         `json:"install,omitempty"`
	Why       string         `json:"why,omitempty"`
	Version   string         `json:"version,omitempty"`
	Tried     *program.Range `json:"tried,omitempty"`
	Tested    bool           `json:"tested"`
	Wires     []string       `json:"wires"`
	Login     string         `json:"login,omitempty"`
	InUse     bool           `json:"inUse"`
}

func listRun(ctx context.Context, o *ListOptions) error {
	s, err := newSurvey(o.Factory)
	if err != nil {
		return err
	}
	list := []listed{}
	for _, name := range s.names() {
		a := s.find(name)
		a.askVersion(ctx, s)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		list = append(list, a.list(s))
	}
	return o.Factory.Printer().Print(list, func(w *output.Writer) {
		output.WriteTable(w, []string{"agent", "program", "version", "tried", "wires", ""}, list, listed.cells)
	})
}

// list is the agent as it is printed.
func (a *agentFound) list(s *survey) listed {
	l := listed{
		Name: a.name, Title: a.facts.Title, Kind: a.kind, Program: a.program.Path, RealPath: a.program.Real, Installed: a.err == nil, Version: a.version,
		Wires: append([]string{}, a.facts.Wires...), Login: a.login, InUse: slices.Contains(s.config.AgentsInUse(), a.name),
	}
	if a.kind == foreign && a.facts.Versions.Tested != "" {
		l.Tried = &a.facts.Versions
	}
	in, _ := a.facts.Versions.Contains(a.version)
	l.Tested = a.kind == own || in && l.Tried != nil
	if a.err != nil {
		l.Install, l.Why = a.foreign.Install, s.clean(a.err.Error())
	}
	return l
}

// cells are the agent's row.
func (l listed) cells() []string {
	program, versions := l.Program, ""
	switch {
	case l.Kind == own:
		program = "(part of uwf)"
	case !l.Installed:
		program = "not installed"
	}
	if l.Tried != nil {
		versions = l.Tried.String()
	}
	return []string{l.Name, program, l.Version, versions, strings.Join(l.Wires, ", "), strings.Join(l.remarks(), "; ")}
}

// remarks are what is to be known of the agent, in short.
func (l listed) remarks() (out []string) {
	if l.InUse {
		out = append(out, "in use")
	}
	if l.Login != "" {
		out = append(out, "login: "+l.Login)
	}
	if l.Kind == foreign && l.Tried == nil {
		out = append(out, "untested")
	}
	switch {
	case !l.Installed:
		out = append(out, cmp.Or(l.Install, l.Why))
	case l.Kind != foreign || l.Tried == nil:
	case l.Version == "":
		out = append(out, "says no version")
	case !l.Tested:
		out = append(out, "not tried with this version")
	}
	return out
}
